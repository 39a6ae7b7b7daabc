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
    """Plot the distribution of each column in each class."""
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.column_distributions import plot_columns

    return plot_columns(model, columns, X, y)


def plot_words(model: Any, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
    """Plot the most characteristic words of each class, with credible intervals."""
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
    """Plot the decision regions in the plane of two columns, or p(class | x) along one."""
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
    """Plot p(a, b | class) beside p(a | class) p(b | class), the naive Bayes assumption."""
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.joint_density import plot_joint

    return plot_joint(model, X, y, columns, ax)


def plot_class_means(model: Any, shape: tuple[int, int]) -> Plot:
    """Plot the mean of each class as an image of its columns, row by row."""
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.class_means import plot_class_means

    return plot_class_means(model, shape)


def plot_graph(model: Any, ax: Axes | None = None) -> Plot:
    """Plot the model as a graph with plates for repeated nodes."""
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
    """Plot the regions of the nearest means in the plane of two columns."""
    check_is_fitted(model, "tally_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import DistancePlane

    return plot_decision_boundary(DistancePlane(model), X, y, columns, ax)
