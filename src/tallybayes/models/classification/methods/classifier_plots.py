"""Pictures of a fitted model of classes; all need matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from tallybayes.typing import Labels, Name, Names, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


def plot_columns(model: Any, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None) -> Plot:
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
    from tallybayes.plotting.classifier.column_distributions import plot_columns

    return plot_columns(model, columns, X, y)


def plot_words(model: Any, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
    """Of every class the words that tell it from the others most, with credible intervals; needs matplotlib.

    Words are first that say most for the class: how often they occur in it, times the log of how much more often than
    in the other class that has them most.

    Parameters
    ----------
    column : name, optional
        Of the column of text, or of the block of counts; may be left out where there is one.
    most : int, default 10
        How many words of each class.
    mass : float, default 0.95
        Of the credible intervals.

    Returns
    -------
    Picture
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
    """The regions of the classes in the plane of two columns, or p(class | x) along one; needs matplotlib.

    All other columns are marginalized, which missing cells are: nothing is assumed of them. Where both columns are
    Gaussian, every class has the ellipse of two deviations.

    Parameters
    ----------
    X : as for `fit`, optional
        Rows to draw on top.
    y : array-like of shape (n,), optional
        Their classes.
    columns : one or two names, optional
        If left out the columns there are, or of more than two those two that tell most of the class under the model.
    ax : matplotlib Axes, optional

    Returns
    -------
    Picture
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
    """Plot p(a, b | class) beside p(a | class) p(b | class), the naive assumption; needs matplotlib.

    The title says how many bits per row the product loses: the conditional mutual information I(a; b | class), of two
    Gaussian columns −½ log₂(1 − ρ²). Lines are where the density is e^(−½) and e^(−2) of its peak, one and two standard
    deviations of a Gaussian; discs show the probabilities of two categorical columns.

    A model that assumes independence, such as `NaiveBayes`, has no joint distribution. It is estimated from the rows:
    the joint table of two categorical columns; a distribution per level of one; the full covariance of two Gaussian
    columns, and a Gaussian copula of other numbers.

    Parameters
    ----------
    X, y : as for `fit`, optional
        Rows to draw, and their classes. Required where the model has no joint distribution; a mixture needs X alone.
    columns : two names, optional
        If left out the two columns that tell most of the class under the model.
    ax : two matplotlib Axes, optional

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.joint_density import plot_joint

    return plot_joint(model, X, y, columns, ax)


def plot_class_means(model: Any, shape: tuple[int, int]) -> Plot:
    """Every class as an image: what is expected of its columns, which are pixels row by row; needs matplotlib.

    Parameters
    ----------
    shape : (rows, columns)
        Of the image, such as (28, 28).

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.class_means import plot_class_means

    return plot_class_means(model, shape)


def plot_graph(model: Any, ax: Axes | None = None) -> Plot:
    """The model as a graph with plates: what depends on what, and how often it is repeated; needs matplotlib.

    Shaded is what is seen; small circles are parameters.

    Parameters
    ----------
    ax : matplotlib Axes, optional

    Returns
    -------
    Picture
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
    """The regions of the nearest means in the plane of two columns; needs matplotlib.

    Distances need whole rows, so all other columns are at the mean of all rows.

    Parameters
    ----------
    X, y, columns, ax
        As for `NaiveBayes.plot_decision`.

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import DistancePlane

    return plot_decision_boundary(DistancePlane(model), X, y, columns, ax)
