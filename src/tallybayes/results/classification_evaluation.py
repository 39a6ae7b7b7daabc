"""Evaluation: metrics of class predictions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError, printable
from tallybayes.results.classification_metrics import PrecisionRecallCurve, Reliability, ScoredRows
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.results.evaluation import MOST_SHOWN, HeldOut, RowEvaluation, check_density, estimate_cells, short_label
from tallybayes.results.metric_intervals import MetricEstimate, MetricEstimates, average
from tallybayes.results.result import ResultTable
from tallybayes.results.threshold import Threshold, find_threshold
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.hmm_held_out import SequencePredictions
    from tallybayes.plotting.plot import Plot

_LABELS = {  # "" for metrics that the text shows in the table of classes
    "accuracy": "accuracy",
    "error_rate": "error rate",
    "log_loss": "log loss (nats)",
    "brier_score": "Brier score",
    "roc_auc": "ROC AUC",
    "calibration_error": "calibration error",
    "bits_per_row": "bits per row",
    "macro_precision": "",
    "macro_recall": "",
    "macro_f1_score": "",
}
_PER_CLASS = ("precision", "recall", "f1_score", "false_positive_rate")


class Evaluation(RowEvaluation):
    """Metrics of the predicted classes of rows, each a `MetricEstimate`: a value with a credible interval.

    Parameters
    ----------
    classes : array-like of shape (classes,)
        The class labels.
    codes : array of int of shape (n,)
        The true class of every row, as an index into `classes`.
    log_proba : array of shape (n, classes)
        log p(class | row), of rows that the model was not fitted on.
    weight : array of shape (n,), optional
        The weight of every row. Metrics are weighted; intervals use the effective sample size, (Σw)²/Σw², so that only
        the proportions of the weights affect them. Rows of weight 0 are ignored.
    log_density : array of shape (n,), optional
        log p(row).
    by : array-like of shape (n,), optional
        The group of every row: all metrics are computed by group too. Missing ones are the group None.
    predicted : array of int of shape (n,), optional
        The predicted classes, as indices into `classes`, unless they are the most probable ones: a most probable
        sequence of states, or decisions by costs.
    by_name : str, default "group"
        The name of the groups in text.
    mass : float, default 0.95
        The probability of the intervals.
    held_out : HeldOut, optional
        How the rows were held out. Results of `cross_validate` and `leave_one_out` have it.

    Notes
    -----
    The predicted class is the most probable one, the first of ties, unless `predicted` is given. The definitions are
    those of scikit-learn: ``log_loss`` (in nats, without clipping: a true class of probability 0 gives inf),
    ``brier_score_loss`` (from 0 to 1 for two classes; from 0 to 2, not halved, for more), ``roc_auc_score`` (of
    ``classes[1]`` if there are two; otherwise the mean of every class against the rest, over the classes that occur;
    ranked by log-odds or log-probabilities, so that probabilities that round to 1 are not tied), and
    ``precision_recall_fscore_support`` with ``zero_division=nan``: undefined metrics are NaN, and are left out of the
    macro averages.

    Intervals take time linear in the rows; that of the AUC needs them sorted. Proportions have a Beta posterior under a
    uniform prior, and F₁ is a function of one. Mean losses have a Student t posterior, with a prior that counts as one
    row with the loss of a guess. The AUC and the macro averages have Beta distributions with DeLong's and first-order
    variances; the interval of the calibration error is sampled with a fixed seed. All intervals assume independent
    rows, and do not include the variation between training sets. Losses are skewed: with a few hundred rows, the
    interval of a mean loss is too short if one row in a hundred has most of the loss.

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

    loss_name = "log loss"
    _labels = _LABELS
    _frame_columns = ("measure", "class", "value", "low", "high")

    def __init__(
        self,
        classes: npt.ArrayLike,
        codes: npt.ArrayLike,
        log_proba: npt.ArrayLike,
        *,
        weight: npt.ArrayLike | None = None,
        log_density: npt.ArrayLike | None = None,
        by: Labels | None = None,
        predicted: npt.ArrayLike | None = None,
        by_name: str = "group",
        mass: float = 0.95,
        held_out: HeldOut | None = None,
    ) -> None:
        self.classes = np.asarray(classes)
        self.log_proba = np.asarray(log_proba, dtype=np.float64)
        self.codes = _check_codes(codes, self.classes, self.log_proba)
        n_rows = len(self.codes)
        super().__init__(n_rows, weight, by, by_name, mass, held_out)
        self.log_density = None if log_density is None else check_density(log_density, n_rows)
        self.predicted = (
            None if predicted is None else _check_codes(predicted, self.classes, self.log_proba, "predicted")
        )
        self._rows = slice(None) if self.weight.all() else np.flatnonzero(self.weight)
        self._size = self._scaled(self.weight[self._rows])
        if not len(self._size):
            raise DataError(f"none of {n_rows} rows has weight; expected at least one row to evaluate.")
        predicted_rows = None if self.predicted is None else self.predicted[self._rows]
        codes_of_rows = self.codes[self._rows]
        self._scores = ScoredRows(codes_of_rows, self.log_proba[self._rows], self._size, mass, predicted_rows)
        if held_out is None:  # otherwise the package has computed them
            _check_distributions(self._scores.log_proba)

    @property
    def accuracy(self) -> MetricEstimate:
        """The proportion of rows whose class is predicted correctly."""
        return self._scores.accuracy

    @property
    def error_rate(self) -> MetricEstimate:
        """The proportion of rows whose class is predicted wrongly."""
        value, low, high = self.accuracy
        return MetricEstimate(1 - value, 1 - high, 1 - low)

    @property
    def log_loss(self) -> MetricEstimate:
        """The mean of −log p(true class | row) in nats; inf if a true class has probability 0."""
        return self._scores.log_loss

    @property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared: the log loss."""
        return self.log_loss

    def _row_losses(self) -> np.ndarray:
        return -self._scores.true_class_log_proba

    @property
    def brier_score(self) -> MetricEstimate:
        """The mean squared error of the probabilities: 0 to 1 for two classes; for more, summed over them, 0 to 2."""
        return self._scores.brier_score

    @property
    def roc_auc(self) -> MetricEstimate:
        """The area under the ROC curve: of ``classes[1]``, or the mean over the classes that occur against the rest."""
        return self._scores.roc_auc

    @property
    def calibration_error(self) -> MetricEstimate:
        """The expected calibration error: the mean of |accuracy − confidence| over the bins of `reliability`.

        Sampling noise makes it positive: on few rows even for calibrated probabilities.
        """
        return self._scores.calibration_error

    @cached_property
    def bits_per_row(self) -> MetricEstimate | None:
        """The mean of −log₂ p(row), the code length of a row. None without `log_density`."""
        if self.log_density is None:
            return None
        return average(-self.log_density[self._rows] / np.log(2), self._size, self.mass)

    @property
    def reliability(self) -> Reliability:
        """The accuracy by the probability of the predicted class, in fifteen bins (j/15, (j + 1)/15]."""
        return self._scores.reliability

    @cached_property
    def confusion_matrix(self) -> np.ndarray:
        """The weight of the rows by true class (rows) and predicted class (columns), of shape (classes, classes)."""
        n = len(self.classes)
        cells = np.bincount(self._scores.codes * n + self._scores.predicted, self._size, minlength=n * n)
        return np.ldexp(cells, self._exponent).reshape(n, n)

    def _by_class(self, estimates: MetricEstimates) -> dict[object, MetricEstimate]:
        """Return estimates by class label."""
        return {label: estimates.at(k) for k, label in enumerate(self.classes.tolist())}

    @cached_property
    def precision(self) -> dict[object, MetricEstimate]:
        """By class: the proportion of the rows predicted as it that are of it."""
        return self._by_class(self._scores.precision)

    @cached_property
    def recall(self) -> dict[object, MetricEstimate]:
        """By class: the proportion of its rows predicted as it; of the second of two, the true positive rate."""
        return self._by_class(self._scores.recall)

    @cached_property
    def f1_score(self) -> dict[object, MetricEstimate]:
        """By class: F₁, the harmonic mean of precision and recall."""
        return self._by_class(self._scores.f_score)

    @cached_property
    def false_positive_rate(self) -> dict[object, MetricEstimate]:
        """By class: the proportion of the rows of other classes predicted as it."""
        return self._by_class(self._scores.false_positive_rate)

    @cached_property
    def support(self) -> dict[object, float]:
        """By class: the weight of its rows."""
        weights = np.ldexp(self._scores.of_class.total, self._exponent)
        return dict(zip(self.classes.tolist(), weights.tolist(), strict=True))

    @property
    def macro_precision(self) -> MetricEstimate:
        """The mean precision of the classes that were predicted."""
        return self._scores.macro_precision

    @property
    def macro_recall(self) -> MetricEstimate:
        """The mean recall of the classes that occur: the balanced accuracy."""
        return self._scores.macro_recall

    @property
    def macro_f1_score(self) -> MetricEstimate:
        """The mean F₁ of the classes that occur or were predicted."""
        return self._scores.macro_f_score

    def _take(self, rows: np.ndarray) -> Evaluation:
        arrays = {"weight": self.weight, "log_density": self.log_density, "predicted": self.predicted}
        options = {name: array[rows] for name, array in arrays.items() if array is not None}
        return Evaluation(self.classes, self.codes[rows], self.log_proba[rows], mass=self.mass, **options)

    def precision_recall_curve(self, label: object) -> PrecisionRecallCurve:
        """Return precision and recall of a class against the rest at every threshold on its probability.

        Parameters
        ----------
        label : class label

        Returns
        -------
        PrecisionRecallCurve
            ``precision`` and ``recall``, from none predicted to all, and ``average_precision``.
        """
        return self._scores.precision_recall_curve(self.classes.tolist().index(label))

    def threshold(
        self, *, precision: float | None = None, recall: float | None = None, positive: object = None
    ) -> Threshold:
        """Return the threshold on the probability of a class that has a stated precision or recall on these rows.

        Parameters
        ----------
        precision : float, optional
            The minimum precision; of such thresholds that of the highest recall is returned.
        recall : float, optional
            The minimum recall; of such thresholds that of the highest precision is returned.
        positive : label, optional
            The class; of two classes the second one if left out.

        Returns
        -------
        Threshold
            For ``model.decide(X, threshold=...)``.
        """
        scores = self._scores
        classes = self.classes.tolist()
        return find_threshold(scores.log_proba, scores.codes, self._size, classes, positive, precision, recall)

    def plot_confusion(self, ax: Axes | None = None) -> Plot:
        """Plot the confusion matrix, colored by the proportions of each true class. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_confusion

        return plot_confusion(self, ax)

    def plot_reliability(self, ax: Axes | None = None) -> Plot:
        """Plot accuracy against confidence, and the proportion of rows of every confidence. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_reliability

        return plot_reliability(self, ax)

    def plot_precision_recall(self, ax: Axes | None = None) -> Plot:
        """Plot precision against recall, of ``classes[1]`` or of every class. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.evaluation.classification_evaluation import plot_precision_recall

        return plot_precision_recall(self, ax)

    def _row_metrics(self) -> dict[str, np.ndarray]:
        return {"accuracy": self._scores.is_correct} | super()._row_metrics()

    def _records(self) -> list[tuple[object, ...]]:
        records: list[tuple[object, ...]] = [(name, None, *numbers) for name, *numbers in super()._records()]
        for name in _PER_CLASS:
            records += [(name, label, *estimate) for label, estimate in getattr(self, name).items()]
        return records + [("support", label, weight, np.nan, np.nan) for label, weight in self.support.items()]

    def _title(self) -> str:
        return f"{self.n_rows} rows{self._weight_note()}, {len(self.classes)} classes"

    def _tables(self) -> list[ResultTable]:
        return [self._class_table(), *self._group_tables()]

    def _class_table(self) -> ResultTable:
        """Return precision, recall, F₁ and support by class, and their macro averages."""
        metrics = (self.precision, self.recall, self.f1_score)
        rows = [
            estimate_cells(short_label(label), *(metric[label] for metric in metrics), _amount(weight))
            for label, weight in list(self.support.items())[:MOST_SHOWN]
        ]
        if len(self.support) > MOST_SHOWN:
            rows.append([f"… {len(self.support) - MOST_SHOWN} more", *[""] * 7])
        macro = (self.macro_precision, self.macro_recall, self.macro_f1_score)
        rows.append(estimate_cells("macro average", *macro, ""))
        return ResultTable(rows, ["class", "precision", "", "recall", "", "F1", "", "support"], align="lrlrlrlr")

    def _group_tables(self) -> list[ResultTable]:
        """Return a table of the groups, if any, with two rows each: the values, and their intervals."""
        if not self.groups:
            return []
        positive = self.classes.tolist()[1:] if len(self.classes) == 2 else []
        rates = [name for label in positive for name in (f"recall {short_label(label, 10)}", "false positive rate")]
        head = [printable(self.by_name), "rows", "accuracy", "error rate", *rates, "log loss", "calibration error"]
        rows = []
        for label, part in list(self.groups.items())[:MOST_SHOWN]:
            by_class = [metric[k] for k in positive for metric in (part.recall, part.false_positive_rate)]
            estimates = [part.accuracy, part.error_rate, *by_class, part.log_loss, part.calibration_error]
            texts = [estimate.shown() for estimate in estimates]
            rows.append([short_label(label), str(part.n_rows), *(value for value, _, _ in texts)])
            rows.append(["", "", *(f"{low}–{high}" for _, low, high in texts)])
        if len(self.groups) > MOST_SHOWN:
            rows.append([f"… {len(self.groups) - MOST_SHOWN} more", *[""] * (len(head) - 1)])
        return [ResultTable(rows, head, align="lr")]


class SequenceEvaluation(Evaluation):
    """Metrics of the predicted states of sequences. Returned by `evaluate` and `cross_validate`.

    An `Evaluation` of the time steps whose state is known: their smoothed probabilities; the predicted states are those
    of the most probable sequence of states, as in `predict` and `score`.

    Parameters
    ----------
    states : array-like of shape (states,)
    codes : array of int of shape (steps,)
        The true state of every step, as an index into `states`; −1 if it is unknown.
    predictions : SequencePredictions
        NaN for sequences that are not evaluated.
    lengths : array of int of shape (sequences,)
    weight : array of shape (sequences,), optional
        The weight of every sequence.
    by : array-like of shape (sequences,), optional
        The group of every sequence.
    mass : float, default 0.95
        The probability of the intervals.
    held_out : HeldOut, optional
        How the sequences were held out.

    Attributes
    ----------
    log_likelihood : ndarray of shape (sequences,)
        log p(sequence), of held-out ones under the model of the others; NaN for sequences that are not evaluated.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3], [3, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"], ["hot", "hot"]]
    >>> result = tb.leave_one_out(tb.HiddenMarkovModel(columns=tb.Categorical()), diary, weather)
    >>> round(result.accuracy.value, 3), result.log_likelihood.round(2).tolist()
    (0.818, [-3.17, -4.64, -3.75, -2.16])
    """

    def __init__(
        self,
        states: npt.ArrayLike,
        codes: np.ndarray,
        predictions: SequencePredictions,
        lengths: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        by: Labels | None = None,
        mass: float = 0.95,
        held_out: HeldOut | None = None,
    ) -> None:
        log_proba, self.log_likelihood, path = predictions
        self.lengths = lengths
        self.sequence_weight = np.ones(len(lengths)) if weight is None else weight
        unknown = (codes < 0) | np.isnan(log_proba).any(axis=1)
        super().__init__(
            states,
            np.maximum(codes, 0),
            np.where(np.isnan(log_proba), -np.log(max(log_proba.shape[1], 1)), log_proba),
            weight=np.where(unknown, 0.0, np.repeat(self.sequence_weight, lengths)),
            by=None if by is None else np.repeat(np.asarray(by, dtype=object), lengths),
            predicted=path,
            mass=mass,
            held_out=held_out,
        )

    @property
    def bits_per_step(self) -> MetricEstimate:
        """The code length of a time step of a sequence: −log₂ p(sequences) over the number of all steps."""
        known = ~np.isnan(self.log_likelihood)
        steps = self.lengths[known]
        density = DensityEvaluation(
            self.log_likelihood[known], steps=steps, weight=self.sequence_weight[known], mass=self.mass
        )
        return density.loss

    def _fold_of_rows(self) -> np.ndarray:
        return np.repeat(self.fold, self.lengths)


def _amount(weight: float) -> str:
    return f"{weight:.0f}" if weight >= 1e5 else f"{weight:.6g}"


def _check_codes(
    codes: npt.ArrayLike, classes: np.ndarray, log_proba: np.ndarray, name: str = "codes"
) -> npt.NDArray[np.intp]:
    """Return codes as integers; raise DataError unless there is an index into classes for every row of log_proba."""
    if classes.ndim != 1 or len(classes) == 0:
        raise DataError.wrong_shape("classes", classes.shape, "one axis, with a label for every class")
    array = np.asarray(codes)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        shown = f"an array of {array.dtype} with shape {array.shape}"
        raise DataError.wrong_type(name, shown, "whole numbers, one per row: positions in classes")
    if log_proba.shape != (len(array), len(classes)):
        expected = f"({len(array)}, {len(classes)}): a row for every code, a column for every class"
        raise DataError.wrong_shape("log_proba", log_proba.shape, expected)
    wrong = np.flatnonzero((array < 0) | (array >= len(classes)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{name} has {array[row]} in row {row}; expected a position from 0 to {len(classes) - 1}.")
    return array.astype(np.intp, copy=False)


def _check_distributions(log_proba: np.ndarray) -> None:
    """Raise DataError unless the probabilities of every row sum to 1."""
    with np.errstate(over="ignore"):
        total = np.einsum("ij->i", np.exp(log_proba))  # along a short axis faster than sum
    wrong = np.flatnonzero(~(np.abs(total - 1) < 1e-4))  # includes NaN
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"log_proba is no distribution in row {row}: its probabilities sum to {total[row]:.6g}; expected 1.\n"
            "    Pass log-probabilities, such as from predict_log_proba: not probabilities, not joint ones."
        )
