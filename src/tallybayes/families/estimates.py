"""The estimates: one table, each a function of (family, prior, statistics)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallybayes.beliefs.belief import Belief
from tallybayes.errors import EstimateError
from tallybayes.families.family import Family
from tallybayes.statistics.statistics import Statistics

ESTIMATES: dict[str, Callable[[Family, Belief | None, Any], Any]] = {
    "mle": lambda family, _, statistics: family.maximum_likelihood(statistics),
    "unbiased": lambda family, _, statistics: family.unbiased(statistics),
    "map": lambda family, prior, statistics: family.from_belief(prior.update(statistics), "mode"),  # type: ignore[union-attr]
    "bayes": lambda family, prior, statistics: family.from_belief(prior.update(statistics), "mean"),  # type: ignore[union-attr]
}


def check_estimate(estimate: str) -> str:
    """The name of an estimate, if it is one."""
    if estimate not in ESTIMATES:
        raise EstimateError.unknown(estimate, ESTIMATES)
    return estimate


def estimate_parameters(family: Family, prior: Any, statistics: Statistics, estimate: str) -> Any:
    """Parameters of `family` from its statistics.

    Parameters
    ----------
    family : Family
    prior : Belief, rule or None
        None is the family's default. Not used by ``"mle"`` and ``"unbiased"``.
    statistics : Statistics
    estimate : {"mle", "unbiased", "map", "bayes"}
        ``"bayes"`` gives the posterior mean of the parameters; for prediction use the posterior itself
        (`Family.log_predictive`), which integrates them out.

    Returns
    -------
    The family's parameters
    """
    check_estimate(estimate)
    belief = family.prior(prior, statistics, estimate) if estimate in ("map", "bayes") else None
    return ESTIMATES[estimate](family, belief, statistics)
