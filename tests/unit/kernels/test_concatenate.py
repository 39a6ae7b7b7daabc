"""Arrays laid end to end: as NumPy does it, whatever they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallybayes.kernels import active
from tallybayes.kernels.concatenate import join_arrays
from tallybayes.kernels.reference import sums as reference_sums
from tests.unit.kernels.kernel_cases import needs_compiled

BIG = np.arange(-70_000, 70_000)


def both(parts: list[Any], **options: Any) -> list[Any]:
    """What the compiled kernels and the reference say."""
    before, found = active.module, []
    for which in (before, reference_sums):
        active.module = which
        try:
            found.append(join_arrays(parts, **options))
        finally:
            active.module = before
    return found


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)], ids=["values", "rows", "blocks"])
@pytest.mark.parametrize("shorter", [False, True])
def test_as_numpy_does(dtype: str, shape: tuple[int, ...], shorter: bool) -> None:
    rng = np.random.default_rng(1)
    lengths = [0, 3, 1, 0, 50, 7]
    parts = [rng.integers(0, 100, (n, *shape)).astype(dtype) for n in lengths]
    for joined, found in both(parts, shorter=shorter):
        np.testing.assert_array_equal(joined, np.concatenate(parts))
        assert joined.dtype == (np.int16 if shorter and dtype in ("i4", "i8") else np.dtype(dtype))
        assert found.tolist() == lengths


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_bytes_on_several_threads(threads: int) -> None:
    rng = np.random.default_rng(2)
    lengths = rng.integers(0, 3000, 3000)
    parts = [rng.integers(-9, 9, n) for n in lengths]
    for shorter in (False, True):
        joined, found = join_arrays(parts, shorter=shorter, threads=threads)
        np.testing.assert_array_equal(joined, np.concatenate(parts))
        np.testing.assert_array_equal(found, lengths)
    parts[1700] = np.array([1 << 40])
    joined, _ = join_arrays(parts, shorter=True, threads=threads)
    assert joined.dtype == np.int64
    np.testing.assert_array_equal(joined, np.concatenate(parts))


@pytest.mark.parametrize("value", [-32769, -32768, 32767, 32768])
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_numbers_are_shortened_where_all_fit(value: int, dtype: str) -> None:
    parts = [np.zeros(3, dtype), np.array([value], dtype)]
    for joined, _ in both(parts, shorter=True):
        assert joined.tolist() == [0, 0, 0, value]
        assert (joined.dtype == np.int16) == (-32768 <= value <= 32767)


@pytest.mark.parametrize(
    "parts",
    [
        [BIG[::2], BIG[::-3]],
        [np.asfortranarray(BIG.reshape(-1, 2)), BIG.reshape(-1, 2)],
        [BIG.reshape(-1, 2)[:, :1], BIG[:1, None]],
        [np.broadcast_to(np.int64(7), 5), BIG[:2]],
        [np.zeros(0), BIG[:4]],
        [np.zeros((0, 9)), np.zeros((2, 2)), np.zeros((0, 5))],
        [np.frombuffer(b"x" * 17, np.uint8)[1:].view(np.int64), BIG[:1]],
    ],
    ids=["strides", "Fortran's", "column", "repeated", "an empty one", "empty ones", "unaligned"],
)
def test_any_layout(parts: list[np.ndarray]) -> None:
    some = [part for part in parts if len(part)]
    for joined, lengths in both(parts):
        np.testing.assert_array_equal(joined, np.concatenate(some))
        assert joined.dtype == some[0].dtype
        assert lengths.tolist() == [len(part) for part in parts]


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [np.zeros(0), np.zeros(0)],
        [np.zeros(2), [1.0]],
        [[1.0], np.zeros(2)],
        [np.zeros(2), None],
        [np.zeros(2), np.array(1.0)],
        [np.array(1.0), np.zeros(2)],
        [np.zeros(2), np.zeros(2, np.float32)],
        [np.zeros(2), np.zeros((2, 1))],
        [np.zeros((2, 2)), np.zeros((2, 3))],
        [np.zeros(2, object), np.zeros(2, object)],
        [np.zeros(2, "U3"), np.zeros(2, "U3")],
        [np.zeros(2, ">i4"), np.zeros(2, ">i4")],
        [np.zeros(2), np.ma.masked_array(np.zeros(2), [True, False])],
        [np.zeros(2), "no"],
    ],
    ids=lambda parts: " and ".join(getattr(part, "dtype", part).__str__() for part in parts) or "nothing",
)
def test_what_is_not_alike_is_left_to_others(parts: list[Any]) -> None:
    assert both(parts) == [None, None]


@needs_compiled
def test_slices_of_one_array_are_read_where_they_are() -> None:
    whole = np.arange(24.0).reshape(12, 2)
    whole.flags.writeable = False
    slices = [whole[:3], whole[3:3], whole[3:8], np.zeros((0, 2)), whole[8:]]
    joined, lengths = join_arrays(slices)
    assert np.shares_memory(joined, whole)
    assert not joined.flags.writeable
    np.testing.assert_array_equal(joined, whole)
    assert lengths.tolist() == [3, 0, 5, 0, 4]
    for other in ([whole[:3], whole[4:]], [whole[3:], whole[:3]], [whole[:3], whole[:3]]):
        joined, _ = join_arrays(other)
        np.testing.assert_array_equal(joined, np.concatenate(other))
        assert not np.shares_memory(joined, whole)


def test_arrays_that_are_read_in_place_are_kept() -> None:
    joined, _ = join_arrays(np.split(np.arange(1_000_000), 1000), shorter=True)
    np.testing.assert_array_equal(joined, np.arange(1_000_000))  # their array has no other name


def test_many_bytes_are_left_apart() -> None:
    parts = [np.ones((2, 3)), np.zeros((0, 3)), np.ones((1, 3))]
    for joined, lengths in both(parts, at_most=71):
        assert joined is None
        assert lengths.tolist() == [2, 0, 1]
    for joined, _ in both(parts, at_most=72):
        np.testing.assert_array_equal(joined, np.ones((3, 3)))
