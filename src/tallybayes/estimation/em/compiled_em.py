"""EM in compiled code, for Gaussian and categorical columns: E-step and M-step in one pass over blocks of rows.

Other columns are fitted by `run_em`, with the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart
from tallybayes.estimation.em.soft_counts import SoftCounter
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.continuous import least_variance
from tallybayes.families.family import Family
from tallybayes.kernels import active
from tallybayes.kernels.arguments import threads
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor


class CompiledRun(NamedTuple):
    """The objective after every iteration, up to the constant of the prior, and whether EM converged."""

    history: list[float]
    converged: bool


class CompiledSums(NamedTuple):
    """Expected sufficient statistics: the weight of every class, and the statistics of every factor."""

    classes: np.ndarray
    statistics: list[Any]
    log_likelihood: float
    entropy: float


class CompiledEM:
    """EM of one table in compiled code.

    Parameters
    ----------
    counter : SoftCounter
    factors : sequence of Factor
        The factors in the families that score rows.
    table : Table
        The rows to fit, without missing cells in factors of a full covariance.
    codes : ndarray of int of shape (n,)
        The group of every row; −1 where it is unknown.
    weight : ndarray of shape (n,)
    """

    def __init__(
        self,
        counter: SoftCounter,
        factors: Sequence[Factor],
        table: Table,
        codes: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        self.counter = counter
        self.families: list[Family] = [factor.family for factor in factors]
        self.n_groups = counter.n_groups
        numbers, levels = [], []
        for number, (factor, like) in enumerate(zip(factors, counter.like, strict=True)):
            if like is None:
                found = counter.table.levels(factor.columns)[0].columns
                columns = list(found.T) if isinstance(found, np.ndarray) else list(found)
                levels.append((columns, np.array(self._sizes(number), dtype=np.int64)))
                continue
            family = factor.family
            tied = ("groups" in family.tied_over, "columns" in family.tied_over)
            center, least = (np.ravel(part).astype(float) for part in (like.mean, least_variance(like)))
            numbers.append((table.numbers(factor.columns), family.full_moments, *tied, center, least))
        self._centers = [item[4] for item in numbers]
        weighs = weight.strides != (0,) and bool((weight != 1).any())
        self._em = active.module.MixtureEM(
            table.n_rows,
            self.n_groups,
            numbers,
            levels,
            np.ascontiguousarray(weight) if weighs else None,
            codes.astype(np.int64) if (codes >= 0).any() else None,
            threads(0),
        )

    def _sizes(self, number: int) -> list[int]:
        return [len(domain.levels) for domain in self.counter.level_domains(number)]

    def set_priors(self, priors: Sequence[Any], pseudo_counts: np.ndarray, log_prior: np.ndarray | None) -> bool:
        """Set the prior of every factor, None for maximum likelihood; return whether compiled code supports them.

        ``pseudo_counts`` are those of the groups; ``log_prior`` their fixed log probabilities, or None.
        """
        gaussians, levels = [], []
        for number, (prior, like) in enumerate(zip(priors, self.counter.like, strict=True)):
            if like is None:
                shape = (self.n_groups, sum(self._sizes(number)))
                concentration = 1.0 if prior is None else prior.concentration if isinstance(prior, Dirichlet) else 0.0
                levels.append(_flat(np.asarray(concentration) - 1.0, shape))
            elif prior is None or isinstance(prior, NormalInverseGamma | NormalInverseWishart):
                if getattr(prior, "root", None) is not None:
                    return False
                gaussians.append(_gaussian_prior(prior, self.families[number], (self.n_groups, like.n_columns)))
            else:
                return False
        if any((part < 0).any() for part in levels):
            return False
        if (pseudo_counts < 0).any():
            return False
        self._em.set_priors(gaussians, levels, pseudo_counts, log_prior)
        return True

    def expect(self, log_prior: np.ndarray, parameters: Sequence[Any], *, hard: bool = False) -> bool:
        """Compute the expected statistics under parameters; `hard` assigns every row to its best group.

        Return False if some row is impossible in every group.
        """
        pairs = zip(parameters, self.counter.like, strict=True)
        gaussians, levels = [], []
        for part, like in pairs:
            if like is None:
                levels.append(_flat(part.table, np.shape(part.table)))
            else:
                gaussians.append(tuple(_flat(values, np.shape(values)) for values in part))
        return bool(self._em.expect(_flat(log_prior, np.shape(log_prior)), gaussians, levels, hard))

    def iterate(self, max_iter: int, tol: float, what: str) -> CompiledRun | None:
        """Run EM from the expected statistics; return None if a group lost its rows or its variance."""
        steps = progress(range(max_iter), what)
        is_good, converged, history = self._em.iterate(max_iter, tol, lambda: next(steps))
        return CompiledRun(history.tolist(), bool(converged)) if is_good else None

    @property
    def log_prior(self) -> float:
        """The log prior density of the current parameters, up to a constant."""
        return float(self._em.values()[2])

    def parameters(self) -> tuple[np.ndarray, list[Any]]:
        """Return the log probabilities of the groups, and the parameters of every factor."""
        log_prior, gaussians, levels = self._em.parameters()
        found: list[Any] = []
        for number, family in enumerate(self.families):
            if self.counter.like[number] is None:
                found.append(LevelProbabilities(levels.pop(0), Segments(self._sizes(number))))
            else:
                make: type[Any] = MultivariateNormal if family.full_moments else Normal
                found.append(make(*gaussians.pop(0)))
        return log_prior, found

    def sums(self) -> CompiledSums:
        """Return the expected sufficient statistics of the last E-step."""
        classes, gaussians, levels = self._em.sums()
        log_likelihood, entropy, _ = self._em.values()
        statistics: list[Any] = []
        centers = iter(self._centers)
        for number, like in enumerate(self.counter.like):
            if like is None:
                statistics.append(Counts(levels.pop(0), self._sizes(number)))
            else:
                statistics.append(_moments(like.anchor, next(centers), *gaussians.pop(0)))
        return CompiledSums(classes, statistics, log_likelihood, entropy)


def is_supported(factors: Sequence[Factor]) -> bool:
    """Return whether compiled code fits these factors.

    It does if the class of the family itself has ``compiled_em = True``: subclasses may compute something else.
    """
    return hasattr(active.module, "MixtureEM") and all(
        vars(type(factor.family)).get("compiled_em", False) for factor in factors
    )


def _flat(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=float), shape)).reshape(-1)


def _gaussian_prior(prior: Any, family: Family, shape: tuple[int, int]) -> tuple[Any, ...]:
    """Return whether there is a prior, then location and strength of the means, weight and scatter of the variances."""
    n_groups, d = shape
    rows = 1 if "groups" in family.tied_over else n_groups
    columns = 1 if "columns" in family.tied_over else d
    if prior is None:
        size = (rows, d, d) if family.full_moments else (rows, columns)
        weight = np.zeros(rows if family.full_moments else rows * columns)
        return False, np.zeros(n_groups * d), np.zeros(n_groups * d), weight, np.zeros(size).reshape(-1)
    location = _flat(prior.location, shape)
    if isinstance(prior, NormalInverseWishart):
        strength = np.broadcast_to(prior.strength, (n_groups,))[:, None]
        weight = prior.degrees_of_freedom + d + 1 + n_groups // rows
        return True, location, _flat(strength, shape), _flat(weight, (rows,)), _flat(prior.scale, (rows, d, d))
    n_means = (n_groups // rows) * (d // columns)
    size = (rows, columns)
    weight = 2 * (prior.shape + 1) + n_means
    return True, location, _flat(prior.strength, shape), _flat(weight, size), _flat(2 * prior.scale, size)


def _moments(
    anchor: np.ndarray, center: np.ndarray, weight: np.ndarray, about: np.ndarray, first: np.ndarray, second: np.ndarray
) -> Moments:
    """Return moments about the anchor from sums about ``center + about``, in double-double arithmetic."""
    shift = (DoubleDouble.of(np.broadcast_to(center, about.shape)) + DoubleDouble.of(about)) - DoubleDouble.of(
        np.broadcast_to(anchor, about.shape)
    )
    plain = DoubleDouble.of(first)
    moved = plain + shift * DoubleDouble.of(np.broadcast_to(weight, first.shape))
    if second.ndim == first.ndim:
        return Moments(anchor, DoubleDouble.of(weight), moved, DoubleDouble.of(second) + shift * plain + moved * shift)
    column, row = (..., None), (..., None, slice(None))
    products = DoubleDouble.of(second) + shift[column] * plain[row] + moved[column] * shift[row]
    return Moments(anchor, DoubleDouble.of(weight), moved, products)
