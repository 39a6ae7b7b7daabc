"""Tokenizing, counting and scoring of texts in Python, token by token."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import present_rows
from tallybayes.kernels.reference.string_codes import present_strings
from tallybayes.kernels.text.unicode_properties import (
    CASE_IGNORABLE,
    CASED,
    DIGIT,
    IGNORED,
    JOINER,
    LETTER,
    LONE,
    MARK,
    PICTURE,
    SPACE,
    WORD,
    unicode,
)

if TYPE_CHECKING:
    from tallybayes.kernels.text.text_counts import TextCounts
    from tallybayes.kernels.text.tokenizer import TokenRule

Words = tuple[AnyArray, Int64Array]
Rows = tuple[Int64Array, AnyArray, AnyArray, AnyArray | None, Int64Array | None]
_MULTIPLIER = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def joined_texts(strings: list[Any], threads: int) -> tuple[Int64Array, AnyArray] | None:
    """Concatenate strings; see `tallybayes.kernels.text.text_counts.joined_texts`."""
    if any(type(string) is not str for string in strings):
        return None
    try:
        data, offsets = _joined([string.encode() for string in strings])
    except UnicodeEncodeError:
        return None
    return offsets, data


def tokens(text: bytes, rule: TokenRule) -> list[bytes]:
    """Return the tokens of a text in order; see `tallybayes.kernels.text.tokenizer`."""
    characters = re.sub("[\udc80-\udcff]", "\ufffd", text.decode("utf-8", "surrogateescape"))
    if rule.lowercase:
        characters = lower(characters)
    is_words = rule.name == "words"
    if is_words:
        characters = composed(characters.translate(_ignored()))
    low, high = rule.ngram_range
    if rule.characters:
        blank = f"{_set(SPACE)}+" if is_words else f"{_set(SPACE)}{{2,}}"
        units = list(re.sub(blank, " ", characters))
    else:
        units = _words(characters) if is_words else re.findall(f"{_set(WORD)}{{2,}}", characters)
    separator = "" if rule.characters else " "
    ngrams = [
        separator.join(units[start : start + n])
        for n in range(low, min(high, len(units)) + 1)
        for start in range(len(units) - n + 1)
    ]
    return [ngram.encode("utf-8") for ngram in ngrams]


def token_strings(text: bytes, rule: TokenRule) -> list[str]:
    """Return the tokens of a text as strings."""
    return [token.decode("utf-8") for token in tokens(text, rule)]


def lower(text: str) -> str:
    """Convert to lower case as `str.lower` does, by the table of a fixed version of Unicode."""
    lowered = text.translate(_lower_case())
    if "Σ" not in text:
        return lowered.replace("İ", "i̇")
    properties = _properties()
    letters = list(lowered)
    for position, letter in enumerate(text):
        if letter == "Σ":  # a final sigma has another lower-case form
            before = position - 1
            after = position + 1
            while before >= 0 and properties[ord(text[before])] & CASE_IGNORABLE:
                before -= 1
            while after < len(text) and properties[ord(text[after])] & CASE_IGNORABLE:
                after += 1
            begins = before < 0 or not properties[ord(text[before])] & CASED
            ends = after == len(text) or not properties[ord(text[after])] & CASED
            letters[position] = "ς" if ends and not begins else "σ"
    return "".join(letters).replace("İ", "i̇")


def composed(text: str) -> str:
    """Compose letters with following marks, and Hangul syllables, as in Unicode's normalization form C."""
    if text.isascii():
        return text
    pairs = _pairs()
    out: list[str] = []
    for letter in text:
        code = ord(letter)
        last = ord(out[-1]) if out else 0
        if (last, code) in pairs:
            out[-1] = chr(pairs[last, code])
        elif 0x1161 <= code <= 0x1175 and 0x1100 <= last <= 0x1112:
            out[-1] = chr(0xAC00 + ((last - 0x1100) * 21 + code - 0x1161) * 28)
        elif 0x11A8 <= code <= 0x11C2 and 0xAC00 <= last <= 0xD7A3 and (last - 0xAC00) % 28 == 0:
            out[-1] = chr(last + code - 0x11A7)
        else:
            out.append(letter)
    return "".join(out)


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    words = []
    for match in _pattern().finditer(text):
        word = match[1]
        run = match[2]
        if run is not None:  # a script without spaces: pairs of adjacent characters
            units = re.findall(f"{_set(0, LONE)}{_set(0, MARK)}*", run)
            words += [left + right for left, right in pairwise(units)] or units
        else:
            words.append(match[0] if word is None else word.replace("’", "'"))
    return words


@cache
def _pattern() -> re.Pattern[str]:
    """Return the regular expression of words (group 1), runs of scripts without spaces (group 2) and emoji."""
    letter = _set(0, LETTER)
    run = f"{_set(0, LETTER, DIGIT)}{_set(0, LETTER, DIGIT, MARK)}*"
    joined = f"(?<={_set(0, LETTER, MARK)}){_set(0, JOINER)}(?={letter})"
    return re.compile(f"({run}(?:{joined}{run})*)|((?:{_set(0, LONE)}{_set(0, MARK)}*)+)|{_set(0, PICTURE)}")


@cache
def _set(bits: int, *classes: int) -> str:
    """Return a character set of a regular expression: of the given classes, or with one of the bits."""
    properties = _properties()
    member = np.isin(properties & 7, classes) if classes else properties & bits != 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], member, [False]]))).reshape(-1, 2)
    return "[" + "".join(f"\\U{start:08x}-\\U{stop - 1:08x}" for start, stop in edges.tolist()) + "]"


@cache
def _properties() -> AnyArray:
    """Return the properties of every code point."""
    return unicode().properties[unicode().records()]


@cache
def _lower_case() -> dict[int, int]:
    """Return the lower-case code points of all that have one."""
    offset = unicode().lower[unicode().records()]
    codes = np.flatnonzero(offset)
    return dict(zip(codes.tolist(), (codes + offset[codes]).tolist(), strict=True))


@cache
def _ignored() -> dict[int, None]:
    """Return the invisible code points, as a translation table that removes them."""
    return dict.fromkeys(np.flatnonzero(_properties() & 7 == IGNORED).tolist())


@cache
def _pairs() -> dict[tuple[int, int], int]:
    """Return the composition of every letter and mark that have one."""
    first, second, composition = unicode().pairs.tolist()
    return dict(zip(zip(first, second, strict=True), composition, strict=True))


def bucket(word: bytes, hashing: int) -> int:
    """Return the hash bucket of a word."""
    total = len(word) * _MULTIPLIER & _MASK
    for start in range(0, len(word), 8):
        total = (total ^ int.from_bytes(word[start : start + 8], "little")) * _MULTIPLIER & _MASK
        total ^= total >> 32
    return (total * _MULTIPLIER & _MASK) >> (64 - hashing)


def buckets(data: AnyArray, offsets: Int64Array, hashing: int) -> Int64Array:
    """Return the hash buckets of words."""
    return np.array([bucket(word, hashing) for word in _split(offsets, data, None, 0)], np.int64)


class Vocabulary:
    """Words and their positions in a dictionary."""

    def __init__(self, data: AnyArray, offsets: Int64Array) -> None:
        self.positions_of: dict[bytes, int] = {}
        for position, word in enumerate(_split(offsets, data, None, 0)):
            if self.positions_of.setdefault(word, position) != position:
                raise ValueError(f"word {position} of the vocabulary occurred before, expected every word once")

    def positions(self, data: AnyArray, offsets: Int64Array) -> Int64Array:
        """Return the positions of other words in this vocabulary, −1 for unknown words."""
        return np.array([self.positions_of.get(word, -1) for word in _split(offsets, data, None, 0)], np.int64)


def _split(offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int) -> list[bytes]:
    """Return the strings, b"" for missing ones."""
    buffer = data.tobytes()
    present = present_strings(valid, skipped, len(offsets) - 1)
    starts = offsets[:-1]
    stops = offsets[1:]
    if (present & ((starts < 0) | (stops < starts) | (stops > len(data)))).any():
        raise IndexError("an offset leads out of the bytes")
    return [
        buffer[start:stop] if mask else b""
        for start, stop, mask in zip(starts.tolist(), stops.tolist(), present.tolist(), strict=True)
    ]


def _joined(words: list[bytes]) -> Words:
    """Return the concatenated strings and their offsets."""
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return np.frombuffer(b"".join(words), np.uint8), offsets


def _numbers(
    texts: list[bytes], rule: TokenRule, hashing: int, vocabulary: Vocabulary | None
) -> tuple[list[list[int]], dict[bytes, int]]:
    """Return the number of every token of every text, and the words that were numbered by first occurrence."""
    numbers: dict[bytes, int] = {}
    rows = []
    for text in texts:
        row = tokens(text, rule)
        if hashing:
            rows.append([bucket(token, hashing) for token in row])
        elif vocabulary is not None:
            rows.append([vocabulary.positions_of[token] for token in row if token in vocabulary.positions_of])
        else:
            rows.append([numbers.setdefault(token, len(numbers)) for token in row])
    return rows, numbers


def text_rows(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    vocabulary: Vocabulary | None,
    threads: int,
) -> Rows:
    """Count the tokens of every text."""
    rows, numbers = _numbers(_split(offsets, data, valid, skipped), rule, hashing, vocabulary)
    indptr = [0]
    indices: list[int] = []
    counts: list[int] = []
    for row in rows:
        row_counts = Counter(row)
        indices += row_counts.keys()
        counts += row_counts.values()
        indptr.append(len(indices))
    words = (None, None) if hashing or vocabulary is not None else _joined(list(numbers))
    return np.array(indptr, np.int64), np.array(indices, np.int32), np.array(counts, np.int32), *words


def score_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    vocabulary: Vocabulary | None,
    terms: Float64Array,
    presence: bool,
    threads: int,
) -> Float64Array:
    """Sum the terms of the tokens of every text in order."""
    rows, _ = _numbers(_split(offsets, data, valid, skipped), rule, hashing, vocabulary)
    out = np.zeros((len(rows), terms.shape[1]))
    for row, numbers in enumerate(rows):
        for number in dict.fromkeys(numbers) if presence else numbers:
            out[row] += terms[number]
    return out


def count_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    presence: bool,
    threads: int,
) -> TextCounts:
    """Count the tokens of every text, then sum the rows of every group."""
    from tallybayes import kernels
    from tallybayes.kernels.text.text_counts import TextCounts, text_rows

    n = len(offsets) - 1
    counted = present_strings(valid, skipped, n) & present_rows(group, n_groups, weight, n)
    bits = np.packbits(counted, bitorder="little")  # only words of counted rows are numbered
    rows = text_rows(offsets, data, bits, 0, rule, hashing=hashing or None, threads=threads)
    n_words = 1 << hashing if rows.offsets is None else len(rows.offsets) - 1
    if weight is not None and weight.ndim == 2:
        weight = np.where(counted[:, None], weight, 0.0)
    else:
        group = np.where(counted, 0 if group is None else group.astype(np.int64), -1)
    counts = np.ones_like(rows.counts) if presence else rows.counts
    kind = "binary" if presence else "multinomial"
    sums = kernels.sum_csr(rows.indptr, rows.indices, counts, n_words, kind, group, n_groups, weight, threads)
    return TextCounts(rows.data, rows.offsets, sums[0][:, 0], sums[1], sums[2][:, 0])
