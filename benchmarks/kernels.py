"""The kernels against NumPy, scikit-learn and the time to read the bytes.

Run ``python benchmarks/kernels.py [part ...] [--rounds r] [--memory]``; ratios within one table are what counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from harness import Contender, peak_memory, race, table

from tallybayes import kernels

READ = "read the bytes"


def count_codes() -> dict[str, dict[str, Contender]]:
    """Categorical counts: 2,000,000 rows, 30 columns of 10 levels, 5 groups."""
    from sklearn.naive_bayes import CategoricalNB

    rng = np.random.default_rng(0)
    n, d, levels, n_groups = 2_000_000, 30, 10, 5
    rows = rng.integers(0, levels, (n, d), dtype=np.uint8)
    columns = np.asfortranarray(rows)
    wide = rows.astype(np.int64)
    group = rng.integers(0, n_groups, n, dtype=np.uint8)
    weight = rng.random(n)
    sizes = np.full(d, levels)

    def bincount(X: np.ndarray) -> list[np.ndarray]:
        base = group.astype(np.int64) * levels
        return [np.bincount(base + X[:, j], minlength=n_groups * levels) for j in range(d)]

    return {
        "count_codes, int64 rows": {
            "ours": lambda: kernels.count_codes(wide, sizes, group, n_groups),
            "ours, one thread": lambda: kernels.count_codes(wide, sizes, group, n_groups, threads=1),
            "NumPy bincount": lambda: bincount(wide),
            "CategoricalNB": lambda: CategoricalNB().fit(wide, group),
            READ: lambda: kernels.read_bytes(wide),
        },
        "count_codes, uint8": {
            "ours": lambda: kernels.count_codes(columns, sizes, group, n_groups),
            "ours, one thread": lambda: kernels.count_codes(columns, sizes, group, n_groups, threads=1),
            "ours, row-major": lambda: kernels.count_codes(rows, sizes, group, n_groups),
            "ours, weighted": lambda: kernels.count_codes(columns, sizes, group, n_groups, weight),
            "NumPy bincount": lambda: bincount(columns),
            READ: lambda: kernels.read_bytes(columns),
        },
    }


def sum_binary() -> dict[str, dict[str, Contender]]:
    """Bernoulli counts: 200,000 rows, 784 columns, 10 groups."""
    from sklearn.naive_bayes import BernoulliNB

    rng = np.random.default_rng(1)
    n, d, n_groups = 200_000, 784, 10
    X = (rng.random((n, d), dtype=np.float32) < 0.2).astype(np.uint8)
    group = rng.integers(0, n_groups, n)

    def blocked_product() -> np.ndarray:
        total = np.zeros((n_groups, d), np.float32)
        for start in range(0, n, 4096):
            one_hot = (group[start : start + 4096] == np.arange(n_groups)[:, None]).astype(np.float32)
            total += one_hot @ X[start : start + 4096].astype(np.float32)
        return total

    return {
        "sum_dense, binary uint8": {
            "ours": lambda: kernels.sum_dense(X, "binary", group, n_groups),
            "ours, one thread": lambda: kernels.sum_dense(X, "binary", group, n_groups, threads=1),
            "NumPy blocked product": blocked_product,
            "BernoulliNB": lambda: BernoulliNB(binarize=None).fit(X, group),
            READ: lambda: kernels.read_bytes(X),
        }
    }


def sum_sparse() -> dict[str, dict[str, Contender]]:
    """Word counts: 200,000 documents of 100 words out of 100,000, 20 groups."""
    from scipy import sparse
    from sklearn.naive_bayes import MultinomialNB

    rng = np.random.default_rng(2)
    n, d, words, n_groups = 200_000, 100_000, 100, 20
    indices = np.sort((d * rng.random((n, words)) ** 3).astype(np.int32)).ravel()  # some words are far more frequent
    indptr = np.arange(0, n * words + 1, words, dtype=np.int32)
    data = rng.integers(1, 4, n * words).astype(np.float64)
    group = rng.integers(0, n_groups, n)
    X = sparse.csr_array((data, indices, indptr), shape=(n, d))
    X.has_canonical_format = True

    def indicator_product() -> object:
        indicator = sparse.csr_array((np.ones(n), (group, np.arange(n))), shape=(n_groups, n))
        return indicator @ X

    def bincount() -> np.ndarray:
        key = np.repeat(group * d, words) + indices
        return np.bincount(key, weights=data, minlength=n_groups * d)

    def ours(threads: int) -> object:
        return kernels.sum_csr(indptr, indices, data, d, "multinomial", group, n_groups, threads=threads)

    return {
        "sum_csr, multinomial": {
            "ours": lambda: ours(0),
            "ours, one thread": lambda: ours(1),
            "NumPy bincount": bincount,
            "SciPy indicator product": indicator_product,
            "MultinomialNB": lambda: MultinomialNB().fit(X, group),
            READ: lambda: (kernels.read_bytes(indices), kernels.read_bytes(data)),
        }
    }


def sum_moments() -> dict[str, dict[str, Contender]]:
    """Gaussian moments: 2,000,000 rows, 30 columns, 5 groups."""
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(3)
    n, d, n_groups = 2_000_000, 30, 5
    X = rng.normal(size=(n, d))
    group = rng.integers(0, n_groups, n, dtype=np.uint8)
    anchor = np.zeros(d)
    weight = rng.random(n)

    def by_group() -> list[tuple[np.ndarray, np.ndarray]]:
        return [((x := X[group == g]).sum(axis=0), (x * x).sum(axis=0)) for g in range(n_groups)]

    return {
        "sum_moments, float64": {
            "ours (double-double)": lambda: kernels.sum_moments(X, anchor, group, n_groups),
            "ours, one thread": lambda: kernels.sum_moments(X, anchor, group, n_groups, threads=1),
            "ours, weighted": lambda: kernels.sum_moments(X, anchor, group, n_groups, weight),
            "NumPy by group (float64 only)": by_group,
            "GaussianNB": lambda: GaussianNB().fit(X, group),
            READ: lambda: kernels.read_bytes(X),
        }
    }


def sum_scatter() -> dict[str, dict[str, Contender]]:
    """Scatter matrices: 500,000 rows, 100 columns, 5 groups."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(4)
    n, d, n_groups = 500_000, 100, 5
    X = rng.normal(size=(n, d))
    group = rng.integers(0, n_groups, n)
    anchor = np.zeros(d)

    def by_group() -> list[np.ndarray]:
        return [(x := X[group == g]).T @ x for g in range(n_groups)]

    return {
        "sum_scatter, float64": {
            "ours": lambda: kernels.sum_scatter(X, anchor, group, n_groups),
            "ours, one thread": lambda: kernels.sum_scatter(X, anchor, group, n_groups, threads=1),
            "NumPy X.T @ X, no groups": lambda: X.T @ X,
            "NumPy by group": by_group,
            "LDA (lsqr)": lambda: LinearDiscriminantAnalysis(solver="lsqr").fit(X, group),
            READ: lambda: kernels.read_bytes(X),
        }
    }


def small_calls() -> dict[str, dict[str, Contender]]:
    """What a call costs when there is next to nothing to do: 1,000 calls on 10 rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(10, 3))
    codes = rng.integers(0, 3, (10, 3))
    group = rng.integers(0, 2, 10)
    anchor = np.zeros(3)

    def thousand(call: Contender) -> Contender:
        return lambda: [call() for _ in range(1000)]

    return {
        "1,000 small calls (ms = µs a call)": {
            "count_groups": thousand(lambda: kernels.count_groups(group, 2)),
            "count_codes": thousand(lambda: kernels.count_codes(codes, [3, 3, 3], group, 2)),
            "sum_moments": thousand(lambda: kernels.sum_moments(X, anchor, group, 2)),
            "sum_scatter": thousand(lambda: kernels.sum_scatter(X, anchor, group, 2)),
            READ: thousand(lambda: kernels.read_bytes(X)),
        }
    }


PARTS: dict[str, Callable[[], dict[str, dict[str, Contender]]]] = {
    "codes": count_codes,
    "binary": sum_binary,
    "sparse": sum_sparse,
    "moments": sum_moments,
    "scatter": sum_scatter,
    "small": small_calls,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which tables to print; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="also print by how much memory grows in a call")
    options = parser.parse_args()
    print(f"kernels: {kernels.implementation()}\n")
    for name in options.parts or PARTS:
        for title, contenders in PARTS[name]().items():
            ours, *_, peer, _ = contenders  # the slowest peer is listed last, before the time to read the bytes
            print(table(title, race(contenders, options.rounds), peer, READ), flush=True)
            if options.memory:
                print(f"memory of one call: {peak_memory(contenders[ours]) / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
