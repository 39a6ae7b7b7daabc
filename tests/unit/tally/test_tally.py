"""Tally: algebra with labels, and levels that come and go."""

import pickle

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, StatisticsError
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain

MAIL = [
    tb.Factor("folder", (), tb.Categorical()),
    tb.Factor(("from", "day"), "folder", tb.Categorical()),
    tb.Factor("size", "folder", tb.Gaussian()),
    tb.Factor("read", "folder", tb.Bernoulli()),
]


def mail(folder, sender, day, size, read, **options):
    columns = {"folder": folder, "from": sender, "day": day, "size": size, "read": read}
    return tb.count(columns, MAIL, **options)


def labels(values, *, levels=None, weight=None):
    return tb.count({"x": values}, [tb.Factor("x", (), tb.Categorical(levels))], weight=weight)


@pytest.fixture
def monday():
    return mail(["inbox", "news", "inbox"], ["ann", "bot", "bob"], [1, 1, 2], [3.0, 8.0, 4.0], [1, 0, 1])


@pytest.fixture
def tuesday():
    return mail(["spam", "inbox"], ["zed", "ann"], [3, 1], [1.0, 2.0], [0, 0])


class TestAddingAndForgetting:
    def test_tables_are_laid_out_by_label(self, monday, tuesday):
        both = monday + tuesday
        frame = pd.DataFrame(
            {"f": ["inbox", "news", "inbox", "spam", "inbox"], "s": ["ann", "bot", "bob", "zed", "ann"]}
        )
        expected = pd.crosstab(frame["f"], frame["s"])
        table = both[("from", "day")].segments.split(both[("from", "day")].table)[0]
        found = pd.DataFrame(table, both.domains["folder"].levels, both.domains["from"].levels)
        assert (found.loc[expected.index, expected.columns].to_numpy() == expected.to_numpy()).all()

    def test_forgetting_is_never_having_seen(self, monday, tuesday):
        assert monday + tuesday - tuesday == monday
        assert monday + tuesday - monday == tuesday

    def test_equality_ignores_the_order_of_levels(self, monday, tuesday):
        assert monday + tuesday == tuesday + monday
        assert (monday + tuesday).domains["folder"].levels != (tuesday + monday).domains["folder"].levels

    def test_unlike_numbers_or_levels_are_unequal(self, monday, tuesday):
        assert monday != tuesday
        assert monday != monday + monday
        assert monday != 3

    def test_sum_starts_from_nothing(self, monday, tuesday):
        assert sum([monday, tuesday]) == monday + tuesday

    def test_forgetting_everything_leaves_no_level(self, monday):
        nothing = monday - monday
        assert all(domain.levels == () for domain in nothing.domains.values())
        assert nothing["folder"].table.shape == (0,)
        assert nothing + monday == monday

    def test_a_level_goes_with_its_last_row(self, monday):
        news = mail(["news"], ["bot"], [1], [8.0], [0])
        rest = monday - news
        assert rest.domains["folder"].levels == ("inbox",)
        assert rest.domains["from"].levels == ("ann", "bob")
        assert rest.domains["day"].levels == (1, 2)

    def test_the_operands_are_not_changed(self, monday, tuesday):
        before, text = monday.statistics, repr(monday)
        _ = monday + tuesday
        with pytest.raises(StatisticsError):
            _ = monday - tuesday
        assert monday.statistics is before
        assert repr(monday) == text

    @pytest.mark.parametrize("other", [None, 1, "tally"])
    def test_other_things_do_not_combine(self, monday, other):
        for combine in (lambda: monday + other, lambda: monday - other, lambda: monday | other):
            with pytest.raises(TypeError):
                combine()

    def test_other_factors_do_not_add(self, monday):
        with pytest.raises(StatisticsError, match=r"p\(from, day \| folder\) Categorical\(\).* and p\(x\) Categorical"):
            monday + labels(["a"])

    def test_kinds_of_levels_do_not_mix(self):
        with pytest.raises(LabelError, match="column 'x' has string levels on one side and int levels on the other"):
            labels(["a"]) + labels([1])
        with pytest.raises(LabelError, match="bool levels"):
            labels([True]) + labels([2])
        assert labels([True]) + labels([1]) == labels([True, True])

    def test_fractions_leave_no_level_behind(self):
        def weighed(*weight):
            columns = {"y": ["a"] * len(weight), "x": [2.0] * len(weight)}
            factors = [tb.Factor("y", (), tb.Categorical()), tb.Factor("x", "y", tb.Gaussian())]
            return tb.count(columns, factors, weight=weight)

        assert (weighed(0.1, 0.1, 0.1) - weighed(0.3)).domains["y"].levels == ()


class TestRefusals:
    def test_a_count_names_level_and_amounts(self):
        with pytest.raises(StatisticsError, match=r"x 'b' would have count -2 \(1 counted, 3 to remove\)"):
            labels(["a", "b"]) - labels(["b", "b", "b"])

    def test_a_level_never_seen(self):
        with pytest.raises(StatisticsError, match=r"x 'z' would have count -1 \(0 counted, 1 to remove\)"):
            labels(["a"]) - labels(["z"])

    def test_a_cell_of_a_group_names_both(self, monday):
        other = mail(["news"], ["ann"], [1], [8.0], [0])
        with pytest.raises(StatisticsError, match=r"folder 'news', from 'ann' would have count -1"):
            monday - other

    def test_the_second_column_of_a_block(self, monday):
        other = mail(["news"], ["bot"], [2], [8.0], [0])
        with pytest.raises(StatisticsError, match=r"folder 'news', day 2 would have count -1"):
            monday - other

    def test_successes_and_failures(self, monday):
        other = mail(["news"], ["bot"], [1], [8.0], [1])
        with pytest.raises(StatisticsError, match=r"folder 'news', column 'read' would have successes -1"):
            monday - other

    def test_scatter(self, monday):
        other = mail(["inbox"], ["ann"], [1], [99.0], [1])
        with pytest.raises(StatisticsError, match=r"folder 'inbox', column 'size' would have scatter"):
            monday - other

    def test_a_block_of_numbers_names_its_column(self):
        factors = [tb.Factor(("a", "b"), (), tb.Poisson())]
        held = tb.count({"a": [1, 2], "b": [3, 4]}, factors)
        with pytest.raises(StatisticsError, match=r"column 'b' would have total -2 \(7 counted, 9 to remove\)"):
            held - tb.count({"a": [1], "b": [9]}, factors)


class TestLevels:
    def test_declared_levels_stay(self):
        one = labels(["a"], levels=("a", "b"))
        assert one.domains["x"].levels == ("a", "b")
        assert (one - one).domains["x"].levels == ("a", "b")
        assert (one - one)["x"] == Counts([0.0, 0.0])

    def test_declared_levels_keep_their_order(self):
        assert labels(["a"], levels=("b", "a")).domains["x"].levels == ("b", "a")

    def test_undeclared_levels_are_refused(self):
        with pytest.raises(LabelError, match=r"level 'z' of column 'x' is not among the declared levels \('a', 'b'\)"):
            labels(["a", "z"], levels=("a", "b"))

    def test_undeclared_levels_without_weight_are_not_there(self):
        assert labels(["a", "z"], levels=("a",), weight=[1, 0])["x"] == Counts([1.0])

    def test_an_undeclared_group_is_refused_too(self):
        factors = [tb.Factor("x", "y", tb.Gaussian()), tb.Factor("z", (), tb.Categorical(("a", "b")))]
        columns = {"y": ["a", "q"], "x": [1.0, 2.0], "z": ["a", "b"]}
        schema = tb.Schema({"y": "state", "z": "state"})
        with pytest.raises(LabelError, match="level 'q' of column 'y' is not among the declared"):
            tb.count(columns, factors, schema=schema)

    def test_undeclared_levels_of_a_shared_domain_are_refused(self):
        factors = [tb.Factor("to", "from", tb.Categorical(("a", "b")))]
        schema = tb.Schema({"from": "state", "to": "state"})
        with pytest.raises(LabelError, match="level 'z' of column 'to'"):
            tb.count({"from": ["a"], "to": ["z"]}, factors, schema=schema)

    def test_declarations_of_a_shared_domain_unite(self):
        factors = [tb.Factor("a", (), tb.Categorical(("p", "q"))), tb.Factor("b", (), tb.Categorical(("q", "r")))]
        tally = tb.count({"a": ["p"], "b": ["r"]}, factors, schema=tb.Schema({"a": "s", "b": "s"}))
        assert tally.domains["s"].levels == ("p", "q", "r")
        assert tally["b"] == Counts([0.0, 0.0, 1.0])

    def test_declared_twice(self):
        with pytest.raises(LabelError, match="'a' of column 'x' is declared twice"):
            labels(["a"], levels=("a", "a"))

    def test_declared_of_another_kind(self):
        with pytest.raises(LabelError, match="int levels on one side and string"):
            labels(["1"], levels=(1, 2))

    def test_rows_of_weight_zero_create_none(self):
        tally = labels(["a", "b", "c"], weight=[1.0, 0.0, 2.0])
        assert tally.domains["x"].levels == ("a", "c")
        grouped = tb.count({"x": [1.0, 2.0], "y": ["a", "b"]}, [tb.Factor("x", "y", tb.Gaussian())], weight=[0, 1])
        assert grouped.domains["y"].levels == ("b",)

    def test_unused_categories_create_none(self):
        column = pd.Series(pd.Categorical(["b", None], categories=["a", "b", "c"]))
        assert labels(column).domains["x"].levels == ("b",)
        assert labels(column) == labels(["b", None])

    def test_gaps_between_numbers_are_no_levels(self):
        assert labels([7, 3, 3]).domains["x"].levels == (3, 7)
        assert labels([7, 3, 3])["x"] == Counts([2.0, 1.0])

    def test_a_target_is_kept_sorted(self):
        schema = tb.Schema(sorted_domains=("y",))
        factors = [tb.Factor("y", (), tb.Categorical())]
        first = tb.count({"y": ["m", "b"]}, factors, schema=schema)
        second = tb.count({"y": ["c"]}, factors, schema=schema)
        assert (first + second).domains["y"].levels == ("b", "c", "m")
        np.testing.assert_array_equal((first + second + second)["y"].table, [1, 2, 1])

    def test_shared_domains_are_named_by_the_schema(self):
        schema = tb.Schema({"from": "state", "to": "state"})
        tally = tb.count({"from": ["s"], "to": ["t"]}, [tb.Factor("to", "from", tb.Categorical())], schema=schema)
        assert tally.domains == {"state": Domain(["s", "t"], "state")}
        assert tally["to"] == Counts([[0.0, 1.0], [0.0, 0.0]])


class TestSideBySide:
    def test_factors_of_both_with_united_levels(self):
        first = tb.count({"y": ["a", "b"], "x": [1.0, 2.0]}, [tb.Factor("x", "y", tb.Gaussian())])
        second = tb.count({"y": ["b", "c"], "z": [1, 0]}, [tb.Factor("z", "y", tb.Bernoulli())])
        both = first | second
        assert both.domains["y"].levels == ("a", "b", "c")
        np.testing.assert_array_equal(both["x"].weight, [[1], [1], [0]])
        np.testing.assert_array_equal(both["z"].weight, [[0], [1], [1]])

    def test_is_the_same_as_counting_together(self):
        columns = {"y": ["a", "b", "a"], "x": [1.0, 2.0, 4.0], "z": [1, 0, 1]}
        factors = [tb.Factor("x", "y", tb.Gaussian()), tb.Factor("z", "y", tb.Bernoulli())]
        apart = tb.count(columns, factors[:1]) | tb.count(columns, factors[1:])
        assert apart == tb.count(columns, factors)

    def test_the_same_factor_twice(self):
        with pytest.raises(StatisticsError, match=r"both tallies have the factor p\(x\).*\n.*Use \+"):
            labels(["a"]) | labels(["a"])

    def test_kinds_must_agree(self):
        first = tb.count({"y": ["a"], "x": [1.0]}, [tb.Factor("x", "y", tb.Gaussian())])
        second = tb.count({"y": [1], "z": [1]}, [tb.Factor("z", "y", tb.Bernoulli())])
        with pytest.raises(LabelError, match="column 'y'"):
            first | second


class TestScaleAndFactors:
    def test_scale_is_a_weight(self, monday):
        weighed = mail(
            ["inbox", "news", "inbox"], ["ann", "bot", "bob"], [1, 1, 2], [3.0, 8.0, 4.0], [1, 0, 1], weight=[2.5] * 3
        )
        assert monday.scale(2.5).isclose(weighed)

    def test_scale_zero_forgets(self, monday):
        assert monday.scale(0.0) == monday - monday

    @pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
    def test_scale_refuses(self, monday, factor):
        with pytest.raises(DataError, match="factor"):
            monday.scale(factor)

    def test_with_factors_changes_family_and_prior(self, monday):
        factors = [f.replace(family=tb.TiedGaussian()) if f.columns == ("size",) else f for f in MAIL]
        factors[0] = factors[0].replace(prior=tb.Dirichlet(2.0))
        changed = monday.with_factors(factors)
        assert changed.factors == tuple(factors)
        assert changed.statistics == monday.statistics

    def test_with_factors_refuses_others(self, monday):
        with pytest.raises(StatisticsError, match=r"the factors differ \(p\(size \| folder\).* and no other\)"):
            monday.with_factors(MAIL[:2])
        with pytest.raises(StatisticsError, match="MultivariateGaussian"):
            monday.with_factors(
                [f.replace(family=tb.MultivariateGaussian()) if f.columns == ("size",) else f for f in MAIL]
            )

    def test_pruned_is_idle_on_counted_tallies(self, monday):
        assert monday.drop_unseen_levels() == monday


class TestConstruction:
    def test_as_many_statistics_as_factors(self):
        with pytest.raises(StatisticsError, match=r"numbers of factors and statistics differ \(1 and 0\)"):
            tb.Tally([tb.Factor("x", (), tb.Gaussian())], [], {})

    def test_groups_must_fit_the_domains(self):
        factor = tb.Factor("x", "y", tb.Gaussian())
        with pytest.raises(StatisticsError, match=r"groups of p\(x \| y\) differ"):
            tb.Tally([factor], [tb.Moments.zeros((3,), 1)], {"y": Domain(["a"], "y")})
        with pytest.raises(StatisticsError, match="column 'y' has no levels"):
            tb.Tally([factor], [tb.Moments.zeros((3,), 1)], {})

    def test_levels_must_fit_the_table(self):
        with pytest.raises(StatisticsError, match=r"levels of p\(x\) differ"):
            tb.Tally([tb.Factor("x", (), tb.Categorical())], [tb.Counts([1.0, 2.0])], {"x": Domain(["a"], "x")})

    @pytest.mark.parametrize("family", ["Gaussian", tb.Gaussian, None])
    def test_a_factor_needs_a_family(self, family):
        with pytest.raises(DataError, match="expected a family"):
            tb.Factor("x", (), family)

    def test_names_of_a_factor_are_plain(self):
        factor = tb.Factor(np.int64(3), np.array([1, 2]), tb.Gaussian())
        assert (factor.columns, factor.given) == ((3,), (1, 2))
        assert {type(name) for name in factor.columns + factor.given} == {int}
        with pytest.raises(DataError, match="a string or a whole number"):
            tb.Factor([("a", "b")], (), tb.Gaussian())

    def test_getitem_names_what_is_there(self, monday):
        assert monday["size"].n_columns == 1
        with pytest.raises(KeyError, match="nope"):
            monday["nope"]


def test_repr_lists_factors_and_levels(monday):
    assert monday.summary().splitlines() == [
        "Tally: 4 factors",
        "  p(folder)              Categorical()  weight 3",
        "  p(from, day | folder)  Categorical()  weight 3",
        "  p(size | folder)       Gaussian()     weight 3",
        "  p(read | folder)       Bernoulli()    weight 3",
        "  folder: 'inbox', 'news'",
        "  from: 'ann', 'bot', 'bob'",
        "  day: 1, 2",
    ]
    assert "… 12 more" in repr(labels(range(20)))


def test_pickle(monday):
    assert pickle.loads(pickle.dumps(monday)) == monday


def test_anchors_of_another_tally_are_used():
    factors = [tb.Factor("x", (), tb.Gaussian())]
    held = tb.count({"x": 1e9 + np.arange(10.0)}, factors)
    one = tb.count({"x": [3.0]}, factors, like=held)
    np.testing.assert_array_equal(one["x"].anchor, held["x"].anchor)
    with pytest.raises(StatisticsError, match="the factors differ"):
        tb.count({"x": [3.0]}, factors, like=labels(["a"]))


def test_small_counts_are_told_of_every_kind_of_statistic():
    rows = {
        "ward": ["A"] * 6 + ["B"],
        "age": [50.0, 51.0, 49.0, 52.0, 50.0, None, 73.0],
        "cough": [0, 0, 0, 0, 0, 1, 1],
        "note": ["fine"] * 6 + ["rare word"],
    }
    factors = [
        tb.Factor("ward", (), tb.Categorical()),
        tb.Factor("age", "ward", tb.Gaussian()),
        tb.Factor("cough", "ward", tb.Bernoulli()),
        tb.Factor("note", "ward", tb.Text()),
    ]
    found = dict(tb.count(rows, factors).small_counts(2))
    assert set(found.values()) == {1.0}
    assert "ward 'B'" in found
    assert "ward 'B', column 'age'" in found
    assert "ward 'A', column 'cough' = yes" in found
    assert "ward 'A', column 'cough' = no" not in found
    assert "ward 'B', word 'rare' of 'note'" in found
    assert dict(tb.count(rows, factors).small_counts(6))["ward 'A', column 'age'"] == 5
    assert tb.count(rows, factors).small_counts(1) == []


def test_renamed_column_keeps_its_counts():
    factors = [tb.Factor("kind", (), tb.Categorical()), tb.Factor("x", "kind", tb.Gaussian())]
    rows = {"kind": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]}
    renamed = tb.count(rows, factors).renamed("kind", "sort")
    other = [tb.Factor("sort", (), tb.Categorical()), tb.Factor("x", "sort", tb.Gaussian())]
    assert renamed == tb.count({"sort": rows["kind"], "x": rows["x"]}, other)
    assert renamed.renamed("sort", "kind") == tb.count(rows, factors)
    assert renamed.domains["sort"].name == "sort"


def test_pruned_without_anything_to_drop_is_the_tally_itself():
    tally = tb.count({"x": ["a", "b"], "y": [0, 1]}, [tb.Factor("x", ("y",), tb.Categorical())])
    assert tally.drop_unseen_levels() is tally
    gone = tally - tb.count({"x": ["b"], "y": [1]}, [tb.Factor("x", ("y",), tb.Categorical())])
    assert gone.drop_unseen_levels().domains["x"].levels == ("a",)
