"""tb.prior_path: what the strength of the prior does to the evidence and to rows left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.errors import DataError, EstimateError
from tallybayes.families.estimates import read_estimate
from tallybayes.insight.validation import CrossValidation
from tallybayes.models.classifiers.answers.held_out import count_rows, open_rows, score_left_out
from tallybayes.progress import progress

GRID = tuple(float(strength) for strength in 10.0 ** np.linspace(-3, 3, 13))


class PriorPath:
    """The evidence, log-loss and accuracy of one model under priors of several strengths; made by `prior_path`.

    Attributes
    ----------
    strengths : ndarray of shape (n,)
        What each prior is worth, as a multiple of the model's own.
    log2_evidence : ndarray of shape (n,)
        log₂ p(rows, labels), the parameters integrated out: more is better. NaN where the model has no evidence.
    results : list of CrossValidation
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
    def by_evidence(self) -> float:
        """The strength with the highest evidence."""
        if np.isnan(self.log2_evidence).all():
            raise EstimateError(
                "this model has no evidence under any prior.\n    Choose by log_loss instead: by_log_loss."
            )
        return float(self.strengths[np.nanargmax(self.log2_evidence)])

    @property
    def by_log_loss(self) -> float:
        """The strength with the lowest log-loss on rows left out."""
        return float(self.strengths[np.argmin([result.log_loss.value for result in self.results])])

    def to_frame(self) -> Any:
        """One row for every strength, as a pandas DataFrame."""
        import pandas as pd

        measures = {
            "log_loss": [r.log_loss.value for r in self.results],
            "accuracy": [r.accuracy.value for r in self.results],
        }
        return pd.DataFrame({"strength": self.strengths, "log2_evidence": self.log2_evidence, **measures})

    def plot(self, ax: Any = None) -> Any:
        """Evidence, log-loss and accuracy against the strength of the prior; needs matplotlib.

        Parameters
        ----------
        ax : three matplotlib Axes, optional

        Returns
        -------
        array of three matplotlib Axes
        """
        from tallybayes.plots.prior_path import plot_prior_path

        return plot_prior_path(self, ax)

    def __repr__(self) -> str:
        lines = [f"{'strength':>10}  {'log₂ evidence':>15}  {'log-loss':<25}  accuracy"]
        best = np.nanmax(self.log2_evidence) if not np.isnan(self.log2_evidence).all() else np.nan
        low = min(result.log_loss.value for result in self.results)
        for strength, bits, result in zip(self.strengths, self.log2_evidence, self.results, strict=True):
            marks = (" *" if bits == best else "  "), ("*" if result.log_loss.value == low else "")
            loss = f"{result.log_loss!r} {marks[1]}"
            lines.append(f"{strength:>10.4g}  {bits:>13.1f}{marks[0]}  {loss:<25}  {result.accuracy!r}".rstrip())
        return "\n".join(["The model's own prior, times a strength; * is best", *lines])


def prior_path(model: Any, data: Any, target: Any, grid: Any = GRID, *, sample_weight: Any = None) -> PriorPath:
    """Evidence, leave-one-out log-loss and accuracy under priors of several strengths, from one counting pass.

    Every prior has the same expectations as the model's own (``prior_``) and is worth a multiple of it.

    Parameters
    ----------
    model : NaiveBayes or GaussianDiscriminant
        With ``estimate="bayes"`` or ``"map"``: the others have no prior. It is not changed.
    data : as for ``fit``
    target : array-like of shape (n,), or the name of a column of data
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
    rows = count_rows(open_rows(model, data, target, sample_weight))
    whole = rows.model
    if not read_estimate(whole.estimate).has_prior:
        raise EstimateError(
            f"estimate={whole.estimate!r} has no prior whose strength could matter.\n    Use estimate='bayes' or 'map'."
        )
    fold, bits, results = np.arange(rows.table.n_rows), [], []
    for strength in progress(strengths.tolist(), "trying priors"):
        other = whole._with_strength(strength)
        try:
            bits.append(other.log_evidence() / np.log(2))
        except EstimateError:  # a shrunk covariance has none
            bits.append(np.nan)
        found = other, other.classes_, rows.codes, score_left_out(rows, other), rows.weight, fold
        results.append(CrossValidation(*found, {"strength": strength}))
    return PriorPath(strengths, np.array(bits), results)
