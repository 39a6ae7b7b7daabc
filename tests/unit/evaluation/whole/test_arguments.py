"""Arguments of functions that have the wrong type give errors of the package."""

import numpy as np
import pytest

import tallybayes as tb

ROWS = np.random.default_rng(0).normal(size=(20, 2))
LABELS = np.array(["a", "b"] * 10)
STEPS = [list("abba"), list("ab")] * 3


@pytest.fixture(scope="module")
def model():
    return tb.NaiveBayes().fit(ROWS, LABELS)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (tb.evaluate, {"mass": "most"}, "mass is 'most'; expected a number between 0 and 1"),
        (tb.evaluate, {"by": 3.5}, "the data is 3.5; expected rows"),
        (tb.audit, {"by": [1, 2]}, r"different numbers of rows \(data: 20, by: 2\)"),
        (tb.audit, {"by": 3.5}, "the data is 3.5; expected rows"),
        (tb.audit, {"first_row": None}, "first_row is None; expected a whole number of at least 0"),
        (tb.learning_curves, {"sizes": "all"}, "sizes is 'all'; expected whole numbers from 1 to 16"),
        (tb.prior_path, {"grid": "all"}, "grid is 'all'; expected one or more positive numbers"),
    ],
)
def test_arguments_with_a_model(model, function, arguments, message):
    with pytest.raises(tb.DataError, match=message):
        function(model, ROWS, LABELS, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tb.compare(5), "models is 5; expected a list or dict of at least two fitted models"),
        (lambda: tb.count({"x": [1]}, tb.Gaussian()), r"factors is Gaussian\(\); expected a list of tb.Factor"),
        (lambda: tb.count({"x": [1]}, ["x"]), r"factors is a list with 'x'(.|\n)*Such as \[tb.Factor"),
        (lambda: tb.tokenize("a", rule=[]), r"the rule of tokens is \[\]; expected 'words' or 'sklearn'"),
        (lambda: tb.table("rows.csv", columns="x"), "columns is 'x'; expected a list of strings"),
        (lambda: tb.table("rows.csv", delimiter=";;"), "delimiter is ';;'; expected one character"),
        (
            lambda: tb.table("rows.csv", types={"x": "word"}),
            "the type of column 'x' is 'word'; expected a type of Arrow",
        ),
        (lambda: tb.table("rows.csv", on_bad="drop"), "on_bad is 'drop'; expected 'error', 'missing' or 'skip'"),
        (lambda: tb.find_leakage(ROWS, LABELS, folds="ten"), "folds is 'ten'; expected a whole number of at least 2"),
        (lambda: tb.learn_structure({"x": [1]}, names=1), "names is 1; expected a list of names"),
        (lambda: tb.select_n_states(tb.HiddenMarkovModel(), STEPS, 3), "candidates is 3; expected a list of numbers"),
        (
            lambda: tb.select_n_states(tb.HiddenMarkovModel(), STEPS, [2], n_init=None),
            "n_init is None; expected a whole number of at least 1",
        ),
        (
            lambda: tb.HiddenMarkovModel(2).fit(STEPS, sample_weight=["x"] * 6),
            r"sample_weight is \['x', .*; expected one number for every sequence",
        ),
    ],
)
def test_arguments_of_functions(call, message):
    with pytest.raises((tb.DataError, tb.EstimateError), match=message):
        call()


def test_switches_of_tokens_may_be_numbers():
    assert tb.tokenize("A b", lowercase=0) == tb.tokenize("A b", lowercase=False)
