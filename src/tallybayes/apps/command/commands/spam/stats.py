"""`tally spam stats`: what there is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tallybayes.apps.command.faults import CommandError
from tallybayes.apps.command.terminal import File, answer, answer_json

if TYPE_CHECKING:
    from tallybayes.apps.spam.store import Store


def stats(*, store: File | None = None, check: bool = False, picture: File | None = None, json: bool = False) -> None:
    """Show what was learned, and what it takes.

    For example

      tally spam stats
      tally spam stats --check
      tally spam stats --picture honest.svg
      tally spam stats --store postgresql://server/mail --json

    Parameters
    ----------
    store
        The store: a file, or postgresql://…
    check
        Count all kept mails again, and compare: refused, with what differs, where anything does.
    picture
        Draw how often probabilities came true, of the learned mails without themselves: honest-before.svg of plain
        naive Bayes, honest.svg calibrated.
    json
        Write it as JSON.
    """
    from tallybayes.apps.spam.store import Store
    from tallybayes.apps.spam.upkeep import integrity
    from tallybayes.apps.spam.upkeep import stats as measure

    with Store(store, read_only=True) as counts:
        found = measure(counts)
        wrong = integrity(counts) if check else []
        if picture is not None:
            _draw(counts, picture)
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
    if picture is not None:
        answer(f"\ndrew {_before(picture)} and {picture}")


def _before(picture: str) -> str:
    """The file of the other picture."""
    path = Path(picture)
    return str(path.with_name(f"{path.stem}-before{path.suffix}"))


def _draw(counts: Store, picture: str) -> None:
    """How often probabilities come true, of mails that were left out one by one: before calibration, and after."""
    from tallybayes.apps.spam.calibrate import left_out_log_odds
    from tallybayes.apps.spam.judging import calibration_of
    from tallybayes.apps.spam.learning import messages_of
    from tallybayes.apps.spam.measuring import draw_reliability
    from tallybayes.apps.spam.score import KINDS, Calibration

    kept = messages_of(counts, 10_000)
    if not 0 < kept.is_spam.sum() < len(kept.is_spam):
        raise CommandError("there is no picture without ham and spam that were learned.")
    plain = Calibration(0.0, (1.0,) * len(KINDS))
    for calibration, path in ((plain, _before(picture)), (calibration_of(counts.state()), picture)):
        draw_reliability(left_out_log_odds(kept, calibration), kept.is_spam, path)
