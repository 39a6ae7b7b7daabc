"""Leaderboard of the automatic classifier: the candidates, their held-out losses and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes.errors import printable
from tallybayes.models.ensemble.leakage import Leak

_SHOWN = 12


class LeaderboardEntry(NamedTuple):
    """One candidate: its held-out log loss with interval, its weight, and its running time."""

    name: str
    loss: float
    low: float
    high: float
    weight: float
    seconds: float


class Leaderboard:
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

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per candidate."""
        import pandas as pd

        return pd.DataFrame(self.tried)

    def _repr_html_(self) -> str:
        held_out, *_ = repr(self).split("\n\n")
        head = ["candidate", "log-loss", "95 % interval", "weight", "seconds"]
        tried = (
            [entry.name, f"{entry.loss:.3f}", f"{entry.low:.3f} to {entry.high:.3f}", weight, f"{entry.seconds:.2g}"]
            for entry in self.tried
            for weight in [f"{entry.weight:.2f}" if entry.weight > 0 else "·"]
        )
        parts = [("", ["column", "suggested family"], self.columns.items())] if self.columns else []
        parts += [("", ["left out", "because"], self.dropped_columns.items())] if self.dropped_columns else []
        parts += [("", ["not tried", "because"], self.skipped.items())] if self.skipped else []
        return html_parts((held_out, head, tried), *parts)

    def __repr__(self) -> str:
        chosen = [entry for entry in self.tried if entry.weight > 0]
        head = (
            f"Chosen from {len(self.tried)} candidates by {self.n_folds} folds of "
            f"{rows_looked_at(self.n_rows, self.n_total)} in {self.seconds:.2g} s"
        )
        what = "the mixture" if len(chosen) > 1 else "it"
        mixed = f"  held out, {what} has log-loss {self.loss:.3f} ({self.low:.3f} to {self.high:.3f})"
        lines = [head, f"{mixed}, accuracy {self.accuracy:.3f}", *map(str, self.leaks), ""]
        shown = [*chosen, *[entry for entry in self.tried if entry.weight == 0][: max(0, _SHOWN - len(chosen))]]
        shown.sort(key=lambda entry: entry.loss)
        width = max(len(entry.name) for entry in shown)
        lines.append(f"  {'candidate':<{width}}  log-loss  {'95 % interval':<14}  weight  seconds")
        for entry in shown:
            weight = f"{entry.weight:6.2f}" if entry.weight > 0 else "     ·"
            interval = f"{entry.low:.3f} to {entry.high:.3f}"
            lines.append(f"  {entry.name:<{width}}  {entry.loss:8.3f}  {interval:<14}  {weight}  {entry.seconds:7.2g}")
        if len(self.tried) > len(shown):
            lines.append(f"  … {len(self.tried) - len(shown)} more that have no weight")
        for title, part in (("column", self.columns), ("left out", self.dropped_columns), ("not tried", self.skipped)):
            if part:
                names = [printable(name) for name in list(part)[:_SHOWN]]
                width = max([len(title), *map(len, names)])
                lines += ["", f"  {title:<{width}}  {'suggested family' if title == 'column' else 'because'}"]
                values = [getattr(value, "bins", None) or value for value in list(part.values())[:_SHOWN]]
                for name, value in zip(names, values, strict=True):
                    text = f"{len(value)} bins: {', '.join(value)}" if isinstance(value, tuple) else str(value)
                    lines.append(f"  {name:<{width}}  {text if len(text) < 90 else text[:87] + '…'}")
                if len(part) > _SHOWN:
                    lines.append(f"  … {len(part) - _SHOWN} more")
        return "\n".join(lines)


def rows_looked_at(n_rows: int, n_total: int) -> str:
    """Return a phrase that describes the rows of a search."""
    sampled = n_total > n_rows
    return f"{n_rows:,} rows sampled at random of {n_total:,}" if sampled else f"{n_rows} rows"


def interval(losses: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """Return the mean held-out loss and the ends of its 95 % interval."""
    mean = float(np.average(losses, weights=weight))
    rows = np.ones(len(losses)) if weight is None else weight
    error = float(np.sqrt((rows**2 * (losses - mean) ** 2).sum()) / rows.sum())
    return mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error
