"""What speaks for a number of states: the bound of the evidence by enumeration, and the BIC as others have it."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

import tallybayes as tb

FAMILIES = {
    "labels": tb.Categorical(),
    "counts": tb.Poisson(),
    "numbers": tb.Gaussian(),
    "sizes": tb.LogNormal(),
    "both": tb.MultivariateGaussian(),
    "bins": tb.Binned((0.0, 1.0, 3.0, 40.0)),
}


def steps_of(kind, rng, n):
    if kind == "labels":
        return rng.choice(["a", "b", "c"], n)
    if kind == "counts":
        return rng.poisson(np.where(rng.random(n) < 0.5, 2, 9))
    if kind == "both":
        found = np.stack([rng.normal(size=n), rng.normal(size=n) + 3, np.full(n, 2.5)], axis=-1)
        found[rng.random((n, 3)) < 0.1] = np.nan
        return found
    return np.exp(rng.normal(np.where(rng.random(n) < 0.5, 0, 2), 0.4))


def entropy(model, sequences):
    """Of the states given the sequences, from p(state) and p(state, next state)."""
    total = 0.0
    for shares, pairs in zip(model.predict_proba(sequences), model.predict_transition_proba(sequences), strict=True):
        after = pairs / np.where(shares[:-1, :, None] > 0, shares[:-1, :, None], 1.0)
        total -= np.sum(shares[0] * np.log(np.where(shares[0] > 0, shares[0], 1.0)))
        total -= np.sum(pairs * np.log(np.where(pairs > 0, after, 1.0)))
    return total


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", [kind for kind in FAMILIES if kind != "both"])
@pytest.mark.parametrize("end_state", [False, True])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_the_entropy_is_that_of_the_states(kind, end_state):
    rng = np.random.default_rng(0)
    sequences = [steps_of(kind, rng, n) for n in (30, 25, 40)]
    settings = {"columns": FAMILIES[kind], "end_state": end_state, "random_state": 0}
    model = tb.HiddenMarkovModel(2, **settings).fit(sequences)
    # One step from there: what it expects, and how unsure it is, is under the parameters of that model.
    once = tb.HiddenMarkovModel(2, max_iter=1, **settings).fit(sequences, initial=model)
    assert once._em_result.log_likelihood == pytest.approx(model.log_likelihood(sequences))
    assert once._em_result.entropy == pytest.approx(entropy(model, sequences), rel=1e-9, abs=1e-9)
    assert model.evidence_lower_bound_ < model._em_result.log_likelihood


@pytest.mark.parametrize("kind", ["numbers", "both"])
def test_a_column_that_is_the_same_everywhere_says_nothing(kind):
    numbers = np.random.default_rng(0).normal(np.repeat([[0.0, 5.0], [4.0, 1.0]], 40, axis=0))
    with_flat = np.concatenate([numbers, np.full((80, 1), 2.5)], axis=1)
    bounds = [
        tb.HiddenMarkovModel(2, FAMILIES[kind], random_state=0).fit([rows]).evidence_lower_bound_
        for rows in (numbers, with_flat)
    ]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


@pytest.mark.slow
def test_of_expected_cells_the_bound_is_finite_and_lower():
    rng = np.random.default_rng(0)
    sequences = [steps_of("both", rng, 60)]
    model = tb.HiddenMarkovModel(2, FAMILIES["both"], random_state=0, max_iter=2000).fit(sequences)
    assert model._em_result.entropy > 0
    assert model.evidence_lower_bound_ < model._em_result.log_likelihood


def evidence_of_labels(states, steps, n_states, n_levels):
    """log p(states, steps) with all tables integrated out under Dirichlet(1)."""

    def table(pairs, n_rows, n_columns):
        counts = np.zeros((n_rows, n_columns))
        for row, column in pairs:
            counts[row, column] += 1
        return np.sum(
            gammaln(n_columns) - gammaln(n_columns + counts.sum(axis=1)) + np.sum(gammaln(1 + counts), axis=1)
        )

    return (
        table([(0, path[0]) for path in states], 1, n_states)
        + table([pair for path in states for pair in itertools.pairwise(path)], n_states, n_states)
        + table(
            [pair for path, row in zip(states, steps, strict=True) for pair in zip(path, row, strict=True)],
            n_states,
            n_levels,
        )
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_states", [1, 2])
def test_the_bound_is_below_the_evidence_by_enumeration(n_states):
    steps = [[0, 0, 1, 1, 0], [1, 1, 1]]
    every = [list(itertools.product(range(n_states), repeat=len(row))) for row in steps]
    exact = np.logaddexp.reduce([evidence_of_labels(paths, steps, n_states, 2) for paths in itertools.product(*every)])
    model = tb.HiddenMarkovModel(n_states, tb.Categorical(), prior=1, random_state=0, n_init=3, max_iter=1000)
    found = model.fit(steps).evidence_lower_bound_
    if n_states == 1:  # nothing is left to expect
        assert found == pytest.approx(exact, abs=1e-9)
    else:
        assert exact - 4 < found < exact


def test_with_states_it_is_the_evidence():
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit([[1, 2, 3]], [["a", "b", "a"]])
    assert model.evidence_lower_bound_ == pytest.approx(model.log_evidence())


def test_it_is_kept_in_files_and_goes_with_the_counts(tmp_path):
    rng = np.random.default_rng(0)
    model = tb.HiddenMarkovModel(2, tb.Poisson(), random_state=0).fit([steps_of("counts", rng, 80)])
    model.save(tmp_path / "model")
    assert tb.load(tmp_path / "model").evidence_lower_bound_ == model.evidence_lower_bound_
    more = tb.load(tmp_path / "model").partial_fit([[3, 4]], [[0, 1]])
    with pytest.raises(tb.EstimateError, match="the counts have changed since EM ended"):
        _ = more.evidence_lower_bound_


def test_the_bic_takes_all_steps_for_all_parameters():
    rng = np.random.default_rng(0)
    sequences = [steps_of("counts", rng, n) for n in (50, 70)]
    model = tb.HiddenMarkovModel(2, tb.Poisson(), estimate="mle", random_state=0, max_iter=1000).fit(sequences)
    assert model.n_parameters_ == 1 + 2 + 2
    assert model.bic_ == pytest.approx(-2 * model.log_likelihood(sequences) + 5 * math.log(120), abs=1e-3)
    states = [rng.integers(0, 2, n).tolist() for n in (50, 70)]
    known = tb.HiddenMarkovModel(columns=tb.Poisson(), estimate="mle").fit(sequences, states)
    assert known.bic_ == pytest.approx(-2 * known.log_likelihood(sequences, states) + 5 * math.log(120))
    weighted = tb.HiddenMarkovModel(columns=tb.Poisson(), estimate="mle").fit(
        sequences, states, sample_weight=[2.0, 1.0]
    )
    twice = tb.HiddenMarkovModel(columns=tb.Poisson(), estimate="mle").fit(
        [*sequences, sequences[0]], [*states, states[0]]
    )
    assert weighted.bic_ == pytest.approx(twice.bic_)


def test_the_bic_is_hmmlearns():
    hmm = pytest.importorskip("hmmlearn.hmm")
    calls = np.random.default_rng(0).poisson(np.repeat([4, 9, 4], 40))
    model = tb.HiddenMarkovModel(2, tb.Poisson(), estimate="mle", tol=1e-12, max_iter=5000, random_state=0).fit([calls])
    peer = hmm.PoissonHMM(2, init_params="", params="")
    peer.startprob_, peer.transmat_, peer.lambdas_ = model.start_, model.transition_, model.emission_[0]
    peer.n_features = 1
    assert model.bic_ == pytest.approx(peer.bic(calls[:, None]), rel=1e-6)
    assert model.aic_ == pytest.approx(peer.aic(calls[:, None]), rel=1e-6)


@pytest.mark.slow
def test_a_stationary_start_has_no_bound():
    calls = np.random.default_rng(0).poisson(np.repeat([4, 9], 40))
    model = tb.HiddenMarkovModel(2, tb.Poisson(), start="stationary", random_state=0, max_iter=500)
    with pytest.raises(tb.EstimateError, match="no evidence"):
        _ = model.fit([calls]).evidence_lower_bound_
    with pytest.raises(tb.EstimateError, match="no evidence"):
        tb.select_n_states(model, [calls], [1, 2], "evidence_bound", n_init=1)
    assert tb.select_n_states(model, [calls], [1, 2], "bic", n_init=1).n_states == 2
