"""A number as a prior: so many counts are added to every level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallybayes.errors import PriorError
from tallybayes.families.estimates import read_estimate


def is_amount(prior: Any) -> bool:
    """Whether a prior is a number, of counts to add to every level; one that cannot be is refused."""
    if not isinstance(prior, int | float | np.number | np.bool_):
        return False
    if isinstance(prior, bool | np.bool_) or not 0 < prior < np.inf:
        raise PriorError(
            f"prior is {prior!r}; expected a positive, finite number of counts to add to every level.\n"
            "    Pass prior=1 for add-one smoothing, or estimate='mle' for none."
        )
    return True


def check_amount(prior: Any, estimate: str) -> None:
    """Raise PriorError if the prior is a number and the estimate takes the mode, where a Beta(2, 2) adds 1, not 2."""
    if is_amount(prior) and read_estimate(estimate).takes_mode:
        one, other = f"{prior + 1:.12g}", f"{prior:.12g}"
        raise PriorError(
            f"prior is {prior!r}, which is ambiguous under estimate={estimate!r}: expected tb.Dirichlet({one}), which "
            f"adds {other} to every level's count, or tb.Dirichlet({other}), which adds {prior - 1:.12g}.\n"
            f"    For Bernoulli columns: tb.Beta({one}, {one}) or tb.Beta({other}, {other})."
        )


def no_levels(prior: Any, families: Iterable[Any]) -> PriorError:
    """The error where no column has levels that the number could be added to."""
    found = ", ".join(dict.fromkeys(map(repr, families)))
    return PriorError(
        f"prior is {prior!r}, counts to add to every level, but {found} has no levels; expected a belief, or None for "
        "the default.\n    Numbers are for Bernoulli (0 and 1, if columns= says so), Categorical, Binned, Multinomial "
        "and DirichletMultinomial."
    )
