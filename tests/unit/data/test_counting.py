"""The tables of a network are counted in one pass, and are what each factor counted alone gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data import counting
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.tally.domain import Domain, Schema

NETWORK = [
    tb.Factor("a", (), tb.Categorical()),
    tb.Factor("b", ("a",), tb.Categorical()),
    tb.Factor("c", ("b", "a"), tb.Categorical()),
]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[list[int]]]:
    """The sets of every joint count."""
    found: list[list[list[int]]] = []
    real = counting.count_joint

    def spy(columns: Any, sizes: Any, sets: Any, weight: Any) -> Any:
        found.append(sets)
        return real(columns, sizes, sets, weight)

    monkeypatch.setattr(counting, "count_joint", spy)
    return found


def one_by_one(data: Any, factors: list[tb.Factor], monkeypatch: pytest.MonkeyPatch) -> tb.Tally:
    """Count every factor on its own, as those are that no joint count is for."""
    with monkeypatch.context() as patch:
        patch.setattr(counting.TallyBuilder, "_count_together", lambda self: None)
        return tb.count(data, factors)


def columns(rng: np.random.Generator, n: int, missing: bool) -> dict[str, Any]:
    a = rng.integers(0, 3, n)
    b = rng.choice(["x", "y"], n).astype(object)
    c = (a + rng.integers(0, 2, n)).astype(float)
    if missing:
        b[rng.random(n) < 0.2] = None
        c[rng.random(n) < 0.2] = np.nan
    return {"a": a, "b": b, "c": c}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_are_what_brute_force_counts(calls: list[Any], missing: bool, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    data = columns(rng, 300, missing)
    weight = rng.integers(0, 5, 300) / 2.0 if weighted else None
    tally = tb.count(data, NETWORK, weight=weight)
    assert calls == [[[0], [0, 1], [1, 0, 2]]]
    for number, factor in enumerate(NETWORK):
        names = (*factor.given, *factor.columns)
        levels = [tally.domains[name].levels for name in names]
        expected = np.zeros([len(found) for found in levels])
        for row in range(300):
            values = [data[name][row] for name in names]
            if not any(value is None or value != value for value in values):
                where = tuple(found.index(value) for found, value in zip(levels, values, strict=True))
                expected[where] += 1.0 if weight is None else weight[row]
        np.testing.assert_array_equal(tally.statistics[number].table, expected)


@pytest.mark.parametrize("missing", [False, True])
def test_one_by_one_is_the_same(calls: list[Any], monkeypatch: pytest.MonkeyPatch, missing: bool) -> None:
    data = columns(np.random.default_rng(1), 100, missing)
    alone = one_by_one(data, NETWORK, monkeypatch)
    assert calls == []
    assert tb.count(data, NETWORK) == alone
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", ["u1", "i8"])
def test_columns_of_an_array_are_counted_where_they_lie(calls: list[Any], dtype: str) -> None:
    X = np.random.default_rng(2).integers(0, 3, (200, 4)).astype(dtype)
    factors = [tb.Factor(3, (1, 2), tb.Categorical()), tb.Factor(1, (2,), tb.Categorical())]
    tally = tb.count(X, factors)
    by_name = tb.count({str(j): X[:, j] for j in range(4)}, [tb.Factor("3", ("1", "2"), tb.Categorical())])
    np.testing.assert_array_equal(tally.statistics[0].table, by_name.statistics[0].table)
    assert calls[0] == [[0, 1, 2], [1, 0]]


def test_labels_beside_an_array() -> None:
    X = np.array([[0], [1], [1]])
    y = np.array(["no", "yes", "no"])
    model = tb.NaiveBayes(columns=tb.Categorical()).fit(X, y)
    assert model.tally_.statistics[1].table.tolist() == [[1.0, 1.0], [0.0, 1.0]]


def test_no_joint_count_without_a_given(calls: list[Any]) -> None:
    data = columns(np.random.default_rng(3), 50, missing=False)
    tb.count(data, [tb.Factor("a", (), tb.Categorical()), tb.Factor("b", (), tb.Categorical())])
    many = {f"x{k}": data["a"] for k in range(9)} | {"b": data["b"]}
    tb.count(many, [tb.Factor(tuple(f"x{k}" for k in range(9)), ("b",), tb.Categorical())])
    assert calls == []


def test_a_few_columns_with_the_same_groups(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = columns(np.random.default_rng(3), 50, missing=True)
    factors = [tb.Factor(("a", "c"), ("b",), tb.Categorical())]
    tally = tb.count(data, factors)
    assert calls == [[[1, 0], [1, 2]]]
    assert tally == one_by_one(data, factors, monkeypatch)


def test_other_factors_are_counted_beside(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = columns(np.random.default_rng(4), 80, missing=False) | {"x": np.linspace(0.0, 1.0, 80)}
    factors = [tb.Factor("x", ("b",), tb.Gaussian()), NETWORK[2], tb.Factor(("a", "c"), ("b",), tb.Categorical())]
    tally = tb.count(data, factors)
    assert calls == [[[1, 0, 2], [1, 0], [1, 2]]]
    alone = one_by_one(data, factors, monkeypatch)
    assert tally == alone
    assert list(tally.domains) == list(alone.domains) == ["b", "a", "c"]


def test_soft_groups_are_not_labels(calls: list[Any]) -> None:
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    factors = [tb.Factor("a", ("s",), tb.Categorical()), tb.Factor("a", ("b",), tb.Categorical())]
    tally = tb.count({"a": [0, 1], "b": [0, 0], "s": shares}, factors)
    assert tally.statistics[0].table.tolist() == [[0.25, 1.0], [0.75, 0.0]]
    assert tally.statistics[1].table.tolist() == [[1.0, 1.0]]
    assert calls == [[[1, 0]]]


def test_a_column_given_itself_is_counted_alone(calls: list[Any]) -> None:
    tally = tb.count({"a": [0, 1, 1], "b": [0, 1, 0]}, [tb.Factor("a", ("a",), tb.Categorical()), NETWORK[1]])
    assert tally.statistics[0].table.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert tally.statistics[1].table.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert calls == [[[0, 1]]]


def test_a_family_that_collects_in_its_own_way_is_asked(calls: list[Any]) -> None:
    class Doubled(tb.Categorical):
        def collect(self, *arguments: Any, **options: Any) -> tb.Counts:
            return super().collect(*arguments, **options).scale(2.0)

    tally = tb.count({"a": [0, 1], "b": [0, 1]}, [tb.Factor("b", ("a",), Doubled())])
    assert tally.statistics[0].table.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert calls == []


def test_levels_are_declared_and_shared(calls: list[Any]) -> None:
    factors = [tb.Factor("b", ("a",), tb.Categorical(levels=("x", "y", "z"))), NETWORK[0]]
    tally = tb.count({"a": ["p", "q"], "b": ["y", "x"]}, factors)
    assert tally.statistics[0].table.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    with pytest.raises(LabelError, match="'w'"):
        tb.count({"a": ["p", "q"], "b": ["y", "w"]}, factors)
    shared = Schema({"from": "state", "to": "state"}, sorted_domains=("state",))
    moves = tb.count({"from": [2, 1], "to": [3, 2]}, [tb.Factor("to", "from", tb.Categorical())], schema=shared)
    assert moves.statistics[0].table.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert len(calls) == 3


def test_edges() -> None:
    nothing = tb.count({"a": np.zeros(0, int), "b": np.zeros(0, int)}, NETWORK[:2])
    assert nothing.statistics[1].table.shape == (0, 0)
    single = tb.count({"a": [5], "b": ["x"], "c": [True]}, NETWORK)
    assert single.statistics[2].table.tolist() == [[[1.0]]]
    absent = tb.count({"a": [None, None], "b": [0, 1]}, NETWORK[:2])
    assert absent.statistics[1].table.size == 0
    weightless = tb.count({"a": [0, 1], "b": [0, 1]}, NETWORK[:2], weight=[1.0, 0.0])
    assert weightless.statistics[1].table.tolist() == [[1.0]]


def test_too_many_combinations() -> None:
    rows = np.arange(1300)
    factors = [NETWORK[1], tb.Factor("d", ("a", "b", "c"), tb.Categorical())]
    with pytest.raises(DataError, match=r"2197000000 combinations of levels.*fewer than 2\*\*31"):
        tb.count({"a": rows, "b": rows, "c": rows, "d": rows}, factors)


def test_unknown_column_and_wrong_codes() -> None:
    with pytest.raises(DataError, match="'b'"):
        tb.count({"a": [0]}, NETWORK[:2])
    table = Table({"b": np.array([0, 1, 1])}).with_codes("a", np.array([0, 7, 1]), Domain([10, 20], "a"))
    with pytest.raises(DataError, match="7"):
        tb.count(table, NETWORK[:2])


def test_presence_of_a_column_whose_missing_cells_are_a_level() -> None:
    rows = {"color": np.array(["red", "red", None, None, None], dtype=object), "kind": ["a"] * 5}
    factors = [tb.Factor("color", "kind", tb.Categorical()), tb.Factor("color (present)", "kind", tb.Bernoulli())]
    schema = Schema(domains=(("color", "word"),), missing_level_domains=("word",))
    tally = counting.count(rows, factors, schema=schema)
    assert tally["color"].table[0].tolist() == [2.0, 3.0]
    assert tally["color (present)"].total.tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("weight", "found"),
    [
        (["u", "v"], "'u' in row 0"),
        (pa.array([None, "v"]).dictionary_encode(), "'v' in row 1"),
        (pa.array(["1.5", "v"]), "'1.5' in row 0"),
        (object(), "<object"),
    ],
    ids=["list", "dictionary", "Arrow", "object"],
)
def test_weights_that_are_no_numbers(weight: Any, found: str) -> None:
    with pytest.raises(tb.DataError, match=f"^weight is {found}.*\n    Pass a numeric column\\.$"):
        tb.count({"a": [0, 1]}, NETWORK[:1], weight=weight)
