"""Predictive: the posterior predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes.data.array_input import unmerged
from tallybayes.data.counting import numbers_of
from tallybayes.data.table import Table, open_table
from tallybayes.distributions.parameter_distribution import ParameterDistribution, as_float
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.scoring.factor_scorer import factor_cells
from tallybayes.families._shared.blocks import SparseRows, cell, n_columns
from tallybayes.families._shared.log_prob_forms import as_cells
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import first_invalid_cell
from tallybayes.families.protocols.scoring_forms import form_of
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Column, RandomState

if TYPE_CHECKING:
    from tallybayes.estimation.distribution_fit import FittedDistribution

VALUE = "value"


class Predictive:
    """The posterior predictive distribution of the next row. Returned by `FittedDistribution.predictive`.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> coin = tb.fit_distribution([1, 1], tb.Bernoulli())
    >>> np.exp(coin.predictive(tb.Beta(2, 2)).log_prob([1, 0])).round(4)
    array([0.6667, 0.3333])
    """

    def __init__(self, learned: FittedDistribution, posterior: ParameterDistribution) -> None:
        self._learned = learned
        self._posterior = posterior

    def log_prob(self, values: Column) -> Any:
        """Return log p(value | data) of every row: (n, groups, columns), without the axes that the data do not have.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, columns), or a single value

        Returns
        -------
        ndarray or float
        """
        learned = self._learned
        one = (np.ndim(values) == 0 and not hasattr(values, "__len__")) or isinstance(values, str)
        out = self._posterior_log_prob(self._rows([values] if one else values))
        if learned.single and learned.family.columnwise:
            out = out[..., 0]
        return as_float(out[0]) if one else out

    def _posterior_log_prob(self, rows: np.ndarray | SparseRows) -> np.ndarray:
        family = self._learned.family
        if isinstance(rows, SparseRows):
            cells = None if family.columnwise else as_cells(form_of(family, self._posterior, predictive=True))
            if cells is not None:
                return cells.score(rows)
            rows = rows.dense()  # every cell has a log probability
        scored = getattr(self._posterior, "log_predictive", None)  # hypotheses average their own predictions
        return np.asarray(scored(rows) if scored else family.log_predictive(self._posterior, rows))

    def _rows(self, values: Column) -> np.ndarray | SparseRows:
        learned = self._learned
        table = open_table(values)
        names = tuple(table.columns)
        wanted = learned.tally.factors[0].columns
        if learned.single and len(names) == 1:
            table = Table({VALUE: next(iter(table.columns.values()))})
            names = (VALUE,)
        elif all(isinstance(name, str) for name in (*names, *wanted)):
            names = wanted  # columns are found by their names, in any order
        if learned.family.cell_type == "codes":
            if len(names) != len(wanted):
                raise DataError.wrong_shape("values", (table.n_rows, len(names)), f"(rows, {len(wanted)})")
            return _recode(table, names, learned.family, [learned.tally.domains[str(name)] for name in wanted])
        block = numbers_of(table, names, learned.family)
        rows: np.ndarray | SparseRows
        if isinstance(block, SparseRows):
            rows = block
        else:
            rows = np.asarray(block if isinstance(block, np.ndarray) else np.stack(block, axis=-1), dtype=np.float64)
        expected = learned.statistics.n_columns
        if n_columns(rows) != expected:
            raise DataError.wrong_shape("values", (table.n_rows, n_columns(rows)), f"(rows, {expected})")
        _check_cells(learned.family, rows, wanted)
        return rows

    def sample(self, n: int, *, random_state: RandomState = None) -> np.ndarray:
        """Draw `n` rows, each with its own parameters drawn from the posterior.

        Parameters
        ----------
        n : int
        random_state : int, Generator or None
        """
        rng = random_generator(random_state)
        family = self._learned.family
        drawn = [
            family.sample(family.parameters_from(self._posterior, "sample", random_state=rng), 1, rng)[0]
            for _ in range(check_count("n", n, 0))
        ]
        rows = np.stack(drawn) if drawn else np.zeros((0,))
        if family.cell_type == "codes" and drawn:
            rows = self._labels(rows)
        return rows[..., 0] if self._learned.single and family.columnwise else rows

    def _labels(self, codes: np.ndarray) -> np.ndarray:
        """Return the levels of codes."""
        domains = [self._learned.tally.domains[str(name)] for name in self._learned.tally.factors[0].columns]
        levels = unmerged([labels_of(domain.levels, None) for domain in domains])
        return np.stack([known[codes[..., place]] for place, known in enumerate(levels)], axis=-1)


def _recode(table: Table, names: Sequence[Name], family: Family, domains: Sequence[Domain]) -> np.ndarray:
    """Return the codes of labels among known levels; raise LabelError for an unknown label."""
    codes = factor_cells(table, names, family, domains, "smooth")  # an unknown level has the code after the last
    for name, column, known in zip(names, codes.T, domains, strict=True):
        unknown = np.flatnonzero(column == len(known.levels))
        if len(unknown):
            encoded, local = table.encoded(name)
            level = local.levels[int(encoded[unknown[0]])]
            raise LabelError.never_learned(level, known.name, known.levels)
    return codes


def _check_cells(family: Family, rows: np.ndarray | SparseRows, names: tuple[Any, ...]) -> None:
    """Raise DataError for cells that the family cannot have; a full covariance accepts missing cells."""
    wrong = first_invalid_cell(family, rows)
    if wrong is not None:
        row, column = wrong
        name = names[column] if column < len(names) else column
        raise DataError.bad_cell(cell(rows, row, column), row, name, family.allowed_values)
