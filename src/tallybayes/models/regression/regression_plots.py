"""Pictures of a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

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
    """The line with the band that holds targets, over one input; of several inputs, errors over what is predicted.

    Parameters
    ----------
    X, y : as for `fit`, optional
        Rows to draw, one target; of several inputs they are needed.
    candidates : mapping from parameter to a list of values, or list of mappings of parameters, optional
        A panel for each, from the same counts: ``{"degree": [1, 2, 4]}``.
    mass : float, default 0.95
        What the band holds.
    ax : matplotlib Axes, optional
        One for every panel.

    Returns
    -------
    Picture
    """
    from tallybayes.plotting.regression import plot_regression

    check_is_fitted(model, "tally_")
    return plot_regression(model, X, y, candidates, mass, ax)
