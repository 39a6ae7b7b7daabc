"""Naive Bayes through its public face against scikit-learn: fit and predict, labels encoded, input checked.

Run it with ``python benchmarks/naive_bayes.py [scale]``; a scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import peak_memory, race, table
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

import tallybayes as tb
from tallybayes import kernels

READ = "read the bytes"


def compare(
    title: str, X: Any, y: np.ndarray, ours: dict[str, tb.NaiveBayes], peers: dict[str, tuple[Any, Any]]
) -> None:
    """Print one table for fitting and one for predicting; the first peer is the reference."""
    reference = next(iter(peers))
    raw = X.data if sp.issparse(X) else X.reshape(-1)
    fits: dict[str, Callable[[], object]] = {name: (lambda m=m: m.fit(X, y)) for name, m in ours.items()}
    fits |= {name: (lambda m=m, Z=Z: m.fit(Z, y)) for name, (m, Z) in peers.items()}
    fits[READ] = lambda: kernels.read_bytes(raw)
    print(table(f"{title}: fit", race(fits), reference, READ))
    for name, model in ours.items():
        print(f"peak memory over the input, fit {name}: {peak_memory(lambda m=model: m.fit(X, y)) / 2**20:.0f} MiB")
    print()
    predicts: dict[str, Callable[[], object]] = {name: (lambda m=m: m.predict(X)) for name, m in ours.items()}
    predicts |= {name: (lambda m=m, Z=Z: m.predict(Z)) for name, (m, Z) in peers.items()}
    predicts[READ] = fits[READ]
    print(table(f"{title}: predict", race(predicts), reference, READ))
    for name, model in ours.items():
        peak = peak_memory(lambda m=model: m.predict(X)) / 2**20
        print(f"peak memory over the input, predict {name}: {peak:.0f} MiB")
    peer, Z = peers[reference]
    for name, model in ours.items():
        print(f"{name} agrees with {reference} on {np.mean(model.predict(X) == peer.predict(Z)):.6f} of the rows")
    print()


def coded(scale: float, rng: np.random.Generator) -> None:
    n, d, levels, classes = int(2_000_000 * scale), 30, 10, 5
    y = rng.integers(0, classes, n)
    bounds = rng.dirichlet(np.full(levels, 2.0), (classes, d)).cumsum(-1)
    X = np.empty((n, d), np.uint8)
    for j in range(d):
        X[:, j] = (rng.random(n)[:, None] > bounds[y, j, :-1]).sum(1)
    wide = X.astype(np.int64)  # scikit-learn's own best input
    compare(
        f"{n:,} × {d} codes, {classes} classes",
        X,
        y,
        {"tallybayes, uint8": tb.NaiveBayes(tb.Categorical())},
        {"CategoricalNB, int64": (CategoricalNB(min_categories=levels), wide)},
    )


def binary(scale: float, rng: np.random.Generator) -> None:
    n, d, classes = int(200_000 * scale), 784, 10
    y = rng.integers(0, classes, n)
    share = (rng.random((classes, d)) * 80).astype(np.uint8)
    X = (rng.integers(0, 256, (n, d), dtype=np.uint8) < share[y]).astype(np.uint8)
    compare(
        f"{n:,} × {d} binary, {classes} classes",
        X,
        y,
        {"tallybayes, uint8": tb.NaiveBayes(tb.Bernoulli())},
        {"BernoulliNB, float64": (BernoulliNB(), X.astype(np.float64)), "BernoulliNB, uint8": (BernoulliNB(), X)},
    )


def gaussian(scale: float, rng: np.random.Generator) -> None:
    n, d, classes = int(2_000_000 * scale), 30, 5
    y = rng.integers(0, classes, n)
    X = rng.standard_normal((n, d))
    X += rng.normal(size=(classes, d))[y]
    compare(
        f"{n:,} × {d} float64, {classes} classes",
        X,
        y,
        {"tallybayes, map": tb.NaiveBayes(estimate="map"), "tallybayes, bayes": tb.NaiveBayes()},
        {"GaussianNB": (GaussianNB(), X)},
    )


def words(scale: float, rng: np.random.Generator) -> None:
    n, vocabulary, classes = int(200_000 * scale), 100_000, 20
    y = rng.integers(0, classes, n)
    cumulative = np.cumsum(1 / np.arange(1, vocabulary + 1))
    length = rng.poisson(130, n)
    word = np.searchsorted(cumulative / cumulative[-1], rng.random(length.sum())).astype(np.int32)
    word = np.minimum(word + np.where(word > 200, np.repeat(y, length) * 37, 0), vocabulary - 1).astype(np.int32)
    order = rng.permutation(vocabulary).astype(np.int32)
    pointers = np.concatenate([[0], np.cumsum(length)])
    X = sp.csr_matrix((np.ones(len(word)), order[word], pointers), (n, vocabulary))
    X.sum_duplicates()
    compare(
        f"{n:,} × {vocabulary:,} sparse counts, {X.nnz / n:.0f} a row, {classes} classes",
        X,
        y,
        {"tallybayes": tb.NaiveBayes()},
        {"MultinomialNB": (MultinomialNB(), X)},
    )


def one_row(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((1000, 30)), rng.integers(0, 5, 1000)
    ours, peer = tb.NaiveBayes().fit(X, y), GaussianNB().fit(X, y)
    row = X[:1]
    contenders = {
        "tallybayes, 100 times": lambda: [ours.predict(row) for _ in range(100)],
        "GaussianNB, 100 times": lambda: [peer.predict(row) for _ in range(100)],
    }
    print(table("One row of 30 float64, predict", race(contenders), "GaussianNB, 100 times"))


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rng = np.random.default_rng(0)
    print(f"kernels: {kernels.implementation()}\n")
    for workload in (coded, binary, gaussian, words):
        workload(scale, rng)
    one_row(rng)


if __name__ == "__main__":
    main()
