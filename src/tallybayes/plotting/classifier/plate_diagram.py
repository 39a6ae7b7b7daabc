"""Plate diagrams of models: nodes, edges, and plates for repeated nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.plotting.charts import draw_arrow
from tallybayes.plotting.classifier.groups import groups_of
from tallybayes.plotting.classifier.marginals import n_columns
from tallybayes.plotting.network.node_boxes import text_width
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, DARK, NOTE, amount, name_of, new_axes, set_title, words

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
_KINDS = {  # radius in inches, color, color of the edge and size of the symbol
    "observed": (_RADIUS, "#D9E6F0", COLORS[0], 11),
    "hidden": (_RADIUS, "white", COLORS[0], 11),
    "parameter": (0.24, "white", NOTE, 9),
}
# Diagrams: name, place in steps and inches, symbol, kind, parents, caption
_ONE_DEPENDENCE = """
shares               |  0  3.3 | π  | parameter |                             |
class                |  0  2.3 | y  | observed  | shares                      | {target}
parameters of parent | -1 -1.1 | θ  | parameter |                             |
parent               | -1  0.9 | xᵢ | observed  | class, parameters of parent |
parameters of others |  1 -1.1 | θ  | parameter |                             |
others               |  1  0.9 | xⱼ | observed  | class, parent, parameters of others |
"""
_CHAIN = """
start      | 1    3.0 | π  | parameter |                     | start
transition | 2.2  3.0 | A  | parameter |                     | transition
emission   | 2   -1.5 | θ  | parameter |                     | emission
state ₁    | 1    1.6 | s₁ | hidden    | start               |
state ₂    | 2    1.6 | s₂ | hidden    | state ₁, transition |
state …    | 3    1.6 | …  | hidden    | state ₂             |
state ₜ    | 4    1.6 | sₜ | hidden    | state …             |
step ₁     | 1    0.2 | x₁ | observed  | state ₁             |
step ₂     | 2    0.2 | x₂ | observed  | state ₂, emission   |
step ₜ     | 4    0.2 | xₜ | observed  | state ₜ             | {caption}
"""


class PlateNode(NamedTuple):
    """Node of a plate diagram: observed nodes are shaded, parameters are small."""

    x: float
    y: float
    symbol: str
    kind: str
    caption: str

    @property
    def box(self) -> np.ndarray:
        """The left, lower, right and upper ends of the node and its caption, in inches."""
        radius = _KINDS[self.kind][0]
        caption = text_width(self.caption, 8) / 72 + 0.08 if self.caption else 0.0
        return np.array([self.x - radius, self.y - radius, self.x + radius + caption, self.y + radius])


class PlateDiagram:
    """Nodes, edges and plates with coordinates in inches."""

    def __init__(self) -> None:
        self.nodes: dict[str, PlateNode] = {}
        self.edges: list[tuple[str, str]] = []
        self.plates: list[tuple[np.ndarray, str, bool]] = []  # ends, label, whether the label is on top

    def add(
        self,
        name: str,
        x: float,
        y: float,
        symbol: str,
        kind: str = "observed",
        caption: str = "",
        parents: Iterable[str] = (),
    ) -> None:
        """Add a node, and the edges from its parents."""
        self.nodes[name] = PlateNode(x, y, symbol, kind, caption)
        self.edges += [(parent, name) for parent in parents]

    def plate(
        self, names: Iterable[str], label: str, pad: float, below: float = 0.0, *, label_on_top: bool = False
    ) -> None:
        """Add a plate around some nodes and their captions, with the number of repetitions in its corner."""
        boxes = np.array([self.nodes[name].box for name in names])
        low, high = boxes[:, :2].min(axis=0) - pad, boxes[:, 2:].max(axis=0) + pad
        widening = max(0.0, text_width(label, 8) / 72 + 0.16 - (high[0] - low[0])) / 2
        low -= [widening, 0.16 + below]
        high[0] += widening
        ends = np.concatenate([low, high])
        self.plates.append((ends, label, label_on_top))

    def draw(self, ax: Axes | None, title: str) -> Plot:
        """Draw the diagram on axes of the required size."""
        from matplotlib.patches import Circle, FancyBboxPatch

        corners = np.array([*(node.box for node in self.nodes.values()), *(ends for ends, _, _ in self.plates)])
        low, high = corners[:, :2].min(axis=0) - 0.15, corners[:, 2:].max(axis=0) + 0.15
        width, height = high - low
        ax = new_axes(ax, max(width, text_width(title, 11) / 72 + 0.3), height + 0.4)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.axis("off")
        for (left, bottom, right, top), label, on_top in self.plates:
            shape = "round,pad=0,rounding_size=0.08"
            frame = FancyBboxPatch((left, bottom), right - left, top - bottom, boxstyle=shape)
            frame.set(facecolor="none", edgecolor="#888888", linewidth=1.0, zorder=1)
            ax.add_patch(frame)
            y, va = (top - 0.05, "top") if on_top else (bottom + 0.05, "bottom")
            ax.text(right - 0.06, y, label, ha="right", va=va, fontsize=8, color=NOTE)
        circles = {}
        for name, node in self.nodes.items():
            radius, face, edge, size = _KINDS[node.kind]
            circle = Circle((node.x, node.y), radius, facecolor=face, edgecolor=edge, linewidth=1.4, zorder=3)
            circle.set_visible(node.symbol != "…")
            ax.add_patch(circle)
            circles[name] = circle
            ax.text(node.x, node.y, node.symbol, ha="center", va="center", fontsize=size, zorder=4)
            ax.text(node.x + radius + 0.06, node.y, node.caption, va="center", fontsize=8, color="#333333", zorder=4)
        for start, end in self.edges:
            draw_arrow(ax, circles[start], circles[end], color=DARK, linewidth=1.1)
        set_title(ax, title)
        return Plot(ax, {"from": [start for start, _ in self.edges], "to": [end for _, end in self.edges]})


def _diagram(table: str) -> PlateDiagram:
    """Return the diagram of a table: a line for every node, with its place, symbol, kind, parents and caption."""
    graph = PlateDiagram()
    for line in table.strip().splitlines():
        name, place, symbol, kind, parents, caption = map(str.strip, line.split("|", 5))
        x, y = map(float, place.split())
        graph.add(name, x * _STEP, y, symbol, kind, caption, filter(None, parents.split(", ")))
    return graph


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
    target = words(groups.target, 16)
    captions = [text for block in blocks for text in (block.name, block.family)]
    step = max(_STEP, 2 * _RADIUS + 0.5 + max((text_width(text, 8) / 72 for text in captions), default=0.0))
    center = (len(blocks) - 1) / 2 * step
    is_hidden = groups.noun != "classes"
    symbol = "z" if is_hidden else "y"
    graph.add("shares", center, 3.3, "π", "parameter")
    kind, caption = ("hidden", "") if is_hidden else ("observed", target)
    graph.add(target, center, 2.3, symbol, kind, caption, parents=["shares"])
    for k, block in enumerate(blocks):
        parameter = f"parameters of {block.name}"
        graph.add(parameter, k * step, -0.9, "θ", "parameter", block.family)
        graph.add(block.name, k * step, 0.9, block.symbol, caption=block.name, parents=[target, parameter])
        if block.n > 1:
            graph.plate([block.name, parameter], f"{block.n} columns", pad=0.12, below=0.62)
    names = [block.name for block in blocks]
    graph.plate([target, *names], amount(_weight_of(model, groups.target), "rows"), pad=0.3, label_on_top=True)
    if names:
        parameters = [f"parameters of {name}" for name in names]
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
    n = len({*model._required_columns})
    table = _ONE_DEPENDENCE.format(target=words(model.target_, 16))
    graph = _diagram(table)
    graph.plate(["others", "parameters of others"], f"{n - 1} other columns", pad=0.2, below=0.62)
    rows = amount(_weight_of(model, model.target_), "rows")
    graph.plate(["class", "parent", "others"], rows, pad=0.4, label_on_top=True)
    classes = amount(len(model.classes_), "classes")
    graph.plate(["parameters of parent", "parameters of others"], classes, pad=0.42)
    return graph.draw(ax, f"{type(model).__name__}: mean over i of p(y, xᵢ) Π p(xⱼ | y, xᵢ), {n} columns")


def plot_chain(model: HiddenMarkovModel, ax: Axes | None = None) -> Plot:
    """Plot a hidden Markov model: states in a row, each with its observation.

    Parameters
    ----------
    model : HiddenMarkovModel
    ax : matplotlib Axes, optional
    """
    blocks = _blocks(model._estimated_hmm.parameters.scored)
    caption = blocks[0].name if len(blocks) == 1 else f"{sum(block.n for block in blocks)} columns"
    graph = _diagram(_CHAIN.format(caption=caption))
    inside = [name for name in graph.nodes if name.startswith(("state", "step"))]
    graph.plate(inside, amount(_weight_of(model, model._factor_names.start), "sequences"), pad=0.25)
    for repeated in ("transition", "emission"):
        graph.plate([repeated], amount(len(model.states_), "states"), pad=0.2)
    return graph.draw(ax, f"{type(model).__name__}: p(s₁) Π p(sₜ | sₜ₋₁) Π p(xₜ | sₜ)")


class Block(NamedTuple):
    """A node of a diagram for a block of columns: its name, symbol, number of columns and family."""

    name: str
    symbol: str
    n: int
    family: str


def _blocks(scored: Sequence[FactorScorer]) -> list[Block]:
    """Return the blocks of columns; many blocks are summarized in the last."""
    blocks: list[Block] = []
    for scorer in scored:
        n = n_columns(scorer)
        family = type(scorer.family).__name__
        columns = scorer.factor.columns
        names = [name_of(name, 16) for name in columns] if len(columns) == n <= 3 else []
        joined = ", ".join(names)
        if n == 1:
            blocks.append(Block(name_of(columns[0], 16), "x", n, family))
        elif not scorer.family.columnwise:
            blocks.append(Block(f"all {n} columns", "x", 1, family))
        elif names and len(scored) <= 2:
            blocks += [Block(name, "x", 1, family) for name in names]
        elif names and len(joined) <= 20:
            blocks.append(Block(joined, "xⱼ", n, family))
        else:
            blocks.append(Block(f"{n} columns" if len(scored) == 1 else f"block {len(blocks) + 1}", "xⱼ", n, family))
    if len(blocks) > _MOST:
        rest = Block(f"{len(blocks) - _MOST + 1} more blocks", "x", 1, "")
        blocks = [*blocks[: _MOST - 1], rest]
    return blocks


def _weight_of(model: Model, column: Name) -> float:
    """Return the total weight of the counts of a column; 0 without counts."""
    try:
        statistics: Any = model.tally_[column]
        return float(np.sum(statistics.table))
    except (AttributeError, KeyError, TypeError):
        return 0.0
