"""Pictures of a chosen mixture: its decisions are those of all members, all else is drawn by the heaviest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from tallybayes.models.ensemble.ensemble_inspection import largest_member, member_note
from tallybayes.models.inputs.input_format import open_columns, read_more_rows
from tallybayes.typing import Labels, Name, Names, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


def plot_decision_boundary(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """The regions of the classes in the plane of two columns, by the mixture; needs matplotlib.

    Rows know these two columns alone: the cells of all others are missing, which says something of the class where
    the model counts absence as a value.

    Parameters
    ----------
    X, y, columns, ax
        As for `NaiveBayes.plot_decision`.

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "members_")
    from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
    from tallybayes.plotting.classifier.plane_models import EnsemblePlane

    return plot_decision_boundary(EnsemblePlane(model), X, y, columns, ax)


def plot_columns(model: Any, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None) -> Plot:
    """A picture of every column's distribution in each class, by the heaviest member; needs matplotlib.

    Parameters
    ----------
    columns, X, y
        As for `NaiveBayes.plot_columns`.

    Returns
    -------
    Picture
    """
    return _with_note(model, largest_member(model).plot_columns(columns, *_rows(model, X, y)), above=True)


def plot_joint(
    model: Any,
    X: Rows | None = None,
    y: Labels | None = None,
    columns: Iterable[Name] | None = None,
    ax: Axes | None = None,
) -> Plot:
    """Two columns together beside the product of each alone, in every class, by the heaviest member; needs matplotlib.

    Parameters
    ----------
    X, y, columns, ax
        As for `NaiveBayes.plot_joint`.

    Returns
    -------
    Picture
    """
    return _with_note(model, largest_member(model).plot_joint(*_rows(model, X, y), columns, ax), above=False)


def plot_class_means(model: Any, shape: tuple[int, int]) -> Plot:
    """Every class as an image: what the heaviest member expects of its columns, row by row; needs matplotlib.

    Columns that it leaves out are blank.

    Parameters
    ----------
    shape : (rows, columns)
        Of the image, such as (28, 28).

    Returns
    -------
    Picture
    """
    found = largest_member(model)
    from tallybayes.plotting.classifier.class_means import plot_class_means

    return _with_note(model, plot_class_means(found, shape, model), above=True)


def plot_graph(model: Any, ax: Axes | None = None) -> Plot:
    """The heaviest member as a graph with plates; needs matplotlib.

    Parameters
    ----------
    ax : matplotlib Axes, optional

    Returns
    -------
    Picture
    """
    return _with_note(model, largest_member(model).plot_graph(ax), above=False)


def _rows(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Rows as the heaviest member reads them, and their classes."""
    if X is None:
        return None, y
    labels = None if y is None else read_more_rows(model, X, y, None)[0].columns[model._target]
    return model.members_[0].spec.view.apply(open_columns(model, X)), labels


def _with_note(model: Any, picture: Plot, *, above: bool) -> Plot:
    """Say who drew it: above all panels of a figure that is its own, or above the first."""
    from tallybayes.plotting.style import add_note

    add_note(picture, member_note(model), above=above)
    return picture
