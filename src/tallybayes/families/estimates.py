"""The estimates: one table, each a function of (family, prior, statistics). Nothing else compares their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes._utils.string_options import StringOptions
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.statistics.sufficient_statistics import Statistics

if TYPE_CHECKING:
    from tallybayes.families.family import Family


class Estimate(NamedTuple):
    """What one estimate makes of a family's statistics."""

    point: Callable[[Family, Any, Any], Any]  # parameters from (family, belief or None, statistics)
    has_prior: bool  # whether it starts from a belief
    integrates: bool = False  # whether rows are scored by the posterior predictive, not by the point
    takes_mode: bool = False  # whether the point is where the posterior is highest, not its mean
    df_per_mean: int = 0  # rows that every mean estimated takes from those a variance is the mean of


def _mode(family: Family, belief: ParameterDistribution, statistics: Any) -> Any:
    return family.parameters_from(belief.update(statistics), "mode")


def _mean(family: Family, belief: ParameterDistribution, statistics: Any) -> Any:
    return family.parameters_from(belief.update(statistics), "mean")


ESTIMATES: dict[str, Estimate] = {
    "mle": Estimate(lambda family, _, statistics: family.maximum_likelihood(statistics), has_prior=False),
    "unbiased": Estimate(lambda family, _, statistics: family.unbiased(statistics), has_prior=False, df_per_mean=1),
    "map": Estimate(_mode, has_prior=True, takes_mode=True),
    "bayes": Estimate(_mean, has_prior=True, integrates=True),
}
ESTIMATE_WORDS = StringOptions(tuple(ESTIMATES))


def read_estimate(name: str) -> Estimate:
    """The estimate of a name, if it is one."""
    if not isinstance(name, str) or name not in ESTIMATES:
        ESTIMATE_WORDS.check("estimate", name)
    return ESTIMATES[name]


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
    found = read_estimate(estimate)
    belief = family.resolve_prior(prior, statistics, estimate) if found.has_prior else None
    return found.point(family, belief, statistics)
