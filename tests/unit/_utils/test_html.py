"""Tables for notebooks: escaped, cut, and without colors of their own."""

from html.parser import HTMLParser

import numpy as np
import pytest

from tallybayes._utils.html import html_table, html_text


class Read(HTMLParser):
    """The cells of a table by row, its title, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.title, self.styles = [], [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.styles.append(dict(attributes)["style"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.title += data
        elif self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_table_has_its_title_head_and_cells():
    read = Read(html_table("p(sky | class)", ["class", "sun", "n"], [["yes", 2 / 3, 12345], ["no", None, np.int64(2)]]))
    assert read.title == "p(sky | class)"
    assert read.rows == [["class", "sun", "n"], ["yes", "0.6667", "12,345"], ["no", "", "2"]]
    assert not read.open


def test_numbers_stand_right_and_words_left():
    read = Read(html_table("", ["a", "b", "c"], [["x", 1.5, "y"], ["z", np.float32(2.5), 3.0]]))
    ends = [style.rsplit("text-align:", 1)[1] for style in read.styles]
    assert ends == ["left", "right", "left"] * 3


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><b>', "a&b", "\x1b[31mred", "right‮left", "two\nlines"]
)
def test_labels_of_strangers_stay_text(hostile):
    for text in (html_table(hostile, [hostile], [[hostile]]), html_text(hostile)):
        assert "<script" not in text
        assert "<b>" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    read = Read(html_table("", ["x"], [[hostile]]))
    assert len(read.rows) == 2
    assert "\n" not in read.rows[1][0]


def test_long_tables_are_cut_and_say_so():
    read = Read(html_table("", ["n"], ([n] for n in range(1040))))
    assert len(read.rows) == 42
    assert read.rows[-1] == ["… and 1,000 more"]


def test_no_color_but_the_pages_own():
    text = html_table("title", ["head"], [[1.0]]) + html_text("text")
    assert "#" not in text
    assert "rgb" not in text
    assert text.count("color:") == text.count("color:inherit")


def test_tables_without_head_rows_or_title():
    assert Read(html_table("", [], [["a", 1]])).rows == [["a", "1"]]
    assert Read(html_table("nothing", ["a"], [])).rows == [["a"]]
