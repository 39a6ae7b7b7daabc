"""Learning: mails become batches, batches become counts, and the calibration follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from tallybayes.apps.spam.spam_calibration import CalibrationMessages, calibrate
from tallybayes.apps.spam.spam_score import kinds_of
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.message_codec import Batch
from tallybayes.apps.spam.store.spam_store import Label, Store
from tallybayes.apps.spam.store.store_changes import Outcome
from tallybayes.apps.spam.tokens.message_batches import empty_batch, read_batch
from tallybayes.apps.spam.tokens.message_tokens import mails_in
from tallybayes.apps.spam.tokens.parallel import Grouped, in_processes
from tallybayes.apps.spam.unpacking import NotMailError
from tallybayes.apps.spam.verdicts import as_text

_AT_ONCE = 2000  # messages of a transaction, which are counted together
CALIBRATED = 4000  # messages, spread over all, that a calibration is made of
GROWN = 1.1  # by how much there are more messages when the calibration is made again


class TrainingOutcome(NamedTuple):
    """What became of some mails: what they were learned as, their names, and of each what was done."""

    label: Label
    names: list[str]
    outcomes: list[Outcome]


def read_messages(group: Grouped) -> tuple[list[str], Batch]:
    """Mails as a batch, and their names."""
    mails = group[1]
    return [name for name, _ in mails], read_batch([raw for _, raw in mails])


def learn(
    store: Store,
    parts: Mapping[Label, Iterable[str]],
    *,
    move: bool = False,
    skipped: list[NotMailError] | None = None,
) -> Iterator[TrainingOutcome]:
    """Learn all mails of some files and folders; what became of them, after each transaction.

    Parameters
    ----------
    store : Store
    parts : mapping from "ham" and "spam" to paths
    move : bool
        Move those that were learned as the other class.
    skipped : list, optional
        Receives an error for every file of a folder that is not mail.
    """
    change = store.relearn if move else store.learn
    names: list[str] = []
    batches: list[Batch] = []
    now: Label = "ham"
    groups = ((label, mails_in(parts[label], skipped)) for label in parts)
    for group, (some, batch) in in_processes(groups, read_messages, empty_batch):
        label: Label = "ham" if group == "ham" else "spam"
        if names and (label != now or len(names) >= _AT_ONCE):
            yield TrainingOutcome(now, names, change(batches, now))
            names, batches = [], []
        now = label
        names += some
        batches.append(batch)
    if names:
        yield TrainingOutcome(now, names, change(batches, now))


def recalibrate(store: Store, *, always: bool = False) -> bool:
    """Make the calibration again where there are a tenth more messages (or less) than when it was made."""
    state = store.state()
    n, before = state.ham + state.spam, state.calibrated_at
    if not always and before and before / GROWN < n < before * GROWN:
        return False
    kept = messages_of(store, CALIBRATED)
    if not len(kept.is_spam):
        return False
    store.calibrate(as_text(calibrate(kept)), n)
    return True


def messages_of(store: Store, most: int) -> CalibrationMessages:
    """So many of the kept messages as numbers, spread evenly over all, with the counts of all."""
    with store.database.reading():
        starts, start_of, numbered = store.starts()
        words = store.database.ask("SELECT id, ham, spam FROM words")
        n = store.database.ask("SELECT count(*) FROM messages")[0][0]
        parts = [(spam, ids, lengths) for _, spam, ids, lengths in store.messages(step=max(1, -(-n // most)))]
    table = np.fromiter(chain.from_iterable(words), np.int64, 3 * len(words)).reshape(-1, 3)
    kinds, ham, spam = np.zeros((3, int(max(table[:, 0].max(initial=0), numbered.max(initial=0))) + 1), np.int64)
    kinds[numbered] = np.array(kinds_of(starts), np.int64)[start_of]
    ham[table[:, 0]], spam[table[:, 0]] = table[:, 1], table[:, 2]
    nothing = np.zeros(0, np.int64)
    lengths = np.concatenate([nothing, *(part[2] for part in parts)])
    return CalibrationMessages(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([nothing, *(part[1] for part in parts)]),
        np.concatenate([np.zeros(0, bool), *(part[0] for part in parts)]),
        kinds,
        ham,
        spam,
    )


def named(store: Store, start: str) -> bytes:
    """The id of the one kept message whose id starts with these hexadecimal digits."""
    digits = start.lower()
    if not 4 <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
        raise StoreError(f"{start!r} is no id; expected its first digits, 4 to 64 of 0-9 and a-f.")
    found = store.ids_like(digits)
    if len(found) != 1:
        what = "no learned mail has" if not found else "several mails have"
        raise StoreError(f"{what} an id that starts with {start}.\n    'tally spam explain' tells a mail's id.")
    return found[0]
