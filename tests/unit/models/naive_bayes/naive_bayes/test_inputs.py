"""What a model may be given: arrays, frames, dictionaries, blocks; names, types of labels, missing cells."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes.errors import DataError, LabelError

ROWS = {
    "color": ["red", "blue", "red", None, "green", "blue"],
    "size": [1.5, 2.5, None, 4.0, 3.5, 2.0],
    "ripe": [True, False, True, True, False, False],
    "seeds": [3, 1, 4, 1, 5, 9],
}
KINDS = ["yes", "no", "yes", "yes", "no", "no"]


def as_records(columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


FORMS = {
    "mapping": lambda columns: columns,
    "arrays": lambda columns: {name: np.array(column, dtype=object) for name, column in columns.items()},
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, categories": lambda columns: pd.DataFrame(columns).astype({"color": "category"}),
    "polars": pl.DataFrame,
    "polars, categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("color").cast(pl.Categorical)),
    "arrow": pa.table,
    "records": as_records,
    "objects": lambda columns: np.array(list(columns.values()), dtype=object).T,
}


@pytest.fixture
def expected():
    return tb.NaiveBayes().fit(ROWS, KINDS).predict_joint_log_proba(ROWS)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_numbers(form, expected):
    X = FORMS[form](ROWS)
    model = tb.NaiveBayes().fit(X, KINDS)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-13)
    halves = [FORMS[form]({name: column[part] for name, column in ROWS.items()}) for part in (slice(3), slice(3, None))]
    parts = tb.NaiveBayes().partial_fit(halves[0], KINDS[:3]).partial_fit(halves[1], KINDS[3:])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), expected, rtol=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "objects"])
def test_the_target_and_the_weights_by_name(form):
    weights = [1.0, 2.0, 0.5, 1.0, 0.0, 3.0]
    model = tb.NaiveBayes().fit(FORMS[form]({"weight": weights, **ROWS, "kind": KINDS}), "kind", sample_weight="weight")
    separate = tb.NaiveBayes().fit(ROWS, KINDS, sample_weight=weights)
    assert model.classes_.tolist() == ["no", "yes"]
    X = FORMS[form](ROWS)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), separate.predict_joint_log_proba(ROWS), rtol=1e-13)
    # by name, order and further columns do not matter
    shuffled = FORMS[form]({"other": [0] * 6, **{name: ROWS[name] for name in reversed(ROWS)}})
    np.testing.assert_array_equal(model.predict_proba(shuffled), model.predict_proba(X))
    whole = FORMS[form]({**ROWS, "kind": KINDS, "weight": weights})
    assert model.score(whole, "kind") == separate.score(ROWS, KINDS)
    assert model.score(whole, "kind", "weight") == separate.score(ROWS, KINDS, weights)
    model.partial_fit(whole, "kind", sample_weight="weight").forget(whole, "kind", sample_weight="weight")
    np.testing.assert_allclose(model.predict_proba(X), separate.predict_proba(ROWS), rtol=1e-12)


def test_a_column_that_is_not_there_by_name():
    for options in ({"y": "nothing"}, {"y": "kind", "sample_weight": "nothing"}):
        with pytest.raises(DataError, match="'nothing'"):
            tb.NaiveBayes().fit({**ROWS, "kind": KINDS}, **options)
    model = tb.NaiveBayes().fit({**ROWS, "kind": KINDS}, "kind")
    with pytest.raises(DataError, match="'ripe'"):
        model.predict({name: column for name, column in ROWS.items() if name != "ripe"})


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow"])
def test_frames_with_a_separate_target_follow_scikit_learn(form):
    X = FORMS[form](ROWS)
    model = tb.NaiveBayes().fit(X, KINDS)
    assert model.feature_names_in_.tolist() == list(ROWS)
    assert model.feature_names_in_.dtype == object
    assert model.n_features_in_ == 4
    wrong = [
        {name: ROWS[name] for name in reversed(ROWS)},
        {**ROWS, "other": [0] * 6},
        {name: column for name, column in ROWS.items() if name != "ripe"},
    ]
    for columns in wrong:
        for call in (model.predict, model.score_samples, lambda bad: model.partial_fit(bad, KINDS)):
            with pytest.raises(ValueError, match="feature names should match"):
                call(FORMS[form](columns))


def test_arrays_have_a_number_of_features_but_no_names():
    model = tb.NaiveBayes().fit(np.eye(3), [0, 1, 0])
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(DataError, match="2 features, but NaiveBayes is expecting 3"):
        model.predict(np.eye(2))
    with pytest.raises(DataError, match="4 features"):
        model.partial_fit(np.eye(4), [0, 1, 0, 1])


def test_rows_as_dictionaries_may_leave_cells_out():
    records = as_records({**ROWS, "kind": KINDS})
    model = tb.NaiveBayes().fit(records, "kind")
    short = [{name: cell for name, cell in row.items() if cell is not None} for row in records]
    np.testing.assert_array_equal(tb.NaiveBayes().fit(short, "kind").predict_proba(short), model.predict_proba(records))
    one = model.predict_proba([{"size": 2.0}])
    np.testing.assert_array_equal(one, model.predict_proba([{"size": 2.0}, records[0]])[:1])
    np.testing.assert_array_equal(
        one, model.predict_proba({name: [2.0] if name == "size" else [None] for name in ROWS})
    )
    separate = tb.NaiveBayes().fit(as_records(ROWS), KINDS)
    np.testing.assert_allclose(separate.predict_proba([{"size": 2.0}]), one, rtol=1e-13)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT], ids=repr)
def test_every_way_to_say_missing_is_the_same(missing, expected):
    columns = {
        name: np.array([missing if cell is None else cell for cell in column], dtype=object)
        for name, column in ROWS.items()
    }
    for X in (columns, pd.DataFrame(columns)):
        model = tb.NaiveBayes().fit(X, KINDS)
        np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array([True, False] * 3), "bool"),
        (np.array([7, 3] * 3), "int64"),
        (np.array([7, 3] * 3, dtype=np.uint8), "uint8"),
        (np.array([7.0, 3.0] * 3), "float64"),
        (np.array(["no", "yes"] * 3), "<U3"),
        (np.array(["no", "yes"] * 3, dtype=object), "object"),
        (["no", "yes"] * 3, "<U3"),
        ([True, False] * 3, "bool"),
        (pd.Series([7, 3] * 3), "int64"),
        (pd.Series([7, 3] * 3, dtype="category"), "int64"),
        (pd.Series([7, 3] * 3, dtype="Int64"), "int64"),
        (pl.Series([7, 3] * 3), "int64"),
        (pa.array(["no", "yes"] * 3), "<U3"),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_classes_keep_the_target_s_type(labels, dtype):
    model = tb.NaiveBayes().fit(np.arange(6.0)[:, None], labels)
    assert model.classes_.dtype == np.dtype(dtype)
    assert model.classes_.tolist() == sorted(set(np.asarray(labels).tolist()))
    predicted = model.predict([[0.0], [5.0]])
    assert predicted.dtype == model.classes_.dtype
    assert predicted.tolist() == np.asarray(labels)[:2].tolist()  # whose means are 2 and 3


@pytest.mark.parametrize("strings", [pd.Series(["b", "a", "a"]), pd.Series(["b", "a", "a"], dtype="category")])
def test_labels_of_pandas_strings(strings):
    model = tb.NaiveBayes().fit([[0.0], [1.0], [2.0]], strings)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.predict([[0.0]]).tolist() == ["b"]


def test_unused_categories_are_no_classes_and_no_levels():
    y = pd.Series(pd.Categorical(["a", "b", "a"], categories=["z", "b", "a"]))
    X = pd.DataFrame({"c": pd.Categorical(["u", "v", "u"], categories=["w", "v", "u"])})
    model = tb.NaiveBayes(prior=1).fit(X, y)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.predict_joint_log_proba(X)[0, 0] == pytest.approx(np.log(3 / 5) + np.log(3 / 4))


@pytest.mark.parametrize(
    "labels",
    [["a", None, "b"], [0, np.nan, 1], pd.Series([0, pd.NA, 1], dtype="Int64"), pd.Categorical(["a", None, "b"])],
    ids=lambda value: type(value).__name__,
)
def test_a_missing_label_is_refused(labels):
    with pytest.raises(LabelError, match=r"row 1 is missing \(1 of 3 are\)"):
        tb.NaiveBayes().fit([[0.0], [1.0], [2.0]], labels)


def test_labels_that_are_none():
    X = [[0.0], [1.0], [2.0]]
    for bad in ([0.5, 0.1, 0.9], np.array([0.5, 0.1, 0.9], dtype=object), pd.Series([0.5, 0.1, 0.9])):
        with pytest.raises(ValueError, match=r"Unknown label type.*0\.5"):
            tb.NaiveBayes().fit(X, bad)
    with pytest.raises(ValueError, match=r"Unknown label type.*expected one kind"):
        tb.NaiveBayes().fit(X, np.array(["a", 1, "b"], dtype=object))
    with pytest.raises(ValueError, match="requires y"):
        tb.NaiveBayes().fit(X, None)
    with pytest.raises(DataError, match="X: 3, y: 2"):
        tb.NaiveBayes().fit(X, [0, 1])
    assert tb.NaiveBayes().fit(X, np.array([0, 1, 1], dtype=object)).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_cells_are_refused(bad):
    X, y = np.array([[0.0, 1.0], [1.0, bad], [2.0, 3.0]]), [0, 1, 1]
    with pytest.raises(DataError, match=r"found -?inf in row 1, column 1"):
        tb.NaiveBayes().fit(X, y)
    fitted = tb.NaiveBayes().fit(np.nan_to_num(X, posinf=9.0, neginf=-9.0), y)
    for call in (fitted.predict, fitted.predict_proba, fitted.score_samples, lambda rows: fitted.partial_fit(rows, y)):
        with pytest.raises(DataError, match=r"found -?inf in row 1, column 1"):
            call(X)


@pytest.mark.parametrize(
    ("family", "bad"),
    [
        (tb.Bernoulli(), 2.0),
        (tb.Bernoulli(), 0.5),
        (tb.Poisson(), -1.0),
        (tb.Poisson(), 0.5),
        (tb.Binomial(3), 4.0),
        (tb.Multinomial(), -1.0),
        (tb.Multinomial(), np.nan),
        (tb.DirichletMultinomial(), np.nan),
    ],
    ids=repr,
)
def test_cells_that_do_not_fit_their_family_are_refused_at_fitting_and_at_prediction(family, bad):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), [0, 1, 0, 1]
    model = tb.NaiveBayes(family, unseen="error").fit(X, y)
    X[2, 1] = bad
    for call in (lambda: tb.NaiveBayes(family).fit(X, y), lambda: model.predict_proba(X), lambda: model.predict(X)):
        with pytest.raises(DataError, match=r"in row 2, column 1; expected"):
            call()


def test_columns_by_name_by_position_and_by_tuple():
    frame = pd.DataFrame(ROWS)
    named = {"color": tb.Categorical(), ("size", "seeds"): tb.Gaussian()}
    placed = {0: tb.Categorical(), (1, -1): tb.Gaussian()}
    models = [tb.NaiveBayes(columns).fit(frame, KINDS) for columns in (named, placed)]
    np.testing.assert_array_equal(*(model.predict_proba(frame) for model in models))
    assert [factor.columns for factor in models[0].tally_.factors] == [("class",), ("color",), ("size", "seeds")]
    ignored = frame.assign(ripe=[False] * 6)  # a column that is not named says nothing
    np.testing.assert_array_equal(models[0].predict_proba(ignored), models[0].predict_proba(frame))
    for columns, words in (({"taste": tb.Gaussian()}, "'taste'"), ({7: tb.Gaussian()}, "7")):
        with pytest.raises(DataError, match=words):
            tb.NaiveBayes(columns).fit(frame, KINDS)
    with pytest.raises(DataError, match="'size' has two families"):
        tb.NaiveBayes({"size": tb.Gaussian(), 1: tb.Poisson()}).fit(frame, KINDS)
    for columns in ("automatic", tb.Gaussian, {"size": "gaussian"}):
        with pytest.raises(DataError, match="famil"):
            tb.NaiveBayes(columns).fit(frame, KINDS)


def test_auto_reads_types_and_not_values():
    frame = pd.DataFrame(
        {
            "b": [True, False, True],
            "i": [0, 1, 0],
            "f": [0.0, 1.0, 0.0],
            "s": ["0", "1", "0"],
            "c": pd.Categorical([0, 1, 0]),
            "n": pd.array([0, 1, None], dtype="Int64"),
        }
    )
    factors = tb.NaiveBayes().fit(frame, [0, 1, 1]).tally_.factors[1:]
    assert [(factor.family, factor.columns) for factor in factors] == [
        (tb.Categorical(), ("b", "s", "c")),
        (tb.Gaussian(), ("i", "f", "n")),
    ]
    assert tb.NaiveBayes().fit(sparse.csr_array(np.eye(3)), [0, 1, 1]).tally_.factors[1].family == tb.Multinomial()
    assert tb.NaiveBayes().fit(np.eye(3, dtype=bool), [0, 1, 1]).tally_.factors[1].family == tb.Categorical()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, np.array], ids=lambda f: f.__name__
)
def test_blocks_beside_columns(form):
    words = np.array([[1, 0, 2], [0, 1, 0], [3, 0, 0], [0, 0, 1], [1, 1, 1], [0, 2, 0]])
    mixed = {"words": form(words), "length": [3.0, 1.0, 3.0, 1.0, 3.0, 2.0], "folder": list("aabbab")}
    y = [0, 1, 0, 1, 0, 1]
    families = {"words": tb.Multinomial(), "length": tb.Gaussian(), "folder": tb.Categorical()}
    model = tb.NaiveBayes(families).fit(mixed, y)
    # independent given the class: the blocks' log-likelihoods add up
    parts = sum(
        single.predict_joint_log_proba({name: mixed[name]}) - single.class_log_prior_
        for name, family in families.items()
        for single in [tb.NaiveBayes({name: family}).fit({name: mixed[name]}, y)]
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(mixed), parts + model.class_log_prior_, rtol=1e-12)
    assert model.n_features_in_ == 5
    by_name = tb.NaiveBayes(families).fit({**mixed, "kind": y}, "kind")
    np.testing.assert_allclose(by_name.predict_proba(mixed), model.predict_proba(mixed), rtol=1e-13)
    model.partial_fit(mixed, y).forget(mixed, y)
    np.testing.assert_allclose(by_name.predict_proba(mixed), model.predict_proba(mixed), rtol=1e-12)


def test_arrays_of_strings():
    X = np.array([["red", "s"], ["blue", "m"], ["red", "m"], ["blue", "s"]])
    for form in (X, X.astype(object), X.tolist()):
        model = tb.NaiveBayes(prior=1).fit(form, [0, 1, 0, 1])
        assert model.predict([["red", "m"], ["blue", "xl"]]).tolist() == [0, 1]
        assert model.predict_joint_log_proba(form)[0, 0] == pytest.approx(np.log(1 / 2 * 3 / 4 * 2 / 4))


@pytest.mark.parametrize("form", [list, np.array, lambda rows: np.array(rows, dtype=object)], ids=["list", "U", "O"])
def test_strings_are_labels_even_where_they_look_like_numbers(form):
    model = tb.NaiveBayes().fit(form([["007"], ["042"], ["7"], ["42"]]), [0, 0, 1, 1])
    assert model.tally_.factors[1].family == tb.Categorical()
    assert model.tally_.domains["0"].levels == ("007", "042", "7", "42")
    mixed = tb.NaiveBayes().fit([[True, 1.5], [False, 2.5], [True, 0.5]], [0, 1, 1])
    assert [factor.family for factor in mixed.tally_.factors[1:]] == [tb.Categorical(), tb.Gaussian()]


def test_no_rows():
    model = tb.NaiveBayes().fit(ROWS, KINDS)
    assert model.predict_proba({name: [] for name in ROWS}).shape == (0, 2)
    numbers = tb.NaiveBayes().fit(np.eye(3), [0, 1, 0])
    assert numbers.predict(np.zeros((0, 3))).shape == (0,)
    with pytest.raises(ValueError, match="0 "):
        tb.NaiveBayes().fit(np.zeros((0, 3)), [])


def test_read_only_and_foreign_arrays():
    X, y = np.arange(12.0).reshape(6, 2) ** 2, [0, 1] * 3
    expected = tb.NaiveBayes().fit(X, y).predict_joint_log_proba(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    forms = [frozen, np.asfortranarray(X), X.astype(">f8"), np.repeat(X, 2, axis=0)[::2], X.astype(np.float32)]
    forms += [X.astype(int), X.astype(np.uint8), X.tolist()]
    for form in forms:
        model = tb.NaiveBayes().fit(form, y)
        np.testing.assert_allclose(model.predict_joint_log_proba(form), expected, rtol=1e-12)


def test_labels_of_another_kind_are_rejected_in_arrays_too() -> None:
    numbers = np.array([[0, 1], [1, 0], [1, 1]])
    model = tb.NaiveBayes(tb.Categorical()).fit(numbers, [0, 1, 1])
    np.testing.assert_array_equal(model.predict(numbers.astype(np.uint8)), model.predict(numbers))
    np.testing.assert_array_equal(model.predict(numbers.astype(bool)), model.predict(numbers))
    of_booleans = tb.NaiveBayes(tb.Categorical()).fit(numbers.astype(bool), [0, 1, 1])
    np.testing.assert_array_equal(of_booleans.predict(numbers), model.predict(numbers))  # 0 and 1, as SQLite has them
    with pytest.raises(LabelError, match="int"):
        of_booleans.predict(numbers + 1)
