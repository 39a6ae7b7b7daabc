"""The log base measure of sparse rows: against factorials, on every build, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes import kernels
from tallybayes.kernels import active
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.kernels.reference import sums as reference_sums
from tests.unit.kernels.kernel_cases import INTEGERS, TIERS


def by_hand(rows: list[list[float]], kind: str) -> list[float]:
    found = []
    for row in rows:
        whole = math.lgamma(sum(row) + 1) if kind == "multinomial" else 0.0
        found.append(whole - sum(math.lgamma(x + 1) for x in row))
    return found


def on(implementation: str, *arguments: Any, **options: Any) -> np.ndarray:
    """Call `log_base_csr` on "reference" or one tier of the compiled module."""
    before = active.module
    if implementation == "reference":
        active.module = reference_sums
    else:
        from tallybayes.kernels import _compiled

        _compiled.use_tier(implementation)
        active.module = _compiled
    try:
        return log_base_csr(*arguments, **options)
    finally:
        active.module = before
        if implementation != "reference":
            _compiled.use_tier(TIERS[-1])


def csr(rows: list[list[float]], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    lengths = [len(row) for row in rows]
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.array([x for row in rows for x in row], dtype)


counts = st.sampled_from([0, 1, 1, 2, 3, 7, 15, 16, 17, 100])


@given(
    rows=st.lists(st.lists(counts, max_size=12), max_size=9),
    kind=st.sampled_from(["poisson", "multinomial"]),
    dtype=st.sampled_from([*INTEGERS, "f4", "f8"]),
    wide=st.booleans(),
)
def test_every_build_gives_the_factorials(tier, rows, kind, dtype, wide):
    indptr, data = csr(rows, dtype)
    indptr = indptr if wide else indptr.astype(np.int32)
    for implementation in (tier, "reference"):
        found = on(implementation, indptr, data, kind)
        assert found.shape == (len(rows),)
        np.testing.assert_allclose(found, by_hand(rows, kind), rtol=1e-12, atol=1e-12)


def test_fractions_large_numbers_and_long_rows(tier):
    rows = [[0.5, 2.25], [1023.0], [1024.0, 1e6], [2.0] * 1000, []]
    for implementation in (tier, "reference"):
        for kind in ("poisson", "multinomial"):
            np.testing.assert_allclose(on(implementation, *csr(rows, "f8"), kind), by_hand(rows, kind), rtol=1e-12)


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 40, 20_000))])
    data = rng.integers(0, 30, indptr[-1])
    found = log_base_csr(indptr, data, "multinomial", threads=1)
    for threads in (0, 2, 3):
        np.testing.assert_array_equal(log_base_csr(indptr, data, "multinomial", threads=threads), found)


def test_it_is_what_the_counts_add_up():
    rng = np.random.default_rng(1)
    indptr, indices = np.arange(0, 4001, 4), np.tile(np.arange(4), 1000)
    data = rng.integers(0, 50, 4000)
    for kind in ("poisson", "multinomial"):
        total = kernels.sum_csr(indptr, indices, data, 4, kind, None, 1)[2].sum()
        assert log_base_csr(indptr, data, kind).sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0])
def test_a_number_without_a_factorial_spoils_its_own_row_only(tier, bad):
    rows = [[1.0, 2.0], [3.0, bad, 1.0], [4.0]]
    for implementation in (tier, "reference"):
        found = on(implementation, *csr(rows, "f8"), "multinomial")
        assert np.isnan(found).tolist() == [False, True, False]


def test_rows_need_not_be_adjacent_nor_contiguous(tier):
    data = np.array([9, 9, 2, 3, 9, 1])
    np.testing.assert_allclose(np.exp(on(tier, np.array([2, 4, 6]), data, "multinomial")), [10, 10])
    strided = np.repeat(data, 2)[::2]
    np.testing.assert_allclose(np.exp(on(tier, np.array([2, 4, 6]), strided, "multinomial")), [10, 10])


@pytest.mark.parametrize("indptr", [[0, 3, 1], [-1, 2, 2], [0, 1, 9]])
def test_extents_outside_are_refused_alike(tier, indptr):
    said = []
    for implementation in (tier, "reference"):
        with pytest.raises(IndexError, match="expected a rising range within 0 to 2") as error:
            on(implementation, np.array(indptr), np.array([1, 2]), "poisson")
        said.append(str(error.value))
    assert said[0] == said[1]


def test_arguments_are_checked():
    indptr, data = np.array([0, 1]), np.array([1.0])
    with pytest.raises(ValueError, match="kind is 'binary', expected one of poisson, multinomial"):
        log_base_csr(indptr, data, "binary")
    with pytest.raises(ValueError, match="indptr is empty"):
        log_base_csr(indptr[:0], data, "poisson")
    with pytest.raises(TypeError, match="indptr"):
        log_base_csr(indptr.astype(float), data, "poisson")
    with pytest.raises(TypeError, match="data"):
        log_base_csr(indptr, data.astype(complex), "poisson")
    with pytest.raises(ValueError, match="threads"):
        log_base_csr(indptr, data, "poisson", threads=-1)
