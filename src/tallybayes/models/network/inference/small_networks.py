"""Posteriors of many rows in a small network: variable elimination with an axis of rows.

In a network of few cells, the kernel of missing cells would spend most of its time on sorting rows by what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

MAX_CELLS = 256  # of all cliques; the kernel is faster for larger networks
_SMALLEST = 1e-200  # smaller messages may underflow

Scope = tuple[int, ...]
Factor = tuple[Scope, np.ndarray]  # the table has an axis for every variable, and rows last


def small_posteriors(
    factors: Iterable[Factor], order: Sequence[int], sizes: Sequence[int], scopes: Iterable[Scope]
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return log p(evidence) of every row, and the joint posteriors of some scopes, (rows, combinations).

    None for a network of too many cells, and if a row is impossible or may underflow.

    Parameters
    ----------
    factors : iterable of (scope, table)
    order : sequence of int
        Elimination order.
    sizes : sequence of int
        The number of levels of every variable.
    scopes : iterable of tuples of int
        Each in one clique: a subset of the scope of a factor.
    """
    rank = {variable: k for k, variable in enumerate(order)}
    waiting: list[list[Factor]] = [[] for _ in order]
    for scope, table in factors:
        waiting[min(map(rank.__getitem__, scope))].append((scope, table))
    log_likelihood: np.ndarray | float = 0.0
    cliques: list[tuple[Scope, np.ndarray]] = []  # by the variable that is eliminated, p(variable | others)
    n_cells = 0
    for variable, own in zip(order, waiting, strict=True):
        variables = (
            variable,
            *sorted({other for scope, _ in own for other in scope} - {variable}, key=rank.__getitem__),
        )
        n_cells += math.prod(sizes[k] for k in variables)
        if n_cells > MAX_CELLS:
            return None
        product = broadcast(*own[0], variables)
        for factor in own[1:]:
            product = product * broadcast(*factor, variables)
        message = product.sum(axis=0)
        largest = message.reshape(-1, message.shape[-1]).max(axis=0)
        if (largest < _SMALLEST).any():
            return None
        log_likelihood = log_likelihood + np.log(largest)
        cliques.append((variables, product / np.where(message > 0, message, 1.0)))
        if len(variables) > 1:
            waiting[rank[variables[1]]].append((variables[1:], message / largest))
    for k in reversed(range(len(cliques))):  # p(variable | others) becomes p(variable, others)
        variables, conditional = cliques[k]
        if len(variables) > 1:
            cliques[k] = variables, conditional * _marginal(*cliques[rank[variables[1]]], variables[1:])
    found = [_marginal(*cliques[min(map(rank.__getitem__, scope))], scope) for scope in scopes]
    return np.asarray(log_likelihood), [np.moveaxis(table, -1, 0).reshape(table.shape[-1], -1) for table in found]


def broadcast(scope: Scope, table: np.ndarray, variables: Sequence[int]) -> np.ndarray:
    """Return a table with an axis for each of some variables, of length 1 where it does not depend on them.

    An axis of rows stays last.
    """
    n = len(scope)
    axes = np.argsort([variables.index(variable) for variable in scope])
    sizes = dict(zip(scope, table.shape, strict=False))
    in_order = table.transpose(*axes, *range(n, table.ndim))
    return in_order.reshape(*(sizes.get(variable, 1) for variable in variables), *table.shape[n:])


def _marginal(variables: Scope, table: np.ndarray, scope: Scope) -> np.ndarray:
    """Sum a table of some variables over all but those of a scope, in its order."""
    kept = [variables.index(variable) for variable in scope]
    summed = table.sum(axis=tuple(axis for axis in range(len(variables)) if axis not in kept))
    return summed.transpose(*np.argsort(np.argsort(kept)), len(kept))
