"""Linked Gaussian columns: their joint distribution beside dense matrices, whatever cells are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tallybayes.families.linked_gaussians import LinkedGaussians


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
    return LinkedGaussians().of_lines(lines), (total @ level[..., None])[..., 0], covariance


def test_means_and_covariances(linked):
    links, mean, covariance = linked
    np.testing.assert_allclose(links.mean, mean, atol=1e-12)
    np.testing.assert_allclose(LinkedGaussians().covariance(links), covariance, atol=1e-12)


def test_every_pattern_of_missing_cells(linked):
    links, mean, covariance = linked
    family, rng = LinkedGaussians(), np.random.default_rng(1)
    rows = rng.normal(size=(16, 4))
    for number, row in enumerate(rows):
        row[[bool(number >> k & 1) for k in range(4)]] = np.nan
    logs, means = family.log_prob(links, rows), family.conditional_means(links, rows)
    for row, log, filled in zip(rows, logs, means, strict=True):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        for g in range(2):
            among = covariance[g][np.ix_(o, o)]
            wanted = stats.multivariate_normal(mean[g, o], among).logpdf(row[o]) if len(o) else 0.0
            assert log[g] == pytest.approx(wanted, abs=1e-9)
            gain = covariance[g][np.ix_(m, o)] @ np.linalg.inv(among)
            np.testing.assert_allclose(filled[g, m], mean[g, m] + gain @ (row[o] - mean[g, o]), atol=1e-9)
            rest = covariance[g][np.ix_(m, m)] - gain @ covariance[g][np.ix_(o, m)]
            np.testing.assert_allclose(family.told_by(links, o).covariance[g], rest, atol=1e-9)


def test_columns_that_are_set_follow_nothing(linked):
    links, _, _ = linked
    family = LinkedGaussians()
    changed = family.set_to(links, [1], [5.0])
    known = np.array([[np.nan, 5.0, np.nan, np.nan]])
    np.testing.assert_allclose(family.log_prob(changed, known), 0.0, atol=1e-12)
    filled = family.conditional_means(changed, known)[0]
    np.testing.assert_allclose(filled[:, 0], links.mean[:, 0], atol=1e-12)  # what comes before is as it was
    lines = -links.root / np.diagonal(links.root, axis1=-2, axis2=-1)[..., None]
    for g in range(2):
        level = links.mean[g, 2] - lines[g, 2, :2] @ links.mean[g, :2]
        assert filled[g, 2] == pytest.approx(level + lines[g, 2, :2] @ filled[g, :2])


def test_groups_that_are_not_known(linked):
    family = LinkedGaussians()
    line = (np.zeros((2, 0)), np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    links = family.of_lines([([], line), ([0], (np.ones((2, 1)), np.zeros(2), np.ones(2)))])
    logs = family.log_prob(links, np.array([[1.0, 2.0], [1.0, np.nan]]))
    assert np.isfinite(logs[:, 0]).all()
    assert np.isnan(logs[:, 1]).all()


def test_draws_given_some_cells(linked):
    links, _, _ = linked
    family, rng = LinkedGaussians(), np.random.default_rng(2)
    cells = np.tile([np.nan, 1.0, np.nan, np.nan], (20_000, 1))
    drawn = family.draw(links, cells, np.ones(20_000, dtype=int), rng)
    assert (drawn[:, 1] == 1.0).all()
    told = family.told_by(links, np.array([1]))
    np.testing.assert_allclose(np.cov(drawn[:, [0, 2, 3]].T), told.covariance[1], atol=0.15)
    np.testing.assert_allclose(drawn.mean(axis=0), family.conditional_means(links, cells[:1])[0, 1], atol=0.1)
