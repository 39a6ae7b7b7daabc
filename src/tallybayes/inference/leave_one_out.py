"""Leave-one-out: log p(row | class) from the counts of all other rows, in closed form, without counting again."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tallybayes.beliefs.log_gamma import log_gamma_half_step, log_rising
from tallybayes.beliefs.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.block import Block, Codes, Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import estimate_parameters
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, invert_lower, squared_distances
from tallybayes.families.poisson import Poisson
from tallybayes.inference.left_out_counts import cells_left_out, rest_of, tokens_left_out
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.segments import Segments

# What must be left of a spread when a row is taken out of it. Where less is left, a difference of float64 has lost too
# many digits: those few rows are counted out instead, in double-double.
_LEFT = 1e-5


def is_together(family: Family) -> bool:
    """Whether one row's absence changes the density of every group, or all are had for the price of one."""
    return isinstance(family, MultivariateGaussian) or "groups" in getattr(family, "shared", ())


def is_cellwise(family: Family, sparse: bool) -> bool:
    """Whether leaving rows out makes something of the size of all their cells."""
    thin = sparse and type(family) in (Bernoulli, Poisson)
    return not thin and not isinstance(family, MultivariateGaussian | Multinomial)


def without_row(
    family: Family,
    statistics: Any,
    prior: Any,
    estimate: str,
    block: Block,
    group: np.ndarray,
    weight: np.ndarray | None,
    constant: np.ndarray,
) -> np.ndarray:
    """log p(row | group), the row itself not counted.

    Parameters
    ----------
    family : Family
    statistics : Statistics of shape (groups, …)
        Of all rows, these among them.
    prior : Belief or None
    estimate : {"bayes", "map", "mle", "unbiased"}
    block : array of shape (n, columns), `Codes` or `Sparse`
        The rows.
    group : array of int of shape (n,)
        The group every row was counted in.
    weight : array of shape (n,), optional
        With what weight.
    constant : array of int
        Positions of columns that say nothing.

    Returns
    -------
    ndarray of shape (n, groups) where the family `is_together`, else (n, 1), of the row's own group
        NaN where no closed form is to be trusted, and the row has to be counted out.
    """
    counted = np.ones(len(group)) if weight is None else weight
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if isinstance(family, MultivariateGaussian):
            return _covariance(family, statistics, prior, estimate, np.asarray(block), group, counted, constant)
        if isinstance(family, Gaussian):
            return _gaussian(family, statistics, prior, estimate, np.asarray(block), group, counted, constant)
        if isinstance(family, Multinomial):
            return tokens_left_out(family, statistics, prior, estimate, block, group, counted, weight is None)[:, None]
        if isinstance(block, Sparse) and type(family) in (Bernoulli, Poisson):
            return cells_left_out(family, statistics, prior, estimate, block, group, counted)[:, None]
        if type(family) in (Categorical, Bernoulli):
            counts = _level_counts(family, statistics, prior, estimate)
            if counts is not None:
                codes = block.columns if isinstance(block, Codes) else _yes_no_codes(block)
                return _labels(counts, np.asarray(codes), group, counted)[:, None]
        if len(constant):
            block = np.array(block, dtype=float)
            block[:, constant] = np.nan
        return _counted_out(family, statistics, prior, estimate, block, group, weight)[:, None]


def own_tables(
    family: Family, statistics: Any, prior: Any, estimate: str, constant: np.ndarray
) -> tuple[np.ndarray, ...] | None:
    """log p(row | group) without the row, which counted once, as tables for the scoring kernels.

    Parameters
    ----------
    family, statistics, prior, estimate, constant
        As for `without_row`.

    Returns
    -------
    tuple of arrays of shape (columns or cells, groups), or None where there is no such table
        `Categorical`: log probabilities. `Bernoulli`: log p(1) and log p(0). `Gaussian`: mean, inverse spread, power
        and log norm of a factor ``"left_out"``. NaN in groups whose rows have to be counted out.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if type(family) in (Categorical, Bernoulli):
            counts = _level_counts(family, statistics, prior, estimate)
            if counts is None:
                return None
            cells, totals = rest_of(counts.cells, 1.0) + counts.added, rest_of(counts.totals, 1.0) + counts.all_added
            table = np.log(cells / counts.segments.spread(totals)).T
            return (table,) if type(family) is Categorical else (table[1::2], table[0::2])
        if type(family) is not Gaussian or estimate != "bayes":
            return None
        found = prior.update(statistics)
        size = np.broadcast_shapes(found.location.shape, found.scale.shape)
        mean, before, shape, scale = (
            np.broadcast_to(part, size).T for part in (found.location, found.strength, found.shape, found.scale)
        )
        after, power = before - 1, shape - 0.5
        good = (after > 0) & (power > 0)
        power = np.where(good, power, 1.0)
        spread = np.where(good, before / after / (2 * scale), np.nan)
        log_norm = log_gamma_half_step(power) + 0.5 * np.log(after / before / (2 * np.pi * scale))
        spread[constant], log_norm[constant] = 0.0, 0.0
        return mean, spread, power, log_norm


class LevelCounts(NamedTuple):
    """Counts of levels: cells (groups, cells) and totals (groups, columns), and what a prior adds to both."""

    cells: np.ndarray
    totals: np.ndarray
    added: np.ndarray
    all_added: np.ndarray
    segments: Segments


def _level_counts(family: Family, statistics: Any, prior: Any, estimate: str) -> LevelCounts | None:
    """What the probabilities of levels are shares of, or None where a mode may lie on an edge that moves with a row.

    The levels of a `Bernoulli` column are 0 and 1.
    """
    before = prior.update(statistics.scale(0.0)) if estimate in ("map", "bayes") else None
    if isinstance(family, Bernoulli):
        cells = np.stack([statistics.failures, statistics.total], axis=-1)
        segments = Segments(np.full(statistics.n_columns, 2))
        totals = cells.sum(axis=-1)
        added = None if before is None else np.stack([before.failures, before.successes], axis=-1)
    else:
        cells, segments, totals = statistics.table, statistics.segments, statistics.weight
        added = None if before is None else before.concentration
    cells = cells.reshape(len(cells), -1)
    added = np.zeros_like(cells) if added is None else added.reshape(cells.shape) - (estimate == "map")
    if (added < 0).any():
        return None
    return LevelCounts(cells, totals, added, segments.sum(added), segments)


def _yes_no_codes(block: Any) -> np.ndarray:
    """Cells that are 0 or 1 as codes, −1 where missing."""
    cells = np.asarray(block)
    return np.where(np.isnan(cells), -1, cells).astype(np.intp) if cells.dtype.kind == "f" else cells.astype(np.intp)


def _labels(counts: LevelCounts, codes: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Columns of levels: a row's own cells and columns lose its weight."""
    if not counts.cells.shape[1]:  # no column has any level
        return np.zeros(len(group))
    known = codes >= 0
    cell = np.where(known, codes + counts.segments.offsets[:-1], 0)
    lost, row = weight[:, None], group[:, None]
    cells = rest_of(counts.cells[row, cell], lost) + counts.added[row, cell]
    totals = rest_of(counts.totals[group], lost) + counts.all_added[group]
    return np.where(known, np.log(cells / totals), 0.0).sum(axis=1)


def _counted_out(
    family: Family, statistics: Any, prior: Any, estimate: str, block: Block, group: np.ndarray, weight: Any
) -> np.ndarray:
    """Every row as a group of its own: the statistics of its class less its own, exactly as forgetting would."""
    n_rows = len(group)
    if not n_rows:
        return np.zeros(0)
    each = np.arange(n_rows)
    row = family.collect(block, each, n_rows, weight, like=statistics)
    once = row if weight is None else family.collect(block, each, n_rows, None, like=statistics)
    rest = statistics.take(0, group) - row
    if estimate in ("map", "bayes"):
        prior = _of_groups(prior.update(statistics.scale(0.0)), group)
    if estimate == "bayes":
        terms = family.log_evidence(prior.update(rest), once)
    else:
        terms = family.log_likelihood(estimate_parameters(family, prior, rest, estimate), once)
    return np.reshape(terms, (n_rows, -1)).sum(axis=1)


def _of_groups(belief: Any, group: np.ndarray) -> Any:
    """A belief about groups as one about rows: every row has that of its group."""
    arrays = {field.name: getattr(belief, field.name) for field in dataclasses.fields(belief)}
    return belief.replace(**{name: a[group] for name, a in arrays.items() if isinstance(a, np.ndarray)})


def _gaussian(
    family: Gaussian,
    statistics: Moments,
    prior: Any,
    estimate: str,
    block: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    constant: np.ndarray,
) -> np.ndarray:
    """Columns with variances: the mean moves by w(x − m)/(κ − w), the scatter falls by wκ/(κ − w)·(x − m)²."""
    moments = statistics.diagonal()
    size = moments.first_sum.shape
    tied, round_ = "groups" in family.shared, "columns" in family.shared
    count = np.broadcast_to(moments.weight, size)
    if estimate in ("map", "bayes"):
        posterior = prior.update(moments)
        location, strength = (np.broadcast_to(part, size) for part in (posterior.location, posterior.strength))
        scale, freedom = posterior.scale, 2 * posterior.shape  # a of the t, which is half the freedom
        if estimate == "map":
            freedom = freedom + 2 + posterior.n_means
    else:
        location, strength, scale = moments.mean, count, family._pool(moments.scatter) / 2
        freedom = family._pool(count)
        if estimate == "unbiased":
            freedom = freedom - family._pool((count > 0).astype(float))
    own = np.zeros_like(group) if tied else group
    x = np.asarray(block, dtype=float)[:, None, :]
    known = ~np.isnan(x)
    removed = weight[:, None, None] * known
    gap = np.where(known, x - location[group][:, None, :], 0.0)
    before = strength[group][:, None, :]
    after = before - removed
    moved = location[group][:, None, :] - gap * removed / after
    lost = removed * before / after * gap**2 / 2
    if round_:
        lost, removed = lost.sum(axis=-1, keepdims=True), removed.sum(axis=-1, keepdims=True)
    shared = (1 if tied else size[0], 1 if round_ else size[1])
    scale = np.broadcast_to(scale, shared)[own][:, None, :]
    freedom = np.broadcast_to(freedom, shared)[own][:, None, :] - removed
    rest = scale - lost
    good = (after > 0).all(axis=(1, 2)) & (rest > _LEFT * scale).all(axis=(1, 2)) & (freedom > 0).all(axis=(1, 2))
    if tied:
        here = np.arange(size[0])[:, None] == group[:, None, None]
        moved, after = np.where(here, moved, location), np.where(here, after, strength)
        good &= (after > 0).all(axis=(1, 2))
    moved, after, rest, freedom = (np.where(good[:, None, None], part, 1.0) for part in (moved, after, rest, freedom))
    if len(constant):
        x = x.copy()
        x[..., constant] = np.nan
    if estimate == "bayes":
        terms = family.log_predictive(NormalInverseGamma(moved, after, freedom / 2, rest), x)
    else:
        terms = family.log_prob(Normal(moved, 2 * rest / freedom), x)
    terms = terms.sum(axis=-1) if family.columnwise else terms
    return np.where(good[:, None], terms, np.nan)


def _covariance(
    family: MultivariateGaussian,
    statistics: Moments,
    prior: Any,
    estimate: str,
    block: np.ndarray,
    group: np.ndarray,
    weight: np.ndarray,
    constant: np.ndarray,
) -> np.ndarray:
    """Whole rows: their absence changes the scatter Ψ by a matrix of rank one, its inverse and determinant with it.

    With u = x − m of the own group, g = wκ/(κ − w) and q = uᵀΨ⁻¹u: |Ψ − g·uuᵀ| = |Ψ|·F with F = 1 − gq, and a squared
    length vᵀΨ⁻¹v grows by g(uᵀΨ⁻¹v)²/F (Sherman and Morrison). All it takes are the squared lengths of the row.
    """
    count, d, tied = statistics.weight[:, 0], statistics.n_columns, "groups" in family.shared
    if estimate in ("map", "bayes"):
        posterior = prior.update(statistics)
        location, strength, scale = posterior.location, posterior.strength, posterior.scale
        freedom = posterior.freedom + (d + 1 + posterior.n_means if estimate == "map" else 0)
    else:
        location, strength, scale = statistics.mean, count, family._pool(statistics.scatter, 2)
        freedom = family._pool(count - (count > 0) * (estimate == "unbiased"), 0)
    kept = np.setdiff1d(np.arange(d), constant)
    k = len(kept)
    try:
        root = np.linalg.cholesky(scale[:, kept[:, None], kept])
    except np.linalg.LinAlgError:
        return np.full((len(group), len(count)), np.nan)
    mean = np.broadcast_to(location, (len(count), d))[:, kept]
    squares, log_det = squared_distances(np.asarray(block, dtype=float)[:, kept], mean, root)
    every = np.arange(len(group))
    strength = np.broadcast_to(strength, count.shape)
    own, before = squares[every, group], strength[group]
    after = before - weight
    share = weight * before / after
    left = 1 - share * own
    here = np.arange(len(count)) == group[:, None]
    changed = True if tied else here
    if tied:
        half = (mean - mean[:1]) @ invert_lower(root[0]).T
        apart = ((half[:, None, :] - half[None, :, :]) ** 2).sum(axis=-1)
        product = (own[:, None] + squares - apart[group]) / 2
        squares = squares + (share / left)[:, None] * product**2
    moved = (before / after) ** 2 * own / left  # from the mean without the row
    squares = np.where(here, moved[:, None], squares)
    strength = np.where(here, after[:, None], strength)
    freedom = np.broadcast_to(freedom, count.shape) - np.where(changed, weight[:, None], 0.0)
    log_det = np.broadcast_to(log_det, count.shape) + np.where(changed, np.log(left)[:, None], 0.0)
    if estimate == "bayes":
        freedom = freedom - d + 1  # of the t, whatever columns are left out
        log_norm = log_rising(np.where(freedom > 0, freedom, np.nan) / 2, k / 2) - k / 2 * np.log(np.pi)
        widen = 1 + 1 / strength
        terms = log_norm - (log_det + k * np.log(widen)) / 2 - (freedom + k) / 2 * np.log1p(squares / widen)
    else:
        terms = -0.5 * (k * np.log(2 * np.pi / freedom) + log_det + freedom * squares)
    good = (after > 0) & (left > _LEFT)
    if tied:
        good &= (strength > 0).all(axis=1) & (freedom > 0).all(axis=1)
    return np.where(good[:, None], terms, np.nan)
