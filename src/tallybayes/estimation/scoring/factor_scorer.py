"""Scoring: log p(row | class) of every class, from the parameters of every factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import EstimateError, LabelError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families._shared.log_prob_forms import (
    CellSumForm,
    Form,
    LinearLogForm,
    MultivariateNormalForm,
    NormalForm,
    StudentTForm,
    as_cells,
    form_of,
)
from tallybayes.families.estimates import estimate_parameters, read_estimate
from tallybayes.families.family import Family
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name

NO_COLUMNS = np.zeros(0, dtype=np.intp)  # positions of no column
_CELLS = 4_000_000  # cells of a chunk's largest array: rows are scored in chunks, so that memory does not grow


class FactorScorer(NamedTuple):
    """One factor ready to score: plug-in parameters, or the posterior whose predictive is used."""

    factor: Factor
    parameters: Any
    predictive: bool
    constant: np.ndarray  # positions of columns without any spread, which say nothing

    @property
    def family(self) -> Family:
        """The family of the factor."""
        return self.factor.family

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """log p of every cell or row of a chunk: (n, classes, columns), or (n, classes) for whole rows."""
        score = self.family.log_predictive if self.predictive else self.family.log_prob
        return score(self.parameters, self._varied(rows))

    @property
    def point(self) -> Any:
        """The parameters; of a posterior, their mean."""
        return self.family.parameters_from(self.parameters, "mean") if self.predictive else self.parameters

    @property
    def display_parameters(self) -> Any:
        """The parameters as they are told of: columns that are the same in every row have no spread."""
        return self.family.remove_unit_variance(self.point, self.constant) if len(self.constant) else self.point

    @property
    def form(self) -> Form | None:
        """What the log probability looks like, constant columns left out; None where its family says nothing."""
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
        """The log probability as a sum over cells, by which sparse rows are scored; None where there is none."""
        return as_cells(self.form)

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """What every column adds to the log probability of each class: (n, classes, columns)."""
        if self.family.columnwise:
            return self.log_prob(rows)
        return self.family.column_contributions(self.parameters, self._varied(rows), self.predictive)

    def _varied(self, rows: np.ndarray) -> np.ndarray:
        """Rows whose cells in constant columns are missing, so that they add nothing."""
        if len(self.constant):
            rows = rows.astype(np.float64)  # a copy, in which whole numbers can be missing too
            rows[:, self.constant] = np.nan
        return rows

    def describe(self, column: int) -> dict[str, np.ndarray]:
        """The parameters behind one column's numbers, by name, a number for every class."""
        return {name: part[:, column] for name, part in self.family.named_parameters(self.parameters).items()}


class ResolvedPrior(NamedTuple):
    """What a factor starts from, found from all rows; cross-validation holds it while rows come and go."""

    prior: Any  # a belief; None where the estimate needs none
    constant: np.ndarray  # positions of columns without any spread


def resolve_prior(factor: Factor, statistics: Any, prior: Any, estimate: str) -> ResolvedPrior:
    """The belief a factor starts from; columns without any spread get a unit of it."""
    constant = np.zeros(0, dtype=np.intp)
    family = factor.family
    if prior is None or isinstance(prior, str):  # both look at the spread
        constant = family.constant_columns(statistics)
        statistics = family.add_unit_variance(statistics, constant)
    return ResolvedPrior(family.resolve_prior(prior, statistics, estimate), constant)


def make_factor_scorer(
    factor: Factor,
    statistics: Any,
    resolved: ResolvedPrior,
    estimate: str,
    *,
    plug_in: bool = False,
) -> FactorScorer:
    """The parameters, or the posterior, that score one factor; `plug_in` takes parameters under every estimate."""
    family, (belief, constant) = factor.family, resolved
    statistics = family.add_unit_variance(statistics, constant) if len(constant) else statistics
    if read_estimate(estimate).integrates and not plug_in:
        return FactorScorer(factor, belief.update(statistics), True, constant)
    return FactorScorer(factor, estimate_parameters(family, belief, statistics, estimate), False, constant)


def check_nonzero_variance(scored: FactorScorer, statistics: Any, groups: Sequence[Any]) -> None:
    """Under maximum likelihood, a group without spread has no density: say which."""
    lost = None if scored.predictive else scored.family.first_degenerate_group(scored.parameters, statistics)
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
    """The classes and columns whose point estimate has no row to go by."""
    if scored.predictive:
        return []
    lost = scored.family.is_undefined(scored.parameters)
    return [(int(code), scored.factor.column(int(place), lost.shape[-1])) for code, place in np.argwhere(lost)]


def factor_cells(table: Table, names: Sequence[Name], family: Family, domains: Sequence[Domain], unseen: str) -> Any:
    """The cells of one factor, ready for `FactorScorer.log_prob`: numbers, or codes of the model's own levels."""
    if family.cell_type == "codes":
        return _codes(table, names, domains, unseen)
    block = table.numbers(names)
    if isinstance(block, SparseRows):
        return block
    return block if isinstance(block, np.ndarray) else list(block)


def _codes(table: Table, names: Sequence[Name], domains: Sequence[Domain], unseen: str) -> np.ndarray:
    """Codes of known levels; −1 for missing cells and, by default, for unseen ones; one past the end for "smooth"."""
    codes, found = table.levels(names, lambda _: False)
    out = np.full((table.n_rows, len(names)), -1, dtype=np.int64)
    for place, (local, known) in enumerate(zip(found, domains, strict=True)):
        column = np.asarray(codes.columns[:, place] if isinstance(codes.columns, np.ndarray) else codes.columns[place])
        where = map_to_known_levels(column, local, known, names[place], unseen)
        out[:, place] = np.append(where, -1)[column.astype(np.intp)]
    return out


def map_to_known_levels(column: np.ndarray, local: Domain, known: Domain, name: Name, unseen: str) -> np.ndarray:
    """Where a batch's own levels are among the model's: −1 for missing, one past the end for "smooth"."""
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


def chunk_of(rows: Any, part: slice) -> np.ndarray:
    """Some rows of a factor's cells as one array."""
    if isinstance(rows, SparseRows):
        return rows.dense(part)
    if isinstance(rows, list):
        return np.stack([column[part] for column in rows], axis=-1).astype(np.float64)
    return rows[part] if rows.dtype.kind == "i" else np.asarray(rows[part], dtype=np.float64)


def chunk_rows(n_classes: int, n_columns: int) -> int:
    """How many rows to score at a time."""
    return max(1, _CELLS // max(1, n_classes * n_columns))
