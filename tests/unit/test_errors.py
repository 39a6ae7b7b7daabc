"""Messages of errors: misspelt names are answered with the closest known one."""

import pytest

import tallybayes as tb
from tallybayes.errors import closest_names


@pytest.mark.parametrize(
    ("name", "close"),
    [("specis", "species"), ("Body Mass", "body_mass"), ("SEX", "sex"), ("nothing", None), (3, None)],
)
def test_the_closest_name(name, close):
    assert closest_names(name, ["body_mass", "sex", "species"]) == ([] if close is None else [close])


def test_a_misspelt_column_is_answered_with_the_closest():
    rows = {"body_mass": [1.0, 2.0], "species": ["a", "b"]}
    with pytest.raises(tb.DataError, match=r"no column 'specis' .*\n    Did you mean 'species'\?"):
        tb.NaiveBayes().fit(rows, "specis")
    with pytest.raises(tb.PriorError, match="Did you mean 'body_mass'"):
        tb.NaiveBayes(prior={"bodymass": 1.0}).fit(rows, "species")
    network = tb.BayesianNetwork({"rain": [], "wet": ["rain"]}).fit({"rain": ["y", "n"], "wet": ["y", "n"]})
    with pytest.raises(tb.DataError, match="Did you mean 'rain'"):
        network.query("rian")
