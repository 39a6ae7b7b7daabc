"""Leaderboard of the automatic classifier: the candidates, their held-out losses and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import printable
from tallybayes.models.ensemble.leakage import Leak
from tallybayes.results.result import FrameData, Result, ResultTable, columns_of

_SHOWN = 12


class LeaderboardEntry(NamedTuple):
    """One candidate: its held-out log loss with interval, its weight, and its running time."""

    name: str
    loss: float
    low: float
    high: float
    weight: float
    seconds: float


class Leaderboard(Result):
    """The candidates of `AutoClassifier` and their held-out results. It prints as a table.

    Attributes
    ----------
    tried : list of LeaderboardEntry
        All candidates, best first.
    loss, low, high : float
        The held-out log loss of the selected model, in nats, with a 95 % interval.
    accuracy : float
        The held-out accuracy of the selected model.
    columns : dict
        From column to suggested family.
    dropped_columns : dict
        From dropped column to the reason.
    skipped : dict
        From candidate that could not be fitted to the reason.
    seconds : float
    n_rows, n_folds : int
        The number of rows and folds of the search.
    n_total : int
        The number of rows in total; the search uses a random sample of more than 20,000.
    leaks : list of Leak
        Columns that predict the target almost by themselves: possible target leakage (`find_leakage`).
    """

    _separator = "\n\n"

    def __init__(
        self,
        tried: list[LeaderboardEntry],
        loss: tuple[float, float, float],
        accuracy: float,
        columns: dict[Any, Any],
        dropped_columns: dict[Any, str],
        skipped: dict[str, str],
        seconds: float,
        n_rows: int,
        n_folds: int,
        n_total: int,
        leaks: Sequence[Leak] = (),
    ) -> None:
        self.tried = sorted(tried, key=lambda entry: entry.loss)
        self.loss, self.low, self.high = loss
        self.accuracy = accuracy
        self.columns = columns
        self.dropped_columns = dropped_columns
        self.skipped = skipped
        self.seconds = seconds
        self.n_rows = n_rows
        self.n_folds = n_folds
        self.n_total = n_total
        self.leaks = list(leaks)

    def _frame_data(self) -> FrameData:
        return columns_of(LeaderboardEntry, self.tried)

    def _content(self) -> list[str | ResultTable]:
        selected = [entry for entry in self.tried if entry.weight > 0]
        others = [entry for entry in self.tried if entry.weight == 0]
        shown = sorted([*selected, *others[: max(0, _SHOWN - len(selected))]], key=lambda entry: entry.loss)
        subject = "ensemble" if len(selected) > 1 else "model"
        title = [
            f"Selected from {len(self.tried)} candidates by {self.n_folds}-fold cross-validation on "
            f"{rows_looked_at(self.n_rows, self.n_total)} in {self.seconds:.2g} s",
            f"  held-out log loss of the {subject}: {self.loss:.3f} ({self.low:.3f} to {self.high:.3f}), "
            f"accuracy {self.accuracy:.3f}",
            *map(str, self.leaks),
        ]
        rows = [
            [
                entry.name,
                f"{entry.loss:.3f}",
                f"{entry.low:.3f} to {entry.high:.3f}",
                f"{entry.weight:.2f}" if entry.weight > 0 else "·",
                f"{entry.seconds:.2g}",
            ]
            for entry in shown
        ]
        head = ["candidate", "log loss", "95 % interval", "weight", "seconds"]
        parts = {"column": self.columns, "dropped column": self.dropped_columns, "skipped candidate": self.skipped}
        return [
            "\n".join(title),
            ResultTable(rows, head, align="lrlrr", n_rows=len(self.tried)),
            *(_column_table(name, part) for name, part in parts.items() if part),
        ]


def _column_table(name: str, part: Mapping[Any, Any]) -> ResultTable:
    """Return a table of columns or candidates with their families or reasons."""
    rows = [[printable(key), _shown_value(value)] for key, value in part.items()]
    return ResultTable(rows, [name, "suggested family" if name == "column" else "reason"], max_rows=_SHOWN)


def _shown_value(value: object) -> str:
    """Return a family or a reason as text; of bins their number and names."""
    bins = getattr(value, "bins", None)
    text = f"{len(bins)} bins: {', '.join(bins)}" if bins else str(value)
    return text if len(text) < 90 else f"{text[:87]}…"


def rows_looked_at(n_rows: int, n_total: int) -> str:
    """Return a phrase that describes the rows of a search."""
    sampled = n_total > n_rows
    return f"{n_rows:,} rows sampled at random of {n_total:,}" if sampled else f"{n_rows:,} rows"


def interval(losses: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """Return the mean held-out loss and the ends of its 95 % interval."""
    mean = float(np.average(losses, weights=weight))
    rows = np.ones(len(losses)) if weight is None else weight
    error = float(np.sqrt((rows**2 * (losses - mean) ** 2).sum()) / rows.sum())
    return mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error
