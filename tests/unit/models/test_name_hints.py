"""Names from other libraries are answered with ours, which exist; all else stays as Python has it."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.models.name_hints import ATTRIBUTES, MODULE, SETTINGS, instead_of, read

X = np.random.default_rng(0).normal([[0.0, 0.0], [3.0, 1.0]] * 10)
Y = np.array(["a", "b"] * 10)
MODELS = [
    tb.NaiveBayes,
    tb.GaussianDiscriminant,
    tb.NearestClassMean,
    tb.AveragedOneDependence,
    tb.TreeAugmentedNaiveBayes,
    tb.Mixture,
    tb.HiddenMarkovModel,
    tb.BayesianNetwork,
    tb.Chosen,
]
FIRST = {tb.BayesianNetwork: ({"b": ["a"]},)}


def made(kind):
    return kind(*FIRST.get(kind, ()))


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_recommended_exists(kind):
    fitted = tb.NaiveBayes().fit(X, Y)  # which has the attributes that only instances have
    for names in (*ATTRIBUTES.values(), *SETTINGS.values()):
        for one in instead_of(kind, names):
            only, package, name, sign = read(one.removeprefix("model."))
            if package:
                assert callable(getattr(tb, name))
            elif sign == "=":
                assert name in inspect.signature(kind).parameters
            elif name != "tally_":
                assert hasattr(kind, name)
                assert callable(getattr(kind, name)) == (sign == "(")
            else:
                assert hasattr(fitted, name)
            assert not only


def test_every_recommendation_serves_some_model():
    for asked, names in (*ATTRIBUTES.items(), *SETTINGS.items()):
        assert any(instead_of(kind, names) for kind in MODELS), asked
    for name in MODULE.values():
        assert hasattr(tb, name)


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (tb.BayesianNetwork, "show_work", r"query\(nodes, given\)"),
        (tb.HiddenMarkovModel, "show_work", r"forward\(X\)"),
        (tb.NaiveBayes, "coef_", r"model\.to_linear\(\)"),
        (tb.NaiveBayes, "intercept_", r"model\.to_linear\(\)"),
        (tb.NaiveBayes, "feature_log_prob_", r"model\.parameters_"),
        (tb.NaiveBayes, "theta_", r"model\.parameters_"),
        (tb.NaiveBayes, "var_", r"model\.parameters_"),
        (tb.NaiveBayes, "class_count_", r"model\.tally_"),
        (tb.NaiveBayes, "bic", r"model\.bic_"),
        (tb.HiddenMarkovModel, "viterbi", r"model\.predict\(X\)"),
        (tb.HiddenMarkovModel, "decode", r"model\.predict\(X\)"),
        (tb.HiddenMarkovModel, "transmat_", r"model\.transition_"),
        (tb.HiddenMarkovModel, "startprob_", r"model\.start_"),
        (tb.HiddenMarkovModel, "emissionprob_", r"model\.emission_"),
        (tb.BayesianNetwork, "cpt", r"model\.table\(node\)"),
        (tb.BayesianNetwork, "get_cpds", r"model\.table\(node\)"),
        (tb.BayesianNetwork, "map_query", r"model\.most_probable\(given\)"),
        (tb.BayesianNetwork, "infer", r"model\.query\(nodes, given\)"),
        (tb.NearestClassMean, "centroids_", r"model\.means_"),
    ],
)
def test_attributes_of_others_are_answered(kind, name, ours):
    with pytest.raises(
        AttributeError, match=rf"'{kind.__name__}' object has no attribute '{name}'; here it is .*{ours}"
    ):
        getattr(made(kind), name)
    assert not hasattr(made(kind), name)
    assert name not in dir(made(kind))


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (tb.NaiveBayes, "alpha", "prior="),
        (tb.NaiveBayes, "fit_prior", "class_prior='uniform'"),
        (tb.NaiveBayes, "var_smoothing", "prior="),
        (tb.NaiveBayes, "class_weight", r"class_prior= or model\.decide\(X, cost=\.\.\.\)"),
        (tb.NaiveBayes, "priors", "class_prior="),
        (tb.GaussianDiscriminant, "reg_param", "shrinkage="),
        (tb.GaussianDiscriminant, "covariance_type", "covariance="),
        (tb.HiddenMarkovModel, "n_components", "n_states="),
        (tb.Mixture, "n_clusters", "n_components="),
        (tb.NaiveBayes, "smoothing", "prior="),
    ],
)
def test_settings_of_others_are_answered(kind, name, ours):
    with pytest.raises(
        TypeError, match=rf"{kind.__name__}\(\) got an unexpected keyword argument '{name}'; here .*{ours}"
    ):
        kind(*FIRST.get(kind, ()), **{name: 1})


def test_settings_that_are_nearly_right():
    with pytest.raises(TypeError, match=r"argument 'Estimate'\. Did you mean estimate=\?"):
        tb.NaiveBayes(Estimate="mle")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tb.BayesianNetwork()


def test_what_is_not_in_the_table_is_said_by_python():
    model = tb.NaiveBayes()
    with pytest.raises(AttributeError, match=r"^'NaiveBayes' object has no attribute 'whatever'$"):
        _ = model.whatever
    with pytest.raises(TypeError, match=r"^NaiveBayes.__init__\(\) got an unexpected keyword argument 'whatever'$"):
        tb.NaiveBayes(whatever=1)
    with pytest.raises(AttributeError, match=r"here it is tb\.NaiveBayes"):
        _ = tb.GaussianNB


@pytest.mark.parametrize("kind", MODELS)
def test_the_signature_stays_and_copies_work(kind):
    names = list(inspect.signature(kind).parameters)
    assert sorted(names) == kind._get_param_names()
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in inspect.signature(kind).parameters.values())
    model = made(kind)
    for other in (copy.copy(model), copy.deepcopy(model), clone(model), pickle.loads(pickle.dumps(model))):
        assert other.get_params(deep=False) == model.get_params(deep=False)
    empty = object.__new__(kind)  # as pickle makes it, before it has a state
    assert not hasattr(empty, "__deepcopy__")
    assert not hasattr(empty, "_repr_svg_")
    assert not hasattr(empty, "__array__")


def test_an_attribute_that_cannot_be_derived_says_why():
    model = tb.GaussianDiscriminant().fit(X, Y)
    with pytest.raises(tb.NotLinearError, match="linear only where the classes share"):
        _ = model.discriminant_functions_


def test_what_cannot_be_derived_is_tried_once():
    asked = []

    class Deep(tb.NaiveBayes):
        @property
        def bottom_(self):
            asked.append("bottom")
            raise tb.EstimateError("there is no bottom")

        @property
        def middle_(self):
            return self.bottom_

        @property
        def top_(self):
            return self.middle_

    with pytest.raises(tb.EstimateError, match="there is no bottom") as caught:
        _ = Deep().top_
    assert isinstance(caught.value, AttributeError)
    assert asked == ["bottom"]
    assert not hasattr(Deep(), "top_")
