"""Causal effects: interventional distributions identified from the observational one (Pearl 2009)."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.models.inputs.features import node_list, one_row
from tallybayes.models.network.analysis.adjustment_sets import Identification, IdentifiedEffect, identify
from tallybayes.models.network.analysis.linear_causal_effect import LinearCausalEffect, linear_causal_effect
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.queries import GivenNodes, run_query
from tallybayes.models.network.inference.query_result import QueryResult, format_evidence
from tallybayes.results.result import FrameData, ResultTable
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

_SHOWN = 12


def causal_effect(
    network: EstimatedNetwork,
    graph: Graph,
    treatment: Name,
    outcome: Name,
    given: GivenNodes = None,
    adjust: Names | None = None,
    unobserved: Names = (),
) -> CausalEffect | LinearCausalEffect:
    """Return the causal effect of a treatment on an outcome; parameters as for `BayesianNetwork.causal_effect`."""
    inference = network.inference
    given = one_row(given)
    conditions = dict(given or {})
    hidden = node_list(unobserved)
    adjustment_set = None if adjust is None else node_list(adjust)
    graph.require([treatment, outcome, *hidden, *conditions, *(adjustment_set or ())])
    _check_roles(inference, graph, treatment, outcome, hidden, conditions)
    if inference.is_continuous(treatment):
        return linear_causal_effect(network, graph, treatment, outcome, conditions, adjustment_set, hidden)
    inference.require_discrete(adjustment_set or ())
    sizes = {node: len(levels) for node, levels in inference.levels.items()}  # only discrete nodes are summed over
    identification = identify(graph, (treatment, outcome), conditions, adjustment_set, hidden, sizes)
    adjusted = identification.adjusted
    means, weights = _outcome_means(inference, (treatment, *adjusted), outcome, given)
    interventional, without_rows = _adjust(means, weights, identification.criterion)
    levels = inference.levels[treatment]
    undefined = {
        levels[x]: dict(zip(adjusted, _levels_at(inference, adjusted, z), strict=True)) for x, z in without_rows.items()
    }
    if len(undefined) == len(levels):
        raise _undefined_effect(treatment, outcome, *next(iter(undefined.items())))
    with np.errstate(divide="ignore", invalid="ignore"):
        observational = np.einsum("xz,xzk->xk", weights, means) / weights.sum(axis=1)[:, None]
    levels_of_both = levels, inference.levels.get(outcome)
    return CausalEffect(identification, levels_of_both, interventional, observational, conditions, undefined)


class CausalEffect(IdentifiedEffect, Mapping[Any, Any]):
    """Causal effect: a mapping from levels of the treatment to p(outcome | do(treatment = level)), or to means.

    Attributes
    ----------
    treatment, outcome : names
    adjusted : tuple of names
        The adjustment set; with the front-door criterion, the mediators.
    criterion : {"back-door", "front-door", "none"}
        The criterion that identifies the effect; "none" if there is no directed path from treatment to outcome.
    interventional, observational, difference : ndarray of shape (n_levels of treatment, n_levels of outcome)
        p(outcome | do(treatment)), p(outcome | treatment), and the first minus the second; for a continuous outcome
        means of shape (n_levels of treatment,). NaN for levels that never occur.
    given : dict
        The levels conditioned on.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sun": [1, 1, 0, 0, 1], "ice": [1, 1, 0, 0, 0], "burn": [1, 1, 0, 0, 1]}
    >>> network = tb.BayesianNetwork({"ice": ["sun"], "burn": ["sun"]}).fit(rows)
    >>> effect = network.causal_effect("ice", "burn")
    >>> effect.criterion, effect[1] == effect[0], float(effect.difference[1, 1].round(3))
    ('none', True, -0.105)
    """

    def __init__(
        self,
        identification: Identification,
        levels: tuple[tuple[Any, ...], tuple[Any, ...] | None],
        interventional: np.ndarray,
        observational: np.ndarray,
        given: Mapping[Any, Any],
        undefined: Mapping[Any, Mapping[Any, Any]],
    ) -> None:
        self._levels, self._outcomes = levels
        self._undefined = dict(undefined)
        if self._outcomes is None:
            interventional, observational = interventional[:, 0], observational[:, 0]
        super().__init__(identification, interventional, observational, given)
        for table in (self.interventional, self.observational, self.difference):
            table.setflags(write=False)

    def __getitem__(self, level: object) -> Any:
        is_level = [type(level) is type(other) and other == level for other in self._levels]
        if not any(is_level):
            raise KeyError(level)
        if level in self._undefined:
            raise _undefined_effect(self.treatment, self.outcome, level, self._undefined[level])
        row = self.interventional[is_level.index(True)]
        if self._outcomes is None:
            return float(row)
        given = {**self.given, f"do({self.treatment})": level}
        return QueryResult((self.outcome,), {self.outcome: self._outcomes}, row, given)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def contrast(self, level: Hashable, other: Hashable) -> Any:
        """Subtract the effect of one level of the treatment from that of another.

        Parameters
        ----------
        level, other : levels of the treatment

        Returns
        -------
        dict from levels of the outcome to differences of probabilities, or a difference of means
        """
        effect, reference = self[level], self[other]
        if self._outcomes is None:
            return effect - reference
        return {outcome: effect[outcome] - reference[outcome] for outcome in effect}

    @property
    def _columns(self) -> list[Name]:
        """The names of the columns of levels."""
        return [self.treatment] if self._outcomes is None else [self.treatment, self.outcome]

    def _rows(self) -> list[tuple[Any, ...]]:
        """Return the levels, and the interventional, observational and subtracted numbers of every row."""
        levels = product(self._levels, *([] if self._outcomes is None else [self._outcomes]))
        tables = (self.interventional, self.observational, self.difference)
        numbers = (table.ravel().tolist() for table in tables)
        return [(*key, *row) for key, *row in zip(levels, *numbers, strict=True)]

    def _frame_data(self) -> FrameData:
        names: list[Any] = [*self._columns, "interventional", "observational", "difference"]
        return dict(zip(names, zip(*self._rows(), strict=True), strict=True))

    def _content(self) -> list[str | ResultTable]:
        n_levels = len(self._columns)
        prefix, form = ("mean, ", ".5g") if self._outcomes is None else ("", ".4f")

        def shown(value: float, sign: str = "") -> str:
            return "undefined" if math.isnan(value) else f"{value + 0.0:{sign}{form}}"

        rows = []
        for row in self._rows():
            interventional, observational, difference = row[n_levels:]
            numbers = shown(interventional), shown(observational), shown(round(difference, 12), "+")
            rows.append([*map(repr, row[:n_levels]), *numbers])
        head = [*map(printable, self._columns), f"{prefix}interventional", f"{prefix}observational", "difference"]
        notes = [f"  {_undefined_where(self.treatment, *item)}" for item in self._undefined.items()]
        return [ResultTable(rows, head, self._title, max_rows=_SHOWN), *notes]


def _check_roles(
    inference: NetworkInference,
    graph: Graph,
    treatment: Name,
    outcome: Name,
    unobserved: Collection[Name],
    given: Mapping[Name, Any],
) -> None:
    """Raise DataError if a node has two roles."""
    if treatment == outcome:
        raise DataError(f"the effect of {treatment!r} on itself is not defined; expected two nodes.")
    for node in (treatment, outcome):
        if node in unobserved or node in given:
            role = "unobserved" if node in unobserved else "given"
            raise DataError(f"node {node!r} is the treatment or outcome and {role}; expected different nodes.")
    for node, value in given.items():
        if isinstance(value, Mapping) or inference.is_continuous(node):
            raise DataError(f"given= has {value!r} for {node!r}; expected a level of a discrete node.")
        if node in unobserved:
            raise DataError(f"node {node!r} is unobserved and given; expected one of them.")
        if node in graph.descendants(treatment):
            raise DataError(
                f"given= has {node!r}, which depends on {treatment!r}: the intervention changes it.\n"
                f"    Pass nodes that do not depend on {treatment!r}, or use query({outcome!r}, given=..., do=...)."
            )


def _outcome_means(
    inference: NetworkInference, nodes: tuple[Name, ...], outcome: Name, given: GivenNodes
) -> tuple[np.ndarray, np.ndarray]:
    """Return p(outcome | treatment, adjusted), (levels, combinations, outcomes), and p(treatment, adjusted).

    `nodes` are the treatment and the adjusted nodes. For a continuous outcome, the last axis has one entry: its mean.
    Combinations that never occur have 0.
    """
    evidence, posterior = run_query(inference, [*nodes, outcome], given, None, [nodes])
    joint = posterior.joint(nodes)[0].reshape([len(inference.levels[node]) for node in nodes])
    possible = np.flatnonzero(joint)
    codes = np.unravel_index(possible, joint.shape)
    rows = evidence.take(np.zeros(len(possible), dtype=np.intp)).with_codes(dict(zip(nodes, codes, strict=True)))
    parents: tuple[Name, ...] = (outcome,)
    values = np.eye(len(inference.levels.get(outcome, ())))
    if inference.is_continuous(outcome):
        if inference.widths[outcome] > 1:
            raise DataError(f"node {outcome!r} has {inference.widths[outcome]} columns; expected one.")
        leaf, column = inference.component_index.get(outcome, (outcome, 0))
        parents, scorer = inference.graph.parents[leaf], inference.leaves[leaf]
        values = np.nan_to_num(scorer.family.mean(scorer.parameters)).reshape(inference.n_groups(leaf), -1)[:, [column]]
    means = np.zeros((joint.size, values.shape[1]))
    for batch, of_batch in inference.posteriors(rows, [parents]):
        means[possible[batch]] = of_batch.joint(parents) @ values
    return means.reshape(len(joint), -1, values.shape[1]), joint.reshape(len(joint), -1)


def _adjust(means: np.ndarray, weights: np.ndarray, criterion: str) -> tuple[np.ndarray, dict[int, int]]:
    """Apply the adjustment formula; also return, for levels with an undefined effect, the combination without rows."""
    if criterion == "none":
        return np.tile(np.einsum("xz,xzk->k", weights, means), (len(means), 1)), {}
    p_adjusted = weights.sum(axis=0)
    p_treatment = weights.sum(axis=1)
    if criterion == "back-door":
        interventional = np.einsum("z,xzk->xk", p_adjusted, means)
        undefined = (weights == 0) & (p_adjusted > 0)
    else:
        p_mediators = weights / np.where(p_treatment > 0, p_treatment, 1.0)[:, None]
        interventional = p_mediators @ np.einsum("x,xzk->zk", p_treatment, means)
        without_rows = ((weights == 0) & (p_treatment > 0)[:, None]).any(axis=0)
        undefined = ((p_mediators > 0) & without_rows) | (p_treatment == 0)[:, None]
    interventional[undefined.any(axis=1)] = np.nan
    return interventional, {int(x): int(undefined[x].argmax()) for x in np.flatnonzero(undefined.any(axis=1))}


def _levels_at(inference: NetworkInference, nodes: tuple[Name, ...], combination: int) -> list[Any]:
    """Return the levels of a combination of nodes, given by its index."""
    codes = np.unravel_index(combination, [len(inference.levels[node]) for node in nodes]) if nodes else ()
    return [inference.levels[node][int(code)] for node, code in zip(nodes, codes, strict=True)]


def _undefined_where(treatment: Name, level: object, combination: Mapping[Any, Any]) -> str:
    where = format_evidence(combination)
    condition = f" where {where}" if where else ""
    return f"{printable(treatment)} = {level!r} never occurs{condition}: its effect there is undefined"


def _undefined_effect(treatment: Name, outcome: Name, level: object, combination: Mapping[Any, Any]) -> EstimateError:
    return EstimateError(
        f"{_undefined_where(treatment, level, combination)}, so its effect on {outcome!r} is not identifiable.\n"
        f"    Adjust for other nodes, or use query({outcome!r}, do={{{treatment!r}: {level!r}}}), which uses the CPTs."
    )
