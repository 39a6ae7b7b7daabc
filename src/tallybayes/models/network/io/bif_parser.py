"""The blocks of a BIF file: variables, and the rows of their tables."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.models.network.io.bif_scanner import ROUNDED, TOLERANCE, Scanner, shown
from tallybayes.models.network.io.network_tables import NetworkTables

MAX_CELLS = 2**25  # of all tables together
MAX_PARENTS = 63  # an array has at most 64 axes
_DEFAULT = -1  # the number of the row that stands for all that are missing


class BlockReader:
    """What was declared so far: levels with their positions, and the tables of the nodes that have one.

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
        self.declared: dict[str, int] = {}  # where, in the text
        self.blocks: dict[str, int] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, np.ndarray] = {}
        self.n_cells = 0

    def read(self) -> NetworkTables:
        """All blocks, up to the end of the text."""
        scanner = self.scanner
        self._network()
        while scanner.peek():
            if scanner.keyword(("variable", "probability"), "the end of the file") == "variable":
                self._variable()
            else:
                self._block()
        if not self.levels:
            raise scanner.unexpected("at least one variable")
        for name, place in self.declared.items():
            if name not in self.blocks:
                what = f"found no block for the variable {shown(name)}; expected one"
                raise scanner.error(what, "Add its probabilities: probability ( NAME ) { table …; }.", place=place)
        try:
            TopologicalSorter(self.parents).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1]
            way = " → ".join([*map(shown, cycle[:8]), *["…"] * (len(cycle) > 8)])
            what, hint = f"found the cycle {way}; expected none", "Turn one of these edges round, or leave it out."
            raise scanner.error(what, hint, place=self.blocks[cycle[0]]) from None
        parents = {name: tuple(self.parents[name]) for name in self.levels}
        levels = {name: tuple(known) for name, known in self.levels.items()}
        try:
            return NetworkTables(parents, levels, self.tables)
        except (DataError, LabelError) as error:
            raise FileError(f"{scanner.source} holds no network: {error}") from error

    def _network(self) -> None:
        scanner = self.scanner
        scanner.keyword(("network",), hint="BIF begins with: network NAME { }. XMLBIF, DSC, NET and XDSL are not BIF.")
        while not scanner.accept("{"):
            scanner.name("'{'")
        while not scanner.accept("}"):
            scanner.keyword(("property",), "'}'")
            scanner.skip_property()

    def _variable(self) -> None:
        scanner = self.scanner
        name = scanner.name("the name of a variable")
        place = scanner.place
        if name in self.levels:
            line = scanner.line(self.declared[name])
            raise scanner.error(f"found the variable {shown(name)} again; expected it once, as in line {line}")
        levels: dict[str, int] | None = None
        scanner.expect("{")
        while not scanner.accept("}"):
            if scanner.keyword(("type", "property"), "'}'") == "property":
                scanner.skip_property()
            elif levels is None:
                levels = self._levels(name)
            else:
                raise scanner.error(f"found another type of {shown(name)}; expected one")
        if levels is None:
            hint = "A variable declares its levels: type discrete [ 2 ] { no, yes };"
            raise scanner.error(f"found no type of the variable {shown(name)}; expected one", hint)
        self.levels[name], self.declared[name] = levels, place

    def _levels(self, name: str) -> dict[str, int]:
        scanner = self.scanner
        scanner.keyword(("discrete",), hint="Tables hold the probabilities of levels; cut numbers into intervals.")
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
            what = f"found {len(levels)} levels of {shown(name)}; expected {max(n_levels, 1)}, as it declares"
            raise scanner.error(what, hint)
        scanner.expect(";")
        return levels

    def _block(self) -> None:
        """A node, its parents and its rows."""
        scanner = self.scanner
        scanner.expect("(")
        place = scanner.place
        node = self._known(scanner.name("the name of a variable"))
        if (scanner.accept("|") or scanner.accept(",")) and scanner.peek() == ")":
            raise scanner.unexpected("the name of a parent")
        parents: list[str] = []
        for parent in scanner.names(")", "the name of a parent"):
            if parent in parents:
                raise scanner.error(f"found the parent {shown(parent)} of {shown(node)} again; expected it once")
            parents.append(self._known(parent))
            if len(parents) > MAX_PARENTS:
                hint = "Give it fewer parents, for example by putting nodes between."
                raise scanner.error(f"found more than {MAX_PARENTS} parents of {shown(node)}; expected fewer", hint)
        if node in self.blocks:
            line = scanner.line(self.blocks[node])
            what = f"found another block of {shown(node)}; expected one, as in line {line}"
            raise scanner.error(what, place=place)
        shape = [len(self.levels[name]) for name in (*parents, node)]
        self.n_cells += math.prod(shape)
        if self.n_cells > MAX_CELLS:
            what = f"found, with that of {shown(node)}, tables of more than {MAX_CELLS} cells; expected fewer"
            raise scanner.error(what, "Give it fewer parents, or parents with fewer levels.", place=place)
        self.blocks[node], self.parents[node] = place, parents
        scanner.expect("{")
        self.tables[node] = _Rows(self, node, parents).read().reshape(shape)

    def _known(self, name: str) -> str:
        if name not in self.levels:
            hint = "Check the spelling; a variable has to be declared before the blocks that name it."
            raise self.scanner.error(f"found the variable {shown(name)}; expected {some(self.levels)}", hint)
        return name


class _Rows:
    """The rows of one block, as they come: they fill a table only when all are there."""

    def __init__(self, reader: BlockReader, node: str, parents: list[str]) -> None:
        self.scanner, self.node, self.parents = reader.scanner, node, parents
        self.place = reader.blocks[node]
        self.levels = [reader.levels[parent] for parent in parents]
        self.n_levels = len(reader.levels[node])
        self.n_rows = math.prod(map(len, self.levels))
        self.values = array("d")
        self.rows, self.places = array("q"), array("q")  # which row it is, where it stands

    def read(self) -> np.ndarray:
        """The table, of shape (rows, levels)."""
        scanner = self.scanner
        whole: int | None = None  # where all rows were given at once
        while not scanner.accept("}"):
            if scanner.peek() == "(":
                keyword = "("
                scanner.place += 1
            else:
                keyword = scanner.keyword(("table", "default", "property"), "'(' or '}'")
            if keyword == "property":
                scanner.skip_property()
                continue
            place = scanner.place
            if whole is not None or (keyword == "table" and self.rows):
                what = f"found rows of {shown(self.node)} besides a table of all; expected one of the two"
                raise scanner.error(what, place=place)
            if keyword == "table":
                whole = place
                self._numbers(self.n_levels * self.n_rows, None, place)
            else:
                row = self._row() if keyword == "(" else _DEFAULT
                self.rows.append(row)
                self.places.append(place)
                self._numbers(self.n_levels, row, place)
        values = np.asarray(self.values)
        if whole is None:
            return self._filled(self._summing_to_1(values.reshape(-1, self.n_levels), None))
        return self._summing_to_1(np.ascontiguousarray(values.reshape(self.n_levels, self.n_rows).T), whole)

    def _numbers(self, n_expected: int, row: int | None, place: int) -> None:
        n_found = self.scanner.numbers(n_expected, self.values)
        if n_found != n_expected:
            where = "the table" if row is None else self._named(row)
            what = f"found {n_found} number{'s' * (n_found != 1)} in {where} of {shown(self.node)}"
            hint = f"There is one for each of the {self.n_levels} levels, in every row."
            raise self.scanner.error(f"{what}; expected {n_expected}", hint, place=place)

    def _row(self) -> int:
        """The number of the row that some labels name: the last parent's change fastest."""
        scanner, row, n_labels = self.scanner, 0, 0
        for label in scanner.names(")", "a level"):
            if n_labels < len(self.parents):
                known = self.levels[n_labels]
                if label not in known:
                    what = f"found the level {shown(label)} of {shown(self.parents[n_labels])}; expected {some(known)}"
                    raise scanner.error(what, "Check the spelling, and quote levels that have spaces.")
                row = row * len(known) + known[label]
            n_labels += 1
        if n_labels != len(self.parents):
            what = f"found {n_labels} label{'s' * (n_labels != 1)} for a row of {shown(self.node)}"
            raise scanner.error(f"{what}; expected {len(self.parents)}, one for each parent")
        return row

    def _named(self, row: int) -> str:
        """A row for a message."""
        if row == _DEFAULT:
            return "the default"
        if not self.levels:
            return "the table"
        labels = []
        for known in reversed(self.levels):
            row, position = divmod(row, len(known))
            labels.append(list(known)[position])
        return f"the row ({', '.join(map(shown, reversed(labels)))})"

    def _summing_to_1(self, values: np.ndarray, whole: int | None) -> np.ndarray:
        sums = values.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1.0) > TOLERANCE)
        if wrong.size:
            at = int(wrong[0])
            row, place = (self.rows[at], self.places[at]) if whole is None else (at, whole)
            what = f"found that {self._named(row)} of {shown(self.node)} sums to {sums[at]:.6g}; expected 1"
            raise self.scanner.error(what, place=place)
        rounded = np.abs(sums - 1.0) > ROUNDED
        values[rounded] /= sums[rounded, None]
        return values

    def _filled(self, values: np.ndarray) -> np.ndarray:
        """A table of rows in any order, if each is there once; a default for those that are not."""
        rows = np.asarray(self.rows)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        again = order[1:][ordered[1:] == ordered[:-1]]
        if again.size:
            first = int(again.min())
            what = f"found {self._named(self.rows[first])} of {shown(self.node)} again; expected it once"
            raise self.scanner.error(what, place=self.places[first])
        n_defaults = int((ordered[:1] == _DEFAULT).sum())
        given = ordered[n_defaults:]
        if not n_defaults and len(given) < self.n_rows:
            present = given == np.arange(len(given))
            missing = len(given) if present.all() else int(np.argmin(present))
            what = f"found nothing for {self._named(missing)} of {shown(self.node)}; expected each row once"
            hint = "Add it, or give one row for all that are missing: default 0.5, 0.5;"
            raise self.scanner.error(what, hint, place=self.place)
        table = np.empty((self.n_rows, self.n_levels))
        if n_defaults:
            table[:] = values[order[0]]
        table[given] = values[order[n_defaults:]]
        return table


def some(names: Iterable[str], most: int = 8) -> str:
    """Names for a message: one of these."""
    known: Sequence[str] = list(names)
    more = f" or {len(known) - most} more" if len(known) > most else ""
    return f"one of {', '.join(map(shown, known[:most]))}{more}" if known else "it to be declared first"
