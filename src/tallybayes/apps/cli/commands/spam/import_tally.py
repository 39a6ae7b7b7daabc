"""`tally spam import`: the counts of others."""

from __future__ import annotations

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.commands.spam.spam_options import described
from tallybayes.apps.cli.console import File, answer_json, print_result


def add(*files: File, store: File | None = None, json: bool = False) -> None:
    """Add the counts of tallies that 'tally spam export' wrote.

    They are counted like one's own; but no mails stand for them, so they cannot
    be forgotten one by one. A file is added once: the second time it is left
    alone, which is said.

      tally spam import counts.tally
      tally spam import friends/*.tally --store new.sqlite

    Parameters
    ----------
    files
        Files of 'tally spam export', or sums of them.
    store
        The store: a file, or postgresql://…; made where there is none.
    json
        Write what was done as JSON.
    """
    import os

    from tallybayes.apps.cli.cli_errors import UsageError

    if not files:
        raise UsageError("there is nothing to import; expected FILE, of 'tally spam export'.")
    for path in files:
        if not os.path.isfile(path):
            raise CommandError(f"there is no file {path!r}; expected one of 'tally spam export'.")
    import hashlib
    from pathlib import Path

    import tallybayes as tb
    from tallybayes.apps.spam.store.spam_store import Store
    from tallybayes.apps.spam.store.tally_exchange import from_tally
    from tallybayes.apps.spam.train import recalibrate

    told = []
    with Store(store, create=True) as counts:
        for path in files:
            origin = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            told.append((path, from_tally(counts, tb.load(path), origin)))
        recalibrate(counts)
        state, place = counts.state(), counts.place
    if json:
        rows = [
            {"file": path, "added": found is not None}
            | ({} if found is None else dict(zip(("ham", "spam", "words"), found, strict=True)))
            for path, found in told
        ]
        answer_json({"store": place, "files": rows, "total": {"ham": state.ham, "spam": state.spam}})
        return
    for path, found in told:
        if found is None:
            print_result(f"{path} was added before: left alone")
        else:
            print_result(f"added {path}: {found[0]:,} ham and {found[1]:,} spam, {found[2]:,} words")
    print_result(f"{place} has {described(state)} now; what was imported cannot be forgotten one by one")
