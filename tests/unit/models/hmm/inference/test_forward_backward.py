"""What forward, backward and Viterbi write down: against all paths, scaled and in logs, possible or not."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.hmm.chains import DIARY, enumerated, ice_cream


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(["bayes", "mle"]),
)
@pytest.mark.filterwarnings("ignore:sequence 0 is impossible")
def test_all_paths(seed, steps, end_state, estimate):
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(1, 4))
    X, y = rng.integers(0, 3, (4, 3)), np.arange(12).reshape(4, 3) % n_states
    family = tb.Categorical(levels=(0, 1, 2))
    with np.errstate(divide="ignore"):
        model = tb.HiddenMarkovModel(columns=family, end_state=end_state, estimate=estimate).fit(list(X), list(y))
        codes = [-1 if value is None else value for value in steps]
        asked = [np.array(steps, dtype=object)]
        (ahead,), (back,), (best,) = model.forward(asked), model.backward(asked), model.trellis(asked)
        n_states = len(model.states_)  # a state may never be seen
        for t in range(len(steps)):
            so_far = enumerated(model, codes[: t + 1], ended=False)
            mine = [[v for p, v in so_far.items() if p[-1] == s] for s in range(n_states)]
            np.testing.assert_allclose(ahead.log[t], [np.logaddexp.reduce(v) for v in mine], atol=1e-10)
            np.testing.assert_allclose(best.log_delta[t], [max(v) for v in mine], atol=1e-10)
        paths = enumerated(model, codes)
    scores = np.array(list(paths.values()))
    total = np.logaddexp.reduce(scores)
    assert best.log_prob == pytest.approx(scores.max(), abs=1e-10)
    assert [x.tolist() for x in model.predict(asked)] == [best.path.tolist()]
    np.testing.assert_allclose(ahead.scaled, model.filter_proba(asked)[0], atol=1e-10)
    np.testing.assert_allclose(ahead.scaled * back.scaled, model.predict_proba(asked)[0], atol=1e-10)
    if np.isfinite(total):
        product = np.logaddexp.reduce(ahead.log + back.log, axis=1)
        np.testing.assert_allclose(product, total, atol=1e-10)
        np.testing.assert_allclose(np.log(back.scaled.max(axis=1)) + back.log_scale, back.log.max(axis=1), atol=1e-10)
        place = [int(best.log_delta[-1].argmax())] if model.end_ is None else [int(best.path_indices[-1])]
        for t in range(len(steps) - 1, 0, -1):  # back along the pointers
            place.append(int(best.pointers[t, place[-1]]))
        assert model.states_[place[::-1]].tolist() == best.path.tolist()
    else:
        assert set(best.path) == {None}
        assert not ahead.scaled[-1].any() or end_state
        assert not back.scaled.any()


def test_the_best_states_one_by_one_may_be_no_path():
    X, y = [["a", "x"]] * 10, [[0, 1]] * 4 + [[2, 3]] * 3 + [[4, 3]] * 3
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(X, y)
    (posterior,), (whole,) = (model.predict(X[:1], decode=word) for word in ("posterior", "viterbi"))
    assert whole.tolist() == [0, 1]
    assert posterior.tolist() == [0, 3]
    assert np.isneginf(model.log_joint(X[:1], [posterior]))
    with pytest.warns(UserWarning, match="impossible"):
        assert model.predict([["x", "a"]], decode="posterior")[0].tolist() == [None, None]
    with pytest.raises(tb.DataError, match="expected 'viterbi' or 'posterior'"):
        model.predict(X, decode="sum")


def test_score_is_the_accuracy_that_is_evaluated():
    rng = np.random.default_rng(0)
    y = [(np.cumsum(rng.random(40) < 0.3) % 2).tolist() for _ in range(30)]
    X = [np.where(rng.random(40) < 0.35, 1 - np.array(s), s).tolist() for s in y]
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(X[:10], y[:10])
    told = tb.evaluate(model, X[10:], y[10:], by=[0, 1] * 10)
    assert told.accuracy.value == pytest.approx(model.score(X[10:], y[10:]), abs=1e-12)
    assert told.groups[0].accuracy.value == pytest.approx(model.score(X[10::2], y[10::2]), abs=1e-12)
    one_by_one = np.mean(np.concatenate(model.predict(X[10:], decode="posterior")) == np.concatenate(y[10:]))
    assert one_by_one != model.score(X[10:], y[10:])
    fold = np.arange(30) % 3
    held = tb.cross_validate(tb.HiddenMarkovModel(columns=tb.Categorical()), X, y, folds=fold)
    some = [
        tb.HiddenMarkovModel(columns=tb.Categorical())
        .fit([X[k] for k in np.flatnonzero(fold != f)], [y[k] for k in np.flatnonzero(fold != f)])
        .score([X[k] for k in np.flatnonzero(fold == f)], [y[k] for k in np.flatnonzero(fold == f)])
        for f in range(3)
    ]
    assert held.accuracy.value == pytest.approx(np.mean(some), abs=1e-12)


def test_score_of_impossible_sequences_is_evaluated_alike():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [["s", "t"]])
    X, y = [["b", "a"], ["a", "b"]], [["s", "t"], ["s", "t"]]
    assert model.score(X, y) == tb.evaluate(model, X, y).accuracy.value == 0.75


def test_a_prediction_that_is_not_the_most_probable_class():
    p = np.log([[0.9, 0.1], [0.6, 0.4]])
    found = tb.Evaluation(["ham", "spam"], [0, 1], p, predicted=[0, 1])
    assert found.accuracy.value == 1.0
    assert found.confusion_matrix.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(tb.DataError, match="predicted has 2 in row 1"):
        tb.Evaluation(["ham", "spam"], [0, 1], p, predicted=[0, 2])


def test_tables():
    model = ice_cream()
    best = model.trellis([[1, 2, 3]])[0]
    assert repr(best).splitlines() == [
        "trellis, p(steps so far, the best path to the state): 0.02667, * marks it",
        "  step     0               1                2",
        "  cold  *0.4  *0.1067 ← cold                0",
        "  hot      0  0.03333 ← cold  *0.02667 ← cold",
    ]
    frame = best.to_frame()
    assert frame[frame.on_path].state.tolist() == ["cold", "cold", "hot"]
    assert frame.before.tolist() == [None, None, "cold", "cold", None, "cold"]
    assert isinstance(frame, pd.DataFrame)
    ahead = model.forward([[1, 2, 3]])[0]
    assert ahead.to_frame().loc[1, "hot"] == pytest.approx(np.log(1 / 30))
    for one in (best, ahead):
        assert one._repr_html_().startswith("<table")
    long = repr(model.forward([[1, 2, 3] * 400])[0])
    assert long.startswith("forward, log p(steps so far, state)\n")
    assert "… 1192 more" in long
    assert repr(model.trellis([[]])[0]).endswith("\n  cold\n  hot")
    with pytest.warns(UserWarning, match="impossible"):
        broken = _broken().trellis([["b", "a"]])[0]
    assert "the sequence is impossible" in repr(broken)


def _broken():
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b"]], [["<s>", "t"]])


def test_labels_in_a_notebook_are_escaped():
    assert "<s>" not in _broken().trellis([["a", "b"]])[0]._repr_html_()


def test_every_way_sequences_come_and_numbers_as_steps():
    model = ice_cream()
    flat = model.forward(list(itertools.chain(*DIARY)), [3, 3, 3])
    frame = pd.DataFrame({"who": list("aaabbbccc"), 0: np.ravel(DIARY)})
    for one, two, three in zip(model.forward(DIARY), flat, model.forward(frame, sequence="who"), strict=True):
        np.testing.assert_array_equal(one.log, two.log)
        np.testing.assert_array_equal(one.log, three.log)
    rng = np.random.default_rng(1)
    x = [rng.normal(size=(n, 2)) for n in (5, 1, 7)]
    numbers = tb.HiddenMarkovModel().fit(x, [list("stsst"), ["t"], list("stststs")])
    totals = [np.logaddexp.reduce(one.log[-1]) for one in numbers.forward(x)]
    np.testing.assert_allclose(totals, numbers.score_samples(x), rtol=1e-12)
    assert [b.path.tolist() for b in numbers.trellis(x)] == [p.tolist() for p in numbers.predict(x)]
