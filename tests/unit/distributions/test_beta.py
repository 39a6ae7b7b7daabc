"""Beta beliefs against scipy.stats, numerical optimization and integration."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import tallybayes as tb
from tallybayes.errors import DataError, PriorError

CASES = [(1, 1), (2, 2), (10, 10), (2, 3), (0.5, 0.5), (0.3, 4), (57, 47), (1e-3, 2), (3e5, 2e6)]


@pytest.mark.parametrize(("a", "b"), CASES)
def test_density_mean_and_interval_are_scipys(a, b):
    belief, reference = tb.Beta(a, b), stats.beta(a, b)
    theta = reference.ppf([0.01, 0.2, 0.5, 0.8, 0.99])
    theta = theta[(theta > 0) & (theta < 1)]
    # scipy's own log density of large parameters is good to about 1e-9 of its terms
    np.testing.assert_allclose(belief.log_prob(theta), reference.logpdf(theta), rtol=1e-8, atol=1e-8)
    assert belief.mean() == pytest.approx(reference.mean(), rel=1e-14)
    for mass in (0.5, 0.95, 0.999):
        low, high = belief.interval(mass)
        assert (low, high) == pytest.approx(reference.interval(mass), rel=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (0.5, 0.7), (20, 4)])
def test_density_integrates_to_one(a, b):
    # x = sin² t takes the infinite ends of densities with parameters of at least ½ away
    def density(t):
        return np.exp(tb.Beta(a, b).log_prob(np.sin(t) ** 2)) * 2 * np.sin(t) * np.cos(t)

    assert integrate.quad(density, 1e-12, np.pi / 2 - 1e-12)[0] == pytest.approx(1, abs=1e-8)


def test_density_outside_and_at_the_ends():
    assert tb.Beta(2, 2).log_prob(-0.1) == -np.inf
    assert tb.Beta(2, 2).log_prob(1.1) == -np.inf
    np.testing.assert_array_equal(tb.Beta(1, 3).log_prob([0.0, 1.0]), [stats.beta(1, 3).logpdf(0), -np.inf])
    assert tb.Beta(0.5, 2).log_prob(0.0) == np.inf


@pytest.mark.parametrize(("a", "b"), [(2, 2), (10, 10), (2, 3), (1.5, 8), (57, 47)])
def test_mode_is_the_maximum_of_the_density(a, b):
    found = optimize.minimize_scalar(lambda p: -tb.Beta(a, b).log_prob(p), bounds=(0, 1), options={"xatol": 1e-10})
    assert tb.Beta(a, b).mode() == pytest.approx(found.x, abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "mode"),
    [(1, 1, 0.5), (0.5, 1, 0), (1, 0.5, 1), (0.5, 3, 0), (3, 0.5, 1), (1, 3, 0), (3, 1, 1)],
)
def test_mode_on_the_boundary(a, b, mode):
    assert tb.Beta(a, b).mode() == mode
    if max(a, b) > 1:  # there the boundary really is the supremum
        inside = tb.Beta(a, b).log_prob(np.linspace(1e-6, 1 - 1e-6, 101))
        assert (tb.Beta(a, b).log_prob(mode) >= inside).all()


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 0.8), (0.01, 0.99)])
def test_two_poles_are_no_mode(a, b):
    belief = tb.Beta(a, b)
    with pytest.raises(PriorError, match=r"has no mode: its density has no upper bound in several places\.\n.*mean"):
        belief.mode()
    with pytest.raises(PriorError, match="no mode"):
        tb.Beta([a, 2.0], [b, 2.0]).mode()
    assert belief.update(tb.Totals(weight=[5.0], total=[3.0])).mode() == pytest.approx((a + 2) / (a + b + 3))
    assert belief.mode_or_boundary() in (0, 0.5, 1)  # what estimates go by


def test_limits_that_are_no_distribution_need_data():
    haldane = tb.Beta(0, 0)
    assert haldane.improper
    seen = tb.Totals(weight=[5.0], total=[3.0])
    after = haldane.update(seen)
    assert not after.improper
    np.testing.assert_allclose(after.mean(), [3 / 5], rtol=1e-15)
    for question in (haldane.mean, haldane.mode, haldane.interval, haldane.sample):
        with pytest.raises(PriorError, match=r"Beta\(0, 0\) is improper, .*: it has no " + question.__name__):
            question()
    with pytest.raises(PriorError, match="it has no log_prob"):
        haldane.log_prob(0.5)
    with pytest.raises(PriorError, match="it has no log_evidence"):
        haldane.log_evidence(seen)
    with pytest.raises(PriorError, match=r"Beta\(\[2\.\], \[0\.\]\) is improper"):  # no failure was seen
        haldane.update(tb.Totals(weight=[2.0], total=[2.0])).mean()


@pytest.mark.parametrize(("a", "b"), [(2, 3), (0.4, 0.9), (100, 7)])
def test_samples_follow_the_belief(a, b):
    draws = tb.Beta(a, b).sample(5000, random_state=0)
    assert draws.shape == (5000,)
    assert stats.kstest(draws, stats.beta(a, b).cdf).pvalue > 1e-3


def test_same_seed_same_samples():
    np.testing.assert_array_equal(
        tb.Beta(2, 3).sample((2, 3), random_state=7), tb.Beta(2, 3).sample((2, 3), random_state=7)
    )
    assert isinstance(tb.Beta(2, 3).sample(random_state=7), float)


def test_from_mean_states_mean_and_strength():
    belief = tb.Beta.from_mean([0.1, 0.5], 20)
    np.testing.assert_allclose(belief.mean(), [0.1, 0.5], rtol=1e-15)
    np.testing.assert_allclose(belief.alpha + belief.beta, 20)


@pytest.mark.parametrize("mean", [0.0, 1.0, -0.2, 1.5, np.nan])
def test_from_mean_refuses_no_probability(mean):
    with pytest.raises(PriorError, match=r"mean of Beta.from_mean is .*; expected numbers above 0 and below 1"):
        tb.Beta.from_mean(mean, 5)
    with pytest.raises(PriorError, match=r"strength of Beta.from_mean is .*; expected finite numbers above 0"):
        tb.Beta.from_mean(0.5, 0)


@pytest.mark.parametrize(
    ("low", "high", "mass"),
    [(0.2, 0.4, 0.9), (0.01, 0.02, 0.95), (0.9, 0.999, 0.5), (0.001, 0.9, 0.95), (0.499, 0.501, 0.99)],
)
def test_from_interval_round_trip(low, high, mass):
    belief = tb.Beta.from_interval(low, high, mass)
    reference = stats.beta(belief.alpha, belief.beta)
    assert reference.cdf(low) == pytest.approx((1 - mass) / 2, rel=1e-6)
    assert reference.sf(high) == pytest.approx((1 - mass) / 2, rel=1e-6)


@pytest.mark.parametrize("ends", [(0.4, 0.2), (0.2, 0.2), (0.0, 0.5), (0.5, 1.0), (-1, 0.5), (np.nan, 0.5)])
def test_from_interval_refuses_no_interval(ends):
    with pytest.raises(PriorError, match=r"0 < low < high < 1"):
        tb.Beta.from_interval(*ends)


@pytest.mark.parametrize("mass", [0, 1, -0.5, 2, np.nan])
def test_mass_must_be_a_probability(mass):
    with pytest.raises(DataError, match="between 0 and 1"):
        tb.Beta(2, 2).interval(mass)
    with pytest.raises(DataError, match="between 0 and 1"):
        tb.Beta.from_interval(0.2, 0.4, mass)


@pytest.mark.parametrize("parameters", [(-1, 1), (np.nan, 1), (1, np.inf), ([1, -1], 1)])
def test_parameters_must_not_be_negative(parameters):
    with pytest.raises(PriorError, match=r"(alpha|beta) of Beta is .*; expected finite numbers of at least 0"):
        tb.Beta(*parameters)


def test_arrays_equal_a_loop_over_numbers():
    a, b = np.array([[1.0, 2.0, 1.5], [7.0, 1.5, 30.0]]), np.array([2.0, 3.0, 0.5])
    theta = np.array([[0.2, 0.5, 0.9], [0.3, 0.1, 0.7]])
    belief = tb.Beta(a, b)
    for g, j in np.ndindex(2, 3):
        one = tb.Beta(a[g, j], b[j])
        assert belief.mean()[g, j] == one.mean()
        assert belief.mode()[g, j] == one.mode()
        assert belief.interval(0.8).low[g, j] == one.interval(0.8).low
        assert belief.log_prob(theta)[g, j] == one.log_prob(theta[g, j])
        assert belief.column(j).mean()[g] == one.mean()


def test_column_of_a_belief_that_broadcasts():
    assert tb.Beta(1, [2, 3]).column(1) == tb.Beta(1, 3)


def test_update_counts_successes_and_failures():
    posterior = tb.Beta(2, 2).update(tb.Totals(weight=[[3.0], [10.0]], total=[[1.0, 3.0], [0.0, 10.0]]))
    np.testing.assert_array_equal(posterior.alpha, [[3, 5], [2, 12]])
    np.testing.assert_array_equal(posterior.beta, [[4, 2], [12, 2]])


@pytest.mark.parametrize(("prior", "shape"), [(tb.Beta([1, 2, 3], 1), (2,)), (tb.Beta([[1], [2]], 1), (2,))])
def test_update_refuses_a_prior_of_another_shape(prior, shape):
    statistics = tb.Totals(weight=[1.0], total=np.ones(shape))
    for act in (prior.update, prior.log_evidence):
        with pytest.raises(PriorError, match="do not broadcast"):
            act(statistics)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2, 3), (57, 47)])
def test_variance_is_scipys(a, b):
    assert tb.Beta(a, b).variance() == pytest.approx(stats.beta(a, b).var(), rel=1e-14)


def test_from_interval_is_of_19_in_20_unless_told_otherwise():
    assert tb.Beta.from_interval(0.2, 0.4) == tb.Beta.from_interval(0.2, 0.4, 0.95)


def test_worth_more_observations_the_counts_grow():
    assert tb.Beta([1, 2], 3).scaled(2) == tb.Beta([2, 4], 6)


def test_what_belongs_to_a_whole_row_counts_once():
    known = tb.Totals(weight=[[3.0], [4.0]], total=[[1.0, 3.0], [2.0, 2.0]], log_base_measure=[[-0.7], [-1.9]])
    without = tb.Totals(weight=[[3.0], [4.0]], total=[[1.0, 3.0], [2.0, 2.0]])
    added = tb.Beta(1, 1).log_evidence(known) - tb.Beta(1, 1).log_evidence(without)
    np.testing.assert_allclose(added.sum(axis=-1), [-0.7, -1.9], rtol=1e-12)
