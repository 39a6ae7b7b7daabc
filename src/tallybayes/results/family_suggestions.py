"""FamilySuggestions: a family for every column, by log evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.errors import printable
from tallybayes.families.family import Family
from tallybayes.results.result import FrameData, Result, ResultTable

if TYPE_CHECKING:
    from tallybayes.models.inputs.family_selection import ColumnSuggestion


class FamilySuggestions(Result):
    """The families suggested for the columns of some data. Returned by `suggest_families`.

    Attributes
    ----------
    columns : dict
        From column to family, for `NaiveBayes`.
    dropped_columns : dict
        From column to the reason why it is dropped.
    details : dict
        From column to `ColumnSuggestion`: all candidate families with their code lengths in bits.
    n_rows, n_total : int
        The number of rows that were used, and of all rows; if smaller, a random sample was used.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> tb.suggest_families({"size": np.exp(rng.normal(y)), "age": rng.normal(40.0 + y, 9)}, y)
    Suggestion for 2 columns, by evidence given the target
      column  family       bits better than auto  runner-up    by bits
      size    LogNormal()  345.7 than Gaussian()  Binned of 8     67.2
      age     Gaussian()   0.0                    Binned of 4     35.4
    """

    def __init__(self, suggestions: list[ColumnSuggestion], n_rows: int = 0, n_total: int = 0) -> None:
        self.details = {suggestion.column: suggestion for suggestion in suggestions}
        self.n_rows = n_rows
        self.n_total = n_total

    @property
    def columns(self) -> dict[Any, Family]:
        """From column to the suggested family."""
        return {name: each.family for name, each in self.details.items() if not each.dropped_columns}

    @property
    def dropped_columns(self) -> dict[Any, str]:
        """From column to the reason why it is dropped."""
        return {name: each.remark for name, each in self.details.items() if each.dropped_columns}

    def _frame_data(self) -> FrameData:
        return [
            {
                "column": name,
                "family": repr(candidate.family),
                "bits": candidate.bits,
                "excess_loss": candidate.bits - each.candidates[0].bits,
                "proposed": candidate is each.candidates[0],
            }
            for name, each in self.details.items()
            for candidate in each.candidates
        ]

    def _content(self) -> list[str | ResultTable]:
        title = f"Suggestion for {len(self.details)} columns, by evidence given the target"
        if self.n_total > self.n_rows:
            title += f", from {self.n_rows:,} rows sampled at random of {self.n_total:,}"
        rows = []
        for name, each in self.details.items():
            best = each.family.present_family or each.family
            gain = f"{each.gain:.1f} than {_short(each.default)}" if best != each.default else "0.0"
            second = each.candidates[1] if len(each.candidates) > 1 else None
            rows.append(
                [
                    printable(name),
                    "dropped" if each.dropped_columns else _short(each.family),
                    gain if each.candidates else "",
                    _short(second.family) if second else each.remark,
                    f"{second.bits - each.candidates[0].bits:.1f}" if second else "",
                ]
            )
        head = ["column", "family", "bits better than auto", "runner-up", "by bits"]
        return [ResultTable(rows, head, title, "llllr")]


def _short(family: Family) -> str:
    """Return a family as text; of bins their number."""
    if family.present_family is not None:
        return f"WithMissing({_short(family.present_family)})"
    return f"Binned of {len(family.bins)}" if family.bins else repr(family)
