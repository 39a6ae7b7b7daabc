"""Rows of a network, some of whose nodes are not observed."""

import warnings

import pandas as pd
import pytest

import tallybayes as tb


@pytest.fixture(scope="module")
def model():
    rows = {"season": list("wwssws"), "rain": list("ynynyn"), "wet": list("ynynnn")}
    return tb.BayesianNetwork({"rain": ["season"], "wet": ["rain"]}).fit(rows)


def test_misspelt_nodes_are_named(model, tmp_path):
    rows = pd.DataFrame({"season": ["w", "s"], "rian": ["y", "n"]})
    expected = r"'rain' are not observed in any row; found column 'rian' instead of 'rain'"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for X in (rows, rows.to_dict("list"), tmp_path / "rows.csv"):
        with pytest.warns(UserWarning, match=expected):
            found = model.predict(X, "wet")
        assert found.tolist() == model.predict(rows[["season"]], "wet").tolist()


def test_other_columns_and_unobserved_nodes_raise_no_warning(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(pd.DataFrame({"season": ["w"], "identifier": [3]}), "wet")  # rain is not observed
        model.predict(pd.DataFrame({"rain": ["y"], "wet2": ["y"], "season": ["w"]}), "wet")  # wet is predicted
