"""Predictions of trees: held-out rows, explanations, columns of all types, and edge cases."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import log_loss

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, StatisticsError
from tests.unit.models.forest.whole.test_exact_counts import KINDS, every_kind, table

FULL = {"forest": lambda: tb.CountForest(n_trees=60), "boosting": lambda: tb.CountBoosting(max_trees=60)}


@pytest.mark.parametrize("kind", FULL)
def test_held_out_predictions_are_as_good_as_those_of_new_rows(kind):
    X, y = make_classification(3000, 8, n_informative=5, n_classes=3, random_state=0)
    model = FULL[kind]().fit(X[:1500], y[:1500])
    held_out = log_loss(y[:1500], model.held_out_proba(X[:1500], y[:1500]))
    new = log_loss(y[1500:], model.predict_proba(X[1500:]))
    assert held_out == pytest.approx(new, abs=0.05)
    assert log_loss(y[:1500], model.predict_proba(X[:1500])) < held_out - 0.05
    assert new < 0.55


@pytest.mark.parametrize("kind", FULL)
def test_iris(kind):
    X, y = load_iris(return_X_y=True)
    model = FULL[kind]().fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.92
    assert log_loss(y[1::2], model.predict_proba(X[1::2])) < 0.25


@every_kind
def test_contributions_sum_to_the_log_odds(kind):
    X, y = table(0, 300)
    model = KINDS[kind]().fit(X, y)
    explained = model.explain(X)
    assert explained.columns == ["(class prior)", "x", "z", "r", "(calibration)"]
    np.testing.assert_allclose(explained.contributions.sum(axis=1), explained.log_odds, atol=1e-6)
    logs = model.predict_log_proba(X)
    top = np.sort(logs, axis=1)
    np.testing.assert_allclose(explained.log_odds, top[:, -1] - top[:, -2], atol=1e-12)
    against = model.explain(X, "b")
    assert set(against.against[against.classes != "b"]) == {"b"}
    strength = np.abs(explained.contributions).mean(axis=0)
    assert strength[1] > strength[3]  # the classes depend on x, and not on r
    assert explained.values[0][2] in (*"uvw", None)


@every_kind
def test_unseen_levels_and_missing_cells(kind):
    X, y = table(1, 300)
    model = KINDS[kind]().fit(X, y)
    rows = {"x": [np.nan, 2.0, np.nan], "z": ["new", "other", None], "r": [np.nan] * 3}
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    alone = model.predict_proba({"x": [2.0], "z": ["anything"], "r": [np.nan]})
    np.testing.assert_array_equal(proba[1:2], alone)


@every_kind
def test_informative_missing_cells_are_branches(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    for column in (np.where(y == 1, np.nan, rng.normal(size=400)), np.where(y == 1, None, "u").astype(object)):
        model = KINDS[kind]().fit({"x": column}, y)
        assert model.score({"x": column}, y) == 1.0


@every_kind
def test_small_tables(kind):
    one = KINDS[kind]().fit([[1.0, 2.0]], ["a"])
    np.testing.assert_array_equal(one.predict_proba([[1.0, np.nan]]), [[1.0]])
    assert one.dropped_columns_ == {0: "constant", 1: "constant"}
    same = KINDS[kind]().fit(np.random.default_rng(0).normal(size=(40, 2)), ["a"] * 40)
    np.testing.assert_array_equal(same.predict_proba([[1.0, np.nan]]), [[1.0]])
    two = KINDS[kind]().fit([[1.0], [2.0]], ["a", "b"])
    np.testing.assert_allclose(two.predict_proba([[1.0], [9.0]]).sum(axis=1), 1)
    assert one.explain([[1.0, 2.0]]).log_odds.tolist() == [0.0]


@every_kind
def test_constant_and_missing_columns_are_dropped(kind):
    X, y = table(2, 100)
    X |= {"constant": np.ones(100), "missing": np.full(100, np.nan), "label": np.array(["k"] * 100, object)}
    X["rare"] = np.array([f"id{k}" for k in range(100)], object)
    model = KINDS[kind]().fit(X, y)
    assert set(model.dropped_columns_) == {"constant", "missing", "label", "rare"}
    plain = table(2, 100)[0]
    np.testing.assert_array_equal(model.predict_proba(X), KINDS[kind]().fit(plain, y).predict_proba(plain))


@every_kind
def test_weights_are_repetitions_in_the_counts(kind):
    X, y = table(3, 80)
    weight = np.random.default_rng(0).integers(0, 3, 80)
    model = KINDS[kind]().fit(X, y)
    repeated = {name: np.repeat(column, weight) for name, column in X.items()}
    one = model.without_rows().partial_fit(X, y, sample_weight=weight)
    two = model.without_rows().partial_fit(repeated, np.repeat(y, weight))
    assert one.counts_ == two.counts_
    grown = KINDS[kind]().fit(X, y, sample_weight=weight)
    assert grown.counts_ == KINDS[kind]().fit(repeated, np.repeat(y, weight)).counts_
    assert model.without_rows().partial_fit(X, y, sample_weight=np.full(80, 0.25)).n_rows_ == 20.0
    fractions = KINDS[kind]().fit(X, y, sample_weight=np.full(80, 0.3))
    assert fractions.n_rows_ == pytest.approx(24, abs=1e-3)


@every_kind
def test_many_columns(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2000))
    y = (X[:, 7] > 0).astype(int)
    model = KINDS[kind]().fit(X, y)
    assert model.predict_proba(X).shape == (60, 2)
    assert model.explain(X[:1]).contributions.shape == (1, 2002)


@every_kind
def test_what_is_invalid_raises(kind):
    X, y = np.ones((3, 2)), ["a", "b", "a"]
    X[1, 0] = 2.0
    model = KINDS[kind]()
    for bad in (np.inf, -np.inf):
        rows = X.copy()
        rows[2, 1] = bad
        with pytest.raises((DataError, ValueError), match="inf"):
            model.fit(rows, y)
        with pytest.raises((DataError, ValueError), match="inf"):
            KINDS[kind]().fit(np.arange(6.0).reshape(3, 2), y).predict(rows)
    with pytest.raises(DataError, match="0 rows"):
        model.fit(np.zeros((0, 2)), [])
    with pytest.raises(DataError, match="zero for every row"):
        model.fit(X, y, sample_weight=[0, 0, 0])
    with pytest.raises(LabelError, match="missing"):
        model.fit(X, ["a", None, "b"])
    with pytest.raises(DataError, match="one dense column"):
        model.fit({"block": np.ones((3, 2))}, y)
    emptied = model.fit(X, y).without_rows()
    with pytest.raises(DataError, match="no rows and no classes"):
        emptied.predict(X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (tb.CountForest(n_trees=1), "n_trees is 1"),
        (tb.CountForest(n_trees=2.5), "n_trees is 2.5"),
        (tb.CountForest(splits="all"), "splits"),
        (tb.CountForest(min_leaf=0), "min_leaf is 0"),
        (tb.CountForest(strength=0), "strength is 0"),
        (tb.CountForest(strength="much"), "strength is 'much'"),
        (tb.CountForest(random_state=-1), "random_state is -1"),
        (tb.CountBoosting(max_trees=0), "max_trees is 0"),
        (tb.CountBoosting(rate=1.5), "rate is 1.5"),
        (tb.CountBoosting(columns_tried=0), "columns_tried is 0"),
        (tb.CountBoosting(strength="a"), "strength is 'a'"),
    ],
)
def test_parameters_are_checked(model, message):
    with pytest.raises((DataError, ValueError), match=message):
        model.fit([[1.0], [2.0]], [0, 1])


@every_kind
def test_held_out_predictions_of_rows_without_weight_are_nan(kind):
    X, y = table(4, 50)
    model = KINDS[kind]().fit(X, y)
    proba = model.held_out_proba(X, y, sample_weight=[0.0] * 10 + [1.0] * 40)
    assert np.isnan(proba[:10]).all()
    known = ~np.isnan(proba).any(axis=1)
    assert known.any()
    np.testing.assert_allclose(proba[known].sum(axis=1), 1)


@every_kind
def test_files_keep_every_bit(kind, tmp_path):
    X, y = table(5, 200)
    for weight in (None, np.random.default_rng(0).random(200)):
        model = KINDS[kind]().fit(X, y, sample_weight=weight)
        model.save(tmp_path / "model.tally")
        loaded = tb.load(tmp_path / "model.tally")
        assert loaded.counts_ == model.counts_
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert (loaded + model.without_rows()).counts_ == model.counts_
        assert loaded.forget(X, y, sample_weight=weight).n_rows_ == 0
    with pytest.raises(StatisticsError):
        loaded.forget(X, y)


@every_kind
def test_evaluation_and_cross_validation(kind):
    X, y = table(6, 120)
    model = KINDS[kind]().fit(X, y)
    accuracy = model.score(X, y)
    assert tb.evaluate(model, X, y).accuracy.value == pytest.approx(accuracy)
    held_out = tb.cross_validate(KINDS[kind](), X, y, folds=3)
    assert 0.4 < held_out.accuracy.value < accuracy + 0.05


def test_numeric_columns_have_at_most_254_bins():
    X, y = load_breast_cancer(return_X_y=True)
    columns = tb.CountForest(3).fit(X[::2], y[::2]).structure_.columns  # quantiles of one column need a few bins more
    assert max(map(len, columns.edges)) == 253
    assert columns.check() is columns
