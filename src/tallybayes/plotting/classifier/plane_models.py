"""How a plane of two columns asks a classifier: what becomes of its other columns, and who answers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tallybayes.data.table import Table
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.models.inputs.input_format import open_columns, open_rows
from tallybayes.plotting.classifier.marginals import (
    PlotColumn,
    column_information,
    columns_in,
    covariances,
    has_ellipse,
)
from tallybayes.plotting.classifier.plane import ACROSS, Plane, Side, side_of
from tallybayes.plotting.style import GroupStyle


class ClassConditionalPlane:
    """A model of classes or components: all other columns are missing, which marginalizes them."""

    others: ClassVar[str] = "marginalized"
    across: ClassVar[int] = ACROSS

    def __init__(self, model: Any) -> None:
        self.model = model
        self.columns = [column for column in columns_in(model) if not column.scored.family.is_bag_of_words]
        self.names = [column.name for column in self.columns]
        self.keys = [column.key for column in self.columns]
        self.log_prior = model.class_log_prior_

    @property
    def title(self) -> str:
        """What decides."""
        model = self.model
        what = f"{model.covariance} covariance" if hasattr(model, "covariance") else type(model).__name__
        return f"{what}, as given" if model._fixed_parameters is not None else f"{what}, {model.estimate} estimate"

    def column_information(self) -> np.ndarray:
        """What every column tells of the class, in bits."""
        return column_information(self.model, self.columns)

    def side(self, k: int) -> Side:
        """A column as the side of a plane."""
        return side_of(self.columns[k])

    def points(self, X: Any, two: list[int]) -> np.ndarray:
        """The cells of two columns of some rows: numbers, or codes of levels; NaN where missing."""
        table = open_rows(self.model, X)
        table = self.model._discretize(table) if hasattr(self.model, "_discretize") else table
        found = []
        for column in (self.columns[k] for k in two):
            cells = chunk_of(self.model._factor_cells(table, column.scored), slice(None))[:, column.place].astype(float)
            found.append(np.where(cells < 0, np.nan, cells) if column.levels else cells)
        return np.stack(found, axis=1)

    def log_joint(self, here: Plane, *known: int) -> np.ndarray:
        """log p(class, x) at every place, (places, classes), of the known ones of the two columns; others missing."""
        model = self.model
        model._check_estimated(model.class_log_prior_)
        width = sum(len(one.factor.columns) for one in model._factor_scorers)
        return here.ask(lambda some, n: model._row_scorer.joint(_rows(model, some, n), whole=True), width, *known)

    def scores(self, here: Plane) -> np.ndarray:
        """By what the class of every place is predicted: the largest of its row, (places, classes)."""
        found, model = self.log_joint(here, *here.known), self.model
        if model._calibration is not None:  # it may change the order
            found = model._calibration.apply(apply_bayes_rule(found, model.class_log_prior_).log_proba)
        return np.asarray(found)

    def mark(self, ax: Any, two: list[int], look: list[GroupStyle]) -> None:
        """The ellipses of the classes."""
        for k, one in enumerate(look):
            if one.own:
                _draw_ellipse(ax, [self.columns[place] for place in two], k, one.color)


class DistancePlane(ClassConditionalPlane):
    """The nearest mean: distances need whole rows, so that all other columns are at their mean."""

    others: ClassVar[str] = "at the mean of all rows"

    @property
    def title(self) -> str:
        """What decides."""
        metric = self.model.metric if isinstance(self.model.metric, str) else "given"
        return f"the nearest mean, {metric} metric"

    def points(self, X: Any, two: list[int]) -> np.ndarray:
        """The cells of two columns of some rows."""
        return np.asarray(self.model._numbers(open_rows(self.model, X))[:, two])

    def scores(self, here: Plane) -> np.ndarray:
        """log p(class | x) at every place."""
        model = self.model
        names, weight = model.tally_.factors[1].columns, model._moments().weight[:, 0]
        middle = weight @ model.means_ / weight.sum()
        block = len(names) == 1 and len(middle) > 1

        def answer(some: dict[Any, np.ndarray], n: int) -> np.ndarray:
            rows = np.tile(middle, (n, 1))
            rows[:, here.columns] = np.stack(list(some.values()), axis=1)
            table = Table({names[0]: rows} if block else dict(zip(names, rows.T, strict=True)))
            return np.asarray(model.predict_log_proba(table))

        return here.ask(answer, len(middle), *here.known)

    def mark(self, ax: Any, two: list[int], look: list[GroupStyle]) -> None:
        """The means of the classes."""
        for k, one in enumerate(look):
            if one.own:
                look_of = {"color": "black", "markersize": 10, "markeredgewidth": 2, "zorder": 4}  # over the rows
                ax.plot(*self.model.means_[k, two], marker="+", **look_of)


class EnsemblePlane:
    """A chosen mixture: rows in which all other columns are missing, answered by all its members, and calibrated."""

    others: ClassVar[str] = "missing"
    across: ClassVar[int] = ACROSS // 2  # every member is asked

    def __init__(self, model: Any) -> None:
        self.model = model
        self.members = [(member, _seen(member, choice.view)) for choice, member in model.members_]
        views = [choice.view for choice, _ in model.members_]
        self.levels = {name: levels for view in views for name, levels in getattr(view, "levels", ())}
        told = {name for _, seen in self.members for name, _ in seen}
        self.names = self.keys = [name for name in model._required_columns if name in told]
        self.log_prior = model.members_[0].model.class_log_prior_

    @property
    def title(self) -> str:
        """What decides."""
        name, n = self.model.members_[0].spec.name, len(self.members)
        return f"{type(self.model).__name__}: {name}" + (f", and {n - 1} more" if n > 1 else "")

    def column_information(self) -> np.ndarray:
        """What every column tells of the class, in bits: what it tells the member that it tells most."""
        told = dict.fromkeys(self.names, 0.0)
        for member, seen in self.members:
            for (name, _), found in zip(seen, column_information(member, [column for _, column in seen]), strict=True):
                told[name] = max(told[name], float(found))
        return np.array(list(told.values()))

    def side(self, k: int) -> Side:
        """By its levels where a member knows some; else numbers, as the heaviest member that does not cut them."""
        name = self.names[k]
        found = [column for _, seen in self.members for owner, column in seen if owner == name]
        sides = [side_of(column)._replace(name=name, key=name) for column in found]
        labels = [side for side in sides if side.levels and side.middles is None]
        if labels or name in self.levels:
            levels = tuple(labels[0].levels if labels else self.levels[name])
            return Side(name, name, levels, None, "linear", False, -0.5, len(levels) - 0.5)
        numbers = [side for side in sides if not side.levels]
        if numbers:
            return numbers[0]._replace(whole=any(side.whole for side in numbers))
        middles = np.asarray(sides[0].middles)
        middles = middles[np.isfinite(middles)]  # absence has none
        edge = (middles[-1] - middles[0]) / max(len(middles), 2)
        return Side(name, name, (), None, "linear", False, middles[0] - edge, middles[-1] + edge)

    def points(self, X: Any, two: list[int]) -> np.ndarray:
        """The cells of two columns of some rows: numbers, or codes of levels; NaN where missing."""
        table = open_columns(self.model, X)
        found = []
        for side in (self.side(k) for k in two):
            if not side.levels:
                found.append(chunk_of(table.numbers([side.key]), slice(None))[:, 0])
                continue
            codes, (domain,) = table.levels([side.key], lambda _: False)
            where = {level: place for place, level in enumerate(side.levels)}
            places = np.array([*(where.get(level, np.nan) for level in domain.levels), np.nan])
            found.append(places[chunk_of(codes.columns, slice(None))[:, 0].astype(int)])
        return np.stack(found, axis=1)

    def scores(self, here: Plane) -> np.ndarray:
        """log p(class | x) at every place."""
        names = self.model._required_columns

        def answer(some: dict[Any, np.ndarray], n: int) -> np.ndarray:
            rows = dict.fromkeys(names, np.full(n, np.nan)) | some
            return np.asarray(self.model.predict_log_proba(Table(rows)))

        return here.ask(answer, len(names), *here.known)

    def mark(self, ax: Any, two: list[int], look: list[GroupStyle]) -> None:
        """Nothing: members have ellipses, their mixture has none."""


def _seen(member: Any, view: Any) -> list[tuple[Any, PlotColumn]]:
    """The columns of a member, each with the name of the column of the rows that it tells of."""
    found = columns_in(member)
    if hasattr(view, "names"):
        return [(column.key, column) for column in found if column.key in view.names]
    owners: list[Any] = [name for name, _ in view.numbers]
    owners += [None for _ in view.indicator_columns]
    owners += [name for name, levels in view.levels for _ in levels]
    return [(name, column) for name, column in zip(owners, found, strict=True) if name is not None]


def _draw_ellipse(ax: Any, two: list[PlotColumn], k: int, color: str) -> None:
    """The mean of a class and two deviations about it, where both columns are measured in one factor."""
    scored = two[0].scored
    if scored is not two[1].scored or not has_ellipse(scored):
        return
    places = [column.place for column in two]
    mean = np.asarray(scored.point[0])[k, places]
    values, vectors = np.linalg.eigh(covariances(scored)[k][np.ix_(places, places)])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    ring = mean[:, None] + 2 * vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
    ax.plot(*ring, color=color, linewidth=1.5)
    ax.plot(*mean, marker="+", color=color, markersize=10, markeredgewidth=2)


def _rows(model: Any, given: dict[Any, np.ndarray], n: int) -> Table:
    """Rows that know some columns, all others missing: what was not asked of is marginalized."""
    found: dict[Any, Any] = {}
    for scored in model._factor_scorers:
        names, codes = scored.factor.columns, scored.family.cell_type == "codes"
        width = len(names) if codes else np.shape(scored.family.mean(scored.parameters))[-1]
        if len(names) == 1 and width > 1:  # a block
            block = np.full((n, width), np.nan)
            for place in range(width):
                if (names[0], place) in given:
                    block[:, place] = given[names[0], place]
            found[names[0]] = block
            continue
        for name in names:
            labels = codes and not model._display_family(scored.factor, name).bins
            found[name] = given.get(name, np.full(n, None if labels else np.nan, dtype=object if labels else float))
    table = Table(found)
    table.invalid_cells = {name: np.ones(n, dtype=bool) for name in found if name not in given}  # nor are they absent
    return table
