"""Regression: what it learns, adds, takes out and answers, against scikit-learn and closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

import tallybayes as tb

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3)) * [1.0, 5.0, 0.2]
Y = X @ [1.0, -0.5, 2.0] + 3 + RNG.normal(size=N)
LABELS = RNG.choice(["u", "v", "w"], N)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": LABELS, "y": Y + 2.0 * (LABELS == "v"), "z": X[:, 0] ** 2})


def agree(first, second, tolerance=1e-10):
    assert first.tally_.isclose(second.tally_, tolerance)
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-8, atol=1e-10)


def test_least_squares_ridge_and_polynomials_are_scikit_learns():
    model = tb.LinearRegression(estimate="mle").fit(X, Y)
    other = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-10)
    assert model.score(X, Y) == pytest.approx(other.score(X, Y), rel=1e-10)
    design = PolynomialFeatures(3, include_bias=False).fit(X)
    cubic = tb.LinearRegression(3, estimate="map", prior=2.5).fit(X, Y)
    ridge = Ridge(2.5).fit(design.transform(X), Y)
    np.testing.assert_allclose(cubic.coef_, ridge.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(cubic.predict(X), ridge.predict(design.transform(X)), rtol=1e-8)
    lower = cubic.reestimate(degree=2)
    np.testing.assert_allclose(
        lower.coef_, tb.LinearRegression(2, estimate="map", prior=2.5).fit(X, Y).coef_, rtol=1e-10
    )
    with pytest.raises(tb.EstimateError, match="counted up to degree 3"):
        _ = cubic.reestimate(degree=4).coef_


def test_terms_are_named_as_polynomial_features_names_them():
    rows = FRAME[["a", "b"]]
    expected = PolynomialFeatures(3, include_bias=False).fit(rows).get_feature_names_out()
    assert tb.LinearRegression(3).fit(rows, Y).terms_ == expected.tolist()


def test_labels_are_indicators_told_from_the_first():
    model = tb.LinearRegression(estimate="mle").fit(FRAME[["a", "c"]], FRAME["y"])
    assert model.terms_ == ["a", "c=v", "c=w"]
    hot = OneHotEncoder(drop="first", sparse_output=False).fit_transform(FRAME[["c"]])
    other = LinearRegression().fit(np.c_[FRAME["a"], hot], FRAME["y"])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-9)
    declared = tb.LinearRegression(estimate="mle", levels={"c": ("w", "u", "v")}).fit(FRAME[["a", "c"]], FRAME["y"])
    assert declared.terms_ == ["a", "c=u", "c=v"]
    np.testing.assert_allclose(declared.predict(FRAME[["a", "c"]]), model.predict(FRAME[["a", "c"]]), rtol=1e-9)
    origin = tb.LinearRegression(estimate="mle", intercept=False).fit(FRAME[["a", "c"]], FRAME["y"])
    assert origin.terms_ == ["a", "c=u", "c=v", "c=w"]
    np.testing.assert_allclose(origin.predict(FRAME[["a", "c"]]), model.predict(FRAME[["a", "c"]]), rtol=1e-9)
    with pytest.raises(tb.LabelError, match="'q'"):
        model.predict({"a": [1.0], "c": ["q"]})
    with pytest.raises(tb.LabelError, match="'z'"):
        declared.partial_fit({"a": [1.0], "c": ["z"]}, [1.0])
    months = {"month": [1, 2, 3, 1], "y": [1.0, 5, 2, 2]}
    as_labels = tb.LinearRegression(estimate="mle", levels={"month": None}).fit(months, "y")
    assert as_labels.predict({"month": [1, 2, 3]}) == pytest.approx([1.5, 5.0, 2.0])


def test_a_label_that_comes_later_grows_the_tally_and_goes_with_its_rows():
    rows = FRAME[["a", "c", "y"]]
    late = rows["c"] == "u"  # the first in order, from which others are told
    whole = tb.LinearRegression().fit(rows, "y")
    parts = tb.LinearRegression().fit(rows[~late], "y")
    before = tb.LinearRegression().fit(rows[~late], "y")
    agree(parts.partial_fit(rows[late], "y"), whole)
    agree(tb.LinearRegression().fit(rows[late], "y") + before, whole)
    agree(parts.forget(rows[late], "y"), before)


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes", "unbiased"])
def test_any_split_weights_and_forgetting(estimate):
    rows = FRAME[["a", "b", "c"]]
    weight = RNG.integers(0, 4, N)
    whole = tb.LinearRegression(2, estimate=estimate).fit(rows, Y)
    parts = tb.LinearRegression(2, estimate=estimate).fit(rows[:7], Y[:7])
    for start in (7, 20, 41):
        stop = {7: 20, 20: 41, 41: N}[start]
        parts.partial_fit(rows[start:stop], Y[start:stop])
    agree(parts, whole)
    agree(tb.LinearRegression(2, estimate=estimate).fit(rows[::-1], Y[::-1]), whole)
    half = tb.LinearRegression(2, estimate=estimate).fit(rows[:30], Y[:30])
    agree(half + tb.LinearRegression(2, estimate=estimate).fit(rows[30:], Y[30:]), whole)
    agree(parts.forget(rows[30:], Y[30:]), half)
    repeated = np.repeat(np.arange(N), weight)
    agree(
        tb.LinearRegression(2, estimate=estimate).fit(rows, Y, weight),
        tb.LinearRegression(2, estimate=estimate).fit(rows.iloc[repeated], Y[repeated]),
    )
    with pytest.raises(tb.TallybayesError):
        half.forget(rows[30:], Y[30:])


def test_several_targets_are_each_as_alone_and_missing_ones_are_skipped_alone():
    both = tb.LinearRegression().fit(X, np.c_[Y, Y**2])
    for place, target in enumerate([Y, Y**2]):
        alone = tb.LinearRegression().fit(X, target)
        assert np.array_equal(both.coef_[place], alone.coef_)
        assert np.array_equal(both.predict(X)[:, place], alone.predict(X))
    holes = np.c_[Y, Y**2]
    holes[::3, 1] = np.nan
    some = tb.LinearRegression().fit(X, holes)
    assert np.array_equal(some.coef_[0], both.coef_[0])
    np.testing.assert_array_equal(
        some.coef_[1], tb.LinearRegression().fit(X[holes[:, 1] > 0], Y[holes[:, 1] > 0] ** 2).coef_
    )
    agree(some.partial_fit(X[::3], np.c_[np.full(20, np.nan), Y[::3] ** 2]), both)
    named = tb.LinearRegression().fit(FRAME[["a", "b", "y", "z"]], ["y", "z"])
    assert named.predict(FRAME[["a", "b"]]).shape == (N, 2)
    assert [*named.prior_] == ["y", "z"]
    with pytest.raises(tb.DataError, match=r"has 0 complete rows .target"):
        tb.LinearRegression().fit(X, np.full(N, np.nan))


def test_a_line_for_every_group():
    rows = FRAME[["a", "b", "c", "y"]]
    model = tb.LinearRegression(estimate="map", prior=1.5, by="c").fit(rows, "y")
    assert model.coef_.shape == (3, 2)
    for code, label in enumerate("uvw"):
        own = rows[rows["c"] == label]
        ridge = Ridge(1.5).fit(own[["a", "b"]], own["y"])
        np.testing.assert_allclose(model.coef_[code], ridge.coef_, rtol=1e-9)
        np.testing.assert_allclose(model.predict(own), ridge.predict(own[["a", "b"]]), rtol=1e-9)
    bayes = model.reestimate(estimate="bayes")
    told = bayes.predictive(rows)
    own = rows[rows["c"] == "v"]
    alone = bayes.posterior_["y"]
    assert alone.location.shape == (3, 2)
    picked = bayes.predictive(own[::-1])
    np.testing.assert_array_equal(picked.scale[::-1], told.scale[(rows["c"] == "v").to_numpy()])
    late = tb.LinearRegression(estimate="map", prior=1.5, by="c").fit(rows[rows["c"] != "v"], "y")
    agree(late.partial_fit(own, "y"), model)
    with pytest.raises(tb.LabelError, match="'q'"):
        model.predict({"a": [1.0], "b": [1.0], "c": ["q"]})
    by_place = tb.LinearRegression(by=0).fit(np.c_[np.arange(N) % 2, X], Y)
    assert by_place.coef_.shape == (2, 3)


def test_the_predictive_is_student_t_and_plug_in_is_normal():
    model = tb.LinearRegression(prior=1.0).fit(X, Y)
    belief = model.posterior_["y"]
    told = model.predictive(X[:4])
    wide = np.sqrt(float(belief.scale / belief.shape) * (1 + belief.leverage(X[:4])))
    exact = stats.t(2 * float(belief.shape), model.predict(X[:4]), wide)
    np.testing.assert_allclose(told.log_prob(Y[:4]), exact.logpdf(Y[:4]), rtol=1e-10)
    np.testing.assert_allclose(told.cdf(Y[:4]), exact.cdf(Y[:4]), rtol=1e-10)
    np.testing.assert_allclose(model.predict_interval(X[:4], 0.8), exact.interval(0.8), rtol=1e-10)
    mean, deviation = model.predict(X[:4], return_std=True)
    np.testing.assert_allclose(deviation, exact.std(), rtol=1e-10)
    np.testing.assert_allclose(mean, exact.mean(), rtol=1e-10)
    draws = model.sample(X[:4], 40_000, random_state=0)
    assert np.abs(draws.mean(axis=0) - mean).max() < 6.5 * deviation.max() / 200
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.05)
    plug = model.reestimate(estimate="mle")
    assert plug.log_likelihood(X, Y) == pytest.approx(
        stats.norm(plug.predict(X), plug.noise_std_).logpdf(Y).sum(), rel=1e-10
    )
    assert plug.bic_ == pytest.approx(-2 * plug.log_likelihood(X, Y) + 5 * np.log(N), rel=1e-10)
    far = model.predict(X[:1] + 100, return_std=True)[1]
    assert far > 2 * deviation[0]  # where nothing was seen


@pytest.mark.slow
def test_intervals_cover_what_they_say():
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(150):
        x = rng.normal(size=(12, 2))
        y = x @ rng.normal(size=2) + rng.normal(size=12)
        model = tb.LinearRegression(prior=1.0).fit(x[:11], y[:11])
        low, high = model.predict_interval(x[11:], 0.8)
        inside.append(low[0] <= y[11] <= high[0])
    assert 0.8 - 4 * 0.033 < np.mean(inside) < 0.8 + 4 * 0.033


def test_the_table_of_least_squares_is_that_of_lm():
    """Closed form: σ̂²(XᵀX)⁻¹, Student's t with n − p degrees of freedom."""
    model = tb.LinearRegression(estimate="unbiased").fit(X, Y)
    design = np.c_[np.ones(N), X]
    inverse = np.linalg.inv(design.T @ design)
    weights = inverse @ design.T @ Y
    errors = np.sqrt(((Y - design @ weights) ** 2).sum() / (N - 4) * np.diag(inverse))
    found = model.coefficient_table(0.9).to_frame()
    np.testing.assert_allclose(found["weight"], weights, rtol=1e-9)
    np.testing.assert_allclose(found["error"], errors, rtol=1e-9)
    np.testing.assert_allclose(found["high"], weights + stats.t(N - 4).ppf(0.95) * errors, rtol=1e-9)
    assert found["term"].tolist() == ["intercept", 0, 1, 2]
    assert "intercept" in repr(model.coefficient_table())


def test_evidence_chooses_the_degree_and_the_decay():
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(40, 1))
    y = x[:, 0] ** 3 - x[:, 0] + rng.normal(size=40) * 0.3
    model = tb.LinearRegression(range(1, 8)).fit(x, y)
    assert model.degree_ == 3
    evidences = [model.reestimate(degree=d).log_evidence() for d in range(1, 8)]
    assert model.log_evidence() == max(evidences)
    assert model.predict(x).shape == (40,)


def test_evidence_does_not_choose_to_meet_every_row():
    """Five rows of a parabola: a polynomial of degree four may have no error, but evidence holds it back."""
    x, y = np.arange(-2.0, 3.0)[:, None], np.array([5.0, 0.0, 1.0, 1.0, 4.0])
    model = tb.LinearRegression(4).fit(x, y)
    assert ((model.predict(x) - y) ** 2).sum() > 0.1
    assert model.noise_std_ > 0.3


def test_files_copies_and_other_settings(tmp_path):
    rows = FRAME[["a", "b", "c", "y"]]
    model = tb.LinearRegression(2, estimate="map", prior=0.5, by="c", levels={}).fit(rows, "y")
    model.save(tmp_path / "model.tally")
    loaded = tb.load(tmp_path / "model.tally")
    assert np.array_equal(loaded.predict(rows), model.predict(rows))
    agree(loaded.partial_fit(rows, "y"), clone(model).fit(pd.concat([rows, rows]), "y"))
    assert model.reestimate(prior=model.prior_).predict(rows) == pytest.approx(model.predict(rows), rel=1e-12)
    model.set_params(degree=1)
    assert model.coef_.shape == (3, 2)
    with pytest.raises(tb.EstimateError, match="degree is 0"):
        model.set_params(degree=0)
    assert model.coef_.shape == (3, 2)
    assert "target" in repr(model.summary())
    assert model._repr_html_() if hasattr(model, "_repr_html_") else True


@pytest.mark.parametrize("bad", [0, -1, 1.5, "two", (), (1, 0), True, None])
def test_degrees_that_are_none(bad):
    with pytest.raises(tb.EstimateError, match="degree is"):
        tb.LinearRegression(bad).fit(X, Y)


def test_too_many_terms_are_refused_before_they_are_made():
    with pytest.raises(tb.TooLargeError, match="lower degree"):
        tb.LinearRegression(12).fit(np.ones((2, 60)), [1.0, 2.0])


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        ([[1.0], [np.inf]], [1.0, 2.0], "contains infinity"),
        ([[1.0], [2.0]], [1.0, np.inf], "'y' is inf in row 1"),
        ([[1.0], [2.0]], None, "requires y"),
        ([[1.0], [2.0]], [1.0], "y: 1"),
        (np.zeros((0, 2)), [], "0 rows"),
        ([[1.0], [2.0]], np.array(["a", "b"]), "numbers"),
    ],
)
def test_rows_that_cannot_be_learned_from(x, y, match):
    with pytest.raises(tb.DataError, match=match):
        tb.LinearRegression().fit(x, y)


def test_one_row_constants_whole_numbers_and_zero_weights():
    one = tb.LinearRegression(estimate="mle").fit([[2.0]], [5.0])
    assert one.predict([[7.0]]) == pytest.approx([5.0])
    assert tb.LinearRegression().fit([[2.0]], [5.0]).predict([[2.0]]) == pytest.approx([5.0])
    flat = tb.LinearRegression().fit(np.c_[X, np.full(N, 7.0)], Y)
    np.testing.assert_allclose(
        flat.predict(np.c_[X, np.full(N, 7.0)]), tb.LinearRegression().fit(X, Y).predict(X), rtol=1e-6
    )
    whole = tb.LinearRegression(estimate="mle").fit(np.array([[1], [2], [3]]), np.array([2, 4, 6]))
    assert whole.predict(np.array([[10]])) == pytest.approx([20.0])
    weight = np.r_[np.ones(N - 5), np.zeros(5)]
    agree(tb.LinearRegression().fit(X, Y, weight), tb.LinearRegression().fit(X[:-5], Y[:-5]))
    with pytest.raises(tb.DataError, match="positive weight"):
        tb.LinearRegression().fit(X, Y, np.zeros(N))
    halves = tb.LinearRegression(estimate="mle").fit(X, Y, np.full(N, 0.5))
    np.testing.assert_allclose(halves.coef_, LinearRegression().fit(X, Y).coef_, rtol=1e-9)


@pytest.mark.parametrize("estimate", ["mle", "bayes"])
def test_far_from_zero_and_nearly_collinear(estimate):
    near, far = tb.LinearRegression(estimate=estimate).fit(X, Y), tb.LinearRegression(estimate=estimate)
    shifted = X + 2.0**30
    far.fit(shifted, Y)
    np.testing.assert_allclose(
        far.coef_, tb.LinearRegression(estimate=estimate).fit(shifted - 2.0**30, Y).coef_, rtol=1e-8
    )
    assert far.noise_std_ == pytest.approx(near.noise_std_, rel=1e-5)
    twins = np.c_[X[:, 0], X[:, 0] + 1e-6 * X[:, 1]]
    model = tb.LinearRegression(estimate="mle").fit(twins, Y)
    centered, center = twins - twins.mean(axis=0), Y - Y.mean()
    exact = np.linalg.lstsq(centered, center, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact, rtol=1e-8)


def test_more_columns_than_rows():
    wide = np.random.default_rng(2).normal(size=(10, 30))
    y = wide[:, 0] * 3
    model = tb.LinearRegression().fit(wide, y)
    assert np.isfinite(model.predict(wide)).all()
    shortest = tb.LinearRegression(estimate="mle").fit(wide, y)
    np.testing.assert_allclose(shortest.coef_, LinearRegression().fit(wide, y).coef_, atol=1e-8)
    with pytest.raises(tb.PriorError, match="improper"):
        shortest.coefficient_table()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "dicts", "mapping", "lists"])
def test_any_table(kind):
    import polars as pl
    import pyarrow as pa

    rows = FRAME[["a", "c", "y"]]
    expected = tb.LinearRegression().fit({name: rows[name].to_numpy() for name in rows}, "y")
    if kind == "lists":
        model = tb.LinearRegression(levels={1: None}).fit(rows[["a", "c"]].values.tolist(), rows["y"].tolist())
        np.testing.assert_allclose(model.coef_, expected.coef_)
        return
    table = {
        "pandas": rows,
        "polars": pl.from_pandas(rows),
        "pyarrow": pa.Table.from_pandas(rows),
        "dicts": rows.to_dict("records"),
        "mapping": rows.to_dict("list"),
    }[kind]
    agree(tb.LinearRegression().fit(table, "y"), expected)
    np.testing.assert_allclose(tb.LinearRegression().fit(table, "y").predict(table), expected.predict(rows), rtol=1e-10)


def test_series_target_keeps_its_name(tmp_path):
    rows, price = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0]}), pd.Series([1.1, 1.9, 3.2, 3.9], name="price")
    model = tb.LinearRegression().fit(rows, price)
    assert model.tally_.factors[0].columns == ("size", "price")
    assert "price = " in repr(model)
    assert model.predict(rows.assign(price=0.0)).tolist() == model.predict(rows).tolist()
    model.save(tmp_path / "line.tally")
    assert tb.load(tmp_path / "line.tally").tally_ == model.tally_
    unnamed = tb.LinearRegression().fit(rows, price.to_numpy())
    assert unnamed.tally_.factors[0].columns == ("size", "y")
    for both in (model + unnamed, unnamed + model):
        assert both.tally_.factors[0].columns == ("size", "price")
        assert both.n_rows_ == 8
        assert both.predict(rows).tolist() == (model + model).predict(rows).tolist()
    with pytest.warns(UserWarning, match="column 'price' of X equals y"):
        assert tb.LinearRegression().fit(rows.assign(price=price), price).predict(rows.assign(price=price)).shape == (
            4,
        )
    with pytest.raises(tb.StatisticsError, match="factors"):
        model + tb.LinearRegression().fit(rows, price.rename("cost"))


@pytest.mark.parametrize("weighted", [False, True])
def test_importance_is_the_loss_of_the_regression_on_the_other_columns(weighted):
    rows, y = FRAME[["a", "b", "c"]], FRAME["y"]
    weight = np.arange(N) % 3 if weighted else None
    model = tb.LinearRegression().fit(rows[:40], y[:40])
    held, target = rows[40:], y[40:]
    weights = None if weight is None else weight[40:]
    found = model.feature_importance(held, target, sample_weight=weights)
    assert found.log_loss == pytest.approx(-np.average(model.log_prob(held, target), weights=weights))
    for name, increase in zip(found.columns, found.increase, strict=True):
        other = (
            tb.LinearRegression().fit(rows[:40].drop(columns=name), y[:40]).log_prob(held.drop(columns=name), target)
        )
        assert increase == pytest.approx(np.average(model.log_prob(held, target) - other, weights=weights), abs=1e-9)
    assert model.feature_importance(held.assign(y=target), "y", columns=["b"]).columns == ["b"]
    with pytest.raises(tb.DataError, match="no column 'z'"):
        model.feature_importance(held, target, columns=["z"])
