"""Metrics of verdicts on mail with known class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import tallybayes as tb
from tallybayes.apps.spam.verdicts import Verdict


def compute_metrics(ham: Sequence[Verdict], spam: Sequence[Verdict]) -> dict[str, Any]:
    """Return the error rates, the numbers of unsure verdicts, (1 - AUC) % and the log loss."""
    evaluation = _evaluation([verdict.log_odds for verdict in (*ham, *spam)], [0] * len(ham) + [1] * len(spam))
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
        "one_minus_auc_percent": 100 * (1 - evaluation.roc_auc.value),
        "log_loss": evaluation.log_loss.value,
    }


def draw_reliability(log_odds: npt.ArrayLike, is_spam: npt.ArrayLike, path: str) -> None:
    """Save a reliability diagram."""
    _evaluation(log_odds, is_spam).plot_reliability().save(path)


def _evaluation(log_odds: npt.ArrayLike, is_spam: npt.ArrayLike) -> tb.Evaluation:
    """Return the evaluation of log-odds of spam."""
    odds = np.asarray(log_odds, dtype=float)
    log_proba = -np.logaddexp(0.0, np.stack([odds, -odds], axis=1))
    return tb.Evaluation(["ham", "spam"], np.asarray(is_spam).astype(int), log_proba)
