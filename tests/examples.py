"""How many examples Hypothesis draws, more in a thorough run than in a quick one."""

from typing import Any

from hypothesis import settings


def examples(number: int, **options: Any) -> settings:
    """So many examples in a thorough run, in proportion in others: for tests that need more than the usual number."""
    usual = settings.get_profile("thorough").max_examples
    return settings(max_examples=max(number * settings.default.max_examples // usual, 3), **options)
