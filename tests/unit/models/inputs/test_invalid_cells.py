"""Cells that cannot be what their column was counted as: missing where one asks, refused where one learns."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tallybayes as tb
from tallybayes.families.protocols.cell_checks import first_invalid_cell, out_of_support_cells
from tallybayes.warnings import InvalidValueWarning

RNG = np.random.default_rng(0)
N = 60
Y = np.array(["a", "b"])[np.arange(N) % 2]
FRAME = pd.DataFrame(
    {
        "eggs": RNG.poisson(3 + 2 * (Y == "a")),
        "price": np.exp(RNG.normal(size=N) + (Y == "a")),
        "fair": RNG.integers(0, 2, N),
        "floor": RNG.integers(0, 4, N),
        "weight": RNG.normal(size=N),
    }
)
COLUMNS = {
    "eggs": tb.Poisson(),
    "price": tb.LogNormal(),
    "fair": tb.Bernoulli(),
    "floor": tb.Categorical(),
    "weight": tb.Gaussian(),
}
STRANGE = {"eggs": 0.5, "price": 0.0, "fair": 2, "floor": "ground", "weight": "n/a"}


def with_cell(column, value, row=1):
    """Five rows, one cell of which is strange; and the same with the cell missing."""
    strange, missing = FRAME.head(5).astype(object), FRAME.head(5).astype(object)
    strange.loc[row, column], missing.loc[row, column] = value, None
    return strange, missing


@pytest.fixture(scope="module")
def model():
    return tb.NaiveBayes(COLUMNS).fit(FRAME, Y)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_strange_cell_is_missing_with_one_warning(model, column):
    strange, missing = with_cell(column, STRANGE[column])
    shown = "0" if column == "price" else repr(STRANGE[column])
    questions = {
        "predict": lambda rows: model.predict(rows),
        "predict_proba": lambda rows: model.predict_proba(rows),
        "predict_log_proba": lambda rows: model.predict_log_proba(rows),
        "predict_joint_log_proba": lambda rows: model.predict_joint_log_proba(rows),
        "score_samples": lambda rows: model.score_samples(rows),
        "log_likelihood": lambda rows: model.log_likelihood(rows),
        "explain": lambda rows: model.explain(rows).log_odds,
        "decide": lambda rows: model.decide(rows),
        "predict_set": lambda rows: model.predict_set(rows),
        "predict_proba_interval": lambda rows: np.asarray(model.predict_proba_interval(rows, n_draws=40).low),
        "impute": lambda rows: np.asarray(model.impute(rows)["eggs"], dtype=float),
        "score": lambda rows: model.score(rows, Y[:5]),
    }
    for name, ask in questions.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = ask(strange)
        assert [w.category for w in said] == [InvalidValueWarning], name
        assert f"{shown} in column {column!r} (1 cell)" in str(said[0].message)
        assert said[0].filename == __file__, name
        np.testing.assert_array_equal(found, ask(missing), err_msg=name)


@pytest.mark.parametrize("column", COLUMNS)
def test_what_is_learned_and_what_is_to_be_refused_is_refused(model, column):
    strange, _ = with_cell(column, STRANGE[column])
    before = model.tally_
    for learn in (model.partial_fit, model.forget):
        with pytest.raises(ValueError, match=column):
            learn(strange, Y[:5])
    with pytest.raises(ValueError, match=column):
        tb.NaiveBayes(COLUMNS).fit(strange, Y[:5])
    with pytest.raises(ValueError, match=column):
        model.reestimate(unseen="error").predict(strange)
    assert model.tally_ is before
    smooth = model.reestimate(unseen="smooth")
    with pytest.warns(InvalidValueWarning):
        found = smooth.predict_proba(strange)
    np.testing.assert_array_equal(found, smooth.predict_proba(with_cell(column, None)[1]))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_always_raise(model, column, value):
    strange, _ = with_cell(column, value)
    with pytest.raises(ValueError, match=column):
        model.predict(strange)
    strange.loc[2, "eggs"] = 0.5
    with pytest.raises(ValueError, match="inf"):
        model.predict_proba(strange)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_which_nothing_fits_is_another_one(model, column):
    strange, _ = with_cell(column, STRANGE[column])
    strange[column] = [STRANGE[column], None, STRANGE[column], None, None]
    with pytest.raises(ValueError, match=column):
        model.predict(strange)
    with pytest.warns(InvalidValueWarning, match=column):  # of one row nobody can tell
        found = model.predict_proba(strange.head(1))
    np.testing.assert_array_equal(found, model.predict_proba(with_cell(column, None, row=0)[1].head(1)))


def test_all_columns_are_in_one_warning(model):
    strange = FRAME.head(8).astype(object)
    for row, (column, value) in enumerate(STRANGE.items()):
        strange.loc[row, column] = value
        strange.loc[row + 1, column] = value
    strange["eggs"] = [0.5, 1.5, 2.5, -1, -2, 3, 4, 5]
    with pytest.warns(InvalidValueWarning) as said:
        model.predict(strange)
    assert len(said) == 1
    assert "0.5, 1.5, 2.5 and 2 others in column 'eggs' (5 cells)" in str(said[0].message)
    assert "and in 2 more columns" in str(said[0].message)
    assert "unseen='error'" in str(said[0].message)


def test_arrays_and_their_short_way():
    X = np.stack([FRAME["eggs"], FRAME["fair"]], axis=1).astype(float)
    model = tb.NaiveBayes(tb.Poisson()).fit(X, Y)
    strange, missing = X[:4].copy(), X[:4].copy()
    strange[2, 0], missing[2, 0] = -3, np.nan
    with pytest.warns(InvalidValueWarning, match=r"-3 in column 0 \(1 cell\)"):
        found = model.predict_proba(strange)
    np.testing.assert_array_equal(found, model.predict_proba(missing))
    with pytest.warns(InvalidValueWarning):
        np.testing.assert_array_equal(model.predict(strange), model.predict(missing))
    labels = tb.NaiveBayes(tb.Categorical()).fit(X.astype(int), Y)
    strange[2, 0] = 0.25
    with pytest.warns(InvalidValueWarning, match=r"0\.25"):
        np.testing.assert_array_equal(labels.predict_proba(strange), labels.predict_proba(missing))


def test_sparse_counts():
    X = RNG.poisson(1.0, (N, 6)).astype(float)
    model = tb.NaiveBayes(tb.Poisson()).fit(scipy.sparse.csr_array(X), Y)
    strange, missing = X[:4].copy(), X[:4].copy()
    strange[1, 2], missing[1, 2] = 0.5, np.nan
    with pytest.warns(InvalidValueWarning, match=r"0\.5"):
        found = model.predict_proba(scipy.sparse.csr_array(strange))
    np.testing.assert_allclose(found, model.predict_proba(scipy.sparse.csr_array(missing)))
    words = tb.NaiveBayes(tb.Multinomial()).fit(scipy.sparse.csr_array(X), Y)
    strange[1, 2] = -1
    with pytest.raises(ValueError, match="-1"):  # of a row of words none may be missing
        words.predict_proba(scipy.sparse.csr_array(strange))


def test_a_family_of_your_own_is_asked_cell_by_cell():
    class Failures(tb.Bernoulli):
        """Counts failures, so that more than 1 is no mistake."""

        is_binary = False

        def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
            return tb.Poisson().collect(block, group, n_groups, weight)

    x = np.array([0.0, 3.0, 0.5, np.nan, np.inf, -2.0, 0.5])
    expected = [False, False, True, False, False, True, True]
    np.testing.assert_array_equal(out_of_support_cells(Failures(), x), expected)
    np.testing.assert_array_equal(out_of_support_cells(tb.Poisson(), x), expected)
    np.testing.assert_array_equal(out_of_support_cells(tb.Gaussian(), x), np.zeros(7, dtype=bool))


@pytest.mark.parametrize(
    "family", [tb.Poisson(), tb.Bernoulli(), tb.Binomial(3), tb.LogNormal(), tb.Gaussian(), tb.Binned((0, 1, 2))]
)
def test_what_a_family_says_is_what_it_counts(family):
    x = np.array([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 1e10, np.nan])
    counted = [first_invalid_cell(family, np.array([[value]])) is None for value in x]
    np.testing.assert_array_equal(~out_of_support_cells(family, x), counted)


@pytest.mark.parametrize("kind", ["AveragedOneDependence", "TreeAugmentedNaiveBayes"])
def test_pairs_of_columns(kind):
    model = getattr(tb, kind)().fit(FRAME.astype({"floor": str}), Y)
    strange, missing = with_cell("weight", "n/a")
    missing["floor"] = ["0", "1", "2", None, "1"]
    strange["floor"] = np.array(["0", "1", "2", 1, "1"], dtype=object)
    for ask in (model.predict_proba, model.predict, lambda rows: model.explain(rows).log_odds):
        with pytest.warns(InvalidValueWarning, match="'n/a' in column 'weight'") as said:
            found = ask(strange)
        assert len(said) == 1
        np.testing.assert_array_equal(found, ask(missing))


@pytest.mark.parametrize("single", [True, False])
def test_chosen_models(single):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=150), "k": rng.choice(list("uvw"), 150), "z": rng.normal(size=150)})
    y = (rows["x"] + rng.normal(size=150) > 0).astype(int).to_numpy()
    model = tb.AutoClassifier(single=single).fit(rows, y)
    strange, missing = rows.head(5).astype(object), rows.head(5).astype(object)
    strange.loc[1, "x"], missing.loc[1, "x"] = "n/a", None
    strange.loc[2, "k"], missing.loc[2, "k"] = 7, None
    for ask in (model.predict_proba, model.predict, model.predict_log_proba, lambda r: model.explain(r).log_odds):
        with pytest.warns(InvalidValueWarning, match="'n/a' in column 'x'") as said:
            found = ask(strange)
        assert len(said) == 1
        np.testing.assert_array_equal(found, ask(missing))
    with pytest.raises(ValueError, match="'x'"):
        model.partial_fit(strange, y[:5])


@pytest.mark.slow
def test_a_mixture():
    rows = FRAME[["eggs", "price"]]
    model = tb.Mixture(2, {"eggs": tb.Poisson(), "price": tb.LogNormal()}, random_state=0).fit(rows)
    strange, missing = rows.head(4).astype(float), rows.head(4).astype(float)
    strange.loc[1, "price"], missing.loc[1, "price"] = -5.0, np.nan
    with pytest.warns(InvalidValueWarning, match="-5 in column 'price'"):
        found = model.predict_proba(strange)
    np.testing.assert_array_equal(found, model.predict_proba(missing))


def test_a_hidden_markov_model():
    steps = [RNG.poisson(2, 20), RNG.poisson(6, 20)]
    model = tb.HiddenMarkovModel(2, tb.Poisson(), random_state=0).fit(steps)
    strange, missing = steps[0].astype(float), steps[0].astype(float)
    strange[3], missing[3] = 0.5, np.nan
    for ask in ("predict", "predict_proba", "score_samples", "filter_proba", "impute"):
        with pytest.warns(InvalidValueWarning, match=r"0\.5") as said:
            found = getattr(model, ask)([strange])
        assert len(said) == 1
        np.testing.assert_array_equal(found[0], getattr(model, ask)([missing])[0])
    with pytest.raises(ValueError, match=r"0\.5"):
        tb.HiddenMarkovModel(2, tb.Poisson()).fit([strange])


def test_a_network():
    rows = {"rain": RNG.integers(0, 2, N), "wet": RNG.integers(0, 2, N), "drops": RNG.poisson(3, N)}
    model = tb.BayesianNetwork({"wet": ["rain"], "drops": ["rain"]}, columns={"drops": tb.Poisson()}).fit(rows)
    strange = {"rain": [None, 1, 0], "wet": [1, "soaked", 0], "drops": [0.5, 2, 1]}
    missing = {"rain": [None, 1, 0], "wet": [1, None, 0], "drops": [None, 2, 1]}
    asked = {
        "predict_proba": lambda r: model.predict_proba(r, "rain"),
        "predict": lambda r: model.predict(r, "rain"),
        "score_samples": lambda r: model.score_samples(r),
        "impute": lambda r: np.stack(list(model.impute(r).values())),
    }
    for name, ask in asked.items():
        with pytest.warns(InvalidValueWarning, match="'soaked' in column 'wet'") as said:
            found = ask(strange)
        assert len(said) == 1
        np.testing.assert_array_equal(found, ask(missing), err_msg=name)
    with pytest.raises(ValueError, match=r"drops|wet"):
        model.partial_fit(strange)


def test_other_errors_are_as_before(model):
    with pytest.raises(ValueError, match="weight"):
        model.predict(FRAME.drop(columns="weight"))
    with pytest.raises(ValueError, match="features"):
        tb.NaiveBayes().fit(np.ones((4, 2)), [0, 1, 0, 1]).predict(np.ones((2, 3)))


def test_large_whole_numbers_stay_what_they_are_beside_a_strange_cell():
    rows = {"key": [2**62, 5, 2**62, 5], "events": [1, 2, 3, 1], "y": [0, 1, 0, 1]}
    model = tb.NaiveBayes({"key": tb.Categorical(), "events": tb.Poisson()}).fit(rows, "y")
    expected = model.predict_proba({"key": [2**62, 5], "events": [None, 2.0]})
    with pytest.warns(tb.InvalidValueWarning, match=r"0\.5 in column 'events' \(1 cell\)\."):
        found = model.predict_proba({"key": [2**62, 5], "events": [0.5, 2.0]})
    np.testing.assert_allclose(found, expected)


def test_one_row_is_one_row_in_any_form():
    rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "k": list("uvuv")})
    model = tb.NaiveBayes().fit(rows, ["a", "b", "a", "b"])
    row = {"x": "abc", "k": "u"}
    for one in (row, [row], pd.Series(row), pd.DataFrame([row]), {name: [cell] for name, cell in row.items()}):
        with pytest.warns(InvalidValueWarning, match="'abc' in column 'x' \\(1 cell\\)"):
            found = model.predict_proba(one)
        np.testing.assert_array_equal(found, model.predict_proba({"x": np.nan, "k": "u"}))
    for several in ([row, row], pd.DataFrame([row, row])):
        with pytest.raises(tb.DataError, match="column 'x' is partly 'abc' \\(str\\); expected numbers"):
            model.predict_proba(several)
