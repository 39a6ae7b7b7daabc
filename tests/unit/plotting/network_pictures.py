"""Networks to plot, and the contents of their plots."""

import matplotlib as mpl
import numpy as np

import tallybayes as tb

mpl.use("Agg")
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch, Rectangle


def fire_alarm():
    tables = {
        "tampering": [0.98, 0.02],
        "fire": [0.99, 0.01],
        "alarm": [[[0.9999, 0.0001], [0.01, 0.99]], [[0.15, 0.85], [0.5, 0.5]]],
        "smoke": [[0.99, 0.01], [0.1, 0.9]],
        "leaving": [[0.999, 0.001], [0.12, 0.88]],
        "report": [[0.99, 0.01], [0.25, 0.75]],
    }
    parents = {"alarm": ["tampering", "fire"], "smoke": "fire", "leaving": "alarm", "report": "leaving"}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, (False, True)), tables)


def random_graph(n, seed, most=3):
    rng = np.random.default_rng(seed)
    return {k: sorted(rng.choice(k, min(k, rng.integers(0, most + 1)), replace=False).tolist()) for k in range(n)}


def random_network(n, seed, n_levels=3):
    rng = np.random.default_rng(seed)
    parents = {f"node {k}": [f"node {j}" for j in above] for k, above in random_graph(n, seed, 2).items()}
    levels = {node: [f"level {k}" for k in range(n_levels)] for node in parents}
    tables = {node: rng.dirichlet(np.ones(n_levels), [n_levels] * len(above)) for node, above in parents.items()}
    return tb.BayesianNetwork.from_tables(parents, levels, tables)


def mixed_network(**parameters):
    rng = np.random.default_rng(5)
    kind = rng.choice(["a", "b"], 80)
    rows = {
        "kind": kind,
        "shop": rng.choice(list("pqrstuvwxyz"), 80),
        "weight": rng.normal(np.where(kind == "a", 0.0, 3.0)),
    }
    return tb.BayesianNetwork({"weight": ["kind"], "shop": ["kind"]}, **parameters).fit(rows)


def unseen_network(**others):
    """The combination a = 1, b = 1 was never seen, so c and what follows from it are known where that is ruled out."""
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 0], "c": [0, 1, 1, 0], "d": [0, 1, 1, 0], "e": [0, 1, 1, 1]}
    rows |= {"size": [1.0, 2.0, 4.0, 6.0], "shade": [1.0, 2.0, 4.0, 7.0], **others}
    parents = {"c": ["a", "b"], "d": ["c"], "e": [], "size": ["a"], "shade": ["c"], **{name: ["c"] for name in others}}
    return tb.BayesianNetwork(parents, estimate="mle").fit(rows)


def boxes_in(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def bars_in(ax, color):
    return [p for p in ax.patches if isinstance(p, Rectangle) and to_hex(p.get_facecolor()) == color.lower()]


def texts_in(ax):
    return [text.get_text() for text in ax.texts]


def headings(ax):
    return [text.get_text() for text in ax.texts if not text.get_text().endswith(" bits")]


def assert_words_are_in_boxes(ax):
    ax.figure.canvas.draw()
    frames = [box.get_window_extent() for box in boxes_in(ax)]
    whole = ax.figure.bbox
    for text in ax.texts:
        found = text.get_window_extent()
        assert any(
            frame.x0 - 0.5 <= found.x0
            and found.x1 <= frame.x1 + 0.5
            and frame.y0 - 0.5 <= found.y0
            and found.y1 <= frame.y1 + 0.5
            for frame in frames
        ), text.get_text()
    for frame in frames:
        assert whole.x0 <= frame.x0
        assert whole.y0 <= frame.y0
        assert frame.x1 <= whole.x1
        assert frame.y1 <= whole.y1
