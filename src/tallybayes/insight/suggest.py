"""Families suggested for columns, each by the evidence of the column given the target."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tallybayes.errors import printable
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import Categorical
from tallybayes.families.edges import Cells, quantile_cuts
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.inputs.shape import read_first
from tallybayes.sources.collect import check_weight, count
from tallybayes.sources.table import Table
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name, Schema

_BINS = (4, 8, 16)  # numbers of bins that are tried
_MOST_LEVELS = 50  # whole numbers with more different values are not tried as labels


class Candidate(NamedTuple):
    """A family that was tried for a column, and the length of the column's code in it."""

    family: Family
    bits: float


class ColumnSuggestion(NamedTuple):
    """What was found for one column: the candidates, shortest code first, and the family ``"auto"`` would take."""

    column: Any
    candidates: tuple[Candidate, ...]
    default: Family
    remark: str = ""

    @property
    def family(self) -> Family:
        """The family proposed."""
        return self.candidates[0].family if self.candidates else self.default

    @property
    def gain(self) -> float:
        """By how many bits the proposal describes the column more briefly than the family ``"auto"`` would take."""
        bits = {candidate.family: candidate.bits for candidate in self.candidates}
        return bits[self.default] - self.candidates[0].bits if self.default in bits else 0.0


def suggest_columns(data: Any, target: Any, *, sample_weight: Any = None) -> Suggestion:
    """Propose a family for every column, by evidence: the one that describes the column most briefly given the target.

    Nothing is applied: pass ``suggestion.columns`` on if you agree. A column's type and values say what is tried:

    - labels: `Categorical`; truth values also `Bernoulli`;
    - numbers: `Gaussian`; above 0 also `LogNormal`; and `Binned` at 4, 8 and 16 quantiles, values that make up a whole
      bin by themselves apart;
    - whole numbers also `Poisson` (from 0 on), `Bernoulli` (0 and 1) and `Categorical` (at most 50 different ones).

    The code length of a family is −log₂ of its evidence under its default prior. Every whole number is a cell of width
    1, over which a measured family spreads: its variance grows by 1/12. Edges of bins, and whole numbers as labels,
    were chosen by looking at the data, so naming them among all that were possible is part of the code. The default
    priors of `Poisson` and the Gaussians have looked at the data too, and pay nothing for it. Missing cells are skipped
    by all. Outer bins are open: how far beyond an edge a value lies is described as exponential.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns and blocks
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
    >>> found = tb.suggest_columns(rows, "kind")
    >>> found.columns
    {'price': LogNormal(), 'calls': Poisson()}
    >>> model = tb.NaiveBayes(found.columns).fit(rows, "kind")
    """
    shape, table, weight = read_first(data, target, sample_weight)
    read_labels(table, shape.target).refuse_missing("Leave the unlabelled rows out.")
    weights = check_weight(weight, table.n_rows)
    found = []
    for names, default in read_columns("auto", table, [shape.target]):
        found += [_suggest(table, name, shape.target, weights, default) for name in names]
    order = {name: place for place, name in enumerate(table.columns)}
    return Suggestion(sorted(found, key=lambda one: order[one.column]))


class Suggestion:
    """The families proposed for the columns of some data. Made by `suggest_columns`.

    Attributes
    ----------
    columns : dict
        From column to family, ready for `NaiveBayes`.
    details : dict
        From column to `ColumnSuggestion`: every family that was tried, with its code length in bits.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> tb.suggest_columns({"size": np.exp(rng.normal(y)), "age": rng.normal(40.0 + y, 9)}, y)
    Suggestion for 2 columns, by evidence given the target
      column  family       bits better than auto  runner-up    by bits
      size    LogNormal()  345.7 than Gaussian()  Binned of 8     61.5
      age     Gaussian()   0.0                    Binned of 4     32.5
    """

    def __init__(self, found: list[ColumnSuggestion]) -> None:
        self.details = {one.column: one for one in found}

    @property
    def columns(self) -> dict[Any, Family]:
        """From column to the family proposed."""
        return {name: one.family for name, one in self.details.items()}

    def to_frame(self) -> Any:
        """Every family that was tried, one line each, as a pandas data frame."""
        import pandas as pd

        lines = [
            {
                "column": name,
                "family": repr(candidate.family),
                "bits": candidate.bits,
                "behind": candidate.bits - one.candidates[0].bits,
                "proposed": place == 0,
            }
            for name, one in self.details.items()
            for place, candidate in enumerate(one.candidates)
        ]
        return pd.DataFrame(lines, columns=["column", "family", "bits", "behind", "proposed"])

    def __repr__(self) -> str:
        lines = [("column", "family", "bits better than auto", "runner-up", "by bits")]
        for name, one in self.details.items():
            gain = f"{one.gain:.1f} than {_short(one.default)}" if one.family != one.default else "0.0"
            second = one.candidates[1] if len(one.candidates) > 1 else None
            behind = f"{second.bits - one.candidates[0].bits:.1f}" if second else ""
            other = _short(second.family) if second else one.remark
            lines.append((printable(name), _short(one.family), gain if one.candidates else "", other, behind))
        widths = [max(len(line[place]) for line in lines) for place in range(5)]
        out = [f"Suggestion for {len(self.details)} columns, by evidence given the target"]
        for line in lines:
            cells = [f"{cell:<{width}}" for cell, width in zip(line[:4], widths, strict=False)]
            out.append("  " + "  ".join([*cells, f"{line[4]:>{widths[4]}}"]).rstrip())
        return "\n".join(out)


def _short(family: Family) -> str:
    return f"Binned of {len(family.bins)}" if family.bins else repr(family)


def _suggest(table: Table, name: Name, target: Name, weight: np.ndarray | None, default: Family) -> ColumnSuggestion:
    """Every family that a column allows, with its code length."""
    if table.is_block(name):
        return ColumnSuggestion(name, (), default, "a block: not examined")
    families: list[Family] = [default]
    cells = Cells(np.zeros(0), np.zeros(0))
    if default.measured:
        cells = _known(table, name, target, weight)
        if len(cells.values) < 2:
            return ColumnSuggestion(name, (), default, "constant" if len(cells.values) else "no known cell")
        families += _for_numbers(cells)
    elif _is_bool(table, name):
        families.append(Bernoulli())
    whole = cells.whole
    rows, slopes = table, {}
    for family in families if whole else ():
        column = _numbers(table, name)
        base = family.log_base(np.asarray(family.transform(column[:, None])))
        if base is not None:
            slopes[family] = free_name("slope", list(rows.columns))
            rows = Table({**rows.columns, slopes[family]: np.where(np.isnan(column), np.nan, np.exp(base))})
    factors = [Factor(name, (target,), family) for family in families]
    factors += [Factor(extra, (target,), Gaussian()) for extra in slopes.values()]
    statistics = count(rows, factors, weight=weight, schema=Schema(ordered=(str(target),))).statistics
    steep = dict(zip(slopes, statistics[len(families) :], strict=True))
    found = []
    for family, counted in zip(families, statistics, strict=False):
        if whole and isinstance(counted, Moments):
            counted = _spread_over_cells(counted, steep.get(family))
        evidence = family.log_evidence(family.prior(None, counted, "bayes"), counted)
        bits = -float(np.sum(evidence)) / math.log(2) + _choice_bits(family, cells.values, whole)
        bits += sum(_beyond(cells, end, width) for end, width in family.open_ends) / math.log(2)
        found.append(Candidate(family, bits))
    found.sort(key=lambda one: round(one.bits, 6))  # ties, but for rounding, go to the first tried
    return ColumnSuggestion(name, tuple(found), default)


def _known(table: Table, name: Name, target: Name, weight: np.ndarray | None) -> Cells:
    count(table, [Factor(name, (target,), Gaussian())], weight=weight)  # refuses infinities, by name
    column = _numbers(table, name)
    here = ~np.isnan(column) if weight is None else ~np.isnan(column) & (weight > 0)
    values, place = np.unique(column[here], return_inverse=True)
    return Cells(values, np.bincount(place, None if weight is None else weight[here], minlength=len(values)))


def _numbers(table: Table, name: Name) -> np.ndarray:
    block: Any = table.numbers([name])
    return np.asarray(block[:, 0] if isinstance(block, np.ndarray) else block[0], dtype=np.float64)


def _is_bool(table: Table, name: Name) -> bool:
    column = table.columns[name]
    kind = getattr(column, "dtype", None)
    return str(kind) == "bool" or str(getattr(column, "type", "")) == "bool"


def _for_numbers(cells: Cells) -> list[Family]:
    """What a column of numbers allows, besides a Gaussian; at equal evidence the first is proposed."""
    values = cells.values
    families: list[Family] = []
    whole = cells.whole
    if whole and values[0] >= 0:
        families += [Bernoulli()] if values[-1] <= 1 else []
        families.append(Poisson())
    if whole and len(values) <= _MOST_LEVELS:
        families.append(Categorical())
    if values[0] > 0:
        families.append(LogNormal())
    cuts = dict.fromkeys(quantile_cuts(cells, n_bins) for n_bins in _BINS)
    return families + [Binned((None, *one, None)) for one in cuts if one]


def _spread_over_cells(moments: Moments, slopes: Any) -> Moments:
    """Moments of whole numbers that are spread evenly over cells of width 1, so that densities stay below 1.

    A cell adds 1/12 to the variance, or 1/(12x²) to that of the logarithm: the square of its slope. By Jensen's
    inequality the density of what is so spread is no more than the probability of the cells, which has no closed form.
    """
    if slopes is not None:
        return moments.with_scatter((slopes.scatter + slopes.weight * slopes.mean**2) / 12)
    return moments.with_scatter(np.broadcast_to(moments.weight, moments.first_sum.shape) / 12)


def _beyond(cells: Cells, end: tuple[float, float], width: float) -> float:
    """What the values in an open bin take, in nats, more than if they were spread evenly over one of that width.

    How far they lie beyond their edge is exponential, with a rate of which as much is known beforehand as one value at
    that distance tells: so their code is one, and still no single value decides about it.
    """
    inside = (cells.values >= end[0]) & (cells.values < end[1])
    n = float(cells.weight[inside].sum())
    edge = end[0] if math.isfinite(end[0]) else end[1]
    reach = width + float((cells.weight[inside] * np.abs(cells.values[inside] - edge)).sum())
    return (n + 1) * math.log(reach / width) - float(gammaln(n + 1))


def _choice_bits(family: Family, values: np.ndarray, whole: bool) -> float:
    """What naming the edges, or the whole numbers that are labels, costs among all that were possible."""
    if family.bins:
        return _log2_choose(values[-1] - values[0] if whole else len(values) - 1, len(family.bins) - 1)
    if family.reads == "codes" and whole:
        return _log2_choose(values[-1] - values[0] + 1, len(values))
    return 0.0


def _log2_choose(n: float, k: float) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / math.log(2)
