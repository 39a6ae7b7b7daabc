"""Model files of the current format version: ``python tests/files/frozen.py`` writes all of them again.

Run it whenever `sealed_file.FORMAT`, or a name that files hold, changes. It fits every model of `models`, saves it to
``<name>.tally``, and writes what it predicts to ``answers.json``; ``tests/unit/test_frozen_files.py`` compares.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

import tallybayes as tb

ESTIMATES = ("mle", "unbiased", "map", "bayes")


def rows():
    """Mixed columns with missing cells and a class, enough of each for every estimate."""
    rng = np.random.default_rng(7)
    kind = np.array(["ale", "bock", "cider"])[rng.integers(0, 3, 90)]
    shift = np.select([kind == "ale", kind == "bock"], [0.0, 1.5], 3.0)
    frame = pd.DataFrame(
        {
            "strength": rng.normal(5 + shift, 1.0).round(3),
            "sweetness": rng.normal(2 - shift, 1.5).round(3),
            "color": np.array(["gold", "brown", "clear"])[(rng.integers(0, 4, 90) + shift.astype(int)) % 3],
            "prizes": rng.poisson(1 + shift),
            "bottled": rng.random(90) < 0.2 + shift / 5,
            "price": np.exp(rng.normal(1 + shift / 3, 0.4)).round(3),
            "kind": kind,
        }
    )
    holes = rng.random((90, 3)) < 0.1
    frame.loc[holes[:, 0], "strength"] = np.nan
    frame.loc[holes[:, 1], "color"] = None
    return frame


def add_one(estimate):
    """The prior that adds 1 to every count; the default under map."""
    return None if estimate == "map" else 1


def naive_bayes(estimate):
    columns = {
        "strength": tb.Gaussian(),
        "sweetness": tb.TiedGaussian(),
        "color": tb.Categorical(),
        "prizes": tb.Poisson(),
        "bottled": tb.Bernoulli(),
        "price": tb.LogNormal(),
    }
    return tb.NaiveBayes(columns, estimate=estimate, prior=add_one(estimate), class_prior="frequency").fit(
        rows(), "kind"
    )


def words(estimate):
    counts = np.random.default_rng(8).poisson(1.0, (60, 5)) + np.eye(5, dtype=int)[np.arange(60) % 5]
    model = tb.NaiveBayes(tb.Multinomial(), estimate=estimate, prior=add_one(estimate), class_prior="frequency")
    return model.fit(counts, np.arange(60) % 3)


def discriminant(covariance, estimate):
    frame = rows().dropna()
    model = tb.GaussianDiscriminant(covariance, estimate=estimate, class_prior="frequency")
    return model.fit(frame[["strength", "sweetness"]], frame["kind"].to_numpy())


def nearest_mean():
    frame = rows().dropna()
    return tb.NearestClassMean("mahalanobis").fit(frame[["strength", "sweetness"]], frame["kind"].to_numpy())


def mixture(estimate):
    frame = rows()[["strength", "color"]]
    return tb.Mixture(2, estimate=estimate, prior=add_one(estimate), random_state=0).fit(frame)


def chain(estimate):
    frame = rows()[["strength", "prizes"]].fillna(5.0)
    return tb.HiddenMarkovModel(estimate=estimate, end_state=True).fit(
        [frame[:40], frame[40:]], [rows()["kind"].to_numpy()[:40], rows()["kind"].to_numpy()[40:]]
    )


def hidden_chain(estimate):
    rolls = np.random.default_rng(9).poisson(np.repeat([1.0, 6.0, 1.0, 6.0], 30))[:, None]
    return tb.HiddenMarkovModel(2, columns=tb.Poisson(), estimate=estimate, random_state=0).fit([rolls])


def network(estimate):
    parents = {"kind": [], "color": ["kind"], "bottled": ["kind", "color"], "strength": ["kind"]}
    return tb.BayesianNetwork(parents, estimate=estimate).fit(rows().dropna())


def calibrated(method):
    frame = rows()[["strength", "prizes", "kind"]].dropna()
    model = tb.NaiveBayes({"strength": tb.Gaussian(), "prizes": tb.Poisson()}).fit(frame, "kind")
    return model.calibrate(frame, "kind", method)


def one_dependence(make):
    return make(bins=3).fit(rows().dropna(), "kind")


def regression():
    frame = rows().dropna()
    return tb.LinearRegression().fit(frame[["strength", "color", "price"]], "price")


def chosen():
    return tb.AutoClassifier(folds=2, random_state=0).fit(rows()[["strength", "color", "kind"]].dropna(), "kind")


def online_filter():
    found = given_chain().online_filter()
    for count in (1, 7, 5):
        found.update([count])
    return found


def streaming(make):
    return make.partial_fit(rows()[["color", "kind"]], "kind")


def given_naive_bayes():
    ale, cider = {"gold": 0.5, "brown": 0.25, "clear": 0.25}, {"gold": 0.9, "clear": 0.1}
    columns = {
        "color": {"ale": ale, "bock": {"brown": 1.0}, "cider": cider},
        "strength": {k: {"mean": m, "variance": 1.5} for k, m in (("ale", 5), ("bock", 6.5), ("cider", 8))},
        "prizes": {k: {"rate": r} for k, r in (("ale", 1), ("bock", 2.5), ("cider", 4))},
        "bottled": {"ale": 0.2, "bock": 0.5, "cider": 0.8},
    }
    return tb.NaiveBayes.from_parameters(columns, {"ale": 0.5, "bock": 0.25, "cider": 0.25})


def given_discriminant():
    means = {"ale": {"strength": 5, "sweetness": 2}, "bock": {"strength": 6.5, "sweetness": 0.5}}
    spreads = {"ale": [[1, 0.5], [0.5, 2]], "bock": [[2, 0], [0, 1]]}
    return tb.GaussianDiscriminant.from_parameters(means, spreads, {"ale": 0.75, "bock": 0.25}, covariance="tied")


def given_chain():
    moves = {"calm": {"calm": 0.9, "busy": 0.1}, "busy": {"calm": 0.5, "busy": 0.5}}
    rates = {"calm": {"rate": 1}, "busy": {"rate": 6}}
    return tb.HiddenMarkovModel.from_tables({"calm": 1.0, "busy": 0.0}, moves, rates, end={"calm": 0.1, "busy": 0.0})


def given_network():
    levels = {"kind": ["ale", "bock", "cider"], "color": ["gold", "brown", "clear"]}
    tables = {"kind": [0.5, 0.25, 0.25], "color": [[0.5, 0.25, 0.25], [0, 1, 0], [0.9, 0, 0.1]]}
    return tb.BayesianNetwork.from_tables({"color": ["kind"]}, levels, tables)


def models():
    """Return, by the names of the files, functions that fit the models."""
    found = {
        "nearest-mean": nearest_mean,
        "given-naive-bayes": given_naive_bayes,
        "given-discriminant": given_discriminant,
        "given-chain": given_chain,
        "given-network": given_network,
        "calibrated-temperature": lambda: calibrated("temperature"),
        "calibrated-isotonic": lambda: calibrated("isotonic"),
        "tree-augmented": lambda: one_dependence(tb.TreeAugmentedNaiveBayes),
        "averaged-one-dependence": lambda: one_dependence(tb.AveragedOneDependence),
        "regression": regression,
        "chosen": chosen,
        "online-filter": online_filter,
        "window": lambda: streaming(tb.Window(tb.NaiveBayes(), rows=50)),
        "decayed": lambda: streaming(tb.Decayed(tb.NaiveBayes(), half_life=30)),
    }
    for estimate in ESTIMATES:
        for make in (naive_bayes, words, mixture, chain, hidden_chain, network):
            found[f"{make.__name__.replace('_', '-')}-{estimate}"] = lambda make=make, e=estimate: make(e)
        for covariance in tb.GaussianDiscriminant.families:
            name = f"discriminant-{covariance.replace('_', '-')}-{estimate}"
            found[name] = lambda c=covariance, e=estimate: discriminant(c, e)
    return found


def answers(name, model):
    """Return what a model predicts for some rows, as numbers."""
    frame = rows().dropna()[:8]
    if name.startswith("words"):
        found = model.predict_log_proba(np.arange(20).reshape(4, 5))
    elif name.startswith(("hidden-chain", "given-chain")):
        found = model.score_samples([np.arange(8)[:, None]])
    elif name.startswith("chain"):
        found = model.score_samples([frame[["strength", "prizes"]]])
    elif name == "online-filter":
        found = [*np.log(model.proba), model.log_likelihood]
    elif name == "given-naive-bayes":
        found = model.predict_joint_log_proba(frame[["color", "strength", "prizes", "bottled"]])
    elif name == "given-network":
        found = model.score_samples(frame[["color", "kind"]])
    elif name.startswith("network"):
        found = model.score_samples(frame[["color", "strength"]])
    elif name.startswith("mixture"):
        found = model.score_samples(frame[["strength", "color"]])
    elif name == "regression":
        found = model.predict(frame[["strength", "color"]])
    elif name in ("window", "decayed"):
        found = model.model_.predict_log_proba(frame[["color"]])
    elif name.startswith(("discriminant", "nearest-mean", "given-discriminant")):
        found = model.predict_log_proba(frame[["strength", "sweetness"]])
    else:  # classifiers, which find their columns by name
        found = model.predict_log_proba(frame.drop(columns="kind"))
    return np.asarray(found).ravel().tolist()


def write_files(folder):
    """Fit every model, save it, and write what it predicts."""
    fitted = {name: fit() for name, fit in models().items()}
    known = {name: answers(name, model) for name, model in fitted.items()}
    for stale in folder.rglob("*.tally"):
        stale.unlink()
    for name, model in fitted.items():
        model.save(folder / f"{name}.tally")
    (folder / "answers.json").write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    write_files(Path(__file__).parent)
