"""LinearGaussian: least squares, weight decay and Bayes from moments, against closed forms and scikit-learn."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge

import tallybayes as tb
from tallybayes.beliefs.linear_normal_inverse_gamma import Line
from tallybayes.errors import PriorError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 100.0]
Y = X @ [1.0, -0.2, 3.0] + 4 + RNG.normal(size=40)
ROWS = np.c_[X, Y]


def moments(rows, **options):
    return tb.LinearGaussian().collect(np.asarray(rows, dtype=float), **options).reshape_groups(())


def test_mle_is_least_squares():
    line = tb.LinearGaussian().maximum_likelihood(moments(ROWS))
    other = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(line.slope, other.coef_, rtol=1e-10)
    assert line.intercept == pytest.approx(other.intercept_, rel=1e-9)
    errors = Y - other.predict(X)
    assert line.variance == pytest.approx((errors**2).mean(), rel=1e-10)
    assert tb.LinearGaussian().unbiased(moments(ROWS)).variance == pytest.approx((errors**2).sum() / 36, rel=1e-10)


@pytest.mark.parametrize("decay", [0.0, 1e-3, 1.0, 1e4])
def test_map_is_ridge(decay):
    line = tb.learn(ROWS, tb.LinearGaussian()).estimate("map", prior=decay)
    other = Ridge(alpha=decay).fit(X, Y)
    np.testing.assert_allclose(line.slope, other.coef_, rtol=1e-8)
    assert line.intercept == pytest.approx(other.intercept_, rel=1e-8)


def test_through_the_origin():
    family = tb.LinearGaussianThroughOrigin()
    line = tb.learn(ROWS, family).estimate("mle")
    np.testing.assert_allclose(line.slope, np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-9)
    assert line.intercept == 0
    decayed = tb.learn(ROWS, family).estimate("map", prior=2.0)
    np.testing.assert_allclose(decayed.slope, Ridge(2.0, fit_intercept=False).fit(X, Y).coef_, rtol=1e-9)


def test_the_posterior_is_the_conjugate_closed_form():
    """Bishop's, of weights with the intercept among them: Λ' = Λ + XᵀX, m' = Λ'⁻¹(Λm + Xᵀy)."""
    design = np.c_[X, np.ones(40)]
    slopes, level, strength = np.array([0.5, 0.0, -1.0]), 2.0, 0.7
    before = np.diag([2.0, 3.0, 4.0, strength])
    start = np.append(slopes, level)
    after = before + design.T @ design
    mean = np.linalg.solve(after, before @ start + design.T @ Y)
    scale = 1.5 + 0.5 * (Y @ Y + start @ before @ start - mean @ after @ mean)
    prior = tb.LinearNormalInverseGamma(slopes, np.diag([2.0, 3.0, 4.0]), 2.5, 1.5, level=level, strength=strength)
    posterior = prior.update(moments(ROWS))
    np.testing.assert_allclose(posterior.mean().slope, mean[:3], rtol=1e-9)
    assert posterior.mean().intercept == pytest.approx(mean[3], rel=1e-9)
    assert float(posterior.scale) == pytest.approx(scale, rel=1e-9)
    assert float(posterior.shape) == 2.5 + 20
    covariance = np.linalg.inv(after)
    low, high = posterior.interval(0.9)
    width = stats.t(45).ppf(0.95) * np.sqrt(scale / 22.5 * np.diag(covariance))
    np.testing.assert_allclose((high.slope - low.slope) / 2, width[:3], rtol=1e-8)
    assert (high.intercept - low.intercept) / 2 == pytest.approx(width[3], rel=1e-7)
    variance = stats.invgamma(22.5, scale=scale).ppf([0.05, 0.95])
    assert [low.variance, high.variance] == pytest.approx(variance, rel=1e-9)
    np.testing.assert_allclose(posterior.leverage(X), (design @ covariance * design).sum(axis=1), rtol=1e-8)


def test_the_predictive_is_student_t_and_the_evidence_their_sum():
    family = tb.LinearGaussian()
    belief = tb.LinearNormalInverseGamma(np.zeros(3), np.eye(3), 1.0, 2.0, level=3.0, strength=0.1, centre=[0, 5, 100])
    whole, total = belief.log_evidence(moments(ROWS)), 0.0
    for row in ROWS:
        wide = np.sqrt(belief.scale / belief.shape * (1 + belief.leverage(row[None, :3])[0]))
        expected = stats.t(2 * float(belief.shape), belief.at(row[None, :3])[0], wide).logpdf(row[3])
        assert family.log_predictive(belief, row[None])[0] == pytest.approx(expected, rel=1e-10)
        total += expected
        belief = belief.update(moments(row[None]))
    assert whole == pytest.approx(total, rel=1e-10)


def test_the_mode_is_where_the_density_is_highest():
    posterior = tb.LinearGaussian().prior(1.0, moments(ROWS), "map").update(moments(ROWS))
    best = posterior.mode()
    top = posterior.log_prob(best)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-3
        assert posterior.log_prob(best._replace(slope=best.slope + step)) < top
    assert posterior.log_prob(best._replace(intercept=best.intercept + 1e-3)) < top
    assert posterior.log_prob(best._replace(variance=best.variance * 1.01)) < top
    assert posterior.log_prob(best._replace(variance=best.variance * 0.99)) < top
    assert posterior.log_prob(best._replace(variance=-1.0)) == -np.inf


def test_the_default_decay_is_where_the_evidence_is_highest():
    family, counted = tb.LinearGaussian(), moments(ROWS)
    found = family.prior(None, counted, "bayes")
    decay = np.diag(found.precision) / X.var(axis=0)
    assert decay == pytest.approx(np.full(3, decay[0]), rel=1e-9)  # the same on inputs of unit variance
    best = found.log_evidence(counted)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert family.decaying(counted, factor * np.diag(found.precision)).log_evidence(counted) < best
    # BayesianRidge finds the same top, by other steps and under another prior of the noise
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    other = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, max_iter=5000, tol=1e-12).fit(scaled, Y)
    assert decay[0] == pytest.approx(other.lambda_ / other.alpha_, rel=0.1)


def test_where_there_is_nothing_to_learn_slopes_vanish():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 6))
    prior = tb.LinearGaussian().prior(None, moments(rows), "bayes")
    strong = rows.copy()
    strong[:, 5] += rows[:, :5].sum(axis=1) * 10
    weak = tb.LinearGaussian().prior(None, moments(strong), "bayes")
    assert prior.precision[0, 0] > 100 * weak.precision[0, 0]


def test_groups_have_lines_of_their_own():
    group = np.arange(40) % 2
    found = tb.LinearGaussian().collect(ROWS, group, 3)
    line = tb.LinearGaussian().maximum_likelihood(found)
    for code in (0, 1):
        own = LinearRegression().fit(X[group == code], Y[group == code])
        np.testing.assert_allclose(line.slope[code], own.coef_, rtol=1e-9)
        assert line.intercept[code] == pytest.approx(own.intercept_, rel=1e-8)
    assert np.isnan(line.slope[2]).all()
    decayed = tb.LinearGaussian().prior(3.0, found, "map").update(found).mode()
    for code in (0, 1):
        np.testing.assert_allclose(decayed.slope[code], Ridge(3.0).fit(X[group == code], Y[group == code]).coef_)
    assert (decayed.slope[2] == 0).all()
    rows = tb.LinearGaussian().log_prob(line, ROWS)
    assert rows.shape == (40, 3)
    own = rows[np.arange(40), group]
    assert own.sum() == pytest.approx(tb.LinearGaussian().log_likelihood(line, found).sum(), rel=1e-9)


def test_more_inputs_than_rows_and_collinear_ones_take_the_shortest_weights():
    few = ROWS[:3]
    line = tb.LinearGaussian().maximum_likelihood(moments(few))
    other = LinearRegression().fit(X[:3], Y[:3])
    np.testing.assert_allclose(line.slope, other.coef_, rtol=1e-6)
    assert line.variance == 0
    twice = np.c_[X, X[:, 0] * 3, X[:, 1] + X[:, 2], np.full(40, 7.0), Y]
    line = tb.LinearGaussian().maximum_likelihood(moments(twice))
    other = LinearRegression().fit(twice[:, :-1], Y)
    np.testing.assert_allclose(line.slope, other.coef_, rtol=1e-6, atol=1e-9)
    assert tb.LinearGaussian().unbiased(moments(twice)).variance == pytest.approx(
        tb.LinearGaussian().unbiased(moments(ROWS)).variance, rel=1e-9
    )


def test_an_improper_posterior_says_so():
    twice = moments(np.c_[X[:, 0], X[:, 0], Y])
    posterior = tb.LinearGaussian().prior(0, twice, "map").update(twice)
    assert posterior.improper
    with pytest.raises(tb.PriorError, match="improper"):
        posterior.leverage(X[:, :2])


def test_products_keep_their_digits():
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    rows = np.stack([x, x + 1e-9 * rng.normal(size=300)], axis=1)
    exact = sum(Fraction(a) * Fraction(b) for a, b in rows.tolist())
    fine, plain = (family.collect(rows).second_sum for family in (tb.LinearGaussian(), tb.MultivariateGaussian()))
    errors = [abs(Fraction(s.high[0, 0, 1]) + Fraction(s.low[0, 0, 1]) - exact) / abs(exact) for s in (fine, plain)]
    assert errors[0] < 1e-21
    assert errors[1] > 1e-19


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_cells_that_are_no_numbers_are_named_by_row_and_column(bad):
    rows = ROWS.copy()
    rows[33, 1] = bad
    with pytest.raises(tb.DataError, match="row 33"):
        tb.learn(rows, tb.LinearGaussian())
    weight = np.ones(40)
    weight[33] = 0
    kept = np.delete(ROWS, 33, axis=0)
    found = moments(rows, weight=weight)
    assert found.isclose(moments(kept), 1e-14)


def test_rows_of_several_chunks_whole_numbers_and_float32():
    rng = np.random.default_rng(2)
    whole = rng.integers(-9, 9, size=(20_000, 3))
    expected = tb.MultivariateGaussian().collect(whole)
    for rows in (whole, whole.astype(np.float32), [column.astype(float) for column in whole.T]):
        assert tb.LinearGaussian().collect(rows).isclose(expected, 1e-14)
    assert tb.LinearGaussian().collect(np.zeros((0, 3))).isclose(tb.Moments.zeros((1,), 3, full=True))


def test_one_row_no_input_and_a_constant_target():
    family = tb.LinearGaussian()
    one = family.maximum_likelihood(moments([[2.0, 5.0]]))
    assert one.slope.tolist() == [0.0]
    assert (one.intercept, one.variance) == (5.0, 0.0)
    alone = family.maximum_likelihood(moments(Y[:, None]))
    assert alone.slope.shape == (0,)
    assert alone.intercept == pytest.approx(Y.mean())
    flat = moments(np.c_[X, np.full(40, 3.0)])
    posterior = family.prior(None, flat, "bayes").update(flat)
    assert posterior.mean().slope == pytest.approx([0, 0, 0], abs=1e-12)
    assert posterior.mean().intercept == pytest.approx(3.0)
    nothing = tb.Moments.zeros((), 3, full=True)
    assert np.isnan(family.maximum_likelihood(nothing).slope).all()
    family.prior(None, nothing, "bayes").update(nothing)


def test_a_missing_target_adds_nothing_and_a_missing_input_is_refused():
    line = Line(np.array([1.0]), 0.0, 1.0)
    found = tb.LinearGaussian().log_prob(line, np.array([[1.0, np.nan], [np.nan, np.nan], [1.0, 1.0]]))
    assert found.tolist() == pytest.approx([0.0, 0.0, -0.5 * np.log(2 * np.pi)])
    with pytest.raises(tb.DataError, match="lacks an input"):
        tb.LinearGaussian().log_prob(line, np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("prior", ["empirical", -1.0, np.inf, np.nan, True, tb.Beta(1, 1)])
def test_priors_that_are_none(prior):
    with pytest.raises(tb.PriorError):
        tb.LinearGaussian().prior(prior, moments(ROWS), "bayes")


@pytest.mark.parametrize(
    "change",
    [
        {"precision": [[1.0, 2.0], [2.0, 1.0]]},
        {"precision": [[1.0, 0.5], [0.0, 1.0]]},
        {"precision": np.eye(3)},
        {"shape": 0.0},
        {"strength": -1.0},
        {"centre": np.nan},
    ],
    ids=["negative", "lopsided", "larger", "shape", "strength", "centre"],
)
def test_beliefs_that_are_none(change):
    with pytest.raises(tb.PriorError):
        tb.LinearNormalInverseGamma(
            **{"location": [0.0, 0.0], "precision": np.eye(2), "shape": 1, "scale": 1, **change}
        )


def test_a_prior_of_a_level_is_refused_through_the_origin():
    prior = tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1)
    learned = tb.learn([[1.0, 2.0], [2.0, 3.0], [3.0, 7.0]], tb.LinearGaussianThroughOrigin())
    with pytest.raises(PriorError, match=r"no level to learn, and strength= of its prior is 0.0"):
        learned.estimate("map", prior=prior)
    through = learned.estimate("map", prior=prior.replace(strength=None))
    assert through.intercept == 0.0
    assert through.slope == pytest.approx([29 / 15])
