"""Sampling of rows from a model, and imputation of missing cells."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import LabelError
from tallybayes.estimation.scoring.factor_scorer import Cells, FactorScorer, chunk_of
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import take_groups
from tallybayes.families.protocols.degenerate_estimates import pooled_value
from tallybayes.families.protocols.distribution_functions import conditional_means, sampling_options
from tallybayes.families.protocols.memory_use import memory_use
from tallybayes.statistics.sufficient_statistics import Statistics

_DRAWS = 1_000_000  # numbers drawn at a time


class MissingCellPrediction(NamedTuple):
    """Predictions of the missing cells of one column.

    ``rows`` are the rows whose cell is missing, ``weights`` their class probabilities (rows, classes). A categorical
    column has ``levels`` and their ``probabilities`` (rows, levels); a numeric one the ``means`` in each class (rows,
    classes).
    """

    rows: np.ndarray
    weights: np.ndarray
    levels: tuple[Any, ...] = ()
    probabilities: np.ndarray | None = None
    means: np.ndarray | None = None


def sample_factor(
    part: FactorScorer, codes: np.ndarray, statistics: Statistics, rng: np.random.Generator
) -> np.ndarray:
    """Draw one row of a factor for every class code: (n, columns).

    Under a posterior, every row draws its own parameters.
    """
    family = part.family
    n = len(codes)
    options = sampling_options(family, statistics)
    width = statistics.n_columns
    if (
        not part.predictive or family.cell_type == "codes"
    ):  # of one value, the predictive distribution has the posterior mean as parameter
        parameters = family.parameters_from(part.parameters, "mean") if part.predictive else part.parameters
        out = np.zeros((n, width))
        for code in np.unique(codes):
            mine = codes == code
            out[mine] = family.sample(take_groups(parameters, int(code)), int(mine.sum()), rng, **options)
        return _constant(out, part, statistics)
    parts = []
    step = max(1, _DRAWS // max(1, memory_use(family, width).statistics * (int(codes.max(initial=0)) + 1)))
    for start in range(0, n, step):
        chosen = codes[start : start + step]
        parameters = family.parameters_from(part.parameters, "sample", n=len(chosen), random_state=rng)
        rows = family.sample(take_groups(parameters, (np.arange(len(chosen)), chosen)), 1, rng, **options)[0]
        parts.append(rows)
    return _constant(np.concatenate(parts) if parts else np.zeros((0, width)), part, statistics)


def _constant(rows: np.ndarray, part: FactorScorer, statistics: Statistics) -> np.ndarray:
    """Return rows in which constant columns have their value; a column without observations is missing."""
    if len(part.constant):
        rows[..., part.constant] = pooled_value(part.family, statistics)[part.constant]
    return rows


def expected_cells(part: FactorScorer, statistics: Statistics, cells: np.ndarray) -> np.ndarray:
    """Return the conditional mean of every cell in every class, given the observed cells: (n, classes, columns)."""
    return _constant(np.array(conditional_means(part.family, part.parameters, cells)), part, statistics)


def check_class(label: Hashable, levels: tuple[Any, ...]) -> int:
    """Return the code of a class."""
    if isinstance(label, np.generic):
        label = label.item()
    if label not in levels:
        raise LabelError.no_such_class(label, levels)
    return levels.index(label)


def counts_to_text(counts: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Return word counts as text: each word as often as it was drawn, in the order of the vocabulary.

    Hashes as numbers.
    """
    out = np.empty(len(counts), dtype=object)
    for row, cells in enumerate(counts):
        places = np.repeat(np.arange(len(cells)), np.maximum(np.rint(cells), 0).astype(int))
        out[row] = " ".join(words[place] if len(words) else f"#{place}" for place in places.tolist())
    return out


def missing_cells(
    part: FactorScorer, statistics: Statistics, table: Table, rows: Cells, weights: np.ndarray, domains: list[Any]
) -> dict[int, MissingCellPrediction]:
    """Return the predictions of every missing cell of one factor, by column position.

    An unseen level is not missing.
    """
    if isinstance(rows, SparseRows):
        return {}
    cells = chunk_of(rows, slice(None))
    if part.family.cell_type == "codes":
        codes = table.levels(part.factor.columns)[0].columns
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


def impute_column(column: np.ndarray, cells: MissingCellPrediction, how: str) -> np.ndarray:
    """Return a column with imputed cells; it stays as it is if it has no known levels."""
    if cells.probabilities is not None:
        if not cells.levels:
            return column
        chosen = cells.probabilities.argmax(axis=1)
        values: Any = [cells.levels[int(i)] for i in chosen]
    else:
        assert cells.means is not None
        best = cells.weights.argmax(axis=1)
        mean = (cells.weights * np.where(cells.weights > 0, cells.means, 0.0)).sum(axis=1)  # some classes may be empty
        values = cells.means[np.arange(len(best)), best] if how == "mode" else mean
    out = column.copy() if column.dtype.kind in "fO" else column.astype(object)
    for row, value in zip(cells.rows, values, strict=True):
        out[row] = value
    return out
