"""A number as a prior: so many counts are added to every level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallybayes.errors import PriorError


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


def no_levels(prior: Any, families: Iterable[Any]) -> PriorError:
    """The error where no column has levels that the number could be added to."""
    found = ", ".join(dict.fromkeys(map(repr, families)))
    return PriorError(
        f"prior is {prior!r}, counts to add to every level, but {found} has no levels; expected a belief, or None for "
        "the default.\n    Numbers are for Bernoulli (0 and 1, if columns= says so), Categorical, Binned, Multinomial "
        "and DirichletMultinomial."
    )
