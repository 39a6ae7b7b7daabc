"""Pictures of a fitted model of classes; all need matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from tallybayes.plots.picture import Picture


def plot_columns(model: Any, columns: Any = None, X: Any = None, y: Any = None) -> Picture:
    """A picture of every column's distribution in each class; needs matplotlib.

    Parameters
    ----------
    columns : name, or list of names, optional
        Which to draw; if left out all, or of more than twelve those that tell most of the class under the model.
    X, y : as for `fit`, optional
        Rows whose histograms are drawn behind the densities.

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plots.columns import plot_columns

    return plot_columns(model, columns, X, y)


def plot_decision(model: Any, X: Any = None, y: Any = None, columns: Any = None, ax: Any = None) -> Picture:
    """The regions of the classes in the plane of two columns; needs matplotlib.

    All other columns are marginalised, which missing cells are: nothing is assumed of them. Where both columns are
    Gaussian, every class has the ellipse of two deviations.

    Parameters
    ----------
    X : as for `fit`, optional
        Rows to draw on top.
    y : array-like of shape (n,), optional
        Their classes.
    columns : two names, optional
        If left out the two columns there are, or of more the two that tell most of the class under the model.
    ax : matplotlib Axes, optional

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plots.decision import plot_decision

    return plot_decision(model, X, y, columns, ax)
