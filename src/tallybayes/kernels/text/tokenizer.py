r"""Tokens: how a text becomes words.

**The rule "words".** Text is UTF-8; a byte that belongs to no character is read as U+FFFD, which separates words. It is
made small as `str.lower` does it; what shows nothing (soft hyphens, joiners of zero width, marks of direction,
variation selectors) is left out, so that it can split no word; a letter and the accent behind it become one character
where there is one. Then

- a word is a run of letters, digits, underscores and, behind the first, combining marks: ``naïve``, ``हिन्दी``,
  ``win32``;
- an apostrophe (``'`` or ``’``, counted as ``'``), a middle dot, a geresh or a gershayim between two letters belongs to
  the word: ``don't``, ``l'eau``, ``col·lega``;
- Han, Hiragana, Katakana, Thai, Lao, Khmer and Burmese are written without spaces: every two neighbors of a run
  are a token (``日本語`` is ``日本`` and ``本語``; marks stay with their letter), and one that stands alone is itself;
- emoji and other pictures are a token each.

With ``characters``, tokens are the runs of that many characters of the text; a stretch of white space is one blank.

**The rule "sklearn"** is the default of scikit-learn's ``CountVectorizer``, token for token: two or more of Python's
``\w``, or with ``characters`` all runs, two or more white spaces being one blank. Nothing is left out or composed.

``ngram_range=(1, 2)`` takes pairs of neighboring tokens, too, with a blank between them; the single ones come first.

**Hashing.** With ``hashing=k`` a token falls in one of 2ᵏ buckets, and no word is kept: h is its number of bytes times
0x9E3779B97F4A7C15; for every eight bytes, a number with the lowest first and zeros at the end, h becomes (h ^ number)
times that constant, then h ^ (h >> 32); the bucket is the upper k bits of h times the constant. All modulo 2⁶⁴.

Letters are defined by one version of Unicode (`tallybayes.kernels.text.unicode_properties`), not by the running Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tallybayes import kernels
from tallybayes.errors import DataError, short_repr
from tallybayes.kernels.reference import text_counts as _reference_text

__all__ = ["TokenRule", "tokenize"]

_NAMES = ("words", "sklearn")
_MOST_GRAMS = 64


@dataclass(frozen=True)
class TokenRule:
    """How a text becomes tokens; the module says what the rules are.

    Parameters
    ----------
    name : {"words", "sklearn"}, default "words"
    lowercase : bool, default True
    ngram_range : (int, int), default (1, 1)
        The fewest and the most tokens that are taken as one, or characters.
    characters : bool, default False
        Count runs of characters, not words.

    Examples
    --------
    >>> from tallybayes.kernels.text.text_counts import TokenRule
    >>> TokenRule(ngram_range=(1, 2))
    TokenRule(name='words', lowercase=True, ngram_range=(1, 2), characters=False)
    """

    name: str = "words"
    lowercase: bool = True
    ngram_range: tuple[int, int] = (1, 1)
    characters: bool = False

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise DataError(f"the rule of tokens is {short_repr(self.name)}; expected 'words' or 'sklearn'.")
        for name in ("lowercase", "characters"):
            if getattr(self, name) not in (True, False):
                raise DataError(f"{name} is {short_repr(getattr(self, name))}; expected True or False.")
        try:
            low, high = (int(n) if n == int(n) else 0 for n in self.ngram_range)
        except (TypeError, ValueError):
            low, high = 0, 0
        if not 1 <= low <= high <= _MOST_GRAMS:
            raise DataError(
                f"ngram_range is {short_repr(self.ngram_range)}; expected two whole numbers, the fewest and the most tokens "
                f"that are taken as one, from 1 to {_MOST_GRAMS}.\n    (1, 1) are single words, (1, 2) words and "
                "pairs of them."
            )
        object.__setattr__(self, "ngram_range", (low, high))


def tokenize(
    text: str | bytes,
    *,
    rule: str = "words",
    lowercase: bool = True,
    ngram_range: tuple[int, int] = (1, 1),
    characters: bool = False,
) -> list[str]:
    """The tokens of one text, in order: what text columns count.

    Words are runs of letters, digits and underscores with their marks, in small letters; an apostrophe between letters
    belongs to the word. Scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) give every two neighbors. Emoji
    are a token each.

    Parameters
    ----------
    text : str or bytes
        Bytes are read as UTF-8; what is no character separates words, and is never an error.
    rule : {"words", "sklearn"}, default "words"
        "sklearn" is the default of scikit-learn's ``CountVectorizer``, token for token.
    lowercase : bool, default True
        As `str.lower` does it.
    ngram_range : (int, int), default (1, 1)
        (1, 2): words, then pairs of neighbors with a blank between them.
    characters : bool, default False
        Runs of so many characters, not words; a stretch of white space is one blank.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.tokenize("Don't CLICK, it's naïve: 日本語 🎉")
    ["don't", 'click', "it's", 'naïve', '日本', '本語', '🎉']
    >>> tb.tokenize("Click to win", ngram_range=(1, 2))
    ['click', 'to', 'win', 'click to', 'to win']
    >>> tb.tokenize("a win", characters=True, ngram_range=(3, 3))
    ['a w', ' wi', 'win']
    >>> tb.tokenize("I'm in", rule="sklearn")
    ['in']
    """
    how = _rule(rule, lowercase, tuple(ngram_range) if isinstance(ngram_range, list) else ngram_range, characters)
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    elif not isinstance(text, bytes | bytearray | memoryview):
        raise DataError.wrong_type(
            "the text", f"of type {type(text).__name__}", "str or bytes", "Take one text at a time."
        )
    found: list[str] = implementation().token_strings(bytes(text), how)
    return found


_rule = lru_cache(TokenRule)  # settings are checked once


def implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    return kernels._kernels if hasattr(kernels._kernels, "text_rows") else _reference_text
