"""Linked Gaussian columns: their joint distribution beside dense matrices, whatever cells are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.distribution_functions import conditional_means


@pytest.fixture(scope="module")
def linked():
    """Links of four columns in two groups, and their means and covariances by matrices."""
    rng = np.random.default_rng(0)
    weights, level, noise = np.zeros((2, 4, 4)), rng.normal(size=(2, 4)), rng.uniform(0.1, 2.0, (2, 4))
    lines = []
    for place in range(4):
        inputs = [k for k in range(place) if rng.random() < 0.7]
        weights[:, place, inputs] = rng.normal(size=(2, len(inputs)))
        lines.append((inputs, (weights[:, place, inputs], level[:, place], noise[:, place])))
    total = np.linalg.inv(np.eye(4) - weights)
    covariance = total @ (noise[:, :, None] * np.swapaxes(total, 1, 2))
    return JointGaussian().from_linear_models(lines), (total @ level[..., None])[..., 0], covariance


def test_means_and_covariances(linked):
    links, mean, covariance = linked
    np.testing.assert_allclose(links.mean, mean, atol=1e-12)
    np.testing.assert_allclose(JointGaussian().covariance(links), covariance, atol=1e-12)


def test_every_pattern_of_missing_cells(linked):
    links, mean, covariance = linked
    family, rng = JointGaussian(), np.random.default_rng(1)
    rows = rng.normal(size=(16, 4))
    for number, row in enumerate(rows):
        row[[bool(number >> k & 1) for k in range(4)]] = np.nan
    logs, means = family.log_prob(links, rows), conditional_means(family, links, rows)
    for row, log, filled in zip(rows, logs, means, strict=True):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        for g in range(2):
            among = covariance[g][np.ix_(o, o)]
            wanted = stats.multivariate_normal(mean[g, o], among).logpdf(row[o]) if len(o) else 0.0
            assert log[g] == pytest.approx(wanted, abs=1e-9)
            gain = covariance[g][np.ix_(m, o)] @ np.linalg.inv(among)
            np.testing.assert_allclose(filled[g, m], mean[g, m] + gain @ (row[o] - mean[g, o]), atol=1e-9)
            rest = covariance[g][np.ix_(m, m)] - gain @ covariance[g][np.ix_(o, m)]
            np.testing.assert_allclose(family.condition_on(links, o).covariance[g], rest, atol=1e-9)


def test_columns_that_are_set_follow_nothing(linked):
    links, _, _ = linked
    family = JointGaussian()
    changed = family.intervene(links, [1], [5.0])
    known = np.array([[np.nan, 5.0, np.nan, np.nan]])
    np.testing.assert_allclose(family.log_prob(changed, known), 0.0, atol=1e-12)
    filled = conditional_means(family, changed, known)[0]
    np.testing.assert_allclose(filled[:, 0], links.mean[:, 0], atol=1e-12)  # what comes before is as it was
    lines = -links.root / np.diagonal(links.root, axis1=-2, axis2=-1)[..., None]
    for g in range(2):
        level = links.mean[g, 2] - lines[g, 2, :2] @ links.mean[g, :2]
        assert filled[g, 2] == pytest.approx(level + lines[g, 2, :2] @ filled[g, :2])


def test_groups_that_are_not_known(linked):
    family = JointGaussian()
    line = (np.zeros((2, 0)), np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    links = family.from_linear_models([([], line), ([0], (np.ones((2, 1)), np.zeros(2), np.ones(2)))])
    logs = family.log_prob(links, np.array([[1.0, 2.0], [1.0, np.nan]]))
    assert np.isfinite(logs[:, 0]).all()
    assert np.isnan(logs[:, 1]).all()


def test_draws_given_some_cells(linked):
    links, _, _ = linked
    family, rng = JointGaussian(), np.random.default_rng(2)
    cells = np.tile([np.nan, 1.0, np.nan, np.nan], (20_000, 1))
    drawn = family.draw(links, cells, np.ones(20_000, dtype=int), rng)
    assert (drawn[:, 1] == 1.0).all()
    told = family.condition_on(links, np.array([1]))
    np.testing.assert_allclose(np.cov(drawn[:, [0, 2, 3]].T), told.covariance[1], atol=0.15)
    np.testing.assert_allclose(drawn.mean(axis=0), conditional_means(family, links, cells[:1])[0, 1], atol=0.1)


def test_draws_are_those_of_every_group(linked):
    links, _, _ = linked
    family, rng = JointGaussian(), np.random.default_rng(3)
    cells = np.array([[np.nan, 1.0, np.nan, np.nan], [np.nan, np.nan, np.nan, 2.0], [0.5, 1.0, 1.5, 2.0]] * 8000)
    group = np.repeat([0, 1], 12_000)
    drawn = family.draw(links, cells, group, rng)
    np.testing.assert_array_equal(drawn[~np.isnan(cells)], cells[~np.isnan(cells)])
    means = conditional_means(family, links, cells[:3])
    for g in range(2):
        for kind, known in enumerate(([1], [3])):
            rows = drawn[group == g][kind::3]
            others = [k for k in range(4) if k not in known]
            spread = family.condition_on(links, np.array(known)).covariance[g]
            width = 5 * np.sqrt(np.diagonal(spread) / len(rows))
            assert (np.abs(rows.mean(axis=0) - means[kind, g])[others] < width).all()
            np.testing.assert_allclose(np.cov(rows[:, others].T), spread, atol=0.12 * spread.max())


def test_a_group_is_lost_by_any_part_of_a_line_and_by_a_variance_of_0():
    family = JointGaussian()
    first = (np.zeros((4, 0)), np.zeros(4), np.ones(4))
    slope, level, noise = np.ones((4, 1)), np.zeros(4), np.ones(4)
    slope[1], level[2], noise[3] = np.nan, np.nan, 0.0
    links = family.from_linear_models([([], first), ([0], (slope, level, noise))])
    assert np.isnan(links.mean).all(axis=1).tolist() == [False, True, True, True]
    assert np.isfinite(links.root).all()
    logs = family.log_prob(links, np.array([[0.5, 0.5]]))[0]
    assert logs[0] == pytest.approx(stats.norm.logpdf([0.5, 0.0]).sum())
    assert np.isnan(logs[1:]).all()
    nobody = family.from_linear_models([([], (np.zeros((1, 0)), [np.nan], [1.0]))])
    assert np.isnan(family.log_prob(nobody, np.array([[0.5]]))).all()


def test_several_columns_set_at_once(linked):
    links, _, _ = linked
    family = JointGaussian()
    changed = family.intervene(links, [0, 2], [-1.0, 4.0])
    known = np.array([[-1.0, np.nan, 4.0, np.nan]])
    np.testing.assert_allclose(family.log_prob(changed, known), 0.0, atol=1e-12)
    filled = conditional_means(family, changed, known)[0]
    lines = -links.root / np.diagonal(links.root, axis1=-2, axis2=-1)[..., None]
    for g in range(2):
        for place in (1, 3):
            level = links.mean[g, place] - lines[g, place, :place] @ links.mean[g, :place]
            assert filled[g, place] == pytest.approx(level + lines[g, place, :place] @ filled[g, :place])
    np.testing.assert_array_equal(out_of_support(family, known), np.zeros((1, 4), dtype=bool))
    assert family.mean(links) is links.mean
    assert not family.columnwise
