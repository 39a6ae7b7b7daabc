"""Dirichlet: the belief about the probabilities of levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from tallybayes.distributions.log_gamma import log_rising_shares
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
    tail_probabilities,
)
from tallybayes.errors import PriorError
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals
from tallybayes.typing import RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(ParameterDistribution):
    """Dirichlet(α), density ∝ Π θ_k^(α_k − 1): the conjugate belief of `Categorical` and `Multinomial`.

    A single number stands for the same α for every level, however many there turn out to be. The posterior *mean* under
    ``Dirichlet(α)`` is add-α smoothing; so is the posterior *mode* under ``Dirichlet(α + 1)``.

    Parameters
    ----------
    concentration : float or array broadcasting to (*given, cells)
        The parameters α.
    sizes : tuple of int, optional
        Where the cells are the levels of several columns: how many each has. One column if left out.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.Dirichlet(1).update(tb.Counts([3, 0, 1])).mean().round(4)
    array([0.5714, 0.1429, 0.2857])
    """

    concentration: np.ndarray
    sizes: tuple[int, ...] | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # arrays are made of whatever is given

        def __init__(self, concentration: npt.ArrayLike, *, sizes: tuple[int, ...] | None = None) -> None: ...

    def __post_init__(self) -> None:
        self._set(concentration=self.concentration)
        self._allow_limits("concentration")
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
            if self.concentration.ndim == 0 or sum(self.sizes) != self.concentration.shape[-1]:
                raise PriorError.wrong_shape("Dirichlet", self.concentration.shape, (sum(self.sizes),))

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, strength: npt.ArrayLike) -> Dirichlet:
        """The Dirichlet with this mean, worth `strength` observations.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.Dirichlet.from_mean([0.5, 0.25, 0.25], 8)
        Dirichlet([4., 2., 2.])
        """
        mean = np.asarray(mean, dtype=float)
        if mean.ndim == 0 or not np.allclose(mean.sum(axis=-1), 1.0):
            raise PriorError(f"Dirichlet.from_mean needs probabilities that sum to 1, found {mean}.")
        found = cls(mean * np.asarray(strength, dtype=float)[..., None])
        found._require_positive("concentration")
        return found

    @property
    def segments(self) -> Segments:
        """How the cells fall into columns."""
        return Segments([self._known().shape[-1]] if self.sizes is None else self.sizes)

    def _known(self) -> np.ndarray:
        """The concentrations, where the number of levels is known."""
        if self.concentration.ndim == 0:
            raise PriorError(
                f"{self!r} stands for any number of levels, so it has no mean, mode or density yet.\n"
                "    Give one number per level, as in tb.Dirichlet([1, 1, 1]), or update it with statistics."
            )
        return np.asarray(self.concentration)

    def _fit(self, statistics: Counts | Totals) -> tuple[np.ndarray, np.ndarray, Segments]:
        """Concentrations and counts of one shape, and the columns they fall into."""
        if isinstance(statistics, Counts):
            table, segments = statistics.table, statistics.segments
        else:
            table, segments = statistics.total, Segments([statistics.n_columns])
        return broadcast_prior("Dirichlet", self.concentration, table.shape), table, segments

    def update(self, statistics: Counts | Totals) -> Dirichlet:
        """Add the counts."""
        prior, table, segments = self._fit(statistics)
        sizes = None if segments.n_columns == 1 else tuple(segments.sizes.tolist())
        return Dirichlet(prior + table, sizes=sizes)

    def mean(self) -> Any:
        """E[θ_k] = α_k / Σα: add-α smoothing."""
        self._require_proper("mean")
        alpha, segments = self._known(), self.segments
        return alpha / segments.broadcast_to_cells(segments.sum(alpha))

    def variance(self) -> Any:
        """Var θ_k = m_k (1 − m_k) / (Σα + 1), m being the mean."""
        self._require_proper("variance")
        alpha, segments = self._known(), self.segments
        total = segments.broadcast_to_cells(segments.sum(alpha))
        return alpha / total * ((total - alpha) / total) / (total + 1)

    def mode(self) -> Any:
        """(α_k − 1) / Σ(α − 1), with α_k − 1 not below 0; shared equally by those α that are 1 where none exceeds it.

        If all are below 1 there is none: the density has no upper bound in several places.
        """
        self._require_proper("mode")
        alpha, segments = self._known(), self.segments
        if ((segments.max(alpha) < 1) & (segments.sizes > 1)).any():
            raise self._without_mode()
        return self.mode_or_boundary()

    def mode_or_boundary(self) -> Any:
        """The mode; if no α exceeds 1, all mass on the largest, shared equally where several are."""
        alpha, segments = self._known(), self.segments
        excess = np.maximum(alpha - 1, 0.0)
        total = segments.sum(excess)
        largest = (alpha == segments.broadcast_to_cells(segments.max(alpha))).astype(float)
        edge = largest / segments.broadcast_to_cells(segments.sum(largest))
        flat = segments.broadcast_to_cells(total == 0)
        return np.where(flat, edge, excess / np.where(flat, 1.0, segments.broadcast_to_cells(total)))

    def interval(self, mass: float = 0.95) -> Interval:
        """The equal-tailed credible interval of every θ_k, from its Beta marginal."""
        self._require_proper("interval")
        from scipy.special import betaincinv

        alpha, segments = self._known(), self.segments
        rest = segments.broadcast_to_cells(segments.sum(alpha)) - alpha
        alone = rest <= 0  # a column with a single level: its probability is 1
        ends = (betaincinv(alpha, np.where(alone, 1.0, rest), tail) for tail in tail_probabilities(mass))
        return Interval(*(np.where(alone, 1.0, end) for end in ends))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Probabilities θ drawn from this belief; those of one column sum to 1."""
        self._require_proper("sample")
        alpha, segments = self._known(), self.segments
        rng = np.random.default_rng(random_state)
        shape = as_size(n) + alpha.shape
        # Gamma(α) = Gamma(α + 1) · U^(1/α), in logarithms, so that small α do not underflow to 0 / 0.
        log_draw = np.log(rng.standard_gamma(alpha + 1, shape)) + np.log(rng.random(shape)) / alpha
        draw = np.exp(log_draw - segments.broadcast_to_cells(segments.max(log_draw)))
        return draw / segments.broadcast_to_cells(segments.sum(draw))

    def log_prob(self, parameter: npt.ArrayLike) -> Any:
        """log p(θ) per group and column, −inf where θ is no distribution."""
        self._require_proper("log_prob")
        alpha, segments = self._known(), self.segments
        theta = np.asarray(parameter, dtype=float)
        inside = (np.abs(segments.sum(theta) - 1) < 1e-9) & (segments.sum((theta < 0).astype(float)) == 0)
        density = segments.sum(xlogy(alpha - 1, np.maximum(theta, 0.0)) - gammaln(alpha)) + gammaln(segments.sum(alpha))
        known = np.where(inside, density, -np.inf)
        return _one_column(np.where(segments.sizes == 0, 0.0, known))  # nothing to know about a column without levels

    def log_evidence(self, statistics: Counts | Totals) -> Any:
        """log of the Dirichlet–multinomial marginal likelihood of the sequence, per group and column.

        For `Multinomial` statistics the coefficients of the rows are included.
        """
        self._require_proper("log_evidence")
        prior, table, segments = self._fit(statistics)
        evidence = log_rising_shares(prior, table, segments)
        if isinstance(statistics, Totals):
            evidence = evidence + statistics.log_base_measure.sum(axis=-1, keepdims=True)
        return _one_column(evidence)

    def mode_matched(self) -> Dirichlet:
        """Dirichlet(α + 1): its posterior mode is the posterior mean under this one, add-α smoothing."""
        return Dirichlet(self.concentration + 1, sizes=self.sizes)

    def scaled(self, factor: float) -> Dirichlet:
        """The same expectations, worth `factor` times as many observations."""
        return Dirichlet(self.concentration * factor, sizes=self.sizes)

    def column(self, index: int) -> Dirichlet:
        """The belief about one column."""
        return Dirichlet(self.segments.split(self._known())[index])


def _one_column(values: np.ndarray) -> Any:
    """Without the column axis where there is only one column."""
    return as_float(values[..., 0] if values.shape[-1] == 1 else values)
