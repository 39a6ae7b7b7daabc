"""`tally spam forget`: take mail out of the counts again."""

from __future__ import annotations

from collections import Counter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import described, mails, plain_paths
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


def forget(
    *files: File,
    id: tuple[str, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Take mail out of the counts again, as if it had never been learned.

    By the mail itself, or by the first digits of its id, which 'tally spam
    explain' tells. Words that only such mail had are gone from the store, too.
    What came by 'tally spam import' has no mails, and stays.

      tally spam forget mail.eml
      tally spam forget --id 3f2a9c

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input, which is the default.
    id
        The first digits of a learned mail's id, instead of the mail.
    store
        The store: a file, or postgresql://…
    json
        Write what was done as JSON.
    """
    if files and id:
        raise UsageError("mail and --id both say what is meant; expected one of them.")
    paths = plain_paths(files or (() if id else ("-",)))
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.tokens.message_tokens import content_id, mails_in
    from tallybayes.apps.spam.train import named, recalibrate
    from tallybayes.apps.spam.unpacking import NotMailError, listed

    skipped: list[NotMailError] = []
    with Store(store) as counts:
        ids = [named(counts, one) for one in id] if id else [content_id(raw) for _, raw in mails_in(paths, skipped)]
        found = Counter(counts.forget(ids))
        recalibrate(counts)
        state, place = counts.state(), counts.place
    if skipped:
        print_status(listed(skipped))
    if json:
        told = {what: found[what] for what in ("forgotten", "unknown")}
        answer_json({"store": place, **told, "total": {"ham": state.ham, "spam": state.spam}})
        return
    unknown = f"; {found['unknown']:,} had not been learned" if found["unknown"] else ""
    print_result(f"forgot {mails(found['forgotten'])}{unknown}")
    print_result(f"{place} has {described(state)} now")
