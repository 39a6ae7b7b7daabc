"""Factors and schemas: names as people give them, places of columns, and what decides what is counted."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.tally.factor import Factor


def test_names_come_alone_or_together():
    assert Factor("a", None, tb.Gaussian()).columns == ("a",)
    assert Factor("a", None, tb.Gaussian()).given == ()
    found = Factor(np.int64(3), ("k", np.int32(1)), tb.Gaussian())
    assert (found.columns, found.given) == ((3,), ("k", 1))
    assert type(found.columns[0]) is int
    assert Factor(["a", "b"], "k", tb.Gaussian()) == Factor(("a", "b"), ("k",), tb.Gaussian())


@pytest.mark.parametrize("bad", [(1.5,), ((1, 2),), (None,)])
def test_what_is_no_name_is_refused(bad):
    with pytest.raises(DataError, match="a name in columns"):
        Factor(bad, (), tb.Gaussian())
    with pytest.raises(DataError, match="a name in given"):
        Factor("a", bad, tb.Gaussian())
    with pytest.raises(DataError, match="a family such as"):
        Factor("a", (), "gaussian")


def test_places_of_columns_and_of_blocks():
    several, block = Factor(("a", "b"), (), tb.Gaussian()), Factor("x", (), tb.Gaussian())
    assert [several.column(k) for k in (0, 1)] == ["a", "b"]
    assert block.column(0) == block.column(0, 1) == "x"
    assert [block.column(k, 3) for k in range(3)] == [("x", 0), ("x", 1), ("x", 2)]
    assert [several.index_of(name, 2) for name in ("a", "b", "c")] == [0, 1, None]
    assert [block.index_of(name, 3) for name in (("x", 2), ("x", 3), ("x", -1), ("x", "a"), "x")] == [
        2,
        None,
        None,
        None,
        0,
    ]


def test_what_decides_what_is_counted():
    plain = Factor("a", "k", tb.Multinomial())
    assert plain.statistics_key == Factor("a", "k", tb.DirichletMultinomial(), tb.Dirichlet(3)).statistics_key
    assert plain.statistics_key != Factor("a", "j", tb.Multinomial()).statistics_key
    assert Factor("a", (), tb.Categorical()).level_columns == ("a",)
    assert plain.level_columns == ()
    assert Factor("a", (), tb.Text()).word_columns == ("a",)
    assert Factor("a", (), tb.Text(hash_bits=4)).word_columns == ()
