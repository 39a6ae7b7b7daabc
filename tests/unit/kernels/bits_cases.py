"""Calls of every kernel on data made by integer arithmetic alone, the same on every machine, and digests of results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tallybayes import kernels
from tallybayes.kernels import active, hmm
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.kernels.contingency_tables import count_joint
from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
from tallybayes.kernels.hmm import HMMInput
from tallybayes.kernels.temperature import temperature_sums
from tests.unit.kernels.kernel_cases import lay_out


class Draw:
    """Numbers by splitmix64. No logarithm, no library's own generator: nothing that might differ elsewhere."""

    def __init__(self, seed: int) -> None:
        self.position = seed << 32

    def words(self, *shape: int) -> np.ndarray:
        n = int(np.prod(shape, dtype=np.int64))
        z = np.arange(self.position + 1, self.position + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.position += n
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def uniform(self, *shape: int) -> np.ndarray:
        return (self.words(*shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def whole(self, low: int, high: int, *shape: int) -> np.ndarray:
        return (self.words(*shape) % np.uint64(high - low)).astype(np.int64) + low

    def spread(self, *shape: int) -> np.ndarray:
        """About normal, mean 0, variance 1."""
        a, b, c = self.uniform(*shape), self.uniform(*shape), self.uniform(*shape)
        return 2.0 * ((a + b) + (c - 1.5))

    def counts(self, *shape: int) -> np.ndarray:
        """Small counts, many of them 0."""
        return self.whole(0, 6, *shape) * (self.uniform(*shape) < 0.4)

    def some_missing(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(np.float64)
        X[self.uniform(*X.shape) < 0.1] = np.nan
        return X

    def soft(self, n: int, groups: int) -> np.ndarray:
        weight = self.uniform(n, groups)
        weight[weight < 0.2] = 0.0
        return weight


def compress(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indptr = np.concatenate(([0], np.cumsum((X != 0).sum(axis=1)))).astype(np.int64)
    return indptr, np.nonzero(X)[1].astype(np.int32), X[X != 0]


def groupings(draw: Draw, n: int) -> list[tuple[Any, ...]]:
    return [
        (None, 1, None),
        (draw.whole(-1, 5, n).astype(np.int8), 5, None),
        (draw.whole(-1, 30, n), 30, draw.uniform(n)),
        *((None, k, draw.soft(n, k)) for k in (1, 2, 3, 7, 12)),
    ]


def counting(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d, size, dtype in ((700, 9, 4, "u1"), (700, 20, 60, "i8"), (300, 3, 900, "i4")):
        codes = draw.whole(-1, size, n, d).astype(dtype)
        for group, k, weight in groupings(draw, n):
            found.append(kernels.count_codes(codes, [size] * d, group, k, weight))
            found.append(kernels.count_groups(group, k, weight, n) if weight is None or weight.ndim == 1 else ())
        found.append(kernels.column_ranges(draw.whole(-50, 50, n, d).astype("i2")))
    codes = draw.whole(-1, 3, 5000, 6).astype("i1")
    sets = [(0,), (0, 1), (2, 3, 4), (5, 4, 3, 2, 1)]
    found += [count_joint(codes, [3] * 6, sets, weight) for weight in (None, draw.uniform(5000))]
    found.append(np.array([kernels.read_bytes(draw.words(1003))], dtype=np.uint64))
    return found


def dense_sums(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d in ((400, 1), (400, 3), (300, 11), (200, 40)):
        ones, counts = draw.whole(0, 2, n, d), draw.counts(n, d)
        blocks = [
            ("binary", ones.astype("u1")),
            ("binary", draw.some_missing(ones)),
            ("poisson", counts.astype("i4")),
            ("poisson", draw.some_missing(counts)),
            ("multinomial", counts.astype("f8")),
            ("multinomial", counts * draw.uniform(n, d)),
        ]
        for kind, X in blocks:
            for layout, rows in zip(("rows", "columns", "list", "sliced") * 2, groupings(draw, n), strict=True):
                found.append(kernels.sum_dense(lay_out(X, layout), kind, *rows))
    return found


def sparse_sums(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d in ((300, 9), (200, 700)):
        counts = draw.counts(n, d)
        for kind, X in (("binary", counts > 2), ("poisson", counts), ("multinomial", counts * draw.uniform(n, d))):
            indptr, indices, data = compress(X)
            found += [kernels.sum_csr(indptr, indices, data, d, kind, *rows) for rows in groupings(draw, n)]
            if kind != "binary":
                found.append(log_base_csr(indptr, data, kind))
    return found


def moments(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d in ((400, 1), (400, 3), (300, 11), (200, 40)):
        X = draw.spread(n, d) + 100.0 * draw.spread(d)
        for rows in groupings(draw, n):
            found.append(kernels.sum_moments(X, np.zeros(d), *rows))
            found.append(kernels.sum_moments(draw.some_missing(X).astype("f4"), draw.spread(d), *rows))
    return found


def scatter(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d in ((400, 1), (400, 3), (300, 11), (200, 40)):
        X = draw.spread(n, d) + 100.0 * draw.spread(d)
        found += [kernels.sum_scatter(X, draw.spread(d), *rows) for rows in groupings(draw, n)]
        roots, shifts = draw.spread(3, d, d), draw.spread(3, d)
        found.append(kernels.squared_lengths(X, draw.spread(d), roots, shifts))
    return found


def factor_and_block(draw: Draw, kind: str, n: int, d: int, k: int) -> tuple[Any, Any]:
    norm, mean, positive = -draw.uniform(d, k), draw.spread(d, k), draw.uniform(d, k) + 0.1
    X = draw.some_missing(2.0 * draw.spread(n, d))
    if kind == "codes":
        table = -5.0 * draw.uniform(4 * d, k)
        table[draw.uniform(4 * d, k) < 0.02] = -np.inf
        return ("codes", [4] * d, table, "missing"), draw.whole(-1, 6, n, d).astype("i2")
    if kind == "bits":
        return ("linear", mean, norm, "binary"), draw.whole(0, 2, n, d).astype("u1")
    if kind == "linear":
        return ("linear", mean, norm, "finite"), X
    if kind == "normal":
        return ("normal", mean, positive, norm), X
    if kind.startswith("student"):
        X[::7, 0] = 1e160  # whose square is out of range
    if kind == "student":
        power = np.broadcast_to(5.0 * draw.uniform(k) + 1.0, (d, k))
        return ("student", mean, positive, power, norm), X
    if kind == "student by column":
        return ("student", mean, positive, 5.0 * draw.uniform(d, k) + 1.0, norm), X
    if kind == "left out":
        return ("left_out", k - 1, mean[:, 0], positive[:, 0] / 400.0, 7.0 * positive[:, 0], norm[:, 0]), X
    if kind == "sparse":
        return ("sparse", -5.0 * positive, "nonnegative"), compress(draw.counts(n, d) * draw.uniform(n, d))
    return ("terms",), 5.0 * draw.spread(n, k)


KINDS = ("codes", "bits", "linear", "normal", "student", "student by column", "left out", "sparse", "terms")


def scoring(draw: Draw) -> list[Any]:
    found: list[Any] = []
    n = 150
    for kind in KINDS:
        for d, k in ((1, 1), (3, 2), (9, 5), (20, 9), (70, 21)):
            start = -3.0 * draw.uniform(k)
            factor, block = factor_and_block(draw, kind, n, d, k)
            scorer = kernels.Scorer(start, [factor])
            found += [scorer.joint([block], n), scorer.argmax([block], n), scorer.posterior([block], n, np.zeros(k))]
    return found


def chains(draw: Draw) -> list[Any]:
    found: list[Any] = []
    offsets = np.array([0, 1, 4, 4, 23, 80, 81, 400, 403])
    n = int(offsets[-1])
    for n_states in (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 20, 70):
        for far in (1.0, 400.0):
            start, end = -3.0 * draw.uniform(n_states), -draw.uniform(n_states)
            transition, table = -4.0 * draw.uniform(n_states, n_states), -far * draw.uniform(5, n_states)
            rows = -far * draw.uniform(n, n_states)
            rows[draw.uniform(n, n_states) < 0.05] = -np.inf
            for emission in ((draw.whole(-1, 5, n), table), rows):
                given = (start, transition, end, emission, offsets)
                found += [
                    hmm.log_likelihood(HMMInput(*given)),
                    hmm.viterbi(HMMInput(*given)),
                    hmm.filter(HMMInput(*given)),
                ]
                found += [
                    hmm.posterior(HMMInput(*given)),
                    tuple(hmm.expected(HMMInput(*given), weight=draw.uniform(len(offsets) - 1))),
                ]
    return found


def tempering(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, k in ((0, 1), (8, 2), (16, 3), (400, 9), (1000, 26)):
        scores = -30.0 * draw.uniform(k, n)
        given = (scores, -30.0 * draw.uniform(n), draw.uniform(n) + 0.01, draw.uniform(n))
        found += [temperature_sums(*given, sharpness, doubt) for sharpness in (0.03, 1.0, 7.0) for doubt in (1e-9, 0.2)]
    return found


def wide_chains(draw: Draw) -> list[Any]:
    found: list[Any] = []
    offsets = np.concatenate([[0], np.cumsum([0, 1, 2, 5, 66, 9, 64, 130, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 7])])
    n = int(offsets[-1])
    for n_states in (65, 72, 130, 150):
        for share in (0.03, 1.0):
            start, transition = -3.0 * draw.uniform(n_states), -4.0 * draw.uniform(n_states, n_states)
            transition[(draw.uniform(n_states, n_states) >= share) & ~np.eye(n_states, dtype=bool)] = -np.inf
            table, rows = -draw.uniform(5, n_states), -3.0 * draw.uniform(n, n_states)
            for emission in ((draw.whole(-1, 5, n), table), rows):
                given = (start, transition, None, emission, offsets)
                found += [
                    hmm.log_likelihood(HMMInput(*given)),
                    hmm.viterbi(HMMInput(*given)),
                    hmm.filter(HMMInput(*given)),
                ]
                found += [
                    hmm.posterior(HMMInput(*given)),
                    tuple(hmm.expected(HMMInput(*given), weight=draw.uniform(len(offsets) - 1))),
                ]
    return found


def chain_paths(draw: Draw) -> list[Any]:
    found: list[Any] = []
    offsets = np.array([0, 1, 4, 4, 23, 60])
    n = int(offsets[-1])
    for n_states in (1, 2, 3, 5, 9, 20, 70):
        for far in (1.0, 400.0):
            start, end = -3.0 * draw.uniform(n_states), -draw.uniform(n_states)
            transition, table = -4.0 * draw.uniform(n_states, n_states), -far * draw.uniform(5, n_states)
            transition[draw.uniform(n_states, n_states) < 0.1] = -np.inf
            for emission in ((draw.whole(-1, 5, n), table), -far * draw.uniform(n, n_states)):
                given = (start, transition, end, emission, offsets)
                found += [hmm.best_paths(HMMInput(*given), 4), hmm.draw_paths(HMMInput(*given), draw.uniform(n, 3))]
    return found


def dirichlets(draw: Draw) -> list[Any]:
    found: list[Any] = []
    sizes = np.array([1, 2, 0, 7, 30])
    for n_groups in (1, 2, 9):
        for scale in (5.0, 4000.0):
            counts = np.sort(np.floor(scale * draw.uniform(40, n_groups) ** 3), axis=1)
            for table in (counts, counts + 0.25):
                rows = np.stack([part.sum(axis=0) for part in np.split(table, np.cumsum(sizes)[:-1])])
                found.append(fit_dirichlet_newton(table, rows, np.ones(40), sizes, sizes))
    return found


def mixtures(draw: Draw) -> list[Any]:
    found: list[Any] = []
    for n, d, k in ((300, 5, 3), (9000, 9, 2), (700, 35, 9)):
        X, weight = draw.spread(n, d) + draw.whole(0, k, n)[:, None], draw.uniform(n)
        codes = np.ascontiguousarray(draw.whole(-1, 4, n, 2).T)
        sizes = np.array([4, 4])
        for full in (False, True):
            cells = X if full else draw.some_missing(X)
            size = (k, d, d) if full else (k, d)
            block = (cells, full, full, False, np.zeros(d), np.zeros(d))
            em = active.module.MixtureEM(n, k, [block], [(list(codes), sizes)], weight, None, 0)
            scale = np.eye(d).ravel() if full else np.ones(k * d)
            rows = np.full(1 if full else k * d, 3.0)
            em.set_priors([(True, np.zeros(k * d), np.ones(k * d), rows, scale)], [np.ones(k * 8)], np.ones(k), None)
            spread = np.ones(size) if not full else np.broadcast_to(np.eye(d), size)
            mean = (draw.spread(k, d)).ravel()
            assert em.expect(np.zeros(k), [(mean, np.ascontiguousarray(spread).ravel())], [np.full(k * 8, 0.25)], True)
            found += [em.iterate(4, 0.0, lambda: None)[2], *arrays_of(em.parameters()), *arrays_of(em.sums())]
            found.append(np.array(em.values()))
    return found


CASES: dict[str, Callable[[Draw], list[Any]]] = {
    "counting": counting,
    "dense sums": dense_sums,
    "sparse sums": sparse_sums,
    "moments": moments,
    "scatter": scatter,
    "scoring": scoring,
    "chains": chains,
    "tempering": tempering,
    "wide chains": wide_chains,
    "dirichlets": dirichlets,
    "chain paths": chain_paths,
    "mixtures": mixtures,
}


def arrays_of(results: Any) -> list[np.ndarray]:
    """Results and results within them as one list."""
    if isinstance(results, np.ndarray):
        return [results]
    return [array for part in results for array in arrays_of(part)]


def digest(arrays: list[np.ndarray]) -> str:
    """Sixteen letters that change with any bit of any array; every NaN is alike."""
    seen = hashlib.sha256()
    for array in arrays:
        seen.update(f"{array.dtype.str}{array.shape}".encode())
        seen.update(np.where(np.isnan(array), np.nan, array).astype(array.dtype).tobytes())
    return seen.hexdigest()[:16]
