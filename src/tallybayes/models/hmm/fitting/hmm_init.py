"""Where EM of a chain sets out: the states and components of steps before anything is known of them."""

from __future__ import annotations

import numpy as np

from tallybayes.data.table import Table
from tallybayes.estimation.em.kmeans_init import kmeans_plus_plus, squared_distances_to_centers
from tallybayes.estimation.em.soft_counts import AssignNearest, SoftCounter
from tallybayes.models.hmm.mixture_emissions import MixtureEmissions
from tallybayes.models.inputs.sequences import Sequences

_STEPS = 1 << 16  # whose nearest centers are found at a time
_AROUND = 5  # steps before and after, whose company tells a state that is a mixture
_SAMPLE = 10_000  # steps that centers are sought among


def in_pieces(nearest: AssignNearest, table: Table, steps: np.ndarray) -> np.ndarray:
    """The nearest center of some steps."""
    found = np.empty(len(steps), dtype=np.intp)
    for start in range(0, len(steps), _STEPS):
        part = slice(start, start + _STEPS)
        found[part] = nearest(table.rows(steps[part]))
    return found


def initial_components(
    components: MixtureEmissions,
    counter: SoftCounter,
    table: Table,
    path: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The component of every step of a path of states: that of the nearest center in its state; −1 of no state."""
    out, first = np.full(len(path), -1), np.searchsorted(components.owner, np.arange(len(components.states)))
    for state, n_components in enumerate(components.numbers.tolist()):
        mine = np.flatnonzero(path == state)
        out[mine] = first[state]
        if n_components > 1 and len(mine):
            unknown = np.full(len(mine), -1)
            (nearest,) = counter.kmeans_assigners(table.rows(mine), unknown, weight[mine], 1, rng, n_components)
            out[mine] += in_pieces(nearest, table, mine)
    return out


def states_from_context(
    sequences: Sequences, counter: SoftCounter, n_states: int, weight: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A path of states that are told by which kinds of steps come together, not by what they are.

    The components of two states may lie between each other. So steps fall into heaps, as many as there are components,
    and states are heaps of the shares that these have around a step.
    """
    n_steps, n_heaps = int(sequences.offsets[-1]), counter.n_groups
    unknown = np.full(n_steps, -1)
    (nearest,) = counter.kmeans_assigners(sequences.table, unknown, weight, 1, rng)
    heap, upto = in_pieces(nearest, sequences.table, np.arange(n_steps)), np.zeros((n_steps + 1, n_heaps))
    upto[np.arange(1, n_steps + 1), heap] = 1.0
    np.cumsum(upto, axis=0, out=upto)
    first, last = (np.repeat(part, sequences.lengths) for part in (sequences.offsets[:-1], sequences.offsets[1:]))
    low, high = np.maximum(np.arange(n_steps) - _AROUND, first), np.minimum(np.arange(n_steps) + _AROUND + 1, last)
    shares = (upto[high] - upto[low]) / (high - low)[:, None]
    some = np.arange(n_steps) if n_steps <= _SAMPLE else np.sort(rng.choice(n_steps, _SAMPLE, replace=False))
    centers = kmeans_plus_plus(shares[some], n_states, np.zeros((0, n_heaps)), rng, weight[some])
    path: np.ndarray = squared_distances_to_centers(shares, centers).argmin(axis=1)
    return path
