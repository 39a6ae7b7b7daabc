"""One iteration of EM through the public face against scikit-learn's GaussianMixture, from the same start.

Run it with ``python benchmarks/em.py [scale]``; a scale below 1 takes that share of the rows. A step is the difference
between fits of eleven steps and of one, over ten, so that reading the data and the start do not count on either side.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Timing, peak_memory, table
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


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    warnings.simplefilter("ignore")  # eleven steps are too few for either, and both say so
    rng = np.random.default_rng(0)
    n, d = int(1_000_000 * scale), 20
    kind = rng.integers(0, N_COMPONENTS, n)
    X = rng.standard_normal((n, d)) + rng.normal(size=(N_COMPONENTS, d))[kind]
    print(f"kernels: {kernels.implementation()}\n")
    for name, family in (("diag", tb.Gaussian()), ("full", tb.MultivariateGaussian())):

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
