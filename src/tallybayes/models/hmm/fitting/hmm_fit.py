"""Fitting of hidden Markov models: counting of sequences with known states, or EM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import count
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.models.hmm.factor_names import emissions_in, state_schema
from tallybayes.models.hmm.fitting.hmm_sql import DatabaseSteps, open_database_steps
from tallybayes.models.hmm.fitting.training_sequences import (
    TrainingSequences,
    open_labeled,
    read_states,
    read_training_sequences,
)
from tallybayes.models.hmm.lagged_columns import emission_factors, with_lags
from tallybayes.models.hmm.mixture_emissions import most_components
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.sequences import Sequences, step_weights
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.estimation.em.em_loop import EMSummary
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


class FitResult(NamedTuple):
    """The result of fitting.

    Attributes
    ----------
    tally : Tally
    names : dict
        The names of the state and end columns in the tally; see `factor_names`.
    dropped_columns : dict
        The columns that are not used, with the reasons.
    frame_library : str, optional
        The library of the data frames, if X has any.
    em_result : EMSummary, optional
        The summary of EM, if it was run.
    """

    tally: Tally
    names: dict[str, str]
    dropped_columns: dict[Name, str]
    frame_library: str | None = None
    em_result: EMSummary | None = None


def fit(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels | None,
    lengths: npt.ArrayLike | None,
    *,
    sequence: str | None,
    order: str | None,
    sample_weight: SampleWeights,
    initial: HiddenMarkovModel | None,
) -> FitResult:
    """Count sequences with known states, in a database if possible; otherwise run EM."""
    if initial is not None or model.warm_start:
        from tallybayes.estimation.em.em_objective import initial_model

        initial = initial_model(model, initial)
    has_components = most_components(model.components) > 1
    source = open_source(X)
    if source is not None and initial is None and model.gaps is None and not has_components:
        with source.snapshot():
            steps = open_database_steps(source, y, lengths, sequence, order, sample_weight)
            result = None if steps is None else _fit_in_database(model, steps)
        if result is not None:
            return result
    data, dropped_columns = read_training_sequences(model, X, y, lengths, sequence, order, sample_weight, initial)
    if initial is not None:
        data = _with_states_of(initial, data, model.n_states)
    n_unnamed = n_unnamed_states(model, data.states)
    if data.is_labeled and n_unnamed:
        raise _too_many_states(model, data.states)
    model._check_prior(data.emissions)
    if data.codes is not None and not n_unnamed:
        topology = Topology.of(model, data.states.levels)
        topology.check_steps(data.codes, data.sequences.offsets, data.sequences.gaps)
    em_result = None
    if data.is_labeled and not has_components and not _needs_em(data):
        tally = _count(data, model.end_state)
    else:
        from tallybayes.models.hmm.fitting.baum_welch import fit_baum_welch

        tally, em_result = fit_baum_welch(model, data, len(data.states.levels) + n_unnamed, initial)
    frame = frame_kind(X[0] if isinstance(X, list | tuple) and len(X) else X)
    return FitResult(tally, data.names, dropped_columns, frame, em_result)


def _needs_em(data: TrainingSequences) -> bool:
    """Return whether unobserved time steps, or missing cells under a full covariance, need EM despite known states."""
    if data.sequences.gaps is not None:
        return True
    complete = any(factor.family.requires_complete_rows for factor in data.emissions)
    return complete and bool(rows_with_missing(data.sequences.table, data.emissions).any())


def _fit_in_database(model: HiddenMarkovModel, steps: DatabaseSteps) -> FitResult | None:
    """Return the counts made by a database; None if it cannot count them."""
    names, columns = steps.columns_of(model)
    emissions = emission_factors(columns.blocks, (names["state"],))
    model._check_prior(emissions)
    tally = steps.counted(model.end_state, names, emissions)
    if tally is None:
        return None
    states = tally.domains[names["state"]]
    if n_unnamed_states(model, states):
        raise _too_many_states(model, states)
    check_counted_topology(model, tally, names)
    return FitResult(tally, names, columns.dropped_columns)


def check_counted_topology(model: HiddenMarkovModel, tally: Tally, names: dict[str, str]) -> None:
    """Raise DataError if a tally has counts of forbidden first states or transitions."""
    states = tally.domains[tally.schema.domain(names["state"])].levels
    start: Any = tally[names["start"]]
    transition: Any = tally[names["to"]]
    Topology.of(model, states).check_zeros(start.table, transition.table, "the tally", "count")


def n_unnamed_states(model: HiddenMarkovModel, states: Domain) -> int:
    """Return the number of states besides the known ones."""
    n_named = len(states.levels)
    if model.n_states is None:
        if not n_named:
            raise DataError("n_states is None, and no time step has a state.\n    Pass n_states.")
        return 0
    n_states: object = model.n_states
    if not is_integer_at_least(n_states, max(n_named, 1)):
        hint = "Pass families as columns=." if isinstance(n_states, Family | Mapping) else ""
        raise DataError.wrong_type("n_states", repr(n_states), f"a whole number of at least {max(n_named, 1)}", hint)
    return model.n_states - n_named


def _too_many_states(model: HiddenMarkovModel, states: Domain) -> DataError:
    """Return the error for n_states larger than the number of known states."""
    return DataError(
        f"n_states is {model.n_states!r}, but all time steps have known states, of which there are "
        f"{len(states.levels)}.\n    Leave n_states out, or pass some time steps without a state."
    )


def _with_states_of(initial: HiddenMarkovModel, data: TrainingSequences, n_states: int | None) -> TrainingSequences:
    """Return the training data with the states of the initial model."""
    states = Domain(initial._estimated_hmm.states.levels, "state", is_sorted=True)
    if n_states is not None:
        from tallybayes.estimation.em.em_objective import check_n_groups

        check_n_groups(len(states.levels), "states", "n_states", n_states)
    unknown = [level for level in data.states.levels if level not in states.index]
    if unknown:
        raise LabelError.unseen(unknown[0], "state", states.levels)
    codes = data.codes
    if codes is not None:
        codes = np.append(states.positions_of(data.states.levels), -1)[codes]
    return data._replace(codes=codes, states=states)


# ---- Counting of known states ------------------------------------------------------------------------------------


def count_labeled(
    model: HiddenMarkovModel,
    X: Rows,
    y: Labels,
    lengths: npt.ArrayLike | None,
    *,
    sequence: str | None,
    order: str | None,
    sample_weight: SampleWeights,
) -> Tally:
    """Return the tally of more sequences for a fitted model. Raise LabelError if a state is missing."""
    source = open_source(X)
    names = model._factor_names
    if source is not None and model.gaps is None and "component" not in names:
        with source.snapshot():
            steps = open_database_steps(source, y, lengths, sequence, order, sample_weight)
            emissions = emissions_in(model.tally_, names)
            tally = None if steps is None else steps.counted(model.end_state, names, emissions)
        if tally is not None:
            return tally
    sequences, labels = open_labeled(X, y, lengths, sequence, order)
    sequences = sequences.with_gaps(model.gaps)
    if sequences.gaps is not None:
        raise LabelError(
            f"column {model.gaps!r} has unobserved time steps, whose states are unknown, so that these sequences need "
            "EM.\n    Use fit on all sequences."
        )
    codes, states = read_states(labels)
    if codes is None or (codes < 0).any():
        n_missing = "" if codes is None else f" ({int((codes < 0).sum())} of {len(codes)} are missing)"
        raise LabelError(f"y has time steps without a state{n_missing}; they need EM.\n    Use fit on all sequences.")
    return count_more(model, sequences, codes, states, step_weights(sample_weight, sequences))


def count_more(
    model: HiddenMarkovModel, sequences: Sequences, codes: np.ndarray, states: Domain, weight: np.ndarray | None
) -> Tally:
    """Return the tally of labeled sequences, with the factors of a fitted model."""
    names = model._factor_names
    if "component" in names:
        raise LabelError(
            "components= needs EM: the mixture component of a time step is unknown.\n    Use fit on all sequences."
        )
    emissions = emissions_in(model.tally_, names)
    if model.allowed_transitions is not None or model.start is not None:
        all_states = model.tally_.domains[model.tally_.schema.domain(names["state"])].union(states)
        topology = Topology.of(model, all_states.levels)
        topology.check_steps(all_states.positions_of(states.levels)[codes], sequences.offsets)
    sequences = with_lags(sequences, emissions)
    data = TrainingSequences(sequences, codes, states, weight, names, emissions)
    return _count(data, model.end_state, model.tally_)


def _count(data: TrainingSequences, end_state: bool, like: Tally | None = None) -> Tally:
    """Return the tally of labeled sequences: initial states, transitions, emissions and ends.

    ``like`` is a tally with the same factors, whose anchors of moments are used.
    """
    sequences, codes, states, weight, names, emissions = data
    assert codes is not None
    first, last, after = sequences.places()
    step_weight = None if weight is None else np.repeat(weight, sequences.lengths)
    schema = state_schema(names)

    def count_states(part: str, steps: np.ndarray, given: dict[str, np.ndarray]) -> Tally:
        """Return the tally of p(part | given) over some time steps."""
        table = Table({"row": np.zeros(len(steps))})
        for name, column in {names[part]: codes[steps], **given}.items():
            table = table.with_codes(name, column, states)
        factor = Factor(names[part], tuple(given), Categorical())
        return count(table, [factor], weight=None if step_weight is None else step_weight[steps], schema=schema)

    tally = count_states("start", first, {}) | count_states("to", after, {names["from"]: codes[after - 1]})
    steps = sequences.table.with_codes(names["state"], codes, states)
    factors = list(emissions)
    if end_state:
        is_last = np.zeros(len(codes))
        is_last[last] = 1.0
        steps = steps.with_column(names["end"], is_last)
        factors.append(Factor(names["end"], (names["state"],), Bernoulli()))
    anchors = None
    if like is not None:
        pairs = [pair for pair in zip(like.factors, like.statistics, strict=True) if pair[0] in factors]
        factors = [factor for factor, _ in pairs]
        anchors = Tally(factors, [statistics for _, statistics in pairs], like.domains, like.schema)
    return tally | count(steps, factors, weight=step_weight, schema=schema, like=anchors)
