"""Counting: what the drop-ins have in common. Steps are read as hmmlearn reads them, and counted by our kernels."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from hmmlearn.base import DECODER_ALGORITHMS, BaseHMM
from sklearn.utils.validation import check_array, check_is_fitted

import tallybayes as tb
from tallybayes.kernels import hmm

_IMPLEMENTATIONS = ("log", "scaling")


class HmmlearnDropIn:
    """Stands before a model of hmmlearn: constructor, start, monitor and samples stay, the steps of EM are ours.

    A subclass says what its steps emit (`_emission`), what is counted of them (`_emitted`), which parameters follow
    from that (`_emit`), and how they are stated to `tb.HiddenMarkovModel` (`_stated`).
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
    _letters: str  # of all that may be learned
    _parameters: tuple[str, ...]  # the attributes that are, besides start and transitions
    _counts: list[Any] | None = None  # starts, transitions and emissions of the last step, or of known states
    _labeled = False  # whether these are of known states
    _learned: dict[str, Any] = {}  # noqa: RUF012 the parameters that followed from them

    # ---- Learning -------------------------------------------------------------------------------------------------

    def fit(
        self, X: npt.ArrayLike, lengths: npt.ArrayLike | None = None, *, states: npt.ArrayLike | None = None
    ) -> Self:
        """Learn by EM, as hmmlearn does, or count where states are known, which it does not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is a missing cell.
        lengths : array-like of int of shape (n_sequences,), optional
            All steps are one sequence by default.
        states : array-like of int of shape (n_samples,), optional
            Known states: they are counted in one pass, and nothing is climbed. Not in hmmlearn.

        Returns
        -------
        self
        """
        X = self._read(X)
        offsets = offsets_of(lengths, X)
        if states is not None:
            return self._fit_counted(X, offsets, states)
        self._refuse(X)
        self._init(self._known(X), np.diff(offsets))
        self._check()
        self.monitor_.iter = 0
        self.monitor_.history.clear()
        self._counts = None
        for _ in range(self.n_iter):
            counts, log_prob = self._expected(X, offsets)
            self._maximize(counts)
            self.monitor_.report(log_prob)
            if self.monitor_.converged:
                break
        return self

    def _fit_counted(self, X: np.ndarray, offsets: np.ndarray, states: Any) -> Self:
        """Learn from known states alone."""
        n = self.n_components
        codes = self._states(states, len(X))
        absent = np.flatnonzero(np.bincount(codes, minlength=n) == 0)
        if len(absent):
            raise tb.DataError(
                f"no step is in state {absent[0]}; expected some in each of the {n}, by n_components.\n"
                "    Pass a smaller n_components, and states numbered from 0 on."
            )
        total = deepcopy(self)
        total._begin(X)
        total._maximize(total._counted(X, offsets, codes), labeled=True)
        total._check()
        return self._become(total)

    def _begin(self, X: np.ndarray) -> None:
        """What counting goes by: how many columns there are, and which starts and transitions cannot be."""
        n = self.n_components
        self._check_and_set_n_features(self._known(X))
        self._refuse(X)
        for letter, name, shape in (("s", "startprob_", (n,)), ("t", "transmat_", (n, n))):
            if self._needs_init(letter, name):
                setattr(self, name, np.full(shape, 1 / n))

    def forget(self, X: npt.ArrayLike, states: npt.ArrayLike, lengths: npt.ArrayLike | None = None) -> Self:
        """Take sequences of known states out again, exactly: as if they had never been counted. Not in hmmlearn.

        Parameters
        ----------
        X, states, lengths
            As they were learned.

        Returns
        -------
        self
        """
        if self._counts is None or not self._labeled:
            raise tb.NotForgettableError(
                "this model was not counted from known states, so nothing can be taken out of it.\n"
                "    Fit it with states=, or fit again without these sequences."
            )
        X = self._read(X)
        self._check_and_set_n_features(self._known(X))
        gone, total = self._counted(X, offsets_of(lengths, X), self._states(states, len(X))), deepcopy(self)
        total._maximize([held - part for held, part in zip(self._counts, gone, strict=True)], labeled=True)
        return self._become(total)

    def __add__(self, other: Any) -> Self:
        """What both have counted, as if one had: of known states, or of one step of EM. Not in hmmlearn."""
        if type(other) is not type(self):
            return NotImplemented
        if self.n_components != other.n_components:
            raise tb.StatisticsError(
                f"one model has {self.n_components} states and the other {other.n_components}; expected as many."
            )
        (mine, known), (its, known_too), total = self._held(), other._held(), deepcopy(self)
        total._maximize([one + more for one, more in zip(mine, its, strict=True)], labeled=known and known_too)
        return total

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _held(self) -> tuple[list[Any], bool]:
        """What was counted, and whether of known states."""
        if self._counts is None:
            raise tb.NoCountsError("parameters that were given have no counts to add.\n    Fit both models first.")
        return self._counts, self._labeled

    def _become(self, other: Self) -> Self:
        """Take over what another has learned."""
        vars(self).update(vars(other))
        return self

    # ---- The steps of EM ------------------------------------------------------------------------------------------

    def _expected(self, X: np.ndarray, offsets: np.ndarray) -> tuple[list[Any], float]:
        """The E-step: what the parameters expect of the sequences, and the log likelihood of these."""
        done = self._done(self._emission(X), offsets)
        return self._summed(X, done), float(done.log_likelihood.sum())

    def _done(self, emission: Any, offsets: np.ndarray) -> Any:
        """What the kernel expects; a sequence that cannot be is refused."""
        done = hmm.expected(*self._logs(), None, emission, offsets)
        lost = np.flatnonzero(np.isneginf(done.log_likelihood))
        if len(lost):
            raise tb.DataError(
                f"sequence {lost[0]} is impossible under the parameters that EM has come to; expected a likelihood "
                "above 0.\n    Give no step the probability 0: look at startprob_, transmat_ and the emissions."
            )
        return done

    def _summed(self, X: np.ndarray, done: Any) -> list[Any]:
        """The statistics of starts, transitions and emissions."""
        return [tb.Counts(done.start), tb.Counts(done.transition), self._emitted(X, done.emission)]

    def _counted(self, X: np.ndarray, offsets: np.ndarray, states: np.ndarray) -> list[Any]:
        """The same statistics, of known states."""
        n, n_steps = self.n_components, len(states)
        begins = offsets[:-1][offsets[:-1] < offsets[1:]]
        follows = np.ones(n_steps, dtype=bool)
        follows[begins] = False
        pairs = (states[:-1] * n + states[1:])[follows[1:]]
        shares = np.zeros((n_steps, n))
        shares[np.arange(n_steps), states] = 1.0
        starts, moves = np.bincount(states[begins], minlength=n), np.bincount(pairs, minlength=n * n)
        return [tb.Counts(starts), tb.Counts(moves.reshape(n, n)), self._emitted(X, shares)]

    def _maximize(self, counts: list[Any], *, labeled: bool = False) -> None:
        """The M-step: hmmlearn's formulas; a state that no step was in, or left, keeps what it had."""
        self._do_mstep({"start": counts[0].table, "trans": counts[1].table})
        self._emit(*counts[2:])
        self._counts, self._labeled, self._learned = counts, labeled, self._current()

    def _do_mstep(self, stats: dict[str, Any]) -> None:
        before = self.transmat_
        BaseHMM._do_mstep(self, stats)
        self.transmat_ = np.where(self.transmat_.sum(axis=1, keepdims=True) == 0, before, self.transmat_)

    def _current(self) -> dict[str, Any]:
        """The parameters as they are."""
        return {name: np.array(getattr(self, name)) for name in ("startprob_", "transmat_", *self._parameters)}

    # ---- Answers --------------------------------------------------------------------------------------------------

    def decode(
        self, X: npt.ArrayLike, lengths: npt.ArrayLike | None = None, algorithm: str | None = None
    ) -> tuple[float, np.ndarray]:
        """The most probable states of every sequence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is a missing cell.
        lengths : array-like of int of shape (n_sequences,), optional
        algorithm : {"viterbi", "map"}, optional
            The most probable path, or the most probable state of every step; ``self.algorithm`` by default.

        Returns
        -------
        log_prob : float
            log p(path, sequence), summed; under "map", as in hmmlearn, the sum of the largest probabilities.
        state_sequence : ndarray of int of shape (n_samples,)
            −1 at every step of an impossible sequence.
        """
        algorithm = algorithm or self.algorithm
        if algorithm not in DECODER_ALGORITHMS:
            raise ValueError(f"Unknown decoder {algorithm!r}")
        asked = self._asked(X, lengths)
        if algorithm == "viterbi":
            path, score = hmm.viterbi(*asked)
            return float(score.sum()), path
        proba, score = hmm.posterior(*asked)
        path = np.where(np.repeat(np.isneginf(score), np.diff(asked[-1])), -1, proba.argmax(axis=1))
        return float(proba.max(axis=1).sum()), path

    def _score(self, X: Any, lengths: Any = None, *, compute_posteriors: bool) -> tuple[float, np.ndarray]:
        asked = self._asked(X, lengths)
        if not compute_posteriors:
            return float(hmm.log_likelihood(*asked).sum()), np.empty((0, self.n_components))
        proba, score = hmm.posterior(*asked)
        return float(score.sum()), proba

    def _asked(self, X: Any, lengths: Any) -> tuple[Any, ...]:
        """What the kernels take."""
        check_is_fitted(self, "startprob_")
        self._check()
        X = self._read(X)
        offsets = offsets_of(lengths, X)
        return *self._logs(), None, self._emission(X), offsets

    def _logs(self) -> tuple[np.ndarray, np.ndarray]:
        """log p(first state) and log p(next state | state)."""
        with np.errstate(divide="ignore"):
            return np.log(self.startprob_), np.log(self.transmat_)

    @property
    def model_(self) -> tb.HiddenMarkovModel:
        """The model inside: of what the last step of EM expected or known states showed, under maximum likelihood.

        Where parameters were set by hand, or some are not learned (``params``), it has these, and no counts.
        """
        check_is_fitted(self, "startprob_")
        self._check()
        stated = self._stated()
        now, learned, family = self._current(), self._learned, self._family()
        if (
            self._counts is None
            or family is None
            or not set(self._letters) <= set(self.params)
            or not all(np.array_equal(value, learned[name]) for name, value in now.items())
        ):
            return stated
        like, factors = stated.tally_, list(stated.tally_.factors)
        columns = factors[2].columns
        factors[2] = tb.Factor(columns, factors[2].given, family)
        tally = tb.Tally(factors, self._counts[: len(factors)], like.domains, like.schema, soft=not self._labeled)
        settings: Any = {"estimate": "mle", "components": stated.components}
        return tb.HiddenMarkovModel(self.n_components, {columns: family}, **settings).fit_tally(tally)

    # ---- What a subclass says -------------------------------------------------------------------------------------

    def _family(self) -> tb.Family | None:
        """What a step is in every state; None where no family says it."""
        raise NotImplementedError

    def _emission(self, X: np.ndarray) -> Any:
        """log p(step | state) as the kernels take it."""
        raise NotImplementedError

    def _emitted(self, X: np.ndarray, shares: np.ndarray) -> Any:
        """The statistics of steps that are in every state in part."""
        raise NotImplementedError

    def _emit(self, counts: Any, *more: Any) -> None:
        """The parameters of the emissions, from these statistics."""
        raise NotImplementedError

    def _stated(self) -> tb.HiddenMarkovModel:
        """The parameters as a model of this package."""
        raise NotImplementedError

    def _read(self, X: Any) -> np.ndarray:
        """Steps as they are counted."""
        return np.asarray(check_array(X, dtype=np.float64, ensure_all_finite="allow-nan"))

    def _known(self, X: np.ndarray) -> np.ndarray:
        """The steps of which nothing is missing: those by which hmmlearn finds where to start."""
        holed = np.isnan(X).any(axis=1)
        return X[~holed] if holed.any() else X

    def _refuse(self, X: np.ndarray) -> None:
        """Refuse cells that cannot be learned from."""

    def _states(self, states: Any, n_steps: int) -> np.ndarray:
        """Known states, checked."""
        codes = np.asarray(states)
        if codes.shape != (n_steps,) or codes.dtype.kind not in "iu":
            raise tb.DataError(
                f"states has shape {codes.shape} and type {codes.dtype}; expected ({n_steps},) whole numbers."
            )
        if n_steps and not (codes.min() >= 0 and codes.max() < self.n_components):
            raise tb.LabelError(
                f"states run from {codes.min()} to {codes.max()}; expected 0 to {self.n_components - 1}.\n"
                "    Where some are not known, use tb.HiddenMarkovModel, which learns from the others."
            )
        return codes.astype(np.int64)

    def _check(self) -> None:
        super()._check()  # type: ignore[misc]
        if self.implementation not in _IMPLEMENTATIONS:
            raise ValueError(f"implementation is {self.implementation!r}, expected 'log' or 'scaling'")


def offsets_of(lengths: Any, X: np.ndarray) -> np.ndarray:
    """Where sequences begin, and where the last one ends."""
    if lengths is None:
        return np.array([0, len(X)], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if offsets[-1] != len(X) or (np.diff(offsets) < 0).any():
        raise ValueError(f"lengths array {lengths} doesn't sum to {len(X)} samples")
    return offsets


def to_tallybayes(model: Any, emission: dict[Any, Any], **options: Any) -> tb.HiddenMarkovModel:
    """A model of this package with the parameters of a drop-in."""
    start, moves, states = normalize(model.startprob_), normalize(model.transmat_), range(model.n_components)
    return tb.HiddenMarkovModel.from_tables(start, moves, emission, states=states, **options)


def normalize(table: Any) -> np.ndarray:
    """Probabilities that sum to 1 to the last digit; hmmlearn is content with eight."""
    table = np.asarray(table, dtype=float)
    return np.asarray(table / table.sum(axis=-1, keepdims=True))
