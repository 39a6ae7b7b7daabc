"""Strings as codes: the kernel against Arrow's hashing, and against a dictionary of Python's."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tallybayes.kernels import active
from tallybayes.kernels.reference import sums as reference_sums
from tallybayes.kernels.text.string_codes import distinct_strings

CELLS = {
    "short": ["", "a", "b", "ab", "abcdefg", "abcdefgh", "a\0", "\0", "é"],
    "long": ["abcdefgh" + tail for tail in ("", "i", "j", "ij", "abcdefgh", "abcdefghi")] + ["x" * 100, "x" * 99 + "y"],
    "many": [f"{k}" for k in range(5000)],
    "many and long": [f"a label with number {k}" for k in range(5000)],
}


@pytest.fixture(params=["compiled", "reference"])
def encode(request, monkeypatch) -> Any:
    if request.param == "reference":
        monkeypatch.setattr(active, "module", reference_sums)
    elif active.module is reference_sums:
        pytest.skip("nothing was compiled")

    def encode(offsets, data, valid=None, skipped=0):
        codes = np.full(max(0, len(offsets) - 1), 77, np.int32)
        return codes, distinct_strings(offsets, data, valid, skipped, codes)

    return encode


def _parts(cells: list[str | None], kind: pa.DataType) -> tuple[Any, ...]:
    array = pa.array(cells, kind)
    bits, ends, data = array.buffers()
    width = np.int64 if kind == pa.large_string() else np.int32
    valid = None if bits is None else np.frombuffer(bits, np.uint8)
    exact = np.frombuffer(data or b"", np.uint8)[: array.offset + sum(len((cell or "").encode()) for cell in cells)]
    return np.frombuffer(ends, width)[: len(cells) + 1], exact, valid


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("which", CELLS)
def test_strings_are_numbered_as_they_come(which, kind, missing, encode):
    rng = np.random.default_rng(1)
    cells = [*CELLS[which], *rng.choice(np.array(CELLS[which], dtype=object), 20_000)]
    cells = [None if missing and k % 7 == 0 else cell for k, cell in enumerate(cells)]
    offsets, data, valid = _parts(cells, kind)
    known: dict[str, int] = {}
    expected = [-1 if cell is None else known.setdefault(cell, len(known)) for cell in cells]
    codes, first = encode(offsets, data, valid)
    assert codes.dtype == np.int32
    assert codes.tolist() == expected
    assert [cells[row] for row in first] == list(known)
    assert first.tolist() == [expected.index(k) for k in range(len(known))]
    codes, first = encode(offsets[5:], data, valid, 5)  # a slice
    again: dict[str, int] = {}
    assert codes.tolist() == [-1 if cell is None else again.setdefault(cell, len(again)) for cell in cells[5:]]


def test_no_strings(encode):
    for rows in (0, 3):
        codes, first = encode(np.zeros(rows + 1, np.int32), np.zeros(0, np.uint8))
        assert codes.tolist() == [0] * rows
        assert first.tolist() == [0][:rows]
    codes, first = encode(np.zeros(4, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.uint8))
    assert codes.tolist() == [-1] * 3
    assert len(first) == 0


def test_offsets_that_lead_out_of_the_bytes(encode):
    data = np.frombuffer(b"abcdef", np.uint8)
    for wrong in ([0, 7], [-1, 2], [3, 2], [0, 2, 9]):
        for width in (np.int32, np.int64):
            with pytest.raises(IndexError, match="an offset leads out of the bytes"):
                encode(np.array(wrong, width), data)


def test_arguments_that_do_not_fit(encode):
    data = np.frombuffer(b"abcdef", np.uint8)
    for offsets in (np.zeros(2), np.zeros((2, 2), np.int32), np.zeros(0, np.int32)):
        with pytest.raises(ValueError, match="offsets is"):
            encode(offsets, data)
    with pytest.raises(ValueError, match="too few bits"):
        encode(np.zeros(10, np.int32), data, np.zeros(1, np.uint8))
    for codes in (np.zeros(2, np.int32), np.zeros(1, np.int64), np.zeros((1, 1), np.int32)):
        with pytest.raises(ValueError, match=r"codes is .* expected contiguous int32 for 1 rows"):
            distinct_strings(np.zeros(2, np.int32), data, None, 0, codes)
    with pytest.raises(ValueError, match="too few bits"):
        encode(np.zeros(2, np.int32), data, np.zeros(1, np.uint8), 8)
