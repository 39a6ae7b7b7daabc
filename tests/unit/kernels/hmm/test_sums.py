"""Chains of hidden states: against all their paths, compiled against reference, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.kernels import hmm as chain
from tallybayes.kernels.hmm import HMMInput
from tests.examples import examples
from tests.unit.kernels.chain_cases import (
    FUNCTIONS,
    IMPLEMENTATIONS,
    AllPaths,
    as_rows,
    cut,
    emissions,
    logs,
    model,
    run,
    same_everywhere,
)
from tests.unit.kernels.kernel_cases import INTEGERS, assert_same_bits, lay_out, seeds

SHAPES = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33, 64, 65, 70)
drawn_examples = examples(60)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("coded", [True, False], ids=["codes", "array"])
@drawn_examples
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


@pytest.mark.slow
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


@pytest.mark.slow_after(1)
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


@pytest.mark.slow_after(6)
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
    found, likelihood = chain.posterior(HMMInput(*arguments))
    np.testing.assert_allclose(found, rows, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(likelihood.sum(), score, rtol=1e-12)
    score, states = peer.decode(codes[:, None], lengths)
    path, best = chain.viterbi(HMMInput(*arguments))
    np.testing.assert_allclose(best.sum(), score, rtol=1e-12)
    assert n_states == 2 or (path == states).all()  # with two states many paths are equally good
    peer.fit(codes[:, None], lengths)
    counts = chain.expected(HMMInput(*arguments))
    np.testing.assert_allclose(peer.startprob_, counts.start / counts.start.sum(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(peer.transmat_, counts.transition / counts.transition.sum(axis=1)[:, None], rtol=1e-9)
    np.testing.assert_allclose(peer.emissionprob_.T, counts.emission / counts.emission.sum(axis=0), rtol=1e-9)
