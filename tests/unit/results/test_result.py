"""Results print as text, show as HTML and become data frames."""

from typing import NamedTuple

import pytest

from tallybayes.results.result import Result, ResultTable, columns_of


class Coins(Result):
    def __init__(self, table):
        self.table = table

    def _content(self):
        return ["8 tosses", self.table, "fair"]

    def _frame_data(self):
        return [{"side": "heads", "count": 3}]


TABLE = ResultTable([["heads", " 3"], ["tails", "12"]], ["side", "n"], "counts", "lr")


def test_text_and_html_show_the_same_parts():
    coins = Coins(TABLE)
    assert repr(coins).splitlines() == ["8 tosses", "counts", "  side    n", "  heads   3", "  tails  12", "fair"]
    page = coins._repr_html_()
    assert page.index("8 tosses") < page.index("counts") < page.index("heads") < page.index("fair")
    assert ">3<" in page
    assert coins.to_frame().to_dict("list") == {"side": ["heads"], "count": [3]}


def test_a_table_marks_the_best_row_and_counts_what_it_leaves_out():
    assert TABLE._replace(best=1).lines()[3] == "* tails  12"
    assert TABLE._replace(max_rows=1).lines()[2:] == ["  heads   3", "  … 1 more"]
    assert TABLE._replace(best=1, max_rows=1).lines()[2] == "  heads   3"
    assert TABLE._replace(head=(), title="").lines() == ["  heads   3", "  tails  12"]


def test_an_empty_table_has_a_head_at_most():
    assert ResultTable([], ["a", "b"]).lines() == ["  a  b"]
    assert ResultTable([]).lines() == []


def test_a_result_without_its_two_methods_raises():
    with pytest.raises(NotImplementedError):
        repr(Result())
    with pytest.raises(NotImplementedError):
        Result().to_frame()


class Toss(NamedTuple):
    side: str
    count: int


def test_columns_of_named_tuples():
    assert columns_of(Toss, [Toss("heads", 3)]) == {"side": ["heads"], "count": [3]}
    assert columns_of(Toss, []) == {"side": [], "count": []}


def test_a_table_is_declared_by_the_formats_of_its_cells():
    formats = {"what": "{name}", "bits": "{bits:.2f}", "levels": "{levels:2}", "": "{best:best}"}
    record = {"name": "a\nb", "bits": 0.125, "levels": (1, 2, 3), "best": True}
    table = ResultTable.of(
        [record, {"name": None, "bits": float("nan"), "levels": (), "best": False}], formats, "title"
    )
    assert table.head == list(formats)
    assert table.rows == [["a\\nb", "0.12", "1, 2 … 1 more", "best"], ["—", "—", "", ""]]
    columns = {"side": ["heads"], "count": [3]}
    same = {"side": "{side}", "count": "{count}"}
    assert ResultTable.of(columns, same).rows == ResultTable.of([Toss("heads", 3)], same).rows == [["heads", "3"]]
