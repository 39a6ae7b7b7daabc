"""Forecasts: states, numbers with prediction intervals, and category probabilities some time steps ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import check_count, check_mass
from tallybayes.errors import printable
from tallybayes.families._shared.cdf import mixture_quantile
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.protocols.degenerate_estimates import pooled_value
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.inference.decoding import run_and_warn
from tallybayes.models.hmm.lagged_columns import check_no_lags, orders_of
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.results.result import PlottedResult, ResultTable
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.hmm.estimated_hmm import EstimatedEmission, EstimatedHMM

Column = Name | tuple[Name, int]  # a column, or a column of a block
Arrays = Mapping[Any, np.ndarray]

# at most so many are shown
_STEPS = 12
_COLUMNS = 4
_PAST = 100  # observed time steps in the plot


class History(NamedTuple):
    """The observed part of a sequence: number of steps, last cells of each column, last lags of each AR column."""

    n_steps: int = 0
    cells: Arrays = MappingProxyType({})
    lags: Arrays = MappingProxyType({})


def forecast(hmm: EstimatedHMM, sequences: Sequences, horizon: int, mass: float) -> list[Forecast]:
    """Return the forecast of the `horizon` time steps after every sequence."""
    check_forecast_parameters(horizon, mass)
    filtered, _ = run_and_warn(hmm, kernels.filter, sequences)
    return [
        forecast_from(hmm, steps, horizon, mass, _history(hmm, sequences, start, start + len(steps)))
        for steps, start in zip(filtered, sequences.offsets.tolist(), strict=False)
    ]


def _history(hmm: EstimatedHMM, sequences: Sequences, start: int, stop: int) -> History:
    """Return the last observed cells of one sequence."""
    if start == stop:
        return History()
    first = max(start, stop - _PAST)
    columns = sequences.table.columns
    cells = {name: np.asarray(column)[first:stop] for name, column in columns.items() if np.ndim(column) == 1}
    lagged = {name: np.asarray(columns[name]) for name in orders_of(hmm.emission_factors)}
    cells |= {name: block[first:stop, -1] for name, block in lagged.items()}
    return History(stop - start, cells, {name: block[stop - 1] for name, block in lagged.items()})


def check_forecast_parameters(horizon: object, mass: object) -> None:
    """Raise DataError if the horizon is not a positive integer, or the mass not a number between 0 and 1."""
    check_count("horizon", horizon)
    check_mass(mass)


def forecast_from(hmm: EstimatedHMM, filtered: np.ndarray, horizon: int, mass: float, history: History) -> Forecast:
    """Return the forecast, given p(state | observations so far) of every time step, or of the last one."""
    if horizon > 1:
        check_no_lags(
            hmm.emission_factors,
            f"a forecast of {horizon} steps",
            "later steps depend on predicted ones",
            "Use horizon=1, or draw sequences with sample.",
        )
    proba = hmm.checked_parameters.states_ahead(filtered, int(horizon))
    total = proba.sum(axis=1, keepdims=True)
    # NaN after an impossible sequence, and after a state without known transitions.
    states = np.divide(proba, total, out=np.full_like(proba, np.nan), where=total > 0)
    weights = hmm.checked_parameters.component_proba(states)
    numbers: dict[Column, np.ndarray] = {}
    labels: dict[Name, dict[Any, np.ndarray]] = {}
    for emission in hmm.estimated_emissions:
        names = emission.columns
        if emission.is_text or emission.family.is_bag_of_words:
            continue
        for name, domain, table in emission.level_tables():
            labels[name] = dict(zip(domain.levels, (weights @ table).T, strict=True))
        if not emission.is_coded:
            ends = _mean_and_interval(emission, weights, mass, history.lags.get(names[0]))
            width = ends.shape[-1]
            for index in range(width):
                numbers[names[index] if len(names) == width else (names[0], index)] = ends[..., index]
    mean, low, high = ({name: ends[k] for name, ends in numbers.items()} for k in range(3))
    return Forecast(hmm.state_labels, states, float(mass), mean, low, high, labels, history)


def _mean_and_interval(
    emission: EstimatedEmission, weights: np.ndarray, mass: float, lags: np.ndarray | None
) -> np.ndarray:
    """Return mean, lower and upper quantile of the mixture of the states: (3, horizon, columns).

    Parameters
    ----------
    weights : ndarray of shape (horizon, states or components)
    lags : ndarray, optional
        Of an autoregressive column: the lags of the last time step, then its value. None before the first time step.
    """
    family = emission.family
    parameters = emission.scorer.parameters
    constant = emission.scorer.constant
    n_columns = int(emission.statistics.n_columns)
    known = ~np.isnan(weights[:, 0])
    if family.order:
        before = np.roll(np.full(n_columns, np.nan) if lags is None else lags, 1)[:-1]
        known &= bool(len(before)) and not np.isnan(before).any()
        parameters = family.step_distribution(parameters, before)  # type: ignore[attr-defined]
        family = Gaussian()
        n_columns = 1
    ends = np.full((3, len(weights), n_columns), np.nan)
    ends[0][known] = weights[known] @ np.asarray(family.mean(parameters))
    for index, level in enumerate([(1 - mass) / 2, (1 + mass) / 2], start=1):
        ends[index][known] = mixture_quantile(family, parameters, weights[known], level)
    if len(constant):
        ends[..., constant] = pooled_value(emission.family, emission.statistics)[constant]
    return ends


class Forecast(PlottedResult):
    """The forecast of the time steps after one sequence.

    Attributes
    ----------
    states : ndarray of shape (states,)
    proba : ndarray of shape (horizon, states)
        p(state) of each time step ahead; NaN after an impossible sequence.
    mass : float
        The probability of the prediction intervals.
    mean, low, high : dict of ndarray of shape (horizon,)
        The predictive mean and the ends of the prediction interval of each numeric column.
    labels : dict of dict of ndarray of shape (horizon,)
        The predictive probability of each level of each categorical column.

    Examples
    --------
    >>> import tallybayes as tb
    >>> machine = tb.HiddenMarkovModel.from_tables(
    ...     start=[0.5, 0.5],
    ...     transition=[[0.9, 0.1], [0.2, 0.8]],
    ...     emission={"calls": {0: {"rate": 4.0}, 1: {"rate": 9.0}}},
    ...     columns={"calls": tb.Poisson()})
    >>> machine.forecast([{"calls": [3, 4, 11]}], horizon=3)[0]
    3 steps ahead, intervals of 90 %
      step  state     calls
         1  1 (0.71)  7.558 (2 to 14)
         2  1 (0.60)  6.991 (2 to 13)
         3  1 (0.52)  6.593 (2 to 13)
    """

    _plot_function = "hmm.forecast.plot_forecast"

    def __init__(
        self,
        states: np.ndarray,
        proba: np.ndarray,
        mass: float,
        mean: dict[Any, np.ndarray],
        low: dict[Any, np.ndarray],
        high: dict[Any, np.ndarray],
        labels: dict[Any, dict[Any, np.ndarray]],
        history: History,
    ) -> None:
        self.states = states
        self.proba = proba
        self.mass = mass
        self.mean = mean
        self.low = low
        self.high = high
        self.labels = labels
        self.history = history

    def __len__(self) -> int:
        return len(self.proba)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame: step (1 is the next), column, then mean, low, high, or label and probability."""
        import pandas as pd

        steps = np.arange(1, len(self) + 1)
        parts = [
            pd.DataFrame({"step": steps, "column": [name] * len(self), "mean": mean, "low": low, "high": high})
            for name, mean, low, high in zip(
                self.mean, self.mean.values(), self.low.values(), self.high.values(), strict=True
            )
        ]
        parts += [
            pd.DataFrame({"step": steps, "column": [name] * len(self), "label": [label] * len(self), "probability": p})
            for name, table in self.labels.items()
            for label, p in table.items()
        ]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({"step": steps})

    def _content(self) -> list[ResultTable]:
        """Return the table that is shown."""
        shown = [*self.mean, *self.labels][:_COLUMNS]
        rows = [
            [str(step + 1), _most_probable(self.states, self.proba[step]), *(self._cell(name, step) for name in shown)]
            for step in range(min(len(self), _STEPS))
        ]
        more = len(self.mean) + len(self.labels) - len(shown)
        title = f"{len(self)} steps ahead" if len(self) > 1 else "1 step ahead"
        title += f", intervals of {100 * self.mass:.4g} %" if self.mean else ""
        title += f"; {more} more columns" if more else ""
        rows += [["…", f"{len(self) - _STEPS} more", *[""] * len(shown)]] if len(self) > _STEPS else []
        return [ResultTable(rows, ["step", "state", *map(printable, shown)], title, align="rl")]

    def _cell(self, name: Column, step: int) -> str:
        """Return the forecast of one column at one step, as text."""
        if name in self.labels:
            table = self.labels[name]
            return _most_probable(list(table), np.array([p[step] for p in table.values()]))
        return f"{self.mean[name][step]:.4g} ({self.low[name][step]:.4g} to {self.high[name][step]:.4g})"


def _most_probable(names: Sequence[Any] | np.ndarray, p: np.ndarray) -> str:
    """Return the most probable name with its probability, as text."""
    if not len(p) or np.isnan(p).any():
        return ""
    best = int(p.argmax())
    return f"{printable(names[best])} ({p[best]:.2f})"
