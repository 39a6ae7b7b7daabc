"""Rows as a search for a structure counts them: small codes of labels, column after column."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes.data.counting import check_weight
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.missing_indicators import with_missing_level
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.kernels.contingency_tables import MOST_SUMMED_CELLS
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import caution_numbers, node_families, reads_labels
from tallybayes.models.network.network_fit import named_weights
from tallybayes.tally.factor import Name

_BYTES = 253  # levels that a byte holds besides what is missing
_FEW = 8  # rows for each that is different, from which on different ones are counted once


class EncodedRows(NamedTuple):
    """Labels as codes.

    Attributes
    ----------
    names : list
    codes : list of (n,) arrays
        Of the levels that occur or were declared; the type's largest value where a cell is missing.
    levels : list of tuples
    weight : float64 array of shape (n,), or None
        None where every row counts once.
    known : list of (n,) bool arrays, or None
        None where no cell is missing.
    """

    names: list[Name]
    codes: list[np.ndarray]
    levels: list[tuple[Any, ...]]
    weight: np.ndarray | None
    known: list[np.ndarray] | None

    @property
    def sizes(self) -> np.ndarray:
        """The number of levels of every column."""
        return np.array([len(levels) for levels in self.levels], dtype=np.int64)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(len(self.codes[0])) if self.weight is None else float(self.weight.sum())

    def share_known(self, members: tuple[int, ...]) -> float:
        """The share of the rows' weight in which none of these columns is missing."""
        if self.known is None:
            return 1.0
        rows = np.logical_and.reduce([self.known[place] for place in members])
        return float(rows.mean() if self.weight is None else self.weight[rows].sum() / self.total)

    def drawn(self, rng: np.random.Generator) -> Self:
        """As many rows, drawn from these with replacement; a weight is how many rows there are of one."""
        if self.weight is not None:
            n = max(1, round(self.total))
            return self._replace(weight=rng.multinomial(n, self.weight / self.total) * (self.total / n))
        chosen = np.sort(rng.integers(0, len(self.codes[0]), len(self.codes[0])))
        known = None if self.known is None else [column[chosen] for column in self.known]
        return self._replace(codes=[column[chosen] for column in self.codes], known=known)

    def distinct(self) -> Self:
        """The different rows with their weights, where these are far fewer."""
        sizes = self.sizes.tolist()
        if self.known is not None or math.prod(sizes) > MOST_SUMMED_CELLS:
            return self
        keys = np.zeros(len(self.codes[0]), dtype=np.int64)
        for column, size in zip(self.codes, sizes, strict=True):
            keys = keys * size + column
        found, first, place = np.unique(keys, return_index=True, return_inverse=True)
        if len(found) * _FEW > len(keys):
            return self
        weight = np.bincount(place, weights=self.weight, minlength=len(found)).astype(np.float64)
        return self._replace(codes=[column[first] for column in self.codes], weight=weight)


def read_rows(data: Any, columns: Any, sample_weight: Any, names: Any, missing: str) -> EncodedRows:
    """Encode the levels of a table; raise DataError for continuous columns, and for missing cells by default."""
    table = open_table(data, None if names is None else list(names))
    if isinstance(sample_weight, str):
        weighing, sample_weight = sample_weight, named_weights(table, sample_weight)
        table = table.without(weighing)  # a weight is no node
    table = with_parts_of_dates(table)
    if not table.columns:
        raise DataError("there is no column to learn from; expected at least 1.")
    if table.n_rows == 0:  # whose types say nothing
        raise DataError("there are 0 rows to learn from; expected at least 1 that counts.")
    nodes = list(table.columns)
    families = node_families(Graph.read(dict.fromkeys(nodes, ())), columns, table)
    measured = [name for name in nodes if not reads_labels(families[name])]
    if measured:
        raise DataError(
            f"column {measured[0]!r} is measured, and a structure is searched among labels.\n    Cut it into bins, "
            f"leave it out, or, if its numbers are labels, pass columns={{{measured[0]!r}: tb.Categorical()}}."
        )
    absence = [name for name in nodes if families[name].present_family is not None]
    families = {name: family.present_family or family for name, family in families.items()}
    table = with_missing_level(table, absence, lambda _: True)
    weight = check_weight(sample_weight, table.n_rows)
    if weight is not None and not (weight > 0).all():
        table, weight = table.rows(np.flatnonzero(weight > 0)), weight[weight > 0]
    if table.n_rows == 0:
        raise DataError("there are 0 rows to learn from; expected at least 1 that counts.")
    weight = None if weight is None or (weight == 1).all() else np.ascontiguousarray(weight, dtype=np.float64)
    codes, levels, known = zip(*(_coded(table, name, families[name]) for name in nodes), strict=True)
    lacking = [place for place, mask in enumerate(known) if not mask.all()]
    if lacking and missing == "error":
        name, n = nodes[lacking[0]], int((~known[lacking[0]]).sum())
        raise DataError(
            f"column {name!r} lacks {n:,} of {table.n_rows:,} cells"
            + (f", and cells of {len(lacking) - 1} more lack, too" if len(lacking) > 1 else "")
            + "; expected every cell to be there.\n    Fill them in (model.fill of a network or tree), make what is "
            "missing a level (columns={...: tb.WithMissing(tb.Categorical())}), or pass missing='available'."
        )
    caution_numbers(columns, table, dict(zip(nodes, levels, strict=True)))
    return EncodedRows(nodes, list(codes), list(levels), weight, list(known) if lacking else None)


def _coded(table: Table, name: Name, family: Any) -> tuple[np.ndarray, tuple[Any, ...], np.ndarray]:
    """A column as codes of the levels that it has or may have, these levels, and which cells are there."""
    block, domains = table.levels([name], lambda _: True)
    given = block.columns
    found = np.asarray(given[:, 0] if isinstance(given, np.ndarray) else given[0]).astype(np.int64)
    domain = domains[0]
    n = len(domain.levels)
    known = (found >= 0) & (found < n)
    occurs = np.bincount(found[known], minlength=n) > 0
    declared = getattr(family.present_family or family, "levels", None) or ()
    unseen = [level for level in declared if level not in domain.index]
    kept = [level for level, there in zip(domain.levels, occurs, strict=True) if there or level in declared]
    if not kept and not unseen:
        raise DataError(f"column {name!r} has no cell that counts; expected at least 1.")
    place = {level: k for k, level in enumerate(kept)}
    moved = np.array([place.get(level, -1) for level in domain.levels] + [-1], dtype=np.int64)
    levels = (*kept, *unseen)
    if family.present_family is not None:  # absence is a level, whether or not a row has it
        moved[n], known, found, levels = len(levels), np.ones_like(known), np.where(known, found, n), (*levels, None)
    dtype = np.uint8 if len(levels) <= _BYTES else np.uint32
    codes = moved[np.where(known, found, n)]
    return np.where(known, codes, np.iinfo(dtype).max).astype(dtype), levels, known
