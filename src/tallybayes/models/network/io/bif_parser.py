"""Parser of BIF files: variables, and the rows of their CPTs."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.models.network.io.bif_scanner import ROUNDED, TOLERANCE, Scanner, shown
from tallybayes.models.network.io.network_tables import NetworkTables

MAX_CELLS = 2**25  # of all tables
MAX_PARENTS = 63  # an array has at most 64 axes
_DEFAULT = -1  # the index of the default row


class BlockReader:
    """Reader of the blocks of a BIF file, with the levels and tables read so far.

    Parameters
    ----------
    scanner : Scanner

    Examples
    --------
    >>> from tallybayes.models.network.io.bif_parser import BlockReader
    >>> from tallybayes.models.network.io.bif_scanner import Scanner
    >>> text = "network n { } variable a { type discrete[2] { x, y }; } probability ( a ) { table 0.2, 0.8; }"
    >>> BlockReader(Scanner(text, "example")).read().tables["a"]
    array([0.2, 0.8])
    """

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.levels: dict[str, dict[str, int]] = {}
        self.declared: dict[str, int] = {}  # positions of the declarations in the text
        self.blocks: dict[str, int] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, np.ndarray] = {}
        self.n_cells = 0

    def read(self) -> NetworkTables:
        """Read all blocks up to the end of the text."""
        scanner = self.scanner
        self._network()
        while scanner.peek():
            if scanner.keyword(("variable", "probability"), "the end of the file") == "variable":
                self._variable()
            else:
                self._block()
        if not self.levels:
            raise scanner.unexpected("at least one variable")
        for name, position in self.declared.items():
            if name not in self.blocks:
                what = f"found no block for the variable {shown(name)}; expected one"
                raise scanner.error(
                    what, "Add its probabilities: probability ( NAME ) { table …; }.", position=position
                )
        try:
            TopologicalSorter(self.parents).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1]
            path = " → ".join([*map(shown, cycle[:8]), *["…"] * (len(cycle) > 8)])
            what = f"found the cycle {path}; expected none"
            hint = "Reverse or remove one of these edges."
            raise scanner.error(what, hint, position=self.blocks[cycle[0]]) from None
        parents = {name: tuple(self.parents[name]) for name in self.levels}
        levels = {name: tuple(index) for name, index in self.levels.items()}
        try:
            return NetworkTables(parents, levels, self.tables)
        except (DataError, LabelError) as error:
            raise FileError(f"{scanner.source} has no valid network: {error}") from error

    def _network(self) -> None:
        scanner = self.scanner
        scanner.keyword(("network",), hint="BIF begins with: network NAME { }. XMLBIF, DSC, NET and XDSL are not BIF.")
        while not scanner.accept("{"):
            scanner.name("'{'")
        for _ in self.entries(()):
            pass  # properties are skipped

    def entries(self, keywords: tuple[str, ...], instead: str = "'}'") -> Iterator[str]:
        """Read the keywords of a block in braces up to its end, without properties; "(" is a keyword, too."""
        scanner = self.scanner
        while not scanner.accept("}"):
            if "(" in keywords and scanner.accept("("):
                yield "("
                continue
            words = [word for word in keywords if word.isalpha()]
            word = scanner.keyword((*words, "property"), instead)
            if word == "property":
                scanner.skip_property()
            else:
                yield word

    def _variable(self) -> None:
        scanner = self.scanner
        name = scanner.name("the name of a variable")
        position = scanner.position
        if name in self.levels:
            line = scanner.line(self.declared[name])
            raise scanner.error(f"found the variable {shown(name)} again; expected it once, as in line {line}")
        levels: dict[str, int] | None = None
        scanner.expect("{")
        for _ in self.entries(("type",)):
            if levels is not None:
                raise scanner.error(f"found another type of {shown(name)}; expected one")
            levels = self._levels(name)
        if levels is None:
            hint = "A variable declares its levels: type discrete [ 2 ] { no, yes };"
            raise scanner.error(f"found no type of the variable {shown(name)}; expected one", hint)
        self.levels[name] = levels
        self.declared[name] = position

    def _levels(self, name: str) -> dict[str, int]:
        scanner = self.scanner
        scanner.keyword(("discrete",), hint="Tables have the probabilities of levels; discretize numbers.")
        scanner.expect("[")
        n_levels = scanner.whole_number()
        scanner.expect("]")
        scanner.expect("{")
        levels: dict[str, int] = {}
        for level in scanner.names("}", "a level"):
            if level in levels:
                raise scanner.error(f"found the level {shown(level)} of {shown(name)} again; expected it once")
            levels[level] = len(levels)
        if len(levels) != n_levels or not levels:
            hint = 'Correct the number, or quote levels that have spaces: "No change".'
            what = f"found {len(levels)} levels of {shown(name)}; expected {max(n_levels, 1)}, as declared"
            raise scanner.error(what, hint)
        scanner.expect(";")
        return levels

    def _block(self) -> None:
        """Read a node, its parents and its rows."""
        scanner = self.scanner
        scanner.expect("(")
        position = scanner.position
        node = self._known(scanner.name("the name of a variable"))
        if (scanner.accept("|") or scanner.accept(",")) and scanner.peek() == ")":
            raise scanner.unexpected("the name of a parent")
        parents: list[str] = []
        for parent in scanner.names(")", "the name of a parent"):
            if parent in parents:
                raise scanner.error(f"found the parent {shown(parent)} of {shown(node)} again; expected it once")
            parents.append(self._known(parent))
            if len(parents) > MAX_PARENTS:
                hint = "Use fewer parents, for example with intermediate nodes."
                raise scanner.error(f"found more than {MAX_PARENTS} parents of {shown(node)}; expected fewer", hint)
        if node in self.blocks:
            line = scanner.line(self.blocks[node])
            what = f"found another block of {shown(node)}; expected one, as in line {line}"
            raise scanner.error(what, position=position)
        shape = [len(self.levels[name]) for name in (*parents, node)]
        self.n_cells += math.prod(shape)
        if self.n_cells > MAX_CELLS:
            what = f"found, with that of {shown(node)}, tables of more than {MAX_CELLS} cells; expected fewer"
            raise scanner.error(what, "Use fewer parents, or parents with fewer levels.", position=position)
        self.blocks[node] = position
        self.parents[node] = parents
        scanner.expect("{")
        self.tables[node] = _Rows(self, node, parents).read().reshape(shape)

    def _known(self, name: str) -> str:
        if name not in self.levels:
            hint = "Check the spelling; a variable is declared before the blocks that name it."
            raise self.scanner.error(f"found the variable {shown(name)}; expected {one_of(self.levels)}", hint)
        return name


class _Rows:
    """Reader of the rows of one block, in any order."""

    def __init__(self, reader: BlockReader, node: str, parents: list[str]) -> None:
        self.reader = reader
        self.scanner = reader.scanner
        self.node = node
        self.parents = parents
        self.position = reader.blocks[node]
        self.levels = [reader.levels[parent] for parent in parents]
        self.n_levels = len(reader.levels[node])
        self.n_rows = math.prod(map(len, self.levels))
        self.values = array("d")
        self.rows = array("q")
        self.positions = array("q")

    def read(self) -> np.ndarray:
        """Read the table, of shape (rows, levels)."""
        scanner = self.scanner
        is_whole = False  # whether there is a table of all rows
        for keyword in self.reader.entries(("(", "table", "default"), "'(' or '}'"):
            position = scanner.position
            if is_whole or (keyword == "table" and self.rows):
                what = f"found rows of {shown(self.node)} besides a table of all rows; expected one of the two"
                raise scanner.error(what, position=position)
            is_whole = keyword == "table"
            row = self._row() if keyword == "(" else _DEFAULT
            self._numbers(self.n_levels * (self.n_rows if is_whole else 1), None if is_whole else row, position)
            self.rows.extend(range(self.n_rows) if is_whole else [row])
            self.positions.extend([position] * (self.n_rows if is_whole else 1))
        values = np.asarray(self.values)
        if is_whole:  # the levels of the node itself change slowest
            return self._ordered(self._normalized(values.reshape(self.n_levels, self.n_rows).T.copy()))
        return self._ordered(self._normalized(values.reshape(-1, self.n_levels)))

    def _numbers(self, n_expected: int, row: int | None, position: int) -> None:
        n_found = self.scanner.numbers(n_expected, self.values)
        if n_found != n_expected:
            where = "the table" if row is None else self._named(row)
            what = f"found {n_found} number{'s' * (n_found != 1)} in {where} of {shown(self.node)}"
            hint = f"Every row has {self.n_levels} numbers, one per level."
            raise self.scanner.error(f"{what}; expected {n_expected}", hint, position=position)

    def _row(self) -> int:
        """Read the levels of the parents and return the index of their row; the last parent changes fastest."""
        scanner = self.scanner
        row = n_levels = 0
        for level in scanner.names(")", "a level"):
            if n_levels < len(self.parents):
                index = self.levels[n_levels]
                if level not in index:
                    parent = shown(self.parents[n_levels])
                    what = f"found the level {shown(level)} of {parent}; expected {one_of(index)}"
                    raise scanner.error(what, "Check the spelling, and quote levels that have spaces.")
                row = row * len(index) + index[level]
            n_levels += 1
        if n_levels != len(self.parents):
            what = f"found {n_levels} level{'s' * (n_levels != 1)} for a row of {shown(self.node)}"
            raise scanner.error(f"{what}; expected {len(self.parents)}, one for each parent")
        return row

    def _named(self, row: int) -> str:
        """Return a row as shown in messages."""
        if row == _DEFAULT:
            return "the default"
        if not self.levels:
            return "the table"
        levels = []
        for index in reversed(self.levels):
            row, position = divmod(row, len(index))
            levels.append(list(index)[position])
        return f"the row ({', '.join(map(shown, reversed(levels)))})"

    def _normalized(self, values: np.ndarray) -> np.ndarray:
        """Return rows that sum to 1; raise FileError if a sum differs too much from 1."""
        sums = values.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1.0) > TOLERANCE)
        if wrong.size:
            k = int(wrong[0])
            what = f"found that {self._named(self.rows[k])} of {shown(self.node)} sums to {sums[k]:.6g}; expected 1"
            raise self.scanner.error(what, position=self.positions[k])
        rounded = np.abs(sums - 1.0) > ROUNDED
        values[rounded] /= sums[rounded, None]
        return values

    def _ordered(self, values: np.ndarray) -> np.ndarray:
        """Return the rows in the order of the table, with the default for missing ones; each may occur once."""
        rows = np.asarray(self.rows)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        again = order[1:][ordered[1:] == ordered[:-1]]
        if again.size:
            first = int(again.min())
            what = f"found {self._named(self.rows[first])} of {shown(self.node)} again; expected it once"
            raise self.scanner.error(what, position=self.positions[first])
        n_defaults = int((ordered[:1] == _DEFAULT).sum())
        given = ordered[n_defaults:]
        if not n_defaults and len(given) < self.n_rows:
            present = given == np.arange(len(given))
            missing = len(given) if present.all() else int(np.argmin(present))
            what = f"found no numbers for {self._named(missing)} of {shown(self.node)}; expected each row once"
            hint = "Add it, or a row for all missing ones: default 0.5, 0.5;"
            raise self.scanner.error(what, hint, position=self.position)
        table = np.empty((self.n_rows, self.n_levels))
        if n_defaults:
            table[:] = values[order[0]]
        table[given] = values[order[n_defaults:]]
        return table


def one_of(names: Iterable[str], most: int = 8) -> str:
    """Format names for a message."""
    known: Sequence[str] = list(names)
    more = f" or {len(known) - most} more" if len(known) > most else ""
    return f"one of {', '.join(map(shown, known[:most]))}{more}" if known else "it to be declared first"
