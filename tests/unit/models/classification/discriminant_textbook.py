"""Gaussian discriminants as a textbook writes them, class by class, with SciPy's distributions: plain, independent."""

from typing import NamedTuple

import numpy as np
from scipy import stats

COVARIANCES = ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"]
ESTIMATES = ["mle", "unbiased", "map", "bayes"]
STRENGTH = 0.01  # κ₀ of the default prior: a hundredth of a row


class Density(NamedTuple):
    """One class: a normal, or a multivariate t with `freedom`, or a product of t's where `freedom` is per column."""

    mean: np.ndarray
    scale: np.ndarray
    freedom: object = None

    def log_density(self, row):
        """log p of the cells that are known; the marginal keeps location, scale and freedom of those columns."""
        known = ~np.isnan(row)
        if not known.any():
            return 0.0
        x, mean, scale = row[known], self.mean[known], self.scale[np.ix_(known, known)]
        if self.freedom is None:
            return stats.multivariate_normal.logpdf(x, mean, scale)
        if np.ndim(self.freedom):
            deviation = np.sqrt(np.diag(scale))
            return stats.t.logpdf(x, np.asarray(self.freedom)[known], mean, deviation).sum()
        return stats.multivariate_t.logpdf(x, mean, scale, self.freedom)

    def covariance(self):
        if self.freedom is None:
            return self.scale
        widen = np.asarray(self.freedom) / (np.asarray(self.freedom) - 2)
        return self.scale * (np.sqrt(np.outer(widen, widen)) if widen.ndim else widen)

    def conditional_mean(self, row):
        """The expectation of every cell given those that are known; columns of a product of t's know nothing."""
        known = ~np.isnan(row)
        out = np.where(known, row, self.mean)
        if known.any() and not known.all():
            slope = np.linalg.solve(self.scale[np.ix_(known, known)], self.scale[np.ix_(known, ~known)])
            out[~known] += (row[known] - self.mean[known]) @ slope
        return out


def moments(X, y, weight=None):
    """Weight, mean and scatter of every class, by the definitions."""
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    out = []
    for label in sorted(set(np.asarray(y)[weight > 0].tolist())):
        mine, w = X[np.asarray(y) == label], weight[np.asarray(y) == label]
        mean = np.average(mine, axis=0, weights=w)
        out.append((w.sum(), mean, (mine - mean).T @ (w[:, None] * (mine - mean))))
    return out


def default_prior(classes, spherical):
    """m₀ and s² of the default prior: pooled mean, and v · min(T/v, 1000)^(8/(f + 8)) per column."""
    total = sum(n for n, _, _ in classes)
    center = sum(n * mean for n, mean, _ in classes) / total
    within = sum(np.diag(scatter) for _, _, scatter in classes)
    between = sum(n * (mean - center) ** 2 for n, mean, _ in classes)
    variance, freedom = (within + between) / total, total - len(classes)
    if spherical:
        within, variance = np.full_like(within, within.mean()), np.full_like(within, variance.mean())
    if freedom <= 0:
        return center, variance
    inner = within / freedom
    return center, inner * np.minimum(variance / inner, 1000) ** (8 / (freedom + 8))


def shrink(scatter, amount):
    return amount * np.diag(np.diag(scatter)) + (1 - amount) * scatter


def structured(scatter, covariance):
    """A scatter matrix as a model of that covariance sees it, before it is divided."""
    if covariance.endswith("diagonal"):
        return np.diag(np.diag(scatter))
    if covariance.endswith("spherical"):
        return np.eye(len(scatter)) * np.trace(scatter) / len(scatter)
    return scatter


def plug_in(classes, covariance, estimate):
    spent = 1 if estimate == "unbiased" else 0
    d = len(classes[0][1])
    if covariance.startswith("tied"):
        pooled = sum(scatter for _, _, scatter in classes) / sum(n - spent for n, _, _ in classes)
        return [Density(mean, structured(pooled, covariance)) for _, mean, _ in classes]
    assert d > 0
    return [Density(mean, structured(scatter / (n - spent), covariance)) for n, mean, scatter in classes]


def posterior(classes, covariance, estimate, prior=None):
    """Densities under the conjugate prior; `prior` is (location, strength, freedom, scale matrix) or None."""
    d, n_classes = len(classes[0][1]), len(classes)
    tied, spherical = covariance.startswith("tied"), covariance.endswith("spherical")
    diagonal = covariance.endswith("diagonal")
    size = 1 if diagonal or spherical else d  # of the matrix that one inverse-Wishart is about
    means = (d if spherical else 1) * (n_classes if tied else 1)  # how many means share one covariance
    if prior is None:
        location, typical = default_prior(classes, spherical)
        strength, freedom = STRENGTH, size + 2.0
        scale = np.diag(typical) * (3.0 if estimate == "bayes" else 2 * size + 3 + means)
    else:
        location, strength, freedom, scale = prior
    grown = [strength + n for n, _, _ in classes]
    moved = [(strength * location + n * mean) / k for (n, mean, _), k in zip(classes, grown, strict=True)]
    extra = [
        scatter + strength * n / k * np.outer(mean - location, mean - location)
        for (n, mean, scatter), k in zip(classes, grown, strict=True)
    ]
    out = []
    for c in range(n_classes):
        rows = sum(n for n, _, _ in classes) if tied else classes[c][0]
        more = sum(extra) if tied else extra[c]
        if spherical:
            freedom_c, scale_c = freedom + rows * d, (scale[0, 0] + np.trace(more)) * np.eye(d)
        else:
            freedom_c, scale_c = freedom + rows, scale + structured(more, covariance)
        if estimate == "map":  # the joint mode of the means and the covariance
            out.append(Density(moved[c], scale_c / (freedom_c + size + 1 + means)))
            continue
        left = freedom_c - size + 1
        widened = scale_c * (1 + 1 / grown[c]) / left
        out.append(Density(moved[c], widened, np.full(d, left) if diagonal else left))
    return out


def densities(X, y, covariance, estimate, weight=None, amount=None, prior=None):
    """The density of every class, classes sorted; `amount` is a shrinkage for all, or one for every class."""
    classes = moments(np.asarray(X, dtype=float), y, weight)
    if amount is not None:
        amounts = np.broadcast_to(amount, len(classes))
        classes = [(n, mean, shrink(scatter, a)) for (n, mean, scatter), a in zip(classes, amounts, strict=True)]
    if estimate in ("mle", "unbiased"):
        return plug_in(classes, covariance, estimate)
    return posterior(classes, covariance, estimate, prior)


def joint_log_prob(X, y, rows, covariance, estimate, weight=None, amount=None, prior=None, shares=None):
    """log p(class, row): an array (rows, classes)."""
    found = densities(X, y, covariance, estimate, weight, amount, prior)
    if shares is None:
        counts = np.array([n for n, _, _ in moments(np.asarray(X, dtype=float), y, weight)])
        counts += estimate in ("map", "bayes")
        shares = counts / counts.sum()
    return np.array([[np.log(p) + f.log_density(row) for p, f in zip(shares, found, strict=True)] for row in rows])


def made(seed=0, sizes=(9, 12, 14), d=3, offset=0.0, apart=1.5):
    """Rows of correlated classes, shuffled, and new rows."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + apart * rng.normal(size=d) for n in sizes])
    y = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(X))
    return X[order] + offset, y[order], offset + apart * rng.normal(size=(11, d))


def with_holes(rows, seed=0, share=0.4):
    """Rows with missing cells in many patterns; the first row is whole, the last has nothing."""
    rng = np.random.default_rng(seed)
    out = np.where(rng.random(rows.shape) < share, np.nan, rows)
    out[0], out[-1] = rows[0], np.nan
    return out
