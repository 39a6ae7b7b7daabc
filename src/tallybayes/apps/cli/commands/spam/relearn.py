"""`tally spam relearn`: correct the class of learned mail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.commands.spam.spam_options import (
    count_outcomes,
    finish_change,
    mails,
    paths_unless_ids,
    show_progress,
)
from tallybayes.apps.cli.console import File, print_result


def relearn(
    *files: File,
    label: Annotated[Literal["ham", "spam"], Parameter(name="--as")],
    id: tuple[str, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Correct the class of learned mail; learn mail that is not learned yet.

    The counts become those of mail learned with this class from the start. The
    command has the same result whatever the previous class was, so that it can
    be bound to a key of a mail reader.

      tally spam relearn --as ham < mail.eml
      tally spam relearn --as spam ~/Maildir/.Junk
      tally spam relearn --as spam --id 3f2a9c

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input (default).
    label
        The class of the mail.
    id
        The first digits of the id of a learned mail, which 'tally spam explain' shows, instead of the mail.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    json
        Write the numbers of mails as JSON.
    """
    paths = paths_unless_ids(files, id)
    from tallybayes.apps.spam.store.message_codec import Message
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import TrainingOutcome, find_message_id
    from tallybayes.apps.spam.train import learn as learn_mails
    from tallybayes.apps.spam.unpacking import NotMailError

    skipped: list[NotMailError] = []
    with Store(store, create=not id) as counts:
        if id:
            messages = [Message(find_message_id(counts, digits), ()) for digits in id]
            changes: Iterable[TrainingOutcome] = [TrainingOutcome(label, list(id), counts.relearn(messages, label))]
        else:
            changes = show_progress(learn_mails(counts, {label: paths}, move=True, skipped=skipped), "relearning")
        outcomes = count_outcomes(changes)[label]
        summary = finish_change(counts, skipped)
    phrases = {
        "relearned": "moved to",
        "learned": "learned for the first time as",
        "known": "already learned as",
    }
    if json:
        summary.answer_json(**{"as": label}, **{outcome: outcomes[outcome] for outcome in phrases})
        return
    for outcome, phrase in phrases.items():
        if outcomes[outcome] or (outcome == "relearned" and not outcomes.total()):
            print_result(f"{mails(outcomes[outcome])} {phrase} {label}")
    print_result(str(summary))
