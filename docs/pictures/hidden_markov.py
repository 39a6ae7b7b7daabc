"""Pictures of hidden Markov models, and the earthquakes measured: ``python docs/pictures/hidden_markov.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import BLUE, ORANGE, label, new_figure
from matplotlib.figure import Figure
from real_data import DATA

import tallybayes as tb

QUAKES = DATA / "series" / "earthquakes_counts_1900_2006.txt"


def ice_cream() -> tb.HiddenMarkovModel:
    """The diary of the chapter, by maximum likelihood."""
    diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    weather = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)


def draw_hidden_markov_graph() -> Figure:
    """What depends on what."""
    return ice_cream().plot_graph().figure


def draw_trellis() -> Figure:
    """Viterbi's way through three days."""
    figure, (axes,) = new_figure(1)
    (trellis,) = ice_cream().trellis([[1, 2, 3]])
    trellis.plot(axes)
    axes.grid(visible=False)
    axes.set_xticks(range(3), ["day 1: 1 eaten", "day 2: 2 eaten", "day 3: 3 eaten"])
    axes.set_xlabel("")
    return figure


def quakes() -> np.ndarray | None:
    """Major earthquakes a year from 1900 on; None without the data."""
    return np.loadtxt(QUAKES) if QUAKES.is_file() else None


def climbed(n_states: int, seed: int, n_init: int = 1) -> tb.HiddenMarkovModel:
    """A model of the earthquakes by maximum likelihood."""
    settings: dict[str, Any] = {
        "estimate": "mle",
        "max_iter": 3000,
        "tol": 1e-9,
        "n_init": n_init,
        "random_state": seed,
    }
    return tb.HiddenMarkovModel(n_states, tb.Poisson(), **settings).fit([quakes()])


def draw_earthquakes() -> Figure | None:
    """The earthquakes with three states."""
    if quakes() is None:
        return None
    figure = Figure(figsize=(9.4, 4.6), layout="constrained")
    axes = figure.subplots(2, sharex=True, height_ratios=[3, 1])
    climbed(3, 0, n_init=20).plot_states(quakes(), axes)
    axes[0].set_ylabel("major earthquakes")
    axes[0].set_title("Major earthquakes a year, 1900 to 2006, in three states")
    axes[1].set_xlabel("years since 1900")
    axes[1].grid(visible=False)
    return figure


def draw_starts() -> Figure | None:
    """The transitions of three states, and where twenty starts of four climb to."""
    if quakes() is None:
        return None
    figure, panels = new_figure(2)
    model = climbed(3, 0, n_init=20)
    model.plot_transitions(panels[0])
    rates = model.emission_[0][:, 0]
    print("rates", dict(zip(model.states_.tolist(), rates.round(2).tolist(), strict=True)))
    climbs = [climbed(4, seed).history_ for seed in range(20)]
    top = max(climb[-1] for climb in climbs)
    for climb in sorted(climbs, key=lambda climb: climb[-1]):
        there = climb[-1] > top - 0.1
        looks: dict[str, Any] = {"color": BLUE if there else ORANGE, "alpha": 0.8, "linewidth": 1.2}
        panels[1].plot(range(1, len(climb) + 1), climb, **looks)
        panels[1].plot(len(climb), climb[-1], "o", markersize=5, **looks)
    n_there = sum(climb[-1] > top - 0.1 for climb in climbs)
    title = f"Four states: {n_there} of 20 starts reach −{-top:.2f}"
    label(panels[1], title, "steps of EM", "log likelihood, nats")
    return figure


def main() -> None:
    """Print log likelihoods, AIC and BIC of the earthquakes by the number of states, and how many starts reach them."""
    years = quakes()
    if years is None:
        print(f"no data at {QUAKES}: nothing to measure.")
        return
    print(f"{'states':>6}{'log lik.':>11}{'AIC':>9}{'BIC':>9}{'reached':>9}  rates")
    for n_states in (1, 2, 3, 4):
        models = [climbed(n_states, seed) for seed in range(20)]
        values = np.array([model.score_samples([years])[0] for model in models])
        best = models[int(values.argmax())]
        n_free, value = best.n_parameters_, values.max()
        aic, bic = -2 * value + 2 * n_free, -2 * value + n_free * np.log(len(years))
        reached = int((values > value - 0.01).sum())
        rates = ", ".join(f"{rate:.2f}" for rate in np.sort(best.emission_[0][:, 0]))
        print(f"{n_states:>6}{value:>11.4f}{aic:>9.1f}{bic:>9.1f}{reached:>6}/20  {rates}")


if __name__ == "__main__":
    main()
