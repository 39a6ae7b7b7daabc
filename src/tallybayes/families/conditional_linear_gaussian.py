"""Conditional linear Gaussian: a network node that is linear in its continuous parents, given its discrete ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families.continuous import typical_variance
from tallybayes.families.estimates import read_estimate
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.statistics.moments import Moments
from tallybayes.typing import Prior

if TYPE_CHECKING:
    pass

_SHAPE = 1.5  # of the inverse gamma prior of the noise, as in the default prior of `Gaussian`


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalLinearGaussian(LinearGaussian):
    """A continuous node given continuous parents: y ~ N(w · x + b, σ²), by discrete parent configuration.

    `BayesianNetwork` uses it for `Gaussian` and `LinearGaussian` nodes with continuous parents. The statistics are
    those of `LinearGaussian`, but rows with a missing node or parent are skipped. The default prior expects the noise
    that is typical within groups, so that groups of few rows are regularized. ``prior={node: λ}`` is a ridge penalty.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"height": [1.6, 1.7, 1.8, 1.9], "weight": [55.0, 65.0, 71.0, 82.0]}
    >>> model = tb.BayesianNetwork([("height", "weight")], estimate="mle").fit(rows)
    >>> model.cpt("weight")
    p(weight | height)
      intercept  weight of height  variance        std
      -84        87                1.075     1.037
    """

    requires_complete_rows: ClassVar[bool] = True  # for sums made by a database; incomplete rows are read and skipped
    accepts_missing: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = False
    number_is_weight_decay: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (or missing)"

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """Return the prior as for `LinearGaussian`; ``"empirical"`` is the default prior."""
        return super().resolve_prior(
            None if isinstance(prior, str) and prior == "empirical" else prior, statistics, estimate
        )

    def default_prior(self, statistics: Moments, estimate: str) -> LinearNormalInverseGamma:
        """Return the ridge prior of maximum marginal likelihood, with the noise typical within groups."""
        prior = super().default_prior(statistics, estimate)
        if read_estimate(estimate).takes_mode:  # so that the mode of the noise variance is the typical variance
            prior = prior.replace(scale=prior.scale / _SHAPE * (_SHAPE + 1 + statistics.n_columns / 2))
        return prior

    def _noise_prior(self, statistics: Moments) -> tuple[float, float]:
        """Return shape and scale of the noise prior: three rows, with the typical residual variance."""
        p, weight, pooled = statistics.n_columns - 1, statistics.weight[..., 0], statistics.pool_groups()
        rows = float(weight.sum())
        total = float(pooled.scatter[p, p]) / rows if rows > 0 else 1.0
        residual = np.nan_to_num(np.asarray(self.maximum_likelihood(statistics).variance)) * weight
        freedom = np.maximum(weight - p - 1, 0.0).sum()
        typical = float(typical_variance(np.asarray(residual.sum()), np.asarray(freedom), np.asarray(total)))
        least = float(pooled.mean[p]) ** 2 * 1e-12
        return _SHAPE, _SHAPE * (max(typical, least) or 1.0)


def weight_name(parent: object) -> str:
    """Return the name of a parent's coefficient."""
    return f"weight of {parent}"
