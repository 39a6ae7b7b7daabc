"""Dirichlet distribution: conjugate prior of the probabilities of levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.log_gamma import log_dirichlet_norm_ratio
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    check_positive,
    tail_probabilities,
)
from tallybayes.errors import DataError, PriorError
from tallybayes.statistics.counts import Counts, Segments
from tallybayes.statistics.totals import Totals
from tallybayes.typing import RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(ParameterDistribution):
    """Dirichlet(α) with density ∝ Π θ_k^(α_k − 1): conjugate prior of `Categorical` and `Multinomial`.

    A scalar α applies to every level, whatever their number. The posterior mean under ``Dirichlet(α)`` is additive
    (Laplace) smoothing with pseudo-count α; so is the posterior mode under ``Dirichlet(α + 1)``.

    Parameters
    ----------
    concentration : float or array broadcasting to (*given, cells)
        The parameters α.
    sizes : tuple of int, optional
        Numbers of levels of the columns whose levels `concentration` concatenates. By default a single column.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.Dirichlet(1).update(tb.Counts([3, 0, 1])).mean().round(4)
    array([0.5714, 0.1429, 0.2857])
    """

    concentration: np.ndarray
    sizes: tuple[int, ...] | None = field(default=None, kw_only=True)

    strength_fields: ClassVar[tuple[str, ...]] = ("concentration",)
    count_fields: ClassVar[tuple[str, ...]] = ("concentration",)

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(self, concentration: npt.ArrayLike, *, sizes: tuple[int, ...] | None = None) -> None: ...

    def __post_init__(self) -> None:
        self._freeze("concentration")
        self._allow_limits("concentration")
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
            if self.concentration.ndim == 0 or sum(self.sizes) != self.concentration.shape[-1]:
                raise PriorError.wrong_shape("Dirichlet", self.concentration.shape, (sum(self.sizes),))

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, strength: npt.ArrayLike) -> Dirichlet:
        """Return the Dirichlet distribution with this mean and a prior strength of `strength` observations.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.Dirichlet.from_mean([0.5, 0.25, 0.25], 8)
        Dirichlet([4., 2., 2.])
        """
        mean = np.asarray(mean, dtype=float)
        if mean.ndim == 0 or not np.allclose(mean.sum(axis=-1), 1.0):
            raise PriorError.wrong_parameter(
                "Dirichlet.from_mean", "mean", mean, "probabilities that sum to 1", "Divide them by their sum."
            )
        check_positive("Dirichlet.from_mean", mean=mean, strength=strength)
        return cls(mean * np.asarray(strength, dtype=float)[..., None])

    @property
    def segments(self) -> Segments:
        """The columns as contiguous segments of the cells."""
        return self._cells()[1]

    def _cells(self, quantity: str | None = None) -> tuple[np.ndarray, Segments]:
        """Return the concentrations and the segments of the columns.

        Raise PriorError if the number of levels is not known or, for a requested quantity, if α is improper.
        """
        if quantity is not None:
            self._require_proper(quantity)
        if self.concentration.ndim == 0:
            raise PriorError(
                f"{self!r} stands for any number of levels, so its mean, mode and density are undefined.\n"
                "    Pass one number per level, as in tb.Dirichlet([1, 1, 1]), or update it with statistics."
            )
        cells = np.asarray(self.concentration)
        return cells, Segments([cells.shape[-1]] if self.sizes is None else self.sizes)

    def _fit(self, statistics: Counts | Totals) -> tuple[np.ndarray, np.ndarray, Segments]:
        """Return concentrations and counts of the same shape, and the segments of their columns."""
        if not isinstance(statistics, Counts | Totals):
            raise DataError.no_statistics(statistics)
        table, segments = (
            (statistics.table, statistics.segments)
            if isinstance(statistics, Counts)
            else (statistics.total, Segments([statistics.n_columns]))
        )
        (prior,) = self._broadcast(table.shape, "concentration")
        return prior, table, segments

    def update(self, statistics: Counts | Totals) -> Dirichlet:
        """Add the counts to the concentrations."""
        prior, table, segments = self._fit(statistics)
        sizes = None if segments.n_columns == 1 else tuple(segments.sizes.tolist())
        return Dirichlet(prior + table, sizes=sizes)

    def mean(self) -> Any:
        """Return E[θ_k] = α_k / Σα."""
        alpha, segments = self._cells("mean")
        return alpha / segments.broadcast_to_cells(segments.sum(alpha))

    def variance(self) -> Any:
        """Return Var θ_k = m_k (1 − m_k) / (Σα + 1), where m is the mean."""
        alpha, segments = self._cells("variance")
        total = segments.broadcast_to_cells(segments.sum(alpha))
        return alpha / total * ((total - alpha) / total) / (total + 1)

    def mode(self) -> Any:
        """Return the mode (α_k − 1) / Σ(α − 1), with α_k − 1 clipped at 0.

        If no α exceeds 1, levels with α = 1 have equal probability. Raise PriorError if every α is below 1: the density
        is unbounded at several points.
        """
        alpha, segments = self._cells("mode")
        if ((segments.max(alpha) < 1) & (segments.sizes > 1)).any():
            raise self._without_mode()
        return self.mode_or_boundary()

    def mode_or_boundary(self) -> Any:
        """Return the mode. If no α exceeds 1, levels with the largest α have equal probability."""
        alpha, segments = self._cells()
        excess = np.maximum(alpha - 1, 0.0)
        total = segments.sum(excess)
        largest = (alpha == segments.broadcast_to_cells(segments.max(alpha))).astype(float)
        edge = largest / segments.broadcast_to_cells(segments.sum(largest))
        flat = segments.broadcast_to_cells(total == 0)
        return np.where(flat, edge, excess / np.where(flat, 1.0, segments.broadcast_to_cells(total)))

    def interval(self, mass: float = 0.95) -> Interval:
        """Return the equal-tailed credible interval of every θ_k, from its Beta marginal distribution."""
        from scipy.special import betaincinv

        alpha, segments = self._cells("interval")
        rest = segments.broadcast_to_cells(segments.sum(alpha)) - alpha
        alone = rest <= 0  # a column with a single level: its probability is 1
        ends = (betaincinv(alpha, np.where(alone, 1.0, rest), tail) for tail in tail_probabilities(mass))
        return Interval(*(np.where(alone, 1.0, end) for end in ends))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Draw random probabilities θ, which sum to 1 within each column."""
        alpha, segments = self._cells("sample")
        rng = random_generator(random_state)
        shape = as_size(n) + alpha.shape
        # Gamma(α) = Gamma(α + 1) · U^(1/α), computed in logarithms so that small α do not underflow to 0 / 0.
        log_draw = np.log(rng.standard_gamma(alpha + 1, shape)) + np.log(rng.random(shape)) / alpha
        draw = np.exp(log_draw - segments.broadcast_to_cells(segments.max(log_draw)))
        return draw / segments.broadcast_to_cells(segments.sum(draw))

    def log_prob(self, parameter: npt.ArrayLike) -> Any:
        """Return log p(θ) per group and column: −inf if θ is not a probability vector."""
        alpha, segments = self._cells("log_prob")
        theta = np.asarray(parameter, dtype=float)
        inside = (np.abs(segments.sum(theta) - 1) < 1e-9) & (segments.sum((theta < 0).astype(float)) == 0)
        density = segments.sum(xlogy(alpha - 1, np.maximum(theta, 0.0)) - gammaln(alpha)) + gammaln(segments.sum(alpha))
        log_density = np.where(inside, density, -np.inf)
        return _drop_single_column(np.where(segments.sizes == 0, 0.0, log_density))  # a column without levels has 0

    def log_evidence(self, statistics: Counts | Totals) -> Any:
        """Return the log marginal likelihood of the sequence (Dirichlet–multinomial), per group and column.

        Statistics of `Multinomial` include the multinomial coefficients of the rows.
        """
        self._require_proper("log_evidence")
        prior, table, segments = self._fit(statistics)
        evidence = log_dirichlet_norm_ratio(prior, table, segments)
        if isinstance(statistics, Totals):
            evidence = evidence + statistics.log_base_measure.sum(axis=-1, keepdims=True)
        return _drop_single_column(evidence)

    def column(self, index: int) -> Dirichlet:
        """Return the distribution of one column's probabilities."""
        alpha, segments = self._cells()
        return Dirichlet(segments.split(alpha)[index])


def _drop_single_column(values: np.ndarray) -> Any:
    """Drop the column axis if there is only one column."""
    return as_float(values[..., 0] if values.shape[-1] == 1 else values)
