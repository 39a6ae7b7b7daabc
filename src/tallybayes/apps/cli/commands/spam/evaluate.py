"""`tally spam evaluate`: metrics of the verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.commands.spam.spam_options import plain_paths
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status

if TYPE_CHECKING:
    from tallybayes.apps.spam.spam_score import Thresholds
    from tallybayes.apps.spam.verdicts import Verdict


def evaluate(
    *,
    ham: tuple[File, ...],
    spam: tuple[File, ...],
    store: File | None = None,
    thresholds: str | None = None,
    costs: str | None = None,
    learning: bool = False,
    plot: File | None = None,
    json: bool = False,
) -> None:
    """Compute metrics of the verdicts on mail with known class.

    The store is not changed. The metrics of learned mail are too optimistic:
    pass other mail.

      tally spam evaluate --ham test/ham --spam test/spam
      tally spam evaluate --ham a.mbox --spam b.mbox --thresholds 0.5,0.5
      tally spam evaluate --ham a.mbox --spam b.mbox --plot reliability.svg
      tally spam evaluate --ham a.mbox --spam b.mbox --learning --plot curve.svg

    Parameters
    ----------
    ham
        Ham: an mbox, a Maildir, a folder of files, files, or -.
    spam
        Spam, in the same forms.
    store
        The store: a file or a PostgreSQL address, postgresql://…
    thresholds
        Probabilities of spam HAM,SPAM: ham at most HAM, spam at least SPAM; by default 0.1,0.995.
    costs
        Costs of a false positive, a false negative and an unsure verdict; instead of --thresholds.
    learning
        Prequential evaluation from an empty filter: classify, then learn each mail in order of date. No store is used.
    plot
        Plot the reliability diagram; with --learning, the learning curve. A file with suffix .svg, .pdf or .png.
    json
        Write all metrics as JSON.
    """
    if not ham or not spam:
        raise UsageError("missing option: pass both --ham PATH and --spam PATH.")
    plain_paths((*ham, *spam))
    from tallybayes.apps.spam.check_mail import thresholds_of
    from tallybayes.apps.spam.spam_metrics import compute_metrics, draw_reliability

    limits = thresholds_of(thresholds, costs)
    if learning:
        verdicts = _prequential(plain_paths(ham), plain_paths(spam), limits, plot)
    else:
        verdicts = _by_store(store, {"ham": ham, "spam": spam}, limits)
        if plot is not None:
            odds = [verdict.log_odds for class_verdicts in verdicts for verdict in class_verdicts]
            draw_reliability(odds, [False] * len(verdicts[0]) + [True] * len(verdicts[1]), plot)
    metrics = compute_metrics(*verdicts)
    if json:
        answer_json(metrics)
        return
    n_ham = metrics["ham"]
    n_spam = metrics["spam"]
    print_result(
        f"{n_ham:,} ham and {n_spam:,} spam; thresholds: ham at most {limits.ham:g}, spam at least {limits.spam:g}\n"
    )
    print_result(
        f"  false positives     {metrics['false_positives']:>6,}   {metrics['false_positive_rate']:.2%} of ham"
    )
    print_result(
        f"  false negatives     {metrics['false_negatives']:>6,}   {metrics['false_negative_rate']:.2%} of spam"
    )
    print_result(f"  unsure              {metrics['unsure_ham']:>6,} ham, {metrics['unsure_spam']:,} spam")
    print_result(f"  (1 − AUC) %         {metrics['one_minus_auc_percent']:>6.4f}")
    print_result(f"  log loss (nats)     {metrics['log_loss']:>6.4f}")
    if plot is not None:
        print_result(f"\nwrote {plot}")


def _by_store(store: str | None, paths_by_class: dict[str, tuple[str, ...]], limits: Thresholds) -> list[list[Verdict]]:
    """Return the verdicts on ham and on spam of a store."""
    from tallybayes.apps.spam.check_mail import classify_files
    from tallybayes.apps.spam.store.spam_store import Store

    Store(store, read_only=True).close()  # raises an error if the store does not exist
    by_class: list[list[Any]] = []
    for label, paths in paths_by_class.items():
        verdicts = [verdict for _, verdict in classify_files(store, plain_paths(paths), limits)]
        error = next((verdict for verdict in verdicts if isinstance(verdict, OSError)), None)
        if error is not None:
            raise error
        if not verdicts:
            raise CommandError(f"--{label} {' '.join(paths)} has no mail; expected files or folders of mail.")
        by_class.append(verdicts)
    return by_class


def _prequential(
    ham: tuple[str, ...], spam: tuple[str, ...], limits: Thresholds, plot: str | None
) -> list[list[Verdict]]:
    """Return the verdicts on ham and on spam by prequential evaluation: each mail is classified, then learned."""
    import tallybayes as tb
    from tallybayes.apps.spam.spam_prequential import learning_curve, prequential_verdicts
    from tallybayes.apps.spam.unpacking import NotMailError, describe_skipped

    skipped: list[NotMailError] = []
    results = list(prequential_verdicts({"ham": ham, "spam": spam}, limits, skipped=skipped))
    if skipped:
        print_status(describe_skipped(skipped))
    by_class = [[result.verdict for result in results if result.is_spam == is_spam] for is_spam in (False, True)]
    for label, verdicts in zip(("ham", "spam"), by_class, strict=True):
        if not verdicts:
            raise CommandError(f"--{label} has no mail; expected files or folders of mail.")
    if plot is not None:
        sizes, error, log_loss = learning_curve(results)
        curves = tb.LearningCurves(["test-then-train"], sizes, error[None, :, None], log_loss[None, :, None])
        curves.plot().save(plot)
    return by_class
