"""Words of a text, and tokens of its style: length, capitals, and shapes of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

LETTERS = 40  # maximum length of a word; the rest is truncated

# Separators: all of ASCII except letters and digits. Apostrophes are removed; names may contain dots.
_WORDS = bytes(code if code > 127 or chr(code).isalnum() else 32 for code in range(256))
_NAMES = bytes(code if chr(code) == "." else _WORDS[code] for code in range(256))
_CAPITALS = bytes(range(65, 91))
_DIGITS = str.maketrans("123456789", "000000000")
_OTHER = re.compile(r"[^\W_](?:[\w.]*[^\W_])?")
# Scripts without spaces: pairs of characters are words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def words_of(text: str) -> list[str]:
    """Return the distinct words of a text with their case, in order of first occurrence.

    Examples
    --------
    >>> words_of("Don't wait: WIN $1,000 at example.com. Win!")
    ['Dont', 'wait', 'WIN', '1', '000', 'at', 'example', 'com', 'Win']
    """
    words = dict.fromkeys(text.encode("utf-8", "replace").translate(_WORDS, b"'").decode().split())
    return _truncate(words if text.isascii() else dict.fromkeys(_split_scripts(words)))


def names_of(text: str) -> list[str]:
    """Return the distinct words of headers and addresses, where dots are within names of hosts, versions and files.

    Examples
    --------
    >>> names_of("from mail.example.com ([10.1.2.3]) by mx.")
    ['from', 'mail.example.com', '10.1.2.3', 'by', 'mx']
    """
    raw = text.encode("utf-8", "replace").translate(_NAMES, b"'")
    names = dict.fromkeys([name for dotted in raw.decode().split() if (name := dotted.strip("."))])
    return _truncate(names if text.isascii() else dict.fromkeys(_split_scripts(names)))


def _truncate(words: dict[str, None]) -> list[str]:
    """Truncate long words."""
    if words and max(map(len, words)) > LETTERS:
        return list(dict.fromkeys([word[:LETTERS] for word in words]))
    return list(words)


def _split_scripts(words: dict[str, None]) -> Iterator[str]:
    """Yield words without punctuation of other scripts."""
    for word in words:
        if word.isascii():
            yield word
            continue
        for part in _OTHER.findall(word.replace("\u2019", "")):
            if not _UNSPACED.search(part):
                yield part
                continue
            for run in _UNSPACED.findall(part):
                yield from (run[position : position + 2] for position in range(max(1, len(run) - 1)))
            yield from _UNSPACED.sub(" ", part).split()


def shouted(words: list[str]) -> list[str]:
    """Return the words of at least three letters in capitals."""
    return [word for word in words if word.isupper() and len(word) > 2]


def shapes(words: list[str]) -> list[str]:
    """Return the words with digits, with each digit replaced by 0.

    Examples
    --------
    >>> shapes(["call", "0871", "8am"])
    ['0000', '0am']
    """
    other = " ".join([word for word in words if not word.isalpha()])
    return [word for word in other.translate(_DIGITS).split(" ") if "0" in word]


def style(text: str) -> list[str]:
    """Return binned counts of characters, capitals, exclamation marks and currency signs.

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
