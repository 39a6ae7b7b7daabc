"""What is measured on scored rows: shares per class, the area under the curve, calibration, precision and recall.

Products are summed by ``sum``, not by ``@``: its threads would change the last digits with their number.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tallybayes.evaluation.metrics.metric_intervals import (
    LossPrior,
    MetricEstimate,
    MetricEstimates,
    average,
    effective_rows,
    moment_matched_interval,
    proportion_interval,
)

N_BINS = 15  # of confidence, all of one width
_N_DRAWS = 4000
_SEED = 0


class ScoredRows:
    """Rows with their class, the log-probability of every class, and a weight. Only rows that count are here.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
    log_proba : ndarray of shape (n, classes)
    weight : ndarray of shape (n,), or None
        All positive.
    predicted : ndarray of int of shape (n,), optional
        What was predicted, where that is not the most probable class.
    """

    def __init__(
        self, codes: np.ndarray, log_proba: np.ndarray, weight: np.ndarray | None, predicted: np.ndarray | None = None
    ) -> None:
        self.codes, self.log_proba, self.weight = codes, log_proba, weight
        if predicted is not None:
            self.predicted = predicted
        self.n_rows, self.n_classes = log_proba.shape

    @cached_property
    def predicted(self) -> np.ndarray:
        """The most probable class of every row, the first of several."""
        if self.n_classes == 2:  # argmax along a short axis takes five times as long
            return (self.log_proba[:, 1] > self.log_proba[:, 0]).astype(np.intp)
        return self.log_proba.argmax(axis=1)

    @cached_property
    def is_correct(self) -> np.ndarray:
        """Whether every row's class is the predicted one."""
        return self.predicted == self.codes

    @cached_property
    def true_class_log_proba(self) -> np.ndarray:
        """log p(class | row) of every row's own class."""
        return self.log_proba[np.arange(self.n_rows), self.codes]

    @cached_property
    def per_class(self) -> PerClass:
        """Weights and squared weights by class."""
        weight, n = self.weight, self.n_classes
        square = None if weight is None else weight**2
        right = self.codes[self.is_correct]
        mine = None if weight is None else weight[self.is_correct]
        return PerClass(
            *_count_pair(self.codes, weight, square, n),
            *_count_pair(self.predicted, weight, square, n),
            *_count_pair(right, mine, None if mine is None else mine**2, n),
        )


class PerClass(NamedTuple):
    """Total weight and total squared weight by class, each of shape (classes,): true, predicted, and both."""

    true: np.ndarray
    true_squares: np.ndarray
    predicted: np.ndarray
    predicted_squares: np.ndarray
    is_correct: np.ndarray
    right_squares: np.ndarray


def _count_pair(
    codes: np.ndarray, weight: np.ndarray | None, square: np.ndarray | None, n: int
) -> tuple[np.ndarray, np.ndarray]:
    if weight is None:
        count = np.bincount(codes, minlength=n).astype(float)
        return count, count
    return np.bincount(codes, weight, minlength=n), np.bincount(codes, square, minlength=n)


def accuracy(scores: ScoredRows, mass: float) -> MetricEstimate:
    """The share of the weight whose class is predicted."""
    c = scores.per_class
    return proportion_interval(c.is_correct.sum()[None], c.true.sum()[None], c.true_squares.sum()[None], mass).at(0)


def precision(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Of what is predicted as each class, the share that is of it."""
    c = scores.per_class
    return proportion_interval(c.is_correct, c.predicted, c.predicted_squares, mass)


def recall(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Of each class, the share that is predicted."""
    c = scores.per_class
    return proportion_interval(c.is_correct, c.true, c.true_squares, mass)


def false_positive_rate(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Of all that is not of each class, the share predicted as it."""
    c = scores.per_class
    others, squares = c.true.sum() - c.true, c.true_squares.sum() - c.true_squares
    others = np.where(c.true == c.true.sum(), 0.0, others)  # rounding leaves crumbs where there are none
    return proportion_interval(np.clip(c.predicted - c.is_correct, 0.0, others), others, np.maximum(squares, 0.0), mass)


def f_score(scores: ScoredRows, mass: float) -> MetricEstimates:
    """F₁ = 2π/(1 + π) of each class, with π = TP/(TP + FP + FN).

    π is a share, so its interval is that of a Beta; F₁ grows with π, so its interval has the images as ends.
    """
    c = scores.per_class
    found = proportion_interval(
        c.is_correct,
        c.true + (c.predicted - c.is_correct),
        c.true_squares + (c.predicted_squares - c.right_squares),
        mass,
    )
    return MetricEstimates(*(2 * part / (1 + part) for part in found))


def macro_shares(measures: MetricEstimates, total: np.ndarray, squares: np.ndarray, mass: float) -> MetricEstimate:
    """The mean over the classes for which a share is defined; the shares are independent, so variances add."""
    here = total > 0
    if not here.any():
        return moment_matched_interval(np.nan, 0.0, mass)
    value, n = measures.value[here], effective_rows(total, squares)[here]
    mean = (1 + value * n) / (2 + n)
    variance = mean * (1 - mean) / np.maximum(n, 1.0)
    return moment_matched_interval(float(value.mean()), float(variance.sum()) / len(n) ** 2, mass)


def macro_f_score(scores: ScoredRows, mass: float) -> MetricEstimate:
    """The mean of F₁ over the classes that occur or are predicted.

    A wrong row lowers the F₁ of two classes, so they are not independent: the variance is that of the first-order
    effects of single rows, which hold both. One right and one wrong row more in every class are the prior; they keep it
    from being 0 where no row is wrong.
    """
    c = scores.per_class
    here = (c.true + c.predicted) > 0
    scale = c.true.sum() / c.true_squares.sum()  # the weights now sum to the effective number of rows
    right, rows = scale * c.is_correct, scale * (c.true + c.predicted)
    value = 2 * right[here] / rows[here]
    smooth = 2 * (right + 1) / (rows + 3)
    size = np.maximum(rows, 1.0)
    gain, loss = 2 * (1 - smooth) / size, smooth / size  # of one right, of one wrong row
    effect = np.where(scores.is_correct, gain[scores.codes], loss[scores.codes] + loss[scores.predicted])
    squared = effect**2
    total = squared.sum() if scores.weight is None else scale**2 * (scores.weight**2 * squared).sum()
    prior = (gain[here] ** 2 + loss[here] ** 2).sum()
    return moment_matched_interval(float(value.mean()), float(total + prior) / int(here.sum()) ** 2, mass)


def log_loss(scores: ScoredRows, mass: float) -> MetricEstimate:
    """The mean of −log p(class | row), in nats."""
    guess = LossPrior(float(np.log(scores.n_classes)), 0.0, np.inf)
    return average(np.maximum(-scores.true_class_log_proba, 0.0), scores.weight, mass, guess)


def brier(scores: ScoredRows, mass: float) -> MetricEstimate:
    """The mean of Σ_c (y_c − p_c)², halved for two classes."""
    p_truth, n = np.exp(scores.true_class_log_proba), scores.n_classes
    if n == 2:
        return average((1 - p_truth) ** 2, scores.weight, mass, LossPrior(0.25, 0.0, 1.0))
    p = np.exp(scores.log_proba)
    loss = np.einsum("ij,ij->i", p, p) - 2 * p_truth + 1
    return average(np.maximum(loss, 0.0), scores.weight, mass, LossPrior(1 - 1 / n, 0.0, 2.0))


def score_of(scores: ScoredRows, k: int) -> np.ndarray:
    """What ranks rows by p(class k): log-odds of two classes, which still differ where p rounds to 1."""
    if scores.n_classes == 2:
        return scores.log_proba[:, k] - scores.log_proba[:, 1 - k]
    return np.ascontiguousarray(scores.log_proba[:, k])  # it is read several times, and the columns lie far apart


def auc(scores: ScoredRows, mass: float) -> MetricEstimate:
    """The area under the ROC curve: of class 1 of two, else the mean of each class against the rest.

    The variance is DeLong's, with all classes in one: the effects of single rows on the mean. That would be 0 where no
    pair is in the wrong order, so each area has the variance of a Beta(n + 1, 1) besides, with n = 4 n₁n₂/(n₁ + n₂).
    """
    c = scores.per_class
    positives = [1] if scores.n_classes == 2 else range(scores.n_classes)
    areas, from_prior, effects = [], 0.0, np.zeros(scores.n_rows)
    for k in positives:
        if c.true[k] == 0 or np.count_nonzero(c.true) < 2:
            continue
        area, n_positive, n_negative, effect = _area(score_of(scores, k), scores.codes == k, scores.weight)
        n = 4 * n_positive * n_negative / max(n_positive + n_negative, 1.0)
        areas.append(area)
        from_prior += (n + 1) / ((n + 2) ** 2 * (n + 3))
        effects += effect
    if not areas:
        return moment_matched_interval(np.nan, 0.0, mass)
    variance = (float((effects**2).sum()) + from_prior) / len(areas) ** 2
    return moment_matched_interval(float(np.mean(areas)), variance, mass)


def _area(score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float, np.ndarray]:
    """The share of pairs in the right order (ties: half), effective positives and negatives, and every row's effect."""
    order = np.argsort(score, kind="stable")  # far quicker than the default where most scores are nearly the same
    ranked, up = score[order], positive[order]
    tie = np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])
    w = np.ones(len(score)) if weight is None else weight[order]
    above, below = np.where(up, w, 0.0), np.where(up, 0.0, w)
    n_up, n_down = float(above.sum()), float(below.sum())
    effective = [float(effective_rows(total, (part**2).sum())) for total, part in ((n_up, above), (n_down, below))]
    at_up, at_down = np.bincount(tie, above), np.bincount(tie, below)
    beaten = (np.cumsum(at_down) - 0.5 * at_down) / n_down  # of the negatives, by a positive here
    beating = 1 - (np.cumsum(at_up) - 0.5 * at_up) / n_up  # of the positives, a negative here
    area = float((at_up * beaten).sum()) / n_up
    unbiased = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in effective]
    share = np.where(up, w * (unbiased[0] / n_up), w * (unbiased[1] / n_down))
    effect = np.empty(len(score))
    effect[order] = share * (np.where(up, beaten[tie], beating[tie]) - area)
    return min(max(area, 0.0), 1.0), effective[0], effective[1], effect


class Reliability(NamedTuple):
    """How often the predicted class is right, by the probability it was given: one entry for every bin with rows.

    Attributes
    ----------
    confidence : ndarray of shape (bins,)
        The mean probability of the predicted class.
    accuracy : Measures, each of shape (bins,)
        The share that is right.
    weight, squares : ndarray of shape (bins,)
        The total weight, and the sum of the squared weights.
    edges : ndarray of shape (bins, 2)
        Where each bin starts and ends.
    """

    confidence: np.ndarray
    accuracy: MetricEstimates
    weight: np.ndarray
    squares: np.ndarray
    edges: np.ndarray


def reliability(scores: ScoredRows, mass: float) -> Reliability:
    """Rows in bins of one width, (j/15, (j + 1)/15], by the probability of their predicted class."""
    top = scores.log_proba[np.arange(scores.n_rows), scores.predicted]
    confidence = np.minimum(np.exp(top), 1.0)
    places = np.clip(np.ceil(confidence * N_BINS).astype(np.intp) - 1, 0, N_BINS - 1)
    w = scores.weight
    total, squares = _count_pair(places, w, None if w is None else w**2, N_BINS)
    sums = np.bincount(places, confidence if w is None else w * confidence, minlength=N_BINS)
    right = np.bincount(places, scores.is_correct if w is None else w * scores.is_correct, minlength=N_BINS)
    here = np.flatnonzero(total)
    found = proportion_interval(np.minimum(right, total)[here], total[here], squares[here], mass)
    edges = np.stack([here, here + 1], axis=1) / N_BINS
    return Reliability(sums[here] / total[here], found, total[here], squares[here], edges)


def calibration_gap(bins: Reliability) -> float:
    """Σ_b (weight of b) |accuracy of b − confidence of b|."""
    return float((bins.weight / bins.weight.sum() * np.abs(bins.accuracy.value - bins.confidence)).sum())


def calibration_error(bins: Reliability, mass: float) -> MetricEstimate:
    """The calibration gap, with an interval from draws.

    In every bin, the true share of right rows has a Beta posterior under a uniform prior. The draws have a fixed seed.
    """
    share, value = bins.weight / bins.weight.sum(), calibration_gap(bins)
    n = effective_rows(bins.weight, bins.squares)
    right = n * bins.accuracy.value
    draws = np.random.default_rng(_SEED).beta(1 + right, 1 + (n - right), (_N_DRAWS, len(n)))
    low, high = np.quantile((np.abs(draws - bins.confidence) * share).sum(axis=1), [(1 - mass) / 2, (1 + mass) / 2])
    return MetricEstimate(value, min(float(low), value), max(float(high), value))


class Curve(NamedTuple):
    """Precision and recall at every threshold, from none predicted to all, and the area under the steps."""

    precision: np.ndarray
    recall: np.ndarray
    average_precision: float


def precision_recall(scores: ScoredRows, k: int) -> Curve:
    """The curve of one class against the rest; the average precision is Σ (R_i − R_{i−1}) P_i."""
    score = score_of(scores, k)
    order = np.argsort(-score, kind="stable")
    w = np.ones(scores.n_rows) if scores.weight is None else scores.weight[order]
    right = np.cumsum(np.where(scores.codes[order] == k, w, 0.0))
    ranked = score[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), scores.n_rows - 1)  # ties enter together
    precision, recall = right[last] / np.cumsum(w)[last], right[last] / right[-1]
    area = float((np.diff(recall, prepend=0.0) * precision).sum())
    return Curve(np.append(precision[0], precision), np.append(0.0, recall), area)
