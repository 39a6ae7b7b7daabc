"""Which question to ask next: what each answer would tell of a node, in bits, or save in costs."""

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
_NOTHING = 1e-12  # what rounding leaves of a question that tells nothing


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
    """What asking for each node would tell of one of them, before its answer is known.

    In bits it is the expected fall of the target's entropy, its mutual information with the node asked for. With costs
    it is how much less the best decision is expected to cost once the answer is known, less the price of asking (the
    value of information). Each node is judged as if it were the last one asked for.

    Parameters
    ----------
    target : name
        The node that is to be found out, of labels.
    given, do
        As for `query`.
    candidates : name, or sequence of names, optional
        What may be asked for: nodes with labels. None takes all that are not known.
    cost : {true: {decided: cost}}, or array of shape (levels, levels), optional
        As for the `decide` of classifiers: what deciding costs, by the level of the target that is true. Left out where
        there are observation_costs, every error costs 1.
    observation_costs : number, or mapping from node to number, optional
        What asking costs, in the unit of `cost`; nodes that are not named are free.

    Returns
    -------
    ValueOfInformation
        A mapping from node to what asking for it is worth, best first.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tables = {"fire": [0.99, 0.01], "smoke": [[0.99, 0.01], [0.1, 0.9]], "alarm": [[0.98, 0.02], [0.01, 0.99]]}
    >>> building = tb.BayesianNetwork.from_tables(
    ...     {"smoke": ["fire"], "alarm": ["fire"]}, dict.fromkeys(tables, (False, True)), tables)
    >>> building.value_of_information("fire")
    next question about fire: 0.0808 bits are not known
             bits
      alarm  0.0521  █████████████
      smoke  0.0505  █████████████
    >>> cost = {True: {"stay": 100, "leave": 10}, False: {"stay": 0, "leave": 10}}
    >>> building.value_of_information("fire", {"alarm": True}, cost=cost, observation_costs={"smoke": 2})
    next question about fire, given alarm = True: 0.918 bits are not known; now 'leave', expected to cost 10
             bits    saved  price  worth
      smoke  0.6791  3.6    2      1.6
    """
    given = one_row(given)
    found = model._inference.under(do)
    require_labels(model, [target])
    asked = _candidates(model, target, given, do, candidates)
    labels = labels_of(found.levels[target], None)
    decisions, costs = (labels, 1.0 - np.eye(len(labels))) if cost is None else read_costs(cost, labels)
    price = _prices(model, asked, observation_costs)
    known, before = run_query(found, [target, *asked], given, do)
    if target in known.codes:
        raise DataError(f"target {target!r} is known already.\n    Leave it out of given= and do=.")
    shares = before.marginal(found.scope([target]))[:, 0]
    possible = np.flatnonzero(shares > 0)
    rows = known.take(np.zeros(len(possible), dtype=np.intp))
    rows = rows._replace(codes={**rows.codes, target: possible})
    joint = {node: np.zeros((len(shares), len(found.levels[node]))) for node in asked}
    for part, answer in found.batches(rows, do or ()):
        for node in asked:
            each = answer.marginal(found.scope([node])).T
            joint[node][possible[part]] = each * shares[possible[part], None]
    now = shares @ costs
    lines = {}
    for node, table in joint.items():
        saved = float(now.min() - (table.T @ costs).min(axis=1).sum())
        lines[node] = (_information(table), saved if saved > _NOTHING * np.abs(costs).max() else 0.0, price[node])
    in_costs = cost is not None or observation_costs is not None
    decision = (decisions.tolist()[int(now.argmin())], float(now.min())) if in_costs else None
    told = {**(given or {}), **(do or {})}
    measured = [node for node in found.structure.nodes if found.is_measured(node) and node not in told]
    return ValueOfInformation(
        target, display_evidence(given, do), _entropy(shares), lines, decision, measured if candidates is None else ()
    )


class ValueOfInformation(Mapping[Any, float]):
    """What asking for each node is worth: a mapping from node to bits or, with costs, to what is saved, best first.

    Attributes
    ----------
    target : name
    given : dict
        What was known.
    entropy : float
        The bits of the target that are not known yet.
    best : name or None
        What to ask for; None where nothing is worth its price.
    bits, saved, observation_costs : dict from node to float
        The expected fall of the entropy, and of the costs before the price of asking.
    measured : tuple of names
        Nodes that are not known, and whose worth is not told: no levels of theirs could be the answer.
    decision, expected_cost
        The best decision so far, and what it is expected to cost; None without costs.

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
        """What to ask for, or None where nothing is worth it."""
        first = next(iter(self._worth), None)
        return first if first is not None and self._worth[first] > _NOTHING else None

    def __getitem__(self, node: Name) -> float:
        return self._worth[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._worth)

    def __len__(self) -> int:
        return len(self._worth)

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: a line for every node, best first."""
        import pandas as pd

        frame = {"node": list(self), "bits": list(self.bits.values())}
        if self.expected_cost is not None:
            frame |= {name: list(getattr(self, name).values()) for name in ("saved", "observation_costs")}
            frame |= {"worth": list(self.values())}
        return pd.DataFrame(frame)

    def _title(self) -> str:
        known = title_of(self.given)
        so_far = (
            f"; now {self.decision!r}, expected to cost {self.expected_cost:.4g}" if self.decision is not None else ""
        )
        return (
            f"next question about {printable(self.target)}{', given ' + known if known else ''}: "
            f"{self.entropy:.3g} bits are not known{so_far}"
        )

    def _table(self) -> tuple[list[str], list[list[str]]]:
        if self.expected_cost is None:
            share = {node: bits / self.entropy if self.entropy > 0 else 0.0 for node, bits in self.bits.items()}
            rows = [[printable(node), f"{self.bits[node]:.4f}", "█" * round(_BAR * share[node])] for node in self]
            return ["", "bits", ""], rows
        numbers = [(self.bits[node], self.saved[node], self.observation_costs[node], self[node]) for node in self]
        shown = [[f"{line[0]:.4f}", *(f"{value:.4g}" for value in line[1:])] for line in numbers]
        return ["", "bits", "saved", "price", "worth"], [
            [printable(n), *line] for n, line in zip(self, shown, strict=True)
        ]

    def __repr__(self) -> str:
        head, rows = self._table()
        text = text_table([head, *rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            text.append(f"  … {len(rows) - _SHOWN} worth less")
        return "\n".join([self._title(), *text, *(f"  {said}" for said in self._said())])

    def _said(self) -> list[str]:
        """What stands below the table."""
        nothing = ["nothing is worth asking for" + (" of the labels" if self.measured else "")]
        names = ", ".join(map(printable, self.measured[:_SHOWN])) + (", …" if len(self.measured) > _SHOWN else "")
        left = [f"measured, so not told: {names}"] if self.measured else []
        return (nothing if self.best is None else []) + left

    def _repr_html_(self) -> str:
        head, rows = self._table()
        return html_parts((self._title(), ["node", *head[1:]], rows), *self._said())


def _information(joint: np.ndarray) -> float:
    """The mutual information of a table of two nodes, in bits."""
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    found = float(np.sum(joint[some] * np.log2(joint[some] / alone[some])))
    return found if found > _NOTHING else 0.0


def _entropy(shares: np.ndarray) -> float:
    some = shares[shares > 0]
    return max(0.0, float(-np.sum(some * np.log2(some))))


def _candidates(model: BayesianNetwork, target: Name, given: Any, do: Any, candidates: Any) -> list[Name]:
    """What may be asked for."""
    done = set(do or ())
    known = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | done
    if candidates is None:
        return [node for node in model._inference.levels if node != target and node not in known]
    asked = listed(candidates)
    require_labels(model, asked)
    wrong = [node for node in asked if node == target or node in known]
    if wrong:
        what = "the target" if wrong[0] == target else "known already"
        raise DataError(f"candidate {wrong[0]!r} is {what}; expected nodes that may still be asked for.")
    return list(dict.fromkeys(asked))


def _prices(model: BayesianNetwork, asked: list[Name], observation_costs: Any) -> dict[Name, float]:
    """The price of every question."""
    given = (
        observation_costs
        if isinstance(observation_costs, Mapping)
        else dict.fromkeys(asked, 0.0 if observation_costs is None else observation_costs)
    )
    model.graph_.require(given)
    found = {node: finite_number(value, f"the price of {node!r}") for node, value in given.items()}
    negative = [node for node, value in found.items() if value < 0]
    if negative:
        raise DataError(f"the price of {negative[0]!r} is {found[negative[0]]!r}; expected at least 0.")
    return {node: found.get(node, 0.0) for node in asked}
