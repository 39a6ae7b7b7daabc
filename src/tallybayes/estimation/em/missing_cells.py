"""Missing cells under a full covariance: what the rest of their row expects of them.

A missing cell of one column is informed by the others, so its row cannot simply be skipped there. It is filled in by
its conditional mean, and its conditional covariance is added to the scatter. Such moments depend on the parameters, so
they add but cannot be taken apart again.
"""

from __future__ import annotations

import numpy as np

from tallybayes.families._shared.mahalanobis import missing_patterns
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.statistics.moments import Moments


def expected_moments(
    rows: np.ndarray, shares: np.ndarray, mean: np.ndarray, covariance: np.ndarray, flat: np.ndarray, like: Moments
) -> tuple[Moments, float]:
    """The expected moments of rows with missing cells, in every group.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        NaN where a cell is missing.
    shares : ndarray of shape (n, groups)
        How much of every row counts in each group.
    mean, covariance : ndarrays of shape (groups, columns) and (groups, columns, columns)
        What the rows follow in every group.
    flat : ndarray of bool of shape (columns,)
        Columns without any spread: what is missing there is the mean, beyond doubt.
    like : Moments
        Whose anchors to use.

    Returns
    -------
    moments : Moments of shape (groups, columns, columns)
    entropy : float
        Of what was filled in, in nats: how uncertain it is.
    """
    family, (n_groups, d) = MultivariateGaussian(), mean.shape
    whole = ~np.isnan(rows).any(axis=1)
    moments = family.collect(rows[whole], None, n_groups, shares[whole], like=like)
    holed, its_shares = rows[~whole], shares[~whole]
    if not len(holed):
        return moments, 0.0
    pieces, groups, weights, entropy = [], [], [], 0.0
    extra = np.zeros((n_groups, d, d))
    for known, index in missing_patterns(holed, empty=True):
        absent = np.setdiff1d(np.arange(d), known)
        doubtful = absent[~flat[absent]]
        for k in range(n_groups):
            mine = index[its_shares[index, k] > 0]
            if not len(mine):
                continue
            spread = covariance[k]
            slope = np.linalg.solve(spread[np.ix_(known, known)], spread[np.ix_(known, doubtful)])
            filled = np.where(np.isnan(holed[mine]), mean[k], holed[mine])
            filled[:, doubtful] += (holed[np.ix_(mine, known)] - mean[k, known]) @ slope
            rest = spread[np.ix_(doubtful, doubtful)] - spread[np.ix_(doubtful, known)] @ slope
            total = float(its_shares[mine, k].sum())
            extra[k][np.ix_(doubtful, doubtful)] += total * (rest + rest.T) / 2
            if len(doubtful):
                entropy += total / 2 * (len(doubtful) * np.log(2 * np.pi * np.e) + np.linalg.slogdet(rest)[1])
            pieces.append(filled)
            groups.append(np.full(len(mine), k))
            weights.append(its_shares[mine, k])
    if pieces:
        group, weight = np.concatenate(groups), np.concatenate(weights)
        moments = moments + family.collect(np.concatenate(pieces), group, n_groups, weight, like=like)
    return moments.with_scatter(extra), entropy
