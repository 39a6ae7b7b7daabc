"""Thresholds on the probability of a class, for a stated precision or recall on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from tallybayes.errors import DataError, LabelError
from tallybayes.results.classification_metrics import precision_recall_curve


class Threshold(NamedTuple):
    """The minimum probability at which rows are assigned to a class, with its precision and recall on held-out rows.

    Attributes
    ----------
    positive : label
        The class.
    log_odds : float
        The threshold on log p(positive | row) − log p(any other | row): probabilities near 1 keep their digits.
    precision : float
        Of the held-out rows at or above the threshold, the proportion that is of the class.
    recall : float
        Of the held-out rows of the class, the proportion at or above the threshold.

    Examples
    --------
    >>> import tallybayes as tb
    >>> X, y = {"x": [1.0, 2.0, 2.5, 3.0, 3.5, 4.0]}, ["no", "no", "yes", "no", "yes", "yes"]
    >>> threshold = tb.evaluate(tb.NaiveBayes().fit(X, y), X, y).threshold(precision=0.9)
    >>> threshold.positive, threshold.precision, round(threshold.recall, 2)
    ('yes', 1.0, 0.67)
    """

    positive: Any
    log_odds: float
    precision: float
    recall: float

    @property
    def probability(self) -> float:
        """The threshold as a probability."""
        return float(expit(self.log_odds))


def log_odds_of(log_proba: np.ndarray, k: int) -> np.ndarray:
    """Return log p(class k | row) − log p(any other class | row) of every row."""
    others = np.delete(log_proba, k, axis=1)
    log_rest = np.logaddexp.reduce(others, axis=1) if others.shape[1] else np.full(len(log_proba), -np.inf)
    with np.errstate(invalid="ignore"):  # impossible in all classes
        return np.nan_to_num(log_proba[:, k] - log_rest, nan=0.0, posinf=np.inf, neginf=-np.inf)


def place_of(positive: object, classes: Sequence[object]) -> int:
    """Return the index of the positive class; of two classes that of the second if positive is None."""
    if positive is None:
        if len(classes) != 2:
            raise DataError(
                f"positive is missing and there are {len(classes)} classes; expected the class whose precision or "
                f"recall is stated.\n    Pass positive=, one of {', '.join(map(repr, classes[:8]))}."
            )
        return 1
    if positive not in classes:
        raise LabelError.no_such_class(positive, classes)
    return classes.index(positive)


def find_threshold(
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None,
    classes: Sequence[object],
    positive: object,
    precision: float | None,
    recall: float | None,
) -> Threshold:
    """Return the threshold of the highest recall with at least a precision, or of the highest precision with a recall.

    If both are given, the highest recall with the precision must be at least the stated one.
    """
    for name, value in (("precision", precision), ("recall", recall)):
        if value is not None and not (isinstance(value, int | float | np.number) and 0 < value <= 1):
            raise DataError(f"{name} is {value!r}; expected a number above 0 and up to 1.")
    if precision is None and recall is None:
        raise DataError("neither precision nor recall is given; expected at least one of them, such as precision=0.95.")
    k = place_of(positive, classes)
    label = classes[k]
    odds = log_odds_of(log_proba, k)
    weights = np.ones(len(odds)) if weight is None else weight
    if not weights[codes == k].any():
        raise DataError(f"no held-out row is of class {label!r}; expected at least 1.")
    curve = precision_recall_curve(odds[weights > 0], codes[weights > 0] == k, weights[weights > 0])
    at = curve.thresholds[1:]
    precisions = curve.precision[1:]
    recalls = curve.recall[1:]
    allowed = recalls >= (recall or 0.0)
    reached = np.flatnonzero(allowed & (precisions >= (precision or 0.0)))
    if not len(reached):
        near = np.argmax(np.where(allowed, precisions, -1.0))
        stated = f"precision {precision:g}" + (f" with recall {recall:g}" if recall is not None else "")
        raise DataError(
            f"{stated} of class {label!r} is not reached on these {len(odds):,} rows; the highest precision"
            f"{' with that recall' if recall is not None else ''} is {precisions[near]:.4f}, with recall "
            f"{recalls[near]:.4f}.\n    State a lower precision, or use a better model."
        )
    # Recall increases along the thresholds.
    best = reached[-1] if precision is not None else reached[np.argmax(precisions[reached])]
    below = at[best + 1] if best + 1 < len(at) else -np.inf
    middle = at[best] if np.isinf(below) or np.isinf(at[best]) else (at[best] + below) / 2
    log_odds = middle if middle > below else at[best]
    return Threshold(label, float(log_odds), float(precisions[best]), float(recalls[best]))
