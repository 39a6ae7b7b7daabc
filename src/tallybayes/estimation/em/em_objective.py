"""What EM climbs, whatever it expects: priors that are found once and held, and the parameters at their top."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

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
from tallybayes.families.prior_rules import PerColumn, PriorRule, is_amount
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_NONE = np.zeros(0, dtype=np.intp)


class EMSteps(Protocol):
    """The two steps of EM, of one model and its data."""

    def maximize(self, expected: Any) -> tuple[Any, float]:
        """From statistics to the parameters that make them most probable, and the log prior of these."""

    def expect(self, found: Any) -> tuple[Any, float]:
        """From parameters to the statistics they expect, and the log likelihood of what was observed."""


class EMObjective:
    """What EM climbs: the likelihood or, under an estimate with a prior, the posterior.

    Parameters
    ----------
    model : its ``estimate``, ``max_iter`` and ``tol``
    factors : sequence of Factor
        Whose parameters are sought.
    weight : float
        The weight of all rows.
    what : str
        The name of the work, for the progress line.

    Attributes
    ----------
    has_prior : bool
    beliefs : list
        The prior of every factor, None for its most likely parameters.
    flat : list of arrays of int
        The columns of every factor that have no spread to speak of, and are left out.
    """

    def __init__(self, model: Any, factors: Sequence[Factor], weight: float, what: str = "EM") -> None:
        self.estimate, self.max_iter, self.factors = model.estimate, model.max_iter, factors
        self.has_prior = read_estimate(model.estimate).has_prior
        self.settings: dict[str, Any] = {"tol": model.tol * max(weight, 1.0), "what": what}
        self.beliefs: list[Any] = [None] * len(factors)
        self.constant_columns = [_NONE] * len(factors)
        self._spread: dict[int, Any] = {}  # the priors in the shape of their statistics, which all steps share

    @property
    def warm_up_iterations(self) -> tuple[int, ...]:
        """How many steps to take under default priors before the climb: each is a way to start.

        Without a prior a zero stays one. So maximum likelihood sets out from where default priors lead: from their
        first step, and from their top, so that it ends no lower than they do.
        """
        return (1,) if self.has_prior else (1, self.max_iter)

    def fix_priors(self, known: Sequence[Any], priors: Iterable[Any] | None = None) -> None:
        """Find the priors of all factors from the statistics of what is known, so that all steps climb one hill.

        Those given, or the defaults.
        """
        asked = zip(self.factors, [None] * len(self.factors) if priors is None else priors, known, strict=True)
        found = [_resolved(factor, prior, statistics, self.estimate) for factor, prior, statistics in asked]
        self.beliefs, self.constant_columns = [belief for belief, _ in found], [flat for _, flat in found]
        self._spread = {}

    @contextmanager
    def with_default_priors(self, known: Sequence[Any]) -> Iterator[None]:
        """Climb under default priors for a while, whatever the estimate, so that nothing starts at zero."""
        kept = self.has_prior, self.beliefs, self.constant_columns, self._spread
        self.has_prior = True
        try:
            self.fix_priors(known)
            yield
        finally:
            self.has_prior, self.beliefs, self.constant_columns, self._spread = kept

    def maximize(
        self,
        statistics: Sequence[Any],
        groups: Sequence[Sequence[Any]],
        log_prior: float = 0.0,
        otherwise: Mapping[int, Callable[[Any], Any]] = MappingProxyType({}),
    ) -> tuple[list[FactorScorer], float]:
        """The most probable parameters of every factor over the columns that vary, and their log prior.

        Parameters
        ----------
        statistics : sequence of Statistics of shape (groups, …)
        groups : sequence of sequences
            What the groups of every factor are called.
        log_prior : float
            That of other parameters.
        otherwise : mapping from the number of a factor to a callable
            Where the likelihood has more to say of its parameters: found from its posterior, or statistics without one.
        """
        found = []
        for number, (factor, belief, flat, counted, names) in enumerate(
            zip(self.factors, self.beliefs, self.constant_columns, statistics, groups, strict=True)
        ):
            used, family = varying_columns(counted, flat), factor.family
            parameters: Any
            if number in otherwise:
                parameters = otherwise[number](used if belief is None else belief.update(used))
                if belief is not None:
                    log_prior += self._log_prior_at(number, used, parameters.table)
            elif belief is None or not used.n_columns:
                parameters = family.maximum_likelihood(used)
                parameters = family.zero_small_variances(parameters, used) if used.n_columns else parameters
            else:
                posterior = belief.update(used)
                parameters = family.parameters_from(posterior, "mode")
                log_prior += self._log_prior_at(number, used, posterior.mode_or_boundary())
            found.append(FactorScorer(factor, parameters, False, flat))
            check_nonzero_variance(found[-1], used, names)
        if log_prior == np.inf:
            raise PriorError.no_highest_point()
        return found, log_prior

    @property
    def has_constant_columns(self) -> bool:
        """Whether a column has no spread to speak of."""
        return any(map(len, self.constant_columns))

    def without_constant_columns(self, found: Sequence[FactorScorer]) -> list[FactorScorer]:
        """Parameters that were given, of the last factors, over the columns that vary: as all steps have them."""
        return [
            _narrowed(scored, flat) for scored, flat in zip(found, self.constant_columns[-len(found) :], strict=True)
        ]

    def log_prior(self, found: Sequence[FactorScorer], statistics: Sequence[Any]) -> float:
        """That of parameters over the columns that vary."""
        total = 0.0
        for number, (scored, flat, counted) in enumerate(zip(found, self.constant_columns, statistics, strict=True)):
            if self.beliefs[number] is not None:
                point = getattr(scored.parameters, "table", scored.parameters)
                with np.errstate(divide="ignore"):
                    total += self._log_prior_at(number, varying_columns(counted, flat), point)
        return total

    def _log_prior_at(self, number: int, statistics: Any, point: Any) -> float:
        """That of the parameters of one factor."""
        if number not in self._spread:
            self._spread[number] = self.beliefs[number].update(statistics.scale(0.0))
        return float(np.sum(self._spread[number].log_prob(point)))

    def climb(self, steps: EMSteps, start: Any, n_steps: int) -> Any:
        """What is expected after at most so many steps."""
        return run_em(start, steps.maximize, steps.expect, max_iter=n_steps, **self.settings).expected

    def climb_best(
        self, steps: EMSteps, starts: Iterable[Callable[[], Any]], *, has_prior: bool = False
    ) -> tuple[EMResult, EMSummary]:
        """Where the best of some starts ended, and how; other parameters may have a prior though no factor has."""
        best = run_em_restarts(starts, steps.maximize, steps.expect, max_iter=self.max_iter, **self.settings)
        name = "log posterior" if self.has_prior or has_prior else "log likelihood"
        kept = {"starts": best.starts, "objectives": best.objectives}
        return best, EMSummary(best.history, name, best.converged, best.log_likelihood, **kept)  # type: ignore[arg-type]


def _resolved(factor: Factor, prior: Any, known: Any, estimate: str) -> tuple[Any, np.ndarray]:
    """The belief that EM climbs under, and which columns have no spread to speak of.

    A belief given for ``"bayes"`` is turned into the one whose mode smooths as its mean does.
    """
    family, flat = factor.family, _NONE
    if prior is None or isinstance(prior, str):
        flat = family.constant_columns(known)
        if family.add_unit_variance(known, flat) is known:  # columns that share a variance are flat only if all are
            flat = flat[:0]
    if len(flat) and len(flat) == known.n_columns:
        return None, flat
    integrates, counts = read_estimate(estimate).integrates, varying_columns(known, flat)
    if integrates and (isinstance(prior, PerColumn) or (is_amount(prior) and family.pseudo_count_prior(1.0, "bayes"))):
        return family.resolve_prior(prior, counts, "bayes").mode_matched(), flat
    belief = family.resolve_prior(prior, counts, "map")
    return belief.mode_matched() if integrates and isinstance(
        prior, ParameterDistribution | PriorRule
    ) else belief, flat


def initial_model(model: Any, initial: Any) -> Any:
    """The model whose parameters EM starts from, if any: the one given or, with ``warm_start``, this one as it is."""
    if initial is None:
        return model if model.warm_start and hasattr(model, "tally_") else None
    kind = type(model).__name__
    if not isinstance(initial, type(model)):
        raise DataError.wrong_type("initial", type(initial).__name__, f"a {kind}, fitted or of known parameters")
    check_is_fitted(initial, "tally_")
    return initial


def columns_from_initial(columns: Any, initial: Any, names: Iterable[Name]) -> Any:
    """What columns are said to be; where nothing is, what those of some names are in the model that EM starts from."""
    if initial is None or not isinstance(columns, str) or columns != "auto":
        return columns
    known = {name for key in initial.columns_ for name in (key if isinstance(key, tuple) else (key,))}
    other = [name for name in names if name not in known and name not in initial.dropped_columns_]
    if other:
        raise DataError(
            f"initial= does not know the column {other[0]!r}, which these rows have; it has "
            f"{short_repr(list(known))}.\n"
            "    Leave it out."
        )
    return initial.columns_


def check_n_groups(found: int, what: str, setting: str, wanted: Any) -> None:
    """Refuse a model to start from that has more groups, or fewer, than there shall be."""
    if found != wanted:
        raise DataError(
            f"initial= has {found} {what}, and {setting} is {wanted!r}; expected as many.\n"
            "    With warm_start=True the initial model is what was learnt before: fit a new one instead."
        )


def reindex_levels(table: np.ndarray, axis: int, before: Domain, now: Domain) -> np.ndarray:
    """Some numbers over the levels there are now; one that the model to start from does not know is refused by name."""
    place = before.positions_of(now.levels)
    if (place < 0).any():
        level = now.levels[int(np.flatnonzero(place < 0)[0])]
        raise LabelError(
            f"initial= does not know the level {level!r} of {now.name!r}, which these rows have; its levels are "
            f"{short_repr(list(before.levels))}.\n    Declare all levels in columns=, with "
            "tb.Categorical(levels=[...])."
        )
    return np.take(table, place, axis=axis)


def parameters_from_model(
    found: Sequence[FactorScorer], known: Sequence[Sequence[Domain]], factors: Sequence[Factor], counter: SoftCounter
) -> list[FactorScorer]:
    """The parameters of another model, over the levels that are counted now: where EM shall start.

    Parameters
    ----------
    found : sequence of Scored
    known : sequence of sequences of Domain
        Their levels, of every column of labels.
    factors : sequence of Factor
        As they are counted, by `counter`.
    """
    its = {scored.factor.columns: (scored, domains) for scored, domains in zip(found, known, strict=True)}
    out = []
    for number, factor in enumerate(factors):
        scored, domains = its.get(factor.columns, (None, ()))
        if scored is None or scored.family.statistics_key != factor.family.statistics_key:
            other = "others" if scored is None else repr(scored.family)
            raise DataError(
                f"initial= has {other} where the columns {factor.columns} are {factor.family!r}.\n"
                "    Pass columns=initial.columns_, so that both read the same."
            )
        parameters = scored.point
        if factor.level_columns:
            columns = []
            mine = counter.level_domains(number)
            for table, before, now in zip(parameters.segments.split(parameters.table), domains, mine, strict=True):
                columns.append(reindex_levels(table, -1, before, now))
            sizes = [len(domain.levels) for domain in mine]
            parameters = LevelProbabilities(np.concatenate(columns, axis=-1), Segments(sizes))
        out.append(FactorScorer(factor, parameters, False, _NONE))
    return out


def varying_columns(statistics: Any, flat: np.ndarray) -> Any:
    """The statistics of the columns that vary."""
    return statistics.columns(np.setdiff1d(np.arange(statistics.n_columns), flat)) if len(flat) else statistics


def _narrowed(scored: FactorScorer, flat: np.ndarray) -> FactorScorer:
    """The parameters without the columns that have no spread."""
    if not len(flat):
        return scored
    mean, spread = (np.asarray(part) for part in scored.point)
    kept = np.setdiff1d(np.arange(mean.shape[-1]), flat)
    if spread.ndim > mean.ndim:
        parameters: Any = MultivariateNormal(mean[..., kept], spread[..., kept[:, None], kept])
    else:
        parameters = Normal(mean[..., kept], spread[..., kept])
    return FactorScorer(scored.factor, parameters, False, flat)


def with_constant_columns(scored: FactorScorer, like: Any) -> FactorScorer:
    """The parameters with those columns in their places that have no spread: their value, and a unit of it."""
    if not len(scored.constant):
        return scored
    mean, spread = (np.asarray(part) for part in scored.parameters)
    n_groups, width = len(mean), int(like.n_columns)
    kept = np.setdiff1d(np.arange(width), scored.constant)
    wide = np.tile(like.mean, (n_groups, 1))
    wide[:, kept] = mean
    if spread.ndim == 3:
        covariance = np.tile(np.eye(width), (n_groups, 1, 1))
        covariance[:, kept[:, None], kept] = spread
        return scored._replace(parameters=MultivariateNormal(wide, covariance))
    variance = np.ones((n_groups, width))
    variance[:, kept] = spread
    return scored._replace(parameters=Normal(wide, variance))


def plot_convergence(model: Any, ax: Axes | None = None) -> Plot:
    """What EM climbed to from every start, step by step, and how often the highest hill; needs matplotlib.

    Raise ``n_init`` where it was seldom. Maximum likelihood sets out twice from each start: at once, and from where
    default priors lead. A model that was read from a file remembers the best climb alone.

    Parameters
    ----------
    ax : matplotlib Axes, optional

    Returns
    -------
    Picture
    """
    check_is_fitted(model, "tally_")
    if model._em_result is None:
        raise DataError(
            f"EM did not climb: this {type(model).__name__} only counted, or its counts have changed since.\n"
            "    Fit it on rows in which something is not observed, such as labels."
        )
    from tallybayes.plotting.em_convergence import plot_convergence

    return plot_convergence(model._em_result, ax)
