"""Tables of the estimated coefficients of a linear regression, with standard errors and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.text_table import text_table
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.models.regression.estimated_regression import EstimatedRegression

if TYPE_CHECKING:
    import pandas as pd


class CoefficientTable:
    """Coefficients of a regression with standard errors and intervals. `LinearRegression.coefficient_table` returns it.

    Attributes
    ----------
    rows : list of tuple
        (target, group, term, coefficient, standard error, low, high).
    mass : float
        The probability of the intervals.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"x": [1.0, 2.0, 3.0, 4.0], "y": [3.1, 4.9, 7.0, 9.0]}
    >>> tb.LinearRegression(estimate="unbiased").fit(rows, "y").coefficient_table()
    y, weights of 4 rows, 95 % intervals
      term       weight    error  low     high
      intercept    1.05   0.1162  0.5501  1.55
      x            1.98  0.04243  1.797   2.163
    """

    def __init__(self, title: str, rows: list[tuple[Any, ...]], mass: float) -> None:
        self.title = title
        self.rows = rows
        self.mass = mass

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per coefficient."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=["target", "group", "term", "weight", "error", "low", "high"])

    def __repr__(self) -> str:
        groups = any(row[1] is not None for row in self.rows)
        several = len({row[0] for row in self.rows}) > 1
        lines: list[tuple[str, ...]] = [("term", "weight", "error", "low", "high")]
        for target, group, term, *numbers in self.rows:
            name = " ".join([*([f"{target}:"] if several else []), *([f"[{group}]"] if groups else []), str(term)])
            lines.append((name, *(f"{number:.4g}" for number in numbers)))
        return "\n".join([self.title, *text_table(lines, right=(1, 2))])


def coefficient_table(estimates: EstimatedRegression, n_rows: float, mass: float) -> CoefficientTable:
    """Return the coefficients of all targets and groups, their standard errors and intervals."""
    from scipy.special import stdtrit

    targets = estimates.design.targets
    factors = estimates.factors
    ends = tail_probabilities(mass)
    rows = []
    for number, target in enumerate(targets):
        given_shape = factors.pairs[number][1].given_shape
        point = factors.scorers[number].point
        posterior, unit = estimates.uncertainty(number)
        slope_variances, intercept_variance = posterior.coefficient_variances()
        for code, group in enumerate(estimates.groups):
            index = () if group is None else (code,)
            slopes = np.asarray(point.slope)[index].tolist()
            named = list(zip(estimates.terms, slopes, slope_variances[index].tolist(), strict=True))
            if estimates.intercept:
                variance = float(np.asarray(intercept_variance)[index])
                named.insert(0, ("intercept", float(np.asarray(point.intercept)[index]), variance))
            freedom = 2 * np.broadcast_to(posterior.shape, given_shape)[index]
            unit_variance = float(np.broadcast_to(unit, given_shape)[index])
            for term, coefficient, variance in named:
                error = float(np.sqrt(unit_variance * variance))
                low, high = (float(coefficient + stdtrit(freedom, end) * error) for end in ends)
                rows.append((target, group, term, coefficient, error, low, high))
    name = targets[0] if len(targets) == 1 else f"{len(targets)} targets"
    return CoefficientTable(f"{name}, weights of {n_rows:.12g} rows, {100 * mass:.6g} % intervals", rows, mass)
