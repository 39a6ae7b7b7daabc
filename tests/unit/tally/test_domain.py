"""Domain: kinds, order and union of levels."""

import datetime

import numpy as np
import pytest

from tallybayes.errors import LabelError
from tallybayes.tally.domain import Domain


@pytest.mark.parametrize(
    ("levels", "kind", "plain"),
    [
        ([True, False], "bool", (True, False)),
        ([3, 1], "int", (3, 1)),
        (["b", "a"], "string", ("b", "a")),
        ([1.0, -2.0], "int", (1, -2)),
        ([np.int8(1), np.uint64(2**63)], "int", (1, 2**63)),
        ([np.float32(4.0)], "int", (4,)),
        ([np.bool_(True)], "bool", (True,)),
        ([np.str_("a")], "string", ("a",)),
        ([], None, ()),
    ],
)
def test_levels_are_plain_and_of_one_kind(levels, kind, plain):
    domain = Domain(levels, "x")
    assert (domain.kind, domain.levels) == (kind, plain)
    assert {type(level) for level in domain.levels} <= {bool, int, str}


@pytest.mark.parametrize("level", [0.5, None, datetime.date(2024, 1, 1), b"a", float("nan"), float("inf"), ("a",), 1j])
def test_what_cannot_be_a_level(level):
    with pytest.raises(LabelError, match=r"as a level of column 'x'; expected whole numbers, strings or booleans"):
        Domain(["a", level], "x")


@pytest.mark.parametrize("levels", [[1, "a"], [True, 2], [False, "a"], [1.0, "a"]])
@pytest.mark.parametrize("ordered", [False, True])
def test_kinds_do_not_mix(levels, ordered):
    with pytest.raises(LabelError, match="expected one kind"):
        Domain(levels, "x", is_sorted=ordered)
    with pytest.raises(LabelError, match="'x' has"):
        Domain(levels[:1], "x").union(Domain(levels[1:], "x"))


def test_booleans_of_two_kinds_do_not_mix_in_one_column():
    for levels in ([True, 1], [0, False], [True, "false"]):
        with pytest.raises(LabelError, match="expected one kind"):
            Domain(levels, "x")


@pytest.mark.parametrize("levels", [["a", "b", "a"], [1, 1.0], [True, True]])
def test_repeated_levels(levels):
    with pytest.raises(LabelError, match="twice"):
        Domain(levels, "x")


def test_an_ordered_domain_sorts_others_append():
    assert Domain([10, 9, -1], "x", is_sorted=True).levels == (-1, 9, 10)
    first, second = Domain(["m", "b"], "x"), Domain(["a", "b"], "x")
    assert first.union(second).levels == ("m", "b", "a")
    assert Domain(["m", "b"], "x", is_sorted=True).union(second).levels == ("a", "b", "m")
    assert first.union(Domain(["a"], "x", is_sorted=True)).levels == ("a", "b", "m")


def test_a_union_stays_sorted_even_if_the_levels_are_the_same():
    union = Domain(["a", "c"], "x").union(Domain(["a", "c"], "x", is_sorted=True))
    assert union.union(Domain(["b"], "x")).levels == ("a", "b", "c")


def test_union_with_the_empty_domain_takes_the_other_kind():
    empty = Domain([], "x")
    assert empty.union(Domain([1], "x")).kind == "int"
    assert Domain(["a"], "x").union(empty).levels == ("a",)


def test_declared_levels_exist_and_stay():
    domain = Domain(["a"], "x", declared=["c", "b"])
    assert domain.levels == ("a", "c", "b")
    kept = domain.filter(np.zeros(3, dtype=bool))
    assert kept.levels == ("c", "b")
    assert kept.declared == {"b", "c"}


def test_union_unites_what_was_declared():
    union = Domain(["a", "b"], "x").union(Domain(["a", "b"], "x", declared=["a"]))
    assert union.declared == {"a"}


def test_equality_ignores_order_but_not_kind_name_or_declaration():
    assert Domain(["a", "b"], "x") == Domain(["b", "a"], "x")
    assert hash(Domain(["a", "b"], "x")) == hash(Domain(["b", "a"], "x"))
    assert Domain([True], "x") != Domain([1], "x")
    assert Domain(["a"], "x") != Domain(["a"], "y")
    assert Domain(["a"], "x") != Domain(["a"], "x", declared=["a"])
    assert Domain(["a"], "x") != ("a",)


def test_positions_of_unknown_levels():
    np.testing.assert_array_equal(Domain(["a", "b"], "x").positions_of(["b", "z", "a"]), [1, -1, 0])


def test_repr_shows_a_few():
    assert repr(Domain(["a"], "x")) == "Domain('x': 'a')"
    assert repr(Domain(range(20), "x")).endswith("7, …)")


BOOLEANS = [(False, True), (0, 1), ("false", "true"), ("TRUE", "FALSE"), ("no", "yes")]


@pytest.mark.parametrize("known", BOOLEANS)
@pytest.mark.parametrize("other", BOOLEANS)
@pytest.mark.parametrize("ordered", [False, True])
def test_booleans_are_the_same_levels_in_every_kind(known, other, ordered):
    domain, more = Domain(known, "x", is_sorted=ordered), Domain(other, "x", is_sorted=ordered)
    if domain.kind == more.kind:
        return
    if bool not in (type(known[0]), type(other[0])):  # a number is no string
        with pytest.raises(LabelError, match="expected one kind"):
            domain.union(more)
        assert domain.positions_of(other).tolist() == [-1, -1]
        return
    assert domain.union(more).levels == domain.levels
    truths = [str(level).lower() in ("true", "yes", "1") for level in other]
    found = [domain.levels[place] for place in domain.positions_of(other)]
    assert [str(level).lower() in ("true", "yes", "1") for level in found] == truths
    assert set(map(type, found)) == {type(known[0])}


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ([False, True], [0, 1, 2]),
        ([0, 1, 2], [False, True]),
        ([0, 2], [True]),
        ([False, True], ["true", "True"]),  # two levels, which would become one
        ([False, True], ["yes", "true"]),
        ([False, True], ["true", "maybe"]),
        (["true"], [True]),  # the other spelling is not known
        (["yes", "true", "no"], [True]),
        (["t", "f"], [True]),
        ([0, 1], ["0", "1"]),
    ],
)
def test_levels_that_are_no_booleans_are_never_mixed_with_booleans(known, other):
    domain = Domain(known, "x")
    with pytest.raises(LabelError, match="expected one kind"):
        domain.union(Domain(other, "x"))
    assert domain.positions_of(other).tolist() == [-1] * len(other)


def test_booleans_keep_what_is_missing_or_declared():
    domain = Domain([False, True], "x", has_missing_level=True)
    assert domain.positions_of([1, None, 0]).tolist() == [1, 2, 0]
    united = Domain([True], "x").union(Domain([0], "x", declared=[0, 1]))
    assert (united.levels, united.declared) == ((True, False), {False, True})
    assert Domain(["no", "yes", "perhaps"], "x").positions_of([True, False]).tolist() == [1, 0]
