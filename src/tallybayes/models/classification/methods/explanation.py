"""Explanations: the contribution of each column to the log-odds of a row between two classes."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_parts
from tallybayes._utils.memory import require_memory
from tallybayes.data.data_frames import as_frame
from tallybayes.data.encoding import is_missing
from tallybayes.data.table import Table
from tallybayes.errors import printable
from tallybayes.estimation.factor_sampling import check_class
from tallybayes.estimation.scoring.factor_scorer import Cells, FactorScorer, chunk_of, chunk_rows
from tallybayes.families._shared.blocks import SparseRows, n_columns
from tallybayes.tally.domain import Domain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
    from tallybayes.plotting.plot import Plot

PRIOR = "(class prior)"
CALIBRATION = "(calibration)"
ABSENT_WORDS = "(absent words)"
_MOST_SHOWN = 40  # characters of a cell


class Explanation:
    """Weights of evidence (Good 1950) of each column for some rows: log p(x_j | class) − log p(x_j | other).

    The contributions of a row, including that of the class prior, sum to the log-odds log p(class | row) − log p(other
    | row). A missing column contributes 0. A cell that is impossible in one class contributes +inf or −inf; one that is
    impossible in both contributes 0 and is printed as impossible. If a row is impossible in both classes, its log-odds
    are those of the class prior. Contributions are computed on first use.

    Attributes
    ----------
    columns : list
        The contributing terms: the class prior, then the columns.
    contributions : ndarray of shape (n, columns)
        In nats, positive in favor of ``classes``.
    log_odds : ndarray of shape (n,)
        log p(class | row) − log p(other | row).
    classes, against : ndarray of shape (n,)
        The explained class, and the class it is compared with.
    values : sequence of list
        The cells of each row.

    Examples
    --------
    >>> import tallybayes as tb
    >>> mail = {"offer": [1, 1, 0, 0, 0, 1], "kind": ["spam", "spam", "spam", "ham", "ham", "ham"]}
    >>> model = tb.NaiveBayes({"offer": tb.Bernoulli()}, prior=1).fit(mail, "kind")
    >>> {column: round(weight, 3) for column, weight in model.explain({"offer": [1]}).to_dict().items()}
    {'offer': 0.405, '(class prior)': 0.0}
    """

    def __init__(
        self,
        columns: list[Any],
        parts: Sequence[ExplanationPart],
        log_odds: np.ndarray,
        classes: np.ndarray,
        against: np.ndarray,
        impossible: np.ndarray,
        frame: str | None = None,
    ) -> None:
        self.columns = columns
        self.log_odds = log_odds
        self.classes = classes
        self.against = against
        self._parts = parts
        self._impossible = impossible
        self._frame = frame
        self.note = ""  # names the member of an ensemble that is explained

    @cached_property
    def contributions(self) -> np.ndarray:
        """The contributions in nats, positive in favor of ``classes``: shape (n, columns)."""
        n = len(self.classes)
        d = len(self.columns)
        require_memory(8 * n * d, f"the contributions of {d} columns to {n} rows", "Explain fewer rows at a time.")
        out = np.empty((n, d))
        step = chunk_rows(1, d)
        for start in range(0, n, step):
            out[start : start + step] = self._log_ratios(slice(start, min(start + step, n)))
        return np.where(np.isnan(out), 0.0, out)

    @property
    def values(self) -> Sequence[list[Any]]:
        """The cells of each row."""
        return _Values(self._parts, len(self.classes))

    def _log_ratios(self, rows: slice) -> np.ndarray:
        """Return the contributions to some rows; NaN for cells that are impossible in both classes."""
        return np.concatenate([part.log_ratios(rows) for part in self._parts], axis=1)

    def to_dict(self, row: int = 0) -> dict[Any, float]:
        """Return the contributions to one row, largest magnitude first."""
        return {self.columns[i]: weight for i, weight in self._ordered(row, impossible=0.0)}

    def _ordered(self, row: int, impossible: float = np.nan) -> list[tuple[int, float]]:
        """Return the column indices and contributions of one row, impossible cells and large magnitudes first."""
        row = range(len(self.classes))[row]
        log_ratios = self._log_ratios(slice(row, row + 1))[0]
        order = np.argsort(-np.where(np.isnan(log_ratios), np.inf, np.abs(log_ratios)), kind="stable")
        return [(int(i), impossible if np.isnan(log_ratios[i]) else float(log_ratios[i])) for i in order]

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per row and column, of the library the model was fitted on.

        The default is pandas. In other libraries, names and cells are strings.
        """
        n, d = self.contributions.shape
        names = self.columns * n
        cells = [value for row in self.values for value in row]
        if self._frame not in (None, "pandas"):
            names = [str(name) for name in names]
            cells = [None if is_missing(cell) else str(cell) for cell in cells]
        columns: dict[Any, Any] = {
            "row": np.repeat(np.arange(n), d),
            "class": np.repeat(self.classes, d),
            "against": np.repeat(self.against, d),
            "column": names,
            "value": cells,
            "contribution": self.contributions.ravel(),
        }
        return as_frame(columns, self._frame or "pandas")

    def __repr__(self) -> str:
        shown = [self._table(row) for row in range(min(len(self.classes), 3))]
        more = len(self.classes) - len(shown)
        return "\n\n".join(shown) + (f"\n\n… {more} more rows" if more > 0 else "")

    def _repr_html_(self) -> str:
        parts: list[Any] = []
        for row in range(min(len(self.classes), 3)):
            ordered = self._ordered(row)
            cells = self.values[row]
            largest = _largest([weight for _, weight in ordered])
            rows = [[self.columns[i], shown(cells[i]), *_bar_cells(weight, largest)] for i, weight in ordered]
            parts.append((self._head(row), ["column", "value", "against", "weight", "for"], rows))
        more = len(self.classes) - len(parts)
        return html_parts(*parts, *([f"… {more} more rows"] if more > 0 else []))

    def _head(self, row: int) -> str:
        """Return the title of one row."""
        top = printable(self.classes[row])
        other = printable(self.against[row])
        head = f"row {row}: {top} against {other}, log-odds {self.log_odds[row]:+.3f}"
        head += f" ({self.note})" if self.note else ""
        if self._impossible[row]:
            head += " by the class prior alone: the row is impossible in both"
        return head

    def _table(self, row: int, most: int = 12) -> str:
        """Return one row as a text table with bars."""
        ordered = self._ordered(row)
        cells = self.values[row]
        weights = np.array([weight for _, weight in ordered])
        largest = _largest(weights)
        names = [printable(self.columns[index]) for index, _ in ordered[:most]]
        values = [shown(cells[index]) for index, _ in ordered[:most]]
        widths = max(map(len, names), default=0), max(map(len, values), default=0)
        lines = [self._head(row)]
        for name, value, (_, weight) in zip(names, values, ordered, strict=False):
            bar = _bar(weight, largest)
            side = f"{'':>20}│{bar}" if weight >= 0 else f"{bar:>20}│"
            text = f"{weight:+9.3f}  {side}" if not np.isnan(weight) else "impossible in both"
            lines.append(f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {text}".rstrip())
        if len(ordered) > most:
            remaining = np.nan_to_num(weights[most:], posinf=np.inf, neginf=-np.inf)
            has_both_signs = np.isposinf(remaining).any() and np.isneginf(remaining).any()
            text = f"{'±inf':>9}" if has_both_signs else f"{remaining.sum():+9.3f}"
            lines.append(f"  {f'{len(ordered) - most} more':<{widths[0]}}  {'':>{widths[1]}}  {text}")
        return "\n".join(lines)

    def plot(self, row: int = 0, ax: Axes | None = None) -> Plot:
        """Plot the contributions to one row; needs matplotlib.

        Parameters
        ----------
        row : int, default 0
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.classifier.explanation import plot_explanation

        return plot_explanation(self, row, ax)


def _largest(weights: npt.ArrayLike) -> float:
    """Return the largest finite magnitude, or 1; it has the longest bar."""
    magnitudes = np.abs(np.asarray(weights, dtype=float))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0)) or 1.0


def _bar(weight: float, largest: float) -> str:
    """Return a bar of block characters."""
    return "█" * (round(20 * min(abs(weight) / largest, 1.0)) if np.isfinite(weight) else 20)


def _bar_cells(weight: float, largest: float) -> tuple[str, str, str]:
    """Return a weight between two bars: on the left against the class, on the right in favor of it."""
    if np.isnan(weight):
        return "", "impossible in both", ""
    bar = _bar(weight, largest)
    return "" if weight >= 0 else bar, f"{weight:+.3f}", bar if weight >= 0 else ""


class ExplanationPart:
    """The contributions of one term, the class prior or a factor, to the log-odds of rows.

    Parameters
    ----------
    names : list
        The names of the contributing columns.
    top, other : ndarray of int of shape (n,)
        The codes of the explained class of each row, and of the class it is compared with.
    """

    def __init__(self, names: list[Any], top: np.ndarray, other: np.ndarray) -> None:
        self.names = names
        self.top = top
        self.other = other

    def log_ratios(self, rows: slice) -> np.ndarray:
        """Return the contributions to some rows, (rows, columns); NaN for cells that are impossible in both classes."""
        raise NotImplementedError

    def cells(self, row: int) -> list[Any]:
        """Return the cells of one row as labels or numbers."""
        raise NotImplementedError

    def _between(self, terms: np.ndarray, rows: slice) -> np.ndarray:
        """Return the difference between the two classes of each row, from terms (rows, classes, columns)."""
        positions = np.arange(len(terms))
        top = terms[positions, self.top[rows]]
        other = terms[positions, self.other[rows]]
        with np.errstate(invalid="ignore"):
            difference = top - other
        undefined = np.isnan(top) | np.isnan(other)  # a class without an estimate contributes 0
        return np.where(undefined, 0.0, difference)


class PriorPart(ExplanationPart):
    """The contribution of the class prior."""

    def __init__(self, log_prior: np.ndarray, top: np.ndarray, other: np.ndarray) -> None:
        super().__init__([PRIOR], top, other)
        self.log_prior = log_prior

    @cached_property
    def log_odds(self) -> np.ndarray:
        """The log-odds of the prior for each row; NaN if both classes are impossible."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_prior[self.top] - self.log_prior[self.other])

    def log_ratios(self, rows: slice) -> np.ndarray:
        """Return the log-odds of the prior, one column."""
        return self.log_odds[rows, None]

    def cells(self, row: int) -> list[Any]:
        """Return one None, because the prior has no cell."""
        return [None]


class _FactorPart(ExplanationPart):
    """The contributions of the columns of a factor."""

    def __init__(
        self, names: list[Any], scorer: FactorScorer, domains: list[Domain], cells: Cells, prior: PriorPart
    ) -> None:
        super().__init__(names, prior.top, prior.other)
        self.scorer = scorer
        self.n_classes = len(prior.log_prior)
        self.levels = [domain.levels for domain in domains]
        # Contributions are computed later, so the cells are copied.
        self.rows: Any = copy.deepcopy(cells)
        self.sparse = scorer.cells if isinstance(cells, SparseRows) else None

    def log_ratios(self, rows: slice) -> np.ndarray:
        if self.sparse is not None:
            each = range(len(self.top))[rows]
            return np.stack([self._sparse_log_ratios(row) for row in each])
        if rows.stop - rows.start > 1:  # limit the memory for the terms of all classes
            step = chunk_rows(self.n_classes, n_columns(self.rows))
            if step < rows.stop - rows.start:
                starts = range(rows.start, rows.stop, step)
                return np.concatenate([self.log_ratios(slice(start, min(start + step, rows.stop))) for start in starts])
        return self._between(self.scorer.contributions(chunk_of(self.rows, rows)), rows)

    def _sparse_log_ratios(self, row: int) -> np.ndarray:
        """Return the contributions to one sparse row."""
        assert self.sparse is not None
        return self.sparse.gap(self.rows.rows(slice(row, row + 1)), int(self.top[row]), int(self.other[row]))

    def cells(self, row: int) -> list[Any]:
        cells = chunk_of(self.rows, slice(row, row + 1))[0]
        whole = len(self.scorer.factor.columns) == len(cells)
        return shown_cells(self.levels, cells) if whole else list(cells)


class _WordPart(_FactorPart):
    """The contributions of words: of each word in the rows, and of all absent words together."""

    def __init__(
        self, names: list[Any], positions: np.ndarray, scorer: FactorScorer, cells: SparseRows, prior: PriorPart
    ) -> None:
        self.positions = positions
        if cells.n_columns > len(names) and scorer.cells is not None and np.any(scorer.cells.at_zero):
            names.append(ABSENT_WORDS)
        super().__init__(names, scorer, [], cells, prior)

    def _sparse_log_ratios(self, row: int) -> np.ndarray:
        log_ratios = super()._sparse_log_ratios(row)
        present = log_ratios[self.positions]
        if len(self.names) == len(present):
            return present
        return np.append(present, np.delete(log_ratios, self.positions).sum())

    def cells(self, row: int) -> list[Any]:
        cells = self.rows.rows(slice(row, row + 1)).take_columns(self.positions).dense()[0]
        counts = [None if np.isnan(value) else float(value) for value in cells]
        return counts + [None] * (len(self.names) - len(counts))


class _Values(Sequence[list[Any]]):
    """The cells of rows, computed on access: dense copies of sparse rows would need much memory."""

    def __init__(self, parts: Sequence[ExplanationPart], n_rows: int) -> None:
        self._parts = parts
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return [self[index] for index in range(len(self))[row]]
        index = range(len(self))[row]
        return [value for part in self._parts for value in part.cells(index)]


def explain(estimates: EstimatedClassifier, table: Table, against: Hashable, frame: str | None) -> Explanation:
    """Return the contribution of each column to the log-odds of each row, as weights of evidence.

    ``frame`` is the library of the data frames of the result.
    """
    joint = estimates.joint(table, whole=False)
    top, other = compared(joint, estimates.classes.levels, against)
    parts, log_odds, impossible = explanation_parts(estimates, table, top, other, joint)
    labels = estimates.labels
    columns = [name for part in parts for name in part.names]
    return Explanation(columns, parts, log_odds, labels[top], labels[other], impossible, frame)


def explanation_parts(
    estimates: EstimatedClassifier, table: Table, top: np.ndarray, other: np.ndarray, joint: np.ndarray | None = None
) -> tuple[list[ExplanationPart], np.ndarray, np.ndarray]:
    """Return the contributions to the log-odds between two classes of each row, the log-odds, and impossible rows."""
    joint = estimates.joint(table, whole=False) if joint is None else joint
    prior = PriorPart(estimates.class_log_prior, top, other)
    log_odds, impossible = log_odds_of(joint, prior)
    return [prior, *estimates.explanation_parts(table, prior, log_odds)], log_odds, impossible


def factor_parts(estimates: EstimatedClassifier, table: Table, prior: PriorPart) -> list[ExplanationPart]:
    """Return the contributions of the columns of all factors."""
    column_names = estimates.names
    parts: list[ExplanationPart] = []
    for scorer in estimates.scorers:
        cells = estimates.cells(table, scorer)
        width = n_columns(cells)
        is_text = scorer.factor.columns[0] in estimates.words and scorer.cells is not None
        positions = np.unique(cells.indices) if is_text else np.arange(width)
        names = [column_names.display(scorer.factor.column(index, width)) for index in positions.tolist()]
        if is_text:
            parts.append(_WordPart(names, positions, scorer, cells, prior))
        else:
            parts.append(_FactorPart(names, scorer, estimates.level_domains(scorer), cells, prior))
    return parts


def log_odds_of(joint: np.ndarray, prior: PriorPart) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-odds of each row, and whether the row is impossible in both classes.

    The log-odds of an impossible row are those of the class prior.
    """
    rows = np.arange(len(joint))
    first = joint[rows, prior.top]
    second = joint[rows, prior.other]
    impossible = np.isneginf(first) & np.isneginf(second)
    with np.errstate(invalid="ignore"):
        return np.where(impossible, np.nan_to_num(prior.log_odds), first - second), impossible


def compared(joint: np.ndarray, levels: tuple[Any, ...], against: Hashable) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the most probable class of each row and of the class to compare it with."""
    order = np.argsort(-joint, axis=1, kind="stable")  # impossible classes come last
    top = order[:, 0]
    second = order[:, min(1, len(levels) - 1)]
    if against is None:
        return top, second
    other = np.full(len(joint), check_class(against, levels))
    return np.where(top == other, second, top), other


def shown_cells(levels: Sequence[tuple[Any, ...]], cells: np.ndarray) -> list[Any]:
    """Return the cells of a row as numbers or levels."""
    if not levels:
        return [None if np.isnan(value) else float(value) for value in cells]
    pairs = zip(levels, cells.tolist(), strict=True)
    return [None if code < 0 else known[code] if code < len(known) else "(unseen)" for known, code in pairs]


def shown(value: object) -> str:
    """A cell in few characters."""
    if value is None:
        return "—"
    text = f"{value:.6g}" if isinstance(value, float) else printable(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
