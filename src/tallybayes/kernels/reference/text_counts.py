"""Text as counts, token by token in Python: what the compiled kernels are tested against and what runs without them."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import present_rows
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
_ODD = 0x9E3779B97F4A7C15
_WHOLE = 2**64 - 1


def joined_texts(strings: list[Any], threads: int) -> tuple[Int64Array, AnyArray] | None:
    """As `tallybayes.kernels.text.text_counts.joined_texts`."""
    if any(type(one) is not str for one in strings):
        return None
    try:
        parts = [one.encode() for one in strings]
    except UnicodeEncodeError:
        return None
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


def tokens(text: bytes, rule: TokenRule) -> list[bytes]:
    """Return the tokens of one text in order; see `tallybayes.kernels.text.tokenizer`."""
    characters = re.sub("[\udc80-\udcff]", "\ufffd", text.decode("utf-8", "surrogateescape"))
    if rule.lowercase:
        characters = lower(characters)
    own = rule.name == "words"
    if own:
        characters = composed(characters.translate(_ignored()))
    low, high = rule.ngram_range
    if rule.characters:
        blank = f"{_some(SPACE)}+" if own else f"{_some(SPACE)}{{2,}}"
        characters, units, between = re.sub(blank, " ", characters), [], ""
        units = list(characters)
    else:
        units = _words(characters) if own else re.findall(f"{_some(WORD)}{{2,}}", characters)
        between = " "
    found = [
        between.join(units[start : start + n])
        for n in range(low, min(high, len(units)) + 1)
        for start in range(len(units) - n + 1)
    ]
    return [token.encode("utf-8") for token in found]


def token_strings(text: bytes, rule: TokenRule) -> list[str]:
    """Return the same as strings."""
    return [token.decode("utf-8") for token in tokens(text, rule)]


def lower(text: str) -> str:
    """Do what `str.lower` does, by the table."""
    small = text.translate(_lower_case())
    if "Σ" not in text:
        return small.replace("İ", "i̇")
    properties, letters = _properties(), list(small)
    for place, letter in enumerate(text):
        if letter == "Σ":
            before, after = place - 1, place + 1
            while before >= 0 and properties[ord(text[before])] & CASE_IGNORABLE:
                before -= 1
            while after < len(text) and properties[ord(text[after])] & CASE_IGNORABLE:
                after += 1
            begins = before < 0 or not properties[ord(text[before])] & CASED
            ends = after == len(text) or not properties[ord(text[after])] & CASED
            letters[place] = "ς" if ends and not begins else "σ"
    return "".join(letters).replace("İ", "i̇")


def composed(text: str) -> str:
    """Write a letter and the mark behind it as one character, where there is one; syllables of Hangul too."""
    if text.isascii():
        return text
    pairs, out = _pairs(), list[str]()
    for letter in text:
        code, last = ord(letter), ord(out[-1]) if out else 0
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
    """The words of a text in small letters."""
    found = []
    for match in _pattern().finditer(text):
        word, run = match[1], match[2]
        if run is not None:
            units = re.findall(f"{_some(0, LONE)}{_some(0, MARK)}*", run)
            found += [one + other for one, other in pairwise(units)] or units
        else:
            found.append(match[0] if word is None else word.replace("’", "'"))
    return found


@cache
def _pattern() -> re.Pattern[str]:
    letter, mark = _some(0, LETTER), _some(0, MARK)
    run = f"{_some(0, LETTER, DIGIT)}{_some(0, LETTER, DIGIT, MARK)}*"
    joined = f"(?<={_some(0, LETTER, MARK)}){_some(0, JOINER)}(?={letter})"
    return re.compile(f"({run}(?:{joined}{run})*)|((?:{_some(0, LONE)}{mark}*)+)|{_some(0, PICTURE)}")


@cache
def _some(bits: int, *classes: int) -> str:
    """A set of characters for patterns: those of some classes, or with one of the bits."""
    properties = _properties()
    member = np.isin(properties & 7, classes) if classes else properties & bits != 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], member, [False]]))).reshape(-1, 2)
    return "[" + "".join(f"\\U{start:08x}-\\U{stop - 1:08x}" for start, stop in edges.tolist()) + "]"


@cache
def _properties() -> AnyArray:
    return unicode().properties[unicode().records()]


@cache
def _lower_case() -> dict[int, int]:
    distance = unicode().lower[unicode().records()]
    some = np.flatnonzero(distance)
    return dict(zip(some.tolist(), (some + distance[some]).tolist(), strict=True))


@cache
def _ignored() -> dict[int, None]:
    return dict.fromkeys(np.flatnonzero(_properties() & 7 == IGNORED).tolist())


@cache
def _pairs() -> dict[tuple[int, int], int]:
    first, second, whole = unicode().pairs.tolist()
    return dict(zip(zip(first, second, strict=True), whole, strict=True))


def bucket(word: bytes, hashing: int) -> int:
    """The bucket of one word."""
    total = len(word) * _ODD & _WHOLE
    for start in range(0, len(word), 8):
        total = (total ^ int.from_bytes(word[start : start + 8], "little")) * _ODD & _WHOLE
        total ^= total >> 32
    return (total * _ODD & _WHOLE) >> (64 - hashing)


def buckets(data: AnyArray, offsets: Int64Array, hashing: int) -> Int64Array:
    """The buckets of words."""
    return np.array([bucket(word, hashing) for word in _split(offsets, data, None, 0)], np.int64)


class Vocabulary:
    """Words and their positions, in a dictionary."""

    def __init__(self, data: AnyArray, offsets: Int64Array) -> None:
        self.positions_of: dict[bytes, int] = {}
        for place, word in enumerate(_split(offsets, data, None, 0)):
            if self.positions_of.setdefault(word, place) != place:
                raise ValueError(f"word {place} of the vocabulary occurred before, expected every word once")

    def positions(self, data: AnyArray, offsets: Int64Array) -> Int64Array:
        """Where the words of another vocabulary stand in this one; −1 for those that do not."""
        return np.array([self.positions_of.get(word, -1) for word in _split(offsets, data, None, 0)], np.int64)


def _split(offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int) -> list[bytes]:
    """The strings one by one; nothing where there is none."""
    n, whole = len(offsets) - 1, data.tobytes()
    there = _there(valid, skipped, n)
    starts, stops = offsets[:-1], offsets[1:]
    if (there & ((starts < 0) | (stops < starts) | (stops > len(data)))).any():
        raise IndexError("an offset leads out of the bytes")
    return [
        whole[start:stop] if some else b""
        for start, stop, some in zip(starts.tolist(), stops.tolist(), there.tolist(), strict=True)
    ]


def _there(valid: AnyArray | None, skipped: int, n: int) -> np.ndarray:
    """Which rows have a string."""
    if valid is None:
        return np.ones(n, dtype=bool)
    return np.unpackbits(valid, count=skipped + n, bitorder="little")[skipped:].astype(bool)


def _joined(words: list[bytes]) -> Words:
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return np.frombuffer(b"".join(words), np.uint8), offsets


def _numbers(
    texts: list[bytes], rule: TokenRule, hashing: int, vocabulary: Vocabulary | None
) -> tuple[list[list[int]], dict[bytes, int]]:
    """The position of every token of every text, and the words that were numbered as they came."""
    seen: dict[bytes, int] = {}
    rows = []
    for text in texts:
        found = tokens(text, rule)
        if hashing:
            rows.append([bucket(token, hashing) for token in found])
        elif vocabulary is not None:
            rows.append([vocabulary.positions_of[token] for token in found if token in vocabulary.positions_of])
        else:
            rows.append([seen.setdefault(token, len(seen)) for token in found])
    return rows, seen


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
    rows, seen = _numbers(_split(offsets, data, valid, skipped), rule, hashing, vocabulary)
    indptr, indices, counts = [0], list[int](), list[int]()
    for row in rows:
        times: dict[int, int] = {}
        for number in row:
            times[number] = times.get(number, 0) + 1
        indices += times.keys()
        counts += times.values()
        indptr.append(len(indices))
    words = (None, None) if hashing or vocabulary is not None else _joined(list(seen))
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
    """Add up the terms of the tokens of every text, one after another."""
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
    """Count the tokens of every text, then add up the rows of every group."""
    from tallybayes import kernels
    from tallybayes.kernels.text.text_counts import TextCounts, text_rows

    n = len(offsets) - 1
    there = _there(valid, skipped, n) & present_rows(group, n_groups, weight, n)
    marks = np.packbits(there, bitorder="little")  # so that the words are those of rows that count
    rows = text_rows(offsets, data, marks, 0, rule, hashing=hashing or None, threads=threads)
    n_words = 1 << hashing if rows.offsets is None else len(rows.offsets) - 1
    if weight is not None and weight.ndim == 2:
        weight = np.where(there[:, None], weight, 0.0)
    else:
        group = np.where(there, 0 if group is None else group.astype(np.int64), -1)
    counts = np.ones_like(rows.counts) if presence else rows.counts
    kind = "binary" if presence else "multinomial"
    sums = kernels.sum_csr(rows.indptr, rows.indices, counts, n_words, kind, group, n_groups, weight, threads)
    return TextCounts(rows.data, rows.offsets, sums[0][:, 0], sums[1], sums[2][:, 0])
