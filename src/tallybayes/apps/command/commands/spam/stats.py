"""`tally spam stats`: what there is."""

from __future__ import annotations

import time

from tallybayes.apps.command.faults import CommandError
from tallybayes.apps.command.terminal import answer, answer_json


def stats(*, store: str | None = None, check: bool = False, json: bool = False) -> None:
    """Show what was learned, and what it takes.

      tally spam stats
      tally spam stats --check
      tally spam stats --store postgresql://server/mail --json

    Parameters
    ----------
    store
        The store: a file, or postgresql://…
    check
        Count all kept mails again, and compare: refused, with what differs, where anything does.
    json
        Write it as JSON.
    """
    from tallybayes.apps.spam.store import Store
    from tallybayes.apps.spam.upkeep import integrity
    from tallybayes.apps.spam.upkeep import stats as measure

    with Store(store, read_only=True) as counts:
        found = measure(counts)
        wrong = integrity(counts) if check else []
    if wrong:
        raise CommandError(f"{found['store']} does not add up:\n    " + "\n    ".join(wrong))
    if json:
        answer_json({**found, **({"adds_up": True} if check else {})})
        return
    n = max(found["messages"], 1)
    answer(f"{found['store']}\n")
    answer(f"  learned         {found['ham']:,} ham, {found['spam']:,} spam")
    if found["imported_ham"] or found["imported_spam"]:
        imported = f"{found['imported_ham']:,} ham, {found['imported_spam']:,} spam"
        answer(f"    of these      {imported} imported, which cannot be forgotten one by one")
    answer(f"  words           {found['words']:,}, of which {found['words_seen_once']:,} were seen once")
    answer(f"  size            {found['bytes'] / 1e6:,.1f} MB, of which {found['bytes_of_messages'] / 1e6:,.1f} MB are")
    answer(f"                  the words of mails, {found['bytes_of_messages'] / n:,.0f} bytes each")
    if found["first_learned"] is not None:
        first, last = (time.strftime("%Y-%m-%d", time.localtime(found[f"{one}_learned"])) for one in ("first", "last"))
        answer(f"  from            {first} to {last}")
    at = found["calibrated_at"]
    answer(f"  calibrated      {'not yet' if at is None else f'at {at:,} mails'}")
    if check:
        answer("  adds up         yes: all mails counted again")
