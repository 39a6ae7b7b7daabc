"""HiddenMarkovModel: sequences of observations with known, partly known or unknown states."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.data.data_frames import frame_kind
from tallybayes.errors import DataError, EstimateError, FileError, printable
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.em_objective import initial_model, plot_convergence
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.families.family import Family
from tallybayes.models.base import Model
from tallybayes.models.hmm import hmm_from_tables, hmm_sampling
from tallybayes.models.hmm.chain_names import ChainNames, names_in
from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
from tallybayes.models.hmm.fitting import hmm_fit
from tallybayes.models.hmm.fitting.training_sequences import SequenceInput
from tallybayes.models.hmm.hmm_from_tables import StatedTables
from tallybayes.models.hmm.hmm_options import TopologyOptions, check_prior
from tallybayes.models.hmm.hmm_parameters import UNSEEN
from tallybayes.models.hmm.inference import (
    decoding,
    forecast,
    forward_backward,
    state_occupancy,
    state_paths,
    surprisal,
)
from tallybayes.models.hmm.inference.online_filter import OnlineFilter
from tallybayes.models.hmm.mixture_emissions import check_other_components, most_components
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.columns import check_same_families, columns_of, dropped_columns_of, repr_lines
from tallybayes.models.inputs.parameter_input import check_strength
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.models.inspection.gaussian_parameters import covariances, means
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.inspection.labeled_parameters import LabeledFactor, looked_up, posteriors_by_column
from tallybayes.models.receipt import with_receipt
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns, Labels, Name, Priors, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.estimation.distribution_fit import DescriptionLength
    from tallybayes.models.hmm.inference.forecast import Forecast
    from tallybayes.models.hmm.inference.forward_backward import ForwardBackwardTable, Trellis
    from tallybayes.models.hmm.inference.state_occupancy import ExpectedOccupancy
    from tallybayes.models.hmm.inference.state_paths import BestPaths
    from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
    from tallybayes.plotting.plot import Plot


class HiddenMarkovModel(Model):
    """Hidden Markov model: p(first state) Π p(next state | state) Π p(observation | state).

    Sequences with known states are counted in one pass. Such a model can be merged, forget sequences, and be
    re-estimated. Sequences with unknown states are fitted by EM (Baum and Welch); if some states are known, EM keeps
    them fixed. Missing time steps and cells are marginalized.

    Parameters
    ----------
    n_states : int, optional
        The number of states. Required if states are unknown.
    columns : "auto", a Family, or a mapping from columns to families, default "auto"
        The emission distributions. Columns are independent given the state. ``"auto"`` chooses families by the data
        types, and ``"ignore"`` in a mapping drops a column, as for `NaiveBayes`.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` uses the posterior means of all parameters: integrating over parameters of whole sequences has no
        closed form.
    prior : mapping from "start", "transition", "end" and columns to priors, a Dirichlet, number, "empirical" or None
        A single Dirichlet is the prior of the initial state and transition probabilities. A number is a pseudo-count
        for every level (an error under ``"map"``). None is a pseudo-count of 1 for initial state, transition and end
        probabilities, and for columns the default prior, as for `NaiveBayes`.
    unseen : {"new", "missing", "smooth", "error"}, default "new"
        The treatment of unseen levels in queries. ``"new"``: the probability, in each state, of levels seen only once
        (Good and Turing); seen levels keep theirs. Under estimates without a prior (``"mle"``, ``"unbiased"``) this is
        ``"missing"``. ``"smooth"``: as ``"new"`` under every estimate, normalized so that all probabilities sum to 1.
        ``"missing"``: a missing cell. ``"error"``: raise an error.
    end_state : bool, default False
        Whether p(end | state) is modeled.
    allowed_transitions : "left-to-right", "banded", matrix of booleans, list of pairs, mapping, or None
        The allowed transitions. All others have probability 0, whatever the prior. Left-to-right: from a state to
        itself or a later one. Banded: from a state to itself or its neighbors. The order, also that of a matrix, is
        the order of ``states_``. Pairs are (state, next state). A mapping has the next states of each state. The
        first state is restricted by `start` alone.
    start : "stationary", list of states, or None
        ``"stationary"``: the initial state distribution is the stationary distribution of the transition matrix, which
        is estimated by maximum likelihood under this constraint. A list: the possible first states.
    tied : mapping from states to hashable values, optional
        States with equal values share their emission distribution, estimated from the data of all of them.
    components : int, or mapping from states to int, optional
        The number of mixture components of every state: p(observation | state) = Σ p(component | state) p(observation |
        component). A state without an entry in the mapping has 1. Components are fitted by EM, also if all states are
        known.
    gaps : name, optional
        The column with the number of unobserved time steps before each time step. A gap costs about the logarithm of
        its length; the states of unobserved steps are estimated by EM.
    max_iter : int, default 100
        The maximum number of EM iterations.
    tol : float, default 1e-6
        EM stops when an iteration increases the objective by less than `tol` per time step.
    n_init : int, default 1
        The number of EM initializations. The best result is kept; ``objectives_`` has the objectives of all.
    warm_start : bool, default False
        Whether `fit` starts EM from the previous parameters, if any.
    random_state : int, Generator or None

    Attributes
    ----------
    tally_ : Tally
        The sufficient statistics.
    states_ : ndarray
        The states, sorted.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]                     # ice creams eaten
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.transition_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    >>> model.predict([[3, 1, 1]])
    [array(['hot', 'cold', 'cold'], dtype='<U4')]
    """

    _factor_names: ChainNames
    _soft_counts_hint = "Use evidence_lower_bound_, or fit sequences with known states."
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(UNSEEN),
    }

    def __init__(
        self,
        n_states: int | None = None,
        columns: Columns = "auto",
        *,
        estimate: str = "bayes",
        prior: Priors = None,
        unseen: str = "new",
        end_state: bool = False,
        allowed_transitions: str | npt.ArrayLike | Iterable[tuple[Any, Any]] | Mapping[Any, Any] | None = None,
        start: str | Iterable[Hashable] | None = None,
        tied: Mapping[Any, Hashable] | None = None,
        components: int | Mapping[Any, int] | None = None,
        gaps: Name | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_states = n_states
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.unseen = unseen
        self.end_state = end_state
        self.allowed_transitions = allowed_transitions
        self.start = start
        self.tied = tied
        self.components = components
        self.gaps = gaps
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state

    # ---- Fitting ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Rows,
        y: Labels | None = None,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: SampleWeights = None,
        initial: HiddenMarkovModel | None = None,
    ) -> Self:
        """Fit the model: by counting if all states are known, otherwise by EM. Previous counts are discarded.

        Parameters
        ----------
        X : list of sequences, or one array with `lengths`, or a data frame or file with `sequence`
            A sequence is an array of values or rows, a list, a data frame or a dictionary of columns. It may be empty.
            Unlabeled sequences in a large file are read again in every iteration of EM, in blocks, if the rows of each
            are consecutive.
        y : the states of all time steps in the format of X, or the name of a column, optional
            None or NaN is an unknown state.
        lengths : array-like of int, optional
            The lengths of the sequences in one array.
        sequence, order : str, optional
            The columns of a data frame with the sequence identifier, and with the position in the sequence.
        sample_weight : array-like of shape (sequences,), optional
        initial : HiddenMarkovModel, optional
            The parameters from which EM starts, instead of `n_init` initializations. The model is fitted or has fixed
            parameters; its states are kept. Ignored if all states are known.

        Returns
        -------
        self
        """
        self._check_settings()
        if initial is not None or self.warm_start:
            initial = initial_model(self, initial)
        result = hmm_fit.fit(self, SequenceInput(X, y, lengths, sequence, order, sample_weight), initial)
        self._factor_names = result.names
        self._dropped_columns = result.dropped_columns
        self._frame_library = _frame_of(X)
        return self._set_tally(result.tally, result.em_result)

    def partial_fit(
        self,
        X: Rows,
        y: Labels,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: SampleWeights = None,
    ) -> Self:
        """Count more sequences with known states. They may have new states and levels.

        Parameters
        ----------
        X, y, lengths, sequence, order, sample_weight
            As for `fit`. No state may be missing.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self.fit(X, y, lengths, sequence=sequence, order=order, sample_weight=sample_weight)
        self._require_counts("adding sequences")
        return self._set_tally(
            self.tally_ + self._count_labeled(SequenceInput(X, y, lengths, sequence, order, sample_weight))
        )

    @with_receipt
    def forget(
        self,
        X: Rows,
        y: Labels,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: SampleWeights = None,
    ) -> Self:
        """Remove sequences with known states exactly, as if they had never been counted.

        Parameters
        ----------
        X, y, lengths, sequence, order, sample_weight
            Sequences that were counted, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        self._require_counts("removing sequences")
        return self._set_tally(
            self.tally_ - self._count_labeled(SequenceInput(X, y, lengths, sequence, order, sample_weight))
        )

    def _count_labeled(self, given: SequenceInput) -> Tally:
        """Return the tally of more sequences with known states."""
        return hmm_fit.count_more(TopologyOptions.of(self), given, self.gaps, self.tally_, self._factor_names)

    def fit_tally(self, tally: Tally) -> Self:
        """Fit the model on a tally counted elsewhere: by another model, in a database or on another machine.

        Parameters
        ----------
        tally : Tally
            A tally with the factors of a fitted `HiddenMarkovModel`, under any column names. With ``end_state``, its
            last factor is p(end | state).

        Returns
        -------
        self
        """
        self._check_settings()
        self._check_prior(self._factors_with_prior(tally))
        self._factor_names = names_in(tally, self.end_state)
        return self._set_tally(tally)

    @classmethod
    def from_tables(
        cls,
        /,
        start: str | Mapping[Any, float] | npt.ArrayLike,
        transition: Mapping[Any, Any] | npt.ArrayLike,
        emission: Mapping[Any, Any] | Iterable[Any],
        end: Mapping[Any, float] | npt.ArrayLike | None = None,
        *,
        component: Mapping[Any, Any] | Iterable[Any] | None = None,
        states: Iterable[Hashable] | None = None,
        columns: Columns | None = None,
        levels: Iterable[Any] | Mapping[Any, Iterable[Any]] | None = None,
        strength: float | None = None,
        **options: Any,
    ) -> HiddenMarkovModel:
        """Return a model with fixed (user-specified) parameters.

        Methods that need counts (`partial_fit`, `forget`, ``+``, `log_evidence`, …) raise `NoCountsError`.

        Parameters
        ----------
        start : mapping, Series or array, or "stationary"
            p(first state); ``"stationary"`` is the stationary distribution of the transition matrix.
        transition : mapping of mappings, data frame (one row for each state) or array
            p(next state | state). A state missing in a mapping has probability 0. If `end` is given, these are the
            probabilities given that the sequence continues.
        emission : mapping, data frame or array, by state
            p(observation | state): ``{level: probability}``, or parameters by name such as ``{"mean": …,
            "variance": …}`` or ``{"rate": …}``. For several columns, a mapping from column to these. If states have
            components, a list with one of these for each component of a state.
        end : mapping, Series or array, optional
            p(end | state).
        component : mapping or list of lists, by state, optional
            p(component | state), if states have mixture components.
        states : sequence of labels, optional
            The states of arrays; 0, 1, … by default.
        columns : Family, or mapping from columns to families, optional
            The families, if the names of the parameters do not determine them.
        levels : sequence of labels, or mapping from column to them, optional
            The levels of arrays of probabilities; 0, 1, … by default.
        strength : float, optional
            If given, the parameters are the means of a prior of this strength, in observations for each row of each
            table. The model has no sequences yet: `partial_fit` adds some. `fit` starts EM from these parameters
            (``warm_start``), keeps the states, and maximizes the posterior.
        **options
            Parameters of the constructor.

        Returns
        -------
        HiddenMarkovModel
            As ``initial=`` of `fit`, it is the starting point of EM for another model.

        Examples
        --------
        >>> import tallybayes as tb
        >>> model = tb.HiddenMarkovModel.from_tables(
        ...     start={"hot": 0.8, "cold": 0.2},
        ...     transition={"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}},
        ...     emission={"hot": {1: 0.2, 2: 0.4, 3: 0.4}, "cold": {1: 0.5, 2: 0.4, 3: 0.1}})
        >>> model.predict([[3, 1, 3]])
        [array(['hot', 'cold', 'hot'], dtype='<U4')]
        """
        stated = hmm_from_tables.read_tables(start, transition, emission, end, component, states, columns, levels)
        if strength is not None:
            options.setdefault("warm_start", True)  # EM starts from the given parameters
        return cls(**stated.options | options)._set_tables(stated, strength)

    def _set_tables(self, stated: StatedTables, strength: float | None) -> Self:
        """Use user-specified parameters: as fixed ones or, with a strength, as the means of the prior."""
        self._check_settings()
        self._factor_names = stated.names
        hmm = stated.estimated(TopologyOptions.of(self))
        if strength is None:
            self._set_tally(stated.tally)
            return self._set_fixed_parameters(stated.parameters)
        self.prior = hmm_from_tables.prior_with_means(hmm, check_strength(strength))
        return self._set_tally(stated.tally)

    # ---- Queries about sequences ------------------------------------------------------------------------------------

    def score_samples(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> np.ndarray:
        """Return log p(sequence) of every sequence, in nats; −inf if it is impossible.

        The states are summed out by the forward algorithm.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        return decoding.score_samples(*self._open_query(X, lengths, sequence, order))

    def log_likelihood(
        self,
        X: Rows,
        y: Labels | None = None,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: SampleWeights = None,
    ) -> float:
        """Return log p(all sequences), in nats; if `y` is given, log p(all sequences and their states).

        Parameters
        ----------
        X, y, lengths, sequence, order, sample_weight
            As for `fit`. If `y` is given, no state may be missing.

        Returns
        -------
        float
        """
        log_prob = (
            self.score_samples(X, lengths, sequence=sequence, order=order)
            if y is None
            else self.log_joint(X, y, lengths, sequence=sequence, order=order)
        )
        return weighted_sum(log_prob, sample_weight)

    def score(
        self,
        X: Rows,
        y: Labels | None = None,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> float:
        """Return the mean log p(sequence) or, if `y` is given, the accuracy of the Viterbi paths.

        The accuracy is the one of `tb.evaluate` and `tb.cross_validate`: the proportion of correctly predicted time
        steps. Steps without a state are ignored. An impossible sequence is predicted to stay in the first state.

        Parameters
        ----------
        X, y, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        float
        """
        if y is None:
            return float(self.score_samples(X, lengths, sequence=sequence, order=order).mean())
        reader = SequenceReader.of(self)
        return decoding.accuracy(reader.hmm, *reader.open_labeled(X, y, lengths, sequence, order))

    def predict(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        decode: str = "viterbi",
    ) -> list[np.ndarray]:
        """Return the most probable states of every sequence.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        decode : {"viterbi", "posterior"}, default "viterbi"
            The most probable state sequence as a whole (Viterbi 1967), or the most probable state of every time step.
            The latter maximizes the expected number of correct states, but its path may contain impossible transitions.

        Returns
        -------
        list of ndarray of shape (steps,)
            The states; None at every time step of an impossible sequence.
        """
        return decoding.predict(*self._open_query(X, lengths, sequence, order), decode)

    def predict_proba(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[np.ndarray]:
        """Return the smoothed probabilities p(state | whole sequence) of every time step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
            0 in all states of an impossible sequence.
        """
        return decoding.predict_proba(*self._open_query(X, lengths, sequence, order))

    def filter_proba(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[np.ndarray]:
        """Return the filtered probabilities p(state | observations so far) of every time step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
            0 in all states from an impossible time step on.
        """
        return decoding.filter_proba(*self._open_query(X, lengths, sequence, order))

    def predict_transition_proba(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[np.ndarray]:
        """Return p(state, next state | whole sequence) of every two consecutive observed time steps.

        These are the ξ of Baum and Welch. With ``gaps``, unobserved time steps may lie between the two.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps − 1, states, states)
        """
        return decoding.predict_transition_proba(*self._open_query(X, lengths, sequence, order))

    def predict_next(
        self,
        X: Rows,
        n: int = 1,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> np.ndarray:
        """Return p(state) of the `n` time steps after every sequence, given that it continues.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        n : int, default 1
            The number of time steps ahead.

        Returns
        -------
        ndarray of shape (sequences, n, states)
        """
        return decoding.predict_next(*self._open_query(X, lengths, sequence, order), n)

    def log_joint(
        self,
        X: Rows,
        y: Labels,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> np.ndarray:
        """Return log p(sequence, states) of every sequence, in nats.

        Parameters
        ----------
        X, y, lengths, sequence, order
            As for `fit`. No state may be missing.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        reader = SequenceReader.of(self)
        return decoding.log_joint(reader.hmm, *reader.open_labeled(X, y, lengths, sequence, order))

    def forward(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[ForwardBackwardTable]:
        """Return the forward messages α = p(steps so far, state) of every time step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ForwardBackwardTable
            ``scaled`` is p(state | steps so far), as `filter_proba`; the scale is p(steps so far). If the end is not
            modeled, the messages of the last step sum to p(sequence).
        """
        return forward_backward.forward(*self._open_query(X, lengths, sequence, order))

    def backward(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[ForwardBackwardTable]:
        """Return the backward messages β = p(steps to come | state) of every time step.

        If the end is modeled, they include the probability that the sequence ends after its last step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ForwardBackwardTable
            The scale is p(steps to come | steps so far). So ``scaled`` of `forward` times ``scaled`` of `backward` is
            p(state | whole sequence), as `predict_proba`.
        """
        return forward_backward.backward(*self._open_query(X, lengths, sequence, order))

    def trellis(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[Trellis]:
        """Return the Viterbi trellis: the most probable path to every state of every time step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of Trellis
        """
        return forward_backward.trellis(*self._open_query(X, lengths, sequence, order))

    def best_paths(
        self,
        X: Rows,
        k: int = 5,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[BestPaths]:
        """Return the `k` most probable state paths of every sequence, in decreasing order.

        List Viterbi algorithm: `k` paths to every state of every time step. Checkpoints limit its memory to the paths
        and about 32 MiB.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        k : int, default 5
            The number of paths.

        Returns
        -------
        list of BestPaths
            Fewer than `k` paths if fewer are possible; none for an impossible sequence.
        """
        return state_paths.best_paths(*self._open_query(X, lengths, sequence, order), k)

    def sample_paths(
        self,
        X: Rows,
        n: int = 1,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        random_state: RandomState = None,
    ) -> list[np.ndarray]:
        """Draw state paths from p(path | whole sequence), independently of each other.

        Forward filtering, backward sampling. The draws estimate any function of the path, with its uncertainty.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        n : int, default 1
            The number of paths for each sequence.
        random_state : int, Generator or None

        Returns
        -------
        list of ndarray of shape (n, steps)
            The states; None at every time step of an impossible sequence.
        """
        return state_paths.sample_paths(*self._open_query(X, lengths, sequence, order), n, random_state)

    def expected_visits(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> ExpectedOccupancy:
        """Return the expected numbers of time steps and of visits in every state, given the whole sequence.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        ExpectedOccupancy
            All numbers are 0 for an impossible sequence.
        """
        return state_occupancy.expected_visits(*self._open_query(X, lengths, sequence, order, allow_gaps=False))

    def online_filter(self) -> OnlineFilter:
        """Return a filter that updates p(state | observations so far) one time step at a time.

        An update takes time proportional to the square of the number of states, and no past step is kept. The filter
        uses the current parameters: later changes of the model do not affect it.

        Returns
        -------
        OnlineFilter
        """
        return OnlineFilter(self)

    def forecast(
        self,
        X: Rows,
        horizon: int = 1,
        lengths: npt.ArrayLike | None = None,
        *,
        mass: float = 0.9,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[Forecast]:
        """Return predictive distributions of the `horizon` time steps after every sequence, given that it continues.

        A predictive distribution is the mixture of the emission distributions, weighted by p(state). The interval lies
        between two quantiles of the mixture, with equal probability below and above it. It holds for one column of one
        time step, and ignores the uncertainty of the parameters.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.
        horizon : int, default 1
            The number of time steps ahead. After an empty sequence, the first of them is its first time step.
        mass : float, default 0.9
            The probability of the prediction intervals; for counts, at least this.

        Returns
        -------
        list of Forecast
        """
        return forecast.forecast(*self._open_query(X, lengths, sequence, order), horizon, mass)

    def surprisal(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[np.ndarray]:
        """Return −log p(step | steps before it) of every time step, in nats.

        The surprisals of a sequence sum to −`score_samples`. If the end is modeled, a step includes that the sequence
        continues, and −log p(end) is the remainder of the sum. A missing step has surprisal 0.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps,)
            inf from an impossible time step on.
        """
        return surprisal.surprisal(*self._open_query(X, lengths, sequence, order))

    def tail_proba(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[np.ndarray]:
        """Return the tail probability of every cell given the steps before it: small values are unlikely cells.

        For a number, twice the smaller of p(at most this) and p(at least this), at most 1. For a category, the total
        probability of all levels that are no more probable. Under the model, at most a proportion α of the cells has a
        tail probability below α; for continuous columns exactly α. So one threshold serves all time steps. Each column
        is evaluated separately.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, columns)
            NaN for missing cells, for text and word counts, and from an impossible time step on.
        """
        return surprisal.tail_proba(*self._open_query(X, lengths, sequence, order))

    def sample(
        self, n: int | Sequence[int] | np.ndarray, *, random_state: RandomState = None
    ) -> tuple[list[Any], list[np.ndarray]]:
        """Draw sequences from the model.

        Parameters
        ----------
        n : int or list of int
            The length of one sequence, or of each of several. With ``end_state``, the maximum lengths.
        random_state : int, Generator or None

        Returns
        -------
        X : list of ndarray
            Data frames if the model was fitted on data frames; otherwise dictionaries if there are several columns.
        y : list of ndarray
            The states.
        """
        return hmm_sampling.sample(self._estimated_hmm, n, self._frame_library, random_state)

    def impute(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
    ) -> list[Any]:
        """Fill in missing cells, given the whole sequence.

        Numbers are replaced by their expectation, categories by the most probable level.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray
            Data frames if `X` has data frames; otherwise dictionaries if there are several columns.
        """
        return hmm_sampling.impute(*self._open_query(X, lengths, sequence, order), _frame_of(X))

    def _open_query(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None,
        sequence: str | None,
        order: str | None,
        *,
        allow_gaps: bool = True,
    ) -> tuple[EstimatedHMM, Sequences]:
        """Return the estimates and the sequences of a query; see `SequenceReader`."""
        reader = SequenceReader.of(self)
        return reader.hmm, reader.open(X, lengths, sequence, order, allow_gaps=allow_gaps)

    # ---- Parameters -------------------------------------------------------------------------------------------------

    @property
    def states_(self) -> np.ndarray:
        """The states, sorted."""
        return self._estimated_hmm.state_labels.copy()

    @property
    def start_(self) -> np.ndarray:
        """The initial state probabilities p(first state)."""
        return self._estimated_hmm.parameters.tables["start"]

    @property
    def transition_(self) -> np.ndarray:
        """The transition matrix p(next state | state), given that the sequence continues; one row for each state."""
        return self._estimated_hmm.parameters.tables["transition"]

    @property
    def end_(self) -> np.ndarray | None:
        """The end probabilities p(end | state); None if the end is not modeled."""
        return self._estimated_hmm.parameters.tables.get("end")

    @property
    def component_(self) -> np.ndarray | None:
        """The component probabilities p(component | state), (states, components); 0 if a state has fewer components.

        None if states have no mixture components.
        """
        return self._estimated_hmm.parameters.tables.get("component")

    @property
    def emission_(self) -> dict[Any, Any]:
        """The emission parameters by column.

        For a categorical column ``{level: its probability in every state}``; for other columns the parameters of the
        family, states first. A block of several columns is listed under their tuple. With mixture components, the first
        two axes are states and components; a single axis if numbers of components differ. Unseen levels are not listed.
        """
        return self._estimated_hmm.emission_parameters

    @property
    def stationary_(self) -> np.ndarray:
        """The stationary distribution: the long-run proportion of time steps in each state, shape (states,).

        It is the limit of `predict_next`, unless the chain is periodic. Transient states have probability 0. Raises
        EstimateError if several classes of states are closed, because the limit then depends on the first state.
        """
        return state_occupancy.stationary(self._estimated_hmm)

    @property
    def durations_(self) -> np.ndarray:
        """The mean number of consecutive time steps in each state, 1 / (1 − p(stay)), shape (states,).

        The distribution is geometric, so that 1 is always the most probable duration. inf for an absorbing state, NaN
        for a state without observed transitions. If the end is modeled, it ends the stay, too.
        """
        return state_occupancy.durations(self._estimated_hmm)

    @property
    def means_(self) -> np.ndarray:
        """The means of all Gaussian columns, (states, columns), or (states, components, columns) with components."""
        return means(self._labeled_factors(), getattr(self, "feature_names_in_", ()), type(self).__name__)

    @property
    def covariances_(self) -> np.ndarray:
        """The covariances of all Gaussian columns in every state, (states, columns, columns).

        Under ``estimate="bayes"``, posterior means. Columns that the model takes to be independent have covariance 0.
        A shared covariance is repeated for every state.
        """
        return covariances(self._labeled_factors(), getattr(self, "feature_names_in_", ()), type(self).__name__)

    @property
    def parameters_(self) -> Parameters:
        """The parameters by column, a `ParameterTable` for each, under the estimate of the model.

        Probabilities by level (or interval of a binned column); other parameters by name, such as mean and variance.
        Under ``estimate="bayes"``, posterior means.
        """
        return self._cached("parameters", self._make_parameters)

    def parameter_table(self, column: Name | tuple[Name, ...]) -> ParameterTable:
        """Return the parameters of one column: ``parameters_[column]``.

        Parameters
        ----------
        column : name
            A column, a block, or the tuple of the columns of a block.

        Returns
        -------
        ParameterTable
        """
        return looked_up(self.parameters_, column)

    @property
    def prior_(self) -> dict[Any, Any]:
        """The prior of every part and column, as resolved from the data; ``prior=`` accepts it."""
        self._require_counts("a prior")
        return self._resolved_priors()

    @property
    def posterior_(self) -> Posteriors:
        """The posterior distributions of the parameters, by column, with `mean`, `interval` and `sample`.

        Their arrays start with the axis of states. They are ``prior_`` updated with the counts, whichever ``estimate``
        is used; after EM, with the expected counts.
        """
        self._require_counts("a posterior")
        return posteriors_by_column(type(self).__name__, self._labeled_factors())

    # ---- Model selection --------------------------------------------------------------------------------------------

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        return self._all_factors.n_parameters

    def log_evidence(self) -> float:
        """Return the log marginal likelihood (log evidence) of all sequences and their states, in nats.

        All parameters are integrated out under ``prior_``, whichever ``estimate`` is used. Constant columns have no
        finite density and are left out. A missing cell drops its time step from the factors that need it. `tb.compare`
        turns evidence into Bayes factors.

        Returns
        -------
        float
        """
        return self._likelihood_measures("evidence").evidence().log_evidence

    def description_length(self) -> DescriptionLength:
        """Return the code length of the sequences in bits, given the MAP parameters and by the evidence.

        Returns
        -------
        DescriptionLength
            The density term may be negative, because a density is not a probability.
        """
        return self._likelihood_measures("code length").description_length()

    @property
    def evidence_lower_bound_(self) -> float:
        """The evidence lower bound (ELBO) of EM, in nats: higher is better. Without EM, the log evidence itself.

        With q = p(unobserved | observed): log p(observed) ≥ log ∫ exp E_q[log p(all | θ)] p(θ) dθ + entropy of q. The
        integral has the closed form of complete data at the expected statistics, under ``prior_``.
        """
        return self._likelihood_measures("evidence").evidence_bound()

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion, −2 log p(sequences) + parameters · log(steps): lower is better.

        The likelihood is its maximum, or that at the end of EM; with known states, that of sequences and states. The
        sample size of all parameters is the number of time steps, also of the initial state probabilities, as in other
        packages.
        """
        measures = self._likelihood_measures("BIC")
        return -2.0 * measures.max_log_likelihood + self.n_parameters_ * math.log(max(self.n_rows_, 1.0))

    @property
    def aic_(self) -> float:
        """The Akaike information criterion, −2 log p(sequences) + 2 · parameters: lower is better."""
        return self._likelihood_measures("AIC").aic

    @property
    def columns_(self) -> dict[Any, Family]:
        """The family of every column, as given or chosen; under the tuple of its columns for a block."""
        return columns_of(self)

    @property
    def dropped_columns_(self) -> dict[Name, str]:
        """The columns of the training data that the model does not use, with the reason."""
        return dropped_columns_of(self)

    # ---- Plots ------------------------------------------------------------------------------------------------------

    def plot_convergence(self, ax: Axes | None = None) -> Plot:
        """Plot the objective of EM by iteration, for every initialization. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        return plot_convergence(self._em_result, type(self).__name__, ax)

    def plot_states(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot sequences with their state probabilities, at most the first eight. Requires matplotlib.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `predict`.
        ax : matplotlib Axes, optional
            One for each column, and one more for the states. With fewer, the columns most related to the state.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.hmm.states import plot_states

        return plot_states(self, X, lengths, sequence, order, ax)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """Plot the model as a plate diagram. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.classifier.plate_diagram import plot_chain

        return plot_chain(self, ax)

    def plot_transitions(self, ax: Axes | None = None, least: float = 0.01) -> Plot:
        """Plot the states and their transition probabilities. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        least : float, default 0.01
            Transitions with a smaller probability are not drawn.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.hmm.transitions import plot_transitions

        return plot_transitions(self, self._estimated_hmm.topology.allowed, ax, least)

    # ---- Hooks of the base class ------------------------------------------------------------------------------------

    @property
    def _estimated_hmm(self) -> EstimatedHMM:
        """The parameters estimated from the current tally."""
        return self._cached("estimated_hmm", self._estimate)

    def _estimate(self) -> EstimatedHMM:
        """Return the parameters estimated from the current tally; fixed parameters are not constrained."""
        tally = self._selected_tally
        states = tally.domain(self._factor_names.state).levels
        if self._fixed_parameters is None:
            options = TopologyOptions.of(self)
        else:
            options = TopologyOptions(end_state=self.end_state, components=self.components)
        return EstimatedHMM(
            tally,
            self._factor_names,
            Topology.of(options, states),
            self.estimate,
            self.prior,
            self.unseen,
            self._fixed_parameters,
            frozenset(self._selected_words),
        )

    def _with_tally(self, tally: Tally) -> Self:
        """Return the model with another tally of the same levels, and the priors held fixed."""
        other = copy.copy(self)._set_tally(tally)._with_words_of(self)
        other._cache["estimated_hmm"] = self._estimated_hmm.over(other._selected_tally)
        return other

    def _with_scaled_priors(self, factor: float) -> Self:
        """Return the model with prior strengths multiplied by `factor`."""
        other = copy.copy(self)._set_tally(self.tally_)
        other._cache["estimated_hmm"] = self._estimated_hmm.scaled(factor)
        return other

    def _total_weight(self) -> float:
        """Return the weight of all counted time steps."""
        names = self._factor_names
        return float(sum(self.tally_[name].group_weights().sum() for name in (names.start, names.target)))

    def _summary_title(self, n_rows: float) -> str:
        """Return the title of the summary: number of time steps and states."""
        levels = self._estimated_hmm.states.levels
        shown = ", ".join(map(printable, levels[:10])) + (f" and {len(levels) - 10} more" if len(levels) > 10 else "")
        source = f"of {n_rows:.12g} steps" if self._fixed_parameters is None else "with fixed parameters"
        return f"{type(self).__name__} {source}, states {shown}"

    def _repr_lines(self) -> list[str]:
        """Return lines about chosen families and dropped columns, for the repr."""
        return repr_lines(self)

    def _check_mergeable(self, other: Self) -> None:
        """Raise StatisticsError if the columns of another model have other families."""
        check_same_families(self, other)

    def _labeled_factors(self) -> list[LabeledFactor]:
        """Return all factors with the names of their states, levels and columns."""
        return self._estimated_hmm.labeled_factors(self._column_names)

    @property
    def _all_factors(self) -> EstimatedFactors:
        """The estimated factors."""
        return self._estimated_hmm.fitted

    def _resolved_priors(self) -> dict[Any, Any]:
        """Return the resolved prior of every part and column."""
        return self._estimated_hmm.resolved_priors

    @property
    def _fixed_log_prob(self) -> float:  # type: ignore[override]
        """The part of the log-likelihood that is not a sum over factors."""
        return self._estimated_hmm.stationary_log_prob

    def _check_has_likelihood_measures(self, what: str) -> None:
        """Raise EstimateError for measures without a closed form under start='stationary'."""
        if self._estimated_hmm.topology.stationary and what in ("evidence", "code length"):
            raise EstimateError(
                f"this {type(self).__name__} has no {what}: with start='stationary', the marginal likelihood has no "
                "closed form.\n    Use bic_, or held-out sequences."
            )

    def _check_settings(self) -> None:
        """Raise an error for invalid parameters."""
        super()._check_settings()
        TopologyOptions.of(self).check()

    def _set_tally(self, tally: Tally, em_result: EMSummary | None = None) -> Self:
        """Replace the tally, after checking that it agrees with the parameters."""
        if self.components is not None or self._factor_names.component is not None:
            check_other_components(self.components, tally, self._factor_names)
        if TopologyOptions.of(self).restricts_states:
            hmm_fit.check_counted_topology(TopologyOptions.of(self), tally, self._factor_names)
        return super()._set_tally(tally, em_result)

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise an error if a prior does not fit any factor."""
        check_prior(self.prior, factors, self.estimate, components=most_components(self.components) > 1)

    @property
    def _required_columns(self) -> list[Name]:
        """The columns that time steps must have."""
        return [name for factor in self._factors_with_prior(self.tally_) for name in factor.columns]

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        """Return the emission factors of a tally."""
        return names_in(tally, self.end_state).emissions_in(tally)

    def _copy_input_format(self, other: HiddenMarkovModel) -> Self:
        """Copy the names of states and the dropped columns from another model."""
        self._factor_names = other._factor_names
        self._dropped_columns = other._dropped_columns
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the input format for a file."""
        return {"names": self._factor_names.to_dict()}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Restore the input format from a file. Raise FileError if the tally does not have its factors."""
        entries = state.pop("names")
        self._factor_names = names = ChainNames.from_dict(entries)
        check_no_unknown_entries("the names of the model's parts", entries)
        columns = {column for factor in tally.factors for column in factor.columns}
        needed = {column for factor in names.factors(ends=self.end_state) for column in factor.columns}
        if not needed <= columns or any(tally.schema.domain(name) not in tally.domains for name in names.given):
            raise FileError(f"the model's factors {sorted(needed)} are not all in its tally.")

    def _check_loaded(self) -> None:
        """Raise an error if the tally is not that of a hidden Markov model.

        Errors that the saved model had already, such as states without data, are ignored.
        """
        with suppress(EstimateError, DataError):
            _ = self._estimated_hmm.parameters


def _frame_of(X: Rows) -> str | None:
    """Return the library of the data frames of sequences; None if they are not data frames."""
    return frame_kind(X[0] if isinstance(X, list | tuple) and len(X) else X)
