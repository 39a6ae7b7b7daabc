"""`tally spam stats`: what there is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result

if TYPE_CHECKING:
    from tallybayes.apps.spam.store.spam_store import Store


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
    from tallybayes.apps.spam.store.maintenance import check_integrity
    from tallybayes.apps.spam.store.maintenance import stats as measure
    from tallybayes.apps.spam.store.spam_store import Store

    with Store(store, read_only=True) as counts:
        found = measure(counts)
        wrong = check_integrity(counts) if check else []
        if picture is not None:
            _draw(counts, picture)
    if wrong:
        raise CommandError(f"{found['store']} does not add up:\n    " + "\n    ".join(wrong))
    if json:
        answer_json({**found, **({"adds_up": True} if check else {})})
        return
    n = max(found["messages"], 1)
    print_result(f"{found['store']}\n")
    print_result(f"  learned         {found['ham']:,} ham, {found['spam']:,} spam")
    if found["imported_ham"] or found["imported_spam"]:
        imported = f"{found['imported_ham']:,} ham, {found['imported_spam']:,} spam"
        print_result(f"    of these      {imported} imported, which cannot be forgotten one by one")
    print_result(f"  words           {found['words']:,}, of which {found['words_seen_once']:,} were seen once")
    print_result(
        f"  size            {found['bytes'] / 1e6:,.1f} MB, of which {found['bytes_of_messages'] / 1e6:,.1f} MB are"
    )
    print_result(f"                  the words of mails, {found['bytes_of_messages'] / n:,.0f} bytes each")
    if found["first_learned"] is not None:
        first, last = (time.strftime("%Y-%m-%d", time.localtime(found[f"{one}_learned"])) for one in ("first", "last"))
        print_result(f"  from            {first} to {last}")
    at = found["calibrated_at"]
    print_result(f"  calibrated      {'not yet' if at is None else f'at {at:,} mails'}")
    if check:
        print_result("  adds up         yes: all mails counted again")
    if picture is not None:
        print_result(f"\ndrew {_before(picture)} and {picture}")


def _before(picture: str) -> str:
    """The file of the other picture."""
    path = Path(picture)
    return str(path.with_name(f"{path.stem}-before{path.suffix}"))


def _draw(counts: Store, picture: str) -> None:
    """How often probabilities come true, of mails that were left out one by one: before calibration, and after."""
    from tallybayes.apps.spam.spam_calibration import left_out_log_odds
    from tallybayes.apps.spam.spam_metrics import draw_reliability
    from tallybayes.apps.spam.spam_score import TOKEN_KINDS, SpamCalibration
    from tallybayes.apps.spam.train import messages_of
    from tallybayes.apps.spam.verdicts import calibration_of

    kept = messages_of(counts, 10_000)
    if not 0 < kept.is_spam.sum() < len(kept.is_spam):
        raise CommandError("there is no picture without ham and spam that were learned.")
    plain = SpamCalibration(0.0, (1.0,) * len(TOKEN_KINDS))
    for calibration, path in ((plain, _before(picture)), (calibration_of(counts.state()), picture)):
        draw_reliability(left_out_log_odds(kept, calibration), kept.is_spam, path)
