"""Mails of every kind become tokens; whoever carries them, they stay the same mail."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tallybayes.apps.spam.tokens import message_tokens, mime
from tallybayes.apps.spam.tokens.message_tokens import content_id, tokens_of
from tallybayes.apps.spam.tokens.word_tokens import LETTERS, words_of
from tests.unit.apps.spam.mails import HONEST, HOSTILE, PAGE, multipart, plain, text_part


def words(raw: bytes) -> list[str]:
    """The tokens of the text alone."""
    return [token for token in tokens_of(raw) if ":" not in token]


def of(kind: str, raw: bytes) -> list[str]:
    """The tokens of a kind, without its name."""
    return [token.removeprefix(f"{kind}:") for token in tokens_of(raw) if token.startswith(f"{kind}:")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", ["see", "you", "at", "noon"]),
        ("page", ["winner", "500", "click"]),
        ("alternative", ["hello", "there", "winner", "500", "click"]),
        ("base64", ["grüße", "aus", "köln", "naïve", "ünïcode"]),
        ("quoted", ["grüße", "aus", "köln", "a", "longer", "word"]),
        ("korean", ["지금", "클릭하세요", "무료"]),
        ("chinese", ["免费", "费优", "优惠", "惠今", "今天"]),
        ("japanese", ["無料", "料サ", "サー", "ービ", "ビス"]),
        ("utf-16", ["wide", "words"]),
        ("forwarded", ["see", "below", "you", "at", "noon"]),
        ("picture", ["look"]),
        ("nested", ["deep", "words"]),
        ("encoded words", ["see", "you", "at", "noon"]),
        ("uuencoded", ["hello", "there"]),
        ("folded", ["body"]),
        ("mbox", ["see", "you", "at", "noon"]),
        ("returned lines", ["one", "two"]),
    ],
)
def test_the_words_of_mails_of_every_kind(name, expected):
    assert words(HONEST[name]) == expected


def test_every_kind_is_here():
    assert len(HONEST) == 17


def test_headers_have_a_prefix_of_their_kind():
    raw = HONEST["folded"] + b""
    assert of("subject", raw) == ["one", "two", "three"]
    assert of("received", raw) == ["from", "a.example.net", "10.1.2.3", "by", "b.x"]  # not when
    assert of("from", HONEST["plain"]) == ["ann", "example.org"]
    assert of("to", HONEST["plain"]) == ["bob", "example.com"]
    assert of("subject", HONEST["encoded words"]) == ["grüße", "aus", "köln"]
    assert of("from", HONEST["encoded words"]) == ["ré", "r", "x.y"]
    assert "header:thunderbird" in tokens_of(b"X-Mailer: Thunderbird\n\n")
    assert "style:x-mailer" in tokens_of(b"X-Mailer: Thunderbird\n\n")


def test_pages_have_links_pictures_and_hidden_text():
    raw = HONEST["page"]
    assert {"www.shop.example.net", "shop.example.net", "example.net", "offer", "now"} <= set(of("link", raw))
    assert {"img.example.net", "x.gif"} <= set(of("image", raw))
    assert of("hidden", raw) == ["zebra", "weather", "forecast"]
    assert {"<a>", "<font>", "<img>"} <= set(of("style", raw))
    painted = text_part(PAGE.replace(b"white", b"navy"), "text/html")
    assert of("hidden", painted) == ["zebra", "forecast"]  # white is seen there
    assert "weather" in words(painted)


def test_tags_without_a_name_are_none():
    assert words(text_part(b"a < > b <\n> c <=> d <> e < f", "text/html")) == ["a", "b", "c", "d", "e", "f"]


def test_links_of_plain_text_are_links_too():
    assert of("link", plain(body="go to http://win.example.net/prize?x=1 now"))[-3:] == [
        "win.example.net",
        "example.net",
        "net",
    ]


def test_style_and_shapes():
    raw = plain("WIN", "CALL 0871-872 now!!! £500")
    assert {"upper:CALL", "shape:0000", "shape:000", "subject:WIN", "subject:win", "style:! 2", "style:$ 1"} <= set(
        tokens_of(raw)
    )


def test_attached_bytes_are_known_again_but_not_read():
    one, other = HONEST["picture"], HONEST["picture"].replace(b"R0lG", b"R0lH")
    assert len(of("bytes", one)) == 1
    assert of("bytes", one) != of("bytes", other)
    assert "style:image/gif" in tokens_of(one)


def test_texts_without_headers_are_all_body():
    assert words(b"Hi: meet me at noon") == ["hi", "meet", "me", "at", "noon"]
    assert words("naïve text".encode("latin-1")) == ["naïve", "text"]
    assert words(b"\nwin now") == ["win", "now"]
    assert of("subject", b"Subject: no body") == ["no", "body"]


@pytest.mark.parametrize("charset", ["x-unknown", "none\x00such", "idna", "zip", "base64", "utf-8", "x" * 5000, ""])
def test_charsets_that_are_wrong_are_read_as_latin_1(charset):
    assert words(text_part("köln".encode("latin-1"), f"text/plain; charset={charset}")) == ["köln"]


def test_a_character_that_is_cut_off_does_not_turn_the_rest():
    size = mime.PART_BYTES
    raw = text_part("köln ".encode() + b" " * (size - 7) + "é".encode(), "text/plain; charset=utf-8")
    assert words(raw)[0] == "köln"


def test_what_is_no_multipart_after_all_is_text():
    assert words(b"Content-Type: multipart/mixed; boundary=x\n\nno boundary came") == ["no", "boundary", "came"]
    unclosed = multipart(text_part(b"the rest")).replace(b"--edge--\nepilogue\n", b"")
    assert words(unclosed) == ["the", "rest"]


def test_tokens_are_distinct_in_order_and_short():
    raw = plain(body="b a b " + "x" * 1000 + " " + "é" * 1000)
    assert words(raw) == ["b", "a", "x" * LETTERS, "é" * LETTERS]
    for one in HONEST.values():
        found = tokens_of(one)
        assert found
        assert len(found) == len(set(found))
        assert all(found)
        assert tokens_of(one) == found


def test_tokens_do_not_depend_on_the_process():
    # Sets of strings have an order of their own in every process.
    code = (
        f"from tallybayes.apps.spam.tokens.message_tokens import tokens_of; print(ascii(tokens_of({HONEST['page']!r})))"
    )
    runs = []
    for seed in ("1", "2"):
        place = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        runs.append(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=place).stdout
        )
    assert runs[0] == runs[1] == ascii(tokens_of(HONEST["page"])) + "\n"


def test_words_are_those_of_all_scripts():
    assert words_of("Don’t stop, naïve Ünïcode! Привет, мир — ελληνικά.") == [
        "Dont",
        "stop",
        "naïve",
        "Ünïcode",
        "Привет",
        "мир",
        "ελληνικά",
    ]
    assert words_of("a漢字b") == ["漢字", "a", "b"]
    assert words_of("") == words_of(" ... ''' -- ") == []


def test_a_mail_is_the_same_after_it_was_carried_stored_and_marked():
    raw = plain(body="From here on\n>From there\nend")
    same = [
        raw.replace(b"\n", b"\r\n"),
        b"Received: from a by b\nX-Tally: spam\n" + raw,
        b"Status: RO\n" + raw + b"\n\n",
        raw.replace(b"\nFrom here", b"\n>From here"),
        b"From ann@example.org Mon Jan  1 10:00:00 2024\n" + raw,
        raw.replace(b"To: bob", b"To:\n bob"),
    ]
    assert {content_id(one) for one in same} == {content_id(raw)}
    assert len(content_id(raw)) == 32


def test_other_mails_are_others():
    raw = plain()
    others = [
        raw,
        plain("Dinner"),
        plain(body="See you at one."),
        plain(sender="Eve <eve@example.org>"),
        *HONEST.values(),
    ]
    found = {content_id(one) for one in others}
    # The first is the plain one, and that in an mbox is, too; so is the one in a message, though not its wrapping.
    assert len(found) == len(others) - 2


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_takes_little_time_and_memory_and_has_tokens(name):
    # In a process of its own: what a mail takes at most is known of a process alone.
    code = f"""
import sys, time, resource
sys.path.insert(0, {str(Path(__file__).parents[4])!r})
from tests.unit.apps.spam.mails import HOSTILE
from tallybayes.apps.spam.tokens.message_batches import REFERENCE
from tallybayes.apps.spam.store.backends import storable
from tallybayes.apps.spam.tokens.message_tokens import content_id, tokens_of
from tallybayes.apps.spam.store.message_codec import words_from_bytes
from tallybayes.apps.spam.tokens.token_kernel import mail_batch
raw = HOSTILE[{name!r}]()
tokens_of(b"Content-Type: text/html; charset=euc-jp\\n\\n<p>&amp;\\xff")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
before, start = peak(), time.process_time()
found, identity = tokens_of(raw), content_id(raw)
took, start, batch = time.process_time() - start, time.process_time(), mail_batch(REFERENCE)
same = batch is None or not batch.add(raw) or words_from_bytes(batch.words()) == storable(found)
print(max(took, time.process_time() - start), peak() - before, len(found), same)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *numbers, same = out.stdout.split()
    seconds, megabytes, n_tokens = map(float, numbers)
    assert same == "True"
    assert seconds < 1
    assert megabytes < 256
    assert 0 < n_tokens <= message_tokens.TOKENS


def test_changed_mails_are_read_all_the_same():
    # A few of what `make fuzz` does by the hundred thousand.
    rng = random.Random(0)
    seeds = list(HONEST.values())
    for _ in range(300):
        raw = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(raw) + 1)
            raw[place : place + rng.choice((0, 1, 20))] = rng.choice(
                (b"", b"\n", b"\xff", b"=", b"<", b"--edge", rng.randbytes(5))
            )
        found = tokens_of(bytes(raw))
        assert len(found) == len(set(found))
        assert len(content_id(bytes(raw))) == 32
