"""Members of the automatic classifier's ensemble, and their stacked predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.models.ensemble.ensemble_spec import MemberSpec
from tallybayes.models.ensemble.stacking import bounded, stack_log_proba
from tallybayes.models.inputs.input_format import open_columns
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.tally.factor import Name
from tallybayes.typing import Rows

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


def read_features(model: AutoClassifier, X: Rows) -> Table:
    """Return the features of rows, with invalid cells missing."""
    return mask_invalid_cells(open_columns(model, X), model._column_specs(), None)


def log_proba(model: AutoClassifier, table: Table, without: Name | None = None) -> np.ndarray:
    """Return log p(class | row) of the ensemble, with one column marginalized out if `without` names it."""
    weights = np.array([member.spec.weight for member in model.members_])
    stacked = stack_log_proba([member.log_proba(table, without) for member in model.members_], weights / weights.sum())
    return bounded(model.spec_.calibration.apply(bounded(stacked), model._class_domain.levels))
