"""The scores of an ensemble as portable scores: the members, calibrated, and their log-linear pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.export.portable_scorer import (
    Cell,
    Derived,
    Lookup,
    Part,
    Pool,
    PortableScorer,
    scores_of,
)
from tallybayes.export.portable_trees import tree_scores_of
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.ensemble.feature_views import BLOCK, NumericBlock
from tallybayes.models.ensemble.stacking import LEAST
from tallybayes.models.forest.tree_classifier import TreeClassifier
from tallybayes.models.inputs.features import free_name
from tallybayes.models.one_dependence.one_dependence_classifier import OneDependenceClassifier
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.ensemble.members import Member


def ensemble_scores_of(model: AutoClassifier) -> PortableScorer:
    """Return the portable scores of an ensemble."""
    specs = [
        (name, domains[position].levels)
        for names, family, domains in model._column_specs()
        for position, name in enumerate(names)
        if family.cell_type == "codes"
    ]
    ordered = sorted(model.members_, key=_order)
    members = tuple(_member_scores(member, dict(specs)) for member in ordered)
    weights = np.array([member.spec.weight for member in ordered])
    classes = members[0].classes
    parts: list[Part] = [Pool(members, weights, float(np.exp(LEAST)))]
    none = Calibration("none", 0.0, 0.0, 0.0)
    return PortableScorer(classes, np.zeros(len(classes)), parts, none, "missing", model.input_format_.dates)


def _order(member: Member) -> int:
    """Return the rank of a member in the query: trees have many steps, and those of pairs are joined to all before."""
    return 0 if isinstance(member.model, TreeClassifier) else 1 + isinstance(member.model, OneDependenceClassifier)


def _member_scores(member: Member, levels: Mapping[Name, tuple[Any, ...]]) -> PortableScorer:
    """Return the scores of a member, with the columns of its view computed from those of the rows."""
    spec, model = member
    view = spec.view
    dates = model.input_format_.dates
    if isinstance(view, NumericBlock):
        columns = [Derived(name, None, value=value) for name, value in view.numbers]
        columns += [Derived(name, levels.get(name)) for name in view.indicator_columns]
        columns += [Derived(name, known, level=level) for name, known in view.levels for level in known]
        scores = scores_of(estimates_of(model), None, dates, {BLOCK: columns})
    else:
        scores = (
            tree_scores_of(model) if isinstance(model, TreeClassifier) else scores_of(estimates_of(model), None, dates)
        )
        taken = list(view.names)
        for name in view.indicator_columns:
            taken.append(free_name(f"{name} is missing", taken))
            scores = _renamed(scores, {taken[-1]: Derived(name, levels.get(name))})
    calibration = spec.calibration.calibration(tuple(scores.classes))
    if not isinstance(model, TreeClassifier):
        return scores._replace(calibration=calibration, least=LEAST)
    parts: list[Part] = [Pool((scores,), np.ones(1), float(np.exp(LEAST)))]
    return PortableScorer(scores.classes, np.zeros(len(scores.classes)), parts, calibration, "missing")


def _renamed(one: Any, columns: Mapping[Name, Derived]) -> Any:
    """Return a part or scorer that reads other columns."""

    def read(cell: Cell) -> Cell:
        return cell._replace(column=columns.get(cell.source, cell.column))

    match one:
        case PortableScorer():
            return one._replace(parts=[_renamed(part, columns) for part in one.parts])
        case Pool():
            return one._replace(members=tuple(_renamed(member, columns) for member in one.members))
        case Lookup():
            return one._replace(cell=read(one.cell))
    return one._replace(cells=tuple(map(read, one.cells)))
