"""Explanations: how far every column pulls a row from one class towards another."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.models.scoring import chunk_of

PRIOR = "(class prior)"


class Explanation:
    """The weight of evidence of every column, for some rows: log p(x_j | class) − log p(x_j | other).

    The contributions of a row, the class prior's included, sum to the log-odds log p(class | row) − log p(other | row).
    A column that is missing contributes 0.

    Attributes
    ----------
    columns : list
        What contributes: the class prior, then the columns.
    contributions : ndarray of shape (n, columns)
        In nats, positive towards ``classes``.
    classes, others : ndarray of shape (n,)
        The class explained, and the one it is compared with.
    values : list of list
        The cells, as shown.
    """

    def __init__(
        self,
        columns: list[Any],
        contributions: np.ndarray,
        classes: np.ndarray,
        others: np.ndarray,
        values: list[list[Any]],
    ) -> None:
        self.columns, self.contributions = columns, contributions
        self.classes, self.others, self.values = classes, others, values

    @property
    def log_odds(self) -> np.ndarray:
        """log p(class | row) − log p(other | row), shape (n,)."""
        return self.contributions.sum(axis=1)

    def to_dict(self, row: int = 0) -> dict[Any, float]:
        """The contributions of one row, largest magnitude first."""
        order = np.argsort(-np.abs(self.contributions[row]), kind="stable")
        return {self.columns[i]: float(self.contributions[row, i]) for i in order}

    def to_frame(self) -> Any:
        """All contributions as a pandas data frame, one line per row and column."""
        import pandas as pd

        n, d = self.contributions.shape
        return pd.DataFrame(
            {
                "row": np.repeat(np.arange(n), d),
                "class": np.repeat(self.classes, d),
                "against": np.repeat(self.others, d),
                "column": self.columns * n,
                "value": [value for row in self.values for value in row],
                "contribution": self.contributions.ravel(),
            }
        )

    def __repr__(self) -> str:
        shown = [self._table(row) for row in range(min(len(self.contributions), 3))]
        more = len(self.contributions) - len(shown)
        return "\n\n".join(shown) + (f"\n\n… {more} more rows" if more > 0 else "")

    def _table(self, row: int, most: int = 12) -> str:
        """One row as a table with bars."""
        odds = float(self.log_odds[row])
        head = f"row {row}: {self.classes[row]} against {self.others[row]}, log-odds {odds:+.3f}"
        found = list(self.to_dict(row).items())
        position = {column: i for i, column in enumerate(self.columns)}
        largest = max((abs(v) for _, v in found if np.isfinite(v)), default=0.0) or 1.0
        names = [str(column) for column, _ in found[:most]]
        values = [_shown(self.values[row][position[column]]) for column, _ in found[:most]]
        widths = max(map(len, names), default=0), max(map(len, values), default=0)
        lines = [head]
        for name, value, (_, weight) in zip(names, values, found, strict=False):
            bar = "█" * round(20 * min(abs(weight) / largest, 1.0)) if np.isfinite(weight) else "█" * 20
            side = f"{'':>20}│{bar}" if weight >= 0 else f"{bar:>20}│"
            lines.append(f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {weight:+9.3f}  {side}".rstrip())
        if len(found) > most:
            rest = sum(weight for _, weight in found[most:])
            lines.append(f"  {f'{len(found) - most} more':<{widths[0]}}  {'':>{widths[1]}}  {rest:+9.3f}")
        return "\n".join(lines)

    def plot(self, row: int = 0, ax: Any = None) -> Any:
        """A picture of one row's contributions; needs matplotlib.

        Parameters
        ----------
        row : int, default 0
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from tallybayes.plots.models import plot_explanation

        return plot_explanation(self, row, ax)


def explain(model: Any, X: Any, against: Any = None) -> Explanation:
    """The explanation of every row's most probable class, against the runner-up or a class that is named."""
    joint = model._joint(X)
    table = model._open(X)
    n, levels = len(joint), model._class_domain.levels
    rows = np.arange(n)
    order = np.argsort(-joint, axis=1, kind="stable")  # impossible classes last, never the same one twice
    top = order[:, 0]
    if against is None:
        other = order[:, min(1, len(levels) - 1)]
    else:
        from tallybayes.models.generate import check_class

        other = np.full(n, check_class(against, levels))
        top = np.where(top == other, order[:, min(1, len(levels) - 1)], top)
    names: list[Any] = [PRIOR]
    with np.errstate(invalid="ignore"):
        prior = model.class_log_prior_
        parts = [_gap(np.tile(prior, (n, 1)), rows, top, other)[:, None]]
    values: list[list[Any]] = [[None] for _ in range(n)]
    for scored in model._scored:
        cells = chunk_of(model._rows(table, scored), slice(None))
        terms = scored.contributions(cells)
        with np.errstate(invalid="ignore"):
            parts.append(_gap(terms, rows, top, other))
        columns = scored.factor.columns
        wide = terms.shape[-1]
        names += [scored.factor.column(place, wide) for place in range(wide)]
        for i in range(n):
            values[i] += _cells(model, scored, cells[i]) if len(columns) == wide else list(cells[i])
    contributions = np.concatenate(parts, axis=1)
    contributions[np.isneginf(joint[rows, top]) & np.isneginf(joint[rows, other]), 1:] = 0.0  # only the prior is left
    return Explanation(names, contributions, model.classes_[top], model.classes_[other], values)


def _gap(terms: np.ndarray, rows: np.ndarray, top: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The difference between two classes; 0 where a cell is impossible in both, or a class has no estimate of it."""
    gap = terms[rows, top] - terms[rows, other]
    return np.where(np.isnan(gap), 0.0, gap)


def _cells(model: Any, scored: Any, cells: np.ndarray) -> list[Any]:
    """A row's cells as a person knows them."""
    from tallybayes.families.categorical import Categorical

    if not isinstance(scored.family, Categorical):
        return [None if np.isnan(value) else float(value) for value in cells]
    shown = []
    for name, code in zip(scored.factor.columns, cells, strict=True):
        levels = model.tally_.domains[str(name)].levels
        shown.append(None if code < 0 else levels[int(code)] if code < len(levels) else "(unseen)")
    return shown


def _shown(value: Any) -> str:
    if value is None:
        return "—"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
