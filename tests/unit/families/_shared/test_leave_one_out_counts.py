"""Rows without themselves: what a family says of them in closed form is what the other rows alone would say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.families._shared.blocks import Codes, SparseRows
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows, subtract_or_zero
from tallybayes.families.estimates import read_estimate
from tallybayes.families.protocols.leave_one_out import (
    leave_one_out_changes_all_groups,
    leave_one_out_log_prob,
    leave_one_out_tables,
)

RNG = np.random.default_rng(5)
GROUP = np.array([0, 1, 0, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 1, 2, 2, 0, 1])
N = len(GROUP)
NUMBERS = 20.0 + RNG.normal(GROUP[:, None] * 1.5, [1.0, 0.4, 2.0], (N, 3)) @ np.array(
    [[1.0, 0.3, 0.0], [0.0, 1.0, -0.5], [0.0, 0.0, 1.0]]
)
WEIGHTS = {"once": np.ones(N), "weighted": RNG.uniform(0.3, 2.5, N)}
NOTHING = np.zeros(0, dtype=np.intp)
MEASURED = {
    "gaussian": tb.Gaussian(),
    "log-normal": tb.LogNormal(),
    "tied": tb.TiedGaussian(),
    "spherical": tb.SphericalGaussian(),
    "tied spherical": tb.TiedSphericalGaussian(),
    "multivariate": tb.MultivariateGaussian(),
    "tied multivariate": tb.TiedMultivariateGaussian(),
}


def counted_by(family: Any, block: Any, weight: Any, estimate: str, group: np.ndarray = GROUP) -> GroupStatistics:
    """What all rows leave behind, with the default prior."""
    statistics = family.collect(block, group, int(group.max()) + 1, weight)
    how = read_estimate(estimate)
    return GroupStatistics(statistics, family.resolve_prior(None, statistics, estimate) if how.has_prior else None, how)


def left_out(family: Any, counted: GroupStatistics, removed: RemovedRows) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(leave_one_out_log_prob(family, counted, removed))


def of_others(
    family: Any, block: Any, weight: np.ndarray, counted: GroupStatistics, row: int, scored: Any = None
) -> Any:
    """log p(row | group) in every group, from all other rows, counted anew."""
    group = GROUP.copy()
    group[row] = -1
    rest = family.collect(block, group, 3, weight, like=counted.statistics)
    x = (block if scored is None else scored)[row : row + 1]
    if counted.estimate.integrates:
        terms = family.log_predictive(counted.prior.update(rest), x)
    else:
        terms = family.log_prob(counted.estimate.point(family, counted.prior, rest), x)
    return terms[0].sum(axis=-1) if family.columnwise else terms[0]


@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle", "unbiased"])
@pytest.mark.parametrize("name", MEASURED)
def test_measured_rows_are_as_the_others_say(name: str, estimate: str, weighted: str) -> None:
    family, weight = MEASURED[name], WEIGHTS[weighted]
    rows = NUMBERS
    counted = counted_by(family, rows, weight, estimate)
    found = left_out(family, counted, RemovedRows(rows, GROUP, weight, NOTHING))
    trusted = ~np.isnan(found).any(axis=1)
    assert trusted.any()
    for row in np.flatnonzero(trusted):
        wanted = of_others(family, rows, weight, counted, row)
        wanted = wanted if found.shape[1] > 1 else wanted[GROUP[row] : GROUP[row] + 1]
        np.testing.assert_allclose(found[row], wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize("name", ["gaussian", "tied", "spherical", "tied spherical"])
def test_missing_cells_are_not_taken_from_their_columns(name: str, estimate: str) -> None:
    family, weight = MEASURED[name], WEIGHTS["weighted"]
    rows = NUMBERS.copy()
    rows[0, 1] = rows[3, 0] = rows[5, 2] = rows[6, 1] = np.nan
    counted = counted_by(family, rows, weight, estimate)
    found = left_out(family, counted, RemovedRows(rows, GROUP, weight, NOTHING))
    assert not np.isnan(found[[0, 3, 5]]).any()
    for row in np.flatnonzero(~np.isnan(found).any(axis=1)):
        wanted = of_others(family, rows, weight, counted, row)
        wanted = wanted if found.shape[1] > 1 else wanted[GROUP[row] : GROUP[row] + 1]
        np.testing.assert_allclose(found[row], wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("estimate", ["bayes", "map", "mle", "unbiased"])
@pytest.mark.parametrize("name", MEASURED)
def test_columns_that_say_nothing_are_left_out_of_every_row(name: str, estimate: str) -> None:
    family, constant = MEASURED[name], np.array([1])
    group = np.repeat([0, 1, 2], 7)
    rows = RNG.normal(20.0 + group[:, None], 1.0, (21, 3))
    counted = counted_by(family, rows, np.ones(21), estimate, group)
    removed = RemovedRows(rows, group, np.ones(21), constant)
    found = left_out(family, counted, removed)
    silent = rows.copy()
    silent[:, 1] = np.nan
    for row in range(21):
        others = group.copy()
        others[row] = -1
        rest = family.collect(rows, others, 3, np.ones(21), like=counted.statistics)
        if counted.estimate.integrates:
            terms = family.log_predictive(counted.prior.update(rest), silent[row : row + 1])[0]
        else:
            terms = family.log_prob(counted.estimate.point(family, counted.prior, rest), silent[row : row + 1])[0]
        terms = terms.sum(axis=-1) if family.columnwise else terms
        wanted = terms if found.shape[1] > 1 else terms[group[row] : group[row] + 1]
        np.testing.assert_allclose(found[row], wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("estimate", ["mle", "unbiased", "bayes"])
@pytest.mark.parametrize("name", MEASURED)
def test_a_row_that_is_all_of_its_group_has_to_be_counted_out(name: str, estimate: str) -> None:
    """Without a prior nothing is left of its group; with one, of which almost all is left, it can be told."""
    family, group = MEASURED[name], np.array([0] * 6 + [1])
    rows = 20.0 + np.vstack([RNG.normal(size=(6, 2)), [[3.0, 1.0]]])
    counted = counted_by(family, rows, np.ones(7), estimate, group)
    found = left_out(family, counted, RemovedRows(rows, group, np.ones(7), NOTHING))
    assert np.isnan(found[6]).any() == (estimate != "bayes")
    if leave_one_out_changes_all_groups(family) and estimate == "mle" and "groups" in family.tied_over:
        assert np.isfinite(found[:6]).all()


@pytest.mark.parametrize("name", ["gaussian", "spherical", "multivariate"])
def test_what_would_lose_its_digits_has_to_be_counted_out(name: str) -> None:
    """A row far from all others is all of a group's spread: nothing is left of it but rounding."""
    family, group = MEASURED[name], np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    rows = RNG.normal(size=(11, 2))
    rows[2] += 1e6
    counted = counted_by(family, rows, np.ones(11), "mle", group)
    found = left_out(family, counted, RemovedRows(rows, group, np.ones(11), NOTHING))
    own = found[np.arange(11), group if found.shape[1] > 1 else 0]
    assert np.flatnonzero(np.isnan(own)).tolist() == [2]


def test_two_rows_of_a_group_leave_one_which_has_no_unbiased_variance() -> None:
    rows, group = np.array([[0.0], [1.0], [3.0], [4.0], [6.0]]), np.array([0, 0, 1, 1, 1])
    counted = counted_by(tb.Gaussian(), rows, np.ones(5), "unbiased", group)
    found = left_out(tb.Gaussian(), counted, RemovedRows(rows, group, np.ones(5), NOTHING))
    assert np.isnan(found[:2]).all()
    assert np.isfinite(found[2:]).all()


def test_tables_of_columns_are_students_t_of_the_others() -> None:
    family = tb.Gaussian()
    counted = counted_by(family, NUMBERS, np.ones(N), "bayes")
    with np.errstate(all="ignore"):
        mean, spread, power, log_norm = leave_one_out_tables(family, counted, NOTHING)
        silent = leave_one_out_tables(family, counted, np.array([1]))
    for row in range(N):
        g = GROUP[row]
        # Of the mean with the row: what its absence does to the squared gap is in the spread.
        gap = (NUMBERS[row] - mean[:, g]) ** 2 * spread[:, g]
        found = log_norm[:, g] + power[:, g] * np.log1p(-gap)
        others = GROUP.copy()
        others[row] = -1
        rest = family.collect(NUMBERS, others, 3, np.ones(N))
        wanted = family.log_predictive(counted.prior.update(rest), NUMBERS[row : row + 1])[0, g]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_array_equal(silent[1][1], 0.0)
    np.testing.assert_array_equal(silent[3][1], 0.0)
    np.testing.assert_array_equal(silent[1][[0, 2]], spread[[0, 2]])


COUNTS = RNG.poisson(0.8 + 0.5 * GROUP[:, None], (N, 5)).astype(float)
COUNTS[4] = 0
YES = (COUNTS > 0).astype(float)


def sparse(rows: np.ndarray) -> SparseRows:
    found = sp.csr_array(rows)
    return SparseRows(found.indptr, found.indices, found.data, rows.shape[1])


@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize(
    "family", [tb.Poisson(), tb.Bernoulli(), tb.Multinomial(), tb.DirichletMultinomial()], ids=repr
)
def test_rows_of_counts_are_as_the_others_say(family: Any, estimate: str, weighted: str) -> None:
    rows, weight = (YES if family.is_binary else COUNTS), WEIGHTS[weighted]
    counted = counted_by(family, rows, weight, estimate)
    forms = [sparse(rows), rows] if family.is_bag_of_words else [sparse(rows)]
    for block in forms:
        found = left_out(family, counted, RemovedRows(block, GROUP, weight, NOTHING))
        for row in range(N):
            with np.errstate(all="ignore"):
                wanted = of_others(family, rows, weight, counted, row)[GROUP[row]]
            np.testing.assert_allclose(found[row, 0], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimate", ["bayes", "mle"])
def test_a_missing_cell_of_a_sparse_row_says_nothing(estimate: str) -> None:
    family, weight = tb.Poisson(), WEIGHTS["weighted"]
    rows = COUNTS.copy()
    rows[0, 1] = rows[3, 4] = np.nan
    counted = counted_by(family, rows, weight, estimate)
    found = left_out(family, counted, RemovedRows(sparse(rows), GROUP, weight, NOTHING))
    for row in range(N):
        with np.errstate(all="ignore"):
            wanted = of_others(family, rows, weight, counted, row)[GROUP[row]]
        np.testing.assert_allclose(found[row, 0], wanted, rtol=1e-9, atol=1e-9)


def test_zeros_that_are_impossible_without_the_row_are_so() -> None:
    """Under maximum likelihood, of a column that all others of the group have, and of two."""
    rows = np.array([[1.0, 1, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 1]])
    group = np.array([0, 0, 0, 1, 1, 1])
    counted = counted_by(tb.Bernoulli(), rows, np.ones(6), "mle", group)
    found = left_out(tb.Bernoulli(), counted, RemovedRows(sparse(rows), group, np.ones(6), NOTHING))[:, 0]
    # Row 0 lacks what both others have; rows 1 and 2 have what one of two others has, p = 1/2.
    assert np.isneginf(found[0])
    np.testing.assert_allclose(found[1:3], np.log(0.5))
    np.testing.assert_allclose(found[3:], [np.log(1 / 8), -np.inf, -np.inf])


LABELS = RNG.integers(-1, 3, (N, 2))
CODES = Codes(LABELS, np.array([3, 3]))


@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
def test_labels_are_as_the_others_say(estimate: str, weighted: str) -> None:
    family, weight = tb.Categorical(), WEIGHTS[weighted]
    counted = counted_by(family, CODES, weight, estimate)
    removed = RemovedRows(CODES, GROUP, weight, NOTHING)
    found = left_out(family, counted, removed)
    with np.errstate(all="ignore"):
        (table,) = leave_one_out_tables(family, counted, NOTHING)
    for row in range(N):
        group = GROUP.copy()
        group[row] = -1
        rest = family.collect(CODES, group, 3, weight)
        with np.errstate(all="ignore"):
            point = counted.estimate.point(family, counted.prior, rest)
            wanted = family.log_prob(point, LABELS[row : row + 1])[0, GROUP[row]]
        np.testing.assert_allclose(found[row, 0], wanted.sum(), rtol=1e-9)
        if weighted == "once":
            known = LABELS[row] >= 0
            cells = (LABELS[row] + [0, 3])[known]
            np.testing.assert_allclose(table[cells, GROUP[row]], wanted[known], rtol=1e-9)


def test_a_mode_that_may_lie_on_an_edge_is_not_told() -> None:
    """Less than one of a level under "map": a level that only this row has is then on the edge, and others share."""
    for family, block in ((tb.Categorical(), CODES), (tb.Multinomial(), COUNTS)):
        statistics = family.collect(block, GROUP, 3, np.ones(N))
        how = read_estimate("map")
        removed = RemovedRows(block, GROUP, np.ones(N), NOTHING)
        edge = leave_one_out_log_prob(family, GroupStatistics(statistics, tb.Dirichlet(0.9), how), removed)
        assert edge is None or np.isnan(edge).all()
        flat = left_out(family, GroupStatistics(statistics, tb.Dirichlet(1.0), how), removed)  # the counts themselves
        plain = left_out(family, GroupStatistics(statistics, None, read_estimate("mle")), removed)
        np.testing.assert_allclose(flat, plain, rtol=1e-12)


def test_columns_without_any_level_say_nothing() -> None:
    none = Codes(np.full((4, 2), -1), np.array([0, 0]))
    group = np.array([0, 1, 0, 1])
    counted = counted_by(tb.Categorical(), none, np.ones(4), "bayes", group)
    found = left_out(tb.Categorical(), counted, RemovedRows(none, group, np.ones(4), NOTHING))
    assert found.tolist() == [[0.0]] * 4


def test_what_is_left_of_a_difference_of_counts_is_no_rounding() -> None:
    assert subtract_or_zero(np.array([3.0, 0.3, 0.0, 5.0]), np.array([1.0, 0.1 + 0.2, 0.0, 5.0 - 1e-9])).tolist() == [
        2.0,
        0.0,
        0.0,
        5.0 - (5.0 - 1e-9),
    ]


def test_tables_of_a_group_of_one_row_are_those_of_the_prior() -> None:
    """And there is none of a group without rows, which no row can be left out of."""
    rows, group, family = np.array([[1.0], [2.0], [5.0]]), np.array([0, 0, 1]), tb.Gaussian()
    statistics = family.collect(rows, group, 2)
    prior = tb.NormalInverseGamma(np.array([3.0]), 0.5, 0.4, 2.0)
    counted = GroupStatistics(statistics, prior, read_estimate("bayes"))
    with np.errstate(all="ignore"):
        mean, spread, power, log_norm = leave_one_out_tables(family, counted, NOTHING)
    gap = (5.0 - mean[0, 1]) ** 2 * spread[0, 1]
    found = log_norm[0, 1] + power[0, 1] * np.log1p(-gap)
    assert found == pytest.approx(float(family.log_predictive(prior, rows[2:])[0, 0]))
    empty = GroupStatistics(family.collect(rows, group, 3), prior.replace(shape=np.array(2.0)), read_estimate("bayes"))
    with np.errstate(all="ignore"):
        _, spread, _, _ = leave_one_out_tables(family, empty, NOTHING)
    assert np.isnan(spread[0]).tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["tied", "tied spherical", "tied multivariate"])
def test_groups_of_light_rows_take_their_share_of_freedom(name: str) -> None:
    """An unbiased variance that groups share has one row less for every mean."""
    family, weight = MEASURED[name], np.where(GROUP == 1, 0.15, 1.0)  # six rows that weigh less than one
    block = NUMBERS[:, :2]
    counted = counted_by(family, block, weight, "unbiased")
    found = left_out(family, counted, RemovedRows(block, GROUP, weight, NOTHING))
    for row in (0, 1, 3):
        np.testing.assert_allclose(found[row], of_others(family, block, weight, counted, row), rtol=1e-8)
