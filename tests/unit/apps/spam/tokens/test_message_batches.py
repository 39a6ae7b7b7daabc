"""Mails by the hundred, taken apart in C++: the same tokens, the same batches and the same store as in Python."""

import tarfile

import numpy as np
import pytest

from tallybayes import kernels
from tallybayes.apps.spam.store.backends import storable
from tallybayes.apps.spam.store.message_codec import Message, batch_of, words_from_bytes
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens import message_batches
from tallybayes.apps.spam.tokens.message_batches import REFERENCE, read_batch
from tallybayes.apps.spam.tokens.message_tokens import TOKENS, content_id, tokens_of
from tallybayes.apps.spam.tokens.token_kernel import mail_batch
from tests.shared import DATA, needs
from tests.unit.apps.spam.mails import HONEST, multipart, plain, text_part

ARCHIVE = DATA / "spamassassin" / "spamassassin-2003.tar.xz"
compiled_alone = needs("spamassassin")


def compiled(raw: bytes) -> list[str] | None:
    """The tokens by the kernel; None where it leaves the mail to Python."""
    batch = mail_batch(REFERENCE)
    return words_from_bytes(batch.words()) if batch.add(raw) else None


def page(body: str, charset: str = "utf-8") -> bytes:
    return b"Subject: x\n" + text_part(body.encode(charset), f"text/html; charset={charset}")


# Where a rule of the reference has two sides; what is written beside them is not read by any test.
PLAIN = {
    "nothing": b"",
    "no headers": b"Hello World\n\nagain",
    "a header alone": b"Subject: WIN",
    "no name": b"Subject: a\n: b\n\nc",
    "lines that end in two ways": b"Subject: a\r\n b\n\tc\r\n\r\nd\r\ne",
    "blanks before a colon": b"Subject \t: WIN now\nX-\xe9t\xe9 : b\n\nc",
    "a name in Latin-1": b"From: Jos\xe9 \xc0\xc9\xce\nSubject: \xc9T\xc9 \xaa1\n\nna\xefve \xa3\xa3 \xbd \xa0\x85x",
    "letters of Latin-1": b"Subject: \xb5\xdf\n\n" + bytes(set(range(256)) - {0x81, 0x82}) * 2,
    "a name in UTF-8": "From: José\nSubject: ÀÉÎ été\n\nnaïve “x”".encode()[:-9],
    "encoded words": plain("=?utf-8?B?R3LDvMOfZQ==?= =?iso-8859-1?Q?_aus_K=F6ln?="),
    "numbers of mails": b"X-Id: abcdefgh abcdefg1 a.bcdefgh1 1234567 12345678\nReceived: from x12345678; by y\n\n",
    "long words": b"Subject: x\n\n" + b"a" * 50 + b" " + b"a" * 40 + b"b " + b"." * 60 + b"a" * 39 + b".b",
    "dots in names": b"From: .a..b. ... c.d\xe9..\xe9.e. \xe9.\n\nhttp://..a..b/.c..d./e?f=g",
    "apostrophes": b"Subject: x\n\nDon't 'quote' ' '' o'clock",
    "links": b"Subject: x\n\nhttp://a.b.c/d/e http:// ://x ftp://A.B:// https://x.y/Z\xe9?q://r.s/t '://u'",
    "page without its type": b"Subject: x\n\n  \n <HTML><b>bold</b>er<i>st</i>",
    "page": page("<p>Win<b>ner</b> <A HREF='http://A.B/c d'>x</A><img src = \"x.gif\"><br/>a<BR>b<Br>c<>d<e"),
    "signs": page("\u201cDon\u2019t\u201d pay\u2014ever \u2022 100\u20ac\u2026 na\u00efve\u2122 \U0001f600a\u2019.b"),
    "signs of entities": page("&ldquo;Don&rsquo;t&#8221; pay\u2019s&mdash;&#x20ac; &euro;5 &#8364; caf&eacute;&trade;"),
    "signs in headers": "From: \u201cJ\u00e9\u201d O\u2019N <b\u2019.@x>\nSubject: \u20ac\u2014IT\u2019S\n\n".encode(),
    "entities": page("a&amp;b &lt;c&gt; &eacute;t&eacute &#233; &#xe9; &nosuch; &#12345678901; &pound5"),
    "comments": page("a<!-- b -->c<!-- d<!-- e -->f--> g <!-- h"),
    "hidden": page(
        '<p style="display:none">a</p>b<font color=white>c</font>d<body bgcolor=black><font color="#ffffff">e</font>'
        '<span style="font-size:1">f</span><i style="font-size: 1.5em">g</i><td background-color=white>h<p bgcolor = '
        '"#FFF">i<b style="xcolor:white">j<b style="visibility :hidden">k</b>l<script>m</script>n<STYLE>o'
    ),
    "attributes that are none": page('<a href="" src= action=\'\' href =\t"b" hrefhref=c background==d><a =><= a>'),
    "many tags": page("".join(f"<t{number} a=b>" for number in range(150))),
    "parameters": b'Content-Type: text/html ; a==b; ;charset*0="iso-"; charset*1=8859-1;boundary = x\n\n<b>\xe9</b>a',
    "no parameter ends": b'Content-Type: multipart/mixed; boundary="' + b"x" * 500 + b"\n\n--\n",
    "disposition": b"Content-Disposition: inline; charset=latin-1\nContent-Type: text/plain; a=b\n\n\xe9\xff",
    "an attachment": multipart(text_part(b"a"), b"Content-Type: Image/GIF\n\nGIF89a\0\1", b"Content-Type: x/y"),
    "boundaries": b'Content-Type: multipart/x; boundary="b "\n\n--b\na: b\n\nc\n--b \n\nd\n--bb\ne\n--b--\nf\n--b\ng',
    "no such boundary": b"Content-Type: multipart/x; boundary=b\n\ntext\n-b",
    "an empty boundary": b"Content-Type: multipart/x; boundary=\n\ntext\n--\nmore",
    "mails in mails": b"Content-Type: message/rfc822\n\nContent-Type: message/delivery-status\n\nTo : x\nA: b\n\nc",
    "a report": b"Content-Type: message/x\n\nReport: x\n\ny",
    "mbox": b">From a b\nSubject: x\n\n>From y",
    "base64": text_part(b"R3Jlw7xuIGZv\nbyBiYXI", "text/plain; charset=utf-8", "BASE64 "),
    "many words": b"Subject: x\n\n" + b" ".join(b"w%d" % number for number in range(TOKENS + 500)),
}  # fmt: skip
ODD = {"japanese", "korean", "chinese", "utf-16"}


@pytest.mark.slow
@compiled_alone
@pytest.mark.parametrize("name", PLAIN)
def test_plain_mails_have_the_tokens_of_the_reference(name):
    raw = PLAIN[name]
    assert compiled(raw) == tokens_of(raw)
    for cut in range(1, len(raw), max(1, len(raw) // 40)):  # wherever it ends, and without its start
        for part in (raw[:cut], raw[cut:]):
            assert compiled(part) in (tokens_of(part), None)


@compiled_alone
@pytest.mark.parametrize("name", HONEST)
def test_mails_of_every_kind_have_them_too(name):
    found = compiled(HONEST[name])
    assert found == (tokens_of(HONEST[name]) if found is not None or name not in ODD else None)


@compiled_alone
def test_what_is_not_plain_is_left_to_python():
    assert {name for name, raw in HONEST.items() if compiled(raw) is None} <= ODD
    for letters in ("\u0142", "&lstrok;", "\u2003", "\u4f60", "\x81", "&#129;", "<x\u2022 a>", "http://a\u2014b.c"):
        assert compiled(page(f"caf\u00e9 {letters}")) is None, letters
    for head in ("X\u2003-Y: a", "Subject: \u2019 =?utf-8?q?a?=", "Subject: =?utf-8?q?=E4=BD=A0?="):
        assert compiled(f"{head}\n\n\u20ac".encode()) is None, head
    raw = b"Subject: x\n\n" + b"a1 b2 " * 100_000  # tokens that Python counts, each once
    assert compiled(raw) in (tokens_of(raw), None)


@compiled_alone
def test_a_kernel_looks_at_what_it_is_given():
    with pytest.raises(TypeError):
        mail_batch(REFERENCE).add("text")
    with pytest.raises(KeyError):
        mail_batch({})
    with pytest.raises(TypeError, match="expected a str"):
        mail_batch(REFERENCE | {"text": lambda raw, charset: raw}).add(b"Subject: \xe9")
    with pytest.raises(ZeroDivisionError):
        mail_batch(REFERENCE | {"text": lambda raw, charset: 1 / 0}).add(b"Subject: \xe9")


def assert_same(batch, expected):
    assert batch.ids == expected.ids
    assert batch.words == expected.words
    assert np.array_equal(batch.tokens, expected.tokens)
    assert np.array_equal(batch.lengths, expected.lengths)
    assert batch.tokens.dtype == expected.tokens.dtype
    assert batch.lengths.dtype == expected.lengths.dtype


def in_python(raws):
    return batch_of(Message(content_id(raw), storable(tokens_of(raw))) for raw in raws)


@pytest.mark.parametrize("few", [1, 1000])
def test_a_batch_is_that_of_python(few, monkeypatch):
    monkeypatch.setattr(message_batches, "_FEW", few)
    raws = [*HONEST.values(), *PLAIN.values(), b"Subject: x\n\nhttp://a\0b.c"]
    assert_same(read_batch(raws), in_python(raws))
    assert_same(read_batch([]), in_python([]))


@pytest.mark.slow
@needs("spamassassin")
def test_real_mails_all_of_them(tmp_path):
    with tarfile.open(ARCHIVE, "r|xz") as files:
        raws = [files.extractfile(member).read() for member in files if member.isfile() and "-" in member.name]
    assert len(raws) == 6046
    found, expected = read_batch(raws), in_python(raws)
    assert_same(found, expected)
    for name, batch in (("one", found), ("other", expected)):
        with Store(str(tmp_path / name), create=True) as store:
            store.learn([batch], "ham", now=1)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    if kernels.implementation().startswith("compiled"):
        assert sum(compiled(raw) is None for raw in raws[::10]) < len(raws[::10]) / 10
