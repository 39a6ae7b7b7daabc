"""The clique tree: exact inference in a network of labels, for many rows at once.

A network is compiled once. What is known enters as likelihoods, one vector for every variable and row, so that one tree
with an axis of rows serves every pattern of what is known. All arrays have the rows on their last axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference.triangulation import find_cliques, n_cells

_BATCH_CELLS = 1 << 18  # cells of all cliques together for the rows of one batch: they should stay in cache
_MOST_AXES = 60  # variables of a clique: NumPy's arrays have 64 axes at most, and the rows need one
_SMALLEST = 1e-200  # messages have a maximum of 1; a product below this may have lost what counts: logarithms then

Scope = tuple[int, ...]


class Clique(NamedTuple):
    """Some variables: those shared with the clique above first, in its order, then the others."""

    variables: Scope
    above: int  # −1 for a root
    n_shared: int
    shape: tuple[int, ...]

    def axes(self, scope: Iterable[int]) -> tuple[int, ...]:
        """Return the axes of some of the variables."""
        return tuple(self.variables.index(variable) for variable in scope)

    @property
    def folded(self) -> tuple[int, int]:
        """The numbers of combinations of the shared variables and of the others."""
        return math.prod(self.shape[: self.n_shared]), math.prod(self.shape[self.n_shared :])


class Likelihood(NamedTuple):
    """Likelihood of the evidence on some variables, up to a factor, for every row or for all rows."""

    scope: Scope
    table: np.ndarray  # (*levels, rows) or (*levels, 1)
    logarithmic: bool = False


class CliqueTree:
    """A compiled network.

    Parameters
    ----------
    sizes : sequence of int
        How many levels every variable has.
    scopes : sequence of tuples of int
        The variables of every factor.
    names : sequence, optional
        What messages call the variables.
    last : iterable of int, optional
        Variables that stay to the end on the way up: all others can be summed before any of these.

    Examples
    --------
    Rain makes the grass wet; it is wet:

    >>> import numpy as np
    >>> from tallybayes.models.network.inference.clique_tree import CliqueTree, Likelihood
    >>> tree = CliqueTree([2, 2], [(0,), (0, 1)])
    >>> potentials = tree.load([np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])])
    >>> found = tree.propagate(potentials, [Likelihood((1,), np.array([[0.0], [1.0]]))], 1)
    >>> found.marginal((0,))[:, 0].round(4), np.exp(found.log_likelihood).round(2)
    (array([0.3333, 0.6667]), array([0.24]))
    """

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Sequence[Scope],
        names: Sequence[Any] | None = None,
        last: Iterable[int] = (),
    ) -> None:
        self.sizes, self.scopes = tuple(sizes), [tuple(scope) for scope in scopes]
        cliques, above = find_cliques(sizes, scopes, most=available_memory() / 8, last=last)
        self.n_cells = sum(n_cells(clique, sizes) for clique in cliques)
        self._check_size(cliques, range(len(sizes)) if names is None else names)
        self.cliques = _laid_out(cliques, above, self.sizes)
        self.homes: dict[Scope, int] = {}
        self.holders: list[list[int]] = [[] for _ in sizes]  # the cliques of every variable
        for number, clique in enumerate(self.cliques):
            for variable in clique.variables:
                self.holders[variable].append(number)
        self.batch_rows = max(1, min(4096, _BATCH_CELLS // max(1, self.n_cells)))

    def _check_size(self, cliques: list[frozenset[int]], names: Sequence[Any]) -> None:
        """Raise TooLargeError if the tree does not fit into memory, before allocation."""
        largest = max(cliques, key=lambda clique: n_cells(clique, self.sizes), default=frozenset[int]())
        # The tables, those of one row, their logarithms for the most probable levels, and work on the largest.
        needed = 8 * (3 * self.n_cells + 2 * n_cells(largest, self.sizes))
        here = available_memory()
        if needed > here or len(largest) > _MOST_AXES:
            blamed = sorted(largest, key=lambda variable: -self.sizes[variable])
            raise TooLargeError.cliques(
                needed, here, n_cells(largest, self.sizes), [names[variable] for variable in blamed]
            )

    def home(self, scope: Sequence[int]) -> int:
        """Return the smallest clique that contains these variables."""
        key = tuple(scope)
        if key not in self.homes:
            nearest = min((self.holders[variable] for variable in key), key=len, default=[])
            holding = [k for k in nearest if set(key).issubset(self.cliques[k].variables)]
            if not holding:
                raise KeyError(f"no clique holds the variables {key}")
            self.homes[key] = min(holding, key=lambda k: math.prod(self.cliques[k].shape))
        return self.homes[key]

    def _spread(self, number: int, scope: Scope, table: np.ndarray) -> np.ndarray:
        """A table over some variables of a clique, ready to broadcast over the others; rows stay last."""
        clique = self.cliques[number]
        order = sorted(range(len(scope)), key=lambda place: clique.variables.index(scope[place]))
        table = table.transpose(*order, len(scope))
        shape = [1] * len(clique.variables)
        for axis, place in zip(clique.axes(scope[k] for k in order), order, strict=True):
            shape[axis] = self.sizes[scope[place]]
        return table.reshape(*shape, table.shape[-1])

    def load(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The product of the factors that live in every clique, from a table for every scope: (*levels, 1)."""
        potentials = [np.ones((*clique.shape, 1)) for clique in self.cliques]
        for scope, table in zip(self.scopes, tables, strict=True):
            number = self.home(scope)
            potentials[number] *= self._spread(number, scope, np.asarray(table, dtype=float)[..., None])
        return potentials

    def propagate(
        self, potentials: list[np.ndarray], likelihoods: Sequence[Likelihood], n_rows: int, *, down: bool = True
    ) -> Propagated:
        """Compute the joint distribution of every clique given the evidence, for each row.

        Parameters
        ----------
        potentials : list of ndarray
            As `load` gives them.
        likelihoods : sequence of Likelihood
        n_rows : int
        down : bool, default True
            Whether the distributions are wanted; without, only the probability of what is known is found.

        Returns
        -------
        Propagated
        """
        done = _run(self, potentials, likelihoods, n_rows, _Linear, down)
        lost = np.flatnonzero(done.lost)
        if len(lost):  # impossible, or underflow: recompute in logarithms
            some = [item._replace(table=_take_rows(item.table, lost)) for item in likelihoods]
            logs = _run(self, potentials, some, len(lost), _Log, down)
            done.log_likelihood[lost] = logs.log_likelihood
            if down:
                for number, part in enumerate(logs.cliques):
                    whole = np.array(np.broadcast_to(done.cliques[number], (*part.shape[:-1], n_rows)))
                    whole[..., lost] = part
                    done.cliques[number] = whole
        return Propagated(self, done.cliques, done.log_likelihood)

    def most_probable(
        self, potentials: list[np.ndarray], likelihoods: Sequence[Likelihood], n_rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable joint assignment, (variables, rows), and its log-probability."""
        done = _run(self, potentials, likelihoods, n_rows, _Max, False)
        codes = np.zeros((len(self.sizes), n_rows), dtype=np.intp)
        rows = np.arange(n_rows)
        for clique, table in zip(self.cliques, done.cliques, strict=True):
            shared, others = clique.folded
            folded = np.broadcast_to(table, (*clique.shape, n_rows)).reshape(shared, others, n_rows)
            best = folded[_position(codes, clique, clique.n_shared), :, rows].argmax(axis=1)
            _assign(codes, clique, best)
        return codes, done.log_likelihood


class Propagated(NamedTuple):
    """Result of a propagation for some rows.

    Attributes
    ----------
    tree : CliqueTree
    cliques : list of ndarray
        p(variables of the clique | what is known), (*levels, rows), or (*levels, 1) where it is the same for all rows;
        without meaning where that is impossible.
    log_likelihood : ndarray of shape (rows,)
        −inf where what is known is impossible.
    """

    tree: CliqueTree
    cliques: list[np.ndarray]
    log_likelihood: np.ndarray

    def marginal(self, scope: Sequence[int]) -> np.ndarray:
        """Return p(variables | evidence) of variables in one clique: (*levels in the order of `scope`, rows)."""
        number = self.tree.home(scope)
        found = marginal_of(self.tree.cliques[number], self.cliques[number], scope)
        return np.broadcast_to(found, (*found.shape[:-1], len(self.log_likelihood)))

    def expected(self, weight: np.ndarray) -> list[np.ndarray]:
        """Return the expected counts of every scope, summed over rows."""
        summed = [
            table.sum(axis=-1, keepdims=True) * weight.sum()
            if table.shape[-1] == 1 and len(weight) != 1
            else (table.reshape(-1, len(weight)) @ weight).reshape(*table.shape[:-1], 1)
            for table in self.cliques
        ]
        homes = [(self.tree.home(scope), scope) for scope in self.tree.scopes]
        return [marginal_of(self.tree.cliques[home], summed[home], scope)[..., 0] for home, scope in homes]

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Sample all variables given the evidence of a single row: codes of shape (variables, n)."""
        codes = np.zeros((len(self.tree.sizes), n), dtype=np.intp)
        for clique, table in zip(self.tree.cliques, self.cliques, strict=True):
            shared, others = clique.folded
            totals = np.cumsum(table[..., 0].reshape(shared, others), axis=1)
            place = _position(codes, clique, clique.n_shared)
            ends = totals[place, -1]
            wanted = np.minimum(rng.random(n) * ends, np.nextafter(ends, 0.0))
            drawn = np.empty(n, dtype=np.intp)
            order = np.argsort(place, kind="stable")
            groups, starts = np.unique(place[order], return_index=True)
            for group, rows in zip(groups, np.split(order, starts[1:]), strict=False):  # none of either for n = 0
                drawn[rows] = np.searchsorted(totals[group], wanted[rows], side="right")
            _assign(codes, clique, drawn)
        return codes


def marginal_of(clique: Clique, table: np.ndarray, scope: Sequence[int]) -> np.ndarray:
    """The sum over all variables but some: (*levels in the order of `scope`, rows)."""
    kept = clique.axes(scope)
    dropped = tuple(axis for axis in range(len(clique.variables)) if axis not in kept)
    found = table.sum(axis=dropped) if dropped else table
    order = np.argsort(np.argsort(kept))
    return found.transpose(*order, len(scope))


def _laid_out(cliques: list[frozenset[int]], above: list[int], sizes: tuple[int, ...]) -> list[Clique]:
    """The cliques, each after the one it hangs on."""
    below: dict[int, list[int]] = {number: [] for number in range(-1, len(cliques))}
    for number, up in enumerate(above):
        below[up].append(number)
    laid: list[Clique] = []
    waiting = [(number, -1) for number in below[-1]]
    for number, up in waiting:  # it grows on the way
        outer = laid[up].variables if up >= 0 else ()
        shared = [variable for variable in outer if variable in cliques[number]]
        variables = (*shared, *sorted(cliques[number] - set(shared)))
        laid.append(Clique(variables, up, len(shared), tuple(sizes[variable] for variable in variables)))
        waiting += [(child, len(laid) - 1) for child in below[number]]
    return laid


def _position(codes: np.ndarray, clique: Clique, n_variables: int) -> np.ndarray:
    """Which combination of a clique's first variables the codes are."""
    place = np.zeros(codes.shape[1], dtype=np.intp)
    for variable, size in zip(clique.variables[:n_variables], clique.shape, strict=False):
        place = place * size + codes[variable]
    return place


def _assign(codes: np.ndarray, clique: Clique, chosen: np.ndarray) -> None:
    """Set the variables that a clique does not share with the one above."""
    new = clique.variables[clique.n_shared :]
    for variable, level in zip(new, np.unravel_index(chosen, clique.shape[clique.n_shared :]), strict=True):
        codes[variable] = level


def _take_rows(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return table if table.shape[-1] == 1 else table[..., rows]


# ---- Messages --------------------------------------------------------------------------------------------------------


class _Run(NamedTuple):
    cliques: list[np.ndarray]
    log_likelihood: np.ndarray
    lost: np.ndarray


class _Linear:
    """Sums of products, where every message is scaled to a maximum of 1."""

    times = np.multiply

    @staticmethod
    def begin(table: np.ndarray, logarithmic: bool = False) -> np.ndarray:
        return np.exp(table) if logarithmic else table

    @staticmethod
    def total(table: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
        return table.sum(axis=axis)

    @staticmethod
    def scale(message: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The message with a maximum of 1, the log of the factor, and where it may have vanished."""
        top = message.max(axis=0)
        low = top < _SMALLEST
        safe = np.where(top > 0, top, 1.0)
        return message / safe, np.log(safe), low

    @staticmethod
    def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return np.divide(new, old, out=np.zeros(np.broadcast_shapes(new.shape, old.shape)), where=old > 0)

    @staticmethod
    def finish(table: np.ndarray, total: np.ndarray) -> np.ndarray:
        return table / np.where(total > 0, total, 1.0)


class _Log:
    """The same in logarithms."""

    times = np.add

    @staticmethod
    def begin(table: np.ndarray, logarithmic: bool = False) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return table if logarithmic else np.log(table)

    @staticmethod
    def total(table: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
        top = table.max(axis=axis, keepdims=True)
        finite = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(table - finite).sum(axis=axis)) + finite.squeeze(axis=axis)

    @staticmethod
    def scale(message: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        top = message.max(axis=0)
        finite = np.where(np.isneginf(top), 0.0, top)
        return message - finite, top, np.zeros(len(top), dtype=bool)

    @staticmethod
    def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return np.where(np.isneginf(old), -np.inf, new - np.where(np.isneginf(old), 0.0, old))

    @staticmethod
    def finish(table: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.exp(table - np.where(np.isneginf(total), 0.0, total))


class _Max(_Log):
    """Maxima in place of sums."""

    @staticmethod
    def total(table: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
        return table.max(axis=axis)


def _run(
    tree: CliqueTree,
    potentials: list[np.ndarray],
    likelihoods: Sequence[Likelihood],
    n_rows: int,
    way: type[_Linear] | type[_Log],
    down: bool,
) -> _Run:
    """Pass messages up to the roots and, if requested, down again."""
    tables = [way.begin(table) for table in potentials]
    owned = [way is not _Linear] * len(tables)

    def multiply(number: int, factor: np.ndarray) -> None:
        table = tables[number]
        fits = owned[number] and table.shape[-1] >= factor.shape[-1]
        tables[number] = way.times(table, factor, out=table if fits else None)
        owned[number] = True

    for item in likelihoods:
        number = tree.home(item.scope)
        multiply(number, tree._spread(number, item.scope, way.begin(item.table, item.logarithmic)))
    log_likelihood, lost = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
    messages: list[np.ndarray] = [np.zeros(0)] * len(tables)
    for number in reversed(range(len(tables))):
        clique, table = tree.cliques[number], tables[number]
        shared, others = clique.folded
        message = way.total(table.reshape(shared, others, table.shape[-1]), 1)
        shape = (*clique.shape[: clique.n_shared], -1)
        messages[number] = message.reshape(shape)
        scaled, factor, low = way.scale(message)
        log_likelihood += factor
        lost |= low
        if clique.above >= 0:
            outer = clique.variables[: clique.n_shared]
            multiply(clique.above, tree._spread(clique.above, outer, scaled.reshape(shape)))
    if not down:
        return _Run(tables, log_likelihood, lost)
    for number, clique in enumerate(tree.cliques):
        if clique.above >= 0 and clique.n_shared:
            upper = tree.cliques[clique.above]
            kept = upper.axes(clique.variables[: clique.n_shared])
            dropped = tuple(axis for axis in range(len(upper.variables)) if axis not in kept)
            message = way.total(tables[clique.above], dropped) if dropped else tables[clique.above]
            ratio = way.ratio(message, messages[number])
            multiply(
                number,
                ratio.reshape(*clique.shape[: clique.n_shared], *(1,) * (len(clique.shape) - clique.n_shared), -1),
            )
    for number, table in enumerate(tables):
        axes = tuple(range(table.ndim - 1))
        tables[number] = way.finish(table, way.total(table, axes))
    return _Run(tables, log_likelihood, lost)
