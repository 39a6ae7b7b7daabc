"""How a chain spends its time: closed forms, enumeration, and chains that have no long run to speak of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.hmm.chains import DIARY, enumerated, ice_cream


def chain(transition, end=None):
    n = len(transition)
    return tb.HiddenMarkovModel.from_tables(np.full(n, 1 / n), transition, np.full((n, 2), 0.5), end)


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_the_stationary_distribution_is_the_eigenvector(seed, n):
    moves = np.random.default_rng(seed).dirichlet(np.full(n, 0.5) + 1e-3, n)
    model = chain(moves)
    values, vectors = np.linalg.eig(model.transition_.T)
    vector = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    np.testing.assert_allclose(model.stationary_, vector / vector.sum(), atol=1e-7)
    np.testing.assert_allclose(model.stationary_ @ model.transition_, model.stationary_, atol=1e-14)
    assert model.stationary_.sum() == pytest.approx(1.0, abs=1e-14)


def test_small_shares_keep_their_digits():
    # 1e-12 comes, 1 leaves: the share is 1e-12 / (1 + 1e-12), which an eigenvector knows to 4 digits.
    found = chain([[1 - 1e-12, 1e-12], [1.0, 0.0]]).stationary_
    assert found[1] == pytest.approx(1e-12 / (1 + 1e-12), rel=1e-4)
    rare = chain([[0.5, 0.5 - 2**-40, 2**-40], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).stationary_
    assert rare[2] == pytest.approx(rare[0] * 2**-40, rel=1e-14)


def test_it_is_what_the_next_steps_tend_to():
    model = ice_cream("bayes")
    np.testing.assert_allclose(model.predict_next([[1, 2]], 400)[0, -1], model.stationary_, atol=1e-12)


def test_states_that_are_left_for_good_have_nothing():
    np.testing.assert_allclose(chain([[0.5, 0.5, 0], [0, 0.25, 0.75], [0, 0.5, 0.5]]).stationary_, [0, 0.4, 0.6])


def test_states_that_take_turns_have_shares_all_the_same():
    np.testing.assert_allclose(chain([[0, 1, 0], [0, 0, 1], [1, 0, 0]]).stationary_, [1 / 3] * 3)


def test_several_groups_that_are_never_left_are_named():
    model = chain([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]])
    with pytest.raises(tb.EstimateError, match=r"2 closed classes of states \(1; 2\)"):
        _ = model.stationary_
    assert model.durations_.tolist() == [2.0, np.inf, np.inf]


def test_a_state_after_which_nothing_was_seen():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [["s", "t"]])
    with pytest.raises(tb.EstimateError, match="state t has no observed transition"):
        _ = model.stationary_
    np.testing.assert_array_equal(model.durations_, [1.0, np.nan])
    np.testing.assert_allclose(model.reestimate(estimate="bayes").stationary_, [3 / 7, 4 / 7])


@given(st.floats(0, 1 - 1e-9), st.floats(0, 1 - 1e-9), st.floats(0, 1))
def test_a_stay_is_geometric(first, second, end):
    moves = [[first, 1 - first], [1 - second, second]]
    np.testing.assert_allclose(chain(moves).durations_, [1 / (1 - first), 1 / (1 - second)], rtol=1e-6)
    ending = chain(moves, [end, end])
    stay = np.array([first, second]) * (1 - end)
    np.testing.assert_allclose(ending.durations_, 1 / (1 - stay), rtol=1e-6)


@pytest.mark.parametrize("end_state", [False, True])
def test_visits_by_enumeration(end_state):
    model = ice_cream("bayes", end_state=end_state)
    asked = [[1, None, 3, 2], [3], []]
    found = model.expected_visits(asked)
    for number, steps in enumerate(asked[:2]):
        paths = enumerated(model, [-1 if step is None else step - 1 for step in steps])
        scores = np.array(list(paths.values()))
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        spent, stays = np.zeros(2), np.zeros(2)
        for path, share in zip(paths, shares, strict=True):
            for t, state in enumerate(path):
                spent[state] += share
                stays[state] += share * (t == 0 or path[t - 1] != state)
        np.testing.assert_allclose(found.steps[number], spent, atol=1e-12)
        np.testing.assert_allclose(found.stays[number], stays, atol=1e-12)
    assert found.steps[2].tolist() == [0, 0]
    np.testing.assert_allclose(found.durations, found.steps.sum(axis=0) / found.stays.sum(axis=0))


def test_visits_in_tables():
    found = ice_cream("bayes").expected_visits(DIARY)
    assert repr(found).startswith("expected visits in 3 sequences of 9 steps")
    assert "steps a stay" in found._repr_html_()
    frame = found.to_frame()
    assert frame.shape == (6, 4)
    assert frame.steps.sum() == pytest.approx(9.0)
    many = chain(np.full((30, 30), 1 / 30)).expected_visits([[0, 1, 1]])
    assert "… 6 more" in repr(many)
    nothing = ice_cream("bayes").expected_visits([[]])
    assert np.isnan(nothing.durations).all()
    assert "nan" in repr(nothing)


def test_visits_of_an_impossible_sequence():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [["s", "t"]])
    with pytest.warns(UserWarning, match="impossible"):
        found = model.expected_visits([["a", "a"], ["a", "b"]])
    assert found.steps.tolist() == [[0, 0], [1, 1]]
    assert found.stays.tolist() == [[0, 0], [1, 1]]
