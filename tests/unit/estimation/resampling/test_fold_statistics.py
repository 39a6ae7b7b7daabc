"""Counts without each fold: those of the other rows."""

import numpy as np
import pandas as pd
import pytest

from tallybayes.estimation.resampling.fold_statistics import folds_as_columns, leave_fold_out
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.poisson import Poisson
from tallybayes.models.inputs.family_selection import select_families, select_families_by_fold
from tallybayes.models.inputs.input_format import read_initial_rows


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Bernoulli()], ids=["Gaussian", "Poisson", "Bernoulli"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_column_for_each_without_every_fold(family, weighted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    X[5:20, 1] = np.nan
    y, fold = rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    weight = rng.random(60) if weighted else None
    found = folds_as_columns(family.collect(X, fold * 2 + y, 8, weight), 4)
    assert found.given_shape == (2,)
    assert found.n_columns == 15
    for k in range(5):
        rest = fold != k
        heavy = None if weight is None else weight[rest]
        alone = family.collect(X[rest], y[rest], 2, heavy)
        for name in ("weight", "mean", "scatter") if family == Gaussian() else ("weight", "total"):
            wanted = np.broadcast_to(getattr(alone, name), (2, 3))
            np.testing.assert_allclose(getattr(found, name)[:, 3 * k : 3 * k + 3], wanted, rtol=1e-12, atol=1e-14)
    one = family.collect(X, y, 2, weight)
    assert folds_as_columns(one, 1) is one


def test_counts_without_each_fold():
    counted = np.array([[1.0, 2.0], [0.0, 5.0]])
    np.testing.assert_array_equal(leave_fold_out(counted), [[0, 5], [1, 2], [1, 7]])
    np.testing.assert_array_equal(leave_fold_out(counted[:1]), counted[:1])


def test_families_without_a_fold_are_those_of_the_other_rows():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 400)
    frame = pd.DataFrame(
        {
            "coin": rng.integers(0, 2, 400).astype(float),
            "events": rng.poisson(2 + 3 * y).astype(float),
            "sky": rng.choice(["sun", "rain"], 400),
        }
    )
    fold = rng.integers(0, 3, 400)
    frame.loc[(fold == 0) & (y == 1), "sky"] = None  # only in one fold absence tells the class
    shape, table, _ = read_initial_rows(frame, y, None)
    found = select_families_by_fold(table, list(frame), shape.target, None, fold)
    for k in range(3):
        rest = table.rows(np.flatnonzero(fold != k))
        wanted = {one.column: one.family for one in select_families(rest, list(frame), shape.target)}
        assert found.by_fold[k] == wanted
    assert found.by_fold[0]["sky"] != found.by_fold[1]["sky"]
    assert [(one.column, one.family) for one in found.of_all] == [
        (one.column, one.family) for one in select_families(table, list(frame), shape.target)
    ]
