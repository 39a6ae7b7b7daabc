"""Whole paths given a sequence: the best few against enumeration, and drawn ones against what is known of all."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.hmm.chains import DIARY, enumerated, ice_cream


def chain(seed, n_states, end_state, share=0.0):
    """A chain of random tables, some of whose moves and labels are impossible."""
    rng = np.random.default_rng(seed)

    def table(*shape):
        found = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
        found[rng.random(shape) < share] = 0.0
        found[..., 0] += found.sum(axis=-1) == 0
        return found / found.sum(axis=-1, keepdims=True)

    return tb.HiddenMarkovModel.from_tables(
        table(n_states), table(n_states, n_states), table(n_states, 3), rng.random(n_states) if end_state else None
    )


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), st.integers(1, 12), st.sampled_from([0.0, 0.4]))
@pytest.mark.filterwarnings("ignore:sequence 0 is impossible")
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_the_best_paths_are_the_best_of_all(seed, n_states, end_state, k, share):
    model = chain(seed, n_states, end_state, share)
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, int(rng.integers(1, 5)))
    paths = enumerated(model, codes)
    asked = [[None if code < 0 else int(code) for code in codes]]
    found = model.best_paths(asked, k)[0]
    possible = {path: score for path, score in paths.items() if np.isfinite(score)}
    expected = sorted(possible.values(), reverse=True)[:k]
    assert len(found) == len(expected) == min(k, len(possible))
    np.testing.assert_allclose(found.log_prob, expected, atol=1e-10)
    told = [tuple(path) for path in found.paths.tolist()]
    assert len(set(told)) == len(told)
    np.testing.assert_allclose([paths[path] for path in told], found.log_prob, atol=1e-10)
    if possible:
        total = np.logaddexp.reduce(list(possible.values()))
        np.testing.assert_allclose(found.probability, np.exp(found.log_prob - total), atol=1e-10)
        np.testing.assert_allclose(model.trellis(asked)[0].log_prob, found.log_prob[0], atol=1e-10)


def test_equally_good_paths_come_as_viterbi_takes_them():
    model = tb.HiddenMarkovModel.from_tables([0.5, 0.5], np.full((2, 2), 0.5), np.full((2, 2), 0.5))
    found = model.best_paths([[0, 1]], 9)[0]
    assert found.paths.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert found.paths[0].tolist() == model.predict([[0, 1]])[0].tolist()
    assert found.probability.tolist() == pytest.approx([0.25] * 4)


def test_drawn_paths_agree_with_what_is_known_of_all():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), end_state=True).fit(
        DIARY, [["a", "b", "c"], ["b", "c", "c"], ["a", "a", "b"]]
    )
    asked, n = [[1, None, 3, 2, 2], [3, 1]], 20_000
    drawn = model.sample_paths(asked, n, random_state=0)
    for paths, shares, pairs in zip(
        drawn, model.predict_proba(asked), model.predict_transition_proba(asked), strict=True
    ):
        seen = paths[:, :, None] == model.states_
        assert (np.abs(seen.mean(axis=0) - shares) < 4 * np.sqrt(shares * (1 - shares) / n) + 1e-12).all()
        both = (seen[:, :-1, :, None] & seen[:, 1:, None, :]).mean(axis=0)
        assert (np.abs(both - pairs) < 4 * np.sqrt(pairs * (1 - pairs) / n) + 1e-12).all()
    again = model.sample_paths(asked, n, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    assert model.sample_paths(asked, 0)[0].shape == (0, 5)


def test_a_path_that_floats_cannot_tell_is_drawn_all_the_same():
    # After two steps the first state has a probability of 1e-400, and only it can go on to the third.
    tiny = 1e-200
    model = tb.HiddenMarkovModel.from_tables(
        {"a": tiny, "b": 1 - tiny},
        {"a": {"a": 0.5, "c": 0.5}, "b": {"b": 1.0}, "c": {"c": 1.0}},
        {"a": {0: tiny, 1: 1 - tiny}, "b": {0: 1.0}, "c": {2: 1.0}},
        states=["a", "b", "c"],
    )
    asked = [[0, 0, 2]]
    assert model.filter_proba(asked)[0][1, 0] == 0.0
    assert model.sample_paths(asked, 3, random_state=0)[0].tolist() == [["a", "a", "c"]] * 3
    assert model.best_paths(asked)[0].paths.tolist() == [["a", "a", "c"]]


def test_impossible_and_empty_sequences():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [["s", "t"]])
    with pytest.warns(UserWarning, match="sequence 1 is impossible at step 1"):
        some, none, empty = model.best_paths([["a", "b"], ["a", "a"], []])
    assert some.paths.tolist() == [["s", "t"]]
    assert some.probability.tolist() == [1.0]
    assert len(none) == 0
    assert "impossible" in repr(none)
    assert none.probability.shape == (0,)
    assert empty.paths.shape == (1, 0)
    with pytest.warns(UserWarning, match="sequence 1 is impossible at step 1"):
        drawn = model.sample_paths([["a", "b"], ["a", "a"], []], 2)
    assert [paths.tolist() for paths in drawn] == [[["s", "t"]] * 2, [[None, None]] * 2, [[], []]]


def test_every_way_sequences_come():
    model = ice_cream("bayes")
    frame = pd.DataFrame({"who": ["x", "y"] * 2, "day": [2, 1, 1, 2], "eaten": [3, 1, 1, 2]})
    named = tb.HiddenMarkovModel(columns={"eaten": tb.Categorical()}).fit(
        [{"eaten": day} for day in DIARY], [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    )
    by_frame = named.best_paths(frame, 3, sequence="who", order="day")
    by_list, flat = model.best_paths([[1, 3], [1, 2]], 3), model.best_paths([1, 3, 1, 2], 3, [2, 2])
    for other in (by_list, flat):
        for one, two in zip(by_frame, other, strict=True):
            np.testing.assert_array_equal(one.paths, two.paths)
    drawn = named.sample_paths(frame, 4, sequence="who", order="day", random_state=1)
    np.testing.assert_array_equal(drawn, model.sample_paths([1, 3, 1, 2], 4, [2, 2], random_state=1))


def test_best_paths_in_tables():
    found = ice_cream().best_paths([[1, 2, 3]])[0]
    frame = found.to_frame()
    assert frame.columns.tolist() == ["path", "step", "state", "log_prob", "probability"]
    assert frame.state.tolist() == ["cold", "cold", "hot", "cold", "hot", "hot"]
    assert "0.6154" in found._repr_html_()
    long = ice_cream("bayes").best_paths([[1, 2, 3] * 10], 1)[0]
    assert "the best path:" in repr(long)
    assert "… 18 more" in repr(long)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.best_paths([[1]], 0), "k is 0; expected a whole number"),
        (lambda model: model.best_paths([[1]], 1.5), "k is 1.5"),
        (lambda model: model.sample_paths([[1]], -1), "n is -1"),
    ],
    ids=["none", "half", "less"],
)
def test_numbers_that_make_no_sense(call, words):
    with pytest.raises(tb.DataError, match=words):
        call(ice_cream("bayes"))
