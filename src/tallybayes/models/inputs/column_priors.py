"""The prior of every block of columns, by ``prior``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import PriorError, short_repr
from tallybayes.families._shared.empirical_prior import default_group_prior
from tallybayes.families.family import Family
from tallybayes.families.prior_rules import (
    PerColumn,
    check_pseudo_count,
    is_pseudo_count,
    no_levels_error,
    pseudo_count_prior,
)
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Prior, Priors

PRIOR_WORDS = StringOptions(
    ("empirical",), ("a distribution such as tb.Beta(1, 1)", "a number of counts", "a rule such as tb.K2()", "None")
)


Levels = Callable[[Name], Sequence[Any]]  # the levels of a categorical column


def check_priors(prior: Priors, factors: Iterable[Factor], estimate: str, parts: Sequence[str] = ()) -> None:
    """Raise PriorError for a prior that fits no factor, or that names a column or part that does not exist.

    Numbers under an estimate of the mode raise, too, because they are ambiguous.
    """
    factors = list(factors)
    for one in prior.values() if isinstance(prior, Mapping) else _as_list(prior):
        check_is_prior(one)
    if isinstance(prior, Mapping):
        known = dict.fromkeys(name for factor in factors for name in factor.columns)
        blocks = {factor.columns for factor in factors}
        unknown = [name for name in prior if name not in known and name not in blocks]
        if unknown:
            raise PriorError.unknown_column(unknown, [*parts, *known])
        for factor in factors:
            _check_named_priors(prior, factor, estimate)
    elif factors:  # without any, no column is worth discretizing, and every prior is accepted
        for one in _as_list(prior):
            _check_common_prior(one, factors, estimate)


def _as_list(prior: Any) -> Sequence[Any]:
    """Return several priors as they are, and one prior as a list."""
    return prior if isinstance(prior, list | tuple) else [prior]


def _check_named_priors(priors: Mapping[Any, Any], factor: Factor, estimate: str) -> None:
    """Raise PriorError if a prior that is given for a factor, or for one of its columns, does not fit its family."""
    family = factor.family
    prior_for(priors, factor, lambda _: (0, 1))
    for prior in [priors.get(name) for name in (factor.columns, *factor.columns)]:
        fits = isinstance(prior, family.conjugate_prior) or (isinstance(prior, Beta) and _of_labels(factor))
        if isinstance(prior, ParameterDistribution) and not fits and not prior.accepts_any_family:
            raise PriorError.wrong_prior(family, prior, f"a {family.conjugate_prior.__name__}")
        if _has_levels(factor):
            check_pseudo_count(prior, estimate)
        elif is_pseudo_count(prior) and not family.number_is_weight_decay:
            raise no_levels_error(prior, [family])


def _check_common_prior(prior: Prior, factors: list[Factor], estimate: str) -> None:
    """Raise PriorError if a prior without a column name fits no factor."""
    families = [factor.family for factor in factors]
    if is_pseudo_count(prior) and not any(map(_has_levels, factors)):
        raise no_levels_error(prior, families)
    check_pseudo_count(prior, estimate)
    fits = any(isinstance(prior, family.conjugate_prior) for family in families) or (
        isinstance(prior, Beta) and any(map(_of_labels, factors))
    )
    if isinstance(prior, ParameterDistribution) and not fits:
        expected = sorted({family.conjugate_prior.__name__ for family in families})
        raise PriorError(
            f"prior has {prior!r}, which is conjugate to no column's family; expected {', '.join(expected)}.\n"
            "    Remove it, or check the families in columns=."
        )


def check_binary_columns(prior: Priors, factors: Callable[[], Iterable[Factor]], levels: Levels) -> None:
    """Raise PriorError if a Beta is the prior of binary columns and no categorical column has two levels."""
    beta = next((one for one in (prior if isinstance(prior, list | tuple) else [prior]) if isinstance(one, Beta)), None)
    if beta is None:
        return
    found = list(factors())
    counts = {name: len(levels(name)) for factor in found if _of_labels(factor) for name in factor.columns}
    if (
        counts
        and min(counts.values()) > 2
        and not any(issubclass(factor.family.conjugate_prior, Beta) for factor in found)
    ):
        shown = [f"{name!r} with {n} levels" for name, n in list(counts.items())[:3]] + ["…"] * (len(counts) > 3)
        raise PriorError(
            f"prior= has {beta!r}, which is for binary columns; found none ({', '.join(shown)}).\n"
            "    Pass a tb.Dirichlet, a number of counts, or None for the default."
        )


def check_is_prior(prior: Prior) -> None:
    """Raise PriorError if the value is not a prior of any family."""
    if isinstance(prior, str):
        PRIOR_WORDS.check("prior", prior)
    elif getattr(prior, "improper", False):
        raise PriorError(
            f"prior has {prior!r}, which is improper: unobserved values would be impossible.\n"
            "    Use parameters above 0, or estimate='mle'; tb.fit_distribution accepts improper priors."
        )
    elif hasattr(prior, "fit"):
        raise PriorError(
            "prior is a model; expected a distribution or a tally.\n"
            "    Pass its counts: prior=model.tally_, or of a network prior=tb.BDe(network, equivalent_sample_size)."
        )
    elif (
        prior is not None
        and not is_pseudo_count(prior)
        and (not isinstance(prior, FrozenValue) or isinstance(prior, Family))
    ):
        raise PriorError(f"prior has {short_repr(prior)}; expected {', '.join(PRIOR_WORDS.others)} or 'empirical'.")


def prior_for(prior: Priors, factor: Factor, levels: Levels | None = None) -> Any:
    """Return the prior of a factor: by block or column, or the first that is conjugate to its family.

    A Beta for a column of two levels becomes their Dirichlet; `levels` returns the levels.
    """
    if isinstance(prior, Mapping):
        if factor.columns in prior:
            return prior[factor.columns]
        named = [prior.get(name) for name in factor.columns]
        each = tuple(_of_two_levels(one, factor, name, levels) for one, name in zip(named, factor.columns, strict=True))
        if len(each) == 1 or (all(other is named[0] or other == named[0] for other in named) and each[0] is named[0]):
            return each[0]
        if not factor.family.columnwise:
            raise PriorError(
                f"the columns {factor.columns} are one block of {factor.family!r}, but prior= does not give them "
                "one prior.\n    Give each the same, or one distribution with an array per column."
            )
        return PerColumn(each)
    candidates = prior if isinstance(prior, list | tuple) else [prior]
    found = next((each for each in candidates if _serves(each, factor)), None)
    if found is None and levels is not None and _of_labels(factor):
        binary = [name for name in factor.columns if len(levels(name)) == 2]
        beta = next((each for each in candidates if isinstance(each, Beta)), None)
        if beta is not None and binary:
            return prior_for(dict.fromkeys(binary, beta), factor, levels)
    return found


def _of_labels(factor: Factor) -> bool:
    """Return whether the columns are categorical, with a Dirichlet prior."""
    return factor.family.cell_type == "codes" and issubclass(factor.family.conjugate_prior, Dirichlet)


def _of_two_levels(prior: Prior, factor: Factor, name: Name, levels: Levels | None) -> Any:
    """Return the Dirichlet of a column of two levels from a Beta.

    The last level, declared or sorted, is the success.
    """
    if not isinstance(prior, Beta) or not _of_labels(factor):
        return prior
    declared = getattr(factor.family, "levels", None)
    found = tuple(declared or ()) if levels is None else tuple(levels(name))
    if len(found) != 2:
        raise PriorError(
            f"prior of column {name!r} is {prior!r}, which is for two levels; found {short_repr(list(found))}.\n"
            "    Pass a tb.Dirichlet with a number for every level, or declare both levels in columns=."
        )
    last = declared[-1] if declared else max(found, key=lambda label: (type(label).__name__, label))
    counts = {True: prior.alpha, False: prior.beta}
    return Dirichlet(np.concatenate([np.atleast_1d(counts[bool(label == last)]) for label in found], axis=-1))


def prior_in_groups(prior: Priors, factor: Factor, estimate: str, levels: Levels | None = None) -> Any:
    """Return `prior_for` for columns whose groups are compared: their default prior is shared by all groups."""
    found = None if prior is None else prior_for(prior, factor, levels)
    default = default_group_prior(factor.family, estimate)
    if isinstance(found, PerColumn):
        return PerColumn(tuple(default if one is None else one for one in found.priors))
    return default if found is None else found


def _serves(prior: Priors, factor: Factor) -> bool:
    """Return whether one of several priors applies to a factor."""
    if is_pseudo_count(prior):
        return _has_levels(factor)
    return isinstance(prior, factor.family.conjugate_prior) or not hasattr(prior, "update")


def _has_levels(factor: Factor) -> bool:
    """Return whether the factor has levels that a number of pseudo-counts applies to."""
    return pseudo_count_prior(factor.family, 1.0, "bayes") is not None
