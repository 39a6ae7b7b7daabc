"""Families suggested for columns, each by the evidence of the column given the target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tallybayes._utils.html import html_parts
from tallybayes.data.counting import check_weight
from tallybayes.data.open_source import open_source
from tallybayes.data.source_batches import sample_of
from tallybayes.errors import printable
from tallybayes.families.family import Family
from tallybayes.models.ensemble.leaderboard import rows_looked_at
from tallybayes.models.inputs.batching import check_names
from tallybayes.models.inputs.family_evidence import MOST_ROWS
from tallybayes.models.inputs.family_selection import ColumnSuggestion, select_families
from tallybayes.models.inputs.family_selection import FamilyCandidate as FamilyCandidate
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    import pandas as pd


def suggest_families(data: Rows, target: Labels, *, sample_weight: SampleWeights = None) -> FamilySuggestions:
    """Propose a family for every column, by evidence: the one that describes the column most briefly given the target.

    Nothing is applied: pass ``suggestion.columns`` on if you agree, or let a model choose: ``columns="suggest"``. A
    column's type and values say what is tried:

    - labels: `Categorical`; truth values also `Bernoulli`;
    - numbers: `Gaussian`; above 0 also `LogNormal`; and `Binned` at 4, 8 and 16 quantiles, values that make up a whole
      bin by themselves apart;
    - whole numbers also `Poisson` (from 0 on), `Bernoulli` (0 and 1) and `Categorical` (at most 50 different ones).

    The code length of a family is −log₂ of its evidence under its default prior. Every whole number is a cell of width
    1, over which a measured family spreads: its variance grows by 1/12. Edges of bins, and whole numbers as labels,
    were chosen by looking at the data, so naming them among all that were possible is part of the code. The default
    priors of `Poisson` and the Gaussians have looked at the data too, and pay nothing for it. Missing cells are skipped
    by all. Outer bins are open: how far beyond an edge a value lies is described as exponential.

    Where the classes differ in how often a column is missing, by evidence too, the family is `WithMissing`.

    Left out are columns that say nothing: constants, identifiers (nearly every label another one, or whole numbers one
    after the other) and columns that repeat an earlier one, under whatever names. Of more than 20,000 rows a random
    sample of so many decides, drawn with a fixed seed from all rows of a table, file or database.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns and blocks; path or source
    target : array-like of shape (n,), or the name of a column
    sample_weight : array-like of shape (n,), or the name of a column, optional

    Returns
    -------
    Suggestion
        It prints as a table; ``columns`` is ready for `NaiveBayes`.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.choice(["a", "b"], 400)
    >>> rows = {"price": np.exp(rng.normal(3 + (kind == "a"))), "calls": rng.poisson(2, 400), "kind": kind}
    >>> found = tb.suggest_families(rows, "kind")
    >>> found.columns
    {'price': LogNormal(), 'calls': Poisson()}
    >>> model = tb.NaiveBayes(found.columns).fit(rows, "kind")
    """
    source = None if isinstance(data, Iterator) else open_source(data)  # an iterator does not give its first rows again
    if source is not None:
        check_names(source, target=target, sample_weight=sample_weight)
    shape, table, weight = read_initial_rows(data if source is None else sample_of(source), target, sample_weight)
    read_labels(table, shape.target).check_complete("Leave the unlabeled rows out.")
    names = [name for name in table.columns if name != shape.target]
    found = select_families(table, names, shape.target, check_weight(weight, table.n_rows))
    return FamilySuggestions(found, min(table.n_rows, MOST_ROWS), table.n_sampled_from or table.n_rows)


class FamilySuggestions:
    """The families proposed for the columns of some data. Made by `suggest_families`.

    Attributes
    ----------
    columns : dict
        From column to family, ready for `NaiveBayes`.
    left_out : dict
        From column to why it is left out.
    details : dict
        From column to `ColumnSuggestion`: every family that was tried, with its code length in bits.
    n_rows, n_total : int
        How many rows decided, and how many there are; if more, those are a random sample of them.

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

    def __init__(self, found: list[ColumnSuggestion], n_rows: int = 0, n_total: int = 0) -> None:
        self.details = {one.column: one for one in found}
        self.n_rows, self.n_total = n_rows, n_total

    @property
    def columns(self) -> dict[Any, Family]:
        """From column to the family proposed."""
        return {name: one.family for name, one in self.details.items() if not one.dropped_columns}

    @property
    def dropped_columns(self) -> dict[Any, str]:
        """From column to why it says nothing."""
        return {name: one.remark for name, one in self.details.items() if one.dropped_columns}

    def to_frame(self) -> pd.DataFrame:
        """Every family that was tried, one line each, as a pandas data frame."""
        import pandas as pd

        lines = [
            {
                "column": name,
                "family": repr(candidate.family),
                "bits": candidate.bits,
                "excess_loss": candidate.bits - one.candidates[0].bits,
                "proposed": place == 0,
            }
            for name, one in self.details.items()
            for place, candidate in enumerate(one.candidates)
        ]
        return pd.DataFrame(lines, columns=["column", "family", "bits", "excess_loss", "proposed"])

    def _lines(self) -> list[tuple[str, ...]]:
        """The table, its head first."""
        lines: list[tuple[str, ...]] = [("column", "family", "bits better than auto", "runner-up", "by bits")]
        for name, one in self.details.items():
            best = one.family.present_family or one.family
            gain = f"{one.gain:.1f} than {_short(one.default)}" if best != one.default else "0.0"
            second = one.candidates[1] if len(one.candidates) > 1 else None
            behind = f"{second.bits - one.candidates[0].bits:.1f}" if second else ""
            other = _short(second.family) if second else one.remark
            family = "left out" if one.dropped_columns else _short(one.family)
            lines.append((printable(name), family, gain if one.candidates else "", other, behind))
        return lines

    def _title(self) -> str:
        sampled = f", from {rows_looked_at(self.n_rows, self.n_total)}" if self.n_total > self.n_rows else ""
        return f"Suggestion for {len(self.details)} columns, by evidence given the target{sampled}"

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        return html_parts((self._title(), head, rows))

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[place]) for line in lines) for place in range(5)]
        out = [self._title()]
        for line in lines:
            cells = [f"{cell:<{width}}" for cell, width in zip(line[:4], widths, strict=False)]
            out.append("  " + "  ".join([*cells, f"{line[4]:>{widths[4]}}"]).rstrip())
        return "\n".join(out)


def _short(family: Family) -> str:
    if family.present_family is not None:
        return f"WithMissing({_short(family.present_family)})"
    return f"Binned of {len(family.bins)}" if family.bins else repr(family)
