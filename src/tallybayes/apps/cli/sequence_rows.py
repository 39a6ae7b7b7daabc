"""Rows that are time steps of sequences: sorted for a hidden Markov model, and restored to the order of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import tallybayes as tb


class SequenceRows(NamedTuple):
    """Rows in the order of the data, the permutation that sorts them by sequence and time, and the sequence lengths."""

    rows: Any  # an Arrow table
    order: np.ndarray
    lengths: np.ndarray

    @property
    def sequences(self) -> list[Any]:
        """Return a table for each sequence."""
        starts = np.cumsum(self.lengths) - self.lengths
        sorted_rows = self.rows.take(self.order)
        return [sorted_rows.slice(int(start), int(n)) for start, n in zip(starts, self.lengths, strict=True)]


def read_steps(source: tb.Source, sequence: str, order: str | None) -> SequenceRows:
    """Read all time steps of a source. Sequences are numbered by first occurrence."""
    source.check_columns([sequence, *([order] if order else [])])
    rows = source.read("reading sequences")
    numbers: dict[Any, int] = {}
    codes = np.array([numbers.setdefault(label, len(numbers)) for label in rows[sequence].to_pylist()], dtype=np.intp)
    times = np.arange(len(codes))
    if order is not None:
        times = np.unique(rows[order].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    return SequenceRows(rows, np.lexsort((times, codes)), np.bincount(codes, minlength=len(numbers)))


def predicted_steps(
    model: tb.HiddenMarkovModel, source: tb.Source, sequence: str, order: str | None, proba: bool, keep: Sequence[str]
) -> dict[str, Any]:
    """Return the predicted state of each time step in the order of the data, as columns to write."""
    source.check_columns(keep)
    steps = read_steps(source, sequence, order)
    sorted_rows = steps.rows.take(steps.order)
    inverse = np.argsort(steps.order)
    columns: dict[str, Any] = {name: steps.rows[name] for name in (sequence, *([order] if order else []), *keep)}
    states = [np.zeros(0, dtype=model.states_.dtype), *model.predict(sorted_rows, lengths=steps.lengths)]
    columns["prediction"] = np.concatenate(states)[inverse]
    if proba:
        probabilities = np.concatenate(
            [np.zeros((0, len(model.states_))), *model.predict_proba(sorted_rows, lengths=steps.lengths)]
        )[inverse]
        columns |= {f"p({state})": probabilities[:, position] for position, state in enumerate(model.states_.tolist())}
    return columns
