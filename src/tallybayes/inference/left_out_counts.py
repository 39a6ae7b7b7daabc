"""Rows of counts without themselves: log p(row | group) from the counts of all other rows, in closed form."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tallybayes.beliefs.log_gamma import log_choose
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.block import Sparse, compressed
from tallybayes.families.estimates import estimate_parameters
from tallybayes.families.family import Family
from tallybayes.families.form import stretches
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.kernels.log_base import log_base_csr
from tallybayes.statistics.totals import Totals


def tokens_left_out(
    family: Multinomial,
    statistics: Totals,
    prior: Any,
    estimate: str,
    block: Any,
    group: np.ndarray,
    weight: np.ndarray,
    unit: bool,
) -> np.ndarray:
    """Rows of counts: only their own words change. `unit`: all weights are 1."""
    rows = block if isinstance(block, Sparse) else compressed(np.asarray(block))
    n_words, lengths = statistics.n_columns, np.diff(rows.indptr)
    x, word = rows.data, rows.indices
    held, added = statistics.total, np.zeros(1)
    if estimate in ("map", "bayes"):
        added = np.broadcast_to(prior.concentration, held.shape) - (estimate == "map")
        if (added < 0).any():  # the mode may lie on an edge that moves with the row
            return np.full(len(group), np.nan)
    length = rows.sum_rows(x)
    cell = np.repeat(group * n_words, lengths) + word
    cells = rest_of(held.take(cell), x if unit else np.repeat(weight, lengths) * x)
    whole = rest_of(held.sum(axis=1)[group], weight * length)
    if added.ndim == 2:
        cells, whole = cells + added.take(cell), whole + added.sum(axis=1)[group]
    if isinstance(family, DirichletMultinomial) and estimate == "bayes":
        return rows.sum_rows(log_choose(cells, x)) - log_choose(whole, length)
    base = log_base_csr(rows.indptr, x, "multinomial")
    terms = rows.sum_rows(np.where(x > 0, x * np.log(cells), 0.0))
    return np.where(length > 0, base + terms - length * np.log(np.where(whole > 0, whole, np.nan)), 0.0)


def cells_left_out(
    family: Family,
    statistics: Totals,
    prior: Any,
    estimate: str,
    block: Sparse,
    group: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """Sparse rows of columns of counts: what a row of zeros would have, then what the row's other cells change.

    A zero without the row depends on the group and on the row's weight alone, so rows of zeros are summed once for each
    of these; of `Bernoulli` and `Poisson` cells only, whose statistics are Σw and Σwx.
    """
    rows, width = block.without_zeros(), statistics.n_columns
    held = np.broadcast_to(statistics.weight, statistics.total.shape)
    start = prior.update(statistics.scale(0.0)) if estimate in ("map", "bayes") else None

    def log_p(x: np.ndarray, cell: np.ndarray, lost: Any) -> np.ndarray:
        """log p(x) in some cells of (groups, columns), without such a cell of weight `lost`."""
        left = rest_of(held.take(cell), lost)
        total = rest_of(statistics.total.take(cell), lost * x)
        some = Totals(left, np.minimum(total, left) if isinstance(family, Bernoulli) else total)
        if start is None:
            return family.log_prob(estimate_parameters(family, None, some, estimate), x[None])[0]
        mine = {field.name: getattr(start, field.name).take(cell) for field in dataclasses.fields(start)}
        if estimate == "bayes":
            return family.log_predictive(start.replace(**mine).update(some), x[None])[0]
        return family.log_prob(estimate_parameters(family, start.replace(**mine), some, estimate), x[None])[0]

    kinds, which = np.unique(np.stack([group, weight]), axis=1, return_inverse=True)
    zeros = np.zeros((2, kinds.shape[1]))  # sums, and how many zeros are impossible, whose −inf are counted apart
    for k, (code, lost) in enumerate(kinds.T):
        terms = log_p(np.zeros(width), int(code) * width + np.arange(width), lost)
        zeros[:, k] = np.where(np.isneginf(terms), 0.0, terms).sum(), np.isneginf(terms).sum()
    out = np.empty(len(group))
    for part in stretches(rows.indptr):
        some = rows.rows(part)
        lengths = np.diff(some.indptr)
        cell, lost = np.repeat(group[part] * width, lengths) + some.indices, np.repeat(weight[part], lengths)
        x = np.asarray(some.data, dtype=float)
        zero, known = log_p(np.zeros(len(x)), cell, lost), ~np.isnan(x)
        terms = np.where(known, log_p(np.where(known, x, 0.0), cell, lost), 0.0)
        possible = ~np.isneginf(zero)
        sums, impossible = zeros[:, which.ravel()[part]]
        sums = sums + some.sum_rows(terms - np.where(possible, zero, 0.0))
        out[part] = np.where(impossible > some.sum_rows(~possible), -np.inf, sums)
    return out


def rest_of(held: np.ndarray, removed: Any) -> np.ndarray:
    """A difference of counts, 0 where only rounding is left."""
    rest = held - removed
    return np.where(rest > 1e-10 * held, rest, 0.0)
