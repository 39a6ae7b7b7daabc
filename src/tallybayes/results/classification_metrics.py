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
    RowWeights,
    average,
    moment_matched_interval,
    proportion,
)

N_BINS = 15  # of confidence, of equal width
_N_DRAWS = 4000
_SEED = 0


class ScoredRows:
    """The class, the log-probability of every class and the weight of rows, and metrics of them with intervals.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The true classes.
    log_proba : ndarray of shape (n, classes)
    weight : ndarray of shape (n,)
        All positive.
    mass : float
        The probability of the intervals.
    predicted : ndarray of int of shape (n,), optional
        The predicted classes, unless they are the most probable ones.
    """

    def __init__(
        self,
        codes: np.ndarray,
        log_proba: np.ndarray,
        weight: np.ndarray,
        mass: float = 0.95,
        predicted: np.ndarray | None = None,
    ) -> None:
        self.codes = codes
        self.log_proba = log_proba
        self.weight = weight
        self.mass = mass
        if predicted is not None:
            self.predicted = predicted
        self.n_rows, self.n_classes = log_proba.shape

    # ---- Rows --------------------------------------------------------------------------------------------------------

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
    def of_class(self) -> RowWeights:
        """The weights of the rows of every class."""
        return RowWeights.by_code(self.codes, self.weight, self.n_classes)

    @cached_property
    def predicted_as(self) -> RowWeights:
        """The weights of the rows predicted as every class."""
        return RowWeights.by_code(self.predicted, self.weight, self.n_classes)

    @cached_property
    def correct(self) -> RowWeights:
        """The weights of the correctly predicted rows of every class."""
        return RowWeights.by_code(self.codes, self.weight * self.is_correct, self.n_classes)

    def ranking_scores(self, k: int) -> np.ndarray:
        """Return the scores that rank rows by p(class k): log-odds of two classes, which differ where p rounds to 1."""
        if self.n_classes == 2:
            return self.log_proba[:, k] - self.log_proba[:, 1 - k]
        return self.log_proba[:, k]

    # ---- Proportions -------------------------------------------------------------------------------------------------

    @cached_property
    def accuracy(self) -> MetricEstimate:
        """The proportion of the weight whose class is predicted."""
        return proportion(self.is_correct, self.weight, self.mass)

    @cached_property
    def precision(self) -> MetricEstimates:
        """The proportion of the rows predicted as each class that are of the class."""
        return self.predicted_as.proportion(self.correct.total, self.mass)

    @cached_property
    def recall(self) -> MetricEstimates:
        """The proportion of the rows of each class that are predicted as the class."""
        return self.of_class.proportion(self.correct.total, self.mass)

    @cached_property
    def false_positive_rate(self) -> MetricEstimates:
        """The proportion of the rows of all other classes that are predicted as each class."""
        own, squares = self.of_class
        total = np.where(own == own.sum(), 0.0, own.sum() - own)  # exactly 0, not a rounding error
        others = RowWeights(total, np.maximum(squares.sum() - squares, 0.0))
        return others.proportion(np.clip(self.predicted_as.total - self.correct.total, 0.0, total), self.mass)

    @cached_property
    def f_score(self) -> MetricEstimates:
        """F₁ = 2π/(1 + π) of each class, with π = TP/(TP + FP + FN).

        π is a proportion with a Beta interval. F₁ increases with π, so that the ends of its interval are the images.
        """
        parts = zip(self.of_class, self.predicted_as, self.correct, strict=True)
        union = RowWeights(*(own + (predicted - correct) for own, predicted, correct in parts))
        return MetricEstimates(*(2 * end / (1 + end) for end in union.proportion(self.correct.total, self.mass)))

    @cached_property
    def macro_precision(self) -> MetricEstimate:
        """The mean precision of the classes that were predicted."""
        return self._macro_average(self.precision, self.predicted_as)

    @cached_property
    def macro_recall(self) -> MetricEstimate:
        """The mean recall of the classes that occur."""
        return self._macro_average(self.recall, self.of_class)

    def _macro_average(self, metrics: MetricEstimates, rows: RowWeights) -> MetricEstimate:
        """Return the mean of proportions of rows over the classes for which they are defined.

        The proportions are independent, so their variances add.
        """
        defined = rows.total > 0
        if not defined.any():
            return moment_matched_interval(np.nan, 0.0, self.mass)
        value = metrics.value[defined]
        n = rows.effective_rows[defined]
        mean = (1 + value * n) / (2 + n)
        variance = mean * (1 - mean) / np.maximum(n, 1.0)
        return moment_matched_interval(float(value.mean()), float(variance.sum()) / len(n) ** 2, self.mass)

    @cached_property
    def macro_f_score(self) -> MetricEstimate:
        """The mean of F₁ over the classes that occur or are predicted.

        A wrong row reduces the F₁ of two classes, so that these are dependent. The variance is that of the first-order
        effects of single rows on the mean (the delta method), which include both. The prior is one more correct and one
        more wrong row of every class; it keeps the variance positive if no row is wrong.
        """
        scale = self.of_class.total.sum() / self.of_class.squares.sum()  # to weights that sum to the effective rows
        correct = scale * self.correct.total
        rows = scale * (self.of_class.total + self.predicted_as.total)
        present = rows > 0
        value = 2 * correct[present] / rows[present]
        smooth = 2 * (correct + 1) / (rows + 3)
        size = np.maximum(rows, 1.0)
        gain = 2 * (1 - smooth) / size  # the effect of one correct row
        loss = smooth / size  # the effect of one wrong row
        effect = np.where(self.is_correct, gain[self.codes], loss[self.codes] + loss[self.predicted])
        variance = ((scale * self.weight * effect) ** 2).sum() + (gain[present] ** 2 + loss[present] ** 2).sum()
        return moment_matched_interval(float(value.mean()), float(variance) / int(present.sum()) ** 2, self.mass)

    # ---- Losses ------------------------------------------------------------------------------------------------------

    @cached_property
    def log_loss(self) -> MetricEstimate:
        """The mean of −log p(true class | row), in nats."""
        guess = LossPrior(float(np.log(self.n_classes)), 0.0, np.inf)
        return average(np.maximum(-self.true_class_log_proba, 0.0), self.weight, self.mass, guess)

    @cached_property
    def brier_score(self) -> MetricEstimate:
        """The mean of Σ_c (y_c − p_c)², halved for two classes."""
        p_truth = np.exp(self.true_class_log_proba)
        n = self.n_classes
        if n == 2:
            return average((1 - p_truth) ** 2, self.weight, self.mass, LossPrior(0.25, 0.0, 1.0))
        p = np.exp(self.log_proba)
        loss = np.einsum("ij,ij->i", p, p) - 2 * p_truth + 1
        return average(np.maximum(loss, 0.0), self.weight, self.mass, LossPrior(1 - 1 / n, 0.0, 2.0))

    # ---- Rankings ----------------------------------------------------------------------------------------------------

    @cached_property
    def roc_auc(self) -> MetricEstimate:
        """The area under the ROC curve: of class 1 of two, otherwise the mean of each class against the rest.

        The variance is that of DeLong, DeLong and Clarke-Pearson (1988), from the effects of single rows on the mean.
        It is 0 if all pairs are ranked correctly; each area therefore also has the variance of a Beta(n + 1, 1), with
        n = 4 n₁n₂/(n₁ + n₂).
        """
        own = self.of_class.total
        areas: list[float] = []
        from_prior = 0.0
        effects = np.zeros(self.n_rows)
        for k in [1] if self.n_classes == 2 else range(self.n_classes):
            if own[k] == 0 or np.count_nonzero(own) < 2:
                continue
            roc = _roc_area(self.ranking_scores(k), self.codes == k, self.weight)
            n = 4 * roc.n_positive * roc.n_negative / max(roc.n_positive + roc.n_negative, 1.0)
            areas.append(roc.area)
            from_prior += (n + 1) / ((n + 2) ** 2 * (n + 3))
            effects += roc.effect
        if not areas:
            return moment_matched_interval(np.nan, 0.0, self.mass)
        variance = (float((effects**2).sum()) + from_prior) / len(areas) ** 2
        return moment_matched_interval(float(np.mean(areas)), variance, self.mass)

    def precision_recall_curve(self, k: int) -> PrecisionRecallCurve:
        """Return precision and recall of class k against the rest at every threshold."""
        return precision_recall_curve(self.ranking_scores(k), self.codes == k, self.weight)

    # ---- Calibration -------------------------------------------------------------------------------------------------

    @cached_property
    def reliability(self) -> Reliability:
        """The accuracy by the probability of the predicted class, in bins of equal width, (j/15, (j + 1)/15]."""
        confidence = np.minimum(np.exp(self.log_proba[np.arange(self.n_rows), self.predicted]), 1.0)
        bins = np.clip(np.ceil(confidence * N_BINS).astype(np.intp) - 1, 0, N_BINS - 1)
        used, bins = np.unique(bins, return_inverse=True)
        rows = RowWeights.by_code(bins, self.weight, len(used))
        correct = np.minimum(np.bincount(bins, self.weight * self.is_correct), rows.total)
        mean = np.bincount(bins, self.weight * confidence) / rows.total
        edges = np.stack([used, used + 1], axis=1) / N_BINS
        return Reliability(mean, rows.proportion(correct, self.mass), *rows, edges)

    @cached_property
    def calibration_error(self) -> MetricEstimate:
        """The expected calibration error with an interval by sampling.

        The accuracy of every bin is drawn from its Beta posterior under a uniform prior, with a fixed seed.
        """
        bins = self.reliability
        value = bins.calibration_gap
        n = RowWeights(bins.weight, bins.squares).effective_rows
        correct = n * bins.accuracy.value
        draws = np.random.default_rng(_SEED).beta(1 + correct, 1 + (n - correct), (_N_DRAWS, len(n)))
        gaps = np.abs(draws - bins.confidence) * (bins.weight / bins.weight.sum())
        low, high = np.quantile(gaps.sum(axis=1), [(1 - self.mass) / 2, (1 + self.mass) / 2])
        return MetricEstimate(value, min(float(low), value), max(float(high), value))


class _RocArea(NamedTuple):
    """The proportion of correctly ranked pairs, the effective numbers of rows, and the effect of every row on it."""

    area: float
    n_positive: float
    n_negative: float
    effect: np.ndarray


def _roc_area(score: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> _RocArea:
    """Return the proportion of pairs of a positive and a negative row that are ranked correctly; ties count half."""
    order = np.argsort(score, kind="stable")  # much faster than the default if most scores are nearly equal
    ranked = score[order]
    rank = np.empty(len(score), dtype=np.intp)
    rank[order] = np.cumsum(np.append(False, ranked[1:] != ranked[:-1]))
    rows = RowWeights.by_code(positive.astype(np.intp), weight, 2)
    n_negative, n_positive = rows.effective_rows.tolist()
    at = [np.bincount(rank, np.where(positive == kind, weight, 0.0)) / rows.total[int(kind)] for kind in (False, True)]
    below, above = (np.cumsum(proportion) - 0.5 * proportion for proportion in at)  # of the negatives, of the positives
    area = float((at[1] * below).sum())
    unbiased = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in (n_negative, n_positive)]
    gain = np.where(positive, unbiased[1] * (below[rank] - area), unbiased[0] * (1 - above[rank] - area))
    effect = weight / rows.total[positive.astype(np.intp)] * gain
    return _RocArea(min(max(area, 0.0), 1.0), n_positive, n_negative, effect)


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall at every threshold, from none predicted to all, and the average precision.

    ``thresholds`` are the scores in descending order; that of no row predicted, the first, is infinite.
    """

    precision: np.ndarray
    recall: np.ndarray
    average_precision: float
    thresholds: np.ndarray


def precision_recall_curve(score: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> PrecisionRecallCurve:
    """Return the precision-recall curve of scores; the average precision is Σ (R_i − R_{i−1}) P_i."""
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # ties have one threshold
    # The weight, and the weight of positive rows, at or above each threshold.
    above, correct = (np.cumsum(part[order])[last] for part in (weight, np.where(positive, weight, 0.0)))
    precision = correct / above
    recall = correct / correct[-1]
    area = float((np.diff(recall, prepend=0.0) * precision).sum())
    return PrecisionRecallCurve(
        np.append(precision[0], precision), np.append(0.0, recall), area, np.append(np.inf, ranked[last])
    )


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

    @property
    def calibration_gap(self) -> float:
        """Σ_b (proportion of rows in b) |accuracy of b − confidence of b|."""
        return float((self.weight / self.weight.sum() * np.abs(self.accuracy.value - self.confidence)).sum())
