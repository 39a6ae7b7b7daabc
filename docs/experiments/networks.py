"""The figures of the chapter on Bayesian networks: ``python docs/experiments/networks.py``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from holes import arff
from real_data import DATA

import tallybayes as tb

PARENTS = {"alarm": ["tampering", "fire"], "smoke": ["fire"], "leaving": ["alarm"], "report": ["leaving"]}
NODES = ["tampering", "fire", "alarm", "smoke", "leaving", "report"]
ANSWERS = tb.Categorical(levels=[False, True])
ALARM = DATA / "networks" / "alarm.bif.gz"


def network(tampering: float, fire: float, alarm: Any, smoke: Any, leaving: Any, report: Any) -> tb.BayesianNetwork:
    """The fire alarm, from the probabilities of True."""
    given = dict(zip(NODES, (tampering, fire, alarm, smoke, leaving, report), strict=True))
    tables = {node: np.stack([1 - np.array(p), np.array(p)], axis=-1) for node, p in given.items()}
    return tb.BayesianNetwork.from_tables(PARENTS, dict.fromkeys(NODES, (False, True)), tables)


def fire_alarm() -> tb.BayesianNetwork:
    """Poole and Mackworth's numbers."""
    return network(0.02, 0.01, [[0.0001, 0.99], [0.85, 0.5]], [0.01, 0.9], [0.001, 0.88], [0.01, 0.75])


def clinic() -> tb.BayesianNetwork:
    """ASIA, a chest clinic: Lauritzen and Spiegelhalter's numbers."""
    parents = {"tub": "asia", "lung": "smoke", "bronc": "smoke", "either": ["lung", "tub"], "xray": "either"}
    parents |= {"dysp": ["bronc", "either"]}
    chances = {"asia": 0.01, "smoke": 0.5, "tub": [0.01, 0.05], "lung": [0.01, 0.1], "bronc": [0.3, 0.6]}
    chances |= {"either": [[0, 1], [1, 1]], "xray": [0.05, 0.98], "dysp": [[0.1, 0.7], [0.8, 0.9]]}
    tables = {node: np.stack([1 - np.array(p), np.array(p)], axis=-1) for node, p in chances.items()}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, ("no", "yes")), tables)


def guessed() -> tb.BayesianNetwork:
    """What somebody might have said who has seen the building, but no data."""
    return network(0.05, 0.02, [[0.01, 0.9], [0.9, 0.9]], [0.05, 0.9], [0.05, 0.9], [0.05, 0.8])


def workers() -> tuple[dict[str, np.ndarray], list[int]]:
    """1,841 men of a car factory: all 64 answers to six questions, and how many gave each (Reinis and others, 1981)."""
    counts = [44, 5, 23, 7, 35, 4, 24, 4, 129, 9, 50, 9, 109, 14, 51, 5, 112, 21, 70, 14, 80, 11, 73, 13, 12, 1, 7, 2]
    counts += [7, 5, 7, 4, 40, 7, 32, 3, 12, 3, 25, 0, 145, 17, 80, 16, 67, 17, 63, 14, 67, 9, 66, 14, 33, 8, 57, 11]
    counts += [23, 4, 13, 3, 9, 2, 16, 4]
    names = ["smoking", "mental work", "physical work", "pressure", "proteins", "family"]
    return dict(zip(names, np.indices((2,) * 6).reshape(6, -1) == 1, strict=True)), counts


def learned(rows: Any, parents: Any = None, **parameters: Any) -> tb.BayesianNetwork:
    """The fire alarm's tables from rows."""
    return tb.BayesianNetwork(parents or PARENTS, columns=ANSWERS, **parameters).fit(rows)


PRIORS: dict[str, Any] = {
    "add-one (K2), the default": tb.K2(),
    "BDeu(1)": tb.BDeu(1),
    "BDe: a guessed network, worth 10 rows": tb.BDe(guessed(), 10),
}
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)


def divergence(truth: tb.BayesianNetwork, model: tb.BayesianNetwork) -> float:
    """How many bits a row costs too much if coded by the model, on average: all 64 rows weighed by the truth."""
    rows = dict(zip(NODES, np.array(list(product([False, True], repeat=6))).T, strict=True))
    logs = truth.score_samples(rows)
    return float(np.exp(logs) @ (logs - model.score_samples(rows)) / np.log(2))


def approach(repeats: int = 20) -> dict[str, np.ndarray]:
    """The divergence under every prior, by the number of rows: means over some samples."""
    truth = fire_alarm()
    samples = [truth.sample(max(SIZES), random_state=seed) for seed in range(repeats)]
    found: dict[str, np.ndarray] = {}
    for name, prior in PRIORS.items():
        values = [
            [divergence(truth, learned({k: v[:n] for k, v in rows.items()}, prior=prior)) for n in SIZES]
            for rows in samples
        ]
        found[name] = np.mean(values, axis=0)
    return found


def print_learning() -> None:
    """Divergences by prior and number of rows, and how often maximum likelihood knows all rows of its tables."""
    print(f"bits a row from the truth{'':17}" + "".join(f"{n:>9,}" for n in SIZES))
    for name, values in approach().items():
        print(f"  {name:<40}" + "".join(f"{value:9.4f}" for value in values))
    print(f"  {'the guessed network':<40}{divergence(fire_alarm(), guessed()):9.4f}")
    truth = fire_alarm()
    known = [[not learned(truth.sample(n, random_state=s)).unseen_configurations_ for s in range(100)] for n in SIZES]
    print(f"  {'samples of 100 with every combination':<40}" + "".join(f"{sum(seen):9}" for seen in known))


def print_missing(n: int = 20_000, repeats: int = 10) -> None:
    """What becomes of the tables if the alarm's cells are removed in two ways."""
    truth = fire_alarm()
    results: dict[str, list[list[float]]] = {}

    def asked(model: tb.BayesianNetwork) -> list[float]:
        leaving, alarm = model.cpt("leaving"), model.cpt("alarm")
        return [leaving[False][True], leaving[True][True], alarm[True, False][True], model.query("fire", SEEN)[True]]

    SEEN = {"report": True}
    for seed in range(repeats):
        rows, rng = truth.sample(n, random_state=seed), np.random.default_rng([seed, 1])
        ways = {"at random": rng.random(n) < 0.5, "unless people left": ~rows["leaving"] & (rng.random(n) < 0.95)}
        results.setdefault("no cell removed", []).append(asked(learned(rows)))
        for way, gone in ways.items():
            holes = rows | {"alarm": np.where(gone, None, rows["alarm"])}
            for missing in ("available", "em"):
                results.setdefault(f"{way}, {missing}", []).append(asked(learned(holes, missing=missing)))
    print(f"\n{'':34}leaving | no alarm  leaving | alarm  alarm | tampering  fire | report")
    print(f"{'the truth':<34}" + "".join(f"{value:>18.4f}" for value in asked(truth)))
    for name, values in results.items():
        print(f"{name:<34}" + "".join(f"{value:>18.4f}" for value in np.mean(values, axis=0)))


STRUCTURES: dict[str, Any] = {
    "as it is": PARENTS,
    "tampering has no say": PARENTS | {"alarm": ["fire"], "tampering": []},
    "fire also makes people leave": PARENTS | {"leaving": ["alarm", "fire"]},
    "smoke → fire": {node: above for node, above in PARENTS.items() if node != "smoke"} | {"fire": ["smoke"]},
    "nothing depends on anything": {node: [] for node in NODES},
}


def print_structures() -> None:
    """Evidence, BIC and code length of the structures, by the number of rows."""
    for n in (100, 1000, 20_000):
        rows = fire_alarm().sample(n, random_state=0)
        print(f"\n{n:,} rows{'':24}parameters  log evidence (K2)  (BDeu)       BIC   bits by evidence (BDeu)")
        for name, parents in STRUCTURES.items():
            model = learned(rows, parents)
            even = model.reestimate(prior=tb.BDeu(1))
            print(
                f"  {name:<30}{model.n_parameters_:>10}{model.log_evidence():>18.2f}{even.log_evidence():>12.2f}"
                f"{model.bic_:>12.1f}{even.description_length().evidence:>14.1f}"
            )


def tables() -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Tables of labels, and what to predict."""
    for name, file in {"votes": "house-votes-84.data", "mushroom": "agaricus-lepiota.data"}.items():
        table = pd.read_csv(DATA / "tables" / file, header=None)
        table.columns = ["class", *(f"column {k}" for k in range(1, table.shape[1]))]
        yield name, table.mask(table == "?"), "class"
    for name in ("car", "splice", "breast.cancer", "lymph"):
        table = arff(name).drop(columns="Instance_name", errors="ignore")
        numbers = table.select_dtypes("number").columns
        table[numbers] = table[numbers].astype(str)  # small whole numbers: labels
        yield name, table, str(table.columns[-1])


def print_classifiers(repeats: int = 5) -> None:
    """Accuracy and log loss of naive Bayes, TAN and Chow and Liu's tree: ten folds, five times."""
    if not (DATA / "tables").is_dir():
        print(f"\nno data at {DATA / 'tables'}: no classifiers to compare.")
        return
    print("\naccuracy, log loss in ten folds     rows  columns   naive Bayes           TAN               tree")
    for name, table, target in tables():
        scores: dict[str, list[Any]] = {}
        for repeat, fold in product(range(repeats), range(10)):
            held_out = np.random.default_rng(repeat).permutation(len(table)) % 10 == fold
            for kind, found in scored(table[~held_out], table[held_out], target):
                scores.setdefault(kind, []).append(found)
        means = [np.concatenate(found).mean(axis=0) for found in scores.values()]
        shown = "".join(f"   {right:.1%}, {loss:.3f}" for right, loss in means)
        print(f"{name:<34}{len(table):>6}{table.shape[1] - 1:>9}{shown}")


def scored(train: pd.DataFrame, test: pd.DataFrame, target: str) -> Iterator[tuple[str, np.ndarray]]:
    """Whether each test row is right, and its log loss, by three networks."""
    star = {column: [target] for column in train if column != target}
    models = {
        "naive Bayes": tb.BayesianNetwork(star).fit(train),
        "TAN": tb.learn_tree(train, target),
        "tree": tb.learn_tree(train),
    }
    for kind, model in models.items():
        p = model.predict_proba(test.drop(columns=target), target)
        place = {level: k for k, level in enumerate(model.levels_[target])}
        codes = np.array([place[level] for level in test[target]])
        yield kind, np.stack([p.argmax(axis=1) == codes, -np.log(p[np.arange(len(p)), codes])], axis=1)


def print_alarm() -> None:
    """How large ALARM is."""
    if ALARM.is_file():
        model = tb.BayesianNetwork.from_bif(ALARM)
        print(f"\nALARM: {repr(model).splitlines()[0]}")
        tree = model._inference.compile().tree
        print(f"{len(tree.cliques)} cliques, the largest of {max(len(c.variables) for c in tree.cliques)} nodes, ")
        print(f"{tree.n_cells} cells in all")


def main() -> None:
    """Print the figures of the chapter."""
    print_learning()
    print_missing()
    print_structures()
    print_classifiers()
    print_alarm()


if __name__ == "__main__":
    main()
