"""Messages as numbers: the words of some mails counted once, and token ids in few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.apps.spam.store.backends import storable

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailWords

Ids = np.ndarray[Any, np.dtype[np.int64]]
Places = np.ndarray[Any, np.dtype[np.int32]]


class Message(NamedTuple):
    """A mail as it is learned: its content id, and its tokens."""

    id: bytes
    tokens: Sequence[str]


class Batch(NamedTuple):
    """Some mails: their content ids, the words of all of them (`words_to_bytes`), and by mail which of these it has."""

    ids: list[bytes]
    words: bytes
    tokens: Places
    lengths: Ids


def words_to_bytes(words: Sequence[str]) -> bytes:
    r"""Words that can be stored as they are sent: in UTF-8, a zero byte after each.

    Examples
    --------
    >>> words_to_bytes(["win", "now"]), as_words(b"win\0now\0")
    (b'win\x00now\x00', ['win', 'now'])
    """
    return "\0".join([*storable(list(words)), ""]).encode()


def as_words(sent: bytes) -> list[str]:
    """The words of some bytes."""
    return sent.decode().split("\0")[:-1]


class WordNumbers(dict[str, int]):
    """Words by their first occurrence: a new one gets the next place. What `MailWords` does, in Python."""

    def __missing__(self, word: str) -> int:
        self[word] = found = len(self)
        return found

    def places(self, words: bytes) -> Places:
        """The places of words; those that are new get one."""
        return np.array([self[word] for word in as_words(words)], np.int32)

    def in_order(self, places: Places) -> tuple[Places, list[str]]:
        """The same places in the order of their words' characters, and these words."""
        names = list(self)
        words = sorted([names[place] for place in places.tolist()])
        return np.array([self[word] for word in words], np.int32), words

    def starts(self) -> tuple[list[str], Places]:
        """How words begin, up to a colon or not at all, each once, and by place which of these."""
        found = WordNumbers()
        numbers = [found[word[: word.find(":") + 1]] for word in self]
        return list(found), np.array(numbers, np.int32)


class WordIdTable:
    """The ids that a store has given to words, as far as they are known here."""

    def __init__(self) -> None:
        from tallybayes.apps.spam.tokens.token_kernel import mail_words

        compiled = mail_words()
        self._words: MailWords | WordNumbers = WordNumbers() if compiled is None else compiled
        self._ids: Ids = np.zeros(0, np.int64)  # by place; 0: it is not known

    def places(self, words: bytes) -> Places:
        """Where words are; those that were not have no id yet."""
        places = self._words.places(words)
        if len(self._words) > len(self._ids):
            self._ids = np.pad(self._ids, (0, len(self._words)))
        return places

    def of(self, places: Places) -> Ids:
        """The ids of words at some places."""
        return self._ids[places]

    def missing(self, places: Sequence[Places]) -> Places:
        """Those of some places whose words have no id, each once."""
        wanted = np.zeros(len(self._ids), bool)
        for some in places:
            wanted[some] = True
        return np.flatnonzero(wanted & (self._ids == 0)).astype(np.int32)

    def starts(self) -> tuple[list[str], Places, Ids]:
        """How words begin, up to a colon or not at all, each once; by word which of these, and its id."""
        return *self._words.starts(), self._ids[: len(self._words)]

    def words(self, places: Places) -> list[str]:
        """The words at some places, in order of spelling."""
        return self._words.in_order(places)[1]

    def remember(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """That words have the ids of rows (word, id)."""
        known = list(rows)
        places = self.places(words_to_bytes([word for word, _ in known]))
        self._ids[places] = [number for _, number in known]

    def give(self, places: Places, first: int) -> list[str]:
        """Give ids from the first on to words in order of spelling; the words in this order."""
        in_order, words = self._words.in_order(places)
        self._ids[in_order] = np.arange(first, first + len(words))
        return words


def batch_of(messages: Iterable[Message]) -> Batch:
    """Mails with their words as numbers, which is what other processes are sent."""
    several, numbers = list(messages), WordNumbers()
    lengths = np.array([len(one.tokens) for one in several], np.int64)
    flat = chain.from_iterable(one.tokens for one in several)
    tokens = np.fromiter(map(numbers.__getitem__, flat), np.int32, int(lengths.sum()))
    return Batch([one.id for one in several], words_to_bytes(list(numbers)), tokens, lengths)


def only(batch: Batch, kept: Any) -> Batch:
    """Some mails of a batch, with their words alone."""
    if kept.all():
        return batch
    tokens = batch.tokens[np.repeat(kept, batch.lengths)]
    used, tokens = np.unique(tokens, return_inverse=True)
    ids = [name for name, stays in zip(batch.ids, kept.tolist(), strict=True) if stays]
    words = as_words(batch.words)
    return Batch(
        ids, words_to_bytes([words[place] for place in used.tolist()]), tokens.astype(np.int32), batch.lengths[kept]
    )


def batches_of(messages: Sequence[Message | Batch]) -> list[Batch]:
    """Mails, or batches of them, as batches."""
    batches = [one for one in messages if isinstance(one, Batch)]
    return (
        batches if len(batches) == len(messages) else [batch_of([one for one in messages if isinstance(one, Message)])]
    )


def packed_words(ids: Ids, tokens: Places, lengths: Ids) -> tuple[list[bytes], Ids, Ids]:
    """Every message's ids of words, packed; and all ids that come in them in order, and how many messages have each."""
    from tallybayes.apps.spam.tokens.token_kernel import pack_words

    found = pack_words(ids, tokens, lengths)
    if found is not None:
        return found
    words, lengths = in_order(ids[tokens], lengths)
    return pack(words, lengths), *np.unique(words, return_counts=True)


def in_order(ids: Ids, lengths: Ids) -> tuple[Ids, Ids]:
    """The ids of each message sorted and each once, and how many are left."""
    message = np.repeat(np.arange(len(lengths)), lengths)
    place = np.lexsort((ids, message)) if ids.max(initial=0) >= 1 << 40 else None
    if place is None:
        keys = (message << 40) | ids
        keys.sort()
        message, ids = keys >> 40, keys & ((1 << 40) - 1)
    else:
        message, ids = message[place], ids[place]
    kept = np.ones(len(ids), bool)
    kept[1:] = (ids[1:] != ids[:-1]) | (message[1:] != message[:-1])
    return ids[kept], np.bincount(message[kept], minlength=len(lengths))


def pack(ids: Ids, lengths: Ids) -> list[bytes]:
    """Every message's ids, which are in order, as bytes: the steps from one to the next, seven bits a byte."""
    if not len(ids):
        return [b""] * len(lengths)
    stops = np.cumsum(lengths)
    first = (stops - lengths)[lengths > 0]
    steps = np.diff(ids, prepend=0)
    steps[first] = ids[first]
    # A step takes as many bytes as it has groups of seven bits; all but the last of them have the high bit set.
    sizes = np.ones(len(steps), np.int64)
    for bits in range(7, int(steps.max()).bit_length(), 7):
        sizes += steps >= 1 << bits
    ends = np.cumsum(sizes)
    written = np.zeros(ends[-1], np.uint8)
    for place in range(int(sizes.max())):
        long = sizes > place
        more = np.where(sizes[long] > place + 1, 0x80, 0)
        written[(ends - sizes)[long] + place] = ((steps[long] >> (7 * place)) & 0x7F) | more
    content = written.tobytes()
    cuts = np.concatenate([[0], ends])[np.concatenate([[0], stops])].tolist()
    return [content[start:stop] for start, stop in pairwise(cuts)]


def unpack(packed: Sequence[bytes]) -> tuple[Ids, Ids]:
    """All ids of some messages one after the other, and how many each has."""
    content = np.frombuffer(b"".join(packed), np.uint8)
    last = content < 0x80
    ends = np.flatnonzero(last) + 1
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    place = np.arange(len(content)) - np.repeat(starts, ends - starts)
    parts = (content & 0x7F).astype(np.int64) << (7 * place)
    steps = np.add.reduceat(parts, starts) if len(ends) else np.zeros(0, np.int64)
    cuts = np.cumsum([0, *map(len, packed)])
    offsets = np.concatenate([[0], np.cumsum(last)])[cuts]
    total = np.concatenate([[0], np.cumsum(steps)])
    lengths = np.diff(offsets)
    return np.asarray(total[1:] - np.repeat(total[offsets[:-1]], lengths), np.int64), lengths
