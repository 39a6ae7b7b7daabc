"""How good verdicts are, on mail whose class is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.apps.spam.verdicts import Verdict


def measure(ham: Sequence[Verdict], spam: Sequence[Verdict]) -> dict[str, Any]:
    """Rates of both errors, what is unsure, (1 − AUC) % and the log-loss, of some of both classes."""
    scores = np.array([one.log_odds for one in (*ham, *spam)])
    is_spam = np.arange(len(scores)) >= len(ham)
    calls = [
        [sum(one.verdict == verdict for one in part) for verdict in ("ham", "spam", "unsure")] for part in (ham, spam)
    ]
    return {
        "ham": len(ham),
        "spam": len(spam),
        "false_positives": calls[0][1],
        "false_negatives": calls[1][0],
        "false_positive_rate": calls[0][1] / len(ham),
        "false_negative_rate": calls[1][0] / len(spam),
        "unsure_ham": calls[0][2],
        "unsure_spam": calls[1][2],
        "one_minus_auc_percent": 100 * (1 - area(scores, is_spam)),
        "log_loss": float(np.mean(np.logaddexp(0.0, np.where(is_spam, -scores, scores)))),
    }


def area(scores: Any, is_spam: Any) -> float:
    """How often a spam scores higher than a ham, of all pairs; a tie is half."""
    values, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    del values
    rank = np.cumsum(counts) - (counts - 1) / 2
    n = int(is_spam.sum())
    return float((rank[place][is_spam].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def draw_reliability(log_odds: Any, is_spam: Any, path: str) -> None:
    """Draw how often probabilities come true."""
    import tallybayes as tb

    odds = np.asarray(log_odds, dtype=float)
    log_proba = -np.logaddexp(0.0, np.stack([odds, -odds], axis=1))
    tb.Evaluation(["ham", "spam"], np.asarray(is_spam).astype(int), log_proba).plot_reliability().save(path)
