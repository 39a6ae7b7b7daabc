"""Predicting: `kernels.Scorer.argmax` beside scikit-learn on the same rows, each called in turn; ratios of medians.

    python benchmarks/scoring.py [codes binary normal student sparse ranges one] [--scale 0.1]

scikit-learn gets the input it is fastest with (int64 codes, float64 cells); the scorer reads narrow types in place.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from tallybayes import kernels

REPEATS = 5


def in_turn(contenders: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median seconds of every contender, each called once in every round."""
    for call in contenders.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(REPEATS):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def report(title: str, contenders: dict[str, Callable[[], Any]], goal: float) -> None:
    """Print the times, and the ratio of the first contender to each."""
    medians = in_turn(contenders)
    reference = next(iter(medians.values()))
    print(f"\n### {title} (goal {goal:g} x)\n| contender | ms | ratio |\n|---|---|---|")
    for name, seconds in medians.items():
        print(f"| {name} | {seconds * 1e3:.1f} | {reference / seconds:.1f} |")
    sys.stdout.flush()


def agreement(found: np.ndarray, expected: np.ndarray) -> None:
    print(f"agreement with scikit-learn: {np.mean(found == expected):.7f}")


def codes(scale: float) -> None:
    n, d, levels, n_classes = int(2_000_000 * scale), 30, 10, 5
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n).astype(np.uint8)
    edges = rng.dirichlet(np.ones(levels) * 2, (n_classes, d)).cumsum(-1)
    X = np.empty((n, d), np.uint8)
    for j in range(d):
        X[:, j] = (rng.random(n)[:, None] > edges[y, j, :-1]).sum(1)
    wide = X.astype(np.int64)
    peer = CategoricalNB(min_categories=levels).fit(wide, y)
    table = np.concatenate([part.T for part in peer.feature_log_prob_])
    scorer = kernels.Scorer(peer.class_log_prior_, [("codes", np.full(d, levels), table, "missing")])
    agreement(scorer.argmax([X], n), peer.predict(wide))
    turned = np.asfortranarray(X)
    report(
        f"codes {n} x {d}, {n_classes} classes",
        {
            "CategoricalNB, int64": lambda: peer.predict(wide),
            "Scorer, uint8": lambda: scorer.argmax([X], n),
            "Scorer, uint8, one thread": lambda: scorer.argmax([X], n, 1),
            "Scorer, uint8 by columns": lambda: scorer.argmax([turned], n),
            "Scorer, int64": lambda: scorer.argmax([wide], n),
            "Scorer.joint, uint8": lambda: scorer.joint([X], n),
        },
        40,
    )


def binary(scale: float) -> None:
    n, d, n_classes = int(200_000 * scale), 784, 10
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n).astype(np.uint8)
    share = (rng.random((n_classes, d)) * 80).astype(np.uint8)
    X = (rng.integers(0, 256, (n, d), dtype=np.uint8) < share[y]).astype(np.uint8)
    wide = X.astype(np.float64)
    peer = BernoulliNB().fit(wide, y)
    absent = np.log1p(-np.exp(peer.feature_log_prob_))
    weight = peer.feature_log_prob_ - absent
    scorer = kernels.Scorer(peer.class_log_prior_, [("linear", weight.T, absent.T, "binary")])
    agreement(scorer.argmax([X], n), peer.predict(wide))
    report(
        f"binary {n} x {d}, {n_classes} classes",
        {
            "BernoulliNB, float64": lambda: peer.predict(wide),
            "BernoulliNB, uint8": lambda: peer.predict(X),
            "Scorer, uint8": lambda: scorer.argmax([X], n),
            "Scorer, uint8, one thread": lambda: scorer.argmax([X], n, 1),
            "Scorer, float64": lambda: scorer.argmax([wide], n),
        },
        20,
    )


def gaussian(scale: float, student: bool) -> None:
    n, d, n_classes = int(2_000_000 * scale), 30, 5
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n).astype(np.uint8)
    X = rng.standard_normal((n, d))
    X += rng.normal(size=(n_classes, d))[y]
    peer = GaussianNB().fit(X, y)
    mean, precision = peer.theta_.T, 1.0 / peer.var_.T
    log_norm = 0.5 * np.log(precision / (2.0 * np.pi))
    if student:
        freedom = np.full((d, n_classes), n / n_classes)
        factor: tuple[Any, ...] = ("student", mean, precision / freedom, (freedom + 1.0) / 2.0, log_norm)
    else:
        factor = ("normal", mean, precision, log_norm)
    scorer = kernels.Scorer(np.log(peer.class_prior_), [factor])
    agreement(scorer.argmax([X], n), peer.predict(X))
    turned = np.asfortranarray(X)
    report(
        f"{factor[0]} {n} x {d}, {n_classes} classes",
        {
            "GaussianNB, float64": lambda: peer.predict(X),
            "Scorer, float64": lambda: scorer.argmax([X], n),
            "Scorer, float64, one thread": lambda: scorer.argmax([X], n, 1),
            "Scorer, float64 by columns": lambda: scorer.argmax([turned], n),
            "Scorer.joint, float64": lambda: scorer.joint([X], n),
            "read the bytes": lambda: kernels.read_bytes(X),
        },
        15 if student else 35,
    )


def normal(scale: float) -> None:
    gaussian(scale, student=False)


def student(scale: float) -> None:
    gaussian(scale, student=True)


def sparse(scale: float) -> None:
    n, n_words, n_classes = int(200_000 * scale), 100_000, 20
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n).astype(np.uint8)
    share = 1.0 / np.arange(1, n_words + 1)
    length = rng.poisson(130, n)
    word = np.searchsorted(np.cumsum(share / share.sum()), rng.random(length.sum())).astype(np.int32)
    word += np.where(word > 200, np.repeat(y, length).astype(np.int32) * 37, 0).astype(np.int32)
    word = rng.permutation(n_words).astype(np.int32)[np.minimum(word, n_words - 1)]
    indptr = np.concatenate(([0], np.cumsum(length)))
    X = scipy.sparse.csr_matrix((np.ones(len(word)), word, indptr), (n, n_words))
    X.sum_duplicates()
    peer = MultinomialNB().fit(X, y)
    scorer = kernels.Scorer(peer.class_log_prior_, [("sparse", peer.feature_log_prob_.T, "nonnegative")])
    exact = kernels.Scorer(peer.class_log_prior_, [("sparse", peer.feature_log_prob_.T, "finite")])
    block = (X.indptr, X.indices, X.data)
    agreement(scorer.argmax([block], n), peer.predict(X))
    report(
        f"sparse {n} x {n_words}, {X.nnz / n:.0f} entries a row, {n_classes} classes",
        {
            "MultinomialNB, CSR": lambda: peer.predict(X),
            "Scorer": lambda: scorer.argmax([block], n),
            "Scorer, one thread": lambda: scorer.argmax([block], n, 1),
            "Scorer, float64 only": lambda: exact.argmax([block], n),
            "Scorer.joint": lambda: scorer.joint([block], n),
        },
        10,
    )


def ranges(scale: float) -> None:
    n = int(2_000_000 * scale)
    X = np.random.default_rng(0).integers(0, 10, (n, 30), dtype=np.uint8)
    report(
        f"ranges of {n} x 30 uint8",
        {
            "NumPy min and max": lambda: (X.min(axis=0), X.max(axis=0)),
            "column_ranges": lambda: kernels.column_ranges(X),
            "read the bytes": lambda: kernels.read_bytes(X),
        },
        1,
    )


def one(scale: float) -> None:
    rng = np.random.default_rng(0)
    d, n_classes = 30, 5
    table = rng.normal(size=(d, n_classes))
    start = np.zeros(n_classes)
    cells, code = rng.normal(size=(1, d)), np.zeros((1, d), np.uint8)
    scorers = {
        "codes": (kernels.Scorer(start, [("codes", np.ones(d, int), table, "error")]), code),
        "normal": (kernels.Scorer(start, [("normal", table, table**2, table)]), cells),
        "student": (kernels.Scorer(start, [("student", table, table**2, np.ones_like(table), table)]), cells),
    }
    print("\n### one row of 30 columns\n| factor | µs |\n|---|---|")
    for name, (scorer, block) in scorers.items():
        times = []
        for _ in range(2000):
            begin = time.perf_counter()
            scorer.joint([block], 1)
            times.append(time.perf_counter() - begin)
        print(f"| {name} | {statistics.median(times) * 1e6:.1f} |")


PARTS = {part.__name__: part for part in (codes, binary, normal, student, sparse, ranges, one)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    print(f"kernels: {kernels.implementation()}")
    for name in options.parts or PARTS:
        PARTS[name](options.scale)
