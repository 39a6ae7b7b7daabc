"""Choosing the number of states of a hidden Markov model: on steps held out, or by what one fit says."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.html import html_parts
from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, average
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.sequences import Sequences, open_sequences, step_weights
from tallybayes.typing import RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

# What a number of states can be judged by, in words, and whether more is better.
CRITERIA = {
    "held_out": ("bits per step held out", False),
    "evidence_bound": ("lower bound of the log evidence", True),
    "bic": ("BIC", False),
    "icl": ("ICL", False),
}
_MASS = 0.95


def select_n_states(
    model: HiddenMarkovModel,
    X: Rows,
    candidates: Iterable[int] = range(1, 7),
    by: str = "held_out",
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    sample_weight: SampleWeights = None,
    folds: int = 10,
    n_init: int = 5,
    random_state: RandomState = 0,
) -> StateSelection:
    """How many states a hidden Markov model should have, learned from sequences whose states are not known.

    Parameters
    ----------
    model : HiddenMarkovModel
        Its settings are those of every fit, but for the number of states; it is not changed.
    X, lengths, sequence, order, sample_weight
        As for its ``fit``.
    candidates : iterable of int, default 1 to 6
    by : {"held_out", "evidence_bound", "bic", "icl"}, default "held_out"
        ``"held_out"``: bits per step of sequences that were not learned from, by cross-validation. Of one sequence
        alone, stretches are held out: the model is learned with their steps missing, and they are judged by
        log p(stretch | all other steps), before and after it. The others take one fit each. ``"evidence_bound"``: a
        lower bound of the log evidence (``evidence_lower_bound_``), parameters integrated out, the states by what EM believes
        of them. ``"bic"``: the Bayesian information criterion, an approximation for many steps. ``"icl"``: the same and
        twice the entropy of the states, so that states have to be told apart, not only to help.
    folds : int, default 10
        Of sequences, or stretches of one. As many as there are sequences, if these are fewer.
    n_init : int, default 5
        The starts of every fit, where the model itself says fewer.
    random_state : int, Generator or None, default 0
        For the folds and, where the model says none, for the starts: the same again gives the same.

    Returns
    -------
    ChosenStates

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> busy = np.cumsum(rng.random((8, 60)) < 0.05, axis=1) % 2
    >>> calls = list(rng.poisson(np.where(busy, 12, 4)))
    >>> found = tb.select_n_states(tb.HiddenMarkovModel(columns=tb.Poisson()), calls, [1, 2, 3], "evidence_bound")
    >>> found.n_states, sorted(found.model.emission_[0].round(0).ravel().tolist())
    (2, [4.0, 12.0])
    """
    numbers = list(candidates)
    _check_arguments(model, numbers, by, folds)
    sequences = open_sequences(X, lengths, sequence, order)
    weight = step_weights(sample_weight, sequences)
    if weight is not None or not sequences.lengths.all():  # what has no weight, or no step, says nothing
        kept = np.flatnonzero((sequences.lengths > 0) & (True if weight is None else weight > 0))
        if not len(kept):
            raise DataError("no sequence has steps and weight; expected at least one to learn from.")
        _, sequences = sequences.some(kept)
        weight = None if weight is None else weight[kept]
    rng = np.random.default_rng(random_state)
    base = clone(model)
    if base.random_state is None:
        base.random_state = int(rng.integers(2**31))
    base.n_init = max(int(base.n_init), int(n_init))
    splits, what = _splits(sequences, int(folds), rng) if by == "held_out" else ([], "")
    found: list[StateCandidate] = []
    tasks = [(number, place) for number in numbers for place in range(-1, len(splits))]
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for number, place in progress(tasks, "choose_states"):
        asked = clone(base).set_params(n_states=int(number))
        if place < 0:
            parts, whole = [], _fitted(asked, sequences, weight)
            found.append(_measured(int(number), whole))
            continue
        if isinstance(found[-1].model, EstimateError):
            continue
        asked.columns = found[-1].model.columns_  # as all steps have them: fewer may look like something else
        parts.append(splits[place].score(asked, sequences, weight))
        if place == len(splits) - 1:
            found[-1] = found[-1].with_losses(*(np.concatenate(both) for both in zip(*parts, strict=True)))
    failed = [each.model for each in found if isinstance(each.model, EstimateError)]
    if len(failed) == len(found):
        raise failed[0]
    if by == "evidence_bound":
        _ = next(
            each for each in found if each.model not in failed
        ).model.evidence_lower_bound_  # which says why there is none
    return StateSelection(found, by, what)


def _check_arguments(model: Any, numbers: list[Any], by: Any, folds: Any) -> None:
    """Refuse arguments of `select_n_states` that are of another type, or outside their range."""
    if not isinstance(model, HiddenMarkovModel):
        raise DataError.wrong_type("model", type(model).__name__, "a HiddenMarkovModel")
    if by not in CRITERIA:
        raise DataError.wrong_type("by", repr(by), " or ".join(map(repr, CRITERIA)))
    if not numbers or not all(is_integer_at_least(number) for number in numbers) or len(set(numbers)) < len(numbers):
        raise DataError.wrong_type("candidates", repr(numbers), "different whole numbers of at least 1")
    if not is_integer_at_least(folds, 2):
        raise DataError.wrong_type("folds", repr(folds), "a whole number of at least 2")


class StateCandidate(NamedTuple):
    """A number of states, the model that was learned, and what speaks for it."""

    n_states: int
    model: Any  # or the error that learning ended in
    evidence_bound: float = np.nan
    bic: float = np.nan
    icl: float = np.nan
    losses: np.ndarray = np.zeros(0)  # bits per step of every sequence or stretch held out
    steps: np.ndarray = np.zeros(0)

    def with_losses(self, log_density: np.ndarray, steps: np.ndarray) -> StateCandidate:
        """The same with what was held out."""
        return self._replace(losses=-log_density / np.log(2.0) / steps, steps=steps)


class StateSelection:
    """Numbers of states and what speaks for each. Made by `select_n_states`.

    Attributes
    ----------
    n_states : int
        The best number.
    model : HiddenMarkovModel
        Learned from all sequences with so many.
    by : str
        What was judged by.
    candidates : list of int
    models : list of HiddenMarkovModel
        Of all candidates; None where learning failed.
    scores : list of Measure
        By candidate; held out, with an interval of 95 %.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> calls = np.random.default_rng(0).poisson(np.repeat([4, 12, 4, 12], 50))
    >>> tb.select_n_states(tb.HiddenMarkovModel(columns=tb.Poisson()), calls, [1, 2, 3], by="bic")
    2 states, by BIC (lower is better)
      states      BIC  log evidence ≥      ICL
           1  1337.56         -668.79  1337.56
    *      2   976.19         -488.27   979.46
           3  1009.73         -499.13  1154.43
    """

    def __init__(self, found: list[StateCandidate], by: str, what: str) -> None:
        self._found, self.by, self._what = found, by, what
        self.candidates = [each.n_states for each in found]
        self.models = [None if isinstance(each.model, EstimateError) else each.model for each in found]
        more_is_better = CRITERIA[by][1]
        self.scores = [self._score(each) for each in found]
        values = np.array([score.value for score in self.scores])
        values = np.where(np.isnan(values), np.inf, -values if more_is_better else values)
        self._best = int(values.argmin())
        self.n_states, self.model = self.candidates[self._best], self.models[self._best]

    def _score(self, each: StateCandidate) -> MetricEstimate:
        if self.by != "held_out":
            value = float(getattr(each, self.by))
            return MetricEstimate(value, value, value)
        return average(each.losses, each.steps, _MASS) if len(each.losses) else MetricEstimate(np.nan, np.nan, np.nan)

    def excess_loss(self, n_states: int) -> MetricEstimate:
        """How many more bits a step a number of states takes than the best one, held out, with an interval of 95 %.

        From the differences on the same sequences or stretches: far surer than two figures apart.

        Parameters
        ----------
        n_states : int
        """
        if self.by != "held_out":
            raise DataError(f"nothing was held out: the states were chosen by {self.by!r}.\n    Pass by='held_out'.")
        if n_states not in self.candidates:
            raise DataError.wrong_type("n_states", repr(n_states), f"one of {self.candidates}")
        one, best = self._found[self.candidates.index(n_states)], self._found[self._best]
        if not len(one.losses):
            return MetricEstimate(np.nan, np.nan, np.nan)
        with np.errstate(invalid="ignore"):
            gap = one.losses - best.losses
        return average(np.where(np.isnan(gap), 0.0, gap), best.steps, _MASS)  # both may find a step impossible

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: a line for every number of states, and all that was found for it."""
        import pandas as pd

        lines = []
        for each, model, score in zip(self._found, self.models, self.scores, strict=True):
            line: dict[str, Any] = {"n_states": each.n_states}
            if self.by == "held_out":
                line |= {"bits_per_step": score.value, "low": score.low, "high": score.high}
            line |= {"evidence_bound": each.evidence_bound, "bic": each.bic, "icl": each.icl}
            lines.append(line | {"converged": model is not None and bool(model.converged_)})
        return pd.DataFrame(lines)

    def plot(self, ax: Axes | None = None) -> Plot:
        """A picture: the criterion against the number of states, with intervals where there are; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.hmm.state_selection import plot_choice

        return plot_choice(self, ax)

    @property
    def criterion(self) -> str:
        """What was judged by, in words."""
        return CRITERIA[self.by][0]

    def _title(self) -> str:
        many = "1 state" if self.n_states == 1 else f"{self.n_states} states"
        better = "higher" if CRITERIA[self.by][1] else "lower"
        return f"{many}, by {self.criterion} ({better} is better)"

    def _lines(self) -> list[list[str]]:
        """The table, its head first."""
        held = self.by == "held_out"
        others = [name for name in ("evidence_bound", "bic", "icl") if name != self.by]
        names = {"evidence_bound": "log evidence ≥", "bic": "BIC", "icl": "ICL"}
        head = ["", "states", "bits per step" if held else names[self.by], *(["behind the best"] if held else [])]
        lines = [[*head, *(names[name] for name in others)]]
        for place, (each, score) in enumerate(zip(self._found, self.scores, strict=True)):
            best = place == self._best
            line = ["*" if best else "", str(each.n_states)]
            if held:
                known = len(each.losses) > 0
                behind = repr(self.excess_loss(each.n_states)) if known and not best else ""
                line += [repr(score) if known else "—", behind]
            else:
                line.append(_number(score.value))
            lines.append([*line, *(_number(getattr(each, name)) for name in others)])
        return lines

    def _notes(self) -> list[str]:
        notes = [self._what] if self._what else []
        climbing = [
            str(n) for n, model in zip(self.candidates, self.models, strict=True) if model and not model.converged_
        ]
        if climbing:
            notes.append(f"EM was still climbing with {', '.join(climbing)} states: raise max_iter, or tol.")
        failed = [each for each in self._found if isinstance(each.model, EstimateError)]
        return notes + [
            f"{one.n_states} states could not be learned: {str(one.model).splitlines()[0]}" for one in failed
        ]

    def __repr__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            " ".join([line[0] or " ", "  ".join(f"{c:>{w}}" for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        ]
        return "\n".join([self._title(), *(line.rstrip() for line in text), *(f"  {note}" for note in self._notes())])

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        return html_parts((self._title(), head, rows), *self._notes())


def _number(value: float) -> str:
    return "—" if np.isnan(value) else f"{value:.2f}"


# ---- Learning and holding out ---------------------------------------------------------------------------------------


def _fitted(model: Any, sequences: Sequences, weight: np.ndarray | None) -> Any:
    """The model learned from sequences, or the error that it ended in; that EM was still climbing is told later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return model.fit(sequences.table, None, sequences.lengths, sample_weight=weight)
        except EstimateError as error:
            return error


def _measured(n_states: int, model: Any) -> StateCandidate:
    """What one fit says."""
    if isinstance(model, EstimateError):
        return StateCandidate(n_states, model)
    bic, bound = float(model.bic_), np.nan
    with suppress(EstimateError):  # a stationary start has no closed form
        bound = float(model.evidence_lower_bound_)
    return StateCandidate(n_states, model, bound, bic, bic + 2 * float(model._em_result.entropy))


class _Whole(NamedTuple):
    """Some sequences to be held out."""

    test: np.ndarray

    def score(self, model: Any, sequences: Sequences, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """log p(sequence) by the model of all others, weighted, and the steps, weighted."""
        rest = np.setdiff1d(np.arange(sequences.n_sequences), self.test)
        fitted = _fitted(model, sequences.some(rest)[1], None if weight is None else weight[rest])
        _, part = sequences.some(self.test)
        size = np.ones(len(self.test)) if weight is None else weight[self.test]
        return _log_density(fitted, part) * size, part.lengths * size


class _Stretch(NamedTuple):
    """Some steps of a sequence to be held out, in a row."""

    steps: slice

    def score(self, model: Any, sequences: Sequences, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """log p(stretch | all other steps) by the model that was learned with the stretch missing, and its steps."""
        absent = [name for name, family in model.columns.items() if family.present_family is not None]
        if absent:
            raise DataError(
                f"the absence of {absent[0]!r} is a value, so steps without it are not held out.\n"
                "    Pass several sequences, or choose by 'evidence_bound', 'bic' or 'icl'."
            )
        rest = sequences._replace(table=_blanked(sequences.table, self.steps, model.gaps))
        fitted = _fitted(model, rest, weight)
        n_steps = np.array([float(self.steps.stop - self.steps.start)])
        return _log_density(fitted, sequences) - _log_density(fitted, rest), n_steps


def _splits(sequences: Sequences, folds: int, rng: np.random.Generator) -> tuple[list[Any], str]:
    """What is held out, one part after the other, and how to say it."""
    n = sequences.n_sequences
    if n > 1:
        fold = random_folds(np.zeros(n, dtype=np.intp), min(folds, n), rng)
        parts = [np.flatnonzero(fold == k) for k in np.unique(fold)]
        return [_Whole(part) for part in parts], f"{n} sequences held out in {len(parts)} folds"
    n_steps = int(sequences.offsets[-1])
    if n_steps < 2:
        raise DataError("there is 1 step in all; expected at least 2, to hold some out.")
    cuts = np.linspace(0, n_steps, min(folds, n_steps) + 1).round().astype(int)
    stretches = [_Stretch(slice(a, b)) for a, b in pairwise(cuts.tolist())]
    said = f"1 sequence: {len(stretches)} stretches of it held out in turn, each judged given all other steps"
    return stretches, said


def _log_density(model: Any, sequences: Sequences) -> np.ndarray:
    """log p(sequence) of every sequence; −inf where learning failed."""
    if isinstance(model, EstimateError):
        return np.full(sequences.n_sequences, -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what is impossible costs infinitely many bits, and is seen
        return np.asarray(model.score_samples(sequences.table, sequences.lengths))


def _blanked(table: Table, steps: slice, gaps: Any) -> Table:
    """The same steps, some of which are missing; how many silent ones lie between them stays."""
    columns: dict[Any, Any] = {}
    for name, column in table.columns.items():
        if name == gaps and gaps is not None:
            columns[name] = column
            continue
        if isinstance(column, SparseRows):
            raise DataError.wrong_type(f"column {name!r}", "sparse", "dense columns, so that steps can be held out")
        cells = np.asarray(column)
        cells = cells.astype(np.float64) if cells.dtype.kind in "iuf" else cells.astype(object)
        cells[steps] = np.nan if cells.dtype.kind == "f" else None
        columns[name] = cells
    return Table(columns)
