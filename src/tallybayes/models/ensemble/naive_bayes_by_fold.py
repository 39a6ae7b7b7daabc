"""Naive Bayes of every fold at once: columns counted once, by fold and class, in all families that a fold chose."""

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
from tallybayes.models.ensemble.candidate_folds import Folds
from tallybayes.models.ensemble.feature_views import numbers_of
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.tally.factor import Name


class _Read(NamedTuple):
    """A column as one family reads it, and in which folds it is read so."""

    cells: np.ndarray  # numbers, or codes of levels, −1 where missing
    size: int  # the number of levels
    folds: list[bool]


class _Columns:
    """All columns, as they are read in any of the folds: by levels, as measured numbers, as counts of events."""

    def __init__(self, table: Table, chosen: list[dict[Name, Family]]) -> None:
        self.levels: list[_Read] = []
        self.measured: list[_Read] = []
        self.events: list[_Read] = []
        for name in dict.fromkeys(name for one in chosen for name in one):
            families = [one.get(name) for one in chosen]
            inner = [None if family is None else family.present_family or family for family in families]
            number = numbers_of(table, name) if table.kind(name) == "number" else None
            codes, n_levels = _codes(table, name) if number is None else (number, 0)
            for family in {
                id(each): each for each in inner if each is not None
            }.values():  # one object where they agree
                self._add(family, codes if number is None else number, n_levels, [each is family for each in inner])
            if any(family is not None and family.present_family is not None for family in families):
                there = (codes >= 0 if number is None else ~np.isnan(number)).astype(np.int8)
                told = [family is not None and family.present_family is not None for family in families]
                self.levels.append(_Read(there, 2, told))

    def _add(self, family: Family, cells: np.ndarray, n_levels: int, folds: list[bool]) -> None:
        if cells.dtype.kind != "f":  # a coin has two levels
            self.levels.append(_Read(cells, n_levels, folds))
        elif family in (Gaussian(), LogNormal()):
            column = np.log(cells) if family.transforms else cells
            if np.nanmin(column) < np.nanmax(column):  # else its absence alone tells something
                self.measured.append(_Read(column, 0, folds))
        elif family == Poisson():
            self.events.append(_Read(cells, 0, folds))
        elif family.bins:
            self.levels.append(_Read(np.asarray(family.transform(cells)), len(family.bins), folds))
        else:
            values, codes = np.unique(cells, return_inverse=True)  # a missing cell is the last
            n_values = int(np.searchsorted(values, np.nan))
            self.levels.append(_Read(np.where(codes < n_values, codes, -1), n_values, folds))


def naive_scores(table: Table, chosen: list[dict[Name, Family]], folds: Folds) -> np.ndarray:
    """log p(class | row) of every row, by the rows of the other folds, in the families that these have chosen.

    Families of bins are levels here, since the width of a bin is the same in all classes; and so are coins.

    Parameters
    ----------
    table : Table
    chosen : list of {name: Family}
        For every fold, by the other rows.
    folds : Folds

    Returns
    -------
    ndarray of shape (n, classes)
    """
    columns = _Columns(table, chosen)
    parts: list[tuple[list[np.ndarray], Any]] = []
    if columns.levels or columns.events:
        read = [*columns.levels, *(_by_value(one) for one in columns.events)]
        tables = np.concatenate([*_level_tables(columns.levels, folds), *_event_tables(columns.events, folds)], axis=-1)
        sizes = np.array([one.size for one in read])
        kept = np.repeat(np.array([one.folds for one in read]), sizes, axis=0).T  # (folds, cells)
        tables = np.where(kept[None], tables, 0.0)
        parts.append(([one.cells for one in read], lambda k: ("codes", sizes, tables[:, k].T, "missing")))
    if columns.measured:
        student = _students(columns.measured, folds)
        parts.append(([one.cells for one in columns.measured], lambda k: ("student", *(p[:, k].T for p in student))))
    n_rows = len(folds.codes)
    log_proba = np.empty((n_rows, folds.n_classes))
    log_density = np.empty(n_rows)
    blocks = [block for block, _ in parts]
    for k, test in enumerate(folds.tests):
        scorer = kernels.Scorer(folds.log_prior[k], [factor(k) for _, factor in parts])
        scorer.posterior(blocks, n_rows, folds.log_prior[k], test, log_proba, log_density)
    return log_proba


def _codes(table: Table, name: Name) -> tuple[np.ndarray, int]:
    """The levels of a column of labels as codes, and their number."""
    codes, (domain,) = table.levels([name], lambda _: False)
    column = np.asarray(codes.columns[:, 0] if isinstance(codes.columns, np.ndarray) else codes.columns[0])
    return column.astype(np.int32), len(domain.levels)


def _by_value(one: _Read) -> _Read:
    """Whole numbers as codes of those that occur."""
    values, codes = np.unique(one.cells, return_inverse=True)
    known = int(np.searchsorted(values, np.nan))
    return _Read(np.where(codes < known, codes, -1), known, one.folds)


def _level_tables(read: list[_Read], folds: Folds) -> list[np.ndarray]:
    """log p(level | class) of all columns of levels, (classes, folds, cells), each under its own prior."""
    if not read:
        return []
    sizes = [one.size for one in read]
    n_groups = folds.n_folds * folds.n_classes
    counted = kernels.count_codes([one.cells for one in read], sizes, folds.group, n_groups, folds.weight)
    rest = folds.without(counted.reshape(folds.n_folds, folds.n_classes, -1)).swapaxes(0, 1)
    return [
        np.log(level_shares(rest.reshape(folds.n_classes, -1), np.tile(sizes, folds.n_folds))[0]).reshape(rest.shape)
    ]


def level_shares(table: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p(level | class), the posterior mean under the default prior of labels, and what that adds: (classes, cells)."""
    segments = Segments(sizes)
    (prior,) = EmpiricalOrAddOne().resolve_all([(Categorical(), Counts(table, segments))], "bayes")
    added = np.broadcast_to(np.asarray(prior.concentration, dtype=np.float64), table.shape)  # type: ignore[attr-defined]
    grown = table + added
    return grown / segments.broadcast_to_cells(segments.sum(grown)), added


def _event_tables(read: list[_Read], folds: Folds) -> list[np.ndarray]:
    """log p(value | class) of counts of events at the values that occur, (classes, folds, values)."""
    if not read:
        return []
    statistics = _collected(Poisson(), read, folds)
    posterior: Any = Poisson().resolve_prior(None, statistics, "bayes").update(statistics)
    shape, rate = (
        np.broadcast_to(part, (*statistics.given_shape, statistics.n_columns)).reshape(folds.n_classes, -1, len(read))
        for part in (posterior.shape, posterior.rate)
    )
    out = []
    for place, one in enumerate(read):
        values = np.unique(one.cells[~np.isnan(one.cells)])
        belief = Gamma(shape[:, :-1, place], rate[:, :-1, place])
        terms = Poisson().log_predictive(belief, np.repeat(values[:, None], folds.n_folds, axis=1))
        out.append(terms.transpose(1, 2, 0))
    return out


def _students(read: list[_Read], folds: Folds) -> tuple[np.ndarray, ...]:
    """Location, inverse spread, power and log norm of all measured columns, (classes, folds, columns) each."""
    family = Gaussian()
    statistics = _collected(family, read, folds)
    flat = family.constant_columns(statistics)
    statistics = family.add_unit_variance(statistics, flat)
    form: Any = family.log_predictive_form(family.resolve_prior(None, statistics, "bayes").update(statistics))  # type: ignore[arg-type]
    form = form.without_columns(flat) if len(flat) else form
    parts = (form.location, form.inverse_spread, form.power, form.log_norm)
    shape = (folds.n_classes, folds.n_folds + 1, len(read))
    location, inverse, power, log_norm = (np.broadcast_to(p, statistics.mean.shape).reshape(shape) for p in parts)
    kept = np.array([[*one.folds, False] for one in read]).T[None]
    return location, inverse, np.where(kept, power, 0.0), np.where(kept, log_norm, 0.0)


def _collected(family: Family, read: list[_Read], folds: Folds) -> Any:
    n_groups = folds.n_folds * folds.n_classes
    counted = family.collect([one.cells for one in read], folds.group, n_groups, folds.weight)
    return folds_as_columns(counted, folds.n_folds)
