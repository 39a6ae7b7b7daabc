"""Autoregressive columns: time steps that are linear in the previous values, with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, n_columns, n_rows
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.statistics.moments import Moments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Autoregressive(LinearGaussian):
    """A column of a sequence given its lags: yₜ ~ N(w₁ yₜ₋₁ + … + b, σ²), with its own coefficients in every state.

    `HiddenMarkovModel` appends the lagged columns. Statistics, estimates and default priors are those of
    `LinearGaussian`. The first `order` steps of a sequence only serve as lags, as do steps with a missing value among
    their lags.

    Parameters
    ----------
    order : int, default 1
        Number of lags.

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
    sums_cells: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number"

    def __post_init__(self) -> None:
        check_count("order", self.order)

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Return weights, sums and sums of products about an anchor, of the complete rows."""
        width = n_columns(block)
        if n_rows(block) and width != self.order + 1:
            raise DataError(
                f"Autoregressive(order={self.order}) has {width} columns here; expected {self.order + 1}: the lags, "
                "lag 1 first, and the step.\n    Use it in tb.HiddenMarkovModel, which appends the lags."
            )
        return super().collect(block, group, n_groups, weight, like=like)

    def step_distribution(self, parameters: LinearParameters, before: np.ndarray) -> Normal:
        """Return the distribution of a step given its lags (lag 1 first): (*given, 1)."""
        slope, intercept, variance = parameters
        mean = (slope * np.asarray(before, dtype=float)).sum(axis=-1) + intercept
        return Normal(mean[..., None], np.broadcast_to(variance, mean.shape)[..., None])

    def sample_steps(
        self, parameters: LinearParameters, path: np.ndarray, lags: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return sequentially drawn steps, each in the group given by `path`, after initial lags (lag 1 first)."""
        slope, intercept, variance = parameters
        noise = rng.standard_normal(len(path)) * np.sqrt(variance[path])
        steps, lags = np.empty(len(path)), np.array(lags, dtype=float)
        for t, k in enumerate(path):
            steps[t] = slope[k] @ lags + intercept[k] + noise[t]
            lags = np.concatenate([steps[t : t + 1], lags[:-1]])
        return steps
