"""In which order the entries of sparse rows lie: by sets, whatever the build and the threads, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes import kernels
from tallybayes.kernels import active
from tallybayes.kernels.csr_order import row_order
from tallybayes.kernels.reference import sums as reference_sums

BUILDS = ["compiled", "reference"] if kernels.implementation() != "reference" else ["reference"]


@pytest.fixture(params=BUILDS)
def build(request, monkeypatch):
    if request.param == "reference":
        monkeypatch.setattr(active, "module", reference_sums)
    return request.param


def csr(rows: list[list[int]], pointer: str, index: str) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(pointer)
    return indptr, np.array([x for row in rows for x in row], index)


def by_sets(rows: list[list[int]]) -> str:
    if any(len(set(row)) < len(row) for row in rows):
        return "repeated"
    return "rising" if all(row == sorted(row) for row in rows) else "distinct"


TYPES = st.sampled_from(["i4", "i8"])
ROW = st.lists(st.integers(0, 130), max_size=6)
ROWS = st.lists(st.one_of(ROW, ROW.map(lambda row: sorted(set(row))), ROW.map(lambda row: list(dict.fromkeys(row)))))


@given(rows=ROWS, pointer=TYPES, index=TYPES)
def test_against_sets(rows, pointer, index):
    for implementation in (active.module, reference_sums):
        indptr, indices = csr(rows, pointer, index)
        assert implementation.row_order(indptr, indices, 131, 0) == by_sets(rows)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 70_000, 149_999])
@pytest.mark.parametrize("threads", [1, 3])
def test_one_odd_row_among_many(build, place, threads):
    indices = np.tile(np.arange(20, dtype=np.int32), 150_000).reshape(-1, 20)
    indptr = np.arange(0, indices.size + 1, 20)
    assert row_order(indptr, indices.ravel(), 20, threads) == "rising"
    indices[place, :2] = 1, 0
    assert row_order(indptr, indices.ravel(), 20, threads) == "distinct"
    indices[place, 5] = 17
    assert row_order(indptr, indices.ravel(), 20, threads) == "repeated"
    indices[place, 5] = 20
    with pytest.raises(IndexError, match=f"row {place} has column index 20, expected 0 to 19"):
        row_order(indptr, indices.ravel(), 20, threads)


def test_rows_that_point_outside(build):
    with pytest.raises(IndexError, match="row 1 has column index -1, expected 0 to 2"):
        row_order(np.array([0, 1, 3]), np.array([0, 2, -1]), 3)
    with pytest.raises(IndexError, match="row 0 the entries 0 to 9"):
        row_order(np.array([0, 9]), np.array([0, 2]), 3)
    with pytest.raises(IndexError, match="row 1 the entries 2 to 1"):
        row_order(np.array([0, 2, 1]), np.array([0, 2]), 3)
    with pytest.raises(ValueError, match="indptr is empty"):
        row_order(np.array([], int), np.array([0, 2]), 3)
    assert row_order(np.array([0, 0]), np.array([], int), 0) == "rising"


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("row", ["zero most least minus 3", "least most 3", "minus zero 3", "0 most minus", "3 least"])
def test_differences_that_overflow_hide_no_index(build, row, index):
    """Neighbors are compared by their difference, which has no sign of its own beyond the ends of the type."""
    named = {"least": np.iinfo(index).min, "most": np.iinfo(index).max, "minus": -1, "zero": 0}
    indices = np.array([named[word] if word in named else int(word) for word in row.split()], dtype=index)
    with pytest.raises(IndexError, match="row 0 has column index"):
        row_order(np.array([0, len(indices)]), indices, 4)
