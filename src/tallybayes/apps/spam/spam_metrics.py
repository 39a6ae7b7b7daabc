"""Metrics of verdicts on mail with known class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.apps.spam.verdicts import Verdict


def compute_metrics(ham: Sequence[Verdict], spam: Sequence[Verdict]) -> dict[str, Any]:
    """Return the error rates, the numbers of unsure verdicts, (1 - AUC) % and the log loss."""
    scores = np.array([verdict.log_odds for verdict in (*ham, *spam)])
    is_spam = np.arange(len(scores)) >= len(ham)
    counts = [
        [sum(verdict.verdict == name for verdict in verdicts) for name in ("ham", "spam", "unsure")]
        for verdicts in (ham, spam)
    ]
    return {
        "ham": len(ham),
        "spam": len(spam),
        "false_positives": counts[0][1],
        "false_negatives": counts[1][0],
        "false_positive_rate": counts[0][1] / len(ham),
        "false_negative_rate": counts[1][0] / len(spam),
        "unsure_ham": counts[0][2],
        "unsure_spam": counts[1][2],
        "one_minus_auc_percent": 100 * (1 - roc_auc(scores, is_spam)),
        "log_loss": float(np.mean(np.logaddexp(0.0, np.where(is_spam, -scores, scores)))),
    }


def roc_auc(scores: Any, is_spam: Any) -> float:
    """Return the ROC AUC: the proportion of pairs in which the spam scores higher than the ham; ties count as half."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    del values
    rank = np.cumsum(counts) - (counts - 1) / 2
    n = int(is_spam.sum())
    return float((rank[inverse][is_spam].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def draw_reliability(log_odds: Any, is_spam: Any, path: str) -> None:
    """Save a reliability diagram."""
    import tallybayes as tb

    odds = np.asarray(log_odds, dtype=float)
    log_proba = -np.logaddexp(0.0, np.stack([odds, -odds], axis=1))
    tb.Evaluation(["ham", "spam"], np.asarray(is_spam).astype(int), log_proba).plot_reliability().save(path)
