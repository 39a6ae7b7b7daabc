"""Mails to read: honest ones of every kind, and hostile ones."""

from base64 import b64encode

MEGABYTE = 1 << 20


def plain(subject: str = "Lunch", body: str = "See you at noon.", sender: str = "Ann <ann@example.org>") -> bytes:
    return f"From: {sender}\nTo: bob@example.com\nSubject: {subject}\nMessage-ID: <1@example.org>\n\n{body}\n".encode()


def text_part(body: bytes, kind: str = "text/plain", encoding: str = "8bit") -> bytes:
    return f"Content-Type: {kind}\nContent-Transfer-Encoding: {encoding}\n\n".encode() + body


def multipart(*parts: bytes, boundary: str = "edge", kind: str = "multipart/mixed") -> bytes:
    mark = f"--{boundary}".encode()
    head = f'Subject: several\nMIME-Version: 1.0\nContent-Type: {kind}; boundary="{boundary}"\n\n'.encode()
    return head + b"preamble\n" + b"".join(mark + b"\n" + part + b"\n" for part in parts) + mark + b"--\nepilogue\n"


PICTURE = b"Content-Type: image/gif; name=a.gif\nContent-Transfer-Encoding: base64\n\nR0lGODlhAQABAAAAACw="
PAGE = (
    b'<html><head><style>p {color: red}</style></head><body bgcolor="white"><p>Win<b>ner</b>! &pound;500 '
    b'<a href="http://www.shop.example.net/offer/now">Click</a><!-- zebra --><img src="http://img.example.net/x.gif">'
    b'<font color="#ffffff">weather</font><span style="display: none">forecast</span></body></html>'
)
HONEST = {
    "plain": plain(),
    "page": text_part(PAGE, "text/html; charset=iso-8859-1"),
    "alternative": multipart(text_part(b"Hello there"), text_part(PAGE, "text/html"), kind="multipart/alternative"),
    "base64": text_part(b64encode("Grüße aus Köln, naïve Ünïcode".encode()), "text/plain; charset=utf-8", "base64"),
    "quoted": text_part(b"Gr=FC=DFe aus K=F6ln, a long=\ner word", "text/plain; charset=latin-1", "quoted-printable"),
    "korean": text_part("지금 클릭하세요 무료".encode("euc-kr"), "text/plain; charset=ks_c_5601-1987"),
    "chinese": text_part("免费优惠今天".encode("gb2312"), "text/plain; charset=gb2312"),
    "japanese": text_part("無料サービス".encode("iso-2022-jp"), "text/plain; charset=iso-2022-jp"),
    "utf-16": text_part("wide words".encode("utf-16"), 'text/plain; charset="utf-16"'),
    "forwarded": multipart(text_part(b"see below"), b"Content-Type: message/rfc822\n\n" + plain("Inner")),
    "picture": multipart(text_part(b"look"), PICTURE),
    "nested": multipart(multipart(text_part(b"deep words"), boundary="inner"), PICTURE),
    "encoded words": plain("=?utf-8?B?R3LDvMOfZQ==?= =?iso-8859-1?Q?_aus_K=F6ln?=", sender="=?utf-8?q?R=C3=A9?= r@x.y"),
    "uuencoded": text_part(b"begin 644 a.txt\n+:&5L;&\\@=&AE<F4\n`\nend\n", "text/plain", "x-uuencode"),
    "folded": b"Subject: one\n two\n\tthree\nReceived: from a.example.net ([10.1.2.3])\n\tby b.x; Mon, 1 Jan\n\nbody",
    "mbox": b"From ann@example.org Mon Jan  1 10:00:00 2024\n" + plain(),
    "returned lines": plain(body="one\ntwo").replace(b"\n", b"\r\n"),
}  # fmt: skip


def _many(number: int, part: bytes) -> bytes:
    return b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + (b"--b\n" + part + b"\n") * number


def _page(body: bytes) -> bytes:
    return b"Subject: x\n" + text_part(body, "text/html; charset=utf-8")


def _text(body: bytes, kind: str = "text/plain", encoding: str = "8bit") -> bytes:
    return b"Subject: x\n" + text_part(body, kind, encoding)


# What asks for much more time or memory than it is long, or is long. Made when asked for: together they are gigabytes.
HOSTILE = {
    "100 MB of words": lambda: _text(b"buy now cheap " * (100 * MEGABYTE // 14)),
    "one line of 100 MB": lambda: _text(b"a" * (100 * MEGABYTE)),
    "100 MB that are no mail": lambda: bytes(range(256)) * (100 * MEGABYTE // 256),
    "100 MB of returns": lambda: b"\r" * (100 * MEGABYTE),
    "other words without end": lambda: _text(b" ".join(b"w%d" % number for number in range(3 * MEGABYTE))),
    "base64 without an end of line": lambda: _text(b64encode(b"buy now " * (8 * MEGABYTE)), encoding="base64"),
    "broken base64": lambda: _text(b"QUJD=Q" * (5 * MEGABYTE), encoding="base64"),
    "quoted-printable": lambda: _text(b"=41=\n" * (5 * MEGABYTE), encoding="quoted-printable"),
    "empty lines of uuencode": lambda: _text(b"\n" * (5 * MEGABYTE), encoding="x-uuencode"),
    "10,000 parts": lambda: _many(10_000, text_part(b"hello again")),
    "a million empty parts": lambda: _many(1_000_000, b""),
    "long parts": lambda: _many(900, text_part(b"<b>aa</b>" * 3000, "text/html")),
    "parts in parts": lambda: b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (depth, depth) for depth in range(100_000)
    ),
    "the same boundary in itself": lambda: b'Content-Type: multipart/mixed; boundary="b"\n\n--b\n' * 200_000,
    "mails in mails": lambda: b"Content-Type: message/rfc822\n\n" * 300_000,
    "a boundary that nearly comes": lambda: (
        b"Content-Type: multipart/mixed; boundary=" + b"a" * 199 + b"b\n\n" + (b"\n--" + b"a" * 199) * 80_000
    ),
    "a million headers": lambda: b"X-A: b\n" * 1_000_000 + b"\nbody",
    "a long header": lambda: b"Subject: " + b"word " * (10 * MEGABYTE) + b"\n\nbody",
    "a header in many lines": lambda: b"Subject: " + b"a\n " * (5 * MEGABYTE) + b"\n\nbody",
    "encoded words that do not end": lambda: b"Subject: " + b"=?utf-8?Q?" * MEGABYTE + b"\n\nbody",
    "parameters": lambda: b"Content-Type: text/plain; " + b"a=b; " * MEGABYTE + b"a" * MEGABYTE + b"\n\nbody",
    "tags that do not end": lambda: _page(b"<a " * (5 * MEGABYTE)),
    "signs of tags": lambda: _page(b"<" * (5 * MEGABYTE)),
    "comments that do not end": lambda: _page(b"<!--" * (5 * MEGABYTE)),
    "scripts that do not end": lambda: _page(b"<script>" * (5 * MEGABYTE)),
    "hidden texts": lambda: _page(b'<p style="display:none">x' * MEGABYTE),
    "a number of a million digits": lambda: _page(b"&#" + b"1" * MEGABYTE + b";"),
    "references to nothing": lambda: _page(b"&ampampampampampampampamp" * MEGABYTE),
    "attributes": lambda: _page(b"<a " + (b"href" + b" " * 20) * MEGABYTE + b">"),
    "letters that are two in lower case": lambda: _page("<p>İ".encode() * MEGABYTE),
    "links without end": lambda: _text(b"".join(b"http://a%d.x/%d " % (number, number) for number in range(500_000))),
    "a host of a million dots": lambda: _text(b"http://" + b"a." * MEGABYTE),
    "signs without spaces": lambda: _text("a漢".encode() * MEGABYTE, "text/plain; charset=utf-8"),
    "a charset that is slow": lambda: _text(b"a-9999\xff" * MEGABYTE, "text/plain; charset=punycode"),
    "shifts of charset": lambda: _text(b'\x1b$B$"\x1b(B\xff' * MEGABYTE, "text/plain; charset=iso-2022-jp"),
    "quoted lines of an mbox": lambda: b"Subject: a\n\n" + b">From a\n" * (5 * MEGABYTE),
}
