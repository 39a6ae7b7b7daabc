"""Steps that depend on those before them: a line in the last values, with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtr

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, dense
from tallybayes.families.continuous import least_variance
from tallybayes.families.family import broadcast_over_groups
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.statistics.moments import Moments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Autoregressive(LinearGaussian):
    """A column of a sequence given its last values: yₜ ~ N(w₁ yₜ₋₁ + … + b, σ²), with its own line in every state.

    For `HiddenMarkovModel`, which lays the values before a step beside it. What is kept, and what estimates and default
    priors are, is as of `LinearGaussian`. The first steps of a sequence have no values before them: they are what the
    others are given, and say nothing themselves; nor does a step that is missing, or that comes soon after one.

    Parameters
    ----------
    order : int, default 1
        How many steps back.

    Examples
    --------
    >>> import tallybayes as tb
    >>> steps = [0.0, 2.1, 2.9, 3.6, 3.7, 3.9, 3.9]                 # each is about half of the one before, and 2
    >>> model = tb.HiddenMarkovModel(columns=tb.Autoregressive(), estimate="mle").fit([steps], [["calm"] * 7])
    >>> model.parameter_table(0)
    p(0 | state)
      state   intercept  weight of 1 before  variance        std
      'calm'  2.062      0.4771              0.01071   0.1035
    """

    order: int = 1

    accepts_missing: ClassVar[bool] = True
    requires_complete_rows: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number"

    def __post_init__(self) -> None:
        if not isinstance(self.order, int) or isinstance(self.order, bool) or self.order < 1:
            raise DataError.wrong_type("order", repr(self.order), "a whole number of at least 1")

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
        columns = dense(block, "Autoregressive")
        rows = columns if isinstance(columns, np.ndarray) else np.stack([np.asarray(c, float) for c in columns], axis=1)
        if len(rows) and rows.shape[1] != self.order + 1:
            raise DataError(
                f"Autoregressive(order={self.order}) has {rows.shape[1]} columns here; expected {self.order + 1}: the "
                "steps before, the last one first, and a step.\n"
                "    It is for tb.HiddenMarkovModel, which lays them side by side."
            )
        whole = ~np.isnan(rows.astype(float, copy=False)).any(axis=1)
        if not whole.all():
            rows, group, weight = rows[whole], *(None if part is None else part[whole] for part in (group, weight))
        return super().collect(rows, group, n_groups, weight, like=like)

    def _errors(self, x: np.ndarray, n_given: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs and targets, with axes for groups, and which rows are whole."""
        rows = broadcast_over_groups(np.asarray(x, dtype=float), n_given)
        known = ~np.isnan(rows).any(axis=-1)
        return rows[..., :-1], np.where(known, rows[..., -1], 0.0), known

    def step_distribution(self, parameters: LinearParameters, before: np.ndarray) -> Normal:
        """The distribution of a step after others, the last one first: (*given, 1)."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        mean = (slope * np.asarray(before, dtype=float)).sum(axis=-1) + intercept
        return Normal(mean[..., None], np.broadcast_to(variance, mean.shape)[..., None])

    def cdf(self, parameters: LinearParameters, x: np.ndarray) -> np.ndarray:
        """P(step ≤ the one that is there | those before it): (n, *given, 1); NaN where one of them is missing."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        rows = broadcast_over_groups(np.asarray(x, dtype=float), slope.ndim - 1)
        gap = rows[..., -1] - (rows[..., :-1] * slope).sum(axis=-1) - intercept
        return np.asarray(ndtr(gap / np.sqrt(variance))[..., None])

    def sample_steps(
        self, parameters: LinearParameters, path: np.ndarray, before: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Steps drawn one after the other, each in the group that a path says, after others, the last one first."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        noise = rng.standard_normal(len(path)) * np.sqrt(variance[path])
        out, before = np.empty(len(path)), np.array(before, dtype=float)
        for t, k in enumerate(path):
            out[t] = slope[k] @ before + intercept[k] + noise[t]
            before = np.concatenate([out[t : t + 1], before[:-1]])
        return out

    def first_degenerate_group(
        self, parameters: LinearParameters, statistics: Moments
    ) -> tuple[int | None, int | None] | None:
        """The first group whose steps all lie on its line."""
        lost = np.flatnonzero(np.asarray(parameters.variance) <= least_variance(statistics)[-1])
        return (int(lost[0]), self.order) if len(lost) else None

    def distance_features(self, cells: Any) -> tuple[Any, float | None]:
        """By where a step is, and by how far it went: what tells states of other levels, slopes and noise apart."""
        rows = np.asarray(cells, dtype=float)
        return np.stack([rows[:, -1], np.abs(rows[:, -1] - rows[:, 0])], axis=-1), None

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """The intercept, a weight for every step back, and the noise."""
        line = self.parameters_from(parameters, "mean") if isinstance(parameters, ParameterDistribution) else parameters
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in line)
        found = {"intercept": intercept} | {f"weight of {k + 1} before": slope[..., k] for k in range(self.order)}
        found |= {"variance": variance, "std": np.sqrt(variance)}
        return {name: part[..., None] for name, part in found.items()}
