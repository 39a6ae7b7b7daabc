"""PriorPath: log evidence and held-out metrics by the strength of the prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallybayes.errors import EstimateError
from tallybayes.results.classification_evaluation import Evaluation
from tallybayes.results.evaluation import REFITTED, RowEvaluation
from tallybayes.results.result import FrameData, PlottedResult, ResultTable


@dataclass(eq=False, repr=False)
class PriorPath(PlottedResult):
    """Log evidence, log loss and accuracy of a model under priors of several strengths. Returned by `prior_path`.

    Attributes
    ----------
    strengths : ndarray of shape (n,)
        The strength of each prior, as a multiple of the model's own.
    log2_evidence : ndarray of shape (n,)
        log₂ p(rows, labels), with the parameters integrated out; higher is better. Of a mixture, its lower bound; NaN
        if undefined.
    results : list of Evaluation or DensityEvaluation
        The held-out metrics under each prior.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = tb.prior_path(tb.GaussianDiscriminant(), X, y, [0.1, 1, 10, 100])
    >>> path.by_evidence
    1.0
    """

    _plot_function = "evaluation.prior_path.plot_prior_path"

    strengths: np.ndarray
    log2_evidence: np.ndarray
    results: list[RowEvaluation]

    @property
    def has_evidence(self) -> bool:
        """Whether the log evidence is defined under any of the priors."""
        return not bool(np.isnan(self.log2_evidence).all())

    @property
    def by_evidence(self) -> float:
        """The strength with the highest log evidence."""
        if not self.has_evidence:
            raise EstimateError(
                "this model has no log evidence under any prior.\n    Use the held-out log loss instead: by_log_loss."
            )
        return float(self.strengths[np.nanargmax(self.log2_evidence)])

    @property
    def by_log_loss(self) -> float:
        """The strength with the lowest held-out loss: log loss or, without classes, bits."""
        return float(self.strengths[np.argmin([result.loss.value for result in self.results])])

    @property
    def has_accuracy(self) -> bool:
        """Whether the model predicts classes."""
        return bool(self._accuracies())

    def _frame_data(self) -> FrameData:
        evidence = {"log2_evidence": self.log2_evidence} if self.has_evidence else {}
        loss = {self.results[0].loss_column: [result.loss.value for result in self.results]}
        accuracy = {"accuracy": [each.accuracy.value for each in self._accuracies()]} if self.has_accuracy else {}
        return {"strength": self.strengths, **evidence, **loss, **accuracy}

    def _content(self) -> list[str | ResultTable]:
        columns = {"strength": [f"{strength:.4g}" for strength in self.strengths]}
        if self.has_evidence:
            best = self.by_evidence
            bits = zip(self.strengths, self.log2_evidence, strict=True)
            columns["log₂ evidence"] = [f"{value:.1f}{' *' if strength == best else '  '}" for strength, value in bits]
        best = self.by_log_loss
        losses = zip(self.strengths, self.results, strict=True)
        columns[self.results[0].loss_name] = [
            f"{result.loss!r}{' *' if strength == best else ''}" for strength, result in losses
        ]
        if self.has_accuracy:
            columns["accuracy"] = [repr(result.accuracy) for result in self._accuracies()]
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        align = "rrll" if self.has_evidence else "rll"
        notes = [REFITTED] if any(result.refitted for result in self.results) else []
        return [ResultTable(rows, list(columns), "The model's own prior, times a strength; * is best", align), *notes]

    def _accuracies(self) -> list[Evaluation]:
        """Return the results that have an accuracy."""
        return [result for result in self.results if isinstance(result, Evaluation)]
