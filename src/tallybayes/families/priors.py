"""Prior rules: priors that wait for the statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.errors import PriorError
from tallybayes.families.family import Family
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.statistics import Statistics
from tallybayes.value import Value


class PriorRule(Value):
    """A rule that makes a belief once the statistics are known, from the pooled tally."""

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """The belief this rule stands for."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class BDeu(PriorRule):
    """The likelihood-equivalent uniform Dirichlet: `sample_size` pseudo-counts spread over a whole table.

    Every cell gets sample_size / (groups · levels), so equivalent networks score alike.

    Parameters
    ----------
    sample_size : float, default 1
        What the prior is worth, in rows.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.learn(["a", "b", "a", "a"], tb.Categorical(), group=[0, 0, 1, 1]).posterior(tb.BDeu(4))
    Dirichlet([[2., 2.], [3., 1.]])
    """

    sample_size: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.sample_size, int | float | np.number) or not self.sample_size > 0:
            raise PriorError.not_positive("BDeu", "sample_size", self.sample_size)

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """A Dirichlet with the pseudo-counts of this table."""
        if not isinstance(statistics, Counts):
            raise PriorError.wrong_belief(family, self, f"a {family.belief.__name__}; BDeu is for categorical columns")
        n_groups = int(np.prod(statistics.given_shape, dtype=np.int64))
        sizes = np.maximum(statistics.segments.sizes, 1)
        return Dirichlet(statistics.segments.spread(self.sample_size / (max(n_groups, 1) * sizes)))


@dataclass(frozen=True, eq=False, repr=False)
class K2(PriorRule):
    """The prior of Cooper and Herskovits' K2 (1992): every distribution equally likely, ``Dirichlet(1)``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.learn(["a", "b", "a"], tb.Categorical()).posterior(tb.K2())
    Dirichlet([3., 2.])
    """

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Dirichlet:
        """Dirichlet(1)."""
        return Dirichlet(1.0)
