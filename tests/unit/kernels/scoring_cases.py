"""Factors and blocks for the scorers: every kind, with missing cells, in every type and layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes import kernels
from tests.unit.kernels.kernel_cases import INTEGERS, lay_out, run

KINDS = ("codes", "linear", "normal", "student", "student by column", "left out", "sparse", "terms")
CLASSES = (1, 2, 5, 8, 9, 20, 130)


@dataclass
class Case:
    """A factor and a block of rows for it."""

    factor: tuple[Any, ...]
    block: Any


def scorer(implementation: str, start: Any, factors: list[tuple[Any, ...]]) -> kernels.Scorer:
    """Prepare a scorer on "reference" or one tier; it keeps to it."""
    made: kernels.Scorer = run(implementation, "Scorer", start, factors)
    return made


def starts(rng: np.random.Generator, n_classes: int) -> np.ndarray:
    start = np.log(rng.dirichlet(np.ones(n_classes)))
    if n_classes > 1 and rng.random() < 0.3:
        start[rng.integers(n_classes)] = -np.inf
    return start


def compress(X: np.ndarray, index: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the non-zero cells and some zeros in compressed rows, the columns of a row in random order."""
    stored = (X != 0) | (rng.random(X.shape) < 0.1)
    indptr = np.concatenate(([0], np.cumsum(stored.sum(axis=1)))).astype(index)
    columns = [rng.permutation(np.flatnonzero(row)) for row in stored]
    indices = np.concatenate([np.zeros(0, np.int64), *columns]).astype(index)
    return indptr, indices, X[np.repeat(np.arange(len(X)), np.diff(indptr)), indices.astype(np.int64)]


def _codes(rng: np.random.Generator, n: int, d: int, k: int, layout: str) -> Case:
    dtype = np.dtype(rng.choice(INTEGERS))
    sizes = rng.integers(0, min(int(np.iinfo(dtype).max), 300), d)
    codes = np.empty((n, d), np.int64)
    for j, size in enumerate(sizes):
        codes[:, j] = rng.integers(-1, size, n) if size else -1
    table = rng.normal(size=(sizes.sum(), k))
    table[rng.random(table.shape) < 0.02] = -np.inf
    beyond = str(rng.choice(["missing", "error"]))
    if beyond == "missing" and codes.size:
        codes[rng.random(codes.shape) < 0.1] = min(int(np.iinfo(dtype).max), 2**40) - 1
    return Case(("codes", sizes, table, beyond), lay_out(codes.astype(dtype), layout))


def _cells(rng: np.random.Generator, X: np.ndarray, layout: str, floats: bool) -> Any:
    X = X.astype(rng.choice(["f4", "f8"] if floats else ["u1", "i1", "i2", "u4", "i8", "f4", "f8"]))
    if X.dtype.kind == "f" and rng.random() < 0.5:
        X[rng.random(X.shape) < 0.1] = np.nan
    return lay_out(X, layout)


def make(kind: str, rng: np.random.Generator, n: int, d: int, k: int, layout: str) -> Case:
    """Return a random factor of this kind and n rows of d columns for it."""
    if kind == "codes":
        return _codes(rng, n, d, k, layout)
    mean, norm, spread = rng.normal(size=(d, k)), rng.normal(size=(d, k)), rng.gamma(2.0, size=(d, k))
    if kind == "linear":
        check = str(rng.choice(["binary", "count", "finite"]))
        X = rng.poisson(2.0, (n, d)) if check != "binary" else rng.integers(0, 2, (n, d))
        if check == "binary" and rng.random() < 0.3:
            return Case(("linear", mean, norm, check), lay_out(X.astype(bool), layout))
        return Case(("linear", mean, norm, check), _cells(rng, X, layout, floats=False))
    if kind == "sparse":
        check = str(rng.choice(["binary", "count", "finite", "nonnegative"]))
        X = rng.poisson(0.3, (n, d)) if check != "binary" else rng.integers(0, 2, (n, d))
        weight = -spread
        if check != "finite":
            weight[rng.random((d, k)) < 0.01] = -np.inf
        data = compress(X, str(rng.choice(["i4", "i8"])), rng)
        return Case(("sparse", weight, check), (*data[:2], data[2].astype(rng.choice(["u1", "i4", "f4", "f8"]))))
    if kind == "terms":
        terms = rng.normal(size=(n, k)) * 5.0
        terms[rng.random((n, k)) < 0.05] = -np.inf
        return Case(("terms",), terms)
    X = _cells(rng, rng.normal(size=(n, d)) * 3.0, layout, floats=True)
    if kind == "left out":
        of_class, one = int(rng.integers(k)), rng.gamma(2.0, size=d)
        return Case(("left_out", of_class, rng.normal(size=d), one / 400.0, one * 7.0, rng.normal(size=d)), X)
    if kind == "normal":
        return Case(("normal", mean, spread, norm), X)
    power = rng.gamma(2.0, 3.0, size=(d, k) if kind == "student by column" else k)
    return Case(("student", mean, spread, np.broadcast_to(power, (d, k)), norm), X)
