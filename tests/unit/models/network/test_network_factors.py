"""Which factors a network has: what whole numbers are taken for, and when that is worth a word."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

AGES = np.arange(18, 90).repeat(3)  # 72 different ones
ROWS = {"age": AGES, "old": AGES > 60, "kids": AGES % 4}
SAID = r"column 'age' has 72 different whole numbers"


@pytest.mark.parametrize(
    "learn",
    [
        lambda **settings: tb.BayesianNetwork({"old": ["age"], "kids": ["old"]}, **settings).fit(pd.DataFrame(ROWS)),
        lambda **settings: tb.BayesianNetwork({"age": ["old"]}, **settings).fit(ROWS),
        lambda **settings: tb.BayesianNetwork({"age": ["old"]}, **settings).fit(iter([pd.DataFrame(ROWS)])),
        lambda **settings: tb.BayesianNetwork({"age": ["old"]}, missing="em", **settings).fit(ROWS),
        lambda **settings: tb.learn_tree(ROWS, **settings),
        lambda **settings: tb.learn_structure(ROWS, **settings),
    ],
    ids=["parent", "leaf", "batches", "em", "tree", "structure"],
)
def test_many_whole_numbers_are_told_of_unless_they_are_named(learn):
    with pytest.warns(UserWarning, match=SAID) as told:
        learn()
    assert len(told) == 1  # not of the four numbers of children
    assert "columns={'age': tb.Gaussian()}" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(columns={"age": tb.Categorical()})
        learn(columns=tb.Categorical())


def test_strings_and_few_numbers_are_labels_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES.astype(str), "old": AGES > 60})
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES % 50, "old": AGES > 60})
        tb.BayesianNetwork({"age": ["old"]}, columns={"age": tb.Gaussian()}).fit(ROWS)
    with pytest.warns(UserWarning, match="has 51 different whole numbers"):
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES % 51, "old": AGES > 60})
