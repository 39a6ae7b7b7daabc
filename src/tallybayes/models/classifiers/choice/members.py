"""Members: the models of a chosen mixture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes.models.classifiers.choice.choices import MemberChoice
from tallybayes.models.classifiers.choice.mixing import bounded
from tallybayes.sources.table import Table


class Member(NamedTuple):
    """One model of the mixture: what was chosen, and the model that has counted the rows."""

    choice: MemberChoice
    model: Any

    def log_proba(self, table: Table) -> np.ndarray:
        """log p(class | row)."""
        found = bounded(self.model.predict_log_proba(self.choice.view.apply(table)))
        return bounded(self.choice.mending.apply(found, self.model._class_domain.levels))
