"""How strange every step is: the terms of the likelihood, and tails that are as often small as they say."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tests.unit.models.hmm.chains import DIARY, WEATHER, enumerated, ice_cream


@pytest.mark.parametrize("end_state", [False, True])
def test_surprises_are_the_terms_of_the_likelihood(end_state):
    model = ice_cream("bayes", end_state=end_state)
    asked = [[1, None, 3, 2], [3], [], [2, 9, 1]]
    found = model.surprisal(asked)
    assert [len(each) for each in found] == [4, 1, 0, 3]
    for steps, told in zip(asked[:2], found[:2], strict=True):
        codes = [-1 if step is None else step - 1 for step in steps]
        for t in range(len(steps)):
            so_far, before = (
                np.logaddexp.reduce(list(enumerated(model, codes[:n], ended=False).values())) if n else 0.0
                for n in (t + 1, t)
            )
            gap = so_far - before
            assert told[t] == pytest.approx(-gap, abs=1e-12)
    if not end_state:
        np.testing.assert_allclose([each.sum() for each in found], -model.score_samples(asked), atol=1e-12)


def test_from_an_impossible_step_on_all_is_infinitely_strange():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b", "a"]], [["s", "t", "s"]])
    with pytest.warns(UserWarning, match="sequence 1 is impossible at step 1"):
        found = model.surprisal([["a", "b"], ["a", "a", "b"]])
    assert found[0].tolist() == [0, 0]
    assert found[1].tolist() == [0, np.inf, np.inf]
    with pytest.warns(UserWarning, match="impossible"):
        tails = model.tail_proba([["a", "a", "b"]])[0].ravel()
    assert tails[0] == 1.0
    assert np.isnan(tails[2])


def test_a_state_that_floats_lost_comes_back():
    # At the second step the state "a" has e^-2000 of the probability; from the third on, nothing else explains a step.
    model = tb.HiddenMarkovModel.from_tables(
        {"a": 0.5, "b": 0.5},
        {"a": {"a": 1.0}, "b": {"b": 1.0}},
        {"a": {"mean": 0.0, "variance": 1.0}, "b": {"mean": 100.0, "variance": 1.0}},
    )
    steps = [np.array([0.0, 125.0, 0.0, 0.0])]
    assert model.filter_proba(steps)[0][0, 0] == 1.0
    found = model.surprisal(steps)[0]
    assert found.sum() == pytest.approx(-model.score_samples(steps)[0], rel=1e-12)
    assert np.isfinite(found).all()


def telephone():
    return tb.HiddenMarkovModel.from_tables(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], {0: {"mean": 0.0, "variance": 1.0}, 1: {"mean": 5.0, "variance": 4.0}}
    )


def test_tails_of_measured_steps_are_even():
    model = telephone()
    X, _ = model.sample([2000, 2000], random_state=0)
    found = np.concatenate(model.tail_proba(X)).ravel()
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    first = model.tail_proba([[3.0]])[0].item()
    upto = 0.5 * stats.norm.cdf(3) + 0.5 * stats.norm.cdf(-1)
    assert first == pytest.approx(2 * min(upto, 1 - upto))


def test_tails_of_counts_and_labels_are_no_smaller_than_they_say():
    counts = tb.HiddenMarkovModel.from_tables(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], {0: {"rate": 2.0}, 1: {"rate": 9.0}}
    )
    for model in (counts, ice_cream("bayes")):
        X, _ = model.sample([3000], random_state=0)
        found = model.tail_proba(X)[0].ravel()
        for level in (0.02, 0.1, 0.3):
            assert (found <= level).mean() < level + 4 * np.sqrt(level * (1 - level) / 3000)
    p = model.start_ @ np.stack([model.emission_[0][label] for label in (1, 2, 3)], axis=1)
    for label in (1, 2, 3):
        tail = model.reestimate(estimate="bayes").set_params(unseen="missing").tail_proba([[label]])[0].item()
        assert tail == pytest.approx(p[p <= p[label - 1] + 1e-12].sum())


def test_several_columns_missing_cells_and_text():
    rng = np.random.default_rng(0)
    steps = [
        {
            "n": rng.poisson(3, 40),
            "sky": rng.choice(["gray", "blue"], 40),
            "said": ["good day"] * 40,
            "flat": [1.5] * 40,
        }
    ]
    columns = {"n": tb.Poisson(), "sky": tb.Categorical(), "said": tb.Text(), "flat": tb.Gaussian()}
    model = tb.HiddenMarkovModel(columns=columns).fit(steps, [rng.choice(["u", "v"], 40).tolist()])
    asked = [{"n": [2, None, 50], "sky": ["gray", "pink", None], "said": ["day"] * 3, "flat": [1.5, 2.0, None]}]
    found = model.tail_proba(asked)[0]
    assert found.shape == (3, 4)
    assert np.isnan(found[:, 2]).all()
    assert np.isnan(found[[1, 2, 2], [0, 1, 3]]).all()
    assert found[2, 0] < 1e-9
    assert 0 < found[1, 1] < 0.2
    assert found[:2, 3].tolist() == [1.0, 0.0]
    assert model.tail_proba([{"n": [], "sky": [], "said": [], "flat": []}])[0].shape == (0, 4)


def test_ends_make_going_on_part_of_a_step():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), end_state=True).fit(DIARY, WEATHER)
    plain = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(DIARY, WEATHER)
    assert model.surprisal([[1, None]])[0][1] == pytest.approx(
        -np.log(model.filter_proba([[1]])[0][0] @ (1 - model.end_))
    )
    assert plain.surprisal([[1, None]])[0][1] == pytest.approx(0.0)
