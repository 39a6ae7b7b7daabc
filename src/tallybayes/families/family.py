"""Family: the protocol that every family of distributions implements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import CellError, PriorError
from tallybayes.families._shared.blocks import Block, Dense, SparseRows
from tallybayes.families.prior_rules import check_pseudo_count, is_pseudo_count, no_levels_error
from tallybayes.statistics.sufficient_statistics import Statistics

if TYPE_CHECKING:
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
    from tallybayes.families._shared.log_prob_forms import Form
    from tallybayes.families._shared.sql_aggregates import Expression, Sum


class Family(FrozenValue):
    """Distribution of a column, or of a block of like columns: p(x | parameters), with a conjugate prior.

    A new family implements `collect` (the sufficient statistics), `maximum_likelihood` (the parameters) and `log_prob`
    (the log probability of rows). ``tallybayes.testing`` checks the laws that a family must satisfy.

    Examples
    --------
    >>> import tallybayes as tb
    >>> isinstance(tb.Poisson(), tb.Family), tb.Poisson().conjugate_prior is tb.Gamma
    (True, True)
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]]  # class of its prior and posterior distributions
    columnwise: ClassVar[bool] = True  # whether the log probability of a row is a sum over columns
    cell_type: ClassVar[str] = "numbers"  # type of the cells: "numbers", "codes" (of levels) or "text"
    low_memory_scoring: ClassVar[bool] = False  # whether scoring avoids arrays of shape (rows, groups, columns)
    requires_complete_rows: ClassVar[bool] = False  # whether rows with missing cells can only be counted by EM
    allowed_values: ClassVar[str]  # valid values of a cell, for error messages
    # advice if the statistics exceed the memory, for error messages
    memory_hint: ClassVar[str] = "Use fewer columns: drop rare ones, or hash them with sklearn's FeatureHasher."
    accepts_missing: ClassVar[bool] = True  # whether cells of a row may be missing
    accepts_sparse: ClassVar[bool] = False  # whether sparse rows can be counted
    nonnegative_cells: ClassVar[bool] = False  # whether cells are nonnegative
    is_continuous: ClassVar[bool] = False  # whether a column has a density (True) or a probability mass function
    tied_over: ClassVar[tuple[str, ...]] = ()  # axes that share a variance: "groups", "columns"
    sums_cells: ClassVar[bool] = False  # whether the statistics contain sums of the cells
    order: int = 0  # number of lagged columns before the column itself, lag 1 first
    is_conditional: ClassVar[bool] = False  # whether it is a density of the last column given the others
    number_is_weight_decay: ClassVar[bool] = False  # whether a numeric prior is a weight decay
    has_vocabulary: bool = False  # whether the words of a text column form a vocabulary
    is_bag_of_words: ClassVar[bool] = False  # whether a row holds token counts over one vocabulary
    transforms: ClassVar[bool] = False  # whether `log_prob_form` takes transformed cells
    scale: ClassVar[str] = "linear"  # axis of plots of a column: "linear" or "log"
    present_family: Family | None = None  # family of the present cells, if missingness is modeled
    word_family: Family | None = None  # family of the word counts, if cells are text
    bins: tuple[str, ...] = ()  # names of the bins, if numbers are discretized
    open_bins: Sequence[
        tuple[tuple[float, float], float]
    ] = ()  # intervals of the unbounded bins, with their nominal widths

    @property
    def is_binary(self) -> bool:
        """Return whether a cell is 0 or 1."""
        return False

    success: ClassVar[Any] = None  # the level that counts as 1, if a binary column holds levels

    @property
    def is_contingency_table(self) -> bool:
        """Return whether the statistics are the counts of every level."""
        return False

    @property
    def family_given_continuous_parents(self) -> Family | None:
        """Return the family of such a node given continuous parents, or None if there is none."""
        return None

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics; families with equal keys can share one tally."""
        return (type(self).__name__,)

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

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum] | None:
        """Return the sums that a database computes for `from_aggregates`, or None.

        If None, the database counts the frequency of every value, and the values are collected with their frequencies.
        """
        return None

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Statistics:
        """Return the statistics of groups from their `aggregates`, shape (groups, sums)."""
        raise NotImplementedError

    def sql_group_expression(self, column: Expression) -> Expression | None:
        """Return the expression that a database groups by instead of the values, or None for the values."""
        return None

    def sql_group_value(self, groups: np.ndarray) -> np.ndarray:
        """Return representative values of the groups of `sql_group_expression`."""
        raise NotImplementedError

    def nonnegative(self, statistics: Any) -> dict[str, np.ndarray]:
        """Return the arrays, by name, that must stay nonnegative when rows are forgotten."""
        return dict(statistics.nonnegative())

    def maximum_likelihood(self, statistics: Any) -> Any:
        """Return the maximum likelihood estimate; NaN for groups without rows."""
        raise NotImplementedError

    def unbiased(self, statistics: Any) -> Any:
        """Return the unbiased estimate; for all but Gaussian families, the maximum likelihood estimate."""
        return self.maximum_likelihood(statistics)

    def default_prior(self, statistics: Any, estimate: str) -> ParameterDistribution:
        """Return the default prior for ``estimate="bayes"`` or ``"map"``."""
        raise NotImplementedError

    def parameters_from(self, distribution: ParameterDistribution, what: str, **options: Any) -> Any:
        """Return the ``mean()``, ``mode()`` (or its boundary) or ``sample(...)`` of a distribution as parameters."""
        return getattr(distribution, "mode_or_boundary" if what == "mode" else what)(**options)

    def as_parameters(self, parameters: Any, statistics: Any) -> Any:
        """Return user-specified parameters in this family's form, with an axis for columns."""
        return np.atleast_1d(np.asarray(parameters, dtype=float))

    def row_weight(self, statistics: Any) -> np.ndarray:
        """Return the number of rows behind each entry of `log_likelihood`, in the same shape."""
        return np.broadcast_to(statistics.weight, (*statistics.given_shape, statistics.n_columns))

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Return how many numbers per group the statistics take, and how many more scoring takes.

        For categorical columns, `n_columns` is the number of levels. Both are measured; they are compared with the free
        memory.
        """
        return 4 * n_columns, 4 * n_columns

    def n_parameters(self, statistics: Any) -> int:
        """Return the number of free parameters over all groups; by default one per group and column."""
        return math.prod(statistics.given_shape) * int(statistics.n_columns)

    def mean(self, parameters: Any) -> np.ndarray:
        """Return E[x] of every column, shape (*given, columns), from parameters or from a posterior."""
        return np.asarray(parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters)

    def log_likelihood(self, parameters: Any, statistics: Any) -> np.ndarray:
        """Return log p(data | parameters) from the statistics, per group (and per column if `columnwise`)."""
        raise NotImplementedError

    def log_evidence(self, prior: ParameterDistribution, statistics: Any) -> Any:
        """Return the log marginal likelihood log p(data) under a prior."""
        return prior.log_evidence(statistics)

    def log_prob(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """Return log p(x | parameters) of every row: (n, *given, columns), or (n, *given) unless `columnwise`.

        Missing cells (NaN, or code −1) are marginalized: they contribute 0.
        """
        raise NotImplementedError

    def log_predictive(self, posterior: Any, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data) under a posterior, with the parameters integrated out, shaped like `log_prob`."""
        raise NotImplementedError

    def log_prob_form(self, parameters: Any) -> Form | None:
        """Return the functional form of `log_prob`, which kernels evaluate, or None.

        The form is a function of ``transform(cells)``; `log_jacobian` is added. A subclass that overrides `log_prob`
        without this method is treated as having no form.
        """
        return None

    def transform(self, columns: Dense) -> Dense:
        """Return the input of the form: the cells or, if `transforms` is set, transformed cells or codes."""
        return columns

    def sql_expression(self, column: Expression) -> Expression | None:
        """Return the SQL expression of `transform`, or None if there is none."""
        return None if self.transforms else column

    def log_jacobian(self, transformed: np.ndarray) -> np.ndarray | None:
        """Return the log Jacobian of `transform` for every row, shape (n,), or None if it is 0."""
        return None

    def log_predictive_form(self, posterior: Any) -> Form | None:
        """Return the functional form of `log_predictive`, or None."""
        return None

    @property
    def leave_one_out_changes_all_groups(self) -> bool:
        """Return whether removing a row changes the log probabilities of all groups."""
        return "groups" in self.tied_over

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
        """Return log p(row | group) of counted rows, each without itself, or None if there is no closed form.

        The shape is (n, groups) if `leave_one_out_changes_all_groups`, else (n, 1) for the row's own group. Entries are
        NaN where the closed form loses too many digits. A subclass that overrides `collect` or `log_prob` must override
        this as well.
        """
        return None

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return `leave_one_out_log_prob` of rows of weight 1 as tables for the kernels, or None."""
        return None

    def first_invalid_cell(self, rows: Any) -> tuple[int, int] | None:
        """Return the row and column of the first cell that `collect` rejects, or None."""
        try:
            self.collect(rows)
        except CellError as error:
            return error.row, error.column
        return None

    def out_of_support(self, x: np.ndarray) -> np.ndarray | None:
        """Return which finite cells have probability 0, as a bool array of the same shape, or None if unknown.

        If None, the distinct values are passed to `first_invalid_cell`. A subclass that overrides `collect` must
        override this.
        """
        return None

    def take(self, parameters: Any, index: Any) -> Any:
        """Return the parameters of some groups, by an index of the leading axes."""
        if isinstance(parameters, tuple):
            return type(parameters)(*(np.asarray(part)[index] for part in parameters))
        return np.asarray(parameters)[index]

    @property
    def columnwise_family(self) -> Family:
        """Return the family that models each column separately."""
        return self

    def columnwise_statistics(self, statistics: Any) -> Any:
        """Return the statistics of `columnwise_family`."""
        return statistics

    def pooled_value(self, statistics: Any) -> np.ndarray:
        """Return the mean of every column over all groups; NaN for columns without values."""
        pooled = statistics.pool_groups()
        return np.where(np.broadcast_to(pooled.weight, pooled.mean.shape) > 0, pooled.mean, np.nan)

    def sampling_options(self, statistics: Any) -> dict[str, Any]:
        """Return the keyword arguments of `sample` that describe the training rows besides the parameters."""
        return {}

    def is_undefined(self, parameters: Any) -> np.ndarray:
        """Return which groups and columns have undefined (NaN) point estimates: bool, (*given, columns)."""
        return np.isnan(parameters[0] if isinstance(parameters, tuple) else parameters)

    def first_degenerate_group(self, parameters: Any, statistics: Any) -> tuple[int | None, int | None] | None:
        """Return the first group and column whose point estimate has no density, or None.

        The column is None if it concerns the whole row, the group is None if it concerns all groups.
        """
        return None

    def zero_small_variances(self, parameters: Any, statistics: Any) -> Any:
        """Return the maximum likelihood estimate with variances at rounding level set to 0."""
        return parameters

    def mask_degenerate_groups(self, parameters: Any) -> Any:
        """Return point parameters with groups of zero variance set to NaN."""
        return parameters

    def constant_columns(self, statistics: Any) -> np.ndarray:
        """Return the positions of continuous columns with zero variance, which have no density."""
        return np.zeros(0, dtype=np.intp)

    def add_unit_variance(self, statistics: Any, constant: np.ndarray) -> Any:
        """Return the statistics with unit variance added to constant columns, which are excluded from scores."""
        return statistics

    def remove_unit_variance(self, parameters: Any, constant: np.ndarray) -> Any:
        """Return point parameters without the unit variance of `add_unit_variance`, for display."""
        return parameters

    def with_unseen_level(self, statistics: Any) -> Any:
        """Return the statistics with one more level of count 0 in every column, if there are levels."""
        return statistics

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return the parameters, or their posterior means, by name, each (*given, columns)."""
        return {"mean": self.mean(parameters)}

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Return the contribution of every column to `log_prob` of a row, (n, *given, columns).

        Only for families that are not `columnwise`. Terms equal in all groups may be distributed over the columns in
        any way.
        """
        raise NotImplementedError

    def conditional_means(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """Return E[x | observed cells of the row] in every group: (n, *given, columns)."""
        mean = self.mean(parameters)
        return np.broadcast_to(mean, (len(x), *mean.shape))

    def distance_features(self, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
        """Return cells on a scale suited to Euclidean distances, for k-means++ in EM, and their unit.

        The unit is None if it is the standard deviation of every column. Sparse rows stay sparse.
        """
        return cells, None

    def plot_grid(self, parameters: Any, column: int) -> np.ndarray:
        """Return the points at which to plot the distribution of one column."""
        if self.is_continuous:
            point = (
                self.parameters_from(parameters, "mean")
                if isinstance(parameters, ParameterDistribution)
                else parameters
            )
            draws = self.sample(point, 500, np.random.default_rng(0))[..., column]
            return np.linspace(np.nanmin(draws), np.nanmax(draws), 400)
        means = self.mean(parameters)[:, column]
        top = means[np.isfinite(means)].max(initial=0.0)  # under maximum likelihood some groups may have none
        return np.arange(0, int(top + 5 * np.sqrt(top + 1)) + 1, dtype=float)

    def sample(self, parameters: Any, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` random rows of every group: (n, *given, columns)."""
        raise NotImplementedError

    def cdf(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """Return P(X ≤ x) of every cell, for each column separately: (n, *given, columns).

        The default estimates it from 4,096 draws with a fixed seed. Cells must not be missing. A subclass that
        overrides `log_prob` or `sample` must override this as well, or the default is used.
        """
        draws = self.sample(parameters, 4096, np.random.default_rng(0))
        return np.stack([(draws <= row).mean(axis=0) for row in x]) if len(x) else np.zeros((0, *draws.shape[1:]))

    def kl_divergence(self, parameters: Any, other: Any) -> np.ndarray:
        """Return the Kullback–Leibler divergence KL(p(x | parameters) ‖ p(x | other)) of one row, in nats.

        The default estimates it from 4,096 draws with a fixed seed.
        """
        rows = self.sample(parameters, 4096, np.random.default_rng(0))
        log_ratios = self.log_prob(parameters, rows) - self.log_prob(other, rows)
        return np.maximum(log_ratios.mean(axis=0), 0.0)

    def pseudo_count_prior(self, amount: float, estimate: str) -> ParameterDistribution | None:
        """Return the prior equivalent to adding `amount` to the count of every level; None without levels."""
        return None

    def resolve_prior(self, prior: Any, statistics: Any, estimate: str) -> ParameterDistribution:
        """Return the prior for None (the default), pseudo-counts, "empirical", a prior rule or a distribution."""
        if prior is None:
            return self.default_prior(statistics, estimate)
        if is_pseudo_count(prior):
            pseudo_counts = self.pseudo_count_prior(float(prior), estimate)
            if pseudo_counts is None:
                raise no_levels_error(prior, [self])
            check_pseudo_count(prior, estimate)
            return pseudo_counts
        if isinstance(prior, str):
            from tallybayes.families._shared.empirical_prior import empirical_prior

            if prior != "empirical":
                raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}, 'empirical'")
            return empirical_prior(self, statistics, estimate)
        if not hasattr(prior, "resolve"):
            raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}")
        distribution = prior.resolve(self, statistics, estimate)
        if not isinstance(distribution, self.conjugate_prior) and not getattr(
            distribution, "accepts_any_family", False
        ):
            raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}")
        return distribution


def out_of_support_cells(family: Family, x: np.ndarray) -> np.ndarray:
    """Return which finite cells of an array a family rejects.

    Uses `Family.out_of_support` if it is valid for this class, else bisection over the distinct values.
    """
    mask = family.out_of_support(x) if is_not_overridden(family, "out_of_support", "collect") else None
    if mask is not None:
        return mask & np.isfinite(x)
    values, inverse = np.unique(x, return_inverse=True)
    invalid = np.zeros(len(values), dtype=bool)
    pending = [np.flatnonzero(np.isfinite(values))]
    while pending:
        positions = pending.pop()
        if not len(positions) or family.first_invalid_cell(values[positions][:, None]) is None:
            continue
        if len(positions) == 1:
            invalid[positions] = True
        else:
            pending += np.array_split(positions, 2)
    return invalid[inverse].reshape(x.shape)


def family_kl_divergence(family: Family, parameters: Any, other: Any) -> np.ndarray:
    """Return `Family.kl_divergence`; by sampling if a subclass overrides `log_prob` or `sample` only."""
    known = is_not_overridden(family, "kl_divergence", "log_prob", "sample")
    return family.kl_divergence(parameters, other) if known else Family.kl_divergence(family, parameters, other)


def is_not_overridden(family: Family, hook: str, *meant: str) -> bool:
    """Return whether no subclass of the class that defines `hook` overrides one of the methods `meant`."""
    return all(_place(family, hook) <= _place(family, method) for method in meant)


def _place(family: Family, method: str) -> int:
    """Return the position in the class hierarchy at which a method is defined."""
    return next(depth for depth, kind in enumerate(type(family).__mro__) if method in vars(kind))


def broadcast_over_groups(x: np.ndarray, n_given: int) -> np.ndarray:
    """Insert an axis of length 1 for every group axis: (n, columns) to (n, 1, …, columns).

    Arrays with more than two axes are returned unchanged: each row then has parameters of its own.
    """
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
