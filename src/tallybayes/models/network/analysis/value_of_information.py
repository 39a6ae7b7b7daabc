"""Value of information: expected reduction of entropy or of costs by observing a node (Koller & Friedman, ch. 23)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.cost_matrix import finite_number, read_costs
from tallybayes.models.inputs.features import node_list, one_row
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.queries import GivenNodes, display_evidence, run_query
from tallybayes.models.network.inference.query_result import NodeMapping, format_evidence
from tallybayes.models.network.structure.structure_scores import conditional_information
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

_SHOWN, _BAR = 12, 20
_NOTHING = 1e-12  # rounding error of a value of 0

Costs = Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None
ObservationCosts = float | Mapping[Any, float] | None


def value_of_information(
    network: EstimatedNetwork,
    target: Name,
    given: GivenNodes = None,
    candidates: Names | None = None,
    cost: Costs = None,
    observation_costs: ObservationCosts = None,
    do: GivenNodes = None,
) -> ValueOfInformation:
    """Return the value of observing each node for one target, before its value is known."""
    given = one_row(given)
    inference = network.inference.intervened(do)
    inference.require_discrete([target])
    nodes = _candidates(inference, target, given, do, candidates)
    levels = labels_of(inference.levels[target], None)
    decisions, costs = (levels, 1.0 - np.eye(len(levels))) if cost is None else read_costs(cost, levels)
    node_costs = _node_costs(inference, nodes, observation_costs)
    evidence, prior = run_query(inference, [target, *nodes], given, do, [[target]])
    if target in evidence.codes:
        raise DataError(f"target {target!r} is observed.\n    Remove it from given= and do=.")
    proba = prior.joint([target])[0]
    possible = np.flatnonzero(proba > 0)
    rows = evidence.take(np.zeros(len(possible), dtype=np.intp)).with_codes({target: possible})
    joint = {node: np.zeros((len(proba), len(inference.levels[node]))) for node in nodes}
    for batch, posterior in inference.posteriors(rows, inference.scopes_of(nodes)):
        for node in nodes:
            joint[node][possible[batch]] = posterior.joint([node]) * proba[possible[batch], None]
    expected_costs = proba @ costs
    values = {}
    for node, table in joint.items():
        saved = float(expected_costs.min() - (table.T @ costs).min(axis=1).sum())
        saved = saved if saved > _NOTHING * np.abs(costs).max() else 0.0
        values[node] = (_mutual_information(table), saved, node_costs[node])
    decision = None
    if cost is not None or observation_costs is not None:
        decision = decisions.tolist()[int(expected_costs.argmin())], float(expected_costs.min())
    fixed = {**(given or {}), **(do or {})}
    continuous = [node for node in inference.structure.nodes if inference.is_continuous(node) and node not in fixed]
    not_evaluated = continuous if candidates is None else ()
    return ValueOfInformation(
        target, display_evidence(given, do), float(entr(proba).sum()) / math.log(2), values, decision, not_evaluated
    )


class ValueOfInformation(Result, NodeMapping[float]):
    """Value of information: a mapping from node to bits or, with costs, to the expected saving, best first.

    Attributes
    ----------
    target : name
    given : dict
        The evidence.
    entropy : float
        The entropy of the target in bits.
    best : name or None
        The node to observe; None if no node is worth its cost.
    bits, saved, observation_costs : dict from node to float
        The expected reduction of the entropy, that of the costs, and the observation costs.
    measured : tuple of names
        Unobserved continuous nodes, which are not evaluated.
    decision, expected_cost
        The best decision without further observations, and its expected cost; None without costs.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "sun", "rain", "rain"], "wet": [0, 0, 1, 1], "day": [0, 1, 0, 1]}
    >>> value = tb.BayesianNetwork({"wet": ["sky"], "day": []}).fit(rows).value_of_information("sky")
    >>> value.best, list(value), round(value["wet"], 3)
    ('wet', ['wet', 'day'], 0.189)
    """

    def __init__(
        self,
        target: Name,
        given: Mapping[Any, Any],
        entropy: float,
        values: Mapping[Any, tuple[float, float, float]],
        decision: tuple[Any, float] | None,
        measured: Sequence[Name] = (),
    ) -> None:
        self.target = target
        self.given = dict(given)
        self.entropy = entropy
        self.measured = tuple(measured)
        self.decision: Any = None if decision is None else decision[0]
        self.expected_cost: float | None = None if decision is None else decision[1]
        net = {node: bits if decision is None else saved - price for node, (bits, saved, price) in values.items()}
        order = sorted(net, key=lambda node: -round(net[node], 12))  # stable: rounding must not order equal values
        super().__init__({node: net[node] for node in order})
        self.bits, self.saved, self.observation_costs = ({node: values[node][k] for node in order} for k in range(3))

    @property
    def best(self) -> Name | None:
        """The node to observe; None if no node is worth its cost."""
        first = next(iter(self._values), None)
        return first if first is not None and self._values[first] > _NOTHING else None

    def _frame_data(self) -> FrameData:
        costs = {} if self.expected_cost is None else {"saved": self.saved, "observation_costs": self.observation_costs}
        columns = {"bits": self.bits, **costs, **({"value": self._values} if costs else {})}
        return {"node": list(self), **{name: list(values.values()) for name, values in columns.items()}}

    def _content(self) -> list[str | ResultTable]:
        evidence = format_evidence(self.given)
        condition = f", given {evidence}" if evidence else ""
        title = f"value of information about {printable(self.target)}{condition}: entropy {self.entropy:.3g} bits"
        head = ["", "bits", ""]
        unit = _BAR / self.entropy if self.entropy > 0 else 0.0
        cells = {node: ["█" * round(unit * bits)] for node, bits in self.bits.items()}
        if self.expected_cost is not None:
            title += f"; best decision {self.decision!r}, expected cost {self.expected_cost:.4g}"
            head = ["", "bits", "saved", "cost", "value"]
            for node in self:
                numbers = (self.saved[node], self.observation_costs[node], self[node])
                cells[node] = [f"{value:.4g}" for value in numbers]
        rows = [[printable(node), f"{bits:.4f}", *cells[node]] for node, bits in self.bits.items()]
        return [ResultTable(rows, head, title, max_rows=_SHOWN), *(f"  {note}" for note in self._notes())]

    def _notes(self) -> list[str]:
        """Return the notes below the table."""
        notes = []
        if self.best is None:
            notes.append("no discrete node is worth observing" if self.measured else "no node is worth observing")
        if self.measured:
            more = ", …" if len(self.measured) > _SHOWN else ""
            notes.append(f"continuous nodes, not evaluated: {', '.join(map(printable, self.measured[:_SHOWN]))}{more}")
        return notes


def _mutual_information(joint: np.ndarray) -> float:
    """Return the mutual information of a joint table of two nodes, in bits."""
    information = conditional_information(joint[None]) / math.log(2)
    return information if information > _NOTHING else 0.0


def _candidates(
    inference: NetworkInference, target: Name, given: GivenNodes, do: GivenNodes, candidates: Names | None
) -> list[Name]:
    """Return the nodes to evaluate."""
    observed = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | set(do or ())
    if candidates is None:
        return [node for node in inference.levels if node != target and node not in observed]
    nodes = node_list(candidates)
    inference.require_discrete(nodes)
    wrong = [node for node in nodes if node == target or node in observed]
    if wrong:
        what = "the target" if wrong[0] == target else "already observed"
        raise DataError(f"candidate {wrong[0]!r} is {what}; expected unobserved nodes.")
    return list(dict.fromkeys(nodes))


def _node_costs(
    inference: NetworkInference, nodes: list[Name], observation_costs: ObservationCosts
) -> dict[Name, float]:
    """Return the observation cost of every node."""
    if isinstance(observation_costs, Mapping):
        given = dict(observation_costs)
    else:
        given = dict.fromkeys(nodes, 0.0 if observation_costs is None else observation_costs)
    inference.structure.require(given)
    costs = {node: finite_number(value, f"the observation cost of {node!r}") for node, value in given.items()}
    negative = [node for node, value in costs.items() if value < 0]
    if negative:
        raise DataError(f"the observation cost of {negative[0]!r} is {costs[negative[0]]!r}; expected at least 0.")
    return {node: costs.get(node, 0.0) for node in nodes}
