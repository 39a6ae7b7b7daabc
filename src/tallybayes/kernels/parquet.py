"""The pages of Parquet files: numbers and labels that are there in every row, by the codes that a file has for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import AnyArray

__all__ = ["page_labels", "page_numbers", "reads_pages"]


def reads_pages() -> bool:
    """Whether pages can be read here: compiled kernels can. Where they cannot, Arrow reads whole files.

    Examples
    --------
    >>> from tallybayes.kernels.parquet import reads_pages
    >>> reads_pages() in (True, False)
    True
    """
    from tallybayes import kernels

    return hasattr(kernels._kernels, "page_numbers")


def page_numbers(pages: npt.NDArray[np.uint8], compressed: bool, optional: bool, n_bytes: int, out: AnyArray) -> bool:
    """Read the whole numbers of a column in one row group.

    Parameters
    ----------
    pages : uint8 array
        The bytes of the column, as they lie in the file: a dictionary, and pages of values.
    compressed : bool
        Whether pages are compressed by Snappy, or not at all.
    optional : bool
        Whether cells of the column could be missing. Those that are make it not understood.
    n_bytes : {4, 8}
        How long a number is in the file.
    out : array of whole numbers of shape (n,)
        Where they are written.

    Returns
    -------
    bool
        False where pages are of another kind, or broken: what was written then means nothing.

    Examples
    --------
    >>> import io, numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> from tallybayes.kernels.parquet import page_numbers, reads_pages
    >>> file, out = io.BytesIO(), np.zeros(3, np.int64)
    >>> pq.write_table(pa.table({"x": [3, 5, 3]}), file)
    >>> chunk = pq.read_metadata(file).row_group(0).column(0)
    >>> pages = np.frombuffer(file.getvalue(), np.uint8)[chunk.dictionary_page_offset :][: chunk.total_compressed_size]
    >>> if reads_pages():
    ...     assert page_numbers(pages, True, True, 8, out) and out.tolist() == [3, 5, 3]
    """
    return bool(_compiled().page_numbers(pages, compressed, optional, n_bytes, out))


def page_labels(
    pages: npt.NDArray[np.uint8], compressed: bool, optional: bool, out: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]] | None:
    """Read the codes of a column of strings in one row group, as `page_numbers` reads numbers.

    Returns
    -------
    (offsets, bytes), or None
        The strings by code: string k has ``bytes[offsets[k] : offsets[k + 1]]``. None where pages are not understood.
    """
    found: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]] | None = _compiled().page_labels(
        pages, compressed, optional, out
    )
    return found


def _compiled() -> Any:
    from tallybayes import kernels

    return kernels._kernels
