"""The words of a text, and its style: how long it is, how loud, and what its numbers look like."""

from __future__ import annotations

import re
from collections.abc import Iterator

LETTERS = 40  # of a word: more are cut off

# Between words: all of ASCII but letters, digits, and the dot, which may stand within one. Apostrophes are left out.
_TABLE = bytes(code if code > 127 or chr(code).isalnum() or chr(code) == "." else 32 for code in range(256))
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
    ['Dont', 'wait', 'WIN', '1', '000', 'at', 'example.com', 'Win']
    """
    raw = text.encode("utf-8", "replace").translate(_TABLE, b"'")
    if b". " in raw:
        raw = raw.replace(b". ", b" ")
    if b".." in raw:
        raw = raw.replace(b"..", b" ")
    found = dict.fromkeys(raw.decode().rstrip(".").split())
    if not text.isascii():
        found = dict.fromkeys(_of_scripts(found))
    if found and len(max(found, key=len)) > LETTERS:
        return list(dict.fromkeys([word[:LETTERS] for word in found]))
    return list(found)


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
    >>> shapes(["call", "0871.872", "8am"])
    ['0000.000', '0am']
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
