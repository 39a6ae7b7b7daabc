"""`tally spam stats`: numbers of mails and words, and size of the store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result

if TYPE_CHECKING:
    from tallybayes.apps.spam.store.spam_store import Store


def stats(*, store: File | None = None, check: bool = False, plot: File | None = None, json: bool = False) -> None:
    """Show the numbers of mails and words, and the size of the store.

    For example

      tally spam stats
      tally spam stats --check
      tally spam stats --plot calibrated.svg
      tally spam stats --store postgresql://server/mail --json

    Parameters
    ----------
    store
        The store: a file or a PostgreSQL address, postgresql://…
    check
        Recount all stored mails; exit with an error that lists the differences, if any.
    plot
        Plot reliability diagrams of the leave-one-out probabilities of the learned mails: NAME-before.svg before
        calibration, NAME.svg after it.
    json
        Write the numbers as JSON.
    """
    from tallybayes.apps.spam.store.maintenance import check_integrity
    from tallybayes.apps.spam.store.maintenance import stats as store_stats
    from tallybayes.apps.spam.store.spam_store import Store

    with Store(store, read_only=True) as counts:
        numbers = store_stats(counts)
        differences = check_integrity(counts) if check else []
        if plot is not None:
            _draw(counts, plot)
    if differences:
        raise CommandError(f"the counts of {numbers['store']} are inconsistent:\n    " + "\n    ".join(differences))
    if json:
        answer_json({**numbers, **({"adds_up": True} if check else {})})
        return
    n = max(numbers["messages"], 1)
    print_result(f"{numbers['store']}\n")
    print_result(f"  learned         {numbers['ham']:,} ham, {numbers['spam']:,} spam")
    if numbers["imported_ham"] or numbers["imported_spam"]:
        imported = f"{numbers['imported_ham']:,} ham, {numbers['imported_spam']:,} spam"
        print_result(f"    of these      {imported} imported, which cannot be forgotten by mail")
    print_result(f"  words           {numbers['words']:,}, of which {numbers['words_seen_once']:,} occur in one mail")
    print_result(
        f"  size            {numbers['bytes'] / 1e6:,.1f} MB, of which {numbers['bytes_of_messages'] / 1e6:,.1f} MB for"
    )
    print_result(f"                  the words of mails, {numbers['bytes_of_messages'] / n:,.0f} bytes each")
    if numbers["first_learned"] is not None:
        first, last = (
            time.strftime("%Y-%m-%d", time.localtime(numbers[f"{end}_learned"])) for end in ("first", "last")
        )
        print_result(f"  from            {first} to {last}")
    at = numbers["calibrated_at"]
    print_result(f"  calibrated      {'not yet' if at is None else f'at {at:,} mails'}")
    if check:
        print_result("  consistent      yes: all mails recounted")
    if plot is not None:
        print_result(f"\nwrote {_path_before(plot)} and {plot}")


def _path_before(plot: str) -> str:
    """Return the file name of the plot before calibration."""
    path = Path(plot)
    return str(path.with_name(f"{path.stem}-before{path.suffix}"))


def _draw(counts: Store, plot: str) -> None:
    """Plot the reliability diagrams of the leave-one-out probabilities, before and after calibration."""
    from tallybayes.apps.spam.spam_calibration import leave_one_out_log_odds
    from tallybayes.apps.spam.spam_metrics import draw_reliability
    from tallybayes.apps.spam.spam_score import TOKEN_KINDS, SpamCalibration
    from tallybayes.apps.spam.train import messages_of
    from tallybayes.apps.spam.verdicts import calibration_of

    messages = messages_of(counts, 10_000)
    if not 0 < messages.is_spam.sum() < len(messages.is_spam):
        raise CommandError(
            "a reliability diagram requires learned ham and learned spam.\n    Learn both with 'tally spam learn'."
        )
    plain = SpamCalibration(0.0, (1.0,) * len(TOKEN_KINDS))
    for calibration, path in ((plain, _path_before(plot)), (calibration_of(counts.state()), plot)):
        draw_reliability(leave_one_out_log_odds(messages, calibration), messages.is_spam, path)
