"""The size of the joint table of all columns, which naive Bayes avoids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tallybayes._utils.fitted import check_is_fitted

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel


def n_parameters_joint(model: ClassConditionalModel) -> int | None:
    """Return the number of parameters of the full joint table; None unless every column is categorical or binary."""
    check_is_fitted(model, "tally_")
    sizes = [len(model._class_domain.levels)]
    for factor, statistics in model._estimated.pairs:
        if factor.family.cell_type == "codes":
            sizes += [len(model.tally_.domains[str(name)].levels) for name in factor.columns]
        elif factor.family.is_binary:
            sizes += [2] * int(statistics.n_columns)
        else:
            return None
    return math.prod(sizes) - 1
