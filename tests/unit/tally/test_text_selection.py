"""Which words of a text are read: the frequent ones, ties by the alphabet, and none that are to be left out."""

import tallybayes as tb
from tallybayes.tally.text_selection import as_word_factor, select_words, with_selected_words

TEXTS = ["b b b a a c", "c d", "e a"]  # a 3, b 3, c 2, d 1, e 1


def counted(**settings):
    return tb.count({"text": TEXTS}, [tb.Factor("text", (), tb.Text(**settings))])


def words_of(tally):
    kept = select_words(tally)
    read = with_selected_words(tally, kept)
    domain = read.domains["text"]
    return dict(zip(domain.levels, read.statistics[0].pool_groups().total.tolist(), strict=True))


def test_all_words_by_default():
    assert select_words(counted()) == {"text": None}
    assert words_of(counted()) == {"b": 3, "a": 3, "c": 2, "d": 1, "e": 1}


def test_few_words_are_the_most_frequent_and_the_first_of_equals():
    assert words_of(counted(max_features=1)) == {"a": 3}
    assert words_of(counted(max_features=4)) == {"b": 3, "a": 3, "c": 2, "d": 1}
    assert words_of(counted(max_features=9)) == words_of(counted())
    assert words_of(counted(min_count=2)) == {"b": 3, "a": 3, "c": 2}
    assert words_of(counted(min_count=2, max_features=2)) == {"b": 3, "a": 3}


def test_words_that_are_not_read():
    assert words_of(counted(stop_words=["a", "unheard"])) == {"b": 3, "c": 2, "d": 1, "e": 1}
    assert words_of(counted(stop_words=["a"], max_features=1)) == {"b": 3}


def test_hashed_words_go_by_their_places():
    tally = counted(hash_bits=6, max_features=2)
    (places,) = select_words(tally).values()
    total = tally.statistics[0].pool_groups().total
    assert len(places) == 2
    assert sorted(total[places].tolist()) == sorted(total.tolist())[-2:]


def test_counts_are_of_the_family_of_words():
    tally = counted()
    read = with_selected_words(tally, select_words(tally))
    assert read.factors[0].family == tb.Multinomial()
    assert with_selected_words(read, select_words(read)) is read  # there is no text any more
    plain = tb.Factor("x", (), tb.Gaussian())
    assert as_word_factor(plain) is plain
