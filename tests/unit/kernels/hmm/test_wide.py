"""Chains of many states, sparse ones, and sequences so long that their states are found again segment by segment."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from tallybayes.kernels import hmm
from tallybayes.kernels.hmm import HMMInput
from tests.unit.kernels.chain_cases import FUNCTIONS, cut, emissions, logs, model, run, same_everywhere
from tests.unit.kernels.kernel_cases import assert_same_bits

LENGTHS = [0, 1, 2, 3, 4, 5, 6, 30, 64, 65, 66, 7, 7, 1, 12, 13, 9, 8, 0, 11]  # more than are moved together


def sparse(rng: np.random.Generator, n_states: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Start and transitions, most of them impossible."""
    possible = np.zeros((n_states, n_states), dtype=bool)
    if kind == "banded":
        possible = abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))) <= 2
    elif kind == "left to right":
        possible = np.eye(n_states, dtype=bool) | np.eye(n_states, k=1, dtype=bool)
    elif kind == "random":
        possible = (rng.random((n_states, n_states)) < 0.03) | np.eye(n_states, dtype=bool)
    elif kind == "one way out":
        possible[:, 3] = possible[7, :] = True
    else:
        possible[:] = True
    return logs(rng.random(n_states)), logs(rng.random((n_states, n_states)) * possible)


KINDS = ["dense", "banded", "left to right", "random", "one way out"]


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [65, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_same_as_reference(n_states: int, kind: str) -> None:
    rng = np.random.default_rng([n_states, len(kind)])
    start, transition = sparse(rng, n_states, kind)
    offsets, end = cut(LENGTHS), logs(rng.random(n_states))
    for coded in (True, False):
        emission = emissions(rng, offsets[-1], n_states, coded, 0.0, 3.0)
        same_everywhere((start, transition, end, emission, offsets), rng.random(len(LENGTHS)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["dense", "banded", "one way out"])
def test_probabilities_far_apart(kind: str) -> None:
    rng = np.random.default_rng(4)
    start, transition = sparse(rng, 80, kind)
    offsets = cut([40, 0, 3, 70])
    for coded in (True, False):
        emission = emissions(rng, offsets[-1], 80, coded, 0.02, 300.0)
        same_everywhere((start, transition, None, emission, offsets), rng.random(4))


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [70, 200])
@pytest.mark.parametrize("kind", ["dense", "banded"])
def test_same_bits_for_any_threads_and_company(tier: str, n_states: int, kind: str) -> None:
    rng = np.random.default_rng(n_states)
    start, transition = sparse(rng, n_states, kind)
    offsets = cut([*LENGTHS, *rng.integers(0, 100, 20)])
    for coded in (True, False):
        emission = emissions(rng, offsets[-1], n_states, coded, 0.0, 3.0)
        for name in FUNCTIONS:
            alone = run(tier, name, start, transition, None, emission, offsets, threads=1)
            for threads in (0, 2, 5):
                assert_same_bits(run(tier, name, start, transition, None, emission, offsets, threads=threads), alone)
            if name == "expected":
                continue
            for k in (3, 10, 33):
                steps = slice(offsets[k], offsets[k + 1])
                part = (emission[0][steps], emission[1]) if coded else emission[steps]
                *rows, total = run(tier, name, start, transition, None, part, [0, steps.stop - steps.start])
                assert total[0] == alone[-1][k]
                if rows:
                    np.testing.assert_array_equal(rows[0], alone[0][steps])


@pytest.mark.parametrize("kind", ["dense", "banded"])
def test_states_that_nobody_reaches_change_no_bit(tier: str, kind: str) -> None:
    """With these there are many states, which are moved in another way, and most of their transitions are left out."""
    rng, n, many = np.random.default_rng(1), 50, 120
    start, transition = sparse(rng, n, kind)
    emission = emissions(rng, 300, n, False, 0.0, 3.0)
    wide = (np.full(many, -np.inf), np.full((many, many), -np.inf), rng.normal(-90.0, 1.0, (300, many)))
    wide[0][:n], wide[1][:n, :n], wide[2][:, :n] = start, transition, emission
    for name in ("log_likelihood", "filter", "posterior", "viterbi"):
        few = run(tier, name, start, transition, None, emission, cut([100, 3, 197]))
        found = run(tier, name, wide[0], wide[1], None, wide[2], cut([100, 3, 197]))
        if name in ("filter", "posterior"):
            assert not found[0][:, n:].any()
            found[0] = np.ascontiguousarray(found[0][:, :n])
        assert_same_bits(found, few)


class LeftToRight:
    """A chain of which every state stays or goes on to the next, done in NumPy on logarithms."""

    def __init__(self, n_states: int, rows: np.ndarray) -> None:
        stay = np.linspace(0.5, 0.9, n_states)
        self.start, self.transition = logs(np.full(n_states, 1 / n_states)), logs(np.diag(stay))
        self.transition[np.arange(n_states - 1), np.arange(1, n_states)] = np.log1p(-stay[:-1])
        self.stay, self.go = np.log(stay), np.append(np.log1p(-stay[:-1]), -np.inf)
        nowhere = np.array([-np.inf])
        n = len(rows)
        self.alpha, self.beta, self.delta = np.empty(rows.shape), np.zeros(rows.shape), np.empty(rows.shape)
        self.came = np.zeros(rows.shape, dtype=bool)  # whether the best path comes from the state before
        self.alpha[0] = self.delta[0] = self.start + rows[0]
        for t in range(1, n):
            comes = np.concatenate([nowhere, (self.alpha[t - 1] + self.go)[:-1]])
            self.alpha[t] = np.logaddexp(self.alpha[t - 1] + self.stay, comes) + rows[t]
            comes = np.concatenate([nowhere, (self.delta[t - 1] + self.go)[:-1]])
            stays = self.delta[t - 1] + self.stay
            self.came[t] = comes >= stays  # of equal ones the lower state
            self.delta[t] = np.maximum(stays, comes) + rows[t]
        for t in range(n - 2, -1, -1):
            next_ = rows[t + 1] + self.beta[t + 1]
            self.beta[t] = np.logaddexp(self.stay + next_, self.go + np.concatenate([next_[1:], nowhere]))
        self.log_likelihood = np.logaddexp.reduce(self.alpha[-1])
        self.posterior = np.exp(self.alpha + self.beta - self.log_likelihood)
        later = rows[1:] + self.beta[1:] - self.log_likelihood
        self.stays = np.exp(self.alpha[:-1] + self.stay + later).sum(axis=0)
        self.goes = np.exp((self.alpha[:-1] + self.go)[:, :-1] + later[:, 1:]).sum(axis=0)
        path = [int(self.delta[-1].argmax())]
        for t in range(n - 1, 0, -1):
            path.append(path[-1] - int(self.came[t, path[-1]]))
        self.path = np.array(path[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 120.0], ids=["near", "far apart"])
@pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
def test_long_sequences_in_segments(coded: bool, spread: float) -> None:
    """More states and steps than are kept; far apart, all is done on logarithms."""
    rng, n_states, n = np.random.default_rng(3), 300, 15_000
    at = np.linspace(0, n_states - 1, n)
    if coded:
        table = -spread * rng.random((9, n_states))
        codes = rng.integers(0, 9, n)
        emission: Any = (codes, table)
        rows = table[codes]
    else:
        rows = emission = -spread * 1e-4 * (at[:, None] + rng.normal(0, 20, (n, 1)) - np.arange(n_states)) ** 2
    truth = LeftToRight(n_states, rows)
    given = (truth.start, truth.transition, None, emission, [0, n])

    def near(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)

    near(hmm.log_likelihood(HMMInput(*given)), [truth.log_likelihood])
    posterior, found = hmm.posterior(HMMInput(*given))
    near(posterior, truth.posterior)
    near(found, [truth.log_likelihood])
    filtered, found = hmm.filter(HMMInput(*given))
    near(filtered, np.exp(truth.alpha - np.logaddexp.reduce(truth.alpha, axis=1)[:, None]))
    near(found, [truth.log_likelihood])
    expected = hmm.expected(HMMInput(*given), [0.5])
    near(expected.start, truth.posterior[0] / 2)
    near(expected.end, truth.posterior[-1] / 2)
    near(np.diag(expected.transition), truth.stays / 2)
    near(np.diag(expected.transition, 1), truth.goes / 2)
    near(expected.transition.sum(), (n - 1) / 2)
    if coded:
        near(expected.emission, [truth.posterior[codes == level].sum(axis=0) / 2 for level in range(9)])
    else:
        near(expected.emission, truth.posterior / 2)
    path, score = hmm.viterbi(HMMInput(*given))
    near(score, [truth.delta[-1].max()])
    np.testing.assert_array_equal(path, truth.path)


@pytest.mark.slow
def test_several_long_sequences_are_what_each_is_alone() -> None:
    """Some are in segments together, of different numbers; one of few states is in segments, too."""
    rng = np.random.default_rng(5)
    for n_states, lengths in ((100, [30_000, 2, 9_000, 12_000, 0, 1]), (3, [530_000, 600_001, 5])):
        start, transition, end = model(rng, n_states, 0.0, ends=True)
        offsets = cut(lengths)
        emission = (rng.integers(0, 4, offsets[-1]).astype(np.int8), logs(rng.random((4, n_states))))
        together = [hmm.log_likelihood(HMMInput(start, transition, end, emission, offsets))]
        together += [*hmm.viterbi(HMMInput(start, transition, end, emission, offsets))]
        for k in (0, 1, 2):
            steps = slice(offsets[k], offsets[k + 1])
            given = (start, transition, end, (emission[0][steps], emission[1]), [0, lengths[k]])
            assert hmm.log_likelihood(HMMInput(*given))[0] == together[0][k]
            path, score = hmm.viterbi(HMMInput(*given))
            assert score[0] == together[2][k]
            np.testing.assert_array_equal(path, together[1][steps])
        found = hmm.expected(HMMInput(start, transition, end, emission, offsets))
        np.testing.assert_allclose(found.start.sum(), sum(n > 0 for n in lengths), rtol=1e-12)
        np.testing.assert_allclose(found.transition.sum(), sum(max(n - 1, 0) for n in lengths), rtol=1e-10)
        np.testing.assert_allclose(found.emission.sum(), offsets[-1], rtol=1e-10)
        np.testing.assert_allclose(found.log_likelihood, together[0], rtol=1e-14)


MEMORY = """
import numpy as np
from tallybayes.kernels import hmm as chain
from resource import RUSAGE_SELF, getrusage
rng, n_states, n = np.random.default_rng(0), 400, 60_000
moves = np.log(rng.random((n_states, n_states)))
moves[abs(np.subtract.outer(np.arange(n_states), np.arange(n_states))) > 1] = -np.inf
table = np.log(rng.random((5, n_states)))
def ask(n):
    given = (np.zeros(n_states), moves, None, (rng.integers(0, 5, n).astype(np.int8), table), [0, n])
    given = chain.HMMInput(*given)
    return [chain.log_likelihood(given), chain.viterbi(given), chain.expected(given)]
ask(1000)
before = getrusage(RUSAGE_SELF).ru_maxrss
ask(n)
print((getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in other units elsewhere")
def test_memory_does_not_grow_with_steps_times_states() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 80  # MiB, where all states of all steps are 183


@pytest.mark.slow
def test_a_step_costs_what_its_transitions_cost() -> None:
    rng, n_states = np.random.default_rng(0), 400
    offsets, table = cut([40] * 40), logs(rng.random((5, n_states)))
    codes = rng.integers(0, 5, offsets[-1])

    def seconds(name: str, kind: str) -> float:
        start, transition = sparse(rng, n_states, kind)
        found = []
        for _ in range(3):
            begin = time.process_time()
            getattr(hmm, name)(HMMInput(start, transition, None, (codes, table), offsets), threads=1)
            found.append(time.process_time() - begin)
        return min(found)

    for name in ("log_likelihood", "viterbi", "expected"):
        assert 2 * seconds(name, "banded") < seconds(name, "dense")  # 5 to 15 times on a quiet machine
