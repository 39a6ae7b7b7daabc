"""Hidden Markov models and sequences for the kernels, and the truth about small ones."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from tallybayes.kernels import active, hmm
from tallybayes.kernels.reference import sums as reference_sums
from tests.unit.kernels.kernel_cases import INTEGERS, TIERS

FUNCTIONS = ("log_likelihood", "viterbi", "filter", "posterior", "expected")
IMPLEMENTATIONS = ["reference", *TIERS]


def run(implementation: str, name: str, *arguments: Any, **options: Any) -> list[Any]:
    """Call a function of `hmm` on "reference" or one tier, and return its results as a list.

    The fields of `HMMInput` are the first five arguments, or given by name.
    """
    if not arguments:
        arguments = tuple(options.pop(field) for field in hmm.HMMInput._fields)
    model, rest = hmm.HMMInput(*arguments[:5]), arguments[5:]
    before = active.module
    if implementation == "reference":
        active.module = reference_sums
    else:
        from tallybayes.kernels import _compiled

        _compiled.use_tier(implementation)
        active.module = _compiled
    try:
        found = getattr(hmm, name)(model, *rest, **options)
    finally:
        active.module = before
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
