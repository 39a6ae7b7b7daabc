"""What a hidden Markov model says of sequences: their probability, their states, and the steps to come."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.indicator_columns import with_unknown
from tallybayes.errors import DataError
from tallybayes.kernels import hmm as kernels
from tallybayes.kernels import hmm_messages
from tallybayes.models.hmm.fitting.hmm_fit import open_labeled, read_states
from tallybayes.models.hmm.hmm_parameters import HMMParameters
from tallybayes.models.hmm.lagged_columns import with_lags
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.input_format import bound_texts
from tallybayes.models.inputs.invalid_cells import answering, mask_invalid_cells
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.typing import Labels, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


@answering
def score_samples(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> np.ndarray:
    """log p(sequence), states summed out: one number a sequence, −inf for an impossible one.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    ndarray of shape (sequences,)
    """
    sequences = open_sequences_for_query(model, X, lengths, sequence, order)
    chain = model._estimated_hmm.checked_parameters
    found = np.concatenate([kernels.log_likelihood(*asked) for asked in chain.kernel_arguments(sequences)])
    warn_impossible(model, sequences, found)
    return found


@answering
def log_likelihood(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels | None = None,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """log p(all sequences) or, with states, log p(all sequences and their states), in nats.

    Parameters
    ----------
    X, y, lengths, sequence, order, sample_weight
        As for `fit`; where states are given, every step has its own.
    """
    where = {"sequence": sequence, "order": order}
    each = score_samples(model, X, lengths, **where) if y is None else log_joint(model, X, y, lengths, **where)
    return weighted_sum(each, sample_weight)


@answering
def score(
    model: HiddenMarkovModel, X: Rows, y: Labels | None = None, lengths: npt.ArrayLike | None = None, **where: Any
) -> float:
    """Without states, the mean log p(sequence); with them, the share of steps whose state `predict` tells.

    The latter is the accuracy of `tb.evaluate` and `tb.cross_validate`, too: steps without a state do not count, and
    all steps of an impossible sequence are taken for the first state.

    Parameters
    ----------
    X, y, lengths, **where
        As for `fit`.
    """
    if y is None:
        return float(score_samples(model, X, lengths, **where).mean())
    sequences, y = open_labeled(X, y, lengths, where.get("sequence"), where.get("order"))
    sequences = read_steps(model, sequences.with_gaps(model.gaps))
    codes, domain = read_states(y)
    assert codes is not None
    paths, _ = run_kernel(model._estimated_hmm.checked_parameters, kernels.viterbi, sequences)
    path = np.maximum(np.concatenate([np.zeros(0, dtype=np.int64), *paths]), 0)
    truth = np.append(model._estimated_hmm.states.positions_of(domain.levels), -2)[codes]
    known = codes >= 0
    return float(np.mean(path[known] == truth[known]))


@answering
def predict(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    decode: str = "viterbi",
) -> list[np.ndarray]:
    """The states of every sequence.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.
    decode : {"viterbi", "posterior"}, default "viterbi"
        The most probable path as a whole; or the most probable state of every step (of `predict_proba`), by which the
        most steps are right, though the model may not be able to go that way.

    Returns
    -------
    list of ndarray
        The states of every sequence; None at every step of an impossible one.
    """
    if decode not in _DECODERS:
        raise DataError.wrong_type("decode", repr(decode), " or ".join(map(repr, _DECODERS)))
    steps, score = _query(model, _DECODERS[decode], X, lengths, sequence, order)
    found = steps if decode == "viterbi" else [path.argmax(axis=1) for path in steps]
    states = model.states_
    if not _are_numbered(states):
        found = [states[path] for path in found]
    for number in np.flatnonzero(np.isneginf(score)):
        found[number] = np.full(len(found[number]), None)
    return found


_DECODERS = {"viterbi": kernels.viterbi, "posterior": kernels.posterior}


def labeled(states: np.ndarray, path: np.ndarray) -> np.ndarray:
    """The states at the places of a path, of their own type, so that they compare with what was given; None for −1."""
    if len(path) and path[0] < 0:
        return np.full(len(path), None)
    return path if _are_numbered(states) else states[path]


def _are_numbered(states: np.ndarray) -> bool:
    """Whether states are called by their places."""
    return states.dtype == np.int64 and np.array_equal(states, np.arange(len(states)))


@answering
def predict_proba(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[np.ndarray]:
    """p(state | whole sequence) at every step: smoothed; 0 in all states of an impossible sequence.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray of shape (steps, states)
    """
    return _query(model, kernels.posterior, X, lengths, sequence, order)[0]


@answering
def filter_proba(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[np.ndarray]:
    """p(state | the sequence so far) at every step; 0 in all states from an impossible step on.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray of shape (steps, states)
    """
    return _query(model, kernels.filter, X, lengths, sequence, order)[0]


@answering
def predict_transition_proba(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[np.ndarray]:
    """p(state, next state | whole sequence) of every two steps in a row, silent ones between them or not.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray of shape (steps − 1, states, states)
    """
    sequences, chain = (
        open_sequences_for_query(model, X, lengths, sequence, order),
        model._estimated_hmm.checked_parameters,
    )
    parts = [hmm_messages.pairs(*asked) for asked in chain.kernel_arguments(sequences)]
    warn_impossible(model, sequences, np.concatenate([score for _, score in parts]))
    return [each for found, _ in parts for each in found]


@answering
def predict_next(
    model: HiddenMarkovModel,
    X: Rows,
    n: int = 1,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> np.ndarray:
    """p(state) of the `n` steps after each sequence, if it goes on.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.
    n : int, default 1

    Returns
    -------
    ndarray of shape (sequences, n, states)
    """
    if n < 1:
        raise DataError.wrong_type("n", repr(n), "a whole number of at least 1")
    sequences = open_sequences_for_query(model, X, lengths, sequence, order)
    chain = model._estimated_hmm.checked_parameters
    filtered, _ = run_kernel(chain, kernels.filter, sequences)
    start, transition = chain.start, np.exp(chain.transition)
    out = np.empty((len(filtered), n, len(start)))
    for number, steps in enumerate(filtered):
        now = steps[-1] @ transition if len(steps) else np.exp(start)
        for step in range(n):
            out[number, step] = now
            now = now @ transition
    return out


@answering
def log_joint(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> np.ndarray:
    """log p(sequence, states), one number a sequence.

    Parameters
    ----------
    X, y, lengths, sequence, order
        As for `fit`; every step has its state.

    Returns
    -------
    ndarray of shape (sequences,)
    """
    sequences, y = open_labeled(X, y, lengths, sequence, order)
    sequences = read_steps(model, sequences.with_gaps(model.gaps))
    labels, domain = read_states(y)
    if labels is None or (labels < 0).any():
        raise DataError("every step needs its state here.\n    Use score_samples where some are not known.")
    path, chain = (
        model._estimated_hmm.states.positions_of(domain.levels)[labels],
        model._estimated_hmm.checked_parameters,
    )
    start, transition, end = chain.arguments
    emission = dense(chain.emission(sequences.table)) if len(path) else np.zeros((0, len(start)))
    known = path >= 0
    terms = np.where(known, emission[np.arange(len(path)), path], -np.inf)
    if sequences.gaps is not None:  # the states of silent steps are summed out
        alone = np.full_like(emission, -np.inf)
        alone[np.arange(len(path)), path] = terms
        return kernels.log_likelihood(start, sequences.moves(transition), end, alone, sequences.offsets)
    first, last, after = sequences.places()
    terms[after] += transition[path[after - 1], path[after]]
    terms[first] += start[path[first]]
    if end is not None:
        terms[last] += end[path[last]]
    out = np.zeros(sequences.n_sequences)
    out[sequences.lengths > 0] = np.add.reduceat(terms, first) if len(first) else 0.0
    return out


# ---- Asking the kernels -----------------------------------------------------------------------------------------


def open_sequences_for_query(
    model: HiddenMarkovModel, X: Any, lengths: Any, sequence: Any, order: Any, *, silent: bool = True
) -> Sequences:
    """The sequences that something is asked of; between their steps others may be `silent`, or not."""
    sequences = open_sequences(as_rows(X, model), lengths, sequence, order, asked=True).with_gaps(model.gaps)
    if sequences.gaps is not None and not silent:
        raise DataError(
            f"silent steps lie between these (column {model.gaps!r}), and this question is about every step.\n"
            "    Put them in as missing."
        )
    known = [name for factor, _ in model._estimated_hmm.emissions for name in factor.columns]
    table = sequences.table
    if not table.n_rows:  # sequences without steps have no columns either
        return sequences
    absent = [name for name in known if not table.has(name)]
    if absent:
        raise DataError.unknown_column(absent, table.names)
    sequences = sequences._replace(table=with_parts_of_dates(table, known))
    sequences = read_steps(model, sequences)
    table = sequences.table
    absence = [name for name in known if name not in table.names]
    unseen = model._estimated_hmm.meaning_of_unseen
    if absence and unseen != "error":
        levels = {n: model.tally_.domains[str(n)] for f, _ in model._estimated_hmm.emissions for n in f.level_columns}
        table = with_unknown(table, absence, levels if unseen == "missing" else {})
    return sequences if table is sequences.table else sequences._replace(table=table)


def read_steps(model: HiddenMarkovModel, sequences: Sequences) -> Sequences:
    """The sequences as the model reads them: text in its words, and the past beside steps that depend on it."""
    if not sequences.table.n_rows:
        return sequences
    specs = _parts(model._estimated_hmm.checked_parameters)
    table = mask_invalid_cells(bound_texts(model, sequences.table), specs, model.unseen)
    read = sequences if table is sequences.table else sequences._replace(table=table)
    return with_lags(read, [factor for factor, _ in model._estimated_hmm.emissions])


def _parts(chain: HMMParameters) -> list[Any]:
    """The columns, the family and the domains of every factor of a step."""
    return [(s.factor.columns, s.family, domains) for s, domains in zip(chain.scored, chain.domains, strict=True)]


def run_kernel(
    chain: HMMParameters, question: Callable[..., tuple[np.ndarray, np.ndarray]], sequences: Sequences
) -> tuple[list[np.ndarray], np.ndarray]:
    """What a kernel says of the steps, one array a sequence, and of the sequences."""
    steps: list[np.ndarray] = []
    scores = []
    for asked in chain.kernel_arguments(sequences):
        found, score = question(*asked)
        steps += [found[a:b] for a, b in pairwise(asked[-1].tolist())]
        scores.append(score)
    return steps, np.concatenate(scores)


def _query(model: HiddenMarkovModel, question: Any, *where: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """What a kernel says of sequences as they are given; a warning names the first that is impossible."""
    sequences, chain = open_sequences_for_query(model, *where), model._estimated_hmm.checked_parameters
    steps, score = run_kernel(chain, question, sequences)
    warn_impossible(model, sequences, score)
    return steps, score


def warn_impossible(model: HiddenMarkovModel, sequences: Sequences, score: np.ndarray) -> None:
    """Name the first impossible sequence, and the step at which it becomes so."""
    lost = np.flatnonzero(np.isneginf(score))
    if not len(lost):
        return
    first = int(lost[0])
    (filtered,), _ = run_kernel(model._estimated_hmm.checked_parameters, kernels.filter, sequences.some(lost[:1])[1])
    never = np.flatnonzero(filtered.sum(axis=1) == 0)
    where = f" at step {never[0]}" if len(never) else " at its end"
    more = f", and {len(lost) - 1} more," if len(lost) > 1 else ""
    hint = (
        " With estimate='bayes' nothing is impossible only because it was not seen."
        if model._fixed_parameters is None
        else ""
    )
    warn(f"sequence {first}{more} is impossible{where}.{hint}", UserWarning)


def dense(emission: Any) -> np.ndarray:
    """log p(step | state) as an array."""
    if not isinstance(emission, tuple):
        return np.asarray(emission)
    codes, table = emission
    known = (codes >= 0) & (codes < len(table))
    out = np.zeros((len(codes), table.shape[1]))
    out[known] = table[codes[known].astype(np.intp)]
    return out
