"""Scoring: log p(row | class) of every class, from the parameters of every factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import CellError, EstimateError, LabelError
from tallybayes.families.binned import Binned
from tallybayes.families.block import Sparse
from tallybayes.families.categorical import Categorical, Probabilities
from tallybayes.families.estimates import estimate_parameters
from tallybayes.families.family import Family
from tallybayes.families.form import Cells, form_of
from tallybayes.families.gaussian import Gaussian, pooled_spread
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.sources.table import Table
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name

_CELLS = 4_000_000  # cells of a chunk's largest array: rows are scored in chunks, so that memory does not grow


class Scored(NamedTuple):
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
    def form(self) -> Cells | None:
        """The log probability as a sum over cells, by which sparse rows are scored; None where there is none."""
        return form_of(self.family, self.parameters, self.predictive)

    def contributions(self, rows: np.ndarray) -> np.ndarray:
        """What every column adds to the log probability of each class: (n, classes, columns)."""
        if self.family.columnwise:
            return self.log_prob(rows)
        return self.family.column_terms(self.parameters, self._varied(rows), self.predictive)

    def _varied(self, rows: np.ndarray) -> np.ndarray:
        """Rows whose cells in constant columns are missing, so that they add nothing."""
        if len(self.constant):
            rows = rows.astype(np.float64)  # a copy, in which whole numbers can be missing too
            rows[:, self.constant] = np.nan
        return rows

    def describe(self, column: int) -> dict[str, np.ndarray]:
        """The parameters behind one column's numbers, by name, a number for every class."""
        found = self.parameters
        if isinstance(self.family, Categorical | Binned):
            return {}  # the number itself is the log of a smoothed frequency
        if isinstance(self.family, Gaussian | LogNormal):
            shown = self.family.student(found) if self.predictive else found
            what = " of log" if isinstance(self.family, LogNormal) else ""
            shape = np.shape(shown[0])
            return {f"{name}{what}": np.broadcast_to(p, shape)[:, column] for name, p in shown._asdict().items()}
        return {"mean": self.family.expected(found)[:, column]}


class Resolved(NamedTuple):
    """What a factor starts from, found from all rows; cross-validation holds it while rows come and go."""

    prior: Any  # a belief; None where the estimate needs none
    constant: np.ndarray  # positions of columns without any spread


def resolve(factor: Factor, statistics: Any, prior: Any, estimate: str, smooth: bool = False) -> Resolved:
    """The belief a factor starts from; columns without any spread get a unit of it."""
    constant = np.zeros(0, dtype=np.intp)
    if smooth and isinstance(factor.family, Categorical):
        statistics = statistics.with_unseen()
    if isinstance(statistics, Moments) and (prior is None or isinstance(prior, str)):  # both look at the spread
        constant = np.flatnonzero(~(pooled_spread(statistics).spread > 0))
        statistics = with_spread(statistics, constant, factor.family)
    return Resolved(factor.family.prior(prior, statistics, estimate), constant)


def prepare(factor: Factor, statistics: Any, resolved: Resolved, estimate: str, smooth: bool = False) -> Scored:
    """The parameters, or the posterior, that score one factor; `smooth` gives every column one level more, unseen."""
    if smooth and isinstance(factor.family, Categorical):
        statistics = statistics.with_unseen()
    if len(resolved.constant):
        statistics = with_spread(statistics, resolved.constant, factor.family)
    if estimate != "bayes":
        parameters = estimate_parameters(factor.family, resolved.prior, statistics, estimate)
        return Scored(factor, parameters, False, resolved.constant)
    return Scored(factor, resolved.prior.update(statistics), True, resolved.constant)


def with_spread(statistics: Any, constant: np.ndarray, family: Family) -> Any:
    """Moments with a unit of spread put into columns that have none.

    Such a column is the same in every row, so it says nothing about the class and is left out of every score. Where the
    columns share one variance it gets no unit, which would count among theirs, unless no column has any spread.
    """
    shared = "columns" in getattr(family, "shared", ()) and len(constant) < statistics.n_columns
    if not len(constant) or shared:
        return statistics
    extra = np.zeros(statistics.n_columns)
    extra[constant] = 1.0
    return statistics.with_scatter(np.diag(extra) if statistics.full else extra)


def check_spread_within(scored: Scored, statistics: Any, classes: Sequence[Any]) -> None:
    """Under maximum likelihood, a class without spread in a column has no density: say which."""
    if scored.predictive:
        return
    if isinstance(scored.family, MultivariateGaussian):
        if "groups" in scored.family.shared:
            total = float(statistics.weight[:, 0].sum())
            if total > 0 and not scored.family.is_definite(
                np.asarray(scored.parameters.covariance)[int(statistics.weight[:, 0].argmax())]
            ):
                raise EstimateError.singular("all classes together", total, statistics.n_columns)
            return
        for code, label in enumerate(classes):
            weight = float(statistics.weight[code, 0])
            if weight > 0 and not scored.family.is_definite(np.asarray(scored.parameters.covariance)[code]):
                raise EstimateError.singular(f"class {label!r}", weight, statistics.n_columns)
        return
    if not isinstance(scored.family, Gaussian | LogNormal):
        return
    variance = np.asarray(scored.parameters.variance)
    flat = np.argwhere(~(variance > 0) & (statistics.weight > 0))
    if len(flat):
        row, column = (int(i) for i in flat[0])
        name = scored.factor.column(column, variance.shape[-1])
        raise EstimateError.zero_variance(f"column {name!r} in class {classes[row]!r}")


def not_estimated(scored: Scored) -> list[tuple[int, Any]]:
    """The classes and columns whose point estimate has no row to go by."""
    if scored.predictive:
        return []
    found = scored.parameters
    if isinstance(found, Probabilities):
        absent = [np.isnan(column).any(axis=-1) for column in found.segments.split(found.table)]
        lost = np.stack(absent, axis=-1)
    else:
        lost = np.isnan(found[0] if isinstance(found, tuple) else found)
    return [(int(code), scored.factor.column(int(place), lost.shape[-1])) for code, place in np.argwhere(lost)]


def wrong_cell(family: Family, rows: np.ndarray | Sparse) -> tuple[int, int] | None:
    """The first cell, as row and column, that could not have been counted either; codes of levels are all good."""
    if isinstance(family, Categorical):
        return None
    if not isinstance(rows, Sparse) and isinstance(
        family, Gaussian | MultivariateGaussian
    ):  # full covariances predict around missing cells
        infinite = np.isinf(rows)
        return tuple(np.argwhere(infinite)[0].tolist()) if infinite.any() else None
    try:
        family.collect(rows)
    except CellError as error:
        return error.row, error.column
    return None


def rows_of(table: Table, names: Sequence[Name], family: Family, domains: Sequence[Domain], unseen: str) -> Any:
    """The cells of one factor, ready for `Scored.log_prob`: numbers, or codes of the model's own levels."""
    if isinstance(family, Categorical):
        return _codes(table, names, domains, unseen)
    block = table.numbers(names)
    if isinstance(block, Sparse):
        return block
    return block if isinstance(block, np.ndarray) else list(block)


def _codes(table: Table, names: Sequence[Name], domains: Sequence[Domain], unseen: str) -> np.ndarray:
    """Codes of known levels; −1 for missing cells and, by default, for unseen ones; one past the end for "smooth"."""
    codes, found = table.levels(names, lambda _: False)
    out = np.full((table.n_rows, len(names)), -1, dtype=np.int64)
    for place, (local, known) in enumerate(zip(found, domains, strict=True)):
        column = np.asarray(codes.columns[:, place] if isinstance(codes.columns, np.ndarray) else codes.columns[place])
        where = local_positions(column, local, known, names[place], unseen)
        out[:, place] = np.append(where, -1)[column.astype(np.intp)]
    return out


def local_positions(column: np.ndarray, local: Domain, known: Domain, name: Name, unseen: str) -> np.ndarray:
    """Where a batch's own levels are among the model's: −1 for missing, one past the end for "smooth"."""
    if local.kind is not None and known.kind is not None and local.kind != known.kind:
        raise LabelError.kinds_differ(str(name), str(known.kind), str(local.kind))
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
    if isinstance(rows, Sparse):
        return rows.dense(part)
    if isinstance(rows, list):
        return np.stack([column[part] for column in rows], axis=-1).astype(np.float64)
    return rows[part] if rows.dtype.kind == "i" else np.asarray(rows[part], dtype=np.float64)


def chunk_rows(n_classes: int, n_columns: int) -> int:
    """How many rows to score at a time."""
    return max(1, _CELLS // max(1, n_classes * n_columns))
