"""StateSelection: the number of states of a hidden Markov model, by a criterion."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tallybayes.errors import DataError, EstimateError
from tallybayes.results.metric_intervals import UNDEFINED, MetricEstimate, average, excess_loss
from tallybayes.results.result import FrameData, PlottedResult, ResultTable

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

# Criteria by name: their text, and whether higher is better.
CRITERIA = {
    "held_out": ("bits per step held out", False),
    "evidence_bound": ("lower bound of the log evidence", True),
    "bic": ("BIC", False),
    "icl": ("ICL", False),
}
_HEADS = {"evidence_bound": "log evidence ≥", "bic": "BIC", "icl": "ICL"}
_MASS = 0.95


class StateCandidate(NamedTuple):
    """A number of states, the fitted model or the error of the fit, and the criteria."""

    n_states: int
    model: HiddenMarkovModel | EstimateError
    evidence_bound: float = np.nan
    bic: float = np.nan
    icl: float = np.nan
    losses: np.ndarray = np.zeros(0)  # bits per step of every held-out sequence or segment
    steps: np.ndarray = np.zeros(0)

    def with_losses(self, log_density: np.ndarray, steps: np.ndarray) -> StateCandidate:
        """Return the candidate with the log densities and numbers of steps of all held-out parts."""
        return self._replace(losses=-log_density / np.log(2.0) / steps, steps=steps)


class StateSelection(PlottedResult):
    """Numbers of states compared by a criterion. Returned by `select_n_states`.

    Attributes
    ----------
    n_states : int
        The best number of states.
    model : HiddenMarkovModel
        The model of that number, fitted on all sequences.
    by : str
        The criterion.
    candidates : list of int
        The numbers of states.
    models : list of HiddenMarkovModel
        The models of all candidates; None if the fit failed.
    scores : list of MetricEstimate
        The criterion by candidate; on held-out data with an interval of 95 %.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> calls = np.random.default_rng(0).poisson(np.repeat([4, 12, 4, 12], 50))
    >>> tb.select_n_states(tb.HiddenMarkovModel(columns=tb.Poisson()), calls, [1, 2, 3], by="bic")
    2 states, by BIC (lower is better)
      states      BIC  log evidence ≥      ICL
           1  1337.56         -668.79  1337.56
    *      2   976.19         -488.27   979.46
           3  1010.47         -499.40  1148.62
      EM did not converge with 3 states. Increase max_iter or tol.
    """

    _plot_function = "hmm.state_selection.plot_choice"

    def __init__(self, candidates: list[StateCandidate], by: str, held_out: str) -> None:
        self.by = by
        self.candidates = [each.n_states for each in candidates]
        self.models = [None if isinstance(each.model, EstimateError) else each.model for each in candidates]
        self.scores = [_score(each, by) for each in candidates]
        self._candidates = candidates
        self._held_out = held_out  # text: what was held out, if anything
        higher_is_better = CRITERIA[by][1]
        values = np.array([score.value for score in self.scores])
        self._best = int(np.where(np.isnan(values), np.inf, -values if higher_is_better else values).argmin())
        self.n_states = self.candidates[self._best]
        self.model = self.models[self._best]

    @property
    def criterion(self) -> str:
        """The criterion as text."""
        return CRITERIA[self.by][0]

    def excess_loss(self, n_states: int) -> MetricEstimate:
        """Return the mean difference of the held-out bits per step to those of the best number of states.

        Its interval of 95 % is that of paired differences on the same sequences or segments: much shorter than the
        intervals of the two means.

        Parameters
        ----------
        n_states : int

        Returns
        -------
        MetricEstimate
        """
        if self.by != "held_out":
            raise DataError(f"no steps were held out: the criterion is {self.by!r}.\n    Pass by='held_out'.")
        if n_states not in self.candidates:
            raise DataError.wrong_type("n_states", repr(n_states), f"one of {self.candidates}")
        candidate = self._candidates[self.candidates.index(n_states)]
        best = self._candidates[self._best]
        if not len(candidate.losses):
            return UNDEFINED
        return excess_loss(candidate.losses, best.losses, best.steps, _MASS)

    def _frame_data(self) -> FrameData:
        return [
            {"n_states": each.n_states}
            | ({"bits_per_step": s.value, "low": s.low, "high": s.high} if self.by == "held_out" else {})
            | {"evidence_bound": each.evidence_bound, "bic": each.bic, "icl": each.icl}
            | {"converged": model is not None and bool(model.converged_)}
            for each, model, s in zip(self._candidates, self.models, self.scores, strict=True)
        ]

    def _content(self) -> list[str | ResultTable]:
        states = "1 state" if self.n_states == 1 else f"{self.n_states} states"
        better = "higher" if CRITERIA[self.by][1] else "lower"
        title = f"{states}, by {self.criterion} ({better} is better)"
        columns = sorted(_HEADS, key=lambda name: name != self.by)  # the criterion first
        formats = {"states": "{n_states}"}
        if self.by == "held_out":
            formats |= {"bits per step": "{score}", "excess loss": "{excess}"}
        formats |= {_HEADS[name]: f"{{{name}:.2f}}" for name in columns}
        records = []
        for each, score in zip(self._candidates, self.scores, strict=True):
            known = len(each.losses) > 0
            is_compared = known and each.n_states != self.n_states
            excess = self.excess_loss(each.n_states) if is_compared else ""
            records.append(each._asdict() | {"score": score if known else None, "excess": excess})
        table = ResultTable.of(records, formats, title, "r", best=self._best)
        return [table, *(f"  {note}" for note in self._notes())]

    def _notes(self) -> list[str]:
        """Return notes: what was held out, and fits that did not converge or failed."""
        notes = [self._held_out] if self._held_out else []
        fitted = zip(self.candidates, self.models, strict=True)
        unconverged = [str(n) for n, model in fitted if model is not None and not model.converged_]
        if unconverged:
            notes.append(f"EM did not converge with {', '.join(unconverged)} states. Increase max_iter or tol.")
        failed = [(each.n_states, each.model) for each in self._candidates if isinstance(each.model, EstimateError)]
        return notes + [f"The fit with {n} states failed: {str(error).splitlines()[0]}" for n, error in failed]


def _score(candidate: StateCandidate, by: str) -> MetricEstimate:
    """Return the criterion of a candidate."""
    if by == "held_out":
        return average(candidate.losses, candidate.steps, _MASS) if len(candidate.losses) else UNDEFINED
    value = float(getattr(candidate, by))
    return MetricEstimate(value, value, value)
