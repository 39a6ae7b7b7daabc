"""Settings are checked when a model is fitted, not before and not later, and the same for all models."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import tallybayes as tb

X = np.random.default_rng(0).normal([[0.0, 0.0], [3.0, 1.0]] * 10)
Y = np.array(["a", "b"] * 10)
LABELS = X.round().astype(str)
TABLE = {"a": Y, "b": LABELS[:, 0]}

FIT = {
    tb.NaiveBayes: lambda model: model.fit(X, Y),
    tb.GaussianDiscriminant: lambda model: model.fit(X, Y),
    tb.NearestClassMean: lambda model: model.fit(X, Y),
    tb.AveragedOneDependence: lambda model: model.fit(LABELS, Y),
    tb.TreeAugmentedNaiveBayes: lambda model: model.fit(LABELS, Y),
    tb.Mixture: lambda model: model.fit(X),
    tb.HiddenMarkovModel: lambda model: model.fit([X], [Y]),
    tb.BayesianNetwork: lambda model: model.fit(TABLE),
}
FIRST = {tb.BayesianNetwork: ({"b": ["a"]},)}  # what a model cannot be made without
WRONG = {
    "estimate": ["MAP", "ml", "best", None, 3, ["mle"]],
    "unseen": ["Missing", "ignore", None],
    "covariance": ["Full", "LDA", "round", None],
    "calibration": ["Isotonic", "platt", True],
    "class_prior": [
        "Uniform",
        "balanced",
        "freq",
        0.5,
        {"a": -1.0},
        [0.0, 0.0],
        {"a": "much"},
        [np.nan, 1.0],
        object(),
    ],
    "unlabeled": ["EM", "semi", True],
    "missing": ["EM", "drop", None],
    "metric": ["Euclidean", "cosine"],
    "prior": ["Empirical", "laplace", -1.0, 0, True, object(), [object()]],
    "max_iter": [0, 2.5, "many"],
    "tol": [-1.0, np.nan, "small"],
    "n_init": [0, None],
    "warm_start": ["yes", 1],
}


def cases():
    for kind in FIT:
        names = kind._get_param_names()
        for name, values in WRONG.items():
            yield from ((kind, name, value) for value in values if name in names)


def told(value):
    """The same name in every process: none of an address."""
    return value.__name__ if isinstance(value, type) else re.sub(r" at 0x\w+", "", str(value))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "value"), list(cases()), ids=told)
def test_what_makes_no_sense_is_refused_when_fitted(kind, name, value):
    model = kind(*FIRST.get(kind, ()), **{name: value})  # never here: scikit-learn clones and sets what it likes
    assert clone(model, safe=False).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    with pytest.raises((tb.EstimateError, tb.PriorError), match=f"{name} (is|has) ") as caught:
        FIT[kind](model)
    assert "expected" in str(caught.value)
    assert not hasattr(model, "tally_")
    fitted = FIT[kind](kind(*FIRST.get(kind, ())))
    before = fitted.get_params(deep=False)
    with pytest.raises((tb.EstimateError, tb.PriorError), match=f"{name} (is|has) "):
        fitted.set_params(**{name: value})
    assert fitted.get_params(deep=False) == before
    with pytest.raises((tb.EstimateError, tb.PriorError), match=f"{name} (is|has) "):
        fitted.reestimate(**{name: value})


def test_a_number_of_counts_needs_levels():
    for model in (tb.NaiveBayes(prior=0.5), tb.GaussianDiscriminant(prior=0.5), tb.Mixture(prior=0.5)):
        with pytest.raises(tb.PriorError, match=r"prior is 0\.5, a pseudo-count, but .* has no levels"):
            FIT[type(model)](model)
    assert tb.NaiveBayes(prior=0.5).fit(LABELS, Y).prior == 0.5


def test_words_within_a_prior_of_several_columns():
    with pytest.raises(tb.EstimateError, match=r"prior is 'Empirical'.*\n.*Did you mean 'empirical'"):
        tb.NaiveBayes(prior={0: "Empirical"}).fit(LABELS, Y)
    for part in ("emission", "start"):
        with pytest.raises(tb.EstimateError, match="prior is 'Empirical'"):
            tb.HiddenMarkovModel(prior={part: "Empirical"}).fit([X], [Y])


def test_tallies_are_learned_from_under_settings_that_make_sense():
    tally = tb.NaiveBayes().fit(X, Y).tally_
    with pytest.raises(tb.EstimateError, match="Did you mean 'mle'"):
        tb.NaiveBayes(estimate="ml").fit_tally(tally)
    with pytest.raises(tb.EstimateError, match="unseen is 'what'"):
        tb.AveragedOneDependence(unseen="what").fit_tally(tb.AveragedOneDependence().fit(LABELS, Y).tally_)


def test_grid_search_goes_through_words():
    search = GridSearchCV(tb.NaiveBayes(), {"estimate": ["mle", "bayes"], "class_prior": [None, "uniform"]}, cv=2)
    assert search.fit(X, Y).best_params_["estimate"] in ("mle", "bayes")
