"""tb.bias_variance: what a regression gets wrong every time, and what it gets wrong otherwise every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from tallybayes._utils.html import html_table
from tallybayes._utils.progress import progress
from tallybayes.errors import DataError
from tallybayes.evaluation.validation.parameter_grid import listed
from tallybayes.typing import Candidates, EstimatorLike, RandomState, Rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


class BiasVariance:
    """Bias² and variance of regressions by their parameters. Made by `bias_variance`.

    Attributes
    ----------
    candidates : list of dict
    bias : ndarray of shape (candidates,)
        The mean over inputs of (expected prediction − truth)².
    variance : ndarray of shape (candidates,)
        The mean over inputs of the predictions' variance over the draws.
    noise : float
        The standard deviation of the noise, which nobody can predict: its square comes on top of both.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> degrees = {"degree": [1, 2, 6]}
    >>> tb.bias_variance(tb.LinearRegression(estimate="mle"), x, lambda x: x[:, 0] ** 2, candidates=degrees, n_draws=50)
    bias² and variance of 50 draws, noise 1
      candidate   bias²  variance     sum
      degree=1    2.135     0.207   2.342
    * degree=2    0.005     0.339   0.343
      degree=6    0.000     0.801   0.801
    """

    def __init__(
        self, candidates: list[dict[str, Any]], bias: np.ndarray, variance: np.ndarray, noise: float, n_draws: int
    ) -> None:
        self.candidates, self.bias, self.variance, self.noise, self.n_draws = candidates, bias, variance, noise, n_draws

    @property
    def names(self) -> list[str]:
        """The candidates in words."""
        return [
            ", ".join(f"{name}={value!r}" for name, value in each.items()) or "as it is" for each in self.candidates
        ]

    @property
    def best(self) -> dict[str, Any]:
        """The candidate whose bias² and variance are least together."""
        return self.candidates[int(np.argmin(self.bias + self.variance))]

    def to_frame(self) -> pd.DataFrame:
        """A row for every candidate, as a pandas DataFrame."""
        import pandas as pd

        found = {"candidate": self.names, "bias": self.bias, "variance": self.variance}
        return pd.DataFrame(found | {"sum": self.bias + self.variance})

    def plot(self, ax: Axes | None = None) -> Plot:
        """Bias², variance and their sum over the candidates; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.bias_variance import plot_bias_variance

        return plot_bias_variance(self, ax)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        both = zip(self.names, self.bias, self.variance, strict=True)
        return [(name, f"{bias:.3f}", f"{spread:.3f}", f"{bias + spread:.3f}") for name, bias, spread in both]

    def _title(self) -> str:
        return f"bias² and variance of {self.n_draws:,} draws, noise {self.noise:.4g}"

    def __repr__(self) -> str:
        width = max(9, *map(len, self.names))
        lines = [self._title(), f"  {'candidate':<{width}}  {'bias²':>6}  {'variance':>8}  {'sum':>6}"]
        best = int(np.argmin(self.bias + self.variance))
        for place, (name, bias, variance, both) in enumerate(self._rows()):
            lines.append(f"{'*' if place == best else ' '} {name:<{width}}  {bias:>6}  {variance:>8}  {both:>6}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table(self._title(), ("candidate", "bias²", "variance", "sum"), self._rows())


def bias_variance(
    model: EstimatorLike,
    X: Rows,
    truth: Callable[[Any], Any],
    *,
    candidates: Candidates | None = None,
    noise: float = 1.0,
    at: Rows | None = None,
    n_draws: int = 200,
    random_state: RandomState = 0,
) -> BiasVariance:
    """Fit a regression to many draws of the noise about a known truth, and take its error apart.

    The squared error of a prediction is, in expectation, bias² (how far the average fit is from the truth) + variance
    (how far fits are from their average) + noise². All draws are targets of one fit.

    Parameters
    ----------
    model : regression, of this library or of scikit-learn
        One that takes several targets.
    X : rows as the model takes them
        The inputs, the same in every draw.
    truth : callable
        Gives the true target of every row: ``truth(X)``.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        What is compared: ``{"degree": range(1, 8)}``.
    noise : float, default 1
        The standard deviation of what is added to the truth.
    at : rows, optional
        Where predictions are judged; without, at `X`.
    n_draws : int, default 200
    random_state : int, Generator or None, default 0

    Returns
    -------
    BiasVariance

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> x = np.linspace(-2, 2, 9)[:, None]
    >>> prior = {"prior": [0.1, 100.0]}
    >>> found = tb.bias_variance(tb.LinearRegression(), x, lambda x: x[:, 0], candidates=prior, n_draws=50)
    >>> bool(found.bias[0] < found.bias[1]), bool(found.variance[0] > found.variance[1])
    (True, True)
    """
    if not callable(truth):
        raise DataError.wrong_type("truth", repr(truth), "a function of the rows, such as lambda x: x[:, 0] ** 2")
    if not (np.isfinite(noise) and noise >= 0):
        raise DataError(f"noise is {noise!r}; expected a finite number of at least 0.")
    if not isinstance(n_draws, int | np.integer) or n_draws < 2:
        raise DataError(f"n_draws is {n_draws!r}; expected a whole number of at least 2.")
    settings = listed(candidates)
    middle, expected = _true(truth, X), _true(truth, X if at is None else at)
    draws = middle[:, None] + noise * np.random.default_rng(random_state).standard_normal((len(middle), int(n_draws)))
    bias, variance = [], []
    for each in progress(settings, "fitting"):
        told = np.asarray(clone(model).set_params(**each).fit(X, draws).predict(X if at is None else at), dtype=float)
        bias.append(float(((told.mean(axis=1) - expected) ** 2).mean()))
        variance.append(float(told.var(axis=1, ddof=1).mean()))
    # The average of the draws is itself off by its share of the variance.
    off = np.maximum(np.array(bias) - np.array(variance) / n_draws, 0.0)
    return BiasVariance(settings, off, np.array(variance), float(noise), int(n_draws))


def _true(truth: Callable[[Any], Any], rows: Any) -> np.ndarray:
    """What is true of rows, a finite number each."""
    found = np.asarray(truth(rows), dtype=float)
    if found.ndim != 1 or len(found) != len(rows) or not np.isfinite(found).all():
        raise DataError(
            f"truth gave an array of shape {found.shape}, finite: {bool(np.isfinite(found).all())}; expected a finite "
            f"number for each of {len(rows)} rows."
        )
    return found
