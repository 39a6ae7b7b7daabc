"""Pictures of hidden Markov models, and the earthquakes measured: ``python docs/pictures/hidden_markov.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import BLUE, GREY, ORANGE, label, new_figure
from matplotlib.figure import Figure
from real_data import DATA

import tallybayes as tb

QUAKES = DATA / "series" / "earthquakes_counts_1900_2006.txt"


def ice_cream() -> tb.HiddenMarkovModel:
    """The diary of the chapter, by maximum likelihood."""
    diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    weather = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)


def draw_trellis() -> Figure:
    """All paths through three days, the forward probabilities, and the best path."""
    figure, (axes,) = new_figure(1)
    model, eaten = ice_cream(), [1, 2, 3]
    states = model.states_.tolist()
    emission = model.emission_[0]
    forward = np.empty((3, 2))
    forward[0] = model.start_ * emission[eaten[0]]
    for day in (1, 2):
        forward[day] = forward[day - 1] @ model.transition_ * emission[eaten[day]]
    path = [states.index(state) for state in model.predict([eaten])[0]]
    for day in (0, 1):
        for a in range(2):
            for b in range(2):
                best = path[day] == a and path[day + 1] == b
                dead = forward[day, a] == 0 or emission[eaten[day + 1]][b] == 0
                looks = {"color": BLUE if best else GREY, "lw": 3.5 if best else 1.2, "ls": ":" if dead else "-"}
                axes.annotate(
                    "",
                    (day + 0.8, 1 - b),
                    (day + 0.2, 1 - a),
                    arrowprops={"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0, **looks},
                )
                value = f"{model.transition_[a, b]:.2f} · {emission[eaten[day + 1]][b]:.2f}"
                axes.text(
                    day + 0.35,
                    1 - a + 0.35 * (a - b) + (0.06 if a == b else 0.02 + 0.05 * (b - a)),
                    value,
                    fontsize=9.5,
                    ha="left" if a == b else "center",
                    color=BLUE if best else GREY,
                    backgroundcolor="white",
                    zorder=1 if a == b else 3,
                )
    for day in range(3):
        for state in range(2):
            on = path[day] == state
            box = {"boxstyle": "round,pad=0.45", "fc": "white", "ec": BLUE if on else GREY, "lw": 2.5 if on else 1.2}
            text = f"{states[state]}\nα = {forward[day, state]:.3f}"
            axes.text(day, 1 - state, text, ha="center", va="center", bbox=box, fontsize=11, zorder=4)
        axes.text(day, -0.42, f"day {day + 1}: {eaten[day]} eaten", ha="center", va="center", fontsize=11)
    axes.set_title(f"p(1, 2, 3) = {forward[2].sum():.4f}, the sum of the last α; best path in blue")
    axes.set_xlim(-0.35, 2.35)
    axes.set_ylim(-0.6, 1.35)
    axes.axis("off")
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
    """The transitions of three states, and where twenty starts climb to."""
    if quakes() is None:
        return None
    figure, panels = new_figure(2)
    model = climbed(3, 0, n_init=20)
    model.plot_transitions(panels[0])
    rates = model.emission_[0][:, 0]
    print("rates", dict(zip(model.states_.tolist(), rates.round(2).tolist(), strict=True)))
    climbs = [climbed(3, seed).history_ for seed in range(20)]
    top = max(climb[-1] for climb in climbs)
    for climb in sorted(climbs, key=lambda climb: climb[-1]):
        there = climb[-1] > top - 0.1
        looks: dict[str, Any] = {"color": BLUE if there else ORANGE, "alpha": 0.8, "linewidth": 1.2}
        panels[1].plot(range(1, len(climb) + 1), climb, **looks)
        panels[1].plot(len(climb), climb[-1], "o", markersize=5, **looks)
    n_there = sum(climb[-1] > top - 0.1 for climb in climbs)
    title = f"{n_there} of 20 starts reach −{-top:.2f}"
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
