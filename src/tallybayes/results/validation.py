"""Evaluations of held-out rows: of class predictions, sequences, densities and regressions; and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from tallybayes.results.classification_evaluation import Evaluation
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.results.evaluation import RowEvaluation
from tallybayes.results.metric_intervals import MetricEstimate, average
from tallybayes.results.regression_evaluation import RegressionEvaluation, predictive_rows
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
    from tallybayes.models.estimator import Estimator
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.models.hmm.hmm_held_out import SequencePredictions
    from tallybayes.models.regression.target_prediction import TargetPredictive

REFITTED = "The model was refitted for every fold: its counts cannot be subtracted."


class HeldOut(NamedTuple):
    """How rows were held out.

    Attributes
    ----------
    model : fitted model
        Fitted on all rows.
    fold : ndarray of shape (n,)
        The fold that every row was held out with; −1 for rows that were only used for fitting.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.
    refitted : bool
        Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts of all rows.
    """

    model: Any
    fold: np.ndarray
    parameters: dict[str, Any]
    refitted: bool = False

    @property
    def rows(self) -> np.ndarray:
        """The rows that were held out."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def selected(self) -> np.ndarray | slice:
        """The rows that were held out, as a slice if they are all rows."""
        return slice(None) if self.fold.min() >= 0 else self.rows


class Validation(RowEvaluation):
    """An evaluation of held-out rows: it also has the fold of every row and the model of all rows."""

    model: Estimator
    fold: np.ndarray
    rows: np.ndarray
    parameters: dict[str, Any]
    refitted: bool = False

    def _set_held_out(self, held_out: HeldOut, row_fold: np.ndarray) -> None:
        """Set the attributes of held-out rows; `row_fold` is the fold of the rows of this evaluation."""
        self.model, self.fold, self.parameters, self.refitted = held_out
        self.rows = held_out.rows
        self._row_fold = row_fold

    def by_fold(self) -> pd.DataFrame:
        """Return the weight and the mean loss of every fold, and the accuracy of class predictions.

        Returns
        -------
        pandas.DataFrame
            The index is the fold.
        """
        import pandas as pd

        fold = self._row_fold[self._loss_rows]
        _, weight = self.row_losses()
        size = np.ones(len(fold)) if weight is None else weight
        total = np.bincount(fold, size)
        used = np.flatnonzero(total > 0)
        means = {
            name: np.bincount(fold, size * values)[used] / total[used] for name, values in self._row_metrics().items()
        }
        return pd.DataFrame({"weight": total[used]} | means, index=pd.Index(used, name="fold"))

    def _content(self) -> list[str | ResultTable]:
        return [*super()._content(), *([REFITTED] if self.refitted else [])]


class CrossValidation(Validation, Evaluation):
    """Metrics of class predictions for held-out rows. Returned by `cross_validate` and `leave_one_out`.

    An `Evaluation` of the held-out rows, with the fold of every row and the model of all rows.

    Attributes
    ----------
    model : fitted model
        Fitted on all rows.
    fold : ndarray of shape (n,)
        The fold that every row was held out with; −1 for rows that were only used for fitting.
    rows : ndarray of int
        The rows that were held out, in the order of `log_proba`.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.
    refitted : bool
        Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts of all rows.
    impossible : ndarray of bool of shape (n,)
        The rows with probability 0 in every class when they are held out: they get the class prior.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = tb.cross_validate(tb.GaussianDiscriminant(), X, y)
    >>> result.accuracy
    0.980 (0.943 to 0.993)
    >>> result.model.predict(X[:1])
    array([0])
    """

    _checks_log_proba = False

    def __init__(
        self,
        held_out: HeldOut,
        classes: npt.ArrayLike,
        codes: np.ndarray,
        scores: ClassPosterior,
        weight: np.ndarray | None,
    ) -> None:
        index = held_out.selected
        density = scores.log_density[index]
        Evaluation.__init__(
            self,
            classes,
            codes[index],
            scores.log_proba[index],
            weight=None if weight is None else weight[index],
            log_density=None if np.isnan(density).any() else density,  # nearest class means have no density
        )
        self._set_held_out(held_out, held_out.fold[index])
        self.impossible = scores.impossible


class SequenceValidation(Validation, Evaluation):
    """Metrics of the predicted states of held-out sequences. Returned by `cross_validate` and `leave_one_out`.

    An `Evaluation` of the time steps whose state is known: their smoothed probabilities; the predicted states are those
    of the most probable sequence of states, as in `predict` and `score`.

    Attributes
    ----------
    model : HiddenMarkovModel
        Fitted on all sequences.
    fold : ndarray of shape (sequences,)
        −1 for sequences that were only used for fitting.
    rows : ndarray of int
        The sequences that were held out.
    log_likelihood : ndarray of shape (sequences,)
        log p(sequence) under the model of the others; NaN for sequences that were not held out.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.
    refitted : bool
        Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts of all.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3], [3, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"], ["hot", "hot"]]
    >>> result = tb.leave_one_out(tb.HiddenMarkovModel(columns=tb.Categorical()), diary, weather)
    >>> round(result.accuracy.value, 3), result.log_likelihood.round(2).tolist()
    (0.818, [-3.17, -4.64, -3.75, -2.16])
    """

    model: HiddenMarkovModel

    def __init__(
        self,
        held_out: HeldOut,
        codes: np.ndarray,
        scores: SequencePredictions,
        lengths: np.ndarray,
        weight: np.ndarray | None,
    ) -> None:
        log_proba, log_likelihood, path = scores
        unknown = (codes < 0) | np.isnan(log_proba).any(axis=1)  # without a state, or not held out
        step_weight = None if weight is None else np.repeat(weight, lengths)
        if unknown.any():
            step_weight = np.where(unknown, 0.0, 1.0 if step_weight is None else step_weight)
            log_proba = np.where(np.isnan(log_proba), -np.log(log_proba.shape[1]), log_proba)
        Evaluation.__init__(
            self, held_out.model.states_, np.maximum(codes, 0), log_proba, weight=step_weight, predicted=path
        )
        self._set_held_out(held_out, np.repeat(held_out.fold, lengths))
        self.log_likelihood = log_likelihood
        self._lengths = lengths
        self._sequence_weight = weight

    @property
    def bits_per_step(self) -> MetricEstimate:
        """The code length of a time step of a held-out sequence: −log₂ p(sequences) over the number of all steps."""
        held = np.flatnonzero((self.fold >= 0) & (self._lengths > 0))
        size = self._lengths[held] * (1.0 if self._sequence_weight is None else self._sequence_weight[held])
        bits = -self.log_likelihood[held] / self._lengths[held] / np.log(2)
        return average(bits[size > 0], size[size > 0], self.mass)


class DensityValidation(Validation, DensityEvaluation):
    """The code length of held-out rows or sequences. Returned by `cross_validate` of a model without a target.

    A `DensityEvaluation` of the held-out rows.

    Attributes
    ----------
    model : fitted model
        Fitted on all rows.
    fold : ndarray of shape (n,)
        The fold that every row or sequence was held out with; −1 for those that were only used for fitting.
    rows : ndarray of int
        The rows that were held out, in the order of `log_density`.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.
    refitted : bool
        Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts of all.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rows = np.random.default_rng(0).normal([[0.0], [6.0]] * 50)
    >>> selection = tb.cross_validate(tb.Mixture(random_state=0), rows, candidates={"n_components": [1, 2]})
    >>> selection.best.parameters, selection.best.refitted
    ({'n_components': 2}, True)
    """

    def __init__(
        self,
        held_out: HeldOut,
        log_density: np.ndarray,
        weight: np.ndarray | None,
        *,
        steps: np.ndarray | None = None,
    ) -> None:
        rows = held_out.rows
        DensityEvaluation.__init__(
            self,
            log_density[rows],
            steps=None if steps is None else steps[rows],
            weight=None if weight is None else weight[rows],
        )
        self._set_held_out(held_out, held_out.fold[rows])


class RegressionValidation(Validation, RegressionEvaluation):
    """Metrics of a regression on held-out rows. Returned by `cross_validate` and `leave_one_out`.

    A `RegressionEvaluation` of the held-out rows.

    Attributes
    ----------
    model : LinearRegression
        Fitted on all rows.
    fold : ndarray of shape (n,)
        The fold that every row was held out with; −1 for rows that were only used for fitting.
    rows : ndarray of int
        The rows that were held out.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.

    Examples
    --------
    >>> import tallybayes as tb
    >>> x, y = [[-2.0], [-1.0], [0.0], [1.0], [2.0]], [5.0, 0.0, 1.0, 1.0, 4.0]
    >>> selection = tb.leave_one_out(tb.LinearRegression(2, estimate="mle"), x, y, candidates={"degree": [1, 2]})
    >>> selection.best.parameters, round(selection.best.mean_squared_error.value, 2)
    ({'degree': 2}, 4.95)
    """

    def __init__(
        self, held_out: HeldOut, target: np.ndarray, predictive: TargetPredictive, weight: np.ndarray | None
    ) -> None:
        rows = held_out.rows
        RegressionEvaluation.__init__(
            self, target[rows], predictive_rows(predictive, rows), weight=None if weight is None else weight[rows]
        )
        self._set_held_out(held_out, held_out.fold[rows])


_SELECTION_METRICS = (
    "log_loss",
    "accuracy",
    "brier_score",
    "calibration_error",
    "bits_per_step",
    "bits_per_row",
    "mean_absolute_error",
    "mean_squared_error",
    "rmse",
    "r2",
)


class Selection(Result, Sequence[Any]):
    """Candidates compared on the same held-out rows: a sequence of results such as `CrossValidation`, in given order.

    Attributes
    ----------
    best : CrossValidation, SequenceValidation, DensityValidation or RegressionValidation
        The candidate with the lowest loss.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.leave_one_out(tb.GaussianDiscriminant(), X, y, candidates={"covariance": ["full", "tied"]})
    Selection: 2 candidates, best first
      covariance  log-loss             excess loss              accuracy
      'full'      0.05 (0.02 to 0.10)                           0.980 (0.943 to 0.993)
      'tied'      0.05 (0.02 to 0.10)  0.002 (-0.009 to 0.013)  0.980 (0.943 to 0.993)
    """

    def __init__(self, results: Sequence[Validation]) -> None:
        self._results = list(results)
        self._ranked = sorted(self._results, key=lambda result: result.loss.value)

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def best(self) -> Any:
        """The candidate with the lowest loss."""
        return self._ranked[0]

    def excess_loss(self, result: Validation) -> MetricEstimate:
        """Return the mean difference of a candidate's loss to that of the best one.

        Its interval is that of paired differences, row by row: much shorter than the intervals of the two losses.

        Parameters
        ----------
        result : one of the candidates

        Returns
        -------
        MetricEstimate
        """
        losses, weight = self.best.row_losses()
        with np.errstate(invalid="ignore"):
            excess = result.row_losses()[0] - losses
        excess = np.where(np.isnan(excess), 0.0, excess)  # both losses are infinite
        return average(excess, weight, self.best.mass)

    def _frame_data(self) -> FrameData:
        records = []
        for result in self._results:
            metrics = {name: getattr(result, name, None) for name in _SELECTION_METRICS}
            values = {name: metric.value for name, metric in metrics.items() if metric is not None}
            records.append(result.parameters | values)
        return records

    def _content(self) -> list[str | ResultTable]:
        names = list(dict.fromkeys(name for result in self._results for name in result.parameters))
        has_accuracy = hasattr(self.best, "accuracy")
        rows = []
        for result in self._ranked:
            values = [f"{result.parameters[name]!r}" if name in result.parameters else "" for name in names]
            values = [text if len(text) <= 40 else text[:37] + "…" for text in values]
            excess = "" if result is self.best else repr(self.excess_loss(result))
            accuracy = [repr(getattr(result, "accuracy", ""))] if has_accuracy else []
            rows.append([*values, repr(result.loss), excess, *accuracy])
        head = [*names, self.best.loss_name, "excess loss", *(["accuracy"] if has_accuracy else [])]
        notes = [REFITTED] if any(result.refitted for result in self._results) else []
        return [ResultTable(rows, head, f"Selection: {len(self)} candidates, best first"), *notes]
