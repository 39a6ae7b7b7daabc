"""Hill climbing with a tabu list and restarts: the best single edge change at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.structure_scores import EVEN, ScoreCache, places_of

ADD, DROP, TURN = range(3)
_TURNS = 3  # arrows turned at random between moves, at most
_TRIES = 10  # turns in vain before a top is taken for one


class Move(NamedTuple):
    """A change of one edge, and its score gain."""

    kind: int
    parent: int
    child: int
    gain: float


class HillClimber:
    """A structure, what every change of it would gain, and the structures it has been.

    Moves that would lead back to one of those are not made (tabu).
    """

    def __init__(self, families: ScoreCache, constraints: Constraints, start: list[int]) -> None:
        n = len(families.rows.names)
        self.families, self.constraints = families, constraints
        self.keys = np.random.default_rng(0).integers(1, 1 << 62, (n, n)).tolist()  # a structure's key: XOR of arrows'
        self.visited: set[int] = set()
        self.set(start)
        self.even = EVEN * (1.0 + abs(self.score))

    def set(self, parents: list[int]) -> None:
        """Move to a structure: the parents of every column as a bit mask."""
        n = len(parents)
        self.parents = list(parents)
        self.own = np.array(self.families.of(list(enumerate(parents))))
        self.adding, self.dropping = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
        self.edges = np.zeros((n, n), dtype=bool)
        self.key = 0
        for child, mask in enumerate(parents):
            for parent in places_of(mask):
                self.edges[parent, child] = True
                self.key ^= self.keys[parent][child]
        self._refresh(range(n))
        self.reach = _closure(self.edges)
        self.visited.add(self.key)

    @property
    def score(self) -> float:
        """The score of the structure."""
        return float(self.own.sum())

    def _refresh(self, children: range | tuple[int, ...]) -> None:
        """Compute the score gains of changes of the parents of some columns."""
        wanted, places = [], []
        for child in children:
            mask = self.parents[child]
            full = mask.bit_count() >= self.constraints.most
            self.adding[:, child] = self.dropping[:, child] = -np.inf
            for parent in np.flatnonzero(self.constraints.allowed[:, child]).tolist():
                bit = 1 << parent
                if mask & bit:
                    if self.constraints.required[parent, child]:
                        continue
                elif full:
                    continue
                wanted.append((child, mask ^ bit))
                places.append((parent, child))
        for (parent, child), score in zip(places, self.families.of(wanted), strict=True):
            gain = score - self.own[child]
            (self.dropping if self.edges[parent, child] else self.adding)[parent, child] = gain

    def moves(self) -> np.ndarray:
        """Return the gain of every move by kind, parent and child; −∞ for cycles and violated constraints."""
        adding = np.where(self.reach.T | self.edges, -np.inf, self.adding)
        turning = np.full_like(adding, -np.inf)
        parent, child = np.nonzero(self.edges & ~self.constraints.required)
        if len(parent):
            another = (self.edges[parent] & self.reach[:, child].T).any(axis=1)  # a longer way from one to the other
            gain = self.dropping[parent, child] + self.adding[child, parent]
            turning[parent, child] = np.where(another, -np.inf, gain)
        return np.stack([adding, self.dropping, turning])

    def best_move(self) -> Move | None:
        """Return the move with the largest gain to an unvisited structure; ties go to the first."""
        gains = self.moves()
        while True:
            most = gains.max()
            if most == -np.inf:
                return None
            kind, parent, child = np.unravel_index(int(np.argmax(gains >= most - self.even)), gains.shape)
            move = Move(int(kind), int(parent), int(child), float(gains[kind, parent, child]))
            if self._key_after(move) not in self.visited:
                return move
            gains[kind, parent, child] = -np.inf

    def _key_after(self, move: Move) -> int:
        key = self.key ^ self.keys[move.parent][move.child]
        return key ^ self.keys[move.child][move.parent] if move.kind == TURN else key

    def make(self, move: Move) -> None:
        """Apply a move."""
        _, parent, child, _ = move
        self.key = self._key_after(move)
        self.visited.add(self.key)
        changed = (child,) if move.kind != TURN else (child, parent)
        self.parents[child] ^= 1 << parent
        self.edges[parent, child] = move.kind == ADD
        if move.kind == TURN:
            self.parents[parent] ^= 1 << child
            self.edges[child, parent] = True
        if move.kind == ADD:
            above = self.reach[:, parent].copy()
            above[parent] = True
            below = self.reach[child].copy()
            below[child] = True
            self.reach |= above[:, None] & below
        else:
            self.reach = _closure(self.edges)
        self.own[list(changed)] = self.families.of([(c, self.parents[c]) for c in changed])
        self._refresh(changed)

    def climb(self, tabu_length: int) -> Iterator[float]:
        """Move until `tabu_length` moves in a row do not improve the best score; return to it. Yield scores."""
        best, score, since = list(self.parents), self.score, 0
        while True:
            move = self.best_move()
            if move is None or (move.gain <= self.even and since >= tabu_length):
                break
            self.make(move)
            since += 1
            if self.score > score + self.even:
                best, score, since = list(self.parents), self.score, 0
            elif since > tabu_length:
                break
            yield score
        if best != self.parents:
            self.set(best)

    def repeated_covered_arc_reversal(self, rng: np.random.Generator) -> Iterator[None]:
        """Climb, and between the moves turn arrows at random whose two columns have the same other parents.

        That leads to a graph of the same class: under most scores it costs nothing, but it has other neighbors, and a
        top of one graph is often none of the next (Castelo and Kočka, 2003).
        """
        top, tries = self.score, 0
        while tries < _TRIES:
            for _ in range(int(rng.integers(0, _TURNS + 1))):
                free = [edge for edge in np.argwhere(self.edges).tolist() if self._is_covered_edge(*edge)]
                if free:
                    parent, child = free[rng.integers(len(free))]
                    self.make(Move(TURN, parent, child, 0.0))
            self.visited.clear()
            move = self.best_move()
            if move is not None and move.gain > self.even:
                self.make(move)
            higher = self.score > top + self.even
            top, tries = (self.score, 0) if higher else (top, tries + 1)
            yield

    def _is_covered_edge(self, parent: int, child: int) -> bool:
        """Return whether an edge is covered, so that its reversal keeps the score, and may be reversed."""
        same = self.parents[child] ^ 1 << parent == self.parents[parent]
        return same and self.constraints.allowed[child, parent] and not self.constraints.required[parent, child]


def _closure(edges: np.ndarray) -> np.ndarray:
    """Return the transitive closure of the edges."""
    reach = edges.copy()
    below = edges.sum(axis=1)  # children not yet seen through
    waiting = np.flatnonzero(below == 0).tolist()
    while waiting:
        node = waiting.pop()
        for parent in np.flatnonzero(edges[:, node]).tolist():
            reach[parent] |= reach[node]
            below[parent] -= 1
            if below[parent] == 0:
                waiting.append(parent)
    return reach


def hill_climb(
    families: ScoreCache,
    constraints: Constraints,
    start: list[int],
    tabu_length: int,
    n_restarts: int,
    rng: np.random.Generator,
) -> Iterator[tuple[list[int], float]]:
    """Yield the best structure so far and its score after every step."""
    climber = HillClimber(families, constraints, start)
    best, score = list(climber.parents), climber.score
    yield best, score
    for attempt in range(n_restarts + 1):
        if attempt:
            climber.set(start)
            for _ in climber.repeated_covered_arc_reversal(rng):
                yield best, score
        climber.visited = {climber.key}
        for _ in climber.climb(tabu_length):
            yield best, score
        if climber.score > score + climber.even:
            best, score = list(climber.parents), climber.score
    yield best, score
