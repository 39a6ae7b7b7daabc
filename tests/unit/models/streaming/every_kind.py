"""Every kind of model of rows that partial_fit, forget by itself, rows for it, whether two have counted the same."""

import functools

import numpy as np
import pandas as pd

import tallybayes as tb
from tallybayes.models.ensemble.members import counts_of

FAMILIES = {"size": tb.Gaussian(), "eggs": tb.Poisson(), "sky": tb.Categorical(), "flag": tb.Bernoulli()}


def rows(seed: int = 0, n: int = 60) -> pd.DataFrame:
    """Numbers far from 0, counts, labels of which some are missing, yes and no, a class."""
    rng = np.random.default_rng(seed)
    sky, y = rng.choice(["sun", "rain", "fog", None], n), rng.choice(["no", "yes", "perhaps"], n)
    table = {"size": rng.normal(size=n) + 1e6, "eggs": rng.poisson(3, n), "sky": sky, "flag": rng.random(n) < 0.5}
    return pd.DataFrame(table | {"y": y})


@functools.cache
def with_bins():
    """A model that has cut numbers into bins by other rows, without these."""
    return tb.AveragedOneDependence().fit(rows(99, 300).fillna({"sky": "fog"}), "y")


LABELS, NUMBERS = ["sky", "flag", "y"], ["size", "eggs", "y"]
KINDS = {
    "naive": (lambda: tb.NaiveBayes(FAMILIES), ["size", "eggs", "sky", "flag", "y"], "y"),
    "absence": (lambda: tb.NaiveBayes({"sky": tb.WithMissing(tb.Categorical())}), ["sky", "y"], "y"),
    "covariances": (tb.GaussianDiscriminant, NUMBERS, "y"),
    "one covariance": (lambda: tb.GaussianDiscriminant(covariance="tied"), NUMBERS, "y"),
    "nearest": (tb.NearestClassMean, NUMBERS, "y"),
    "one-dependence": (tb.AveragedOneDependence, LABELS, "y"),
    "one-dependence, bins": (lambda: with_bins().without_rows(), None, "y"),
    "tree": (tb.TreeAugmentedNaiveBayes, LABELS, "y"),
    "regression": (tb.LinearRegression, ["size", "eggs", "flag"], "size"),
    "network": (lambda: tb.BayesianNetwork({"flag": ("sky", "y"), "sky": ("y",)}), LABELS, None),
}


def given_to(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that a kind takes."""
    columns = KINDS[name][1]
    frame = frame if name in ("naive", "absence") else frame.fillna({"sky": "fog"})
    return frame if columns is None else frame[columns]


def learned(model, frame, y, **more):
    """A model that has learned rows; networks are told of no target."""
    return model.partial_fit(frame, **({} if y is None else {"y": y}), **more)


def tallies(model):
    return [counts_of(one.model) for one in model.members_] if hasattr(model, "members_") else [model.tally_]


def same(one, other) -> bool:
    """Whether two models have counted the same rows."""
    pairs = zip(tallies(one), tallies(other), strict=True)
    return all(mine.isclose(its, 1e-9) for mine, its in pairs)
