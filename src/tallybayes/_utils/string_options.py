"""Words: the values that a setting may have, checked in one place; near misses are answered with what was meant."""

from __future__ import annotations

from typing import Any, NamedTuple

from tallybayes.errors import EstimateError, short_repr
from tallybayes.messages import did_you_mean

# What other libraries and books call them; letters alone tell the other near misses.
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
    """The words that a setting knows, and what else it takes.

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
    others: tuple[str, ...] = ()  # what else may stand there, for the message: anything but a word is then let pass
    note: str = ""  # what else to try, for the message

    def check(self, name: str, found: Any) -> None:
        """Refuse a word that is none of these, and anything else where only words are expected."""
        if (found is None and None in self.known) or (isinstance(found, str) and found in self.known):
            return
        if self.others and not isinstance(found, str):
            return
        expected = [*map(repr, self.known), *self.others]
        listed = " or ".join(filter(None, [", ".join(expected[:-1]), expected[-1]]))
        words = [word for word in self.known if word is not None]
        text = found.strip().lower() if isinstance(found, str) else ""
        synonym = _SYNONYMS.get(text)
        hint = did_you_mean([synonym if synonym in words else text] if text else [], words)
        lines = [f"{name} is {short_repr(found)}; expected {listed}.", hint, self.note]
        raise EstimateError("\n    ".join(filter(None, lines)))
