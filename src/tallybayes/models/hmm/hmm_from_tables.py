"""Hidden Markov models with user-specified parameters: fixed, or as the means of a prior."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import take_groups
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
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import Columns

if TYPE_CHECKING:
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

Levels = Iterable[Any] | Mapping[Any, Iterable[Any]] | None
Part = tuple[Factor, ParameterBlock]


def from_tables(
    cls: type[HiddenMarkovModel],
    *,
    start: str | Mapping[Any, float] | npt.ArrayLike,
    transition: Mapping[Any, Any] | npt.ArrayLike,
    emission: Mapping[Any, Any] | Iterable[Any],
    end: Mapping[Any, float] | npt.ArrayLike | None,
    component: Mapping[Any, Any] | Iterable[Any] | None,
    states: Iterable[Hashable] | None,
    columns: Columns | None,
    levels: Levels,
    strength: float | None,
    options: dict[str, Any],
) -> HiddenMarkovModel:
    """Return a model with fixed parameters or, if `strength` is given, with a prior of these means and no counts."""
    labels = read_labels(transition if _is_stationary(start) else start, states, "states")
    table = read_table(transition, labels, labels, "transition")
    if _is_stationary(start):
        first = stationary_distribution(table.copy())
        options["start"] = "stationary"
    else:
        first = read_probabilities(start, labels, "start")
    components = None if component is None else read_components(component, labels)
    blocks = _emission_blocks(emission, labels, columns, levels, components)
    if components is not None:
        options["components"] = components.setting
        components = components if components.most > 1 else None
    parts = PARTS if components is None else (*PARTS, "component")
    names = {part: free_name(part, [name for block in blocks for name in block.columns]) for part in parts}
    domain = Domain(labels, names["state"], declared=labels, is_sorted=True)
    order = [labels.index(state) for state in domain.levels]
    first = first[order]
    table = table[np.ix_(order, order)]
    for state, row in zip(domain.levels, table, strict=True):
        check_parameters(Categorical(), {"probability": row}, [len(labels)], f"transition, {state!r},")
    factors = [_transition_part(names, table, labels), *_emission_parts(names, blocks, order, components)]
    domains = {names["state"]: domain}
    if components is not None:
        domains[names["component"]] = component_domain(names["component"], components.most)
        factors.append(_component_part(names, components, order))
    if end is not None:
        factors.append(_end_part(names, read_row(end, labels, "end", absent=None)[order]))
    if strength is not None:
        options.setdefault("warm_start", True)  # EM starts from the given parameters
    model = cls(len(labels), families_of(blocks), end_state=end is not None, **options)
    model._check_settings()
    model._factor_names = names
    tally, fixed = tally_and_parameters(
        Factor(names["start"], (), Categorical()), first, factors, domains, state_schema(names)
    )
    topology = Topology.of(model, domain.levels, complete=True)
    topology.check_zeros(first, table, "the model", "probability")
    scorers = _scorers(topology, tally.factors, fixed, len(blocks))
    topology.check_tied(scorers[len(scorers) - len(blocks) :], "emission")
    if strength is None:
        return model._set_tally(tally)._set_fixed_parameters(fixed)
    model.prior = _prior_with_means(topology, scorers, tally.factors[2 : 2 + len(blocks)], check_strength(strength))
    return model._set_tally(tally)


def _is_stationary(start: object) -> bool:
    """Return whether `start` is "stationary"."""
    return isinstance(start, str) and start == "stationary"


# ---- Parts ----------------------------------------------------------------------------------------------------------


def _transition_part(names: dict[str, str], table: np.ndarray, labels: list[Any]) -> Part:
    """Return the factor p(next state | state) with its table."""
    factor = Factor(names["to"], (names["from"],), Categorical())
    return factor, ParameterBlock((), factor.family, {"probability": table}, [tuple(labels)])


def _emission_parts(
    names: dict[str, str], blocks: list[ParameterBlock], order: list[int], components: StatedComponents | None
) -> list[Part]:
    """Return the emission factors, with their parameters in the order of the sorted states."""
    positions = order if components is None else components.unflatten_components[order]
    parts = []
    for block in blocks:
        numbers = {name: values[positions] for name, values in block.numbers.items()}
        parts.append((Factor(block.columns, emission_given(names), block.family), block._replace(numbers=numbers)))
    return parts


def _component_part(names: dict[str, str], components: StatedComponents, order: list[int]) -> Part:
    """Return the factor p(component | state) with its table."""
    factor = Factor(names["component"], (names["state"],), Categorical())
    table = {"probability": components.table[order]}
    return factor, ParameterBlock((), factor.family, table, [tuple(range(components.most))])


def _end_part(names: dict[str, str], end: np.ndarray) -> Part:
    """Return the factor p(end | state) with its probabilities."""
    factor = Factor(names["end"], (names["state"],), Bernoulli())
    return factor, ParameterBlock((), factor.family, {"probability": end[:, None]}, [])


def _scorers(
    topology: Topology, factors: Sequence[Factor], fixed: Sequence[Any], n_emissions: int
) -> list[FactorScorer]:
    """Return the fixed parameters in the order of `EstimatedHMM.pairs`: the emissions are last."""
    last = 2 + n_emissions
    order = [0, 1, *reversed(range(last, len(factors))), *range(2, last)]  # end, then component
    scorers = [FactorScorer(factors[k], fixed[k], False, NO_COLUMNS) for k in order]
    components = topology.components
    if components is not None:
        position = (components.owner, components.number)
        for number in range(len(scorers) - n_emissions, len(scorers)):
            scorer = scorers[number]
            scorers[number] = scorer._replace(parameters=take_groups(scorer.parameters, position))
    return scorers


def _prior_with_means(
    topology: Topology, scorers: Sequence[FactorScorer], emissions: Sequence[Factor], strength: float
) -> dict[str, Any]:
    """Return the prior with these parameters as means; each row of each table has the given strength."""
    priors = [_distribution_with_mean(scorer, strength) for scorer in topology.reduce_parameters(scorers)]
    prior: dict[str, Any] = dict(zip(topology.tables, priors, strict=False))
    of_columns = zip(emissions, priors[len(topology.tables) :], strict=True)
    prior["emission"] = {f.columns if len(f.columns) > 1 else f.columns[0]: value for f, value in of_columns}
    return prior


def _distribution_with_mean(scorer: FactorScorer, strength: float) -> ParameterDistribution:
    """Return the conjugate distribution whose mean is these parameters."""
    table = arrays_of(scorer.parameters)[0]  # a restricted transition matrix is flat
    groups = table.shape[:1] if table.ndim > 1 else ()
    return prior_from_parameters(scorer.factor, scorer.parameters, np.full(groups, strength))


# ---- Emission parameters --------------------------------------------------------------------------------------------


def _emission_blocks(
    emission: Mapping[Any, Any] | Iterable[Any],
    states: list[Any],
    columns: Columns | None,
    levels: Levels,
    components: StatedComponents | None,
) -> list[ParameterBlock]:
    """Return the parameters of every column: of a mapping from columns, or of a single column."""
    value: Any = nested_mapping(emission)
    if not isinstance(value, Mapping) or set(map(str, value)) & set(map(str, states)):
        name: Name = 0
        if isinstance(columns, Mapping) and len(columns) == 1:
            name, columns = next(iter(columns.items()))
        if isinstance(levels, Mapping):
            levels = levels.get(name)
        if levels is None and columns is None and not isinstance(value, Mapping) and components is None:
            if np.ndim(value) != 2:
                raise DataError.wrong_type(
                    "emission", f"of {np.ndim(value)} axes", "a row of probabilities for every state"
                )
            levels = range(np.shape(value)[1])
        value = {name: value}
    if components is None:
        return read_columns_stated(value, states, columns, levels)
    flat = {name: components.flatten_components(part, f"the emission of {name!r}") for name, part in value.items()}
    return read_columns_stated(flat, components.names, columns, levels)
