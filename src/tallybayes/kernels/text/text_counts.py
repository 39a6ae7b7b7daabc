"""Text as counts: tokenized, counted and scored in one pass over the bytes (`tallybayes.kernels.text.tokenizer`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference import text_counts as _reference_text
from tallybayes.kernels.text.tokenizer import TokenRule, implementation
from tallybayes.kernels.text.word_index import WordIndex, check_hashing, check_texts
from tallybayes.kernels.threads import threads as n_threads

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
_MOST_GROUPS = 64  # whose counts lie side by side for every word; for more, rows are made and added up


class TextRows(NamedTuple):
    """The tokens of texts, counted in compressed rows; the words that were numbered as they came, or None."""

    indptr: Int64Array
    indices: AnyArray
    counts: AnyArray
    data: AnyArray | None
    offsets: Int64Array | None


class TextCounts(NamedTuple):
    """The tokens of texts, counted in every group; the words that were numbered as they came, or None."""

    data: AnyArray | None
    offsets: Int64Array | None
    weight: Float64Array
    total: Float64Array
    log_base: Float64Array


def joined_texts(strings: list[Any], threads: int = 0) -> tuple[Int64Array, AnyArray] | None:
    """Put strings one after the other, as the functions here take them.

    Parameters
    ----------
    strings : list
    threads : int

    Returns
    -------
    offsets, data : int64 array of shape (n + 1,) and uint8 array, or None
        None where something else than a str is among them, or one has half a character.

    Examples
    --------
    >>> from tallybayes.kernels.text.text_counts import joined_texts
    >>> [part.tolist() for part in joined_texts(["ab", "é"])]
    [[0, 2, 4], [97, 98, 195, 169]]
    """
    found: tuple[Int64Array, AnyArray] | None = implementation().joined_texts(strings, n_threads(threads))
    return found


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
        Strings as Arrow has them; see `tallybayes.kernels.text.string_codes`. A missing one has no tokens.
    rule : Rule
    hashing : int, optional
        Tokens fall into ``2**hashing`` buckets.
    vocabulary : Vocabulary, optional
        Only its words are counted. Without both, words are numbered in the order in which they first occur.
    threads : int, default 0
        The result is the same for every number of threads.

    Returns
    -------
    TextRows
        indptr (int64), indices and counts (int32): in a row every word once, in the order in which they first occur
        there. data and offsets: the words that were numbered, as `WordIndex` takes them.

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
    bits, index = _destination(hashing, vocabulary)
    found = implementation().text_rows(offsets, data, valid, skipped, rule, bits, index, n_threads(threads))
    return TextRows(*found)


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
    """Count the tokens of the texts of every group: `text_rows` and `tallybayes.kernels.sum_csr` in one.

    Parameters
    ----------
    offsets, data, valid, skipped, rule, hashing, threads
        As `text_rows` takes them. Missing texts are rows of no group.
    group, n_groups, weight
        See the conventions of `tallybayes.kernels`.
    presence : bool, default False
        Count the texts that have a token, not how often they have it.

    Returns
    -------
    TextCounts
        data and offsets: the words, as `WordIndex` takes them, in the order in which they first occur in rows that
        belong to a group. weight (n_groups,): of the texts. total (n_groups, words). log_base (n_groups,):
        Σw·(log N! − Σ log xⱼ!), or 0 under ``presence``.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.text.text_counts import TokenRule, count_texts
    >>> text = np.frombuffer(b"Win win now!A win", np.uint8)
    >>> found = count_texts(np.array([0, 12, 17]), text, None, 0, TokenRule(), np.array([0, 1]), 2)
    >>> found.total
    array([[2., 1., 0.],
           [1., 0., 1.]])
    """
    n_rows = check_texts(offsets, data, valid, skipped)
    _arguments.check_groups(group, n_groups, weight, n_rows)
    bits, _ = _destination(hashing, None)
    work = implementation()
    few = n_groups <= _MOST_GROUPS and int(offsets[-1]) - int(offsets[0]) < 2**32  # counts are kept in 32 bits
    if work is not _reference_text and weight is None and few:
        some = (offsets, data, valid, skipped, rule, bits, group, n_groups, presence, n_threads(threads))
        return TextCounts(*work.count_texts(*some))
    return _reference_text.count_texts(
        offsets, data, valid, skipped, rule, bits, group, n_groups, weight, presence, threads
    )


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
    """Add up the terms of the tokens of every text.

    Parameters
    ----------
    offsets, data, valid, skipped, rule, threads
        As `text_rows` takes them.
    terms : float64 array of shape (words, k)
        What a token adds; −inf stays −inf. Words that are not in the vocabulary add nothing.
    vocabulary : Vocabulary, or hashing : int
        Which row of the terms is a token's.
    presence : bool, default False
        Every word once, however often it occurs.

    Returns
    -------
    float64 array of shape (n, k)
        Added in the order of the tokens.

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
    bits, index = _destination(hashing, vocabulary)
    if not bits and index is None:
        raise ValueError("expected a vocabulary or hashing, for terms are by word or by bucket")
    _arguments.check_array(terms, "terms", 2, _TERMS)
    n_words = len(vocabulary) if vocabulary is not None else 1 << bits
    if len(terms) != n_words:
        raise ValueError(f"terms has {len(terms)} rows, expected one for each of {n_words} words")
    terms = _arguments.contiguous(terms)
    threads = n_threads(threads)
    scores: Float64Array = implementation().score_texts(
        offsets, data, valid, skipped, rule, bits, index, terms, presence, threads
    )
    return scores


def _destination(hashing: int | None, vocabulary: WordIndex | None) -> tuple[int, Any]:
    """Where tokens go: the bits of a bucket or 0, and the index of a vocabulary or None."""
    if hashing is None:
        return 0, None if vocabulary is None else vocabulary._index
    if vocabulary is not None:
        raise ValueError("hashing and a vocabulary both number the words; pass only one of them")
    check_hashing(hashing)
    return hashing, None
