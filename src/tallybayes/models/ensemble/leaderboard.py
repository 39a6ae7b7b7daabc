"""Report: what was tried, how it did, and what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes.errors import printable
from tallybayes.models.ensemble.leakage import Leak

_SHOWN = 12


class LeaderboardEntry(NamedTuple):
    """One candidate: the log-loss of held-out rows with its interval, its weight, and how long it took."""

    name: str
    loss: float
    low: float
    high: float
    weight: float
    seconds: float


class Leaderboard:
    """What `AutoClassifier` has tried and chosen. It prints as a table.

    Attributes
    ----------
    tried : list of Tried
        Every candidate, best first.
    loss, low, high : float
        The log-loss of held-out rows by what was chosen, in nats, with a 95 % interval.
    accuracy : float
        The share of held-out rows whose class was most probable.
    columns : dict
        From column to the family suggested for it.
    left_out : dict
        From column to why it was left out.
    skipped : dict
        Candidates that could not be made of these rows, and why.
    seconds : float
    n_rows, n_folds : int
        How many rows candidates were tried on, and in how many folds.
    n_total : int
        How many rows there are; if more than `n_rows`, these are a random sample of them.
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
        self.tried = sorted(tried, key=lambda one: one.loss)
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
        """Every candidate, one line each, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.tried)

    def _repr_html_(self) -> str:
        held_out, *_ = repr(self).split("\n\n")
        head = ["candidate", "log-loss", "95 % interval", "weight", "seconds"]
        tried = (
            [one.name, f"{one.loss:.3f}", f"{one.low:.3f} to {one.high:.3f}", weight, f"{one.seconds:.2g}"]
            for one in self.tried
            for weight in [f"{one.weight:.2f}" if one.weight > 0 else "·"]
        )
        parts = [("", ["column", "suggested family"], self.columns.items())] if self.columns else []
        parts += [("", ["left out", "because"], self.dropped_columns.items())] if self.dropped_columns else []
        parts += [("", ["not tried", "because"], self.skipped.items())] if self.skipped else []
        return html_parts((held_out, head, tried), *parts)

    def __repr__(self) -> str:
        chosen = [one for one in self.tried if one.weight > 0]
        head = (
            f"Chosen from {len(self.tried)} candidates by {self.n_folds} folds of "
            f"{rows_looked_at(self.n_rows, self.n_total)} in {self.seconds:.2g} s"
        )
        what = "the mixture" if len(chosen) > 1 else "it"
        mixed = f"  held out, {what} has log-loss {self.loss:.3f} ({self.low:.3f} to {self.high:.3f})"
        lines = [head, f"{mixed}, accuracy {self.accuracy:.3f}", *map(str, self.leaks), ""]
        shown = [*chosen, *[one for one in self.tried if one.weight == 0][: max(0, _SHOWN - len(chosen))]]
        shown.sort(key=lambda one: one.loss)
        width = max(len(one.name) for one in shown)
        lines.append(f"  {'candidate':<{width}}  log-loss  {'95 % interval':<14}  weight  seconds")
        for one in shown:
            weight = f"{one.weight:6.2f}" if one.weight > 0 else "     ·"
            interval = f"{one.low:.3f} to {one.high:.3f}"
            lines.append(f"  {one.name:<{width}}  {one.loss:8.3f}  {interval:<14}  {weight}  {one.seconds:7.2g}")
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
    """How many rows something was chosen by, in words."""
    sampled = n_total > n_rows
    return f"{n_rows:,} rows sampled at random of {n_total:,}" if sampled else f"{n_rows} rows"


def interval(losses: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """The mean of held-out losses, and the ends of its 95 % interval by their spread."""
    mean = float(np.average(losses, weights=weight))
    rows = np.ones(len(losses)) if weight is None else weight
    error = float(np.sqrt((rows**2 * (losses - mean) ** 2).sum()) / rows.sum())
    return mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error
