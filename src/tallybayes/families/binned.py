"""Binned: a continuous column discretized into bins (a histogram density)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes import kernels
from tallybayes._utils.frozen_value import frozen_array
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, dense, n_columns, per_column
from tallybayes.families._shared.log_prob_forms import LogTableForm
from tallybayes.families.categorical import LevelFamily, LevelProbabilities
from tallybayes.families.family import Parameters
from tallybayes.statistics.counts import Counts

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

# With few edges and many values, comparing with every edge is faster than binary search (no mispredicted branches).
_FEW_EDGES, _FEW_VALUES = 32, 2000


@dataclass(frozen=True, eq=False, repr=False)
class Binned(LevelFamily):
    """A continuous column discretized at given edges: a histogram density, p(x) = θ_k / width_k in bin k.

    The bins are [e₀, e₁), [e₁, e₂), …; the last one is closed. Values beyond the outer edges count in the outermost
    bins. Probabilities and marginal likelihoods are densities of x, constant within a bin, so they are comparable with
    those of `Gaussian` on the same column.

    An outer bin may be unbounded (edge None). Its density is that of a bin three times as wide as its neighbor (of
    width 1 if that is unbounded too), which matches the mean excess of an exponential tail. Class probabilities do not
    depend on widths.

    Parameters
    ----------
    edges : tuple of numbers, increasing
        Bin edges including the outer ones: one more than the number of bins. None or an infinity as the first or last
        edge makes the outer bin unbounded.

    Examples
    --------
    >>> import tallybayes as tb
    >>> ages = tb.fit_distribution([3, 7, 15, 30, 41, 80], tb.Binned((0, 18, 40, 120)))
    >>> ages.estimate("mle")
    {'[0, 18)': 0.5, '[18, 40)': 0.16666666666666666, '[40, 120]': 0.3333333333333333}
    >>> tb.Binned((None, 18, 40, None)).bins
    ('below 18', '[18, 40)', '40 and more')
    """

    edges: tuple[float | None, ...]

    is_continuous: ClassVar[bool] = True
    transforms: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (or missing)"

    def __post_init__(self) -> None:
        edges: list[Any] = []
        finite = np.zeros(0)
        with contextlib.suppress(TypeError, ValueError):  # not numbers, or fewer than two
            first, *inner, last = (edge.item() if isinstance(edge, np.generic) else edge for edge in self.edges)
            edges = [None if first == -np.inf else first, *inner, None if last == np.inf else last]
            n_edges = len(edges) - (edges[-1] is None)
            finite = np.array(edges[edges[0] is None : n_edges], dtype=np.float64)
        if not (finite.ndim == 1 and len(finite) and np.isfinite(finite).all() and (finite[1:] > finite[:-1]).all()):
            raise DataError.wrong_type(
                "edges of Binned",
                repr(self.edges),
                "finite numbers, each larger than the one before, at least 2",
                "Include the outer edges, as in tb.Binned((0, 18, 65, 120)), or None for an unbounded outer bin.",
            )
        object.__setattr__(self, "edges", tuple(edges))

    @cached_property
    def ends(self) -> np.ndarray:
        """Return the finite ends of the bins; an unbounded bin is three times as wide as its neighbor."""
        finite = [edge for edge in self.edges if edge is not None]
        known = np.array(finite, dtype=np.float64)
        # Equal-mass bins of an exponential tail of scale s: the last bounded bin has width s·log 2, and values in the
        # last bin exceed its edge by s on average, 1.44 widths: the middle of a bin of about three widths.
        width = (3 * (known[1] - known[0]), 3 * (known[-1] - known[-2])) if len(known) > 1 else (1.0, 1.0)
        below = known[:1] - width[0] if self.edges[0] is None else known[:0]
        above = known[-1:] + width[1] if self.edges[-1] is None else known[:0]
        return frozen_array(np.concatenate([below, known, above]))

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics, which depend on the edges."""
        return ("Binned", *(None if edge is None else float(edge) for edge in self.edges))

    @property
    def bins(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the names of the bins."""
        names = ["" if edge is None else f"{edge:.6g}" for edge in self.edges]
        intervals = [f"[{low}, {high})" for low, high in pairwise(names)]
        intervals[0] = intervals[0] if names[0] else f"below {names[1]}"
        intervals[-1] = f"{intervals[-1][:-1]}]" if names[-1] else f"{names[-2]} and more"
        return tuple(intervals)

    @property
    def widths(self) -> np.ndarray:
        """Return the width of every bin."""
        ends = self.ends
        return np.asarray(ends[1:] - ends[:-1])

    @property
    def open_bins(self) -> Sequence[tuple[tuple[float, float], float]]:  # type: ignore[override]
        """Return the intervals of the unbounded bins with their nominal widths."""
        ends, intervals = self.ends.tolist(), []
        if self.edges[0] is None:
            intervals.append(((-np.inf, ends[1]), ends[1] - ends[0]))
        if self.edges[-1] is None:
            intervals.append(((ends[-2], np.inf), ends[-1] - ends[-2]))
        return intervals

    def codes(self, x: np.ndarray) -> np.ndarray:
        """Return the bin of every value: −1 if missing, the number of bins if infinite (not counted).

        Parameters
        ----------
        x : array of any shape

        Returns
        -------
        ndarray of int of the same shape
        """
        values = np.ascontiguousarray(x, dtype=np.float64).reshape(np.shape(x))
        inner = np.array(self.edges[1:-1], dtype=np.float64)
        if len(inner) > _FEW_EDGES or values.size < _FEW_VALUES:
            codes = np.searchsorted(inner, values, side="right")
        else:
            count = np.zeros(values.shape, dtype=np.uint8)
            for edge in inner:
                count += values >= edge
            codes = count.astype(np.intp)
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                return codes
        return np.where(np.isnan(values), -1, np.where(np.isinf(values), len(self.edges) - 1, codes))

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Counts:
        """Return the counts of every bin of every column."""
        codes = per_column(self.codes, dense(block, "Binned"))
        sizes = np.full(n_columns(codes), len(self.edges) - 1)
        return Counts(kernels.count_codes(codes, sizes, group, n_groups, weight), sizes)

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return E[x] = Σ θ_k · midpoint of bin k."""
        probabilities = self.point(parameters)
        ends = self.ends
        midpoints = np.tile((ends[:-1] + ends[1:]) / 2, probabilities.segments.n_columns)
        return np.asarray(probabilities.segments.sum(probabilities.table * midpoints))

    def log_likelihood(self, parameters: LevelProbabilities, statistics: Counts) -> np.ndarray:
        """Return Σ n_k log(θ_k / width_k), per group and column."""
        return super().log_likelihood(parameters, statistics) + self._log_density_correction(statistics)

    def _log_density_correction(self, statistics: Counts) -> np.ndarray:
        """Return −Σ n_k log width_k per group and column: from bin probabilities to densities of x."""
        log_widths = np.tile(np.log(self.widths), statistics.segments.n_columns)
        return statistics.segments.sum(-statistics.table * log_widths)

    def log_evidence(self, prior: ParameterDistribution, statistics: Counts) -> Any:
        """Return the log evidence of the bin counts minus Σ n_k log width_k."""
        evidence = super().log_evidence(prior, statistics)
        if not isinstance(prior, Dirichlet):
            return evidence
        return evidence + self._log_density_correction(statistics).reshape(np.shape(evidence))

    def table(self, parameters: LevelProbabilities) -> LogTableForm:
        """Return the table of log(θ_k / width_k)."""
        table = super().table(parameters)
        return LogTableForm(table.log_p - np.tile(np.log(self.widths), table.segments.n_columns), table.segments)

    def log_prob(self, parameters: LevelProbabilities, x: np.ndarray) -> np.ndarray:
        """Return log(θ_k / width_k) of every cell's bin."""
        return self.table(parameters).evaluate(np.minimum(self.codes(x), len(self.widths) - 1))

    def sample(self, parameters: LevelProbabilities, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random values, uniform within their bins."""
        codes = super().sample(parameters, n, rng)
        return np.asarray(self.ends[:-1][codes] + self.widths[codes] * rng.random(codes.shape))
