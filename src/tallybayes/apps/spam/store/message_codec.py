"""Messages as arrays: words are numbered, and word ids are packed into few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.apps.spam.store.backends import storable

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailWords

Ids = np.ndarray[Any, np.dtype[np.int64]]
Indices = np.ndarray[Any, np.dtype[np.int32]]


class Message(NamedTuple):
    """Mail to learn: its content id and its tokens."""

    id: bytes
    tokens: Sequence[str]


class Batch(NamedTuple):
    """Batch of mails: content ids, distinct words (`words_to_bytes`), and the words of each mail by index."""

    ids: list[bytes]
    words: bytes
    tokens: Indices
    lengths: Ids


def words_to_bytes(words: Sequence[str]) -> bytes:
    r"""Encode words in UTF-8, each followed by a zero byte.

    Examples
    --------
    >>> words_to_bytes(["win", "now"]), words_from_bytes(b"win\0now\0")
    (b'win\x00now\x00', ['win', 'now'])
    """
    return "\0".join([*storable(list(words)), ""]).encode()


def words_from_bytes(sent: bytes) -> list[str]:
    """Decode words from bytes."""
    return sent.decode().split("\0")[:-1]


class WordNumbers(dict[str, int]):
    """Words numbered by first occurrence: Python reference of the kernel `MailWords`."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number

    def places(self, words: bytes) -> Indices:
        """Return the numbers of words. New words get the next numbers."""
        return np.array([self[word] for word in words_from_bytes(words)], np.int32)

    def in_order(self, numbers: Indices) -> tuple[Indices, list[str]]:
        """Return the numbers sorted alphabetically by word, and the words."""
        names = list(self)
        words = sorted([names[number] for number in numbers.tolist()])
        return np.array([self[word] for word in words], np.int32), words

    def starts(self) -> tuple[list[str], Indices]:
        """Return the distinct prefixes of words, up to a colon or empty, and the prefix of each word."""
        prefixes = WordNumbers()
        numbers = [prefixes[word[: word.find(":") + 1]] for word in self]
        return list(prefixes), np.array(numbers, np.int32)


class WordIdTable:
    """Cached ids of words in a store."""

    def __init__(self) -> None:
        from tallybayes.apps.spam.tokens.token_kernel import mail_words

        compiled = mail_words()
        self._words: MailWords | WordNumbers = WordNumbers() if compiled is None else compiled
        self._ids: Ids = np.zeros(0, np.int64)  # by word number; 0 if unknown

    def places(self, words: bytes) -> Indices:
        """Return the numbers of words. New words have no id yet."""
        numbers = self._words.places(words)
        if len(self._words) > len(self._ids):
            self._ids = np.pad(self._ids, (0, len(self._words)))
        return numbers

    def of(self, numbers: Indices) -> Ids:
        """Return the ids of words by number."""
        return self._ids[numbers]

    def missing(self, batches: Sequence[Indices]) -> Indices:
        """Return the distinct numbers of words without an id."""
        wanted = np.zeros(len(self._ids), bool)
        for batch in batches:
            wanted[batch] = True
        return np.flatnonzero(wanted & (self._ids == 0)).astype(np.int32)

    def prefixes(self) -> tuple[list[str], Indices, Ids]:
        """Return the distinct prefixes of words, the prefix of each word, and the id of each word."""
        return *self._words.starts(), self._ids[: len(self._words)]

    def words(self, numbers: Indices) -> list[str]:
        """Return words by number in alphabetical order."""
        return self._words.in_order(numbers)[1]

    def remember(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Set ids of words from rows (word, id)."""
        known = list(rows)
        numbers = self.places(words_to_bytes([word for word, _ in known]))
        self._ids[numbers] = [number for _, number in known]

    def give(self, numbers: Indices, first: int) -> list[str]:
        """Assign consecutive ids from `first` on to words in alphabetical order. Return the words in this order."""
        in_order, words = self._words.in_order(numbers)
        self._ids[in_order] = np.arange(first, first + len(words))
        return words


def batch_of(messages: Iterable[Message]) -> Batch:
    """Return mails as a batch, which is sent to other processes."""
    several = list(messages)
    numbers = WordNumbers()
    lengths = np.array([len(message.tokens) for message in several], np.int64)
    flat = chain.from_iterable(message.tokens for message in several)
    tokens = np.fromiter(map(numbers.__getitem__, flat), np.int32, int(lengths.sum()))
    return Batch([message.id for message in several], words_to_bytes(list(numbers)), tokens, lengths)


def select_mails(batch: Batch, kept: Any) -> Batch:
    """Return some mails of a batch, with their words only."""
    if kept.all():
        return batch
    tokens = batch.tokens[np.repeat(kept, batch.lengths)]
    used, tokens = np.unique(tokens, return_inverse=True)
    ids = [name for name, stays in zip(batch.ids, kept.tolist(), strict=True) if stays]
    words = words_from_bytes(batch.words)
    return Batch(
        ids, words_to_bytes([words[index] for index in used.tolist()]), tokens.astype(np.int32), batch.lengths[kept]
    )


def batches_of(messages: Sequence[Message | Batch]) -> list[Batch]:
    """Return mails or batches as batches."""
    batches = [message for message in messages if isinstance(message, Batch)]
    return (
        batches
        if len(batches) == len(messages)
        else [batch_of([message for message in messages if isinstance(message, Message)])]
    )


def pack_words_of(ids: Ids, tokens: Indices, lengths: Ids) -> tuple[list[bytes], Ids, Ids]:
    """Return the packed word ids of each message, the distinct ids in order, and the number of messages of each."""
    from tallybayes.apps.spam.tokens.token_kernel import pack_words

    packed = pack_words(ids, tokens, lengths)
    if packed is not None:
        return packed
    words, lengths = in_order(ids[tokens], lengths)
    return pack(words, lengths), *np.unique(words, return_counts=True)


def in_order(ids: Ids, lengths: Ids) -> tuple[Ids, Ids]:
    """Sort the ids of each message and remove duplicates. Return the ids and the new lengths."""
    message = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((ids, message))
    message = message[order]
    ids = ids[order]
    kept = np.ones(len(ids), bool)
    kept[1:] = (ids[1:] != ids[:-1]) | (message[1:] != message[:-1])
    return ids[kept], np.bincount(message[kept], minlength=len(lengths))


def pack(ids: Ids, lengths: Ids) -> list[bytes]:
    """Encode the sorted ids of each message: differences of consecutive ids, seven bits per byte."""
    if not len(ids):
        return [b""] * len(lengths)
    stops = np.cumsum(lengths)
    first = (stops - lengths)[lengths > 0]
    differences = np.diff(ids, prepend=0)
    differences[first] = ids[first]
    # Variable-length code: each byte has seven bits of the difference; all but the last byte have the high bit set.
    sizes = np.ones(len(differences), np.int64)
    for bits in range(7, int(differences.max()).bit_length(), 7):
        sizes += differences >= 1 << bits
    ends = np.cumsum(sizes)
    content_bytes = np.zeros(ends[-1], np.uint8)
    for position in range(int(sizes.max())):
        is_longer = sizes > position
        more = np.where(sizes[is_longer] > position + 1, 0x80, 0)
        content_bytes[(ends - sizes)[is_longer] + position] = ((differences[is_longer] >> (7 * position)) & 0x7F) | more
    content = content_bytes.tobytes()
    bounds = np.concatenate([[0], ends])[np.concatenate([[0], stops])].tolist()
    return [content[start:stop] for start, stop in pairwise(bounds)]


def unpack(packed: Sequence[bytes]) -> tuple[Ids, Ids]:
    """Return the concatenated ids of messages and the number of ids of each."""
    content = np.frombuffer(b"".join(packed), np.uint8)
    last = content < 0x80
    ends = np.flatnonzero(last) + 1
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    position = np.arange(len(content)) - np.repeat(starts, ends - starts)
    terms = (content & 0x7F).astype(np.int64) << (7 * position)
    differences = np.add.reduceat(terms, starts) if len(ends) else np.zeros(0, np.int64)
    bounds = np.cumsum([0, *map(len, packed)])
    offsets = np.concatenate([[0], np.cumsum(last)])[bounds]
    total = np.concatenate([[0], np.cumsum(differences)])
    lengths = np.diff(offsets)
    return np.asarray(total[1:] - np.repeat(total[offsets[:-1]], lengths), np.int64), lengths
