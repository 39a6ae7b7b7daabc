"""Texts counted and scored: the kernels against plain dictionaries, and against `sum_csr`."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.kernels import active
from tallybayes.kernels.reference import sums as reference_sums
from tallybayes.kernels.reference.text_counts import bucket
from tallybayes.kernels.reference.text_counts import tokens as reference_tokens
from tallybayes.kernels.text.text_counts import TokenRule, WordIndex, count_texts, joined_texts, score_texts, text_rows
from tallybayes.kernels.text.word_index import buckets
from tests.examples import examples
from tests.unit.kernels.text_cases import BROKEN, RULES, TEXTS, buffers, encoded

ROWS = [*TEXTS, None, *BROKEN, None, *TEXTS[:5]]


@pytest.fixture(params=["compiled", "reference"], autouse=True)
def implementation(request, monkeypatch):
    if request.param == "reference":
        monkeypatch.setattr(active, "module", reference_sums)
    elif active.module is reference_sums:
        pytest.skip("nothing was compiled")


def words_of(found):
    return [found.data[a:b].tobytes() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def expected_tokens(texts, rule):
    return [[] if text is None else reference_tokens(encoded(text), rule) for text in texts]


def check_rows(rows, expected, name):
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype == rows.counts.dtype == np.int32
    assert len(rows.indptr) == len(expected) + 1
    for row, tokens in enumerate(expected):
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        found = {name(j): count for j, count in zip(rows.indices[span], rows.counts[span].tolist(), strict=True)}
        assert found == Counter(tokens)
        assert list(found) == list(Counter(tokens))  # in the order in which they first occur


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("skipped", [0, 3])
def test_rows_number_words_as_they_come(rule, width, skipped):
    expected = expected_tokens(ROWS, rule)
    rows = text_rows(*buffers(ROWS, width, skipped), rule)
    words = words_of(rows)
    assert words == list(dict.fromkeys(token for tokens in expected for token in tokens))
    check_rows(rows, expected, lambda j: words[j])


def vocabulary_of(words):
    return WordIndex(*buffers(words)[1::-1])


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rows_of_a_vocabulary(rule):
    expected = expected_tokens(ROWS, rule)
    known = [*sorted({token for tokens in expected for token in tokens})[::2], b"unheard of"]
    rows = text_rows(*buffers(ROWS), rule, vocabulary=vocabulary_of(known))
    assert rows.data is rows.offsets is None
    check_rows(rows, [[token for token in tokens if token in known] for tokens in expected], lambda j: known[j])


@pytest.mark.parametrize("hashing", [1, 5, 18, 30])
def test_rows_of_buckets(hashing):
    expected = [[bucket(token, hashing) for token in tokens] for tokens in expected_tokens(ROWS, TokenRule())]
    rows = text_rows(*buffers(ROWS), TokenRule(), hashing=hashing)
    assert rows.data is rows.offsets is None
    check_rows(rows, expected, int)
    assert max(rows.indices) < 2**hashing


def test_buckets_never_change():
    words = ["a", "click", "eightby!", "ninebytes", "sixteenbytes_abc", "seventeenbytes_abc", "", "日本"]
    data, offsets = buffers(words)[1::-1]
    assert buckets(data, offsets, 20).tolist() == BUCKETS
    assert buckets(data, offsets, 8).tolist() == [one >> 12 for one in BUCKETS]
    assert [bucket(word.encode(), 20) for word in words] == BUCKETS


BUCKETS = [693306, 950897, 629076, 78789, 760365, 1012470, 0, 705024]


def test_vocabularies():
    words = [f"word{k}" for k in range(5000)] + [
        "",
        "sixteen_bytes_ab",
        "s" * 15,
        "s" * 16,
        "s" * 17,
        "s" * 1000,
        "a\0",
        "a",
    ]
    known = vocabulary_of(words)
    assert len(known) == len(words)
    assert known.words() == words
    asked = ["a", "a\0\0", "a\0", "", "word4999", "word5000", "s" * 17, "s" * 18, "s" * 16, "s" * 14, "t" * 16]
    expected = [words.index(word) if word in words else -1 for word in asked]
    found = known.positions(*buffers(asked)[1::-1])
    assert found.dtype == np.int64
    assert found.tolist() == expected
    with pytest.raises(ValueError, match="word 2 of the vocabulary occurred before, expected every word once"):
        vocabulary_of(["b", "a", "b"])
    again = pickle.loads(pickle.dumps(known))
    assert again.words() == words
    assert again.positions(*buffers(asked)[1::-1]).tolist() == expected
    assert vocabulary_of([]).positions(*buffers(["b"])[1::-1]).tolist() == [-1]


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("rule", [RULES[0], RULES[3], RULES[4], RULES[6]], ids=str)
@pytest.mark.parametrize("presence", [False, True])
@pytest.mark.parametrize("hashing", [None, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_the_rows(rule, presence, hashing, weighted):
    rng = np.random.default_rng(0)
    group = rng.integers(-1, 3, len(ROWS)).astype(np.int8)
    weight = np.where(rng.random(len(ROWS)) < 0.2, 0.0, rng.random(len(ROWS))) if weighted else None
    w = np.ones(len(ROWS)) if weight is None else weight
    found = count_texts(*buffers(ROWS), rule, group, 3, weight, presence=presence, hashing=hashing)
    expected = expected_tokens(ROWS, rule)
    counted = [row for row in range(len(ROWS)) if group[row] >= 0 and w[row] and ROWS[row] is not None]
    words = list(dict.fromkeys(token for row in counted for token in expected[row]))
    if hashing is None:
        assert words_of(found) == words
        place = {word: k for k, word in enumerate(words)}
    else:
        assert found.data is found.offsets is None
        place = {word: bucket(word, hashing) for word in words}
    total, weights, log_base = np.zeros((3, 2**hashing if hashing else len(words))), np.zeros(3), np.zeros(3)
    for row in counted:
        weights[group[row]] += w[row]
        counts = Counter(place[token] for token in expected[row])
        for word, count in counts.items():
            total[group[row], word] += w[row] * (1 if presence else count)
        if not presence:
            logs = [np.log(np.arange(1, count + 1)).sum() for count in (counts.total(), *counts.values())]
            log_base[group[row]] += w[row] * (logs[0] - sum(logs[1:]))
    np.testing.assert_allclose(found.weight, weights, rtol=1e-14)
    np.testing.assert_allclose(found.total, total, rtol=1e-13)
    np.testing.assert_allclose(found.log_base, log_base, rtol=1e-12, atol=1e-12)
    if not weighted:
        assert found.total.tolist() == total.tolist()


@pytest.mark.parametrize("presence", [False, True])
def test_soft_weights_and_many_groups(presence):
    rng = np.random.default_rng(1)
    strings = buffers(ROWS)
    soft = rng.random((len(ROWS), 2))
    found = count_texts(*strings, TokenRule(), None, 2, soft, presence=presence)
    for g in range(2):
        one = count_texts(*strings, TokenRule(), None, 1, np.ascontiguousarray(soft[:, g]), presence=presence)
        np.testing.assert_allclose(found.total[g], one.total[0], rtol=1e-13)
        np.testing.assert_allclose(found.weight[g], one.weight[0], rtol=1e-13)
    group = rng.integers(0, 3, len(ROWS))
    few = count_texts(*strings, TokenRule(), group, 3, presence=presence)
    many = count_texts(*strings, TokenRule(), 40 * group, 100, presence=presence)
    assert many.total[[0, 40, 80]].tolist() == few.total.tolist()
    assert many.weight.sum() == few.weight.sum()
    np.testing.assert_allclose(many.log_base[[0, 40, 80]], few.log_base, rtol=1e-12)
    assert many.data.tobytes() == few.data.tobytes()


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("rule", [RULES[0], RULES[2], RULES[6]], ids=str)
@pytest.mark.parametrize("presence", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 20])
@pytest.mark.parametrize("hashing", [None, 6])
def test_scores_are_added_in_order(rule, presence, k, hashing):
    rng = np.random.default_rng(2)
    expected = expected_tokens(ROWS, rule)
    known = sorted({token for tokens in expected for token in tokens})[::2]
    terms = rng.normal(size=(2**hashing if hashing else len(known), k))
    terms[rng.random(terms.shape) < 0.02] = -np.inf
    how = {"hashing": hashing} if hashing else {"vocabulary": vocabulary_of(known)}
    found = score_texts(*buffers(ROWS), rule, terms, presence=presence, **how)
    place = {word: position for position, word in enumerate(known)}
    for row, tokens in enumerate(expected):
        numbers = [bucket(t, hashing) for t in tokens] if hashing else [place[t] for t in tokens if t in place]
        sums = np.zeros(k)
        for number in dict.fromkeys(numbers) if presence else numbers:
            sums += terms[number]
        assert found[row].tolist() == sums.tolist()


def many_texts(n):
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 12, n)
    words = np.array([f"w{k}é" if k % 7 == 0 else f"W{k}" * (1 + k % 3) for k in range(3000)], dtype=object)
    return [" ".join(words[np.minimum(rng.zipf(1.3, length), 3000) - 1]) for length in lengths]


@pytest.mark.slow
def test_threads_change_nothing(implementation):
    texts = many_texts(20_000 if active.module is not reference_sums else 500)
    strings, rng = buffers(texts), np.random.default_rng(4)
    group, weight = rng.integers(-1, 2, len(texts)).astype(np.int16), rng.random(len(texts))
    alone = text_rows(*strings, TokenRule(), threads=1)
    terms = rng.normal(size=(len(alone.offsets) - 1, 3))
    known = WordIndex(alone.data, alone.offsets)

    def everything(threads):
        yield from text_rows(*strings, TokenRule(), threads=threads)
        yield from count_texts(*strings, TokenRule(), group, 2, threads=threads)
        yield from count_texts(*strings, TokenRule(), group, 2, weight, threads=threads)
        yield from count_texts(*strings, TokenRule(), group, 2, hashing=10, threads=threads)[2:]
        yield score_texts(*strings, TokenRule(), terms, vocabulary=known, threads=threads)

    first = [part.tobytes() for part in everything(1)]
    for threads in (2, 3, 7):
        assert [part.tobytes() for part in everything(threads)] == first


def test_nothing():
    for texts in ([], [None, None], ["", " ."]):
        rows = text_rows(*buffers(texts), TokenRule())
        assert rows.indptr.tolist() == [0] * (len(texts) + 1)
        assert rows.offsets.tolist() == [0]
        found = count_texts(*buffers(texts), TokenRule(), None, 1)
        assert found.total.shape == (1, 0)
        assert found.weight.tolist() == [sum(text is not None for text in texts)]
        scores = score_texts(*buffers(texts), TokenRule(), np.zeros((4, 2)), hashing=2)
        assert scores.tolist() == [[0.0, 0.0]] * len(texts)
    assert count_texts(*buffers([]), TokenRule(), np.zeros(0, np.int8), 0).total.shape == (0, 0)


def test_words_that_collide_are_told_apart():
    # The same first and last bytes, lengths around those of keys that are kept whole.
    words = [f"{'a' * n}{k:03d}{'z' * n}" for n in range(20) for k in range(50)]
    rows = text_rows(*buffers([" ".join(words), " ".join(words[::-1])]), TokenRule())
    assert [word.decode() for word in words_of(rows)] == words
    assert rows.indices.tolist() == [*range(len(words)), *range(len(words) - 1, -1, -1)]


def test_what_is_refused():
    strings = buffers(["a b", "c"])
    for wrong in ([0, 9], [-1, 2], [3, 2]):
        with pytest.raises(IndexError, match="an offset leads out of the bytes"):
            text_rows(np.array(wrong), strings[1], None, 0, TokenRule())
        with pytest.raises(IndexError, match="an offset leads out of the bytes"):
            count_texts(np.array(wrong), strings[1], None, 0, TokenRule(), None, 1)
        with pytest.raises(IndexError, match="an offset leads out of the bytes"):
            WordIndex(strings[1], np.array(wrong))
    with pytest.raises(IndexError, match="row 1 has group code 2, expected 0 to 1, or -1 to skip the row"):
        count_texts(*strings, TokenRule(), np.array([0, 2]), 2)
    with pytest.raises(ValueError, match="hashing is 31, expected 1 to 30"):
        text_rows(*strings, TokenRule(), hashing=31)
    with pytest.raises(ValueError, match="pass only one of them"):
        text_rows(*strings, TokenRule(), hashing=3, vocabulary=vocabulary_of(["a"]))
    with pytest.raises(ValueError, match="terms has 3 rows, expected one for each of 1 words"):
        score_texts(*strings, TokenRule(), np.zeros((3, 2)), vocabulary=vocabulary_of(["a"]))
    with pytest.raises(ValueError, match="neither vocabulary nor hashing is given"):
        score_texts(*strings, TokenRule(), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="valid has too few bits"):
        text_rows(strings[0], strings[1], np.zeros(0, np.uint8), 0, TokenRule())
    with pytest.raises(TypeError, match="offsets has dtype int32, expected int64"):
        WordIndex(strings[1], strings[0].astype(np.int32))


@pytest.mark.slow_after(1)
@examples(60)
@given(
    texts=st.lists(
        st.one_of(st.none(), st.binary(max_size=50), st.text(max_size=50), st.text("ab'cÉ Σ", max_size=50)), max_size=6
    ),
    rule=st.sampled_from(RULES),
)
def test_arbitrary_rows(texts, rule):
    expected = expected_tokens(texts, rule)
    rows = text_rows(*buffers(texts), rule)
    words = words_of(rows)
    check_rows(rows, expected, lambda j: words[j])


@pytest.mark.slow_after(1)
@given(st.lists(st.text(max_size=40), max_size=8), st.integers(1, 3000))
@examples(50)
def test_strings_are_put_one_after_the_other(some, times):
    strings = some * times if len(some) * times < 20_000 else some  # parts that threads take, and less
    offsets, data = joined_texts(strings, threads=2)
    assert offsets.dtype == np.int64
    assert data.dtype == np.uint8
    assert data.tobytes() == "".join(strings).encode()
    assert offsets.tolist() == np.cumsum([0, *(len(one.encode()) for one in strings)]).tolist()


@pytest.mark.parametrize("other", [None, b"a", 1, np.str_("a"), "a\ud800", ["a"]], ids=repr)
def test_what_is_no_string_is_joined_by_nobody(other):
    assert joined_texts(["a", "\u00e9", other]) is None


@pytest.mark.slow_after(1)
def test_many_bytes_are_copied_by_several():
    strings = ["ab" * 40, "\u00e9" * 30, ""] * 100_000
    offsets, data = joined_texts(strings, threads=3)
    assert data.tobytes() == "".join(strings).encode()
    assert offsets[-1] == len(data)
