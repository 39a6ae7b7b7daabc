"""Prior of a hidden Markov model: that of each part, and its validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import EstimateError
from tallybayes.families.prior_rules import check_pseudo_count, is_pseudo_count
from tallybayes.models.inputs.column_priors import check_is_prior, check_priors
from tallybayes.tally.factor import Factor
from tallybayes.tally.text_selection import as_word_factor
from tallybayes.typing import Priors


def read_prior(prior: Priors, *, components: bool = False) -> dict[str, Any]:
    """Return the priors by part: start, transition, end, component (if any) and emission."""
    parts: tuple[str, ...] = ("start", "transition", "end", *(["component"] if components else []), "emission")
    if prior is None or isinstance(prior, str) or is_pseudo_count(prior):
        return dict.fromkeys(parts, prior)
    if isinstance(prior, dict):
        emission = {name: value for name, value in prior.items() if name not in parts}
        if emission and "emission" not in prior:
            prior = prior | {"emission": emission}
        if set(prior) <= {*parts, *emission}:
            return {part: prior.get(part) for part in parts}
    if isinstance(prior, Dirichlet):
        return dict.fromkeys(parts) | {"start": prior, "transition": prior}
    raise EstimateError(
        f"prior is {prior!r}; expected a mapping from {', '.join(map(repr, parts))} to priors, a Dirichlet for start "
        "and transition, a pseudo-count, 'empirical' or None."
    )


def check_prior(prior: Priors, emissions: Iterable[Factor], estimate: str, *, components: bool) -> None:
    """Raise an error if a prior does not fit any factor."""
    if is_pseudo_count(prior):
        check_pseudo_count(prior, estimate)
        return
    priors = read_prior(prior, components=components)
    check_priors(priors.pop("emission"), map(as_word_factor, emissions), estimate, tuple(priors))
    for part in priors.values():
        check_is_prior(part)
        check_pseudo_count(part, estimate)
