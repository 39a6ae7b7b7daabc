"""tb.select_n_states: the number of states of a hidden Markov model, by held-out steps or by a criterion of one fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import Family
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.sequences import Sequences, open_sequences, step_weights
from tallybayes.results.state_selection import CRITERIA, StateCandidate, StateSelection
from tallybayes.typing import Name, RandomState, Rows, SampleWeights


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
    """Choose the number of states of a hidden Markov model, fitted to sequences without known states.

    Parameters
    ----------
    model : HiddenMarkovModel
        Its parameters are those of every fit, except the number of states; it is not changed.
    X, lengths, sequence, order, sample_weight
        As for its ``fit``.
    candidates : iterable of int, default 1 to 6
        The numbers of states to compare.
    by : {"held_out", "evidence_bound", "bic", "icl"}, default "held_out"
        The criterion. ``"held_out"``: bits per step of held-out sequences, by cross-validation. Of a single sequence,
        segments are held out: the model is fitted with their steps missing, and they are scored by
        log p(segment | all other steps), before and after it. The other criteria need one fit each.
        ``"evidence_bound"``: a lower bound of the log evidence (``evidence_lower_bound_``), parameters integrated out,
        by the variational distribution of the states. ``"bic"``: the Bayesian information criterion (Schwarz 1978).
        ``"icl"``: BIC plus twice the entropy of the states, which prefers states that are well separated (Biernacki,
        Celeux and Govaert 2000).
    folds : int, default 10
        The number of folds of sequences, or of segments of a single one; at most the number of sequences.
    n_init : int, default 5
        The number of initializations of every fit, unless the model has a higher one.
    random_state : int, Generator or None, default 0
        For the folds and, if the model has none, for the initializations.

    Returns
    -------
    StateSelection

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> busy = np.cumsum(rng.random((8, 60)) < 0.05, axis=1) % 2
    >>> calls = list(rng.poisson(np.where(busy, 12, 4)))
    >>> result = tb.select_n_states(tb.HiddenMarkovModel(columns=tb.Poisson()), calls, [1, 2, 3], "evidence_bound")
    >>> result.n_states, sorted(result.model.emission_[0].round(0).ravel().tolist())
    (2, [4.0, 12.0])
    """
    numbers = list(candidates)
    _check_arguments(model, numbers, by, folds)
    sequences, weight = _open_weighted(X, lengths, sequence, order, sample_weight)
    rng = np.random.default_rng(random_state)
    base = clone(model)
    if base.random_state is None:
        base.random_state = int(rng.integers(2**31))
    base.n_init = max(int(base.n_init), int(n_init))
    splits, held_out = _splits(sequences, int(folds), rng) if by == "held_out" else ([], "")
    results: list[StateCandidate] = []
    losses: list[tuple[np.ndarray, np.ndarray]] = []
    tasks = [(number, split) for number in numbers for split in (None, *splits)]
    for number, split in progress(tasks, "choose_states"):
        unfitted = clone(base).set_params(n_states=int(number))
        if split is None:  # the fit on all sequences comes first
            losses = []
            results.append(_candidate(int(number), _fit(unfitted, sequences, weight)))
            continue
        if isinstance(results[-1].model, EstimateError):
            continue
        unfitted.columns = results[-1].model.columns_  # of all steps: some steps may look like another family
        losses.append(split.score(unfitted, sequences, weight))
        if len(losses) == len(splits):
            log_density, steps = (np.concatenate(parts) for parts in zip(*losses, strict=True))
            results[-1] = results[-1].with_losses(log_density, steps)
    fitted = [each.model for each in results if not isinstance(each.model, EstimateError)]
    if not fitted and isinstance(results[0].model, EstimateError):
        raise results[0].model
    if by == "evidence_bound":
        _ = fitted[0].evidence_lower_bound_  # raises an error if it is undefined
    return StateSelection(results, by, held_out)


def _check_arguments(model: object, numbers: list[int], by: str, folds: int) -> None:
    """Raise DataError if an argument of `select_n_states` has the wrong type or is out of range."""
    if not isinstance(model, HiddenMarkovModel):
        raise DataError.wrong_type("model", type(model).__name__, "a HiddenMarkovModel")
    if by not in CRITERIA:
        raise DataError.wrong_type("by", repr(by), " or ".join(map(repr, CRITERIA)))
    if not numbers or not all(is_integer_at_least(number) for number in numbers) or len(set(numbers)) < len(numbers):
        raise DataError.wrong_type("candidates", repr(numbers), "different whole numbers of at least 1")
    if not is_integer_at_least(folds, 2):
        raise DataError.wrong_type("folds", repr(folds), "a whole number of at least 2")


def _open_weighted(
    X: Rows, lengths: npt.ArrayLike | None, sequence: str | None, order: str | None, sample_weight: SampleWeights
) -> tuple[Sequences, np.ndarray | None]:
    """Return the sequences that have steps and weight, and their weights."""
    sequences = open_sequences(X, lengths, sequence, order)
    weight = step_weights(sample_weight, sequences)
    if weight is None and sequences.lengths.all():
        return sequences, None
    kept = np.flatnonzero((sequences.lengths > 0) & (True if weight is None else weight > 0))
    if not len(kept):
        raise DataError("no sequence has steps and weight; expected at least one to fit.")
    return sequences.some(kept)[1], None if weight is None else weight[kept]


# ---- Fits -----------------------------------------------------------------------------------------------------------


def _fit(
    model: HiddenMarkovModel, sequences: Sequences, weight: np.ndarray | None
) -> HiddenMarkovModel | EstimateError:
    """Fit a model to sequences; return the error if the fit fails. The result reports missing convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return model.fit(sequences.table, None, sequences.lengths, sample_weight=weight)
        except EstimateError as error:
            return error


def _candidate(n_states: int, model: HiddenMarkovModel | EstimateError) -> StateCandidate:
    """Return a candidate with the criteria of one fit."""
    if isinstance(model, EstimateError):
        return StateCandidate(n_states, model)
    bic = float(model.bic_)
    bound = np.nan
    with suppress(EstimateError):  # undefined under a stationary initial distribution
        bound = float(model.evidence_lower_bound_)
    em = model._em_result
    assert em is not None
    return StateCandidate(n_states, model, bound, bic, bic + 2 * float(em.entropy))


def _log_density(model: HiddenMarkovModel | EstimateError, sequences: Sequences) -> np.ndarray:
    """Return log p(sequence) of every sequence; −inf if the fit failed."""
    if isinstance(model, EstimateError):
        return np.full(sequences.n_sequences, -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # impossible steps have infinite bits in the result
        return np.asarray(model.score_samples(sequences.table, sequences.lengths))


# ---- Held-out sequences and segments --------------------------------------------------------------------------------


class _HeldOutSequences(NamedTuple):
    """Sequences to hold out."""

    test: np.ndarray

    def score(
        self, model: HiddenMarkovModel, sequences: Sequences, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted log p(sequence) under the model of all others, and the weighted numbers of steps."""
        train = np.setdiff1d(np.arange(sequences.n_sequences), self.test)
        fitted = _fit(model, sequences.some(train)[1], None if weight is None else weight[train])
        _, held_out = sequences.some(self.test)
        size = np.ones(len(self.test)) if weight is None else weight[self.test]
        return _log_density(fitted, held_out) * size, held_out.lengths * size


class _HeldOutSegment(NamedTuple):
    """Consecutive steps of a single sequence to hold out."""

    steps: slice

    def score(
        self, model: HiddenMarkovModel, sequences: Sequences, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(segment | all other steps) under a model fitted with the segment missing, and its length."""
        families: dict[Name, Family] = model.columns  # type: ignore[assignment]  # as fitted to all steps
        informative = [name for name, family in families.items() if family.present_family is not None]
        if informative:
            raise DataError(
                f"missing values of {informative[0]!r} are informative, so that steps cannot be held out as missing.\n"
                "    Pass several sequences, or choose by 'evidence_bound', 'bic' or 'icl'."
            )
        train = sequences._replace(table=_with_missing_steps(sequences.table, self.steps, model.gaps))
        fitted = _fit(model, train, weight)
        n_steps = np.array([float(self.steps.stop - self.steps.start)])
        return _log_density(fitted, sequences) - _log_density(fitted, train), n_steps


def _splits(
    sequences: Sequences, folds: int, rng: np.random.Generator
) -> tuple[list[_HeldOutSequences] | list[_HeldOutSegment], str]:
    """Return the parts to hold out, one after the other, and their description."""
    n = sequences.n_sequences
    if n > 1:
        fold = random_folds(np.zeros(n, dtype=np.intp), min(folds, n), rng)
        parts = [_HeldOutSequences(np.flatnonzero(fold == k)) for k in np.unique(fold)]
        return parts, f"{n} sequences held out in {len(parts)} folds"
    n_steps = int(sequences.offsets[-1])
    if n_steps < 2:
        raise DataError("there is 1 step in all; expected at least 2, to hold some out.")
    bounds = np.linspace(0, n_steps, min(folds, n_steps) + 1).round().astype(int)
    segments = [_HeldOutSegment(slice(start, stop)) for start, stop in pairwise(bounds.tolist())]
    return segments, f"1 sequence: {len(segments)} segments held out in turn, each scored given all other steps"


def _with_missing_steps(table: Table, steps: slice, gaps: Name | None) -> Table:
    """Return the table with some steps missing; the column of gaps stays as it is."""
    columns: dict[Name, object] = {}
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
