"""Messages as numbers: the words of some mails counted once, and token ids in few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from tallybayes.apps.spam.databases import storable

Ids = np.ndarray[Any, np.dtype[np.int64]]


class Message(NamedTuple):
    """A mail as it is learned: its content id, and its tokens."""

    id: bytes
    tokens: Sequence[str]


class Batch(NamedTuple):
    """Some mails: their content ids, the distinct words of all of them, and by mail which of these it has."""

    ids: list[bytes]
    words: list[str]
    tokens: np.ndarray[Any, np.dtype[np.int32]]
    lengths: Ids


class _Numbers(dict[str, int]):
    """Words by their first occurrence: a new one gets the next number."""

    def __missing__(self, word: str) -> int:
        self[word] = found = len(self)
        return found


def batch_of(messages: Iterable[Message]) -> Batch:
    """Mails with their words as numbers, which is what other processes are sent."""
    several, numbers = list(messages), _Numbers()
    lengths = np.array([len(one.tokens) for one in several], np.int64)
    flat = chain.from_iterable(one.tokens for one in several)
    tokens = np.fromiter(map(numbers.__getitem__, flat), np.int32, int(lengths.sum()))
    return Batch([one.id for one in several], storable(list(numbers)), tokens, lengths)


def only(batch: Batch, kept: Any) -> Batch:
    """Some mails of a batch, with their words alone."""
    if kept.all():
        return batch
    tokens = batch.tokens[np.repeat(kept, batch.lengths)]
    used, tokens = np.unique(tokens, return_inverse=True)
    ids = [name for name, stays in zip(batch.ids, kept.tolist(), strict=True) if stays]
    words = [batch.words[place] for place in used.tolist()]
    return Batch(ids, words, tokens.astype(np.int32), batch.lengths[kept])


def batches_of(messages: Sequence[Message | Batch]) -> list[Batch]:
    """Mails, or batches of them, as batches."""
    batches = [one for one in messages if isinstance(one, Batch)]
    return (
        batches if len(batches) == len(messages) else [batch_of([one for one in messages if isinstance(one, Message)])]
    )


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
