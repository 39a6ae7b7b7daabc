"""Members of the automatic classifier's ensemble, and their pooled predictions."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_prior import log_class_prior
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.ensemble.ensemble_spec import MemberSpec
from tallybayes.models.ensemble.stacking import bounded, pool_log_proba
from tallybayes.models.ensemble.text_columns import read_text_columns
from tallybayes.models.inputs.input_format import open_columns
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.statistics.counts import Counts
from tallybayes.tally.factor import Name
from tallybayes.typing import ClassPrior, Rows

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier


class Member(NamedTuple):
    """One model of the ensemble: its spec and the fitted model."""

    spec: MemberSpec
    model: Any

    def log_proba(self, table: Table, without: Name | None = None) -> np.ndarray:
        """Return log p(class | row), with one column marginalized out if `without` names it."""
        rows = self.spec.view.apply(table)
        rows = rows if without is None else self.spec.view.hide(rows, without)
        log_posterior = bounded(self.model.predict_log_proba(rows))
        return bounded(self.spec.calibration.apply(log_posterior, self.model._class_domain.levels))


def generative_members(model: AutoClassifier) -> list[Member]:
    """Return the members with a tally: all but trees."""
    return [member for member in model.members_ if hasattr(member.model, "tally_")]


def counts_of(model: Any) -> Any:
    """Return the tally of a member, or the counts of its trees."""
    return model.counts_ if hasattr(model, "counts_") else model.tally_


def declared(model: Any, labels: list[Any]) -> Any:
    """Declare classes in a member."""
    if hasattr(model, "counts_"):
        return model._set(model.structure_, model.counts_.declare(labels))
    return model._update_tally(model.tally_.declare(model._target, labels))


def with_target(model: Any, target: Name) -> Any:
    """Return a copy of a member with another name of the target."""
    if not hasattr(model, "counts_"):
        return classifier_fit.with_target(model, target)
    other = model._with_counts(model.counts_.renamed(str(target)))
    other.input_format_ = other.input_format_._replace(target=target)
    return other


def with_dropped_class(model: Any, label: Hashable) -> Any:
    """Return a copy of a member without a class and its rows."""
    other = copy.copy(model)
    return other.drop_class(label) if hasattr(model, "counts_") else classifier_fit.drop_class(other, label)


def log_prior(model: Any, class_prior: ClassPrior) -> np.ndarray:
    """Return log p(class) of a member under a class prior; None is that of the training rows."""
    if not hasattr(model, "counts_"):
        found: np.ndarray = estimates_of(model).log_prior(class_prior)
        return found
    rows = class_count(model)
    return log_class_prior(class_prior, model._class_domain.levels, Counts(rows, (len(rows),)), "bayes")


def class_count(model: Any) -> np.ndarray:
    """Return the total weight of the training rows of each class of a member."""
    return np.asarray(model.class_count_ if hasattr(model, "counts_") else estimates_of(model).class_counts.table)


def read_features(model: AutoClassifier, X: Rows) -> Table:
    """Return the features of rows, with invalid cells missing."""
    texts = {name: reader.family for name, reader in model._text_readers.items()}
    return mask_invalid_cells(read_text_columns(open_columns(model, X), texts), model._column_specs(), None)


def log_proba(model: AutoClassifier, table: Table, without: Name | None = None) -> np.ndarray:
    """Return log p(class | row) of the ensemble, with one column marginalized out if `without` names it."""
    log_probas = (member.log_proba(table, without) for member in model.members_)
    return pool_log_proba(log_probas, (member.spec.weight for member in model.members_))
