"""One-dependence classifiers against naive Bayes on the same codes, and against the same counting written in NumPy.

Run it with ``python benchmarks/one_dependence.py [scale]``. A scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from harness import race, table

import tallybayes as tb

N_CLASSES, N_LEVELS, N_COLUMNS = 5, 10, 20


class Written:
    """Averaged one-dependence as one would write it with NumPy: pairs by matrix products, scores by look-ups."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Written:
        offsets = np.arange(N_COLUMNS) * N_LEVELS
        width = N_COLUMNS * N_LEVELS
        self.joint = np.zeros((N_CLASSES, width, width))
        for start in range(0, len(X), 50_000):
            part, labels = X[start : start + 50_000], y[start : start + 50_000]
            hot = np.zeros((len(part), width), dtype=np.float32)
            hot[np.arange(len(part))[:, None], part + offsets] = 1
            for k in range(N_CLASSES):
                mine = hot[labels == k]
                self.joint[k] += mine.T @ mine
        single = np.diagonal(self.joint, axis1=1, axis2=2)
        rows = np.bincount(y, minlength=N_CLASSES)
        self.shares = (single + 1) / (rows[:, None] + N_LEVELS)
        terms = np.log((self.joint + 4 * self.shares[:, None]) / (single[:, :, None] + 4))
        blocks = np.arange(width) // N_LEVELS
        terms[:, blocks[:, None] == blocks] = 0
        self.terms = terms.transpose(1, 2, 0).copy()
        self.log_prior = np.log((rows + 1) / (len(y) + N_CLASSES))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        offsets, out = np.arange(N_COLUMNS) * N_LEVELS, np.empty(len(X), dtype=np.intp)
        for start in range(0, len(X), 5_000):
            cells = X[start : start + 5_000] + offsets
            total = np.full((len(cells), N_CLASSES), -np.inf)
            for parent in range(N_COLUMNS):
                here = cells[:, parent]
                score = self.terms[here[:, None], cells].sum(axis=1) + np.log(self.shares[:, here].T)
                total = np.logaddexp(total, score)
            out[start : start + 5_000] = (total + self.log_prior).argmax(axis=1)
        return out


def main() -> None:
    """Time fitting and predicting, in turn."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rng = np.random.default_rng(0)
    n = int(1_000_000 * scale)
    X, y = rng.integers(0, N_LEVELS, (n, N_COLUMNS), dtype=np.uint8), rng.integers(0, N_CLASSES, n)
    models: dict[str, Any] = {
        "NaiveBayes": tb.NaiveBayes(tb.Categorical()),
        "AveragedOneDependence": tb.AveragedOneDependence(tb.Categorical()),
        "TreeAugmentedNaiveBayes": tb.TreeAugmentedNaiveBayes(tb.Categorical()),
        "averaged, in NumPy": Written(),
    }
    for what, act in (
        ("fit", {name: (lambda model=model: model.fit(X, y)) for name, model in models.items()}),
        ("predict", {name: (lambda model=model: model.predict(X)) for name, model in models.items()}),
    ):
        title = f"{what}, {n:,} × {N_COLUMNS} codes of {N_LEVELS} levels, {N_CLASSES} classes"
        print(table(title, race(act, rounds=5), "averaged, in NumPy", "NaiveBayes"))


if __name__ == "__main__":
    main()
