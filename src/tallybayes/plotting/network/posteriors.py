"""Posteriors of the nodes of a Bayesian network before and after evidence, and their plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.network.analysis.d_separation import node_list
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.inference.clique_tree import Propagated
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.queries import GivenNodes, check_possible
from tallybayes.plotting.network.node_boxes import AFTER, BEFORE, NOTE, Bars, shorten
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import hide_top_right_spines, new_axes
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NODES = 12  # nodes shown by default

Posterior = np.ndarray | None  # probabilities of levels, or means of columns; None if undefined


def node_posteriors(
    network: EstimatedNetwork, given: GivenNodes = None, do: GivenNodes = None
) -> dict[Name, np.ndarray]:
    """Return the posteriors of all nodes by one propagation: probabilities of levels, or means of columns.

    Nodes whose posterior is undefined under maximum likelihood, and observed continuous nodes are excluded.
    """
    inference = network.inference.intervened(do)
    evidence = read_evidence(inference, given, do)
    ((rows, propagated),) = inference.batches(evidence)
    check_possible(inference, propagated.log_likelihood[0], given, do)
    undefined = _undefined_nodes(inference, propagated, evidence)
    posteriors = {}
    for node in inference.structure.nodes:
        in_evidence = node in (given or {}) or node in (do or {})
        is_observed = in_evidence if node in inference.component_index else node in evidence.cells
        if inference.leaf_of(node) not in undefined and not is_observed:
            if node in inference.levels:
                posteriors[node] = propagated.marginal(inference.scope([node]))[:, 0]
            else:
                posteriors[node] = np.ravel(inference.posterior_mean(node, propagated, evidence, rows))
    return posteriors


def _undefined_nodes(inference: NetworkInference, propagated: Propagated, evidence: Evidence) -> set[Name]:
    """Return the nodes whose posterior depends on undefined rows of CPTs: a query about them raises EstimateError."""
    graph = inference.graph
    nodes: set[Name] = set()
    for node, rows in inference.undefined_rows().items():
        parents = graph.parents[node]
        proba = propagated.marginal(inference.scope(parents))[rows] if parents else np.ones(1)
        if (proba > 0).any():
            nodes |= graph.influenced_nodes(node, [*evidence.codes, *evidence.cells], evidence.likelihoods)
    return nodes


def plot_posteriors(
    network: EstimatedNetwork,
    given: GivenNodes,
    nodes: Names | None = None,
    ax: Axes | None = None,
    *,
    do: GivenNodes = None,
) -> Plot:
    """Plot the distributions of nodes before and after evidence, those with the most information first.

    Parameters
    ----------
    network : EstimatedNetwork
    given, do : mappings
        As for `BayesianNetwork.query`.
    nodes : name, or sequence of names, optional
        Shown in this order; None shows the 12 with the most information.
    ax : matplotlib Axes, optional
    """
    if given is None and do is None:
        raise DataError.wrong_type("given", "None", "a mapping, as in {'fire': True}")
    chosen = None if nodes is None else node_list(nodes)
    if chosen == []:
        raise DataError.wrong_type("nodes", repr(nodes), "at least one discrete node")
    network.inference.require_discrete(chosen or ())
    after = node_posteriors(network, given, do)
    before = node_posteriors(network)
    if chosen is None:
        observed = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | set(do or ())
        free = [node for node in network.levels if node not in observed]
        chosen = sorted(free, key=lambda node: _rank(before.get(node), after.get(node)))[:_MAX_NODES]
    if not chosen:
        raise DataError(
            "nodes: all discrete nodes are observed.\n"
            "    Remove some from given= and do=, or name nodes to show in nodes=."
        )
    bars = {node: Bars.of_levels(network.levels[node], before.get(node), after.get(node)) for node in chosen}
    height = 1.1 + 0.2 * sum(len(of_node.labels) + 1.3 for of_node in bars.values())
    ax = new_axes(ax, figsize=(6.5, height), layout="constrained")
    _draw_bars(ax, bars, {node: information_label(before.get(node), after.get(node)) for node in chosen})
    _draw_legend(ax, f"given {format_known(given, do)}")
    hide_top_right_spines(ax)
    return Plot(ax, posterior_table(network, before, after, chosen))


def _draw_bars(ax: Axes, bars: Mapping[Name, Bars], notes: Mapping[Name, str]) -> None:
    """Draw the bars of all nodes below each other, with a title and a note for each."""
    ticks: dict[float, str] = {}
    y = 0.0
    for node, of_node in bars.items():
        ax.text(0.006, y, shorten(node, 40), weight="bold", fontsize=10, va="center", parse_math=False)
        ax.text(1.0, y, notes[node], fontsize=9, va="center", ha="right", color=NOTE)
        positions = y + 1 + np.arange(len(of_node.labels))
        for side, shift, color in ((of_node.before, -0.2, BEFORE), (of_node.after, 0.2, AFTER)):
            if side is not None:
                ax.barh(positions + shift, side, 0.36, color=color)
        ticks |= dict(zip(positions.tolist(), of_node.labels, strict=True))
        y += len(of_node.labels) + 1.3
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(y - 0.6, -0.7)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("probability")


def _draw_legend(ax: Axes, title: str) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=color, label=label) for label, color in (("before", BEFORE), (title, AFTER))]
    position: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    for text in ax.legend(handles=handles, ncols=2, frameon=False, **position).get_texts():
        text.set_parse_math(False)


def posterior_table(
    network: EstimatedNetwork,
    before: Mapping[Name, np.ndarray],
    after: Mapping[Name, np.ndarray],
    nodes: Iterable[Name],
) -> PlotTable:
    """Return the distributions of nodes before and after: a row for every level, or for the mean."""
    table: dict[str, list[Any]] = {"node": [], "level": [], "before": [], "after": []}
    for node in nodes:
        sides = {"before": before.get(node), "after": after.get(node)}
        levels = network.levels.get(node, ["mean"])
        is_block = node not in network.levels and network.inference.widths[node] > 1
        if is_block or all(side is None for side in sides.values()):
            continue
        table["node"] += [node] * len(levels)
        table["level"] += list(levels)
        for name, side in sides.items():
            table[name] += [np.nan] * len(levels) if side is None else list(side)
    return dict(table)


def undefined_label(before: Posterior, after: Posterior) -> str:
    """Return which of the two posteriors is undefined, if any."""
    if before is None and after is None:
        return "undefined"
    return "undefined before" if before is None else "undefined after" if after is None else ""


def _bits(before: np.ndarray, after: np.ndarray) -> float:
    """Return the Kullback–Leibler divergence of the posterior from the prior, in bits."""
    positive = after > 0
    with np.errstate(divide="ignore"):  # an intervention can set what has probability 0
        bits = float(np.sum(after[positive] * (np.log2(after[positive]) - np.log2(before[positive]))))
    return max(0.0, round(bits, 12))  # rounding must not order nodes without information


def information_label(before: Posterior, after: Posterior) -> str:
    """Return the information about a node, as shown."""
    if before is None or after is None:
        return undefined_label(before, after)
    bits = _bits(before, after)
    return f"{bits:.3f} bits" if np.isfinite(bits) else "∞ bits"


def _rank(before: Posterior, after: Posterior) -> float:
    """Return the sort key of a node: by bits, then nodes undefined on one side, then those without information."""
    if before is not None and after is not None:
        return -_bits(before, after)
    return 1.0 if before is None and after is None else -1e-13


def format_known(given: GivenNodes, do: GivenNodes) -> str:
    """Format evidence and interventions for a legend."""
    observed = (given or {}).items()
    parts = [
        f"{node}: soft evidence" if isinstance(value, Mapping) else f"{node} = {value}" for node, value in observed
    ]
    parts += [f"do({node} = {value})" for node, value in (do or {}).items()]
    shown = parts if len(parts) <= 3 else [*parts[:2], f"{len(parts) - 2} more"]
    return ", ".join(shorten(part, 40) for part in shown) or "nothing"
