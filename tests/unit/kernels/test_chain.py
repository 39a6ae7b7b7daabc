"""Chains of hidden states: against all their paths, compiled against reference, and where numbers are hard."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import INTEGERS, TIERS, assert_same_bits, lay_out, seeds

from tallybayes import kernels
from tallybayes.kernels import chain, reference

FUNCTIONS = ("log_likelihood", "viterbi", "filter", "posterior", "expected")
IMPLEMENTATIONS = ["reference", *TIERS]
SHAPES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33, 64, 65, 70)
examples = settings(max_examples=60, deadline=None)


def run(implementation: str, name: str, *arguments: Any, **options: Any) -> list[Any]:
    """Call a function of `chain` on "reference" or one tier, and return its results as a list."""
    before = kernels._kernels
    if implementation == "reference":
        kernels._kernels = reference
    else:
        from tallybayes.kernels import _compiled

        _compiled.use_tier(implementation)
        kernels._kernels = _compiled
    try:
        found = getattr(chain, name)(*arguments, **options)
    finally:
        kernels._kernels = before
        if implementation != "reference":
            _compiled.use_tier(TIERS[-1])
    return list(found) if isinstance(found, tuple) else [found]


def logs(values: Any) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


def model(rng: np.random.Generator, n_states: int, impossible: float, ends: bool) -> tuple[Any, Any, Any]:
    """Start, transition and end, a share of them impossible."""

    def draw(*shape: int) -> np.ndarray:
        return logs(rng.random(shape) * (rng.random(shape) >= impossible))

    return draw(n_states), draw(n_states, n_states), draw(n_states) if ends else None


def emissions(
    rng: np.random.Generator, n_steps: int, n_states: int, coded: bool, impossible: float, spread: float = 1.0
) -> Any:
    if coded:
        n_levels = int(rng.integers(1, 6))
        table = spread * logs(rng.random((n_levels, n_states)) * (rng.random((n_levels, n_states)) >= impossible))
        return rng.integers(-1, n_levels, n_steps).astype(rng.choice(INTEGERS)), table
    rows = rng.normal(-3.0, spread, (n_steps, n_states))
    rows[rng.random(rows.shape) < impossible] = -np.inf
    return rows


def cut(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def as_rows(emission: Any) -> np.ndarray:
    """The log probability of every step and state."""
    if not isinstance(emission, tuple):
        return emission
    codes, table = emission
    missing = (codes < 0) | (codes >= len(table))
    rows = np.zeros((len(codes), table.shape[1]))
    rows[~missing] = table[codes[~missing].astype(np.int64)]
    return rows


class AllPaths:
    """Everything about the sequences, by adding up all paths."""

    def __init__(self, start: Any, transition: Any, end: Any, emission: Any, offsets: Any, weight: Any) -> None:
        rows, n_states = as_rows(emission), len(start)
        self.likelihood, self.best = np.ones(len(offsets) - 1), np.zeros(len(offsets) - 1)
        self.filter, self.posterior = np.zeros(rows.shape), np.zeros(rows.shape)
        self.start, self.end, self.transition = np.zeros(n_states), np.zeros(n_states), np.zeros((n_states, n_states))
        self.by_step = np.zeros(rows.shape)
        for k, (first, last) in enumerate(pairwise(offsets)):
            for n in range(1, last - first + 1):
                joint = np.zeros((n, n_states))
                moves = np.zeros((n_states, n_states))
                total, best = 0.0, -np.inf
                ending = np.zeros(n_states) if end is None or n < last - first else end
                for path in product(range(n_states), repeat=n):
                    score = start[path[0]] + sum(rows[first + t, s] for t, s in enumerate(path)) + ending[path[-1]]
                    score += sum(transition[a, b] for a, b in pairwise(path))
                    best, p = max(best, score), np.exp(score)
                    total += p
                    for t, s in enumerate(path):
                        joint[t, s] += p
                    for a, b in pairwise(path):
                        moves[a, b] += p
                if n == last - first:
                    self.likelihood[k], self.best[k] = total, best
                    if total > 0.0:
                        self.posterior[first:last] = joint / total
                        self.by_step[first:last] = weight[k] * joint / total
                        self.start += weight[k] * joint[0] / total
                        self.end += weight[k] * joint[-1] / total
                        self.transition += weight[k] * moves / total
                if end is not None and n == last - first:  # the end says nothing of what is known so far
                    joint, total = self._without_end(joint, end)
                if total > 0.0:
                    self.filter[first + n - 1] = joint[-1] / total

    @staticmethod
    def _without_end(joint: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, float]:
        last = np.full(len(end), np.nan)
        possible = end > -np.inf
        last[possible] = joint[-1][possible] / np.exp(end[possible])
        return last[None], float(last.sum())


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
@examples
@given(
    seed=seeds,
    n_states=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 4), max_size=4),
    impossible=st.sampled_from([0.0, 0.3]),
    ends=st.booleans(),
)
def test_all_paths(
    implementation: str, coded: bool, seed: int, n_states: int, lengths: list[int], impossible: float, ends: bool
) -> None:
    rng = np.random.default_rng(seed)
    start, transition, end = model(rng, n_states, impossible, ends)
    if end is not None:  # from which what is known before the end can be found
        end = np.maximum(end, -2.0)
    offsets = cut(lengths)
    emission = emissions(rng, offsets[-1], n_states, coded, impossible)
    weight = rng.random(len(lengths)) * (rng.random(len(lengths)) < 0.8)
    arguments = (start, transition, end, emission, offsets)
    truth = AllPaths(*arguments, weight)

    def near(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)

    near(np.exp(run(implementation, "log_likelihood", *arguments)[0]), truth.likelihood)
    filtered, likelihood = run(implementation, "filter", *arguments)
    near(filtered, truth.filter)
    near(np.exp(likelihood), truth.likelihood)
    near(run(implementation, "posterior", *arguments)[0], truth.posterior)
    starts, moves, ended, emitted, likelihood = run(implementation, "expected", *arguments, weight=weight)
    near(starts, truth.start)
    near(moves, truth.transition)
    near(ended, truth.end)
    near(np.exp(likelihood), truth.likelihood)
    if coded:
        codes, table = emission
        levels = [truth.by_step[codes == level].sum(axis=0) for level in range(len(table))]
        near(emitted, np.array(levels).reshape(table.shape))
    else:
        near(emitted, truth.by_step)

    path, score = run(implementation, "viterbi", *arguments)
    near(np.exp(score), np.exp(truth.best))
    rows = as_rows(emission)
    for k, (first, last) in enumerate(pairwise(offsets)):
        if first == last:
            assert score[k] == 0.0
        elif score[k] == -np.inf:
            assert (path[first:last] == -1).all()
        else:
            found = path[first:last]
            own = start[found[0]] + rows[range(first, last), found].sum() + transition[found[:-1], found[1:]].sum()
            near(own + (0.0 if end is None else end[found[-1]]), score[k])


def same_everywhere(arguments: tuple[Any, ...], weight: Any = None, atol: float = 1e-11) -> None:
    """Every compiled build gives what the reference gives."""
    if not TIERS:
        pytest.skip("tallybayes was installed without compiled kernels")
    for name in FUNCTIONS:
        options = {"weight": weight} if name == "expected" else {}
        expected = run("reference", name, *arguments, **options)
        for tier in TIERS:
            found = run(tier, name, *arguments, **options)
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype
                assert not np.isnan(one).any()
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=atol, err_msg=f"{tier} {name}")


@pytest.mark.parametrize("n_states", SHAPES)
@pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "far apart"])
def test_same_as_reference(n_states: int, coded: bool, kind: str) -> None:
    rng = np.random.default_rng([n_states, coded, len(kind)])
    start, transition, end = model(rng, n_states, 0.0 if kind == "dense" else 0.4, ends=kind != "sparse")
    offsets = cut(rng.integers(0, 60, 9))
    spread = 200.0 if kind == "far apart" else 1.0
    emission = emissions(rng, offsets[-1], n_states, coded, 0.02 if kind == "sparse" else 0.0, spread)
    same_everywhere((start, transition, end, emission, offsets), rng.random(9))


@pytest.mark.parametrize("n_states", [2, 5, 40])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_same_bits_for_any_threads_and_company(tier: str, n_states: int, kind: str) -> None:
    rng = np.random.default_rng(n_states)
    offsets = cut(rng.integers(0, 100, 200))
    start, transition, end = model(rng, n_states, 0.0 if kind == "dense" else 0.3, ends=True)
    for coded in (True, False):
        emission = emissions(rng, offsets[-1], n_states, coded, 0.0, 30.0)
        for name in FUNCTIONS:
            alone = run(tier, name, start, transition, end, emission, offsets, threads=1)
            for threads in (0, 2, 5):
                several = run(tier, name, start, transition, end, emission, offsets, threads=threads)
                assert_same_bits(several, alone)
            if name == "expected":
                continue
            for k in (0, 17, 199):
                steps = slice(offsets[k], offsets[k + 1])
                part = (emission[0][steps], emission[1]) if coded else emission[steps]
                *rows, total = run(tier, name, start, transition, end, part, [0, steps.stop - steps.start])
                assert total[0] == (alone[-1] if name != "viterbi" else alone[1])[k]
                if rows:
                    np.testing.assert_array_equal(rows[0], alone[0][steps])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_codes_of_any_type_and_layout(tier: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    start, transition, _ = model(rng, 3, 0.0, ends=False)
    table = logs(rng.random((100, 3)))
    codes = rng.integers(-1, 100, (50, 2)).astype(dtype)
    expected = run("reference", "posterior", start, transition, None, (codes[:, 1], table), [0, 30, 50])
    for layout in ("rows", "columns", "sliced", "reversed", "unaligned", "read-only"):
        column = lay_out(codes, layout)[:, 1]
        found = run(tier, "posterior", start, transition, None, (column, table), [0, 30, 50])
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["rows", "columns", "sliced", "unaligned", "read-only"])
def test_emission_of_any_layout(tier: str, layout: str) -> None:
    rng = np.random.default_rng(6)
    start, transition, _ = model(rng, 3, 0.0, ends=False)
    emission = rng.normal(size=(40, 3))
    expected = run(tier, "viterbi", start, transition, None, emission, [0, 40])
    assert_same_bits(run(tier, "viterbi", start, transition, None, lay_out(emission, layout), [0, 40]), expected)


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

    def test_unnormalised_models(self, implementation: str) -> None:
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


class TestNothingIsLost:
    """Probabilities too far apart for float64, that come to matter later."""

    def test_the_only_way_on_is_from_a_state_that_seemed_lost(self) -> None:
        transition = logs([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
        emission = np.array([[0.0, -800.0, -900.0], [0.0, 0.0, -5.0], [-np.inf, 0.0, 0.0]])
        same_everywhere((logs([0.4, 0.3, 0.3]), transition, None, emission, [0, 3]))
        table = np.array([[0.0, -800.0, -900.0], [-np.inf, 0.0, 0.0]])
        same_everywhere((logs([0.4, 0.3, 0.3]), transition, None, (np.array([0, -1, 1]), table), [0, 3]))

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

    def test_from_left_to_right_over_a_long_way(self) -> None:
        rng = np.random.default_rng(2)
        moves = np.diag(np.full(5, 0.99)) + np.diag(np.full(4, 0.01), 1)
        rows = -0.5 * (rng.normal(np.repeat(np.arange(5), 400), 0.2)[:, None] - np.arange(5)) ** 2 / 0.04
        same_everywhere((logs([1, 0, 0, 0, 0]), logs(moves), None, rows, [0, 700, 2000]))
        same_everywhere((logs([1, 0, 0, 0, 0]), logs(moves), logs([0, 0, 0, 0, 1]), rows, [0, 2000]))

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
        np.testing.assert_allclose(chain.log_likelihood(*arguments), [n * np.log(0.5)], rtol=1e-14)
        found = chain.expected(*arguments)
        np.testing.assert_allclose(found.emission, [[n / 2, n / 2]], rtol=1e-11)
        np.testing.assert_allclose(found.transition, stay * (n - 1) / 2, rtol=1e-11)
        path, score = chain.viterbi(*arguments)
        assert not path.any()
        np.testing.assert_allclose(score, [(n + 1) * np.log(0.5) + (n - 1) * np.log(0.75)], rtol=1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestRefused:
    start, transition, table = logs([0.5, 0.5]), logs([[0.5, 0.5], [0.5, 0.5]]), np.zeros((3, 2))

    def refused(self, implementation: str, error: type[Exception], text: str, **changed: Any) -> None:
        given = {
            "start": self.start,
            "transition": self.transition,
            "end": None,
            "emission": (np.array([0, 1, 2]), self.table),
            "offsets": [0, 3],
            **changed,
        }
        for name in ("expected",) if "weight" in changed else FUNCTIONS:
            with pytest.raises(error, match=text):
                run(implementation, name, **given)

    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_codes_out_of_range(self, implementation: str, dtype: str) -> None:
        codes = np.array([0, -1, 2, 3, 9]).astype(dtype)
        text = "step 3 has code 3, expected 0 to 2, or -1 where it is missing"
        self.refused(implementation, IndexError, text, emission=(codes, self.table), offsets=[0, 2, 5])
        if dtype.startswith("i"):
            codes[3] = -2
            text = "step 3 has code -2, expected"
            self.refused(implementation, IndexError, text, emission=(codes, self.table), offsets=[0, 2, 5])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_emissions_that_are_no_logarithms(self, implementation: str, bad: float) -> None:
        for n_states in (2, 11):
            start, transition = np.zeros(n_states), np.zeros((n_states, n_states))
            for state in (0, n_states - 1):
                emission = np.zeros((40, n_states))
                emission[33, state] = bad
                text = f"emission holds {bad} at step 33, state {state}; expected logarithms"
                given = {"start": start, "transition": transition, "emission": emission, "offsets": [0, 5, 40]}
                self.refused(implementation, ValueError, text, **given)

    def test_models(self, implementation: str) -> None:
        self.refused(implementation, ValueError, "start is empty", start=[])
        self.refused(implementation, ValueError, r"start has shape \(1, 2\), expected \(any,\)", start=[[0.0, 0.0]])
        self.refused(implementation, ValueError, "start holds NaN or inf", start=[0.0, np.nan])
        text = r"transition has shape \(3, 2\), expected \(2, 2\)"
        self.refused(implementation, ValueError, text, transition=self.table)
        self.refused(implementation, ValueError, "transition holds NaN or inf", transition=np.full((2, 2), np.inf))
        self.refused(implementation, ValueError, r"end has shape \(3,\), expected \(2,\)", end=np.zeros(3))

    def test_emissions(self, implementation: str) -> None:
        text = r"emission has shape \(3, 4\), expected \(steps, 2\)"
        self.refused(implementation, ValueError, text, emission=np.zeros((3, 4)))
        self.refused(implementation, TypeError, "emission has dtype float32", emission=np.zeros((3, 2), np.float32))
        self.refused(implementation, TypeError, "emission must be a NumPy array", emission=[[0.0, 0.0]])
        codes = np.array([0, 1, 2])
        self.refused(implementation, ValueError, "emission is a tuple of 1", emission=(codes,))
        self.refused(implementation, TypeError, "codes of emission has dtype float64", emission=(codes / 1, self.table))
        text = r"table of emission has shape \(2, 3\), expected \(any, 2\)"
        self.refused(implementation, ValueError, text, emission=(codes, self.table.T))
        nan = np.full((3, 2), np.nan)
        self.refused(implementation, ValueError, "table of emission holds NaN", emission=(codes, nan))

    def test_offsets_and_weights(self, implementation: str) -> None:
        self.refused(implementation, ValueError, r"offsets has shape \(0,\)", offsets=np.empty(0, np.int64))
        self.refused(implementation, TypeError, "offsets has dtype float64", offsets=[0.0, 3.0])
        for offsets in ([1, 3], [0, 2], [0, 4], [-1, 3]):
            text = f"offsets runs from {offsets[0]} to {offsets[1]}, expected 0 to 3"
            self.refused(implementation, ValueError, text, offsets=offsets)
        self.refused(implementation, ValueError, "falls from 3 to 1 at sequence 1", offsets=[0, 3, 1, 3])
        self.refused(implementation, ValueError, "falls from 9 to 3 at sequence 1", offsets=[0, 9, 3])
        self.refused(implementation, ValueError, "threads is -1", threads=-1)
        self.refused(implementation, ValueError, r"weight has shape \(2,\), expected \(1,\)", weight=np.ones(2))
        for bad in (-1.0, np.nan, np.inf):
            self.refused(implementation, ValueError, "weight runs from", weight=np.array([bad]))


@pytest.mark.parametrize("n_states", [2, 5, 12])
def test_hmmlearn(n_states: int) -> None:
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is not installed")
    rng = np.random.default_rng(n_states)
    lengths = rng.integers(1, 80, 12)
    offsets, n_levels = cut(lengths), 7
    codes = rng.integers(0, n_levels, offsets[-1])
    start, moves = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    table = rng.dirichlet(np.ones(n_levels), n_states)
    peer = hmm.CategoricalHMM(n_states, n_features=n_levels, init_params="", n_iter=1, tol=0.0)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = start.copy(), moves.copy(), table.copy()
    arguments = (np.log(start), np.log(moves), None, (codes, np.log(table).T), offsets)
    score, rows = peer.score_samples(codes[:, None], lengths)
    found, likelihood = chain.posterior(*arguments)
    np.testing.assert_allclose(found, rows, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(likelihood.sum(), score, rtol=1e-12)
    score, states = peer.decode(codes[:, None], lengths)
    path, best = chain.viterbi(*arguments)
    np.testing.assert_allclose(best.sum(), score, rtol=1e-12)
    assert n_states == 2 or (path == states).all()  # with two states many paths are equally good
    peer.fit(codes[:, None], lengths)
    counts = chain.expected(*arguments)
    np.testing.assert_allclose(peer.startprob_, counts.start / counts.start.sum(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(peer.transmat_, counts.transition / counts.transition.sum(axis=1)[:, None], rtol=1e-9)
    np.testing.assert_allclose(peer.emissionprob_.T, counts.emission / counts.emission.sum(axis=0), rtol=1e-9)
