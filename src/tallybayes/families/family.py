"""Family: the protocol every family of distributions follows."""

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
    """What a column, or a block of like columns, means: p(x | parameters), with its conjugate belief.

    To write a family, say what to keep of the data (`collect`), the parameters that make it most probable
    (`maximum_likelihood`), and the log probability of rows. ``tallybayes.testing`` has the laws it must keep.

    Examples
    --------
    >>> import tallybayes as tb
    >>> isinstance(tb.Poisson(), tb.Family), tb.Poisson().conjugate_prior is tb.Gamma
    (True, True)
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]]  # the class of its priors and posteriors
    columnwise: ClassVar[bool] = True  # whether a row's log probability is a sum over columns
    cell_type: ClassVar[str] = "numbers"  # what a cell is: "numbers", "codes" of levels, or "text"
    low_memory_scoring: ClassVar[bool] = False  # whether scoring takes no memory of the size (rows, groups, columns)
    requires_complete_rows: ClassVar[bool] = False  # whether a row with a missing cell has to be expected to be counted
    allowed_values: ClassVar[str]  # what a cell may hold, for error messages
    # what to try where memory does not hold its statistics, for error messages
    memory_hint: ClassVar[str] = (
        "Take fewer columns: leave rare ones out, or hash them, as sklearn's FeatureHasher does."
    )
    accepts_missing: ClassVar[bool] = True  # whether a row may lack cells
    accepts_sparse: ClassVar[bool] = False  # whether sparse rows can be counted
    nonnegative_cells: ClassVar[bool] = False  # whether no cell may be below 0
    is_continuous: ClassVar[bool] = False  # whether a column has a density, not probabilities
    tied_over: ClassVar[tuple[str, ...]] = ()  # what has a parameter in common: "groups", "columns"
    sums_cells: ClassVar[bool] = False  # whether its statistics add up the cells themselves
    order: int = 0  # how many steps before a step of a sequence it is given: the first columns, the last one first
    is_conditional: ClassVar[bool] = (
        False  # whether it says something of the last of several columns alone, given the others
    )
    number_is_weight_decay: ClassVar[bool] = False  # whether a number for a prior is weight decay
    has_vocabulary: bool = False  # whether the words of its text are levels that are found
    is_bag_of_words: ClassVar[bool] = False  # whether a row counts the words of one vocabulary, as many as it has
    transforms: ClassVar[bool] = False  # whether its form is of something else than the cells
    scale: ClassVar[str] = "linear"  # on which pictures show a column, or "log"
    present_family: Family | None = None  # of cells that are there, where absence is a value, too
    word_family: Family | None = None  # of the counts of words, where cells are text
    bins: tuple[str, ...] = ()  # what numbers fall into, as shown, where they are cut
    open_bins: Sequence[
        tuple[tuple[float, float], float]
    ] = ()  # the stretches of bins without an end, and the width meant

    @property
    def is_binary(self) -> bool:
        """Whether a cell is 0 or 1, and nothing else."""
        return False

    success: ClassVar[Any] = None  # the label that counts as 1, where cells are labels of a yes/no column

    @property
    def is_contingency_table(self) -> bool:
        """Whether its statistics are how often every label occurs, and nothing else."""
        return False

    @property
    def family_given_continuous_parents(self) -> Family | None:
        """The family of such a column given measured ones; None where it is no Gaussian, which has `as_line`."""
        return None

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Families with equal layouts keep the same statistics, so one tally serves them all."""
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
        """Count a block of columns.

        Parameters
        ----------
        block : array of shape (n, columns), list of columns, `Codes` or `SparseRows`
        group : array of int of shape (n,), optional
            The group of every row, −1 to leave it out.
        n_groups : int, default 1
        weight : array of shape (n,), or (n, n_groups) for soft groups, optional
        like : Statistics, optional
            Statistics these will be added to or taken from: their anchors are used.

        Returns
        -------
        Statistics with one axis of groups
        """
        raise NotImplementedError

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum] | None:
        """The sums that a database makes of a block of columns, from which `from_aggregates` makes its statistics.

        None, unless said: then the database counts how often every value occurs, and those are collected as rows are.
        """
        return None

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Statistics:
        """The statistics of groups, from their `aggregates`: (groups, sums)."""
        raise NotImplementedError

    def sql_group_expression(self, column: Expression) -> Expression | None:
        """What a database counts by instead of the values; `value_of` has one value for each."""
        return None

    def sql_group_value(self, groups: np.ndarray) -> np.ndarray:
        """Values that stand for what `grouped_by` tells apart."""
        raise NotImplementedError

    def nonnegative(self, statistics: Any) -> dict[str, np.ndarray]:
        """What may never turn negative when rows are forgotten."""
        return dict(statistics.nonnegative())

    def maximum_likelihood(self, statistics: Any) -> Any:
        """The parameters under which the data are most probable; NaN where nothing was counted."""
        raise NotImplementedError

    def unbiased(self, statistics: Any) -> Any:
        """The estimate whose expectation is the parameter: for all but Gaussians, the most likely one."""
        return self.maximum_likelihood(statistics)

    def default_prior(self, statistics: Any, estimate: str) -> ParameterDistribution:
        """The prior used when none is given, for the ``"bayes"`` or the ``"map"`` estimate."""
        raise NotImplementedError

    def parameters_from(self, belief: ParameterDistribution, what: str, **options: Any) -> Any:
        """Parameters from a belief's ``mean()``, ``mode()`` (by convention where it has none) or ``sample(...)``."""
        return getattr(belief, "mode_or_boundary" if what == "mode" else what)(**options)

    def as_parameters(self, parameters: Any, statistics: Any) -> Any:
        """A user's parameters in this family's form, with an axis for columns."""
        return np.atleast_1d(np.asarray(parameters, dtype=float))

    def row_weight(self, statistics: Any) -> np.ndarray:
        """The weight in rows behind every number of `log_likelihood`, shaped like it: here, of every column."""
        return np.broadcast_to(statistics.weight, (*statistics.given_shape, statistics.n_columns))

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """How many numbers a group of rows takes: those that are kept, and what there is besides while rows are scored.

        Columns of labels are as many as their levels. Both as measured, so that too much is refused in time.
        """
        return 4 * n_columns, 4 * n_columns

    def n_parameters(self, statistics: Any) -> int:
        """The number of free parameters behind these statistics, all groups together: here, one for every column."""
        return math.prod(statistics.given_shape) * int(statistics.n_columns)

    def mean(self, parameters: Any) -> np.ndarray:
        """E[x] of every column, shape (*given, columns), from parameters or from a posterior."""
        return np.asarray(parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters)

    def log_likelihood(self, parameters: Any, statistics: Any) -> np.ndarray:
        """log p(data | parameters) from the statistics alone, per group (and column where columns are independent)."""
        raise NotImplementedError

    def log_evidence(self, belief: ParameterDistribution, statistics: Any) -> Any:
        """log p(data) with the parameters integrated out under `belief`, for all that has parameters of its own."""
        return belief.log_evidence(statistics)

    def log_prob(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """log p(x | parameters) of every row: (n, *given, columns), or (n, *given) unless `columnwise`.

        Missing cells (NaN, or code −1) are marginalized: they add 0.
        """
        raise NotImplementedError

    def log_predictive(self, posterior: Any, x: np.ndarray) -> np.ndarray:
        """log p(x | data) with the parameters integrated out, shaped like `log_prob`."""
        raise NotImplementedError

    def log_prob_form(self, parameters: Any) -> Form | None:
        """What `log_prob` looks like, so that kernels can score it and sparse rows stay sparse; None if like nothing.

        A family that writes `log_prob` anew says its form anew, or has none. It is a form of what `transform` makes of
        the cells, less `log_base`.
        """
        return None

    def transform(self, columns: Dense) -> Dense:
        """What the form is of: the cells or, if the family `transforms` them, other numbers or codes."""
        return columns

    def sql_expression(self, column: Expression) -> Expression | None:
        """What `transform` makes of a cell, as a database would write it; None where it could not."""
        return None if self.transforms else column

    def log_jacobian(self, transformed: np.ndarray) -> np.ndarray | None:
        """What transforming adds to the log probability of every row in all groups, shape (n,); None for nothing."""
        return None

    def log_predictive_form(self, posterior: Any) -> Form | None:
        """What `log_predictive` looks like, or None."""
        return None

    @property
    def leave_one_out_changes_all_groups(self) -> bool:
        """Whether removing a row changes the scores of all groups (see `leave_one_out_scores`)."""
        return "groups" in self.tied_over

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
        """log p(row | group) of rows that were counted, each without itself: (n, groups) if `left_out_together`.

        Else (n, 1), of its own group. NaN where a closed form has lost its digits; None where there is none, and rows
        have to be counted out. As for `form`, a family that counts or scores anew says this anew, or has none.
        """
        return None

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """The same of rows that counted once, as tables for the kernels, (columns or cells, groups), or None."""
        return None

    def first_invalid_cell(self, rows: Any) -> tuple[int, int] | None:
        """The first cell, as row and column, that could not have been counted either."""
        try:
            self.collect(rows)
        except CellError as error:
            return error.row, error.column
        return None

    def out_of_support(self, x: np.ndarray) -> np.ndarray | None:
        """Which finite cells, of any shape, no row can have: bool of the same shape; None where nothing is said.

        Cells are then tried one by one. As for `form`, a family that counts anew says this anew, or says nothing.
        """
        return None

    def take(self, parameters: Any, index: Any) -> Any:
        """The parameters of some groups, by an index of their leading axes."""
        if isinstance(parameters, tuple):
            return type(parameters)(*(np.asarray(part)[index] for part in parameters))
        return np.asarray(parameters)[index]

    @property
    def columnwise_family(self) -> Family:
        """The family that counts the known cells of every column by itself."""
        return self

    def columnwise_statistics(self, statistics: Any) -> Any:
        """The statistics as `by_column` would have them."""
        return statistics

    def pooled_value(self, statistics: Any) -> np.ndarray:
        """The value of columns that are the same in every row; NaN where no row showed one."""
        pooled = statistics.pool_groups()
        return np.where(np.broadcast_to(pooled.weight, pooled.mean.shape) > 0, pooled.mean, np.nan)

    def sampling_options(self, statistics: Any) -> dict[str, Any]:
        """What `sample` needs to know, besides parameters, to draw rows like those that were counted."""
        return {}

    def is_undefined(self, parameters: Any) -> np.ndarray:
        """Which groups and columns a point estimate has no row to go by in: bool, (*given, columns)."""
        return np.isnan(parameters[0] if isinstance(parameters, tuple) else parameters)

    def first_degenerate_group(self, parameters: Any, statistics: Any) -> tuple[int | None, int | None] | None:
        """The first group, and column, of which rows were counted but not enough to have a density.

        None for the column where it is the whole row's, for the group where it is all groups'; None where all have one.
        """
        return None

    def zero_small_variances(self, parameters: Any, statistics: Any) -> Any:
        """The most likely parameters with a spread next to nothing as nothing, which has no density."""
        return parameters

    def mask_degenerate_groups(self, parameters: Any) -> Any:
        """Point parameters, those of groups without any spread as unknown (NaN) as those of groups without a row."""
        return parameters

    def constant_columns(self, statistics: Any) -> np.ndarray:
        """Positions of measured columns that are the same in every row, and so have no density."""
        return np.zeros(0, dtype=np.intp)

    def add_unit_variance(self, statistics: Any, flat: np.ndarray) -> Any:
        """The statistics with a unit of spread put into columns that have none.

        Such a column says nothing about the group and is left out of every score.
        """
        return statistics

    def remove_unit_variance(self, parameters: Any, flat: np.ndarray) -> Any:
        """Point parameters as they are told of: without the unit that `with_spread` put in."""
        return parameters

    def with_unseen_level(self, statistics: Any) -> Any:
        """The statistics with room for a level that nobody has seen, where there are levels."""
        return statistics

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """The parameters, or what a posterior says of them, by name, each (*given, columns)."""
        return {"mean": self.mean(parameters)}

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """What every column adds to a row's log probability, (n, *given, columns), for families of whole rows.

        Terms that are the same in every group may be spread over the columns in any way.
        """
        raise NotImplementedError

    def conditional_means(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """E[x | the row's known cells] in every group: (n, *given, columns); independent columns say nothing."""
        mean = self.mean(parameters)
        return np.broadcast_to(mean, (len(x), *mean.shape))

    def distance_features(self, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
        """Cells on a scale where differences compare, for the heaps that EM starts from, and their unit.

        The unit is None where it is the deviation of every column. Sparse rows stay so, and their zeros 0.
        """
        return cells, None

    def plot_grid(self, parameters: Any, column: int) -> np.ndarray:
        """Where to draw the distribution of one column in every group: whole numbers, or where its draws lie."""
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
        """`n` rows drawn from every group: (n, *given, columns)."""
        raise NotImplementedError

    def cdf(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """p(X ≤ x) of every cell, each column by itself: (n, *given, columns), for rows of numbers that are known.

        By 4,096 rows that are drawn with a fixed seed, unless a family knows better. As for `form`, a family that
        scores anew says this anew, or it is drawn.
        """
        drawn = self.sample(parameters, 4096, np.random.default_rng(0))
        return np.stack([(drawn <= row).mean(axis=0) for row in x]) if len(x) else np.zeros((0, *drawn.shape[1:]))

    def kl_divergence(self, parameters: Any, other: Any) -> np.ndarray:
        """The Kullback–Leibler divergence of p(x | parameters) from p(x | other), in nats, shaped as of one row.

        By 4,096 rows that are drawn with a fixed seed, unless a family knows better.
        """
        rows = self.sample(parameters, 4096, np.random.default_rng(0))
        gaps = self.log_prob(parameters, rows) - self.log_prob(other, rows)
        return np.maximum(gaps.mean(axis=0), 0.0)

    def pseudo_count_prior(self, amount: float, estimate: str) -> ParameterDistribution | None:
        """The prior by which the estimate adds this amount to every level's count; None where there are no levels."""
        return None

    def resolve_prior(self, prior: Any, statistics: Any, estimate: str) -> ParameterDistribution:
        """A belief from None (the default), a number of counts, "empirical", a rule or a belief of this family."""
        if prior is None:
            return self.default_prior(statistics, estimate)
        if is_pseudo_count(prior):
            added = self.pseudo_count_prior(float(prior), estimate)
            if added is None:
                raise no_levels_error(prior, [self])
            check_pseudo_count(prior, estimate)
            return added
        if isinstance(prior, str):
            from tallybayes.families._shared.empirical_prior import empirical_prior

            if prior != "empirical":
                raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}, 'empirical'")
            return empirical_prior(self, statistics, estimate)
        if not hasattr(prior, "resolve"):
            raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}")
        belief = prior.resolve(self, statistics, estimate)
        if not isinstance(belief, self.conjugate_prior) and not getattr(belief, "accepts_any_family", False):
            raise PriorError.wrong_prior(self, prior, f"a {self.conjugate_prior.__name__}")
        return belief


def out_of_support_cells(family: Family, x: np.ndarray) -> np.ndarray:
    """Which finite cells of an array a family cannot count: as it says, or found by halves among the different ones."""
    said = family.out_of_support(x) if is_not_overridden(family, "out_of_support", "collect") else None
    if said is not None:
        return said & np.isfinite(x)
    values, place = np.unique(x, return_inverse=True)
    wrong = np.zeros(len(values), dtype=bool)
    parts = [np.flatnonzero(np.isfinite(values))]
    while parts:
        part = parts.pop()
        if not len(part) or family.first_invalid_cell(values[part][:, None]) is None:
            continue
        if len(part) == 1:
            wrong[part] = True
        else:
            parts += np.array_split(part, 2)
    return wrong[place].reshape(x.shape)


def family_kl_divergence(family: Family, parameters: Any, other: Any) -> np.ndarray:
    """As `Family.divergence`: in closed form, unless a class made from the one that knows it scores rows anew."""
    known = is_not_overridden(family, "kl_divergence", "log_prob", "sample")
    return family.kl_divergence(parameters, other) if known else Family.kl_divergence(family, parameters, other)


def is_not_overridden(family: Family, hook: str, *meant: str) -> bool:
    """Whether what a family says of itself holds: no class made from the one that says it writes a method anew."""
    return all(_place(family, hook) <= _place(family, method) for method in meant)


def _place(family: Family, method: str) -> int:
    """How far up among a family's ancestors a method is written."""
    return next(place for place, kind in enumerate(type(family).__mro__) if method in vars(kind))


def broadcast_over_groups(x: np.ndarray, n_given: int) -> np.ndarray:
    """Rows with an axis of length 1 for every group axis: (n, columns) to (n, 1, …, columns).

    Rows that have more axes already are left as they are: parameters of their own go with each of them.
    """
    if x.ndim > 2:
        return x
    return x.reshape(x.shape[0], *(1,) * n_given, *x.shape[1:])


def zero_where_missing(terms: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The terms with 0 in place of missing cells."""
    return np.where(np.isnan(x), 0.0, terms)


def ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Top / bottom, NaN where nothing was counted."""
    empty = bottom == 0
    return np.where(empty, np.nan, top / np.where(empty, 1.0, bottom))
