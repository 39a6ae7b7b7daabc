"""What comes after a sequence: states, numbers with intervals, and labels, some steps ahead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.html import html_table
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.families._shared.cdf import mixture_quantile
from tallybayes.families.gaussian import Gaussian
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.inference.decoding import open_sequences_for_query, run_kernel, warn_impossible
from tallybayes.models.hmm.lagged_columns import check_no_lags, orders_of
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
    from tallybayes.plotting.plot import Plot

_STEPS, _COLUMNS = 12, 4  # that are shown
_PAST = 100  # steps before, in the picture


@answering
def forecast(
    model: HiddenMarkovModel,
    X: Rows,
    horizon: int = 1,
    lengths: npt.ArrayLike | None = None,
    *,
    mass: float = 0.9,
    sequence: str | None = None,
    order: str | None = None,
) -> list[Forecast]:
    """What comes in the `horizon` steps after each sequence, if it goes on: states, and every column with an interval.

    A step ahead is a mixture of what the states emit, and the interval is between the quantiles of that mixture, found
    from its distribution function: it leaves out the same probability on either side. It is of one step of one column,
    and takes the model's parameters for true.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`. After an empty sequence comes its first step.
    horizon : int, default 1
        How many steps ahead.
    mass : float, default 0.9
        The probability of an interval; of counts, at least that.

    Returns
    -------
    list of Forecast
    """
    check_asked(horizon, mass)
    sequences = open_sequences_for_query(model, X, lengths, sequence, order)
    chain = model._estimated_hmm.checked_parameters
    filtered, score = run_kernel(chain, kernels.filter, sequences)
    warn_impossible(model, sequences, score)
    found, orders = [], orders_of(factor for factor, _ in model._estimated_hmm.emissions)
    blocks = {name: np.asarray(sequences.table.columns[name]) for name in orders if sequences.table.n_rows}
    for steps, start in zip(filtered, sequences.offsets.tolist(), strict=False):
        first = np.exp(chain.start) if not len(steps) else steps[-1] @ np.exp(chain.transition)
        past = {
            name: np.asarray(column)[max(start, start + len(steps) - _PAST) : start + len(steps)]
            for name, column in sequences.table.columns.items()
            if len(steps) and np.ndim(column) == 1
        }
        last = {name: block[start + len(steps) - 1] for name, block in blocks.items() if len(steps)}
        past |= {name: block[start : start + len(steps), -1][-_PAST:] for name, block in blocks.items()}
        found.append(forecast_from(model, first, horizon, mass, past, len(steps), last))
    return found


def check_asked(horizon: Any, mass: Any) -> None:
    """Refuse a horizon or a level that makes no sense."""
    if not is_integer_at_least(horizon, 1):
        raise DataError.wrong_type("horizon", repr(horizon), "a whole number of at least 1")
    if not isinstance(mass, int | float | np.number) or not 0 < mass < 1:
        raise DataError.wrong_type("level", repr(mass), "a number between 0 and 1")


def forecast_from(
    model: HiddenMarkovModel,
    first: np.ndarray,
    horizon: int,
    mass: float,
    past: dict[Any, np.ndarray],
    n_steps: int,
    last: Mapping[Any, np.ndarray] = MappingProxyType({}),
) -> Forecast:
    """The forecast from p(state) of the first step ahead, and the last step of columns that depend on their past."""
    counted, chain = model._estimated_hmm, model._estimated_hmm.checked_parameters
    moves = np.exp(chain.transition)
    if horizon > 1:
        factors = (factor for factor, _ in counted.emissions)
        check_no_lags(
            factors,
            f"a forecast of {horizon} steps",
            "a step after the next depends on all ways there.\n    Ask horizon=1, or draw ways with sample.",
        )
    proba = np.empty((int(horizon), len(first)))
    for step in range(len(proba)):
        proba[step] = first if step == 0 else proba[step - 1] @ moves
    total = proba.sum(axis=1, keepdims=True)
    # Where nothing is known to come after a state, or the sequence was impossible, there is nothing to say.
    states = np.divide(proba, total, out=np.full_like(proba, np.nan), where=total > 0)
    shares = chain.component_proba(states)
    mean: dict[Any, np.ndarray] = {}
    low: dict[Any, np.ndarray] = {}
    high: dict[Any, np.ndarray] = {}
    labels: dict[Any, dict[Any, np.ndarray]] = {}
    for part, domains, (factor, statistics) in zip(counted.scored, counted.domains, counted.emissions, strict=True):
        names, family = factor.columns, part.family
        if names[0] in model._selected_words or family.is_bag_of_words:
            continue
        if family.cell_type == "codes":
            for name, domain, table in zip(
                names, domains, part.parameters.segments.split(part.parameters.table), strict=True
            ):
                labels[name] = dict(zip(domain.levels, (shares @ table).T, strict=True))
            continue
        known = ~np.isnan(total[:, 0]) & (total[:, 0] > 0)
        width, parameters = int(statistics.n_columns), part.parameters
        if family.order:
            line: Any = family
            before = np.roll(last.get(names[0], np.full(width, np.nan)), 1)[:-1]
            parameters, family, width = line.step_distribution(parameters, before), Gaussian(), 1
            known &= bool(len(before)) and not np.isnan(before).any()
        ends = np.full((3, len(shares), width), np.nan)
        ends[0][known] = shares[known] @ np.asarray(family.mean(parameters))
        for place, share in enumerate([(1 - mass) / 2, (1 + mass) / 2]):
            ends[place + 1][known] = mixture_quantile(family, parameters, shares[known], share)
        if len(part.constant):
            ends[..., part.constant] = family.pooled_value(statistics)[part.constant]
        for place in range(ends.shape[-1]):
            found: Any = names[place] if len(names) == ends.shape[-1] else (names[0], place)
            mean[found], low[found], high[found] = ends[0, :, place], ends[1, :, place], ends[2, :, place]
    return Forecast(model.states_, states, float(mass), mean, low, high, labels, past, n_steps)


class Forecast:
    """The steps that come after one sequence.

    Attributes
    ----------
    states : ndarray of shape (states,)
    proba : ndarray of shape (horizon, states)
        p(state) of every step ahead; NaN after an impossible sequence.
    level : float
        The probability of an interval.
    mean, low, high : dict of ndarray of shape (horizon,)
        Of every column of numbers: its mean, and the ends of its interval.
    labels : dict of dict of ndarray of shape (horizon,)
        Of every column of labels: the probability of every label.

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

    def __init__(
        self,
        states: np.ndarray,
        proba: np.ndarray,
        mass: float,
        mean: dict[Any, np.ndarray],
        low: dict[Any, np.ndarray],
        high: dict[Any, np.ndarray],
        labels: dict[Any, dict[Any, np.ndarray]],
        past: dict[Any, np.ndarray],
        n_steps: int,
    ) -> None:
        self.states, self.proba, self.mass = states, proba, mass
        self.mean, self.low, self.high, self.labels = mean, low, high, labels
        self._past, self._n_steps = past, n_steps

    def __len__(self) -> int:
        return len(self.proba)

    def to_frame(self) -> Any:
        """A pandas data frame: step (1 is the next), column, then mean, low and high, or label and probability."""
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

    def plot(self, ax: Any = None) -> Plot:
        """A picture: the last steps of the sequence, and those ahead with their intervals; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            One for every column, and one more for the states.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.hmm.forecast import plot_forecast

        return plot_forecast(self, ax)

    def _cells(self) -> tuple[str, list[str], list[list[str]]]:
        numbers, labels = list(self.mean), list(self.labels)
        shown = [*numbers, *labels][:_COLUMNS]
        rows = []
        for step in range(min(len(self), _STEPS)):
            row = [str(step + 1), _likeliest(self.states, self.proba[step])]
            for name in shown:
                if name in self.labels:
                    table = self.labels[name]
                    row.append(_likeliest(list(table), np.array([p[step] for p in table.values()])))
                else:
                    ends = f"({self.low[name][step]:.4g} to {self.high[name][step]:.4g})"
                    row.append(f"{self.mean[name][step]:.4g} {ends}")
            rows.append(row)
        more = len(numbers) + len(labels) - len(shown)
        title = f"{len(self)} steps ahead" if len(self) > 1 else "1 step ahead"
        title += f", intervals of {100 * self.mass:.4g} %" if numbers else ""
        title += f"; {more} more columns" if more else ""
        rows += [["…", f"{len(self) - _STEPS} more", *[""] * len(shown)]] if len(self) > _STEPS else []
        return title, ["step", "state", *map(printable, shown)], rows

    def __repr__(self) -> str:
        title, head, rows = self._cells()
        return "\n".join([title, *text_table([head, *rows], right=[0])])

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def _likeliest(names: Any, p: np.ndarray) -> str:
    """The most probable one, with its probability."""
    if not len(p) or np.isnan(p).any():
        return ""
    best = int(p.argmax())
    return f"{printable(names[best])} ({p[best]:.2f})"
