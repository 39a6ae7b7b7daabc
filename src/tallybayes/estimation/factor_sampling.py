"""Rows out of a model: sampling whole rows, and filling in missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import LabelError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import Family

_DRAWS = 1_000_000  # numbers drawn at a time


class MissingCellPrediction(NamedTuple):
    """What a model believes about the missing cells of one column.

    ``rows`` are the rows whose cell is missing, ``weights`` their class probabilities (rows, classes). For labels,
    ``levels`` and their ``probabilities`` (rows, levels); for numbers, the ``means`` in each class (rows, classes).
    """

    rows: np.ndarray
    weights: np.ndarray
    levels: tuple[Any, ...] = ()
    probabilities: np.ndarray | None = None
    means: np.ndarray | None = None


def sample_factor(part: FactorScorer, codes: np.ndarray, statistics: Any, rng: np.random.Generator) -> np.ndarray:
    """One row of a factor for every class code: (n, columns). Under a posterior, each row has its own parameters."""
    family = part.family
    n = len(codes)
    options = family.sampling_options(statistics)
    width = n_columns(part.family, statistics)
    if not part.predictive or family.cell_type == "codes":  # of one label, the predictive distribution is the mean
        parameters = family.parameters_from(part.parameters, "mean") if part.predictive else part.parameters
        out = np.zeros((n, width))
        for code in np.unique(codes):
            mine = codes == code
            out[mine] = family.sample(family.take(parameters, int(code)), int(mine.sum()), rng, **options)
        return _constant(out, part, statistics)
    parts = []
    step = max(1, _DRAWS // max(1, family.n_numbers(width)[0] * (int(codes.max(initial=0)) + 1)))
    for start in range(0, n, step):
        chosen = codes[start : start + step]
        parameters = family.parameters_from(part.parameters, "sample", n=len(chosen), random_state=rng)
        rows = family.sample(family.take(parameters, (np.arange(len(chosen)), chosen)), 1, rng, **options)[0]
        parts.append(rows)
    return _constant(np.concatenate(parts) if parts else np.zeros((0, width)), part, statistics)


def _constant(rows: np.ndarray, part: FactorScorer, statistics: Any) -> np.ndarray:
    """Rows where a column that was the same in every row still is, and one that no row showed is missing."""
    if len(part.constant):
        rows[..., part.constant] = part.family.pooled_value(statistics)[part.constant]
    return rows


def expected_cells(part: FactorScorer, statistics: Any, cells: np.ndarray) -> np.ndarray:
    """What every class expects of every cell, given the known cells of its row: (n, classes, columns)."""
    return _constant(np.array(part.family.conditional_means(part.parameters, cells)), part, statistics)


def n_columns(family: Family, statistics: Any) -> int:
    """The number of columns of a factor's rows."""
    return int(statistics.n_columns)


def check_class(label: Any, levels: tuple[Any, ...]) -> int:
    """The code of a class."""
    if isinstance(label, np.generic):
        label = label.item()
    if label not in levels:
        raise LabelError.no_such_class(label, levels)
    return levels.index(label)


def counts_to_text(counts: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Counts of words as text: each as often as it was drawn, in the order of the vocabulary; hashes by number."""
    out = np.empty(len(counts), dtype=object)
    for row, cells in enumerate(counts):
        places = np.repeat(np.arange(len(cells)), np.maximum(np.rint(cells), 0).astype(int))
        out[row] = " ".join(words[place] if len(words) else f"#{place}" for place in places.tolist())
    return out


def missing_cells(
    part: FactorScorer, statistics: Any, table: Table, rows: Any, weights: np.ndarray, domains: list[Any]
) -> dict[int, MissingCellPrediction]:
    """The belief about every missing cell of one factor, by column position; a level never seen is not missing."""
    if isinstance(rows, SparseRows):
        return {}
    cells = chunk_of(rows, slice(None))
    if part.family.cell_type == "codes":
        codes = table.levels(part.factor.columns, lambda _: False)[0].columns
        columns = codes.T if isinstance(codes, np.ndarray) else codes
        absent = np.stack([np.asarray(column).astype(np.int64) < 0 for column in columns], axis=-1)
    else:
        absent = np.isnan(cells)
    out = {}
    for column in np.flatnonzero(absent.any(axis=0)):
        index = np.flatnonzero(absent[:, column])
        share = weights[index]
        if part.family.cell_type == "codes":
            found = part.family.parameters_from(part.parameters, "mean") if part.predictive else part.parameters
            levels = domains[column].levels
            known = found.segments.split(found.table)[column][..., : len(levels)]
            known = known / known.sum(axis=-1, keepdims=True)
            out[int(column)] = MissingCellPrediction(index, share, levels, share @ known)
        else:
            means = expected_cells(part, statistics, cells[index])[..., column]
            out[int(column)] = MissingCellPrediction(index, share, means=means)
    return out


def is_labels(part: FactorScorer) -> bool:
    """Whether a factor's columns hold labels."""
    return part.family.cell_type == "codes"


def impute_column(column: np.ndarray, cells: MissingCellPrediction, how: str) -> np.ndarray:
    """A column with its missing cells filled in, unless there are no levels to do it with."""
    if cells.probabilities is not None:
        if not cells.levels:
            return column
        chosen = cells.probabilities.argmax(axis=1)
        values: Any = [cells.levels[int(i)] for i in chosen]
    else:
        assert cells.means is not None
        best = cells.weights.argmax(axis=1)
        mean = (cells.weights * np.where(cells.weights > 0, cells.means, 0.0)).sum(axis=1)  # some classes have none
        values = cells.means[np.arange(len(best)), best] if how == "mode" else mean
    out = column.copy() if column.dtype.kind in "fO" else column.astype(object)
    for row, value in zip(cells.rows, values, strict=True):
        out[row] = value
    return out
