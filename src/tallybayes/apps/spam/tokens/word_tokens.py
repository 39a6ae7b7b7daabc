"""The words of a text, and its style: how long it is, how loud, and what its numbers look like."""

from __future__ import annotations

import re
from collections.abc import Iterator

LETTERS = 40  # of a word: more are cut off

# Between words: all of ASCII but letters and digits. Apostrophes are left out; the dot may stand within a name.
_WORDS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
_NAMES = bytes(code if chr(code) == "." else _WORDS[code] for code in range(256))
_CAPITALS = bytes(range(65, 91))
_DIGITS = str.maketrans("123456789", "000000000")
_OTHER = re.compile(r"[^\W_](?:[\w.]*[^\W_])?")
# Scripts that are written without spaces: pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def words_of(text: str) -> list[str]:
    """The distinct words of a text as they are written, in order of first occurrence.

    Examples
    --------
    >>> words_of("Don't wait: WIN $1,000 at example.com. Win!")
    ['Dont', 'wait', 'WIN', '1', '000', 'at', 'example', 'com', 'Win']
    """
    found = dict.fromkeys(text.encode("utf-8", "replace").translate(_WORDS, b"'").decode().split())
    return _short(found if text.isascii() else dict.fromkeys(_of_scripts(found)))


def names_of(text: str) -> list[str]:
    """The same of headers and addresses, where dots are within names: of hosts, of versions, of files.

    Examples
    --------
    >>> names_of("from mail.example.com ([10.1.2.3]) by mx.")
    ['from', 'mail.example.com', '10.1.2.3', 'by', 'mx']
    """
    raw = text.encode("utf-8", "replace").translate(_NAMES, b"'")
    found = dict.fromkeys([name for dotted in raw.decode().split() if (name := dotted.strip("."))])
    return _short(found if text.isascii() else dict.fromkeys(_of_scripts(found)))


def _short(words: dict[str, None]) -> list[str]:
    """Words, cut where they are too long."""
    if words and max(map(len, words)) > LETTERS:
        return list(dict.fromkeys([word[:LETTERS] for word in words]))
    return list(words)


def _of_scripts(words: dict[str, None]) -> Iterator[str]:
    """Words without the signs of other scripts between them."""
    for word in words:
        if word.isascii():
            yield word
            continue
        for part in _OTHER.findall(word.replace("\u2019", "")):
            if not _UNSPACED.search(part):
                yield part
                continue
            for run in _UNSPACED.findall(part):
                yield from (run[place : place + 2] for place in range(max(1, len(run) - 1)))
            yield from _UNSPACED.sub(" ", part).split()


def shouted(words: list[str]) -> list[str]:
    """Words of three letters and more that are all capitals."""
    return [word for word in words if word.isupper() and len(word) > 2]


def shapes(words: list[str]) -> list[str]:
    """Words that hold digits, all of which are written 0: a price, a telephone number, a code.

    Examples
    --------
    >>> shapes(["call", "0871", "8am"])
    ['0000', '0am']
    """
    other = " ".join([word for word in words if not word.isalpha()])
    return [word for word in other.translate(_DIGITS).split(" ") if "0" in word]


def style(text: str) -> list[str]:
    """How long a text is, how many of its letters are capitals, and how often it exclaims or asks for money, in steps.

    Examples
    --------
    >>> style("WIN now!!!")
    ['size 4', 'capitals 4', '! 2', '$ 0']
    """
    size = len(text) + 1
    raw = text.encode("utf-8", "replace")
    capitals = len(raw) - len(raw.translate(None, _CAPITALS))
    money = text.count("$") + text.count("£") + text.count("€")
    return [
        f"size {size.bit_length()}",
        f"capitals {16 * capitals // size}",
        f"! {text.count('!').bit_length()}",
        f"$ {money.bit_length()}",
    ]
