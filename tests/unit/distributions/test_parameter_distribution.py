"""What all beliefs have in common: limits, what is refused, and how numbers come back."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.distributions.parameter_distribution import (
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
    tail_probabilities,
)
from tallybayes.errors import DataError, PriorError


def test_a_belief_is_its_own_prior():
    prior = tb.Beta(1, 2)
    assert prior.resolve(tb.Bernoulli(), None, "bayes") is prior
    assert prior.mode_matched() == tb.Beta(2, 3)  # whose mode is this one's mean
    assert tb.NormalInverseGamma(0, 1, 1, 1).mode_matched() == tb.NormalInverseGamma(0, 1, 1, 1)
    assert not ParameterDistribution.accepts_any_family


def test_the_base_promises_what_others_keep():
    base = ParameterDistribution()
    for ask in (base.mode, base.mode_or_boundary, base.mean, base.interval, base.sample):
        with pytest.raises(NotImplementedError):
            ask()
    for ask in (base.update, base.log_prob, base.log_evidence, base.column):
        with pytest.raises(NotImplementedError):
            ask(0)
    assert base.mode_matched() is base
    assert not base.improper
    with pytest.raises(PriorError, match="no strength to scale"):
        base.scaled(2.0)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_limits_are_at_least_0_and_finite(bad):
    with pytest.raises(PriorError, match=r"alpha of Beta is .*; expected finite numbers of at least 0"):
        tb.Beta(bad, 1.0)
    with pytest.raises(PriorError, match="shape"):
        tb.NormalInverseGamma(0.0, 1.0, bad, 1.0)


def test_a_zero_anywhere_is_a_limit():
    assert tb.Beta(0, 1).improper
    assert tb.Beta(1, 0).improper
    assert tb.Beta([1.0, 0.0], 1.0).improper
    assert not tb.Beta(1e-300, 1).improper
    with pytest.raises(PriorError, match="it has no log_evidence"):
        tb.Beta(0, 1).log_evidence(tb.Totals([1.0], [1.0]))
    with pytest.raises(PriorError, match="scale"):
        tb.NormalInverseGamma(0.0, 1.0, 1.0, 0.0)


def test_tails_leave_the_mass_between_them():
    assert tail_probabilities(0.9) == pytest.approx((0.05, 0.95))
    for mass in (0, 1, -0.5, 1.5):
        with pytest.raises(DataError, match="between 0 and 1"):
            tail_probabilities(mass)


def test_shapes_that_do_not_fit_are_named():
    assert broadcast_prior("Beta", np.ones(3), (2, 3)).shape == (2, 3)
    with pytest.raises(PriorError, match=r"\(2,\).*\(4, 3\)"):
        broadcast_prior("Beta", np.ones(2), (4, 3))


def test_single_numbers_are_floats():
    assert type(as_float(np.float64(2))) is float
    assert as_float([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert (as_size(3), as_size((2, 1)), as_size(())) == ((3,), (2, 1), ())


def test_arrays_are_frozen():
    given = np.ones(2)
    belief = tb.Gamma(given, 1.0)
    given[0] = 7.0
    assert belief.shape.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        belief.shape[0] = 5.0


BELIEFS = {
    "Beta": tb.Beta(2, 3),
    "Dirichlet": tb.Dirichlet([2, 3, 4]),
    "Gamma": tb.Gamma(3, 2),
    "Hypotheses": tb.Hypotheses.grid(np.linspace(0, 1, 201)),
    "NormalInverseGamma": tb.NormalInverseGamma(1, 2, 3, 4),
    "NormalInverseWishart": tb.NormalInverseWishart([0, 1], 2, 5, [[2, 0.5], [0.5, 1]]),
    "LinearNormalInverseGamma": tb.LinearNormalInverseGamma([1.0], [[2.0]], 3, 4, strength=2.0),
}


@pytest.mark.parametrize("name", BELIEFS)
def test_intervals_hold_19_of_20_unless_told_otherwise(name):
    belief = BELIEFS[name]
    for end, told in zip(belief.interval(), belief.interval(0.95), strict=True):
        parts = zip(end, told, strict=True) if isinstance(end, tuple) else [(end, told)]
        for part, expected in parts:
            np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("name", ["Beta", "Dirichlet", "Gamma"])
def test_worth_three_times_as_much_it_expects_the_same_and_is_surer(name):
    before, after = BELIEFS[name], BELIEFS[name].scaled(3.0)
    np.testing.assert_allclose(after.mean(), before.mean(), rtol=1e-15)
    assert after == before.scaled(1.5).scaled(2.0)
    assert np.all(np.asarray(after.variance()) < np.asarray(before.variance()) / 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tb.Dirichlet([1, 1], (2,)),
        lambda: tb.Hypotheses({"a": 0.5}, None, tb.Bernoulli()),
        lambda: tb.NormalInverseGamma(0, 1, 2, 3, ("columns",)),
        lambda: tb.NormalInverseWishart([0.0], 1, 2, [[3.0]], ("groups",)),
        lambda: tb.LinearNormalInverseGamma([0.0], [[1.0]], 2, 3, 0.0),
    ],
)
def test_what_is_seldom_given_is_given_by_name(call):
    with pytest.raises(TypeError, match="positional"):
        call()


@pytest.mark.parametrize(
    "prior",
    [tb.Beta(2, 2), tb.Dirichlet([1, 1]), tb.Gamma(1, 1), tb.NormalInverseGamma(0, 1, 1, 1)],
    ids=lambda prior: type(prior).__name__,
)
@pytest.mark.parametrize("values", [[7, 3], 7, np.array([7.0, 3.0])], ids=["list", "number", "array"])
def test_values_instead_of_statistics(prior, values):
    for method in (prior.update, prior.log_evidence):
        with pytest.raises(DataError, match=r"expected sufficient statistics.*\n    Pass tb\.fit_distribution"):
            method(values)


def test_statistics_of_another_family():
    with pytest.raises(DataError, match=r"statistics is Moments.*expected sufficient statistics of a family"):
        tb.Beta(2, 2).update(tb.fit_distribution([1.0, 2.0], tb.Gaussian()).statistics)
