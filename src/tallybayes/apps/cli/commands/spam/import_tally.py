"""`tally spam import`: add exported counts."""

from __future__ import annotations

import os

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.commands.spam.spam_options import (
    finish_change,
)
from tallybayes.apps.cli.console import File, print_result


def add(*files: File, store: File | None = None, json: bool = False) -> None:
    """Add the counts of tallies written by 'tally spam export'.

    Imported counts have no mails, so that they cannot be forgotten by mail.
    A file is added once; importing it again changes nothing.

      tally spam import counts.tally
      tally spam import friends/*.tally --store new.sqlite

    Parameters
    ----------
    files
        Files written by 'tally spam export', or sums of them.
    store
        The store: a file or a PostgreSQL address, postgresql://…; created if it does not exist.
    json
        Write the numbers of mails as JSON.
    """
    if not files:
        raise UsageError("missing argument FILE: a file written by 'tally spam export'.")
    for path in files:
        if not os.path.isfile(path):
            raise CommandError(f"file {path!r} does not exist; expected a file written by 'tally spam export'.")
    import hashlib
    from pathlib import Path

    import tallybayes as tb
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.store.tally_exchange import from_tally

    added = []
    with Store(store, create=True) as counts:
        for path in files:
            origin = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            added.append((path, from_tally(counts, tb.load(path), origin)))
        summary = finish_change(counts, [])
    if json:
        names = ("ham", "spam", "words")
        numbers = [
            {"file": path, "added": new is not None, **dict(zip(names, new or (), strict=bool(new)))}
            for path, new in added
        ]
        summary.answer_json(files=numbers)
        return
    for path, new in added:
        if new is None:
            print_result(f"{path} was imported before; nothing was changed")
        else:
            print_result(f"added {path}: {new[0]:,} ham and {new[1]:,} spam, {new[2]:,} words")
    print_result(f"{summary}; imported counts cannot be forgotten by mail")
