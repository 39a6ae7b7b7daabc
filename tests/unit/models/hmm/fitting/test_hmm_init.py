"""Where Baum and Welch begin: at what the labeled steps say, or at centers; and what of a model can be read."""

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import tallybayes as tb
from tallybayes.errors import DataError, PriorError
from tallybayes.estimation.em.kmeans_init import DistanceFeatures
from tallybayes.kernels import hmm
from tallybayes.kernels.hmm import HMMInput

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def talk(n_sequences=120, n_words=300, seed=0):
    """Sequences of words, most of which belong to one of three states, and the states."""
    rng = np.random.default_rng(seed)
    moves = np.array([[0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]])
    emits = rng.dirichlet(np.full(n_words, 0.05), 3)
    X, y = [], []
    for _ in range(n_sequences):
        states = [int(rng.integers(3))]
        while len(states) < 20:
            states.append(int(rng.choice(3, p=moves[states[-1]])))
        X.append(np.array([rng.choice(n_words, p=emits[state]) for state in states]))
        y.append(np.array(states))
    return X, y


def some_labeled(y, n_labeled):
    return [*(part.tolist() for part in y[:n_labeled]), *([None] * len(part) for part in y[n_labeled:])]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
def test_labels_are_where_it_begins(estimate):
    """Words that no labeled sequence has are learned from the others, and the states keep their names."""
    X, y = talk()
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate, unseen="smooth", max_iter=30)
    alone = model.fit(X[:8], y[:8]).score(X[8:], y[8:])
    both = model.fit(X, some_labeled(y, 8))
    assert np.isfinite(both.score_samples(X)).all()
    assert both.score(X[8:], y[8:]) > max(alone, 0.85)
    assert (np.diff(both.history_) > -1e-7).all()


@pytest.mark.parametrize(("n_words", "unseen"), [(5, "new"), (90, "missing"), (90, "smooth"), (90, "new")])
def test_the_first_step_is_what_the_labeled_ones_expect(n_words, unseen):
    """An M-step on the labeled steps, an E-step on the others, an M-step on both, an E-step: by hand."""
    X, y = talk(6, n_words)
    model = tb.HiddenMarkovModel(
        columns=tb.Categorical(levels=range(n_words)), estimate="map", unseen=unseen, max_iter=1
    )
    found = model.fit(X, some_labeled(y, 3))
    fixed = [np.zeros(3), np.zeros((3, 3)), np.zeros((3, n_words))]
    for words, path in zip(X[:3], y[:3], strict=True):
        fixed[0][path[0]] += 1
        np.add.at(fixed[1], (path[:-1], path[1:]), 1.0)
        np.add.at(fixed[2], (path, words), 1.0)
    counts, offsets = fixed, np.arange(0, 61, 20)
    never, once = fixed[2].sum(axis=0) == 0, fixed[2].sum(axis=0) == 1
    assert never.any() == (n_words == 90)
    for number in range(2):  # the default of map, Dirichlet(2), adds one
        start, moves, emits = (np.log((part + 1) / (part + 1).sum(axis=-1, keepdims=True)) for part in counts)
        if number == 0:  # to the labeled steps these words are new: missing, or as likely as those seen once
            share = (fixed[2][:, once].sum(axis=1, keepdims=True) + 0.5) / (fixed[2].sum(axis=1, keepdims=True) + 1)
            emits[:, never] = 0.0 if unseen == "missing" else np.log(share)
        rest = hmm.expected(
            HMMInput(start, moves, None, (np.concatenate(X[3:]), np.ascontiguousarray(emits.T)), offsets)
        )
        counts = [a + b for a, b in zip(fixed, (rest.start, rest.transition, rest.emission.T), strict=True)]
    for name, expected in zip(("start", "to", 0), counts, strict=True):
        np.testing.assert_allclose(found.tally_[name].table, expected, atol=1e-10)


def test_all_starts_from_labels_are_one():
    X, y = talk(30)
    one, many = (
        tb.HiddenMarkovModel(columns=tb.Categorical(), n_init=n, random_state=n, max_iter=10).fit(X, some_labeled(y, 5))
        for n in (1, 3)
    )
    assert one.history_ == many.history_


@pytest.mark.parametrize("prior", [None, {"emission": tb.Dirichlet(1)}], ids=["add-one", "nothing"])
def test_words_that_no_labeled_step_has_are_not_lost(prior):
    """Under a prior that adds nothing they would be impossible in every state, and so their sequences."""
    X, y = [["a", "b"], ["a", "c", "b"]], [["s", "t"], [None, None, None]]
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="map", prior=prior, max_iter=500).fit(X, y)
    assert model.tally_[0].table.sum() == pytest.approx(5.0)
    assert np.isfinite(model.score_samples(X)).all()


def test_words_expected_once_are_words_seen_once():
    """Expected counts of a word add up to the times it occurs, but for rounding."""
    X, y = talk(20)
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), unseen="smooth", max_iter=3).fit(X, some_labeled(y, 5))
    counts = model.tally_[0].table
    once = np.bincount(np.concatenate(X), minlength=300)[list(model.tally_.domains["0"].levels)] == 1
    assert once.sum() > 10
    share = (counts[:, once].sum(axis=1) + 0.5) / (counts.sum(axis=1) + 1)
    np.testing.assert_allclose(1 - sum(model.emission_[0].values()), share, rtol=1e-9)


def test_labels_of_numbers_and_ends():
    rng = np.random.default_rng(0)
    states = [np.repeat([0, 1, 0], 30) for _ in range(4)]
    for family, shape in ((tb.Gaussian(), ()), (tb.MultivariateGaussian(), (2,))):
        X = [rng.normal(3.0 * path.reshape(-1, *(1 for _ in shape)), 1.0, (90, *shape)) for path in states]
        X[1][5] = np.nan
        model = tb.HiddenMarkovModel(columns=family, end_state=True, max_iter=200).fit(X, some_labeled(states, 1))
        assert model.states_.tolist() == [0, 1]
        assert model.score(X, states) > 0.95
        assert model.tally_["end"].total.sum() == pytest.approx(4.0)


@pytest.mark.slow
def test_priors_are_held():
    """A prior found from the counts is found once: each step climbs the same hill, and so does each start."""
    X, _ = talk(20, n_words=8)
    for seed in range(5):
        model = tb.HiddenMarkovModel(3, tb.Categorical(), prior="empirical", random_state=seed, max_iter=80).fit(X)
        assert (np.diff(model.history_) > -1e-7).all()
    with pytest.raises(PriorError, match="no maximum to converge to"):
        tb.HiddenMarkovModel(3, tb.Categorical(), prior=tb.Dirichlet(0.5), estimate="map", max_iter=500).fit(X)


@pytest.mark.slow
def test_many_words_need_little_room():
    rng = np.random.default_rng(0)
    X = [rng.integers(0, 5000, 20_000)]
    tracemalloc.start()
    tb.HiddenMarkovModel(3, tb.Categorical(), max_iter=1, random_state=0).fit(X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 150e6  # a column for every word and step is 800 MB


def test_many_labels_are_about_as_far_apart_as_few():
    places = DistanceFeatures(tb.Categorical(), (1000, 3), None, 0)(
        np.array([[k, k % 3] for k in range(60)] + [[-1, 0]])
    )
    gaps = ((places[:60, None, :-3] - places[None, :60, :-3]) ** 2).sum(axis=-1)[np.triu_indices(60, 1)]
    assert gaps.mean() == pytest.approx(2.0, abs=0.1)
    assert gaps.min() > 0.8
    assert np.isnan(places[-1, :-3]).all()
    assert not np.isnan(places[:, -3:]).any()


# ---- What can be read -----------------------------------------------------------------------------------------------


def test_emissions_by_column():
    days = {"eaten": [3, 3, 2, 1], "heat": [30.0, 34.0, 20.0, 18.0], "sun": [9.0, 7.0, 3.0, 5.0]}
    columns = {"eaten": tb.Categorical(), ("heat", "sun"): tb.Gaussian()}
    model = tb.HiddenMarkovModel(columns=columns, estimate="mle").fit([days], [["hot", "hot", "cold", "cold"]])
    eaten, numbers = model.emission_["eaten"], model.emission_["heat", "sun"]
    assert {label: p.tolist() for label, p in eaten.items()} == {1: [0.5, 0.0], 2: [0.5, 0.0], 3: [0.0, 1.0]}
    np.testing.assert_allclose(numbers.mean, [[19.0, 4.0], [32.0, 8.0]])
    one = tb.HiddenMarkovModel(columns=tb.Categorical(), unseen="smooth").fit([[1, 1, 2]], [[0, 0, 1]])
    assert list(one.emission_[0]) == [1, 2]  # what is kept for others is not listed
    assert (sum(one.emission_[0].values()) < 1).all()
    counts = tb.HiddenMarkovModel(columns=tb.Poisson(), estimate="mle").fit([[1, 3, 8]], [[0, 0, 1]])
    np.testing.assert_allclose(counts.emission_[0], [[2.0], [8.0]])


def test_states_keep_their_type():
    X, y = talk(3)
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(X, y)
    assert model.predict(X)[0].dtype == y[0].dtype
    assert accuracy_score(np.concatenate(y), np.concatenate(model.predict(X))) == model.score(X, y)
    assert model.sample(3, random_state=0)[1][0].dtype == y[0].dtype


@pytest.mark.parametrize("n_states", [2.5, "2", 0, tb.Categorical()], ids=["half", "text", "none", "family"])
def test_the_number_of_states_is_a_whole_number(n_states):
    with pytest.raises(DataError, match=r"n_states is .* expected a whole number of at least 1") as caught:
        tb.HiddenMarkovModel(n_states).fit([["a", "b"]])
    assert ("columns=" in str(caught.value)) == isinstance(n_states, tb.Categorical)
