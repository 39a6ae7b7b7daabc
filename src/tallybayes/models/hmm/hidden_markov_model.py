"""HiddenMarkovModel: sequences whose steps depend on a state that is seen, partly seen, or not seen at all."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import DataError, EstimateError, FileError, printable
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.families.prior_rules import check_pseudo_count, is_pseudo_count
from tallybayes.models.base import Model
from tallybayes.models.hmm import hmm_criteria, hmm_from_tables, hmm_sampling
from tallybayes.models.hmm.estimated_hmm import EstimatedHMM, told
from tallybayes.models.hmm.factor_names import PARTS, emission_given, names_in
from tallybayes.models.hmm.fitting import hmm_fit
from tallybayes.models.hmm.hmm_parameters import UNSEEN, read_prior
from tallybayes.models.hmm.inference import (
    decoding,
    forecast,
    forward_backward,
    online_filter,
    state_occupancy,
    state_paths,
    surprisal,
)
from tallybayes.models.hmm.mixture_emissions import most_components, refuse_other_components
from tallybayes.models.hmm.topology import Topology, check_structure
from tallybayes.models.inputs.column_priors import check_priors, refuse_other
from tallybayes.models.inputs.columns import columns_of, left_out_of, refuse_other_choice, shown_choice
from tallybayes.models.inspection import information_criteria, labeled_parameters
from tallybayes.models.inspection.gaussian_parameters import covariances, means
from tallybayes.models.inspection.model_summary import summary
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor
from tallybayes.typing import Columns, Name, Priors, RandomState, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


class HiddenMarkovModel(Model):
    """A hidden Markov model: p(start) Π p(next state | state) Π p(step | state).

    With labeled states it is counted in one pass; it adds, forgets and is re-estimated like every model here. Without
    labels it is learned by EM (Baum and Welch); with some, by EM that keeps to those. Missing steps and cells are
    marginalized everywhere.

    Parameters
    ----------
    n_states : int, optional
        How many states there are, where labels do not say.
    columns : "auto", a Family, or a mapping from columns to families, default "auto"
        What a step is in every state; columns are independent given the state. ``"auto"`` reads types, as `NaiveBayes`.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` plugs in the posterior means of all parameters: integrating them out over whole sequences has no
        closed form.
    prior : mapping from "start", "transition", "end" and columns to priors, a Dirichlet, number, "empirical" or None
        A Dirichlet alone is that of start and transition; a number is added to every level's count (an error under
        ``"map"``). None is add-one for start, transition and end, and for columns their default, as for `NaiveBayes`.
    unseen : {"new", "missing", "smooth", "error"}, default "new"
        What a label is that no step had at fitting. A new one: in each state as likely as labels seen only once were
        there, while known ones stay as likely as they are; where the estimate has no prior (``"mle"``,
        ``"unbiased"``), missing. A missing step. ``"smooth"``: as likely as a new one under every estimate, and known
        ones give way, so that all add up to 1. Or an error.
    end_state : bool, default False
        Whether the end of a sequence is modeled too: p(end | state).
    allowed : "left-to-right", "banded", matrix of booleans, list of pairs (state, next state), mapping, or None
        Which states may follow which; all others never do, whatever the prior adds: zeros stay zeros. From left to
        right a state is followed by itself or a later one, in a band by itself or its neighbors, in the order of
        ``states_``, which is that of a matrix, too. A mapping has the next states of each. Where sequences begin, only
        `start` says.
    start : "stationary", list of states, or None
        Where sequences begin. ``"stationary"``: as they go on, in the stationary distribution of the transitions, which
        are the most likely ones under that constraint. A list: in these alone.
    tied : mapping from states to what they share, optional
        States with the same value have the same emissions, estimated from what was counted of all of them.
    components : int, or mapping from states to int, optional
        How many components every state is a mixture of: p(step | state) = Σ p(component | state) p(step | component).
        A state that a mapping does not name has one. They are learned by EM, in states that are labeled, too.
    gaps : name, optional
        The column that tells how many silent steps lie before each: steps that the chain took and nobody saw. They
        cost about the logarithm of their number; without labels of their own they are expected by EM.
    max_iter, tol : int and float
        EM takes at most so many steps, and stops when one raises the objective by less than `tol` a step of the data.
    n_init : int, default 1
        From how many starts; the one that climbs highest counts, and ``objectives_`` tells of all.
    warm_start : bool, default False
        Whether `fit` sets out from what was learnt before, if anything was.
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
    >>> model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.transition_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    >>> model.predict([[3, 1, 1]])
    [array(['hot', 'cold', 'cold'], dtype='<U4')]
    """

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

    columns_ = property(columns_of)
    dropped_columns_ = property(left_out_of)
    _repr_lines = shown_choice
    _check_mergeable = refuse_other_choice
    _factor_names: dict[str, str]  # what its own columns are called: as no column of the steps is called

    # Learning
    fit = hmm_fit.fit
    partial_fit = hmm_fit.partial_fit
    forget = hmm_fit.forget
    fit_tally = hmm_fit.fit_tally
    from_tables = classmethod(hmm_from_tables.from_tables)

    # Sequences
    score_samples = decoding.score_samples
    log_likelihood = decoding.log_likelihood
    score = decoding.score
    predict = decoding.predict
    predict_proba = decoding.predict_proba
    filter_proba = decoding.filter_proba
    predict_transition_proba = decoding.predict_transition_proba
    predict_next = decoding.predict_next
    log_joint = decoding.log_joint
    forward = forward_backward.forward
    backward = forward_backward.backward
    trellis = forward_backward.trellis
    best_paths = state_paths.best_paths
    sample_paths = state_paths.sample_paths
    expected_visits = state_occupancy.expected_visits
    online_filter = online_filter.online_filter
    forecast = forecast.forecast
    tail_proba = surprisal.tail_proba
    surprisal = surprisal.surprisal
    sample = hmm_sampling.sample
    impute = hmm_sampling.impute

    # How well it fits
    n_parameters_ = property(information_criteria.n_parameters)
    log_evidence = information_criteria.log_evidence
    description_length = information_criteria.description_length
    plot_convergence = plot_convergence
    evidence_lower_bound_ = property(information_criteria.evidence_bound)
    bic_ = property(hmm_criteria.bic)
    aic_ = property(information_criteria.aic)
    prior_ = property(information_criteria.resolved_priors)
    parameters_ = property(labeled_parameters.parameters)
    parameter_table = labeled_parameters.table
    posterior_ = property(labeled_parameters.posterior)
    summary = summary

    def _total_weight(self) -> float:
        """The weight of all steps that were counted."""
        parts: list[Any] = [self.tally_[self._factor_names[part]] for part in ("start", "to")]
        return float(sum(part.table.sum() for part in parts))

    def _summary_title(self, n_rows: float) -> str:
        levels = self._estimated_hmm.states.levels
        shown = ", ".join(map(printable, levels[:10])) + (f" and {len(levels) - 10} more" if len(levels) > 10 else "")
        whose = f"of {n_rows:.12g} steps" if self._fixed_parameters is None else "as it was given"
        return f"{type(self).__name__} {whose}, states {shown}"

    # ---- Parameters -------------------------------------------------------------------------------------------------

    @property
    def states_(self) -> np.ndarray:
        """The states, sorted."""
        return labels_of(self._estimated_hmm.states.levels, None)

    @property
    def start_(self) -> np.ndarray:
        """p(first state)."""
        return np.exp(self._estimated_hmm.chain.start)

    @property
    def transition_(self) -> np.ndarray:
        """p(next state | state), a row for every state; given that the sequence goes on, where its end is modeled."""
        return np.exp(self._estimated_hmm.chain.transition)

    @property
    def end_(self) -> np.ndarray | None:
        """p(end | state), where it is modeled."""
        end = self._estimated_hmm.chain.end
        return None if end is None else np.exp(end)

    @property
    def component_(self) -> np.ndarray | None:
        """p(component | state), where states are mixtures: (states, components), 0 where a state has fewer."""
        components, mixed = self._estimated_hmm.structure.components, self._estimated_hmm.chain.mixed
        return None if components is None or mixed is None else components.counts(np.exp(mixed.log_share)).table

    @property
    def emission_(self) -> dict[Any, Any]:
        """p(step | state) by column: of a column of labels {label: its probability in every state}.

        Of others the parameters of their family, states first; a block of several columns stands under their tuple.
        Where states are mixtures, axes are states and components; of different numbers of these, one for all of them.
        What labels never seen have (`unseen`) is not listed.
        """
        found: dict[Any, Any] = {}
        components = self._estimated_hmm.structure.components
        for scored, domains in zip(self._estimated_hmm.chain.scored, self._estimated_hmm.domains, strict=True):
            names, parameters = scored.factor.columns, scored.parameters
            if components is not None:
                parameters = components.shaped(scored.family, parameters)
            if scored.family.cell_type == "codes":
                for name, domain, table in zip(
                    names, domains, parameters.segments.split(parameters.table), strict=True
                ):
                    found[name] = dict(zip(domain.levels, np.moveaxis(table, -1, 0), strict=False))
            else:
                found[names if len(names) > 1 else names[0]] = parameters
        return found

    stationary_ = property(state_occupancy.stationary)
    durations_ = property(state_occupancy.durations)
    means_ = property(means)
    covariances_ = property(covariances)

    def _labeled_factors(self) -> list[labeled_parameters.LabeledFactor]:
        return told(self._estimated_hmm, self)

    # ---- Pictures ---------------------------------------------------------------------------------------------------

    def plot_states(
        self,
        X: Rows,
        lengths: npt.ArrayLike | None = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot sequences with their states, one after another, of many the first eight; needs matplotlib.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `predict`: one sequence or a list of them, one array and the lengths, or a frame of steps.
        ax : matplotlib Axes, optional
            One for every column, and one more for the states; of fewer, the columns that tell most.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.hmm.states_and_transitions import plot_states

        return plot_states(self, X, {"lengths": lengths, "sequence": sequence, "order": order}, ax)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """The model as a graph with plates: what depends on what; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.classifier.plate_diagram import plot_chain

        return plot_chain(self, ax)

    def plot_transitions(self, ax: Axes | None = None, least: float = 0.01) -> Plot:
        """A picture of the states and their transitions; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        least : float, default 0.01
            Transitions less probable than this are not drawn.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.hmm.states_and_transitions import plot_transitions

        return plot_transitions(self, ax, least)

    # ---- What a model has to say to the base of all models ----------------------------------------------------------

    @property
    def _estimated_hmm(self) -> EstimatedHMM:
        """What follows from the tally."""

        def make() -> EstimatedHMM:
            settings = (self.estimate, self.prior, self.unseen, self.end_state)
            structure = (self.allowed_transitions, self.start, self.tied, self.components)
            return EstimatedHMM(self._selected_tally, self._factor_names, *settings, self._fixed_parameters, *structure)

        return self._cached("counted", make)

    def _with_tally(self, tally: Tally) -> Self:
        """The same model over other counts of the same levels, its priors held fixed."""
        other = copy.copy(self)._set_tally(tally)._with_words_of(self)
        other._cache["counted"] = self._estimated_hmm.over(other._selected_tally)
        return other

    def _with_scaled_priors(self, factor: float) -> Self:
        """The same model under priors worth `factor` times as much."""
        other = copy.copy(self)._set_tally(self.tally_)
        other._cache["counted"] = self._estimated_hmm.scaled(factor)
        return other

    _soft_counts_hint = "Its evidence_lower_bound_ is below its evidence; or fit sequences whose states are known."

    @property
    def _all_factors(self) -> EstimatedFactors:
        return self._estimated_hmm.fitted

    def _resolved_priors(self) -> dict[Any, Any]:
        counted = self._estimated_hmm
        found = list(information_criteria.priors_by_column(counted.fitted).items())
        n_parts = len(counted.parts)
        parts = {part: belief for part, (_, belief) in zip(counted.parts, found, strict=False)}
        return parts | {(key,) if key in parts else key: belief for key, belief in found[n_parts:]}

    @property
    def _fixed_log_prob(self) -> float:  # type: ignore[override]
        return self._estimated_hmm.fixed

    def _check_has_likelihood_measures(self, what: str) -> None:
        if self._estimated_hmm.structure.stationary and what in ("evidence", "code length"):
            raise EstimateError(
                f"this {type(self).__name__} has no {what}: with start='stationary' the transitions say where "
                "sequences begin, too, and integrating them out has no closed form.\n"
                "    Use bic_, or held-out sequences."
            )

    def _check_settings(self) -> None:
        super()._check_settings()
        check_structure(self)

    def _set_tally(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        refuse_other_components(self.components, tally, self._factor_names)
        if self.allowed_transitions is not None or self.start is not None or self.tied is not None:
            states = tally.domains[tally.schema.domain(self._factor_names["state"])].levels
            parts = [tally[self._factor_names[part]] for part in ("start", "to")]
            Topology.of(self, states).refuse_counted(*parts)
        return super()._set_tally(tally, climbed)

    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(UNSEEN),
    }

    def _check_prior(self, factors: list[Factor]) -> None:
        if is_pseudo_count(self.prior):  # start and transition have levels to add it to
            check_pseudo_count(self.prior, self.estimate)
        else:
            given = read_prior(self.prior, components=most_components(self.components) > 1)
            check_priors(given.pop("emission"), map(as_word_factor, factors), self.estimate, tuple(given))
            for prior in given.values():
                refuse_other(prior)
                check_pseudo_count(prior, self.estimate)

    @property
    def _required_columns(self) -> list[Name]:
        return [name for factor in self._factors_with_prior(self.tally_) for name in factor.columns]

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        names = names_in(tally, self.end_state)
        own = [(names["end"],), (names.get("component"),)]
        return [f for f in tally.factors if f.given[:1] == (names["state"],) and f.columns not in own]

    def _copy_input_format(self, other: Any) -> Self:
        self._factor_names, self._dropped_columns = dict(other._factor_names), other._dropped_columns
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """What was learnt about the shape of the input, for a file."""
        return {"names": self._factor_names}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        names = state.pop("names")
        self._factor_names = {
            name: str(names.pop(name)) for name in (*PARTS, *(["component"] if "component" in names else []))
        }
        check_no_unknown_entries("the names of the model's parts", names)
        columns = {column for factor in tally.factors for column in factor.columns}
        more = [*(["end"] if self.end_state else []), *(["component"] if "component" in self._factor_names else [])]
        needed, given = (
            {self._factor_names[part] for part in ("start", "to", *more)},
            emission_given(self._factor_names),
        )
        if not needed <= columns or any(tally.schema.domain(name) not in tally.domains for name in given):
            raise FileError(f"the model's factors {sorted(needed)} are not all in its tally.")

    def _check_loaded(self) -> None:
        """Refuse a tally that is no chain; what its counts could not answer when saved is no fault of the file."""
        with suppress(EstimateError, DataError):
            _ = self._estimated_hmm.chain
