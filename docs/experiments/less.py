"""How many components: Old Faithful, and penguins without their species: ``python docs/experiments/less.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from holes import birds, split_columns
from real_data import DATA
from sklearn.metrics import adjusted_rand_score

import tallybayes as tb


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
    """Print how many components there are, and how well those of the penguins agree with the species."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    geyser = pd.read_csv(DATA / "series" / "faithful.csv")
    print("Old Faithful")
    print(measures(geyser, tb.MultivariateGaussian(), range(1, 7)).round(1).to_string())
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
