"""Rows that are steps of sequences: put in order for a hidden Markov model, and back again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class SequenceRows(NamedTuple):
    """All steps as the data have them, and where they stand sequence by sequence, each in order."""

    rows: Any  # an Arrow table
    order: np.ndarray
    lengths: np.ndarray

    @property
    def sequences(self) -> list[Any]:
        """A table for every sequence."""
        starts, taken = np.cumsum(self.lengths) - self.lengths, self.rows.take(self.order)
        return [taken.slice(int(start), int(n)) for start, n in zip(starts, self.lengths, strict=True)]


def read_steps(source: Any, sequence: str, order: str | None) -> SequenceRows:
    """All steps of a source; sequences in the order in which they first appear."""
    source.check_columns([sequence, *([order] if order else [])])
    rows = source.read("asking about sequences")
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(label, len(number)) for label in rows[sequence].to_pylist()], dtype=np.intp)
    places = np.arange(len(codes))
    if order is not None:
        places = np.unique(rows[order].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    return SequenceRows(rows, np.lexsort((places, codes)), np.bincount(codes, minlength=len(number)))


def predicted_steps(
    model: Any, source: Any, sequence: str, order: str | None, proba: bool, keep: Sequence[str]
) -> dict[str, Any]:
    """What a hidden Markov model says of every step, in the order of the data: columns to be written."""
    source.check_columns(keep)
    steps = read_steps(source, sequence, order)
    taken, back = steps.rows.take(steps.order), np.argsort(steps.order)
    found: dict[str, Any] = {name: steps.rows[name] for name in (sequence, *([order] if order else []), *keep)}
    states = [np.zeros(0, dtype=model.states_.dtype), *model.predict(taken, lengths=steps.lengths)]
    found["prediction"] = np.concatenate(states)[back]
    if proba:
        shares = np.concatenate(
            [np.zeros((0, len(model.states_))), *model.predict_proba(taken, lengths=steps.lengths)]
        )[back]
        found |= {f"p({state})": shares[:, place] for place, state in enumerate(model.states_.tolist())}
    return found
