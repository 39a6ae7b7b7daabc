"""Tokenizing, counting and scoring of texts in one pass over the bytes (see `tallybayes.kernels.text.tokenizer`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import text_counts as _reference
from tallybayes.kernels.text.tokenizer import TokenRule
from tallybayes.kernels.text.word_index import WordIndex, check_hashing, check_texts

__all__ = [
    "TextCounts",
    "TextRows",
    "TokenRule",
    "WordIndex",
    "count_texts",
    "joined_texts",
    "score_texts",
    "text_rows",
]

_TERMS: _arguments.Types = frozenset({_arguments.FLOAT64})
_MAX_GROUPS = 64  # more groups are counted row by row and then summed, which needs less memory


class TextRows(NamedTuple):
    """Counts of the tokens of texts in CSR format, and the numbered words, or None."""

    indptr: Int64Array
    indices: AnyArray
    counts: AnyArray
    data: AnyArray | None
    offsets: Int64Array | None


class TextCounts(NamedTuple):
    """Counts of the tokens of texts in every group, and the numbered words, or None."""

    data: AnyArray | None
    offsets: Int64Array | None
    weight: Float64Array
    total: Float64Array
    log_base: Float64Array


def joined_texts(strings: list[Any], threads: int = 0) -> tuple[Int64Array, AnyArray] | None:
    """Concatenate strings in the layout that the functions of this module read.

    Parameters
    ----------
    strings : list
    threads : int

    Returns
    -------
    offsets, data : int64 array of shape (n + 1,) and uint8 array, or None
        None if an element is not a str, or contains a surrogate.

    Examples
    --------
    >>> from tallybayes.kernels.text.text_counts import joined_texts
    >>> [part.tolist() for part in joined_texts(["ab", "é"])]
    [[0, 2, 4], [97, 98, 195, 169]]
    """
    kernels = implementation_for(_reference)
    result: tuple[Int64Array, AnyArray] | None = kernels.joined_texts(strings, n_threads(threads))
    return result


def text_rows(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    *,
    hashing: int | None = None,
    vocabulary: WordIndex | None = None,
    threads: int = 0,
) -> TextRows:
    """Count the tokens of every text.

    Parameters
    ----------
    offsets, data, valid, skipped
        Strings in Arrow's layout; see `tallybayes.kernels.text.string_codes`. A missing string has no tokens.
    rule : TokenRule
    hashing : int, optional
        Hash tokens into ``2**hashing`` buckets.
    vocabulary : WordIndex, optional
        Count only these words. By default all words are counted, numbered in order of first occurrence.
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    TextRows
        indptr (int64), indices and counts (int32), with words in order of first occurrence in the row. data and
        offsets are the numbered words, in the layout of `WordIndex`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.text_counts import TokenRule, WordIndex, text_rows
    >>> rows = text_rows(np.array([0, 12, 17]), np.frombuffer(b"Win win now!A win", np.uint8), None, 0, TokenRule())
    >>> WordIndex(rows.data, rows.offsets).words()
    ['win', 'now', 'a']
    >>> rows.indptr.tolist(), rows.indices.tolist(), rows.counts.tolist()
    ([0, 2, 4], [0, 1, 2, 0], [2, 1, 1, 1])
    """
    check_texts(offsets, data, valid, skipped)
    bits, index = _word_numbers(hashing, vocabulary)
    kernels = implementation_for(_reference)
    return TextRows(*kernels.text_rows(offsets, data, valid, skipped, rule, bits, index, n_threads(threads)))


def count_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    *,
    presence: bool = False,
    hashing: int | None = None,
    threads: int = 0,
) -> TextCounts:
    """Count the tokens of the texts in every group: `text_rows` and `tallybayes.kernels.sum_csr` in one pass.

    Parameters
    ----------
    offsets, data, valid, skipped, rule, hashing, threads
        As in `text_rows`. Missing texts belong to no group.
    group, n_groups, weight
        See the conventions of `tallybayes.kernels`.
    presence : bool, default False
        Count the texts that contain a token instead of its occurrences.

    Returns
    -------
    TextCounts
        data and offsets are the words in the layout of `WordIndex`, in order of first occurrence in rows that belong to
        a group. weight (n_groups,) is the weight of the texts, total (n_groups, words) the counts. log_base (n_groups,)
        is Σw·(log N! − Σ log xⱼ!), or 0 with ``presence``.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.text_counts import TokenRule, count_texts
    >>> text = np.frombuffer(b"Win win now!A win", np.uint8)
    >>> counts = count_texts(np.array([0, 12, 17]), text, None, 0, TokenRule(), np.array([0, 1]), 2)
    >>> counts.total
    array([[2., 1., 0.],
           [1., 0., 1.]])
    """
    n_rows = check_texts(offsets, data, valid, skipped)
    _arguments.check_groups(group, n_groups, weight, n_rows)
    bits, _ = _word_numbers(hashing, None)
    kernels = implementation_for(_reference)
    few = n_groups <= _MAX_GROUPS and int(offsets[-1]) - int(offsets[0]) < 2**32  # the kernel counts in 32 bits
    if kernels is not _reference and weight is None and few:
        workers = n_threads(threads)
        return TextCounts(
            *kernels.count_texts(offsets, data, valid, skipped, rule, bits, group, n_groups, presence, workers)
        )
    return _reference.count_texts(offsets, data, valid, skipped, rule, bits, group, n_groups, weight, presence, threads)


def score_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    terms: Float64Array,
    *,
    vocabulary: WordIndex | None = None,
    hashing: int | None = None,
    presence: bool = False,
    threads: int = 0,
) -> Float64Array:
    """Sum the terms of the tokens of every text.

    Parameters
    ----------
    offsets, data, valid, skipped, rule, threads
        As in `text_rows`.
    terms : float64 array of shape (words, k)
        Terms of every word; may be −inf. Words that are not in the vocabulary are ignored.
    vocabulary : WordIndex, or hashing : int
        Assigns tokens to the rows of `terms`.
    presence : bool, default False
        Add the terms of every word once, regardless of its number of occurrences.

    Returns
    -------
    float64 array of shape (n, k)
        Sums in the order of the tokens.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.text_counts import TokenRule, WordIndex, score_texts
    >>> known = WordIndex(np.frombuffer(b"winnow", np.uint8), np.array([0, 3, 6]))
    >>> text = np.frombuffer(b"Win win now!A win", np.uint8)
    >>> terms = np.array([[1.0, 0.0], [-np.inf, 0.5]])
    >>> score_texts(np.array([0, 12, 17]), text, None, 0, TokenRule(), terms, vocabulary=known)
    array([[-inf,  0.5],
           [ 1. ,  0. ]])
    """
    check_texts(offsets, data, valid, skipped)
    bits, index = _word_numbers(hashing, vocabulary)
    if not bits and index is None:
        raise ValueError("neither vocabulary nor hashing is given, expected one that assigns tokens to rows of terms")
    _arguments.check_array(terms, "terms", 2, _TERMS)
    n_words = len(vocabulary) if vocabulary is not None else 1 << bits
    if len(terms) != n_words:
        raise ValueError(f"terms has {len(terms)} rows, expected one for each of {n_words} words")
    terms = _arguments.contiguous(terms)
    kernels = implementation_for(_reference)
    scores: Float64Array = kernels.score_texts(
        offsets, data, valid, skipped, rule, bits, index, terms, presence, n_threads(threads)
    )
    return scores


def _word_numbers(hashing: int | None, vocabulary: WordIndex | None) -> tuple[int, Any]:
    """Return the number of bits of a hash bucket or 0, and the index of a vocabulary or None."""
    if hashing is None:
        return 0, None if vocabulary is None else vocabulary.index
    if vocabulary is not None:
        raise ValueError("hashing and a vocabulary both number the words; pass only one of them")
    check_hashing(hashing)
    return hashing, None
