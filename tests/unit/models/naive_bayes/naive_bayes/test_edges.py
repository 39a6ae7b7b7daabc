"""Extreme, empty, constant and impossible rows: a clear answer, never NaN."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError

ESTIMATES = ["mle", "unbiased", "map", "bayes"]


def flowers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + y[:, None] * [1.0, 0.5, -0.5, 0.0], y


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.TiedGaussian(), tb.MultivariateGaussian()], ids=repr)
def test_scale_and_offset_of_a_column_change_no_prediction(family, estimate):
    X, y = flowers()
    expected = tb.NaiveBayes(family, estimate=estimate).fit(X, y).predict_proba(X)
    stretched = X * [1e-3, 1e6, 1.0, 7.0]
    np.testing.assert_allclose(
        tb.NaiveBayes(family, estimate=estimate).fit(stretched, y).predict_proba(stretched), expected, rtol=1e-9
    )
    grid = np.round(X * 2.0**20) / 2.0**20  # on a grid where adding 1e9 loses nothing
    expected = tb.NaiveBayes(family, estimate=estimate).fit(grid, y).predict_proba(grid)
    offset = np.array([1e9, -1e9, 0.0, 1e9])
    moved = grid + offset
    assert (moved - offset == grid).all()
    found = tb.NaiveBayes(family, estimate=estimate).fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_sixty_between_two_normals_has_log_odds_175_5():
    # ½·60² − ½·57² = 175.5
    rows, y = [[-1.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1]  # means 0 and 3, variances 1
    for family in (tb.Gaussian(), tb.TiedGaussian()):
        model = tb.NaiveBayes(family, estimate="mle").fit(rows, y)
        odds = np.diff(model.predict_log_proba([[60.0]])).item()
        assert odds == pytest.approx(175.5, abs=1e-11)
        assert model.explain([[60.0]]).log_odds[0] == pytest.approx(175.5, abs=1e-11)
        assert model.predict_proba([[60.0]]).tolist() == [[pytest.approx(np.exp(-175.5), rel=1e-9), 1.0]]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ESTIMATES)
def test_two_thousand_columns(estimate):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2000)), np.arange(60) % 3
    model = tb.NaiveBayes(estimate=estimate).fit(X, y)
    far = np.concatenate([X, X * 100])
    log_proba = model.predict_log_proba(far)
    assert np.isfinite(log_proba).all()
    assert np.isfinite(model.predict_joint_log_proba(far)).all()
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0, rtol=1e-12)
    if estimate == "mle":
        parts = [stats.norm.logpdf(X, X[y == k].mean(axis=0), X[y == k].std(axis=0)).sum(axis=1) for k in range(3)]
        np.testing.assert_allclose(model.predict_joint_log_proba(X), np.transpose(parts) + np.log(1 / 3), rtol=1e-11)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_one_class(estimate):
    model = tb.NaiveBayes(estimate=estimate).fit([[0.0], [1.0], [4.0]], ["only"] * 3)
    assert model.predict_proba([[2.0], [np.nan], [1e6]]).tolist() == [[1.0]] * 3
    assert model.predict([[2.0]]).tolist() == ["only"]
    assert model.explain([[2.0]]).log_odds.tolist() == [0.0]


def test_one_row_per_class():
    X, y = [[0.0, 1.0], [4.0, 0.0]], ["a", "b"]
    for estimate in ("bayes", "map"):
        model = tb.NaiveBayes(estimate=estimate).fit(X, y)
        assert model.predict(X).tolist() == y
        np.testing.assert_allclose(model.predict_proba([[2.0, 0.5]]), [[0.5, 0.5]], rtol=1e-12)
    for estimate in ("mle", "unbiased"):
        with pytest.raises(EstimateError, match=r"variance of column 0 in class 'a'"):
            tb.NaiveBayes(estimate=estimate).fit(X, y).predict(X)


@pytest.mark.parametrize(
    "family", [tb.Gaussian(), tb.TiedGaussian(), tb.SphericalGaussian(), tb.MultivariateGaussian()], ids=repr
)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_a_constant_column_adds_nothing(family, estimate):
    X, y = flowers()
    wide = np.insert(X, 2, 0.1, axis=1)
    model = tb.NaiveBayes(family, estimate=estimate).fit(wide, y)
    assert model.constant_columns_ == [2]
    other = wide.copy()
    other[:, 2] = 1e9
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(wide))
    if type(family) in (tb.Gaussian, tb.TiedGaussian):  # elsewhere the number of columns plays a part in the prior
        without = tb.NaiveBayes(family, estimate=estimate).fit(X, y)
        assert without.constant_columns_ == []
        np.testing.assert_allclose(model.predict_joint_log_proba(wide), without.predict_joint_log_proba(X), rtol=1e-9)
    assert set(model.prior_) == {(0, 1, 2, 3, 4)}
    assert (model.explain(wide).contributions[:, 3] == 0).all()
    assert (model.sample(5, random_state=0)[0][:, 2] == 0.1).all()


def test_a_constant_column_has_no_maximum_likelihood():
    X, y = flowers()
    X[:, 1] = 3.0
    with pytest.raises(EstimateError, match=r"variance of column 1 in class 0 is 0"):
        tb.NaiveBayes(estimate="mle").fit(X, y).predict(X)
    X[:, 1] = np.where(y == 1, 3.0, np.arange(60))
    with pytest.raises(EstimateError, match=r"variance of column 1 in class 1 is 0"):
        tb.NaiveBayes(estimate="mle").fit(X, y).predict(X)


def test_a_prior_of_one_s_own_makes_a_constant_column_count():
    model = tb.NaiveBayes(prior=tb.NormalInverseGamma(0, 1, 2, 1)).fit([[3.0], [3.0]], [0, 1])
    assert model.constant_columns_ == []
    # κ 2, m 1.5, a 2.5, b 1 + ½·½·9; t with 5 degrees of freedom
    scale = np.sqrt((1 + 0.5 * 0.5 * 9) / 2.5 * 1.5)
    assert model.score_samples([[4.0]])[0] == pytest.approx(stats.t.logpdf(4.0, 5, 1.5, scale), rel=1e-13)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_all_cells_missing_gives_the_class_prior(estimate):
    frame = pd.DataFrame({"n": [1.0, 2.0, 3.0, 5.0, 2.5], "c": list("ababa"), "k": [1, 2, 3, 4, 2]})
    columns = {"n": tb.Gaussian(), "c": tb.Categorical(), "k": tb.Poisson()}
    model = tb.NaiveBayes(columns, estimate=estimate).fit(frame, [0, 0, 0, 1, 1])
    empty = {"n": [None], "c": [None], "k": [None]}
    shares = [0.6, 0.4] if estimate in ("mle", "unbiased") else [4 / 7, 3 / 7]
    np.testing.assert_allclose(model.predict_proba(empty), [shares], rtol=1e-14)
    assert model.score_samples(empty).tolist() == [pytest.approx(0.0, abs=1e-15)]
    np.testing.assert_allclose(model.predict_proba(empty, class_prior={0: 0.1, 1: 0.9}), [[0.1, 0.9]], rtol=1e-14)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_a_missing_cell_is_left_out_at_fitting_and_at_prediction(estimate):
    X, y = flowers()
    holes = X.copy()
    holes[::3, 1] = np.nan
    model = tb.NaiveBayes(estimate=estimate).fit(holes, y)
    each = [tb.NaiveBayes({j: tb.Gaussian()}, estimate=estimate) for j in range(4)]
    kept = ~np.isnan(holes[:, 1])
    for j, single in enumerate(each):
        single.fit(X[kept] if j == 1 else X, y[kept] if j == 1 else y)
    total = model.class_log_prior_ + sum(
        np.where(np.isnan(holes[:, j, None]), 0.0, s.predict_joint_log_proba(X) - s.class_log_prior_)
        for j, s in enumerate(each)
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(holes), total, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("estimate", ["bayes", "map"])
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.Poisson(), tb.Bernoulli(), tb.Categorical()], ids=repr)
def test_a_column_unknown_in_one_class_or_in_all(family, estimate):
    some = np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0], [np.nan, 0.0]])
    for X in (some, np.where([True, False], np.nan, some)):
        proba = (
            tb.NaiveBayes({0: family, 1: tb.Bernoulli()}, estimate=estimate).fit(X, [0, 0, 1, 1]).predict_proba(some)
        )
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("family", [tb.Gaussian(), tb.Poisson(), tb.Bernoulli(), tb.Categorical()], ids=repr)
@pytest.mark.parametrize("estimate", ["mle", "unbiased"])
def test_a_column_unknown_in_one_class_has_no_point_estimate(family, estimate):
    X = [[1.0, 0.0], [0.0, 1.0], [np.nan, 1.0], [np.nan, 0.0]]
    model = tb.NaiveBayes({0: family, 1: tb.Bernoulli()}, estimate=estimate).fit(X, [0, 0, 1, 1])
    with pytest.raises(
        DataError, match=f"'{estimate}' estimate of column 0 in class 1 is undefined: nothing was counted"
    ):
        model.predict_proba(X)


FRUIT = pd.DataFrame({"color": ["green", "red", "yellow", "green"], "shape": ["round", "round", "long", "long"]})
NAMES = ["lime", "apple", "banana", "banana"]


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize("level", ["blue", "greener", "gree", "", "red ", "Green"])
def test_an_unseen_level_is_a_missing_value(level, estimate):
    model = tb.NaiveBayes(estimate=estimate).fit(FRUIT, NAMES)
    strange, missing = FRUIT.assign(color=level), FRUIT.assign(color=None)
    np.testing.assert_array_equal(model.predict_joint_log_proba(strange), model.predict_joint_log_proba(missing))


def test_an_unseen_level_can_be_one_more_level():
    model = tb.NaiveBayes(unseen="smooth", prior=1).fit(FRUIT, NAMES)
    # color: lime saw 1 row, and there are 3 levels and one unseen: (0 + 1) / (1 + 4); banana saw 2
    missing = model.predict_joint_log_proba(FRUIT.assign(color=None))
    strange = model.predict_joint_log_proba(FRUIT.assign(color="blue"))
    np.testing.assert_allclose(np.exp(strange - missing), np.tile([1 / 5, 1 / 6, 1 / 5], (4, 1)), rtol=1e-13)
    known = model.predict_joint_log_proba(FRUIT.assign(color="green"))
    np.testing.assert_allclose(np.exp(known - missing), np.tile([1 / 5, 2 / 6, 2 / 5], (4, 1)), rtol=1e-13)
    mode = model.reestimate(estimate="map", prior=tb.Dirichlet(2))  #: the same add-one numbers
    np.testing.assert_allclose(mode.predict_proba(FRUIT), model.predict_proba(FRUIT), rtol=1e-12)
    # all levels and the unseen one have probability 1 together
    colors = ["green", "red", "yellow", "blue"]
    each = [np.exp(model.predict_joint_log_proba(FRUIT.assign(color=c)) - missing) for c in colors]
    np.testing.assert_allclose(sum(each), 1.0, rtol=1e-13)


def test_an_unseen_level_can_be_an_error():
    model = tb.NaiveBayes(unseen="error").fit(FRUIT, NAMES)
    assert model.predict(FRUIT.assign(color=None)).shape == (4,)
    with pytest.raises(LabelError, match=r"level 'blue' of column 'color' was not seen.*'green', 'red', 'yellow'"):
        model.predict(FRUIT.assign(color=["red", "blue", "red", "red"]))
    with pytest.raises(EstimateError, match="'sometimes'"):
        tb.NaiveBayes(unseen="sometimes").fit(FRUIT, NAMES)


def test_unseen_numbers_are_not_their_neighbors():
    coded = np.array([[0], [1], [5], [5]], dtype=np.uint8)
    model = tb.NaiveBayes(tb.Categorical()).fit(coded, [0, 0, 1, 1])
    for strange in (2, 4, 6, 200):
        np.testing.assert_array_equal(model.predict_proba(np.array([[strange]], dtype=np.uint8)), [[0.5, 0.5]])
    np.testing.assert_array_equal(model.predict_proba([[-1]]), [[0.5, 0.5]])
    with pytest.raises(LabelError, match="int levels on one side and string levels"):
        model.predict(np.array([["5"], ["1"]], dtype=object))


def impossible_pair():
    frame = pd.DataFrame({"color": ["green", "green", "red"], "shape": ["round", "round", "long"]})
    return tb.NaiveBayes(estimate="mle").fit(frame, [0, 0, 1]), frame


def test_impossible_rows():
    model, frame = impossible_pair()
    rows = pd.DataFrame({"color": ["green", "red", "red"], "shape": ["round", "round", "long"]})
    assert model.predict_joint_log_proba(rows)[1].tolist() == [-np.inf, -np.inf]
    np.testing.assert_allclose(model.score_samples(rows), [np.log(2 / 3), -np.inf, np.log(1 / 3)], rtol=1e-15)
    assert model.predict(rows).tolist() == [0, 0, 1]
    with pytest.warns(UserWarning, match=r"row 1 \(column '(color|shape)'\) is impossible") as caught:
        proba = model.predict_proba(rows)
    assert len(caught) == 1
    np.testing.assert_allclose(proba, [[1, 0], [2 / 3, 1 / 3], [0, 1]], rtol=1e-15)
    with pytest.warns(UserWarning, match="row 1"):
        log_proba = model.predict_log_proba(rows)
    np.testing.assert_allclose(np.exp(log_proba), proba, rtol=1e-15)
    with pytest.warns(UserWarning, match="row 1"):
        np.testing.assert_allclose(
            model.predict_proba(rows, class_prior={0: 0.1, 1: 0.9}), [[1, 0], [0.1, 0.9], [0, 1]], rtol=1e-15
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows possible somewhere say nothing
        model.predict_proba(frame)
        model.reestimate(estimate="bayes").predict_proba(rows)


def test_many_impossible_rows_give_one_warning():
    model, frame = impossible_pair()
    rows = frame.assign(shape=["long", "long", "round"])
    with pytest.warns(UserWarning, match=r"row 0 .*2 more rows") as caught:
        np.testing.assert_allclose(model.predict_proba(rows), [[2 / 3, 1 / 3]] * 3, rtol=1e-14)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("family", "X", "row", "column"),
    [
        (tb.Bernoulli(), [[1, 0], [0, 1]], [1, 1], "0"),
        (tb.Multinomial(), [[2, 0], [0, 3]], [1, 1], "0"),
        (tb.Poisson(), [[2, 0], [0, 3]], [1, 1], "0"),
        (tb.Binomial(4), [[4, 0], [0, 4]], [1, 1], "0"),
    ],
    ids=repr,
)
def test_impossible_rows_of_every_family(family, X, row, column):
    model = tb.NaiveBayes(family, estimate="mle").fit(X, ["a", "b"])
    assert model.score_samples([row]).tolist() == [-np.inf]
    assert model.predict_joint_log_proba([[0, 0]]).shape == (1, 2)
    with pytest.warns(UserWarning, match=rf"row 0 \(column {column}\)"):
        assert model.predict_proba([row]).tolist() == [[0.5, 0.5]]


def test_a_row_of_no_words_is_not_impossible():
    model = tb.NaiveBayes(tb.Multinomial(), estimate="mle").fit([[2, 0], [0, 3]], ["a", "b"])
    assert model.predict_proba([[0, 0]]).tolist() == [[0.5, 0.5]]  # 0 · log 0 = 0


def test_asking_before_fitting():
    from sklearn.exceptions import NotFittedError

    model = tb.NaiveBayes()
    calls = [model.predict, model.predict_proba, model.score_samples, model.explain, model.show_work, model.impute]
    calls += [model.predict_joint_log_proba, model.predict_log_proba, model.sample, model.save, model.drop_class]
    for call in calls:
        with pytest.raises(NotFittedError):
            call([[1.0]])
    for name in ("classes_", "prior_", "constant_columns_", "class_log_prior_", "n_parameters_", "n_features_in_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.forget([[1.0]], [0])
    with pytest.raises(NotFittedError):
        model.to_linear()


@pytest.mark.parametrize("kind", [tb.NaiveBayes, tb.GaussianDiscriminant, tb.AveragedOneDependence])
def test_a_word_that_is_no_class_prior_is_refused_when_fitted(kind):
    with pytest.raises(tb.EstimateError, match="class_prior is 'freq'; expected 'uniform'"):
        kind(class_prior="freq").fit([[1.0], [2.0]], [0, 1])
