"""Exact inference for rows with missing values in NumPy: variable elimination in logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array

_MAX_CELLS = 1 << 20  # of a clique for all rows that are processed at once


class _Clique(NamedTuple):
    """An eliminated variable and its separator, as a node of the elimination tree."""

    variables: tuple[int, ...]  # the eliminated variable, then the separator
    parent: int  # index of the parent clique, or −1
    shape: tuple[int, ...]
    kept: tuple[int, ...]  # axes of the parent's table, with a leading axis of rows, that the separator shares


class _Plan(NamedTuple):
    """How a component of missing variables is computed, and the rows that have it."""

    cliques: list[_Clique]
    factors: tuple[int, ...]
    uses: list[tuple[int, Int64Array]]  # of every factor: its clique, and the positions of its table's cells
    rows: dict[tuple[int, ...], list[int]]  # by the offsets into the factors' tables that the observed values select


class PartlyKnown:
    """Rows with missing values, grouped by missing variables and by the observed values around them."""

    def __init__(
        self,
        codes: AnyArray,
        sizes: Int64Array,
        members: Int64Array,
        ends: Int64Array,
        by_row: AnyArray,
        sums_to_one: Int64Array,
        order: Int64Array,
        kept: AnyArray,
        weight: Float64Array | None,
    ) -> None:
        self.sizes = sizes.tolist()
        self.codes = codes.reshape(-1, len(sizes))
        self.weight = np.ones(len(self.codes)) if weight is None else weight
        self.scopes = [tuple(part.tolist()) for part in np.split(members, ends[:-1])]
        self.rank = np.argsort(order).tolist()  # position of every variable in the elimination order
        shapes = [[self.sizes[variable] for variable in scope] for scope in self.scopes]
        self.strides = [[math.prod(shape[k + 1 :]) for k in range(len(shape))] for shape in shapes]
        self.pitch = [math.prod(shape) if flag else 0 for shape, flag in zip(shapes, by_row, strict=True)]
        lengths = [
            math.prod(shape) * (len(self.codes) if flag else 1) for shape, flag in zip(shapes, by_row, strict=True)
        ]
        *self.offsets, self.n_cells = accumulate(lengths, initial=0)
        self.plans: dict[tuple[tuple[int, ...], tuple[int, ...]], _Plan] = {}
        factors_of = [{f for f, scope in enumerate(self.scopes) if j in scope} for j in range(len(self.sizes))]
        own = {variable: f for f, variable in enumerate(sums_to_one.tolist()) if variable >= 0 and not kept[variable]}
        for row, cells in enumerate(self.codes.tolist()):
            self._add_row(row, cells, factors_of, own)

    def _add_row(self, row: int, cells: list[int], factors_of: list[set[int]], own: dict[int, int]) -> None:
        """Find the components of a row and add it to their plans."""
        missing, skipped = self._without_barren({j for j, code in enumerate(cells) if code < 0}, factors_of, own)
        while missing:
            members, factors = self._component(min(missing), missing, factors_of, skipped)
            missing -= members
            key = tuple(sorted(members)), tuple(sorted(factors))
            if key not in self.plans:
                self.plans[key] = self._plan(*key)
            bases = []
            for f in key[1]:
                pairs = zip(self.scopes[f], self.strides[f], strict=True)
                observed = sum(cells[j] * stride for j, stride in pairs if cells[j] >= 0)
                bases.append(self.offsets[f] + self.pitch[f] * row + observed)
            self.plans[key].rows.setdefault(tuple(bases), []).append(row)

    def _without_barren(
        self, missing: set[int], factors_of: list[set[int]], own: dict[int, int]
    ) -> tuple[set[int], set[int]]:
        """Return the missing variables without barren ones, and the factors that sum to one and are skipped."""
        missing = set(missing)
        skipped: set[int] = set()
        candidates = list(missing)
        while candidates:
            j = candidates.pop()
            if j in missing and j in own and factors_of[j] - skipped == {own[j]}:
                missing.discard(j)
                skipped.add(own[j])
                candidates += self.scopes[own[j]]
        return missing, skipped

    def _component(
        self, start: int, missing: set[int], factors_of: list[set[int]], skipped: set[int]
    ) -> tuple[set[int], set[int]]:
        """Return the missing variables that are connected to a variable by factors, and these factors."""
        members: set[int] = set()
        factors: set[int] = set()
        frontier = {start}
        while frontier:
            members |= frontier
            factors |= {f for j in frontier for f in factors_of[j]} - skipped
            frontier = ({j for f in factors for j in self.scopes[f]} & missing) - members
        return members, factors

    def _plan(self, members: tuple[int, ...], factors: tuple[int, ...]) -> _Plan:
        """Return the elimination tree of a component, and the positions of its factors' cells."""
        variables = sorted(members, key=self.rank.__getitem__)
        cliques = self._elimination_tree(variables, factors)
        uses = []
        for f in factors:
            home = min(variables.index(j) for j in self.scopes[f] if j in members)
            strides = dict(zip(self.scopes[f], self.strides[f], strict=True))
            cells = np.zeros(cliques[home].shape, dtype=np.int64)
            for axis, j in enumerate(cliques[home].variables):
                steps = np.arange(self.sizes[j]) * strides.get(j, 0)
                cells = cells + steps.reshape(-1, *(1,) * (cells.ndim - axis - 1))
            uses.append((home, cells))
        return _Plan(cliques, factors, uses, {})

    def _elimination_tree(self, variables: list[int], factors: tuple[int, ...]) -> list[_Clique]:
        """Return one clique per variable in elimination order: the variable and its later neighbors."""
        later: dict[int, set[int]] = {j: set() for j in variables}
        for f in factors:
            scope = [j for j in variables if j in self.scopes[f]]
            for k, j in enumerate(scope):
                later[j] |= set(scope[k + 1 :])
        groups = []
        for j in variables:
            neighbors = sorted(later[j], key=self.rank.__getitem__)
            groups.append((j, *neighbors))
            if neighbors:
                later[neighbors[0]] |= set(neighbors[1:])
        cliques = []
        for group in groups:
            parent = variables.index(group[1]) if len(group) > 1 else -1
            axes = (0, *(groups[parent].index(j) + 1 for j in group[1:])) if parent >= 0 else (0,)
            cliques.append(_Clique(group, parent, tuple(self.sizes[j] for j in group), axes))
        return cliques

    @property
    def cells(self) -> float:
        """Largest total number of cells of the cliques of a component."""
        return max((sum(float(math.prod(c.shape)) for c in plan.cliques) for plan in self.plans.values()), default=0.0)

    @property
    def instances(self) -> int:
        """Number of distinct pairs of a component and observed values around it."""
        return sum(len(plan.rows) for plan in self.plans.values())

    def expect(self, tables: Float64Array, logs: Float64Array, threads: int) -> tuple[Float64Array, float]:
        """Return the expected weight of every cell of the tables, and the log likelihood of all rows."""
        counts = np.zeros(self.n_cells)
        log_likelihood = 0.0
        for plan, keys, bases in self._batches():
            probabilities, instance_logs = _solve(plan, bases, logs)
            weight = np.array([self.weight[plan.rows[key]].sum() for key in keys])
            log_likelihood += float((weight * instance_logs).sum())
            for number, (home, cells) in enumerate(plan.uses):
                axes = (-1, *(1,) * cells.ndim)
                positions = bases[:, number].reshape(axes) + cells
                amounts = probabilities[home] * weight.reshape(axes)
                counts += np.bincount(positions.ravel(), amounts.ravel(), self.n_cells)
        return counts, log_likelihood

    def answer(
        self, tables: Float64Array, logs: Float64Array, requested: AnyArray, threads: int
    ) -> tuple[Float64Array, Float64Array]:
        """Return the posteriors of the requested variables where they are missing, and the rows' log likelihoods."""
        posteriors = {j: np.zeros((len(self.codes), self.sizes[j])) for j in np.flatnonzero(requested).tolist()}
        log_likelihood = np.zeros(len(self.codes))
        for plan, keys, bases in self._batches():
            probabilities, instance_logs = _solve(plan, bases, logs)
            for instance, key in enumerate(keys):
                log_likelihood[plan.rows[key]] += instance_logs[instance]
            for clique, joint in zip(plan.cliques, probabilities, strict=True):
                if clique.variables[0] in posteriors:
                    marginal = joint.reshape(len(keys), clique.shape[0], -1).sum(axis=-1)
                    for instance, key in enumerate(keys):
                        posteriors[clique.variables[0]][plan.rows[key]] = marginal[instance]
        return np.concatenate([np.zeros(0), *(posterior.ravel() for posterior in posteriors.values())]), log_likelihood

    def _batches(self) -> Iterator[tuple[_Plan, list[tuple[int, ...]], Int64Array]]:
        """Yield every plan with a batch of its instances."""
        for plan in self.plans.values():
            step = max(1, _MAX_CELLS // max(math.prod(clique.shape) for clique in plan.cliques))
            keys = list(plan.rows)
            for start in range(0, len(keys), step):
                batch = keys[start : start + step]
                yield plan, batch, np.array(batch, dtype=np.int64).reshape(len(batch), len(plan.factors))


def _solve(plan: _Plan, bases: Int64Array, logs: Float64Array) -> tuple[list[Float64Array], Float64Array]:
    """Return the joint posterior of every clique, (instances, *levels), and the log probability of the observed values.

    Messages are passed up the elimination tree, then marginals down.
    """
    tables = [np.zeros((len(bases), *clique.shape)) for clique in plan.cliques]
    for number, (home, cells) in enumerate(plan.uses):
        tables[home] += logs[bases[:, number].reshape(-1, *(1,) * cells.ndim) + cells]
    messages = []
    for clique, table in zip(plan.cliques, tables, strict=True):
        messages.append(np.logaddexp.reduce(table, axis=1))
        if clique.parent >= 0:
            shape = [size if axis in clique.kept else 1 for axis, size in enumerate(tables[clique.parent].shape)]
            tables[clique.parent] += messages[-1].reshape(shape)
    for number in reversed(range(len(tables))):
        clique = plan.cliques[number]
        message = messages[number]
        conditional = tables[number] - np.where(np.isneginf(message), 0.0, message)[:, None]
        tables[number] = np.exp(conditional)
        if clique.parent >= 0:
            parent = tables[clique.parent]
            others = tuple(axis for axis in range(parent.ndim) if axis not in clique.kept)
            tables[number] *= parent.sum(axis=others)[:, None]
    return tables, messages[-1]
