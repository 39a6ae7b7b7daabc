"""BiasVariance: bias² and variance of regressions by candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes.results.result import FrameData, PlottedResult, ResultTable

_FORMATS = {"candidate": "{candidate}", "bias²": "{bias:.3f}", "variance": "{variance:.3f}", "sum": "{sum:.3f}"}


@dataclass(eq=False, repr=False)
class BiasVariance(PlottedResult):
    """Bias² and variance of regressions by their parameters. Returned by `bias_variance`.

    Attributes
    ----------
    candidates : list of dict
    bias : ndarray of shape (candidates,)
        The mean over inputs of (expected prediction − truth)².
    variance : ndarray of shape (candidates,)
        The mean over inputs of the variance of the predictions over the draws.
    noise : float
        The standard deviation of the noise. The expected squared error is bias² + variance + noise².
    n_draws : int
        The number of draws.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> degrees = {"degree": [1, 2, 6]}
    >>> tb.bias_variance(tb.LinearRegression(estimate="mle"), x, lambda x: x[:, 0] ** 2, candidates=degrees, n_draws=50)
    bias² and variance of 50 draws, noise 1
      candidate  bias²  variance    sum
      degree=1   2.135     0.207  2.342
    * degree=2   0.005     0.339  0.343
      degree=6   0.000     0.801  0.801
    """

    _plot_function = "evaluation.bias_variance.plot_bias_variance"

    candidates: list[dict[str, Any]]
    bias: np.ndarray
    variance: np.ndarray
    noise: float
    n_draws: int

    @property
    def names(self) -> list[str]:
        """The candidates as text."""
        return [
            ", ".join(f"{name}={value!r}" for name, value in each.items()) or "as it is" for each in self.candidates
        ]

    @property
    def best(self) -> dict[str, Any]:
        """The candidate with the least sum of bias² and variance."""
        return self.candidates[self._best_index()]

    def _best_index(self) -> int:
        return int(np.argmin(self.bias + self.variance))

    def _frame_data(self) -> FrameData:
        total = self.bias + self.variance
        return {"candidate": self.names, "bias": self.bias, "variance": self.variance, "sum": total}

    def _content(self) -> list[str | ResultTable]:
        title = f"bias² and variance of {self.n_draws:,} draws, noise {self.noise:.4g}"
        return [ResultTable.of(self._frame_data(), _FORMATS, title, "lr", best=self._best_index())]
