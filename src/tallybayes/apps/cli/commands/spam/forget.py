"""`tally spam forget`: remove mail from the counts."""

from __future__ import annotations

from collections import Counter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.commands.spam.spam_options import describe_store, mails, plain_paths
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


def forget(
    *files: File,
    id: tuple[str, ...] = (),
    store: File | None = None,
    json: bool = False,
) -> None:
    """Remove mail from the counts exactly, as if it had never been learned.

    Pass the mail, or the first digits of its id, which 'tally spam explain'
    shows. Words of this mail only are removed from the store. Imported counts
    cannot be removed by mail.

      tally spam forget mail.eml
      tally spam forget --id 3f2a9c

    Parameters
    ----------
    files
        Mail: mbox, Maildir, folders of files, files, or - for standard input (default).
    id
        The first digits of the id of a learned mail, instead of the mail.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    json
        Write the numbers of mails as JSON.
    """
    if files and id:
        raise UsageError("mail and --id exclude each other; pass one of them.")
    paths = plain_paths(files or (() if id else ("-",)))
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.tokens.message_tokens import content_id, mails_in
    from tallybayes.apps.spam.train import find_message_id, recalibrate
    from tallybayes.apps.spam.unpacking import NotMailError, describe_skipped

    skipped: list[NotMailError] = []
    with Store(store) as counts:
        ids = (
            [find_message_id(counts, digits) for digits in id]
            if id
            else [content_id(raw) for _, raw in mails_in(paths, skipped)]
        )
        outcomes = Counter(counts.forget(ids))
        recalibrate(counts)
        state = counts.state()
        location = counts.location
    if skipped:
        print_status(describe_skipped(skipped))
    if json:
        numbers = {outcome: outcomes[outcome] for outcome in ("forgotten", "unknown")}
        answer_json({"store": location, **numbers, "total": {"ham": state.ham, "spam": state.spam}})
        return
    unknown = f"; {outcomes['unknown']:,} were not learned before" if outcomes["unknown"] else ""
    print_result(f"forgot {mails(outcomes['forgotten'])}{unknown}")
    print_result(f"{location} now has {describe_store(state)}")
