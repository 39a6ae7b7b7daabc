"""EM for mixtures against scikit-learn's GaussianMixture: whole fits, one iteration, and the optimum that is reached.

Run it with ``python benchmarks/em.py [scale] [whole] [iteration] [optimum]``; a scale below 1 takes that share of the
rows. A whole fit has five iterations and one initialization on either side. An iteration is the difference between fits
of eleven iterations and of one, over ten. The optimum is compared over small data sets, both run until convergence.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Timing, peak_memory, table
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

import tallybayes as tb
from tallybayes import kernels

PEER = "GaussianMixture"
N_COMPONENTS = 5


def step_of(fit: Callable[[int], object]) -> float:
    """Seconds of one iteration of EM."""
    seconds = []
    for n_steps in (1, 11):
        start = time.perf_counter()
        fit(n_steps)
        seconds.append(time.perf_counter() - start)
    return (seconds[1] - seconds[0]) / 10


FAMILIES = {"diag": tb.Gaussian(), "full": tb.MultivariateGaussian(), "tied": tb.TiedMultivariateGaussian()}


def whole(scale: float) -> None:
    """Whole fits with their initialization: seconds, and processor seconds of the same fits."""
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 2, (8, 20))
    for n in (10_000, 100_000, 1_000_000):
        n = int(n * scale)
        X = rng.standard_normal((n, 20)) + centers[rng.integers(0, 8, n)]
        for name, family in FAMILIES.items():
            options: dict[str, Any] = {"max_iter": 5, "tol": 1e-300, "random_state": 0}
            ours = tb.Mixture(8, family, estimate="mle", n_init=1, **options)
            theirs = GaussianMixture(8, covariance_type=name, **options)
            show_both(f"{n:,} × 20, 8 components, {name}: whole fit", ours, theirs, X, 5 if n < 1e6 else 2)
    iris = load_iris().data
    for n_init in (1, 3):
        ours, theirs = (kind(3, n_init=n_init, random_state=0) for kind in (tb.Mixture, GaussianMixture))
        show_both(f"iris, defaults, n_init = {n_init}", ours, theirs, iris, 20)


def show_both(title: str, ours: Any, theirs: Any, X: np.ndarray, rounds: int) -> None:
    """Print a table of seconds and of processor seconds; the contenders take turns."""
    seconds: dict[str, list[list[float]]] = {"tallybayes": [[], []], PEER: [[], []]}
    ours.fit(X)
    for _ in range(rounds):
        for who, model in (("tallybayes", ours), (PEER, theirs)):
            start, processor = time.perf_counter(), time.process_time()
            model.fit(X)
            seconds[who][0].append(time.perf_counter() - start)
            seconds[who][1].append(time.process_time() - processor)
    for kind, what in enumerate(("", ", processor time")):
        print(table(title + what, [Timing(who, tuple(times[kind])) for who, times in seconds.items()], PEER))


def optimum(n_sets: int = 50, n_seeds: int = 10) -> None:
    """Mean log likelihood per row minus scikit-learn's, over synthetic data sets of overlapping components."""
    for name, family in FAMILIES.items():
        differences = []
        for number in range(n_sets):
            rng = np.random.default_rng(number)
            d, k, n = int(rng.integers(2, 9)), int(rng.integers(2, 9)), int(rng.choice([200, 500, 1500, 4000]))
            kind = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
            roots = rng.normal(size=(k, d, d)) / 2 + np.eye(d)
            X = np.einsum("nij,nj->ni", roots[kind], rng.normal(size=(n, d)))
            X += rng.normal(0, rng.choice([1.0, 2.0, 4.0]), (k, d))[kind]
            options: dict[str, Any] = {"max_iter": 500, "tol": 1e-6, "n_init": 1}
            for seed in range(n_seeds):
                theirs = GaussianMixture(k, covariance_type=name, random_state=seed, **options).fit(X)
                ours = tb.Mixture(k, family, estimate="mle", random_state=seed, **options)
                try:
                    differences.append(ours.fit(X).history_[-1] / n - theirs.score(X))
                except tb.EstimateError:  # a component collapsed, which scikit-learn's reg_covar prevents
                    continue
        found = np.array(differences)
        error = found.std() / len(found) ** 0.5
        print(
            f"{name}: ours − theirs {found.mean():+.2e} nats a row (standard error {error:.0e}),"
            f" higher {np.mean(found > 1e-4):.0%}, lower {np.mean(found < -1e-4):.0%}, {len(found)} fits"
        )


def main() -> None:
    words = set(sys.argv[1:]) & {"whole", "iteration", "optimum"}
    scale = next((float(word) for word in sys.argv[1:] if word not in words), 1.0)
    warnings.simplefilter("ignore")  # eleven steps are too few for either, and both say so
    print(f"kernels: {kernels.implementation()}\n")
    if not words or "whole" in words:
        whole(scale)
    if not words or "iteration" in words:
        iteration(scale)
    if not words or "optimum" in words:
        optimum()


def iteration(scale: float) -> None:
    """One iteration of EM, and the memory of three."""
    rng = np.random.default_rng(0)
    n, d = int(1_000_000 * scale), 20
    kind = rng.integers(0, N_COMPONENTS, n)
    X = rng.standard_normal((n, d)) + rng.normal(size=(N_COMPONENTS, d))[kind]
    for name, family in FAMILIES.items():

        def ours(n_steps: int, family: Any = family) -> object:
            # Under "mle" EM climbs under default priors first, which would be steps that are not counted.
            model = tb.Mixture(
                N_COMPONENTS, family, estimate="map", max_iter=n_steps, tol=1e-300, n_init=1, random_state=0
            )
            return model.fit(X)

        def theirs(n_steps: int, name: str = name) -> object:
            return GaussianMixture(
                N_COMPONENTS, covariance_type=name, max_iter=n_steps, tol=1e-300, random_state=0
            ).fit(X)

        times: dict[str, list[float]] = {"tallybayes": [], PEER: []}
        for _ in range(3):
            times["tallybayes"].append(step_of(ours))
            times[PEER].append(step_of(theirs))
        timings = [Timing(who, tuple(seconds)) for who, seconds in times.items()]
        print(table(f"{n:,} × {d} float64, {N_COMPONENTS} components, {name}: one iteration of EM", timings, PEER))
        print(f"peak memory over the input, three steps: {peak_memory(lambda: ours(3)) / 2**20:.0f} MiB\n")


if __name__ == "__main__":
    main()
