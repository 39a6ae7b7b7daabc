"""The four estimates: one table, each a function of (family, prior, statistics)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import Prior

if TYPE_CHECKING:
    from tallybayes.families.family import Family


class Estimate(NamedTuple):
    """How an estimate derives parameters from a family's statistics."""

    point: Callable[[Family, Any, Any], Any]  # parameters from (family, prior or None, statistics)
    has_prior: bool  # whether it uses a prior
    integrates: bool = False  # whether rows are scored by the posterior predictive
    takes_mode: bool = False  # whether the parameters are the posterior mode
    df_per_mean: int = 0  # degrees of freedom that each estimated mean removes from a variance


def _mode(family: Family, prior: ParameterDistribution, statistics: Statistics) -> Any:
    """Return the posterior mode."""
    return family.parameters_from(prior.update(statistics), "mode")


def _mean(family: Family, prior: ParameterDistribution, statistics: Statistics) -> Any:
    """Return the posterior mean."""
    return family.parameters_from(prior.update(statistics), "mean")


ESTIMATES: dict[str, Estimate] = {
    "mle": Estimate(lambda family, _, statistics: family.maximum_likelihood(statistics), has_prior=False),
    "unbiased": Estimate(lambda family, _, statistics: family.unbiased(statistics), has_prior=False, df_per_mean=1),
    "map": Estimate(_mode, has_prior=True, takes_mode=True),
    "bayes": Estimate(_mean, has_prior=True, integrates=True),
}
ESTIMATE_WORDS = StringOptions(tuple(ESTIMATES))


def read_estimate(name: str) -> Estimate:
    """Return the estimate with this name, or raise EstimateError."""
    if not isinstance(name, str) or name not in ESTIMATES:
        ESTIMATE_WORDS.check("estimate", name)
    return ESTIMATES[name]


def estimate_parameters(family: Family, prior: Prior, statistics: Statistics, estimate: str) -> Any:
    """Return the parameters of `family` estimated from its statistics.

    Parameters
    ----------
    family : Family
    prior : ParameterDistribution, prior rule or None
        None for the family's default. Ignored by ``"mle"`` and ``"unbiased"``.
    statistics : Statistics
    estimate : {"mle", "unbiased", "map", "bayes"}
        ``"bayes"`` gives the posterior mean of the parameters; for prediction use the posterior itself
        (`Family.log_predictive`), which integrates over them.

    Returns
    -------
    The family's parameters
    """
    chosen = read_estimate(estimate)
    distribution = family.resolve_prior(prior, statistics, estimate) if chosen.has_prior else None
    return chosen.point(family, distribution, statistics)
