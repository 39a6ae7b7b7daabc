"""The store: each message is counted once, whoever asks, and everything can be taken out again."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.apps.spam.store import spam_store as stores
from tallybayes.apps.spam.store.backends import MissingStoreError, StoreError, default_location
from tallybayes.apps.spam.store.maintenance import check_integrity, expire_words, stats
from tallybayes.apps.spam.store.message_codec import Message, batch_of, in_order, pack, unpack
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.store.tally_exchange import from_tally, to_tally

HERE = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(tb.__file__).parents[1]), *sys.path])}
DAY = 86_400


def message(text):
    return Message(hashlib.sha256(text.encode()).digest(), list(dict.fromkeys(text.split())))


HAM = [message(text) for text in ("see you at lunch", "the lunch was good", "notes of the meeting")]
SPAM = [message(text) for text in ("click to win", "win win now", "see the prize now")]


@pytest.fixture
def store(place):
    with Store(place, create=True) as made:
        assert made.learn(HAM, "ham") == ["learned"] * 3
        assert made.learn(SPAM, "spam") == ["learned"] * 3
        yield made


def counted(ham, spam):
    """The counts that messages make, in plain Python."""
    counts = [Counter(token for one in part for token in set(one.tokens)) for part in (ham, spam)]
    return {word: (counts[0][word], counts[1][word]) for word in counts[0] | counts[1]}


def held(store):
    return {word: (ham, spam) for _, word, ham, spam in store.words()}


def agrees(store, ham, spam):
    state = store.state()
    table = counted(ham, spam)
    assert held(store) == table
    assert (state.ham, state.spam, state.words) == (len(ham), len(spam), len(table))
    assert (state.ham_words, state.spam_words) == tuple(map(sum, zip(*table.values(), strict=True)) or (0, 0))
    assert check_integrity(store) == []


@pytest.mark.slow
def test_words_are_counted_by_class(store):
    agrees(store, HAM, SPAM)
    assert store.counts_of(["win", "lunch", "the", "absent"]) == {"win": (0, 2), "lunch": (2, 0), "the": (2, 1)}
    assert store.label_of(HAM[0].id) == "ham"
    assert store.label_of(b"x" * 32) is None


@pytest.mark.slow
def test_a_message_is_learned_once(store):
    assert store.learn([HAM[0], HAM[0], message("new one"), message("new one")], "ham") == [
        "known", "known", "learned", "known",
    ]  # fmt: skip
    agrees(store, [*HAM, message("new one")], SPAM)
    before = store.state().revision
    assert store.learn(SPAM[:1], "ham") == ["other"]
    assert store.state().revision == before
    agrees(store, [*HAM, message("new one")], SPAM)


def test_words_of_any_characters_are_kept(store):
    # Strangers write what no database takes for text.
    odd = Message(
        b"o" * 32, ["a\x00b", "\ud800x", "win", "a\ufffdb", "naïve", "中文", "'; DROP TABLE words; --", "%s ? {x}"]
    )
    assert store.learn([odd], "ham") == ["learned"]
    assert store.look_up(list(odd.tokens))[1] == [(1, 0), (1, 0), (1, 2), (1, 0), (1, 0), (1, 0), (1, 0), (1, 0)]
    assert check_integrity(store) == []
    assert to_tally(store)["class"].table.tolist() == [4, 3]
    assert store.forget([odd.id]) == ["forgotten"]
    agrees(store, HAM, SPAM)


def test_a_mail_without_words_is_learned_like_any_other(store):
    nothing = Message(b"n" * 32, ())
    assert store.learn([nothing], "ham") == ["learned"]
    assert store.relearn([nothing], "spam") == ["relearned"]
    assert store.state().spam == 4
    assert store.forget([nothing.id]) == ["forgotten"]
    agrees(store, HAM, SPAM)


def test_a_message_is_moved_by_what_is_kept_of_it(store):
    assert store.relearn([SPAM[0], HAM[0], message("unheard of")], "ham") == ["relearned", "known", "learned"]
    agrees(store, [*HAM, SPAM[0], message("unheard of")], SPAM[1:])
    assert store.relearn([Message(SPAM[0].id, ())], "spam") == ["relearned"]  # by its id alone
    agrees(store, [*HAM, message("unheard of")], SPAM)


def test_what_is_forgotten_was_never_there(store):
    assert store.forget([SPAM[1].id, b"x" * 32, SPAM[1].id]) == ["forgotten", "unknown", "unknown"]
    agrees(store, HAM, [SPAM[0], SPAM[2]])
    store.forget([one.id for one in HAM + SPAM])
    assert held(store) == {}
    assert store.state()._replace(revision=0) == (0, 0, 0, 0, 0, 0, 0, 0, "", 0)
    assert store.learn(SPAM, "ham") == ["learned"] * 3
    agrees(store, SPAM, [])


def test_batches_are_counted_as_messages_are(store, monkeypatch):
    monkeypatch.setattr(stores, "_MESSAGES_AT_ONCE", 7)
    many = [message(f"number {k} of {k % 7} win lunch") for k in range(50)]
    batches = [batch_of(many[start : start + 20]) for start in (0, 20, 40, 30)]
    assert store.learn(batches, "spam") == ["learned"] * 50 + ["known"] * 20
    agrees(store, HAM, SPAM + many)
    assert [name for ids, *_ in store.messages() for name in ids] == [one.id for one in HAM + SPAM + many]


def test_a_batch_of_mails_that_are_known_numbers_no_words(store):
    # Of a known mail, words may have expired: they must not come back, nor take the counts of others.
    old = message("quince lunch")
    store.learn([old], "ham", now=0)
    assert expire_words(store, days=1, now=10 * DAY).words == 1
    assert "quince" not in held(store)
    assert store.learn([batch_of([old, message("apple quince2"), message("zebra lunch"), old])], "spam") == [
        "other", "learned", "learned", "other",
    ]  # fmt: skip
    found = held(store)
    assert {word: found[word] for word in ("apple", "quince2", "zebra", "lunch")} == {
        "apple": (0, 1), "quince2": (0, 1), "zebra": (0, 1), "lunch": (3, 1),
    }  # fmt: skip
    assert "quince" not in found
    assert check_integrity(store) == []


def test_two_connections_share_ids(place, store):
    # One has numbered words that the other removes and gives to others: what is remembered must not be used.
    with Store(place) as other:
        assert other.learn([message("alpha beta win")], "ham") == ["learned"]
        assert store.learn([message("beta gamma")], "ham") == ["learned"]
        store.forget([message("alpha beta win").id, message("beta gamma").id])
        assert store.learn([message("delta epsilon zeta")], "spam") == ["learned"]
        assert other.counts_of(["zeta"]) == {"zeta": (0, 1)}
        assert other.learn([message("beta alpha delta")], "spam") == ["learned"]
        agrees(other, HAM, [*SPAM, message("delta epsilon zeta"), message("beta alpha delta")])
        assert store.counts_of(["delta", "zeta"]) == {"delta": (0, 2), "zeta": (0, 1)}


@pytest.mark.slow
def test_a_change_that_fails_changes_nothing(store, monkeypatch):
    before = held(store), store.state()
    monkeypatch.setattr(store, "_add_to_totals", lambda *given, **steps: 1 // 0)
    for change in (lambda: store.learn([message("a b")], "ham"), lambda: store.forget([HAM[0].id])):
        with pytest.raises(ZeroDivisionError):
            change()
        assert (held(store), store.state()) == before
    monkeypatch.undo()
    store.learn([message("b c")], "ham")  # what was numbered in vain is not taken for granted
    agrees(store, [*HAM, message("b c")], SPAM)


def test_counts_do_not_fall_below_zero(store):
    with store.database.writing():
        store.database.execute("UPDATE words SET ham = 0 WHERE word = 'lunch'")
    assert any("'lunch': [2, 0] in the messages, [0, 0] in the store" in line for line in check_integrity(store))
    with pytest.raises(StoreError):
        store.forget([HAM[0].id])
    assert store.label_of(HAM[0].id) == "ham"


def test_old_words_leave_counts_and_messages_at_once(place):
    now = 1_000 * DAY
    with Store(place, create=True) as store:
        store.learn([message("old rare lunch")], "ham", now=now - 200 * DAY)
        store.learn([message("old win lunch")], "spam", now=now - 199 * DAY)
        store.learn([message("fresh lunch")], "ham", now=now)
        found = expire_words(store, days=90, now=now)
        assert (found.words, found.words_left, found.messages) == (2, 3, 2)
        assert held(store) == {"old": (1, 1), "lunch": (2, 1), "fresh": (1, 0)}
        assert check_integrity(store) == []
        assert expire_words(store, days=90, now=now).words == 0
        # What is forgotten later is taken out of what is left; and words that went may come again.
        assert store.forget([message("old rare lunch").id]) == ["forgotten"]
        assert store.relearn([message("old win lunch")], "ham") == ["relearned"]
        assert store.learn([message("rare win")], "spam", now=now) == ["learned"]
        assert held(store) == {"old": (1, 0), "lunch": (2, 0), "fresh": (1, 0), "rare": (0, 1), "win": (0, 1)}
        assert check_integrity(store) == []
        found = expire_words(store, days=90, most=2, now=now)
        assert (found.words, found.words_left) == (3, 2)
        assert "lunch" in held(store)
        assert check_integrity(store) == []


def test_old_messages_may_be_let_go_and_stay_counted(store):
    before, state = held(store), store.state()
    found = expire_words(store, messages=2)
    assert (found.released, found.words) == (4, 0)
    assert held(store) == before
    after = store.state()
    assert (after.ham, after.spam, after.imported_ham, after.imported_spam) == (state.ham, state.spam, 3, 1)
    assert check_integrity(store) == []
    assert store.forget([HAM[0].id, SPAM[0].id, SPAM[1].id]) == ["unknown", "unknown", "forgotten"]
    agreed = counted(HAM, [SPAM[0], SPAM[2]])
    assert held(store) == agreed
    assert check_integrity(store) == []
    assert expire_words(store, messages=2).released == 0
    assert expire_words(store, messages=0).released == 1
    assert held(store) == agreed
    assert check_integrity(store) == []


@pytest.mark.slow
def test_expiry_gives_space_back(place):
    with Store(place, create=True) as store:
        many = [message(" ".join(f"rare{k}x{place}" for place in range(200))) for k in range(50)]
        store.learn(many, "ham", now=0)
        found = expire_words(store, days=1, now=10 * DAY)
        assert found.words == 10_000
        if not place.startswith("postgresql"):
            assert found.bytes_after < found.bytes_before / 4
            assert stats(store)["bytes"] == found.bytes_after
        assert check_integrity(store) == []


def test_stores_add_up_as_tallies(place, store, tmp_path):
    tally = to_tally(store)
    tally.save(tmp_path / "spam.tally")
    again = tb.load(tmp_path / "spam.tally")
    assert again == tally
    assert again["class"].table.tolist() == [3, 3]
    with Store(str(tmp_path / "other.sqlite"), create=True) as other:
        other.learn([message("win lunch other")], "spam")
        assert from_tally(other, tally, "a file") == (3, 3, len(held(store)))
        assert from_tally(other, tally, "a file") is None
        assert held(other) == counted(HAM, [*SPAM, message("win lunch other")])
        state = other.state()
        assert (state.ham, state.spam, state.imported_ham, state.imported_spam) == (3, 4, 3, 3)
        assert check_integrity(other) == []
        assert to_tally(other) == tally + to_tally_of([], [message("win lunch other")], tmp_path)
        # What was imported is not forgotten with the message that has the same words.
        other.forget([message("win lunch other").id])
        assert held(other) == counted(HAM, SPAM)
        assert check_integrity(other) == []


def to_tally_of(ham, spam, folder):
    with Store(str(folder / f"part{len(list(folder.iterdir()))}.sqlite"), create=True) as part:
        part.learn(ham, "ham")
        part.learn(spam, "spam")
        return to_tally(part)


def test_a_tally_of_something_else_is_refused(store):
    before = held(store)
    words = {"class": ["ham", "spam"], "word": ["a", "b"]}
    factors = [tb.Factor("class", (), tb.Categorical()), tb.Factor("word", "class", tb.Categorical())]
    for wrong in (
        tb.count({"x": ["a"]}, [tb.Factor("x", (), tb.Categorical())]),
        tb.count({"class": ["good", "bad"], "word": ["a", "b"]}, factors),
        tb.count(words, factors, weight=[0.5, 1]),
        tb.count({"class": ["ham", "spam"], "word": [1, 2]}, factors),
        tb.Beta(1, 1),
    ):
        with pytest.raises(StoreError, match="expected a tally written by 'tally spam export'"):
            from_tally(store, wrong)
    assert held(store) == before


def test_calibration_is_kept(place, store):
    store.calibrate("[1, 2]", 6)
    with Store(place, read_only=True) as other:
        assert other.state().calibration == "[1, 2]"
        assert other.state().calibrated_at == 6
        assert stats(other)["messages"] == 6


def test_a_store_that_is_not_there_is_said_so(place):
    for options in ({}, {"read_only": True}):
        with pytest.raises(MissingStoreError, match=r"store .* does not exist"):
            Store(place, **options)
    Store(place, create=True).close()
    Store(place, create=True).close()
    Store(place, read_only=True).close()


def test_another_format_version_is_refused(place, store, monkeypatch):
    with store.database.writing():
        store.database.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    for known in (1, 100):  # the store is newer, or older
        monkeypatch.setattr(stores, "FORMAT", known)
        for options in ({}, {"read_only": True}, {"create": True}):
            with pytest.raises(StoreError, match=f"has format version 99; .* reads version {known} only"):
                Store(place, **options)


@pytest.mark.slow
def test_who_asks_sees_whole_messages_while_others_learn(place):
    # Every message has all of ten words, so whoever looks must find ten equal counts, and as many messages.
    words = [f"word{number}" for number in range(10)]
    code = (
        "import sys; from tallybayes.apps.spam.store.spam_store import Store\n"
        "from tallybayes.apps.spam.store.message_codec import Message\n"
        "store = Store(sys.argv[1], create=True)\n"
        "for number in range(60):\n"
        "    name = f'{sys.argv[2]}{number}'.encode().ljust(32)\n"
        "    store.learn([Message(name, sys.argv[3].split())], 'spam')\n"
    )
    command = [sys.executable, "-c", code, place]
    writers = [subprocess.Popen([*command, who, " ".join(words)], env=HERE) for who in "ab"]
    Store(place, create=True).close()  # all three make it, at about the same moment
    seen = set()
    with Store(place, read_only=True) as store:
        while any(writer.poll() is None for writer in writers):
            state, pairs = store.look_up(words)
            assert set(pairs) == {(0, state.spam)}
            assert state.spam_words == 10 * state.spam
            seen.add(state.spam)
        assert [writer.returncode for writer in writers] == [0, 0]
        assert store.look_up(words)[1] == [(0, 120)] * 10
        assert check_integrity(store) == []
    assert len(seen) > 5


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_killed_a_hundred_times(place):
    script = Path(__file__).parents[1] / "killing.py"
    ran = subprocess.run(
        [sys.executable, str(script), place, "100"], capture_output=True, text=True, env=HERE, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["messages"] > 100
    assert found["kept"] > 50


# ---- Files ------------------------------------------------------------------------------------------------------


def test_the_file_holds_no_sentence(tmp_path):
    # Words are stored one by one, and not in the order of any mail.
    text = "yesterday our neighbors quietly discussed moving their furniture towards brighter apartments downtown"
    path = tmp_path / "spam.sqlite"
    with Store(str(path), create=True) as store:
        store.learn([Message(b"i" * 32, text.split())], "ham")
        names = ("spam.sqlite", "spam.sqlite-wal")
        content = b"".join((tmp_path / name).read_bytes() for name in names if (tmp_path / name).exists())
        stored = [word for _, word, _, _ in store.words()]
    assert b"neighbors" in content
    for first, second in zip(text.split(), text.split()[1:], strict=False):
        assert f"{first} {second}".encode() not in content
    assert stored == sorted(text.split())
    with Store(str(path)) as store:
        store.forget([b"i" * 32])
        store.database.vacuum()
    assert b"neighbors" not in path.read_bytes()  # forgotten for good, not only marked as free
    assert path.stat().st_mode & 0o077 == 0


def test_it_is_written_ahead_and_to_the_disk(tmp_path):
    with Store(str(tmp_path / "spam.sqlite"), create=True) as store:
        assert store.database.query("PRAGMA journal_mode") == [("wal",)]
        assert store.database.query("PRAGMA synchronous") == [(2,)]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b"From me\nnot a database, but a text of some length" * 20,
            "not the store of a spam filter, or it is corrupted",
        ),
        (b"", "is empty; expected the store"),
        ("foreign", "an SQLite file of another application"),
        ("torn", "corrupted"),
        ("bare", "is incomplete|no store in"),
    ],
    ids=["text", "empty", "foreign", "torn", "bare"],
)
def test_what_is_no_store_is_refused(content, told, tmp_path):
    path = tmp_path / "spam.sqlite"
    if content == "torn":
        with Store(str(path), create=True) as store:
            store.learn([message(" ".join(f"word{k}x{n}" for n in range(100))) for k in range(20)], "ham")
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + bytes(len(whole) - 100))
    elif content == "bare":
        with Store(str(path), create=True) as store:
            store.database.execute("DROP TABLE meta")
    elif content == "foreign":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE words (x)")
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for options in ({}, {"read_only": True}, *([{"create": True}] if content not in (b"", "bare") else [])):
        with pytest.raises(StoreError, match=told):
            Store(str(path), **options)
    assert path.read_bytes() == before


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="is a folder"):
        Store(str(tmp_path), create=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"folder .* of the store"):
        Store(str(tmp_path / "file" / "spam.sqlite"), create=True)


def test_a_folder_where_nothing_can_be_written_can_be_read(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "spam.sqlite"
    with Store(str(path), create=True) as store:
        store.learn(SPAM, "spam")
    path.chmod(0o444)
    folder.chmod(0o555)
    for above in tmp_path.parents:
        if os.geteuid() == 0 and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o001)
    tmp_path.chmod(0o755)
    code = (
        "import os, sqlite3, sys\n"
        "from tallybayes.apps.spam.store import spam_store as store, store_changes as changes\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"  # root may write everywhere
        "print(store.Store(sys.argv[1], read_only=True).counts_of(['win']))\n"
        "try:\n    store.Store(sys.argv[1]).forget([b'x' * 32])\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=HERE, cwd="/")
    folder.chmod(0o755)
    assert ran.stdout.startswith("{'win': (0, 2)}\nStoreError"), ran
    assert "cannot be" in ran.stdout


def test_the_default_place(monkeypatch, tmp_path):
    monkeypatch.setenv("TALLY_SPAM_STORE", "postgresql://server/site")
    assert default_location() == "postgresql://server/site"
    monkeypatch.delenv("TALLY_SPAM_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_location() == str(tmp_path / "tally" / "spam.sqlite")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_location() == str(tmp_path / ".local" / "share" / "tally" / "spam.sqlite")


def test_a_server_that_is_not_there_is_told_without_its_password():
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store("postgresql://somebody:secret@127.0.0.1:1/nothing", create=True)
    assert "secret" not in str(caught.value)
    assert "postgresql://…@127.0.0.1:1/nothing" in str(caught.value)


# ---- Packing ----------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(1, 2**40 + 7), max_size=20), max_size=6))
def test_ids_are_packed_and_unpacked(messages):
    flat = np.array([one for part in messages for one in part], np.int64)
    ids, lengths = in_order(flat, np.array(list(map(len, messages)), np.int64))
    packed = pack(ids, lengths)
    assert len(packed) == len(messages)
    again, sizes = unpack(packed)
    parts = np.split(again, np.cumsum(sizes)[:-1]) if len(sizes) else []
    assert [part.tolist() for part in parts] == [sorted(set(part)) for part in messages]


def test_packed_ids_take_few_bytes():
    ids = np.arange(1, 3000, 10)
    assert len(pack(ids, np.array([len(ids)]))[0]) == len(ids)


def test_who_may_only_read_a_server_can_judge(empty_server):
    import psycopg

    with Store(empty_server, create=True) as store:
        store.learn(SPAM, "spam")
    with psycopg.connect(empty_server, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone():
            connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA tally_spam TO reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA tally_spam TO reader")
    address = empty_server.replace("tests@", "reader@")
    with Store(address, read_only=True) as store:
        assert store.counts_of(["win"]) == {"win": (0, 2)}
    with Store(address) as store, pytest.raises(StoreError, match="permission denied"):
        store.learn(HAM, "ham")
