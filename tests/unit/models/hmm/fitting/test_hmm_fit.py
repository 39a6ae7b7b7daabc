"""Hidden Markov models: counting, sequences however given, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, StatisticsError
from tests.unit.models.hmm.chains import DIARY, WEATHER, emissions, ice_cream

# ---- Counting -------------------------------------------------------------------------------------------------------


def test_the_ice_cream_diary():
    """Transition denominators count steps with a successor, emission denominators all."""
    model = ice_cream()
    assert model.states_.tolist() == ["cold", "hot"]
    np.testing.assert_allclose(model.start_, [2 / 3, 1 / 3])
    np.testing.assert_allclose(model.transition_, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(emissions(model), [[3 / 5, 2 / 5, 0], [0, 1 / 4, 3 / 4]])
    assert model.n_parameters_ == 1 + 2 + 4


def test_bayes_plugs_in_posterior_means():
    model = ice_cream("bayes").reestimate(prior=1)
    np.testing.assert_allclose(model.start_, [3 / 5, 2 / 5])
    np.testing.assert_allclose(model.transition_, [[3 / 5, 2 / 5], [2 / 5, 3 / 5]])
    np.testing.assert_allclose(emissions(model), [[4 / 8, 3 / 8, 1 / 8], [1 / 7, 2 / 7, 4 / 7]])


def test_every_part_has_its_own_prior():
    prior = {"start": tb.Dirichlet(3), "transition": tb.Dirichlet([[1, 2], [3, 4]]), "emission": tb.Dirichlet(0.5)}
    model = ice_cream("bayes", prior=prior)
    np.testing.assert_allclose(model.start_, [5 / 9, 4 / 9])
    np.testing.assert_allclose(model.transition_, [[3 / 6, 3 / 6], [4 / 10, 6 / 10]])
    np.testing.assert_allclose(emissions(model)[0], [3.5 / 6.5, 2.5 / 6.5, 0.5 / 6.5])
    with pytest.raises(ValueError, match="'transition'"):
        ice_cream("bayes", prior={"stat": tb.Dirichlet(1)}).start_  # noqa: B018


def test_gaussian_emissions_are_those_of_the_state():
    rng = np.random.default_rng(5)
    state = rng.integers(0, 2, 400)
    x = rng.normal(3.0 * state, 1 + state)
    model = tb.HiddenMarkovModel(estimate="mle").fit([x], [state])
    mean, variance = model._estimated_hmm.parameters.scored[0].parameters
    for s in (0, 1):
        assert mean[s, 0] == pytest.approx(x[state == s].mean())
        assert variance[s, 0] == pytest.approx(x[state == s].var())
    joint = model.log_joint([x[:2]], [state[:2].tolist()])[0]
    by_hand = np.log(model.start_[state[0]]) + np.log(model.transition_[state[0], state[1]])
    by_hand += sum(stats.norm.logpdf(x[t], mean[state[t], 0], np.sqrt(variance[state[t], 0])) for t in (0, 1))
    assert joint == pytest.approx(by_hand)


def test_shards_add_up_and_sequences_are_forgotten():
    whole, first, second = (
        tb.HiddenMarkovModel(columns=tb.Categorical()).fit(DIARY[part], WEATHER[part])
        for part in (slice(None), slice(0, 2), slice(2, 3))
    )
    assert (first + second).tally_ == whole.tally_
    assert clone(first).fit(DIARY[:2], WEATHER[:2]).partial_fit(DIARY[2:], WEATHER[2:]).tally_ == whole.tally_
    assert whole.forget(DIARY[2:], WEATHER[2:]).tally_ == first.tally_
    with pytest.raises(StatisticsError, match="cannot forget"):
        whole.forget(DIARY, WEATHER)


def test_weights_are_repetitions():
    weighted = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(DIARY, WEATHER, sample_weight=[2, 1, 0])
    repeated = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(
        [DIARY[0], DIARY[0], DIARY[1]], [WEATHER[0], WEATHER[0], WEATHER[1]]
    )
    assert weighted.tally_ == repeated.tally_


def test_sequences_without_weight_are_absent():
    """Whatever they hold: states and labels of their own, or steps without a state."""
    X, y = [*DIARY, [9, 9]], [*WEATHER, ["mild", None]]
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(X, y, sample_weight=[1, 1, 1, 0])
    assert model.tally_ == ice_cream().tally_
    assert not model.tally_.soft
    frame = pd.DataFrame({"x": np.concatenate(X), "y": np.concatenate(y), "w": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]})
    again = tb.HiddenMarkovModel(columns={"x": tb.Categorical()})
    again.fit(frame[::-1], "y", sequence="w", sample_weight=[0, 1, 1, 1])
    assert again.states_.tolist() == ["cold", "hot"]


def test_the_evidence_is_that_of_every_table():
    """p(sequences, states) by the chain rule: each step is predicted from all before it."""
    model, total = ice_cream("bayes").reestimate(prior=1), 0.0
    seen = {"start": np.ones(2), "moves": np.ones((2, 2)), "emits": np.ones((2, 3))}
    for diary, weather in zip(DIARY, WEATHER, strict=True):
        before = None
        for value, state in zip(diary, weather, strict=True):
            s = ["cold", "hot"].index(state)
            counts = seen["start"] if before is None else seen["moves"][before]
            total += np.log(counts[s] / counts.sum())
            counts[s] += 1
            total += np.log(seen["emits"][s, value - 1] / seen["emits"][s].sum())
            seen["emits"][s, value - 1] += 1
            before = s
    assert model.log_evidence() == pytest.approx(total, rel=1e-12)


# ---- However sequences are given ------------------------------------------------------------------------------------


def test_lists_arrays_with_lengths_and_frames_are_the_same():
    whole = ice_cream()
    flat = np.concatenate([np.array(part) for part in DIARY])
    states = np.concatenate([np.array(part) for part in WEATHER])
    lengths = [3, 3, 3]
    arrays = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(flat, states, lengths)
    assert arrays.tally_ == whole.tally_
    frame = pd.DataFrame({"day": [0, 1, 2] * 3, "eaten": flat, "sky": states, "who": np.repeat(list("abc"), 3)})
    shuffled = frame.sample(frac=1, random_state=3)
    model = tb.HiddenMarkovModel(columns={"eaten": tb.Categorical()}, estimate="mle")
    model.fit(shuffled, "sky", sequence="who", order="day")
    np.testing.assert_allclose(model.transition_, whole.transition_)
    np.testing.assert_allclose(model.start_, whole.start_)
    found = model.score_samples(shuffled.drop(columns="sky"), sequence="who", order="day")
    first = [frame["who"].tolist().index(who) // 3 for who in dict.fromkeys(shuffled["who"])]
    np.testing.assert_allclose(found, whole.score_samples(DIARY)[first])
    several = [pd.DataFrame({"eaten": part}) for part in DIARY]
    np.testing.assert_allclose(model.score_samples(several), whole.score_samples(DIARY))
    tables = [{"eaten": part} for part in DIARY]
    np.testing.assert_allclose(model.score_samples(tables), whole.score_samples(DIARY))
    np.testing.assert_allclose(arrays.score_samples(flat, lengths), whole.score_samples(DIARY))


def test_empty_and_single_steps():
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit([[], [1], [1, 2]], [[], ["a"], ["b", "a"]])
    assert model.score_samples([[], [1]])[0] == 0.0
    assert [len(path) for path in model.predict([[], [1], [2, 2]])] == [0, 1, 2]
    assert model.log_joint([[], [1]], [[], ["a"]])[0] == 0.0
    assert model.predict([]) == []
    with pytest.raises(DataError, match="0 time steps"):
        tb.HiddenMarkovModel(2, tb.Gaussian()).fit([[], []])


def test_several_columns_of_several_kinds():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0, 1], 50)
    steps = {"level": rng.normal(4.0 * state), "kind": np.where(rng.random(200) < 0.8, state, 1 - state).astype(str)}
    steps["level"][::7] = np.nan
    model = tb.HiddenMarkovModel().fit([steps], [state])
    assert model.score([steps], [state]) > 0.95
    by_hand = model._estimated_hmm.parameters.scored
    assert {type(part.family).__name__ for part in by_hand} == {"Gaussian", "Categorical"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tb.HiddenMarkovModel().fit([[1.0, 2.0]]), "Pass n_states"),
        (lambda: tb.HiddenMarkovModel(1).fit([[1.0, 2.0]], [[0, 1]]), "at least 2"),
        (
            lambda: tb.HiddenMarkovModel(3).fit([[1.0, 2.0]], [[0, 1]]),
            "n_states is 3, but all time steps have known states",
        ),
        (lambda: tb.HiddenMarkovModel().fit([[1.0, 2.0]], [[0]]), "2 steps and 1 labels"),
        (lambda: tb.HiddenMarkovModel().fit(np.ones(4), np.ones(4), [3]), "sum to 3"),
        (lambda: tb.HiddenMarkovModel().fit(np.ones(4), np.ones(4), [5, -1]), "at least 0"),
        (lambda: tb.HiddenMarkovModel().fit([[1.0]], [[0]], sample_weight=[1, 2]), "one for every sequence"),
        (lambda: tb.HiddenMarkovModel().fit([[1.0]], [[0]], sample_weight=[-1.0]), "weight"),
        (
            lambda: tb.HiddenMarkovModel().fit([[1.0]], [[0]], sample_weight=[0.0]),
            "sample_weight is 0 for every sequence",
        ),
        (lambda: tb.HiddenMarkovModel(2).fit([[1.0]], sample_weight=[0.0]), "sample_weight is 0 for every sequence"),
        (lambda: ice_cream(unseen="guess").score_samples(DIARY), "'new', 'missing', 'smooth' or 'error'"),
        (lambda: ice_cream().predict_next(DIARY, 0), "at least 1"),
        (lambda: ice_cream("best"), "estimate"),
        (lambda: ice_cream().partial_fit([[1, 2]], [["hot", None]]), "y has time steps without a state"),
        (lambda: ice_cream().log_joint([[1, 2]], [["hot", None]]), "y has time steps without a state"),
    ],
    ids=range(15),
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


WORDS = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["the", "the", "bird"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "D", "N"]]
NEW = np.array([0.5 / 5, 3.5 / 4, 2.5 / 3])  # no determiner occurs once; three of three nouns do, and two of two verbs


def test_labels_nobody_has_seen():
    model = ice_cream("bayes")
    missing = model.reestimate(unseen="missing")
    assert missing.score_samples([[3, 9, 1]]) == missing.score_samples([np.array([3, None, 1], dtype=object)])
    with pytest.raises(LabelError, match="was not seen"):
        model.reestimate(unseen="error").score_samples([[9]])
    tagger = tb.HiddenMarkovModel(columns=tb.Categorical(), unseen="smooth").fit(WORDS, TAGS)
    np.testing.assert_allclose(emissions(tagger).sum(axis=1), 1 - NEW)
    np.testing.assert_allclose(np.exp(tagger.score_samples([["yak"]])), [tagger.start_ @ NEW])
    assert tagger.predict([["the", "yak", "snores"]])[0].tolist() == ["D", "N", "V"]


@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_a_label_never_seen_is_a_new_one(estimate):
    """By hand: in every state it has the share of labels seen once, and known ones have what they had."""
    tagger = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate).fit(WORDS, TAGS)
    missing = tagger.reestimate(unseen="missing")
    np.testing.assert_array_equal(emissions(tagger), emissions(missing))
    the = tagger.emission_[0]["the"]
    first = tagger.start_ * NEW
    np.testing.assert_allclose(tagger.score_samples([["yak", "the"]]), [np.log(first @ tagger.transition_ @ the)])
    found = tagger.filter_proba([["yak", None]])[0]
    np.testing.assert_allclose(found, [first / first.sum(), first @ tagger.transition_ / first.sum()])
    np.testing.assert_allclose(missing.filter_proba([["yak", None]])[0][0], missing.start_)
    path = tagger.start_[0] * the[0] * tagger.transition_[0, 1] * NEW[1]
    np.testing.assert_allclose(tagger.log_joint([["the", "yak"]], [["D", "N"]]), [np.log(path)])
    assert tagger.predict([["the", "yak", "snores"]])[0].tolist() == ["D", "N", "V"]


@pytest.mark.parametrize("estimate", ["mle", "unbiased"])
def test_without_a_prior_a_new_label_is_missing(estimate):
    tagger = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate).fit(WORDS, TAGS)
    steps = [["the", "yak", "runs"], ["the", None, "runs"]]
    np.testing.assert_array_equal(*tagger.predict_proba(steps))
    np.testing.assert_array_equal(*tagger.score_samples(steps))


@pytest.mark.parametrize("several", [False, True], ids=["one column", "several"])
def test_known_labels_answer_as_without_new_ones(several):
    """To the bit: likelihoods, states, samples, what is filled in."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, 3, 200)
    steps = {"kind": [f"word {k}" for k in rng.zipf(1.7, 200) % 50 + states]}
    if several:
        steps |= {"size": rng.normal(states), "other": rng.integers(0, 4, 200).astype(str)}
    model = tb.HiddenMarkovModel().fit(steps, states, [50] * 4)
    missing = model.reestimate(unseen="missing")
    steps["kind"][7] = None
    for question in ("score_samples", "predict_proba", "filter_proba", "predict", "predict_transition_proba"):
        found, expected = (getattr(each, question)(steps, [50] * 4) for each in (model, missing))
        np.testing.assert_array_equal(found, expected, err_msg=question)
    assert repr(model.impute(steps, [50] * 4)) == repr(missing.impute(steps, [50] * 4))
    assert repr(model.sample(30, random_state=0)) == repr(missing.sample(30, random_state=0))
    steps["kind"][7] = "a new word"
    assert model.score_samples(steps, [50] * 4)[0] < missing.score_samples(steps, [50] * 4)[0]


def test_a_new_label_is_there():
    """Where absence says something: a new label is no absent one, and no unknown one either."""
    steps = {"kind": ["a", "b", None, None, "c", None]}
    model = tb.HiddenMarkovModel(columns=tb.WithMissing(tb.Categorical())).fit(steps, [0, 0, 1, 1, 0, 1], [6])
    first, rest = model.start_, np.array([3.5 / 4, 0.5 / 1])
    there = model.emission_["kind (present)"].ravel()
    np.testing.assert_allclose(np.exp(model.score_samples({"kind": ["new"]}, [1])), [first @ (there * rest)])
    missing = model.reestimate(unseen="missing")
    np.testing.assert_allclose(missing.score_samples({"kind": ["new"]}, [1]), [0.0], atol=1e-12)


def test_means_and_covariances_of_measured_steps():
    rng = np.random.default_rng(0)
    state = np.repeat(["dry", "wet"], 40)
    steps = {
        "depth": rng.normal(np.where(state == "wet", 4.0, 1.0)),
        "calls": rng.poisson(3, 80),
        "wind": rng.normal(size=80),
    }
    columns = {"depth": tb.Gaussian(), "calls": tb.Poisson(), "wind": tb.Gaussian()}
    model = tb.HiddenMarkovModel(columns=columns, estimate="mle").fit([steps], [state])
    wet = state == "wet"
    np.testing.assert_allclose(model.means_[1], [steps["depth"][wet].mean(), steps["wind"][wet].mean()], rtol=1e-12)
    assert model.covariances_.shape == (2, 2, 2)
    np.testing.assert_allclose(
        np.diag(model.covariances_[0]), [steps[k][~wet].var() for k in ("depth", "wind")], rtol=1e-12
    )
    both = np.stack([steps["depth"], steps["wind"]], axis=1)
    joined = tb.HiddenMarkovModel(columns=tb.MultivariateGaussian(), estimate="mle").fit([both], [state])
    np.testing.assert_allclose(joined.covariances_[1], np.cov(both[wet].T, bias=True), rtol=1e-10)
    assert not hasattr(tb.HiddenMarkovModel().fit([["x", "y"]], [["a", "b"]]), "means_")
    with pytest.raises(AttributeError, match="none of its columns is Gaussian"):
        _ = tb.HiddenMarkovModel().fit([["x", "y"]], [["a", "b"]]).means_
