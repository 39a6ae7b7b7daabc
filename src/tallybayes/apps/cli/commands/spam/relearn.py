"""`tally spam relearn`: correct what mail was learned as."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import counting, described, mails, plain_paths, summed
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


def relearn(
    *files: File,
    label: Annotated[Literal["ham", "spam"], Parameter(name="--as")],
    id: tuple[str, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Correct what mail was learned as; what was never learned is learned.

    The counts are then as if the mail had always been of that class. Bind it
    to a key of your mail reader: it does what is meant whatever was before.

      tally spam relearn --as ham < mail.eml
      tally spam relearn --as spam ~/Maildir/.Junk
      tally spam relearn --as spam --id 3f2a9c

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input, which is the default.
    label
        What it is.
    id
        The first digits of a learned mail's id, which 'tally spam explain' tells, instead of the mail.
    store
        The store: a file, or postgresql://…
    json
        Write what was done as JSON.
    """
    if files and id:
        raise UsageError("mail and --id both say what is meant; expected one of them.")
    paths = plain_paths(files or (() if id else ("-",)))
    from tallybayes.apps.spam.store.message_codec import Message
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.train import learn as learn_mails
    from tallybayes.apps.spam.train import named, recalibrate
    from tallybayes.apps.spam.unpacking import NotMailError, listed

    skipped: list[NotMailError] = []
    with Store(store, create=not id) as counts:
        if id:
            from tallybayes.apps.spam.train import TrainingOutcome

            messages = [Message(named(counts, one), ()) for one in id]
            found = summed([TrainingOutcome(label, list(id), counts.relearn(messages, label))])[label]
        else:
            found = summed(counting(learn_mails(counts, {label: paths}, move=True, skipped=skipped), "relearning"))[
                label
            ]
        recalibrate(counts)
        state, place = counts.state(), counts.place
    if skipped:
        print_status(listed(skipped))
    if json:
        told = {what: found[what] for what in ("relearned", "learned", "known")}
        answer_json({"store": place, "as": label, **told, "total": {"ham": state.ham, "spam": state.spam}})
        return
    for what, how in (("relearned", "moved to"), ("learned", "learned for the first time, as"), ("known", "known as")):
        if found[what] or (what == "relearned" and not found.total()):
            print_result(f"{mails(found[what])} {how} {label}")
    print_result(f"{place} has {described(state)} now")
