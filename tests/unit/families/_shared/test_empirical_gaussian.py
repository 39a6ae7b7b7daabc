"""What is climbed to find the priors of Gaussians: it is the evidence, and its derivatives are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families._shared import empirical_gaussian

FAMILIES = {
    "gaussian": tb.Gaussian(),
    "tied": tb.TiedGaussian(),
    "spherical": tb.SphericalGaussian(),
    "tied spherical": tb.TiedSphericalGaussian(),
    "multivariate": tb.MultivariateGaussian(),
    "tied multivariate": tb.TiedMultivariateGaussian(),
}


def learned_by(name: str, n_groups: int = 5) -> tb.FittedDistribution:
    """Groups of different sizes, whose means and spreads lie apart, one of them of a single row."""
    rng = np.random.default_rng(3)
    sizes = np.resize([1, 4, 9, 2, 30], n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    spread = np.exp(rng.normal(0.3, 0.7, (n_groups, 3)))
    rows = rng.normal(size=(len(group), 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.3], [0.0, 0.0, 1.0]])
    rows = rows * spread[group] + rng.normal(5.0, 2.0, (n_groups, 3))[group]
    return tb.fit_distribution(rows, FAMILIES[name], group=group)


def climbed(
    learned: tb.FittedDistribution, monkeypatch: pytest.MonkeyPatch, estimate: str = "bayes"
) -> tuple[list[Any], Any]:
    """Every function that was climbed, with the place it was climbed from, and the prior that was found."""
    seen: list[Any] = []

    def watch(evaluate: Any, start: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
        found = climb(evaluate, start, low, high)
        seen.append((evaluate, start, found[0]))
        return found

    climb = empirical_gaussian.newton_maximize
    monkeypatch.setattr(empirical_gaussian, "newton_maximize", watch)
    prior = learned.family.resolve_prior("empirical", learned.statistics, estimate)
    monkeypatch.setattr(empirical_gaussian, "newton_maximize", climb)
    return seen, prior


def differences(function: Any, place: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Derivatives of a function of places (problems, 3), by the last axis, from both sides."""
    each = []
    for axis in range(place.shape[1]):
        move = np.zeros(place.shape[1])
        move[axis] = step
        each.append((function(place + move) - function(place - move)) / (2 * step))
    return np.stack(each, axis=-1)


@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_and_bends_are_those_of_the_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, _ = climbed(learned_by(name), monkeypatch)
    evaluate, start, _ = seen[0]
    moves = [[0.0, 0.0, 0.0], [2.0, 0.5, -0.4], [5.0, 2.5, 0.7], [-1.0, -0.6, 1.0]]
    held = [0] if name == "tied multivariate" else [0, 1, 2]  # which is a function of κ alone
    for move in moves:
        place = start + np.array(move)
        _, slope, bend = evaluate(place)
        np.testing.assert_allclose(
            slope[:, held], differences(lambda at: evaluate(at)[0], place)[:, held], rtol=1e-6, atol=1e-7
        )
        turned = differences(lambda at: evaluate(at)[1], place)
        np.testing.assert_allclose(bend[:, held][:, :, held], turned[:, held][:, :, held], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(bend, np.swapaxes(bend, 1, 2), rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_value_is_the_evidence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = learned_by(name)
    seen, prior = climbed(learned, monkeypatch)
    evaluate, _, place = seen[-1]

    def evidence(belief: Any) -> float:
        return float(np.sum(learned.family.log_evidence(belief, learned.statistics)))

    # What is climbed and what the belief says differ by a constant: so κ times 1.7 changes both by as much.
    for factor in (1.7, 0.2):
        move = np.array([np.log(factor), 0.0, 0.0])
        wanted = evidence(prior.replace(strength=prior.strength * factor)) - evidence(prior)
        assert np.sum(evaluate(place + move)[0] - evaluate(place)[0]) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_location_is_better(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = learned_by(name)
    _, prior = climbed(learned, monkeypatch)

    def evidence(location: np.ndarray) -> float:
        return float(np.sum(learned.family.log_evidence(prior.replace(location=location), learned.statistics)))

    here = np.array(prior.location, dtype=float)
    if name in ("gaussian", "spherical", "multivariate"):  # weighted by n/(n + κ), not by each group's own spread
        for axis in range(3):
            move = np.zeros(3)
            move[axis] = 0.4
            assert evidence(here) > min(evidence(here + move), evidence(here - move))
        return
    for axis in range(3):
        move = np.zeros(3)
        move[axis] = 0.05
        assert evidence(here) > evidence(here + move)
        assert evidence(here) > evidence(here - move)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_most_probable_variance_is_the_same_under_map(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = learned_by(name)
    _, bayes = climbed(learned, monkeypatch)
    _, held = climbed(learned, monkeypatch, "map")
    np.testing.assert_array_equal(held.strength, bayes.strength)
    tied = 5 if name.startswith("tied") else 1
    if "multivariate" in name:
        np.testing.assert_array_equal(held.degrees_of_freedom, bayes.degrees_of_freedom)
        # Ψ/(ν + d + 1 + means) of the joint mode is Ψ/(ν − d + 1) of bayes, the typical covariance.
        typical = np.diagonal(bayes.scale) / (bayes.degrees_of_freedom - 3 + 1)
        np.testing.assert_allclose(
            np.diagonal(held.scale) / (held.degrees_of_freedom + 3 + 1 + tied), typical, rtol=1e-12
        )
        return
    n_means = tied * (3 if "spherical" in name else 1)
    np.testing.assert_array_equal(held.shape, bayes.shape)
    np.testing.assert_allclose(held.scale / (held.shape + 1 + n_means / 2), bayes.scale / bayes.shape, rtol=1e-12)


def test_two_groups_are_enough_and_one_is_not() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.5], [0.5, 3.0], [9.0, 8.0], [9.5, 8.2], [8.0, 8.9]])
    for family in (tb.Gaussian(), tb.MultivariateGaussian()):
        two = tb.fit_distribution(rows, family, group=[0, 0, 0, 1, 1, 1])
        found = family.resolve_prior("empirical", two.statistics, "bayes")
        assert np.all(found.strength < 0.5)  # the means lie far apart
        assert not np.allclose(found.strength, 0.01)
        one = tb.fit_distribution(rows, family, group=[0] * 6)
        np.testing.assert_allclose(family.resolve_prior("empirical", one.statistics, "bayes").strength, 0.01)


def test_few_groups_hold_what_many_may_move() -> None:
    few, many = (learned_by("gaussian", n) for n in (10, 40))
    held, free = (one.family.resolve_prior("empirical", one.statistics, "bayes") for one in (few, many))
    assert np.all(held.shape >= 1.5 - 1e-9)
    pooled = empirical_gaussian.pooled_scale(few.statistics)[1]
    np.testing.assert_allclose(held.scale / held.shape, pooled, rtol=1e-9)
    assert np.any(np.abs(free.scale / free.shape / empirical_gaussian.pooled_scale(many.statistics)[1] - 1) > 0.01)


@pytest.mark.parametrize("name", ["gaussian", "spherical", "multivariate"])
def test_the_value_is_the_evidence_along_what_is_about_variances(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = learned_by(name)
    seen, prior = climbed(learned, monkeypatch)
    evaluate, _, place = seen[-1]

    def evidence(belief: Any) -> float:
        return float(np.sum(learned.family.log_evidence(belief, learned.statistics)))

    def surer(factor: float) -> Any:
        if name == "multivariate":
            return prior.replace(
                degrees_of_freedom=(prior.degrees_of_freedom - 2) * factor + 2, scale=prior.scale * factor
            )
        return prior.replace(shape=prior.shape * factor, scale=prior.scale * factor)

    for factor in (1.6, 0.7):
        for move, moved in (([0, 1, 0], surer(factor)), ([0, 0, 1], prior.replace(scale=prior.scale * factor))):
            change = np.sum(evaluate(place + np.log(factor) * np.array(move))[0] - evaluate(place)[0])
            assert change == pytest.approx(evidence(moved) - evidence(prior), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_location_is_the_mean_of_means_by_what_they_are_worth(name: str) -> None:
    for n_groups in (2, 5):
        learned = learned_by(name, n_groups)
        prior = learned.family.resolve_prior("empirical", learned.statistics, "bayes")
        n = np.broadcast_to(learned.statistics.weight, learned.statistics.first_sum.shape)
        weight = n / (n + np.broadcast_to(prior.strength, n.shape[1:]))
        expected = (weight * learned.statistics.mean).sum(axis=0) / weight.sum(axis=0)
        np.testing.assert_allclose(prior.location, expected, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_groups_that_are_alike_are_worth_as_many_rows_as_there_are(name: str) -> None:
    rows = np.random.default_rng(3).normal(size=(12, 3))
    learned = tb.fit_distribution(np.concatenate([rows, rows]), FAMILIES[name], group=[0] * 12 + [1] * 12)
    prior = learned.family.resolve_prior("empirical", learned.statistics, "bayes")
    np.testing.assert_allclose(prior.strength, 24.0, rtol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_groups_without_rows_are_no_groups_and_light_ones_are(name: str) -> None:
    family = FAMILIES[name]
    rng = np.random.default_rng(8)
    rows, group = rng.normal(size=(12, 3)) + 5 * (np.arange(12) % 2)[:, None], np.arange(12) % 2
    two, four = (family.collect(rows, group * (n // 2), n) for n in (2, 4))
    with_empty, without = (family.resolve_prior("empirical", part, "bayes") for part in (four, two))
    one, none = family.collect(rows, group * 0, 1), family.collect(rows, group * 0, 3)
    alone, beside_none = (family.resolve_prior("empirical", part, "bayes") for part in (one, none))
    for first, second in ((with_empty, without), (beside_none, alone), (alone, family.default_prior(one, "bayes"))):
        for part in ("location", "strength", "scale"):
            np.testing.assert_allclose(
                *np.broadcast_arrays(getattr(first, part), getattr(second, part)), rtol=1e-6, atol=1e-9
            )
    light = family.collect(rows, group, 2, np.full(12, 0.1))  # six tenths of a row each
    found = family.resolve_prior("empirical", light, "bayes")
    assert not np.isclose(found.strength, 0.01).any()


def test_a_shared_covariance_is_held_at_that_within_groups() -> None:
    learned = learned_by("tied multivariate")
    prior = learned.family.resolve_prior("empirical", learned.statistics, "bayes")
    spread = empirical_gaussian.pooled_scale(learned.statistics)[1]
    assert float(np.ravel(prior.degrees_of_freedom)[0]) == pytest.approx(3.0 + 3 - 1)  # a shape of 1.5 in every column
    np.testing.assert_allclose(np.diagonal(np.reshape(prior.scale, (3, 3))), 3.0 * spread, rtol=1e-12)


def test_bounds_open_with_the_number_of_groups() -> None:
    start = np.log(np.array([[0.01, 1.5, 1.0]] * 6))
    n_groups, total = np.array([1, 2, 10, 20, 1000, 5]), np.array([50.0, 50.0, 50.0, 50.0, 5000.0, 1.0])
    low, high = (np.exp(part) for part in empirical_gaussian._bounds(total, n_groups, start, tied=False))
    np.testing.assert_allclose(low[0], [0.01, 1.5, 1.0])  # a single group holds all
    np.testing.assert_allclose(high[0], [0.01, 1.5, 1.0])
    for few in (1, 2):  # up to ten hold the typical variance, and the shape at 1.5 or more
        np.testing.assert_allclose(low[few, 1:], [1.5, 1.0])
        np.testing.assert_allclose(high[few], [50.0, 25.0, 1.0])
    np.testing.assert_allclose(low[3, 1:], [0.75, 0.5])
    np.testing.assert_allclose(high[3], [50.0, 25.0, 2.0])
    np.testing.assert_allclose(low[4, 1:], [0.5, 0.01])
    np.testing.assert_allclose(high[4], [5000.0, 2500.0, 100.0])
    assert high[5, 1] >= low[5, 1]  # next to no rows leave the default's shape
    assert (low[1:, 0] < 1e-12).all()
    tied = [np.exp(part) for part in empirical_gaussian._bounds(total, n_groups, start, tied=True)]
    for low_or_high in tied:
        np.testing.assert_allclose(low_or_high[:, 1:], np.exp(start[:, 1:]))
    np.testing.assert_allclose(tied[1][1:, 0], [50.0, 50.0, 50.0, 5000.0, 3.0])


@pytest.mark.parametrize("name", ["gaussian", "tied"])
def test_a_column_that_one_group_has_is_the_default(name: str) -> None:
    rows = np.random.default_rng(8).normal(size=(12, 3)) + 5 * (np.arange(12) % 2)[:, None]
    rows[1::2, 1] = np.nan
    family = FAMILIES[name]
    statistics = family.collect(rows, np.arange(12) % 2, 2)
    found, default = family.resolve_prior("empirical", statistics, "bayes"), family.default_prior(statistics, "bayes")
    for part in ("location", "strength", "shape", "scale"):
        held = np.broadcast_to(getattr(default, part), 3)[1]
        assert np.broadcast_to(getattr(found, part), 3)[1] == pytest.approx(held, rel=1e-9)
    assert found.strength[0] != pytest.approx(0.01, rel=1e-3)
