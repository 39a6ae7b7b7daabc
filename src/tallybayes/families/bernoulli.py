"""Bernoulli: binary columns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.block_sums import sum_block
from tallybayes.families._shared.blocks import Block
from tallybayes.families.family import Family, broadcast_over_groups, check_parameters_valid, ratio, zero_where_missing
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Family):
    """A binary column: p(x) = θ^x (1 − θ)^(1 − x) for x in {0, 1}.

    Parameters
    ----------
    success : bool, int or str, optional
        For `tb.fit_distribution` with a categorical column: the level that counts as 1; all others count as 0.
        In a model, use `Categorical`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([1, 0, 1, 1], tb.Bernoulli()).estimate("mle")
    0.75
    >>> tb.fit_distribution(["H", "T", "H", "H"], tb.Bernoulli(success="H")).estimate("mle")
    0.75
    """

    success: Hashable = field(default=None, kw_only=True)  # type: ignore[misc]

    conjugate_prior: ClassVar[type[ParameterDistribution]] = Beta
    accepts_sparse: ClassVar[bool] = True
    nonnegative_cells: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    is_binary: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "0 or 1 (or missing)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics, which depend on the level that counts as 1."""
        return (type(self).__name__,) if self.success is None else (type(self).__name__, repr(self.success))

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Totals:
        """Return the number of trials and of successes."""
        return Totals(*sum_block(block, "binary", group, n_groups, weight)).with_failures()

    def maximum_likelihood(self, statistics: Totals) -> np.ndarray:
        """Return the proportion of successes."""
        successes, failures = statistics.total, statistics.failures
        proportion = ratio(successes, successes + failures)
        return np.where(
            (proportion == 1) & (failures > 0), np.nextafter(1.0, 0.0), proportion
        )  # below 1 if there was a failure

    def as_parameters(self, parameters: Any, statistics: Totals) -> np.ndarray:
        """Return probabilities with an axis for columns; raise EstimateError outside [0, 1]."""
        p = super().as_parameters(parameters, statistics)
        return check_parameters_valid(self, parameters, p, (p >= 0) & (p <= 1), "probabilities from 0 to 1")

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Return Σ log p(x | θ)."""
        failures = xlog1py(statistics.failures, -parameters)
        return xlogy(statistics.total, parameters) + failures + statistics.log_base_measure

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | θ) of every cell."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(xlogy(x, parameters) + xlog1py(1 - x, -parameters), x)

    def log_predictive(self, posterior: Beta, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data), with θ at its posterior mean."""
        a, b = np.broadcast_arrays(posterior.alpha, posterior.beta)
        x = broadcast_over_groups(x, a.ndim - 1)
        # b / (a + b) instead of 1 − a / (a + b), which would cancel if b is far smaller than a
        return zero_where_missing(xlogy(x, a / (a + b)) + xlogy(1 - x, b / (a + b)), x)

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random zeros and ones."""
        return rng.binomial(1, parameters, (n, *parameters.shape))


def codes_of(cells: np.ndarray) -> np.ndarray:
    """Return integer cells as codes, −1 where missing."""
    return (np.where(np.isnan(cells), -1, cells) if cells.dtype.kind == "f" else cells).astype(np.intp)
