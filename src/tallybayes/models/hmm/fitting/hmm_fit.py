"""Learning a hidden Markov model: labeled sequences by counting, others by EM."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.counting import count
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.em.em_objective import check_n_groups, columns_from_initial, initial_model
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.models.hmm.factor_names import emission_given, free_names, names_in, state_schema
from tallybayes.models.hmm.fitting.hmm_sql import DatabaseSteps, steps_there
from tallybayes.models.hmm.lagged_columns import own_factors, with_lags
from tallybayes.models.hmm.mixture_emissions import most_components
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.sequences import Sequences, open_labels, open_sequences, step_weights
from tallybayes.models.receipt import with_receipt
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

    H = TypeVar("H", bound=HiddenMarkovModel)


def fit(
    model: H,
    X: Rows,
    y: Labels | None = None,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    sample_weight: SampleWeights = None,
    initial: HiddenMarkovModel | None = None,
) -> H:
    """Count labeled sequences, or learn from those without labels by EM; forget any learned before.

    Parameters
    ----------
    X : list of sequences, or one array with `lengths`, or a frame with `sequence`
        A sequence is an array of values or of rows, a list, a frame or a dictionary of columns; it may be empty.
    y : the state of every step, shaped like X, or the name of a column, optional
        None or NaN where a state is not known.
    lengths : array-like of int, optional
    sequence, order : str, optional
        The columns of a frame that say to which sequence a step belongs, and where in it.
    sample_weight : array-like of shape (sequences,), optional
    initial : HiddenMarkovModel, optional
        Where EM starts, and from nowhere else: at the parameters of this one, fitted or from tables, whose states it
        keeps. Its first step is what these expect of the sequences. Where every state is known, nothing is climbed.

    Returns
    -------
    self
    """
    model._check_settings()
    initial = initial_model(model, initial)
    source = open_source(X)
    with nullcontext() if source is None else source.snapshot():
        mixed = most_components(model.components) > 1
        read = initial is not None or model.gaps is not None or mixed
        there = None if read else steps_there(X, y, lengths, sequence, order, sample_weight)
        if there is not None and _learn_there(model, there):
            return model
    sequences, y = open_labeled(X, y, lengths, sequence, order)
    sequences = sequences.with_gaps(model.gaps)
    sequences = sequences._replace(table=with_parts_of_dates(sequences.table))
    weight = step_weights(sample_weight, sequences)
    if weight is not None and not weight.all():  # a sequence of weight 0 is absent, whatever it holds
        if not weight.any():
            raise DataError("the weight of every sequence is zero; expected at least one that counts.")
        steps, sequences = sequences.some(np.flatnonzero(weight))
        y, weight = None if y is None else Table({"state": y}).rows(steps).columns["state"], weight[weight > 0]
    names = free_names(sequences.table, components=mixed)
    given, table = None, sequences.table
    if y is not None:
        given, table = names["state"], table.with_column(names["state"], y)
    columns = columns_from_initial(model.columns, initial, sequences.table.columns)
    found = read_columns(columns, table, [names["state"]], given, weight)
    emissions = own_factors(found.blocks, emission_given(names))
    sequences = with_lags(sequences, emissions)
    labels, domain = read_states(y)
    if initial is not None:
        labels, domain = _states_of_initial(model, initial, labels, domain)
    n_more, known = n_unnamed(model, domain), labels is not None and len(labels) > 0 and (labels >= 0).all()
    if known and n_more:
        raise _too_few_states(model, domain)
    model._check_prior(emissions)
    if labels is not None and not n_more:
        Topology.of(model, domain.levels).refuse_steps(labels, sequences.offsets, sequences.gaps)
    whole = (
        sequences.gaps is None and not rows_with_missing(sequences.table, emissions).any()
    )  # silent steps have states, too
    if known and whole and not mixed:
        assert labels is not None
        tally, climbed = _count(model, sequences, labels, domain, weight, names, emissions), None
    else:
        from tallybayes.models.hmm.fitting.baum_welch import fit_baum_welch

        tally, climbed = fit_baum_welch(model, sequences, labels, domain, weight, names, emissions, initial)
    model._factor_names, model._dropped_columns = names, found.dropped_columns
    model._frame_library = frame_kind(X[0] if isinstance(X, list | tuple) and len(X) else X)
    return model._set_tally(tally, climbed)


def _learn_there(model: HiddenMarkovModel, steps: DatabaseSteps) -> bool:
    """Learn from steps that a database counts; False where it cannot."""
    names, found = steps.columns_of(model)
    emissions = own_factors(found.blocks, (names["state"],))
    model._check_prior(emissions)
    tally = steps.counted(model, names, emissions)
    if tally is None:
        return False
    states = tally.domains[names["state"]]
    if n_unnamed(model, states):
        raise _too_few_states(model, states)
    Topology.of(model, states.levels).refuse_counted(tally[names["start"]], tally[names["to"]])
    model._factor_names, model._dropped_columns, model._frame_library = names, found.dropped_columns, None
    model._set_tally(tally)
    return True


def _too_few_states(model: HiddenMarkovModel, domain: Domain) -> DataError:
    return DataError(
        f"n_states is {model.n_states!r}, but every step has a state and these show {len(domain.levels)}.\n"
        "    Leave n_states out, or leave some steps without their state."
    )


def partial_fit(
    model: H,
    X: Rows,
    y: Labels,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    sample_weight: SampleWeights = None,
) -> H:
    """Count more labeled sequences; new states and labels may appear.

    Parameters
    ----------
    X, y, lengths, sequence, order, sample_weight
        As for `fit`; every step has its state.

    Returns
    -------
    self
    """
    if not hasattr(model, "tally_"):
        return model.fit(X, y, lengths, sequence=sequence, order=order, sample_weight=sample_weight)
    model._require_counts("adding sequences")
    return model._set_tally(model.tally_ + _count_labeled(model, X, y, lengths, sequence, order, sample_weight))


@with_receipt
def forget(
    model: H,
    X: Rows,
    y: Labels,
    lengths: npt.ArrayLike | None = None,
    *,
    sequence: str | None = None,
    order: str | None = None,
    sample_weight: SampleWeights = None,
) -> H:
    """Take labeled sequences out again, exactly.

    Parameters
    ----------
    X, y, lengths, sequence, order, sample_weight
        Sequences that were learned, as for `fit`.

    Returns
    -------
    self
    """
    check_is_fitted(model, "tally_")
    model._require_counts("taking sequences out")
    return model._set_tally(model.tally_ - _count_labeled(model, X, y, lengths, sequence, order, sample_weight))


def fit_tally(model: H, tally: Tally) -> H:
    """Learn from a tally counted elsewhere: by another model, in a file or a shard.

    Parameters
    ----------
    tally : Tally
        As a fitted `HiddenMarkovModel` has it, whatever its columns are called; with ``end_state``, its last factor
        is p(end | state).

    Returns
    -------
    self
    """
    model._check_settings()
    model._check_prior(model._factors_with_prior(tally))
    model._factor_names = names_in(tally, model.end_state)
    return model._set_tally(tally)


def open_labeled(X: Any, y: Any, lengths: Any, sequence: Any, order: Any) -> tuple[Sequences, Any]:
    """The sequences without the column of their states, and the states."""
    sequences = open_sequences(X, lengths, sequence, order)
    if y is None:
        return sequences, None
    labels = open_labels(y, sequences, X)
    if isinstance(y, str):
        sequences = sequences._replace(table=sequences.table.without(y))
    return sequences, labels


def read_states(y: Any) -> tuple[np.ndarray | None, Domain]:
    """The states as codes, −1 where unknown."""
    if y is None:
        return None, Domain([], "state", is_sorted=True)
    found, (local,) = Table({"state": y}).levels(["state"], lambda _: True)
    codes = np.asarray(found.columns[0]).astype(np.int64)
    used = np.unique(codes[codes >= 0])
    domain = Domain([local.levels[k] for k in used], "state", is_sorted=True)
    where = np.full(len(local.levels) + 1, -1)
    where[used] = domain.positions_of([local.levels[k] for k in used])
    return where[codes], domain


def _states_of_initial(
    model: HiddenMarkovModel, initial: Any, labels: np.ndarray | None, domain: Domain
) -> tuple[np.ndarray | None, Domain]:
    """The states as codes among those of the model that EM starts from."""
    states = Domain(initial._estimated_hmm.states.levels, "state", is_sorted=True)
    if model.n_states is not None:
        check_n_groups(len(states.levels), "states", "n_states", model.n_states)
    unknown = [level for level in domain.levels if level not in states.index]
    if unknown:
        raise LabelError.unseen(unknown[0], "state", states.levels)
    return None if labels is None else np.append(states.positions_of(domain.levels), -1)[labels], states


def n_unnamed(model: HiddenMarkovModel, domain: Domain) -> int:
    """How many states there are besides those that have labels."""
    n_named = len(domain.levels)
    if model.n_states is None:
        if not n_named:
            raise DataError("no step has a state, so how many there are is not known.\n    Pass n_states.")
        return 0
    given: Any = model.n_states
    if not is_integer_at_least(given, max(n_named, 1)):
        hint = "Families are given as columns=." if isinstance(given, Family | Mapping) else ""
        raise DataError.wrong_type("n_states", repr(given), f"a whole number of at least {max(n_named, 1)}", hint)
    return int(given) - n_named


def _count_labeled(
    model: HiddenMarkovModel, X: Any, y: Any, lengths: Any, sequence: Any, order: Any, sample_weight: Any
) -> Tally:
    """The tally of sequences as they are given; refused where a step lacks its state."""
    source = open_source(X)
    with nullcontext() if source is None else source.snapshot():
        alone = model.gaps is not None or "component" in model._factor_names
        there = None if alone else steps_there(X, y, lengths, sequence, order, sample_weight)
        emissions = model._factors_with_prior(model.tally_)
        tally = None if there is None else there.counted(model, model._factor_names, emissions)
    if tally is not None:
        return tally
    sequences, y = open_labeled(X, y, lengths, sequence, order)
    sequences = sequences.with_gaps(model.gaps)
    if sequences.gaps is not None:
        raise LabelError(
            "silent steps have no state, so that sequences with gaps cannot be counted one by one.\n"
            "    Use fit on all sequences."
        )
    labels, domain = read_states(y)
    if labels is None or (labels < 0).any():
        where = "" if labels is None else f" ({int((labels < 0).sum())} of {len(labels)} are missing)"
        raise LabelError(
            f"every step needs its state here{where}; without, the model has to be learned as a whole.\n"
            "    Use fit on all sequences."
        )
    return count_more(model, sequences, labels, domain, step_weights(sample_weight, sequences))


def count_more(
    model: HiddenMarkovModel, sequences: Sequences, labels: np.ndarray, domain: Domain, weight: np.ndarray | None
) -> Tally:
    """The tally of labeled sequences that are added to others, or taken out of them."""
    emissions = model._factors_with_prior(model.tally_)
    sequences = with_lags(sequences, emissions)
    if "component" in model._factor_names:
        raise LabelError(
            "which component of its state a step is of is not known, so that sequences cannot be counted one by one.\n"
            "    Use fit on all sequences."
        )
    if model.allowed_transitions is not None or model.start is not None:
        states = model.tally_.domains[model.tally_.schema.domain(model._factor_names["state"])].union(domain)
        structure = Topology.of(model, states.levels)
        structure.refuse_steps(states.positions_of(domain.levels)[labels], sequences.offsets)
    return _count(model, sequences, labels, domain, weight, model._factor_names, emissions, model.tally_)


def _count(
    model: HiddenMarkovModel,
    sequences: Sequences,
    labels: np.ndarray,
    domain: Domain,
    weight: np.ndarray | None,
    names: dict[str, str],
    emissions: list[Factor],
    like: Tally | None = None,
) -> Tally:
    """The tally of labeled sequences: starts, transitions, ends and steps."""
    first, last, after = sequences.places()
    per_step = None if weight is None else np.repeat(weight, sequences.lengths)
    schema = state_schema(names)

    def counted(part: str, steps: np.ndarray, given: dict[str, np.ndarray]) -> Tally:
        table = Table({"row": np.zeros(len(steps))})
        for name, codes in {names[part]: labels[steps], **given}.items():
            table = table.with_codes(name, codes, domain)
        factor = Factor(names[part], tuple(given), Categorical())
        return count(table, [factor], weight=None if per_step is None else per_step[steps], schema=schema)

    tally = counted("start", first, {}) | counted("to", after, {names["from"]: labels[after - 1]})
    steps, factors = sequences.table.with_codes(names["state"], labels, domain), list(emissions)
    if model.end_state:
        is_last = np.zeros(len(labels))
        is_last[last] = 1.0
        steps = steps.with_column(names["end"], is_last)
        factors.append(Factor(names["end"], (names["state"],), Bernoulli()))
    anchors = None
    if like is not None:
        chosen = [place for place, factor in enumerate(like.factors) if factor in factors]
        anchors = Tally(
            [like.factors[k] for k in chosen], [like.statistics[k] for k in chosen], like.domains, like.schema
        )
        factors = list(anchors.factors)
    return tally | count(steps, factors, weight=per_step, schema=schema, like=anchors)
