"""The evidence of a classifier: log p(rows, labels) with every parameter integrated out."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from tallybayes.beliefs.belief import Belief
from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.beliefs.normal_inverse_gamma import NormalInverseGamma
from tallybayes.beliefs.normal_inverse_wishart import NormalInverseWishart
from tallybayes.errors import EstimateError
from tallybayes.models.class_prior import log_class_prior
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor


class Evidence(NamedTuple):
    """A model's log evidence in nats, and the columns that have no part in it."""

    log_evidence: float
    left_out: list[Any]


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
    left_out: list[Any] = []
    for (factor, statistics), (belief, constant) in zip(model._feature_factors(), model._beliefs(), strict=True):
        width = int(statistics.n_columns)
        names = [factor.column(place, width) for place in range(width)]
        left_out += [names[place] for place in constant]
        dropped = {*constant.tolist(), *(place for place, name in enumerate(names) if name in without)}
        keep = np.array([place for place in range(width) if place not in dropped], dtype=np.intp)
        total += _factor_evidence(factor, statistics, belief, keep)
    return Evidence(total, left_out)


def _class_evidence(class_prior: Any, levels: tuple[Any, ...], counts: Counts) -> float:
    """log p(labels): under a Dirichlet, Dirichlet(1) unless another is given, or at probabilities that are given."""
    if class_prior is None or isinstance(class_prior, Dirichlet):
        belief = Dirichlet(1.0) if class_prior is None else class_prior
        return float(np.sum(belief.log_evidence(counts))) if levels else 0.0
    log_prior = log_class_prior(class_prior, levels, counts, "bayes")
    seen = counts.table > 0
    return float((counts.table[seen] * log_prior[seen]).sum())


def _factor_evidence(factor: Factor, statistics: Any, belief: Belief, keep: np.ndarray) -> float:
    """The evidence of some of a factor's columns."""
    family, width = factor.family, int(statistics.n_columns)
    if len(keep) == 0:
        return 0.0
    if len(keep) == width:
        return float(np.sum(family.log_evidence(belief, statistics)))
    if family.columnwise and not getattr(belief, "any_family", False):
        return float(np.asarray(family.log_evidence(belief, statistics))[..., keep].sum())
    if isinstance(statistics, Moments) and isinstance(belief, NormalInverseWishart | NormalInverseGamma):
        part = _marginal_belief(belief, keep, width)
        return float(np.sum(family.log_evidence(part, statistics.columns(keep))))
    raise EstimateError(
        f"the evidence of the columns {factor.columns} of {family!r} cannot be told column by column, but some of them "
        "are left out.\n    Fit the models without those columns."
    )


def _marginal_belief(belief: Any, keep: np.ndarray, width: int) -> Any:
    """The belief about some of the columns."""

    def some(part: np.ndarray) -> np.ndarray:
        return part if part.ndim == 0 or part.shape[-1] == 1 else part[..., keep]

    if isinstance(belief, NormalInverseGamma):
        return belief.replace(
            **{name: some(getattr(belief, name)) for name in ("location", "strength", "shape", "scale")}
        )
    # The block of an inverse-Wishart matrix is inverse-Wishart with as many fewer degrees of freedom as columns went.
    return belief.replace(
        location=some(belief.location),
        freedom=belief.freedom - (width - len(keep)),
        scale=belief.scale[..., keep[:, None], keep],
    )
