"""Effects of measured nodes: by how much another moves where one is set, beside what is seen where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, EstimateError
from tallybayes.models.network.analysis.adjustment_sets import Identification, identify
from tallybayes.models.network.inference.queries import query
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.network.bayesian_network import BayesianNetwork


class MeasuredEffect:
    """By how much the mean of a measured node moves for one more of another, where that is set and where it is seen.

    Set, it is the same everywhere: means are lines in measured parents, and no label depends on a number. Seen, it is
    the slope of the best line, cov(of, on) / var(of).

    Attributes
    ----------
    of, on : names
    interventional, observational, difference : float
        The slope where `of` is set, the one that is seen, and by how much the first is above the second.
    adjusted : tuple of names
        What the first follows from by adjusting for; of a front door, the nodes that carry the effect.
    criterion : {"back-door", "front-door", "none"}
        How it follows from what is observed; "none" where no arrows lead from one node to the other.
    given : dict

    Examples
    --------
    >>> import tallybayes as tb
    >>> health = tb.BayesianNetwork.from_parameters({
    ...     "age": {"intercept": 50, "deviation": 10},
    ...     "sport": {"parents": ["age"], "intercept": 10, "weights": {"age": -0.1}, "deviation": 1},
    ...     "pulse": {"parents": ["age", "sport"], "intercept": 60, "weights": {"age": 0.4, "sport": -1},
    ...               "deviation": 5}})
    >>> health.effect("sport", "pulse")                      # the young do more of it, and have a lower pulse anyway
    effect of sport on pulse, adjusted for age: for one more of sport
      if set  if seen  difference
      -1      -3       +2
    """

    def __init__(self, how: Identification, slopes: tuple[float, float], given: Mapping[Any, Any]) -> None:
        self.of, self.on, self.criterion, self.adjusted, _ = self._how = how
        self.interventional, self.observational = slopes
        self.difference, self.given = slopes[0] - slopes[1], dict(given)

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """What a picture of the network shows of it."""
        return self._how.marks

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame of one line."""
        import pandas as pd

        head, _ = self._table()
        return pd.DataFrame([[self.interventional, self.observational, self.difference]], columns=head)

    def _title(self) -> str:
        return f"{self._how.title(self.given)}: for one more of {self.of}"

    def _table(self) -> tuple[list[str], list[str]]:
        cells = [f"{self.interventional:.5g}", f"{self.observational:.5g}", f"{round(self.difference, 12) + 0.0:+.5g}"]
        return ["if set", "if seen", "difference"], cells

    def __repr__(self) -> str:
        return "\n".join([self._title(), *text_table(self._table())])

    def _repr_html_(self) -> str:
        head, cells = self._table()
        return html_parts((self._title(), head, [cells]))


def measured_effect(
    model: BayesianNetwork,
    of: Name,
    on: Name,
    given: Mapping[Name, Any],
    adjust: Sequence[Name] | None,
    hidden: Sequence[Name],
) -> MeasuredEffect:
    """The effect of a measured node on another; parameters as for `effects.effect`.

    What is adjusted for says whether the effect follows from what is observed; its number is then that of setting the
    node, whatever is adjusted for, since no value of a Gaussian node is impossible.
    """
    found, graph = model._inference, model.graph_
    if of not in found.places or on not in found.places:
        raise DataError(
            f"{of!r} is measured, and nothing leads from it to {on!r}: setting it changes nothing there.\n"
            "    Ask for its effect on a node that is a line in measured parents."
        )
    sizes = {node: len(found.levels[node]) if node in found.levels else 1 for node in graph.nodes}
    how = identify(graph, (of, on), given, adjust, hidden, sizes)
    if found.places[of][1] in found.leaves[found.leaf_of(of)].constant:
        raise EstimateError(f"{of!r} is the same in every row, so its effect on {on!r} is not seen.")
    together: Any = query(model, (of, on), given)
    slope, deviation = 0.0, float(together.std[0])
    if how.criterion != "none":
        ends: list[Any] = [
            query(model, on, given, do={of: float(together.mean[0]) + side * deviation}) for side in (-1, 1)
        ]
        slope = (ends[1].mean - ends[0].mean) / (2 * deviation)
    seen = float(together.covariance[0, 1] / together.covariance[0, 0])
    return MeasuredEffect(how, (float(slope), seen), given)
