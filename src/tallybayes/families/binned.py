"""Binned: a measured column cut into bins, with any shape of distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from tallybayes import kernels
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, Dense, SparseRows, dense, first_infinite_cell, n_columns
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families._shared.log_prob_forms import LogTableForm
from tallybayes.families._shared.sql_aggregates import BinIndex, Expression
from tallybayes.families.categorical import LevelFamily, LevelProbabilities
from tallybayes.statistics.counts import Counts

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

# Up to so many cuts, values are compared with all of them, if they are many: no branch is ever guessed wrong.
_FEW_CUTS, _FEW_VALUES = 32, 2000


@dataclass(frozen=True, eq=False, repr=False)
class Binned(LevelFamily):
    """A measured column cut at given edges: any distribution, as a histogram. p(x) = θ_k / width_k in bin k.

    The bins are [e₀, e₁), [e₁, e₂), … with the last one closed. A value beyond the outer edges is read as lying on the
    edge, so it counts in the outermost bin. Probabilities and evidence are densities of x itself, the same everywhere
    within a bin, so they compare with those of `Gaussian` on the same column.

    An outer bin may be open, its end None: it holds all there is below, or from there on. Its density is that of a bin
    three times as wide as its neighbor (of width 1 if that is open too), so that values lie about as far out on the
    average as those of an exponential tail. What is said of the classes does not depend on widths.

    Parameters
    ----------
    edges : tuple of numbers, increasing
        The outer ones included: one more than there are bins. None, or an infinity, as the first or last leaves the
        outer bin open.

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
        try:
            plain = [edge.item() if isinstance(edge, np.generic) else edge for edge in self.edges]
            opened = [bool(plain) and plain[0] in (None, -np.inf), bool(plain) and plain[-1] in (None, np.inf)]
            cuts = np.array(plain[opened[0] : len(plain) - opened[1]], dtype=np.float64)
        except (TypeError, ValueError):
            self._refuse()
        rising = cuts.ndim == 1 and len(cuts) > 0 and np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()
        if not rising or len(plain) < 2:
            self._refuse()
        plain[0], plain[-1] = (
            None if is_open else end for is_open, end in zip(opened, plain[:: len(plain) - 1], strict=True)
        )
        object.__setattr__(self, "edges", tuple(plain))

    def _refuse(self) -> NoReturn:
        raise DataError.wrong_type(
            "edges of Binned",
            repr(self.edges),
            "finite numbers, each larger than the one before, at least 2",
            "Name the outer edges too, as in tb.Binned((0, 18, 65, 120)), or None to leave an outer bin open.",
        )

    @property
    def ends(self) -> np.ndarray:
        """Where every bin begins and ends, all finite: an open one is three times as wide as its neighbor."""
        finite = [edge for edge in self.edges if edge is not None]
        known = np.array(finite, dtype=np.float64)
        # Where quantiles cut an exponential tail of scale s, the last bin but one has width s·log 2, and values in the
        # last lie s beyond its edge on the average: 1.44 widths, the middle of a bin of about three.
        width = (3 * (known[1] - known[0]), 3 * (known[-1] - known[-2])) if len(known) > 1 else (1.0, 1.0)
        below = known[:1] - width[0] if self.edges[0] is None else known[:0]
        above = known[-1:] + width[1] if self.edges[-1] is None else known[:0]
        return np.concatenate([below, known, above])

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Other edges, other statistics."""
        return ("Binned", *(None if edge is None else float(edge) for edge in self.edges))

    @property
    def bins(self) -> tuple[str, ...]:  # type: ignore[override]
        """The bins, as shown."""
        names = ["" if edge is None else f"{edge:.6g}" for edge in self.edges]
        shown = [f"[{low}, {high})" for low, high in pairwise(names)]
        shown[0] = shown[0] if names[0] else f"below {names[1]}"
        shown[-1] = f"{shown[-1][:-1]}]" if names[-1] else f"{names[-2]} and more"
        return tuple(shown)

    @property
    def widths(self) -> np.ndarray:
        """The width of every bin."""
        return np.diff(self.ends)

    @property
    def open_bins(self) -> Sequence[tuple[tuple[float, float], float]]:  # type: ignore[override]
        """The stretches of the open bins, with the width that they are taken to have."""
        ends, found = self.ends.tolist(), []
        if self.edges[0] is None:
            found.append(((-np.inf, ends[1]), ends[1] - ends[0]))
        if self.edges[-1] is None:
            found.append(((ends[-2], np.inf), ends[-1] - ends[-2]))
        return found

    def codes(self, x: np.ndarray) -> np.ndarray:
        """The bin of every value: −1 where it is missing, one past the last where it is infinite, which counts nowhere.

        Parameters
        ----------
        x : array of any shape

        Returns
        -------
        ndarray of int of the same shape
        """
        values = np.ascontiguousarray(x, dtype=np.float64).reshape(np.shape(x))
        cuts = np.array(self.edges[1:-1], dtype=np.float64)
        if len(cuts) > _FEW_CUTS or values.size < _FEW_VALUES:
            codes = np.searchsorted(cuts, values, side="right")
        else:
            count = np.zeros(values.shape, dtype=np.uint8)
            for cut in cuts:
                count += values >= cut
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
        """Count every bin of every column."""
        codes = self.transform(dense(block, "Binned"))
        sizes = np.full(n_columns(codes), len(self.edges) - 1)
        return Counts(kernels.count_codes(codes, sizes, group, n_groups, weight), sizes)

    def sql_group_expression(self, column: Expression) -> Expression:
        """The bin."""
        return BinIndex(column, tuple(float(cut) for cut in self.edges[1:-1] if cut is not None))

    sql_expression = sql_group_expression

    def sql_group_value(self, groups: np.ndarray) -> np.ndarray:
        """The middle of a bin."""
        ends = self.ends
        return np.asarray(((ends[:-1] + ends[1:]) / 2)[groups.astype(np.intp)])

    def transform(self, columns: Dense) -> Dense:
        """The numbers of the bins."""
        return self.codes(columns) if isinstance(columns, np.ndarray) else [self.codes(column) for column in columns]

    def mean(self, parameters: Any) -> np.ndarray:
        """E[x] = Σ θ_k (middle of bin k)."""
        found = (
            self.parameters_from(parameters, "mean") if isinstance(parameters, ParameterDistribution) else parameters
        )
        ends = self.ends
        middles = np.tile((ends[:-1] + ends[1:]) / 2, found.segments.n_columns)
        return np.asarray(found.segments.sum(found.table * middles))

    def log_likelihood(self, parameters: LevelProbabilities, statistics: Counts) -> np.ndarray:
        """Σ n_k log(θ_k / width_k), per group and column."""
        return super().log_likelihood(parameters, statistics) + self._log_base(statistics)

    def _log_base(self, statistics: Counts) -> np.ndarray:
        """−Σ n_k log width_k, per group and column: what turns the probability of a bin into a density of x."""
        log_widths = np.tile(np.log(self.widths), statistics.segments.n_columns)
        return statistics.segments.sum(-statistics.table * log_widths)

    def log_evidence(self, belief: ParameterDistribution, statistics: Counts) -> Any:
        """log p(x) of all rows: that of their bins, less the logarithms of the widths."""
        evidence = super().log_evidence(belief, statistics)
        if not isinstance(belief, Dirichlet):
            return evidence
        return evidence + self._log_base(statistics).reshape(np.shape(evidence))

    def log_prob(self, parameters: LevelProbabilities, x: np.ndarray) -> np.ndarray:
        """log(θ_k / width_k) of every cell's bin."""
        return self.log_prob_form(parameters).evaluate(np.minimum(self.codes(x), len(self.widths) - 1))

    def log_prob_form(self, parameters: LevelProbabilities) -> LogTableForm:
        """The logs of θ over the widths."""
        table = self.table(parameters)
        return LogTableForm(table.log_p - np.tile(np.log(self.widths), table.segments.n_columns), table.segments)

    def log_predictive_form(self, posterior: Dirichlet) -> LogTableForm:
        """As `form`, with θ at its posterior mean."""
        return self.log_prob_form(self.parameters_from(posterior, "mean"))

    def first_invalid_cell(self, rows: Any) -> tuple[int, int] | None:
        """The first that is infinite."""
        return super().first_invalid_cell(rows) if isinstance(rows, SparseRows) else first_infinite_cell(rows)

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
        """Shares of what is left."""
        levels, codes = self.level_counts(counted), self.codes(np.asarray(rows.cells))
        widths = np.where(codes < 0, 1.0, self.widths[np.minimum(codes, len(self.widths) - 1)])
        return None if levels is None else levels.left_out(codes, rows) - np.log(widths).sum(axis=1, keepdims=True)

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Log densities."""
        levels = self.level_counts(counted)
        widths = np.tile(self.widths, counted.statistics.n_columns)
        return None if levels is None else (levels.table() - np.log(widths)[:, None],)

    def plot_grid(self, parameters: Any, column: int) -> np.ndarray:
        """Both ends of every bin."""
        grid = np.repeat(self.ends, 2)[1:-1]
        grid[1::2] = np.nextafter(grid[1::2], -np.inf)  # just before the edge, so that a bin ends as it began
        return grid

    def cdf(self, parameters: LevelProbabilities, x: np.ndarray) -> np.ndarray:
        """All bins below, and of its own bin the share that lies below: an open one ends where it is taken to."""
        ends, found = self.ends, []
        for place, column in enumerate(parameters.segments.split(parameters.table)):
            upto = np.concatenate([np.zeros((*column.shape[:-1], 1)), np.cumsum(column, axis=-1)], axis=-1)
            codes = np.clip(np.searchsorted(ends, x[:, place], side="right") - 1, 0, len(ends) - 2)
            share = np.clip((x[:, place] - ends[codes]) / self.widths[codes], 0.0, 1.0)
            found.append(np.moveaxis(upto[..., codes] + column[..., codes] * share, -1, 0))
        return np.stack(found, axis=-1)

    def sample(self, parameters: LevelProbabilities, n: int, rng: np.random.Generator) -> np.ndarray:
        """Values, anywhere in their bin with equal probability."""
        codes = super().sample(parameters, n, rng)
        return np.asarray(self.ends[:-1][codes] + self.widths[codes] * rng.random(codes.shape))
