"""The size of the query of trees is limited."""

import sqlite3

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.export import sql_trees


def test_large_forests_raise(monkeypatch):
    rows = np.arange(40.0)[:, None], np.arange(40) % 3
    model = tb.CountForest(6).fit(*rows)
    n_leaves = model.counts_.sums[0].shape[0]
    monkeypatch.setattr(sql_trees, "MOST_NUMBERS", 3 * n_leaves)
    assert model.to_sql("duckdb", "rows")
    monkeypatch.setattr(sql_trees, "MOST_NUMBERS", 3 * n_leaves - 1)
    with pytest.raises(tb.ExportError, match=rf"6 trees with {n_leaves} leaves and 3 classes(.|\n)*n_trees="):
        model.to_sql("duckdb", "rows")


def selections(n):
    """All choices of some of n codes, without code 0, which is missing."""
    return [(bits >> np.arange(n)) & 1 == 1 for bits in range(2, 2**n, 2)]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_conditions_hold_for_the_selected_levels(n):
    with sqlite3.connect(":memory:") as connection:
        for selected in selections(n):
            text = sql_trees.level_condition("c", selected)
            cases = ", ".join(f"(SELECT {text} FROM (SELECT {code} AS c))" for code in range(n))
            assert list(connection.execute(f"SELECT {cases}").fetchone()) == selected.tolist()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_conditions_hold_for_the_selected_bins(n):
    edges = [-1.5, 0.0, 1e-30, 2.0, 1e30][: n - 2]
    numbers = ["NULL", "-1e99", *map(repr, edges)]  # of the codes
    with sqlite3.connect(":memory:") as connection:
        for selected in selections(n):
            text = sql_trees.number_condition("x", selected, edges)
            cases = ", ".join(f"(SELECT CASE WHEN {text} THEN 1 ELSE 0 END FROM (SELECT {x} AS x))" for x in numbers)
            assert list(connection.execute(f"SELECT {cases}").fetchone()) == selected.tolist()
