"""Objective of EM: the log likelihood or log posterior, with its fixed priors and the M-step of all factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, LabelError, PriorError, short_repr
from tallybayes.estimation.em.em_loop import EMResult, EMSummary, run_em, run_em_restarts
from tallybayes.estimation.em.soft_counts import SoftCounter
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, check_nonzero_variance
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.prior_rules import PerColumn, PriorRule, is_pseudo_count, pseudo_count_prior
from tallybayes.families.protocols.degenerate_estimates import add_unit_variance, constant_columns
from tallybayes.families.protocols.em_support import zero_small_variances
from tallybayes.statistics.counts import Segments
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Columns, Prior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_NO_COLUMNS = np.zeros(0, dtype=np.intp)


class EMSteps(Protocol):
    """The E-step and the M-step of a model on its training rows."""

    def maximize(self, expected: Any) -> tuple[Any, float]:
        """Return the most probable parameters for the expected statistics, and their log prior (M-step)."""

    def expect(self, parameters: Any) -> tuple[Any, float]:
        """Return the expected statistics and the log likelihood of the observed data (E-step)."""


class EMObjective:
    """Objective of EM: the log likelihood or, if the estimate uses a prior, the log posterior.

    Parameters
    ----------
    model : model
        Its ``estimate``, ``max_iter`` and ``tol`` are used.
    factors : sequence of Factor
        The factors to estimate.
    weight : float
        The total weight of the rows.
    what : str
        The text of the progress bar.

    Attributes
    ----------
    has_prior : bool
    prior_distributions : list
        The prior of every factor; None for maximum likelihood.
    constant_columns : list of ndarray of int
        The positions of every factor's columns of zero variance, which EM does not use.
    """

    def __init__(self, model: EMParameters, factors: Sequence[Factor], weight: float, what: str = "EM") -> None:
        self.estimate = model.estimate
        self.max_iter = model.max_iter
        self.factors = factors
        self.has_prior = read_estimate(model.estimate).has_prior
        self.settings: dict[str, Any] = {"tol": model.tol * max(weight, 1.0), "what": what}
        self.prior_distributions: list[Any] = [None] * len(factors)
        self.constant_columns = [_NO_COLUMNS] * len(factors)
        self._shaped_priors: dict[int, Any] = {}  # priors broadcast to the statistics, cached

    @property
    def warm_up_iterations(self) -> tuple[int, ...]:
        """Return the numbers of iterations under default priors before EM; every number is one initialization.

        Maximum likelihood cannot leave a probability of zero. So it starts from estimates under default priors: after
        one iteration, and after convergence, so that its likelihood is not lower than theirs.
        """
        return (1,) if self.has_prior else (1, self.max_iter)

    def fix_priors(self, known: Sequence[Any], priors: Iterable[Any] | None = None) -> None:
        """Resolve the priors of all factors from the statistics of the observed cells, once for all iterations.

        ``priors`` are the user's; None takes the defaults.
        """
        requested = zip(self.factors, [None] * len(self.factors) if priors is None else priors, known, strict=True)
        found = [_resolve_prior(factor, prior, statistics, self.estimate) for factor, prior, statistics in requested]
        self.prior_distributions = [prior_distribution for prior_distribution, _ in found]
        self.constant_columns = [constant for _, constant in found]
        self._shaped_priors = {}

    @contextmanager
    def with_default_priors(self, known: Sequence[Any]) -> Iterator[None]:
        """Use default priors within the context, so that no initial probability is zero."""
        saved = self.has_prior, self.prior_distributions, self.constant_columns, self._shaped_priors
        self.has_prior = True
        try:
            self.fix_priors(known)
            yield
        finally:
            self.has_prior, self.prior_distributions, self.constant_columns, self._shaped_priors = saved

    def maximize(
        self,
        statistics: Sequence[Any],
        groups: Sequence[Sequence[Any]],
        log_prior: float = 0.0,
        otherwise: Mapping[int, Callable[[Any], Any]] = MappingProxyType({}),
    ) -> tuple[list[FactorScorer], float]:
        """Return the most probable parameters of every factor over its varying columns, and their log prior (M-step).

        Parameters
        ----------
        statistics : sequence of Statistics of shape (groups, …)
        groups : sequence of sequences
            The names of the groups of every factor.
        log_prior : float
            The log prior of all other parameters.
        otherwise : mapping from the number of a factor to a callable
            Another M-step for this factor: a function of its posterior, or of its statistics if it has no prior.
        """
        scorers = []
        for number, (factor, prior, constant, counted, names) in enumerate(
            zip(self.factors, self.prior_distributions, self.constant_columns, statistics, groups, strict=True)
        ):
            varying = varying_columns(counted, constant)
            family = factor.family
            has_prior = prior is not None and varying.n_columns > 0
            parameters: Any
            if number in otherwise:
                parameters = otherwise[number](prior.update(varying) if has_prior else varying)
            elif has_prior:
                parameters = family.parameters_from(prior.update(varying), "mode")
            else:
                parameters = family.maximum_likelihood(varying)
                parameters = zero_small_variances(family, parameters, varying) if varying.n_columns else parameters
            if has_prior:
                log_prior += self._log_prior_at(number, varying, _point(parameters))
            scorers.append(FactorScorer(factor, parameters, False, constant))
            check_nonzero_variance(scorers[-1], varying, names)
        if log_prior == np.inf:
            raise PriorError.unbounded_posterior()
        return scorers, log_prior

    @property
    def has_constant_columns(self) -> bool:
        """Whether a column has zero variance."""
        return any(map(len, self.constant_columns))

    def without_constant_columns(self, scorers: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Return fixed parameters of the last factors without their constant columns."""
        return [
            without_columns(scorer, constant)
            for scorer, constant in zip(scorers, self.constant_columns[-len(scorers) :], strict=True)
        ]

    def log_prior(self, scorers: Sequence[FactorScorer], statistics: Sequence[Any]) -> float:
        """Return the log prior density of parameters over the varying columns."""
        total = 0.0
        for number, (scorer, constant, counted) in enumerate(
            zip(scorers, self.constant_columns, statistics, strict=True)
        ):
            if self.prior_distributions[number] is not None:
                with np.errstate(divide="ignore"):
                    total += self._log_prior_at(number, varying_columns(counted, constant), _point(scorer.parameters))
        return total

    def _log_prior_at(self, number: int, statistics: Statistics, point: object) -> float:
        """Return the log prior density of the parameters of one factor."""
        if number not in self._shaped_priors:
            self._shaped_priors[number] = self.prior_distributions[number].update(statistics.scale(0.0))
        return float(np.sum(self._shaped_priors[number].log_prob(point)))

    def run(self, steps: EMSteps, start: Any, n_steps: int) -> Any:
        """Return the expected statistics after at most ``n_steps`` iterations."""
        return run_em(start, steps.maximize, steps.expect, max_iter=n_steps, **self.settings).expected

    def run_restarts(
        self, steps: EMSteps, starts: Iterable[Callable[[], Any]], *, has_prior: bool = False
    ) -> tuple[EMResult, EMSummary]:
        """Run EM from every start; return the result with the highest objective, and its summary.

        ``has_prior`` means that parameters outside the factors have a prior.
        """
        best = run_em_restarts(starts, steps.maximize, steps.expect, max_iter=self.max_iter, **self.settings)
        name = "log posterior" if self.has_prior or has_prior else "log likelihood"
        restarts = {"starts": best.starts, "objectives": best.objectives}
        return best, EMSummary(best.history, name, best.converged, best.log_likelihood, **restarts)  # type: ignore[arg-type]


def _point(parameters: Any) -> Any:
    """Return the parameters as a value of their prior: of level probabilities, the table."""
    return getattr(parameters, "table", parameters)


def _resolve_prior(factor: Factor, prior: Prior, known: Statistics, estimate: str) -> tuple[Any, np.ndarray]:
    """Return the prior that EM uses, and the positions of the columns of zero variance.

    A prior for ``"bayes"`` is replaced by the prior whose posterior mode equals its posterior mean.
    """
    family = factor.family
    constant = _NO_COLUMNS
    if prior is None or isinstance(prior, str):
        constant = constant_columns(family, known)
        if (
            add_unit_variance(family, known, constant) is known
        ):  # columns with a tied variance are constant only if all are
            constant = constant[:0]
    if len(constant) and len(constant) == known.n_columns:
        return None, constant
    integrates = read_estimate(estimate).integrates
    varying = varying_columns(known, constant)
    if integrates and (
        isinstance(prior, PerColumn) or (is_pseudo_count(prior) and pseudo_count_prior(family, 1.0, "bayes"))
    ):
        return family.resolve_prior(prior, varying, "bayes").mode_matched(), constant
    resolved = family.resolve_prior(prior, varying, "map")
    return resolved.mode_matched() if integrates and isinstance(
        prior, ParameterDistribution | PriorRule
    ) else resolved, constant


class InitialModel(Protocol):
    """A model whose parameters EM can start from."""

    warm_start: bool

    @property
    def columns_(self) -> Mapping[Any, Family]:
        """The family of every column."""

    @property
    def dropped_columns_(self) -> Mapping[Name, str]:
        """The dropped columns, with the reason."""


class EMParameters(Protocol):
    """The parameters of a model that EM uses."""

    estimate: str
    max_iter: int
    tol: float


Initial = TypeVar("Initial", bound=InitialModel)


def initial_model(model: Any, initial: Initial | None) -> Initial | None:
    """Return the model with the initial parameters: ``initial``, this model under ``warm_start``, or None."""
    if initial is None:
        return model if model.warm_start and hasattr(model, "tally_") else None
    expected = type(model).__name__
    if not isinstance(initial, type(model)):
        raise DataError.wrong_type("initial", type(initial).__name__, f"a {expected}, fitted or of known parameters")
    check_is_fitted(initial, "tally_")
    return initial


def columns_from_initial(columns: Columns, initial: InitialModel | None, names: Iterable[Name]) -> Columns:
    """Return ``columns``; if it is ``"auto"``, the column types of the initial model."""
    if initial is None or not isinstance(columns, str) or columns != "auto":
        return columns
    known = {name for key in initial.columns_ for name in (key if isinstance(key, tuple) else (key,))}
    unknown = [name for name in names if name not in known and name not in initial.dropped_columns_]
    if unknown:
        raise DataError(
            f"initial= has no column {unknown[0]!r}, which these rows have; its columns are "
            f"{short_repr(list(known))}.\n"
            "    Drop this column from the rows."
        )
    return initial.columns_


def check_n_groups(n_groups: int, noun: str, parameter: str, expected: int) -> None:
    """Raise DataError if the initial model has another number of groups."""
    if n_groups != expected:
        raise DataError(
            f"initial= has {n_groups} {noun}, and {parameter} is {expected!r}; expected equal numbers.\n"
            "    With warm_start=True the initial model is the previous fit: fit a new model instead."
        )


def reindex_levels(table: np.ndarray, axis: int, before: Domain, now: Domain) -> np.ndarray:
    """Reorder an axis of levels to the levels of ``now``; raise LabelError if ``before`` lacks one of them."""
    positions = before.positions_of(now.levels)
    if (positions < 0).any():
        level = now.levels[int(np.flatnonzero(positions < 0)[0])]
        raise LabelError(
            f"initial= has no level {level!r} of {now.name!r}, which these rows have; its levels are "
            f"{short_repr(list(before.levels))}.\n    Declare all levels in columns=, with "
            "tb.Categorical(levels=[...])."
        )
    return np.take(table, positions, axis=axis)


def parameters_from_model(
    scorers: Sequence[FactorScorer], known: Sequence[Sequence[Domain]], factors: Sequence[Factor], counter: SoftCounter
) -> list[FactorScorer]:
    """Return the parameters of the initial model over the levels of the training rows.

    Parameters
    ----------
    scorers : sequence of FactorScorer
        The factors of the initial model.
    known : sequence of sequences of Domain
        The levels of their categorical columns.
    factors : sequence of Factor
        The factors to fit, as counted by `counter`.
    """
    by_columns = {scorer.factor.columns: (scorer, domains) for scorer, domains in zip(scorers, known, strict=True)}
    out = []
    for number, factor in enumerate(factors):
        scorer, domains = by_columns.get(factor.columns, (None, ()))
        if scorer is None or scorer.family.statistics_key != factor.family.statistics_key:
            found = "others" if scorer is None else repr(scorer.family)
            raise DataError(
                f"initial= has {found} where the columns {factor.columns} are {factor.family!r}.\n"
                "    Pass columns=initial.columns_, so that the families agree."
            )
        parameters = scorer.point
        if factor.level_columns:
            columns = []
            levels_now = counter.level_domains(number)
            for table, before, now in zip(
                parameters.segments.split(parameters.table), domains, levels_now, strict=True
            ):
                columns.append(reindex_levels(table, -1, before, now))
            sizes = [len(domain.levels) for domain in levels_now]
            parameters = LevelProbabilities(np.concatenate(columns, axis=-1), Segments(sizes))
        out.append(FactorScorer(factor, parameters))
    return out


def varying_columns(statistics: Statistics, constant: np.ndarray) -> Any:
    """Return the statistics without the constant columns."""
    return statistics.columns(np.setdiff1d(np.arange(statistics.n_columns), constant)) if len(constant) else statistics


def without_columns(scorer: FactorScorer, constant: np.ndarray) -> FactorScorer:
    """Return a scorer whose parameters lack the constant columns."""
    if not len(constant):
        return scorer
    mean, spread = (np.asarray(part) for part in scorer.point)
    varying = np.setdiff1d(np.arange(mean.shape[-1]), constant)
    if spread.ndim > mean.ndim:
        parameters: Any = MultivariateNormal(mean[..., varying], spread[..., varying[:, None], varying])
    else:
        parameters = Normal(mean[..., varying], spread[..., varying])
    return FactorScorer(scorer.factor, parameters, False, constant)


def with_constant_columns(scorer: FactorScorer, like: Moments) -> FactorScorer:
    """Return a scorer whose parameters have the constant columns again: mean their value, variance 1."""
    if not len(scorer.constant):
        return scorer
    mean, spread = (np.asarray(part) for part in scorer.parameters)
    n_groups = len(mean)
    width = int(like.n_columns)
    varying = np.setdiff1d(np.arange(width), scorer.constant)
    means = np.tile(like.mean, (n_groups, 1))
    means[:, varying] = mean
    if spread.ndim == 3:
        covariance = np.tile(np.eye(width), (n_groups, 1, 1))
        covariance[:, varying[:, None], varying] = spread
        return FactorScorer(scorer.factor, MultivariateNormal(means, covariance), False, scorer.constant)
    variance = np.ones((n_groups, width))
    variance[:, varying] = spread
    return FactorScorer(scorer.factor, Normal(means, variance), False, scorer.constant)


def plot_convergence(summary: EMSummary | None, model: str, ax: Axes | None = None) -> Plot:
    """Plot the objective of EM by iteration, for every initialization; ``model`` is the name of the model."""
    if summary is None:
        raise DataError(
            f"This {model} has no EM history: it was fitted by counting, or its counts have changed.\n"
            "    Fit it on rows with unobserved values, such as missing labels."
        )
    from tallybayes.plotting.em_convergence import plot_convergence

    return plot_convergence(summary, ax)
