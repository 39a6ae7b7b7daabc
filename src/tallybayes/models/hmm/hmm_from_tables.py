"""Hidden Markov models from tables that are known: without sequences, or as a prior worth so many steps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.models.hmm.factor_names import PARTS, emission_given, state_schema
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution
from tallybayes.models.hmm.mixture_emissions import StatedComponents, component_domain, read_components
from tallybayes.models.hmm.topology import Topology, arrays_of
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.parameter_input import (
    ParameterBlock,
    check_strength,
    families_of,
    nested_mapping,
    prior_from_parameters,
    read_columns_stated,
    read_labels,
    read_probabilities,
    read_row,
    read_table,
    tally_and_parameters,
)
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.typing import Columns

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel


def from_tables(
    cls: type[HiddenMarkovModel],
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
        Where states are mixtures, a list of such for every state: one for each of its components.
    end : p(end | state), as a mapping, series or array, optional
    component : p(component | state), a list of numbers for every state, optional
        Where states are mixtures.
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
        begun = stationary_distribution(read_table(transition, named, named, "transition"))
        start, options["start"] = dict(zip(named, begun.tolist(), strict=True)), "stationary"
    named = read_labels(start, states, "states")
    mixtures = None if component is None else read_components(component, named)
    found = _columns(emission, named, columns, levels, mixtures)
    if mixtures is not None:
        options["components"], mixtures = mixtures.setting, mixtures if mixtures.most > 1 else None
    own = PARTS if mixtures is None else (*PARTS, "component")
    names = {part: free_name(part, [name for one in found for name in one.columns]) for part in own}
    domain = Domain(named, names["state"], declared=named, is_sorted=True)
    order = [named.index(state) for state in domain.levels]
    first = read_probabilities(start, named, "start")[order]
    moves = read_table(transition, named, named, "transition")[np.ix_(order, order)]
    for state, row in zip(domain.levels, moves, strict=True):
        check_parameters(Categorical(), {"probability": row}, [len(named)], f"transition, {state!r},")
    where = order if mixtures is None else mixtures.unflatten_components[order]
    found = [one._replace(numbers={name: part[where] for name, part in one.numbers.items()}) for one in found]
    to = Factor(names["to"], (names["from"],), Categorical())
    parts = [(to, ParameterBlock((), to.family, {"probability": moves}, [tuple(named)]))]
    parts += [(Factor(one.columns, emission_given(names), one.family), one) for one in found]
    domains = {names["state"]: domain}
    if mixtures is not None:
        shares, name = Factor(names["component"], (names["state"],), Categorical()), names["component"]
        domains[name] = component_domain(name, mixtures.most)
        table = {"probability": mixtures.table[order]}
        parts.append((shares, ParameterBlock((), shares.family, table, [tuple(range(mixtures.most))])))
    if end is not None:
        last = Factor(names["end"], (names["state"],), Bernoulli())
        ends = read_row(end, named, "end", absent=None)[order]
        parts.append((last, ParameterBlock((), last.family, {"probability": ends[:, None]}, [])))
    if strength is not None:
        options.setdefault("warm_start", True)  # such a prior knows its states, so EM begins where it says
    model = cls(len(named), families_of(found), end_state=end is not None, **options)
    model._check_settings()
    model._factor_names = names
    tally, given = tally_and_parameters(
        Factor(names["start"], (), Categorical()), first, parts, domains, state_schema(names)
    )
    structure = Topology.of(model, domain.levels, whole=True)
    structure.refuse_parameters(first, moves, "the table of the chain")
    n_emitted = 2 + len(found)
    order = [0, 1, *reversed(range(n_emitted, len(tally.factors))), *range(2, n_emitted)]  # the end, then components
    known = [FactorScorer(tally.factors[k], given[k], False, NO_COLUMNS) for k in order]
    if structure.components is not None:
        place = (structure.components.owner, structure.components.number)
        known[-len(found) :] = [
            one._replace(parameters=one.family.take(one.parameters, place)) for one in known[-len(found) :]
        ]
    structure.refuse_untied(known[len(known) - len(found) :], "emission")
    if strength is None:
        return model._set_tally(tally)._set_fixed_parameters(given)
    model.prior = _prior_of_tables(structure, known, tally.factors[2:n_emitted], check_strength(strength))
    return model._set_tally(tally)


def _prior_of_tables(
    structure: Topology, known: Sequence[FactorScorer], emitted: Sequence[Factor], rows: float
) -> dict[str, Any]:
    """The prior under which the tables are expected, every line of them worth so many rows."""
    beliefs = [_worth(one, rows) for one in structure.points(known)]
    prior: dict[str, Any] = dict(zip(structure.parts, beliefs, strict=False))
    of_columns = zip(emitted, beliefs[len(structure.parts) :], strict=True)
    prior["emission"] = {f.columns if len(f.columns) > 1 else f.columns[0]: belief for f, belief in of_columns}
    return prior


def _worth(one: FactorScorer, rows: float) -> Any:
    """The belief about a part of the chain, or an emission, every line of which is worth so many rows."""
    table = arrays_of(one.parameters)[0]  # what is allowed of the transitions is flat
    return prior_from_parameters(one.factor, one.parameters, np.full(table.shape[:1] if table.ndim > 1 else (), rows))


def _columns(
    emission: Any, states: list[Any], columns: Any, levels: Any, mixtures: StatedComponents | None
) -> list[ParameterBlock]:
    """What is known of every column of a step: one without a name, or those of a mapping."""
    emission = nested_mapping(emission)
    if isinstance(emission, Mapping) and not set(map(str, emission)) & set(map(str, states)):
        return _read(emission, states, columns, levels, mixtures)
    if isinstance(columns, Mapping) and len(columns) == 1:
        name, columns = next(iter(columns.items()))
    else:
        name = 0
    if isinstance(levels, Mapping):
        levels = levels.get(name)
    if levels is None and columns is None and not isinstance(emission, Mapping) and mixtures is None:
        if np.ndim(emission) != 2:
            raise DataError.wrong_type(
                "emission", f"of {np.ndim(emission)} axes", "a row of probabilities for every state"
            )
        levels = range(np.shape(emission)[1])
    return _read({name: emission}, states, columns, levels, mixtures)


def _read(
    value: Mapping[Any, Any], states: list[Any], columns: Any, levels: Any, mixtures: StatedComponents | None
) -> list[ParameterBlock]:
    """What is stated of every column, in every state or, where states are mixtures, in every component."""
    if mixtures is None:
        return read_columns_stated(value, states, columns, levels)
    in_a_row = {name: mixtures.flatten_components(part, f"the emission of {name!r}") for name, part in value.items()}
    return read_columns_stated(in_a_row, mixtures.names, columns, levels)
