"""Sequences drawn from a hidden Markov model, and the cells they lack."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.models.fitted.generate import expected_cells, sample_factor
from tallybayes.models.fitted.scoring import Scored, chunk_of, rows_of
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.sources.encode import is_missing
from tallybayes.sources.table import unmerged
from tallybayes.tally.domain import Domain, labels_at, labels_of


def sample_chain(model: Any, lengths: Any, rng: np.random.Generator) -> tuple[list[Any], list[np.ndarray]]:
    """Sequences and their states."""
    chain, paths = model._answering, []
    for length in np.atleast_1d(lengths).tolist():
        path: list[int] = []
        for step in range(length):
            p = np.exp(chain.start if step == 0 else chain.transition[path[-1]])
            path.append(int(rng.choice(len(p), p=p / p.sum())))
            if chain.end is not None and rng.random() < np.exp(chain.end[path[-1]]):
                break
        paths.append(np.array(path, dtype=np.intp))
    states = model.states_
    scored, domains = model._emissions()
    return [_drawn(model, scored, domains, path, rng) for path in paths], [states[path] for path in paths]


def _drawn(
    model: Any, scored: list[Scored], domains: list[list[Domain]], path: np.ndarray, rng: np.random.Generator
) -> Any:
    """The steps of one path."""
    columns: dict[Any, Any] = {}
    for part, levels, (factor, statistics) in zip(scored, domains, model._emission_factors(), strict=True):
        drawn = sample_factor(part, path, statistics, rng)
        for place, name in enumerate(factor.columns):
            column = drawn[:, place]
            if factor.family.reads == "codes":
                column = labels_at(levels[place].levels, column.astype(int))
            columns[name] = column
    return _shaped(columns)


def fill_chain(model: Any, sequences: Sequences, shares: np.ndarray) -> list[Any]:
    """The sequences with their missing cells filled in, given p(state) at every step."""
    columns: dict[Any, np.ndarray] = {}
    for scored, domains, (_, statistics) in zip(*model._emissions(), model._emission_factors(), strict=True):
        names, family = scored.factor.columns, scored.family
        cells = chunk_of(rows_of(sequences.table, names, family, domains, "missing"), slice(None))
        if family.reads == "codes":
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
    return [_shaped({name: column[part] for name, column in columns.items()}) for part in parts]


def _shaped(columns: dict[Any, np.ndarray]) -> Any:
    """The columns of a sequence as it would be given: values, rows, or a dictionary."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    if all(isinstance(name, int) for name in columns):
        return np.stack(unmerged([columns[name] for name in sorted(columns)]), axis=-1)
    return columns
