"""Hidden Markov models from tables that are known: without sequences, or as a prior worth so many steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.stated import stated
from tallybayes.models.chains.names import PARTS, state_schema
from tallybayes.models.chains.stationary_start import stationary_shares
from tallybayes.models.chains.structure import Structure, arrays_of
from tallybayes.models.fitted.scoring import NOTHING, Scored
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.stated import (
    Stated,
    belief_of,
    by_label,
    check_strength,
    families_of,
    read_columns_stated,
    read_labels,
    read_probabilities,
    read_row,
    read_table,
    tally_and_parameters,
)
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor

if TYPE_CHECKING:
    from tallybayes.models.chains.hidden_markov import HiddenMarkovModel


def from_tables(
    cls: type[HiddenMarkovModel],
    /,
    start: Any,
    transition: Any,
    emission: Any,
    end: Any = None,
    *,
    states: Any = None,
    columns: Any = None,
    levels: Any = None,
    strength: float | None = None,
    **options: Any,
) -> HiddenMarkovModel:
    """A model whose tables are given, not learned.

    It answers whatever needs no counts; what does (`partial_fit`, `forget`, ``+``, evidence …) raises `NoCountsError`.

    Parameters
    ----------
    start : p(first state), as a mapping, series or array; or "stationary", where the transitions settle
    transition : p(next state | state), as a mapping of mappings, a data frame (a row for every state) or an array
        A state that a mapping leaves out has 0. Where `end` is given, of steps that the sequence goes on after.
    emission : p(step | state), by state
        ``{label: probability}``, or numbers by name such as ``{"mean": …, "variance": …}`` or ``{"rate": …}``; as a
        data frame or an array, too. Of steps with several columns, a mapping from column to these.
    end : p(end | state), as a mapping, series or array, optional
    states : sequence of labels, optional
        The states of arrays, 0, 1, … if left out.
    columns : Family, or mapping from columns to families, optional
        Where a family does not follow from the names of the numbers.
    levels : sequence of labels, or mapping from column to them, optional
        For arrays of probabilities; 0, 1, … if left out.
    strength : float, optional
        Makes it a prior instead: a model of no sequences yet, in which every line of every table is worth so many
        observations, to go on with by `partial_fit` or to be fitted: EM sets out from the tables (``warm_start``),
        whose states it keeps, and climbs the posterior under them.
    **options
        Of the constructor.

    Returns
    -------
    HiddenMarkovModel
        ``fit(X, initial=model)`` of another one climbs from there.

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
    if isinstance(start, str) and start == "stationary":
        named = read_labels(transition, states, "states")
        begun = stationary_shares(read_table(transition, named, named, "transition"))
        start, options["start"] = dict(zip(named, begun.tolist(), strict=True)), "stationary"
    named = read_labels(start, states, "states")
    found = _columns(emission, named, columns, levels)
    names = {part: free_name(part, [name for one in found for name in one.columns]) for part in PARTS}
    domain = Domain(named, names["state"], declared=named, ordered=True)
    order = [named.index(state) for state in domain.levels]
    first = read_probabilities(start, named, "start")[order]
    moves = read_table(transition, named, named, "transition")[np.ix_(order, order)]
    for state, row in zip(domain.levels, moves, strict=True):
        stated(Categorical(), {"probability": row}, [len(named)], f"transition, {state!r},")
    found = [one._replace(numbers={name: part[order] for name, part in one.numbers.items()}) for one in found]
    to = Factor(names["to"], (names["from"],), Categorical())
    parts = [(to, Stated((), to.family, {"probability": moves}, [tuple(named)]))]
    parts += [(Factor(one.columns, (names["state"],), one.family), one) for one in found]
    if end is not None:
        last = Factor(names["end"], (names["state"],), Bernoulli())
        ends = read_row(end, named, "end", absent=None)[order]
        parts.append((last, Stated((), last.family, {"probability": ends[:, None]}, [])))
    if strength is not None:
        options.setdefault("warm_start", True)  # such a prior knows its states, so EM begins where it says
    model = cls(len(named), families_of(found), end_state=end is not None, **options)
    model._check_settings()
    model._names = names
    tally, given = tally_and_parameters(
        Factor(names["start"], (), Categorical()), first, parts, {names["state"]: domain}, state_schema(names)
    )
    structure = Structure.of(model, domain.levels, whole=True)
    structure.refuse_parameters(first, moves, "the table of the chain")
    order = [0, 1, *([len(tally.factors) - 1] if end is not None else []), *range(2, 2 + len(found))]
    known = [Scored(tally.factors[k], given[k], False, NOTHING) for k in order]
    structure.refuse_untied(known[len(known) - len(found) :], "emission")
    if strength is None:
        return model._adopt(tally)._state(given)
    worth = check_strength(strength)
    beliefs = [_worth(one, worth) for one in structure.points(known)]
    model.prior = dict(zip(structure.parts, beliefs, strict=False))
    emitted = zip(tally.factors[2 : 2 + len(found)], beliefs[len(structure.parts) :], strict=True)
    model.prior |= {"emission": {f.columns if len(f.columns) > 1 else f.columns[0]: belief for f, belief in emitted}}
    return model._adopt(tally)


def _worth(one: Scored, rows: float) -> Any:
    """The belief about a part of the chain, or an emission, every line of which is worth so many rows."""
    table = arrays_of(one.parameters)[0]  # what is allowed of the transitions is flat
    return belief_of(one.factor, one.parameters, np.full(table.shape[:1] if table.ndim > 1 else (), rows))


def _columns(emission: Any, states: list[Any], columns: Any, levels: Any) -> list[Stated]:
    """What is known of every column of a step: one without a name, or those of a mapping."""
    emission = by_label(emission)
    if isinstance(emission, Mapping) and not set(map(str, emission)) & set(map(str, states)):
        return read_columns_stated(emission, states, columns, levels)
    if isinstance(columns, Mapping) and len(columns) == 1:
        name, columns = next(iter(columns.items()))
    else:
        name = 0
    if isinstance(levels, Mapping):
        levels = levels.get(name)
    if levels is None and columns is None and not isinstance(emission, Mapping):
        if np.ndim(emission) != 2:
            raise DataError.wrong_type(
                "emission", f"of {np.ndim(emission)} axes", "a row of probabilities for every state"
            )
        levels = range(np.shape(emission)[1])
    return read_columns_stated({name: emission}, states, columns, levels)
