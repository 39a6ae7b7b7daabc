"""Members: the models of a chosen mixture, and what they predict together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.models.ensemble.ensemble_spec import MemberSpec
from tallybayes.models.ensemble.stacking import bounded, stack_log_proba
from tallybayes.tally.factor import Name


class Member(NamedTuple):
    """One model of the mixture: what was chosen, and the model that has counted the rows."""

    spec: MemberSpec
    model: Any

    def log_proba(self, table: Table, without: Name | None = None) -> np.ndarray:
        """log p(class | row), with a column marginalized out if one is named."""
        rows = self.spec.view.apply(table)
        rows = rows if without is None else self.spec.view.hide(rows, without)
        found = bounded(self.model.predict_log_proba(rows))
        return bounded(self.spec.mending.apply(found, self.model._class_domain.levels))


def log_proba(model: Any, table: Table, without: Name | None = None) -> np.ndarray:
    """log p(class | row) of a chosen mixture, with a column marginalized out if one is named."""
    weights = np.array([member.spec.weight for member in model.members_])
    found = stack_log_proba([member.log_proba(table, without) for member in model.members_], weights / weights.sum())
    return bounded(model.spec_.mending.apply(bounded(found), model._class_domain.levels))
