"""Family: the protocol that every family of distributions implements.

Optional protocols, each with one default, are the functions of `tallybayes.families.protocols`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import EstimateError, PriorError
from tallybayes.families._shared.blocks import Block
from tallybayes.families.prior_rules import check_pseudo_count, is_pseudo_count, no_levels_error, pseudo_count_prior
from tallybayes.families.protocols.traits import Traits
from tallybayes.statistics.counts import Segments
from tallybayes.statistics.double_double import Index
from tallybayes.statistics.sufficient_statistics import Statistics

Parameters: TypeAlias = np.ndarray | tuple[Any, ...]  # of a family: an array, or a named tuple of arrays


class Family(Traits):
    """Distribution of a column, or of a block of like columns: p(x | parameters), with a conjugate prior.

    A family is a frozen dataclass without data. Its author writes `collect`, `maximum_likelihood`, `log_likelihood`,
    `log_prob`, `log_predictive` and `sample`, sets `conjugate_prior`, `allowed_values` and the traits that apply, and
    overrides the other methods where their defaults do not fit. ``tallybayes.testing.check_family`` checks the result.

    Parameters are arrays, or named tuples of arrays, with leading group axes (``*given``). Missing cells are NaN,
    or code −1; they are marginalized.

    Examples
    --------
    >>> import tallybayes as tb
    >>> isinstance(tb.Poisson(), tb.Family), tb.Poisson().conjugate_prior is tb.Gamma
    (True, True)
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]]  # class of its prior and posterior distributions

    # ---- Sufficient statistics ----

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Statistics:
        """Return the sufficient statistics of a block of columns.

        Parameters
        ----------
        block : array of shape (n, columns), list of columns, `Codes` or `SparseRows`
        group : array of int of shape (n,), optional
            Group of every row; −1 excludes the row.
        n_groups : int, default 1
        weight : array of shape (n,), or (n, n_groups) for soft groups, optional
        like : Statistics, optional
            Statistics that the result will be added to or subtracted from; their anchors are used.

        Returns
        -------
        Statistics, with one axis of groups
        """
        raise NotImplementedError

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics; families with equal keys can share one tally."""
        return (type(self).__name__,)

    def row_weight(self, statistics: Any) -> np.ndarray:
        """Return the number of rows behind each entry of `log_likelihood`, in the same shape."""
        return statistics.column_weights()

    def n_parameters(self, statistics: Any) -> int:
        """Return the number of free parameters over all groups; by default one per group and column."""
        return math.prod(statistics.given_shape) * int(statistics.n_columns)

    # ---- Estimates ----

    def maximum_likelihood(self, statistics: Any) -> Any:
        """Return the maximum likelihood estimate; NaN for groups without rows."""
        raise NotImplementedError

    def unbiased(self, statistics: Any) -> Any:
        """Return the unbiased estimate; for all but Gaussian families, the maximum likelihood estimate."""
        return self.maximum_likelihood(statistics)

    def default_prior(self, statistics: Any, estimate: str) -> ParameterDistribution:
        """Return the default prior for ``estimate="bayes"`` or ``"map"``; by default one pseudo-count per level."""
        prior = pseudo_count_prior(self, 1.0, estimate)
        if prior is None:
            raise NotImplementedError
        return prior

    # ---- Probabilities ----

    def log_likelihood(self, parameters: Any, statistics: Any) -> np.ndarray:
        """Return log p(data | parameters) from the statistics, per group (and per column if `columnwise`)."""
        raise NotImplementedError

    def log_evidence(self, prior: ParameterDistribution, statistics: Any) -> Any:
        """Return the log marginal likelihood log p(data) under a prior."""
        return prior.log_evidence(statistics)

    def log_prob(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """Return log p(x | parameters) of every row: (n, *given, columns), or (n, *given) unless `columnwise`."""
        raise NotImplementedError

    def log_predictive(self, posterior: Any, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data) under a posterior, with the parameters integrated out, shaped like `log_prob`."""
        raise NotImplementedError

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return E[x] of every column, shape (*given, columns), from parameters or from a posterior."""
        return np.asarray(parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters)

    def sample(self, parameters: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` random rows of every group: (n, *given, columns)."""
        raise NotImplementedError

    # ---- Provided ----

    def parameters_from(self, distribution: ParameterDistribution, what: str, **options: Any) -> Any:
        """Return the ``mean()``, ``mode()`` (or its boundary) or ``sample(...)`` of a distribution as parameters."""
        return getattr(distribution, "mode_or_boundary" if what == "mode" else what)(**options)

    def point(self, parameters: Parameters | ParameterDistribution) -> Any:
        """Return parameters: the mean of a posterior, or the parameters themselves."""
        if isinstance(parameters, ParameterDistribution):
            return self.parameters_from(parameters, "mean")
        return parameters

    def as_parameters(self, parameters: Any, statistics: Any) -> Any:
        """Return user-specified parameters in this family's form, with an axis for columns."""
        return np.atleast_1d(np.asarray(parameters, dtype=float))

    def resolve_prior(self, prior: Any, statistics: Any, estimate: str) -> ParameterDistribution:
        """Return the prior for None (the default), pseudo-counts, "empirical", a prior rule or a distribution."""
        if prior is None:
            return self.default_prior(statistics, estimate)
        if is_pseudo_count(prior):
            pseudo_counts = pseudo_count_prior(self, prior, estimate)
            if pseudo_counts is None:
                raise no_levels_error(prior, [self])
            check_pseudo_count(prior, estimate)
            return pseudo_counts
        expected = f"a {self.conjugate_prior.__name__}"
        if isinstance(prior, str):
            from tallybayes.families._shared.empirical_prior import empirical_prior

            if prior != "empirical":
                raise PriorError.wrong_prior(self, prior, f"{expected}, 'empirical'")
            return empirical_prior(self, statistics, estimate)
        distribution: Any = prior.resolve(self, statistics, estimate) if hasattr(prior, "resolve") else None
        if not (isinstance(distribution, self.conjugate_prior) or getattr(distribution, "accepts_any_family", False)):
            raise PriorError.wrong_prior(self, prior, expected)
        return distribution


def take_groups(parameters: Parameters, index: Index) -> Any:
    """Return the parameters of some groups, by an index of the leading axes."""
    if isinstance(parameters, tuple):
        parts: list[Any] = [part if isinstance(part, Segments) else np.asarray(part)[index] for part in parameters]
        return type(parameters)(*parts)
    return np.asarray(parameters)[index]


def check_parameters_valid(
    family: Family, parameters: object, array: np.ndarray, valid: np.ndarray, expected: str
) -> np.ndarray:
    """Return user-specified parameters as an array; raise EstimateError if an entry is invalid."""
    if not valid.all():
        raise EstimateError(f"the parameter of {family!r} is {parameters!r}; expected {expected}.")
    return array


def broadcast_over_groups(x: np.ndarray, n_given: int) -> np.ndarray:
    """Insert an axis of length 1 for every group axis: (n, columns) to (n, 1, …, columns).

    Arrays with more than two axes are returned unchanged: each row then has parameters of its own.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim > 2:
        return x
    return x.reshape(x.shape[0], *(1,) * n_given, *x.shape[1:])


def zero_where_missing(terms: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the terms with 0 at missing cells."""
    return np.where(np.isnan(x), 0.0, terms)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return numerator / denominator, NaN where the denominator is 0."""
    empty = denominator == 0
    return np.where(empty, np.nan, numerator / np.where(empty, 1.0, denominator))
