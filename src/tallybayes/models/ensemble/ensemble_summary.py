"""What a chosen classifier consists of: its members, their weights, and the columns of each."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.html import html_text
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.inspection.model_summary import Summary


class MemberSummary(NamedTuple):
    """One model of a mixture: its name, its weight, and what it consists of."""

    name: str
    weight: float
    summary: Summary


class ChosenSummary:
    """What a chosen classifier consists of. Made by ``model.summary()``.

    Attributes
    ----------
    title : str
        The model, its rows and its classes.
    members : list of MemberSummary
        Heaviest first.
    """

    def __init__(self, title: str, members: list[MemberSummary]) -> None:
        self.title = title
        self.members = members

    def to_frame(self) -> Any:
        """One line for every column of every member, as a pandas data frame."""
        import pandas as pd

        parts = [one.summary.to_frame().assign(member=one.name, weight=one.weight) for one in self.members]
        lines = [line for part in parts for line in part.to_dict("records")]  # concat minds columns without a value
        return pd.DataFrame(lines, columns=list(parts[0].columns))

    def __repr__(self) -> str:
        lines = [self.title]
        for one in self.members:
            _, *columns = repr(one.summary).splitlines()
            lines += [f"{one.weight:.2f} {one.name}", *columns]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        shown = (html_text(f"{one.weight:.2f} {one.name}") + one.summary._repr_html_() for one in self.members)
        return html_text(self.title) + "".join(shown)


def summary(model: Any) -> ChosenSummary:
    """What the model consists of: its members with their weights, and the columns of each.

    Returns
    -------
    ChosenSummary
        It prints as tables.
    """
    check_is_fitted(model, "members_")
    found = []
    for choice, member in model.members_:
        one = member.summary()
        names = choice.view.column_names()
        within = ", ".join(str(name) for name in names.values())  # of a block
        one.columns = [line._replace(column=within if line.column == BLOCK else line.column) for line in one.columns]
        found.append(MemberSummary(choice.name, choice.weight, one))
    _, _, rest = found[0].summary.title.partition(" of ")
    return ChosenSummary(f"{type(model).__name__} of {rest}", found)
