"""Hidden Markov models through their public face against hmmlearn's faster implementation.

Run it with ``python benchmarks/hidden_markov.py [scale]``; it needs hmmlearn, which nothing else here does
(``pip install hmmlearn``). A scale below 1 takes that share of the sequences.
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
from harness import Timing, peak_memory, race, table

import tallybayes as tb
from tallybayes import kernels

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


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # hmmlearn says that one step is too few
    print(f"kernels: {kernels.implementation()}\n")
    cases = {
        "5 states, 1,000 × 1,000 categorical": categorical(5, int(1000 * scale), 1000),
        "50 states, 100 × 1,000 categorical": categorical(50, max(int(100 * scale), 2), 1000),
        "5 states, 1,000 × 1,000 × 4 Gaussian": gaussian(5, int(1000 * scale), 1000),
    }
    for name, (ours, theirs, steps, lengths) in cases.items():
        column = steps if steps.ndim == 2 else steps[:, None]
        path = theirs.predict(column, lengths)
        ours.fit(steps, path, lengths)  # counted from their own decoding: any parameters do for timing
        parts = np.split(steps, np.cumsum(lengths)[:-1])
        work = {
            "log-likelihood": (
                lambda o=ours, s=steps, n=lengths: o.score_samples(s, n),
                lambda t=theirs, c=column, n=lengths: t.score(c, n),
            ),
            "Viterbi": (
                lambda o=ours, s=steps, n=lengths: o.predict(s, n),
                lambda t=theirs, c=column, n=lengths: t.decode(c, n),
            ),
            "log-likelihood of a list of arrays": (
                lambda o=ours, p=parts: o.score_samples(p),
                lambda t=theirs, c=column, n=lengths: t.score(c, n),  # it takes no list
            ),
            "Viterbi of a list of arrays": (
                lambda o=ours, p=parts: o.predict(p),
                lambda t=theirs, c=column, n=lengths: t.decode(c, n),
            ),
        }
        for what, (mine, its) in work.items():
            print(table(f"{name}: {what}", race({"tallybayes": mine, "hmmlearn": its}, rounds=3), "hmmlearn"))
        times: dict[str, list[float]] = {"tallybayes": [], "hmmlearn": []}
        for _ in range(3):
            times["tallybayes"].append(step_of(partial(learn, ours, steps, lengths), 41))
            times["hmmlearn"].append(step_of(partial(relearn, theirs, column, lengths), 11))
        timings = [Timing(who, tuple(seconds)) for who, seconds in times.items()]
        print(table(f"{name}: one Baum–Welch step", timings, "hmmlearn"))
        print(f"peak memory over the input, log-likelihood: {peak_memory(work['log-likelihood'][0]) / 2**20:.0f} MiB\n")


if __name__ == "__main__":
    main()
