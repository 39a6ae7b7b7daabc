"""`GMMHMM` of `hmmlearn.hmm`: states that are mixtures of Gaussians; its starts and formulas, our kernels."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from hmmlearn import hmm as theirs

import tallybayes as tb
from tallybayes.hmmlearn.gaussian_densities import FAMILIES, log_densities, mended, outer, over_states, refuse_parts
from tallybayes.hmmlearn.hmm_drop_in import HmmlearnDropIn, normalize, to_tallybayes


class GMMHMM(HmmlearnDropIn, theirs.GMMHMM):
    """`hmmlearn.hmm.GMMHMM`: the same constructor, attributes and answers.

    Parameters
    ----------
    n_components : int, default 1
    n_mix : int, default 1
        How many Gaussians a state has.
    covariance_type : {"spherical", "diag", "full", "tied"}, default "diag"
        Tied are the Gaussians of a state, not the states.
    min_covar : float, default 1e-3
        Added to the variances that EM starts from.
    startprob_prior, transmat_prior, weights_prior : float or array, default 1.0
    means_prior, means_weight : float or array, default 0.0
    covars_prior, covars_weight : float or array, optional
    algorithm : {"viterbi", "map"}, default "viterbi"
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
    implementation : {"log", "scaling"}
        Both are the same here: nothing underflows.

    Attributes
    ----------
    startprob_, transmat_, weights_, means_, covars_ : ndarray
    model_ : HiddenMarkovModel

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.hmmlearn import GMMHMM
    >>> X = np.array([0.0, 9.2, 0.3, 8.7, 0.1, 4.1, 4.2, 3.9, 9.1, 0.2, 8.9, 4.0, 3.8, 4.4])[:, None]
    >>> found = GMMHMM(2, n_mix=2, init_params="", n_iter=20)
    >>> found.startprob_, found.transmat_ = [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]]
    >>> found.means_, found.covars_ = [[[0.0], [9.0]], [[3.0], [5.0]]], np.ones((2, 2, 1))
    >>> found.weights_ = np.full((2, 2), 0.5)
    >>> found.fit(X).predict(X)
    array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    """

    n_mix: int
    covariance_type: str
    weights_prior: Any
    means_prior: Any
    means_weight: Any
    covars_prior: Any
    covars_weight: Any
    weights_: Any
    means_: Any
    covars_: Any
    _letters = "stmcw"
    _parameters = ("weights_", "means_", "covars_")
    _about: np.ndarray  # the means that the last step was expected under

    def _fit_counted(self, X: np.ndarray, offsets: np.ndarray, states: Any) -> Any:
        raise tb.DataError(
            "states= tells the state of a step and not which of its Gaussians it is from; expected no states here.\n"
            "    Use tb.HiddenMarkovModel(components=…), which expects the latter, or GaussianHMM."
        )

    def _refuse(self, X: np.ndarray) -> None:
        refuse_parts(X, "mixtures")

    def _family(self) -> tb.Family | None:
        return None if self.covariance_type == "tied" else FAMILIES[self.covariance_type]()  # tied families tie states

    def _gaussians(self) -> tuple[np.ndarray, np.ndarray]:
        """Means, and variances or matrices, of all Gaussians of all states."""
        n, n_features = self.weights_.size, self.means_.shape[-1]
        covars = self.covars_
        if self.covariance_type == "tied":
            covars = np.repeat(covars, self.n_mix, axis=0)
        else:
            covars = covars.reshape(n, *covars.shape[2:])
        return self.means_.reshape(n, n_features), over_states(covars, self.covariance_type, n, n_features)

    def _parts(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p(step | state), and p(Gaussian | step, state)."""
        found = log_densities(X, *self._gaussians()).reshape(len(X), self.n_components, self.n_mix)
        # Gaussian by Gaussian and in place: sums over an axis of two or three take NumPy longer than all else.
        each = [found[:, :, number] for number in range(self.n_mix)]
        with np.errstate(divide="ignore"):
            found += np.log(self.weights_)
            top = reduce(np.maximum, each[1:], each[0].copy())
            top[np.isneginf(top)] = 0.0
            found -= top[:, :, None]
            np.exp(found, out=found)
            total = reduce(np.add, each[1:], each[0].copy())
            top += np.log(total)
        total[total == 0] = 1.0
        found /= total[:, :, None]
        return top, found

    def _emission(self, X: np.ndarray) -> Any:
        return self._parts(X)[0]

    _compute_log_likelihood = _emission

    def _expected(self, X: np.ndarray, offsets: np.ndarray) -> tuple[list[Any], float]:
        self._about = self.means_
        emission, shares = self._parts(X)
        done = self._done(emission, offsets)
        shares *= done.emission[:, :, None]
        seen = ~np.isnan(X).any(axis=1)
        groups = (self.n_components, self.n_mix) if self.n_mix > 1 else (self.n_components,)
        like = None if self._counts is None else self._counts[2]
        moments: Any = FAMILIES[self.covariance_type]().collect(
            X[seen], None, self.weights_.size, shares.reshape(len(X), -1)[seen], like=like
        )
        counts = [tb.Counts(done.start), tb.Counts(done.transition), moments.reshape_groups(groups)]
        return [*counts, tb.Counts(shares[seen].sum(axis=0))], float(done.log_likelihood.sum())

    def _emit(self, counts: Any, *more: Any) -> None:
        drawn, mean = more[0].table, counts.mean.reshape(self.means_.shape)
        if "w" in self.params:
            found = drawn + self.weights_prior - 1
            self.weights_ = kept(found, found.sum(axis=1, keepdims=True), self.weights_)
        if "m" in self.params:
            total = self.means_weight[:, :, None] * self.means_prior + drawn[:, :, None] * mean
            self.means_ = kept(total, (drawn + self.means_weight)[:, :, None], self.means_)
        if "c" in self.params:
            scatter = counts.scatter.reshape(*drawn.shape, *counts.scatter.shape[len(counts.given_shape) :])
            self.covars_ = kept(*self._spread(drawn, mean - self._about, scatter), self.covars_)

    def _spread(self, drawn: np.ndarray, missed: np.ndarray, scatter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squares about the means before this step, as hmmlearn takes them, with their prior; and their weight."""
        n_mix, n_features = missed.shape[1:]
        aside, weight, prior = self.means_ - self.means_prior, self.means_weight, self.covars_prior
        if self.covariance_type in ("full", "tied"):
            prior = np.swapaxes(prior, -1, -2)
            squares = scatter + drawn[:, :, None, None] * outer(missed) + weight[:, :, None, None] * outer(aside)
            if self.covariance_type == "full":
                return prior + squares, (drawn + 1 + self.covars_weight + n_features + 1)[:, :, None, None]
            rows = drawn.sum(axis=1) + n_mix + self.covars_weight + n_features + 1
            return prior + squares.sum(axis=1), rows[:, None, None]
        squares = scatter + drawn[:, :, None] * missed**2 + weight[:, :, None] * aside**2
        if self.covariance_type == "diag":
            return squares + 2 * self.covars_weight, drawn[:, :, None] + 1 + 2 * (prior + 1)
        return squares.sum(axis=2) + 2 * self.covars_weight, n_features * (drawn + 1) + 2 * (prior + 1)

    def _stated(self) -> tb.HiddenMarkovModel:
        means, covars = self._gaussians()
        word = "covariance" if covars.ndim == 3 else "variance"
        covars = mended(covars) if covars.ndim == 3 else covars
        each = [{"mean": mean, word: part} for mean, part in zip(means, covars, strict=True)]
        by_state = [each[k * self.n_mix : (k + 1) * self.n_mix] for k in range(self.n_components)]
        return to_tallybayes(self, {tuple(range(means.shape[1])): by_state}, component=normalize(self.weights_))


def kept(total: np.ndarray, weight: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Shares of a total, or what there was before where there is no weight."""
    none = np.broadcast_to(weight == 0, total.shape)
    return np.where(none, before, total / np.where(weight == 0, 1, weight))
