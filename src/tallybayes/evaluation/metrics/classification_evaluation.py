"""Evaluation: how good the answers on some rows are, with intervals, over all of them and by group."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import check_weight
from tallybayes.data.table import open_table
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.errors import DataError
from tallybayes.evaluation.metrics import classification_metrics
from tallybayes.evaluation.metrics.classification_metrics import Reliability, ScoredRows
from tallybayes.evaluation.metrics.evaluation_text import Part, as_html, as_text, describe
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, MetricEstimates, average
from tallybayes.models.inputs.threshold import Threshold, find_threshold

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

ALL_GROUPS = "(all)"  # what a frame calls the rows of all groups together
_HEADLINES = ("accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row")
_MACRO = ("macro_precision", "macro_recall", "macro_f1_score")
_PER_CLASS = ("precision", "recall", "f1_score", "false_positive_rate")


class Evaluation:
    """How well the classes of some rows were predicted. Every number is a `MetricEstimate`: a value and its credible interval.

    Parameters
    ----------
    classes : array-like of shape (classes,)
    codes : array of int of shape (n,)
        The true class of every row, as a position in `classes`.
    log_proba : array of shape (n, classes)
        log p(class | row), on rows that were not learned from.
    weight : array of shape (n,), optional
        How much every row counts. Values are weighted; intervals go by the effective number of rows, (Σw)²/Σw², so only
        the weights' proportions matter to them. A row of weight 0 is as good as absent.
    log_density : array of shape (n,), optional
        log p(row).
    by : array-like of shape (n,), optional
        A label for every row, to measure each group by itself. Rows without one are the group None.
    predicted : array of int of shape (n,), optional
        What was predicted, as positions in `classes`, where that is not the most probable class: a path of states as a
        whole, or a decision by costs.
    mass : float, default 0.95
        The mass of the intervals.

    Notes
    -----
    The predicted class is the most probable one, the first of several, unless `predicted` says otherwise. The
    definitions are scikit-learn's: ``log_loss`` (in nats, but never clipped: a class ruled out wrongly costs inf),
    ``brier_score_loss`` (from 0 to 1 for two classes; from 0 to 2, not halved, for more), ``roc_auc_score`` (of
    ``classes[1]``, if there are two; otherwise the mean of every class against the rest, for the classes that occur;
    ranked by log-odds or log-probabilities, so that what rounds to 1 is no tie), and
    ``precision_recall_fscore_support`` with ``zero_division=nan``: what has no rows to be counted on is NaN, and left
    out of the macro averages.

    Intervals take time in proportion to the rows, or to sort them for the AUC. Shares have a Beta posterior under a
    uniform prior, and F is a function of one. Means of losses have a Student t posterior, with a prior worth one row
    that was guessed. The AUC's and the macro averages' are Betas with DeLong's and first-order variances; the
    calibration error's comes from draws with a fixed seed. All assume that the rows are independent of each other, and
    say nothing about another training set. Losses are skewed: the intervals of their means are too short where one row
    in a hundred loses most and there are only hundreds.

    Examples
    --------
    >>> import numpy as np
    >>> import tallybayes as tb
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])
    >>> result = tb.Evaluation(["ham", "spam"], np.array([0, 0, 0, 1, 1]), np.log(p))
    >>> result.accuracy
    0.80 (0.36 to 0.96)
    >>> result.recall["ham"].value.__round__(4), result.roc_auc.value
    (0.6667, 1.0)
    >>> result.confusion_matrix
    array([[2., 1.],
           [0., 2.]])
    """

    _normalized = False  # whether log_proba is known to be distributions

    def __init__(
        self,
        classes: npt.ArrayLike,
        codes: npt.ArrayLike,
        log_proba: npt.ArrayLike,
        *,
        weight: npt.ArrayLike | None = None,
        log_density: npt.ArrayLike | None = None,
        by: Iterable[Any] | None = None,
        predicted: npt.ArrayLike | None = None,
        mass: float = 0.95,
    ) -> None:
        tail_probabilities(mass)  # refuses what is no mass
        self.mass = mass
        self.classes = np.asarray(classes)
        self.log_proba = np.asarray(log_proba, dtype=np.float64)
        self.codes = _check_codes(codes, self.classes, self.log_proba)
        n_rows = len(self.codes)
        self.weight = check_weight(weight, n_rows, any_size=True)
        self.log_density = check_density(log_density, n_rows)
        counts = np.flatnonzero(self.weight) if self.weight is not None else np.arange(0)
        self._counts = slice(None) if self.weight is None or len(counts) == n_rows else counts
        if len(self.codes[self._counts]) == 0:
            raise DataError(f"there are {n_rows} rows and none has weight; expected at least one row to evaluate.")
        # Weights near 1, by a power of two: their squares must neither overflow nor vanish, and no digit change.
        self._exponent = 0 if self.weight is None else int(np.frexp(self.weight.max())[1])
        weight = None if self.weight is None else np.ldexp(self.weight[self._counts], -self._exponent)
        self._decided = (
            None if predicted is None else _check_codes(predicted, self.classes, self.log_proba, "predicted")
        )
        decided = None if self._decided is None else self._decided[self._counts]
        self._scores = ScoredRows(self.codes[self._counts], self.log_proba[self._counts], weight, decided)
        if not self._normalized:
            _check_distributions(self._scores.log_proba)
        self.by = by
        self._by_name = "group"
        self._group_codes = None if by is None else check_groups(by, n_rows)

    @property
    def n_rows(self) -> int:
        """The number of rows that count: those with weight."""
        return self._scores.n_rows

    @property
    def effective_rows(self) -> float:
        """(Σw)² / Σw²: how many rows of equal weight would say as much."""
        found = self._scores.per_class
        return float(found.true.sum() ** 2 / found.true_squares.sum())

    @cached_property
    def accuracy(self) -> MetricEstimate:
        """The share of rows whose class is predicted."""
        return classification_metrics.accuracy(self._scores, self.mass)

    @cached_property
    def error_rate(self) -> MetricEstimate:
        """The share of rows whose class is not predicted."""
        value, low, high = self.accuracy
        return MetricEstimate(1 - value, 1 - high, 1 - low)

    @cached_property
    def log_loss(self) -> MetricEstimate:
        """The mean of −log p(class | row) in nats; inf if a row's class was ruled out."""
        return classification_metrics.log_loss(self._scores, self.mass)

    @property
    def loss(self) -> MetricEstimate:
        """What to compare candidates by: the log-loss. Less is better."""
        return self.log_loss

    loss_name = "log-loss"

    def _losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The loss of every row that counts, and its weight."""
        kept = self._counts
        codes = self.codes[kept]
        return -self.log_proba[kept][np.arange(len(codes)), codes], None if self.weight is None else self.weight[kept]

    @cached_property
    def brier_score(self) -> MetricEstimate:
        """The mean squared error of the probabilities: 0 to 1 for two classes; for more, summed over them, 0 to 2."""
        return classification_metrics.brier(self._scores, self.mass)

    @cached_property
    def roc_auc(self) -> MetricEstimate:
        """The area under the ROC curve: of ``classes[1]``, or the mean of all classes that occur against the rest."""
        return classification_metrics.auc(self._scores, self.mass)

    @cached_property
    def calibration_error(self) -> MetricEstimate:
        """The expected calibration error: the mean of |accuracy − confidence| over the bins of `reliability`.

        Noise alone makes it positive: on few rows, that of the best of models too.
        """
        return classification_metrics.calibration_error(self.reliability, self.mass)

    @cached_property
    def bits_per_row(self) -> MetricEstimate | None:
        """The mean of −log₂ p(row): what a row costs to encode. None without `log_density`."""
        if self.log_density is None:
            return None
        bits = -self.log_density[self._counts] / np.log(2)
        return average(bits, self._scores.weight, self.mass)

    @cached_property
    def reliability(self) -> Reliability:
        """Accuracy by confidence: fifteen bins (j/15, (j + 1)/15] of the predicted class's probability."""
        return classification_metrics.reliability(self._scores, self.mass)

    @cached_property
    def confusion_matrix(self) -> np.ndarray:
        """The weight of the rows by true class (down) and predicted class (across), shape (classes, classes)."""
        n, scores = len(self.classes), self._scores
        cells = np.bincount(scores.codes * n + scores.predicted, scores.weight, minlength=n * n)
        return np.ldexp(cells.astype(float), self._exponent).reshape(n, n)

    @cached_property
    def _precision(self) -> MetricEstimates:
        return classification_metrics.precision(self._scores, self.mass)

    @cached_property
    def _recall(self) -> MetricEstimates:
        return classification_metrics.recall(self._scores, self.mass)

    def _by_class(self, found: MetricEstimates) -> dict[Any, MetricEstimate]:
        return {label: found.at(k) for k, label in enumerate(self.classes.tolist())}

    @cached_property
    def precision(self) -> dict[Any, MetricEstimate]:
        """By class: of the rows predicted as it, the share that are of it."""
        return self._by_class(self._precision)

    @cached_property
    def recall(self) -> dict[Any, MetricEstimate]:
        """By class: of its rows, the share predicted as it. Of two classes, the second's is the true positive rate."""
        return self._by_class(self._recall)

    @cached_property
    def f1_score(self) -> dict[Any, MetricEstimate]:
        """By class: F₁, the harmonic mean of precision and recall."""
        return self._by_class(classification_metrics.f_score(self._scores, self.mass))

    @cached_property
    def false_positive_rate(self) -> dict[Any, MetricEstimate]:
        """By class: of the rows of other classes, the share predicted as it."""
        return self._by_class(classification_metrics.false_positive_rate(self._scores, self.mass))

    @cached_property
    def support(self) -> dict[Any, float]:
        """By class: the weight of its rows."""
        weights = np.ldexp(self._scores.per_class.true, self._exponent)
        return dict(zip(self.classes.tolist(), weights.tolist(), strict=True))

    @cached_property
    def macro_precision(self) -> MetricEstimate:
        """The mean precision of the classes that were predicted."""
        found = self._scores.per_class
        return classification_metrics.macro_shares(self._precision, found.predicted, found.predicted_squares, self.mass)

    @cached_property
    def macro_recall(self) -> MetricEstimate:
        """The mean recall of the classes that occur: the balanced accuracy."""
        found = self._scores.per_class
        return classification_metrics.macro_shares(self._recall, found.true, found.true_squares, self.mass)

    @cached_property
    def macro_f1_score(self) -> MetricEstimate:
        """The mean F₁ of the classes that occur or were predicted."""
        return classification_metrics.macro_f_score(self._scores, self.mass)

    @cached_property
    def groups(self) -> dict[Any, Evaluation]:
        """An `Evaluation` of every group of `by`; empty without one. Rows without a label are the group None, last."""
        if self._group_codes is None:
            return {}
        codes, levels = self._group_codes
        counted = codes[self._counts]
        order = np.argsort(counted, kind="stable")
        rows = order if isinstance(self._counts, slice) else self._counts[order]
        whole = (self.codes, self.log_proba, self.weight, self.log_density, self._decided)
        parts = [None if x is None else x[rows] for x in whole]
        bounds = np.searchsorted(counted[order], np.arange(-1, len(levels) + 1))
        found = {}
        for place in [*range(1, len(levels) + 1), 0]:  # the missing, code −1, stand first among the rows
            part = slice(int(bounds[place]), int(bounds[place + 1]))
            if part.start < part.stop:
                cut: list[Any] = [None if x is None else x[part] for x in parts]
                one, proba, weight, density, decided = cut
                options: dict[str, Any] = {
                    "weight": weight,
                    "log_density": density,
                    "predicted": decided,
                    "mass": self.mass,
                }
                found[levels[place - 1] if place else None] = Evaluation(self.classes, one, proba, **options)
        return found

    def to_frame(self) -> pd.DataFrame:
        """All measures as a pandas data frame: measure, class, value, low, high, and the group, if there are any."""
        import pandas as pd

        lines = self._lines()
        if self.by is None:
            return pd.DataFrame(lines, columns=["measure", "class", "value", "low", "high"])
        whole = [(ALL_GROUPS, *line) for line in lines]
        parts = [(label, *line) for label, part in self.groups.items() for line in part._lines()]
        return pd.DataFrame(whole + parts, columns=["group", "measure", "class", "value", "low", "high"])

    def _lines(self) -> list[tuple[Any, ...]]:
        lines: list[tuple[Any, ...]] = [("rows", None, float(self.n_rows), np.nan, np.nan)]
        for name in (*_HEADLINES, *_MACRO):
            found = getattr(self, name)
            lines += [(name, None, *found)] if found is not None else []
        for name in _PER_CLASS:
            lines += [(name, label, *found) for label, found in getattr(self, name).items()]
        return lines + [("support", label, weight, np.nan, np.nan) for label, weight in self.support.items()]

    def _shown(self) -> list[Part]:
        return describe(self)

    def __repr__(self) -> str:
        return as_text(self._shown())

    def _repr_html_(self) -> str:
        return as_html(self._shown())

    def plot_confusion(self, ax: Axes | None = None) -> Plot:
        """A picture of the confusion matrix, colored by each true class's shares; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_confusion

        return plot_confusion(self, ax)

    def plot_reliability(self, ax: Axes | None = None) -> Plot:
        """A picture of accuracy against confidence, and of how many rows have which; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_reliability

        return plot_reliability(self, ax)

    def threshold(
        self, *, precision: float | None = None, recall: float | None = None, positive: Any = None
    ) -> Threshold:
        """Return the threshold on the probability of a class that has a stated precision or recall on these rows.

        Parameters
        ----------
        precision : float, optional
            The least precision; of such thresholds that of the highest recall.
        recall : float, optional
            The least recall; of such thresholds that of the highest precision.
        positive : label, optional
            The class; of two classes the second one if left out.

        Returns
        -------
        Threshold
            For ``model.decide(X, threshold=...)``.
        """
        kept = self._counts
        weight = None if self.weight is None else self.weight[kept]
        classes = self.classes.tolist()
        return find_threshold(self.log_proba[kept], self.codes[kept], weight, classes, positive, precision, recall)

    def plot_precision_recall(self, ax: Axes | None = None) -> Plot:
        """A picture of precision against recall: of ``classes[1]``, or of every class; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_precision_recall

        return plot_precision_recall(self, ax)


def _check_codes(codes: Any, classes: np.ndarray, log_proba: np.ndarray, name: str = "codes") -> np.ndarray:
    if classes.ndim != 1 or len(classes) == 0:
        raise DataError.wrong_shape("classes", classes.shape, "one axis, with a label for every class")
    array = np.asarray(codes)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        found = f"an array of {array.dtype} with shape {array.shape}"
        raise DataError.wrong_type(name, found, "whole numbers, one per row: positions in classes")
    if log_proba.shape != (len(array), len(classes)):
        expected = f"({len(array)}, {len(classes)}): a line for every row, an entry for every class"
        raise DataError.wrong_shape("log_proba", log_proba.shape, expected)
    wrong = np.flatnonzero((array < 0) | (array >= len(classes)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{name} has {array[row]} in row {row}; expected a position from 0 to {len(classes) - 1}.")
    return array.astype(np.intp, copy=False)


def check_density(log_density: Any, n_rows: int) -> np.ndarray | None:
    """Log densities, one for every row: finite, or −inf."""
    if log_density is None:
        return None
    array = np.asarray(log_density, dtype=np.float64)
    if array.shape != (n_rows,):
        raise DataError.wrong_shape("log_density", array.shape, f"({n_rows},), one number for every row")
    wrong = np.flatnonzero(np.isnan(array) | (array == np.inf))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"log_density is {array[row]} in row {row}; expected log p(row): finite, or -inf.")
    return array


def _check_distributions(log_proba: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        total = np.einsum("ij->i", np.exp(log_proba))  # along a short axis, quicker than sum
    wrong = np.flatnonzero(~(np.abs(total - 1) < 1e-4))  # NaN is wrong too
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"log_proba is no distribution in row {row}: its probabilities sum to {total[row]:.6g}; expected 1.\n"
            "    Pass log-probabilities, such as predict_log_proba gives: not probabilities, not joint ones."
        )


def check_groups(by: Any, n_rows: int) -> tuple[np.ndarray, tuple[Any, ...]]:
    """A code for every row, −1 where there is no label, and the labels."""
    table = open_table({"by": by})
    if table.n_rows != n_rows:
        raise DataError.lengths_differ({"rows": n_rows, "by": table.n_rows})
    codes, domain = table._encode("by", True)
    return np.asarray(codes).astype(np.int64), domain.levels
