"""Causal effects of continuous treatments: slopes of the outcome's mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallybayes.errors import DataError, EstimateError
from tallybayes.models.network.analysis.adjustment_sets import IdentifiedEffect, identify
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.queries import query
from tallybayes.results.result import FrameData, ResultTable
from tallybayes.tally.factor import Name

_COLUMNS = ("interventional", "observational", "difference")


class LinearCausalEffect(IdentifiedEffect):
    """Change of the mean of a continuous outcome per unit of a continuous treatment.

    The interventional slope is constant, because means are linear in continuous parents and no discrete node depends on
    a continuous one. The observational slope is that of the best line, cov(treatment, outcome) / var(treatment).

    Attributes
    ----------
    treatment, outcome : names
    interventional, observational, difference : float
        The slope under intervention, the observational slope, and the first minus the second.
    adjusted : tuple of names
        The adjustment set; with the front-door criterion, the mediators.
    criterion : {"back-door", "front-door", "none"}
        The criterion that identifies the effect; "none" if there is no directed path from treatment to outcome.
    given : dict

    Examples
    --------
    >>> import tallybayes as tb
    >>> health = tb.BayesianNetwork.from_parameters({
    ...     "age": {"intercept": 50, "std": 10},
    ...     "sport": {"parents": ["age"], "intercept": 10, "coefficients": {"age": -0.1}, "std": 1},
    ...     "pulse": {"parents": ["age", "sport"], "intercept": 60, "coefficients": {"age": 0.4, "sport": -1},
    ...               "std": 5}})
    >>> health.causal_effect("sport", "pulse")  # age confounds: the young do more sport and have a lower pulse
    effect of sport on pulse, adjusted for age: per unit of sport
      interventional  observational  difference
      -1              -3             +2
    """

    def _frame_data(self) -> FrameData:
        return {name: [getattr(self, name)] for name in _COLUMNS}

    def _content(self) -> list[ResultTable]:
        cells = [f"{self.interventional:.5g}", f"{self.observational:.5g}", f"{round(self.difference, 12) + 0.0:+.5g}"]
        title = f"{self._title}: per unit of {self.treatment}"
        return [ResultTable([cells], _COLUMNS, title)]


def linear_causal_effect(
    network: EstimatedNetwork,
    graph: Graph,
    treatment: Name,
    outcome: Name,
    given: Mapping[Name, Any],
    adjust: Sequence[Name] | None,
    unobserved: Sequence[Name],
) -> LinearCausalEffect:
    """Return the causal effect of a continuous treatment; parameters as for `causal_effect`.

    The adjustment set decides whether the effect is identifiable. The slope is then computed by intervention, because
    every value of a Gaussian node is possible.
    """
    inference = network.inference
    if treatment not in inference.component_index or outcome not in inference.component_index:
        raise DataError(
            f"{treatment!r} is continuous, and no edge leads from it to {outcome!r}: its effect is zero.\n"
            "    Use an outcome with continuous parents."
        )
    sizes = {node: len(inference.levels[node]) if node in inference.levels else 1 for node in graph.nodes}
    identification = identify(graph, (treatment, outcome), given, adjust, unobserved, sizes)
    leaf, column = inference.component_index[treatment]
    if column in inference.leaves[leaf].constant:
        raise EstimateError(
            f"{treatment!r} is the same in every row, so its effect on {outcome!r} is not identifiable.\n"
            "    Fit rows in which it varies."
        )
    joint = query(network, (treatment, outcome), given)
    mean, std = float(joint.mean[0]), float(joint.std[0])
    slope = 0.0
    if identification.criterion != "none":
        low, high = (query(network, outcome, given, {treatment: mean + sign * std}).mean for sign in (-1, 1))
        slope = (high - low) / (2 * std)
    observational = float(joint.covariance[0, 1] / joint.covariance[0, 0])
    return LinearCausalEffect(identification, float(slope), observational, given)
