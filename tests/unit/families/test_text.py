"""Columns of text: what its settings take, what they refuse, and which make other counts."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"family": tb.Gaussian()}, "the family of Text"),
        ({"family": "words"}, "the family of Text"),
        ({"family": tb.Bernoulli(success="yes")}, "the family of Text"),
        ({"min_count": -1}, "min_count"),
        ({"min_count": np.inf}, "min_count"),
        ({"min_count": "two"}, "min_count"),
        ({"max_features": 0}, "max_features"),
        ({"max_features": 2.5}, "max_features"),
        ({"max_features": True}, "max_features"),
        ({"hash_bits": 0}, "hash_bits"),
        ({"hash_bits": 99}, "hash_bits"),
        ({"stop_words": "the"}, "stop_words"),
        ({"stop_words": 3}, "stop_words"),
        ({"stop_words": ["the", 3]}, "a word in stop_words"),
        ({"stop_words": ["the"], "hash_bits": 8}, "used with hash_bits="),
    ],
    ids=str,
)
def test_settings_that_are_none_are_refused(settings, text):
    with pytest.raises(DataError, match=text):
        tb.Text(**settings)


def test_words_to_leave_out_are_sorted_and_single():
    assert tb.Text(stop_words=["the", "a", "the"]).stop_words == ("a", "the")
    assert tb.Text(stop_words=["a", "the"]) == tb.Text(stop_words={"the", "a"})


def test_what_changes_the_counts_changes_the_layout():
    plain = tb.Text().statistics_key
    for same in (
        tb.Text(min_count=3),
        tb.Text(max_features=5),
        tb.Text(stop_words=["a"]),
        tb.Text(tb.DirichletMultinomial()),
    ):
        assert same.statistics_key == plain
    for other in (
        tb.Text(ngram_range=(1, 2)),
        tb.Text(characters=True),
        tb.Text(lowercase=False),
        tb.Text(hash_bits=10),
        tb.Text(token_rule="sklearn"),
        tb.Text(binary=True),
        tb.Text(tb.Poisson()),
    ):
        assert other.statistics_key != plain


def test_what_it_says_of_itself():
    assert tb.Text().word_family == tb.Multinomial()
    assert tb.Text().has_vocabulary
    assert not tb.Text(hash_bits=4).has_vocabulary
    assert (tb.Text().once, tb.Text(binary=True).once, tb.Text(tb.Bernoulli()).once) == (False, True, True)
    with pytest.raises(DataError, match="string columns"):
        tb.Text().collect(["a b"])


def test_the_least_and_the_most_that_settings_take():
    assert tb.Text(min_count=0).min_count == 0
    assert tb.Text(min_count=0.5).min_count == 0.5
    assert tb.Text().min_count == 1  # every word is read
    assert tb.Text(max_features=1).max_features == 1
    assert (tb.Text(hash_bits=1).hash_bits, tb.Text(hash_bits=26).hash_bits) == (1, 26)
    with pytest.raises(DataError, match="from 1 to 26"):
        tb.Text(hash_bits=27)


def test_text_is_of_whole_rows_and_of_strings():
    assert not tb.Text().columnwise
    assert not tb.Text().accepts_sparse
    with pytest.raises(DataError, match="the family of Text"):
        tb.Text(tb.Text())
