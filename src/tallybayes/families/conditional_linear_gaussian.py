"""A node of a network that is linear in its measured parents: a line for every combination of its other parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Block, dense
from tallybayes.families.continuous import least_variance, typical_variance
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, broadcast_over_groups
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.statistics.moments import Moments
from tallybayes.typing import Prior

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_SHAPE = 1.5  # of the noise's inverse gamma, as of a Gaussian column's default


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalLinearGaussian(LinearGaussian):
    """A measured node given measured parents: y ~ N(w · x + b, σ²), with its own line in every group of labels.

    For `BayesianNetwork`, which takes `Gaussian` and `LinearGaussian` nodes with measured parents as this. What is kept
    is as of `LinearGaussian`, but a row that lacks the node or a parent is left out rather than refused. The default
    prior expects noise as `Gaussian` does, as wide as is usual within groups, so that a group of few rows has its line,
    too. ``prior={node: λ}`` is weight decay.

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

    requires_complete_rows: ClassVar[bool] = (
        True  # of a database's sums; rows that lack a cell are then read, and left out
    )
    accepts_missing: ClassVar[bool] = True
    number_is_weight_decay: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (or missing)"
    memory_hint: ClassVar[str] = "Give the node fewer parents, or merge levels of those that are labels."

    @property
    def family_given_continuous_parents(self) -> Family | None:
        """Itself."""
        return self

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Sum weights, values and products about an anchor, of the rows that are whole."""
        columns = dense(block, "LinearInParents")
        parts = columns.T if isinstance(columns, np.ndarray) else columns
        gaps = [np.isnan(part) for part in map(np.asarray, parts) if part.dtype.kind == "f"]
        lacking = np.logical_or.reduce(gaps) if gaps else np.zeros(0, dtype=bool)
        if lacking.any():
            if weight is not None and weight.ndim == 2:
                weight = np.where(lacking[:, None], 0.0, weight)
            else:
                known = np.zeros(len(lacking), dtype=np.int64) if group is None else np.asarray(group).astype(np.int64)
                group = np.where(lacking, -1, known)
        return super().collect(columns, group, n_groups, weight, like=like)

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """As of every line; the default is found from the counts, and so what ``"empirical"`` means."""
        return super().resolve_prior(
            None if isinstance(prior, str) and prior == "empirical" else prior, statistics, estimate
        )

    def default_prior(self, statistics: Moments, estimate: str) -> LinearNormalInverseGamma:
        """Weight decay by evidence, and noise that is expected as wide as is usual within groups."""
        found = super().default_prior(statistics, estimate)
        if read_estimate(estimate).takes_mode:  # so that the mode of the noise is what is usual
            found = found.replace(scale=found.scale / _SHAPE * (_SHAPE + 1 + statistics.n_columns / 2))
        return found

    def _noise(self, statistics: Moments) -> tuple[float, float]:
        """Shape and scale of the noise: worth three rows, and as wide as is usual about the lines of all groups."""
        p, weight, pooled = statistics.n_columns - 1, statistics.weight[..., 0], statistics.pool_groups()
        rows = float(weight.sum())
        total = float(pooled.scatter[p, p]) / rows if rows > 0 else 1.0
        left = np.nan_to_num(np.asarray(self.maximum_likelihood(statistics).variance)) * weight
        freedom = np.maximum(weight - p - 1, 0.0).sum()
        usual = float(typical_variance(np.asarray(left.sum()), np.asarray(freedom), np.asarray(total)))
        least = float(pooled.mean[p]) ** 2 * 1e-12
        return _SHAPE, _SHAPE * (max(usual, least) or 1.0)

    def _errors(self, x: np.ndarray, n_given: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs and targets, with axes for groups, and which rows are whole."""
        rows = broadcast_over_groups(np.asarray(x, dtype=float), n_given)
        known = ~np.isnan(rows).any(axis=-1)
        return rows[..., :-1], np.where(known, rows[..., -1], 0.0), known

    def mask_degenerate_groups(self, parameters: LinearParameters) -> LinearParameters:
        """Groups whose rows all lie on their line."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        flat = ~(variance > 0)
        nothing = np.where(flat, np.nan, 0.0)
        return LinearParameters(slope + nothing[..., None], intercept + nothing, variance + nothing)

    def first_degenerate_group(
        self, parameters: LinearParameters, statistics: Moments
    ) -> tuple[int | None, int | None] | None:
        """The first group whose rows all lie on its line."""
        lost = np.flatnonzero(np.asarray(parameters.variance) <= least_variance(statistics)[-1])
        return (int(lost[0]), statistics.n_columns - 1) if len(lost) else None

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """The intercept, a weight for every parent, and the noise."""
        line = self.parameters_from(parameters, "mean") if isinstance(parameters, ParameterDistribution) else parameters
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in line)
        found = {"intercept": intercept}
        found |= {weight_name(k): slope[..., k] for k in range(slope.shape[-1])}
        found |= {"variance": variance, "std": np.sqrt(variance)}
        return {name: part[..., None] for name, part in found.items()}


def weight_name(parent: Any) -> str:
    """What the weight of a parent in a line is called, by its place or name."""
    return f"weight of {parent}"
