"""Prior rules: priors that depend on the sufficient statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import PriorError
from tallybayes.families.estimates import read_estimate
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics

if TYPE_CHECKING:
    from tallybayes.families.family import Family


class PriorRule(FrozenValue):
    """Base class of rules that return a prior once the sufficient statistics are known."""

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """Return the prior for a family and its statistics."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class BDeu(PriorRule):
    """Likelihood-equivalent uniform Dirichlet prior: `equivalent_sample_size` pseudo-counts for a whole CPT.

    Every cell gets equivalent_sample_size / (groups · levels), so that Markov equivalent networks have equal scores.

    Parameters
    ----------
    equivalent_sample_size : float, default 1
        Prior strength in rows.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution(["a", "b", "a", "a"], tb.Categorical(), group=[0, 0, 1, 1]).posterior(tb.BDeu(4))
    Dirichlet([[2., 2.], [3., 1.]])
    """

    equivalent_sample_size: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.equivalent_sample_size, int | float | np.number) or not self.equivalent_sample_size > 0:
            raise PriorError.wrong_parameter("BDeu", "equivalent_sample_size", self.equivalent_sample_size)

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """Return the Dirichlet distribution with the pseudo-counts of this CPT."""
        if not isinstance(statistics, Counts):
            raise PriorError.wrong_prior(
                family, self, f"a {family.conjugate_prior.__name__}; BDeu is for categorical columns"
            )
        n_groups = math.prod(statistics.given_shape)
        sizes = np.maximum(statistics.segments.sizes, 1)
        return Dirichlet(
            statistics.segments.broadcast_to_cells(self.equivalent_sample_size / (max(n_groups, 1) * sizes))
        )


@dataclass(frozen=True, eq=False, repr=False)
class K2(PriorRule):
    """Uniform Dirichlet prior ``Dirichlet(1)`` of the K2 algorithm (Cooper and Herskovits 1992).

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution(["a", "b", "a"], tb.Categorical()).posterior(tb.K2())
    Dirichlet([3., 2.])
    """

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """Return ``Dirichlet(1)``."""
        return Dirichlet(1.0)


@dataclass(frozen=True, eq=False, repr=False)
class PerColumn(PriorRule):
    """One prior per column of a block, joined along the columns.

    Parameters
    ----------
    priors : tuple
        For every column a distribution, a number, a rule or None, as in `Family.resolve_prior`.
    """

    priors: tuple[Any, ...]

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """Return one distribution whose parameters are arrays over the columns."""
        parts = [statistics.columns(np.array([position])) for position in range(len(self.priors))]
        distributions = [
            family.resolve_prior(prior, part, estimate) for prior, part in zip(self.priors, parts, strict=True)
        ]
        first = distributions[0]
        names: list[str] = [field.name for field in fields(first)]  # type: ignore[arg-type]
        arrays = [name for name in names if isinstance(getattr(first, name), np.ndarray)]
        kinds = [
            (type(each), [getattr(each, name, None) for name in names if name not in arrays]) for each in distributions
        ]
        if kinds.count(kinds[0]) < len(kinds):
            raise PriorError(
                f"the priors {', '.join(map(repr, distributions[:3]))} of {family!r} differ in class; expected "
                "one class.\n    Pass columns= with a separate family for each column."
            )
        widths = [int(part.segments.sizes[0]) if isinstance(part, Counts) else 1 for part in parts]
        return first.replace(**{name: _join([getattr(d, name) for d in distributions], widths) for name in arrays})


def _join(columns: Sequence[np.ndarray], widths: Sequence[int]) -> np.ndarray:
    """Return parameters of single columns, concatenated along the columns."""
    arrays = [np.atleast_1d(np.asarray(value, dtype=float)) for value in columns]
    given = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    wide = [np.broadcast_to(array, (*given, width)) for array, width in zip(arrays, widths, strict=True)]
    return np.concatenate(wide, axis=-1)


def is_pseudo_count(prior: object) -> TypeGuard[float]:
    """Return whether a prior is a number (pseudo-counts); raise PriorError if it is not positive and finite."""
    if not isinstance(prior, int | float | np.number | np.bool_):
        return False
    if isinstance(prior, bool | np.bool_) or not 0 < prior < np.inf:
        raise PriorError(
            f"prior is {prior!r}; expected a positive, finite number (pseudo-counts per level).\n"
            "    Pass prior=1 for add-one smoothing, or estimate='mle' for none."
        )
    return True


def check_pseudo_count(prior: object, estimate: str) -> None:
    """Raise PriorError if the prior is a number and the estimate is the posterior mode.

    Under the mode a number is ambiguous: Beta(2, 2) adds 1 to each count, not 2.
    """
    if is_pseudo_count(prior) and read_estimate(estimate).takes_mode:
        with_mode, plain = f"{prior + 1:.12g}", f"{prior:.12g}"
        raise PriorError(
            f"prior is {prior!r}, ambiguous under estimate={estimate!r}; expected tb.Dirichlet({with_mode}), which "
            f"adds {plain} to every level's count, or tb.Dirichlet({plain}), which adds {prior - 1:.12g}.\n"
            f"    For Bernoulli columns: tb.Beta({with_mode}, {with_mode}) or tb.Beta({plain}, {plain})."
        )


def no_levels_error(prior: object, families: Iterable[Any]) -> PriorError:
    """Return the error for a numeric prior of families without levels."""
    names = ", ".join(dict.fromkeys(map(repr, families)))
    return PriorError(
        f"prior is {prior!r}, a pseudo-count, but {names} has no levels; expected a distribution, or None for "
        "the default.\n    Numbers are for Bernoulli (0 and 1, if columns= says so), Categorical, Binned, Multinomial "
        "and DirichletMultinomial."
    )


def pseudo_count_prior(family: Family, amount: float, estimate: str) -> ParameterDistribution | None:
    """Return the prior equivalent to adding `amount` to the count of every level; None without levels.

    The posterior mode subtracts 1 from every parameter, so its prior has 1 more.
    """
    prior = getattr(family, "conjugate_prior", object)
    each = amount + read_estimate(estimate).takes_mode
    if issubclass(prior, Beta):
        return Beta(each, each)
    return Dirichlet(each) if issubclass(prior, Dirichlet) else None
