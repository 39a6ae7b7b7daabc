"""Rows that are less probable than rows drawn from the model, and the column most responsible for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.encoding import missing_mask
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
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
    columns = table.columns.values()
    if any(isinstance(column, Texts) for column in columns) or _counts_tokens(model):
        return "the number of words or tokens of a row is not part of the model"
    if any(isinstance(column, SparseRows) for column in columns):
        return "they are sparse"
    return ""


def _counts_tokens(model: DensityModel) -> bool:
    """Return whether a column is a bag of words."""
    return any(factor.family.is_bag_of_words for factor in model.tally_.factors)


def _density_model(model: Audited, table: Table) -> DensityModel | None:
    """Return the model of p(row): of several, the one of the largest weight that uses the columns as they are."""
    if not isinstance(model, AutoClassifier):
        return model
    usable = [member for member in model.members_ if set(member.model._required_columns) <= set(table.columns)]
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
    names = [name for name in names if missing[name].any() and not _has_missing(draws.columns[name])]
    if not names:
        return [(np.arange(table.n_rows), {})]
    cells = np.column_stack([missing[name] for name in names])
    patterns, of_row, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    of_row = np.ravel(of_row)
    frequent = np.argsort(-counts, kind="stable")[:_PATTERNS].tolist()
    groups = [
        (np.flatnonzero(of_row == pattern), {name: patterns[pattern, k : k + 1] for k, name in enumerate(names)})
        for pattern in frequent
    ]
    rare = np.flatnonzero(~np.isin(of_row, frequent))
    if len(rare):
        groups.append((rare, {name: cells[rare, k] for k, name in enumerate(names)}))
    return groups


def _has_missing(column: np.ndarray) -> bool:
    """Return whether drawn cells are missing: the model has a distribution of missing values."""
    return bool(missing_mask(column[:_LEAST_DRAWS]).any())


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
    names = [name for name in model._required_columns if name in table.columns]
    attributed = outliers[: max(20, _ATTRIBUTED // max(1, len(names)))]
    rows = table.rows(attributed)
    best = np.zeros(len(attributed))
    responsible = np.full(len(attributed), -1)
    step = max(1, _STACKED // max(1, len(attributed) * len(names)))  # columns of one call
    for first in range(0, len(names) if len(attributed) else 0, step):
        part = names[first : first + step]
        copies = rows.rows(np.tile(np.arange(len(attributed)), len(part)))
        removed = np.repeat(np.arange(len(part)), len(attributed))
        without = {name: with_missing(copies.columns[name], removed == k) for k, name in enumerate(part)}
        scores = model.score_samples(copies.replaced({**copies.columns, **without})).reshape(len(part), -1)
        for column, score in enumerate(scores, first):
            with np.errstate(invalid="ignore"):
                gain = np.nan_to_num(score - density[attributed], nan=0.0, posinf=np.inf)
            responsible = np.where(gain > best, column, responsible)
            best = np.maximum(gain, best)
    explained = [
        OutlierRow(int(row), float(density[row]), names[k] if k >= 0 else None, float(nats))
        for row, k, nats in zip(attributed.tolist(), responsible.tolist(), best.tolist(), strict=True)
    ]
    return explained + [
        OutlierRow(int(row), float(density[row]), None, 0.0) for row in outliers[len(attributed) :].tolist()
    ]


def cells_of(column: object) -> list[Any]:
    """Return the cells of a column as a list."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column).tolist())


def with_missing(column: Any, mask: np.ndarray) -> np.ndarray:
    """Return a column with some of its cells missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return np.where(mask.reshape(-1, *[1] * (column.ndim - 1)), np.nan, column)
    cells = np.empty(len(column), dtype=object)
    cells[:] = cells_of(column)
    cells[mask] = None
    values = cells.tolist()
    is_numeric = {type(cell) for cell in values} <= {int, float, type(None)}
    return cells.astype(float) if is_numeric and any(isinstance(cell, float) for cell in values) else cells
