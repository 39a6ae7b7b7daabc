"""The evidence of a classifier: log p(rows, labels) with every parameter integrated out."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.errors import EstimateError
from tallybayes.models.classifiers.class_prior import log_class_prior
from tallybayes.models.fitted.fitted import Evidence
from tallybayes.statistics.counts import Counts


def log_evidence(model: Any) -> float:
    """log p(X, y) of all rows counted, in nats, with every parameter integrated out: the log marginal likelihood.

    It is the sum, row after row, of the log probability of each under the model learned from those before it. The
    parameters are integrated under ``prior_``, whichever ``estimate`` predicts (``"map"`` has default priors of its
    own), the class probabilities under ``class_prior`` where it is a `Dirichlet`, else under ``Dirichlet(1)``;
    probabilities that are given are taken as they are. The levels of a column are taken as known, and so is what
    default priors read from the data. Columns that are the same in every row (``constant_columns_``) have no finite
    density and are left out. `compare` turns evidence into Bayes factors.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> model = tb.NaiveBayes(tb.Bernoulli()).fit([[1], [1], [0]], ["a", "a", "b"])
    >>> labels, cells = 2 / 4 / 3 / 2, [1 / 3, 1 / 2]             # under Dirichlet(1) and Beta(1, 1)
    >>> bool(np.isclose(model.log_evidence(), np.log(labels * cells[0] * cells[1])))
    True
    """
    check_is_fitted(model, "tally_")
    return evidence_of(model).log_evidence


def n_parameters(model: Any) -> int:
    """The number of free parameters, those of the class prior included."""
    check_is_fitted(model, "tally_")
    return max(len(model._class_domain.levels) - 1, 0) + int(model._known.n_parameters)


def n_parameters_joint(model: Any) -> int | None:
    """What the full joint table of the same columns would take; None where a column is not of labels or yes/no."""
    check_is_fitted(model, "tally_")
    sizes = [len(model._class_domain.levels)]
    for factor, statistics in model._known.pairs:
        if factor.family.reads == "codes":
            sizes += [len(model.tally_.domains[str(name)].levels) for name in factor.columns]
        elif factor.family.is_yes_no:
            sizes += [2] * int(statistics.n_columns)
        else:
            return None
    return math.prod(sizes) - 1


def evidence_of(model: Any, without: Collection[Any] = (), *, soft: bool = False) -> Evidence:
    """The log evidence of a fitted generative classifier.

    Parameters
    ----------
    model : a fitted classifier or mixture
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
