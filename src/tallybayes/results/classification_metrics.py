"""Classification metrics of scored rows: proportions by class, ROC AUC, calibration, precision and recall.

Products are summed by ``sum`` and not by ``@``, whose last digits depend on the number of threads.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tallybayes.results.metric_intervals import (
    LossPrior,
    MetricEstimate,
    MetricEstimates,
    average,
    effective_rows,
    moment_matched_interval,
    proportion_interval,
)

N_BINS = 15  # of confidence, of equal width
_N_DRAWS = 4000
_SEED = 0


class ScoredRows:
    """The class, the log-probability of every class and the weight of rows; rows of weight 0 are not included.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The true classes.
    log_proba : ndarray of shape (n, classes)
    weight : ndarray of shape (n,), or None
        All positive.
    predicted : ndarray of int of shape (n,), optional
        The predicted classes, unless they are the most probable ones.
    """

    def __init__(
        self, codes: np.ndarray, log_proba: np.ndarray, weight: np.ndarray | None, predicted: np.ndarray | None = None
    ) -> None:
        self.codes = codes
        self.log_proba = log_proba
        self.weight = weight
        if predicted is not None:
            self.predicted = predicted
        self.n_rows, self.n_classes = log_proba.shape

    @cached_property
    def predicted(self) -> np.ndarray:
        """The most probable class of every row, the first of ties."""
        if self.n_classes == 2:  # argmax along a short axis takes five times as long
            return (self.log_proba[:, 1] > self.log_proba[:, 0]).astype(np.intp)
        return self.log_proba.argmax(axis=1)

    @cached_property
    def is_correct(self) -> np.ndarray:
        """Whether the predicted class of every row is the true one."""
        return self.predicted == self.codes

    @cached_property
    def true_class_log_proba(self) -> np.ndarray:
        """log p(true class | row) of every row."""
        return self.log_proba[np.arange(self.n_rows), self.codes]

    @cached_property
    def per_class(self) -> ClassTotals:
        """Weights and squared weights by class."""
        square = None if self.weight is None else self.weight**2

        def totals(codes: np.ndarray, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
            """Return the weight and the squared weight of some rows by class."""
            if self.weight is None or square is None:
                return _weight_totals(codes[rows], None, None, self.n_classes)
            return _weight_totals(codes[rows], self.weight[rows], square[rows], self.n_classes)

        all_rows = slice(None)
        return ClassTotals(
            *totals(self.codes, all_rows), *totals(self.predicted, all_rows), *totals(self.codes, self.is_correct)
        )

    def ranking_scores(self, k: int) -> np.ndarray:
        """Return the scores that rank rows by p(class k): log-odds of two classes, which differ where p rounds to 1."""
        if self.n_classes == 2:
            return self.log_proba[:, k] - self.log_proba[:, 1 - k]
        return np.ascontiguousarray(self.log_proba[:, k])  # read several times: columns are not contiguous


class ClassTotals(NamedTuple):
    """Total weight and total squared weight by class, each of shape (classes,).

    The classes are the true ones, the predicted ones, and those of correctly predicted rows.
    """

    true: np.ndarray
    true_squares: np.ndarray
    predicted: np.ndarray
    predicted_squares: np.ndarray
    correct: np.ndarray
    correct_squares: np.ndarray


def _weight_totals(
    codes: np.ndarray, weight: np.ndarray | None, square: np.ndarray | None, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the total weight and the total squared weight of every code below n."""
    if weight is None:
        count = np.bincount(codes, minlength=n).astype(float)
        return count, count
    return np.bincount(codes, weight, minlength=n), np.bincount(codes, square, minlength=n)


def accuracy(scores: ScoredRows, mass: float) -> MetricEstimate:
    """Return the proportion of the weight whose class is predicted."""
    c = scores.per_class
    return proportion_interval(c.correct.sum()[None], c.true.sum()[None], c.true_squares.sum()[None], mass).at(0)


def precision(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Return the proportion of the rows predicted as each class that are of the class."""
    c = scores.per_class
    return proportion_interval(c.correct, c.predicted, c.predicted_squares, mass)


def recall(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Return the proportion of the rows of each class that are predicted as the class."""
    c = scores.per_class
    return proportion_interval(c.correct, c.true, c.true_squares, mass)


def false_positive_rate(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Return the proportion of the rows of all other classes that are predicted as each class."""
    c = scores.per_class
    others = np.where(c.true == c.true.sum(), 0.0, c.true.sum() - c.true)  # exactly 0, not a rounding error
    squares = np.maximum(c.true_squares.sum() - c.true_squares, 0.0)
    return proportion_interval(np.clip(c.predicted - c.correct, 0.0, others), others, squares, mass)


def f_score(scores: ScoredRows, mass: float) -> MetricEstimates:
    """Return F₁ = 2π/(1 + π) of each class, with π = TP/(TP + FP + FN).

    π is a proportion with a Beta interval. F₁ increases with π, so that the ends of its interval are the images.
    """
    c = scores.per_class
    overlap = proportion_interval(
        c.correct,
        c.true + (c.predicted - c.correct),
        c.true_squares + (c.predicted_squares - c.correct_squares),
        mass,
    )
    return MetricEstimates(*(2 * part / (1 + part) for part in overlap))


def macro_average(metrics: MetricEstimates, total: np.ndarray, squares: np.ndarray, mass: float) -> MetricEstimate:
    """Return the mean of proportions over the classes for which they are defined.

    The proportions are independent, so their variances add.
    """
    defined = total > 0
    if not defined.any():
        return moment_matched_interval(np.nan, 0.0, mass)
    value = metrics.value[defined]
    n = effective_rows(total, squares)[defined]
    mean = (1 + value * n) / (2 + n)
    variance = mean * (1 - mean) / np.maximum(n, 1.0)
    return moment_matched_interval(float(value.mean()), float(variance.sum()) / len(n) ** 2, mass)


def macro_f_score(scores: ScoredRows, mass: float) -> MetricEstimate:
    """Return the mean of F₁ over the classes that occur or are predicted.

    A wrong row reduces the F₁ of two classes, so that these are dependent. The variance is that of the first-order
    effects of single rows on the mean (the delta method), which include both. The prior is one more correct and one
    more wrong row of every class; it keeps the variance positive if no row is wrong.
    """
    c = scores.per_class
    present = (c.true + c.predicted) > 0
    scale = c.true.sum() / c.true_squares.sum()  # scaled weights sum to the effective number of rows
    correct = scale * c.correct
    rows = scale * (c.true + c.predicted)
    value = 2 * correct[present] / rows[present]
    smooth = 2 * (correct + 1) / (rows + 3)
    size = np.maximum(rows, 1.0)
    gain = 2 * (1 - smooth) / size  # the effect of one correct row
    loss = smooth / size  # the effect of one wrong row
    effect = np.where(scores.is_correct, gain[scores.codes], loss[scores.codes] + loss[scores.predicted])
    squared = effect**2
    total = squared.sum() if scores.weight is None else scale**2 * (scores.weight**2 * squared).sum()
    prior = (gain[present] ** 2 + loss[present] ** 2).sum()
    return moment_matched_interval(float(value.mean()), float(total + prior) / int(present.sum()) ** 2, mass)


def log_loss(scores: ScoredRows, mass: float) -> MetricEstimate:
    """Return the mean of −log p(true class | row), in nats."""
    guess = LossPrior(float(np.log(scores.n_classes)), 0.0, np.inf)
    return average(np.maximum(-scores.true_class_log_proba, 0.0), scores.weight, mass, guess)


def brier(scores: ScoredRows, mass: float) -> MetricEstimate:
    """Return the mean of Σ_c (y_c − p_c)², halved for two classes."""
    p_truth = np.exp(scores.true_class_log_proba)
    n = scores.n_classes
    if n == 2:
        return average((1 - p_truth) ** 2, scores.weight, mass, LossPrior(0.25, 0.0, 1.0))
    p = np.exp(scores.log_proba)
    loss = np.einsum("ij,ij->i", p, p) - 2 * p_truth + 1
    return average(np.maximum(loss, 0.0), scores.weight, mass, LossPrior(1 - 1 / n, 0.0, 2.0))


def auc(scores: ScoredRows, mass: float) -> MetricEstimate:
    """Return the area under the ROC curve: of class 1 of two, otherwise the mean of each class against the rest.

    The variance is that of DeLong, DeLong and Clarke-Pearson (1988), from the effects of single rows on the mean. It is
    0 if all pairs are ranked correctly; each area therefore also has the variance of a Beta(n + 1, 1), with
    n = 4 n₁n₂/(n₁ + n₂).
    """
    c = scores.per_class
    areas: list[float] = []
    from_prior = 0.0
    effects = np.zeros(scores.n_rows)
    for k in [1] if scores.n_classes == 2 else range(scores.n_classes):
        if c.true[k] == 0 or np.count_nonzero(c.true) < 2:
            continue
        roc = _roc_area(scores.ranking_scores(k), scores.codes == k, scores.weight)
        n = 4 * roc.n_positive * roc.n_negative / max(roc.n_positive + roc.n_negative, 1.0)
        areas.append(roc.area)
        from_prior += (n + 1) / ((n + 2) ** 2 * (n + 3))
        effects += roc.effect
    if not areas:
        return moment_matched_interval(np.nan, 0.0, mass)
    variance = (float((effects**2).sum()) + from_prior) / len(areas) ** 2
    return moment_matched_interval(float(np.mean(areas)), variance, mass)


class _RocArea(NamedTuple):
    """The proportion of correctly ranked pairs, the effective numbers of rows, and the effect of every row on it."""

    area: float
    n_positive: float
    n_negative: float
    effect: np.ndarray


def _roc_area(score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> _RocArea:
    """Return the proportion of pairs of a positive and a negative row that are ranked correctly; ties count half."""
    order = np.argsort(score, kind="stable")  # much faster than the default if most scores are nearly equal
    ranked = score[order]
    is_positive = positive[order]
    tie = np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])
    w = np.ones(len(score)) if weight is None else weight[order]
    positive_weight = np.where(is_positive, w, 0.0)
    negative_weight = np.where(is_positive, 0.0, w)
    n_up = float(positive_weight.sum())
    n_down = float(negative_weight.sum())
    n_positive = float(effective_rows(n_up, (positive_weight**2).sum()))
    n_negative = float(effective_rows(n_down, (negative_weight**2).sum()))
    positive_at = np.bincount(tie, positive_weight)
    negative_at = np.bincount(tie, negative_weight)
    below = (np.cumsum(negative_at) - 0.5 * negative_at) / n_down  # proportion of negatives below a score
    above = 1 - (np.cumsum(positive_at) - 0.5 * positive_at) / n_up  # proportion of positives above it
    area = float((positive_at * below).sum()) / n_up
    unbiased = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in (n_positive, n_negative)]
    proportion = np.where(is_positive, w * (unbiased[0] / n_up), w * (unbiased[1] / n_down))
    effect = np.empty(len(score))
    effect[order] = proportion * (np.where(is_positive, below[tie], above[tie]) - area)
    return _RocArea(min(max(area, 0.0), 1.0), n_positive, n_negative, effect)


class Reliability(NamedTuple):
    """The accuracy by the probability of the predicted class: one entry for every bin that has rows.

    Attributes
    ----------
    confidence : ndarray of shape (bins,)
        The mean probability of the predicted class.
    accuracy : MetricEstimates, each of shape (bins,)
        The proportion of correct predictions.
    weight, squares : ndarray of shape (bins,)
        The total weight, and the sum of the squared weights.
    edges : ndarray of shape (bins, 2)
        The ends of every bin.
    """

    confidence: np.ndarray
    accuracy: MetricEstimates
    weight: np.ndarray
    squares: np.ndarray
    edges: np.ndarray


def reliability(scores: ScoredRows, mass: float) -> Reliability:
    """Return the reliability of rows in bins of equal width, (j/15, (j + 1)/15]."""
    top = scores.log_proba[np.arange(scores.n_rows), scores.predicted]
    confidence = np.minimum(np.exp(top), 1.0)
    bins = np.clip(np.ceil(confidence * N_BINS).astype(np.intp) - 1, 0, N_BINS - 1)
    w = scores.weight
    total, squares = _weight_totals(bins, w, None if w is None else w**2, N_BINS)
    sums = np.bincount(bins, confidence if w is None else w * confidence, minlength=N_BINS)
    correct = np.bincount(bins, scores.is_correct if w is None else w * scores.is_correct, minlength=N_BINS)
    used = np.flatnonzero(total)
    estimates = proportion_interval(np.minimum(correct, total)[used], total[used], squares[used], mass)
    edges = np.stack([used, used + 1], axis=1) / N_BINS
    return Reliability(sums[used] / total[used], estimates, total[used], squares[used], edges)


def calibration_gap(bins: Reliability) -> float:
    """Return Σ_b (proportion of rows in b) |accuracy of b − confidence of b|."""
    return float((bins.weight / bins.weight.sum() * np.abs(bins.accuracy.value - bins.confidence)).sum())


def calibration_error(bins: Reliability, mass: float) -> MetricEstimate:
    """Return the expected calibration error with an interval by sampling.

    The accuracy of every bin is drawn from its Beta posterior under a uniform prior, with a fixed seed.
    """
    value = calibration_gap(bins)
    n = effective_rows(bins.weight, bins.squares)
    right = n * bins.accuracy.value
    draws = np.random.default_rng(_SEED).beta(1 + right, 1 + (n - right), (_N_DRAWS, len(n)))
    gaps = np.abs(draws - bins.confidence) * (bins.weight / bins.weight.sum())
    low, high = np.quantile(gaps.sum(axis=1), [(1 - mass) / 2, (1 + mass) / 2])
    return MetricEstimate(value, min(float(low), value), max(float(high), value))


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall at every threshold, from none predicted to all, and the average precision."""

    precision: np.ndarray
    recall: np.ndarray
    average_precision: float


def precision_recall(scores: ScoredRows, k: int) -> PrecisionRecallCurve:
    """Return the precision-recall curve of class k against the rest; average precision is Σ (R_i − R_{i−1}) P_i."""
    score = scores.ranking_scores(k)
    order = np.argsort(-score, kind="stable")
    w = np.ones(scores.n_rows) if scores.weight is None else scores.weight[order]
    positive = np.cumsum(np.where(scores.codes[order] == k, w, 0.0))
    ranked = score[order]
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), scores.n_rows - 1)  # ties have one threshold
    precision = positive[last] / np.cumsum(w)[last]
    recall = positive[last] / positive[-1]
    area = float((np.diff(recall, prepend=0.0) * precision).sum())
    return PrecisionRecallCurve(np.append(precision[0], precision), np.append(0.0, recall), area)
