"""Plots of the automatic classifier: decisions of the ensemble, and columns of its largest member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.models.ensemble.ensemble_inspection import largest_generative, largest_member, member_note
from tallybayes.models.inputs.input_format import open_columns, read_more_rows
from tallybayes.typing import Labels, Name, Names, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.plotting.plot import Plot


def plot_decision_boundary(
    model: AutoClassifier,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot the decision regions of the ensemble in the plane of two columns."""
    check_is_fitted(model, "members_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import EnsemblePlane

    return plot_decision_boundary(EnsemblePlane(model), X, y, columns, ax)


def plot_columns(
    model: AutoClassifier, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None
) -> Plot:
    """Plot the distribution of every column in each class, by the member with the largest weight."""
    return _with_note(model, largest_member(model).plot_columns(columns, *_rows(model, X, y)), above=True)


def plot_joint(
    model: AutoClassifier,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Plot the joint distribution of two columns and the product of their marginals."""
    return _with_note(model, largest_member(model).plot_joint(*_rows(model, X, y), columns, ax), above=False)


def plot_class_means(model: AutoClassifier, shape: tuple[int, int]) -> Plot:
    """Plot the class means as images, row by row, by the member with the largest weight."""
    member = largest_member(model)
    from tallybayes.plotting.classifier.class_means import plot_class_means

    return _with_note(model, plot_class_means(member, shape, model), above=True)


def plot_graph(model: AutoClassifier, ax: Axes | None = None) -> Plot:
    """Plot the member with the largest weight as a graph with plates."""
    return _with_note(model, largest_member(model).plot_graph(ax), above=False)


def _rows(model: AutoClassifier, X: Rows | None, y: Labels | None) -> tuple[Any, Any]:
    """Return rows as the largest member reads them, and their classes."""
    if X is None:
        return None, y
    labels = None if y is None else read_more_rows(model, X, y, None)[0].columns[model._target]
    return largest_generative(model).spec.view.apply(open_columns(model, X)), labels


def _with_note(model: AutoClassifier, figure: Plot, *, above: bool) -> Plot:
    """Add a note that names the plotted member."""
    from tallybayes.plotting.style import add_note

    add_note(figure, member_note(model), above=above)
    return figure
