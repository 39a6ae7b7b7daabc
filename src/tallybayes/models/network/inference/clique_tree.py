"""Clique tree (junction tree): exact inference in a discrete network, for many rows at once.

A network is compiled once. Evidence enters as likelihoods, one vector for every variable and row, so that one tree with
an axis of rows serves every pattern of evidence. All arrays have the rows on their last axis. Messages are passed to
the roots and back (Shafer and Shenoy 1990; Lauritzen and Spiegelhalter 1988).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference.triangulation import find_cliques, n_cells

_BATCH_CELLS = 1 << 18  # cells of all cliques for the rows of one batch, which should fit into cache
_MAX_AXES = 60  # variables of a clique: NumPy arrays have at most 64 axes, and the rows need one
_SMALLEST = 1e-200  # messages have a maximum of 1; if a product is smaller, it is recomputed in logarithms

Scope = tuple[int, ...]


class Clique(NamedTuple):
    """A set of variables: first those shared with the clique above, in its order, then the others."""

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
        The number of levels of every variable.
    scopes : sequence of tuples of int
        The variables of every factor.
    names : sequence, optional
        The names of the variables in messages.
    last : iterable of int, optional
        Variables that are eliminated last: all others can be summed out before them.

    Examples
    --------
    Rain makes the grass wet; it is wet:

    >>> import numpy as np
    >>> from tallybayes.models.network.inference.clique_tree import CliqueTree, Likelihood
    >>> tree = CliqueTree([2, 2], [(0,), (0, 1)])
    >>> potentials = tree.load([np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])])
    >>> result = tree.propagate(potentials, [Likelihood((1,), np.array([[0.0], [1.0]]))], 1)
    >>> result.marginal((0,))[:, 0].round(4), np.exp(result.log_likelihood).round(2)
    (array([0.3333, 0.6667]), array([0.24]))
    """

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Sequence[Scope],
        names: Sequence[Any] | None = None,
        last: Iterable[int] = (),
    ) -> None:
        self.sizes = tuple(sizes)
        self.scopes = [tuple(scope) for scope in scopes]
        cliques, above = find_cliques(sizes, scopes, max_cells=available_memory() / 8, last=last)
        self.n_cells = sum(n_cells(clique, sizes) for clique in cliques)
        self._check_size(cliques, range(len(sizes)) if names is None else names)
        self.cliques = _topological_order(cliques, above, self.sizes)
        self.homes: dict[Scope, int] = {}
        self.cliques_of: list[list[int]] = [[] for _ in sizes]  # by variable
        for number, clique in enumerate(self.cliques):
            for variable in clique.variables:
                self.cliques_of[variable].append(number)
        self.batch_rows = max(1, min(4096, _BATCH_CELLS // max(1, self.n_cells)))

    def _check_size(self, cliques: list[frozenset[int]], names: Sequence[Any]) -> None:
        """Raise TooLargeError if the tree does not fit into memory, before allocation."""
        largest = max(cliques, key=lambda clique: n_cells(clique, self.sizes), default=frozenset[int]())
        # The tables, those of one row, their logarithms for the most probable levels, and temporaries of the largest.
        needed = 8 * (3 * self.n_cells + 2 * n_cells(largest, self.sizes))
        available = available_memory()
        if needed > available or len(largest) > _MAX_AXES:
            by_size = sorted(largest, key=lambda variable: -self.sizes[variable])
            raise TooLargeError.cliques(
                needed, available, n_cells(largest, self.sizes), [names[variable] for variable in by_size]
            )

    def home(self, scope: Sequence[int]) -> int:
        """Return the smallest clique that contains these variables."""
        key = tuple(scope)
        if key not in self.homes:
            fewest = min((self.cliques_of[variable] for variable in key), key=len, default=[])
            containing = [k for k in fewest if set(key).issubset(self.cliques[k].variables)]
            if not containing:
                raise KeyError(f"no clique contains the variables {key}")
            self.homes[key] = min(containing, key=lambda k: math.prod(self.cliques[k].shape))
        return self.homes[key]

    def broadcast_to_clique(self, number: int, scope: Scope, table: np.ndarray) -> np.ndarray:
        """Reshape a table over some variables of a clique so that it broadcasts over all of them; rows stay last."""
        axes = self.cliques[number].axes(scope)
        shape = [1] * len(self.cliques[number].variables)
        for axis, variable in zip(axes, scope, strict=True):
            shape[axis] = self.sizes[variable]
        order = sorted(range(len(axes)), key=axes.__getitem__)
        return table.transpose(*order, len(scope)).reshape(*shape, table.shape[-1])

    def load(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the potential of every clique, (*levels, 1), from a table for every scope or for the first ones."""
        potentials = [np.ones((*clique.shape, 1)) for clique in self.cliques]
        for scope, table in zip(self.scopes, tables, strict=False):
            number = self.home(scope)
            potentials[number] *= self.broadcast_to_clique(number, scope, np.asarray(table, dtype=float)[..., None])
        return potentials

    def propagate(
        self, potentials: list[np.ndarray], likelihoods: Sequence[Likelihood], n_rows: int, *, down: bool = True
    ) -> Propagated:
        """Compute the joint distribution of every clique given the evidence, for each row.

        Parameters
        ----------
        potentials : list of ndarray
            From `load`.
        likelihoods : sequence of Likelihood
        n_rows : int
        down : bool, default True
            Whether to compute distributions, or only the probability of the evidence.

        Returns
        -------
        Propagated
        """
        linear = _pass_messages(self, potentials, likelihoods, n_rows, _Linear, down)
        underflow = np.flatnonzero(linear.underflow)
        if len(underflow):  # perhaps impossible: recompute in logarithms
            selected = [Likelihood(scope, _take_rows(table, underflow), log) for scope, table, log in likelihoods]
            logs = _pass_messages(self, potentials, selected, len(underflow), _Log, down)
            linear.log_likelihood[underflow] = logs.log_likelihood
            if down:
                for number, part in enumerate(logs.cliques):
                    table = np.array(np.broadcast_to(linear.cliques[number], (*part.shape[:-1], n_rows)))
                    table[..., underflow] = part
                    linear.cliques[number] = table
        return Propagated(self, linear.cliques, linear.log_likelihood)


class Propagated(NamedTuple):
    """Result of a propagation for some rows.

    Attributes
    ----------
    tree : CliqueTree
    cliques : list of ndarray
        p(variables of the clique | evidence), (*levels, rows), or (*levels, 1) if it is the same for all rows;
        meaningless for impossible evidence.
    log_likelihood : ndarray of shape (rows,)
        −inf for impossible evidence.
    """

    tree: CliqueTree
    cliques: list[np.ndarray]
    log_likelihood: np.ndarray

    def marginal(self, scope: Sequence[int]) -> np.ndarray:
        """Return p(variables | evidence) of variables in one clique: (*levels in the order of `scope`, rows)."""
        number = self.tree.home(scope)
        table = self.cliques[number]
        kept = self.tree.cliques[number].axes(scope)
        dropped = tuple(axis for axis in range(table.ndim - 1) if axis not in kept)
        summed = table.sum(axis=dropped) if dropped else table
        marginal = summed.transpose(*np.argsort(np.argsort(kept)), len(kept))
        return np.broadcast_to(marginal, (*marginal.shape[:-1], len(self.log_likelihood)))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Sample all variables given the evidence of a single row: codes of shape (variables, n)."""
        codes = np.zeros((len(self.tree.sizes), n), dtype=np.intp)
        for clique, table in zip(self.tree.cliques, self.cliques, strict=True):
            shared, others = clique.folded
            totals = np.cumsum(table[..., 0].reshape(shared, others), axis=1)
            combination = np.zeros(n, dtype=np.intp)  # of the variables shared with the clique above
            for variable, size in zip(clique.variables[: clique.n_shared], clique.shape, strict=False):
                combination = combination * size + codes[variable]
            ends = totals[combination, -1]
            targets = np.minimum(rng.random(n) * ends, np.nextafter(ends, 0.0))
            drawn = np.empty(n, dtype=np.intp)
            order = np.argsort(combination, kind="stable")
            groups, starts = np.unique(combination[order], return_index=True)
            for group, rows in zip(groups, np.split(order, starts[1:]), strict=False):  # no groups for n = 0
                drawn[rows] = np.searchsorted(totals[group], targets[rows], side="right")
            new = clique.variables[clique.n_shared :]
            codes[list(new)] = np.unravel_index(drawn, clique.shape[clique.n_shared :])
        return codes


def _topological_order(cliques: list[frozenset[int]], above: list[int], sizes: tuple[int, ...]) -> list[Clique]:
    """Return the cliques from the roots down, each after the one above it."""
    below: dict[int, list[int]] = {number: [] for number in range(-1, len(cliques))}
    for number, up in enumerate(above):
        below[up].append(number)
    ordered: list[Clique] = []
    waiting = [(number, -1) for number in below[-1]]
    for number, up in waiting:  # grows during the loop
        outer = ordered[up].variables if up >= 0 else ()
        shared = [variable for variable in outer if variable in cliques[number]]
        variables = (*shared, *sorted(cliques[number] - set(shared)))
        ordered.append(Clique(variables, up, len(shared), tuple(sizes[variable] for variable in variables)))
        waiting += [(child, len(ordered) - 1) for child in below[number]]
    return ordered


def _take_rows(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return table if table.shape[-1] == 1 else table[..., rows]


# ---- Messages --------------------------------------------------------------------------------------------------------


class _Messages(NamedTuple):
    """The tables of all cliques, the log-likelihood of every row, and the rows with a possible underflow."""

    cliques: list[np.ndarray]
    log_likelihood: np.ndarray
    underflow: np.ndarray


class _Linear:
    """Arithmetic of sums of products; every message is scaled to a maximum of 1."""

    multiply: ClassVar[np.ufunc] = np.multiply

    @staticmethod
    def read(table: np.ndarray, logarithmic: bool = False) -> np.ndarray:
        return np.exp(table) if logarithmic else table

    @staticmethod
    def total(table: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
        return table.sum(axis=axis)

    @staticmethod
    def scale(message: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the message with a maximum of 1, the log of the factor, and the rows with a possible underflow."""
        largest = message.max(axis=0)
        safe = np.where(largest > 0, largest, 1.0)
        return message / safe, np.log(safe), largest < _SMALLEST

    @staticmethod
    def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return np.divide(new, old, out=np.zeros(np.broadcast_shapes(new.shape, old.shape)), where=old > 0)

    @staticmethod
    def finish(table: np.ndarray, total: np.ndarray) -> np.ndarray:
        return table / np.where(total > 0, total, 1.0)


class _Log:
    """Arithmetic of sums of products in logarithms."""

    multiply: ClassVar[np.ufunc] = np.add

    @staticmethod
    def read(table: np.ndarray, logarithmic: bool = False) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return table if logarithmic else np.log(table)

    @staticmethod
    def total(table: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
        largest = table.max(axis=axis, keepdims=True)
        finite = np.where(np.isneginf(largest), 0.0, largest)
        with np.errstate(divide="ignore"):
            return np.log(np.exp(table - finite).sum(axis=axis)) + finite.squeeze(axis=axis)

    @staticmethod
    def scale(message: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        largest = message.max(axis=0)
        finite = np.where(np.isneginf(largest), 0.0, largest)
        return message - finite, largest, np.zeros(len(largest), dtype=bool)

    @staticmethod
    def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
        return np.where(np.isneginf(old), -np.inf, new - np.where(np.isneginf(old), 0.0, old))

    @staticmethod
    def finish(table: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.exp(table - np.where(np.isneginf(total), 0.0, total))


def _pass_messages(
    tree: CliqueTree,
    potentials: list[np.ndarray],
    likelihoods: Sequence[Likelihood],
    n_rows: int,
    arithmetic: type[_Linear] | type[_Log],
    down: bool,
) -> _Messages:
    """Pass messages up to the roots and, if requested, down again."""
    tables = [arithmetic.read(table) for table in potentials]
    owned = [arithmetic is not _Linear] * len(tables)  # tables that may be overwritten

    def multiply(number: int, factor: np.ndarray) -> None:
        table = tables[number]
        fits = owned[number] and table.shape[-1] >= factor.shape[-1]
        tables[number] = arithmetic.multiply(table, factor, out=table if fits else None)
        owned[number] = True

    for item in likelihoods:
        number = tree.home(item.scope)
        multiply(number, tree.broadcast_to_clique(number, item.scope, arithmetic.read(item.table, item.logarithmic)))
    log_likelihood = np.zeros(n_rows)
    underflow = np.zeros(n_rows, dtype=bool)
    messages: list[np.ndarray] = [np.zeros(0)] * len(tables)
    for number in reversed(range(len(tables))):
        clique, table = tree.cliques[number], tables[number]
        shared, others = clique.folded
        message = arithmetic.total(table.reshape(shared, others, table.shape[-1]), 1)
        shape = (*clique.shape[: clique.n_shared], -1)
        messages[number] = message.reshape(shape)
        scaled, factor, low = arithmetic.scale(message)
        log_likelihood += factor
        underflow |= low
        if clique.above >= 0:
            outer = clique.variables[: clique.n_shared]
            multiply(clique.above, tree.broadcast_to_clique(clique.above, outer, scaled.reshape(shape)))
    if not down:
        return _Messages(tables, log_likelihood, underflow)
    for number, clique in enumerate(tree.cliques):
        if clique.above >= 0 and clique.n_shared:
            upper = tree.cliques[clique.above]
            kept = upper.axes(clique.variables[: clique.n_shared])
            dropped = tuple(axis for axis in range(len(upper.variables)) if axis not in kept)
            message = arithmetic.total(tables[clique.above], dropped) if dropped else tables[clique.above]
            ratio = arithmetic.ratio(message, messages[number])
            multiply(
                number,
                ratio.reshape(*clique.shape[: clique.n_shared], *(1,) * (len(clique.shape) - clique.n_shared), -1),
            )
    for number, table in enumerate(tables):
        axes = tuple(range(table.ndim - 1))
        tables[number] = arithmetic.finish(table, arithmetic.total(table, axes))
    return _Messages(tables, log_likelihood, underflow)
