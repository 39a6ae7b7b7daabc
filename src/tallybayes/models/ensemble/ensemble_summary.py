"""Summary of the automatic classifier: its members, their weights and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.inspection.model_summary import Summary
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier


class MemberSummary(NamedTuple):
    """One model of the ensemble: its name, weight and summary."""

    name: str
    weight: float
    summary: Summary


class EnsembleSummary(Result):
    """Summary of an automatic classifier. `AutoClassifier.summary` returns it.

    Attributes
    ----------
    title : str
        The model, its number of rows and classes.
    members : list of MemberSummary
        In order of decreasing weight.
    """

    def __init__(self, title: str, members: list[MemberSummary]) -> None:
        self.title = title
        self.members = members

    def _frame_data(self) -> FrameData:
        return [
            {**column._asdict(), "member": member.name, "weight": member.weight}
            for member in self.members
            for column in member.summary.columns
        ]

    def _content(self) -> Iterator[str | ResultTable]:
        yield self.title
        for member in self.members:
            yield f"{member.weight:.2f} {member.name}"
            yield from member.summary.tables()


def summary(model: AutoClassifier) -> EnsembleSummary:
    """Return a summary of the members with their weights and columns."""
    check_is_fitted(model, "members_")
    members = []
    for spec, member in model.members_:
        member_summary = member.summary()
        names = spec.view.column_names()
        within = ", ".join(str(name) for name in names.values())  # of a block
        member_summary.columns = [
            line._replace(column=within if line.column == BLOCK else line.column) for line in member_summary.columns
        ]
        members.append(MemberSummary(spec.name, spec.weight, member_summary))
    _, _, rest = members[0].summary.title.partition(" of ")
    return EnsembleSummary(f"{type(model).__name__} of {rest}", members)
