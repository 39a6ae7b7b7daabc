"""How EM ended: a model remembers it with the counts that EM expected, and forgets it with them."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import StatisticsError

RNG = np.random.default_rng(0)
K = np.repeat([0, 1], 30)
X = RNG.normal(2.0 * K[:, None], 1.0, (60, 2))
SOME = np.where(RNG.random(60) < 0.3, K, -1)
HOLED = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
DATA = {
    "naive Bayes": (tb.NaiveBayes(unlabeled="em", missing_label=-1), (X, SOME), (X, K)),
    "discriminant": (tb.GaussianDiscriminant(estimate="map"), (HOLED, K), (X, K)),
    "mixture": (tb.Mixture(2, random_state=0), (X,), None),
    "hidden Markov": (tb.HiddenMarkovModel(2, estimate="mle", random_state=0), ([X],), ([X], [K])),
}
every_model = pytest.mark.parametrize("name", DATA)


def learned(name):
    """A model that EM had to leave on the way, which no other model says of itself."""
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations") as caught:
        model = clone(DATA[name][0]).set_params(max_iter=2).fit(*DATA[name][1])
    assert caught[0].filename == __file__  # it is said to the caller
    return model


SOME_LABELED = DATA["naive Bayes"][0]
CALLS = {
    "partial_fit": lambda: clone(SOME_LABELED).set_params(max_iter=2).partial_fit(X, SOME),
    "partial_fit with holes": lambda: tb.GaussianDiscriminant(estimate="map", max_iter=2).partial_fit(HOLED, K),
    "fit_predict": lambda: tb.Mixture(2, max_iter=2, random_state=0).fit_predict(X),
    "calibration": lambda: clone(SOME_LABELED).set_params(max_iter=2, calibration="temperature").fit(X, SOME),
    "cross_validate": lambda: tb.cross_validate(clone(SOME_LABELED).set_params(max_iter=2), X, SOME),
    "cross_validate without labels": lambda: tb.cross_validate(tb.Mixture(2, max_iter=2, random_state=0), X),
}


@pytest.mark.parametrize("call", CALLS)
def test_it_is_said_to_the_caller_however_deep(call):
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        CALLS[call]()
    assert {each.filename for each in caught} == {__file__}


def remembered(model):
    return model.history_, model.objective_, model.converged_


def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tb.load(tmp_path / "model")


@every_model
def test_is_remembered_with_the_same_counts(name, tmp_path):
    model = learned(name)
    expected = remembered(model)
    assert len(expected[0]) == 2
    assert expected[1:] == ("log likelihood" if name == "hidden Markov" else "log posterior", False)
    others = (
        model.reestimate(estimate="bayes"),
        copy.deepcopy(model).set_params(estimate="map"),
        pickle.loads(pickle.dumps(model)),
        saved(model, tmp_path),
    )
    for other in others:
        assert remembered(other) == expected
    assert remembered(saved(others[0], tmp_path)) == expected
    assert remembered(clone(model)) == ([], None, True)
    model.history_.clear()
    assert remembered(model) == expected


CHANGES = {
    "+": lambda name, model: model + learned(name),
    "sum": lambda name, model: sum([model, model]),
    "partial_fit": lambda name, model: model.partial_fit(*DATA[name][2]),
    "fit_tally": lambda name, model: model.fit_tally(model.tally_),
    "fit": lambda name, model: model.fit(*DATA[name][2]),
    "drop_class": lambda name, model: model.drop_class(0),
    "add_class": lambda name, model: model.add_class(7, X),
}
IMPOSSIBLE = {
    "mixture": {"+", "sum", "partial_fit", "fit", "add_class"},  # it has no labels, and each its own numbers
    "hidden Markov": {"drop_class", "add_class"},
}


@pytest.mark.parametrize(("name", "change"), [(n, c) for n in DATA for c in CHANGES if c not in IMPOSSIBLE.get(n, ())])
def test_is_forgotten_with_other_counts(name, change, tmp_path):
    changed = CHANGES[change](name, learned(name))
    assert remembered(changed) == remembered(saved(changed, tmp_path)) == ([], None, True)


@every_model
def test_stays_where_a_change_is_refused(name):
    model = learned(name)
    expected = remembered(model)
    with pytest.raises(StatisticsError):
        model.fit_tally(tb.count({"x": [1.0]}, [tb.Factor("x", (), tb.Gaussian())]))
    with pytest.raises(ValueError, match="estimate"):
        model.set_params(estimate="best")
    model.estimate = "best"
    with pytest.raises(ValueError, match="estimate"):
        model.fit(*DATA[name][1])
    model.estimate = "bayes"
    assert remembered(model) == expected


def test_training_a_metric_is_another_history():
    """Nearest class means know no EM; what they learn by is the log loss, and it stays when rows are added."""
    model = tb.NearestClassMean("learned").fit(X, K)
    assert model.objective_ is None
    history = model.history_
    assert len(history) > 1
    assert model.partial_fit(X[:3], K[:3]).history_ == history
