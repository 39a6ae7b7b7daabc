"""What is climbed to find the priors of Gaussians: it is the evidence, and its derivatives are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families import empirical_gaussian

FAMILIES = {
    "gaussian": tb.Gaussian(),
    "tied": tb.TiedGaussian(),
    "spherical": tb.SphericalGaussian(),
    "tied spherical": tb.TiedSphericalGaussian(),
    "multivariate": tb.MultivariateGaussian(),
    "tied multivariate": tb.TiedMultivariateGaussian(),
}


def learned_by(name: str, n_groups: int = 5) -> tb.Learned:
    """Groups of different sizes, whose means and spreads lie apart, one of them of a single row."""
    rng = np.random.default_rng(3)
    sizes = np.resize([1, 4, 9, 2, 30], n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    spread = np.exp(rng.normal(0.3, 0.7, (n_groups, 3)))
    rows = rng.normal(size=(len(group), 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.3], [0.0, 0.0, 1.0]])
    rows = rows * spread[group] + rng.normal(5.0, 2.0, (n_groups, 3))[group]
    return tb.learn(rows, FAMILIES[name], group=group)


def climbed(learned: tb.Learned, monkeypatch: pytest.MonkeyPatch, estimate: str = "bayes") -> tuple[list[Any], Any]:
    """Every function that was climbed, with the place it was climbed from, and the prior that was found."""
    seen: list[Any] = []

    def watch(evaluate: Any, start: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
        found = climb(evaluate, start, low, high)
        seen.append((evaluate, start, found[0]))
        return found

    climb = empirical_gaussian.climb
    monkeypatch.setattr(empirical_gaussian, "climb", watch)
    prior = learned.family.prior("empirical", learned.statistics, estimate)
    monkeypatch.setattr(empirical_gaussian, "climb", climb)
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
        np.testing.assert_array_equal(held.freedom, bayes.freedom)
        # Ψ/(ν + d + 1 + means) of the joint mode is Ψ/(ν − d + 1) of bayes, the typical covariance.
        typical = np.diagonal(bayes.scale) / (bayes.freedom - 3 + 1)
        np.testing.assert_allclose(np.diagonal(held.scale) / (held.freedom + 3 + 1 + tied), typical, rtol=1e-12)
        return
    n_means = tied * (3 if "spherical" in name else 1)
    np.testing.assert_array_equal(held.shape, bayes.shape)
    np.testing.assert_allclose(held.scale / (held.shape + 1 + n_means / 2), bayes.scale / bayes.shape, rtol=1e-12)


def test_two_groups_are_enough_and_one_is_not() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.5], [0.5, 3.0], [9.0, 8.0], [9.5, 8.2], [8.0, 8.9]])
    for family in (tb.Gaussian(), tb.MultivariateGaussian()):
        two = tb.learn(rows, family, group=[0, 0, 0, 1, 1, 1])
        found = family.prior("empirical", two.statistics, "bayes")
        assert np.all(found.strength < 0.5)  # the means lie far apart
        assert not np.allclose(found.strength, 0.01)
        one = tb.learn(rows, family, group=[0] * 6)
        np.testing.assert_allclose(family.prior("empirical", one.statistics, "bayes").strength, 0.01)


def test_few_groups_hold_what_many_may_move() -> None:
    few, many = (learned_by("gaussian", n) for n in (10, 40))
    held, free = (one.family.prior("empirical", one.statistics, "bayes") for one in (few, many))
    assert np.all(held.shape >= 1.5 - 1e-9)
    pooled = empirical_gaussian.pooled_spread(few.statistics)[1]
    np.testing.assert_allclose(held.scale / held.shape, pooled, rtol=1e-9)
    assert np.any(np.abs(free.scale / free.shape / empirical_gaussian.pooled_spread(many.statistics)[1] - 1) > 0.01)
