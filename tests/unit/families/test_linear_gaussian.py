"""LinearGaussian: least squares, weight decay and Bayes from moments, against closed forms and scikit-learn."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge

import tallybayes as tb
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.errors import PriorError
from tallybayes.families.protocols.degenerate_estimates import constant_columns, is_undefined
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.distribution_functions import sampling_options
from tallybayes.families.protocols.linear_nodes import family_given_continuous_parents

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
    line = tb.fit_distribution(ROWS, tb.LinearGaussian()).estimate("map", prior=decay)
    other = Ridge(alpha=decay).fit(X, Y)
    np.testing.assert_allclose(line.slope, other.coef_, rtol=1e-8)
    assert line.intercept == pytest.approx(other.intercept_, rel=1e-8)


def test_through_the_origin():
    family = tb.LinearGaussianThroughOrigin()
    line = tb.fit_distribution(ROWS, family).estimate("mle")
    np.testing.assert_allclose(line.slope, np.linalg.lstsq(X, Y, rcond=None)[0], rtol=1e-9)
    assert line.intercept == 0
    decayed = tb.fit_distribution(ROWS, family).estimate("map", prior=2.0)
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
    prior = tb.LinearNormalInverseGamma(
        slopes, np.diag([2.0, 3.0, 4.0]), 2.5, 1.5, intercept_location=level, strength=strength
    )
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
    belief = tb.LinearNormalInverseGamma(
        np.zeros(3), np.eye(3), 1.0, 2.0, intercept_location=3.0, strength=0.1, input_center=[0, 5, 100]
    )
    whole, total = belief.log_evidence(moments(ROWS)), 0.0
    for row in ROWS:
        wide = np.sqrt(belief.scale / belief.shape * (1 + belief.leverage(row[None, :3])[0]))
        expected = stats.t(2 * float(belief.shape), belief.at(row[None, :3])[0], wide).logpdf(row[3])
        assert family.log_predictive(belief, row[None])[0] == pytest.approx(expected, rel=1e-10)
        total += expected
        belief = belief.update(moments(row[None]))
    assert whole == pytest.approx(total, rel=1e-10)


def test_the_mode_is_where_the_density_is_highest():
    posterior = tb.LinearGaussian().resolve_prior(1.0, moments(ROWS), "map").update(moments(ROWS))
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
    found = family.resolve_prior(None, counted, "bayes")
    decay = np.diag(found.precision) / X.var(axis=0)
    assert decay == pytest.approx(np.full(3, decay[0]), rel=1e-9)  # the same on inputs of unit variance
    best = found.log_evidence(counted)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert family.weight_decay_prior(counted, factor * np.diag(found.precision)).log_evidence(counted) < best
    # BayesianRidge finds the same top, by other steps and under another prior of the noise
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    other = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, max_iter=5000, tol=1e-12).fit(scaled, Y)
    assert decay[0] == pytest.approx(other.lambda_ / other.alpha_, rel=0.1)


def test_where_there_is_nothing_to_learn_slopes_vanish():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(50, 6))
    prior = tb.LinearGaussian().resolve_prior(None, moments(rows), "bayes")
    strong = rows.copy()
    strong[:, 5] += rows[:, :5].sum(axis=1) * 10
    weak = tb.LinearGaussian().resolve_prior(None, moments(strong), "bayes")
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
    decayed = tb.LinearGaussian().resolve_prior(3.0, found, "map").update(found).mode()
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
    posterior = tb.LinearGaussian().resolve_prior(0, twice, "map").update(twice)
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
        tb.fit_distribution(rows, tb.LinearGaussian())
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
    posterior = family.resolve_prior(None, flat, "bayes").update(flat)
    assert posterior.mean().slope == pytest.approx([0, 0, 0], abs=1e-12)
    assert posterior.mean().intercept == pytest.approx(3.0)
    nothing = tb.Moments.zeros((), 3, full=True)
    assert np.isnan(family.maximum_likelihood(nothing).slope).all()
    family.resolve_prior(None, nothing, "bayes").update(nothing)


def test_a_missing_target_adds_nothing_and_a_missing_input_is_refused():
    line = LinearParameters(np.array([1.0]), 0.0, 1.0)
    found = tb.LinearGaussian().log_prob(line, np.array([[1.0, np.nan], [np.nan, np.nan], [1.0, 1.0]]))
    assert found.tolist() == pytest.approx([0.0, 0.0, -0.5 * np.log(2 * np.pi)])
    with pytest.raises(tb.DataError, match="inputs are missing in a row with a target"):
        tb.LinearGaussian().log_prob(line, np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("prior", ["empirical", -1.0, np.inf, np.nan, True, tb.Beta(1, 1)])
def test_priors_that_are_none(prior):
    with pytest.raises(tb.PriorError):
        tb.LinearGaussian().resolve_prior(prior, moments(ROWS), "bayes")


@pytest.mark.parametrize(
    "change",
    [
        {"precision": [[1.0, 2.0], [2.0, 1.0]]},
        {"precision": [[1.0, 0.5], [0.0, 1.0]]},
        {"precision": np.eye(3)},
        {"shape": 0.0},
        {"strength": -1.0},
        {"input_center": np.nan},
    ],
    ids=["negative", "lopsided", "larger", "shape", "strength", "center"],
)
def test_beliefs_that_are_none(change):
    with pytest.raises(tb.PriorError):
        tb.LinearNormalInverseGamma(
            **{"location": [0.0, 0.0], "precision": np.eye(2), "shape": 1, "scale": 1, **change}
        )


def test_a_prior_of_a_level_is_refused_through_the_origin():
    prior = tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1)
    learned = tb.fit_distribution([[1.0, 2.0], [2.0, 3.0], [3.0, 7.0]], tb.LinearGaussianThroughOrigin())
    with pytest.raises(PriorError, match=r"has strength=0.0, but .* has no intercept"):
        learned.estimate("map", prior=prior)
    through = learned.estimate("map", prior=prior.replace(strength=None))
    assert through.intercept == 0.0
    assert through.slope == pytest.approx([29 / 15])


GROUPS = np.arange(40) % 2
HALVES = tb.LinearGaussian().collect(ROWS, GROUPS, 3)  # the third without a row


@pytest.mark.parametrize("family", [tb.LinearGaussian(), tb.LinearGaussianThroughOrigin()], ids=["level", "origin"])
def test_the_likelihood_of_any_line_is_the_sum_over_rows(family):
    weight = np.linspace(0.0, 2.0, 40)
    counted = family.collect(ROWS, GROUPS, 3, weight)
    line = LinearParameters(np.array([[1.0, -0.3, 2.5]] * 3), np.array([3.0, -2.0, 0.0]), np.array([1.5, 400.0, 1.0]))
    gaps = Y[:, None] - X @ line.slope.T - line.intercept
    cells = stats.norm.logpdf(gaps, scale=np.sqrt(line.variance))
    np.testing.assert_allclose(family.log_prob(line, ROWS), cells, rtol=1e-12)
    expected = [weight[k == GROUPS] @ cells[k == GROUPS, k] for k in range(2)]
    np.testing.assert_allclose(family.log_likelihood(line, counted), [*expected, 0.0], rtol=1e-10)


def test_a_perfect_fit_has_no_noise_and_any_density():
    rows = np.c_[X[:, 0], 2 * X[:, 0] + 1]
    family, counted = tb.LinearGaussian(), moments(np.c_[X[:, 0], 2 * X[:, 0] + 1])
    line = family.maximum_likelihood(counted)
    assert line.variance == 0
    assert family.log_likelihood(line, counted) == np.inf
    exact = LinearParameters(np.array([2.0]), 1.0, 0.0)
    assert family.log_prob(exact, np.array([[1.0, 3.0], [1.0, 3.5]])).tolist() == [np.inf, -np.inf]
    assert family.log_likelihood(exact._replace(intercept=1.5), counted) == -np.inf
    assert np.isnan(family.log_prob(exact._replace(variance=np.nan), np.array([[1.0, 3.5]]))).all()
    assert np.isnan(family.unbiased(moments(rows[:2])).variance)  # two rows, a slope and a level
    assert family.unbiased(moments(rows[:3])).variance == 0
    assert tb.LinearGaussianThroughOrigin().unbiased(moments(ROWS)).variance == pytest.approx(
        ((Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]) ** 2).sum() / 37
    )


def test_predictions_of_groups_are_students_t_and_what_is_missing_adds_nothing():
    family = tb.LinearGaussian()
    posterior = family.resolve_prior(2.0, HALVES, "bayes").update(HALVES)
    rows = np.r_[ROWS[:4], [[0.0, 0.0, 0.0, np.nan], [np.nan, 1.0, np.nan, np.nan]]]
    found = family.log_predictive(posterior, rows)
    assert not found[4:].any()
    for k in range(2):
        wide = posterior.scale[k] / posterior.shape[k] * (1 + posterior.leverage(ROWS[:4, None, :3])[:, k])
        center = posterior.mean().slope[k] @ ROWS[:4, :3].T + posterior.mean().intercept[k]
        expected = stats.t(2 * posterior.shape[k], center, np.sqrt(wide)).logpdf(ROWS[:4, 3])
        np.testing.assert_allclose(found[:4, k], expected, rtol=1e-9)


def test_priors_of_decay_lie_at_the_means_of_groups():
    family = tb.LinearGaussian()
    found = family.weight_decay_prior(HALVES, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(found.precision, np.diag([1.0, 2.0, 3.0]))
    for k in range(2):
        assert found.intercept_location[k] == pytest.approx(Y[k == GROUPS].mean())
        np.testing.assert_allclose(found.input_center[k], X[k == GROUPS].mean(axis=0))
    assert found.intercept_location[2] == pytest.approx(Y.mean())  # of a group without rows, that of all
    np.testing.assert_allclose(found.input_center[2], X.mean(axis=0))
    through = tb.LinearGaussianThroughOrigin().weight_decay_prior(HALVES, np.ones(3))
    assert through.strength is None
    assert not through.intercept_location.any()
    assert not through.input_center.any()


def test_spreads_are_those_within_groups():
    family = tb.LinearGaussian()
    squares = sum(((X[k == GROUPS] - X[k == GROUPS].mean(axis=0)) ** 2).sum(axis=0) for k in range(2))
    np.testing.assert_allclose(family.spreads(HALVES), squares / 40, rtol=1e-10)
    np.testing.assert_allclose(
        tb.LinearGaussianThroughOrigin().spreads(HALVES), (X**2).mean(axis=0), rtol=1e-10
    )  # about 0
    flat = np.c_[np.full(40, 3.0), X[:, 0], Y]
    assert family.spreads(moments(flat))[0] == 1.0
    assert family.spreads(moments(np.zeros((0, 3)))).tolist() == [1.0, 1.0]
    assert constant_columns(family, moments(flat)).tolist() == []


def test_expected_noise_is_small_beside_the_target_and_a_tenth_where_weights_are_as_many_as_rows():
    family, rng = tb.LinearGaussian(), np.random.default_rng(6)
    rows = rng.normal(size=(4000, 2)) * [1.0, 3.0] + [0.0, 50.0]
    many = family.weight_decay_prior(moments(rows), np.ones(1))
    assert 2 * many.shape == pytest.approx(0.01)  # in rows
    assert many.scale / many.shape == pytest.approx(1e-4 * rows[:, 1].var(), rel=1e-6)
    few = family.weight_decay_prior(moments(rows[:2]), np.ones(1))
    assert few.scale == pytest.approx(0.1 * rows[:2, 1].var(), rel=1e-4)
    four = family.weight_decay_prior(moments(rows[:4]), np.ones(1))  # half as many weights as rows, to the fourth power
    assert four.scale == pytest.approx(0.1 / 16 * rows[:4, 1].var(), rel=1e-3)
    through = tb.LinearGaussianThroughOrigin().weight_decay_prior(moments(rows[:4]), np.ones(1))
    assert through.scale == pytest.approx(0.1 / 256 * rows[:4, 1].var(), rel=1e-2)
    group = np.arange(8) % 2  # of the rows of a group, on average
    halves = family.weight_decay_prior(family.collect(rows[:8], group, 2), np.ones(1))
    assert halves.scale == pytest.approx(0.1 / 16 * rows[:8, 1].var(), rel=1e-3)
    one = family.weight_decay_prior(moments(rows[:1]), np.ones(1))  # which says nothing of the spread: by its level
    assert one.scale == pytest.approx(0.1 * rows[0, 1] ** 2 * 1e-12, rel=1e-4)
    nothing = family.weight_decay_prior(moments(rows[:0]), np.ones(1))
    assert nothing.scale == pytest.approx(0.1, rel=1e-4)


def test_draws_follow_the_line_and_are_like_the_rows_that_were_counted():
    family, rng = tb.LinearGaussian(), np.random.default_rng(7)
    mixed = rng.normal(size=(50, 2)) @ np.array([[1.0, 0.8], [0.0, 0.5]]) + np.array([3.0, -1.0])
    counted = moments(np.c_[mixed, mixed.sum(axis=1)])
    like = sampling_options(family, counted)
    np.testing.assert_allclose(like["inputs"][0], mixed.mean(axis=0))
    np.testing.assert_allclose(like["inputs"][1], np.cov(mixed.T, ddof=0), rtol=1e-10)
    line = LinearParameters(np.array([2.0, -1.0]), 5.0, 0.25)
    drawn = family.sample(line, 20_000, rng, **like)
    np.testing.assert_allclose(drawn[:, :2].mean(axis=0), like["inputs"][0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn[:, :2].T), like["inputs"][1], atol=0.06)
    errors = drawn[:, 2] - drawn[:, :2] @ line.slope - 5.0
    assert errors.mean() == pytest.approx(0.0, abs=0.02)
    assert errors.std() == pytest.approx(0.5, abs=0.02)
    two = LinearParameters(np.array([[1.0], [-1.0]]), np.array([0.0, 10.0]), np.array([1.0, 0.0]))
    plain = family.sample(two, 5000, rng)
    assert plain.shape == (5000, 2, 2)
    assert plain[..., 0].std() == pytest.approx(1.0, abs=0.05)
    np.testing.assert_allclose(plain[:, 1, 1], 10 - plain[:, 1, 0], rtol=1e-12)
    nothing = sampling_options(family, moments(np.zeros((0, 3))))["inputs"][1]
    assert nothing.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_what_is_told_of_a_line():
    family = tb.LinearGaussian()
    line = family.maximum_likelihood(HALVES)
    assert is_undefined(line).tolist() == [[False], [False], [True]]
    np.testing.assert_array_equal(named_parameters(family, line)["weight"], np.c_[line.slope, line.intercept])
    expected = family.mean(line)
    assert not expected[:2, :3].any()
    np.testing.assert_array_equal(expected[:2, 3], line.intercept[:2])
    posterior = family.resolve_prior(1.0, HALVES, "bayes").update(HALVES)
    np.testing.assert_allclose(family.mean(posterior)[:, 3], posterior.mean().intercept)
    np.testing.assert_allclose(named_parameters(family, posterior)["weight"][:, :3], posterior.mean().slope)
    assert family.n_parameters(HALVES) == 3 * (3 + 1 + 1)
    assert tb.LinearGaussianThroughOrigin().n_parameters(HALVES) == 3 * (3 + 1)
    assert family.row_weight(HALVES).tolist() == [20, 20, 0]
    assert family.as_parameters((2.0, 1.0, 0.5), HALVES).slope.tolist() == [2.0]
    assert isinstance(family_given_continuous_parents(family), tb.LinearGaussian)
    assert family_given_continuous_parents(tb.LinearGaussianThroughOrigin()) is None


def test_a_line_without_noise_and_groups_without_rows_in_the_likelihood():
    family = tb.LinearGaussian()
    one = family.collect(np.array([[2.0, 5.0]]))  # a single row, off and on a line
    line = LinearParameters(np.array([[1.0]]), np.array([2.0]), np.array([4.0]))
    assert family.log_likelihood(line, one)[0] == pytest.approx(stats.norm.logpdf(5.0, 4.0, 2.0))
    on = line._replace(intercept=np.array([3.0]))
    assert family.log_likelihood(on, one)[0] == pytest.approx(stats.norm.logpdf(0.0, 0.0, 2.0))
    light = family.collect(np.array([[2.0, 5.0], [3.0, 1.0]]), weight=np.array([0.25, 0.5]))
    expected = 0.25 * stats.norm.logpdf(5.0, 4.0, 2.0) + 0.5 * stats.norm.logpdf(1.0, 5.0, 2.0)
    assert family.log_likelihood(line, light)[0] == pytest.approx(expected)
    found = family.maximum_likelihood(light)  # less than a row is enough of a group
    assert found.slope[0, 0] == pytest.approx(-4.0)
    assert np.isnan(family.maximum_likelihood(family.collect(np.zeros((0, 2)))).variance).all()
