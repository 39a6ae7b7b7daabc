"""Parameters that do not go with what was learnt are refused when they are set, and nothing changes."""

import numpy as np
import pytest

import tallybayes as tb

ROWS = {"x": [0.0, 1.0, 2.0, 3.0], "u": ["a", "b", "a", "b"]}
FITTED = {
    "NaiveBayes": lambda: tb.NaiveBayes().fit(ROWS, "u"),
    "Mixture": lambda: tb.Mixture(2, {"x": tb.Gaussian()}, random_state=0).fit(ROWS),
    "BayesianNetwork": lambda: tb.BayesianNetwork({"x": ["u"]}).fit(ROWS),
    "HiddenMarkovModel": lambda: tb.HiddenMarkovModel().fit([{"x": ROWS["x"]}], [ROWS["u"]]),
}
UNKNOWN = {"z": tb.NormalInverseGamma(0.0, 1.0, 1.0, 1.0)}


@pytest.mark.parametrize("name", FITTED)
def test_a_prior_of_an_unknown_column_is_refused_at_once(name):
    model = FITTED[name]()
    prior = {"emission": UNKNOWN} if name == "HiddenMarkovModel" else UNKNOWN
    before, tally = model.get_params(deep=False), model.tally_
    for change in (model.reestimate, model.set_params):
        with pytest.raises(tb.errors.PriorError, match="prior= has unknown columns 'z'"):
            change(prior=prior, estimate="map")
        assert model.get_params(deep=False) == before
        assert model.tally_ is tally
    assert model.reestimate(prior=None).set_params(estimate="map").estimate == "map"


def test_a_prior_for_columns_is_refused_by_a_covariance_at_once():
    model = tb.GaussianDiscriminant().fit([[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1])
    for change in (model.reestimate, model.set_params):
        with pytest.raises(tb.errors.PriorError, match="expected a NormalInverseWishart"):
            change(prior={0: tb.NormalInverseGamma(0.0, 1.0, 1.0, 1.0)})
    assert model.prior is None


def test_a_parameter_that_there_is_not_changes_no_other():
    model = FITTED["NaiveBayes"]()
    found = model.predict_proba({"x": [0.5]})
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(estimate="mle", nonsense=1)
    assert model.estimate == "bayes"
    assert np.array_equal(model.predict_proba({"x": [0.5]}), found)


class Own(tb.NaiveBayes):
    """A model that no file can name."""


def test_a_model_of_ones_own_is_not_saved_where_it_could_not_be_loaded(tmp_path):
    model = Own().fit([[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1])
    with pytest.raises(tb.FileError, match=r"Save its counts, model\.tally_\.save"):
        model.save(tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_models_say_how_many_rows_and_what_the_target_is():
    rows = {"x": [1.0, 2.0, 4.0, 5.0], "z": ["a", "b", "b", "a"], "kind": ["n", "n", "y", "y"], "w": [1, 2, 0, 4]}
    for model in (
        tb.NaiveBayes({"x": "auto"}),
        tb.AveragedOneDependence({"z": tb.Categorical()}),
        tb.AutoClassifier(single=True),
    ):
        assert not hasattr(model, "target_")
        assert not hasattr(model, "n_rows_")
        fitted = model.fit(rows, "kind", sample_weight="w")
        assert (fitted.target_, fitted.n_rows_) == ("kind", 7.0)
    assert tb.NearestClassMean().fit([[1.0], [2.0]], [0, 1]).target_ == "class"
    assert tb.BayesianNetwork({"z": ["kind"]}).fit(rows).n_rows_ == 4
    assert tb.HiddenMarkovModel().fit([["a", "b"], ["a"]], [["x", "y"], ["x"]]).n_rows_ == 3


@pytest.mark.parametrize("name", FITTED)
def test_a_model_without_rows_keeps_what_was_chosen(name):
    model = FITTED[name]()
    empty = model.without_rows()
    assert empty.n_rows_ == 0
    assert model.n_rows_ == pytest.approx(4, rel=1e-12)  # of a mixture, a sum of weights
    if name != "Mixture":
        assert (model + empty).tally_ == model.tally_


def test_a_chosen_model_without_rows_adds_up():
    rows = {"x": [1.0, 2.0, 4.0, 5.0] * 5, "z": ["a", "b", "b", "a"] * 5, "kind": ["n", "n", "y", "y"] * 5}
    model = tb.AutoClassifier(folds=2).fit(rows, "kind")
    other = model.without_rows().partial_fit(rows, "kind")
    assert (model + other).n_rows_ == 40
