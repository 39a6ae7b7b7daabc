"""Tables as people have them: whole numbers, constant columns, columns that are missing everywhere, hardly any rows."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import tallybayes as tb
from tallybayes.errors import DataError

DIGITS = load_digits()
KEPT = [0, 1, 2, 10, 20, 32, 39]  # 0, 32 and 39 are 0 in every image
IMAGES, NUMBERS = DIGITS.data[:60, KEPT], DIGITS.target[:60] % 3
COVARIANCES = ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"]
CLASSIFIERS = {
    **{name: tb.GaussianDiscriminant(name) for name in COVARIANCES},
    "shrunk": tb.GaussianDiscriminant(shrinkage=0.2),
    "naive": tb.NaiveBayes(),
    "naive full": tb.NaiveBayes(tb.MultivariateGaussian()),
}


def kinds():
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", ">i4", ">f8"):
        yield name, IMAGES.astype(name)
    frozen = np.asfortranarray(IMAGES.astype(int))
    frozen.flags.writeable = False
    yield "read-only, by columns", frozen
    yield "pandas", pd.DataFrame(IMAGES.astype(int)).rename(columns=str)
    yield "pandas nullable", pd.DataFrame(IMAGES.astype(int)).rename(columns=str).astype("Int32")
    yield "Polars", pl.DataFrame({str(i): IMAGES[:, i].astype(int) for i in range(len(KEPT))})


KINDS = dict(kinds())
SOME = ["int8", "uint64", "read-only, by columns", "pandas nullable", "Polars"]


def first(table, n):
    return table.iloc[:n] if isinstance(table, pd.DataFrame) else table[:n]


def numbers(table):
    return np.column_stack(list(table.values())) if isinstance(table, dict) else np.asarray(table, dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_whole_numbers_with_constant_columns_are_as_good_as_floats(model):
    """Constant cells were once made NaN in place, which whole numbers cannot hold."""
    answers = {}
    for name, table in {"float64": IMAGES, **KINDS}.items():
        fitted = clone(model).fit(table, NUMBERS)
        rows = first(table, 10)
        answers[name] = [
            fitted.predict_proba(rows),
            fitted.score_samples(rows),
            fitted.explain(rows).contributions,
            numbers(fitted.impute(rows)),
            numbers(fitted.sample(3, random_state=0)[0]),
            tb.leave_one_out(fitted, first(table, 20), NUMBERS[:20]).log_proba,
            tb.cross_validate(fitted, table, NUMBERS, 3).log_proba,
            tb.evaluate(fitted, table, NUMBERS).log_proba,
            fitted.calibrate(first(table, 20), NUMBERS[:20]).predict_proba(rows),
        ]
        assert isinstance(fitted.show_work(first(table, 1)), str)
    for name, found in answers.items():
        for one, other in zip(found, answers["float64"], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)
            assert np.isfinite(one).all()


@pytest.mark.parametrize("columns", [tb.MultivariateGaussian(), tb.Gaussian()], ids=repr)
def test_mixtures_of_whole_numbers_with_constant_columns(columns):
    model = tb.Mixture(2, columns, n_init=1, tol=0.1, random_state=0)
    expected = model.fit(IMAGES).predict_proba(IMAGES)
    for name in SOME:
        found = model.fit(KINDS[name]).predict_proba(KINDS[name])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("emission", [tb.MultivariateGaussian(), tb.Gaussian()], ids=repr)
def test_hidden_markov_models_of_whole_numbers_with_constant_columns(emission):
    lengths = [40, 20]
    expected = tb.HiddenMarkovModel(columns=emission).fit(IMAGES, NUMBERS, lengths).predict_proba(IMAGES, lengths)
    for name in SOME[:3]:
        table = KINDS[name]
        fitted = tb.HiddenMarkovModel(columns=emission).fit(table, NUMBERS, lengths)
        for one, other in zip(fitted.predict_proba(table, lengths), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)
        assert len(fitted.impute(table, lengths)) == len(fitted.predict(table, lengths)) == 2
        tb.HiddenMarkovModel(2, emission, random_state=0, max_iter=3, tol=1.0).fit(table, lengths=lengths)


# ---- Columns that no row shows, or no row of a class ----


def with_a_lost_column(kind):
    rng = np.random.default_rng(3)
    y = np.arange(24) % 2
    if kind == "numbers":
        return np.column_stack([rng.normal(size=24) + y, np.full(24, np.nan)]), y
    if kind == "labels":
        return np.column_stack([np.array(list("uvw"), dtype=object)[rng.integers(0, 3, 24)], np.full(24, None)]), y
    return pd.DataFrame({"a": rng.normal(size=24) + y, "b": pd.Series([None] * 24, dtype=kind)}), y


@pytest.mark.parametrize("kind", ["numbers", "labels", "Int64", "string", "category", "object"])
def test_a_column_that_no_row_shows_stays_missing(kind):
    """Nothing is made up: it says nothing about the class, is not filled in, and drawn rows lack it too."""
    X, y = with_a_lost_column(kind)
    model = tb.NaiveBayes().fit(X, y)
    other = X[:, :1] if isinstance(X, np.ndarray) else X[["a"]]
    np.testing.assert_allclose(model.predict_proba(X), tb.NaiveBayes().fit(other, y).predict_proba(other))
    for how in ("mean", "mode"):
        filled = model.impute(X, how)
        assert pd.isna(filled[:, 1] if isinstance(filled, np.ndarray) else filled["b"]).all()
    drawn = model.sample(4, random_state=0)[0]
    assert pd.isna(drawn[:, 1] if isinstance(drawn, np.ndarray) else drawn["b"]).all()
    assert model.sample(0)[1].shape == (0,)
    path = tb.prior_path(tb.NaiveBayes(), X, y, [0.1, 1.0])
    assert np.isfinite([found.log_proba for found in path.results]).all()
    assert np.isfinite(tb.leave_one_out(model, X, y).log_proba).all()
    assert np.isfinite(tb.cross_validate(model, X, y, 3).log_proba).all()
    assert "prediction" in model.show_work(first(X, 1))
    assert model.explain(X).contributions[:, -1] == pytest.approx(0.0)


def test_a_constant_column_is_filled_with_its_constant():
    X = np.column_stack([np.full(6, 3.0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    holed = np.array([[np.nan, 2.0]])
    for model in (tb.NaiveBayes(tb.LogNormal()), tb.NaiveBayes(), tb.GaussianDiscriminant()):
        model.fit(X, [0, 0, 0, 1, 1, 1])
        assert model.impute(holed)[0, 0] == pytest.approx(3.0, rel=1e-12)
        assert model.sample(1, random_state=0)[0][0, 0] == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize("estimate", ["mle", "unbiased"])
def test_a_column_that_a_class_never_shows_is_named_under_maximum_likelihood(estimate):
    """Labels beside numbers are left out row by row, where this was a table with NaN in it."""
    y = np.arange(20) % 2
    rng = np.random.default_rng(0)
    labels = np.where(y == 0, None, np.array(list("uvw"))[rng.integers(0, 3, 20)])
    rows = {"label": labels, "number": rng.normal(size=20)}
    for ask in (tb.leave_one_out, tb.cross_validate):
        with pytest.raises(DataError, match="column 'label' in class 0 is undefined: nothing was counted"):
            ask(tb.NaiveBayes(estimate=estimate), rows, y)


@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_states_that_never_show_a_column_are_named_under_maximum_likelihood(kind):
    y = np.array(list("ab") * 10)
    rng = np.random.default_rng(0)
    if kind == "numbers":
        steps = np.column_stack([rng.normal(size=20), np.where(y == "a", np.nan, rng.normal(size=20))])
    else:
        steps = np.where(y == "a", None, np.array(list("uvw"))[rng.integers(0, 3, 20)])
    model = tb.HiddenMarkovModel(estimate="mle").fit(steps, y, [10, 10])
    for ask in (model.predict, model.predict_proba, model.score_samples, model.impute, model.filter_proba):
        with pytest.raises(DataError, match="in state 'a' is undefined: nothing was counted"):
            ask(steps, [10, 10])
    with pytest.raises(DataError, match="in state 'a'"):
        model.sample(3)
    assert model.reestimate(estimate="bayes").predict(steps, [10, 10])[0].shape == (10,)


def test_steps_that_are_all_missing():
    nothing, numbers_lost = np.full(12, None), np.column_stack([np.arange(12.0), np.full(12, np.nan)])
    states = np.array(list("ab") * 6)
    model = tb.HiddenMarkovModel().fit(nothing, states)
    assert pd.isna(model.impute(nothing)[0]).all()
    assert pd.isna(model.sample(3, random_state=0)[0][0]).all()
    assert tb.HiddenMarkovModel(2, random_state=0).fit(nothing).predict(nothing)[0].shape == (12,)
    model = tb.HiddenMarkovModel().fit(numbers_lost, states)
    assert np.isnan(model.impute(numbers_lost)[0][:, 1]).all()
    assert np.isnan(model.sample(3, random_state=0)[0][0][:, 1]).all()


# ---- Hardly anything ----


@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_one_row_left_out_of_one(model):
    found = tb.leave_one_out(model, [[1.0, 2.0]], ["only"])
    assert found.log_proba.tolist() == [[0.0]]
    assert clone(model).fit([[1.0, 2.0]], ["only"]).calibrate([[1.0, 2.0]], ["only"]).predict([[0.0, 0.0]]) == ["only"]


@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_model_that_forgot_everything_says_so(covariance, estimate):
    X, y = IMAGES[:, 1:4] + np.arange(180).reshape(60, 3) % 7, NUMBERS
    model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, y).forget(X, y)
    for ask in (lambda: model.predict(X), lambda: model.explain(X), lambda: model.sample(2)):
        with pytest.raises(DataError, match=r"no class is left|nothing was counted"):
            ask()


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("steps", [np.arange(6.0), np.array(list("uvwuvw"))], ids=["numbers", "labels"])
def test_a_chain_that_forgot_everything_says_so(steps, estimate):
    model = tb.HiddenMarkovModel(estimate=estimate).fit(steps, list("ababba")).forget(steps, list("ababba"))
    for ask in (lambda: model.predict(steps), lambda: model.predict_proba(steps), lambda: model.sample(2)):
        with pytest.raises(DataError, match="the model has no states"):
            ask()


def test_impossible_labels_are_worked_without_a_warning():
    model = tb.NaiveBayes(tb.Categorical(), estimate="mle").fit([["u"], ["v"]], [0, 1])
    assert "-inf" in model.show_work([["u"]]).replace("−", "-")


def test_pictures_of_columns_without_levels_or_cells():
    X, y = with_a_lost_column("labels")
    assert len(tb.NaiveBayes().fit(X, y).plot_columns().axes) >= 2
    yes = np.column_stack([y, np.full(24, np.nan)])
    assert len(tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(yes, y).plot_columns().axes) >= 2
    plane = pd.DataFrame({"a": np.arange(24.0) % 5, "b": pd.array([None, 1, 2, 4] * 6, dtype="Int64")})
    tb.GaussianDiscriminant().fit(plane, y).plot_decision_boundary(plane, y)
    tb.GaussianDiscriminant().fit(plane.assign(b=np.nan), y).plot_decision_boundary(plane.assign(b=np.nan), y)


# ---- No columns, no rows yet, numbers too large ----


@pytest.mark.parametrize("table", [{}, pd.DataFrame(index=range(4)), pl.DataFrame()])
def test_frames_without_columns_are_refused_as_such(table):
    """Without columns there are no rows to compare with the labels."""
    models = [tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.NearestClassMean(), tb.Mixture(2)]
    models += [tb.AveragedOneDependence(), tb.TreeAugmentedNaiveBayes()]
    for model in models:
        with pytest.raises(DataError, match="X has no columns"):
            model.fit(table, ["a", "b", "a", "b"])


def test_steps_without_columns_cannot_be_told_apart():
    for steps in (np.zeros((4, 0)), pd.DataFrame(index=range(4))):
        with pytest.raises(DataError, match="X has no columns to fit"):
            tb.HiddenMarkovModel(2, random_state=0).fit([steps])


@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.HiddenMarkovModel()], ids=repr)
@pytest.mark.parametrize(
    ("value", "hint"), [(1e300, "Divide the column"), (np.inf, "Drop such rows, or make these cells missing")]
)
def test_numbers_that_are_too_large_say_what_to_try(model, value, hint):
    """1e300 is finite: the message must say why it is refused all the same."""
    with pytest.raises(DataError, match=f"found {re.escape(repr(value))} in row 1, column 'x'.*\n    {hint}"):
        clone(model).fit({"x": [1.0, value, 2.0, 3.0], "z": [1.0, 2.0, 3.0, 5.0]}, ["a", "b", "a", "b"])


@pytest.mark.parametrize("cells", [["p", "q", None, "p"], [1.5, 2.5, np.nan, 3.0], [True, None, False, True]])
@pytest.mark.parametrize("missing", [[np.nan] * 4, [None] * 4])
@pytest.mark.parametrize("alone", [False, True])
def test_a_first_part_whose_column_is_all_missing(cells, missing, alone):
    others = {} if alone else {"x": [1.0, 2.0, 3.0, 4.0], "t": ["u", "v", None, "u"]}
    first = pd.DataFrame({**others, "s": missing})
    second, y = pd.DataFrame({**others, "s": cells}), ["n", "y", "n", "y"]
    model = tb.NaiveBayes().partial_fit(first, y).partial_fit(second, y)
    whole = tb.NaiveBayes().fit(
        pd.DataFrame({k: [*first[k], *second[k]] for k in first} | {"s": [None] * 4 + cells}), y * 2
    )
    assert model.tally_["s"].isclose(whole.tally_["s"])
    np.testing.assert_allclose(model.predict_proba(second), whole.predict_proba(second))
    assert (model + whole).tally_[model._target].table.sum() == 16
    model.forget(second, y)
    assert model.tally_["s"].group_weights().sum() == 0
    with pytest.raises(tb.TallybayesError):  # a family that was named stays
        tb.NaiveBayes({"s": tb.Gaussian(), ...: "auto"}).partial_fit(first, y).partial_fit(second.assign(s="p"), y)
