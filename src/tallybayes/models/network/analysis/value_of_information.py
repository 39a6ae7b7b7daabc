"""Value of information: expected reduction of entropy or of costs by observing a node (Koller & Friedman, ch. 23)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.cost_matrix import finite_number, read_costs
from tallybayes.models.inputs.features import one_row
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.models.network.inference.queries import display_evidence, run_query
from tallybayes.models.network.inference.query_result import title_of
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.network.bayesian_network import BayesianNetwork

_SHOWN, _BAR = 12, 20
_NOTHING = 1e-12  # rounding error of a value of 0


def value_of_information(
    model: BayesianNetwork,
    target: Name,
    given: Mapping[Any, Any] | None = None,
    *,
    candidates: Names | None = None,
    cost: Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None = None,
    observation_costs: float | Mapping[Any, float] | None = None,
    do: Mapping[Any, Any] | None = None,
) -> ValueOfInformation:
    """Compute the value of observing each node for one target, before its value is known.

    In bits, it is the expected reduction of the target's entropy: its mutual information with the observed node. With
    costs, it is the expected reduction of the cost of the best decision, minus the observation cost. Nodes are
    evaluated one at a time (myopic value of information).

    Parameters
    ----------
    target : name
        A discrete node.
    given, do
        As for `query`.
    candidates : name, or sequence of names, optional
        Discrete nodes that may be observed. None takes all unobserved ones.
    cost : {true: {decided: cost}}, or array of shape (levels, levels), optional
        As for `decide` of classifiers: the cost of each decision by the true level of the target. The default with
        `observation_costs` is 1 for every error.
    observation_costs : number, or mapping from node to number, optional
        Costs of observing nodes, in the unit of `cost`; 0 for other nodes.

    Returns
    -------
    ValueOfInformation
        A mapping from node to its value of information, best first.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tables = {"fire": [0.99, 0.01], "smoke": [[0.99, 0.01], [0.1, 0.9]], "alarm": [[0.98, 0.02], [0.01, 0.99]]}
    >>> building = tb.BayesianNetwork.from_tables(
    ...     {"smoke": ["fire"], "alarm": ["fire"]}, dict.fromkeys(tables, (False, True)), tables)
    >>> building.value_of_information("fire")
    value of information about fire: entropy 0.0808 bits
             bits
      alarm  0.0521  █████████████
      smoke  0.0505  █████████████
    >>> cost = {True: {"stay": 100, "leave": 10}, False: {"stay": 0, "leave": 10}}
    >>> building.value_of_information("fire", {"alarm": True}, cost=cost, observation_costs={"smoke": 2})
    value of information about fire, given alarm = True: entropy 0.918 bits; best decision 'leave', expected cost 10
             bits    saved  cost  value
      smoke  0.6791  3.6    2     1.6
    """
    given = one_row(given)
    found = model._inference.intervened(do)
    require_labels(model, [target])
    nodes = _candidates(model, target, given, do, candidates)
    labels = labels_of(found.levels[target], None)
    decisions, costs = (labels, 1.0 - np.eye(len(labels))) if cost is None else read_costs(cost, labels)
    price = _prices(model, nodes, observation_costs)
    known, before = run_query(found, [target, *nodes], given, do)
    if target in known.codes:
        raise DataError(f"target {target!r} is observed.\n    Remove it from given= and do=.")
    shares = before.marginal(found.scope([target]))[:, 0]
    possible = np.flatnonzero(shares > 0)
    rows = known.take(np.zeros(len(possible), dtype=np.intp))
    rows = rows._replace(codes={**rows.codes, target: possible})
    joint = {node: np.zeros((len(shares), len(found.levels[node]))) for node in nodes}
    for part, answer in found.batches(rows, do or ()):
        for node in nodes:
            each = answer.marginal(found.scope([node])).T
            joint[node][possible[part]] = each * shares[possible[part], None]
    expected_costs = shares @ costs
    lines = {}
    for node, table in joint.items():
        saved = float(expected_costs.min() - (table.T @ costs).min(axis=1).sum())
        lines[node] = (_information(table), saved if saved > _NOTHING * np.abs(costs).max() else 0.0, price[node])
    in_costs = cost is not None or observation_costs is not None
    decision = (decisions.tolist()[int(expected_costs.argmin())], float(expected_costs.min())) if in_costs else None
    fixed = {**(given or {}), **(do or {})}
    measured = [node for node in found.structure.nodes if found.is_measured(node) and node not in fixed]
    return ValueOfInformation(
        target, display_evidence(given, do), _entropy(shares), lines, decision, measured if candidates is None else ()
    )


class ValueOfInformation(Mapping[Any, float]):
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
    >>> asked = tb.BayesianNetwork({"wet": ["sky"], "day": []}).fit(rows).value_of_information("sky")
    >>> asked.best, list(asked), round(asked["wet"], 3)
    ('wet', ['wet', 'day'], 0.189)
    """

    def __init__(
        self,
        target: Name,
        given: Mapping[Any, Any],
        entropy: float,
        lines: Mapping[Any, tuple[float, float, float]],
        decision: tuple[Any, float] | None,
        measured: Sequence[Name] = (),
    ) -> None:
        self.target, self.given, self.entropy, self.measured = target, dict(given), entropy, tuple(measured)
        self.decision: Any = None if decision is None else decision[0]
        self.expected_cost: float | None = None if decision is None else decision[1]
        worth = {node: bits if decision is None else saved - price for node, (bits, saved, price) in lines.items()}
        order = sorted(worth, key=lambda node: -round(worth[node], 12))  # stable: rounding must not order equals
        self._worth = {node: worth[node] for node in order}
        self.bits, self.saved, self.observation_costs = ({node: lines[node][k] for node in order} for k in range(3))

    @property
    def best(self) -> Name | None:
        """The node to observe; None if no node is worth its cost."""
        first = next(iter(self._worth), None)
        return first if first is not None and self._worth[first] > _NOTHING else None

    def __getitem__(self, node: Name) -> float:
        return self._worth[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._worth)

    def __len__(self) -> int:
        return len(self._worth)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame: a row for every node, best first."""
        import pandas as pd

        frame = {"node": list(self), "bits": list(self.bits.values())}
        if self.expected_cost is not None:
            frame |= {name: list(getattr(self, name).values()) for name in ("saved", "observation_costs")}
            frame |= {"value": list(self.values())}
        return pd.DataFrame(frame)

    def _title(self) -> str:
        known = title_of(self.given)
        so_far = (
            f"; best decision {self.decision!r}, expected cost {self.expected_cost:.4g}"
            if self.decision is not None
            else ""
        )
        return (
            f"value of information about {printable(self.target)}{', given ' + known if known else ''}: "
            f"entropy {self.entropy:.3g} bits{so_far}"
        )

    def _table(self) -> tuple[list[str], list[list[str]]]:
        if self.expected_cost is None:
            share = {node: bits / self.entropy if self.entropy > 0 else 0.0 for node, bits in self.bits.items()}
            rows = [[printable(node), f"{self.bits[node]:.4f}", "█" * round(_BAR * share[node])] for node in self]
            return ["", "bits", ""], rows
        numbers = [(self.bits[node], self.saved[node], self.observation_costs[node], self[node]) for node in self]
        shown = [[f"{line[0]:.4f}", *(f"{value:.4g}" for value in line[1:])] for line in numbers]
        return ["", "bits", "saved", "cost", "value"], [
            [printable(n), *line] for n, line in zip(self, shown, strict=True)
        ]

    def __repr__(self) -> str:
        head, rows = self._table()
        text = text_table([head, *rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            text.append(f"  … {len(rows) - _SHOWN} of less value")
        return "\n".join([self._title(), *text, *(f"  {note}" for note in self._said())])

    def _said(self) -> list[str]:
        """Return the notes below the table."""
        nothing = ["no discrete node is worth observing" if self.measured else "no node is worth observing"]
        names = ", ".join(map(printable, self.measured[:_SHOWN])) + (", …" if len(self.measured) > _SHOWN else "")
        left = [f"continuous nodes, not evaluated: {names}"] if self.measured else []
        return (nothing if self.best is None else []) + left

    def _repr_html_(self) -> str:
        head, rows = self._table()
        return html_parts((self._title(), ["node", *head[1:]], rows), *self._said())


def _information(joint: np.ndarray) -> float:
    """Return the mutual information of a joint table of two nodes, in bits."""
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    found = float(np.sum(joint[some] * np.log2(joint[some] / alone[some])))
    return found if found > _NOTHING else 0.0


def _entropy(shares: np.ndarray) -> float:
    some = shares[shares > 0]
    return max(0.0, float(-np.sum(some * np.log2(some))))


def _candidates(model: BayesianNetwork, target: Name, given: Any, do: Any, candidates: Any) -> list[Name]:
    """Return the nodes to evaluate."""
    done = set(do or ())
    known = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | done
    if candidates is None:
        return [node for node in model._inference.levels if node != target and node not in known]
    nodes = listed(candidates)
    require_labels(model, nodes)
    wrong = [node for node in nodes if node == target or node in known]
    if wrong:
        what = "the target" if wrong[0] == target else "already observed"
        raise DataError(f"candidate {wrong[0]!r} is {what}; expected unobserved nodes.")
    return list(dict.fromkeys(nodes))


def _prices(model: BayesianNetwork, nodes: list[Name], observation_costs: Any) -> dict[Name, float]:
    """Return the observation cost of every node."""
    given = (
        observation_costs
        if isinstance(observation_costs, Mapping)
        else dict.fromkeys(nodes, 0.0 if observation_costs is None else observation_costs)
    )
    model.graph_.require(given)
    found = {node: finite_number(value, f"the observation cost of {node!r}") for node, value in given.items()}
    negative = [node for node, value in found.items() if value < 0]
    if negative:
        raise DataError(f"the observation cost of {negative[0]!r} is {found[negative[0]]!r}; expected at least 0.")
    return {node: found.get(node, 0.0) for node in nodes}
