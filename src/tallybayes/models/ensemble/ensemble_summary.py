"""Summary of the automatic classifier: its members, their weights and their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.html import html_text
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.inspection.model_summary import Summary


class MemberSummary(NamedTuple):
    """One model of the ensemble: its name, weight and summary."""

    name: str
    weight: float
    summary: Summary


class EnsembleSummary:
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

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per column of every member."""
        import pandas as pd

        parts = [member.summary.to_frame().assign(member=member.name, weight=member.weight) for member in self.members]
        rows = [row for part in parts for row in part.to_dict("records")]  # pandas.concat warns of all-missing columns
        return pd.DataFrame(rows, columns=list(parts[0].columns))

    def __repr__(self) -> str:
        lines = [self.title]
        for member in self.members:
            _, *columns = repr(member.summary).splitlines()
            lines += [f"{member.weight:.2f} {member.name}", *columns]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = (
            html_text(f"{member.weight:.2f} {member.name}") + member.summary._repr_html_() for member in self.members
        )
        return html_text(self.title) + "".join(shown)


def summary(model: Any) -> EnsembleSummary:
    """Return a summary of the members with their weights and columns.

    Returns
    -------
    EnsembleSummary
        It prints as tables.
    """
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
