"""Where EM sets out under maximum likelihood: no start has a zero that EM cannot leave, and none ends below a prior."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError
from tallybayes.kernels import hmm as chain
from tallybayes.kernels.hmm import HMMInput

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

DICE = np.array([[1, 1, 1, 1, 1, 1], [0.6, 0.6, 0.6, 0.6, 0.6, 3.0]]) / 6
MOVES = np.array([[0.95, 0.05], [0.1, 0.9]])


def rolls(seed, n=3000):
    """A casino's rolls of two dice, one of which is loaded."""
    rng = np.random.default_rng(seed)
    state, steps = 0, []
    for _ in range(n):
        state = int(rng.choice(2, p=MOVES[state]))
        steps.append(int(rng.choice(6, p=DICE[state])))
    return np.array(steps)


def drawn(family, states, n_groups, rng):
    """Rows of a kind, by what group they are of."""
    n = len(states)
    if isinstance(family, tb.Categorical):
        shares = rng.dirichlet(np.ones(4), (n_groups, 3))
        return (rng.random((n, 3, 1)) > shares[states].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    if isinstance(family, tb.Bernoulli):
        return (rng.random((n, 6)) < rng.random((n_groups, 6))[states]).astype(int)
    if isinstance(family, tb.Poisson):
        return rng.poisson(np.arange(2, 2 + 3 * n_groups, 3)[states][:, None] * np.ones(2))
    if isinstance(family, tb.Multinomial):
        shares = rng.dirichlet(np.full(5, 2.0), n_groups)
        return np.array([rng.multinomial(6, shares[state]) for state in states])
    return rng.normal(1.5 * states[:, None], 1.0, (n, 2))


FAMILIES = [tb.Categorical(), tb.Bernoulli(), tb.Poisson(), tb.Multinomial(), tb.Gaussian()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_loaded_dice_are_found(seed):
    """k-means gives every level to one state. EM without a prior cannot leave that, unless its start is between."""
    x = rolls(seed)
    steady = np.linalg.matrix_power(MOVES, 99)[0]
    truth = chain.log_likelihood(HMMInput(np.log(steady), np.log(MOVES), None, (x, np.log(DICE.T)), [0, len(x)]))[0]
    found = {
        estimate: tb.HiddenMarkovModel(2, tb.Categorical(), estimate=estimate, max_iter=500, n_init=3, random_state=0)
        for estimate in ("mle", "bayes")
    }
    likelihood = {estimate: model.fit([x]).score_samples([x])[0] for estimate, model in found.items()}
    assert likelihood["mle"] > max(likelihood["bayes"], truth)
    assert found["mle"].converged_
    assert np.array(list(found["mle"].emission_[0].values())).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_loaded_dice_against_hmmlearn(seed):
    hmm = pytest.importorskip("hmmlearn.hmm")
    x = rolls(seed, 1000)
    theirs = [hmm.CategoricalHMM(2, n_iter=200, tol=1e-2, random_state=k).fit(x[:, None]) for k in range(4)]
    options = {"estimate": "mle", "n_init": 4, "max_iter": 300, "tol": 1e-7, "random_state": 0}
    ours = tb.HiddenMarkovModel(2, tb.Categorical(), **options).fit([x])
    assert ours.score_samples([x])[0] > max(model.score(x[:, None]) for model in theirs)


@pytest.mark.slow
@pytest.mark.parametrize("n_steps", [30, 600])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_chain_ends_no_lower_than_under_a_prior(family, n_steps):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n_states = 2 + seed % 2
        states = np.cumsum(rng.random(n_steps) < 0.1) % n_states
        X = [drawn(family, states, n_states, rng)]
        model = tb.HiddenMarkovModel(n_states, family, max_iter=300, n_init=3, random_state=seed)
        # A state of a step or two has no most likely spread: with few steps, two states will do.
        if isinstance(family, tb.Gaussian) and n_steps == 30 and n_states == 3:
            continue
        priors = max(model.set_params(estimate=name).fit(X).score_samples(X)[0] for name in ("bayes", "map"))
        assert model.set_params(estimate="mle").fit(X).score_samples(X)[0] > priors


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_chain_with_some_states_known_ends_no_lower_than_under_a_prior(family):
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(300) < 0.1) % 3
    X, known = [drawn(family, states, 3, rng)], [np.where(rng.random(300) < 0.1, states, np.nan)]
    model = tb.HiddenMarkovModel(3, family, max_iter=300, random_state=0)
    ends = {name: model.set_params(estimate=name).fit(X, known)._em_result.log_likelihood for name in ("mle", "bayes")}
    assert ends["mle"] > ends["bayes"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("share", [0.0, 0.05], ids=["no labels", "some"])
def test_a_mixture_ends_no_lower_than_under_a_prior(family, share):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        kinds = rng.integers(0, 3, 400)
        X, labels = drawn(family, kinds, 3, rng), np.where(rng.random(400) < share, kinds, -1)
        options = {"unlabeled": "em", "missing_label": -1, "n_classes": 3, "random_state": seed, "max_iter": 500}
        # The point that EM found: under "bayes" rows have a predictive, which no point need beat.
        ends = {
            estimate: tb.NaiveBayes(family, estimate=estimate, **options).fit(X, labels)._em_result.log_likelihood
            for estimate in ("mle", "map")
        }
        assert ends["mle"] > ends["map"]


@pytest.mark.slow
def test_components_that_began_with_zeros():
    """k-means gives whole levels to one component; without a prior it took a lower top and stayed there."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 3, 1500)
    shares = rng.dirichlet(np.ones(3), (3, 5))
    X = (rng.random((1500, 5, 1)) > shares[kinds].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    model = tb.Mixture(3, tb.Categorical(), estimate="mle", random_state=0).fit(X)
    truth = np.log(np.prod(shares[:, np.arange(5), X], axis=-1).mean(axis=0)).sum()
    assert model.score_samples(X).sum() > truth


@pytest.mark.parametrize("setting", [{"n_init": 0}, {"max_iter": 0}, {"tol": -1.0}], ids=str)
def test_settings_are_refused_whether_or_not_em_is_needed(setting):
    X, y = np.array([[0.0], [1.0], [2.0], [3.5]]), np.array([0, 1, 0, 1])
    (name,) = setting
    models = [tb.NaiveBayes(**setting), tb.GaussianDiscriminant(**setting), tb.HiddenMarkovModel(**setting)]
    for model in models:
        with pytest.raises(EstimateError, match=rf"{name} is .* expected a"):
            model.fit([X], [y]) if isinstance(model, tb.HiddenMarkovModel) else model.fit(X, y)
    if name != "n_init":
        with pytest.raises(EstimateError, match=rf"{name} is .* expected a"):
            tb.BayesianNetwork({"b": ["a"]}, **setting).fit({"a": [0, 1], "b": [1, 0]})


class TestNoTolerance:
    """`tol=0`: EM goes on until the objective does not rise."""

    X = np.random.default_rng(0).normal(np.arange(60)[:, None] % 2 * 4.0, 1.0, (60, 2))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize(
        "fitted",
        [
            lambda X, tol: tb.Mixture(2, tol=tol, random_state=0).fit(X),
            lambda X, tol: tb.HiddenMarkovModel(n_states=2, tol=tol, random_state=0).fit([X]),
            lambda X, tol: tb.BayesianNetwork({"b": ["a"]}, missing="em", tol=tol).fit(
                {"a": ["x", "y", None, "x"] * 5, "b": ["u", None, "v", "u"] * 5}
            ),
        ],
        ids=["Mixture", "HiddenMarkovModel", "BayesianNetwork"],
    )
    def test_the_objective_is_no_lower(self, fitted):
        rough, fine = fitted(self.X, 1e-3), fitted(self.X, 0)
        assert fine.n_iter_ > rough.n_iter_
        assert fine.history_[-1] >= rough.history_[-1]
        assert (np.diff(fine.history_[:-1]) > 0).all()
