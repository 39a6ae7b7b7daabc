"""E-step of a multivariate Gaussian with missing cells: expected moments of incomplete rows.

A missing cell is imputed with its conditional mean given the observed cells of its row. Its conditional covariance is
added to the scatter (Little and Rubin, Statistical Analysis with Missing Data, section 11.2). These moments depend on
the parameters, so rows cannot be subtracted from them.
"""

from __future__ import annotations

import numpy as np

from tallybayes.families._shared.mahalanobis import missing_patterns
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.statistics.moments import Moments


def expected_moments(
    rows: np.ndarray,
    responsibilities: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    constant: np.ndarray,
    like: Moments,
) -> tuple[Moments, float]:
    """Return the expected moments of rows with missing cells, in every group.

    Parameters
    ----------
    rows : ndarray of shape (n, columns)
        NaN where a cell is missing.
    responsibilities : ndarray of shape (n, groups)
        The weight of every row in each group.
    mean, covariance : ndarrays of shape (groups, columns) and (groups, columns, columns)
        The parameters of every group.
    constant : ndarray of bool of shape (columns,)
        Columns of zero variance: missing cells are imputed with the mean, without uncertainty.
    like : Moments
        The moments whose anchors are used.

    Returns
    -------
    moments : Moments of shape (groups, columns, columns)
    entropy : float
        The entropy of the imputed cells, in nats.
    """
    family, (n_groups, d) = MultivariateGaussian(), mean.shape
    is_complete = ~np.isnan(rows).any(axis=1)
    moments = family.collect(rows[is_complete], None, n_groups, responsibilities[is_complete], like=like)
    incomplete = rows[~is_complete]
    incomplete_responsibilities = responsibilities[~is_complete]
    if not len(incomplete):
        return moments, 0.0
    imputed_chunks = []
    groups = []
    weights = []
    entropy = 0.0
    extra_scatter = np.zeros((n_groups, d, d))
    for known, index in missing_patterns(incomplete, empty=True):
        missing = np.setdiff1d(np.arange(d), known)
        varying = missing[~constant[missing]]
        for k in range(n_groups):
            rows_of_group = index[incomplete_responsibilities[index, k] > 0]
            if not len(rows_of_group):
                continue
            sigma = covariance[k]
            slope = np.linalg.solve(sigma[np.ix_(known, known)], sigma[np.ix_(known, varying)])
            imputed = np.where(np.isnan(incomplete[rows_of_group]), mean[k], incomplete[rows_of_group])
            imputed[:, varying] += (incomplete[np.ix_(rows_of_group, known)] - mean[k, known]) @ slope
            conditional = sigma[np.ix_(varying, varying)] - sigma[np.ix_(varying, known)] @ slope
            total = float(incomplete_responsibilities[rows_of_group, k].sum())
            extra_scatter[k][np.ix_(varying, varying)] += total * (conditional + conditional.T) / 2
            if len(varying):
                entropy += total / 2 * (len(varying) * np.log(2 * np.pi * np.e) + np.linalg.slogdet(conditional)[1])
            imputed_chunks.append(imputed)
            groups.append(np.full(len(rows_of_group), k))
            weights.append(incomplete_responsibilities[rows_of_group, k])
    if imputed_chunks:
        group = np.concatenate(groups)
        weight = np.concatenate(weights)
        moments = moments + family.collect(np.concatenate(imputed_chunks), group, n_groups, weight, like=like)
    return moments.with_scatter(extra_scatter), entropy
