"""Partly known rows in NumPy: the truth of the compiled kernel, and what runs where nothing was compiled.

All in logarithms, one variable summed out after another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array

_CELLS = 1 << 20  # of a clique, of the rows that are looked at together


class _Clique(NamedTuple):
    variables: tuple[int, ...]  # the one that is summed out, and those that it is then shared with
    above: int
    shape: tuple[int, ...]
    kept: tuple[int, ...]  # the axes, of the clique above and of the rows before them, that are shared


class _Plan(NamedTuple):
    cliques: list[_Clique]
    factors: tuple[int, ...]
    uses: list[tuple[int, Int64Array]]  # of every factor: its clique, and the cells of its table
    rows: dict[tuple[int, ...], list[int]]  # by what is known of the place in each table


class PartlyKnown:
    """The rows, sorted by what is missing and what is known about that."""

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
        self.when = np.argsort(order).tolist()
        self.strides = []
        self.offsets, self.pitch, end = [], [], 0
        for scope, each in zip(self.scopes, by_row, strict=True):
            shape = [self.sizes[variable] for variable in scope]
            self.strides.append([math.prod(shape[k + 1 :]) for k in range(len(shape))])
            self.offsets.append(end)
            self.pitch.append(math.prod(shape) if each else 0)
            end += math.prod(shape) * (len(self.codes) if each else 1)
        self.n_cells = end
        self.plans: dict[tuple[tuple[int, ...], tuple[int, ...]], _Plan] = {}
        having = [{f for f, scope in enumerate(self.scopes) if j in scope} for j in range(len(self.sizes))]
        own = {variable: f for f, variable in enumerate(sums_to_one.tolist()) if variable >= 0 and not kept[variable]}
        for row, cells in enumerate(self.codes.tolist()):
            self._read(row, cells, having, own)

    def _read(self, row: int, cells: list[int], having: list[set[int]], own: dict[int, int]) -> None:
        """Find the components of a row."""
        missing = {j for j, code in enumerate(cells) if code < 0}
        gone: set[int] = set()
        waiting = list(missing)
        while waiting:
            j = waiting.pop()
            if j in missing and j in own and having[j] - gone == {own[j]}:
                missing.discard(j)
                gone.add(own[j])
                waiting += self.scopes[own[j]]
        while missing:
            members, near, factors = set[int](), {min(missing)}, set[int]()
            while near:
                members |= near
                factors |= {f for j in near for f in having[j]} - gone
                near = ({j for f in factors for j in self.scopes[f]} & missing) - members
            missing -= members
            key = tuple(sorted(members)), tuple(sorted(factors))
            if key not in self.plans:
                self.plans[key] = self._plan(*key)
            bases = []
            for f in key[1]:
                pairs = zip(self.scopes[f], self.strides[f], strict=True)
                known = sum(cells[j] * stride for j, stride in pairs if cells[j] >= 0)
                bases.append(self.offsets[f] + self.pitch[f] * row + known)
            self.plans[key].rows.setdefault(tuple(bases), []).append(row)

    def _plan(self, members: tuple[int, ...], factors: tuple[int, ...]) -> _Plan:
        variables = sorted(members, key=self.when.__getitem__)
        later: dict[int, set[int]] = {j: set() for j in variables}
        for f in factors:
            scope = [j for j in variables if j in self.scopes[f]]
            for k, j in enumerate(scope):
                later[j] |= set(scope[k + 1 :])
        groups = []
        for j in variables:
            near = sorted(later[j], key=self.when.__getitem__)
            groups.append((j, *near))
            if near:
                later[near[0]] |= set(near[1:])
        cliques = []
        for group in groups:
            above = variables.index(group[1]) if len(group) > 1 else -1
            axes = (0, *(groups[above].index(j) + 1 for j in group[1:])) if above >= 0 else (0,)
            cliques.append(_Clique(group, above, tuple(self.sizes[j] for j in group), axes))
        uses = []
        for f in factors:
            home = min(variables.index(j) for j in self.scopes[f] if j in later)
            strides = dict(zip(self.scopes[f], self.strides[f], strict=True))
            place = np.zeros(cliques[home].shape, dtype=np.int64)
            for axis, j in enumerate(cliques[home].variables):
                steps = np.arange(self.sizes[j]) * strides.get(j, 0)
                place = place + steps.reshape(-1, *(1,) * (place.ndim - axis - 1))
            uses.append((home, place))
        return _Plan(cliques, factors, uses, {})

    @property
    def cells(self) -> float:
        """The cells of all cliques of any component."""
        return max((sum(float(math.prod(c.shape)) for c in plan.cliques) for plan in self.plans.values()), default=0.0)

    @property
    def instances(self) -> int:
        """How many different components there are."""
        return sum(len(plan.rows) for plan in self.plans.values())

    def expect(self, tables: Float64Array, logs: Float64Array, threads: int) -> tuple[Float64Array, float]:
        """What the rows expect of every cell, and their log likelihood."""
        counts, value = np.zeros(self.n_cells), 0.0
        for plan, some, bases in self._parts():
            shares, found = _solve(plan, bases, logs)
            weight = np.array([self.weight[plan.rows[key]].sum() for key in some])
            value += float((weight * found).sum())
            for number, (home, place) in enumerate(plan.uses):
                cells = bases[:, number].reshape(-1, *(1,) * place.ndim) + place
                amounts = shares[home] * weight.reshape(-1, *(1,) * place.ndim)
                counts += np.bincount(cells.ravel(), amounts.ravel(), self.n_cells)
        return counts, value

    def answer(
        self, tables: Float64Array, logs: Float64Array, asked: AnyArray, threads: int
    ) -> tuple[Float64Array, Float64Array]:
        """The distributions of what is asked for, where it is missing, and the log likelihood of every row."""
        room = {j: np.zeros((len(self.codes), self.sizes[j])) for j in np.flatnonzero(asked).tolist()}
        log_likelihood = np.zeros(len(self.codes))
        for plan, some, bases in self._parts():
            shares, found = _solve(plan, bases, logs)
            for instance, key in enumerate(some):
                log_likelihood[plan.rows[key]] += found[instance]
            for clique, share in zip(plan.cliques, shares, strict=True):
                if clique.variables[0] in room:
                    single = share.reshape(len(some), clique.shape[0], -1).sum(axis=-1)
                    for instance, key in enumerate(some):
                        room[clique.variables[0]][plan.rows[key]] = single[instance]
        return np.concatenate([np.zeros(0), *(found.ravel() for found in room.values())]), log_likelihood

    def _parts(self) -> Iterator[tuple[_Plan, list[tuple[int, ...]], Int64Array]]:
        """Every plan with some of its instances at a time."""
        for plan in self.plans.values():
            step = max(1, _CELLS // max(math.prod(clique.shape) for clique in plan.cliques))
            keys = list(plan.rows)
            for start in range(0, len(keys), step):
                some = keys[start : start + step]
                yield plan, some, np.array(some, dtype=np.int64).reshape(len(some), len(plan.factors))


def _solve(plan: _Plan, bases: Int64Array, logs: Float64Array) -> tuple[list[Float64Array], Float64Array]:
    """The joint distribution of every clique, (instances, *levels), and the log probability of what is known."""
    tables = [np.zeros((len(bases), *clique.shape)) for clique in plan.cliques]
    for number, (home, place) in enumerate(plan.uses):
        tables[home] += logs[bases[:, number].reshape(-1, *(1,) * place.ndim) + place]
    messages = []
    for clique, table in zip(plan.cliques, tables, strict=True):
        messages.append(np.logaddexp.reduce(table, axis=1))
        if clique.above >= 0:
            shape = [size if axis in clique.kept else 1 for axis, size in enumerate(tables[clique.above].shape)]
            tables[clique.above] += messages[-1].reshape(shape)
    for number in reversed(range(len(tables))):
        clique, message = plan.cliques[number], messages[number]
        table = tables[number] - np.where(np.isneginf(message), 0.0, message)[:, None]
        tables[number] = np.exp(table)
        if clique.above >= 0:
            upper = tables[clique.above]
            others = tuple(axis for axis in range(upper.ndim) if axis not in clique.kept)
            tables[number] *= upper.sum(axis=others)[:, None]
    return tables, messages[-1]
