"""Cross-validated scores of naive Bayes: columns are counted once by fold and class, in all selected families."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes import kernels
from tallybayes.data.table import Table
from tallybayes.distributions.gamma import Gamma
from tallybayes.estimation.resampling.fold_statistics import folds_as_columns
from tallybayes.families._shared.empirical_prior import EmpiricalOrAddOne
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance, constant_columns
from tallybayes.families.protocols.scoring_forms import log_predictive_form, transform
from tallybayes.models.ensemble.candidate_folds import CountedFolds
from tallybayes.models.ensemble.feature_views import numbers_of
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.tally.factor import Name


class _ReadColumn(NamedTuple):
    """A column as one family reads it, and the folds in which that family is selected."""

    cells: np.ndarray  # numbers, or codes of levels, −1 where missing
    size: int  # the number of levels
    folds: list[bool]


class _Columns:
    """All columns by the kind of their families: discrete levels, Gaussian numbers, Poisson counts."""

    def __init__(self, table: Table, chosen: list[dict[Name, Family]]) -> None:
        self.levels: list[_ReadColumn] = []
        self.measured: list[_ReadColumn] = []
        self.events: list[_ReadColumn] = []
        for name in dict.fromkeys(name for by_name in chosen for name in by_name):
            families = [by_name.get(name) for by_name in chosen]
            inner = [None if family is None else family.present_family or family for family in families]
            number = numbers_of(table, name) if table.kind(name) == "number" else None
            codes, n_levels = _codes(table, name) if number is None else (number, 0)
            distinct = {
                id(family): family for family in inner if family is not None
            }  # folds that agree share an object
            for family in distinct.values():
                self._add(family, codes if number is None else number, n_levels, [other is family for other in inner])
            if any(family is not None and family.present_family is not None for family in families):
                present = (codes >= 0 if number is None else ~np.isnan(number)).astype(np.int8)
                uses_indicator = [family is not None and family.present_family is not None for family in families]
                self.levels.append(_ReadColumn(present, 2, uses_indicator))

    def _add(self, family: Family, cells: np.ndarray, n_levels: int, folds: list[bool]) -> None:
        """Add a column as one family reads it."""
        if cells.dtype.kind != "f":  # a Bernoulli column has two levels
            self.levels.append(_ReadColumn(cells, n_levels, folds))
        elif family in (Gaussian(), LogNormal()):
            column = np.log(cells) if family.transforms else cells
            if np.nanmin(column) < np.nanmax(column):  # a constant column has zero variance and is skipped
                self.measured.append(_ReadColumn(column, 0, folds))
        elif family == Poisson():
            self.events.append(_ReadColumn(cells, 0, folds))
        elif family.bins:
            self.levels.append(_ReadColumn(np.asarray(transform(family, cells)), len(family.bins), folds))
        else:
            values, codes = np.unique(cells, return_inverse=True)  # NaN is sorted last
            n_values = int(np.searchsorted(values, np.nan))
            self.levels.append(_ReadColumn(np.where(codes < n_values, codes, -1), n_values, folds))


def naive_scores(table: Table, chosen: list[dict[Name, Family]], folds: CountedFolds) -> np.ndarray:
    """Return log p(class | row) of each row under the model of the other folds, in the families selected from them.

    Binned and Bernoulli columns are scored as discrete levels, because the width of a bin is the same in all classes.

    Parameters
    ----------
    table : Table
    chosen : list of {name: Family}
        For each fold, the families selected from the other folds.
    folds : CountedFolds

    Returns
    -------
    ndarray of shape (n, classes)
    """
    columns = _Columns(table, chosen)
    parts: list[tuple[list[np.ndarray], Any]] = []
    if columns.levels or columns.events:
        discrete = [*columns.levels, *(_by_value(column) for column in columns.events)]
        tables = np.concatenate([*_level_tables(columns.levels, folds), *_event_tables(columns.events, folds)], axis=-1)
        sizes = np.array([column.size for column in discrete])
        kept = np.repeat(np.array([column.folds for column in discrete]), sizes, axis=0).T  # (folds, cells)
        tables = np.where(kept[None], tables, 0.0)
        parts.append(([column.cells for column in discrete], lambda k: ("codes", sizes, tables[:, k].T, "missing")))
    if columns.measured:
        student = _students(columns.measured, folds)
        parts.append(
            ([column.cells for column in columns.measured], lambda k: ("student", *(p[:, k].T for p in student)))
        )
    n_rows = len(folds.codes)
    log_proba = np.empty((n_rows, folds.n_classes))
    log_density = np.empty(n_rows)
    blocks = [block for block, _ in parts]
    for k, test in enumerate(folds.tests):
        scorer = kernels.Scorer(folds.log_prior[k], [factor(k) for _, factor in parts])
        scorer.posterior(blocks, n_rows, folds.log_prior[k], test, log_proba, log_density)
    return log_proba


def _codes(table: Table, name: Name) -> tuple[np.ndarray, int]:
    """Return the level codes of a categorical column, and the number of levels."""
    codes, domain = table.encoded(name)
    return codes.astype(np.int32), len(domain.levels)


def _by_value(column: _ReadColumn) -> _ReadColumn:
    """Return whole numbers as codes of the distinct values."""
    values, codes = np.unique(column.cells, return_inverse=True)
    known = int(np.searchsorted(values, np.nan))
    return _ReadColumn(np.where(codes < known, codes, -1), known, column.folds)


def _level_tables(read: list[_ReadColumn], folds: CountedFolds) -> list[np.ndarray]:
    """Return log p(level | class) of all discrete columns, (classes, folds, cells), each fold under its own prior."""
    if not read:
        return []
    sizes = [column.size for column in read]
    n_groups = folds.n_folds * folds.n_classes
    counted = kernels.count_codes([column.cells for column in read], sizes, folds.group, n_groups, folds.weight)
    remaining = folds.without(counted.reshape(folds.n_folds, folds.n_classes, -1)).swapaxes(0, 1)
    return [
        np.log(level_shares(remaining.reshape(folds.n_classes, -1), np.tile(sizes, folds.n_folds))[0]).reshape(
            remaining.shape
        )
    ]


def level_shares(table: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean of p(level | class) under the default prior, and pseudo-counts: (classes, cells)."""
    segments = Segments(sizes)
    (prior,) = EmpiricalOrAddOne().resolve_all([(Categorical(), Counts(table, segments))], "bayes")
    pseudo_counts = np.broadcast_to(np.asarray(prior.concentration, dtype=np.float64), table.shape)  # type: ignore[attr-defined]
    smoothed = table + pseudo_counts
    return smoothed / segments.broadcast_to_cells(segments.sum(smoothed)), pseudo_counts


def _event_tables(read: list[_ReadColumn], folds: CountedFolds) -> list[np.ndarray]:
    """Return log p(value | class) of Poisson columns at the distinct values, (classes, folds, values)."""
    if not read:
        return []
    statistics = _collected(Poisson(), read, folds)
    posterior: Any = Poisson().resolve_prior(None, statistics, "bayes").update(statistics)
    shape, rate = (
        np.broadcast_to(part, (*statistics.given_shape, statistics.n_columns)).reshape(folds.n_classes, -1, len(read))
        for part in (posterior.shape, posterior.rate)
    )
    out = []
    for index, column in enumerate(read):
        values = np.unique(column.cells[~np.isnan(column.cells)])
        posterior_column = Gamma(shape[:, :-1, index], rate[:, :-1, index])
        terms = Poisson().log_predictive(posterior_column, np.repeat(values[:, None], folds.n_folds, axis=1))
        out.append(terms.transpose(1, 2, 0))
    return out


def _students(read: list[_ReadColumn], folds: CountedFolds) -> tuple[np.ndarray, ...]:
    """Return location, inverse scale, power and log norm of all Gaussian columns, (classes, folds, columns) each."""
    family = Gaussian()
    statistics = _collected(family, read, folds)
    constant = constant_columns(family, statistics)
    statistics = add_unit_variance(family, statistics, constant)
    form: Any = log_predictive_form(family, family.resolve_prior(None, statistics, "bayes").update(statistics))
    form = form.without_columns(constant) if len(constant) else form
    parts = (form.location, form.inverse_spread, form.power, form.log_norm)
    shape = (folds.n_classes, folds.n_folds + 1, len(read))
    location, inverse_scale, power, log_norm = (np.broadcast_to(p, statistics.mean.shape).reshape(shape) for p in parts)
    kept = np.array([[*column.folds, False] for column in read]).T[None]
    return location, inverse_scale, np.where(kept, power, 0.0), np.where(kept, log_norm, 0.0)


def _collected(family: Family, read: list[_ReadColumn], folds: CountedFolds) -> Any:
    """Return the statistics of columns by fold and class, with the fold as a column axis."""
    n_groups = folds.n_folds * folds.n_classes
    counted = family.collect([column.cells for column in read], folds.group, n_groups, folds.weight)
    return folds_as_columns(counted, folds.n_folds)
