"""Discrete prior or posterior distribution over finitely many parameter values, in any family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    tail_probabilities,
)
from tallybayes.errors import PriorError, short_repr
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from tallybayes.estimation.distribution_fit import FittedDistribution
    from tallybayes.families.family import Family


class CodeLength(NamedTuple):
    """Two-part code length in bits: of the hypothesis, and of the data given the hypothesis."""

    model: Any
    data: Any

    @property
    def total(self) -> Any:
        """Total code length in bits."""
        return self.model + self.data


@dataclass(frozen=True, eq=False, repr=False)
class Hypotheses(ParameterDistribution):
    """A finite set of hypotheses, each a name and a parameter value, with prior probabilities. Works in any family.

    Parameters
    ----------
    hypotheses : mapping from name to parameter
        Parameter values in the format of ``FittedDistribution.estimate``: a probability for `Bernoulli`, a dictionary
        by level for `Categorical`, a (mean, variance) pair for `Gaussian`.
    prior : mapping, array or callable, optional
        Prior probabilities by name or in order (normalized automatically), or a density of the parameter. Uniform by
        default.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior={"fair": 0.8, "biased": 0.2})
    >>> posterior = tb.fit_distribution([1, 1, 1, 1], tb.Bernoulli()).posterior(coins)
    >>> {name: round(p, 4) for name, p in posterior.probabilities.items()}
    {'fair': 0.2759, 'biased': 0.7241}
    >>> posterior.best
    'biased'
    """

    hypotheses: Mapping[Any, Any]
    prior: Mapping[Any, float] | npt.ArrayLike | Callable[[Any], float] | None = None
    family: Any = field(default=None, kw_only=True, repr=False)
    log_weights: Any = field(default=None, kw_only=True, repr=False)
    given: tuple[int, ...] = field(default=(), kw_only=True, repr=False)  # shape of the groups, set by `resolve`

    accepts_any_family = True

    def __post_init__(self) -> None:
        if not isinstance(self.hypotheses, Mapping) or not self.hypotheses:
            expected = "a dict from names to parameters, such as {'fair': 0.5, 'biased': 0.9}"
            raise PriorError.wrong_parameter("Hypotheses", "hypotheses", self.hypotheses, expected)
        object.__setattr__(self, "hypotheses", dict(self.hypotheses))
        if self.log_weights is not None:
            self._freeze("log_weights")
        else:
            weights = self._prior_weights()
            if weights.shape != (len(self.names),) or not np.isfinite(weights).all() or (weights < 0).any():
                raise PriorError.wrong_parameter(
                    "Hypotheses", "prior", weights, f"{len(self.names)} numbers of at least 0, one for each hypothesis"
                )
            if weights.sum() == 0:
                raise PriorError.wrong_parameter("Hypotheses", "prior", weights, "at least one number above 0")
            with np.errstate(divide="ignore"):
                self._freeze(log_weights=np.log(weights / weights.sum()))

    def _prior_weights(self) -> np.ndarray:
        """Return the unnormalized prior weight of every hypothesis."""
        if self.prior is None:
            return np.ones(len(self.names))
        if callable(self.prior):
            return np.array([float(self.prior(parameter)) for parameter in self.hypotheses.values()])
        if isinstance(self.prior, Mapping):
            if self.prior.keys() != self.hypotheses.keys():
                expected = f"one weight for each of {short_repr(self.names)}"
                raise PriorError.wrong_parameter("Hypotheses", "prior", self.prior, expected)
            return np.array([float(self.prior[name]) for name in self.names])
        try:
            return np.asarray(self.prior, dtype=float)
        except (TypeError, ValueError):
            raise PriorError.wrong_parameter(
                "Hypotheses", "prior", self.prior, "a dict, numbers or a function of the parameter"
            ) from None

    @classmethod
    def grid(cls, parameters: Iterable[Any], prior: npt.ArrayLike | Callable[[Any], float] | None = None) -> Hypotheses:
        """Return one hypothesis per parameter value, named by the value: a grid approximation.

        Parameters
        ----------
        parameters : iterable of numbers
        prior : array or callable, optional
            Weights in order, or a density of the parameter. Uniform by default.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> grid = tb.Hypotheses.grid(np.linspace(0, 1, 101), prior=lambda p: p * (1 - p))
        >>> tb.fit_distribution([1, 1, 0], tb.Bernoulli()).posterior(grid).best
        0.6
        """
        return cls({as_float(parameter): as_float(parameter) for parameter in parameters}, prior)

    @property
    def names(self) -> list[Any]:
        """Names of the hypotheses, in order."""
        return list(self.hypotheses)

    @property
    def probabilities(self) -> dict[Any, Any]:
        """Probability of every hypothesis, per group if there are groups."""
        weights = np.exp(self.log_weights)
        return {name: as_float(weights[..., i]) for i, name in enumerate(self.names)}

    @property
    def best(self) -> Any:
        """Name of the most probable hypothesis (MAP), a list if there are groups. The first one wins ties."""
        return self._name(self.log_weights.argmax(axis=-1))

    def _name(self, index: np.ndarray) -> Any:
        """Return the names at these positions."""
        return self.names[int(index)] if np.ndim(index) == 0 else [self.names[int(i)] for i in np.ravel(index)]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name!r}: {p:.4g}" if np.ndim(p) == 0 else f"{name!r}" for name, p in [*self.probabilities.items()][:6]
        )
        more = len(self.names) - 6
        return f"Hypotheses({{{shown}{f', … {more} more' if more > 0 else ''}}})"

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> Hypotheses:
        """Return the same hypotheses with their values converted to parameters of `family`."""
        parameters = {name: family.as_parameters(value, statistics) for name, value in self.hypotheses.items()}
        return self.replace(hypotheses=parameters, family=family, given=statistics.given_shape)

    def _log_likelihoods(self, statistics: Statistics) -> np.ndarray:
        """Return log p(data | hypothesis) with shape (*given, hypotheses)."""
        if self.family is None:
            raise PriorError(
                "Hypotheses have no family, so data have no likelihood under them.\n"
                "    Use tb.fit_distribution(rows, family).posterior(hypotheses)."
            )
        scores = [self.family.log_likelihood(parameters, statistics) for parameters in self.hypotheses.values()]
        totals = [np.asarray(s).sum(axis=-1) if self.family.columnwise else np.asarray(s) for s in scores]
        return np.stack(totals, axis=-1)

    def update(self, statistics: Statistics) -> Hypotheses:
        """Return the posterior by Bayes' rule: multiply by the likelihoods and normalize."""
        joint = self.log_weights + self._log_likelihoods(statistics)
        total = logsumexp(joint, axis=-1, keepdims=True)
        if not np.isfinite(total).all():
            raise PriorError(
                "the data are impossible under every hypothesis with positive prior probability.\n"
                "    Add a hypothesis under which the data are possible."
            )
        return self.replace(log_weights=joint - total)

    def log_evidence(self, statistics: Statistics) -> Any:
        """Return log Σ p(h) p(data | h)."""
        return as_float(logsumexp(self.log_weights + self._log_likelihoods(statistics), axis=-1))

    def most_likely(self, fitted: FittedDistribution) -> Any:
        """Return the name of the hypothesis with the highest likelihood, regardless of the prior.

        Parameters
        ----------
        fitted : FittedDistribution
            Family and statistics of the data.
        """
        return self._name(self._log_likelihoods_of(fitted).argmax(axis=-1))

    def _log_likelihoods_of(self, fitted: FittedDistribution) -> np.ndarray:
        """Return log p(data | hypothesis) for the data behind a fitted distribution."""
        columns = -1 if fitted.family.columnwise and not fitted.single else ()
        scores = [np.sum(fitted.log_likelihood(value), axis=columns) for value in self.hypotheses.values()]
        return np.stack(scores, axis=-1)

    def code_lengths(self, fitted: FittedDistribution) -> dict[Any, CodeLength]:
        """Return the two-part code length of every hypothesis in bits: −log₂ p(h) and −log₂ p(data | h).

        The MAP hypothesis has the shortest total length.

        Parameters
        ----------
        fitted : FittedDistribution
            Family and statistics of the data.
        """
        data = 0.0 - self._log_likelihoods_of(fitted) / np.log(2)
        model = 0.0 - self.log_weights / np.log(2)
        return {name: CodeLength(as_float(model[..., i]), as_float(data[..., i])) for i, name in enumerate(self.names)}

    def mode(self) -> Any:
        """Return the parameter of the most probable hypothesis."""
        if self.log_weights.ndim > 1:
            raise PriorError(
                "hypotheses about several groups have a mode per group.\n"
                "    Use `best`, which names it for every group."
            )
        return self.hypotheses[self.best]

    def mean(self) -> Any:
        """Return the expected parameter. Defined for numeric parameters only."""
        return self._average(np.exp(self.log_weights))

    def _average(self, weights: np.ndarray) -> Any:
        """Return the weighted mean of the parameters."""
        values = list(self.hypotheses.values())
        if any(isinstance(value, tuple | Mapping) for value in values):
            raise PriorError(
                "the mean of hypotheses is defined for numbers only; these are tuples or dicts.\n"
                "    Use `probabilities` or `best`."
            )
        stacked = np.stack([np.asarray(value, dtype=float) for value in values])
        return as_float(np.tensordot(weights, stacked, axes=1))

    def interval(self, mass: float = 0.95) -> Interval:
        """Return quantiles of the parameter. Defined for scalar parameters only."""
        if self.log_weights.ndim > 1:
            raise PriorError(
                "hypotheses about several groups have no single interval.\n"
                "    Use `probabilities`, or fit each group separately."
            )
        if any(np.size(value) != 1 or isinstance(value, Mapping) for value in self.hypotheses.values()):
            raise PriorError(
                "the interval of hypotheses is defined for single numbers only; these have several.\n"
                "    Use `probabilities`."
            )
        values = np.array([float(np.ravel(value)[0]) for value in self.hypotheses.values()])
        order = np.argsort(values)
        cumulative = np.cumsum(np.exp(self.log_weights)[order])
        ends = [
            values[order][min(int(np.searchsorted(cumulative, tail)), len(values) - 1)]
            for tail in tail_probabilities(mass)
        ]
        return Interval(*(float(end) for end in ends))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Draw parameters of hypotheses by their probabilities; a list unless `n` is ()."""
        if self.log_weights.ndim > 1:
            raise PriorError(
                "hypotheses about several groups cannot be sampled together.\n    Fit and sample each group separately."
            )
        drawn = random_generator(random_state).choice(len(self.names), size=as_size(n), p=np.exp(self.log_weights))
        values = list(self.hypotheses.values())
        return values[int(drawn)] if np.ndim(drawn) == 0 else [values[int(i)] for i in np.ravel(drawn)]

    def log_prob(self, parameter: Any) -> Any:
        """Return the log of the total probability of the hypotheses with this parameter."""
        same = [i for i, value in enumerate(self.hypotheses.values()) if _equal(value, parameter)]
        return as_float(logsumexp(self.log_weights[..., same], axis=-1)) if same else -np.inf

    def log_predictive(self, x: np.ndarray) -> np.ndarray:
        """Return log Σ p(h | data) p(x | h) of every row: the posterior predictive distribution."""
        scores = np.stack([self._by_group(self.family.log_prob(p, x)) for p in self.hypotheses.values()], axis=-1)
        weights = self.log_weights
        if self.family.columnwise:
            scores = scores.sum(axis=-2, keepdims=True)  # columns are independent given the hypothesis only
            weights = weights[..., None, :]
        return np.asarray(logsumexp(scores + weights, axis=-1))

    def _by_group(self, scores: np.ndarray) -> np.ndarray:
        """Broadcast scores of rows to all groups: a parameter may be the same for every group."""
        n_last = 1 if self.family.columnwise else 0
        last = scores.shape[scores.ndim - n_last :]
        missing = 1 + len(self.given) + n_last - scores.ndim
        scores = scores.reshape(len(scores), *(1,) * missing, *scores.shape[1:])
        return np.broadcast_to(scores, (len(scores), *self.given, *last))

    def column(self, index: int) -> Hypotheses:
        """Return the distribution itself: hypotheses are about all columns jointly."""
        return self


def _equal(value: object, parameter: object) -> bool:
    """Return whether two parameters are equal, as arrays where possible."""
    try:
        return bool(np.array_equal(np.ravel(np.asarray(value, float)), np.ravel(np.asarray(parameter, float))))
    except (TypeError, ValueError):
        return bool(value == parameter)
