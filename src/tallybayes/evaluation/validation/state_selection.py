"""tb.select_n_states: the number of states of a hidden Markov model, by held-out steps or by a criterion of one fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.parameter_checks import check_count, is_integer_at_least, random_generator, read_list
from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.resampling.folds import random_folds, rows_by_code
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import Family
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.sequences import Sequences, open_sequences, step_weights
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.results.state_selection import CRITERIA, StateCandidate, StateSelection
from tallybayes.typing import Name, RandomState, Rows, SampleWeights


@with_parameter_hints
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
    numbers = read_list("candidates", candidates, "a list of numbers of states")
    _check_arguments(model, numbers, by, folds)
    sequences, weight = _open_weighted(X, lengths, sequence, order, sample_weight)
    rng = random_generator(random_state)
    base = clone(model)
    if base.random_state is None:
        base.random_state = int(rng.integers(2**31))
    base.n_init = max(int(base.n_init), check_count("n_init", n_init))
    splits, held_out = _splits(sequences, weight, int(folds), rng) if by == "held_out" else ([], "")
    results = [
        _candidate(clone(base).set_params(n_states=int(number)), sequences, weight, splits)
        for number in progress(numbers, "choose_states")
    ]
    fitted = [each.model for each in results if not isinstance(each.model, EstimateError)]
    if not fitted and isinstance(results[0].model, EstimateError):
        raise results[0].model
    if by == "evidence_bound":
        _ = fitted[0].evidence_lower_bound_  # raises an error if it is undefined
    return StateSelection(results, by, held_out)


# From an unfitted model to the log densities of some held-out parts under it, and their numbers of steps.
Split = Callable[[HiddenMarkovModel], tuple[np.ndarray, np.ndarray]]


def _check_arguments(model: object, numbers: list[int], by: str, folds: int) -> None:
    """Raise DataError if an argument of `select_n_states` has the wrong type or is out of range."""
    if not isinstance(model, HiddenMarkovModel):
        raise DataError.wrong_type("model", type(model).__name__, "a HiddenMarkovModel")
    if by not in CRITERIA:
        raise DataError.wrong_type("by", repr(by), " or ".join(map(repr, CRITERIA)))
    if not numbers or not all(is_integer_at_least(number) for number in numbers) or len(set(numbers)) < len(numbers):
        raise DataError.wrong_type("candidates", repr(numbers), "different whole numbers of at least 1")
    check_count("folds", folds, 2)


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


def _candidate(
    unfitted: HiddenMarkovModel, sequences: Sequences, weight: np.ndarray | None, splits: list[Split]
) -> StateCandidate:
    """Return a candidate: the model of all sequences, its criteria, and its losses on held-out parts."""
    n_states: Any = unfitted.n_states
    model = _fit(clone(unfitted), sequences, weight)
    if isinstance(model, EstimateError):
        return StateCandidate(n_states, model)
    bic = float(model.bic_)
    bound = np.nan
    with suppress(EstimateError):  # undefined under a stationary initial distribution
        bound = float(model.evidence_lower_bound_)
    em = model._em_result
    assert em is not None
    candidate = StateCandidate(n_states, model, bound, bic, bic + 2 * float(em.entropy))
    if not splits:
        return candidate
    unfitted.columns = model.columns_  # of all steps: some steps may look like another family
    parts = [score(clone(unfitted)) for score in splits]
    return candidate.with_losses(*map(np.concatenate, zip(*parts, strict=True)))


def _log_density(model: HiddenMarkovModel | EstimateError, sequences: Sequences) -> np.ndarray:
    """Return log p(sequence) of every sequence; −inf if the fit failed."""
    if isinstance(model, EstimateError):
        return np.full(sequences.n_sequences, -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # impossible steps have infinite bits in the result
        return np.asarray(model.score_samples(sequences.table, sequences.lengths))


# ---- Held-out sequences and segments --------------------------------------------------------------------------------


def _splits(
    sequences: Sequences, weight: np.ndarray | None, folds: int, rng: np.random.Generator
) -> tuple[list[Split], str]:
    """Return the parts to hold out, one after the other, and their description."""
    n = sequences.n_sequences
    if n > 1:
        fold = random_folds(np.zeros(n, dtype=np.intp), min(folds, n), rng)
        tests = rows_by_code(fold, int(fold.max()) + 1)
        parts: list[Split] = [partial(_score_sequences, sequences, weight, test) for test in tests]
        return parts, f"{n} sequences held out in {len(parts)} folds"
    n_steps = int(sequences.offsets[-1])
    if n_steps < 2:
        raise DataError("there is 1 step in all; expected at least 2, to hold some out.")
    bounds = np.linspace(0, n_steps, min(folds, n_steps) + 1).round().astype(int)
    parts = [partial(_score_segment, sequences, weight, slice(*ends)) for ends in pairwise(bounds.tolist())]
    return parts, f"1 sequence: {len(parts)} segments held out in turn, each scored given all other steps"


def _score_sequences(
    sequences: Sequences, weight: np.ndarray | None, test: np.ndarray, model: HiddenMarkovModel
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted log p(sequence) of some under the model of all others, and the weighted numbers of steps."""
    train = np.setdiff1d(np.arange(sequences.n_sequences), test)
    fitted = _fit(model, sequences.some(train)[1], None if weight is None else weight[train])
    _, held_out = sequences.some(test)
    size = np.ones(len(test)) if weight is None else weight[test]
    return _log_density(fitted, held_out) * size, held_out.lengths * size


def _score_segment(
    sequences: Sequences, weight: np.ndarray | None, steps: slice, model: HiddenMarkovModel
) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(segment | all other steps) under a model fitted with the segment missing, and its length."""
    families: dict[Name, Family] = model.columns  # type: ignore[assignment]  # as fitted to all steps
    informative = [name for name, family in families.items() if family.present_family is not None]
    if informative:
        raise DataError(
            f"missing values of {informative[0]!r} are informative, so that steps cannot be held out as missing.\n"
            "    Pass several sequences, or choose by 'evidence_bound', 'bic' or 'icl'."
        )
    train = sequences._replace(table=_with_missing_steps(sequences.table, steps, model.gaps))
    fitted = _fit(model, train, weight)
    n_steps = np.array([float(steps.stop - steps.start)])
    return _log_density(fitted, sequences) - _log_density(fitted, train), n_steps


def _with_missing_steps(table: Table, steps: slice, gaps: Name | None) -> Table:
    """Return the table with some steps missing; the column of gaps stays as it is."""
    columns = dict(table.columns)
    for name, column in columns.items():
        if name == gaps and gaps is not None:
            continue
        if isinstance(column, SparseRows):
            raise DataError.wrong_type(f"column {name!r}", "sparse", "dense columns, so that steps can be held out")
        cells = np.asarray(column)
        cells = cells.astype(np.float64 if cells.dtype.kind in "iuf" else object)
        cells[steps] = np.nan if cells.dtype.kind == "f" else None
        columns[name] = cells
    return Table(columns)
