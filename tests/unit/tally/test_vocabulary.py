"""Vocabularies: domains of words that lie in one buffer."""

import numpy as np
import pytest

from tallybayes._utils import sealed_file
from tallybayes.errors import FileError, LabelError
from tallybayes.tally.domain import Domain
from tallybayes.tally.vocabulary import Strings, Vocabulary

WORDS = ["win", "naïve", "東京", "", "a b"]


def test_strings_are_a_sequence():
    strings = Strings.of(WORDS)
    assert len(strings) == 5
    assert strings[1] == "naïve"
    assert strings[-1] == "a b"
    assert strings[1:3] == ("naïve", "東京")
    assert list(strings) == WORDS
    assert "win" in strings
    assert "loss" not in strings
    assert strings.index("東京") == 2
    with pytest.raises(IndexError):
        strings[5]


def test_some_strings_and_more_of_them():
    strings = Strings.of(WORDS)
    assert list(strings.take(np.array([4, 0, 3]))) == ["a b", "win", ""]
    assert list(strings.take(np.array([], dtype=int))) == []
    assert list(strings.joined(Strings.of(["more"]))) == [*WORDS, "more"]
    assert strings == Strings.of(WORDS)
    assert strings != Strings.of(WORDS[:4])


def test_union_keeps_its_own_words_first():
    mine, its = Vocabulary(["a", "b"], "x"), Vocabulary(["c", "b"], "x")
    assert list(mine.union(its).levels) == ["a", "b", "c"]
    assert mine.union(Vocabulary(["b"], "x")) is mine
    assert list(Vocabulary([], "x").union(its).levels) == ["c", "b"]


def test_equality_ignores_order():
    assert Vocabulary(["a", "b"], "x") == Vocabulary(["b", "a"], "x")
    assert Vocabulary(["a", "b"], "x") != Vocabulary(["a", "c"], "x")
    assert Vocabulary(["a"], "x") != Vocabulary(["a"], "y")
    assert Vocabulary(["a"], "x") != Domain(["a"], "x")
    assert len({Vocabulary(["a", "b"], "x"), Vocabulary(["b", "a"], "x")}) == 1


def test_positions_and_what_is_kept():
    words = Vocabulary(WORDS, "x")
    assert words.positions_of(["東京", "nothing", "win"]).tolist() == [2, -1, 0]
    assert words.index["a b"] == 4
    assert list(words.filter(np.array([True, False, False, False, True])).levels) == ["win", "a b"]
    assert words.filter(np.ones(5, dtype=bool)) is words


def test_words_and_labels_do_not_unite():
    with pytest.raises(LabelError, match="words"):
        Vocabulary(["a"], "x").union(Domain(["a"], "x"))


@pytest.mark.parametrize(
    ("data", "offsets", "said"),
    [
        (b"ab", [0, 1], "go up"),
        (b"ab", [0, 2, 1], "go up"),
        (b"\xff\xfe", [0, 2], "not UTF-8"),
        ("ä".encode(), [0, 1, 2], "within a character"),
    ],
    ids=["short", "falling", "no text", "cut"],
)
def test_bytes_that_are_no_words_are_refused(data, offsets, said):
    with pytest.raises(FileError, match=said):
        sealed_file.check_strings(np.frombuffer(data, np.uint8), np.array(offsets, dtype=np.int64))
