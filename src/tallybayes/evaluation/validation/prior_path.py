"""tb.prior_path: what the strength of the prior does to the evidence and to rows left out."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes._utils.html import html_parts
from tallybayes._utils.progress import progress
from tallybayes.errors import DataError, EstimateError, NotForgettableError
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.estimation.resampling.held_out import kfold_splits
from tallybayes.evaluation.validation.cross_validation import evaluate_held_out, make_holdout
from tallybayes.evaluation.validation.cross_validation_results import REFITTED, CrossValidation
from tallybayes.families.estimates import read_estimate
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.held_out_scores import count_rows, open_rows, score_left_out
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.models.estimator import Estimator
    from tallybayes.plotting.plot import Plot

_FOLDS = 10  # of models whose rows cannot be left out in closed form
_TITLE = "The model's own prior, times a strength; * is best"
GRID = tuple(float(strength) for strength in 10.0 ** np.linspace(-3, 3, 13))


class PriorPath:
    """The evidence, log-loss and accuracy of one model under priors of several strengths; made by `prior_path`.

    Attributes
    ----------
    strengths : ndarray of shape (n,)
        What each prior is worth, as a multiple of the model's own.
    log2_evidence : ndarray of shape (n,)
        log₂ p(rows, labels), the parameters integrated out: more is better. Of a mixture, its bound; NaN where there is
        none.
    results : list of CrossValidation, SequenceValidation or DensityValidation
        The held-out scores under each prior.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = tb.prior_path(tb.GaussianDiscriminant(), X, y, [0.1, 1, 10, 100])
    >>> path.by_evidence
    1.0
    """

    def __init__(self, strengths: np.ndarray, log2_evidence: np.ndarray, results: list[CrossValidation]) -> None:
        self.strengths, self.log2_evidence, self.results = strengths, log2_evidence, results

    @property
    def has_evidence(self) -> bool:
        """Whether the model has evidence, under any of the priors."""
        return not bool(np.isnan(self.log2_evidence).all())

    @property
    def by_evidence(self) -> float:
        """The strength with the highest evidence."""
        if not self.has_evidence:
            raise EstimateError(
                "this model has no evidence under any prior.\n    Choose by log_loss instead: by_log_loss."
            )
        return float(self.strengths[np.nanargmax(self.log2_evidence)])

    @property
    def by_log_loss(self) -> float:
        """The strength with the lowest log-loss on what was left out or, without classes, the fewest bits."""
        return float(self.strengths[np.argmin([result.loss.value for result in self.results])])

    def to_frame(self) -> pd.DataFrame:
        """One row for every strength, as a pandas DataFrame."""
        import pandas as pd

        found: dict[str, Any] = {"strength": self.strengths}
        if self.has_evidence:
            found["log2_evidence"] = self.log2_evidence
        name = self.results[0].loss_name.replace("-", "_").replace(" ", "_")
        found[name] = [result.loss.value for result in self.results]
        if hasattr(self.results[0], "accuracy"):
            found["accuracy"] = [result.accuracy.value for result in self.results]
        return pd.DataFrame(found)

    def plot(self, ax: Axes | None = None) -> Plot:
        """Evidence, log-loss and accuracy against the strength of the prior; needs matplotlib.

        Parameters
        ----------
        ax : three matplotlib Axes, optional

        Returns
        -------
        array of three matplotlib Axes
        """
        from tallybayes.plotting.evaluation.prior_path import plot_prior_path

        return plot_prior_path(self, ax)

    def __repr__(self) -> str:
        told = hasattr(self.results[0], "accuracy")
        name = self.results[0].loss_name
        head = f"  {'log₂ evidence':>15}" if self.has_evidence else ""
        lines = [f"{'strength':>10}{head}  {name:<25}  {'accuracy' if told else ''}".rstrip()]
        best = np.nanmax(self.log2_evidence) if self.has_evidence else np.nan
        low = min(result.loss.value for result in self.results)
        for strength, bits, result in zip(self.strengths, self.log2_evidence, self.results, strict=True):
            marks = (" *" if bits == best else "  "), ("*" if result.loss.value == low else "")
            loss, accuracy = f"{result.loss!r} {marks[1]}", repr(result.accuracy) if told else ""
            evidence = f"  {bits:>13.1f}{marks[0]}" if self.has_evidence else ""
            lines.append(f"{strength:>10.4g}{evidence}  {loss:<25}  {accuracy}".rstrip())
        return "\n".join([_TITLE, *lines, *self._notes()])

    def _notes(self) -> list[str]:
        return [REFITTED] if any(result.refitted for result in self.results) else []

    def _repr_html_(self) -> str:
        best, low = np.nanmax([*self.log2_evidence, -np.inf]), min(result.loss.value for result in self.results)
        told, name = hasattr(self.results[0], "accuracy"), self.results[0].loss_name
        head = ["strength", *(["log₂ evidence"] if self.has_evidence else []), name, *(["accuracy"] if told else [])]
        rows = []
        for strength, bits, result in zip(self.strengths, self.log2_evidence, self.results, strict=True):
            evidence = [f"{bits:.1f}{' *' if bits == best else ''}"] if self.has_evidence else []
            loss = f"{result.loss!r}{' *' if result.loss.value == low else ''}"
            rows.append([f"{strength:.4g}", *evidence, loss, *([repr(result.accuracy)] if told else [])])
        return html_parts((_TITLE, head, rows), *self._notes())


def prior_path(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    grid: npt.ArrayLike = GRID,
    *,
    sample_weight: SampleWeights = None,
) -> PriorPath:
    """Evidence, and log-loss and accuracy on what is left out, under priors of several strengths.

    Every prior has the same expectations as the model's own (``prior_``) and is worth a multiple of it. Rows of a
    classifier are left out one by one, from one counting pass; of other models, ten folds are. Where EM expected what
    was missing, the model is fitted again under every prior and without every fold.

    Parameters
    ----------
    model : any model of this package but NearestClassMean
        With ``estimate="bayes"`` or ``"map"``: the others have no prior. It is not changed.
    data : as for ``fit``
    target : as for `cross_validate`
    grid : array-like of positive numbers, default 0.001 to 1000
        The multiples.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional

    Returns
    -------
    PriorPath

    Examples
    --------
    >>> import tallybayes as tb
    >>> coins = {"x": ["h", "h", "t", "h", "t", "t"], "y": [0, 0, 0, 1, 1, 1]}
    >>> tb.prior_path(tb.NaiveBayes(), coins, "y", [0.01, 1, 100]).by_log_loss
    100.0
    """
    strengths = np.asarray(grid, dtype=float)
    if strengths.ndim != 1 or not len(strengths) or not (np.isfinite(strengths) & (strengths > 0)).all():
        raise DataError.wrong_type("grid", repr(grid), "one or more positive numbers")
    if not read_estimate(getattr(model, "estimate", "mle")).has_prior:
        raise EstimateError(
            f"{model!r} has no prior whose strength could matter.\n    Use a model with estimate='bayes' or 'map'."
        )
    try:
        if isinstance(model, Classifier):
            return _of_rows(model, data, target, strengths, sample_weight)
    except NotForgettableError:
        pass  # EM has to expect what the rows lack
    held = make_holdout(model, data, target, sample_weight)
    known = held.codes >= 0
    fold = np.full(len(known), -1, dtype=np.int32)
    fold[known] = random_folds(held.codes[known], min(_FOLDS, int(known.sum())), 0)
    splits, bits, results = kfold_splits(fold, known), [], []
    own = {} if not held.requires_refit else held.full_model.prior_
    for strength in progress(strengths.tolist(), "trying priors"):
        if held.requires_refit:
            prior = {name: belief.scaled(strength) for name, belief in own.items()}
            other = make_holdout(clone(model).set_params(prior=prior), data, target, sample_weight)
        else:
            other = copy.copy(held)
            other.full_model = held.full_model._with_scaled_priors(strength)
        bits.append(_log2_evidence(other.full_model))
        results.append(evaluate_held_out(other, splits, fold, {"strength": strength}))
    return PriorPath(strengths, np.array(bits), results)


def _of_rows(model: Any, data: Any, target: Any, strengths: np.ndarray, sample_weight: Any) -> PriorPath:
    """The path of a classifier: every row left out under every prior, from one count."""
    rows = count_rows(open_rows(model, data, target, sample_weight))
    fold, bits, results = np.arange(rows.table.n_rows), [], []
    for strength in progress(strengths.tolist(), "trying priors"):
        other = rows.model._with_scaled_priors(strength)
        bits.append(_log2_evidence(other))
        found = other, other.classes_, rows.codes, score_left_out(rows, other), rows.weight, fold
        results.append(CrossValidation(*found, {"strength": strength}))
    return PriorPath(strengths, np.array(bits), results)


def _log2_evidence(model: Any) -> float:
    """The evidence in bits, or a mixture's bound; NaN where there is none: of shrunk covariances, of EM's counts."""
    try:
        found = model.evidence_lower_bound_ if isinstance(model, Mixture) else model.log_evidence()
    except EstimateError:
        return float("nan")
    return float(found / np.log(2))
