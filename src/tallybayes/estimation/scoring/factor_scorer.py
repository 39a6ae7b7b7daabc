"""FactorScorer: log p(cells of a factor | class) for every class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import EstimateError, LabelError
from tallybayes.families._shared.blocks import Dense, SparseRows
from tallybayes.families._shared.log_prob_forms import (
    CellSumForm,
    Form,
    LinearLogForm,
    MultivariateNormalForm,
    NormalForm,
    StudentTForm,
    as_cells,
)
from tallybayes.families.estimates import estimate_parameters, read_estimate
from tallybayes.families.family import Family
from tallybayes.families.protocols.degenerate_estimates import (
    add_unit_variance,
    constant_columns,
    first_degenerate_group,
    is_undefined,
    remove_unit_variance,
)
from tallybayes.families.protocols.display import column_contributions, named_parameters
from tallybayes.families.protocols.scoring_forms import form_of
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Prior

NO_COLUMNS = np.zeros(0, dtype=np.intp)  # positions of no column
Cells = Dense | SparseRows  # of one factor: one array, one per column, or sparse rows
_CELLS = 4_000_000  # cells of the largest array of a chunk: rows are scored in chunks, so that memory is bounded


class FactorScorer(NamedTuple):
    """One factor ready to score rows.

    Point estimates of its parameters, or the posterior for its predictive distribution.
    """

    factor: Factor
    parameters: Any
    predictive: bool = False
    constant: np.ndarray = NO_COLUMNS  # positions of columns of zero variance, which do not change any score

    @property
    def family(self) -> Family:
        """The family of the factor."""
        return self.factor.family

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """Return log p of every cell or row of a chunk.

        (n, classes, columns), or (n, classes) for families of whole rows.
        """
        score = self.family.log_predictive if self.predictive else self.family.log_prob
        return score(self.parameters, self.varying(rows))

    def with_parameters(self, parameters: Any) -> FactorScorer:
        """Return a scorer with other parameters of the factor."""
        return self._replace(parameters=parameters, predictive=False)

    @property
    def point(self) -> Any:
        """The parameters; of a posterior, their mean."""
        return self.family.parameters_from(self.parameters, "mean") if self.predictive else self.parameters

    @property
    def display_parameters(self) -> Any:
        """The parameters for display: constant columns have variance zero."""
        return remove_unit_variance(self.family, self.point, self.constant) if len(self.constant) else self.point

    @property
    def form(self) -> Form | None:
        """The form of the log probability without constant columns; None if the family defines none."""
        form = form_of(self.family, self.parameters, self.predictive)
        if not len(self.constant) or form is None:
            return form
        return (
            form.without_columns(self.constant)
            if isinstance(form, LinearLogForm | NormalForm | StudentTForm | MultivariateNormalForm)
            else None
        )

    @property
    def cells(self) -> CellSumForm | None:
        """The log probability as a sum over cells, which scores sparse rows; None if there is none."""
        return as_cells(self.form)

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """Return the contribution of every column to the log probability of each class: (n, classes, columns)."""
        if self.family.columnwise:
            return self.log_prob(rows)
        return column_contributions(self.family, self.parameters, self.varying(rows))

    def varying(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in which the cells of constant columns are missing, so that they add zero."""
        if len(self.constant):
            rows = rows.astype(np.float64)  # a copy; float64, so that integers can be missing, too
            rows[:, self.constant] = np.nan
        return rows

    def describe(self, column: int) -> dict[str, np.ndarray]:
        """Return the parameters of one column by name, a number for every class."""
        return {name: part[:, column] for name, part in named_parameters(self.family, self.parameters).items()}


class ResolvedPrior(NamedTuple):
    """The prior of a factor, resolved from all rows; cross-validation keeps it fixed."""

    prior: Any  # a ParameterDistribution; None if the estimate uses no prior
    constant: np.ndarray  # positions of columns of zero variance


def resolve_prior(factor: Factor, statistics: Statistics, prior: Prior, estimate: str) -> ResolvedPrior:
    """Return the prior of a factor as a distribution; constant columns get unit variance."""
    constant = np.zeros(0, dtype=np.intp)
    family = factor.family
    if prior is None or isinstance(prior, str):  # these depend on the variance
        constant = constant_columns(family, statistics)
        statistics = add_unit_variance(family, statistics, constant)
    return ResolvedPrior(family.resolve_prior(prior, statistics, estimate), constant)


def make_factor_scorer(
    factor: Factor,
    statistics: Statistics,
    resolved: ResolvedPrior,
    estimate: str,
    *,
    plug_in: bool = False,
) -> FactorScorer:
    """Return the scorer of one factor: its posterior or, with `plug_in` or a point estimate, its parameters."""
    family, (belief, constant) = factor.family, resolved
    statistics = add_unit_variance(family, statistics, constant) if len(constant) else statistics
    if read_estimate(estimate).integrates and not plug_in:
        return FactorScorer(factor, belief.update(statistics), True, constant)
    return FactorScorer(factor, estimate_parameters(family, belief, statistics, estimate), False, constant)


def check_nonzero_variance(scored: FactorScorer, statistics: Any, groups: Sequence[Any]) -> None:
    """Raise EstimateError if a group has zero variance, and so no density, in point estimates."""
    lost = first_degenerate_group(scored.family, scored.parameters, statistics)
    if lost is None:
        return
    group, column = lost
    where = "all classes together" if group is None else f"class {groups[group]!r}"
    if column is None:
        rows = statistics.weight[:, 0].sum() if group is None else statistics.weight[group, 0]
        raise EstimateError.singular(where, float(rows), statistics.n_columns)
    last = scored.family.is_conditional and len(scored.factor.columns) == 1
    name = scored.factor.columns[0] if last else scored.factor.column(column, statistics.n_columns)
    raise EstimateError.zero_variance(f"column {name!r} in {where}")


def undefined_parameters(scored: FactorScorer) -> list[tuple[int, Any]]:
    """Return the (class, column) pairs whose point estimate has no rows."""
    if scored.predictive:
        return []
    lost = is_undefined(scored.parameters)
    return [(int(code), scored.factor.column(int(place), lost.shape[-1])) for code, place in np.argwhere(lost)]


def factor_cells(table: Table, names: Sequence[Name], family: Family, domains: Sequence[Domain], unseen: str) -> Any:
    """Return the cells of one factor, ready for `FactorScorer.log_prob`: numbers, or codes of the model's levels."""
    if family.cell_type == "codes":
        return _codes(table, names, domains, unseen)
    block = table.numbers(names)
    if isinstance(block, SparseRows):
        return block
    return block if isinstance(block, np.ndarray) else list(block)


def _codes(table: Table, names: Sequence[Name], domains: Sequence[Domain], unseen: str) -> np.ndarray:
    """Return codes of known levels; −1 for missing cells and, by default, for unseen levels.

    One past the end for "smooth".
    """
    codes, found = table.levels(names)
    out = np.full((table.n_rows, len(names)), -1, dtype=np.int64)
    for place, (local, known) in enumerate(zip(found, domains, strict=True)):
        column = np.asarray(codes.columns[:, place] if isinstance(codes.columns, np.ndarray) else codes.columns[place])
        if local is known and column.dtype.kind == "i":  # encoded in the levels of the model
            out[:, place] = column
            continue
        where = map_to_known_levels(column, local, known, names[place], unseen)
        out[:, place] = np.append(where, -1)[column.astype(np.intp)]
    return out


def map_to_known_levels(column: np.ndarray, local: Domain, known: Domain, name: Name, unseen: str) -> np.ndarray:
    """Return the positions of a batch's levels among the model's; −1 for missing, one past the end for "smooth"."""
    local = local.in_kind_of(known.renamed(str(name)))
    where = known.positions_of(local.levels)
    strange = where < 0
    if not strange.any() or unseen == "missing":
        return where
    if unseen == "smooth":
        return np.where(strange, len(known.levels), where)
    used = np.zeros(len(where) + 1, dtype=bool)
    used[column.astype(np.intp)] = True
    if (used[:-1] & strange).any():
        level = local.levels[int(np.flatnonzero(used[:-1] & strange)[0])]
        raise LabelError.unseen(level, str(name), known.levels)
    return where


def chunk_of(rows: Cells, part: slice | np.ndarray) -> np.ndarray:
    """Return some rows of a factor's cells as one array."""
    if isinstance(rows, SparseRows):
        return rows.dense(part)
    if not isinstance(rows, np.ndarray):
        return np.stack([column[part] for column in rows], axis=-1).astype(np.float64)
    return rows[part] if rows.dtype.kind == "i" else np.asarray(rows[part], dtype=np.float64)


def chunk_rows(n_classes: int, n_columns: int) -> int:
    """Return the number of rows to score at a time."""
    return max(1, _CELLS // max(1, n_classes * n_columns))
