"""Posteriors of the nodes of a Bayesian network before and after evidence, and their plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from tallybayes.errors import DataError, EstimateError
from tallybayes.models.inputs.features import node_list
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.inference.evidence import read_evidence
from tallybayes.models.network.inference.queries import GivenNodes, check_possible
from tallybayes.plotting.network.node_boxes import AFTER, BEFORE
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import NOTE, legend_above, new_axes, words
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NODES = 12  # nodes shown by default
_MAX_BARS = 6  # levels of a node


class Change(NamedTuple):
    """The posterior of a node before and after evidence: probabilities of levels, or means; None if undefined."""

    before: np.ndarray | None
    after: np.ndarray | None

    @property
    def undefined(self) -> str:
        """Which of the two is undefined, if any."""
        if self.before is None and self.after is None:
            return "undefined"
        return "undefined before" if self.before is None else "undefined after" if self.after is None else ""

    @property
    def bits(self) -> float:
        """The Kullback–Leibler divergence of the posterior from the prior; NaN if one is undefined."""
        if self.before is None or self.after is None:
            return np.nan
        nats = rel_entr(self.after, self.before).sum()  # an intervention can set what has probability 0
        return max(0.0, round(float(nats) / math.log(2), 12))  # rounding must not order nodes

    @property
    def information(self) -> str:
        """The information about the node, as shown."""
        return self.undefined or (f"{self.bits:.3f} bits" if np.isfinite(self.bits) else "∞ bits")

    @property
    def rank(self) -> float:
        """The sort key: by bits, then nodes undefined on one side, then those without information."""
        return {"": -self.bits, "undefined": 1.0}.get(self.undefined, -1e-13)

    def by_level(self, levels: Sequence[Any]) -> tuple[list[str], Change]:
        """Return the shown levels and their probabilities: of many levels, the most probable ones and all others."""
        labels = [words(level, 16) for level in levels]
        defined = [side for side in self if side is not None]
        if len(labels) <= _MAX_BARS or not defined:
            return (labels if defined else []), self
        kept = np.sort(np.argsort(-np.max(defined, axis=0), kind="stable")[: _MAX_BARS - 1])
        sides = [None if side is None else np.append(side[kept], np.delete(side, kept).sum()) for side in self]
        return [*(labels[k] for k in kept), f"{len(labels) - len(kept)} others"], Change(*sides)


def posterior_changes(network: EstimatedNetwork, given: GivenNodes, do: GivenNodes) -> dict[Name, Change]:
    """Return the posteriors of all nodes before and after evidence."""
    before = node_posteriors(network)
    after = node_posteriors(network, given, do)
    return {node: Change(before.get(node), after.get(node)) for node in network.inference.structure.nodes}


def node_posteriors(
    network: EstimatedNetwork, given: GivenNodes = None, do: GivenNodes = None
) -> dict[Name, np.ndarray]:
    """Return the posteriors of all nodes by one propagation: probabilities of levels, or means of columns.

    Nodes whose posterior is undefined under maximum likelihood, and observed continuous nodes are excluded.
    """
    inference = network.inference.intervened(do)
    evidence = read_evidence(inference, given, do)
    nodes = inference.structure.nodes
    ((rows, posterior),) = inference.posteriors(evidence, inference.scopes_of(nodes))
    check_possible(inference, posterior.log_likelihood[0], given, do)

    def is_defined(node: Name) -> bool:
        try:
            inference.check_defined(posterior, evidence, rows, [node])
        except EstimateError:
            return False
        return True

    posteriors = {}
    for node in nodes:
        in_evidence = node in (given or {}) or node in (do or {})
        is_observed = in_evidence if node in inference.component_index else node in evidence.cells
        if not is_observed and is_defined(node):
            if node in inference.levels:
                posteriors[node] = posterior.joint([node])[0]
            else:
                posteriors[node] = np.ravel(inference.posterior_mean(node, posterior, evidence, rows))
    return posteriors


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
    changes = posterior_changes(network, given, do)
    if chosen is None:
        observed = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | set(do or ())
        free = [node for node in network.levels if node not in observed]
        chosen = sorted(free, key=lambda node: changes[node].rank)[:_MAX_NODES]
    if not chosen:
        raise DataError(
            "nodes: all discrete nodes are observed.\n"
            "    Remove some from given= and do=, or name nodes to show in nodes=."
        )
    bars = {node: changes[node].by_level(network.levels[node]) for node in chosen}
    ax = new_axes(ax, 6.5, 1.1 + 0.2 * sum(len(labels) + 1.3 for labels, _ in bars.values()))
    _draw_bars(ax, bars, {node: changes[node].information for node in chosen})
    legend_above(ax, {"before": (BEFORE, BEFORE), f"given {format_known(given, do)}": (AFTER, AFTER)})
    return Plot(ax, posterior_table(network, {node: changes[node] for node in chosen}))


def _draw_bars(ax: Axes, bars: Mapping[Name, tuple[list[str], Change]], notes: Mapping[Name, str]) -> None:
    """Draw the bars of all nodes below each other, with a title and a note for each."""
    ticks: dict[float, str] = {}
    y = 0.0
    for node, (labels, change) in bars.items():
        ax.text(0.006, y, words(node, 40), weight="bold", fontsize=10, va="center")
        ax.text(1.0, y, notes[node], fontsize=9, va="center", ha="right", color=NOTE)
        positions = y + 1 + np.arange(len(labels))
        for side, shift, color in zip(change, (-0.2, 0.2), (BEFORE, AFTER), strict=True):
            if side is not None:
                ax.barh(positions + shift, side, 0.36, color=color)
        ticks |= dict(zip(positions.tolist(), labels, strict=True))
        y += len(labels) + 1.3
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(y - 0.6, -0.7), xlim=(0.0, 1.0), xlabel="probability")


def posterior_table(network: EstimatedNetwork, changes: Mapping[Name, Change]) -> PlotTable:
    """Return the distributions of nodes before and after: a row for every level, or for the mean."""
    rows = []
    for node, change in changes.items():
        is_block = node not in network.levels and network.inference.widths[node] > 1
        if not is_block and change.undefined != "undefined":
            levels = network.levels.get(node, ["mean"])
            sides = [np.full(len(levels), np.nan) if side is None else side for side in change]
            rows += list(zip([node] * len(levels), levels, *sides, strict=True))
    return {name: [row[k] for row in rows] for k, name in enumerate(("node", "level", "before", "after"))}


def format_known(given: GivenNodes, do: GivenNodes) -> str:
    """Format evidence and interventions for a legend."""
    observed = (given or {}).items()
    parts = [
        f"{node}: soft evidence" if isinstance(value, Mapping) else f"{node} = {value}" for node, value in observed
    ]
    parts += [f"do({node} = {value})" for node, value in (do or {}).items()]
    shown = parts if len(parts) <= 3 else [*parts[:2], f"{len(parts) - 2} more"]
    return ", ".join(words(part, 40) for part in shown) or "nothing"
