"""Held-out predictions by refitting, for classifiers and mixtures whose statistics cannot be subtracted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.table import Table
from tallybayes.estimation.resampling.held_out import HoldOutRows
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import open_rows, read_initial_rows, with_weight
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.mixture.mixture_model import Mixture
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean

    AnyClassifier: TypeAlias = Classifier | AutoClassifier | NearestClassMean


class LabeledRows(HoldOutRows):
    """Rows of a classifier for cross-validation by refitting. Unlabeled rows are training rows of every fold."""

    def __init__(self, full_model: AnyClassifier, table: Table, weight: SampleWeights) -> None:
        self.full_model = full_model
        self.table = table
        self.index = {label: k for k, label in enumerate(full_model.classes_.tolist())}
        self.n_classes = len(self.index)
        self.weight = check_weight(weight, table.n_rows)
        labels = read_labels(table, full_model.target_, getattr(full_model, "missing_label", None))
        codes = np.array([*(self.index.get(level, -1) for level in labels.domain.levels), -1])
        self.codes = codes[labels.codes.astype(np.intp)]

    @classmethod
    def open(cls, model: AnyClassifier, data: Rows, target: Labels, sample_weight: SampleWeights) -> Self:
        """Read the rows as `fit` does."""
        whole = _as_counted(clone(model)).fit(data, target, sample_weight)
        _, table, weight = read_initial_rows(data, target, sample_weight)
        return cls(whole.set_params(**model.get_params(deep=False)), table, weight)

    @property
    def requires_refit(self) -> bool:
        """Return whether rows cannot be subtracted: after EM, and with a learned metric."""
        return not isinstance(self.full_model, ClassConditionalModel) or super().requires_refit

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some rows."""
        return self.full_model._count_more_rows(self.table.rows(chosen), self.some_weight(chosen))

    def fit(self, model: AnyClassifier, chosen: np.ndarray) -> AnyClassifier:
        """Return the model fitted to some rows."""
        return _as_counted(model).fit(self.table.rows(chosen), self.full_model.target_, self.some_weight(chosen))

    def predict_rows(self, model: AnyClassifier, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(class | row) and log p(row) of some rows; log p(row) is NaN for models without densities."""
        rows = self.table.rows(chosen)
        if isinstance(model, ClassConditionalModel):
            return estimates_of(model).row_scorer.posterior(open_rows(model, rows), whole=True)
        out = np.full((len(chosen), self.n_classes), -np.inf)
        out[:, [self.index[label] for label in model.classes_.tolist()]] = model.predict_log_proba(rows)
        return ClassPosterior(out, np.full(len(chosen), np.nan))


def _as_counted(model: AnyClassifier) -> Any:
    """Return the model without its calibration; held-out scores are calibrated later."""
    return model.set_params(calibration=None) if hasattr(model, "calibration") else model


class UnlabeledRows(HoldOutRows):
    """Rows of a mixture for cross-validation: their components are unknown, so only the density is evaluated."""

    def __init__(self, model: Mixture, data: Rows, sample_weight: SampleWeights) -> None:
        self.full_model = clone(model).fit(data, sample_weight=sample_weight)
        self.n_classes = 0
        self.table, weight = with_weight(open_features(data), sample_weight)
        self.weight = check_weight(weight, self.table.n_rows)
        self.codes = np.zeros(self.table.n_rows, dtype=np.intp)

    def count(self, chosen: np.ndarray) -> Tally:
        """Raise an error: the counts of a mixture are expected counts."""
        raise NotImplementedError

    def fit(self, model: Mixture, chosen: np.ndarray) -> Mixture:
        """Return the mixture fitted to some rows."""
        return model.fit(self.table.rows(chosen), sample_weight=self.some_weight(chosen))

    def predict_rows(self, model: Mixture, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(row) of some rows."""
        return ClassPosterior(np.empty((len(chosen), 0)), model.score_samples(self.table.rows(chosen)))
