"""Gaussian discriminants through their public face against scikit-learn's LDA and QDA.

Run it with ``python benchmarks/discriminant.py [scale]``; a scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Contender, peak_memory, race, table
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import tallybayes as tb
from tallybayes import kernels

READ = "read the bytes"


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rng = np.random.default_rng(0)
    n, d, classes = int(500_000 * scale), 100, 5
    y = rng.integers(0, classes, n)
    X = rng.standard_normal((n, d))
    X += rng.normal(size=(classes, d))[y] * 0.3
    tied, full = tb.GaussianDiscriminant("tied", estimate="map"), tb.GaussianDiscriminant(estimate="map")
    svd, lsqr = LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr")
    quadratic = QuadraticDiscriminantAnalysis()
    print(f"kernels: {kernels.implementation()}\n")

    def fit(model: object) -> Callable[[], object]:
        return lambda: model.fit(X, y)  # type: ignore[attr-defined]

    def predict(model: object) -> Callable[[], object]:
        return lambda: model.predict(X)  # type: ignore[attr-defined]

    read = {READ: lambda: kernels.read_bytes(X.reshape(-1))}
    contenders = {"tallybayes, tied": fit(tied), "LDA, svd": fit(svd), "LDA, lsqr": fit(lsqr)}
    title = f"{n:,} × {d} float64, {classes} classes"
    print(table(f"{title}, tied: fit", race(contenders | read, rounds=3), "LDA, svd", READ))
    contenders = {"tallybayes, full": fit(full), "QDA": fit(quadratic)}
    print(table(f"{title}, full: fit", race(contenders | read, rounds=3), "QDA", READ))
    print(f"peak memory over the input, fit: {peak_memory(fit(full)) / 2**20:.0f} MiB\n")
    contenders = {"tallybayes, tied, map": predict(tied), "LDA, svd": predict(svd)}
    print(table(f"{title}, tied: predict", race(contenders | read, rounds=3), "LDA, svd", READ))
    contenders = {"tallybayes, full, map": predict(full), "QDA": predict(quadratic)}
    print(table(f"{title}, full: predict", race(contenders | read, rounds=3), "QDA", READ))
    print(f"peak memory over the input, predict: {peak_memory(predict(full)) / 2**20:.0f} MiB")
    print(f"tied agrees with LDA on {np.mean(tied.predict(X) == svd.predict(X)):.6f} of the rows")
    print(f"full agrees with QDA on {np.mean(full.predict(X) == quadratic.predict(X)):.6f} of the rows\n")
    wide(scale)


def wide(scale: float) -> None:
    """Rows of 784 columns and 10 classes: the first prediction after fitting, and those after it."""
    rng = np.random.default_rng(0)
    n, d, classes = int(10_000 * scale), 784, 10
    y = rng.integers(0, classes, n)
    X = rng.standard_normal((n, d)) + 0.1 * rng.normal(size=(classes, d))[y]
    square, models = rng.standard_normal((d, d)), {}
    contenders: dict[str, Contender] = {}
    for estimate in ("mle", "map", "bayes"):
        model = models[estimate] = tb.GaussianDiscriminant("tied", estimate=estimate).fit(X, y)
        contenders[f"tallybayes, tied, {estimate}"] = lambda m=model: m.predict(X)
    contenders["tallybayes, tied, bayes: predict_proba"] = lambda: models["bayes"].predict_proba(X)
    contenders["tallybayes, tied, bayes: score_samples"] = lambda: models["bayes"].score_samples(X)
    parts: Any = models["bayes"].tally_.statistics[1]
    parts = parts.anchor, parts.weight_sum, parts.first_sum, parts.second_sum
    contenders["scatter of the counted moments, needed once"] = lambda: tb.Moments(*parts).scatter
    svd = LinearDiscriminantAnalysis().fit(X, y)
    contenders |= {"LDA, svd": lambda: svd.predict(X), "X @ (784 × 784)": lambda: X @ square}
    print(table(f"{n:,} × {d} float64, {classes} classes: predict", race(contenders), "X @ (784 × 784)"))


if __name__ == "__main__":
    main()
