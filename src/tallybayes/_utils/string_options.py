"""Words: the values that a setting may have, checked in one place; near misses are answered with what was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, NamedTuple

from tallybayes.errors import EstimateError, short_repr

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
        meant = self._meant(found) if isinstance(found, str) else None
        hint = f"\n    Did you mean {meant!r}?" if meant else ""
        note = f"\n    {self.note}" if self.note else ""
        raise EstimateError(f"{name} is {short_repr(found)}; expected {listed}.{hint}{note}")

    def _meant(self, found: str) -> str | None:
        """What was meant, if a word is near."""
        words = [word for word in self.known if word is not None]
        text = found.strip().lower()
        if _SYNONYMS.get(text) in words:
            return _SYNONYMS[text]
        return next(iter(get_close_matches(text.replace("-", "_").replace(" ", "_"), words, 1, 0.6)), None)
