"""A table to show things on: mixed columns, and gaps."""

from __future__ import annotations

from typing import Any

import numpy as np

Columns = dict[str, Any]


def penguins(n: int, seed: int = 0) -> Columns:
    """A table of penguins, made up after the real ones: labels, measurements, counts, and one cell in twenty missing.

    Parameters
    ----------
    n : int
    seed : int, default 0

    Returns
    -------
    dict from column to array
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.44, 0.2, 0.36])
    male = rng.random(n) < 0.5
    share = np.array([[0.29, 0.37, 0.34], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])[kind]
    island = np.array(["Biscoe", "Dream", "Torgersen"], dtype=object)[(rng.random((n, 1)) > share.cumsum(1)).sum(1)]
    bill = rng.normal(np.array([38.8, 48.8, 47.5])[kind] + np.where(male, 1.6, -1.6), 2.4)
    mass = rng.normal(np.array([3700, 3730, 5080])[kind] + np.where(male, 330, -330), 300)
    sex = np.where(male, "male", "female").astype(object)
    for column in (island, sex):
        column[rng.random(n) < 0.05] = None
    for column in (bill, mass):
        column[rng.random(n) < 0.05] = np.nan
    return {
        "island": island,
        "bill_mm": bill.round(1),
        "mass_g": mass.round(),
        "sex": sex,
        "eggs": rng.poisson(np.array([1.9, 1.6, 1.8])[kind]),
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
    }
