"""Plot of a learned structure: line widths by strength, arrowheads for determined directions."""

from __future__ import annotations

import numpy as np
import pytest

import tallybayes as tb

pytest.importorskip("matplotlib")


def rows():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 500))
    c = np.where(rng.random(500) < 0.9, a | b, rng.integers(0, 2, 500))
    x = rng.integers(0, 2, 500)
    return {"a": a, "b": b, "c": c, "$x$_0": x, "y": np.where(rng.random(500) < 0.75, x, 1 - x)}


@pytest.mark.parametrize("bootstrap", [0, 5])
def test_line_widths_by_strength(bootstrap):
    from matplotlib.patches import FancyArrowPatch

    found = tb.learn_structure(rows(), n_bootstrap=bootstrap)
    picture = found.plot()
    lines = [one for one in picture.axes[0].get_children() if isinstance(one, FancyArrowPatch)]
    assert len(lines) == len(found.edges) == 3
    headless = [one for one in lines if type(one.get_arrowstyle()).__name__ == "Curve"]
    assert len(headless) == sum(edge.reversible for edge in found.edges) == 1  # x – y
    if not bootstrap:
        widths = sorted(line.get_linewidth() for line in lines)
        assert widths[0] < widths[-1]
    frame = picture.to_frame()
    assert list(frame["score_gain"]) == [edge.score_gain for edge in found.edges]


def test_structure_without_edges():
    picture = tb.learn_structure({"a": [0, 1, 0, 1], "b": [0, 0, 1, 1]}).plot()
    assert len(picture.to_frame()) == 0
    assert picture.axes[0].get_title() == ""


def test_many_nodes_and_own_axes():
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(1)
    data = {f"column {k}": rng.integers(0, 2, 60) for k in range(40)}
    figure, ax = plt.subplots()
    picture = tb.learn_structure(data, score="aic", n_restarts=0).plot(ax)
    assert picture.axes == (ax,)
    assert picture.figure is figure
