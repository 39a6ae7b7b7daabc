"""Scores of classifiers in the plane of two columns: treatment of the other columns, by kind of model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes.data.table import Table
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.ensemble.ensemble_inspection import largest_generative
from tallybayes.models.ensemble.members import generative_members
from tallybayes.models.inputs.input_format import open_columns, open_rows
from tallybayes.plotting.classifier.groups import Groups, groups_of
from tallybayes.plotting.classifier.marginals import (
    PlotColumn,
    cells_of,
    column_information,
    columns_in,
    covariances,
    has_ellipse,
    n_columns,
)
from tallybayes.plotting.classifier.plane import ACROSS, Plane, Side
from tallybayes.plotting.style import GroupStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.typing import Rows


class PredictedPlane:
    """Base of the models in a plane: scores are predictions of rows in which two columns are known."""

    others: ClassVar[str]  # how the other columns are treated
    across: ClassVar[int] = ACROSS
    model: Any
    names: list[Any]

    def rows(self, cells: dict[Any, np.ndarray], n: int) -> Table:
        """Return n rows with the cells of some columns, by key."""
        raise NotImplementedError

    def scores(self, plane: Plane) -> np.ndarray:
        """Return log p(class | x) at all distinct values."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # impossible points
            return plane.evaluate(
                lambda cells, n: np.asarray(self.model.predict_log_proba(self.rows(cells, n))), len(self.names)
            )

    def draw_classes(self, ax: Axes, pair: list[int], styles: list[GroupStyle]) -> None:
        """Draw the classes themselves, if they have means or ellipses."""


class ClassConditionalPlane(PredictedPlane):
    """Model of classes or components: all other columns are missing, which marginalizes them."""

    others: ClassVar[str] = "marginalized"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.columns = [column for column in columns_in(model) if not column.family.is_bag_of_words]
        self.names = [column.name for column in self.columns]
        self.keys = [column.key for column in self.columns]
        self.groups = groups_of(model)

    @property
    def title(self) -> str:
        """Return the title: the covariance or the kind of model, and the estimate."""
        model = self.model
        kind = f"{model.covariance_} covariance" if hasattr(model, "covariance_") else type(model).__name__
        is_fixed = model._fixed_parameters is not None
        return f"{kind}, fixed parameters" if is_fixed else f"{kind}, {model.estimate} estimate"

    def column_information(self) -> np.ndarray:
        """Return the mutual information of each column with the class, in bits."""
        return column_information(self.groups.log_prior, self.columns)

    def side(self, k: int) -> Side:
        """Return a column as an axis of a plane."""
        return Side.of_column(self.columns[k])

    def points(self, X: Rows, pair: list[int]) -> np.ndarray:
        """Return the cells of two columns: numbers or level codes; NaN if missing."""
        table = open_rows(self.model, X)
        table = self.model._discretize(table) if hasattr(self.model, "_discretize") else table
        columns = [self.columns[k] for k in pair]
        points = np.stack([cells_of(self.model, table, column) for column in columns], axis=1)
        is_code = np.array([bool(column.levels) for column in columns])
        return np.where(is_code & (points < 0), np.nan, points)

    def log_joint(self, plane: Plane, *known: int) -> np.ndarray:
        """Return log p(class, x) of the distinct values of the known columns, shape (up, across, classes)."""
        estimates = estimates_of(self.model)
        return plane.evaluate(lambda cells, n: estimates.joint(self.rows(cells, n)), len(self.columns), known)

    def rows(self, cells: dict[Any, np.ndarray], n: int) -> Table:
        """Return rows with the given cells, all others missing."""
        return _rows(self.model, cells, n)

    def draw_classes(self, ax: Axes, pair: list[int], styles: list[GroupStyle]) -> None:
        """Draw the mean of each class and its ellipse of two standard deviations, if one factor has both columns."""
        first, second = (self.columns[k] for k in pair)
        scored = first.scored
        if scored is not second.scored or not has_ellipse(scored):
            return
        positions = [first.position, second.position]
        means = np.asarray(scored.point[0])[:, positions]
        values, vectors = np.linalg.eigh(covariances(scored)[:, positions][:, :, positions])
        angle = np.linspace(0, 2 * np.pi, 200)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        rings = means[..., None] + 2 * vectors @ (np.sqrt(np.maximum(values, 0))[..., None] * circle)
        for style, mean, ring in zip(styles, means, rings, strict=True):
            if style.own:
                ax.plot(*ring, color=style.color)
                ax.plot(*mean, marker="+", color=style.color, markersize=10, markeredgewidth=2)


class DistancePlane(ClassConditionalPlane):
    """Nearest mean: distances require all columns, so that the others are at their mean."""

    others: ClassVar[str] = "at the mean of all rows"
    model: Any  # NearestClassMean, whose class is not one of `ClassConditionalModel`

    @property
    def title(self) -> str:
        """Return the title: the metric."""
        metric = self.model.metric if isinstance(self.model.metric, str) else "user-specified"
        return f"nearest mean, {metric} metric"

    def points(self, X: Rows, pair: list[int]) -> np.ndarray:
        """Return the cells of two columns."""
        return np.asarray(self.model._estimated_means.cells(open_rows(self.model, X))[:, pair])

    @cached_property
    def mean(self) -> dict[Any, float]:
        """The mean of every column over all rows."""
        weight = self.model.tally_[self.model.target_].table
        return dict(zip(self.keys, weight @ self.model.means_ / weight.sum(), strict=True))

    def rows(self, cells: dict[Any, np.ndarray], n: int) -> Table:
        """Return rows with the given cells, all others at their mean."""
        return _rows(self.model, {key: np.full(n, value) for key, value in self.mean.items()} | cells, n)

    def draw_classes(self, ax: Axes, pair: list[int], styles: list[GroupStyle]) -> None:
        """Draw the means of the classes with a color, above the rows."""
        means = self.model.means_[:, pair][[style.own for style in styles]]
        ax.plot(*means.T, "+", color="black", markersize=10, markeredgewidth=2, zorder=4)


class EnsemblePlane(PredictedPlane):
    """Ensemble: all other columns are missing; pooled predictions of all members."""

    others: ClassVar[str] = "missing"
    across: ClassVar[int] = ACROSS // 2  # every member is evaluated

    def __init__(self, model: AutoClassifier) -> None:
        self.model = model
        largest_generative(model)  # raises if there is none
        generative = generative_members(model)
        self.members = [(member, _columns_of_member(member, choice.view)) for choice, member in generative]
        views = [choice.view for choice, _ in generative]
        self.levels = {name: levels for view in views for name, levels in getattr(view, "levels", ())}
        used = {name for _, columns in self.members for name, _ in columns}
        self.names = self.keys = [name for name in model._required_columns if name in used]
        log_prior = generative[0].model.class_log_prior_
        self.groups = Groups(model.classes_.tolist(), log_prior, "classes", model.target_)

    @property
    def title(self) -> str:
        """Return the title: the heaviest member and the number of others."""
        name = self.model.members_[0].spec.name
        n = len(self.model.members_)
        return f"{type(self.model).__name__}: {name}" + (f", and {n - 1} more" if n > 1 else "")

    def column_information(self) -> np.ndarray:
        """Return the largest mutual information of each column with the class among the members, in bits."""
        information = dict.fromkeys(self.names, 0.0)
        for member, columns in self.members:
            bits_of_columns = column_information(member.class_log_prior_, [column for _, column in columns])
            for (name, _), bits in zip(columns, bits_of_columns.tolist(), strict=True):
                information[name] = max(information[name], bits)
        return np.array(list(information.values()))

    def side(self, k: int) -> Side:
        """Return the axis of a column: levels of a member, else numbers of the heaviest member without bins."""
        name = self.names[k]
        columns = [column for _, pairs in self.members for owner, column in pairs if owner == name]
        sides = [replace(Side.of_column(column), name=name, key=name) for column in columns]
        categorical = (side.levels for side in sides if side.levels and side.middles is None)
        levels = next(categorical, self.levels.get(name))
        if levels:
            return Side(name, name, -0.5, len(levels) - 0.5, tuple(levels))
        numbers = [side for side in sides if not side.levels]
        if numbers:
            return replace(numbers[0], whole=any(side.whole for side in numbers))
        middles = np.asarray(sides[0].middles)
        middles = middles[np.isfinite(middles)]  # the bin of missing values has none
        edge = (middles[-1] - middles[0]) / max(len(middles), 2)
        return Side(name, name, middles[0] - edge, middles[-1] + edge)

    def points(self, X: Rows, pair: list[int]) -> np.ndarray:
        """Return the cells of two columns: numbers or level codes; NaN if missing."""
        table = open_columns(self.model, X)
        cells = []
        for side in map(self.side, pair):
            if not side.levels:
                cells.append(chunk_of(table.numbers([side.key]), slice(None))[:, 0])
                continue
            codes, domain = table.encoded(side.key)
            code_of = {level: code for code, level in enumerate(side.levels)}
            positions = np.array([*(code_of.get(level, np.nan) for level in domain.levels), np.nan])
            cells.append(positions[codes])
        return np.stack(cells, axis=1)

    def rows(self, cells: dict[Any, np.ndarray], n: int) -> Table:
        """Return rows with the given cells, all others missing."""
        return Table(dict.fromkeys(self.model._required_columns, np.full(n, np.nan)) | cells)


def _columns_of_member(member: ClassConditionalModel, view: Any) -> list[tuple[Any, PlotColumn]]:
    """Return the columns of a member, each with the name of its column in the rows."""
    columns = columns_in(member)
    if hasattr(view, "names"):
        return [(column.key, column) for column in columns if column.key in view.names]
    owners: list[Any] = [name for name, _ in view.numbers]
    owners += [None for _ in view.indicator_columns]
    owners += [name for name, levels in view.levels for _ in levels]
    return [(name, column) for name, column in zip(owners, columns, strict=True) if name is not None]


def _rows(model: ClassConditionalModel, given: dict[Any, np.ndarray], n: int) -> Table:
    """Return rows with the given columns, all others missing, which marginalizes them."""
    columns: dict[Any, np.ndarray] = {}
    unknown = np.full(n, np.nan)
    for scored in model._factor_scorers:
        names = scored.factor.columns
        width = n_columns(scored)
        if len(names) == 1 and width > 1:  # a block
            block = [given.get((names[0], position), unknown) for position in range(width)]
            columns[names[0]] = np.stack(block, axis=1)
            continue
        for name in names:
            has_levels = scored.family.cell_type == "codes" and not model._display_family(scored.factor, name).bins
            columns[name] = given.get(name, np.full(n, None) if has_levels else unknown)
    table = Table(columns)
    # Missing values without information: not those of missing-value indicators.
    table.invalid_cells = {name: np.ones(n, dtype=bool) for name in columns if name not in given}
    return table
