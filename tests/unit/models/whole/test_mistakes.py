"""Typical mistakes give errors of the package, which name the parameter and what is expected."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

ROWS = np.random.default_rng(0).normal(size=(20, 2))
LABELS = np.array(["a", "b"] * 10)
STEPS = [list("abba"), list("ab")]
STATES = [list("xyyx"), list("xy")]


def fitted(kind):
    return kind().fit(ROWS, LABELS)


CLASSIFIERS = [
    tb.NaiveBayes,
    tb.GaussianDiscriminant,
    tb.TreeAugmentedNaiveBayes,
    tb.NearestClassMean,
    lambda: tb.CountForest(4),
]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_rows_of_different_lengths(kind):
    with pytest.raises(tb.DataError, match=r"the rows of X have 1 to 2 values; expected equal numbers.\n    Pass None"):
        kind().fit([[1.0, 2.0], [3.0]], [0, 1])


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:5], r"different numbers of rows \(X: 20, y: 5\)"),
        ([None, *LABELS[1:]], r"the label of row 0 is missing \(1 of 20 are\)(.|\n)*Leave the unlabeled rows out"),
        (ROWS[:, 0], "y is continuous"),
        ([True, *LABELS[1:]], "bool levels on one side"),
        (None, "the target y is None"),
    ],
)
def test_labels_of_a_score(kind, labels, message):
    with pytest.raises((tb.DataError, tb.LabelError), match=message):
        fitted(kind).score(ROWS, labels)


@pytest.mark.parametrize("kind", [tb.NaiveBayes, lambda: tb.CountForest(4)])
def test_classes_that_are_arrays(kind):
    with pytest.raises(tb.LabelError, match=r"there is no class array(.|\n)*known: 'a', 'b'"):
        fitted(kind).drop_class(LABELS)


@pytest.mark.parametrize("number", [-1, 1.5, "many", None, [[3], [4, 5]], pd.DataFrame({"n": [3]})])
def test_numbers_of_rows_to_draw(number):
    for draw in (
        fitted(tb.NaiveBayes).sample,
        fitted(tb.TreeAugmentedNaiveBayes).sample,
        tb.HiddenMarkovModel().fit(STEPS, STATES).sample,
        tb.BayesianNetwork({"a": []}).fit({"a": [0, 1]}).sample,
        lambda n: tb.LinearRegression().fit(ROWS, ROWS[:, 0]).sample(ROWS, n),
        tb.fit_distribution([1, 0], tb.Bernoulli()).predictive().sample,
    ):
        with pytest.raises(tb.DataError, match=r"n is (.|\n)*; expected a whole number of at least 0"):
            draw(number)


@pytest.mark.parametrize("seed", ["now", -1, 1.5, {}])
def test_seeds(seed):
    for run in (
        lambda: tb.Mixture(2, random_state=seed).fit(ROWS),
        lambda: tb.HiddenMarkovModel(2, random_state=seed).fit(STEPS),
        lambda: fitted(tb.NaiveBayes).sample(3, random_state=seed),
        lambda: tb.cross_validate(tb.NaiveBayes(), ROWS, LABELS, 2, random_state=seed),
        lambda: tb.Beta(1, 1).sample(3, random_state=seed),
    ):
        with pytest.raises(tb.DataError, match=r"random_state is .*; expected a whole number of at least 0, a NumPy"):
            run()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (tb.AveragedOneDependence(strength=None), "strength is None; expected a positive number of rows"),
        (tb.AveragedOneDependence(bins=np.arange(2)), r"bins is array\(\[0, 1\]\); expected a whole number"),
        (tb.NearestClassMean(n_components="all"), "n_components is 'all'; expected a whole number of at least 1"),
        (tb.CountForest(4, strength=True), "strength is True; expected a positive number of rows, or None"),
        (tb.CountBoosting(2, rate=None), "rate is None; expected a number above 0, at most 1"),
        (tb.HiddenMarkovModel(end_state="yes"), "end_state is 'yes'; expected True or False"),
        (tb.HiddenMarkovModel(start={"x": 1}), r"start= has the unknown state {'x': 1} \(known: 'x', 'y'\)"),
    ],
)
def test_parameters_of_wrong_types(model, message):
    rows, target = (STEPS, STATES) if isinstance(model, tb.HiddenMarkovModel) else (ROWS, LABELS)
    with pytest.raises((tb.DataError, tb.LabelError), match=message):
        model.fit(rows, target)


def test_states_that_are_a_number_or_a_frame():
    with pytest.raises(tb.DataError, match="y is 5; expected the states of every sequence"):
        tb.HiddenMarkovModel().fit(STEPS, 5)
    joined = {"X": np.concatenate(STEPS), "y": np.concatenate(STATES), "lengths": [4, 2]}
    framed = tb.HiddenMarkovModel().fit(**joined | {"y": pd.DataFrame({"state": joined["y"]})})
    assert framed.tally_ == tb.HiddenMarkovModel().fit(**joined).tally_


def test_columns_of_other_sequences():
    model = tb.HiddenMarkovModel().fit(STEPS, STATES)
    with pytest.raises(tb.DataError, match="no column 0 in the data"):
        model.impute(pd.DataFrame({"u": [], "v": []}))


@pytest.mark.parametrize("rows", [pd.DataFrame(ROWS, columns=["u", "u"]), [[1.0, 2.0], [3.0]], ROWS[:0]])
def test_rows_of_a_report(rows):
    with pytest.raises(tb.DataError, match=r"expected (unique names|equal numbers|at least one row)"):
        fitted(tb.NaiveBayes).report(rows, LABELS[: len(rows)])


def test_a_report_of_columns_with_numbers_for_names():
    rows = pd.DataFrame(ROWS, columns=[0, "v"])
    assert "Summary" in tb.NaiveBayes().fit(rows, LABELS).report(rows, LABELS).html
