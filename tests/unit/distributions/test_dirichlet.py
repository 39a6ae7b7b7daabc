"""Dirichlet beliefs against scipy.stats, numerical optimization and integration."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import tallybayes as tb
from tallybayes.errors import PriorError

CASES = [[1, 1, 1], [2, 3, 4], [0.5, 0.5], [0.1, 5, 0.7, 2], [300, 2, 40]]


@pytest.mark.parametrize("alpha", CASES)
def test_density_mean_and_interval_are_scipys(alpha):
    belief, reference = tb.Dirichlet(alpha), stats.dirichlet(alpha)
    for theta in np.random.default_rng(1).dirichlet(np.ones(len(alpha)), 5):
        assert belief.log_prob(theta) == pytest.approx(reference.logpdf(theta), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(belief.mean(), reference.mean(), rtol=1e-14)
    low, high = belief.interval(0.9)
    for k, a in enumerate(alpha):  # the marginal of one probability is a Beta
        assert (low[k], high[k]) == pytest.approx(stats.beta(a, sum(alpha) - a).interval(0.9), rel=1e-10)


def test_density_integrates_to_one():
    belief = tb.Dirichlet([2, 3, 1.5])

    def density(second, first):
        return np.exp(belief.log_prob([first, second, 1 - first - second]))

    assert integrate.dblquad(density, 0, 1, 0, lambda first: 1 - first, epsabs=1e-5)[0] == pytest.approx(1, abs=1e-4)


def test_density_of_what_is_no_distribution():
    belief = tb.Dirichlet([2, 3, 4])
    assert belief.log_prob([0.5, 0.4, 0.2]) == -np.inf
    assert belief.log_prob([1.2, -0.1, -0.1]) == -np.inf
    assert belief.log_prob([0.0, 0.5, 0.5]) == -np.inf
    assert tb.Dirichlet([1, 1]).log_prob([0.0, 1.0]) == pytest.approx(stats.dirichlet([1, 1]).logpdf([0.0, 1.0]))


def test_several_poles_are_no_mode():
    for alpha in ([0.5, 0.2, 0.5], [0.5, 0.5], [0.9, 0.1]):
        with pytest.raises(PriorError, match="has no mode"):
            tb.Dirichlet(alpha).mode()
    np.testing.assert_allclose(tb.Dirichlet([0.5, 0.2, 0.5]).mode_or_boundary(), [0.5, 0, 0.5])


def test_a_limit_that_is_no_distribution_needs_data():
    after = tb.Dirichlet(0).update(tb.Counts([2.0, 1.0, 1.0]))
    np.testing.assert_allclose(after.mean(), [1 / 2, 1 / 4, 1 / 4], rtol=1e-15)
    with pytest.raises(PriorError, match=r"Dirichlet\(0\) is improper, .*it has no log_evidence"):
        tb.Dirichlet(0).log_evidence(tb.Counts([2.0, 1.0, 1.0]))
    with pytest.raises(PriorError, match="is improper"):
        tb.Dirichlet(0).update(tb.Counts([2.0, 0.0])).mean()


@pytest.mark.parametrize("alpha", [[2, 3, 4], [1.5, 1.5, 9], [30, 2, 2, 5]])
def test_mode_is_the_maximum_of_the_density(alpha):
    belief = tb.Dirichlet(alpha)

    def cost(free):
        theta = np.exp(np.append(free, 0.0))
        return -belief.log_prob(theta / theta.sum())

    found = np.exp(np.append(optimize.minimize(cost, np.zeros(len(alpha) - 1), tol=1e-10).x, 0.0))
    np.testing.assert_allclose(belief.mode(), found / found.sum(), atol=1e-4)


@pytest.mark.parametrize(
    ("alpha", "mode"),
    [
        ([1, 1, 1], [1 / 3, 1 / 3, 1 / 3]),
        ([0.3, 1, 0.2], [0, 1, 0]),
        ([0.5, 3, 2], [0, 2 / 3, 1 / 3]),
        ([1, 1, 5], [0, 0, 1]),
        ([7], [1]),
        ([0.2], [1]),
    ],
)
def test_mode_on_the_boundary(alpha, mode):
    np.testing.assert_allclose(tb.Dirichlet(alpha).mode(), mode, rtol=1e-15)


@pytest.mark.parametrize("alpha", [[2, 3, 4], [0.2, 0.1, 0.6], [1e-3, 2e-3]])
def test_samples_follow_the_belief(alpha):
    draws = tb.Dirichlet(alpha).sample(4000, random_state=0)
    np.testing.assert_allclose(draws.sum(axis=-1), 1)
    for k, a in enumerate(alpha):
        marginal = stats.beta(a, sum(alpha) - a)
        if min(alpha) > 0.05:
            assert stats.kstest(draws[:, k], marginal.cdf).pvalue > 1e-3
        error = np.sqrt(marginal.var() / len(draws))
        assert abs(draws[:, k].mean() - marginal.mean()) < 4 * error


def test_samples_of_tiny_concentrations_are_corners():
    draws = tb.Dirichlet([1e-8, 1e-8, 1e-8]).sample(50, random_state=3)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.max(axis=-1), 1)
    assert set(draws.argmax(axis=-1)) == {0, 1, 2}


def test_one_level_is_certain():
    one = tb.Dirichlet([3])
    np.testing.assert_array_equal(one.mean(), [1])
    np.testing.assert_array_equal(one.interval(), [[1], [1]])
    np.testing.assert_array_equal(one.sample(2, random_state=0), [[1], [1]])
    assert one.log_evidence(tb.Counts([5])) == 0


def test_from_mean_states_mean_and_strength():
    belief = tb.Dirichlet.from_mean([0.5, 0.25, 0.25], 8)
    np.testing.assert_allclose(belief.mean(), [0.5, 0.25, 0.25])
    assert belief.concentration.sum() == 8
    several = tb.Dirichlet.from_mean([[0.5, 0.5], [0.9, 0.1]], [2, 10])
    np.testing.assert_allclose(several.concentration, [[1, 1], [9, 1]])
    for mean in (0.5, [0.5, 0.6], [1.0, 0.0], [1.5, -0.5]):
        with pytest.raises(PriorError, match="Dirichlet"):
            tb.Dirichlet.from_mean(mean, 8)


@pytest.mark.parametrize("alpha", [-1, [1, -0.5], [1, np.nan], np.inf])
def test_concentrations_must_not_be_negative(alpha):
    with pytest.raises(PriorError, match=r"concentration of Dirichlet is .*; expected finite numbers of at least 0"):
        tb.Dirichlet(alpha)


def test_one_number_stands_for_any_number_of_levels():
    np.testing.assert_array_equal(tb.Dirichlet(0.5).update(tb.Counts([3, 0, 1])).concentration, [3.5, 0.5, 1.5])
    for question in ("mean", "mode", "interval", "sample"):
        with pytest.raises(PriorError, match="any number of levels"):
            getattr(tb.Dirichlet(1), question)()
    with pytest.raises(PriorError, match="any number of levels"):
        tb.Dirichlet(1).log_prob([0.5, 0.5])


def test_sizes_must_add_up():
    with pytest.raises(PriorError, match="Dirichlet has parameters of shape"):
        tb.Dirichlet([1, 1, 1], sizes=(2, 2))
    with pytest.raises(PriorError, match="Dirichlet has parameters of shape"):
        tb.Dirichlet(1, sizes=(2, 2))


def test_columns_side_by_side_equal_columns_apart():
    alpha = np.array([[1.0, 2.0, 0.5, 3.0, 4.0], [7.0, 1.0, 1.5, 0.1, 1.0]])
    theta = np.array([[0.3, 0.7, 0.2, 0.5, 0.3], [0.9, 0.1, 0.1, 0.2, 0.7]])
    counts = np.array([[3.0, 0, 1, 1, 0], [2, 2, 0, 5, 1]])
    belief = tb.Dirichlet(alpha, sizes=(2, 3))
    statistics = tb.Counts(counts, (2, 3))
    for j, part in enumerate((slice(0, 2), slice(2, 5))):
        for g in range(2):
            one = tb.Dirichlet(alpha[g, part])
            np.testing.assert_allclose(belief.mean()[g, part], one.mean(), rtol=1e-14)
            np.testing.assert_allclose(belief.mode()[g, part], one.mode(), rtol=1e-14)
            np.testing.assert_allclose(belief.interval(0.7).low[g, part], one.interval(0.7).low, rtol=1e-12)
            assert belief.log_prob(theta)[g, j] == pytest.approx(one.log_prob(theta[g, part]), rel=1e-13)
            assert belief.log_evidence(statistics)[g, j] == pytest.approx(
                one.log_evidence(tb.Counts(counts[g, part])), rel=1e-13
            )
            np.testing.assert_allclose(belief.column(j).mean()[g], one.mean(), rtol=1e-14)
    draws = belief.sample(3, random_state=0)
    np.testing.assert_allclose(draws[..., :2].sum(-1), 1)
    np.testing.assert_allclose(draws[..., 2:].sum(-1), 1)


def test_evidence_is_scipys_less_the_coefficient():
    alpha, counts = [0.5, 2.0, 1.0], [4, 1, 0]
    reference = stats.dirichlet_multinomial(alpha, 5)
    # the coefficient counts the orders of the rows: 5! / (4! 1! 0!)
    assert tb.Dirichlet(alpha).log_evidence(tb.Counts(counts)) == pytest.approx(reference.logpmf(counts) - np.log(5))


def test_update_refuses_a_prior_of_another_shape():
    for act in ("update", "log_evidence"):
        with pytest.raises(PriorError, match="do not broadcast"):
            getattr(tb.Dirichlet([1, 1, 1]), act)(tb.Counts([1, 2]))


@pytest.mark.parametrize("alpha", CASES)
def test_variance_is_scipys(alpha):
    np.testing.assert_allclose(tb.Dirichlet(alpha).variance(), stats.dirichlet(alpha).var(), rtol=1e-13)


def test_worth_more_observations_the_counts_grow():
    assert tb.Dirichlet([1, 2, 5], sizes=(1, 2)).scaled(3) == tb.Dirichlet([3, 6, 15], sizes=(1, 2))


def test_the_mode_of_another_is_the_mean():
    prior, seen = tb.Dirichlet([0.5, 1.0, 0.2]), tb.Counts([3, 0, 1])
    np.testing.assert_allclose(prior.mode_matched().update(seen).mode(), prior.update(seen).mean(), rtol=1e-14)


def test_columns_of_one_level_and_of_none():
    belief = tb.Dirichlet([1.0, 2.0, 3.0], sizes=(2, 0, 1))
    certain = belief.log_prob([0.5, 0.5, 1.0])
    assert certain[0] == pytest.approx(stats.dirichlet([1, 2]).logpdf([0.5, 0.5]))
    np.testing.assert_allclose(certain[1:], 0.0, atol=1e-15)
    assert belief.log_prob([0.5, 0.5, 0.5])[2] == -np.inf  # the probability of the only level is 1


def test_updates_keep_the_columns_apart():
    two = tb.Dirichlet(1.0).update(tb.Counts([[3, 0, 1, 2], [1, 1, 1, 1]], (2, 2)))
    assert two.sizes == (2, 2)
    np.testing.assert_allclose(two.mean(), [[4 / 5, 1 / 5, 2 / 5, 3 / 5], [0.5, 0.5, 0.5, 0.5]])
    assert tb.Dirichlet(1.0).update(tb.Counts([3, 0, 1])).sizes is None


def test_evidence_of_rows_of_words_is_scipys():
    alpha, rows = [0.5, 2.0, 1.0], np.array([[4, 1, 0], [2, 0, 3], [0, 1, 1]])
    group = np.array([0, 0, 1])
    found = tb.Dirichlet(alpha).log_evidence(tb.Multinomial().collect(rows.astype(float), group, 2))
    for place in range(2):
        mine = rows[group == place]
        # the sequence of all words, and the ways in which every row's own may be ordered
        together = stats.dirichlet_multinomial(alpha, mine.sum())
        ways = [stats.multinomial(row.sum(), [1 / 3] * 3).logpmf(row) + row.sum() * np.log(3) for row in mine]
        all_ways = stats.multinomial(mine.sum(), [1 / 3] * 3).logpmf(mine.sum(axis=0)) + mine.sum() * np.log(3)
        expected = together.logpmf(mine.sum(axis=0)) - all_ways + sum(ways)
        assert found[place] == pytest.approx(expected, rel=1e-11)
