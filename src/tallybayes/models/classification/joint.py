"""The size of the joint table of all columns, which naive Bayes avoids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier


def n_parameters_joint(estimates: EstimatedClassifier) -> int | None:
    """Return the number of parameters of the full joint table; None unless every column is categorical or binary."""
    sizes = [len(estimates.classes.levels)]
    for factor, statistics in estimates.factors.pairs:
        if factor.family.cell_type == "codes":
            sizes += [len(estimates.tally.domains[str(name)].levels) for name in factor.columns]
        elif factor.family.is_binary:
            sizes += [2] * int(statistics.n_columns)
        else:
            return None
    return math.prod(sizes) - 1
