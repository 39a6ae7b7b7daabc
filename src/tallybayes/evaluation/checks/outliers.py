"""Rows that are less probable than rows drawn from the model, and the column most responsible for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallybayes.data.encoding import missing_mask
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.evaluation.named_columns import required_columns
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.ensemble.members import generative_members
from tallybayes.models.inputs.features import open_features
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.results.audit import OutlierRow

DensityModel = ClassConditionalModel | BayesianNetwork
Audited = DensityModel | AutoClassifier

_DRAWS_PER_ROW = 20
_LEAST_DRAWS = 10_000
_MOST_DRAWS = 200_000
_MOST_CELLS = 20_000_000  # cells of all draws: fewer draws of many columns
_FEWEST_DRAWS = 1000  # with many columns
_BY_CHANCE = 0.05  # the expected number of outliers by chance
_TAIL = 0.01  # the proportion of the draws from which the tail of log p is extrapolated
_PATTERNS = 6  # patterns of missing cells with a threshold of their own
_ATTRIBUTED = 400_000  # cells that are removed one by one
_STACKED = 4_000_000  # cells of copies of rows that are scored in one call


def find_outliers(model: Audited, table: Table, notes: list[str]) -> tuple[list[OutlierRow], float, np.ndarray | None]:
    """Return the outliers, their expected number by chance, and log p of every row.

    The threshold of log p is found by simulation: rows are drawn from the model, with the same cells missing. A note is
    added if the model cannot draw such rows.
    """
    density_model = _density_model(model, table)
    reason = _not_comparable(density_model, table)
    if reason or density_model is None:
        notes.append(f"rows are not compared with drawn ones: {reason}")
        return [], 0.0, None
    density = density_model.score_samples(table)
    n = table.n_rows
    n_cells = sum(table.width(name) for name in table.columns)
    most = int(np.clip(_MOST_CELLS // max(1, n_cells), _FEWEST_DRAWS, _MOST_DRAWS))
    n_draws = min(most, max(_LEAST_DRAWS, _DRAWS_PER_ROW * n))
    drawn = density_model.sample(n_draws, random_state=0)
    draws = open_features(drawn[0] if isinstance(drawn, tuple) else drawn)
    is_outlier = np.zeros(n, dtype=bool)
    expected = 0.0
    for rows, missing in _missing_patterns(table, draws):
        lowest, probability = _threshold(density_model.score_samples(_with_missing_cells(draws, missing)), n)
        is_outlier[rows] = density[rows] < lowest
        expected += probability * len(rows)
    outliers = np.flatnonzero(is_outlier)
    outliers = outliers[np.argsort(density[outliers], kind="stable")]
    return _with_responsible_column(density_model, table, outliers, density), expected, density


def _not_comparable(model: DensityModel | None, table: Table) -> str:
    """Return the reason why rows cannot be compared with drawn ones; "" if they can."""
    if model is None:
        return "no member of the mixture uses all columns as they are"
    kinds = {type(column) for column in table.columns.values()}
    if Texts in kinds or any(factor.family.is_bag_of_words for factor in model.tally_.factors):
        return "the number of words or tokens of a row is not part of the model"
    return "they are sparse" if SparseRows in kinds else ""


def _density_model(model: Audited, table: Table) -> DensityModel | None:
    """Return the model of p(row): of several, the one of the largest weight that uses the columns as they are."""
    if not isinstance(model, AutoClassifier):
        return model
    usable = [
        member for member in generative_members(model) if set(required_columns(member.model)) <= set(table.columns)
    ]
    return max(usable, key=lambda member: member.spec.weight).model if usable else None


def _threshold(density: np.ndarray, n: int) -> tuple[float, float]:
    """Return the log p below which one of n rows is an outlier, and the probability of such a row."""
    ordered = np.sort(density[np.isfinite(density)])
    lowest = float(ordered[0])
    probability = 1 / (len(ordered) + 1)
    slack = 1e-9 * (1 + abs(lowest))
    if n * probability <= _BY_CHANCE:
        return lowest - slack, probability
    # The tail of log p is about exponential for any model: extrapolate that of the lowest draws.
    tail = ordered[: max(2, int(_TAIL * len(ordered)))]
    extrapolated = lowest - slack - float(tail[-1] - tail.mean()) * np.log(n * probability / _BY_CHANCE)
    return extrapolated, _BY_CHANCE / n


def _missing_patterns(table: Table, draws: Table) -> list[tuple[np.ndarray, dict[Any, np.ndarray]]]:
    """Return groups of rows and their missing cells: frequent patterns, and all rows with rare ones together."""
    names = [name for name in draws.columns if name in table.columns and getattr(table.columns[name], "ndim", 1) == 1]
    missing = {name: missing_mask(table.columns[name]) for name in names}
    # Drawn cells are missing if the model has a distribution of missing values.
    names = [n for n in names if missing[n].any() and not missing_mask(draws.columns[n][:_LEAST_DRAWS]).any()]
    if not names:
        return [(np.arange(table.n_rows), {})]
    cells = np.column_stack([missing[name] for name in names])
    _, of_row, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:_PATTERNS]
    group = np.where(np.isin(of_row, frequent), of_row, -1).ravel()
    parts = (np.flatnonzero(group == pattern) for pattern in [*frequent.tolist(), -1])
    return [(rows, {name: cells[rows, k] for k, name in enumerate(names)}) for rows in parts if len(rows)]


def _with_missing_cells(draws: Table, missing: dict[Any, np.ndarray]) -> Table:
    """Return draws with the missing cells of some rows, in turn."""
    columns = dict(draws.columns)
    for name, mask in missing.items():
        if mask.any():
            columns[name] = with_missing(columns[name], np.resize(mask, draws.n_rows))
    return Table(columns) if missing else draws


def _with_responsible_column(
    model: DensityModel, table: Table, outliers: np.ndarray, density: np.ndarray
) -> list[OutlierRow]:
    """Return every outlier with the column without which it is most probable.

    The columns are removed from copies of the rows, many of which are scored in one call.
    """
    names = [name for name in required_columns(model) if name in table.columns]
    n = min(len(outliers), max(20, _ATTRIBUTED // max(1, len(names)))) if names else 0  # rows that are explained
    rows = table.rows(outliers[:n])
    gain = np.zeros((len(names), len(outliers)))
    step = max(1, _STACKED // max(1, n * len(names)))  # columns of one call
    for first in range(0, len(names) if n else 0, step):
        part = names[first : first + step]
        copies = rows.rows(np.tile(np.arange(n), len(part)))
        removed = np.repeat(np.arange(len(part)), n)
        without = {name: with_missing(copies.columns[name], removed == k) for k, name in enumerate(part)}
        scores = model.score_samples(copies.replaced(copies.columns | without))
        with np.errstate(invalid="ignore"):
            gain[first : first + step, :n] = scores.reshape(len(part), n) - density[outliers[:n]]
    gain = np.nan_to_num(gain, nan=0.0, posinf=np.inf)
    explained = []
    for row, nats in zip(outliers.tolist(), gain.T, strict=True):
        best = int(nats.argmax()) if nats.any() and nats.max() > 0 else None
        column = None if best is None else names[best]
        explained.append(OutlierRow(row, float(density[row]), column, 0.0 if best is None else float(nats[best])))
    return explained


def cells_of(column: object) -> list[Any]:
    """Return the cells of a column as a list."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column).tolist())


def with_missing(column: ArrayLike, mask: np.ndarray) -> np.ndarray:
    """Return a column with some of its cells missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return np.where(mask.reshape(-1, *[1] * (column.ndim - 1)), np.nan, column)
    values = [None if gone else cell for cell, gone in zip(cells_of(column), mask.tolist(), strict=True)]
    if float in map(type, values) and {*map(type, values)} <= {int, float, type(None)}:
        return np.array(values, dtype=float)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells
