"""Cross-validation by subtraction: ten folds against one fit and one predict, leaving one out against one LDA fit.

Run it with ``python benchmarks/insight.py [scale]``; a scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import peak_memory, race, table
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import tallybayes as tb
from tallybayes import kernels

ONCE = "one fit + one predict"


def tables(scale: float) -> dict[str, tuple[Any, Any, np.ndarray]]:
    """Model, rows and classes of every kind that the kernels know."""
    rng = np.random.default_rng(0)
    n = int(1_000_000 * scale)
    y = rng.integers(0, 5, n)
    codes = rng.integers(0, 10, (n, 20), dtype=np.uint8)
    binary = (rng.random((n, 50), dtype=np.float32) < 0.3).astype(np.uint8)
    measured = rng.standard_normal((n, 20)) + 0.3 * y[:, None]
    n_texts, n_words = int(50_000 * scale), 20_000
    texts = sp.random_array((n_texts, n_words), density=0.004, format="csr", rng=rng)
    texts.data = rng.integers(1, 4, texts.nnz).astype(np.int64)
    wide = rng.standard_normal((n // 2, 100)) + 0.1 * y[: n // 2, None]
    return {
        f"{n:,} × 20 codes": (tb.NaiveBayes(tb.Categorical()), codes, y),
        f"{n:,} × 50 binary": (tb.NaiveBayes(tb.Bernoulli()), binary, y),
        f"{n:,} × 20 Gaussian columns, naive Bayes": (tb.NaiveBayes(), measured, y),
        f"{n_texts:,} × {n_words:,} sparse counts": (tb.NaiveBayes(tb.Multinomial()), texts, y[:n_texts]),
        f"{n // 2:,} × 100 Gaussian, tied covariance": (tb.GaussianDiscriminant("tied"), wide, y[: n // 2]),
        f"{n // 2:,} × 100 Gaussian, full covariances": (tb.GaussianDiscriminant(), wide, y[: n // 2]),
    }


def once(model: Any, X: Any, y: np.ndarray) -> Callable[[], object]:
    return lambda: model.fit(X, y).predict(X)


def folds(model: Any, X: Any, y: np.ndarray) -> Callable[[], object]:
    return lambda: tb.cross_validate(model, X, y)


def refits(model: Any, X: Any, y: np.ndarray) -> Callable[[], object]:
    """What cross-validation is elsewhere: a fit and a prediction for every fold."""
    fold = np.arange(len(y)) % 10
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(10)]
    return lambda: [model.fit(X[train], y[train]).predict_log_proba(X[test]) for train, test in parts]


def left_out(model: Any, X: Any, y: np.ndarray) -> Callable[[], object]:
    return lambda: tb.leave_one_out(model, X, y)


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    print(f"kernels: {kernels.implementation()}\n")
    for name, (model, X, y) in tables(scale).items():
        contenders = {ONCE: once(model, X, y), "ten folds": folds(model, X, y), "ten refits": refits(model, X, y)}
        contenders["leave one out"] = left_out(model, X, y)
        if "tied" in name:
            contenders["scikit-learn's LDA, one fit (svd)"] = lambda X=X, y=y: LinearDiscriminantAnalysis().fit(X, y)
        print(table(name, race(contenders, rounds=3), ONCE, ONCE))
        peaks = ", ".join(
            f"{what} {peak_memory(run(model, X, y)) / 2**20:.0f} MiB"
            for what, run in (("folds", folds), ("out", left_out))
        )
        print(f"peak memory over the input: {peaks}; the scores alone are {len(y) * 6 * 8 / 2**20:.0f} MiB\n")


if __name__ == "__main__":
    main()
