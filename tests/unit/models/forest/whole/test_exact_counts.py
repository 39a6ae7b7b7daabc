"""Counts of trees add, subtract and merge exactly, in any order."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import LabelError, StatisticsError
from tallybayes.models.forest import grown_chains, grown_forest
from tests.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore:the trees were grown from")
KINDS = {
    "forest": lambda: tb.CountForest(n_trees=6, min_leaf=2, strength=0.5),
    "boosting": lambda: tb.CountBoosting(max_trees=8, max_depth=3),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def table(seed, n, labels=("a", "b", "c")):
    """Numbers with missing cells and repeated rows, a categorical column, and classes that depend on both."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, n).astype(float)
    z = rng.choice(["u", "v", "w"], n).astype(object)
    y = np.array(list(labels))[((x + 2 * (z == "u")) // 2 + (rng.random(n) < 0.15)).astype(int) % len(labels)]
    x[rng.random(n) < 0.1] = np.nan
    z[rng.random(n) < 0.1] = None
    return {"x": x, "z": z, "r": rng.normal(size=n)}, y


def part(rows, some):
    X, y = rows
    return {name: column[some] for name, column in X.items()}, y[some]


def assert_equal(one, other):
    assert one.counts_ == other.counts_
    X = table(99, 20)[0]
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@every_kind
def test_trees_of_many_rows_are_grown_from_a_sample_and_count_all(kind, monkeypatch):
    rows = table(5, 200)
    whole = KINDS[kind]().fit(*rows)
    monkeypatch.setattr(grown_forest, "_MOST_IN_BAG", 40)
    monkeypatch.setattr(grown_chains, "_MOST_SEARCHED", 40)
    model = KINDS[kind]().fit(*rows)
    assert model.structure_.digest != whole.structure_.digest
    assert model.n_rows_ == 200
    assert_equal(model, model.without_rows().partial_fit(*rows))
    assert np.isfinite(model.held_out_proba(*rows)).mean() > 0.7  # of 63 % of the rows: 0.22 in a forest of six trees


@every_kind
@examples(30)
@given(seed=st.integers(0, 2**16), cut=st.integers(1, 39), weights=st.sampled_from(["none", "whole", "fractions"]))
def test_adding_and_forgetting_in_any_order_is_exact(kind, seed, cut, weights):
    rng = np.random.default_rng(seed)
    first, more = table(seed, 60), table(seed + 1, 40, "abcd"[: 3 + seed % 2])
    w = {"none": None, "whole": rng.integers(0, 4, 40) * 1.0, "fractions": rng.random(40)}[weights]
    model = KINDS[kind]().fit(*first)
    before = model.without_rows().partial_fit(*first)
    assert_equal(model, before)
    order = rng.permutation(40)
    left, right = order[:cut], order[cut:]
    one = pickle.loads(pickle.dumps(model)).partial_fit(*more, sample_weight=w)
    two = pickle.loads(pickle.dumps(model))
    for some in (right, left):
        two.partial_fit(*part(more, some), sample_weight=None if w is None else w[some])
    assert_equal(one, two)
    shard = model.without_rows().partial_fit(*more, sample_weight=w)
    assert_equal(model + shard, one)
    assert_equal(shard + model, one)
    for some in (left, right):
        one.forget(*part(more, some), sample_weight=None if w is None else w[some])
    assert_equal(one, before)
    emptied = model.forget(*first).counts_
    assert not any(sums.any() for sums in (*emptied.sums, emptied.class_weight))
    assert emptied == model.without_rows().counts_


@every_kind
def test_the_order_of_the_training_rows_changes_nothing(kind):
    X, y = table(3, 200)
    order = np.random.default_rng(0).permutation(200)
    one, two = KINDS[kind]().fit(X, y), KINDS[kind]().fit(*part((X, y), order))
    assert one.structure_.digest == two.structure_.digest
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)
    zero = np.append(np.ones(200), np.zeros(30))
    more = table(4, 30)
    both = {name: np.concatenate([X[name], more[0][name]]) for name in X}, np.concatenate([y, more[1]])
    assert_equal(one, KINDS[kind]().fit(*both, sample_weight=zero))


@every_kind
def test_threads_change_no_bit(kind):
    X, y = table(5, 2000)
    try:
        tb.set_threads(1)
        one = KINDS[kind]().fit(X, y)
        tb.set_threads(4)
        assert_equal(one, KINDS[kind]().fit(X, y))
    finally:
        tb.set_threads(0)


@every_kind
def test_counts_of_other_trees_are_rejected(kind):
    X, y = table(6, 80)
    model, other = KINDS[kind]().fit(X, y), KINDS[kind]().fit(*table(7, 80))
    for combine in (
        lambda: model + other,
        lambda: model.counts_ + other.counts_,
        lambda: model.counts_ - other.counts_,
    ):
        with pytest.raises(StatisticsError, match=r"without_rows\(\).partial_fit"):
            combine()
    assert_equal(sum([model, model.without_rows()]), model)
    assert_equal(clone(model).fit(X, y), model)


@every_kind
def test_rows_that_were_not_counted_are_not_forgotten(kind):
    X, y = table(8, 60)
    model = KINDS[kind]().fit(X, y)
    before = model.counts_
    with pytest.raises(StatisticsError, match=r"class 'a' would have weight -.*\n.*Nothing was changed"):
        model.forget(X, np.full(60, "a"))
    with pytest.raises(StatisticsError, match="class 'new' would have weight -1"):
        model.forget(part((X, y), [0])[0], ["new"])
    with pytest.raises(StatisticsError, match="negative count"):
        model.forget(X | {"x": X["x"][::-1], "z": X["z"][::-1]}, y)
    assert model.counts_ == before


@every_kind
def test_classes_that_come_later_and_go(kind):
    X, y = table(9, 120, "ac")
    model = KINDS[kind]().fit(X, y)
    before = model.predict_proba(X)
    late = {"x": np.full(30, 9.0), "z": np.array(["u"] * 30, object), "r": np.full(30, 5.0)}
    model.add_class("b", late)
    assert model.classes_.tolist() == ["a", "b", "c"]
    proba = model.predict_proba(late)
    assert proba.shape == (30, 3)
    assert proba[:, 1].mean() > 0.3
    assert proba[:, 1].mean() > model.predict_proba(X)[:, 1].mean()
    with pytest.raises(LabelError, match="exists already"):
        model.add_class("b", late)
    with pytest.raises(StatisticsError, match="regrow"):
        model.held_out_proba(X, y)
    model.forget(late, ["b"] * 30)
    assert model.classes_.tolist() == ["a", "c"]
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.partial_fit(late, ["a"] * 30, classes=["d"])
    assert model.classes_.tolist() == ["a", "c", "d"]
    assert model.forget(*part((X, y), y == "c")).classes_.tolist() == ["a", "d"]


def test_a_class_is_dropped_from_a_forest():
    X, y = table(10, 90)
    model = KINDS["forest"]().fit(X, y)
    expected = KINDS["forest"]().fit(X, y).forget(*part((X, y), y == "b"))
    assert_equal(model.drop_class("b"), expected)
    with pytest.raises(LabelError):
        model.drop_class("b")
    with pytest.raises(AttributeError, match=r"cannot drop a class without its rows(.|\n)*forget"):
        KINDS["boosting"]().fit(X, y).drop_class("b")


@every_kind
def test_twice_the_rows_suggest_to_grow_again(kind):
    X, y = table(11, 60)
    model = KINDS[kind]().fit(X, y).partial_fit(*part((X, y), slice(0, 50)))
    model.predict(X)
    model.partial_fit(*part((X, y), slice(50, 60)))
    assert model.n_rows_ == 120
    with pytest.warns(UserWarning, match="twice as many are counted"):
        model.predict(X)
    assert_equal(model.regrow(X, y), KINDS[kind]().fit(X, y))
