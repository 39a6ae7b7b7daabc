"""Text: string columns as word counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.family import Family
from tallybayes.families.multinomial import Multinomial
from tallybayes.kernels.text.tokenizer import TokenRule

_COUNTS = Multinomial()
_MAX_HASH_BITS = 26  # of a hash; more columns exceed the vocabulary of most corpora


@dataclass(frozen=True, eq=False, repr=False)
class Text(Family):
    """A column of strings, modeled by its word counts; the words form a block of columns that grows with the data.

    The words of a column form a vocabulary: ``partial_fit`` extends it, merged models unite theirs, and a word is
    removed when its last row is forgotten. Words that were not seen during fitting are ignored at prediction, whatever
    ``unseen=`` is. `min_count`, `max_features` and `stop_words` select words when parameters are estimated, not when
    rows are counted, so tallies can be added and subtracted under any selection.

    Parameters
    ----------
    family : Family, default Multinomial()
        Family of the word counts of a row: `Multinomial`, `DirichletMultinomial` or `Poisson`; or `Bernoulli` for the
        presence of each word.
    ngram_range : (int, int), default (1, 1)
        Smallest and largest n-gram length: ``(1, 2)`` uses single words and pairs, joined by a space.
    characters : bool, default False
        Whether n-grams consist of characters instead of words.
    lowercase : bool, default True
        Whether text is converted to lower case.
    min_count : float, default 1
        Words with a smaller total count over all classes are ignored.
    max_features : int, optional
        Number of most frequent words to use.
    hash_bits : int, optional
        Hash words into 2^hash_bits columns, so that memory is bounded and no word is stored.
    stop_words : iterable of str, optional
        Words to ignore.
    token : {"words", "sklearn"}, default "words"
        Tokenization rule, see `tb.tokenize`.
    distinct : bool, default False
        Whether a word counts at most once per row.

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

    rule: ClassVar[TokenRule]  # tokenization rule for the kernels
    columnwise: ClassVar[bool] = False
    cell_type: ClassVar[str] = "text"
    accepts_sparse: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "text (or missing)"

    def __post_init__(self) -> None:
        word_family = self.family
        if (
            not isinstance(word_family, Family)
            or not word_family.accepts_sparse
            or getattr(word_family, "success", None) is not None
        ):
            expected = "tb.Multinomial(), tb.DirichletMultinomial(), tb.Poisson() or tb.Bernoulli()"
            raise DataError.wrong_type("the family of Text", repr(word_family), expected)
        rule = TokenRule(
            self.token_rule, self.lowercase, self.ngram_range, self.characters
        )  # raises DataError for invalid options
        object.__setattr__(self, "ngram_range", rule.ngram_range)
        object.__setattr__(self, "rule", rule)
        if not isinstance(self.min_count, int | float | np.number) or not 0 <= self.min_count < np.inf:
            raise DataError.wrong_type("min_count of Text", repr(self.min_count), "a number of at least 0")
        if self.max_features is not None:
            check_count("max_features of Text", self.max_features)
        if self.hash_bits is not None and not (_is_integer(self.hash_bits) and 1 <= self.hash_bits <= _MAX_HASH_BITS):
            expected = f"a number of bits from 1 to {_MAX_HASH_BITS}: 2**hash_bits columns"
            raise DataError.wrong_type("hash_bits of Text", repr(self.hash_bits), expected)
        self._check_stop_words()

    def _check_stop_words(self) -> None:
        """Raise DataError if `stop_words` is not a collection of strings; store it as a sorted tuple."""
        words = self.stop_words
        if words is None:
            return
        if isinstance(words, str) or not isinstance(words, Iterable):
            hint = "A list for English: sklearn.feature_extraction.text.ENGLISH_STOP_WORDS."
            raise DataError.wrong_type("stop_words of Text", repr(words), "a list of words", hint)
        stop_words = tuple(words)
        invalid = [word for word in stop_words if not isinstance(word, str)]
        if invalid:
            raise DataError.wrong_type("a word in stop_words of Text", repr(invalid[0]), "a string")
        if self.hash_bits is not None:
            hint = "Omit hash_bits=, or remove the words from the text."
            raise DataError.wrong_type(
                "stop_words of Text", "used with hash_bits=", "a vocabulary that contains them", hint
            )
        object.__setattr__(self, "stop_words", words if isinstance(words, tuple) else tuple(sorted(set(stop_words))))

    @property
    def word_family(self) -> Family:  # type: ignore[override]
        """Return the family of the word counts."""
        return self.family

    @property
    def has_vocabulary(self) -> bool:  # type: ignore[override]
        """Return whether words are stored by name, not by their hashes."""
        return self.hash_bits is None

    @property
    def once(self) -> bool:
        """Return whether a word counts at most once per row."""
        return self.binary or isinstance(self.family, Bernoulli)

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the tokenization and of the word counts; word selection is not part of it."""
        tokenization = (self.token_rule, self.lowercase, self.ngram_range, self.characters, self.hash_bits, self.once)
        return ("Text", *tokenization, *self.family.statistics_key)

    def collect(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: words are found when a table is counted."""
        raise DataError(
            f"{self!r} is a family of string columns: use it in columns= of a model, or in a tb.Factor.\n"
            f"    For a matrix of word counts use {self.family!r}."
        )


def _is_integer(value: object) -> bool:
    """Return whether a value is an integer and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
