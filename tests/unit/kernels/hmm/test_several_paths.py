"""Several paths of every sequence, the best ones and drawn ones: against all paths, and compiled against reference."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.kernels import hmm
from tallybayes.kernels.hmm import HMMInput
from tests.examples import examples
from tests.unit.kernels.chain_cases import IMPLEMENTATIONS, as_rows, cut, emissions, logs, model, run
from tests.unit.kernels.kernel_cases import TIERS, assert_same_bits, seeds


def every_path(start: Any, transition: Any, end: Any, rows: np.ndarray) -> dict[tuple[int, ...], float]:
    """log p(path, sequence) of every path of one sequence."""
    found = {}
    for path in product(range(len(start)), repeat=len(rows)):
        score = sum((rows[t, s] for t, s in enumerate(path)), 0.0) + (start[path[0]] if path else 0.0)
        score += sum(transition[a, b] for a, b in pairwise(path))
        found[path] = score + (end[path[-1]] if end is not None and path else 0.0)
    return found


def joint_scores(given: tuple[Any, ...], paths: np.ndarray) -> np.ndarray:
    """log p(path, sequence) of paths of one sequence, (steps, paths)."""
    start, transition, end, emission, _ = given
    rows = np.take_along_axis(as_rows(emission), paths, axis=1).sum(axis=0)
    ends = 0.0 if end is None else end[paths[-1]]
    return start[paths[0]] + transition[paths[:-1], paths[1:]].sum(axis=0) + rows + ends


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@examples(60)
@given(
    seed=seeds,
    n_states=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 4), max_size=4),
    impossible=st.sampled_from([0.0, 0.3]),
    ends=st.booleans(),
    coded=st.booleans(),
    n_paths=st.integers(1, 9),
)
def test_all_paths(
    implementation: str,
    seed: int,
    n_states: int,
    lengths: list[int],
    impossible: float,
    ends: bool,
    coded: bool,
    n_paths: int,
) -> None:
    rng = np.random.default_rng(seed)
    start, transition, end = model(rng, n_states, impossible, ends)
    offsets = cut(lengths)
    emission = emissions(rng, offsets[-1], n_states, coded, impossible)
    arguments, rows = (start, transition, end, emission, offsets), as_rows(emission)
    paths, score = run(implementation, "best_paths", *arguments, n_paths)
    best, first_score = run(implementation, "viterbi", *arguments)
    np.testing.assert_array_equal(paths[:, 0], best)
    np.testing.assert_allclose(score[:, 0], first_score, rtol=1e-12)
    uniform = rng.random((offsets[-1], 3))
    drawn, likelihood = run(implementation, "draw_paths", *arguments, uniform)
    for k, (a, b) in enumerate(pairwise(offsets)):
        every = every_path(start, transition, end, rows[a:b])
        possible = sorted((s for s in every.values() if s > -np.inf), reverse=True)
        n = min(n_paths, len(possible))
        np.testing.assert_allclose(score[k, :n], possible[:n], rtol=1e-11, atol=1e-12)
        assert (score[k, n:] == -np.inf).all()
        assert (paths[a:b, n:] == -1).all()
        told = [tuple(path) for path in paths[a:b, :n].T.tolist()]
        assert len(set(told)) == n
        np.testing.assert_allclose([every[path] for path in told], score[k, :n], rtol=1e-11, atol=1e-12)
        total = np.exp(list(every.values())).sum()
        np.testing.assert_allclose(np.exp(likelihood[k]), total, rtol=1e-11)
        if total == 0.0:
            assert (drawn[a:b] == -1).all()
            continue
        for path, numbers in zip(drawn[a:b].T.tolist(), uniform[a:b].T.tolist(), strict=True):
            for t in range(b - a):  # p(state | states after it): the number lies in the share of the one drawn
                shares = np.zeros(n_states)
                for other, value in every.items():
                    if list(other[t + 1 :]) == path[t + 1 :]:
                        shares[other[t]] += np.exp(value)
                upto = np.cumsum(shares) / shares.sum()
                assert upto[path[t]] - shares[path[t]] / shares.sum() - 1e-9 <= numbers[t] <= upto[path[t]] + 1e-9
                assert shares[path[t]] > 0.0


@pytest.mark.parametrize("n_states", [1, 2, 5, 8, 9, 33, 65, 130])
@pytest.mark.parametrize("kind", ["dense", "sparse", "far apart"])
def test_same_as_reference(n_states: int, kind: str) -> None:
    if not TIERS:
        pytest.skip("tallybayes was installed without compiled kernels")
    rng = np.random.default_rng([n_states, len(kind)])
    start, transition, end = model(rng, n_states, 0.0 if kind == "dense" else 0.4, ends=kind != "sparse")
    offsets = cut([0, 1, 2, 19, 7])
    for coded in (True, False):
        emission = emissions(rng, offsets[-1], n_states, coded, 0.02, 200.0 if kind == "far apart" else 1.0)
        arguments = (start, transition, end, emission, offsets)
        questions = {"best_paths": 6, "draw_paths": rng.random((offsets[-1], 7))}
        for name, more in questions.items():
            paths, score = run("reference", name, *arguments, more)
            for tier in TIERS:
                found, value = run(tier, name, *arguments, more)
                np.testing.assert_array_equal(found, paths, err_msg=f"{tier} {name}")
                np.testing.assert_allclose(value, score, rtol=1e-9, atol=1e-11)


def test_same_bits_for_any_threads_and_company(tier: str) -> None:
    rng = np.random.default_rng(1)
    offsets = cut(rng.integers(0, 100, 200))
    start, transition, end = model(rng, 6, 0.3, ends=True)
    for coded in (True, False):
        emission, uniform = emissions(rng, offsets[-1], 6, coded, 0.0, 30.0), rng.random((offsets[-1], 2))
        for name in ("best_paths", "draw_paths"):
            more = 3 if name == "best_paths" else uniform
            alone = run(tier, name, start, transition, end, emission, offsets, more, threads=1)
            for threads in (0, 2, 5):
                assert_same_bits(
                    run(tier, name, start, transition, end, emission, offsets, more, threads=threads), alone
                )
            for k in (0, 17, 199):
                steps = slice(offsets[k], offsets[k + 1])
                part = (emission[0][steps], emission[1]) if coded else emission[steps]
                more = 3 if name == "best_paths" else uniform[steps]
                paths, score = run(tier, name, start, transition, end, part, cut([steps.stop - steps.start]), more)
                np.testing.assert_array_equal(paths, alone[0][steps])
                np.testing.assert_array_equal(score[0], alone[1][k])


@pytest.mark.slow
def test_long_sequences_are_found_segment_by_segment() -> None:
    rng = np.random.default_rng(2)
    start, transition, end = model(rng, 70, 0.0, ends=True)
    emission = emissions(rng, 12_000, 70, True, 0.0)
    given = (start, transition, end, emission, [0, 12_000])
    paths, score = hmm.best_paths(HMMInput(*given), 20)  # more pointers than are kept at once
    fewer, some = hmm.best_paths(HMMInput(*given), 3)
    np.testing.assert_array_equal(paths[:, :3], fewer)
    np.testing.assert_array_equal(score[:, :3], some)
    np.testing.assert_array_equal(paths[:, 0], hmm.viterbi(HMMInput(*given))[0])
    assert len(np.unique(paths, axis=1).T) == 20
    assert (np.diff(score[0]) <= 0).all()
    np.testing.assert_allclose(joint_scores(given, paths), score[0], rtol=1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
def test_draws_of_a_long_sequence(coded: bool) -> None:
    """So long that its states are not kept: every draw goes by what the steps so far say, and by the one after it."""
    rng = np.random.default_rng(3)
    start, transition, end = model(rng, 40, 0.0, ends=True)
    n_steps = 120_000
    emission = emissions(rng, n_steps, 40, coded, 0.0)
    given, uniform = (start, transition, end, emission, [0, n_steps]), rng.random((n_steps, 1))
    paths, likelihood = hmm.draw_paths(HMMInput(*given), uniform)
    filtered, found = hmm.filter(HMMInput(*given))
    np.testing.assert_allclose(likelihood, found, rtol=1e-12)
    path = paths[:, 0]
    after = np.exp(np.vstack([transition.T[path[1:]], end[None]]))
    upto = np.cumsum(filtered * after, axis=1)
    upto /= upto[:, -1:]
    each = np.arange(n_steps)
    below = np.where(path > 0, upto[each, path - 1], 0.0)
    assert (below - 1e-9 <= uniform[:, 0]).all()
    assert (uniform[:, 0] <= upto[each, path] + 1e-9).all()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_states_that_had_less_than_floats_can_tell(implementation: str) -> None:
    """What the end needs had a share of 1e-350: by logarithms alone is it found."""
    start, transition = logs([1.0, 1e-175]), logs([[1.0, 0.0], [0.0, 1.0]])
    rows = np.array([[0.0, np.log(1e-175)], [0.0, 0.0]])
    arguments = (start, transition, logs([0.0, 1.0]), rows, [0, 2])
    paths, likelihood = run(implementation, "draw_paths", *arguments, np.full((2, 2), 0.3))
    assert paths.tolist() == [[1, 1], [1, 1]]
    assert likelihood[0] == pytest.approx(-350 * np.log(10))
    paths, _ = run(implementation, "best_paths", *arguments, 2)
    assert paths.tolist() == [[1, -1], [1, -1]]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_equally_good_paths_come_in_order(implementation: str) -> None:
    start, transition = np.zeros(2), np.zeros((2, 2))
    paths, score = run(implementation, "best_paths", start, transition, None, np.zeros((2, 2)), [0, 2], 4)
    assert paths.T.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]  # the lowest last state first
    assert score.tolist() == [[0.0] * 4]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_what_is_refused(implementation: str) -> None:
    given = ([0.0], [[0.0]], None, np.zeros((2, 1)), [0, 2])
    with pytest.raises(ValueError, match="n_paths is 0, expected 1 to 4294967295"):
        run(implementation, "best_paths", *given, 0)
    with pytest.raises(ValueError, match=r"uniform has shape \(1, 2\), expected \(2, any\)"):
        run(implementation, "draw_paths", *given, np.zeros((1, 2)))
    for bad in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match="uniform runs from"):
            run(implementation, "draw_paths", *given, np.full((2, 1), bad))
    for name, more in {"best_paths": 2, "draw_paths": np.zeros((2, 1))}.items():
        with pytest.raises(ValueError, match="emission holds nan at step 1, state 0"):
            run(implementation, name, [0.0], [[0.0]], None, np.array([[0.0], [np.nan]]), [0, 2], more)
        with pytest.raises(IndexError, match="step 1 has code 4"):
            run(implementation, name, [0.0], [[0.0]], None, (np.array([0, 4]), np.zeros((2, 1))), [0, 2], more)
    paths, _ = run(implementation, "draw_paths", *given, np.zeros((2, 0)))
    assert paths.shape == (2, 0)
