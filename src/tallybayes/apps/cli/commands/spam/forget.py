"""`tally spam forget`: remove mail from the counts."""

from __future__ import annotations

from collections import Counter

from tallybayes.apps.cli.commands.spam.spam_options import (
    finish_change,
    mails,
    paths_unless_ids,
)
from tallybayes.apps.cli.console import File, print_result


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
    paths = paths_unless_ids(files, id)
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.tokens.message_tokens import content_id, mails_in
    from tallybayes.apps.spam.train import find_message_id
    from tallybayes.apps.spam.unpacking import NotMailError

    skipped: list[NotMailError] = []
    with Store(store) as counts:
        ids = [find_message_id(counts, digits) for digits in id]
        ids += [content_id(raw) for _, raw in mails_in(paths, skipped)]
        outcomes = Counter(counts.forget(ids))
        summary = finish_change(counts, skipped)
    if json:
        summary.answer_json(forgotten=outcomes["forgotten"], unknown=outcomes["unknown"])
        return
    unknown = f"; {outcomes['unknown']:,} were not learned before" if outcomes["unknown"] else ""
    print_result(f"forgot {mails(outcomes['forgotten'])}{unknown}")
    print_result(str(summary))
