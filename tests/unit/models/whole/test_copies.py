"""Every model is pickled, copied and cloned: unfitted, fitted, without rows, merged and with other estimates."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.models.ensemble.members import counts_of

rng = np.random.default_rng(0)
Y = np.arange(60) % 2
X = rng.normal(Y[:, None] * [1.5, 0.0], 1.0)
LABELS = np.where(X > 0, "high", "low")
TABLE = {"x": X[:, 0], "c": LABELS[:, 1], "y": Y}

# Every class of models: how it is made, and what it is fitted on.
MODELS = {
    "NaiveBayes": (tb.NaiveBayes, (X, Y)),
    "NaiveBayes of a table": (tb.NaiveBayes, (TABLE, "y")),
    "GaussianDiscriminant": (tb.GaussianDiscriminant, (X, Y)),
    "GaussianDiscriminant, calibrated": (lambda: tb.GaussianDiscriminant("tied", calibration="auto"), (X, Y)),
    "NearestClassMean": (tb.NearestClassMean, (X, Y)),
    "AveragedOneDependence": (tb.AveragedOneDependence, (LABELS, Y)),
    "TreeAugmentedNaiveBayes": (tb.TreeAugmentedNaiveBayes, (LABELS, Y)),
    "AutoClassifier": (lambda: tb.AutoClassifier(folds=2), (X, Y)),
    "Chosen of a table": (lambda: tb.AutoClassifier(folds=2), (TABLE, "y")),
    "Mixture": (lambda: tb.Mixture(2, random_state=0, max_iter=5), (X,)),
    "HiddenMarkovModel": (tb.HiddenMarkovModel, ([LABELS[:, 0], LABELS[:9, 0]], [Y, Y[:9]])),
    "HiddenMarkovModel by EM": (lambda: tb.HiddenMarkovModel(n_states=2, random_state=0, max_iter=5), ([X],)),
    "BayesianNetwork": (lambda: tb.BayesianNetwork({"c": ["y"], "x": ["y"]}), (TABLE,)),
    "LinearRegression": (tb.LinearRegression, (X, X[:, 0] + rng.normal(size=60))),
    "Window": (lambda: tb.Window(tb.NaiveBayes(), rows=30), (X, Y)),
    "Decayed": (lambda: tb.Decayed(tb.NaiveBayes(), half_life=30), (X, Y)),
}


# Of the others, counts are soft, or rows are kept.
MERGED = [name for name in MODELS if name not in {"Mixture", "HiddenMarkovModel by EM", "Window", "Decayed"}]
REESTIMATED = ["NaiveBayes", "GaussianDiscriminant", "HiddenMarkovModel", "BayesianNetwork", "LinearRegression"]


def fitted(name):
    make, data = MODELS[name]
    return make().partial_fit(*data) if name in {"Window", "Decayed"} else make().fit(*data)


STATES = {
    **{f"{name}, unfitted": (lambda name=name: MODELS[name][0]()) for name in MODELS},
    **{f"{name}, fitted": (lambda name=name: fitted(name)) for name in MODELS},
    **{f"{name}, without rows": (lambda name=name: fitted(name).without_rows()) for name in MERGED},
    **{f"{name}, merged": (lambda name=name: fitted(name).without_rows() + fitted(name)) for name in MERGED},
    **{f"{name}, reestimated": (lambda name=name: fitted(name).reestimate(estimate="mle")) for name in REESTIMATED},
    "auto": lambda: tb.AutoClassifier(folds=2).fit(X, Y),
    "auto, without rows": lambda: tb.AutoClassifier(folds=2).fit(X, Y).without_rows(),
    "auto, of a table, without rows": lambda: tb.AutoClassifier(folds=2).fit(TABLE, "y").without_rows(),
    "auto, chosen before, without rows": lambda: (
        tb.AutoClassifier(spec=fitted("AutoClassifier").spec_).fit(X, Y).without_rows()
    ),
    "auto, a member without rows": lambda: tb.AutoClassifier(folds=2).fit(X, Y).without_rows().members_[0].model,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("state", STATES)
def test_models_are_pickled_copied_and_cloned(state):
    model = STATES[state]()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert type(other) is type(model)
        assert repr(other) == repr(model)
        if hasattr(model, "tally_"):
            assert other.tally_ == model.tally_
        for mine, its in zip(getattr(model, "members_", ()), getattr(other, "members_", ()), strict=True):
            assert counts_of(its.model) == counts_of(mine.model)
    if hasattr(model, "get_params"):
        assert not hasattr(clone(model), "tally_")
