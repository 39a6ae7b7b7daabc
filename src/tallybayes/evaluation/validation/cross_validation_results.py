"""Results on what was held out: of rows with classes, of sequences with states, and of densities alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.evaluation.metrics.classification_evaluation import Evaluation
from tallybayes.evaluation.metrics.density_evaluation import DensityEvaluation
from tallybayes.evaluation.metrics.evaluation_text import Part
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, average
from tallybayes.models.hmm.hmm_held_out import SequencePredictions

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.estimator import Estimator
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

REFITTED = "Every fold's model was fitted again: nothing could be subtracted."


class CrossValidation(Evaluation):
    """How well a model predicts rows it has not counted; made by `cross_validate` and `leave_one_out`.

    An `Evaluation` of held-out scores, which also has the fold of every row and the model of all rows.

    Attributes
    ----------
    model : fitted model
        Of all rows: nothing more has to be fitted.
    fold : ndarray of shape (n,)
        The fold every row was held out with; −1 for rows that were only learned from.
    rows : ndarray of int
        The rows that were scored, in the order of `log_proba`.
    parameters : dict
        Those of a candidate, by name; empty without candidates.
    refitted : bool
        Whether every fold's model was fitted again; otherwise the fold was subtracted from the counts of all rows.
    impossible : ndarray of bool of shape (n,)
        The rows that are possible in no class when they are held out: their class prior is used.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tb.cross_validate(tb.GaussianDiscriminant(), X, y)
    >>> found.accuracy
    0.980 (0.943 to 0.993)
    >>> found.model.predict(X[:1])
    array([0])
    """

    _normalized = True

    def __init__(
        self,
        model: Estimator,
        classes: npt.ArrayLike,
        codes: np.ndarray,
        scores: ClassPosterior,
        weight: np.ndarray | None,
        fold: np.ndarray,
        parameters: dict[str, Any],
        *,
        refitted: bool = False,
    ) -> None:
        scored = np.arange(len(fold)) if fold.min() >= 0 else np.flatnonzero(fold >= 0)
        here = slice(None) if len(scored) == len(fold) else scored
        density = scores.log_density[here]
        super().__init__(
            classes,
            codes[here],
            scores.log_proba[here],
            weight=None if weight is None else weight[here],
            log_density=None if np.isnan(density).any() else density,  # a model of distances has none
        )
        self.model, self.fold, self.rows, self.parameters = model, fold, scored, parameters
        self.refitted, self.impossible = refitted, scores.impossible

    def by_fold(self) -> pd.DataFrame:
        """The accuracy and log-loss of every fold, as a pandas DataFrame."""
        import pandas as pd

        weight = np.ones(len(self.rows)) if self.weight is None else self.weight
        fold = self.fold[self.rows]
        total = np.bincount(fold, weight)
        right = np.bincount(fold, weight * (self.log_proba.argmax(axis=1) == self.codes))
        loss = np.bincount(fold, -weight * self.log_proba[np.arange(len(fold)), self.codes])
        here = np.flatnonzero(total > 0)
        found = {"weight": total[here], "accuracy": right[here] / total[here], "log_loss": loss[here] / total[here]}
        return pd.DataFrame(found, index=pd.Index(here, name="fold"))

    def _shown(self) -> list[Part]:
        return [*super()._shown(), *([REFITTED] if self.refitted else [])]


class SequenceValidation(Evaluation):
    """How well the states of sequences are told by a model of other sequences; made by `leave_one_out`.

    An `Evaluation` of steps whose state is known: their smoothed probabilities, and the most probable path as a whole
    for what is predicted, as `predict` and `score` have it.

    Attributes
    ----------
    model : HiddenMarkovModel
        Of all sequences.
    fold : ndarray of shape (sequences,)
        −1 for sequences that were only learned from.
    log_likelihood : ndarray of shape (sequences,)
        log p(sequence) by the model of the others; NaN where it was not held out.
    parameters : dict
        Those of a candidate, by name; empty without candidates.
    refitted : bool
        Whether every fold's model was fitted again; otherwise the fold was subtracted from the counts of all.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3], [3, 3]]
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"], ["hot", "hot"]]
    >>> found = tb.leave_one_out(tb.HiddenMarkovModel(columns=tb.Categorical()), diary, weather)
    >>> round(found.accuracy.value, 3), found.log_likelihood.round(2).tolist()
    (0.818, [-3.17, -4.64, -3.75, -2.16])
    """

    def __init__(
        self,
        model: HiddenMarkovModel,
        codes: np.ndarray,
        scores: SequencePredictions,
        lengths: np.ndarray,
        weight: np.ndarray | None,
        fold: np.ndarray,
        parameters: dict[str, Any],
        *,
        refitted: bool = False,
    ) -> None:
        log_proba, log_likelihood, path = scores
        absent = (codes < 0) | np.isnan(log_proba).any(axis=1)  # no state to compare with, or not held out
        per_step = None if weight is None else np.repeat(weight, lengths)
        if absent.any():
            per_step = np.where(absent, 0.0, 1.0 if per_step is None else per_step)
            log_proba = np.where(np.isnan(log_proba), -np.log(log_proba.shape[1]), log_proba)
        super().__init__(model.states_, np.maximum(codes, 0), log_proba, weight=per_step, predicted=path)
        self.model, self.fold, self.log_likelihood, self.parameters = model, fold, log_likelihood, parameters
        self.refitted = refitted
        self._lengths, self._sequence_weight = lengths, weight

    @property
    def bits_per_step(self) -> MetricEstimate:
        """What a step costs to encode when its sequence is held out: −log₂ p(sequences) over all their steps."""
        held = np.flatnonzero((self.fold >= 0) & (self._lengths > 0))
        size = self._lengths[held] * (1.0 if self._sequence_weight is None else self._sequence_weight[held])
        bits = -self.log_likelihood[held] / self._lengths[held] / np.log(2)
        return average(bits[size > 0], size[size > 0], self.mass)

    def _shown(self) -> list[Part]:
        return [*super()._shown(), *([REFITTED] if self.refitted else [])]


class DensityValidation(DensityEvaluation):
    """How probable rows or sequences are to a model of others; made by `cross_validate` of a model without classes.

    A `DensityEvaluation` of what was held out.

    Attributes
    ----------
    model : fitted model
        Of all rows.
    fold : ndarray of shape (n,)
        The fold every row, or sequence, was held out with; −1 for those that were only learned from.
    rows : ndarray of int
        The rows that were scored, in the order of `log_density`.
    parameters : dict
        Those of a candidate, by name; empty without candidates.
    refitted : bool
        Whether every fold's model was fitted again; otherwise the fold was subtracted from the counts of all.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rows = np.random.default_rng(0).normal([[0.0], [6.0]] * 50)
    >>> found = tb.cross_validate(tb.Mixture(random_state=0), rows, candidates={"n_components": [1, 2]})
    >>> found.best.parameters, found.best.refitted
    ({'n_components': 2}, True)
    """

    def __init__(
        self,
        model: Estimator,
        log_density: np.ndarray,
        weight: np.ndarray | None,
        fold: np.ndarray,
        parameters: dict[str, Any],
        *,
        steps: np.ndarray | None = None,
        refitted: bool = False,
    ) -> None:
        scored = np.flatnonzero(fold >= 0)
        kept = [None if part is None else part[scored] for part in (steps, weight)]
        super().__init__(log_density[scored], steps=kept[0], weight=kept[1])
        self.model, self.fold, self.rows, self.parameters = model, fold, scored, parameters
        self.refitted = refitted

    def by_fold(self) -> pd.DataFrame:
        """The loss of every fold, as a pandas DataFrame."""
        import pandas as pd

        fold = self.fold[self.rows][self._counts]
        loss, weight = self._losses()
        size = np.ones(len(loss)) if weight is None else weight
        total = np.bincount(fold, size)
        here = np.flatnonzero(total > 0)
        name = self.loss_name.replace(" ", "_")
        found = {"weight": total[here], name: np.bincount(fold, size * loss)[here] / total[here]}
        return pd.DataFrame(found, index=pd.Index(here, name="fold"))

    def _shown(self) -> list[Part]:
        return [*super()._shown(), *([REFITTED] if self.refitted else [])]
