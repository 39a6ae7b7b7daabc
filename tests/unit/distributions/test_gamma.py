"""Gamma beliefs against scipy.stats, numerical optimization and integration."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

import tallybayes as tb
from tallybayes.errors import PriorError

CASES = [(1, 1), (3, 2), (0.4, 5), (1e-3, 1), (50, 0.1), (2e6, 3e4)]


def scipy_gamma(shape, rate):
    return stats.gamma(shape, scale=1 / rate)


@pytest.mark.parametrize(("shape", "rate"), CASES)
def test_density_mean_and_interval_are_scipys(shape, rate):
    belief, reference = tb.Gamma(shape, rate), scipy_gamma(shape, rate)
    values = reference.ppf([0.01, 0.2, 0.5, 0.8, 0.99])
    values = values[values > 0]
    np.testing.assert_allclose(belief.log_prob(values), reference.logpdf(values), rtol=1e-8, atol=1e-8)
    assert belief.mean() == pytest.approx(reference.mean(), rel=1e-14)
    for mass in (0.5, 0.95, 0.999):
        assert belief.interval(mass) == pytest.approx(reference.interval(mass), rel=1e-10)


@pytest.mark.parametrize(("shape", "rate"), [(1, 1), (3, 2), (0.5, 5), (50, 0.1)])
def test_density_integrates_to_one(shape, rate):
    def density(root):  # λ = root², which takes away the infinite end of shapes of at least ½
        return np.exp(tb.Gamma(shape, rate).log_prob(root**2)) * 2 * root

    center = np.sqrt(shape / rate)
    parts = [
        integrate.quad(density, *ends)[0] for ends in ((1e-12, center), (center, 4 * center), (4 * center, np.inf))
    ]
    assert sum(parts) == pytest.approx(1, abs=1e-8)


def test_density_below_and_at_zero():
    assert tb.Gamma(2, 1).log_prob(-0.1) == -np.inf
    assert tb.Gamma(2, 1).log_prob(0.0) == -np.inf
    assert tb.Gamma(1, 3).log_prob(0.0) == pytest.approx(np.log(3))
    assert tb.Gamma(0.5, 1).log_prob(0.0) == np.inf


@pytest.mark.parametrize(("shape", "rate"), [(1.5, 2), (3, 2), (50, 0.1)])
def test_mode_is_the_maximum_of_the_density(shape, rate):
    belief = tb.Gamma(shape, rate)
    found = optimize.minimize_scalar(
        lambda x: -belief.log_prob(x), bounds=(0, 4 * shape / rate), options={"xatol": 1e-10}
    )
    assert belief.mode() == pytest.approx(found.x, rel=1e-5)


@pytest.mark.parametrize("shape", [0.1, 0.9, 1])
def test_mode_on_the_boundary(shape):
    belief = tb.Gamma(shape, 2)
    assert belief.mode() == 0
    assert (belief.log_prob(0.0) >= belief.log_prob(np.geomspace(1e-9, 10, 50))).all()


@pytest.mark.parametrize(("shape", "rate"), [(3, 2), (0.3, 0.5), (200, 7)])
def test_samples_follow_the_belief(shape, rate):
    draws = tb.Gamma(shape, rate).sample(5000, random_state=0)
    assert stats.kstest(draws, scipy_gamma(shape, rate).cdf).pvalue > 1e-3


def test_from_mean_states_mean_and_rows():
    belief = tb.Gamma.from_mean([3.0, 0.2], 4)
    np.testing.assert_allclose(belief.mean(), [3.0, 0.2], rtol=1e-15)
    np.testing.assert_array_equal(belief.rate, 4)
    for mean, strength in ((0, 1), (-1, 1), (1, 0), (np.nan, 1)):
        with pytest.raises(
            PriorError, match=r"(mean|strength) of Gamma.from_mean is .*; expected finite numbers above 0"
        ):
            tb.Gamma.from_mean(mean, strength)


@pytest.mark.parametrize(
    ("low", "high", "mass"), [(1, 4, 0.95), (0.001, 2, 0.9), (1e3, 1.01e3, 0.5), (1e-6, 3e-6, 0.99)]
)
def test_from_interval_round_trip(low, high, mass):
    belief = tb.Gamma.from_interval(low, high, mass)
    reference = scipy_gamma(belief.shape, belief.rate)
    assert reference.cdf(low) == pytest.approx((1 - mass) / 2, rel=1e-6)
    assert reference.sf(high) == pytest.approx((1 - mass) / 2, rel=1e-6)


@pytest.mark.parametrize("ends", [(4, 1), (1, 1), (0, 1), (-1, 1), (1, np.inf), (np.nan, 1)])
def test_from_interval_refuses_no_interval(ends):
    with pytest.raises(PriorError, match="0 < low < high"):
        tb.Gamma.from_interval(*ends)


@pytest.mark.parametrize("parameters", [(-1, 1), (np.nan, 1), (1, np.inf), (1, [1, -1])])
def test_parameters_must_not_be_negative(parameters):
    with pytest.raises(PriorError, match=r"(shape|rate) of Gamma is .*; expected finite numbers of at least 0"):
        tb.Gamma(*parameters)


def test_arrays_equal_a_loop_over_numbers():
    shape, rate = np.array([[1.0, 2.0, 0.5], [7.0, 1.5, 30.0]]), np.array([2.0, 3.0, 0.5])
    values = np.array([[0.2, 0.5, 0.9], [3.0, 0.1, 70.0]])
    belief = tb.Gamma(shape, rate)
    for g, j in np.ndindex(2, 3):
        one = tb.Gamma(shape[g, j], rate[j])
        assert belief.mean()[g, j] == one.mean()
        assert belief.mode()[g, j] == one.mode()
        assert belief.interval(0.8).high[g, j] == one.interval(0.8).high
        assert belief.log_prob(values)[g, j] == one.log_prob(values[g, j])
        assert belief.column(j).mean()[g] == one.mean()


def test_column_of_a_belief_that_broadcasts():
    assert tb.Gamma([1, 2], 3).column(1) == tb.Gamma(2, 3)


def test_update_adds_events_and_rows():
    posterior = tb.Gamma(3, 2).update(tb.Totals(weight=[[4.0], [1.0]], total=[[9.0, 0.0], [2.0, 5.0]]))
    np.testing.assert_array_equal(posterior.shape, [[12, 3], [5, 8]])
    np.testing.assert_array_equal(posterior.rate, [[6, 6], [3, 3]])
    with pytest.raises(PriorError, match="do not broadcast"):
        tb.Gamma([1, 2, 3], 1).update(tb.Totals(weight=[4.0], total=[9.0, 0.0]))


def test_a_limit_that_is_no_distribution_needs_data():
    limit, seen = tb.Gamma(0.5, 0), tb.Totals(weight=[4.0], total=[6.0])  # Jeffreys' prior of a rate
    np.testing.assert_allclose(limit.update(seen).mean(), [6.5 / 4], rtol=1e-15)
    with pytest.raises(PriorError, match="it has no log_evidence"):
        limit.log_evidence(seen)
    with pytest.raises(PriorError, match="it has no mode"):
        limit.mode()


@pytest.mark.parametrize(("shape", "rate"), [(0.5, 0.1), (2.5, 1.3), (40.0, 3.0)])
def test_evidence_is_the_closed_form_and_the_integral(shape, rate):
    counts = np.array([3.0, 0.0, 5.0, 2.0])
    found = tb.Gamma(shape, rate).log_evidence(tb.fit_distribution(counts, tb.Poisson()).statistics)
    total, n = counts.sum(), len(counts)
    closed = special.gammaln(shape + total) - special.gammaln(shape) + shape * np.log(rate)
    closed -= (shape + total) * np.log(rate + n) + special.gammaln(counts + 1).sum()
    assert np.ravel(found)[0] == pytest.approx(closed, rel=1e-12)
    likelihood = lambda r: np.exp(stats.poisson(r).logpmf(counts).sum()) * scipy_gamma(shape, rate).pdf(r)  # noqa: E731
    assert np.exp(closed) == pytest.approx(integrate.quad(likelihood, 0, 40, limit=200)[0], rel=1e-6)


def test_worth_more_observations_it_expects_the_same():
    more = tb.Gamma(2.0, 4.0).scaled(3.0)
    assert (float(more.shape), float(more.rate)) == (6.0, 12.0)
    assert more.mean() == tb.Gamma(2.0, 4.0).mean()


def test_from_interval_is_of_19_in_20_unless_told_otherwise():
    assert tb.Gamma.from_interval(1.0, 4.0) == tb.Gamma.from_interval(1.0, 4.0, 0.95)


@pytest.mark.parametrize(("shape", "rate"), [(3, 2), (0.4, 5), (50, 0.1)])
def test_variance_is_scipys(shape, rate):
    assert tb.Gamma(shape, rate).variance() == pytest.approx(scipy_gamma(shape, rate).var(), rel=1e-13)


def test_the_mode_of_another_is_the_mean():
    seen = tb.Totals(weight=[4.0], total=[6.0])
    prior = tb.Gamma(0.5, 2.0)
    assert prior.mode_matched().update(seen).mode() == pytest.approx(prior.update(seen).mean(), rel=1e-15)
