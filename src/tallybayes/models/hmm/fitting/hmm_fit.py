"""Fitting of hidden Markov models: counting of sequences with known states, or EM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes._utils.parameter_checks import is_integer_at_least
from tallybayes.data.counting import check_size, count
from tallybayes.errors import DataError, LabelError
from tallybayes.families.family import Family
from tallybayes.models.hmm.chain_names import ChainNames, in_tally_order
from tallybayes.models.hmm.fitting.hmm_sql import DatabaseSteps, in_database
from tallybayes.models.hmm.fitting.stored_sequences import open_stored
from tallybayes.models.hmm.fitting.training_sequences import (
    SequenceInput,
    TrainingSequences,
    count_path,
    read_states,
    read_training_sequences,
)
from tallybayes.models.hmm.hmm_options import TopologyOptions, check_prior
from tallybayes.models.hmm.lagged_columns import emission_factors, with_lags
from tallybayes.models.hmm.mixture_emissions import most_components
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.labels import new_names
from tallybayes.models.inputs.sequences import step_weights
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.estimation.em.em_loop import EMSummary
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


class FitResult(NamedTuple):
    """The result of fitting.

    Attributes
    ----------
    tally : Tally
    names : ChainNames
    dropped_columns : mapping
        The columns that are not used, with the reasons.
    em_result : EMSummary, optional
        The summary of EM, if it was run.
    """

    tally: Tally
    names: ChainNames
    dropped_columns: Mapping[Name, str]
    em_result: EMSummary | None = None


def fit(model: HiddenMarkovModel, given: SequenceInput, initial: HiddenMarkovModel | None) -> FitResult:
    """Count sequences with known states, in a database if possible; otherwise run EM.

    Parameters
    ----------
    model : HiddenMarkovModel
        Its parameters are used.
    given : SequenceInput
    initial : HiddenMarkovModel, optional
        The model from whose estimates EM starts. Its columns are used if `model` does not name any.
    """
    options = TopologyOptions.of(model)
    has_components = most_components(model.components) > 1
    if initial is None and model.gaps is None and not has_components:
        result = in_database(given, partial(_fit_in_database, model, options))
        if result is not None:
            return result
    data = open_stored(model, given) if initial is None else None
    if data is None:
        data = read_training_sequences(given, model.columns, model.gaps, initial, components=has_components)
    start = None if initial is None else SequenceReader.of(initial).hmm
    if start is not None:
        data = data.with_states(_initial_states(start, data.states, model.n_states))
    n_unnamed = _n_unnamed_states(model, data.states, is_labeled=data.is_labeled)
    check_prior(model.prior, data.emissions, model.estimate, components=has_components)
    if data.is_complete:
        return FitResult(count_states(options, data), data.names, data.dropped_columns)
    from tallybayes.models.hmm.fitting.baum_welch import fit_baum_welch

    data = data.with_states(_with_unnamed_states(data, n_unnamed, type(model).__name__))
    tally, summary = fit_baum_welch(model, options, data, start)
    return FitResult(tally, data.names, data.dropped_columns, summary)


def _fit_in_database(model: HiddenMarkovModel, options: TopologyOptions, steps: DatabaseSteps) -> FitResult | None:
    """Return the counts made by a database; None if it cannot count them."""
    names, columns = steps.columns_of(model)
    emissions = emission_factors(columns.blocks, names.given)
    check_prior(model.prior, emissions, model.estimate, components=False)
    tally = steps.counted(model.end_state, names, emissions)
    if tally is None:
        return None
    _n_unnamed_states(model, tally.domain(names.state), is_labeled=True)
    return FitResult(tally, names, columns.dropped_columns)


def check_counted_topology(options: TopologyOptions, tally: Tally, names: ChainNames) -> None:
    """Raise DataError if a tally has counts of forbidden first states or transitions."""
    start: Any = tally[names.start]
    transition: Any = tally[names.target]
    topology = Topology.of(options, tally.domain(names.state).levels)
    topology.check_zeros(start.table, transition.table, "the tally", "count")


def _n_unnamed_states(model: HiddenMarkovModel, states: Domain, *, is_labeled: bool) -> int:
    """Return the number of states besides the known ones, which is 0 if the states of all time steps are known."""
    n_named = len(states.levels)
    if model.n_states is None:
        if not n_named:
            raise DataError("n_states is None, and no time step has a state.\n    Pass n_states.")
        return 0
    n_states: object = model.n_states
    if not is_integer_at_least(n_states, max(n_named, 1)):
        hint = "Pass families as columns=." if isinstance(n_states, Family | Mapping) else ""
        raise DataError.wrong_type("n_states", repr(n_states), f"a whole number of at least {max(n_named, 1)}", hint)
    n_unnamed = model.n_states - n_named
    if is_labeled and n_unnamed:
        raise DataError(
            f"n_states is {n_states!r}, but all time steps have known states, of which there are {n_named}.\n"
            "    Leave n_states out, or pass some time steps without a state."
        )
    return n_unnamed


def _with_unnamed_states(data: TrainingSequences, n_unnamed: int, model: str) -> Domain:
    """Return the known states and new ones. Raise an error if memory cannot hold the transitions between them."""
    known = list(data.states.levels)
    n_states = len(known) + n_unnamed
    transitions = data.names.factors(ends=False)[1]
    hint = "Pass a smaller n_states."
    check_size(transitions, n_states, n_states, model=model, scored=transitions.family, copies=3, hint=hint)
    return Domain([*known, *new_names(known, n_unnamed)], data.names.state, is_sorted=True)


def _initial_states(start: EstimatedHMM, known: Domain, n_states: int | None) -> Domain:
    """Return the states of the initial model. Raise LabelError if it does not have a known state."""
    states = Domain(start.states.levels, "state", is_sorted=True)
    if n_states is not None:
        from tallybayes.estimation.em.em_objective import check_n_groups

        check_n_groups(len(states.levels), "states", "n_states", n_states)
    unknown = [level for level in known.levels if level not in states.index]
    if unknown:
        raise LabelError.unseen(unknown[0], "state", states.levels)
    return states


# ---- Counting of known states ------------------------------------------------------------------------------------


def count_more(
    options: TopologyOptions, given: SequenceInput, gaps: Name | None, like: Tally, names: ChainNames
) -> Tally:
    """Return the tally of more sequences, with the factors of a tally. Raise LabelError if a state is missing."""
    emissions = names.emissions_in(like)
    if gaps is None and names.component is None:
        tally = in_database(given, lambda steps: steps.counted(options.end_state, names, emissions))
        if tally is not None:
            return tally
    sequences, labels = given.open(gaps)
    if sequences.gaps is not None:
        raise LabelError(
            f"column {gaps!r} has unobserved time steps, whose states are unknown, so that these sequences need "
            "EM.\n    Use fit on all sequences."
        )
    codes, states = read_states(labels)
    if codes is None or (codes < 0).any():
        n_missing = "" if codes is None else f" ({int((codes < 0).sum())} of {len(codes)} are missing)"
        raise LabelError(f"y has time steps without a state{n_missing}; they need EM.\n    Use fit on all sequences.")
    weight = step_weights(given.sample_weight, sequences)
    return count_states(options, TrainingSequences(sequences, codes, states, weight, names, emissions), like)


def count_states(options: TopologyOptions, data: TrainingSequences, like: Tally | None = None) -> Tally:
    """Return the tally of sequences with known states: initial states, transitions, emissions and ends.

    Parameters
    ----------
    options : TopologyOptions
    data : TrainingSequences
    like : Tally, optional
        A tally of other sequences, whose states and anchors of moments are used.
    """
    names, emissions, states = data.names, data.emissions, data.states
    if names.component is not None:
        raise LabelError(
            "components= needs EM: the mixture component of a time step is unknown.\n    Use fit on all sequences."
        )
    sequences = with_lags(data.sequences, emissions)
    all_states = states if like is None else like.domain(names.state).union(states)
    Topology.of(options, all_states.levels).check_steps(data.codes_in(all_states), sequences)
    chain = names.factors(ends=options.end_state)
    n_states = len(states.levels)
    check_size(chain[1], n_states, n_states)
    weight = data.step_weight
    counts = count_path(data.codes, sequences, weight, n_states, ends=options.end_state)
    tally = Tally(chain, counts, {names.state: states.renamed(names.state)}, names.schema)
    steps = sequences.table.with_codes(names.state, data.codes, states)
    if like is not None:
        statistics = dict(zip(like.factors, like.statistics, strict=True))
        like = Tally(emissions, [statistics[factor] for factor in emissions], like.domains, like.schema)
    weighted = None if data.weight is None else weight
    emitted = count(steps, emissions, weight=weighted, schema=names.schema, like=like)
    return in_tally_order((tally | emitted).drop_unseen_levels(), len(chain))
