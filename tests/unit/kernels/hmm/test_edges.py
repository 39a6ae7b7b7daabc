"""Chains of hidden states at the edges: nothing there, nothing possible, numbers too far apart for float64."""

from __future__ import annotations

import numpy as np
import pytest

from tallybayes.kernels import hmm
from tallybayes.kernels.hmm import HMMInput
from tests.unit.kernels.chain_cases import FUNCTIONS, IMPLEMENTATIONS, emissions, logs, model, run, same_everywhere


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestEdges:
    def test_no_sequences_and_no_steps(self, implementation: str) -> None:
        start, transition = logs([0.5, 0.5]), logs([[0.5, 0.5], [0.5, 0.5]])
        for emission in (np.empty((0, 2)), (np.empty(0, np.int8), np.empty((0, 2)))):
            for offsets in ([0], [0, 0, 0]):
                for name in FUNCTIONS:
                    found = run(implementation, name, start, transition, logs([0.0, 0.5]), emission, offsets)
                    assert found[-1].tolist() == [0.0] * (len(offsets) - 1)
                counts = run(implementation, "expected", start, transition, None, emission, offsets)
                assert not any(part.any() for part in counts)

    def test_all_missing_is_the_chain_alone(self, implementation: str) -> None:
        start, transition = logs([0.3, 0.7]), logs([[0.9, 0.1], [0.4, 0.6]])
        emission = (np.full(3, -1), np.empty((0, 2)))
        rows, likelihood = run(implementation, "posterior", start, transition, None, emission, [0, 3])
        expected = [np.array([0.3, 0.7]) @ np.linalg.matrix_power(np.exp(transition), t) for t in range(3)]
        np.testing.assert_allclose(rows, expected, rtol=1e-14)
        assert abs(likelihood[0]) < 1e-15
        assert run(implementation, "expected", start, transition, None, emission, [0, 3])[3].shape == (0, 2)

    def test_one_state(self, implementation: str) -> None:
        emission = np.array([[-1.0], [-2.5], [-1e5]])
        arguments = ([0.0], [[0.0]], [-0.5], emission, [0, 1, 3])
        np.testing.assert_allclose(run(implementation, "log_likelihood", *arguments)[0], [-1.5, -100003.0], rtol=1e-15)
        assert run(implementation, "posterior", *arguments)[0].tolist() == [[1.0], [1.0], [1.0]]
        path, score = run(implementation, "viterbi", *arguments)
        assert path.tolist() == [0, 0, 0]
        np.testing.assert_allclose(score, [-1.5, -100003.0], rtol=1e-15)

    @pytest.mark.slow_after(1)
    def test_a_small_path_and_rows_far_below_zero(self, implementation: str) -> None:
        table = logs([[1e-10], [1.0]])
        found = run(implementation, "viterbi", [0.0], [[0.0]], None, (np.array([0, 0]), table), [0, 2])
        np.testing.assert_allclose(found[1], [-46.0517018598809], rtol=1e-14)
        rng = np.random.default_rng(7)
        start, transition, _ = model(rng, 3, 0.0, ends=False)
        near = rng.normal(size=(500, 3))
        far = near - 2.0**17  # exact, within rounding of the numbers themselves
        for name in ("posterior", "filter"):
            one = run(implementation, name, start, transition, None, near, [0, 500])
            other = run(implementation, name, start, transition, None, far, [0, 500])
            np.testing.assert_allclose(other[0], one[0], rtol=1e-8)
            np.testing.assert_allclose(other[1] + 500 * 2.0**17, one[1], rtol=1e-8)
        paths = [run(implementation, "viterbi", start, transition, None, rows, [0, 500])[0] for rows in (near, far)]
        np.testing.assert_array_equal(*paths)

    def test_unnormalized_models(self, implementation: str) -> None:
        """Constants added to the logarithms come out, however large."""
        rng = np.random.default_rng(8)
        start, transition, end = model(rng, 4, 0.0, ends=True)
        emission = emissions(rng, 60, 4, True, 0.0)
        rows, likelihood = run(implementation, "posterior", start, transition, end, emission, [0, 60])
        moved = (emission[0], emission[1] + 900.0)
        n_known = int(((emission[0] >= 0) & (emission[0] < len(emission[1]))).sum())
        for amounts in ((700.0, -800.0, 300.0), (-5000.0, 2000.0, -3.0)):
            shifted = (start + amounts[0], transition + amounts[1], end + amounts[2], moved, [0, 60])
            others, other = run(implementation, "posterior", *shifted)
            np.testing.assert_allclose(others, rows, rtol=1e-9, atol=1e-12)
            added = amounts[0] + 59 * amounts[1] + amounts[2] + 900.0 * n_known
            np.testing.assert_allclose(other - added, likelihood, rtol=1e-9)

    def test_impossible_sequences(self, implementation: str) -> None:
        start, transition = logs([1.0, 0.0]), logs([[0.0, 1.0], [1.0, 0.0]])  # 0, 1, 0, 1, …
        table = logs([[1.0, 0.0], [0.0, 1.0]])
        codes = np.array([0, 1, 0, 0, 0, 1, 1, 0, 1])
        arguments = (start, transition, None, (codes, table), [0, 3, 6, 7, 9])
        likelihood = [0.0, -np.inf, -np.inf, 0.0]
        assert run(implementation, "log_likelihood", *arguments)[0].tolist() == likelihood
        path, score = run(implementation, "viterbi", *arguments)
        assert path.tolist() == [0, 1, 0, -1, -1, -1, -1, 0, 1]
        assert score.tolist() == likelihood
        filtered, _ = run(implementation, "filter", *arguments)
        assert filtered.sum(axis=1).tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
        rows, _ = run(implementation, "posterior", *arguments)
        assert rows.sum(axis=1).tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
        starts, moves, ends, emitted, found = run(implementation, "expected", *arguments)
        assert found.tolist() == likelihood
        assert (starts.tolist(), ends.tolist()) == ([2.0, 0.0], [1.0, 1.0])
        assert moves.tolist() == [[0.0, 2.0], [1.0, 0.0]]
        assert emitted.tolist() == [[3.0, 0.0], [0.0, 2.0]]
        for end in (logs([0.0, 0.0]), logs([0.0, 1.0])):
            found = run(implementation, "log_likelihood", start, transition, end, *arguments[3:])[0]
            assert found[0] == -np.inf
        nowhere = np.full((2, 2), -np.inf)
        found = run(implementation, "posterior", start, nowhere, None, *arguments[3:])
        assert found[1].tolist() == [-np.inf, -np.inf, -np.inf, -np.inf]
        assert not found[0].any()

    def test_ties_go_to_the_lowest_state_of_the_latest_step(self, implementation: str) -> None:
        half = logs([0.5, 0.5])
        equal = np.zeros((4, 2))
        path, _ = run(implementation, "viterbi", half, np.stack([half, half]), None, equal, [0, 4])
        assert path.tolist() == [0, 0, 0, 0]
        # Two best paths, 1 → 0 and 0 → 1: the one that ends lower.
        swap = logs([[0.0, 1.0], [1.0, 0.0]])
        path, _ = run(implementation, "viterbi", half, swap, None, equal[:2], [0, 2])
        assert path.tolist() == [1, 0]

    def test_weight_is_how_often_a_sequence_counts(self, implementation: str) -> None:
        rng = np.random.default_rng(9)
        start, transition, end = model(rng, 3, 0.2, ends=True)
        table = logs(rng.random((4, 3)))
        codes = rng.integers(0, 4, 30)
        once = (start, transition, end, (codes, table), [0, 10, 30])
        twice = (start, transition, end, (np.concatenate([codes[:10], codes]), table), [0, 10, 20, 40])
        weighed = run(implementation, "expected", *once, weight=np.array([2.0, 1.0]))
        for one, other in zip(weighed[:4], run(implementation, "expected", *twice)[:4], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        for one, other in zip(
            run(implementation, "expected", *once, weight=np.array([0.0, 1.0]))[:4],
            run(implementation, "expected", start, transition, end, (codes[10:], table), [0, 20])[:4],
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("n_states", range(1, 11))
@pytest.mark.parametrize("coded", [True, False])
def test_equally_good_paths_are_those_of_the_reference(n_states: int, coded: bool) -> None:
    """Small whole logarithms tie at nearly every step; up to eight states have their predecessors marked by bits."""
    rng = np.random.default_rng(n_states)
    start, transition, end = (-rng.integers(0, 3, shape) * 1.0 for shape in (n_states, (n_states,) * 2, n_states))
    transition[rng.random(transition.shape) < 0.2] = -np.inf
    offsets = np.cumsum([0, *rng.integers(0, 40, 30)])
    table = -rng.integers(0, 3, (6, n_states)) * 1.0
    codes = rng.integers(-1, 6, offsets[-1])
    emission = (codes, table) if coded else np.vstack([table, np.zeros(n_states)])[codes]
    expected = run("reference", "viterbi", start, transition, end, emission, offsets)
    for implementation in IMPLEMENTATIONS:
        path, score = run(implementation, "viterbi", start, transition, end, emission, offsets)
        np.testing.assert_array_equal(path, expected[0])
        np.testing.assert_array_equal(score, expected[1])


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [2, 8, 9])
@pytest.mark.parametrize("coded", [True, False])
def test_the_path_of_a_sequence_of_several_segments(n_states: int, coded: bool) -> None:
    rng = np.random.default_rng(n_states)
    start, transition, _ = model(rng, n_states, 0.0, ends=False)
    table, codes = logs(rng.dirichlet(np.ones(n_states), 5)), rng.integers(0, 5, 600_003)
    emission = (codes, table) if coded else table[codes]
    path, score = hmm.viterbi(HMMInput(start, transition, None, emission, np.array([0, len(codes)])))
    along = start[path[0]] + transition[path[:-1], path[1:]].sum() + table[codes, path].sum()
    assert score[0] == pytest.approx(along, rel=1e-12)
    assert len(path) == len(codes)


class TestNothingIsLost:
    """Probabilities too far apart for float64, that come to matter later."""

    def test_the_only_way_on_is_from_a_state_that_seemed_lost(self) -> None:
        transition = logs([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
        emission = np.array([[0.0, -800.0, -900.0], [0.0, 0.0, -5.0], [-np.inf, 0.0, 0.0]])
        same_everywhere((logs([0.4, 0.3, 0.3]), transition, None, emission, [0, 3]))
        table = np.array([[0.0, -800.0, -900.0], [-np.inf, 0.0, 0.0]])
        same_everywhere((logs([0.4, 0.3, 0.3]), transition, None, (np.array([0, -1, 1]), table), [0, 3]))

    @pytest.mark.slow
    @pytest.mark.parametrize("gain", [1.0, 20.0])
    def test_two_chains_that_never_meet(self, gain: float) -> None:
        """First all speaks for one, then more for the other."""
        n = int(1000 / gain)
        rows = np.zeros((4 * n, 4))
        rows[:n, :2] = gain
        rows[n:, 2:] = gain
        rows += np.random.default_rng(1).normal(0.0, 0.1, rows.shape)
        block = np.array([[0.9, 0.1], [0.2, 0.8]])
        transition = logs(np.block([[block, np.zeros((2, 2))], [np.zeros((2, 2)), block]]))
        for stop in (int(1.5 * n), 4 * n):
            same_everywhere((logs([0.25] * 4), transition, None, rows[:stop], [0, stop]), atol=1e-9)

    @pytest.mark.slow
    def test_from_left_to_right_over_a_long_way(self) -> None:
        rng = np.random.default_rng(2)
        moves = np.diag(np.full(5, 0.99)) + np.diag(np.full(4, 0.01), 1)
        rows = -0.5 * (rng.normal(np.repeat(np.arange(5), 400), 0.2)[:, None] - np.arange(5)) ** 2 / 0.04
        same_everywhere((logs([1, 0, 0, 0, 0]), logs(moves), None, rows, [0, 700, 2000]))
        same_everywhere((logs([1, 0, 0, 0, 0]), logs(moves), logs([0, 0, 0, 0, 1]), rows, [0, 2000]))

    @pytest.mark.slow
    def test_a_state_out_of_reach_that_would_explain_all(self) -> None:
        rows = np.zeros((1000, 3))
        rows[:, 2] = 5.0
        transition = logs([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]])
        same_everywhere((logs([0.5, 0.5, 0.0]), transition, None, rows, [0, 1000]))

    def test_transitions_that_are_hardly_possible(self) -> None:
        rng = np.random.default_rng(3)
        for smallest in (-150.0, -400.0, -720.0, -2000.0):
            transition = np.array([[0.0, smallest, -np.inf], [smallest, 0.0, smallest], [-np.inf, smallest, 0.0]])
            rows = rng.normal(0.0, 300.0, (60, 3))
            same_everywhere((np.array([0.0, smallest, -np.inf]), transition, None, rows, [0, 25, 60]))
            same_everywhere((np.zeros(3), transition - np.arange(3.0)[:, None], np.zeros(3), rows, [0, 60]))

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
    def test_lost_at_one_blow_and_found_again_step_by_step(self, coded: bool) -> None:
        """Of states that never meet, with nothing small on the way."""
        table = np.array([[0.0, -800.0], [-40.0, 0.0]])
        codes = np.array([0] + [1] * 40)
        for n in (10, 21, 41):
            emission = (codes[:n], table) if coded else table[codes[:n]]
            same_everywhere((logs([0.5, 0.5]), logs(np.eye(2)), None, emission, [0, n]))
            same_everywhere((np.array([0.0, -800.0]), logs(np.eye(2)), None, (codes[1:n], table), [0, n - 1]))

    @pytest.mark.parametrize("n_steps", [2, 5, 8, 9, 12, 40])
    def test_every_step_is_hardly_possible(self, n_steps: int) -> None:
        rows = np.where(np.arange(n_steps)[:, None] % 2 == [0, 1], 0.0, -1000.0)
        same_everywhere((np.zeros(2), np.array([[0.0, -184.0], [-183.0, 0.0]]), None, rows, [0, n_steps]))
        moves = np.array([[0.0, -229.5], [-229.4, 0.0]])
        same_everywhere((np.zeros(2), moves, np.array([0.0, -50.0]), rows[:4], [0, len(rows[:4])]))

    def test_an_end_that_only_the_least_can_reach(self) -> None:
        rows = np.tile([0.0, -300.0, -301.0], (4, 1))
        for transition in (np.full((3, 3), np.log(1 / 3)), logs(np.eye(3))):
            same_everywhere((np.zeros(3), transition, np.array([-np.inf, -np.inf, 0.0]), rows, [0, 4]))

    def test_a_million_steps(self) -> None:
        """Of two states that nothing tells apart: what is known about one step is known about all."""
        n = 1_000_000
        stay = np.array([[0.75, 0.25], [0.25, 0.75]])
        codes = np.zeros(n, dtype=np.int8)
        arguments = (logs([0.5, 0.5]), logs(stay), None, (codes, logs([[0.5, 0.5]])), [0, n])
        np.testing.assert_allclose(hmm.log_likelihood(HMMInput(*arguments)), [n * np.log(0.5)], rtol=1e-14)
        found = hmm.expected(HMMInput(*arguments))
        np.testing.assert_allclose(found.emission, [[n / 2, n / 2]], rtol=1e-11)
        np.testing.assert_allclose(found.transition, stay * (n - 1) / 2, rtol=1e-11)
        path, score = hmm.viterbi(HMMInput(*arguments))
        assert not path.any()
        np.testing.assert_allclose(score, [(n + 1) * np.log(0.5) + (n - 1) * np.log(0.75)], rtol=1e-12)
