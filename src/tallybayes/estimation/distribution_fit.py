"""fit_distribution: one family, one set of values, every estimate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_parts
from tallybayes.data.counting import count
from tallybayes.data.frequency_tables import expand_frequency_table
from tallybayes.data.table import Table, open_table
from tallybayes.distributions.hypotheses import Hypotheses
from tallybayes.distributions.parameter_distribution import ParameterDistribution, as_float
from tallybayes.errors import DataError, StatisticsError
from tallybayes.estimation.estimates import estimates, short
from tallybayes.estimation.predictive import VALUE, Predictive
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import estimate_parameters, read_estimate
from tallybayes.families.family import Family
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Prior, SparseMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

GROUP = "group"


class DescriptionLength(NamedTuple):
    """Code lengths in bits.

    Of the data given the MAP parameters, of these parameters, and of the data by the evidence.
    """

    data: Any
    model: Any
    evidence: Any


def fit_distribution(
    values: Iterable[Any] | SparseMatrix | None = None,
    family: Family | None = None,
    *,
    counts: Mapping[Any, Any] | None = None,
    weight: Iterable[float] | None = None,
    group: Iterable[Any] | SparseMatrix | None = None,
) -> FittedDistribution:
    """Fit a distribution to values, or to counts of values.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, columns)
        One column, or a block of like columns; None and NaN are missing.
    family : Family
        The family of the values; in `WithMissing`, the probability of a missing value is estimated, too.
    counts : mapping from value to number, optional
        The count of every value, instead of `values`; of a `Multinomial`, the count of every word; with groups, a
        mapping from group to such mappings. A value with count 0 is a level.
    weight : array-like of shape (n,), optional
        The weight of every row; by default 1.
    group : array-like of shape (n,) or (n, groups), optional
        The group of every row, as labels or codes, or its responsibilities in every group. Every group has its own
        statistics.

    Returns
    -------
    FittedDistribution
        Or, in `WithMissing`, a `FittedWithMissing`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.fit_distribution([1, 1], tb.Bernoulli())
    >>> coin.estimate("mle"), coin.estimate("map", prior=tb.Beta(2, 2))
    (1.0, 0.75)
    >>> tb.fit_distribution([3.0, 5.0, 10.0], tb.Gaussian(), group=["a", "a", "b"]).estimate("mle").mean
    array([ 4., 10.])
    >>> coin = tb.fit_distribution(counts={"H": 55, "T": 45}, family=tb.Bernoulli(success="H"))
    >>> coin.estimate("map", prior=tb.Beta(2, 2))
    0.5490196078431373
    """
    if not isinstance(family, Family):
        raise DataError.wrong_type("family", repr(family), "a family such as tb.Bernoulli() or tb.Gaussian()")
    empty: list[Any] = []
    if counts is not None:
        if values is not None or weight is not None or group is not None:
            raise DataError("counts is given together with values, weight or group; expected one or the other.")
        values, weight, group, empty = expand_frequency_table(counts, family)
    elif values is None:
        raise DataError.wrong_type(
            "values", "None", "the values, or how often each occurred: counts={'H': 55, 'T': 45}"
        )
    if family.word_family is not None:
        hint = f"Count a column with tb.count, or the rows of a matrix of counts as {family.word_family!r}."
        raise DataError.wrong_type("family", repr(family), "one of numbers or labels", hint)
    table = open_table(values)
    single = family.columnwise and len(table.columns) == 1 and _is_column(next(iter(table.columns.values())))
    if not family.columnwise and _has_one_axis(table):
        raise DataError.wrong_shape(
            "values", (table.n_rows,), f"(rows, columns), because {family!r} describes whole rows"
        )
    columns: dict[Any, Any] = {VALUE: next(iter(table.columns.values()))} if single else dict(table.columns)
    names = tuple(columns)
    given: tuple[str, ...] = ()
    if group is not None:
        given = (_free_name(GROUP, columns),)
        columns[given[0]] = _open_group(group)
    rows = Table(columns, table.matrix if not single else None)
    factor = Factor(names, given, family)
    tally = count(rows, [factor], weight=weight, schema=Schema(sorted_domains=given))
    if empty and (family.present_family or family).cell_type == "codes":
        tally = tally.declare(names[0], [level for level in empty if level is not None])
    if family.present_family is not None:
        from tallybayes.estimation.distribution_fit_missing import FittedWithMissing

        return FittedWithMissing(tally, single=single)
    return FittedDistribution(tally, single=single)


class FittedDistribution:
    """A family and the sufficient statistics of values. Returned by `fit_distribution`.

    Objects can be added and subtracted.

    Results have the shape (groups, columns), without the axes that the values do not have: plain numbers for one column
    without groups. Probabilities of categorical values are dictionaries by level.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.fit_distribution([1, 1], tb.Bernoulli())
    >>> coin
    FittedDistribution: Bernoulli(), weight 2
      mle    1
      bayes  0.75
    >>> (coin + tb.fit_distribution([0], tb.Bernoulli())).estimate("mle").__round__(4)
    0.6667
    """

    def __init__(self, tally: Tally, *, single: bool) -> None:
        self.tally = tally
        self.single = single

    @property
    def family(self) -> Family:
        """The family of the values."""
        return self.tally.factors[0].family

    @property
    def statistics(self) -> Statistics:
        """The sufficient statistics of the values."""
        return self.tally.statistics[0]

    @property
    def groups(self) -> tuple[Any, ...]:
        """The labels of the groups, in the order of the results."""
        return self.tally.domains[str(self.tally.factors[0].given[0])].levels if self._grouped else ()

    @property
    def levels(self) -> Any:
        """The levels of a categorical column, in the order of its probabilities; a list of them for several columns."""
        names = self.tally.factors[0].columns
        if self.family.bins:
            found = [self.family.bins] * self.statistics.n_columns
        elif self.family.cell_type == "codes":
            found = [self.tally.domains[str(name)].levels for name in names]
        else:
            return ()
        return found[0] if self.single else found

    @property
    def _grouped(self) -> bool:
        return bool(self.tally.factors[0].given)

    def estimate(self, estimate: str = "bayes", *, prior: Prior = None) -> Any:
        """Return a point estimate of the parameters.

        Parameters
        ----------
        estimate : {"bayes", "mle", "unbiased", "map"}
            The posterior mean; the maximum likelihood estimate; for Gaussians, variances with n − 1, as in R; the
            posterior mode.
        prior : ParameterDistribution, number, rule, "empirical" or None
            The prior for ``"bayes"`` and ``"map"``. A number (not under ``"map"``) is a pseudo-count of every level.
            None is the default prior. ``"empirical"`` maximizes the marginal likelihood of the groups.

        Returns
        -------
        The family's parameters
        """
        if isinstance(prior, Hypotheses):
            prior = self._prior(prior)
        parameters = estimate_parameters(self.family, prior, self.statistics, estimate)
        if not read_estimate(estimate).has_prior:
            self._require_data(estimate)
        elif read_estimate(estimate).takes_mode:
            self._prior(prior, estimate).update(self.statistics).mode()  # which raises if there is no mode
        return self._show(parameters)

    estimates = estimates

    def posterior(self, prior: Prior = None) -> Any:
        """Return the posterior distribution of the parameters.

        Parameters
        ----------
        prior : ParameterDistribution, number, rule or None
            None is the default prior of the family.
        """
        posterior = self._posterior(prior)
        if isinstance(prior, Hypotheses):  # with parameters in the user's form, ready to be updated
            return prior.replace(log_weights=posterior.log_weights)  # type: ignore[attr-defined]
        return posterior.column(0) if self.single and self.family.columnwise else posterior

    def predictive(self, prior: Prior = None) -> Predictive:
        """Return the posterior predictive distribution: of the next row, with the parameters integrated out.

        Parameters
        ----------
        prior : ParameterDistribution, number, rule or None
            None is the default prior of the family.
        """
        return Predictive(self, self._posterior(prior))

    def log_evidence(self, prior: Prior = None) -> Any:
        """Return the log marginal likelihood (log evidence) of the values in their order: log ∫ p(data | θ) p(θ) dθ."""
        return self._squeeze(self.family.log_evidence(self._prior(prior), self.statistics))

    def log_likelihood(self, parameters: Any) -> Any:
        """Return log p(data | parameters), computed from the sufficient statistics.

        Parameters
        ----------
        parameters : the family's parameters, as `estimate` returns them
        """
        return self._squeeze(self.family.log_likelihood(self._read(parameters), self.statistics))

    def cross_entropy(self, parameters: Any) -> Any:
        """Return −log p(data | parameters) per row, in nats: the cross-entropy of the data and the model."""
        return as_float(-np.asarray(self.log_likelihood(parameters)) / self._row_weight())

    def divergence(self, parameters: Any) -> Any:
        """Return the Kullback–Leibler divergence from data to model in nats per row, above the minimum of the family.

        For `Bernoulli` and `Categorical` it is the divergence from the empirical distribution; for other families the
        same minus a constant. So the maximum likelihood estimate has divergence 0, the minimum, in every family.
        """
        best = self.estimate("mle")
        return as_float(np.asarray(self.cross_entropy(parameters)) - np.asarray(self.cross_entropy(best)))

    def description_length(self, prior: Prior = None) -> DescriptionLength:
        """Return code lengths: −log₂ of the likelihood and the prior density at the MAP estimate, and of the evidence.

        The term of the prior may be negative, because a density is not a probability.
        """
        belief = self._prior(prior)
        posterior = belief.update(self.statistics)
        mode = self.family.parameters_from(posterior, "mode")
        data = self.family.log_likelihood(mode, self.statistics)
        shaped = belief.update(self.statistics.scale(0.0))  # the prior, broadcast to the shape of the statistics
        evidence = self.family.log_evidence(belief, self.statistics)
        model = shaped.log_prob(posterior.mode())
        return DescriptionLength(
            *(self._squeeze(0.0 - np.asarray(part) / np.log(2)) for part in (data, model, evidence))
        )

    def plot(self, prior: Prior = None, ax: Axes | None = None) -> Plot:
        """Plot prior, likelihood and posterior with the estimates; of several groups or columns, every posterior.

        Needs matplotlib.

        Parameters
        ----------
        prior : ParameterDistribution, number, rule or None
            None is the default prior of the family.
        ax : matplotlib Axes, optional
            Two axes if there are means and variances.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.parameter_distributions import plot_fitted_distribution

        return plot_fitted_distribution(self, prior, ax)

    def __add__(self, other: FittedDistribution) -> Self:
        if not isinstance(other, FittedDistribution):
            return NotImplemented
        return type(self)(self.tally + self._like(other), single=self.single)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: FittedDistribution) -> Self:
        if not isinstance(other, FittedDistribution):
            return NotImplemented
        return type(self)(self.tally - self._like(other), single=self.single)

    def _like(self, other: FittedDistribution) -> Tally:
        if other.family != self.family:
            raise StatisticsError.incompatible("the families", self.family, other.family)
        return other.tally

    def isclose(self, other: FittedDistribution, tolerance: float = 1e-12) -> bool:
        """Return whether two distributions were fitted to equal data, up to rounding.

        Sums depend on the order of rows.
        """
        return self.family == other.family and self.tally.isclose(other.tally, tolerance)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FittedDistribution):
            return NotImplemented
        return self.family == other.family and self.tally == other.tally

    __hash__ = None  # type: ignore[assignment]

    def _title(self) -> str:
        weight = float(np.max(self._pooled_weight(), initial=0.0))
        groups = f", {len(self.groups)} groups" if self._grouped else ""
        return f"{type(self).__name__}: {self.family!r}, weight {weight:.12g}{groups}"

    def _estimates(self) -> list[tuple[str, str]]:
        """Return the estimates by name, as text."""
        found = []
        for name in ("mle", "bayes"):
            try:
                found.append((name, short(self.estimate(name))))
            except ValueError as error:
                found.append((name, f"none: {str(error).splitlines()[0]}"))
        return found

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {name:<5}  {text}" for name, text in self._estimates())])

    def _repr_html_(self) -> str:
        return html_parts((self._title(), ["estimate", ""], self._estimates()))

    def _prior(self, prior: Prior, estimate: str = "bayes") -> ParameterDistribution:
        if isinstance(prior, Hypotheses):
            prior = prior.replace(hypotheses={name: self._read(value) for name, value in prior.hypotheses.items()})
        return self.family.resolve_prior(prior, self.statistics, estimate)

    def _posterior(self, prior: Prior) -> ParameterDistribution:
        return self._prior(prior).update(self.statistics)

    def _row_weight(self) -> np.ndarray:
        """Return the total weight behind the log-likelihood, in rows."""
        return self._squeeze(self.family.row_weight(self.statistics))

    def _pooled_weight(self) -> np.ndarray:
        """Return the weight of the rows of all groups, by column."""
        return self.family.row_weight(self.statistics.pool_groups())

    def _require_data(self, estimate: str) -> None:
        weight = self.family.row_weight(self.statistics)
        if np.size(weight) == 0 or (np.asarray(weight) == 0).any():
            empty = np.argwhere(np.asarray(weight) == 0)
            where = "the values"
            if self._grouped and len(empty):
                where = f"group {self.groups[int(empty[0][0])]!r}"
            elif not self.single and len(empty) and np.ndim(weight):
                where = f"column {self.tally.factors[0].columns[int(empty[0][-1])]!r}"
            raise DataError.no_data(where, estimate)

    def _squeeze(self, values: npt.ArrayLike) -> Any:
        """Drop the column axis of a single column."""
        array = np.asarray(values)
        if self.single and self.family.columnwise and array.ndim and array.shape[-1] == 1:
            array = array[..., 0]
        return as_float(array)

    def _show(self, parameters: Any) -> Any:
        """Return parameters in the user's form.

        Categorical probabilities as dictionaries, a single column without its axis.
        """
        if isinstance(parameters, LevelProbabilities):
            names = [self.levels] if self.single else self.levels
            columns = parameters.segments.split(parameters.table)
            shown = [
                {level: as_float(column[..., i]) for i, level in enumerate(levels)}
                for levels, column in zip(names, columns, strict=True)
            ]
            return shown[0] if self.single else shown
        if isinstance(parameters, tuple) and hasattr(parameters, "_fields"):
            return type(parameters)(*(self._squeeze(part) for part in parameters))
        return self._squeeze(parameters) if isinstance(parameters, np.ndarray | float) else parameters

    def _read(self, parameters: Any) -> Any:
        """Return a user's parameters in the family's form; the inverse of `_show`."""
        statistics = self.statistics
        if isinstance(statistics, Counts):
            if isinstance(parameters, LevelProbabilities):
                return parameters
            columns = [parameters] if self.single else list(parameters)
            names = [self.levels] if self.single else self.levels
            tables = [
                np.stack([np.asarray(column.get(level, 0.0), dtype=float) for level in levels], axis=-1)
                if isinstance(column, Mapping)
                else np.asarray(column, dtype=float)
                for column, levels in zip(columns, names, strict=True)
            ]
            return LevelProbabilities(np.concatenate(tables, axis=-1), statistics.segments)
        if self.single and self.family.columnwise and self._grouped:
            parameters = tuple(map(_widen, parameters)) if isinstance(parameters, tuple) else _widen(parameters)
        return self.family.as_parameters(parameters, self.statistics)


def _widen(parameter: npt.ArrayLike) -> np.ndarray:
    """Add the axis of the single column after those of the groups."""
    array = np.asarray(parameter, dtype=float)
    return array[..., None] if array.ndim == 1 else array


def _has_one_axis(table: Table) -> bool:
    """Return whether the values are a plain list or array; a frame or mapping of one column is a table."""
    return table.matrix is None and list(table.columns) == [0] and _is_column(table.columns[0])


def _is_column(values: object) -> bool:
    return not isinstance(values, SparseRows) and getattr(values, "ndim", 1) == 1


def _open_group(group: Iterable[Any] | SparseMatrix) -> Any:
    """Return the groups: a categorical column, or an array of responsibilities of shape (n, groups)."""
    table = open_table(group)
    if table.matrix is not None:
        return table.matrix
    if len(table.columns) == 1:
        return next(iter(table.columns.values()))
    shares: Any = table.numbers(tuple(table.columns))
    return shares if isinstance(shares, np.ndarray) else np.stack(list(shares), axis=-1)


def _free_name(name: str, taken: Mapping[Any, Any]) -> str:
    """Return `name`, or a longer name if a column has it."""
    while name in taken:
        name += "_"
    return name
