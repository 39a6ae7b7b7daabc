"""Hidden Markov models through their public face against hmmlearn's faster implementation.

Run it with ``python hidden_markov.py [scale] [usual | sizes | whole | objectives]``; it needs hmmlearn, which
nothing else here does. A scale below 1 takes that share of the sequences. Many states, long sequences and many short
ones (``sizes``) are also compared with dynamax and pomegranate, where these are installed. Who takes more than five
seconds is timed once. ``whole`` compares whole fits, with initialization, at the same number of iterations;
``objectives`` the log likelihoods that both reach from one initialization of every seed.
"""

from __future__ import annotations

import copy
import logging
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from harness import Contender, Timing, peak_memory, race, table
from markov_peers import dynamax, pomegranate

import tallybayes as tb
from tallybayes import kernels
from tallybayes.kernels import hmm as chain
from tallybayes.kernels.hmm import HMMInput

try:
    from hmmlearn import hmm
except ImportError:
    sys.exit("this benchmark compares with hmmlearn: pip install hmmlearn")


def categorical(n_states: int, n_sequences: int, length: int) -> tuple[Any, Any, Any, list[int]]:
    """A model of ours, one of theirs with the same parameters, steps and lengths."""
    rng = np.random.default_rng(0)
    n_symbols = 20
    start, moves = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    emits = rng.dirichlet(np.ones(n_symbols), n_states)
    steps = rng.integers(0, n_symbols, n_sequences * length)
    theirs = hmm.CategoricalHMM(
        n_states, implementation="scaling", n_features=n_symbols, n_iter=1, init_params="", params="ste"
    )
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = start, moves, emits
    ours = tb.HiddenMarkovModel(n_states, tb.Categorical(levels=tuple(range(n_symbols))), estimate="mle")
    return ours, theirs, steps, [length] * n_sequences


def gaussian(n_states: int, n_sequences: int, length: int) -> tuple[Any, Any, Any, list[int]]:
    """As `categorical`, for four measured columns."""
    rng = np.random.default_rng(0)
    start, moves = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    means = rng.standard_normal((n_states, 4))
    steps = rng.standard_normal((n_sequences * length, 4))
    theirs = hmm.GaussianHMM(
        n_states, "diag", implementation="scaling", n_iter=1, init_params="", params="stmc", min_covar=0.0
    )
    theirs.startprob_, theirs.transmat_, theirs.means_, theirs.covars_ = start, moves, means, np.ones((n_states, 4))
    ours = tb.HiddenMarkovModel(n_states, tb.Gaussian(), estimate="mle")
    return ours, theirs, steps, [length] * n_sequences


def step_of(fit: Callable[[int], int], n_steps: int) -> float:
    """Seconds of one step: those of many less those of one, so that reading the data and the start do not count."""
    seconds, taken = [], []
    fit(1)  # the first finds memory and caches as the other contender left them
    for n in (1, n_steps):
        begin = time.perf_counter()
        taken.append(fit(n))
        seconds.append(time.perf_counter() - begin)
    if taken[1] - taken[0] < n_steps - 1:
        sys.exit(f"{taken[1]} steps instead of {n_steps}: nothing was left to learn, so their time says nothing")
    return (seconds[1] - seconds[0]) / (n_steps - 1)


def learn(ours: Any, steps: Any, lengths: list[int], n_steps: int) -> int:
    # Under "mle" EM climbs under default priors first, which would be steps that are not counted.
    options = {"estimate": "map", "max_iter": n_steps, "tol": 1e-300, "random_state": 0}
    return len(tb.HiddenMarkovModel(ours.n_states, ours.columns, **options).fit(steps, None, lengths).history_)


def relearn(theirs: Any, column: Any, lengths: list[int], n_steps: int) -> int:
    other = copy.deepcopy(theirs)
    other.n_iter = other.monitor_.n_iter = n_steps
    other.monitor_.tol = -np.inf  # never stop early
    return int(other.fit(column, lengths).monitor_.iter)


def of_size(n_states: int, n_sequences: int, length: int, neighbors: int | None = None) -> None:
    """Compare what is asked of sequences of one size; with `neighbors`, a state goes so far at most."""
    rng, n_symbols = np.random.default_rng(0), 20
    start, moves = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    emits = rng.dirichlet(np.ones(n_symbols), n_states)
    if neighbors is not None:
        places = np.arange(n_states)
        moves[abs(places[:, None] - places) > neighbors] = 0.0
        moves /= moves.sum(axis=1, keepdims=True)
    steps, lengths = rng.integers(0, n_symbols, n_sequences * length), [length] * n_sequences
    parts = [part.copy() for part in np.split(steps, n_sequences)]
    square, column = steps.reshape(n_sequences, length), steps[:, None]
    ours = tb.HiddenMarkovModel.from_tables(start, moves, emits)
    theirs = hmm.CategoricalHMM(
        n_states, implementation="scaling", n_features=n_symbols, n_iter=1, init_params="", params="ste"
    )
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = start, moves, emits
    with np.errstate(divide="ignore"):
        given = (np.log(start), np.log(moves), None, (steps, np.log(emits.T)), np.arange(n_sequences + 1) * length)
    mine: dict[str, Contender] = {
        "log-likelihood": lambda: ours.score_samples(steps, lengths),
        "log-likelihood of a list of arrays": lambda: ours.score_samples(parts),
        "Viterbi": lambda: ours.predict(steps, lengths),
        "expected counts": lambda: chain.expected(
            HMMInput(*given)
        ),  # the step of Baum–Welch that looks at the sequences
    }
    others = {
        "hmmlearn": {
            "log-likelihood": lambda: theirs.score(column, lengths),
            "log-likelihood of a list of arrays": lambda: theirs.score(column, lengths),  # it takes no list
            "Viterbi": lambda: theirs.decode(column, lengths),
            "expected counts": lambda: copy.deepcopy(theirs).fit(column, lengths),  # and the other step, which is short
        },
        "dynamax": dynamax((start, moves, emits), square),
        "pomegranate": pomegranate((start, moves, emits), square, sparse=neighbors is not None),
    }
    name = f"{n_states} states, {n_sequences:,} × {length:,}"
    name += "" if neighbors is None else f", {np.count_nonzero(moves) / n_states**2:.0%} of the transitions"
    if n_sequences == 1:
        del mine["log-likelihood of a list of arrays"]  # the same array
    for what, work in mine.items():
        contenders = {"tallybayes": work, **{who: asked[what] for who, asked in others.items() if what in asked}}
        print(table(f"{name}: {what}", race(contenders, rounds=3), "hmmlearn"))
        print(f"\npeak memory over the input: {peak_memory(work) / 2**20:.0f} MiB\n")


def sizes(scale: float) -> None:
    """Many states, long sequences, many short ones."""
    of_size(5, int(100_000 * scale), 10)
    of_size(5, 1, int(1_000_000 * scale))
    of_size(500, 40, int(200 * scale))
    of_size(500, 1, int(8_000 * scale))
    of_size(500, 40, int(200 * scale), neighbors=2)
    of_size(500, 1, int(8_000 * scale), neighbors=2)


def usual(scale: float) -> None:
    """Sizes as they are met every day."""
    cases = {
        "5 states, 1,000 × 1,000 categorical": categorical(5, int(1000 * scale), 1000),
        "50 states, 100 × 1,000 categorical": categorical(50, max(int(100 * scale), 2), 1000),
        "5 states, 1,000 × 1,000 × 4 Gaussian": gaussian(5, int(1000 * scale), 1000),
    }
    for name, (ours, theirs, steps, lengths) in cases.items():
        column = steps if steps.ndim == 2 else steps[:, None]
        path = theirs.predict(column, lengths)
        ours.fit(steps, path, lengths)  # counted from their own decoding: any parameters do for timing
        slices = np.split(steps, np.cumsum(lengths)[:-1])
        apart = [part.copy() for part in slices]
        work: dict[str, tuple[Callable[..., Any], Contender]] = {
            "log-likelihood": (ours.score_samples, partial(theirs.score, column, lengths)),
            "Viterbi": (ours.predict, partial(theirs.decode, column, lengths)),
        }
        for what, (ask, its) in work.items():
            contenders: dict[str, Contender] = {
                "tallybayes": partial(ask, steps, lengths),
                "tallybayes, a list of slices": partial(ask, slices),
                "tallybayes, a list of separate arrays": partial(ask, apart),
                "hmmlearn": its,  # it takes no list
            }
            print(table(f"{name}: {what}", race(contenders, rounds=7), "hmmlearn"))
        times: dict[str, list[float]] = {"tallybayes": [], "hmmlearn": []}
        for _ in range(3):
            times["tallybayes"].append(step_of(partial(learn, ours, steps, lengths), 41))
            times["hmmlearn"].append(step_of(partial(relearn, theirs, column, lengths), 11))
        timings = [Timing(who, tuple(seconds)) for who, seconds in times.items()]
        print(table(f"{name}: one Baum–Welch iteration", timings, "hmmlearn"))
        peak = peak_memory(partial(ours.score_samples, steps, lengths))
        print(f"peak memory over the input, log-likelihood: {peak / 2**20:.0f} MiB\n")


def drawn(n_states: int, n_sequences: int, length: int, seed: int = 0) -> tuple[np.ndarray, np.random.Generator]:
    """States drawn from a chain, (sequences, steps), and the generator for what they emit."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(n_states, 0.3), n_states).cumsum(axis=1)
    states = np.empty((n_sequences, length), dtype=int)
    now = rng.integers(0, n_states, n_sequences)
    for step in range(length):
        states[:, step] = now
        now = np.minimum((rng.random(n_sequences)[:, None] > moves[now]).sum(axis=1), n_states - 1)
    return states, rng


def emitted(states: np.ndarray, rng: np.random.Generator, kind: str, n_symbols: int = 20) -> np.ndarray:
    """Steps of these states, (steps, columns): symbols, or three columns of numbers."""
    n_states = int(states.max()) + 1
    if kind == "categorical":
        emits = rng.dirichlet(np.full(n_symbols, 0.3), n_states).cumsum(axis=1)
        steps = (rng.random(states.shape)[..., None] > emits[states]).sum(axis=-1)
        return np.minimum(steps, n_symbols - 1).reshape(-1, 1)
    means, spread = rng.normal(0, 1.5, (n_states, 3)), rng.uniform(0.4, 1.5, (n_states, 3))
    return (means[states] + spread[states] * rng.normal(size=(*states.shape, 3))).reshape(-1, 3)


def unfitted(kind: str, n_states: int, n_iter: int, tol: float, n_steps: int, seed: int) -> tuple[Any, Any]:
    """A model of ours and one of theirs, before initialization, of equal objectives and stopping rules."""
    families: dict[str, Any] = {
        "categorical": tb.Categorical(levels=tuple(range(20))),
        "diag": tb.Gaussian(),
        "full": {(0, 1, 2): tb.MultivariateGaussian()},
    }
    ours = tb.HiddenMarkovModel(
        n_states, families[kind], estimate="mle", max_iter=n_iter, tol=tol, n_init=1, random_state=seed
    )
    options: dict[str, Any] = {
        "implementation": "scaling",
        "n_iter": n_iter,
        "tol": tol * n_steps,
        "random_state": seed,
    }
    if kind == "categorical":
        return ours, hmm.CategoricalHMM(n_states, n_features=20, **options)
    prior = 1e-9 if kind == "diag" else 0  # theirs has a prior of the variances by default
    return ours, hmm.GaussianHMM(n_states, kind, min_covar=1e-6, covars_prior=prior, **options)


def whole(scale: float) -> None:
    """Whole fits: reading, initialization and 3, 10 and 100 iterations."""
    cases = [("categorical", 5, 100, 1000), ("categorical", 50, 100, 200), ("categorical", 500, 40, 100)]
    cases += [(kind, n_states, 100, 500) for n_states in (4, 10) for kind in ("diag", "full")]
    for kind, n_states, n_sequences, length in cases:
        n_sequences = max(int(n_sequences * scale), 2)
        X, lengths = emitted(*drawn(n_states, n_sequences, length), kind), [length] * n_sequences
        steps = X[:, 0] if kind == "categorical" else X
        for n_iter in (3, 10, 100):
            ours, theirs = unfitted(kind, n_states, n_iter, 1e-300, 1, 0)
            theirs.tol = -np.inf  # never stop early
            bayes = copy.copy(ours).set_params(estimate="bayes")
            contenders: dict[str, Contender] = {
                "tallybayes": partial(ours.fit, steps, None, lengths),
                "tallybayes, bayes": partial(bayes.fit, steps, None, lengths),
                "hmmlearn": partial(theirs.fit, X, lengths),
            }
            name = f"{kind}, {n_states} states, {n_sequences} × {length:,}: a fit of {n_iter} iterations"
            print(table(name, race(contenders, rounds=3), "hmmlearn"))


def objectives(scale: float) -> None:
    """Log likelihoods a step from one initialization each: 50 data sets, 10 seeds."""
    print(
        "| emissions | mean of ours − hmmlearn | standard error | ours higher | ours lower |\n|---|---:|---:|---:|---:|"
    )
    for kind in ("categorical", "diag", "full"):
        found = []
        for data in range(max(int(50 * scale), 2)):
            n_states = 2 + data % 5
            X = emitted(*drawn(n_states, 20, 100, data), kind)
            steps, lengths = X[:, 0] if kind == "categorical" else X, [100] * 20
            for seed in range(10):
                ours, theirs = unfitted(kind, n_states, 200, 1e-6, len(X), seed)
                reached = ours.fit(steps, None, lengths).score_samples(steps, lengths).sum()
                found.append((reached - theirs.fit(X, lengths).score(X, lengths)) / len(X))
        gain = np.array(found)
        shares = f"{(gain > 1e-6).mean():.0%} | {(gain < -1e-6).mean():.0%}"
        print(f"| {kind} | {gain.mean():+.5f} | {gain.std() / len(gain) ** 0.5:.5f} | {shares} |", flush=True)


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    which = sys.argv[2:] or ["usual", "sizes"]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # hmmlearn says that one step is too few
    print(f"kernels: {kernels.implementation()}\n")
    if "usual" in which:
        usual(scale)
    if "sizes" in which:
        sizes(scale)
    if "whole" in which:
        whole(scale)
    if "objectives" in which:
        objectives(scale)


if __name__ == "__main__":
    main()
