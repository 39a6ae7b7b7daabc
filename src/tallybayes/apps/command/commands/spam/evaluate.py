"""`tally spam evaluate`: how good the verdicts are."""

from __future__ import annotations

from typing import Any

from tallybayes.apps.command.commands.spam.shared import plain_paths
from tallybayes.apps.command.faults import CommandError, UsageError
from tallybayes.apps.command.terminal import answer, answer_json


def evaluate(
    *,
    ham: tuple[str, ...],
    spam: tuple[str, ...],
    store: str | None = None,
    thresholds: str | None = None,
    costs: str | None = None,
    json: bool = False,
) -> None:
    """Measure the verdicts on mail that is known to be ham or spam.

    The store is left as it is. Mail that was learned flatters the filter: take
    other mail.

      tally spam evaluate --ham test/ham --spam test/spam
      tally spam evaluate --ham a.mbox --spam b.mbox --thresholds 0.5,0.5

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
    json
        Write all measures as JSON.
    """
    if not ham or not spam:
        raise UsageError("both --ham PATH and --spam PATH are needed to measure.")
    plain_paths((*ham, *spam))
    from tallybayes.apps.spam.checking import judged, thresholds_of
    from tallybayes.apps.spam.measuring import measure
    from tallybayes.apps.spam.store import Store

    limits = thresholds_of(thresholds, costs)
    Store(store, read_only=True).close()  # or there is nothing to measure
    found: list[list[Any]] = []
    for label, paths in (("ham", ham), ("spam", spam)):
        verdicts = [verdict for _, verdict in judged(store, plain_paths(paths), limits)]
        failed = next((one for one in verdicts if isinstance(one, OSError)), None)
        if failed is not None:
            raise failed
        if not verdicts:
            raise CommandError(f"there is no mail in --{label} {' '.join(paths)}.")
        found.append(verdicts)
    measures = measure(*found)
    if json:
        answer_json(measures)
        return
    n_ham, n_spam = measures["ham"], measures["spam"]
    answer(f"{n_ham:,} ham and {n_spam:,} spam; spam from {limits.spam:g} on, ham up to {limits.ham:g}\n")
    answer(f"  ham called spam     {measures['false_positives']:>6,}   {measures['false_positive_rate']:.2%} of ham")
    answer(f"  spam called ham     {measures['false_negatives']:>6,}   {measures['false_negative_rate']:.2%} of spam")
    answer(f"  unsure              {measures['unsure_ham']:>6,} ham, {measures['unsure_spam']:,} spam")
    answer(f"  (1 − AUC) %         {measures['one_minus_auc_percent']:>6.4f}")
    answer(f"  log-loss (nats)     {measures['log_loss']:>6.4f}")
