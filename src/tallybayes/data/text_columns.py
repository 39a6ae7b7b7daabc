"""Text columns: strings with their word counts."""

from __future__ import annotations

from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.encoding import is_missing
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.text import Text
from tallybayes.kernels.text.text_counts import count_texts, joined_texts, score_texts, text_rows
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.factor import Name
from tallybayes.tally.vocabulary import NO_WORDS, Strings, Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.typing import Column

FEW_GROUPS = 64  # up to this number, words are counted by group during tokenization


class Texts:
    """A string column as a text family reads it: counted in its own words, or scored in the words of a vocabulary.

    Parameters
    ----------
    strings : Arrow array of strings or bytes, or (offsets, data)
        In the latter form, the start of every string and the bytes of all.
    family : Text
    name : name of the column
    vocabulary : Vocabulary, optional
        The words that are the columns of `sparse`; default the words that occur in the strings.
    places : ndarray of int, optional
        With hashed words, the positions of the columns that are kept; default all.
    """

    def __init__(
        self,
        strings: pa.Array | tuple[np.ndarray, np.ndarray],
        family: Text,
        name: Name,
        vocabulary: Vocabulary | None = None,
        places: np.ndarray | None = None,
    ) -> None:
        self._given = strings
        self.family = family
        self.name = name
        self.vocabulary = vocabulary
        self.places = places

    def __len__(self) -> int:
        return len(self._given[0]) - 1 if type(self._given) is tuple else len(self._given)

    def __getitem__(self, row: int) -> Any:
        """Return the text of one row, or None."""
        return self.strings[row].as_py()

    @cached_property
    def strings(self) -> Any:
        """The strings as an Arrow array."""
        if type(self._given) is not tuple:
            return self._given
        import pyarrow as pa

        return pa.LargeStringArray.from_buffers(len(self), *map(pa.py_buffer, self._given))

    @cached_property
    def _buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
        """The offsets of the strings, their bytes, the validity bitmap, and the number of bits to skip in it."""
        if type(self._given) is tuple:
            return (*self._given, None, 0)
        bits, ends, data = self.strings.buffers()
        width = np.dtype(np.int64 if str(self.strings.type).startswith("large") else np.int32)
        valid = np.frombuffer(bits, np.uint8) if bits is not None and self.strings.null_count else None
        if ends is None or not len(self):
            return np.zeros(len(self) + 1, width), NO_WORDS[0], None, 0
        offsets = np.frombuffer(ends, width, len(self) + 1, self.strings.offset * width.itemsize)
        return offsets, np.frombuffer(data or b"", np.uint8), valid, self.strings.offset

    @property
    def is_bound(self) -> bool:
        """Whether the columns are those of a model."""
        return self.vocabulary is not None or self.places is not None

    @property
    def missing(self) -> np.ndarray | None:
        """A boolean array that is True where the text is missing; None if none is."""
        if type(self._given) is tuple or not self.strings.null_count:
            return None
        return self.strings.is_null().to_numpy(zero_copy_only=False)

    @cached_property
    def _found(self) -> tuple[SparseRows, Vocabulary | None]:
        """The word counts of every row, and the vocabulary."""
        bits = self.family.hash_bits
        lookup = None if self.vocabulary is None else self.vocabulary.lookup
        indptr, indices, counts, *words = text_rows(*self._buffers, self.family.rule, hashing=bits, vocabulary=lookup)
        vocabulary = self.vocabulary or self._named(*words)
        width = 2**bits if vocabulary is None else len(vocabulary.levels)  # type: ignore[operator]
        if self.family.once:
            counts = np.ones_like(counts)
        absent = self.missing if self.family.family.accepts_missing else None
        rows = SparseRows(indptr, indices, counts, width, absent)
        return (rows if self.places is None else rows.take_columns(self.places)), vocabulary

    @property
    def n_words(self) -> int:
        """The number of words or hashes."""
        return self.sparse.n_columns

    @property
    def sparse(self) -> SparseRows:
        """The word counts of every row."""
        return self._found[0]

    def with_vocabulary(self, vocabulary: Vocabulary | None, places: np.ndarray | None = None) -> Texts:
        """Return the same strings, to be scored in the words of a vocabulary, or in some of the hash columns."""
        return Texts(self._given, self.family, self.name, vocabulary, places)

    def scores(self, terms: np.ndarray) -> np.ndarray | None:
        """Return the sum of the terms of its words for every row; None if the word counts are already computed.

        Parameters
        ----------
        terms : ndarray of shape (words, groups)
            The term of every word.

        Returns
        -------
        ndarray of shape (n, groups)
            Rows without text have the sum of no words.
        """
        if "_found" in vars(self) or self.places is not None:
            return None
        lookup = None if self.vocabulary is None else self.vocabulary.lookup
        how: Any = {"vocabulary": lookup, "hashing": self.family.hash_bits, "presence": self.family.once}
        return score_texts(*self._buffers, self.family.rule, terms, **how)

    def with_own_vocabulary(self) -> Texts:
        """Return the same strings bound to the words that occur in them; subsets of rows then have the same columns."""
        texts = self.with_vocabulary(
            self._found[1], np.arange(2**self.family.hash_bits) if self.family.hash_bits else None
        )
        texts.__dict__["_found"] = self._found
        return texts

    def rows(self, part: slice | np.ndarray) -> Texts:
        """Return some rows, by a slice or by their numbers."""
        if isinstance(part, slice):
            start, stop, _ = part.indices(len(self))
            strings = self.strings.slice(start, max(stop - start, 0))
        else:
            strings = self.strings.take(np.flatnonzero(part) if part.dtype == bool else part)
        texts = Texts(strings, self.family, self.name, self.vocabulary, self.places)
        if "_found" in vars(self) and self.is_bound:
            texts.__dict__["_found"] = self.sparse.rows(part), self.vocabulary
        return texts

    def count(
        self, group: np.ndarray | None, n_groups: int, weight: np.ndarray | None
    ) -> tuple[Statistics, Vocabulary | None]:
        """Return the statistics of the words by group, and the vocabulary.

        Rows without text count nothing. Groups and weights are as for `Family.collect`.
        """
        inner = self.family.family
        missing = self.missing
        if missing is not None and weight is not None and weight.ndim == 2:
            weight = np.where(missing[:, None], 0.0, weight)
        elif missing is not None:
            group = np.where(missing, -1, 0 if group is None else np.asarray(group, dtype=np.int64))
        kind = {"Multinomial": "multinomial", "Bernoulli": "binary"}.get(inner.statistics_key[0])
        fused = kind is not None and n_groups <= FEW_GROUPS and (weight is None or weight.ndim == 1)
        if not fused or self.family.binary:
            unbound = self.with_vocabulary(None) if self.is_bound else self
            rows, vocabulary = unbound._found
            return inner.collect(rows._replace(missing_rows=None), group, n_groups, weight), vocabulary
        once = kind == "binary"
        bits = self.family.hash_bits
        *words, rows_of, total, log_base = count_texts(
            *self._buffers, self.family.rule, group, n_groups, weight, presence=once, hashing=bits
        )
        totals = Totals(rows_of[:, None], total, log_base[:, None])
        return (totals.with_failures() if kind == "binary" else totals), self._named(*words)

    def _named(self, data: np.ndarray | None, offsets: np.ndarray | None) -> Vocabulary | None:
        """Return words as a vocabulary; None if they are hashed."""
        return None if data is None or offsets is None else Vocabulary(Strings(data, offsets), str(self.name))


class WordReader(NamedTuple):
    """The tokenization of a text column by a model, and the words or hash columns of the model."""

    family: Text
    vocabulary: Vocabulary | None = None
    places: np.ndarray | None = None

    def read(self, column: Column, name: Name) -> Texts:
        """Return a string column in the words of the model."""
        return read_texts(column, self.family, name).with_vocabulary(self.vocabulary, self.places)


def plain_texts(column: object, family: Text, name: Name) -> Texts | None:
    """Return the texts of a list of strings without conversion by Arrow; None for other columns."""
    if type(column) is not list or not column or type(column[0]) is not str:
        return None
    joined = joined_texts(column)
    return None if joined is None else Texts(joined, family, name)


def read_texts(column: Column, family: Text, name: Name) -> Texts:
    """Return a string column as a text family reads it; raise DataError for other columns."""
    if isinstance(column, Texts):
        return column if column.family is family else Texts(column._given, family, name)
    if (plain := plain_texts(column, family, name)) is not None:
        return plain
    import pyarrow as pa

    if hasattr(column, "iloc"):  # pandas
        column = pa.array(column)
    elif hasattr(column, "to_arrow"):
        column = column.to_arrow()
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise DataError.wrong_type(f"column {name!r}", f"{column.ndim} axes", "one column of text")
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else _as_arrow(column, name)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if isinstance(array, pa.ChunkedArray):
        array = _large(array).combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    kind = str(array.type)
    if kind == "null":
        array = array.cast(pa.string())
    elif kind in ("string_view", "binary_view"):
        array = array.cast(f"large_{kind.removesuffix('_view')}")
    elif kind not in ("string", "large_string", "binary", "large_binary"):
        raise DataError.wrong_type(f"column {name!r}", f"{kind} cells", "text", "Convert it: column.astype(str).")
    return Texts(array, family, name)


def _large(array: pa.ChunkedArray) -> Any:
    """Return chunks with 64-bit offsets if they have more than 1 GiB in total."""
    if array.nbytes < 2**30:
        return array
    return array.cast("large_binary" if "binary" in str(array.type) else "large_string")


def _as_arrow(column: Column, name: Name) -> Any:
    """Convert a list or array of strings to an Arrow array."""
    import pyarrow as pa

    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    types = set(map(type, values))
    if not types <= {str, NoneType}:  # the most frequent case
        for row, value in enumerate(values):
            if not is_missing(value) and not isinstance(value, str | bytes):
                raise DataError.bad_cell(value, row, name, Text.allowed_values)
        values = [None if is_missing(value) else value for value in values]
    try:
        return pa.array(values, pa.large_binary() if bytes in types else pa.large_string())
    except UnicodeError:
        cells = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in values]
        return pa.array(cells, pa.large_binary())
