"""The evidence of a classifier: log p(rows, labels) with every parameter integrated out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.errors import EstimateError
from tallybayes.models.classifiers.class_prior import log_class_prior
from tallybayes.models.fitted.fitted import Evidence
from tallybayes.statistics.counts import Counts


def evidence_of(model: Any, without: Collection[Any] = (), *, soft: bool = False) -> Evidence:
    """The log evidence of a fitted generative classifier.

    Parameters
    ----------
    model : GenerativeClassifier
    without : columns
        Columns to leave out, besides those without any spread.
    soft : bool, default False
        Whether expected statistics may pass for counted ones.

    Returns
    -------
    Evidence
    """
    if model.tally_.soft and not soft:
        raise EstimateError(
            "this model has no evidence: EM filled in what was missing, so its counts are expectations, not rows.\n"
            "    Fit it on rows with labels, and where columns have a full covariance without missing cells; or use\n"
            "    tb.Mixture, whose evidence_bound_ is below its evidence."
        )
    if getattr(model, "shrinkage", None) not in (None, 0):
        raise EstimateError(
            f"a model with shrinkage={model.shrinkage!r} has no evidence: a shrunk covariance is no posterior.\n"
            "    Use reestimate(shrinkage=None), or state the same belief as a prior, a tb.NormalInverseWishart."
        )
    counts: Any = model.tally_[model._target]
    total = _class_evidence(model.class_prior, model._class_domain.levels, counts)
    found = model._known.evidence(without)
    return found._replace(log_evidence=total + found.log_evidence)


def _class_evidence(class_prior: Any, levels: tuple[Any, ...], counts: Counts) -> float:
    """log p(labels): under a Dirichlet, Dirichlet(1) unless another is given, or at probabilities that are given."""
    if class_prior is None or isinstance(class_prior, Dirichlet):
        belief = Dirichlet(1.0) if class_prior is None else class_prior
        return float(np.sum(belief.log_evidence(counts))) if levels else 0.0
    log_prior = log_class_prior(class_prior, levels, counts, "bayes")
    seen = counts.table > 0
    return float((counts.table[seen] * log_prior[seen]).sum())
