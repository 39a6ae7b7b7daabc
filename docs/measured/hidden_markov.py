"""The earthquakes of chapter 18: ``python docs/measured/hidden_markov.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
from real_data import DATA

import tallybayes as tb

QUAKES = DATA / "series" / "earthquakes_counts_1900_2006.txt"


def ice_cream() -> tb.HiddenMarkovModel:
    """The diary of the chapter, by maximum likelihood."""
    diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
    weather = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)


def quakes() -> dict[str, np.ndarray]:
    """Major earthquakes a year from 1900 on."""
    return {"major earthquakes a year": np.loadtxt(QUAKES)}


def climbed(n_states: int, seed: int, n_init: int = 1, start: str | None = None) -> tb.HiddenMarkovModel:
    """A model of the earthquakes by maximum likelihood."""
    settings: dict[str, Any] = {
        "estimate": "mle",
        "max_iter": 3000,
        "tol": 1e-9,
        "n_init": n_init,
        "random_state": seed,
        "start": start,
    }
    return tb.HiddenMarkovModel(n_states, tb.Poisson(), **settings).fit([quakes()])


def main() -> None:
    """Print log likelihoods, AIC and BIC of the earthquakes by the number of states, and how many starts reach them."""
    if not QUAKES.is_file():
        print(f"no data at {QUAKES}: nothing to measure.")
        return
    years = quakes()
    print(f"{'states':>6}{'log lik.':>11}{'AIC':>9}{'BIC':>9}{'reached':>9}  rates")
    for n_states in (1, 2, 3, 4):
        models = [climbed(n_states, seed) for seed in range(20)]
        values = np.array([model.score_samples([years])[0] for model in models])
        best = models[int(values.argmax())]
        n_free, value = best.n_parameters_, values.max()
        aic, bic = -2 * value + 2 * n_free, -2 * value + n_free * np.log(best.n_rows_)
        reached = int((values > value - 0.01).sum())
        rates = ", ".join(f"{rate:.2f}" for rate in np.sort(best.emission_[0][:, 0]))
        print(f"{n_states:>6}{value:>11.4f}{aic:>9.1f}{bic:>9.1f}{reached:>6}/20  {rates}")
    for n_states in (2, 3):
        value = climbed(n_states, 0, start="stationary").score_samples([years])[0]
        print(f"{n_states:>6}{value:>11.4f}  with a stationary start")


if __name__ == "__main__":
    main()
