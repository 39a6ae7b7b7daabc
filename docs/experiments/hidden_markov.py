"""The case studies of hidden Markov models: ``python docs/experiments/hidden_markov.py``."""

from __future__ import annotations

import gzip
import warnings
from typing import Any

import numpy as np
import pandas as pd
from real_data import DATA
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb

QUAKES = DATA / "series" / "earthquakes_counts_1900_2006.txt"
GEYSER = DATA / "series" / "MASS_geyser.csv"
ENGLISH = DATA / "tagging"


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


def told(what: str, model: tb.HiddenMarkovModel, X: list[Any]) -> None:
    """Print what a model fits of the geyser."""
    print(f"{what:<28}{model.score_samples(X)[0]:>10.1f}{model.n_parameters_:>5}{model.bic_:>9.1f}")


def geyser() -> None:
    """299 eruptions of Old Faithful: how long it was waited for each, and how long it lasted, in minutes."""
    rows = pd.read_csv(GEYSER)
    settings: dict[str, Any] = {"estimate": "mle", "n_init": 5, "max_iter": 500, "random_state": 0}
    print(f"\n{'waiting and duration':<28}{'log lik.':>10}{'free':>5}{'BIC':>9}")
    families = (tb.MultivariateGaussian(), tb.TiedMultivariateGaussian(), tb.Gaussian(), tb.TiedGaussian())
    for n_states in (2, 3):
        for family in families:
            told(
                f"{n_states} {type(family).__name__}",
                tb.HiddenMarkovModel(n_states, family, **settings).fit([rows]),
                [rows],
            )
    settings["estimate"], lasts = "bayes", [rows[["duration"]]]
    print("duration")
    for n_states, components in ((2, None), (2, 2), (4, None)):
        model = tb.HiddenMarkovModel(n_states, tb.Gaussian(), components=components, **settings).fit(lasts)
        told(f"{n_states} states, {components or 1} component{'s' * bool(components)}", model, lasts)
        if components:
            print(model.parameter_table("duration"), model.parameter_table("component"), sep="\n")
    print("waiting")
    for n_states in (1, 2):
        for family in (tb.Gaussian(), tb.Autoregressive()):
            model = tb.HiddenMarkovModel(n_states, {"waiting": family}, **settings).fit([rows])
            told(f"{n_states} {type(family).__name__}", model, [rows])
    print(model.parameter_table("waiting"), model.forecast([rows])[0], sep="\n")


def earthquakes() -> None:
    """Print log likelihoods, AIC and BIC of the earthquakes by the number of states, and how many starts reach them."""
    years = quakes()
    print(f"{'states':>6}{'log lik.':>11}{'AIC':>9}{'BIC':>9}{'reached':>9}  rates")
    for n_states in (1, 2, 3, 4):
        best = climbed(n_states, 0, n_init=20)
        values = np.array(best.objectives_)
        n_free, value = best.n_parameters_, values.max()
        aic, bic = -2 * value + 2 * n_free, -2 * value + n_free * np.log(best.n_rows_)
        reached = int((values > value - 0.01).sum())
        rates = ", ".join(f"{rate:.2f}" for rate in np.sort(next(iter(best.emission_.values()))[:, 0]))
        print(f"{n_states:>6}{value:>11.4f}{aic:>9.1f}{bic:>9.1f}{reached:>6}/20  {rates}")
    for n_states in (2, 3):
        value = climbed(n_states, 0, start="stationary").score_samples([years])[0]
        print(f"{n_states:>6}{value:>11.4f}  with a stationary start")


def sentences(part: str, seed: int) -> tuple[list[str], list[str]]:
    """The documents of UD English EWT one after another in random order: their sentences, and the genre of each."""
    documents: dict[str, list[str]] = {}
    with gzip.open(ENGLISH / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# newdoc id = "):
                own = documents[line.removeprefix("# newdoc id = ").strip()] = []
            elif line.startswith("# text = "):
                own.append(line.removeprefix("# text = ").strip())
    names = np.random.default_rng(seed).permutation(np.array(sorted(documents)))
    pairs = [(text, str(name).split("-")[0]) for name in names for text in documents[str(name)]]
    return [text for text, _ in pairs], [genre for _, genre in pairs]


def genres() -> None:
    """Of what genre every sentence is, by its words, and by those of its neighbors."""
    (X, y), (others, truth) = sentences("train", 0), sentences("test", 1)
    alone = tb.NaiveBayes({"text": tb.Text()}).fit({"text": X}, y)
    chain = tb.HiddenMarkovModel(columns={"text": tb.Text()}).fit([{"text": X}], [y])
    right = np.mean(alone.predict({"text": others}) == np.array(truth))
    print(f"\n{len(X):,} sentences, {len(others):,} to be told: {right:.1%} right by themselves, ", end="")
    print(f"{chain.score([{'text': others}], [truth]):.1%} in their order, stays of", end=" ")
    print(", ".join(f"{steps:.0f}" for steps in chain.durations_), chain.states_)


def main() -> None:
    """Measure what there are data for."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    for path, measure in ((QUAKES, earthquakes), (GEYSER, geyser), (ENGLISH, genres)):
        if path.exists():
            measure()
        else:
            print(f"no data at {path}: nothing to measure.")


if __name__ == "__main__":
    main()
