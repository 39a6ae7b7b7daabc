"""ColumnNames: the names of columns in results; columns of a block have names of their own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally


class ColumnNames(NamedTuple):
    """The names of the columns of blocks.

    Attributes
    ----------
    blocks : mapping from block to names
        As given by the user.
    text_columns : collection of names
        Their words are the columns of a block.
    tally : Tally
        Its domains have the words.
    """

    blocks: Mapping[Any, Sequence[str]]
    text_columns: Collection[Name]
    tally: Tally

    def within(self, block: Name) -> Sequence[str]:
        """Return the names of the columns of a block: as given by the user, or the words of a text column."""
        if block not in self.text_columns:
            return self.blocks.get(block, ())
        domain = self.tally.domains.get(self.tally.schema.domain(block))
        return () if domain is None else domain.levels

    def display(self, column: Hashable) -> Any:
        """Return the name of a column in results; a (block, position) has its own name, if there is one."""
        names = self.within(column[0]) if isinstance(column, tuple) else ()
        if not isinstance(column, tuple) or column[1] >= len(names):
            return column
        return f"{column[0]}: {names[column[1]]}" if len(self.text_columns) > 1 else names[column[1]]

    def of_block(self, columns: Sequence[Name], width: int) -> Sequence[Any]:
        """Return the names or numbers of the columns of a block; empty for a factor of other columns."""
        if len(columns) > 1 or width == 1:
            return ()
        names = self.within(columns[0])
        return names if len(names) == width else (*names[:width], *range(len(names), width))
