"""Text: a column of strings as counts of their words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.family import Family
from tallybayes.families.multinomial import Multinomial
from tallybayes.kernels.text.tokenizer import TokenRule

_COUNTS = Multinomial()
_MOST_BITS = 26  # of a hash: more columns than that are more than most texts have words


@dataclass(frozen=True, eq=False, repr=False)
class Text(Family):
    """A column of strings: every one is counted as its words, one block of columns that grows with what is read.

    The words of a column are a vocabulary: ``partial_fit`` adds to it, merged models unite theirs, and a word whose
    last row is forgotten leaves it. Words that were not seen when fitting say nothing, whatever ``unseen=`` says of
    labels. `min_count`, `max_features` and `stop_words` choose among the words when parameters are estimated, never
    when rows are counted, so that counts add and subtract whatever is chosen.

    Parameters
    ----------
    family : Family, default Multinomial()
        What the counts of a row are: `Multinomial`, `DirichletMultinomial` or `Poisson`; or `Bernoulli`, for which a
        word is there or not.
    ngram_range : (int, int), default (1, 1)
        Words alone, and up to so many in a row joined by a space: ``(1, 2)`` has pairs, too.
    characters : bool, default False
        Whether the n-grams are of characters, not of words.
    lowercase : bool, default True
        Whether capitals count as small letters.
    min_count : float, default 1
        Words that occur less often than this, in all classes together, are not read.
    max_features : int, optional
        Only the most frequent words are read, so many of them.
    hash_bits : int, optional
        Words fall into 2^hash_bits columns by a hash, so that memory is bounded and no word is kept by name.
    stop_words : iterable of str, optional
        Words that are not read.
    token : {"words", "sklearn"}, default "words"
        What a word is: see `tb.tokenize`.
    distinct : bool, default False
        Whether a word counts once in a row, however often it occurs there.

    Examples
    --------
    >>> import tallybayes as tb
    >>> mails = ["click to win", "win win", "minutes of the meeting"]
    >>> model = tb.NaiveBayes(tb.Text()).fit(mails, ["spam", "spam", "ham"])
    >>> model.predict(["Win a meeting? Click!"])
    array(['spam'], dtype='<U4')
    """

    family: Family = _COUNTS
    ngram_range: tuple[int, int] = (1, 1)
    characters: bool = False
    lowercase: bool = True
    min_count: float = 1
    max_features: int | None = None
    hash_bits: int | None = None
    stop_words: Iterable[str] | None = None
    token_rule: str = "words"
    binary: bool = False

    rule: ClassVar[TokenRule]  # what a word is, for the kernels
    columnwise: ClassVar[bool] = False
    cell_type: ClassVar[str] = "text"
    accepts_sparse: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "text (or missing)"

    def __post_init__(self) -> None:
        inner = self.family
        if not isinstance(inner, Family) or not inner.accepts_sparse or getattr(inner, "success", None) is not None:
            expected = "tb.Multinomial(), tb.DirichletMultinomial(), tb.Poisson() or tb.Bernoulli()"
            raise DataError.wrong_type("the family of Text", repr(inner), expected)
        rule = TokenRule(self.token_rule, self.lowercase, self.ngram_range, self.characters)  # refuses what is none
        object.__setattr__(self, "ngram_range", rule.ngram_range)
        object.__setattr__(self, "rule", rule)
        if not isinstance(self.min_count, int | float | np.number) or not 0 <= self.min_count < np.inf:
            raise DataError.wrong_type("min_count of Text", repr(self.min_count), "a number of at least 0")
        if self.max_features is not None and not (_is_whole(self.max_features) and self.max_features >= 1):
            raise DataError.wrong_type("max_features of Text", repr(self.max_features), "a whole number of at least 1")
        if self.hash_bits is not None and not (_is_whole(self.hash_bits) and 1 <= self.hash_bits <= _MOST_BITS):
            expected = f"a number of bits from 1 to {_MOST_BITS}: 2**hash_bits columns"
            raise DataError.wrong_type("hash_bits of Text", repr(self.hash_bits), expected)
        self._check_stop_words()

    def _check_stop_words(self) -> None:
        words = self.stop_words
        if words is None:
            return
        if isinstance(words, str) or not isinstance(words, Iterable):
            hint = "A list for English: sklearn.feature_extraction.text.ENGLISH_STOP_WORDS."
            raise DataError.wrong_type("stop_words of Text", repr(words), "a list of words", hint)
        found = tuple(words)
        wrong = [word for word in found if not isinstance(word, str)]
        if wrong:
            raise DataError.wrong_type("a word in stop_words of Text", repr(wrong[0]), "a string")
        if self.hash_bits is not None:
            hint = "Leave hash_bits= out, or take them out of the text."
            raise DataError.wrong_type(
                "stop_words of Text", "used with hash_bits=", "a vocabulary to find them in", hint
            )
        object.__setattr__(self, "stop_words", words if isinstance(words, tuple) else tuple(sorted(set(found))))

    @property
    def word_family(self) -> Family:  # type: ignore[override]
        """What the counts of words are."""
        return self.family

    @property
    def has_vocabulary(self) -> bool:  # type: ignore[override]
        """Whether the words are known by name, and not only by their hashes."""
        return self.hash_bits is None

    @property
    def once(self) -> bool:
        """Whether a word counts once in a row."""
        return self.binary or isinstance(self.family, Bernoulli)

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """How text is read, and what is kept of it; not which words are taken later."""
        how = (self.token_rule, self.lowercase, self.ngram_range, self.characters, self.hash_bits, self.once)
        return ("Text", *how, *self.family.statistics_key)

    def nonnegative(self, statistics: Any) -> dict[str, np.ndarray]:
        """As the counts' own family says."""
        return self.family.nonnegative(statistics)

    def collect(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: the words of a column are found when a table is counted."""
        raise DataError(
            f"{self!r} is a family of columns of strings: use it in columns= of a model, or in a tb.Factor.\n"
            f"    Counts of words that are a matrix already are {self.family!r}."
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
