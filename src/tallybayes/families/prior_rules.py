"""Prior rules: priors that wait for the statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import PriorError
from tallybayes.families.estimates import read_estimate
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics

if TYPE_CHECKING:
    from tallybayes.families.family import Family


class PriorRule(FrozenValue):
    """A rule that makes a belief once the statistics are known, from the pooled tally."""

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """The belief this rule stands for."""
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
            raise PriorError.not_positive("BDeu", "equivalent_sample_size", self.equivalent_sample_size)

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """A Dirichlet with the pseudo-counts of this table."""
        if not isinstance(statistics, Counts):
            raise PriorError.wrong_prior(
                family, self, f"a {family.conjugate_prior.__name__}; BDeu is for categorical columns"
            )
        n_groups = int(np.prod(statistics.given_shape, dtype=np.int64))
        sizes = np.maximum(statistics.segments.sizes, 1)
        return Dirichlet(
            statistics.segments.broadcast_to_cells(self.equivalent_sample_size / (max(n_groups, 1) * sizes))
        )


@dataclass(frozen=True, eq=False, repr=False)
class K2(PriorRule):
    """The prior of Cooper and Herskovits' K2 (1992): every distribution equally likely, ``Dirichlet(1)``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution(["a", "b", "a"], tb.Categorical()).posterior(tb.K2())
    Dirichlet([3., 2.])
    """

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """Dirichlet(1)."""
        return Dirichlet(1.0)


@dataclass(frozen=True, eq=False, repr=False)
class PerColumn(PriorRule):
    """A prior for every column of a block, each as `Family.prior` takes it, joined along the columns.

    Parameters
    ----------
    priors : tuple
        A distribution, a number, a rule or None for every column.
    """

    priors: tuple[Any, ...]

    def resolve(self, family: Family, statistics: Any, estimate: str) -> ParameterDistribution:
        """One distribution, whose parameters are arrays by column."""
        parts = [statistics.columns(np.array([place])) for place in range(len(self.priors))]
        each = [family.resolve_prior(prior, part, estimate) for prior, part in zip(self.priors, parts, strict=True)]
        fields = [belief._fields() for belief in each]
        widths = [int(part.segments.sizes[0]) if isinstance(part, Counts) else 1 for part in parts]
        joined: dict[str, Any] = {}
        for name, first in fields[0].items():
            values = [found.get(name) for found in fields]
            if isinstance(first, np.ndarray):
                arrays = [np.atleast_1d(np.asarray(value, dtype=float)) for value in values]
                given = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
                wide = [np.broadcast_to(a, (*given, width)) for a, width in zip(arrays, widths, strict=True)]
                joined[name] = np.concatenate(wide, axis=-1)
            elif all(value == first for value in values):
                joined[name] = first
        if len({type(belief) for belief in each}) > 1 or len(joined) < len(fields[0]):
            raise PriorError(
                f"the priors {', '.join(map(repr, each[:3]))} of columns of {family!r} cannot be joined; expected "
                "distributions of one class.\n    Pass columns= with a family for each column by itself."
            )
        return type(each[0])(**joined)


def is_pseudo_count(prior: Any) -> bool:
    """Whether a prior is a number, of counts to add to every level; one that cannot be is refused."""
    if not isinstance(prior, int | float | np.number | np.bool_):
        return False
    if isinstance(prior, bool | np.bool_) or not 0 < prior < np.inf:
        raise PriorError(
            f"prior is {prior!r}; expected a positive, finite number of counts to add to every level.\n"
            "    Pass prior=1 for add-one smoothing, or estimate='mle' for none."
        )
    return True


def check_pseudo_count(prior: Any, estimate: str) -> None:
    """Raise PriorError if the prior is a number and the estimate takes the mode, where a Beta(2, 2) adds 1, not 2."""
    if is_pseudo_count(prior) and read_estimate(estimate).takes_mode:
        one, other = f"{prior + 1:.12g}", f"{prior:.12g}"
        raise PriorError(
            f"prior is {prior!r}, which is ambiguous under estimate={estimate!r}: expected tb.Dirichlet({one}), which "
            f"adds {other} to every level's count, or tb.Dirichlet({other}), which adds {prior - 1:.12g}.\n"
            f"    For Bernoulli columns: tb.Beta({one}, {one}) or tb.Beta({other}, {other})."
        )


def no_levels_error(prior: Any, families: Iterable[Any]) -> PriorError:
    """The error where no column has levels that the number could be added to."""
    found = ", ".join(dict.fromkeys(map(repr, families)))
    return PriorError(
        f"prior is {prior!r}, counts to add to every level, but {found} has no levels; expected a belief, or None for "
        "the default.\n    Numbers are for Bernoulli (0 and 1, if columns= says so), Categorical, Binned, Multinomial "
        "and DirichletMultinomial."
    )
