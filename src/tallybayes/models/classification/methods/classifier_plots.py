"""Plots of fitted classifiers and mixtures; all need matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.typing import Labels, Name, Names, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


def plot_columns(model: Any, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None) -> Plot:
    """Plot the distribution of each column in each class; needs matplotlib.

    Parameters
    ----------
    columns : name, or list of names, optional
        The columns to plot. By default all; of more than twelve, the most informative about the class under the model.
    X, y : as for `fit`, optional
        Rows whose histograms are drawn behind the densities.

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.column_distributions import plot_columns

    return plot_columns(model, columns, X, y)


def plot_words(model: Any, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
    """Plot the most characteristic words of each class, with credible intervals; needs matplotlib.

    Words are ranked by their probability in the class times the log ratio to the largest probability in another class.

    Parameters
    ----------
    column : name, optional
        The text column or block of word counts; optional if there is only one.
    most : int, default 10
        The number of words per class.
    mass : float, default 0.95
        The posterior probability of the intervals.

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.top_words import plot_words

    return plot_words(model, column, most, mass)


def plot_decision_boundary(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot the decision regions in the plane of two columns, or p(class | x) along one; needs matplotlib.

    All other columns are marginalized, as missing cells are. For Gaussian columns, each class has an ellipse of two
    standard deviations.

    Parameters
    ----------
    X : as for `fit`, optional
        Rows to draw on top.
    y : array-like of shape (n,), optional
        Their classes.
    columns : one or two names, optional
        By default, the two columns that are most informative about the class under the model.
    ax : matplotlib Axes, optional

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import ClassConditionalPlane

    return plot_decision_boundary(ClassConditionalPlane(model), X, y, columns, ax)


def plot_joint(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot p(a, b | class) beside p(a | class) p(b | class), the naive Bayes assumption; needs matplotlib.

    The title shows the conditional mutual information I(a; b | class) in bits per row, the loss of the product; for two
    Gaussian columns it is −½ log₂(1 − ρ²). The contours are at e^(−½) and e^(−2) of the peak density, one and two
    standard deviations of a Gaussian; discs show the probabilities of two categorical columns.

    A model that assumes independence, such as `NaiveBayes`, has no joint distribution; it is estimated from the rows:
    the joint table of two categorical columns, a distribution per level of one, the full covariance of two Gaussian
    columns, or a Gaussian copula of other numbers.

    Parameters
    ----------
    X, y : as for `fit`, optional
        Rows to draw, and their classes. Required if the model has no joint distribution; a mixture needs X only.
    columns : two names, optional
        By default, the two columns that are most informative about the class under the model.
    ax : two matplotlib Axes, optional

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.joint_density import plot_joint

    return plot_joint(model, X, y, columns, ax)


def plot_class_means(model: Any, shape: tuple[int, int]) -> Plot:
    """Plot the mean of each class as an image of its columns, row by row; needs matplotlib.

    Parameters
    ----------
    shape : (rows, columns)
        The shape of the image, such as (28, 28).

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.class_means import plot_class_means

    return plot_class_means(model, shape)


def plot_graph(model: Any, ax: Axes | None = None) -> Plot:
    """Plot the model as a graph with plates for repeated nodes; needs matplotlib.

    Observed nodes are shaded; small circles are parameters.

    Parameters
    ----------
    ax : matplotlib Axes, optional

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.plate_diagram import plot_groups

    return plot_groups(model, ax)


def plot_nearest(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot the regions of the nearest means in the plane of two columns; needs matplotlib.

    Distances need complete rows, so all other columns are set to their means.

    Parameters
    ----------
    X, y, columns, ax
        As for `NaiveBayes.plot_decision_boundary`.

    Returns
    -------
    Plot
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import DistancePlane

    return plot_decision_boundary(DistancePlane(model), X, y, columns, ax)
