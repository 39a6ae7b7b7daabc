"""String options: the valid string values of a parameter, with suggestions for misspelled ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallybayes.errors import EstimateError, short_repr
from tallybayes.messages import did_you_mean

# Synonyms in other libraries and books; other suggestions are by spelling.
_SYNONYMS = {
    "lda": "tied",
    "linear": "tied",
    "shared": "tied",
    "qda": "full",
    "quadratic": "full",
    "naive": "diagonal",
    "isotropic": "spherical",
    "maximum likelihood": "mle",
    "posterior mean": "bayes",
    "posterior mode": "map",
    "laplace": "bayes",
    "platt": "temperature",
    "sigmoid": "temperature",
    "ignore": "missing",
    "raise": "error",
    "drop": "skip",
    "equal": "uniform",
    "balanced": "uniform",
    "empirical": "frequency",
    "semi-supervised": "em",
    "l2": "euclidean",
    "eb": "empirical",
}


class StringOptions(NamedTuple):
    """The valid strings of a parameter, and descriptions of other valid values.

    Examples
    --------
    >>> from tallybayes._utils.string_options import StringOptions
    >>> StringOptions(("mle", "map")).check("estimate", "ML")
    Traceback (most recent call last):
        ...
    tallybayes.errors.EstimateError: estimate is 'ML'; expected 'mle' or 'map'.
        Did you mean 'mle'?
    """

    known: tuple[str | None, ...]
    others: tuple[str, ...] = ()  # other valid values, for the message; if any, non-strings are accepted
    note: str = ""  # advice, for the message

    def check(self, name: str, value: Any) -> None:
        """Raise EstimateError for an unknown string, or for other types if only strings are valid."""
        if (value is None and None in self.known) or (isinstance(value, str) and value in self.known):
            return
        if self.others and not isinstance(value, str):
            return
        expected = [*map(repr, self.known), *self.others]
        choices = " or ".join(filter(None, [", ".join(expected[:-1]), expected[-1]]))
        strings = [string for string in self.known if string is not None]
        text = value.strip().lower() if isinstance(value, str) else ""
        synonym = _SYNONYMS.get(text)
        hint = did_you_mean([synonym if synonym in strings else text] if text else [], strings)
        lines = [f"{name} is {short_repr(value)}; expected {choices}.", hint, self.note]
        raise EstimateError("\n    ".join(filter(None, lines)))
