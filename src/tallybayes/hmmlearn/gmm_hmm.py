"""`GMMHMM` of `hmmlearn.hmm`: emissions are mixtures of Gaussians."""

from __future__ import annotations

from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from hmmlearn import hmm as theirs

import tallybayes as tb
from tallybayes.hmmlearn.gaussian_densities import (
    FAMILIES,
    check_complete_steps,
    gaussian_parameters,
    log_densities,
    outer_products,
    over_states,
)
from tallybayes.hmmlearn.hmm_drop_in import HmmlearnDropIn, divide_or_keep, normalize, to_tallybayes


class GMMHMM(HmmlearnDropIn, theirs.GMMHMM):
    """Drop-in replacement for `hmmlearn.hmm.GMMHMM`: the same constructor, attributes and predictions.

    Parameters
    ----------
    n_components : int, default 1
        The number of states.
    n_mix : int, default 1
        The number of Gaussians of each state.
    covariance_type : {"spherical", "diag", "full", "tied"}, default "diag"
        Under "tied", the Gaussians of one state share their covariance.
    min_covar : float, default 1e-3
        Added to the initial variances.
    startprob_prior, transmat_prior, weights_prior : float or array, default 1.0
        Dirichlet concentrations of the initial state, transition and component probabilities.
    means_prior, means_weight : float or array, default 0.0
        Mean and strength of the prior of the means.
    covars_prior, covars_weight : float or array, optional
        Parameters of the prior of the covariances.
    algorithm : {"viterbi", "map"}, default "viterbi"
        The decoder of `predict`: the most probable state sequence, or the most probable state of each time step.
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
        As in hmmlearn.
    implementation : {"log", "scaling"}
        Accepted for compatibility: the computation uses logarithms and does not underflow.

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
    _previous_means: np.ndarray  # the means used in the last E-step

    def _fit_counted(self, X: np.ndarray, offsets: np.ndarray, states: npt.ArrayLike) -> Self:
        """Raise DataError: known states do not determine the components."""
        raise tb.DataError(
            "states= is not supported: it does not determine the component of a time step within its state.\n"
            "    Use tb.HiddenMarkovModel(components=…), which fits components by EM, or GaussianHMM."
        )

    def _check_cells(self, X: np.ndarray) -> None:
        """Raise DataError for partly missing time steps."""
        check_complete_steps(X, "mixtures")

    def _family(self) -> tb.Family | None:
        """Return the equivalent family; None if the Gaussians of a state share their covariance."""
        # The tied family of this package shares the covariance between states, not within a state.
        return None if self.covariance_type == "tied" else FAMILIES[self.covariance_type]()

    def _gaussians(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means, and the variances or covariance matrices, of all Gaussians of all states."""
        n = self.weights_.size
        n_features = self.means_.shape[-1]
        covars = self.covars_
        if self.covariance_type == "tied":
            covars = np.repeat(covars, self.n_mix, axis=0)
        else:
            covars = covars.reshape(n, *covars.shape[2:])
        return self.means_.reshape(n, n_features), over_states(covars, self.covariance_type, n, n_features)

    def _log_prob_and_responsibilities(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(step | state) and p(component | step, state)."""
        log_prob = log_densities(X, *self._gaussians()).reshape(len(X), self.n_components, self.n_mix)
        # In place, one component at a time: NumPy is slow at reductions over an axis of length two or three.
        by_component = [log_prob[:, :, number] for number in range(self.n_mix)]
        with np.errstate(divide="ignore"):
            log_prob += np.log(self.weights_)
            maximum = reduce(np.maximum, by_component[1:], by_component[0].copy())
            maximum[np.isneginf(maximum)] = 0.0
            log_prob -= maximum[:, :, None]
            np.exp(log_prob, out=log_prob)
            total = reduce(np.add, by_component[1:], by_component[0].copy())
            maximum += np.log(total)
        total[total == 0] = 1.0
        log_prob /= total[:, :, None]
        return maximum, log_prob

    def _emission(self, X: np.ndarray) -> np.ndarray:
        """Return log p(step | state)."""
        return self._log_prob_and_responsibilities(X)[0]

    def _e_step(self, X: np.ndarray, offsets: np.ndarray) -> tuple[list[Any], float]:
        """Return the expected statistics, components included, and the log-likelihood."""
        self._previous_means = self.means_
        emission, responsibilities = self._log_prob_and_responsibilities(X)
        expected = self._expected_counts(emission, offsets)
        responsibilities *= expected.emission[:, :, None]
        seen = ~np.isnan(X).any(axis=1)
        groups = (self.n_components, self.n_mix) if self.n_mix > 1 else (self.n_components,)
        like = None if self._counts is None else self._counts[2]
        moments: Any = FAMILIES[self.covariance_type]().collect(
            X[seen], None, self.weights_.size, responsibilities.reshape(len(X), -1)[seen], like=like
        )
        counts = [tb.Counts(expected.start), tb.Counts(expected.transition), moments.reshape_groups(groups)]
        return [*counts, tb.Counts(responsibilities[seen].sum(axis=0))], float(expected.log_likelihood.sum())

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set weights, means and covariances by hmmlearn's formulas."""
        counts = statistics[0]
        component_counts = statistics[1].table
        mean = counts.mean.reshape(self.means_.shape)
        if "w" in self.params:
            weights = component_counts + self.weights_prior - 1
            self.weights_ = divide_or_keep(weights, weights.sum(axis=1, keepdims=True), self.weights_)
        if "m" in self.params:
            weighted_means = self.means_weight[:, :, None] * self.means_prior + component_counts[:, :, None] * mean
            self.means_ = divide_or_keep(
                weighted_means, (component_counts + self.means_weight)[:, :, None], self.means_
            )
        if "c" in self.params:
            scatter = counts.scatter.reshape(*component_counts.shape, *counts.scatter.shape[len(counts.given_shape) :])
            self.covars_ = divide_or_keep(
                *self._scatter_and_weight(component_counts, mean - self._previous_means, scatter), self.covars_
            )

    def _scatter_and_weight(
        self, component_counts: np.ndarray, shift: np.ndarray, scatter: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scatter about the previous means plus prior, as in hmmlearn, and the weight to divide by."""
        n_mix, n_features = shift.shape[1:]
        prior_shift = self.means_ - self.means_prior
        weight = self.means_weight
        prior = self.covars_prior
        is_diagonal = self.covariance_type in ("spherical", "diag")
        square = np.square if is_diagonal else outer_products
        cell = (..., None) if is_diagonal else (..., None, None)
        squares = scatter + component_counts[cell] * square(shift) + weight[cell] * square(prior_shift)
        if self.covariance_type == "diag":
            return squares + 2 * self.covars_weight, component_counts[cell] + 1 + 2 * (prior + 1)
        if self.covariance_type == "spherical":
            return squares.sum(axis=2) + 2 * self.covars_weight, n_features * (component_counts + 1) + 2 * (prior + 1)
        prior = np.swapaxes(prior, -1, -2)
        if self.covariance_type == "full":
            return prior + squares, (component_counts + 1 + self.covars_weight + n_features + 1)[cell]
        rows = component_counts.sum(axis=1) + n_mix + self.covars_weight + n_features + 1
        return prior + squares.sum(axis=1), rows[cell]

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        means, covars = self._gaussians()
        gaussians = gaussian_parameters(means, covars)
        by_state = [gaussians[k : k + self.n_mix] for k in range(0, len(gaussians), self.n_mix)]
        return to_tallybayes(self, {tuple(range(means.shape[1])): by_state}, component=normalize(self.weights_))
