"""Queries of trees: their size is limited, and databases plan deep trees with many leaves."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.export import sql_trees
from tests.unit.export import test_sql_export
from tests.unit.export.test_sql_export import Database


def test_large_forests_raise(monkeypatch):
    rows = np.arange(40.0)[:, None], np.arange(40) % 3
    model = tb.CountForest(6).fit(*rows)
    n_leaves = model.counts_.sums[0].shape[0]
    monkeypatch.setattr(sql_trees, "MOST_NUMBERS", 3 * n_leaves)
    assert model.to_sql("duckdb", "rows")
    monkeypatch.setattr(sql_trees, "MOST_NUMBERS", 3 * n_leaves - 1)
    with pytest.raises(tb.ExportError, match=rf"6 trees with {n_leaves} leaves and 3 classes(.|\n)*n_trees="):
        model.to_sql("duckdb", "rows")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgresql"])
def test_deep_trees_with_many_leaves(dialect, request):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd")).assign(
        level=rng.choice(list("uvwxyz"), 900), y=rng.choice(["p", "q"], 900)
    )
    model = tb.CountForest(200, min_leaf=1).fit(frame, "y")  # without structure, so that trees are deep
    assert len(model.counts_.sums[0]) > 33_000
    asked = frame.drop(columns="y").assign(id=range(900), a=frame["a"].where(rng.random(900) < 0.9))[:40]
    test_sql_export.check(model, Database(dialect, request), asked, 1e-11)
