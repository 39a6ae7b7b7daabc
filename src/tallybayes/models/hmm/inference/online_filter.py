"""Online filtering: p(state | observations so far), updated one time step at a time; saved to files."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes.errors import FileError, printable
from tallybayes.kernels.hmm import log_power
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.hmm.hmm_parameters import dense
from tallybayes.models.hmm.inference.decoding import labeled
from tallybayes.models.hmm.inference.forecast import Forecast, History, check_forecast_parameters, forecast_from
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.io import model_from_parts, model_to_parts
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_UNDERFLOW = 1e-200  # smaller sums of probabilities may lack terms that underflow


class OnlineFilter:
    """The filtered state distribution of a sequence that arrives step by step.

    Returned by `HiddenMarkovModel.online_filter`.

    Parameters
    ----------
    model : HiddenMarkovModel
        Fitted, or with fixed parameters.

    Attributes
    ----------
    n_steps : int
        The number of time steps so far.
    log_likelihood : float
        log p(all observations so far).
    surprisal : float
        −log p(last step | steps before it); 0 before the first step.

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
        self._model = copy.copy(model)  # a later fit replaces the tally of the model, not of this copy
        self._reader = SequenceReader.of(self._model)
        self._hmm = self._reader.hmm
        check_no_lags(
            self._hmm.emission_factors,
            "online filtering",
            "past steps are not kept",
            "Use filter_proba on the whole sequence.",
        )
        parameters = self._hmm.checked_parameters
        self._start, self._log_transition, _ = parameters.arguments
        self._transition = np.exp(self._log_transition)
        self._emission_scorer = parameters.emission_scorer()
        self._log_prob_of_level: dict[Any, np.ndarray] = {}  # by type and level, if a step is one category
        if parameters.is_coded:
            rows = zip(parameters.domains[0][0].levels, parameters.log_table(), strict=False)
            self._log_prob_of_level = {(type(level), level): row for level, row in rows}
        self._log_proba: np.ndarray | None = None  # log p(state | steps so far)
        self.n_steps = 0
        self.log_likelihood = 0.0
        self.surprisal = 0.0

    def update(self, step: object) -> None:
        """Update the state distribution with the next time step.

        An impossible step raises a warning; from then on, the state is undefined.

        Parameters
        ----------
        step : a value, a row of several columns, or a mapping from columns to cells
            The observation, as a step of a sequence of the model. With ``gaps``, it includes the number of unobserved
            time steps before it. None is a missing step.
        """
        step = step.item() if isinstance(step, np.generic) else step
        known = self._log_prob_of_level.get((type(step), step)) if isinstance(step, str | int) else None
        emission, gap = (known, 0) if known is not None else self._emission(step)
        joint = self._predicted(gap) + emission
        maximum = joint.max()
        if np.isneginf(maximum):
            if not np.isneginf(self.log_likelihood):
                warn(
                    f"step {self.n_steps} is impossible after those before it: the state is undefined from now on.\n"
                    f"    {IMPOSSIBLE_HINT}"
                )
            self._log_proba = np.full(len(joint), -np.inf)
            self.surprisal = np.inf
            self.log_likelihood = -np.inf
        else:
            log_prob = float(maximum + np.log(np.exp(joint - maximum).sum()))
            self._log_proba = joint - log_prob
            self.surprisal = -log_prob
            self.log_likelihood += log_prob
        self.n_steps += 1

    @property
    def proba(self) -> np.ndarray:
        """Return p(state | observations so far), as `filter_proba`; before the first step, p(first state)."""
        return np.exp(self._start if self._log_proba is None else self._log_proba)

    @property
    def state(self) -> Any:
        """Return the most probable current state; None after an impossible step."""
        index = -1 if np.isneginf(self.log_likelihood) else int(self.proba.argmax())
        label = labeled(self._hmm.state_labels, np.array([index]))[0]
        return label.item() if isinstance(label, np.generic) else label

    def forecast(self, horizon: int = 1, *, mass: float = 0.9) -> Forecast:
        """Return the forecast of the next time steps, as `HiddenMarkovModel.forecast`.

        Parameters
        ----------
        horizon : int, default 1
            The number of time steps ahead.
        mass : float, default 0.9
            The probability of the prediction intervals.

        Returns
        -------
        Forecast
        """
        check_forecast_parameters(horizon, mass)
        filtered = self.proba[None][: self.n_steps]
        return forecast_from(self._hmm, filtered, horizon, mass, History(self.n_steps))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the filter and its model to a sealed file. `tb.load` returns an identical filter.

        Parameters
        ----------
        path : str or path-like
        """
        manifest, arrays = model_to_parts(self._model)
        if self._log_proba is not None:
            arrays = arrays | {"filter/log": self._log_proba}
        numbers = np.array([self.log_likelihood, self.surprisal])
        content = {"model": manifest, "n_steps": self.n_steps}
        sealed_file.write(path, "OnlineFilter", content, {**arrays, "filter/numbers": numbers})

    @classmethod
    def _from_manifest(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Return the filter of a file. Raise FileError if its parts do not fit together."""
        log_proba = arrays.pop("filter/log", None)
        numbers = arrays.pop("filter/numbers")
        n_steps = manifest.pop("n_steps")
        restored = cls(model_from_parts(manifest.pop("model"), arrays))
        sealed_file.check_no_unknown_entries("the filter", manifest)
        valid = numbers.shape == (2,) and numbers.dtype == np.float64 and not np.isnan(numbers).any()
        valid = valid and type(n_steps) is int and n_steps >= 0 and (log_proba is None) == (n_steps == 0)
        if log_proba is not None:
            valid = valid and log_proba.shape == restored._start.shape and log_proba.dtype == np.float64
            valid = valid and not (log_proba > 1e-9).any() and not np.isnan(log_proba).any()
        if not valid:
            raise FileError("the state distribution of the filter does not fit its model.")
        restored._log_proba = log_proba
        restored.n_steps = n_steps
        restored.log_likelihood, restored.surprisal = map(float, numbers)
        return restored

    def __getstate__(self) -> tuple[Any, ...]:  # for copy and pickle: everything else follows from the model
        return self._model, self._log_proba, self.n_steps, self.log_likelihood, self.surprisal

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        model, *rest = state
        self.__init__(model)  # type: ignore[misc]
        self._log_proba, self.n_steps, self.log_likelihood, self.surprisal = rest

    def _emission(self, step: object) -> tuple[np.ndarray, int]:
        """Return log p(step | state), shape (states,), and the number of unobserved time steps before it."""
        if hasattr(step, "to_dict"):  # a row of a data frame
            step = step.to_dict()
        one_step: Any = {name: [cell] for name, cell in step.items()} if isinstance(step, Mapping) else [step]
        sequences = self._reader.open([one_step])
        gap = 0 if sequences.gaps is None else int(sequences.gaps[0])
        emission, _ = self._emission_scorer(sequences.table)
        return np.asarray(dense(emission)[0]), gap

    def _predicted(self, gap: int) -> np.ndarray:
        """Return log p(next state, sequence continues | steps so far), after `gap` unobserved time steps."""
        log_proba = self._start if self._log_proba is None else self._log_proba
        n_transitions = gap + (self._log_proba is not None)
        if not n_transitions:
            return log_proba
        if n_transitions > 1:
            power = log_power(self._log_transition, n_transitions)
            return np.asarray(np.logaddexp.reduce(log_proba[:, None] + power, axis=0))
        maximum = log_proba.max()
        if np.isneginf(maximum):
            return log_proba
        sums = np.exp(log_proba - maximum) @ self._transition
        with np.errstate(divide="ignore"):
            predicted: np.ndarray = np.log(sums) + maximum
        small = np.flatnonzero(sums < _UNDERFLOW)
        if len(small):
            predicted[small] = np.logaddexp.reduce(log_proba[:, None] + self._log_transition[:, small], axis=0)
        return predicted

    def __repr__(self) -> str:
        when = "before the first step" if not self.n_steps else f"after {self.n_steps} step{'s'[: self.n_steps > 1]}"
        if np.isneginf(self.log_likelihood):
            return f"filter {when}: impossible"
        order = np.argsort(-self.proba, kind="stable")
        shown = [f"{printable(self._hmm.state_labels[k])} ({self.proba[k]:.2f})" for k in order[:3]]
        return f"filter {when}: {', '.join(shown)}" + (f" and {len(order) - 3} more" if len(order) > 3 else "")
