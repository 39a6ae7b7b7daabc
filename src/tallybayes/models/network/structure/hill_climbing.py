"""Hill climbing with a tabu list and restarts: the best single edge change at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.structure_scores import TOLERANCE, ScoreCache, members_of

ADD, REMOVE, REVERSE = range(3)
_MAX_REVERSALS = 3  # random reversals between moves of a restart
_MAX_FAILURES = 10  # moves without improvement after which a restart ends


class Move(NamedTuple):
    """A change of one edge, and its score gain."""

    kind: int
    parent: int
    child: int
    gain: float


class HillClimber:
    """A structure, the score gain of every change of one edge, and the visited structures.

    Moves to a visited structure are not made (tabu).
    """

    def __init__(self, cache: ScoreCache, constraints: Constraints, start: list[int]) -> None:
        n = len(start)
        self.cache = cache
        self.constraints = constraints
        self.parents = [-1] * n  # none is known yet
        self.edges = np.zeros((n, n), dtype=bool)
        self.family_scores = np.zeros(n)
        self.add_gains = np.full((n, n), -np.inf)
        self.remove_gains = np.full((n, n), -np.inf)
        self.visited: set[tuple[int, ...]] = set()
        self.set(start)
        self.tolerance = TOLERANCE * (1.0 + abs(self.score))

    def set(self, parents: list[int]) -> None:
        """Move to a structure: the parents of every column as a bit mask."""
        changed = [child for child, mask in enumerate(parents) if mask != self.parents[child]]
        self.parents = list(parents)
        self.visited.add(tuple(parents))
        self.edges[:, changed] = False
        for child in changed:
            self.edges[list(members_of(parents[child])), child] = True
        self.family_scores[changed] = self.cache.scores([(child, parents[child]) for child in changed])
        self._update_gains(changed)
        self.reachable = _transitive_closure(self.edges)

    @property
    def score(self) -> float:
        """The score of the structure."""
        return float(self.family_scores.sum())

    def _update_gains(self, children: list[int]) -> None:
        """Compute the score gains of changes of the parents of some columns."""
        families: list[tuple[int, int]] = []
        changes: list[tuple[int, int]] = []
        for child in children:
            mask = self.parents[child]
            is_full = mask.bit_count() >= self.constraints.max_parents
            self.add_gains[:, child] = self.remove_gains[:, child] = -np.inf
            for parent in np.flatnonzero(self.constraints.allowed[:, child]).tolist():
                bit = 1 << parent
                if not (self.constraints.required[parent, child] if mask & bit else is_full):
                    families.append((child, mask ^ bit))
                    changes.append((parent, child))
        for (parent, child), score in zip(changes, self.cache.scores(families), strict=True):
            gains = self.remove_gains if self.edges[parent, child] else self.add_gains
            gains[parent, child] = score - self.family_scores[child]

    def moves(self) -> np.ndarray:
        """Return the gain of every move by kind, parent and child; −∞ for cycles and violated constraints."""
        adding = np.where(self.reachable.T | self.edges, -np.inf, self.add_gains)
        reversing = np.full_like(adding, -np.inf)
        parent, child = np.nonzero(self.edges & ~self.constraints.required)
        if len(parent):
            closes_cycle = (self.edges[parent] & self.reachable[:, child].T).any(axis=1)  # by another directed path
            gain = self.remove_gains[parent, child] + self.add_gains[child, parent]
            reversing[parent, child] = np.where(closes_cycle, -np.inf, gain)
        return np.stack([adding, self.remove_gains, reversing])

    def best_move(self) -> Move | None:
        """Return the move with the largest gain to an unvisited structure; ties go to the first."""
        gains = self.moves()
        while (largest := gains.max()) > -np.inf:
            kind, parent, child = np.unravel_index(int(np.argmax(gains >= largest - self.tolerance)), gains.shape)
            move = Move(int(kind), int(parent), int(child), float(gains[kind, parent, child]))
            if tuple(self.parents_after(move)) not in self.visited:
                return move
            gains[kind, parent, child] = -np.inf
        return None

    def parents_after(self, move: Move) -> list[int]:
        """Return the parents of every column after a move."""
        parents = list(self.parents)
        parents[move.child] ^= 1 << move.parent
        if move.kind == REVERSE:
            parents[move.parent] ^= 1 << move.child
        return parents

    def search(self, tabu_length: int) -> Iterator[float]:
        """Move until `tabu_length` moves in a row do not improve the best score; return to it. Yield scores."""
        best = list(self.parents)
        best_score = self.score
        n_since = 0
        while True:
            move = self.best_move()
            if move is None or (move.gain <= self.tolerance and n_since >= tabu_length):
                break
            self.set(self.parents_after(move))
            n_since += 1
            if self.score > best_score + self.tolerance:
                best, best_score, n_since = list(self.parents), self.score, 0
            elif n_since > tabu_length:
                break
            yield best_score
        self.set(best)

    def repeated_covered_arc_reversal(self, rng: np.random.Generator) -> Iterator[None]:
        """Make the best moves, with random reversals of covered edges between them (Castelo and Kočka, 2003).

        A reversal of a covered edge leads to an equivalent structure, which has other neighbors: a local maximum of one
        structure is often none of an equivalent one.
        """
        best = self.score
        n_failures = 0
        while n_failures < _MAX_FAILURES:
            for _ in range(int(rng.integers(0, _MAX_REVERSALS + 1))):
                covered = [edge for edge in np.argwhere(self.edges).tolist() if self._is_covered_edge(*edge)]
                if covered:
                    parent, child = covered[rng.integers(len(covered))]
                    self.set(self.parents_after(Move(REVERSE, parent, child, 0.0)))
            self.visited.clear()
            move = self.best_move()
            if move is not None and move.gain > self.tolerance:
                self.set(self.parents_after(move))
            improved = self.score > best + self.tolerance
            best = self.score if improved else best
            n_failures = 0 if improved else n_failures + 1
            yield

    def _is_covered_edge(self, parent: int, child: int) -> bool:
        """Return whether an edge is covered, so that its reversal keeps the score, and may be reversed."""
        covered = self.parents[child] ^ 1 << parent == self.parents[parent]
        return covered and self.constraints.allowed[child, parent] and not self.constraints.required[parent, child]


def _transitive_closure(edges: np.ndarray) -> np.ndarray:
    """Return the transitive closure of the edges."""
    reachable = edges.copy()
    n_unprocessed_children = edges.sum(axis=1)
    waiting = np.flatnonzero(n_unprocessed_children == 0).tolist()
    while waiting:
        node = waiting.pop()
        for parent in np.flatnonzero(edges[:, node]).tolist():
            reachable[parent] |= reachable[node]
            n_unprocessed_children[parent] -= 1
            if n_unprocessed_children[parent] == 0:
                waiting.append(parent)
    return reachable


def hill_climb(
    cache: ScoreCache,
    constraints: Constraints,
    start: list[int],
    tabu_length: int,
    n_restarts: int,
    rng: np.random.Generator,
) -> Iterator[tuple[list[int], float]]:
    """Yield the best structure so far and its score after every step."""
    climber = HillClimber(cache, constraints, start)
    best = list(climber.parents)
    score = climber.score
    yield best, score
    for attempt in range(n_restarts + 1):
        if attempt:
            climber.set(start)
            for _ in climber.repeated_covered_arc_reversal(rng):
                yield best, score
        climber.visited = {tuple(climber.parents)}
        for _ in climber.search(tabu_length):
            yield best, score
        if climber.score > score + climber.tolerance:
            best, score = list(climber.parents), climber.score
    yield best, score
