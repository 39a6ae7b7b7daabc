"""Pictures of priors that were learned."""

from __future__ import annotations

import numpy as np
from canvas import BLUE, GREY, ORANGE, RED, label, new_figure
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import tallybayes as tb


def players() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether every throw hit, who threw, and how good the players are: the table of chapter 13."""
    rng = np.random.default_rng(1)
    n_throws = rng.integers(5, 60, 200)
    player = np.repeat(np.arange(200), n_throws)
    skill = rng.beta(12, 28, 200)
    return rng.random(len(player)) < skill[player], player, skill


def draw_shrinkage() -> Figure:
    """Estimates of 200 players by themselves and under the empirical prior, and how far each is from the truth."""
    figure, panels = new_figure(2)
    hits, player, skill = players()
    found = tb.learn(hits, tb.Bernoulli(), group=player)
    own = np.asarray(found.estimate("mle"))
    drawn = np.asarray(found.estimate("bayes", prior="empirical"))
    n_throws = np.bincount(player)
    panels[0].plot([n_throws, n_throws], [own, drawn], "-", color=GREY, linewidth=0.6)
    panels[0].plot(n_throws, own, "o", color=ORANGE, markersize=4, label="relative frequency")
    panels[0].plot(n_throws, drawn, "o", color=BLUE, markersize=4, label="empirical prior")
    label(panels[0], "Few throws: pulled far", "throws", "estimated probability to hit", top=0.8, span=(0, 61))
    panels[0].legend(loc="upper right")
    for estimate, colour in ((own, ORANGE), (drawn, BLUE)):
        panels[1].plot(skill, estimate, "o", color=colour, markersize=4)
    panels[1].plot([0, 0.8], [0, 0.8], "--", color=RED, linewidth=1.4, label="perfect")
    label(panels[1], "Nearer to the truth", "true probability", "", top=0.8, span=(0.05, 0.6))
    panels[1].legend(loc="upper left")
    return figure


def draw_prior_path() -> Figure:
    """Evidence, log-loss and accuracy of the digits under priors of several strengths."""
    images, digits = load_digits(return_X_y=True)
    figure = Figure(figsize=(6.6, 6.6), layout="constrained")
    path = tb.prior_path(tb.NaiveBayes(tb.Bernoulli(), prior=1), images > 7, digits, np.geomspace(0.01, 100, 9))
    for axes in path.plot(figure.subplots(3, sharex=True)).axes:
        axes.yaxis.label.set_size(10)
    return figure
