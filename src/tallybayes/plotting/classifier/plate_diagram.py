"""Plate diagrams of models: nodes, edges, and plates for repeated nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.plotting.classifier.groups import groups_of
from tallybayes.plotting.classifier.marginals import n_columns
from tallybayes.plotting.network.node_boxes import text_width
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, NOTE, amount, name_of, new_axes, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.estimation.scoring.factor_scorer import FactorScorer
    from tallybayes.models.base import Model
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.typing import Name

_RADIUS = 0.36  # radius of a node in inches
_STEP = 1.5  # distance between nodes in inches
_TREE = 40  # maximum number of columns of a plotted tree
_MOST = 6  # maximum number of blocks
_OBSERVED = "#D9E6F0"
_HIDDEN = "white"


class PlateNode(NamedTuple):
    """Node of a plate diagram: observed nodes are shaded, parameters are small."""

    x: float
    y: float
    symbol: str
    caption: str = ""
    kind: str = "hidden"  # or "observed", "parameter"

    @property
    def radius(self) -> float:
        """Return the radius in inches."""
        return 0.24 if self.kind == "parameter" else _RADIUS

    @property
    def reach(self) -> float:
        """Return the width of the right half with the caption, in inches."""
        return self.radius + (text_width(self.caption, 8) / 72 + 0.08 if self.caption else 0.0)


class PlateDiagram:
    """Nodes, edges and plates with coordinates in inches."""

    def __init__(self) -> None:
        self.nodes: dict[str, PlateNode] = {}
        self.edges: list[tuple[str, str]] = []
        self.plates: list[tuple[float, float, float, float, str, bool]] = []

    def plate(
        self, names: list[str], label: str, pad: float, below: float = 0.0, *, label_on_top: bool = False
    ) -> None:
        """Add a plate around some nodes and their captions, with the number of repetitions in its corner."""
        nodes = [self.nodes[name] for name in names]
        left = min(node.x - node.radius for node in nodes) - pad
        right = max(node.x + node.reach for node in nodes) + pad
        least = text_width(label, 8) / 72 + 0.16 - (right - left)
        if least > 0:
            left = left - least / 2
            right = right + least / 2
        bottom = min(node.y - node.radius for node in nodes) - pad - 0.16 - below
        top = max(node.y + node.radius for node in nodes) + pad
        self.plates.append((left, bottom, right, top, label, label_on_top))

    def draw(self, ax: Axes | None, title: str) -> Plot:
        """Draw the diagram on axes of the required size."""
        from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

        boxes = [(n.x - n.radius, n.y - n.radius, n.x + n.reach, n.y + n.radius) for n in self.nodes.values()]
        corners = np.array([*boxes, *(plate[:4] for plate in self.plates)])
        low = corners[:, :2].min(axis=0) - 0.15
        high = corners[:, 2:].max(axis=0) + 0.15
        size = high - low
        ax = new_axes(ax, figsize=(max(size[0], text_width(title, 11) / 72 + 0.3), size[1] + 0.4))
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.axis("off")
        for left, bottom, right, top, label, on_top in self.plates:
            shape = "round,pad=0,rounding_size=0.08"
            frame = FancyBboxPatch((left, bottom), right - left, top - bottom, boxstyle=shape)
            frame.set(facecolor="none", edgecolor="#888888", linewidth=1.0, zorder=1)
            ax.add_patch(frame)
            y, va = (top - 0.05, "top") if on_top else (bottom + 0.05, "bottom")
            ax.text(right - 0.06, y, label, ha="right", va=va, fontsize=8, color=NOTE)
        for start, end in self.edges:
            a = self.nodes[start]
            b = self.nodes[end]
            direction = np.array([b.x - a.x, b.y - a.y])
            unit = direction / np.hypot(*direction)
            tail = np.array([a.x, a.y]) + unit * a.radius
            head = np.array([b.x, b.y]) - unit * b.radius
            arrow = FancyArrowPatch(tail, head, arrowstyle="-|>", mutation_scale=11, shrinkA=0, shrinkB=1)
            arrow.set(color="#444444", linewidth=1.1, zorder=2)
            ax.add_patch(arrow)
        for node in self.nodes.values():
            face = _OBSERVED if node.kind == "observed" else _HIDDEN
            edge = NOTE if node.kind == "parameter" else COLORS[0]
            circle = Circle((node.x, node.y), node.radius, facecolor=face, edgecolor=edge, linewidth=1.4, zorder=3)
            if node.symbol != "…":
                ax.add_patch(circle)
            small = node.kind == "parameter"
            ax.text(node.x, node.y, node.symbol, ha="center", va="center", fontsize=9 if small else 11, zorder=4)
            if node.caption:
                x = node.x + node.radius + 0.06
                ax.text(x, node.y, node.caption, va="center", fontsize=8, color="#333333", zorder=4)
        ax.set_title(title, fontsize=11)
        return Plot(ax, {"from": [start for start, _ in self.edges], "to": [end for _, end in self.edges]})


def plot_groups(model: ClassConditionalModel, ax: Axes | None = None) -> Plot:
    """Plot a classifier or mixture: the class, a node for each block of columns, and their parameters.

    Parameters
    ----------
    model : a fitted classifier or mixture
    ax : matplotlib Axes, optional
    """
    if isinstance(model, TreeAugmentedNaiveBayes) and len(model.parents_) <= _TREE:
        return _plot_tree(model, ax)
    if isinstance(model, AveragedOneDependence):
        return _plot_one_dependence(model, ax)
    graph = PlateDiagram()
    blocks = _blocks(model._factor_scorers)
    groups = groups_of(model)
    hidden = groups.noun != "classes"
    target = words(groups.target, 16)
    step = _node_distance([name for name, *_ in blocks] + [family for *_, family in blocks])
    symbol, caption, kind = ("z", "", "hidden") if hidden else ("y", target, "observed")
    center = (len(blocks) - 1) / 2 * step
    graph.nodes["shares"] = PlateNode(center, 3.3, "π", "", "parameter")
    graph.nodes[target] = PlateNode(center, 2.3, symbol, caption, kind)
    graph.edges.append(("shares", target))
    rows = [target]
    for k, (name, symbol_of_block, n, family) in enumerate(blocks):
        x = k * step
        graph.nodes[name] = PlateNode(x, 0.9, symbol_of_block, name, "observed")
        graph.nodes[f"parameters of {name}"] = PlateNode(x, -0.9, "θ", family, "parameter")
        graph.edges += [(target, name), (f"parameters of {name}", name)]
        rows.append(name)
        if n > 1:
            graph.plate([name, f"parameters of {name}"], f"{n} columns", pad=0.12, below=0.62)
    parameters = [f"parameters of {name}" for name, *_ in blocks]
    graph.plate(rows, amount(_weight_of(model, groups.target), "rows"), pad=0.3, label_on_top=True)
    if parameters:
        graph.plate(parameters, amount(len(groups.labels), groups.noun), pad=0.42)
    return graph.draw(ax, f"{type(model).__name__}: p({symbol}) Π p(x | {symbol})")


def _plot_tree(model: TreeAugmentedNaiveBayes, ax: Axes | None) -> Plot:
    """Plot a tree-augmented classifier as a network with all edges."""
    parents_of = {
        name: [model.target_] + ([] if parent is None else [parent]) for name, parent in model.parents_.items()
    }
    return BayesianNetwork(parents_of).plot_graph(ax)


def _plot_one_dependence(model: AveragedOneDependence, ax: Axes | None) -> Plot:
    """Plot one member of an averaged one-dependence classifier: a column that is the parent of all others."""
    graph = PlateDiagram()
    n = len({*model._required_columns})
    n_classes = len(model.classes_)
    graph.nodes = {
        "shares": PlateNode(0.0, 3.3, "π", "", "parameter"),
        "class": PlateNode(0.0, 2.3, "y", words(model.target_, 16), "observed"),
        "parent": PlateNode(-_STEP, 0.9, "xᵢ", "", "observed"),
        "others": PlateNode(_STEP, 0.9, "xⱼ", "", "observed"),
        "parameters of parent": PlateNode(-_STEP, -1.1, "θ", "", "parameter"),
        "parameters of others": PlateNode(_STEP, -1.1, "θ", "", "parameter"),
    }
    graph.edges = [("shares", "class"), ("class", "parent"), ("class", "others"), ("parent", "others")]
    graph.edges += [(f"parameters of {name}", name) for name in ("parent", "others")]
    graph.plate(["others", "parameters of others"], f"{n - 1} other columns", pad=0.2, below=0.62)
    graph.plate(
        ["class", "parent", "others"], amount(_weight_of(model, model.target_), "rows"), pad=0.4, label_on_top=True
    )
    graph.plate(["parameters of parent", "parameters of others"], amount(n_classes, "classes"), pad=0.42)
    title = f"{type(model).__name__}: mean over i of p(y, xᵢ) Π p(xⱼ | y, xᵢ)"
    return graph.draw(ax, f"{title}, {n} columns")


def plot_chain(model: HiddenMarkovModel, ax: Axes | None = None) -> Plot:
    """Plot a hidden Markov model: states in a row, each with its observation.

    Parameters
    ----------
    model : HiddenMarkovModel
    ax : matplotlib Axes, optional
    """
    graph = PlateDiagram()
    blocks = _blocks(model._estimated_hmm.parameters.scored)
    caption = blocks[0][0] if len(blocks) == 1 else f"{sum(block[2] for block in blocks)} columns"
    marks = ["₁", "₂", "…", "ₜ"]
    for k, mark in enumerate(marks):
        gap = mark == "…"
        graph.nodes[f"state {mark}"] = PlateNode((k + 1) * _STEP, 1.6, "…" if gap else f"z{mark}")
        if k:
            graph.edges.append((f"state {marks[k - 1]}", f"state {mark}"))
        if not gap:
            last = caption if k == len(marks) - 1 else ""
            graph.nodes[f"step {mark}"] = PlateNode((k + 1) * _STEP, 0.2, f"x{mark}", last, "observed")
            graph.edges.append((f"state {mark}", f"step {mark}"))
    graph.nodes["start"] = PlateNode(_STEP, 3.0, "π", "start", "parameter")
    graph.nodes["transition"] = PlateNode(2.2 * _STEP, 3.0, "A", "transition", "parameter")
    graph.nodes["emission"] = PlateNode(2 * _STEP, -1.5, "θ", "emission", "parameter")
    graph.edges += [("start", "state ₁"), ("transition", "state ₂"), ("emission", "step ₂")]
    inside = [name for name in graph.nodes if name.startswith(("state", "step"))]
    graph.plate(inside, amount(_weight_of(model, model._factor_names.start), "sequences"), pad=0.25)
    for repeated in ("transition", "emission"):
        graph.plate([repeated], amount(len(model.states_), "states"), pad=0.2)
    return graph.draw(ax, f"{type(model).__name__}: p(z₁) Π p(zₜ | zₜ₋₁) Π p(xₜ | zₜ)")


def _blocks(scored: Sequence[FactorScorer]) -> list[tuple[str, str, int, str]]:
    """Return name, symbol, number of columns and family of each block; many blocks are summarized in the last."""
    blocks = []
    for scorer in scored:
        n = n_columns(scorer)
        family = type(scorer.family).__name__
        if scorer.family.columnwise:
            names = [name_of(name, 16) for name in scorer.factor.columns] if len(scorer.factor.columns) == n else []
            if names and n <= 3 and len(scored) <= 2:
                blocks += [(name, "x", 1, family) for name in names]
                continue
            joined = ", ".join(names) if 1 < len(names) <= 3 and len(", ".join(names)) <= 20 else ""
            label = joined or (f"{n} columns" if len(scored) == 1 else f"block {len(blocks) + 1}")
            shown = name_of(scorer.factor.columns[0], 16) if n == 1 else label
            blocks.append((shown, "xⱼ" if n > 1 else "x", n, family))
        else:
            blocks.append((f"all {n} columns" if n > 1 else name_of(scorer.factor.columns[0], 16), "x", 1, family))
    if len(blocks) > _MOST:
        remaining = blocks[_MOST - 1 :]
        blocks = [*blocks[: _MOST - 1], (f"{len(remaining)} more blocks", "x", 1, "")]
    return blocks


def _node_distance(captions: list[str]) -> float:
    """Return the distance between nodes that leaves room for their captions."""
    return max(_STEP, 2 * _RADIUS + 0.5 + max((text_width(caption, 8) / 72 for caption in captions), default=0.0))


def _weight_of(model: Model, column: Name) -> float:
    """Return the total weight of the counts of a column; 0 without counts."""
    try:
        statistics: Any = model.tally_[column]
        return float(np.sum(statistics.table))
    except (AttributeError, KeyError, TypeError):
        return 0.0
