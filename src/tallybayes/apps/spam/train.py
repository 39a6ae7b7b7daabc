"""Training: count mails in batches, and calibrate."""

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
from tallybayes.apps.spam.verdicts import calibration_to_text

_AT_ONCE = 2000  # messages per transaction
CALIBRATED = 4000  # maximum number of messages of a calibration
GROWN = 1.1  # growth of the number of messages until the next calibration


class TrainingOutcome(NamedTuple):
    """Outcomes of a batch: the class, the names of the mails, and the outcome of each."""

    label: Label
    names: list[str]
    outcomes: list[Outcome]


def read_messages(group: Grouped) -> tuple[list[str], Batch]:
    """Return the names of the mails and their batch."""
    mails = group[1]
    return [name for name, _ in mails], read_batch([raw for _, raw in mails])


def learn(
    store: Store,
    paths: Mapping[Label, Iterable[str]],
    *,
    move: bool = False,
    skipped: list[NotMailError] | None = None,
) -> Iterator[TrainingOutcome]:
    """Learn all mails of the paths. Yield the outcomes after each transaction.

    Parameters
    ----------
    store : Store
    paths : mapping from "ham" and "spam" to paths
    move : bool
        Move mails that were learned as the other class.
    skipped : list, optional
        List to which an error is appended for each file of a folder that is not mail.
    """
    learn_batch = store.relearn if move else store.learn
    names: list[str] = []
    batches: list[Batch] = []
    current: Label = "ham"
    groups = ((label, mails_in(paths[label], skipped)) for label in paths)
    for group, (new_names, batch) in in_processes(groups, read_messages, empty_batch):
        label: Label = "ham" if group == "ham" else "spam"
        if names and (label != current or len(names) >= _AT_ONCE):
            yield TrainingOutcome(current, names, learn_batch(batches, current))
            names = []
            batches = []
        current = label
        names += new_names
        batches.append(batch)
    if names:
        yield TrainingOutcome(current, names, learn_batch(batches, current))


def recalibrate(store: Store, *, always: bool = False) -> bool:
    """Fit the calibration if the number of messages has changed by more than a tenth. Return whether it was fitted."""
    state = store.state()
    n = state.ham + state.spam
    n_calibrated = state.calibrated_at
    if not always and n_calibrated and n_calibrated / GROWN < n < n_calibrated * GROWN:
        return False
    messages = messages_of(store, CALIBRATED)
    if not len(messages.is_spam):
        return False
    store.calibrate(calibration_to_text(calibrate(messages)), n)
    return True


def messages_of(store: Store, most: int) -> CalibrationMessages:
    """Return at most `most` stored messages as arrays, evenly spaced, with the counts of all."""
    with store.database.reading():
        prefixes, prefix_of, word_ids = store.prefixes()
        words = store.database.query("SELECT id, ham, spam FROM words")
        n = store.database.query("SELECT count(*) FROM messages")[0][0]
        batches = [
            (spam, word_ids, lengths) for _, spam, word_ids, lengths in store.messages(step=max(1, -(-n // most)))
        ]
    table = np.fromiter(chain.from_iterable(words), np.int64, 3 * len(words)).reshape(-1, 3)
    kinds, ham, spam = np.zeros((3, int(max(table[:, 0].max(initial=0), word_ids.max(initial=0))) + 1), np.int64)
    kinds[word_ids] = np.array(kinds_of(prefixes), np.int64)[prefix_of]
    ham[table[:, 0]] = table[:, 1]
    spam[table[:, 0]] = table[:, 2]
    empty = np.zeros(0, np.int64)
    lengths = np.concatenate([empty, *(batch[2] for batch in batches)])
    return CalibrationMessages(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([empty, *(batch[1] for batch in batches)]),
        np.concatenate([np.zeros(0, bool), *(batch[0] for batch in batches)]),
        kinds,
        ham,
        spam,
    )


def find_message_id(store: Store, start: str) -> bytes:
    """Return the id of the only stored message whose id starts with these hexadecimal digits."""
    digits = start.lower()
    if not 4 <= len(digits) <= 64 or set(digits) - set("0123456789abcdef"):
        raise StoreError(f"{start!r} is not an id; expected 4 to 64 hexadecimal digits.")
    ids = store.ids_like(digits)
    if len(ids) != 1:
        quantity = "several mails have" if ids else "no learned mail has"
        raise StoreError(
            f"{quantity} an id that starts with {start}.\n    'tally spam explain' shows the id of a mail."
        )
    return ids[0]
