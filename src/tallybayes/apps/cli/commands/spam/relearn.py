"""`tally spam relearn`: correct the class of learned mail."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import (
    count_outcomes,
    describe_store,
    mails,
    plain_paths,
    show_progress,
)
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


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
    if files and id:
        raise UsageError("mail and --id exclude each other; pass one of them.")
    paths = plain_paths(files or (() if id else ("-",)))
    from tallybayes.apps.spam.store.message_codec import Message
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import find_message_id, recalibrate
    from tallybayes.apps.spam.train import learn as learn_mails
    from tallybayes.apps.spam.unpacking import NotMailError, describe_skipped

    skipped: list[NotMailError] = []
    with Store(store, create=not id) as counts:
        if id:
            from tallybayes.apps.spam.train import TrainingOutcome

            messages = [Message(find_message_id(counts, digits), ()) for digits in id]
            outcomes = count_outcomes([TrainingOutcome(label, list(id), counts.relearn(messages, label))])[label]
        else:
            outcomes = count_outcomes(
                show_progress(learn_mails(counts, {label: paths}, move=True, skipped=skipped), "relearning")
            )[label]
        recalibrate(counts)
        state = counts.state()
        location = counts.location
    if skipped:
        print_status(describe_skipped(skipped))
    if json:
        numbers = {outcome: outcomes[outcome] for outcome in ("relearned", "learned", "known")}
        answer_json({"store": location, "as": label, **numbers, "total": {"ham": state.ham, "spam": state.spam}})
        return
    for outcome, phrase in (
        ("relearned", "moved to"),
        ("learned", "learned for the first time as"),
        ("known", "already learned as"),
    ):
        if outcomes[outcome] or (outcome == "relearned" and not outcomes.total()):
            print_result(f"{mails(outcomes[outcome])} {phrase} {label}")
    print_result(f"{location} now has {describe_store(state)}")
