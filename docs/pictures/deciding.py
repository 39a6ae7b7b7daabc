"""Pictures of uncertainty and decisions."""

from __future__ import annotations

import numpy as np
from canvas import BLUE, GREEN, GREY, ORANGE, RED, label, new_figure
from matplotlib.figure import Figure

import tallybayes as tb
from tallybayes.demo import penguins

COLUMNS = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
BIRD = {"island": ["Dream"], "bill_mm": [44.5], "mass_g": [None], "sex": ["female"], "eggs": [2]}


def draw_intervals() -> Figure:
    """The probabilities of one bird, and 95 % of what they may yet become, while the rows come in."""
    figure, (axes,) = new_figure(1)
    rows = penguins(10_000)
    numbers = np.unique(np.geomspace(20, 10_000, 25).astype(int))
    species = ("Adelie", "Chinstrap", "Gentoo")
    found = []
    for n in numbers:
        model = tb.NaiveBayes(COLUMNS).fit({name: column[:n] for name, column in rows.items()}, "species")
        low, high = model.predict_interval(BIRD)
        found.append([model.predict_proba(BIRD)[0], low[0], high[0]])
    middle, low, high = np.transpose(found, (1, 2, 0))
    looks = [(BLUE, "-"), (ORANGE, "--"), (GREEN, "-.")]
    for k, (colour, line) in enumerate(looks):
        axes.fill_between(numbers, low[k], high[k], color=colour, alpha=0.18, linewidth=0)
        axes.plot(numbers, middle[k], line, color=colour, label=species[k])
    axes.set_xscale("log")
    label(axes, "One bird, and 95 % intervals", "rows learned from", "probability of the species", top=1)
    axes.set_xlim(20, 10_000)
    axes.legend(loc="center right")
    return figure


def draw_expected_cost() -> Figure:
    """What three decisions are expected to cost, by the probability that the tumour is malignant."""
    figure, (axes,) = new_figure(1)
    p = np.linspace(0, 1, 1001)
    costs = {"wait": 100 * p, "operate": 5 * (1 - p), "second opinion": np.full_like(p, 2.0)}
    looks = [(RED, "--"), (BLUE, "-."), (GREEN, ":")]
    for (name, cost), (colour, line) in zip(costs.items(), looks, strict=True):
        axes.plot(p, cost, line, color=colour, label=name)
    least = np.min(list(costs.values()), axis=0)
    axes.plot(p, least, color=GREY, linewidth=6, alpha=0.3, label="the least")
    threshold = 5 / 105
    axes.axvline(threshold, color=GREY, linewidth=1.2)
    axes.text(threshold + 0.015, 0.4, f"5/105 ≈ {threshold:.3f}", color=GREY, fontsize=11)
    label(axes, "The decision of least expected cost", "p(malignant | row)", "expected cost", top=9, span=(0, 1))
    axes.legend(loc="upper right")
    return figure
