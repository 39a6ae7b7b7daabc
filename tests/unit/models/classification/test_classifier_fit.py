"""Counting adds and subtracts: any order, any split, any weights, later classes, exact forgetting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, StatisticsError, TallybayesError

NAMES = ["sky", "windy", "calls", "warmth"]
FAMILIES = {"sky": tb.Categorical(), "windy": tb.Bernoulli(), "calls": tb.Poisson(), "warmth": tb.Gaussian()}

cells = {
    "sky": st.sampled_from(["sun", "rain", "snow", "fog", None]),
    "windy": st.sampled_from([0, 1, None]),
    "calls": st.one_of(st.none(), st.integers(0, 20)),
    "warmth": st.one_of(st.none(), st.integers(-7000, 7000).map(lambda n: n / 7)),
}
rows_with_labels = st.lists(st.tuples(st.fixed_dictionaries(cells), st.sampled_from("abc")), min_size=1, max_size=24)


def table(rows):
    return {name: [row[name] for row, _ in rows] for name in NAMES}, [label for _, label in rows]


def learn(rows, **options):
    return tb.NaiveBayes(FAMILIES, **options).fit(*table(rows))


def same(first, second, tolerance=1e-9):
    """Whether two models learned the same: levels and classes exactly, counts and moments to rounding."""
    assert first.tally_.domains == second.tally_.domains
    assert first.classes_.tolist() == second.classes_.tolist()
    assert first.tally_.isclose(second.tally_, tolerance)
    return True


@given(rows_with_labels, st.data())
def test_partial_fit_in_any_order_and_split_is_fit(rows, data):
    whole = learn(rows)
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(1, max(1, len(rows) - 1)), max_size=4, unique=True)))
    parts = [shuffled[i:j] for i, j in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    by_part = tb.NaiveBayes(FAMILIES)
    for part in parts:
        if part:
            by_part.partial_fit(*table(part))
    assert same(by_part, whole)
    merged = sum(learn(part) for part in parts if part)
    assert same(merged, whole)
    assert type(merged) is tb.NaiveBayes
    np.testing.assert_allclose(
        by_part.predict_joint_log_proba(table(rows)[0]), whole.predict_joint_log_proba(table(rows)[0]), rtol=1e-7
    )


def test_a_part_of_one_class_only_with_new_levels():
    rows = [
        ({"sky": sky, "windy": i % 2, "calls": i, "warmth": float(i)}, label)
        for i, (sky, label) in enumerate([("sun", "a"), ("sun", "a"), ("rain", "b"), ("fog", "b"), ("snow", "c")])
    ]
    model = tb.NaiveBayes(FAMILIES)
    for label in "cab":
        model.partial_fit(*table([row for row in rows if row[1] == label]))
    assert same(model, learn(rows))
    assert model.classes_.tolist() == ["a", "b", "c"]


@given(rows_with_labels, st.data())
def test_weights_are_repetitions(rows, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    repeated = [row for row, times in zip(rows, weights, strict=True) for _ in range(times)]
    X, y = table(rows)
    if not repeated:
        with pytest.raises(DataError, match="zero"):
            tb.NaiveBayes(FAMILIES).fit(X, y, sample_weight=weights)
        return
    weighted = tb.NaiveBayes(FAMILIES).fit(X, y, sample_weight=weights)
    assert same(weighted, learn(repeated))


@given(rows_with_labels, rows_with_labels)
def test_fit_then_forget_is_never_seen(kept, gone):
    expected = learn(kept)
    model = learn([*kept, *gone]).forget(*table(gone))
    assert same(model, expected)
    model = learn(kept).partial_fit(*table(gone)).forget(*table(gone))
    assert same(model, expected)
    rows = table(kept)[0]
    np.testing.assert_allclose(
        model.predict_joint_log_proba(rows), expected.predict_joint_log_proba(rows), rtol=1e-7, atol=1e-9
    )


def test_forgetting_all_but_one_row_at_a_far_offset():
    rng = np.random.default_rng(0)
    X, y = 1e9 + rng.normal(size=(5000, 2)), rng.integers(0, 2, 5000)
    model = tb.NaiveBayes().fit(X, y).forget(X[6:], y[6:])
    expected = tb.NaiveBayes().fit(X[:6], y[:6])
    np.testing.assert_allclose(model.predict_proba(X[:20]), expected.predict_proba(X[:20]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_column_that_forgetting_leaves_constant_is_constant(seed):
    rng = np.random.default_rng(seed)
    gone, labels = rng.normal(size=(300, 1)) * 10.0**seed, rng.integers(0, 2, 300)
    kept, its_labels = np.full((4, 1), rng.normal()), np.array([0, 0, 1, 1])
    model = tb.NaiveBayes().fit(np.concatenate([kept, gone]), np.concatenate([its_labels, labels])).forget(gone, labels)
    assert model.constant_columns_ == [0]
    np.testing.assert_array_equal(model.predict_proba(gone), np.full((300, 2), 0.5))


def test_forgetting_removes_levels_and_classes():
    rows = [
        ({"sky": "sun", "windy": 1, "calls": 1, "warmth": 20.0}, "a"),
        ({"sky": "fog", "windy": 0, "calls": 2, "warmth": 5.0}, "b"),
    ]
    model = learn(rows).forget(*table(rows[1:]))
    assert model.classes_.tolist() == ["a"]
    assert model.tally_.domains["sky"].levels == ("sun",)
    model.forget(*table(rows[:1]))
    assert model.classes_.tolist() == []
    with pytest.raises(DataError, match="no class is left"):
        model.predict(table(rows)[0])
    assert same(model.partial_fit(*table(rows)), learn(rows))  # it can learn again


@pytest.mark.parametrize(
    ("change", "label", "words"),
    [
        ({}, "z", r"class 'z' would have count -1 \(0 counted, 1 to remove\)"),
        ({"sky": "hail"}, "a", r"class 'a', sky 'hail' would have count -1"),
        ({"calls": 500}, "a", r"class 'a', column 'calls' would have .* -49"),
        ({"warmth": 1e6}, "a", r"class 'a', column 'warmth' would have scatter"),
        ({"windy": 0}, "a", r"class 'a', column 'windy' would have failures -1"),
    ],
)
def test_forgetting_more_than_was_learned_is_refused(change, label, words):
    rows = [({"sky": "sun", "windy": 1, "calls": i, "warmth": 20.0 + i}, "a") for i in range(3)]
    model = learn(rows)
    before = model.tally_
    with pytest.raises(StatisticsError, match=words):
        model.forget(*table([({**rows[0][0], **change}, label)]))
    assert model.tally_ is before  # nothing was changed
    with pytest.raises(StatisticsError, match=r"-0\.5 \(3 counted, 3\.5 to remove"):
        model.forget(*table(rows), sample_weight=[1, 1, 1.5])
    assert model.tally_ is before


def test_a_failed_update_changes_nothing():
    rows = [({"sky": "sun", "windy": 1, "calls": i, "warmth": 20.0 + i}, "ab"[i % 2]) for i in range(4)]
    model = learn(rows)
    before = model.tally_, model.predict_proba(table(rows)[0])
    X, y = table(rows)
    for bad in ({**X, "windy": [2, 0, 0, 0]}, {**X, "warmth": [np.inf, 0, 0, 0]}, {**X, "sky": [[1], [2], [3], [4]]}):
        for call in (model.fit, model.partial_fit, model.forget):
            with pytest.raises(TallybayesError):
                call(bad, y)
    for call in (model.partial_fit, model.forget):
        with pytest.raises(LabelError, match="sky"):
            call({**X, "sky": [1, 2, 3, 4]}, y)
    assert model.tally_ is before[0]
    np.testing.assert_array_equal(model.predict_proba(X), before[1])


def test_fit_forgets_what_was_before():
    rows = [({"sky": "sun", "windy": 1, "calls": i, "warmth": 20.0 + i}, "ab"[i % 2]) for i in range(4)]
    assert same(learn(rows).fit(*table(rows[:2])), learn(rows[:2]))


def test_add_class_and_drop_class():
    rows = [
        ({"sky": s, "windy": i % 2, "calls": i, "warmth": float(i)}, c)
        for i, (s, c) in enumerate(
            [("sun", "a"), ("rain", "a"), ("rain", "b"), ("sun", "b"), ("snow", "c"), ("fog", "c")]
        )
    ]
    model = learn(rows[:4]).add_class("c", table(rows[4:])[0])
    assert same(model, learn(rows))
    with pytest.raises(LabelError, match="'c' exists already"):
        model.add_class("c", table(rows[4:])[0])
    assert same(model.drop_class("c"), learn(rows[:4]))  # its levels are gone too
    with pytest.raises(LabelError, match="'c'"):
        model.drop_class("c")
    weighted = learn(rows[:4]).add_class("c", table(rows[4:])[0], sample_weight=[2, 0])
    assert same(weighted, learn([*rows[:5], rows[4]]))
    by_number = tb.NaiveBayes().fit([[0.0], [1.0]], np.array([3, 5])).add_class(np.int64(4), [[2.0]])
    assert by_number.classes_.tolist() == [3, 4, 5]
    assert by_number.drop_class(np.int64(3)).classes_.tolist() == [4, 5]


def test_labels_that_do_not_fit_the_first_batch_s_type_stay_right():
    model = tb.NaiveBayes().fit([[0.0], [1.0]], np.array([0, 1], dtype=np.uint8)).partial_fit([[9.0]], [300])
    assert model.classes_.tolist() == [0, 1, 300]
    assert model.predict([[9.0]]).tolist() == [300]
    longer = tb.NaiveBayes().fit([[0.0], [1.0]], np.array(["a", "b"])).partial_fit([[9.0]], np.array(["longer"]))
    assert longer.predict([[9.0]]).tolist() == ["longer"]


def test_adding_models():
    rows = [({"sky": "sun", "windy": 1, "calls": i, "warmth": 20.0 + i}, "abc"[i % 3]) for i in range(6)]
    first, second = learn(rows[:2]), learn(rows[2:])
    before = first.tally_, second.tally_
    total = first + second
    assert same(total, learn(rows))
    assert (first.tally_, second.tally_) == before
    with pytest.raises(StatisticsError, match="parameters differ"):
        first + second.reestimate(estimate="map")
    label, kind = (
        tb.NaiveBayes(FAMILIES).fit({**table(rows)[0], name: table(rows)[1]}, name) for name in ("label", "kind")
    )
    assert (first + label).target_ == "label"  # the first has no name of its own
    with pytest.raises(StatisticsError, match="factors"):
        kind + label
    with pytest.raises(TypeError):
        first + 1
    with pytest.raises(TypeError):
        first + second.tally_


def test_reestimate_needs_no_data():
    rows = [
        ({"sky": s, "windy": i % 2, "calls": i, "warmth": float(i * i)}, "ab"[i % 2])
        for i, s in enumerate(["sun", "rain", "sun", "rain", "fog", "fog"])
    ]
    X, y = table(rows)
    model = learn(rows)
    for change in (
        {"estimate": "mle"},
        {"estimate": "map"},
        {"class_prior": "uniform"},
        {"unseen": "smooth"},
        {"prior": [tb.Dirichlet(0.5), tb.Beta(3, 1)]},
    ):
        other = model.reestimate(**change)
        direct = clone(model).set_params(**change).fit(X, y)
        assert other is not model
        assert other.get_params() == direct.get_params()
        np.testing.assert_array_equal(other.predict_proba(X), direct.predict_proba(X))
    assert model.get_params()["estimate"] == "bayes"
    numbers = tb.NaiveBayes(tb.Gaussian(), estimate="map").fit([[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1])
    tied = numbers.reestimate(columns=tb.TiedGaussian())
    expected = tb.NaiveBayes(tb.TiedGaussian(), estimate="map").fit([[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1])
    np.testing.assert_array_equal(tied.predict_proba([[2.0]]), expected.predict_proba([[2.0]]))
    with pytest.raises(TallybayesError):
        numbers.reestimate(columns=tb.Poisson())  # other statistics would have been needed


def test_parameters_changed_after_fitting_take_effect_whatever_was_asked_before():
    X, y = [[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1]
    asked, fresh = tb.NaiveBayes().fit(X, y), tb.NaiveBayes().fit(X, y)
    asked.predict_proba(X)
    for model in (asked, fresh):
        model.set_params(estimate="map")
    np.testing.assert_array_equal(asked.predict_proba(X), fresh.predict_proba(X))


def test_fit_tally():
    rows = [({"sky": "sun", "windy": 1, "calls": i, "warmth": 20.0 + i}, "ab"[i % 2]) for i in range(6)]
    X, y = table(rows)
    model = learn(rows)
    other = tb.NaiveBayes(estimate="map").fit_tally(model.tally_)
    np.testing.assert_array_equal(other.predict_proba(X), model.reestimate(estimate="map").predict_proba(X))
    factors = [tb.Factor("label", (), tb.Categorical())] + [tb.Factor(n, "label", f) for n, f in FAMILIES.items()]
    counted = [tb.count({**table(part)[0], "label": table(part)[1]}, factors) for part in (rows[:2], rows[2:])]
    shards = tb.NaiveBayes(FAMILIES).fit_tally(sum(counted))
    np.testing.assert_allclose(shards.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert same(shards.partial_fit({**X, "label": y}, "label").forget({**X, "label": y}, "label"), shards)
    array = tb.NaiveBayes({0: tb.Gaussian(), 2: tb.Gaussian()}).fit(np.arange(12.0).reshape(4, 3), [0, 1, 0, 1])
    again = tb.NaiveBayes().fit_tally(array.tally_)  # columns that are not all those of the array
    np.testing.assert_array_equal(again.predict_proba(np.eye(3)), array.predict_proba(np.eye(3)))
    with pytest.raises(StatisticsError, match="does not fit a classifier"):
        tb.NaiveBayes().fit_tally(tb.count({"x": [1.0]}, [tb.Factor("x", (), tb.Gaussian())]))


def test_declared_classes():
    X, y = [[0.0], [1.0], [5.0]], [0, 0, 1]
    model = tb.NaiveBayes().partial_fit(X, y, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    two = tb.NaiveBayes().fit(X, y)
    found, expected = model.predict_joint_log_proba(X)[:, :2], two.predict_joint_log_proba(X)
    np.testing.assert_allclose(found, expected + np.log(5 / 6), rtol=1e-12)  # one pseudo-row a class: of 6, not 5
    assert np.exp(model.class_log_prior_[2]) == pytest.approx(1 / 6)
    assert (model.predict_proba(X)[:, 2] > 0).all()
    shares, expected = model.reestimate(class_prior="frequency"), two.reestimate(class_prior="frequency")
    np.testing.assert_allclose(shares.predict_proba(X)[:, :2], expected.predict_proba(X), rtol=1e-12)
    assert (shares.predict_proba(X)[:, 2] == 0).all()
    likely = tb.NaiveBayes(estimate="mle").partial_fit([[0.0], [1.0]], [0, 0], classes=[0, 1])
    assert likely.predict_proba([[0.5]]).tolist() == [[1.0, 0.0]]
    with pytest.raises(DataError, match=r"'mle' estimate of column 0 in class 1 is undefined: nothing was counted"):
        likely.predict_proba([[0.5]], class_prior="uniform")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", [tb.Multinomial(), tb.Bernoulli(), tb.Poisson()], ids=repr)
def test_sparse_and_dense_batches_mix(family):
    X = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
    y = [0, 1, 0, 1]
    dense = tb.NaiveBayes(family).fit(X, y)
    blocks = [
        X,
        sparse.csr_array(X),
        sparse.csc_array(X),
        sparse.coo_array(X),
        sparse.csr_matrix(X),
        sparse.lil_matrix(X),
    ]
    for first in blocks:
        model = tb.NaiveBayes(family).fit(first, y)
        np.testing.assert_allclose(model.predict_joint_log_proba(X), dense.predict_joint_log_proba(X), rtol=1e-13)
        for second in blocks:
            np.testing.assert_allclose(model.predict_proba(second), model.predict_proba(first), rtol=1e-13)
            model.partial_fit(second, y).forget(first, y)
        np.testing.assert_allclose(model.predict_proba(X), dense.predict_proba(X), rtol=1e-13)


def test_a_tally_as_prior_is_what_was_seen_before() -> None:
    before = {"x": ["a", "b", "b", "c"], "n": [1, 0, 2, 5], "y": ["u", "u", "v", "w"]}
    now = {"x": ["a", "a", "b"], "n": [3, 1, 0], "y": ["u", "v", "v"]}
    columns = {"x": tb.Categorical(levels=("a", "b", "c")), "n": tb.Poisson()}
    earlier = tb.NaiveBayes(columns).fit(before, "y")
    later = tb.NaiveBayes(columns).fit(now, "y")
    rates = later._estimated_classifier.feature_factors[1][1].pool_groups()
    poisson = tb.Gamma((rates.total + 0.5) / (rates.weight + 1), 1)  # the default, held while counts are added
    together = tb.NaiveBayes(columns, prior=[poisson, 1], class_prior={"u": 2 / 5, "v": 3 / 5, "w": 0.0})
    together.fit({name: before[name] + now[name] for name in now}, "y")
    fitted = tb.NaiveBayes(columns, prior=earlier.tally_).fit(now, "y")
    for model in (fitted, fitted.reestimate(), clone(fitted).fit(now, "y")):
        found = model.predict_proba({"x": ["a", "c"], "n": [1, 4]})
        wanted = together.predict_proba({"x": ["a", "c"], "n": [1, 4]})[:, :2]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    half = tb.NaiveBayes(columns, prior=earlier.tally_.scale(0.5)).fit(now, "y")
    np.testing.assert_allclose(half.prior_["x"].concentration, 1 + 0.5 * np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    with pytest.raises(TallybayesError, match=r"model\.tally_"):
        tb.NaiveBayes(columns, prior=earlier).fit(now, "y").predict({"x": ["a"], "n": [1]})
    with pytest.raises(StatisticsError, match="factors"):
        tb.NaiveBayes(prior=earlier.tally_).fit({"z": [1.0, 2.0], "y": ["u", "v"]}, "y").predict({"z": [1.0]})
