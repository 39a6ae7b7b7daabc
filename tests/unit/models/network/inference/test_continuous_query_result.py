"""What is told of measured nodes, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError


def test_what_cannot_be_asked_is_said():
    model = tb.BayesianNetwork.from_parameters(
        {
            "k": {"levels": [0, 1], "probabilities": [0.5, 0.5]},
            "x": {"parents": ["k"], "intercept": [0, 1], "deviation": 1},
            "y": {"parents": ["x"], "intercept": 0, "weights": {"x": 1}, "deviation": 1},
        }
    )
    with pytest.raises(DataError, match=r"node 'x' is asked about and known"):
        model.query("x", {"x": 1.0})
    with pytest.raises(DataError, match=r"node 'x' is measured, so it has no probabilities by level"):
        model.predict_proba({"y": [1.0]}, "x")
    with pytest.raises(DataError, match=r"node 'y' is measured"):
        model.most_probable(nodes="y")
    with pytest.raises(DataError, match=r"inference='sampling' counts levels"):
        model.query("x", inference="sampling")
    with pytest.raises(DataError, match=r"the network has no node 'z'"):
        model.query("z")
    with pytest.raises(DataError, match=r"node 'y' is measured, and known as .*; expected a number"):
        model.query("k", {"y": None})
    with pytest.raises(DataError, match=r"found inf in row 0, column 'y'"):
        model.query("k", {"y": np.inf})
    with pytest.raises(DataError, match=r"node 'y' has 2 columns here; expected 1"):
        model.query("k", {"y": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"is measured; a BIF file holds labels only.\n    Use to_json"):
        model.to_bif("nowhere.bif")
    answer = model.query(["x", "y"])
    with pytest.raises(DataError, match=r"the answer is about 2 nodes(.|\n)*marginal\('x'\)"):
        answer.quantile(0.5)
    with pytest.raises(DataError, match=r"level is 1.0; expected numbers between 0 and 1"):
        model.query("x").quantile(1.0)
    with pytest.raises(DataError, match=r"mass is 2"):
        model.query("x").interval(2)
    with pytest.raises(DataError, match=r"expected some of these, each once"):
        answer.marginal("k")
    assert model.most_probable({"y": 3.0})["k"] == 1
    assert "correlations" in repr(answer)
    assert "<table" in answer._repr_html_()
    assert list(model.query("x").to_frame()["mean"]) == [0.5]
