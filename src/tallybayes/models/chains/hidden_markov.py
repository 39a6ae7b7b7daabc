"""HiddenMarkovModel: sequences whose steps depend on a state that is seen, partly seen, or not seen at all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, EstimateError
from tallybayes.kernels import chain as kernels
from tallybayes.models.chains.chain import Chain
from tallybayes.models.chains.generate import fill_chain, sample_chain
from tallybayes.models.chains.learning import ChainLearner
from tallybayes.models.fitted.scoring import not_estimated
from tallybayes.models.inputs.sequences import Sequences, open_sequences


class HiddenMarkovModel(ChainLearner):
    """A hidden Markov model: p(start) Π p(next state | state) Π p(step | state).

    With labelled states it is counted in one pass; it adds, forgets and is re-estimated like every model here. Without
    labels it is learned by EM (Baum and Welch); with some, by EM that keeps to those. Missing steps and cells are
    marginalised everywhere.

    Parameters
    ----------
    n_states : int, optional
        How many states there are, where labels do not say.
    emission : "auto", a Family, or a mapping from columns to families, default "auto"
        What a step is in every state; columns are independent given the state. ``"auto"`` reads types, as `NaiveBayes`.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` plugs in the posterior means of all parameters: integrating them out over whole sequences has no
        closed form.
    prior : mapping from "start", "transition", "end" and "emission" to beliefs, a Dirichlet, "empirical" or None
        A Dirichlet alone is that of start and transition. None takes the families' defaults, add-one.
    unseen : {"missing", "smooth", "error"}, default "missing"
        What a label is that no step had at fitting: a missing step; as likely as labels seen only once were in each
        state; or an error.
    end_state : bool, default False
        Whether the end of a sequence is modelled too: p(end | state).
    n_iter, tol : int and float
        EM takes at most so many steps, and stops when one raises the objective by less than `tol` a step of the data.
    n_init : int, default 1
        From how many starts; the one that climbs highest counts.
    random_state : int, Generator or None

    Attributes
    ----------
    tally_ : Tally
        All that was learnt.
    states_ : ndarray
        The states, sorted.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]                     # ice creams eaten
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.transition_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    >>> model.predict([[3, 1, 1]])
    [array(['hot', 'cold', 'cold'], dtype='<U4')]
    """

    def __init__(
        self,
        n_states: int | None = None,
        emission: Any = "auto",
        *,
        estimate: str = "bayes",
        prior: Any = None,
        unseen: str = "missing",
        end_state: bool = False,
        n_iter: int = 100,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.estimate = estimate
        self.prior = prior
        self.unseen = unseen
        self.end_state = end_state
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _asked(self, X: Any, lengths: Any, sequence: Any, order: Any) -> Sequences:
        """The sequences that something is asked of."""
        check_is_fitted(self, "tally_")
        sequences = open_sequences(X, lengths, sequence, order)
        known = [name for factor, _ in self._emission_factors() for name in factor.columns]
        absent = [name for name in known if name not in sequences.table.columns]
        if absent and sequences.table.n_rows:
            raise DataError.unknown_column(absent, sequences.table.columns)
        return sequences

    def _answers(
        self, question: Callable[..., tuple[np.ndarray, np.ndarray]], sequences: Sequences
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """What a kernel says of the steps, one array a sequence, and of the sequences."""
        steps: list[np.ndarray] = []
        scores = []
        for asked in self._answering.questions(sequences):
            found, score = question(*asked)
            steps += [found[a:b] for a, b in pairwise(asked[-1].tolist())]
            scores.append(score)
        return steps, np.concatenate(scores)

    def log_likelihood(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> np.ndarray:
        """log p(sequence), states summed out: one number a sequence, −inf for an impossible one.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        sequences = self._asked(X, lengths, sequence, order)
        found = np.concatenate([kernels.log_likelihood(*asked) for asked in self._answering.questions(sequences)])
        self._warn_impossible(sequences, found)
        return found

    def score(self, X: Any, y: Any = None, lengths: Any = None, **where: Any) -> float:
        """Without states, the mean log p(sequence); with them, the share of steps whose state is decoded.

        Parameters
        ----------
        X, y, lengths, **where
            As for `fit`.
        """
        if y is None:
            return float(self.log_likelihood(X, lengths, **where).mean())
        sequences, y = self._open(X, y, lengths, where.get("sequence"), where.get("order"))
        codes, domain = self._labels(y)
        assert codes is not None
        path = np.concatenate([np.zeros(0, dtype=np.int64), *self._answers(kernels.viterbi, sequences)[0]])
        truth = np.append(self._state_domain.positions_of(domain.levels), -2)[codes]
        known = codes >= 0
        return float(np.mean(path[known] == truth[known]))

    def predict(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """The most probable path of states of every sequence (Viterbi).

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray
            The states of every sequence; None at every step of an impossible one.
        """
        sequences = self._asked(X, lengths, sequence, order)
        paths, score = self._answers(kernels.viterbi, sequences)
        self._warn_impossible(sequences, score)
        states = self.states_  # of their own type, so that what is predicted compares with what was given
        numbered = states.dtype == np.int64 and np.array_equal(states, np.arange(len(states)))
        if not numbered:
            paths = [states[path] for path in paths]
        for number in np.flatnonzero(np.isneginf(score)):
            paths[number] = np.full(len(paths[number]), None)
        return paths

    def predict_proba(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """p(state | whole sequence) at every step: smoothed; 0 in all states of an impossible sequence.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
        """
        sequences = self._asked(X, lengths, sequence, order)
        smoothed, score = self._answers(kernels.posterior, sequences)
        self._warn_impossible(sequences, score)
        return smoothed

    def filter_proba(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """p(state | the sequence so far) at every step; 0 in all states from an impossible step on.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
        """
        sequences = self._asked(X, lengths, sequence, order)
        filtered, score = self._answers(kernels.filter, sequences)
        self._warn_impossible(sequences, score)
        return filtered

    def predict_pairs(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """p(state, next state | whole sequence) of every two steps in a row.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps − 1, states, states)
        """
        sequences = self._asked(X, lengths, sequence, order)
        filtered, score = self._answers(kernels.filter, sequences)
        smoothed, _ = self._answers(kernels.posterior, sequences)
        self._warn_impossible(sequences, score)
        transition = np.exp(self._answering.arguments[1])
        out = []
        for before, after in zip(filtered, smoothed, strict=True):
            expected = before[:-1] @ transition  # p(next | so far), to which the whole sequence is compared
            ratio = np.divide(after[1:], expected, out=np.zeros_like(expected), where=expected > 0)
            out.append(before[:-1, :, None] * transition * ratio[:, None, :])
        return out

    def predict_next(
        self, X: Any, n: int = 1, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> np.ndarray:
        """p(state) of the `n` steps after each sequence, if it goes on.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        n : int, default 1

        Returns
        -------
        ndarray of shape (sequences, n, states)
        """
        if n < 1:
            raise DataError.wrong_type("n", repr(n), "a whole number of at least 1")
        filtered, _ = self._answers(kernels.filter, self._asked(X, lengths, sequence, order))
        start, transition = self._answering.start, np.exp(self._answering.transition)
        out = np.empty((len(filtered), n, len(start)))
        for number, steps in enumerate(filtered):
            now = steps[-1] @ transition if len(steps) else np.exp(start)
            for step in range(n):
                out[number, step] = now
                now = now @ transition
        return out

    def log_joint(
        self, X: Any, y: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> np.ndarray:
        """log p(sequence, states), one number a sequence.

        Parameters
        ----------
        X, y, lengths, sequence, order
            As for `fit`; every step has its state.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        sequences, y = self._open(X, y, lengths, sequence, order)
        labels, domain = self._labels(y)
        if labels is None or (labels < 0).any():
            raise DataError("every step needs its state here.\n    Use log_likelihood where some are not known.")
        path = self._state_domain.positions_of(domain.levels)[labels]
        start, transition, end = self._answering.arguments
        emission = _dense(self._answering.emission(sequences.table)) if len(path) else np.zeros((0, len(start)))
        known = path >= 0
        terms = np.where(known, emission[np.arange(len(path)), path], -np.inf)
        first, last = sequences.offsets[:-1], sequences.offsets[1:]
        follows = np.ones(len(path), dtype=bool)
        some = last > first
        follows[first[some]] = False
        after = np.flatnonzero(follows)
        terms[after] += transition[path[after - 1], path[after]]
        terms[first[some]] += start[path[first[some]]]
        if end is not None:
            terms[last[some] - 1] += end[path[last[some] - 1]]
        out = np.zeros(sequences.n_sequences)
        out[some] = np.add.reduceat(terms, first[some]) if some.any() else 0.0
        return out

    def sample(self, lengths: Any, random_state: Any = None) -> tuple[list[Any], list[np.ndarray]]:
        """Draw sequences.

        Parameters
        ----------
        lengths : int or list of int
            How long each shall be; with ``end_state``, the most steps it may have.
        random_state : int, Generator or None

        Returns
        -------
        X : list of ndarray, or of dictionaries of columns where there are several with names
        y : list of ndarray
            The states.
        """
        check_is_fitted(self, "tally_")
        return sample_chain(self, lengths, np.random.default_rng(random_state))

    def fill(self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None) -> list[Any]:
        """Fill in missing cells by what the whole sequence says about their state.

        Numbers by their expectation, labels by the most probable one.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray, or of dictionaries of columns where there are several with names
        """
        sequences = self._asked(X, lengths, sequence, order)
        shares, _ = self._answers(kernels.posterior, sequences)
        return fill_chain(self, sequences, np.concatenate([np.zeros((0, len(self._answering.start))), *shares]))

    def plot_states(self, steps: Any, ax: Any = None) -> Any:
        """A picture of one sequence with its states; needs matplotlib.

        Parameters
        ----------
        steps : one sequence
        ax : two matplotlib Axes, optional

        Returns
        -------
        array of two matplotlib Axes
        """
        from tallybayes.plots.hidden_markov import plot_states

        return plot_states(self, steps, ax)

    def plot_transitions(self, ax: Any = None, least: float = 0.01) -> Any:
        """A picture of the states and their transitions; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        least : float, default 0.01
            Transitions less probable than this are not drawn.

        Returns
        -------
        matplotlib Axes
        """
        from tallybayes.plots.hidden_markov import plot_transitions

        return plot_transitions(self, ax, least)

    def log_evidence(self) -> float:
        """log p(sequences, states) in nats, all parameters integrated out, for labelled sequences."""
        check_is_fitted(self, "tally_")
        if self.tally_.soft:
            raise EstimateError(
                "the states were expected by EM, so there is no evidence in closed form.\n    Fit labelled sequences."
            )
        return self._fitted.evidence().log_evidence

    @property
    def _answering(self) -> Chain:
        """The chain, where it can answer: a state was counted, and all that a state emits."""
        return self._derive("answering", self._check_chain)

    def _check_chain(self) -> Chain:
        check_is_fitted(self, "tally_")
        states = self._state_domain.levels
        if not states:
            raise DataError("no state is left: every sequence was forgotten.\n    Learn from at least one step.")
        for code, column in chain.from_iterable(map(not_estimated, self._chain.scored)):
            raise DataError.no_data(f"column {column!r} in state {states[code]!r}", self.estimate)
        return self._chain

    def _warn_impossible(self, sequences: Sequences, score: np.ndarray) -> None:
        """Name the first impossible sequence, and the step at which it becomes so."""
        lost = np.flatnonzero(np.isneginf(score))
        if not len(lost):
            return
        first = int(lost[0])
        part = slice(int(sequences.offsets[first]), int(sequences.offsets[first + 1]))
        emission = _dense(self._answering.emission(sequences.table.rows(part)))
        start, transition, _ = self._answering.arguments
        step, now = 0, start + emission[0]
        while step + 1 < len(emission) and np.isfinite(now).any():
            step += 1
            now = (now[:, None] + transition).max(axis=0) + emission[step]
        where = f" at step {step}" if not np.isfinite(now).any() else " at its end"
        more = f", and {len(lost) - 1} more," if len(lost) > 1 else ""
        warnings.warn(
            f"sequence {first}{more} is impossible{where}. With estimate='bayes' nothing is impossible only because it "
            "was not seen.",
            UserWarning,
            stacklevel=3,
        )


def _dense(emission: Any) -> np.ndarray:
    """log p(step | state) as an array."""
    if not isinstance(emission, tuple):
        return np.asarray(emission)
    codes, table = emission
    known = (codes >= 0) & (codes < len(table))
    out = np.zeros((len(codes), table.shape[1]))
    out[known] = table[codes[known].astype(np.intp)]
    return out
