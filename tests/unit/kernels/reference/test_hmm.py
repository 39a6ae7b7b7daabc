"""Silent steps between those that are seen: as if they were there and missing, at the cost of their logarithm."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallybayes.kernels import hmm, hmm_messages
from tallybayes.kernels.hmm import GappedTransitions, HMMInput
from tallybayes.kernels.hmm_arguments import check
from tallybayes.kernels.reference import hmm as reference
from tests.examples import examples


def laid_out(emission, gaps, offsets):
    """The same with every silent step there, and missing; and where the steps that are seen stand."""
    rows, cuts, seen = [], [0], []
    for first, last in pairwise(offsets.tolist()):
        for step in range(first, last):
            rows += [np.zeros(emission.shape[1])] * int(gaps[step])
            seen.append(len(rows))
            rows.append(emission[step])
        cuts.append(len(rows))
    return np.array(rows).reshape(-1, emission.shape[1]), np.array(cuts), np.array(seen, dtype=np.intp)


@examples(40)
@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans(), st.booleans())
@example(270, 2, True, False)  # no sequence has a step
def test_as_if_they_were_there(seed, n_states, ends, zeros):
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        moves = rng.dirichlet(np.ones(n_states), n_states)
        moves[rng.random(moves.shape) < 0.3 * zeros] = 0.0
        start, moves = np.log(rng.dirichlet(np.ones(n_states))), np.log(moves)
    end = np.log(rng.random(n_states)) if ends else None
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 4))])
    n_steps = int(offsets[-1])
    emission, gaps = np.log(rng.random((n_steps, n_states))), rng.integers(0, 6, n_steps) * rng.integers(0, 2, n_steps)
    weight = rng.random(4)
    rows, cuts, seen = laid_out(emission, gaps, offsets)
    asked, whole = (start, GappedTransitions(moves, gaps), end, emission, offsets), (start, moves, end, rows, cuts)
    np.testing.assert_allclose(hmm.log_likelihood(HMMInput(*asked)), hmm.log_likelihood(HMMInput(*whole)), atol=1e-12)
    for name in ("filter", "posterior"):
        rows = getattr(hmm, name)(HMMInput(*whole))[0][seen]
        np.testing.assert_allclose(getattr(hmm, name)(HMMInput(*asked))[0], rows, atol=1e-12)
        np.testing.assert_allclose(getattr(reference, name)(check(HMMInput(*asked)))[0], rows, atol=1e-12)
    expected = hmm.expected(HMMInput(*whole), weight)
    for found in (hmm.expected(HMMInput(*asked), weight), reference.expected(check(HMMInput(*asked)), weight)):
        for part in ("start", "transition", "end", "log_likelihood"):
            np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-10)
        np.testing.assert_allclose(found.emission, expected.emission[seen], atol=1e-12)
    for found, expected in zip(
        hmm_messages.messages(HMMInput(*asked))[:2], hmm_messages.messages(HMMInput(*whole))[:2], strict=True
    ):
        np.testing.assert_allclose(found, expected[seen], atol=1e-10)
    _same_before(
        hmm_messages.one_step_predictive(HMMInput(*asked)),
        hmm_messages.one_step_predictive(HMMInput(*whole)),
        gaps,
        seen,
    )


def _same_before(found, expected, gaps, seen):
    """What is expected of a step adds up over the silent ones before it, that these go on included."""
    missing = np.array([expected[1][place - gap : place].sum() for place, gap in zip(seen, gaps, strict=True)])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found[1], expected[1][seen] + missing, atol=1e-10)
    possible = np.isfinite(expected[1][seen]) & np.isfinite(missing)
    np.testing.assert_allclose(found[0][possible], (expected[0][seen] + missing[:, None])[possible], atol=1e-10)


@examples(40)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_paths_and_pairs_by_adding_up_all(seed, n_states, ends):
    """Over all paths of the steps that are seen, the moves between them by powers of the transitions."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(n_states), n_states)
    start, end = rng.dirichlet(np.ones(n_states)), rng.random(n_states) if ends else np.ones(n_states)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 3))])
    n_steps = int(offsets[-1])
    emission, gaps = rng.random((n_steps, n_states)), rng.integers(0, 6, n_steps) * rng.integers(0, 2, n_steps)
    uniform = rng.random((n_steps, 3))
    given = (
        np.log(start),
        GappedTransitions(np.log(moves), gaps),
        np.log(end) if ends else None,
        np.log(emission),
        offsets,
    )
    paths, score = hmm.best_paths(HMMInput(*given), 4)
    drawn, likelihood = hmm.draw_paths(HMMInput(*given), uniform)
    pairs, _ = hmm_messages.pairs(HMMInput(*given))
    trellis = hmm_messages.trellis(HMMInput(*given))
    for k, (a, b) in enumerate(pairwise(offsets.tolist())):
        powers = [np.linalg.matrix_power(moves, gap + (t > 0)) for t, gap in enumerate(gaps[a:b])]
        every = {}
        for path in np.ndindex(*[n_states] * (b - a)):
            value = end[path[-1]] if path else 1.0
            for t, state in enumerate(path):
                value *= ((start @ powers[0])[state] if t == 0 else powers[t][path[t - 1], state]) * emission[
                    a + t, state
                ]
            every[path] = value
        total, n = sum(every.values()), min(4, len(every))
        np.testing.assert_allclose(np.exp(score[k, :n]), sorted(every.values(), reverse=True)[:n], rtol=1e-9)
        told = [tuple(path) for path in paths[a:b, :n].T.tolist()]
        np.testing.assert_allclose(np.exp(score[k, :n]), [every[path] for path in told], rtol=1e-9)
        assert len(set(told)) == n
        np.testing.assert_allclose(np.exp(likelihood[k]), total, rtol=1e-9)
        assert trellis[k].log_prob == pytest.approx(score[k, 0])
        for t in range(b - a):
            for state in range(n_states):
                best = max(_begun(path[: t + 1], start, powers, emission[a:b]) for path in every if path[t] == state)
                assert np.exp(trellis[k].log_delta[t, state]) == pytest.approx(best)
        for path, numbers in zip(drawn[a:b].T.tolist(), uniform[a:b].T.tolist(), strict=True):
            for t in range(b - a):
                shares = np.zeros(n_states)
                for other, value in every.items():
                    if list(other[t + 1 :]) == path[t + 1 :]:
                        shares[other[t]] += value / total
                upto = np.cumsum(shares) / shares.sum()
                assert (upto[path[t] - 1] if path[t] else 0.0) - 1e-9 <= numbers[t] <= upto[path[t]] + 1e-9
        assert pairs[k].shape == (max(b - a - 1, 0), n_states, n_states)
        for t in range(b - a - 1):
            joint = np.zeros((n_states, n_states))
            for path, value in every.items():
                joint[path[t], path[t + 1]] += value / total
            np.testing.assert_allclose(pairs[k][t], joint, atol=1e-12)


def _begun(path, start, powers, emission):
    value = (start @ powers[0])[path[0]] * emission[0, path[0]]
    for t in range(1, len(path)):
        value *= powers[t][path[t - 1], path[t]] * emission[t, path[t]]
    return value


def test_codes_and_missing_ones():
    rng = np.random.default_rng(1)
    start, moves = np.log(rng.dirichlet(np.ones(2))), np.log(rng.dirichlet(np.ones(2), 2))
    table, codes, gaps = np.log(rng.random((3, 2))), np.array([0, -1, 2, 1]), np.array([0, 3, 0, 1])
    rows = np.where(codes[:, None] < 0, 0.0, table[np.maximum(codes, 0)])
    found = hmm.expected(HMMInput(start, GappedTransitions(moves, gaps), None, (codes, table), [0, 4]))
    dense = hmm.expected(HMMInput(start, GappedTransitions(moves, gaps), None, rows, [0, 4]))
    np.testing.assert_allclose(found.transition, dense.transition)
    np.testing.assert_allclose(found.emission, [dense.emission[codes == k].sum(axis=0) for k in range(3)])


def test_the_best_path_of_what_is_seen():
    """Over all paths of the steps that are seen, those of silent ones summed out."""
    rng = np.random.default_rng(3)
    start, moves = np.log(rng.dirichlet(np.ones(3))), rng.dirichlet(np.ones(3), 3)
    emission, gaps = np.log(rng.random((4, 3))), np.array([2, 0, 4, 1])
    powers = [np.linalg.matrix_power(moves, gap + (step > 0)) for step, gap in enumerate(gaps)]
    scores = {}
    for path in np.ndindex(3, 3, 3, 3):
        value = np.log(np.exp(start) @ powers[0])[path[0]] + emission[0, path[0]]
        for step in range(1, 4):
            value += np.log(powers[step][path[step - 1], path[step]]) + emission[step, path[step]]
        scores[path] = value
    path, score = hmm.viterbi(HMMInput(start, GappedTransitions(np.log(moves), gaps), None, emission, [0, 4]))
    best = max(scores, key=scores.get)
    assert tuple(path.tolist()) == best
    assert score[0] == pytest.approx(scores[best])


def test_a_billion_silent_steps_cost_their_logarithm():
    rng = np.random.default_rng(0)
    start, moves = np.log(np.full(4, 0.25)), np.log(rng.dirichlet(np.ones(4), 4))
    emission = np.log(rng.random((50, 4)))
    begun = time.process_time()
    found = hmm.expected(HMMInput(start, GappedTransitions(moves, np.full(50, 10**9)), None, emission, [0, 50]))
    assert time.process_time() - begun < 5.0  # step by step it would be hours
    assert found.transition.sum() == pytest.approx(50 * 10**9 + 49, rel=1e-6)
    shares = found.transition.sum(axis=1) / found.transition.sum()
    np.testing.assert_allclose(shares @ np.exp(moves), shares, atol=1e-6)  # it was there in the long run
    ends = moves + np.log(0.5)  # of which nothing is left, but for logarithms
    assert np.isfinite(
        hmm.log_likelihood(HMMInput(start, GappedTransitions(ends, np.full(50, 10**6)), None, emission, [0, 50]))
    ).all()
