"""The models of `hmmlearn.hmm`: initialization and M-step formulas of hmmlearn, E-step of this package."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from hmmlearn import hmm as theirs
from hmmlearn.base import BaseHMM
from scipy.special import gammaln

import tallybayes as tb
from tallybayes.hmmlearn.gaussian_densities import (
    FAMILIES,
    check_complete_steps,
    gaussian_parameters,
    log_densities,
    outer_products,
    over_states,
)
from tallybayes.hmmlearn.gmm_hmm import GMMHMM
from tallybayes.hmmlearn.hmm_drop_in import (
    HmmlearnDropIn,
    IntegerDropIn,
    check_width,
    divide_or_keep,
    normalize,
    to_tallybayes,
)
from tallybayes.kernels.hmm import ExpectedTransitions
from tallybayes.kernels.hmm_arguments import Emission

__all__ = ["GMMHMM", "CategoricalHMM", "GaussianHMM", "MultinomialHMM", "PoissonHMM"]

_UNDERFLOW = np.log(1e-300)  # the smallest scaled likelihood of a time step in hmmlearn


class CategoricalHMM(IntegerDropIn, theirs.CategoricalHMM):
    """Drop-in replacement for `hmmlearn.hmm.CategoricalHMM`: the same constructor, attributes and predictions.

    Parameters
    ----------
    n_components : int, default 1
        The number of states.
    startprob_prior, transmat_prior, emissionprob_prior : float or array, default 1.0
        Dirichlet concentrations of the initial state, transition and emission probabilities.
    n_features : int, optional
        The number of symbols; by default, one more than the largest symbol in the data.
    algorithm : {"viterbi", "map"}, default "viterbi"
        The decoder of `predict`: the most probable state sequence, or the most probable state of each time step.
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
        As in hmmlearn.
    implementation : {"log", "scaling"}
        Accepted for compatibility: the computation uses logarithms and does not underflow.

    Attributes
    ----------
    startprob_, transmat_, emissionprob_ : ndarray
    model_ : HiddenMarkovModel

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.hmmlearn import CategoricalHMM
    >>> diary = np.array([[2], [2], [1], [0], [0], [1], [0], [1], [2]])  # ice creams eaten, less one
    >>> weather = [1, 1, 0, 0, 0, 0, 0, 1, 1]
    >>> found = CategoricalHMM(2).fit(diary, [3, 3, 3], states=weather)
    >>> found.transmat_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    >>> found.predict([[2], [0], [0]])
    array([1, 0, 0])
    """

    emissionprob_prior: Any

    def _validate(self, X: npt.ArrayLike) -> np.ndarray:
        """Return the symbols as integers; −1 is missing."""
        symbols = self._validate_integers(X, "Symbols should be integers", "Symbols should be nonnegative")
        if symbols.shape[1] != 1:
            warnings.warn("Inputs of shape other than (n_samples, 1) are deprecated.", DeprecationWarning, stacklevel=4)
            symbols = symbols.reshape(-1, 1)
        return symbols

    def _family(self) -> tb.Family:
        """Return the equivalent family."""
        return tb.Categorical(tuple(range(self.n_features)))

    def _emission(self, X: np.ndarray) -> Emission:
        """Return the codes and log p(symbol | state)."""
        with np.errstate(divide="ignore"):
            return X.reshape(-1), np.log(np.ascontiguousarray(self.emissionprob_.T, dtype=float))

    def _compute_log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return log p(symbol | state), as the base class of hmmlearn calls it."""
        codes, table = self._emission(X)
        return np.asarray(np.asarray(table)[codes])

    def _kernel_statistics(self, X: np.ndarray, expected: ExpectedTransitions) -> list[Any]:
        """Return the statistics of the kernel, which has counted the symbols."""
        return [tb.Counts(expected.start), tb.Counts(expected.transition), tb.Counts(expected.emission.T)]

    def _emission_statistics(self, X: np.ndarray, responsibilities: np.ndarray) -> Any:
        """Return the sufficient statistics of the time steps."""
        codes = X.reshape(-1)
        sums = [
            np.bincount(codes[codes >= 0], state_responsibilities[codes >= 0], self.n_features)
            for state_responsibilities in responsibilities.T
        ]
        return tb.Counts(np.stack(sums))

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set the emission probabilities: the posterior mode under a Dirichlet prior."""
        self._set_probabilities(np.maximum(self.emissionprob_prior - 1 + statistics[0].table, 0))

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        return to_tallybayes(
            self, {(0,): list(normalize(self.emissionprob_))}, levels={(0,): list(range(self.n_features))}
        )


class GaussianHMM(HmmlearnDropIn, theirs.GaussianHMM):
    """Drop-in replacement for `hmmlearn.hmm.GaussianHMM`: the same constructor, attributes and predictions.

    Parameters
    ----------
    n_components : int, default 1
        The number of states.
    covariance_type : {"spherical", "diag", "full", "tied"}, default "diag"
        Under "tied", all states share one covariance matrix.
    min_covar : float, default 1e-3
        Added to the initial variances.
    startprob_prior, transmat_prior : float or array, default 1.0
        Dirichlet concentrations of the initial state and transition probabilities.
    means_prior, means_weight : float or array, default 0
        Mean and strength of the prior of the means.
    covars_prior, covars_weight : float or array, default 1e-2 and 1
        Parameters of the prior of the covariances.
    algorithm : {"viterbi", "map"}, default "viterbi"
        The decoder of `predict`: the most probable state sequence, or the most probable state of each time step.
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
        As in hmmlearn.
    implementation : {"log", "scaling"}
        The computation uses logarithms in both cases. As in hmmlearn, "scaling" raises an error on underflow.

    Attributes
    ----------
    startprob_, transmat_, means_ : ndarray
    covars_ : ndarray of shape (n_components, n_features, n_features)
    model_ : HiddenMarkovModel

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.hmmlearn import GaussianHMM
    >>> X = np.array([[1.0], [1.2], [0.8], [5.1], [np.nan], [4.9], [5.0], [1.1], [0.9]])
    >>> found = GaussianHMM(2, random_state=0, n_iter=20).fit(X)
    >>> (found.predict(X) == found.predict(X)[4]).tolist()  # the missing step, too
    [False, False, False, True, True, True, True, False, False]
    """

    covariance_type: str
    means_prior: Any
    means_weight: Any
    covars_prior: Any
    covars_weight: Any
    means_: Any
    _covars_: Any
    _letters = "stmc"
    _parameters = ("means_", "_covars_")

    @property
    def covars_(self) -> np.ndarray:
        """Return one covariance matrix for each state, as in hmmlearn."""
        n = self.n_components
        n_features = self.n_features
        covars = over_states(self._covars_, self.covariance_type, n, n_features)
        return covars if covars.ndim == 3 else covars[:, :, None] * np.eye(n_features)

    @covars_.setter
    def covars_(self, covars: npt.ArrayLike) -> None:
        super(GaussianHMM, GaussianHMM).covars_.fset(self, covars)

    def _variances(self) -> np.ndarray:
        """Return variances (states, columns), or covariance matrices."""
        return over_states(self._covars_, self.covariance_type, self.n_components, np.shape(self.means_)[1])

    def _check_cells(self, X: np.ndarray) -> None:
        """Raise DataError for partly missing time steps under a full covariance."""
        if self.covariance_type in ("full", "tied"):
            check_complete_steps(X, f"covariance_type={self.covariance_type!r}")

    def _family(self) -> tb.Family:
        """Return the equivalent family."""
        return FAMILIES[self.covariance_type]()

    def _emission(self, X: np.ndarray) -> np.ndarray:
        """Return log p(step | state)."""
        log_prob = self._compute_log_likelihood(X)
        if self.implementation == "scaling":  # raise the error that hmmlearn raises
            underflowed = np.flatnonzero(log_prob.max(axis=1, initial=-np.inf) < _UNDERFLOW)
            if len(underflowed):
                raise ValueError(
                    f"forward pass failed with underflow at step {underflowed[0]}; "
                    "consider using implementation='log' instead"
                )
        return log_prob

    def _compute_log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return log p(step | state), as the base class of hmmlearn calls it."""
        return log_densities(X, self.means_, self._variances())

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set means and covariances by hmmlearn's formulas."""
        (counts,) = statistics
        weight = counts.weight
        if "m" in self.params:
            total = self.means_weight * self.means_prior + weight * counts.mean
            self.means_ = divide_or_keep(total, self.means_weight + weight, getattr(self, "means_", None))
        if "c" in self.params:
            is_diagonal = self.covariance_type in ("spherical", "diag")
            square = np.square if is_diagonal else outer_products
            cell_weight = weight if is_diagonal else weight[:, :, None]
            scatter = self.means_weight * square(self.means_ - self.means_prior) + counts.scatter
            scatter = scatter + cell_weight * square(counts.mean - self.means_)
            prior_rows = np.maximum(self.covars_weight - (1 if is_diagonal else counts.n_columns), 0)
            if self.covariance_type == "tied":
                self._covars_ = (self.covars_prior + scatter.sum(axis=0)) / (prior_rows + weight.sum())
                return
            rows = prior_rows + cell_weight
            covars = (self.covars_prior + scatter) / (
                np.maximum(rows, 1e-5) if is_diagonal else np.where(rows == 0, 1, rows)
            )
            if self.covariance_type == "spherical":
                covars = np.tile(covars.mean(axis=1)[:, None], (1, covars.shape[1]))
            empty = (weight == 0).all(axis=1)
            if empty.any() and hasattr(self, "_covars_"):
                covars[empty] = self._variances()[empty]
            self._covars_ = covars

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        gaussians = gaussian_parameters(self.means_, self._variances())
        return to_tallybayes(self, {tuple(range(np.shape(self.means_)[1])): gaussians})


class MultinomialHMM(IntegerDropIn, theirs.MultinomialHMM):
    """Drop-in replacement for `hmmlearn.hmm.MultinomialHMM`: the same constructor, attributes and predictions.

    Parameters
    ----------
    n_components : int, default 1
        The number of states.
    n_trials : int or array of int, optional
        The total count of each time step; by default, the totals in the training data.
    startprob_prior, transmat_prior : float or array, default 1.0
        Dirichlet concentrations of the initial state and transition probabilities.
    algorithm : {"viterbi", "map"}, default "viterbi"
        The decoder of `predict`: the most probable state sequence, or the most probable state of each time step.
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
        As in hmmlearn.
    implementation : {"log", "scaling"}
        Accepted for compatibility: the computation uses logarithms and does not underflow.

    Attributes
    ----------
    startprob_, transmat_, emissionprob_ : ndarray
    model_ : HiddenMarkovModel

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.hmmlearn import MultinomialHMM
    >>> words = np.array([[4, 1], [5, 0], [4, 1], [0, 5], [1, 4], [0, 5], [5, 0], [4, 1]])
    >>> found = MultinomialHMM(2, random_state=0, n_iter=20).fit(words, states=[0, 0, 0, 1, 1, 1, 0, 0])
    >>> found.emissionprob_.round(3)
    array([[0.88 , 0.12 ],
           [0.067, 0.933]])
    >>> found.predict([[5, 0], [1, 4]])
    array([0, 1])
    """

    n_trials: Any

    def _validate(self, X: npt.ArrayLike) -> np.ndarray:
        """Return the counts as integers; −1 is missing."""
        invalid = "Symbol counts should be nonnegative integers"
        counts = self._validate_integers(X, invalid, invalid)
        check_complete_steps(np.where(counts < 0, np.nan, counts), "counts of one total")
        return counts

    def _check_and_set_n_features(self, X: np.ndarray) -> None:
        """Set the number of columns and of trials; raise ValueError for invalid counts."""
        BaseHMM._check_and_set_n_features(self, X)
        if not np.issubdtype(X.dtype, np.integer) or X.min(initial=0) < 0:
            raise ValueError("Symbol counts should be nonnegative integers")
        totals = X.sum(axis=1)
        if self.n_trials is None:
            self.n_trials = totals
        elif not np.isin(totals, self.n_trials).all():
            raise ValueError("Total count for each sample should add up to the number of trials")

    def _family(self) -> tb.Family:
        """Return the equivalent family."""
        return tb.Multinomial()

    def _emission(self, X: np.ndarray) -> np.ndarray:
        """Return log p(counts | state)."""
        known = np.where(X < 0, 0, X).astype(float)
        log_prob = _log_powers(known, np.asarray(self.emissionprob_, dtype=float))
        return log_prob + gammaln(known.sum(axis=1) + 1)[:, None]

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set the emission probabilities: the maximum likelihood estimate."""
        self._set_probabilities(statistics[0].total)

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        table = normalize(self.emissionprob_)
        columns = tuple(range(table.shape[1]))
        emission = {columns: [{"probability": row} for row in table]}
        return to_tallybayes(self, emission, columns={columns: tb.Multinomial()})


class PoissonHMM(HmmlearnDropIn, theirs.PoissonHMM):
    """Drop-in replacement for `hmmlearn.hmm.PoissonHMM`: the same constructor, attributes and predictions.

    Parameters
    ----------
    n_components : int, default 1
        The number of states.
    startprob_prior, transmat_prior : float or array, default 1.0
        Dirichlet concentrations of the initial state and transition probabilities.
    lambdas_prior, lambdas_weight : float or array, default 0.0
        Parameters of the gamma prior of the rates.
    algorithm : {"viterbi", "map"}, default "viterbi"
        The decoder of `predict`: the most probable state sequence, or the most probable state of each time step.
    random_state : int, RandomState or None
    n_iter, tol, verbose, params, init_params
        As in hmmlearn.
    implementation : {"log", "scaling"}
        Accepted for compatibility: the computation uses logarithms and does not underflow.

    Attributes
    ----------
    startprob_, transmat_, lambdas_ : ndarray
    model_ : HiddenMarkovModel

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.hmmlearn import PoissonHMM
    >>> calls = np.array([[1], [0], [2], [9], [11], [8], [1], [1], [10], [12]])
    >>> found = PoissonHMM(2, random_state=1, n_iter=50).fit(calls)
    >>> np.sort(found.lambdas_.ravel()).round(2)
    array([1.  , 9.97])
    """

    lambdas_prior: Any
    lambdas_weight: Any
    lambdas_: Any
    _letters = "stl"
    _parameters = ("lambdas_",)

    def _check_cells(self, X: np.ndarray) -> None:
        """Raise DataError for values that are not nonnegative integers."""
        invalid = np.argwhere((X < 0) | ((np.floor(X) != X) & ~np.isnan(X)))
        if len(invalid):
            step, column = invalid[0]
            raise tb.DataError(
                f"step {step} has {X[step, column]} in column {column}; expected whole numbers of at least 0, or NaN."
            )

    def _family(self) -> tb.Family:
        """Return the equivalent family."""
        return tb.Poisson()

    def _emission(self, X: np.ndarray) -> np.ndarray:
        """Return log p(counts | state)."""
        rates = np.asarray(self.lambdas_, dtype=float)
        missing = np.isnan(X)
        known = np.where(missing, 0.0, X)
        log_prob = _log_powers(known, rates) - (~missing).astype(float) @ rates.T
        invalid = (known < 0) | (known != np.floor(known))
        log_prob[invalid.any(axis=1)] = -np.inf
        return log_prob

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set the rates by hmmlearn's formula."""
        (counts,) = statistics
        if "l" in self.params:
            weight = np.broadcast_to(counts.weight, counts.total.shape)
            mean = counts.total / np.where(weight == 0, 1, weight)
            n = weight.sum(axis=0)  # over all states, as in hmmlearn
            rates = (self.lambdas_prior + n * mean) / (self.lambdas_weight + n)
            self.lambdas_ = np.where(weight == 0, getattr(self, "lambdas_", rates), rates)

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        rates = np.asarray(self.lambdas_, dtype=float)
        return to_tallybayes(self, {tuple(range(rates.shape[1])): [{"rate": rate} for rate in rates]})


def _log_powers(counts: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Return Σ x log b − log x! over the columns, (steps, states); −inf for a positive count of a base of 0."""
    check_width(counts, bases.shape[1])
    is_zero = bases == 0
    log_prob = counts @ np.log(np.where(is_zero, 1.0, bases)).T - gammaln(counts + 1).sum(axis=1)[:, None]
    if is_zero.any():
        log_prob[(counts > 0).astype(float) @ is_zero.T.astype(float) > 0] = -np.inf
    return np.asarray(log_prob)
