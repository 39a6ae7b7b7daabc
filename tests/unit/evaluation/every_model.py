"""A small case of every model, with what `insight` can say of it."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

import tallybayes as tb

N_ROWS = 40


class Case(NamedTuple):
    """A model, what it is fitted on, and what is told of it."""

    model: Any
    data: Any
    target: Any = None
    refitted: bool = False

    @property
    def kind(self):
        if isinstance(self.model, tb.HiddenMarkovModel):
            return "states" if self.target is not None else "steps"
        return "classes" if self.target is not None else "rows"

    def some(self, chosen):
        """The data and the target of some rows or sequences."""
        target = self.target
        if target is not None and not isinstance(target, str):
            target = [target[k] for k in chosen]
        if isinstance(self.data, dict):
            return {name: [column[k] for k in chosen] for name, column in self.data.items()}, target
        data = [self.data[k] for k in chosen]
        return (np.array(data) if isinstance(self.data, np.ndarray) else data), target

    @property
    def n(self):
        return len(next(iter(self.data.values()))) if isinstance(self.data, dict) else len(self.data)

    def fit(self, chosen, model=None):
        """The model of some rows or sequences, by `fit` alone."""
        data, target = self.some(chosen)
        model = clone(self.model if model is None else model)
        if isinstance(model, tb.BayesianNetwork | tb.Mixture):
            return model.fit(data)
        return model.fit(data, target)


def _rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, N_ROWS)
    X = np.stack([rng.normal(2.0 * y), rng.normal(1.0 - y), rng.normal(size=N_ROWS)], axis=1)
    return rng, y, X


def _gaps(X, rng):
    X = X.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def _columns(rng, y, missing):
    one = (y + (rng.random(N_ROWS) < 0.2)) % 2
    two = rng.integers(0, 3, N_ROWS)
    columns = {"y": ["no", "yes"], "one": [0, 1], "two": ["a", "b", "c"]}
    codes = {"y": y, "one": one, "two": two}
    found = {name: [columns[name][k] for k in codes[name]] for name in columns}
    found["size"] = rng.normal(one).tolist()
    if missing:
        for name in ("one", "two"):
            for row in rng.choice(N_ROWS, 4, replace=False):
                found[name][row] = None
    return found


def _sequences(rng):
    X, y = [], []
    for length in (6, 4, 9, 5, 7, 8):
        state = np.cumsum(rng.random(length) < 0.3) % 2
        y.append(state.tolist())
        X.append(rng.normal(3.0 * state))
    return X, y


def make_cases():
    """Every model, its priors stated, so that `fit` on some rows has the same as on all."""
    rng, y, X = _rows()
    gaps = _gaps(X, rng)
    some = [None if k % 4 == 0 else int(label) for k, label in enumerate(y)]
    wishart = tb.NormalInverseWishart(np.zeros(3), 1.0, 5.0, np.eye(3))
    gamma = tb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0)
    levels = {"y": ("no", "yes"), "one": (0, 1), "two": ("a", "b", "c")}
    nodes = {"one": ["y"], "two": ["one"], "size": ["y"]}
    declared = {name: tb.Categorical(levels=found) for name, found in levels.items()}
    network = tb.BayesianNetwork(nodes, columns=declared, prior={"size": gamma})
    sequences, states = _sequences(rng)
    partly = [[None, *steps[1:]] for steps in states]
    chain = tb.HiddenMarkovModel(prior={"emission": gamma}, random_state=0, max_iter=500)
    early = {"tol": 1e-4, "max_iter": 1000}
    return {
        "naive Bayes": Case(tb.NaiveBayes(prior=gamma), gaps, y),
        "naive Bayes, unlabeled": Case(tb.NaiveBayes(prior=gamma, unlabeled="em", **early), gaps, some, True),
        "naive Bayes, skipping": Case(tb.NaiveBayes(prior=gamma, unlabeled="skip"), gaps, some),
        "discriminant": Case(tb.GaussianDiscriminant("full", prior=wishart), X, y),
        "discriminant, gaps": Case(tb.GaussianDiscriminant("full", prior=wishart, **early), gaps, y, True),
        "diagonal, gaps": Case(tb.GaussianDiscriminant("diagonal", prior=gamma, **early), gaps, y, True),
        "nearest mean": Case(tb.NearestClassMean(), X, y, True),
        "network": Case(network, _columns(rng, y, False), "y"),
        "network, gaps": Case(network, _columns(rng, y, True), "y"),
        "network, EM": Case(clone(network).set_params(missing="em", **early), _columns(rng, y, True), "y", True),
        "network, rows": Case(network, _columns(rng, y, False)),
        "mixture": Case(tb.Mixture(prior=gamma, random_state=0, **early), gaps, None, True),
        "chain": Case(chain, sequences, states),
        "chain, partly": Case(chain, sequences, partly, True),
        "chain, hidden": Case(clone(chain).set_params(n_states=2), sequences, None, True),
    }


CASES = make_cases()
