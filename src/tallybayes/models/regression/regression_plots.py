"""Plots of a linear regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.typing import Candidates, Labels, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


def plot(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    *,
    candidates: Candidates | None = None,
    mass: float = 0.95,
    ax: Axes | None = None,
) -> Plot:
    """Plot the regression line with its predictive interval; with several inputs, residuals against predictions.

    Parameters
    ----------
    X, y : as for `fit`, optional
        Rows to plot, with one target. Required if there are several inputs.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        Draw one panel per combination, from the same counts: ``{"degree": [1, 2, 4]}``.
    mass : float, default 0.95
        The probability of the interval.
    ax : matplotlib Axes, optional
        The axes to draw on; with several panels, one per panel.

    Returns
    -------
    Plot
    """
    from tallybayes.plotting.regression import plot_regression

    check_is_fitted(model, "tally_")
    return plot_regression(model, X, y, candidates, mass, ax)
