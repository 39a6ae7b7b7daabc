r"""Tokenization: the rules by which a text is split into tokens.

**The rule "words".** Texts are UTF-8. An invalid byte is read as U+FFFD, which separates words. Characters are
converted to lower case as by `str.lower`. Invisible characters (soft hyphens, zero-width joiners, direction marks,
variation selectors) are removed, so that they cannot split a word. A letter and a following accent are composed to one
character if it exists. Then

- a word is a run of letters, digits, underscores and, after the first character, combining marks: ``naïve``,
  ``हिन्दी``, ``win32``;
- an apostrophe (``'`` or ``’``, counted as ``'``), a middle dot, a geresh or a gershayim between two letters belongs to
  the word: ``don't``, ``l'eau``, ``col·lega``;
- Han, Hiragana, Katakana, Thai, Lao, Khmer and Burmese are written without spaces: every two adjacent characters of a
  run are a token (``日本語`` is ``日本`` and ``本語``; marks stay with their letter), and a single one is a token;
- every emoji or other pictograph is a token.

With ``characters``, tokens are all sequences of the given number of characters; a run of white space is one blank.

**The rule "sklearn"** is the default of scikit-learn's ``CountVectorizer``, with identical tokens: two or more of
Python's ``\w``, or with ``characters`` all sequences, where two or more white spaces are one blank. Nothing is removed
or composed.

``ngram_range=(1, 2)`` adds pairs of adjacent tokens, joined by a blank, after the single tokens.

**Hashing.** With ``hashing=k`` a token is assigned to one of 2ᵏ buckets, and no word is stored. h is its number of
bytes times 0x9E3779B97F4A7C15. For every eight bytes, read as a little-endian number padded with zeros, h becomes
(h ^ number) times that constant, then h ^ (h >> 32). The bucket is the upper k bits of h times the constant, all modulo
2⁶⁴.

Letters are defined by a fixed version of Unicode (`tallybayes.kernels.text.unicode_properties`), independent of the
running Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tallybayes.errors import DataError, short_repr
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.reference import text_counts as _reference

__all__ = ["TokenRule", "tokenize"]

_NAMES = ("words", "sklearn")
_MAX_GRAMS = 64


@dataclass(frozen=True)
class TokenRule:
    """A rule that splits texts into tokens; the module describes the rules.

    Parameters
    ----------
    name : {"words", "sklearn"}, default "words"
    lowercase : bool, default True
    ngram_range : (int, int), default (1, 1)
        Smallest and largest number of adjacent tokens (or characters) that form one token.
    characters : bool, default False
        Count character n-grams instead of words.

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
            object.__setattr__(self, name, bool(getattr(self, name)))
        try:
            low, high = (int(n) if n == int(n) else 0 for n in self.ngram_range)
        except (TypeError, ValueError):
            low = high = 0
        if not 1 <= low <= high <= _MAX_GRAMS:
            raise DataError(
                f"ngram_range is {short_repr(self.ngram_range)}; expected two whole numbers from 1 to {_MAX_GRAMS}, "
                "the smallest and the largest number of tokens.\n"
                "    (1, 1) are single words, (1, 2) words and pairs of them."
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
    """Return the tokens of a text in order, as text columns count them.

    Words are runs of letters, digits and underscores with their marks, in lower case; an apostrophe between letters
    belongs to the word. Scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese) give every pair of adjacent
    characters. Every emoji is a token.

    Parameters
    ----------
    text : str or bytes
        Bytes are read as UTF-8; invalid bytes separate words and never raise an error.
    rule : {"words", "sklearn"}, default "words"
        "sklearn" gives the same tokens as the default of scikit-learn's ``CountVectorizer``.
    lowercase : bool, default True
        Convert to lower case as `str.lower` does.
    ngram_range : (int, int), default (1, 1)
        (1, 2) returns words, then pairs of adjacent words joined by a blank.
    characters : bool, default False
        Return character n-grams instead of words; a run of white space is one blank.

    Returns
    -------
    list of str
        Tokens.

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
    ngram_range = tuple(ngram_range) if isinstance(ngram_range, list) else ngram_range
    arguments = rule, lowercase, ngram_range, characters
    try:
        token_rule = _rule(*arguments)
    except TypeError:  # an argument that is not hashable is invalid
        token_rule = TokenRule(*arguments)
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    elif not isinstance(text, bytes | bytearray | memoryview):
        raise DataError.wrong_type(
            "the text", f"of type {type(text).__name__}", "str or bytes", "Take one text at a time."
        )
    return list(implementation_for(_reference).token_strings(bytes(text), token_rule))


_rule = lru_cache(TokenRule)  # validates each combination of options once
