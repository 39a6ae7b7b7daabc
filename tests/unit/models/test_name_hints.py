"""Hints for names of other libraries: attributes, parameters and public names that are missing."""

import copy
import inspect
import pickle
from abc import ABC
from functools import wraps

import numpy as np
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.models.name_hints import HINTS

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
    tb.AutoClassifier,
]
FIRST = {tb.BayesianNetwork: ({"b": ["a"]},)}


def made(kind):
    return kind(*FIRST.get(kind, ()))


def test_every_hint_names_something_that_exists():
    functions = [thing for name in tb._PUBLIC if inspect.isfunction(thing := getattr(tb, name))]
    for name, here in HINTS.items():
        for one in here:
            found = [kind for kind in MODELS if one in inspect.signature(kind).parameters or hasattr(kind, one)]
            found += [each for each in functions if one in inspect.signature(each).parameters]
            assert found or one == "tally_" or one in tb._PUBLIC, (name, one)


def test_no_hint_is_for_a_public_name():
    assert not HINTS.keys() & tb._PUBLIC.keys()


@pytest.mark.parametrize("kind", MODELS)
def test_constructors_are_not_wrapped(kind):
    init = kind.__init__
    assert init.__module__.rpartition(".")[0] == kind.__module__.rpartition(".")[0]
    assert not hasattr(init, "__wrapped__")
    assert type(kind) is type


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (tb.BayesianNetwork, "show_work", r"query\(\)"),
        (tb.HiddenMarkovModel, "show_work", r"forward\(\)"),
        (tb.NaiveBayes, "coef_", r"model\.to_linear\(\)"),
        (tb.NaiveBayes, "intercept_", r"model\.to_linear\(\)"),
        (tb.NaiveBayes, "feature_log_prob_", r"model\.parameters_"),
        (tb.NaiveBayes, "theta_", r"model\.parameters_"),
        (tb.NaiveBayes, "var_", r"model\.parameters_"),
        (tb.NaiveBayes, "class_count_", r"model\.tally_"),
        (tb.NaiveBayes, "bic", r"model\.bic_"),
        (tb.HiddenMarkovModel, "viterbi", r"model\.predict\(\)"),
        (tb.HiddenMarkovModel, "decode", r"model\.predict\(\)"),
        (tb.HiddenMarkovModel, "transmat_", r"model\.transition_"),
        (tb.HiddenMarkovModel, "startprob_", r"model\.start_"),
        (tb.HiddenMarkovModel, "emissionprob_", r"model\.emission_"),
        (tb.BayesianNetwork, "get_cpds", r"model\.cpt\(\)"),
        (tb.BayesianNetwork, "estimate_ate", r"model\.causal_effect\(\)"),
        (tb.BayesianNetwork, "is_dconnected", r"model\.d_separated\(\)"),
        (tb.BayesianNetwork, "map_query", r"model\.most_probable\(\)"),
        (tb.BayesianNetwork, "infer", r"model\.query\(\)"),
        (tb.NearestClassMean, "centroids_", r"model\.means_"),
        (tb.BayesianNetwork, "fit_update", r"model\.partial_fit\(\)"),
    ],
)
def test_attributes_of_others_are_answered(kind, name, ours):
    with pytest.raises(AttributeError, match=rf"'{kind.__name__}' object has no attribute '{name}'\. Use .*{ours}"):
        getattr(made(kind), name)
    assert not hasattr(made(kind), name)
    assert name not in dir(made(kind))


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [
        (tb.NaiveBayes, "alpha", "prior="),
        (tb.NaiveBayes, "fit_prior", "class_prior="),
        (tb.NaiveBayes, "var_smoothing", "prior="),
        (tb.NaiveBayes, "class_weight", r"class_prior= or model\.decide\(\)"),
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
        TypeError, match=rf"{kind.__name__}\(\) got an unexpected keyword argument '{name}'\. Use .*{ours}"
    ):
        kind(*FIRST.get(kind, ()), **{name: 1})


@pytest.mark.parametrize(
    ("function", "name", "ours"),
    [
        (tb.cross_validate, "cv", r"Use folds=\."),
        (tb.cross_validate, "n_splits", r"Use folds=\."),
        (tb.cross_validate, "y", r"Use target=\."),
        (tb.cross_validate, "random_seed", r"Did you mean 'random_state'\?"),
        (tb.evaluate, "y_true", r"Use target=\."),
        (tb.learning_curves, "train_sizes", r"Use sizes=\."),
        (tb.leave_one_out, "param_grid", r"Use candidates=\."),
        (tb.select_n_states, "cv", r"Use folds=\."),
        (tb.find_leakage, "cv", r"Use folds=\."),
        (tb.learn_structure, "seed", r"Use random_state=\."),
        (tb.prequential, "batchsize", r"Did you mean 'batch_size'\?"),
    ],
)
def test_parameters_of_functions(function, name, ours):
    message = rf"^{function.__name__}\(\) got an unexpected keyword argument '{name}'\. {ours}$"
    with pytest.raises(TypeError, match=message):
        function(tb.NaiveBayes(), X, Y, **{name: 5})


def test_functions_with_hints_keep_their_signatures():
    assert "folds" in inspect.signature(tb.cross_validate).parameters
    assert pickle.loads(pickle.dumps(tb.cross_validate)) is tb.cross_validate
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'whatever'$"):
        tb.cross_validate(tb.NaiveBayes(), X, Y, whatever=1)


def test_settings_that_are_nearly_right():
    with pytest.raises(TypeError, match=r"argument 'Estimate'\. Did you mean 'estimate'\?"):
        tb.NaiveBayes(Estimate="mle")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tb.BayesianNetwork()


def test_set_params_has_the_same_hints():
    for model in (tb.NaiveBayes(), tb.NaiveBayes().fit(X, Y)):
        with pytest.raises(ValueError, match=r"Invalid parameter 'alpha' for estimator .* Use prior=\."):
            model.set_params(alpha=1)
        with pytest.raises(ValueError, match=r"Invalid parameter 'Estimate' .* Did you mean 'estimate'\?"):
            model.set_params(Estimate="mle")
        with pytest.raises(ValueError, match=r"Valid parameters are: \[.*\]\.$"):
            model.set_params(whatever=1)


def test_constructors_of_subclasses():
    class Named(tb.NaiveBayes):
        def __init__(self, alpha=1.0, **parameters):
            super().__init__(**parameters)
            self.alpha = alpha

    class Any(tb.NaiveBayes):
        def __init__(self, *values, **parameters):
            super().__init__(*values, **parameters)

    class Decorated(tb.NaiveBayes):
        @wraps(tb.NaiveBayes.__init__)
        def __init__(self, *values, **parameters):
            super().__init__(*values, **parameters)

    class Abstract(tb.NaiveBayes, ABC):
        pass

    assert (
        Named(2.0, prior=1.0).prior == Any(prior=1.0).prior == Decorated(prior=1.0).prior == Abstract(prior=1.0).prior
    )
    assert Named(alpha=2.0).alpha == 2.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'whatever'"):
        Named(whatever=1)
    for kind in (Decorated, Abstract):
        with pytest.raises(TypeError, match=r"'alpha'\. Use prior="):
            kind(alpha=1)


def test_what_is_not_in_the_table_is_said_by_python():
    model = tb.NaiveBayes()
    with pytest.raises(AttributeError, match=r"^'NaiveBayes' object has no attribute 'whatever'$"):
        _ = model.whatever
    with pytest.raises(TypeError, match=r"^NaiveBayes.__init__\(\) got an unexpected keyword argument 'whatever'$"):
        tb.NaiveBayes(whatever=1)
    with pytest.raises(AttributeError, match=r"has no attribute \'GaussianNB\'\. Use tb\.NaiveBayes\.$"):
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
    with pytest.raises(tb.NotLinearError, match="linear only with a tied covariance"):
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
