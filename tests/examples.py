"""How many examples Hypothesis draws, more in a thorough run than in a quick one."""

from typing import Any

from hypothesis import settings

QUICK, THOROUGH, DEEP = 5, 15, 300
_THEIRS = 100  # of Hypothesis itself, where none of our profiles is loaded: kernels that were built otherwise


def examples(number: int, **options: Any) -> settings:
    """So many examples in a thorough run, in proportion in others: for tests that need more than the usual number."""
    drawn = settings.default.max_examples
    usual = THOROUGH if drawn != _THEIRS else _THEIRS
    return settings(max_examples=max(number * drawn // usual, 3), **{"deadline": None} | options)
