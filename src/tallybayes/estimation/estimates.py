"""Estimates side by side: maximum likelihood, posterior mode, posterior mean and credible interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import EstimateError, PriorError, printable
from tallybayes.results.result import FrameData, Result, ResultTable, columns_of
from tallybayes.statistics.counts import Counts
from tallybayes.typing import Prior

if TYPE_CHECKING:
    from tallybayes.estimation.distribution_fit import FittedDistribution

_MOST_ROWS = 40  # rows of the table in text and HTML


class ParameterEstimates(NamedTuple):
    """The estimates of one parameter, and the ends of its credible interval; NaN where an estimate does not exist.

    Examples
    --------
    >>> import tallybayes as tb
    >>> (heads,) = tb.fit_distribution([1, 1], tb.Bernoulli()).estimates(tb.Beta(2, 2)).rows
    >>> heads.parameter, heads.mle, heads.map, round(heads.low, 3), round(heads.high, 3)
    ('probability', 1.0, 0.75, 0.284, 0.947)
    """

    group: Any
    column: Any
    parameter: Any
    mle: float
    map: float
    mean: float
    low: float
    high: float


class Estimates(Result):
    """Estimates of every parameter of a distribution side by side. Returned by `FittedDistribution.estimates`.

    Attributes
    ----------
    rows : list of ParameterEstimates
    prior : ParameterDistribution
        The prior of the posterior mode, the posterior mean and the interval.
    mass : float
        The probability of the credible interval.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution(["a", "b", "a", "a"], tb.Categorical()).estimates(tb.Dirichlet(2), mass=0.9)
    Estimates under the prior Dirichlet(2)
    parameter  ML    MAP     posterior mean  90 % credible interval
    a          0.75  0.6667  0.625           0.3413 to 0.8712
    b          0.25  0.3333  0.375           0.1288 to 0.6587
    """

    def __init__(
        self, rows: list[ParameterEstimates], prior: ParameterDistribution, mass: float, hidden: frozenset[str]
    ) -> None:
        self.rows = rows
        self.prior = prior
        self.mass = mass
        self._hidden = hidden

    def _frame_data(self) -> FrameData:
        columns = columns_of(ParameterEstimates, self.rows)
        return {name: values for name, values in columns.items() if name not in self._hidden}

    def _content(self) -> list[str | ResultTable]:
        names = [name for name in ("group", "column") if name not in self._hidden]
        rows = [
            [
                *(printable(getattr(row, name)) for name in (*names, "parameter")),
                *(f"{number:.4g}" for number in (row.mle, row.map, row.mean)),
                f"{row.low:.4g} to {row.high:.4g}",
            ]
            for row in self.rows[:_MOST_ROWS]
        ]
        head = [*names, "parameter", "ML", "MAP", "posterior mean", f"{100 * self.mass:.4g} % credible interval"]
        return [ResultTable(rows, head, f"Estimates under the prior {self.prior!r}", n_rows=len(self.rows))]


def estimates(learned: FittedDistribution, prior: Prior = None, mass: float = 0.95) -> Estimates:
    """Return all estimates side by side: maximum likelihood, MAP, posterior mean and credible interval.

    The last three are of one posterior, that of `prior`. (``estimate("map")`` without a prior takes another default.)

    Parameters
    ----------
    prior : Belief, number, rule or None
        None is the default prior of ``estimate="bayes"``.
    mass : float, default 0.95
        The probability of the equal-tailed credible interval.

    Returns
    -------
    Estimates
        A table with a row for every parameter (level, column and group); `Estimates.to_frame` gives a data frame.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([1, 1, 0], tb.Bernoulli()).estimates(tb.Beta(2, 2))
    Estimates under the prior Beta(2, 2)
      parameter    ML      MAP  posterior mean  95 % credible interval
      probability  0.6667  0.6  0.5714          0.2228 to 0.8819
    """
    statistics: Any = learned.statistics
    family = learned.family
    if family.present_family is not None:
        raise EstimateError(
            f"{family!r} has two distributions, of whether values are there and of the values.\n"
            "    Use there.estimates() and values.estimates()."
        )
    belief = learned._prior(prior)
    posterior = belief.update(statistics)
    if not isinstance(posterior, Beta | Dirichlet | Gamma | NormalInverseGamma):
        raise EstimateError(
            f"{family!r} under {type(belief).__name__} has no table of estimates: its parameters are matrices or "
            "hypotheses.\n"
            "    Use estimate() and posterior()."
        )
    point = _parts(family.maximum_likelihood(statistics))
    try:
        mode = _parts(posterior.mode())
    except PriorError:  # densities without an upper bound
        mode = {name: np.full(np.shape(part), np.nan) for name, part in point.items()}
    interval = posterior.interval(mass)
    every = [point, mode, *(_parts(part) for part in (posterior.mean(), interval.low, interval.high))]
    labels = _labels(learned, posterior)
    given = statistics.given_shape
    rows = []
    for place in np.ndindex(given):
        group = learned.groups[place[0]] if given else None
        for number, (column, level) in enumerate(labels):
            for name in point:
                arrays = (np.broadcast_to(part[name], (*given, len(labels))) for part in every)
                numbers = [float(array[(*place, number)]) for array in arrays]
                rows.append(ParameterEstimates(group, column, name if level is None else level, *numbers))
    hidden = ({"group"} if not given else set()) | ({"column"} if learned.single or labels[0][0] is None else set())
    return Estimates(rows, belief, mass, frozenset(hidden))


def _parts(parameters: object) -> dict[str, Any]:
    """Return the parameters by name, each an array (*given, columns or levels)."""
    if hasattr(parameters, "table"):
        return {"": parameters.table}
    return parameters._asdict() if hasattr(parameters, "_asdict") else {"": np.asarray(parameters)}


def _labels(learned: FittedDistribution, posterior: ParameterDistribution) -> list[tuple[Any, Any]]:
    """Return the column and the name of every parameter of a group."""
    names = learned.tally.factors[0].columns
    if isinstance(learned.statistics, Counts):
        levels = [learned.levels] if learned.single else learned.levels
        return [(name, level) for name, every in zip(names, levels, strict=True) for level in every]
    n_columns = learned.statistics.n_columns
    columns = [learned.tally.factors[0].column(place) for place in range(n_columns)]
    if isinstance(posterior, Dirichlet):
        return [(None, column) for column in columns]
    word = {Beta: "probability", Gamma: "rate"}.get(type(posterior))
    return [(column, word) for column in columns]


def short(parameters: object) -> str:
    """Return parameters on one line."""
    if isinstance(parameters, dict):
        return ", ".join(f"{level!r}: {short(p)}" for level, p in list(parameters.items())[:6])
    if isinstance(parameters, tuple) and hasattr(parameters, "_fields"):
        parts = dict(zip(parameters._fields, parameters, strict=True))
        if hasattr(parameters, "std") and "variance" in parts:
            parts["std"] = parameters.std
        return ", ".join(f"{name} {short(part)}" for name, part in parts.items())
    if isinstance(parameters, list):
        return "; ".join(short(part) for part in parameters[:3])
    array = np.asarray(parameters)
    if array.ndim == 0:
        return f"{array.item():.6g}"
    text = np.array2string(array, precision=4, separator=", ", threshold=6, edgeitems=2)
    return " ".join(text.split())
