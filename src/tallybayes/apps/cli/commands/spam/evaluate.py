"""`tally spam evaluate`: how good the verdicts are."""

from __future__ import annotations

from typing import Any

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.commands.spam.spam_options import plain_paths
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status


def evaluate(
    *,
    ham: tuple[File, ...],
    spam: tuple[File, ...],
    store: File | None = None,
    thresholds: str | None = None,
    costs: str | None = None,
    learning: bool = False,
    picture: File | None = None,
    json: bool = False,
) -> None:
    """Measure the verdicts on mail that is known to be ham or spam.

    The store is left as it is. Mail that was learned flatters the filter: take
    other mail.

      tally spam evaluate --ham test/ham --spam test/spam
      tally spam evaluate --ham a.mbox --spam b.mbox --thresholds 0.5,0.5
      tally spam evaluate --ham a.mbox --spam b.mbox --picture reliability.svg
      tally spam evaluate --ham a.mbox --spam b.mbox --learning --picture curve.svg

    Parameters
    ----------
    ham
        Wanted mail: an mbox, a Maildir, a folder of files, files, or -.
    spam
        Unwanted mail, the same.
    store
        The store: a file, or postgresql://…
    thresholds
        Ham up to the first probability of spam, spam from the second on: 0.1,0.995 by default.
    costs
        What it costs to call ham spam, to call spam ham, and to be unsure; instead of --thresholds.
    learning
        Start from nothing: judge every mail, then learn it, as they were written. No store is used.
    picture
        Draw how often the probabilities come true; with --learning, how errors become fewer.
        A file that ends in .svg, .pdf or .png.
    json
        Write all measures as JSON.
    """
    if not ham or not spam:
        raise UsageError("both --ham PATH and --spam PATH are needed to measure.")
    plain_paths((*ham, *spam))
    from tallybayes.apps.spam.check_mail import thresholds_of
    from tallybayes.apps.spam.spam_metrics import draw_reliability, measure

    limits = thresholds_of(thresholds, costs)
    if learning:
        found = _from_nothing(plain_paths(ham), plain_paths(spam), limits, picture)
    else:
        found = _by_store(store, {"ham": ham, "spam": spam}, limits)
        if picture is not None:
            odds = [one.log_odds for part in found for one in part]
            draw_reliability(odds, [False] * len(found[0]) + [True] * len(found[1]), picture)
    measures = measure(*found)
    if json:
        answer_json(measures)
        return
    n_ham, n_spam = measures["ham"], measures["spam"]
    print_result(f"{n_ham:,} ham and {n_spam:,} spam; spam from {limits.spam:g} on, ham up to {limits.ham:g}\n")
    print_result(
        f"  ham called spam     {measures['false_positives']:>6,}   {measures['false_positive_rate']:.2%} of ham"
    )
    print_result(
        f"  spam called ham     {measures['false_negatives']:>6,}   {measures['false_negative_rate']:.2%} of spam"
    )
    print_result(f"  unsure              {measures['unsure_ham']:>6,} ham, {measures['unsure_spam']:,} spam")
    print_result(f"  (1 − AUC) %         {measures['one_minus_auc_percent']:>6.4f}")
    print_result(f"  log-loss (nats)     {measures['log_loss']:>6.4f}")
    if picture is not None:
        print_result(f"\ndrew {picture}")


def _by_store(store: str | None, parts: dict[str, tuple[str, ...]], limits: Any) -> list[list[Any]]:
    """The verdicts on ham and on spam of what a store has learned."""
    from tallybayes.apps.spam.check_mail import classify_files
    from tallybayes.apps.spam.store.spam_store import Store

    Store(store, read_only=True).close()  # or there is nothing to measure
    found: list[list[Any]] = []
    for label, paths in parts.items():
        verdicts = [verdict for _, verdict in classify_files(store, plain_paths(paths), limits)]
        failed = next((one for one in verdicts if isinstance(one, OSError)), None)
        if failed is not None:
            raise failed
        if not verdicts:
            raise CommandError(f"there is no mail in --{label} {' '.join(paths)}.")
        found.append(verdicts)
    return found


def _from_nothing(ham: Any, spam: Any, limits: Any, picture: str | None) -> list[list[Any]]:
    """The verdicts on ham and on spam, each before it was learned."""
    import tallybayes as tb
    from tallybayes.apps.spam.spam_prequential import curve_of, judged_then_learned
    from tallybayes.apps.spam.unpacking import NotMailError, listed

    skipped: list[NotMailError] = []
    judged = list(judged_then_learned({"ham": ham, "spam": spam}, limits, skipped=skipped))
    if skipped:
        print_status(listed(skipped))
    found = [[one.verdict for one in judged if one.is_spam == kind] for kind in (False, True)]
    for label, verdicts in zip(("ham", "spam"), found, strict=True):
        if not verdicts:
            raise CommandError(f"there is no mail in --{label}.")
    if picture is not None:
        sizes, *parts = curve_of(judged)
        curves = tb.LearningCurves(["judged, then learned"], sizes, *(part[None, :, None] for part in parts))
        curves.plot().save(picture)
    return found
