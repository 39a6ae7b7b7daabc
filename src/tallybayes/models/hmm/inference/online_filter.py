"""Filtering step by step: what is known of the state now, as steps come in; saved and resumed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes.errors import FileError, printable
from tallybayes.kernels.reference.hmm_gaps import log_power
from tallybayes.models.hmm.inference.decoding import dense, labeled, open_sequences_for_query
from tallybayes.models.hmm.inference.forecast import Forecast, check_asked, forecast_from
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.io import model_from_parts, model_to_parts
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_LOST = 1e-200  # of a sum of probabilities: below, it may lack terms that floats do not hold


def online_filter(model: HiddenMarkovModel) -> OnlineFilter:
    """A filter that is told one step at a time, and knows the state: for streams, and sequences that do not end.

    A step costs (states²), however many came before it, and nothing is kept of them. It goes by the model as it is
    now: what the model learns later is for new filters.

    Returns
    -------
    OnlineFilter
    """
    return OnlineFilter(model)


class OnlineFilter:
    """What is known of the state of a sequence that comes step by step. Made by `HiddenMarkovModel.filter`.

    Parameters
    ----------
    model : HiddenMarkovModel
        Fitted, or from tables.

    Attributes
    ----------
    n_steps : int
        How many came.
    log_likelihood : float
        log p(all steps so far).
    surprise : float
        −log p(the last step | those before it); 0 before the first.

    Examples
    --------
    >>> import tallybayes as tb
    >>> machine = tb.HiddenMarkovModel.from_tables(
    ...     start={"hot": 0.8, "cold": 0.2},
    ...     transition={"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}},
    ...     emission={"hot": {1: 0.2, 2: 0.4, 3: 0.4}, "cold": {1: 0.5, 2: 0.4, 3: 0.1}})
    >>> now = machine.online_filter()
    >>> for eaten in [3, 1, 1]:
    ...     now.update(eaten)
    >>> now
    filter after 3 steps: cold (0.68), hot (0.32)
    >>> now.state, now.proba.round(3)
    ('cold', array([0.683, 0.317]))
    """

    def __init__(self, model: HiddenMarkovModel) -> None:
        chain = model._estimated_hmm.checked_parameters
        factors = (factor for factor, _ in model._estimated_hmm.emissions)
        check_no_lags(
            factors, "filtering step by step", "nothing is kept of the steps.\n    Ask filter_proba of all of them."
        )
        self._model = copy.copy(model)  # which learns by taking another tally: this one keeps its own
        self._start, transition, _ = chain.arguments
        self._log_moves, self._moves = transition, np.exp(transition)
        self._emit = chain.emission_scorer()
        self._known: dict[Any, np.ndarray] = {}  # what a step that is one label says, by type and label
        if chain.is_coded:
            rows = zip(chain.domains[0][0].levels, chain.log_table(), strict=False)
            self._known = {(type(level), level): row for level, row in rows}
        self._log: np.ndarray | None = None  # log p(state | steps so far)
        self.n_steps, self.log_likelihood, self.surprisal = 0, 0.0, 0.0

    def update(self, step: Any) -> None:
        """Take in the next step.

        Parameters
        ----------
        step : a value, a row of several columns, or a mapping from columns to cells
            As a step of a sequence is for the model, how many silent steps lie before it included, where the model has
            ``gaps``; None is a step that is missing. One that is impossible is warned of: from it on, nothing is known
            of the state.
        """
        step = step.item() if isinstance(step, np.generic) else step
        known = self._known.get((type(step), step)) if isinstance(step, str | int) else None
        emission, gap = (known, 0) if known is not None else _emission(self._model, step, self._emit)
        joint = self._ahead(gap) + emission
        top = joint.max()
        if np.isneginf(top):
            if not np.isneginf(self.log_likelihood):
                warn(f"step {self.n_steps} is impossible after those before it; nothing is known from here on.")
            self._log, self.surprisal, self.log_likelihood = np.full(len(joint), -np.inf), np.inf, -np.inf
        else:
            total = float(top + np.log(np.exp(joint - top).sum()))
            self._log, self.surprisal = joint - total, -total
            self.log_likelihood += total
        self.n_steps += 1

    @property
    def proba(self) -> np.ndarray:
        """p(state | steps so far), as `filter_proba` has it for the last step; before the first one, p(first state)."""
        return np.exp(self._start if self._log is None else self._log)

    @property
    def state(self) -> Any:
        """The most probable state now; None after an impossible step."""
        known = not np.isneginf(self.log_likelihood)
        best = int(self.proba.argmax()) if known else -1
        found = labeled(self._model.states_, np.array([best]))[0]
        return found.item() if isinstance(found, np.generic) else found

    def forecast(self, horizon: int = 1, *, mass: float = 0.9) -> Forecast:
        """What comes in the next steps, if there are any, as `HiddenMarkovModel.forecast` has it.

        Parameters
        ----------
        horizon : int, default 1
        mass : float, default 0.9
        """
        check_asked(horizon, mass)
        moves = np.exp(self._model._estimated_hmm.checked_parameters.transition)
        first = np.exp(self._start) if self._log is None else self.proba @ moves
        return forecast_from(self._model, first, horizon, mass, {}, self.n_steps)

    def save(self, path: Any) -> None:
        """Write the filter and its model to a sealed file; `tb.load` gives a filter that goes on, to the last bit.

        Parameters
        ----------
        path : str or path-like
        """
        manifest, arrays = model_to_parts(self._model)
        told = {} if self._log is None else {"filter/log": self._log}
        numbers = np.array([self.log_likelihood, self.surprisal])
        content = {"model": manifest, "n_steps": self.n_steps}
        sealed_file.write(path, "OnlineFilter", content, {**arrays, **told, "filter/numbers": numbers})

    @classmethod
    def _from_manifest(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        log, numbers, n_steps = arrays.pop("filter/log", None), arrays.pop("filter/numbers"), manifest.pop("n_steps")
        found = cls(model_from_parts(manifest.pop("model"), arrays))
        sealed_file.check_no_unknown_entries("the filter", manifest)
        fits = numbers.shape == (2,) and numbers.dtype == np.float64 and not np.isnan(numbers).any()
        fits = fits and type(n_steps) is int and n_steps >= 0 and (log is None) == (n_steps == 0)
        if log is not None:
            fits = fits and log.shape == found._start.shape and log.dtype == np.float64 and not (log > 1e-9).any()
            fits = fits and not np.isnan(log).any()
        if not fits:
            raise FileError("what the filter knows of the state does not fit its model.")
        found._log, found.n_steps = log, n_steps
        found.log_likelihood, found.surprisal = map(float, numbers)
        return found

    def __getstate__(self) -> tuple[Any, ...]:  # to be copied, or sent elsewhere: all else follows from the model
        return self._model, self._log, self.n_steps, self.log_likelihood, self.surprisal

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        model, *known = state
        self.__init__(model)  # type: ignore[misc]
        self._log, self.n_steps, self.log_likelihood, self.surprisal = known

    def _ahead(self, gap: int) -> np.ndarray:
        """log p(next state, and that it goes on | steps so far), however small; behind so many silent steps."""
        now = self._start if self._log is None else self._log
        if gap:
            power = log_power(self._log_moves, gap if self._log is None else gap + 1)
            return np.asarray(np.logaddexp.reduce(now[:, None] + power, axis=0))
        if self._log is None:
            return self._start
        top = self._log.max()
        if np.isneginf(top):
            return self._log
        sums = np.exp(self._log - top) @ self._moves
        with np.errstate(divide="ignore"):
            found: np.ndarray = np.log(sums) + top
        small = np.flatnonzero(sums < _LOST)
        if len(small):
            found[small] = np.logaddexp.reduce(self._log[:, None] + self._log_moves[:, small], axis=0)
        return found

    def __repr__(self) -> str:
        when = "before the first step" if not self.n_steps else f"after {self.n_steps} step{'s'[: self.n_steps > 1]}"
        if np.isneginf(self.log_likelihood):
            return f"filter {when}: impossible"
        order = np.argsort(-self.proba, kind="stable")
        shown = [f"{printable(self._model.states_[k])} ({self.proba[k]:.2f})" for k in order[:3]]
        return f"filter {when}: {', '.join(shown)}" + (f" and {len(order) - 3} more" if len(order) > 3 else "")


@answering
def _emission(model: HiddenMarkovModel, step: Any, emit: Any) -> tuple[np.ndarray, int]:
    """log p(step | state), shape (states,), and how many silent steps lie before it."""
    if hasattr(step, "to_dict"):  # a row of a frame
        step = step.to_dict()
    if isinstance(step, Mapping):
        one: Any = {name: [cell] for name, cell in step.items()}
    else:
        one = [step]
    sequences = open_sequences_for_query(model, [one], None, None, None)
    gap = 0 if sequences.gaps is None else int(sequences.gaps[0])
    return np.asarray(dense(emit(sequences.table))[0]), gap
