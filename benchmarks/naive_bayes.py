"""Naive Bayes through its public face against scikit-learn: fit and predict, labels encoded, input checked.

Run it with ``python benchmarks/naive_bayes.py [scale]``; a scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import peak_memory, race, serial_share, table
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

import tallybayes as tb
from tallybayes import kernels

READ = "read the bytes"
AS_IT_COMES_AND_AS_THEIRS = {"tallybayes": tb.NaiveBayes(), "tallybayes, prior=1": tb.NaiveBayes(prior=1)}


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
        print(f"outside the kernels, fit {name}: {100 * serial_share(lambda m=model: m.fit(X, y)):.0f} % of the time")
    print()
    predicts: dict[str, Callable[[], object]] = {name: (lambda m=m: m.predict(X)) for name, m in ours.items()}
    predicts |= {name: (lambda m=m, Z=Z: m.predict(Z)) for name, (m, Z) in peers.items()}
    predicts[READ] = fits[READ]
    print(table(f"{title}: predict", race(predicts), reference, READ))
    for name, model in ours.items():
        peak = peak_memory(lambda m=model: m.predict(X)) / 2**20
        print(f"peak memory over the input, predict {name}: {peak:.0f} MiB")
        share = serial_share(lambda m=model: m.predict(X), lambda m=model: m.fit(X, y).predict(X[:2]))
        print(f"outside the kernels, predict {name}: {100 * share:.0f} % of the time")
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
        AS_IT_COMES_AND_AS_THEIRS,
        {"MultinomialNB": (MultinomialNB(), X)},
    )


def label_forms(scale: float, rng: np.random.Generator) -> None:
    """One fit for every form labels come in; scikit-learn takes those of pandas as objects."""
    import pandas as pd
    import pyarrow as pa

    n, d = int(2_000_000 * scale), 30
    y = rng.integers(0, 5, n)
    X, weight = rng.standard_normal((n, d)), rng.random(n)
    words = np.array(["ham", "spam", "eggs", "bacon", "toast"], dtype=object)[y]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    forms: dict[str, tuple[Any, Any, Any]] = {
        "int64": (X, y, y),
        "int32": (X, y.astype(np.int32), y.astype(np.int32)),
        "uint8": (X, y.astype(np.uint8), y.astype(np.uint8)),
        "bool": (X, y > 2, y > 2),
        "minus one and one": (X, np.where(y > 2, 1, -1), np.where(y > 2, 1, -1)),
        "float64": (X, y.astype(np.float64), y.astype(np.float64)),
        "strings as objects": (X, words, words),
        "strings as objects of their own": (X, words.astype(str).astype(object), words),
        "NumPy strings": (X, words.astype(str), words.astype(str)),
        "list of strings": (X, words.tolist(), words.tolist()),
        "pandas strings": (X, pd.Series(words, dtype="string"), words),
        "pandas categories": (X, pd.Series(words).astype("category"), words),
        "Arrow strings": (X, pa.array(words), words),
        "int64, X float32": (X.astype(np.float32), y, y),
        "int64, X in Fortran's order": (np.asfortranarray(X), y, y),
        "int64, X a frame": (frame, y, y),
    }
    for form, (rows, labels, theirs) in forms.items():
        ours, peer = tb.NaiveBayes(), GaussianNB()
        contenders: dict[str, Callable[[], object]] = {
            "tallybayes": lambda m=ours, r=rows, t=labels: m.fit(r, t),
            "GaussianNB": lambda m=peer, r=rows, t=theirs: m.fit(r, t),
        }
        if form == "int64":
            contenders["tallybayes, weights"] = lambda m=ours, r=rows, t=labels: m.fit(r, t, weight)
            contenders["GaussianNB, weights"] = lambda m=peer, r=rows, t=labels: m.fit(r, t, weight)
        print(table(f"{n:,} × {d} float64, labels {form}: fit", race(contenders, rounds=3), "GaussianNB"))
        share = serial_share(contenders["tallybayes"], rounds=3)
        print(f"outside the kernels: {100 * share:.0f} % of the time\n")


def frames(scale: float, rng: np.random.Generator) -> None:
    """Frames of categories, and of categories and measured columns."""
    import pandas as pd

    n, d = int(2_000_000 * scale), 30
    y, X, Z = rng.integers(0, 5, n), rng.standard_normal((n, d // 2)), rng.integers(0, 10, (n, d))
    names = [f"level {k}" for k in range(10)]
    labels = {f"c{j}": pd.Categorical.from_codes(Z[:, j], names) for j in range(d)}
    few = {f"c{j}": labels[f"c{j}"] for j in range(d // 2)}
    half = np.ascontiguousarray(Z[:, : d // 2])
    every, both = pd.DataFrame(labels), pd.DataFrame({f"x{j}": X[:, j] for j in range(d // 2)} | few)
    for form, frame, peer in (
        ("categories", every, lambda: CategoricalNB().fit(Z, y)),
        ("categories and numbers, half each", both, lambda: (GaussianNB().fit(X, y), CategoricalNB().fit(half, y))),
    ):
        model = tb.NaiveBayes()
        contenders = {"tallybayes": lambda m=model, f=frame: m.fit(f, y), "scikit-learn, from arrays": peer}
        print(table(f"{n:,} × {d}, a frame of {form}: fit", race(contenders, rounds=3), "scikit-learn, from arrays"))


def word_forms(scale: float, rng: np.random.Generator) -> None:
    """Words by rank, frequent ones side by side as a vectorizer leaves them: sorted rows, and unsorted ones."""
    n, vocabulary, classes = int(200_000 * scale), 100_000, 20
    y, length = rng.integers(0, classes, n), rng.poisson(130, n)
    cumulative = np.cumsum(1 / np.arange(1, vocabulary + 1))
    word = np.searchsorted(cumulative / cumulative[-1], rng.random(length.sum())).astype(np.int32)
    pointers = np.concatenate([[0], np.cumsum(length)])
    X = sp.csr_matrix((np.ones(len(word)), np.minimum(word, vocabulary - 1), pointers), (n, vocabulary))
    X.sum_duplicates()
    backwards = np.repeat(X.indptr[:-1] + X.indptr[1:] - 1, np.diff(X.indptr)) - np.arange(X.nnz)
    mixed = sp.csr_matrix((X.data[backwards], X.indices[backwards], X.indptr), X.shape)
    mixed.has_sorted_indices = mixed.has_canonical_format = False
    for form, matrix in (("sorted", X), ("unsorted", mixed)):
        title = f"{n:,} × {vocabulary:,} words by rank, {form} rows, {classes} classes"
        compare(title, matrix, y, AS_IT_COMES_AND_AS_THEIRS, {"MultinomialNB": (MultinomialNB(), matrix)})


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
    for workload in (coded, binary, gaussian, words, word_forms, label_forms, frames):
        workload(scale, rng)
    one_row(rng)


if __name__ == "__main__":
    main()
