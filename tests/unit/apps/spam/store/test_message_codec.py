"""Words of mails as numbers: the kernel does what Python does, and a store is the same file by either."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes import kernels
from tallybayes.apps.spam.check_mail import classify_files
from tallybayes.apps.spam.spam_score import Thresholds, kind_of
from tallybayes.apps.spam.store.message_codec import (
    Message,
    WordNumbers,
    in_order,
    pack,
    pack_words_of,
    words_from_bytes,
    words_to_bytes,
)
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens import token_kernel as kernel
from tallybayes.apps.spam.tokens.message_batches import classify_batch, read_batch
from tallybayes.apps.spam.tokens.message_tokens import content_id
from tallybayes.apps.spam.train import messages_of
from tallybayes.apps.spam.verdicts import classify_mail
from tests.unit.apps.spam.mails import HONEST, plain

compiled_alone = pytest.mark.skipif(not kernels.implementation().startswith("compiled"), reason="kernels not compiled")

# Of every length about 8 and 16 bytes, of characters of one byte to four, and such that begin alike.
WORDS = st.lists(
    st.one_of(
        st.text(st.sampled_from("ab:\x01é€\U0001f600\uffff"), max_size=20),
        st.sampled_from([start + "x" * n for start in ("", "received:", "é") for n in (*range(18), 40)]),
    ),
    max_size=40,
)


@given(WORDS)
def test_words_are_sent_as_bytes(words):
    assert words_from_bytes(words_to_bytes(words)) == words


def test_words_that_cannot_be_stored_are_sent_as_those_that_can():
    assert words_from_bytes(words_to_bytes(["a\0b", "\ud800", "c"])) == [
        "a\N{REPLACEMENT CHARACTER}b",
        "\N{REPLACEMENT CHARACTER}",
        "c",
    ]


@compiled_alone
@given(WORDS, WORDS)
def test_words_have_the_places_and_the_order_of_python(first, second):
    found, expected = kernel.mail_words(), WordNumbers()
    for words in (first, second):
        assert found.places(words_to_bytes(words)).tolist() == expected.places(words_to_bytes(words)).tolist()
        assert len(found) == len(expected)
    asked = np.arange(0, len(expected), 2, dtype=np.int32)
    for one, other in zip(found.in_order(asked), expected.in_order(asked), strict=True):
        assert list(one) == list(other)
    starts, start_of = found.starts()
    assert (starts, start_of.tolist()) == (expected.starts()[0], expected.starts()[1].tolist())
    assert [starts[place] for place in start_of] == [word[: word.find(":") + 1] for word in expected]


@compiled_alone
@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=12), st.data())
def test_ids_are_packed_as_in_python(ids, data):
    ids += ids[:2]  # of two words that are stored as one
    mails = data.draw(st.lists(st.lists(st.integers(0, len(ids) - 1), max_size=9), max_size=6))
    tokens = np.array([one for mail in mails for one in mail], np.int32)
    lengths = np.array(list(map(len, mails)), np.int64)
    found, used, counts = kernel.pack_words(np.array(ids), tokens, lengths)
    words, left = in_order(np.array(ids)[tokens], lengths)
    assert found == pack(words, left)
    for one, other in zip((used, counts), np.unique(words, return_counts=True), strict=True):
        assert one.tolist() == other.tolist()


@compiled_alone
@pytest.mark.parametrize(
    ("ids", "tokens", "lengths", "error", "told"),
    [
        ([1, 2], [0, 2], [2], IndexError, "no word of this number"),
        ([1, 2], [0, -1], [2], IndexError, "no word of this number"),
        ([1, -2], [0, 1], [2], ValueError, "ids of at least 0"),
        ([1, 2], [0, 1], [1], ValueError, "as many tokens as the mails have"),
        ([1, 2], [0, 1], [3], ValueError, "as many tokens as the mails have"),
        ([1, 2], [0, 1], [3, -1], ValueError, "as many tokens as the mails have"),
        ([1.0, 2.0], [0, 1], [2], TypeError, "another element type"),
    ],
)
def test_the_kernel_looks_at_ids_and_tokens(ids, tokens, lengths, error, told):
    with pytest.raises(error, match=told):
        kernel.pack_words(np.array(ids), np.array(tokens, np.int32), np.array(lengths, np.int64))


@compiled_alone
def test_the_kernel_looks_at_words():
    words = kernel.mail_words()
    with pytest.raises(ValueError, match="a zero byte after every word"):
        words.places(b"a\0b")
    for place in (-1, 0):
        with pytest.raises(IndexError, match="no word of this place"):
            words.in_order(np.array([place], np.int32))
    words.places(b"\xff\0")
    with pytest.raises(UnicodeDecodeError):
        words.in_order(np.array([0], np.int32))


def bulk(n: int, start: int = 0) -> list[bytes]:
    return [
        plain(f"number{k}", f"word{k % 7} é{k} received{k % 3} http://a{k % 5}.b/c") for k in range(start, start + n)
    ]


def learn_much(place: str) -> bytes:
    """A store of many mails, of which some come again and some are moved and forgotten."""
    raws = [*HONEST.values(), *bulk(60), "Subject: x\n\nhttp://a\0b.c http://a\N{REPLACEMENT CHARACTER}b.c".encode()]
    with Store(place, create=True) as store:
        store.learn([read_batch(raws[:50]), read_batch(raws[20:60])], "ham", now=1)
        store.learn([read_batch([*raws[40:], *bulk(40, 100)])], "spam", now=2)
        store.relearn([read_batch(bulk(40, 40))], "spam", now=3)
        store.forget([content_id(raw) for raw in bulk(10)])
        store.learn([read_batch(bulk(50))], "ham", now=4)
        return "\n".join(store.database._connection.iterdump()).encode()


@compiled_alone
def test_a_store_is_the_same_without_the_kernels(tmp_path, monkeypatch):
    with_kernels = learn_much(str(tmp_path / "one"))
    for name in ("mail_batch", "mail_words", "pack_words"):
        monkeypatch.setattr(kernel, name, lambda *given: None)
    assert learn_much(str(tmp_path / "other")) == with_kernels
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_ids_are_packed_where_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(kernel, "pack_words", lambda *given: None)
    ids, tokens = np.array([9, 300, 9]), np.array([0, 1, 2, 1], np.int32)
    packed, used, counts = pack_words_of(ids, tokens, np.array([3, 0, 1]))
    assert (packed, used.tolist(), counts.tolist()) == ([b"\x09\xa3\x02", b"", b"\xac\x02"], [9, 300], [1, 2])


def test_a_calibration_sees_the_words_that_others_have_counted(tmp_path):
    place = str(tmp_path / "store")
    with Store(place, create=True) as store, Store(place) as other:

        def looked_at() -> None:
            found, words = messages_of(store, 4000), store.words()
            ids = [row[0] for row in words]
            assert found.kinds[ids].tolist() == [kind_of(row[1]) for row in words]
            assert list(zip(found.ham[ids].tolist(), found.spam[ids].tolist(), strict=True)) == [
                row[2:] for row in words
            ]
            assert len(found.is_spam) == len(found.starts) - 1 == store.state().ham + store.state().spam

        looked_at()
        store.learn([read_batch(bulk(40))], "ham")
        looked_at()
        other.learn([read_batch(bulk(40, 100))], "spam")
        looked_at()
        other.forget([content_id(raw) for raw in bulk(40)])
        other.learn([Message(b"a" * 32, ["subject:new", "newer", "to:you"])], "ham")
        looked_at()
        store.learn([Message(b"b" * 32, ["subject:newest", "newer"])], "ham")
        looked_at()


def test_many_mails_are_judged_as_each_is(tmp_path):
    place, folder = str(tmp_path / "store"), tmp_path / "mails"
    folder.mkdir()
    raws = [*bulk(300), *HONEST.values(), b"Subject: x\n\nhttp://a\0b.c", b"\n"]
    for number, raw in enumerate(raws):
        (folder / f"{number:04}").write_bytes(raw)
    with Store(place, create=True) as store:
        store.learn([read_batch(bulk(60))], "ham")
        store.learn([read_batch(bulk(60, 200))], "spam")
        expected = [classify_mail(store, raw, Thresholds()) for raw in raws]
    found = [verdict for _, verdict in classify_files(place, [str(folder)], Thresholds())]
    assert [(one.verdict, one.words) for one in found] == [(one.verdict, one.words) for one in expected]
    np.testing.assert_allclose([one.log_odds for one in found], [one.log_odds for one in expected], rtol=1e-12)
    np.testing.assert_allclose([one.probability for one in found], [one.probability for one in expected], rtol=1e-12)


def test_many_mails_are_judged_before_both_classes_were_learned(tmp_path):
    raws = bulk(80)
    with Store(str(tmp_path / "store"), create=True) as store:
        for _ in range(2):
            found = classify_batch(store, raws, Thresholds())
            assert found == [classify_mail(store, raw, Thresholds()) for raw in raws]
            assert {one.verdict for one in found} == {"unsure"}
            store.learn([read_batch(bulk(40))], "ham")
