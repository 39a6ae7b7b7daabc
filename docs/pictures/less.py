"""Pictures of learning from less, and penguins without their species: ``python docs/pictures/less.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from canvas import BLUE, GREEN, GREY, ORANGE, RED, label, new_figure
from holes import birds, split_columns
from matplotlib.figure import Figure
from real_data import DATA
from sklearn.metrics import adjusted_rand_score
from unlabelled import LABELS, learning_curve

import tallybayes as tb


def draw_learning_curve() -> Figure | None:
    """Accuracy on 20 Newsgroups by the number of labels, with and without the other posts."""
    found = learning_curve()
    if found is None:
        return None
    print("labels a group:", *(f"{n:>6}" for n in LABELS))
    for name, line in zip(("labels alone", "all posts"), found, strict=True):
        print(f"{name:<15}", *(f"{value:6.3f}" for value in line))
    figure, (axes,) = new_figure(1)
    axes.plot(LABELS, found[1], "-o", color=BLUE, label="and all other posts, without labels")
    axes.plot(LABELS, found[0], "--s", color=ORANGE, label="posts with labels alone")
    axes.set_xscale("log")
    axes.set_xticks(LABELS, [str(n) for n in LABELS])
    axes.minorticks_off()
    label(axes, "20 Newsgroups: what unlabelled posts are worth", "labels a group", "accuracy", bottom=0.2, top=0.9)
    axes.legend(loc="lower right")
    return figure


def draw_geyser() -> Figure | None:
    """Old Faithful: two components, what several starts climb to, and how many components there are."""
    path = DATA / "series" / "faithful.csv"
    if not path.is_file():
        return None
    figure, panels = new_figure(3)
    rows = pd.read_csv(path)
    two = tb.Mixture(2, tb.MultivariateGaussian(), random_state=0).fit(rows)
    two.plot_decision(rows, two.predict(rows), ax=panels[0])
    panels[0].get_legend().remove()
    panels[0].grid(visible=False)
    panels[0].set(title="Old Faithful", xlabel="eruption, minutes", ylabel="wait for the next, minutes")
    _draw_climbs(panels[1], rows)
    _draw_number(panels[2], rows)
    return figure


def _draw_climbs(axes: Any, rows: pd.DataFrame) -> None:
    """The log likelihood of three components after every step, from several starts: not all end on the same top."""
    climbs = []
    for seed in range(8):
        model = tb.Mixture(3, tb.MultivariateGaussian(), estimate="mle", n_init=1, random_state=seed, max_iter=1000)
        climbs.append(model.fit(rows).history_)
    print("3 components, log likelihood:", *(f"{climb[-1]:.1f}" for climb in climbs))
    best = max(range(len(climbs)), key=lambda place: climbs[place][-1])
    for place, climb in enumerate(climbs):
        looks = {"color": BLUE, "zorder": 3} if place == best else {"color": GREY, "linewidth": 1.2, "alpha": 0.7}
        axes.plot(range(1, len(climb) + 1), climb, **looks)
        axes.plot(len(climb), climb[-1], "o", markersize=5, **looks)
    axes.set_xscale("log")
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_yticks(range(-1130, -1110, 5))
    label(axes, "3 components, 8 starts", "steps of EM", "log likelihood, nats")


def _draw_number(axes: Any, rows: pd.DataFrame) -> None:
    """Two measures for the number of components, both in nats."""
    numbers = range(1, 7)
    found = measures(rows, tb.MultivariateGaussian(), numbers)
    axes.plot(numbers, found["bound"], "-o", color=BLUE, label="evidence bound")
    axes.plot(numbers, -found["bic"] / 2, "--s", color=GREEN, label="−BIC/2")
    best = int(found["bound"].argmax())
    axes.plot(numbers[best], found["bound"].iloc[best], "o", color=RED, markersize=9, zorder=4)
    print(found.round(1).to_string())
    label(axes, "How many components?", "components", "nats, higher is better")
    axes.set_xticks(list(numbers))
    axes.legend(loc="lower right")


def prior_of_one(rows: pd.DataFrame, columns: Any) -> list[Any]:
    """What a single component believes about numbers, add-one for labels: one prior for any number of components."""
    one = tb.Mixture(1, columns).fit(rows)
    numbers = [belief for belief in one.prior_.values() if not isinstance(belief, tb.Dirichlet)]
    return [*numbers, 1] if len(numbers) < len(one.prior_) else numbers


def measures(rows: pd.DataFrame, columns: Any, numbers: Any, truth: Any = None) -> pd.DataFrame:
    """BIC, evidence bound and agreement with the truth, by the number of components."""
    prior, found = prior_of_one(rows, columns), {}
    for k in numbers:
        model = tb.Mixture(k, columns, prior=prior, n_init=10, random_state=0, max_iter=1000).fit(rows)
        found[k] = {"bic": model.bic_, "bound": model.evidence_bound_}
        if truth is not None:
            found[k]["agreement"] = adjusted_rand_score(truth, model.predict(rows))
    return pd.DataFrame(found).T


def main() -> None:
    """Print how many components the penguins have, and how well they agree with the species."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    table = birds()
    species = table.pop("species")
    gaps = table.mask(np.random.default_rng(0).random(table.shape) < 0.2)
    for what, rows in (("as they are", table), ("two cells in ten removed", gaps)):
        for without in (["sex"], []):
            X = rows.drop(columns=without)
            numbers, labels = split_columns(X)
            block = {tuple(numbers): tb.MultivariateGaussian()} | {name: tb.Categorical() for name in labels}
            for name, columns in (("every column alone", "auto"), ("measurements in one block", block)):
                print(f"\npenguins {what}, {list(X)}, {name}")
                print(measures(X, columns, range(1, 8), species).round(3).to_string())


if __name__ == "__main__":
    main()
