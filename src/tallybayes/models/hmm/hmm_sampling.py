"""Sequences drawn from a hidden Markov model, and the cells they lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.array_input import unmerged
from tallybayes.data.data_frames import as_frame, frame_kind
from tallybayes.data.encoding import is_missing
from tallybayes.data.indicator_columns import with_absences
from tallybayes.estimation.factor_sampling import counts_to_text, expected_cells, sample_factor
from tallybayes.estimation.scoring.factor_scorer import chunk_of, factor_cells
from tallybayes.families.text import Text
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.inference.decoding import open_sequences_for_query, run_kernel
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.tally.domain import labels_at, labels_of
from tallybayes.typing import RandomState, Rows

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


def sample(
    model: HiddenMarkovModel, n: int | Sequence[int] | np.ndarray, *, random_state: RandomState = None
) -> tuple[list[Any], list[np.ndarray]]:
    """Draw sequences.

    Parameters
    ----------
    n : int or list of int
        How many steps one sequence, or each of several, shall have; with ``end_state``, the most steps it may have.
    random_state : int, Generator or None

    Returns
    -------
    X : list of ndarray, of data frames where steps came in such, or of dictionaries of columns where there are several
    y : list of ndarray
        The states.
    """
    chain, rng, paths = model._estimated_hmm.checked_parameters, np.random.default_rng(random_state), []
    for length in np.atleast_1d(n).tolist():
        path: list[int] = []
        for step in range(length):
            p = np.exp(chain.start if step == 0 else chain.transition[path[-1]])
            path.append(int(rng.choice(len(p), p=p / p.sum())))
            if chain.end is not None and rng.random() < np.exp(chain.end[path[-1]]):
                break
        paths.append(np.array(path, dtype=np.intp))
    states = model.states_
    drawn = [_drawn(model, path, rng) for path in paths]
    return drawn, [states[path] for path in paths]


def _drawn(model: HiddenMarkovModel, path: np.ndarray, rng: np.random.Generator) -> Any:
    """The steps of one path."""
    columns: dict[Any, Any] = {}
    counted, mixed = model._estimated_hmm, model._estimated_hmm.checked_parameters.mixed
    path = path if mixed is None else mixed.drawn(path, rng)
    for part, levels, (factor, statistics) in zip(counted.scored, counted.domains, counted.emissions, strict=True):
        if factor.family.order:  # what lies before the first step is like what was seen
            family: Any = factor.family
            mean, covariance = family.sampling_options(statistics)["inputs"]
            before = rng.multivariate_normal(mean, covariance)
            columns[factor.columns[0]] = family.sample_steps(part.parameters, path, before, rng)
            continue
        drawn = sample_factor(part, path, statistics, rng)
        if factor.columns[0] in model._selected_words:
            columns[factor.columns[0]] = counts_to_text(drawn, model._block_column_names(factor.columns[0]))
            continue
        for place, name in enumerate(factor.columns):
            column = drawn[:, place]
            if factor.family.cell_type == "codes":
                column = labels_at(levels[place].levels, column.astype(int))
            columns[name] = column
    return _shaped(with_absences(columns), model._frame_library)


@answering
def impute(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
) -> list[Any]:
    """Fill in missing cells by what the whole sequence says about their state.

    Numbers by their expectation, labels by the most probable one.

    Parameters
    ----------
    X, lengths, sequence, order
        As for `fit`.

    Returns
    -------
    list of ndarray, of data frames where steps came in such, or of dictionaries of columns where there are several
    """
    sequences = open_sequences_for_query(model, X, lengths, sequence, order)
    counted = model._estimated_hmm
    check_no_lags(
        (factor for factor, _ in counted.emissions), "what is missing", "steps before and after it both tell."
    )
    found, _ = run_kernel(counted.checked_parameters, kernels.posterior, sequences)
    shares = np.concatenate([np.zeros((0, len(counted.states.levels))), *found])  # p(state) at every step
    shares = counted.checked_parameters.emitted(sequences.table, shares)
    columns: dict[Any, np.ndarray] = {}
    for scored, domains, (_, statistics) in zip(counted.scored, counted.domains, counted.emissions, strict=True):
        names, family = scored.factor.columns, scored.family
        if sequences.table.source_of(names[0]) is not None:  # what is not there is filled in, not whether it is
            continue
        if names[0] in model._selected_words:  # missing text is not written
            columns[names[0]] = np.array(sequences.table.texts(names[0], Text()).strings.to_pylist(), dtype=object)
            continue
        cells = chunk_of(factor_cells(sequences.table, names, family, domains, "missing"), slice(None))
        if family.cell_type == "codes":
            for place, table in enumerate(scored.parameters.segments.split(scored.parameters.table)):
                levels = labels_of(domains[place].levels, np.dtype(object))
                column = np.array(sequences.table.columns[names[place]], dtype=object)
                lost = np.array([is_missing(value) for value in column], dtype=bool)
                if len(levels):
                    column[lost] = levels[(shares[lost] @ table).argmax(axis=1)]
                columns[names[place]] = column
            continue
        expected = np.einsum("ns,nsd->nd", shares, expected_cells(scored, statistics, cells))
        filled = np.where(np.isnan(cells), expected, cells)
        columns.update({name: filled[:, place] for place, name in enumerate(names)})
    parts = [slice(int(a), int(b)) for a, b in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True)]
    frame = frame_kind(X[0] if isinstance(X, list | tuple) and len(X) else X)
    return [_shaped({name: column[part] for name, column in columns.items()}, frame) for part in parts]


def _shaped(columns: dict[Any, np.ndarray], frame: str | None) -> Any:
    """The columns of a sequence as it would be given: a frame, values, rows, or a dictionary."""
    if frame is not None:
        return as_frame(columns, frame)
    if len(columns) == 1:
        return next(iter(columns.values()))
    if all(isinstance(name, int) for name in columns):
        return np.stack(unmerged([columns[name] for name in sorted(columns)]), axis=-1)
    return columns
