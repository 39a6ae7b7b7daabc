"""Checks of parameters: string options, with suggestions for misspelled ones, and the parameters of EM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError, EstimateError, short_repr
from tallybayes.messages import did_you_mean
from tallybayes.typing import RandomState

LARGEST = 2**53  # larger whole numbers are not exact as float64
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
    >>> from tallybayes._utils.parameter_checks import StringOptions
    >>> StringOptions(("mle", "map")).check("estimate", "ML")
    Traceback (most recent call last):
        ...
    tallybayes.errors.EstimateError: estimate is 'ML'; expected 'mle' or 'map'.
        Did you mean 'mle'?
    """

    known: tuple[str | None, ...]
    others: tuple[str, ...] = ()  # other valid values, for the message; if any, non-strings are accepted
    note: str = ""  # advice, for the message

    def check(self, name: str, value: object) -> None:
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


def check_em_parameters(model: object) -> None:
    """Raise EstimateError if ``max_iter``, ``tol`` or another parameter of EM is invalid."""
    parameters = vars(model)
    warm_start = parameters.get("warm_start", False)
    if not isinstance(warm_start, bool | np.bool_):
        raise EstimateError(f"warm_start is {warm_start!r}; expected True or False.")
    for name in ("max_iter", "n_init"):
        value = parameters.get(name, 1)
        if not is_integer_at_least(value):
            raise EstimateError(f"{name} is {short_repr(value)}; expected {whole_number(1, value)}.")
    for name in ("tol", "unlabeled_weight"):
        value = parameters.get(name, 1.0)
        expected = "a number of at least 0" if name == "tol" else "a positive number"
        is_number = isinstance(value, int | float | np.integer | np.floating) and 0 <= value < np.inf
        if not is_number or (value == 0 and name != "tol"):
            raise EstimateError(f"{name} is {value!r}; expected {expected}.")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a parameter as int; raise DataError unless it is a whole number of at least ``least``."""
    if not is_integer_at_least(value, least):
        raise DataError.wrong_type(name, short_repr(value), whole_number(least, value))
    return int(value)


def whole_number(least: int, found: object) -> str:
    """Return the description of valid whole numbers, with the largest one if a larger one was found."""
    most = ", at most 2**53" if isinstance(found, int) and found > LARGEST else ""
    return f"a whole number of at least {least}{most}"


def check_positive(name: str, value: Any, expected: str = "a positive number", most: float = np.inf) -> float:
    """Return a parameter as float; raise DataError unless it is finite, above 0 and at most ``most``."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value <= most or value == np.inf:
        raise DataError.wrong_type(name, short_repr(value), expected)
    return float(value)


def check_mass(mass: Any, name: str = "mass") -> float:
    """Return a probability as float; raise DataError unless it is between 0 and 1."""
    if not isinstance(mass, int | float | np.number) or not 0 < mass < 1:
        raise DataError.wrong_type(name, short_repr(mass), "a number between 0 and 1")
    return float(mass)


def read_numbers(name: str, values: Any, expected: str) -> np.ndarray:
    """Return an array of floats; raise DataError if some values are not numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError.wrong_type(name, short_repr(values), expected) from None


def read_list(name: str, values: Any, expected: str = "a list of names") -> list[Any]:
    """Return several values as a list; raise DataError for a string or a single value."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise DataError.wrong_type(name, short_repr(values), expected)
    return list(values)


def random_generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator of a seed, or the given generator; raise DataError for another value."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "a whole number of at least 0, a NumPy generator, or None"
        raise DataError.wrong_type("random_state", short_repr(random_state), expected) from None


def is_integer_at_least(value: object, least: int = 1) -> bool:
    """Whether a value is an integer from ``least`` to 2**53; bool values are not integers here."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= LARGEST)
