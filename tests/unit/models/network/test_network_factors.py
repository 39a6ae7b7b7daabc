"""Factors of a network: types of integer columns, and the warning for many levels."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

AGES = np.arange(18, 90).repeat(3)  # 72 different ones
ROWS = {"age": AGES, "old": AGES > 60, "kids": AGES % 4}
MESSAGE = r"column 'age' has 72 different whole numbers"


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
def test_warning_for_many_integer_levels(learn):
    with pytest.warns(UserWarning, match=MESSAGE) as caught:
        learn()
    assert len(caught) == 1  # not of the four numbers of children
    assert "columns={'age': tb.Gaussian()}" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn(columns={"age": tb.Categorical()})
        learn(columns=tb.Categorical())


def test_no_warning_for_strings_and_few_integers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES.astype(str), "old": AGES > 60})
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES % 50, "old": AGES > 60})
        tb.BayesianNetwork({"age": ["old"]}, columns={"age": tb.Gaussian()}).fit(ROWS)
    with pytest.warns(UserWarning, match="has 51 different whole numbers"):
        tb.BayesianNetwork({"age": ["old"]}).fit({"age": AGES % 51, "old": AGES > 60})


@pytest.mark.parametrize("columns", ["auto", {"a": tb.Categorical(), "b": tb.Gaussian()}])
def test_a_continuous_parent_of_a_discrete_node(columns):
    rows = pd.DataFrame({"a": ["u", "v", "u"], "b": [0.5, 1.5, 2.0]})
    expected = (
        r"node 'a' is discrete, and its parent 'b' is .*\n    Discretize 'b' with tb\.Binned.*or reverse the edge"
    )
    with pytest.raises(tb.DataError, match=expected):
        tb.BayesianNetwork({"a": ["b"]}, columns=columns).fit(rows)
