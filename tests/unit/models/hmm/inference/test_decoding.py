"""What a hidden Markov model answers: the three problems against enumeration, and what it draws and fills in."""

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.hmm.chains import emissions, enumerated, ice_cream

mpl.use("Agg")


@st.composite
def labeled(draw):
    n_states, n_symbols = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda found: sum(found) > 0))
    X = [draw(st.lists(st.integers(0, n_symbols - 1), min_size=n, max_size=n)) for n in lengths]
    y = [draw(st.lists(st.integers(0, n_states - 1), min_size=n, max_size=n)) for n in lengths]
    return X, y, draw(st.booleans())


@given(labeled(), st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=4))
def test_the_three_problems_by_enumeration(data, steps):
    X, y, end_state = data
    family = tb.Categorical(levels=(0, 1, 2))
    model = tb.HiddenMarkovModel(columns=family, end_state=end_state).fit(X, y)
    codes = [-1 if value is None else value for value in steps]
    paths = enumerated(model, codes)
    scores = np.array(list(paths.values()))
    total = np.logaddexp.reduce(scores)
    asked = [np.array(steps, dtype=object)]
    assert model.score_samples(asked)[0] == pytest.approx(total, abs=1e-10)
    found = model.predict(asked)[0]
    place = tuple(model.states_.tolist().index(state) for state in found)
    assert paths[place] == pytest.approx(scores.max(), abs=1e-10)
    shares = np.exp(scores - total)
    n_states = len(model.states_)
    smoothed = np.zeros((len(steps), n_states))
    pairs = np.zeros((len(steps) - 1, n_states, n_states))
    for path, share in zip(paths, shares, strict=True):
        for t, state in enumerate(path):
            smoothed[t, state] += share
            if t:
                pairs[t - 1, path[t - 1], state] += share
    np.testing.assert_allclose(model.predict_proba(asked)[0], smoothed, atol=1e-10)
    np.testing.assert_allclose(model.predict_transition_proba(asked)[0], pairs, atol=1e-10)
    for t in range(1, len(steps) + 1):
        so_far = enumerated(model, codes[:t], ended=False)
        weights = np.exp(np.array(list(so_far.values())) - np.logaddexp.reduce(list(so_far.values())))
        last = [sum(w for p, w in zip(so_far, weights, strict=True) if p[-1] == s) for s in range(n_states)]
        np.testing.assert_allclose(model.filter_proba(asked)[0][t - 1], last, atol=1e-10)
    labels = [model.states_[list(path)] for path in paths]
    if len(labels) <= 9:
        joint = [model.log_joint(asked, [label.tolist()])[0] for label in labels]
        np.testing.assert_allclose(joint, scores, atol=1e-10)


def test_one_step_by_hand():
    """The statistics of one E-step are sums over all paths; those of shards add up to the whole."""
    X = [[0, 1, 1], [1, 0]]
    start = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="bayes").fit([[0, 1, 0, 0, 1]], [[0, 1, 0, 1, 1]])
    expected = np.zeros((2, 2))
    for steps in X:
        paths = enumerated(start, steps)
        total = np.logaddexp.reduce(list(paths.values()))
        for path, score in paths.items():
            for a, b in itertools.pairwise(path):
                expected[a, b] += np.exp(score - total)
    pairs = sum(part.sum(axis=0) for part in start.predict_transition_proba(X))
    np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_the_next_steps():
    model = ice_cream("bayes")
    found = model.predict_next([[3, 1], []], 3)
    now = model.filter_proba([[3, 1]])[0][-1]
    for step in range(3):
        now = now @ model.transition_
        np.testing.assert_allclose(found[0, step], now)
    np.testing.assert_allclose(found[1, 0], model.start_)


def test_extremes():
    model = ice_cream("bayes")
    long = model.score_samples([np.tile([1, 2, 3, 2], 250_000)])
    assert np.isfinite(long).all()
    assert long[0] < -500_000
    rare = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(
        [["a"], ["b"]], [["s"], ["s"]], sample_weight=[1.0, 1e-20]
    )
    assert rare.score_samples([["b"]])[0] == pytest.approx(-46.0517, abs=1e-4)
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    near = tb.HiddenMarkovModel().fit([x], [(x > 0).astype(int)])
    far = tb.HiddenMarkovModel().fit([np.round(x * 2**20) / 2**20 + 2.0**27], [(x > 0).astype(int)])
    np.testing.assert_allclose(
        near.predict_proba([x])[0], far.predict_proba([np.round(x * 2**20) / 2**20 + 2.0**27])[0], atol=1e-3
    )


def test_an_impossible_sequence():
    broken = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [[0, 1]])
    with pytest.warns(UserWarning, match="sequence 0 is impossible at step 0"):
        assert np.isneginf(broken.score_samples([["b", "a"]])[0])
    with pytest.warns(UserWarning, match="impossible"):
        assert not np.isnan(broken.predict_proba([["b", "a"]])[0]).any()
    with pytest.warns(UserWarning, match="impossible"):
        assert broken.predict([["b", "a"]])[0].tolist() == [None, None]


# ---- Drawing, filling, pictures ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_drawn_has_the_parameters_it_came_from():
    model = ice_cream("bayes")
    X, y = model.sample([20_000, 3], random_state=0)
    assert [len(steps) for steps in X] == [20_000, 3]
    again = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(X, y)
    np.testing.assert_allclose(again.transition_, model.transition_, atol=0.02)
    np.testing.assert_allclose(emissions(again), emissions(model), atol=0.02)
    ended = ice_cream("bayes", end_state=True)
    lengths = [len(steps) for steps in ended.sample([50] * 300, random_state=0)[0]]
    stays = (1 - ended.end_)[:, None] * ended.transition_
    expected = ended.start_ @ np.linalg.solve(np.eye(2) - stays, np.ones(2))
    assert np.mean(lengths) == pytest.approx(expected, abs=4 * np.std(lengths) / np.sqrt(300))


def test_filling_in():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0], 40)
    x = rng.normal(5.0 * state, 0.5)
    holes = x.copy()
    holes[[10, 50, 100]] = np.nan
    model = tb.HiddenMarkovModel().fit([x], [state])
    filled = model.impute([holes])[0]
    means = model.predict_proba([holes])[0] @ model.means_
    np.testing.assert_allclose(filled[[10, 50, 100]], means[[10, 50, 100], 0], rtol=1e-12)
    np.testing.assert_allclose(filled[[10, 50, 100]], [x[state == k].mean() for k in (0, 1, 0)], atol=0.02)
    np.testing.assert_array_equal(filled[~np.isnan(holes)], x[~np.isnan(holes)])
    words = ice_cream().impute([np.array([3, None, 1], dtype=object)])[0]
    assert words.tolist() == [3, 3, 1]  # hot or cold with ½ each: .3, .325 and .375 for one, two and three


def test_pictures():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1], 20)
    model = tb.HiddenMarkovModel().fit([rng.normal(3.0 * state)], [state])
    axes = model.plot_states(rng.normal(3.0 * state)).axes
    assert len(axes) == 2
    assert axes[1].get_ylabel() == "p(state)"
    assert model.plot_transitions().axes[0].get_title().startswith("p(next state")
    ice_cream().plot_states([3, 1, 2])
    plt.close("all")
