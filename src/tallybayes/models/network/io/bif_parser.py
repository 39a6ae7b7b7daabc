"""Parser of BIF files: variables, and the rows of their CPTs."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
            what, _, hint = str(error).partition("\n    ")
            hint = hint or "Correct the file, or write it again with to_bif."
            raise FileError(f"{scanner.source} has no valid network: {what}\n    {hint}") from error

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
        self.tables[node] = self._rows(node, position).reshape(shape)

    def _known(self, name: str) -> str:
        if name not in self.levels:
            hint = "Check the spelling; a variable is declared before the blocks that name it."
            raise self.scanner.error(f"found the variable {shown(name)}; expected {one_of(self.levels)}", hint)
        return name

    def _rows(self, node: str, position: int) -> np.ndarray:
        """Read the rows of a block in any order, and return its table of shape (rows, levels)."""
        scanner, parents, n_levels = self.scanner, self.parents[node], len(self.levels[node])
        n_rows = math.prod(len(self.levels[parent]) for parent in parents)
        values = array("d")
        starts: dict[int, int] = {}  # the positions of the rows in the text
        whole = -1  # the position of a table of all rows
        for keyword in self.entries(("(", "table", "default"), "'(' or '}'"):
            start = scanner.position
            if whole >= 0 or (keyword == "table" and starts):
                what = f"found rows of {shown(node)} besides a table of all rows; expected one of the two"
                raise scanner.error(what, position=start)
            row = self._row(node) if keyword == "(" else _DEFAULT
            name = "the table" if keyword == "table" else self._named(row, parents)
            if row in starts:
                raise scanner.error(f"found {name} of {shown(node)} again; expected it once", position=start)
            n_expected = n_levels * (n_rows if keyword == "table" else 1)
            n_found = scanner.numbers(n_expected, values)
            if n_found != n_expected:
                what = f"found {n_found} number{'s' * (n_found != 1)} in {name} of {shown(node)}; expected {n_expected}"
                raise scanner.error(what, f"Every row has {n_levels} numbers, one per level.", position=start)
            if keyword == "table":
                whole = start
            else:
                starts[row] = start
        if whole >= 0:  # the levels of the node itself change slowest
            table = np.asarray(values).reshape(n_levels, n_rows).T.copy()
            return self._normalized(table, node, range(n_rows), {}, whole)
        if _DEFAULT not in starts and len(starts) < n_rows:
            missing = next(row for row in range(n_rows) if row not in starts)
            what = f"found no numbers for {self._named(missing, parents)} of {shown(node)}; expected each row once"
            hint = "Add it, or a row for all missing ones: default 0.5, 0.5;"
            raise scanner.error(what, hint, position=position)
        listed = self._normalized(np.asarray(values).reshape(-1, n_levels), node, list(starts), starts, whole)
        rows = np.array(list(starts))
        table = np.empty((n_rows, n_levels))
        table[:] = listed[rows == _DEFAULT] if _DEFAULT in starts else 0.0
        table[rows[rows != _DEFAULT]] = listed[rows != _DEFAULT]
        return table

    def _row(self, node: str) -> int:
        """Read the levels of the parents and return the index of their row; the last parent changes fastest."""
        scanner, parents = self.scanner, self.parents[node]
        row = n_levels = 0
        for level in scanner.names(")", "a level"):
            if n_levels < len(parents):
                index = self.levels[parents[n_levels]]
                if level not in index:
                    what = f"found the level {shown(level)} of {shown(parents[n_levels])}; expected {one_of(index)}"
                    raise scanner.error(what, "Check the spelling, and quote levels that have spaces.")
                row = row * len(index) + index[level]
            n_levels += 1
        if n_levels != len(parents):
            what = f"found {n_levels} level{'s' * (n_levels != 1)} for a row of {shown(node)}"
            raise scanner.error(f"{what}; expected {len(parents)}, one for each parent")
        return row

    def _named(self, row: int, parents: list[str]) -> str:
        """Return a row as shown in messages."""
        if row == _DEFAULT or not parents:
            return "the default" if row == _DEFAULT else "the table"
        levels = [list(self.levels[parent]) for parent in parents]
        codes = np.unravel_index(row, list(map(len, levels)))
        return f"the row ({', '.join(shown(of_parent[k]) for of_parent, k in zip(levels, codes, strict=True))})"

    def _normalized(
        self, values: np.ndarray, node: str, rows: Sequence[int], starts: Mapping[int, int], whole: int
    ) -> np.ndarray:
        """Return rows that sum to 1; raise FileError if a sum differs too much from 1."""
        sums = values.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1.0) > TOLERANCE)
        if wrong.size:
            row = rows[wrong[0]]
            name = self._named(row, self.parents[node])
            what = f"found that {name} of {shown(node)} sums to {sums[wrong[0]]:.6g}; expected 1"
            raise self.scanner.error(what, position=starts.get(row, whole))
        rounded = np.abs(sums - 1.0) > ROUNDED
        values[rounded] /= sums[rounded, None]
        return values


def one_of(names: Iterable[str], most: int = 8) -> str:
    """Format names for a message."""
    known: Sequence[str] = list(names)
    more = f" or {len(known) - most} more" if len(known) > most else ""
    return f"one of {', '.join(map(shown, known[:most]))}{more}" if known else "it to be declared first"
