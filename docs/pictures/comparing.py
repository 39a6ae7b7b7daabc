"""Pictures of models compared by evidence."""

from __future__ import annotations

import numpy as np
from canvas import BLUE, GREEN, GREY, ORANGE, RED, label, new_figure
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_iris

import tallybayes as tb


def draw_occam() -> Figure:
    """The evidence of four covariances of iris while the rows come in, against the tied one."""
    figure, panels = new_figure(2)
    iris = load_iris()
    order = np.random.default_rng(0).permutation(len(iris.data))
    names = ("full", "tied", "diagonal", "spherical")
    numbers = np.arange(9, 151, 3)
    gains = []
    for n in numbers:
        model = tb.GaussianDiscriminant().fit(iris.data[order[:n]], iris.target[order[:n]])
        found = tb.compare({name: model.reestimate(covariance=name) for name in names})
        gains.append([found.bayes_factor(name, "tied") for name in names])
    looks = [(BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (GREY, ":")]
    for name, gain, (colour, line) in zip(names, np.transpose(gains), looks, strict=True):
        for axes in panels:
            axes.plot(numbers, gain, line, color=colour, label=name)
    label(panels[0], "All of iris", "rows", "Bayes factor against tied, bits", bottom=-220, top=70, span=(0, 150))
    label(panels[1], "The same, closer", "rows", "", bottom=-24, top=12, span=(0, 75))
    panels[0].legend(loc="lower left")
    return figure


def draw_log_normal() -> Figure:
    """One column of the breast cancer table: its histogram among benign tumours, and three families."""
    figure, panels = new_figure(2)
    table = load_breast_cancer(as_frame=True)
    benign = table.data["area error"][table.target == 1].to_numpy()
    found = tb.suggest_columns(table.data[["area error"]], table.target).details["area error"]
    binned = next(one.family for one in found.candidates if isinstance(one.family, tb.Binned))
    families = {"Gaussian": tb.Gaussian(), "LogNormal": tb.LogNormal(), f"Binned of {len(binned.edges) - 1}": binned}
    looks = [(RED, "--"), (BLUE, "-"), (GREEN, "-")]
    for (name, family), (colour, line) in zip(families.items(), looks, strict=True):
        axes = panels[1] if name.startswith("Binned") else panels[0]
        # What lies below the first edge counts in the first bin, and has no density of its own.
        x = np.linspace(binned.ends[0] if family is binned else 0.1, 80, 1600)
        height = np.exp(tb.learn(benign, family).predictive().log_prob(x))
        axes.plot(x, height, line, color=colour, label=name)
    for axes in panels:
        axes.hist(benign, bins=np.arange(0, 80, 2.5), density=True, color="#D0D0D0", label="357 benign tumours")
        axes.legend(loc="upper right")
    label(panels[0], "Two bells", "area error", "density", top=0.085, span=(0, 80))
    label(panels[1], "Bins", "area error", "", top=0.085, span=(0, 80))
    return figure
