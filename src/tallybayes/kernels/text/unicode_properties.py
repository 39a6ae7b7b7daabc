"""Properties of Unicode code points, of a fixed version of Unicode, for tokenization by both implementations."""

from __future__ import annotations

import base64
import zlib
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.text.unicode_table import PACKED, VERSION

__all__ = ["VERSION", "Unicode", "unicode"]

# Role of a code point in tokenization: the lowest three bits of its properties.
SEPARATOR, LETTER, DIGIT, MARK, LONE, PICTURE, JOINER, IGNORED = range(8)
# Bits: Python's \w and \s, and the properties that determine the lower case of a sigma.
WORD = 8
SPACE = 16
CASE_IGNORABLE = 32
CASED = 64


class Unicode(NamedTuple):
    """Two-stage table: ``blocks[block_of[code >> 8], code & 255]`` is the index of a code point's record.

    ``properties`` and ``lower`` (offset of the lower-case code point) are indexed by record. Every column of ``pairs``
    contains a letter, a mark and their composition, sorted.
    """

    properties: npt.NDArray[np.int32]
    lower: npt.NDArray[np.int32]
    block_of: npt.NDArray[np.uint8]
    blocks: npt.NDArray[np.uint8]
    pairs: npt.NDArray[np.uint32]

    def records(self) -> npt.NDArray[np.uint8]:
        """Return the index of every code point's record."""
        return self.blocks[self.block_of].ravel()


@cache
def unicode() -> Unicode:
    """Return the table, which is decompressed once.

    Examples
    --------
    >>> from tallybayes.kernels.text.unicode_properties import LETTER, unicode
    >>> table = unicode()
    >>> record = table.records()[ord("É")]
    >>> bool(table.properties[record] & 7 == LETTER), chr(ord("É") + table.lower[record])
    (True, 'é')
    """
    packed = zlib.decompress(base64.b85decode(PACKED))
    n_records, n_blocks, n_pairs = np.frombuffer(packed, "<u4", 3).tolist()
    starts = np.cumsum([12, 8 * n_records, 0x1100, 256 * n_blocks]).tolist()
    records = np.frombuffer(packed, "<i4", 2 * n_records, starts[0]).reshape(-1, 2).astype(np.int32)
    return Unicode(
        np.ascontiguousarray(records[:, 0]),
        np.ascontiguousarray(records[:, 1]),
        np.frombuffer(packed, np.uint8, 0x1100, starts[1]),
        np.frombuffer(packed, np.uint8, 256 * n_blocks, starts[2]).reshape(-1, 256),
        np.frombuffer(packed, "<u4", 3 * n_pairs, starts[3]).reshape(3, -1).astype(np.uint32),
    )
