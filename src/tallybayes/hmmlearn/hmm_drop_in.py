"""Base class of the drop-in replacements for hmmlearn: input validation as in hmmlearn, kernels of this package."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from hmmlearn.base import DECODER_ALGORITHMS, BaseHMM
from sklearn.utils.validation import check_array, check_is_fitted

import tallybayes as tb
from tallybayes.kernels import hmm
from tallybayes.kernels.hmm_arguments import Emission

_IMPLEMENTATIONS = ("log", "scaling")


class HmmlearnDropIn:
    """Base class: constructor, initialization, monitor and samples of an hmmlearn model, EM steps of this package.

    A subclass defines `_emission` (the emission log probabilities), `_emission_statistics` (the sufficient statistics
    of time steps), `_set_emission` (the M-step for emission parameters) and `_to_model` (the `tb.HiddenMarkovModel`).
    """

    n_components: int
    n_features: Any
    params: str
    algorithm: str
    implementation: str
    n_iter: int
    monitor_: Any
    startprob_: Any
    transmat_: Any
    _init: Any
    _needs_init: Any
    _check_and_set_n_features: Any
    _letters: str  # the letters of `params` for all parameters that may be fitted
    _parameters: tuple[str, ...]  # the attributes of emission parameters
    _counts: list[Any] | None = None  # initial states, transitions, emissions: of the last E-step or of known states
    _labeled = False  # whether the counts are of known states
    _fitted: dict[str, Any] = {}  # noqa: RUF012 the parameters estimated from the counts

    # ---- Fitting --------------------------------------------------------------------------------------------------

    def fit(
        self, X: npt.ArrayLike, lengths: npt.ArrayLike | None = None, *, states: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the model by EM as hmmlearn does or, where all states are known, by counting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is a missing cell.
        lengths : array-like of int of shape (n_sequences,), optional
            The lengths of the sequences. By default, all time steps are one sequence.
        states : array-like of int of shape (n_samples,), optional
            Known states: they are counted in one pass, without EM. Not in hmmlearn.

        Returns
        -------
        self
        """
        steps = self._validate(X)
        offsets = offsets_of(lengths, steps)
        if states is not None:
            return self._fit_counted(steps, offsets, states)
        self._check_cells(steps)
        self._init(self._complete_steps(steps), np.diff(offsets))
        self._check()
        self.monitor_.iter = 0
        self.monitor_.history.clear()
        self._counts = None
        for _ in range(self.n_iter):
            counts, log_prob = self._e_step(steps, offsets)
            self._m_step(counts)
            self.monitor_.report(log_prob)
            if self.monitor_.converged:
                break
        return self

    def _fit_counted(self, X: np.ndarray, offsets: np.ndarray, states: npt.ArrayLike) -> Self:
        """Fit the model by counting known states."""
        n = self.n_components
        codes = self._validate_states(states, len(X))
        absent = np.flatnonzero(np.bincount(codes, minlength=n) == 0)
        if len(absent):
            raise tb.DataError(
                f"states= has no step in state {absent[0]}; expected steps in all {n} states (n_components).\n"
                "    Pass a smaller n_components, and states numbered from 0."
            )
        return self._replace_by(deepcopy(self)._count_labeled(X, offsets, codes))

    def _count_labeled(self, X: np.ndarray, offsets: np.ndarray, codes: np.ndarray) -> Self:
        """Set the parameters estimated from known states, and return the model."""
        n = self.n_components
        self._check_and_set_n_features(self._complete_steps(X))
        self._check_cells(X)
        for letter, name, shape in (("s", "startprob_", (n,)), ("t", "transmat_", (n, n))):
            if self._needs_init(letter, name):
                setattr(self, name, np.full(shape, 1 / n))
        self._m_step(self._count_states(X, offsets, codes), labeled=True)
        self._check()
        return self

    def forget(self, X: npt.ArrayLike, states: npt.ArrayLike, lengths: npt.ArrayLike | None = None) -> Self:
        """Remove sequences with known states exactly, as if they had never been counted. Not in hmmlearn.

        Parameters
        ----------
        X, states, lengths
            Sequences that were counted by `fit`, with their states.

        Returns
        -------
        self
        """
        if self._counts is None or not self._labeled:
            raise tb.NotForgettableError(
                "this model was not counted from known states, so no sequences can be removed from it.\n"
                "    Fit it with states=, or refit it without these sequences."
            )
        steps = self._validate(X)
        self._check_and_set_n_features(self._complete_steps(steps))
        removed = self._count_states(steps, offsets_of(lengths, steps), self._validate_states(states, len(steps)))
        remaining = [all_ - part for all_, part in zip(self._counts, removed, strict=True)]
        return self._replace_by(self._with_counts(remaining, labeled=True))

    def __add__(self, other: object) -> Self:
        """Return the model of the merged counts: of known states, or of one E-step. Not in hmmlearn."""
        if not isinstance(other, type(self)) or type(other) is not type(self):
            return NotImplemented
        if self.n_components != other.n_components:
            raise tb.StatisticsError(
                f"one model has {self.n_components} states and the other {other.n_components}; expected as many."
            )
        left, left_labeled = self._require_counts()
        right, right_labeled = other._require_counts()
        total = [a + b for a, b in zip(left, right, strict=True)]
        return self._with_counts(total, labeled=left_labeled and right_labeled)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _require_counts(self) -> tuple[list[Any], bool]:
        """Return the counts, and whether they are of known states."""
        if self._counts is None:
            raise tb.NoCountsError("the model has fixed parameters and no counts to add.\n    Fit both models first.")
        return self._counts, self._labeled

    def _with_counts(self, counts: list[Any], *, labeled: bool) -> Self:
        """Return a copy of the model with the parameters estimated from other counts."""
        other = deepcopy(self)
        other._m_step(counts, labeled=labeled)
        return other

    def _replace_by(self, other: Self) -> Self:
        """Copy all attributes of another model, so that an exception before this leaves the model unchanged."""
        vars(self).update(vars(other))
        return self

    # ---- E-step and M-step ---------------------------------------------------------------------------------------

    def _e_step(self, X: np.ndarray, offsets: np.ndarray) -> tuple[list[Any], float]:
        """Return the expected sufficient statistics of the sequences and their log-likelihood (E-step)."""
        expected = self._expected_counts(self._emission(X), offsets)
        return self._kernel_statistics(X, expected), float(expected.log_likelihood.sum())

    def _expected_counts(self, emission: Emission, offsets: np.ndarray) -> hmm.ExpectedTransitions:
        """Return the expected counts of the kernel. Raise DataError if a sequence has probability 0."""
        expected = hmm.expected(hmm.HMMInput(*self._log_chain(), None, emission, offsets))
        impossible = np.flatnonzero(np.isneginf(expected.log_likelihood))
        if len(impossible):
            raise tb.DataError(
                f"sequence {impossible[0]} is impossible under the current parameters; expected a likelihood "
                "above 0.\n    Check startprob_, transmat_ and the emission parameters for zeros."
            )
        return expected

    def _kernel_statistics(self, X: np.ndarray, expected: hmm.ExpectedTransitions) -> list[Any]:
        """Return the statistics of initial states, transitions and emissions."""
        return [
            tb.Counts(expected.start),
            tb.Counts(expected.transition),
            self._emission_statistics(X, expected.emission),
        ]

    def _count_states(self, X: np.ndarray, offsets: np.ndarray, states: np.ndarray) -> list[Any]:
        """Return the same statistics for known states: all others get emission probability 0."""
        n = self.n_components
        emission = np.full((len(states), n), -np.inf)
        emission[np.arange(len(states)), states] = 0.0
        expected = hmm.expected(hmm.HMMInput(np.zeros(n), np.zeros((n, n)), None, emission, offsets))
        return HmmlearnDropIn._kernel_statistics(self, X, expected)

    def _m_step(self, counts: list[Any], *, labeled: bool = False) -> None:
        """Set the parameters by hmmlearn's formulas (M-step); a state without data keeps its parameters."""
        self._do_mstep({"start": counts[0].table, "trans": counts[1].table})
        self._set_emission(counts[2:])
        self._counts = counts
        self._labeled = labeled
        self._fitted = self._current_parameters()

    def _do_mstep(self, stats: dict[str, Any]) -> None:
        """Set initial state and transition probabilities; a state that is never left keeps its row."""
        before = self.transmat_
        BaseHMM._do_mstep(self, stats)
        self.transmat_ = np.where(self.transmat_.sum(axis=1, keepdims=True) == 0, before, self.transmat_)

    def _current_parameters(self) -> dict[str, Any]:
        """Return copies of the current parameters."""
        return {name: np.array(getattr(self, name)) for name in ("startprob_", "transmat_", *self._parameters)}

    # ---- Prediction -----------------------------------------------------------------------------------------------

    def decode(
        self, X: npt.ArrayLike, lengths: npt.ArrayLike | None = None, algorithm: str | None = None
    ) -> tuple[float, np.ndarray]:
        """Return the most probable states of the sequences.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is a missing cell.
        lengths : array-like of int of shape (n_sequences,), optional
        algorithm : {"viterbi", "map"}, optional
            The most probable state sequence, or the most probable state of each time step. By default,
            ``self.algorithm``.

        Returns
        -------
        log_prob : float
            The sum of log p(state sequence, observations). Under "map", the sum of the largest posterior probabilities,
            as in hmmlearn.
        state_sequence : ndarray of int of shape (n_samples,)
            −1 at every time step of an impossible sequence.
        """
        algorithm = algorithm or self.algorithm
        if algorithm not in DECODER_ALGORITHMS:
            raise ValueError(f"Unknown decoder {algorithm!r}")
        model = self._kernel_input(X, lengths)
        if algorithm == "viterbi":
            path, score = hmm.viterbi(model)
            return float(score.sum()), path
        proba, score = hmm.posterior(model)
        path = np.where(np.repeat(np.isneginf(score), np.diff(np.asarray(model.offsets))), -1, proba.argmax(axis=1))
        return float(proba.max(axis=1).sum()), path

    def _score(
        self, X: npt.ArrayLike, lengths: npt.ArrayLike | None = None, *, compute_posteriors: bool
    ) -> tuple[float, np.ndarray]:
        """Return the log-likelihood and, if requested, the posterior state probabilities."""
        model = self._kernel_input(X, lengths)
        if not compute_posteriors:
            return float(hmm.log_likelihood(model).sum()), np.empty((0, self.n_components))
        proba, score = hmm.posterior(model)
        return float(score.sum()), proba

    def _kernel_input(self, X: npt.ArrayLike, lengths: npt.ArrayLike | None) -> hmm.HMMInput:
        """Return the input of the kernels."""
        check_is_fitted(self, "startprob_")
        self._check()
        steps = self._validate(X)
        offsets = offsets_of(lengths, steps)
        return hmm.HMMInput(*self._log_chain(), None, self._emission(steps), offsets)

    def _log_chain(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the log initial state probabilities and the log transition matrix."""
        with np.errstate(divide="ignore"):
            return np.log(self.startprob_), np.log(self.transmat_)

    @property
    def model_(self) -> tb.HiddenMarkovModel:
        """Return the equivalent `tb.HiddenMarkovModel`, with the counts of the last E-step or of the known states.

        If parameters were set by the user, or some are not fitted (``params``), the model has fixed parameters and no
        counts.
        """
        check_is_fitted(self, "startprob_")
        self._check()
        fixed = self._to_model()
        current = self._current_parameters()
        fitted = self._fitted
        family = self._family()
        if (
            self._counts is None
            or family is None
            or not set(self._letters) <= set(self.params)
            or not all(np.array_equal(value, fitted[name]) for name, value in current.items())
        ):
            return fixed
        like = fixed.tally_
        factors = list(fixed.tally_.factors)
        columns = factors[2].columns
        factors[2] = tb.Factor(columns, factors[2].given, family)
        tally = tb.Tally(factors, self._counts[: len(factors)], like.domains, like.schema, soft=not self._labeled)
        options: Any = {"estimate": "mle", "components": fixed.components}
        return tb.HiddenMarkovModel(self.n_components, {columns: family}, **options).fit_tally(tally)

    # ---- Defined by subclasses ----------------------------------------------------------------------------------

    def _family(self) -> tb.Family | None:
        """Return the family of the emissions; None if no family of this package is equivalent."""
        raise NotImplementedError

    def _emission(self, X: np.ndarray) -> Emission:
        """Return log p(step | state) as the kernels take it."""
        raise NotImplementedError

    def _compute_log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return log p(step | state), as the base class of hmmlearn calls it."""
        return np.asarray(self._emission(X))

    def _emission_statistics(self, X: np.ndarray, responsibilities: np.ndarray) -> Any:
        """Return the sufficient statistics of the time steps, weighted by responsibilities (steps, states)."""
        family = self._family()
        assert family is not None
        if family.requires_complete_rows or family.is_bag_of_words:
            complete = self._is_complete(X)
            X = X[complete]
            responsibilities = responsibilities[complete]
        like = None if self._counts is None else self._counts[2]  # keep the anchors of the moments
        return family.collect(X.astype(float, copy=False), None, self.n_components, responsibilities, like=like)

    def _set_emission(self, statistics: list[Any]) -> None:
        """Set the emission parameters from the statistics of the emissions (M-step)."""
        raise NotImplementedError

    def _to_model(self) -> tb.HiddenMarkovModel:
        """Return a `tb.HiddenMarkovModel` with the same parameters."""
        raise NotImplementedError

    def _validate(self, X: npt.ArrayLike) -> np.ndarray:
        """Return the validated time steps."""
        return np.asarray(check_array(X, dtype=np.float64, ensure_all_finite="allow-nan"))

    def _is_complete(self, X: np.ndarray) -> np.ndarray:
        """Return whether each time step has no missing cells."""
        return np.asarray(~np.isnan(X).any(axis=1))

    def _complete_steps(self, X: np.ndarray) -> np.ndarray:
        """Return the time steps without missing cells, used by the initialization of hmmlearn."""
        complete = self._is_complete(X)
        return X if complete.all() else X[complete]

    def _check_cells(self, X: np.ndarray) -> None:
        """Raise DataError for cells from which the model cannot be fitted."""

    def _validate_states(self, states: npt.ArrayLike, n_steps: int) -> np.ndarray:
        """Return the validated known states."""
        codes = np.asarray(states)
        if codes.shape != (n_steps,) or codes.dtype.kind not in "iu":
            raise tb.DataError(
                f"states has shape {codes.shape} and type {codes.dtype}; expected ({n_steps},) whole numbers."
            )
        if n_steps and not (codes.min() >= 0 and codes.max() < self.n_components):
            raise tb.LabelError(
                f"states run from {codes.min()} to {codes.max()}; expected 0 to {self.n_components - 1}.\n"
                "    If some are unknown, use tb.HiddenMarkovModel, which accepts missing states."
            )
        return codes.astype(np.int64)

    def _check(self) -> None:
        """Validate the parameters as hmmlearn does."""
        super()._check()  # type: ignore[misc]
        if self.implementation not in _IMPLEMENTATIONS:
            raise ValueError(f"implementation is {self.implementation!r}, expected 'log' or 'scaling'")


class IntegerDropIn(HmmlearnDropIn):
    """A drop-in whose time steps are nonnegative integers, −1 if missing, with emission probabilities."""

    emissionprob_: Any
    _letters = "ste"
    _parameters = ("emissionprob_",)

    def _validate_integers(self, X: npt.ArrayLike, fraction: str, negative: str) -> np.ndarray:
        """Return integers, NaN as −1; raise ValueError with these messages for fractions and negative numbers."""
        numbers: np.ndarray = check_array(X, ensure_all_finite="allow-nan")
        missing = np.isnan(numbers)
        known = numbers[~missing]
        if (known != np.floor(known)).any():
            raise ValueError(fraction)
        if (known < 0).any():
            raise ValueError(negative)
        return numbers if numbers.dtype.kind in "iu" else np.where(missing, -1, numbers).astype(np.int64)

    def _is_complete(self, X: np.ndarray) -> np.ndarray:
        """Return whether each time step has no missing cells."""
        return np.asarray((X >= 0).all(axis=1))

    def _set_probabilities(self, table: np.ndarray) -> None:
        """Set the emission probabilities in proportion to a table; a state without data keeps its own."""
        if "e" in self.params:
            before = getattr(self, "emissionprob_", None)
            self.emissionprob_ = divide_or_keep(table, table.sum(axis=1, keepdims=True), before)


def offsets_of(lengths: npt.ArrayLike | None, X: np.ndarray) -> np.ndarray:
    """Return the positions at which sequences begin, and the end of the last one."""
    if lengths is None:
        return np.array([0, len(X)], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if offsets[-1] != len(X) or (np.diff(offsets) < 0).any():
        raise ValueError(f"lengths array {lengths} doesn't sum to {len(X)} samples")
    return offsets


def to_tallybayes(
    model: HmmlearnDropIn,
    emission: dict[Any, Any],
    *,
    component: np.ndarray | None = None,
    columns: dict[Any, tb.Family] | None = None,
    levels: dict[Any, list[int]] | None = None,
) -> tb.HiddenMarkovModel:
    """Return a `tb.HiddenMarkovModel` with the initial state and transition probabilities of a drop-in."""
    start, transition = normalize(model.startprob_), normalize(model.transmat_)
    options: Any = {"component": component, "columns": columns, "levels": levels}
    return tb.HiddenMarkovModel.from_tables(start, transition, emission, states=range(model.n_components), **options)


def normalize(table: npt.ArrayLike) -> np.ndarray:
    """Return probabilities that sum to 1 to machine precision; hmmlearn tolerates deviations of 1e-8."""
    table = np.asarray(table, dtype=float)
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def divide_or_keep(total: np.ndarray, weight: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    """Return total / weight; the previous values, if any, where the weight is 0."""
    ratio = total / np.where(weight == 0, 1, weight)
    return ratio if before is None else np.where(np.broadcast_to(weight == 0, total.shape), before, ratio)


def check_width(X: np.ndarray, n_features: int) -> None:
    """Raise hmmlearn's ValueError if X has another number of columns."""
    if X.shape[1] != n_features:
        raise ValueError(f"Unexpected number of dimensions, got {X.shape[1]} but expected {n_features}")
