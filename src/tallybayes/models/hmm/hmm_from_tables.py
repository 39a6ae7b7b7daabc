"""Hidden Markov models with user-specified parameters: fixed, or as the means of a prior."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.categorical import Categorical
from tallybayes.models.hmm.chain_names import ChainNames
from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution
from tallybayes.models.hmm.hmm_options import TopologyOptions
from tallybayes.models.hmm.mixture_emissions import MixtureEmissions, component_domain, read_components
from tallybayes.models.hmm.topology import Topology, arrays_of
from tallybayes.models.inputs.parameter_input import (
    ParameterBlock,
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
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns

Levels = Iterable[Any] | Mapping[Any, Iterable[Any]] | None


class StatedTables(NamedTuple):
    """User-specified parameters of a hidden Markov model.

    Attributes
    ----------
    tally : Tally
        Without counts.
    parameters : tuple
        The parameters of every factor of the tally.
    names : ChainNames
    options : dict
        The parameters of the constructor that follow from the tables.
    """

    tally: Tally
    parameters: tuple[Any, ...]
    names: ChainNames
    options: dict[str, Any]

    def estimated(self, options: TopologyOptions) -> EstimatedHMM:
        """Return the model with a topology. Raise DataError if the parameters do not fit it."""
        topology = Topology.of(options, self.tally.domain(self.names.state).levels, complete=True)
        hmm = EstimatedHMM(self.tally, self.names, topology, "mle", None, "missing", self.parameters)
        start, transition, *others = hmm.given_scorers
        topology.check_zeros(start.parameters.table, transition.parameters.table, "the model", "probability")
        topology.check_tied(others[len(hmm.chain_factors) - 2 :], "emission")
        return hmm


def read_tables(
    start: str | Mapping[Any, float] | npt.ArrayLike,
    transition: Mapping[Any, Any] | npt.ArrayLike,
    emission: Mapping[Any, Any] | Iterable[Any],
    end: Mapping[Any, float] | npt.ArrayLike | None,
    component: Mapping[Any, Any] | Iterable[Any] | None,
    states: Iterable[Hashable] | None,
    columns: Columns | None,
    levels: Levels,
) -> StatedTables:
    """Return the parameters as the user gives them to `HiddenMarkovModel.from_tables`."""
    options: dict[str, Any] = {"end_state": end is not None}
    is_stationary = isinstance(start, str) and start == "stationary"
    labels = read_labels(transition if is_stationary else start, states, "states")
    table = read_table(transition, labels, labels, "transition")
    if is_stationary:
        first = stationary_distribution(table.copy())
        options["start"] = "stationary"
    else:
        first = read_probabilities(start, labels, "start")
    components, weights = (None, np.zeros(0)) if component is None else read_components(component, labels)
    blocks = _emission_blocks(emission, labels, columns, levels, components)
    options |= {"n_states": len(labels), "columns": families_of(blocks)}
    if components is not None:
        options["components"] = components.setting
        components = components if components.most > 1 else None
    names = ChainNames.unused([name for block in blocks for name in block.columns], components=components is not None)
    domains = {names.state: Domain(labels, names.state, declared=labels, is_sorted=True)}
    order = [labels.index(state) for state in domains[names.state].levels]  # states are sorted
    table = table[np.ix_(order, order)]
    for state, row in zip(domains[names.state].levels, table, strict=True):
        check_parameters(Categorical(), {"probability": row}, [len(labels)], f"transition, {state!r},")
    tables = [table]
    if end is not None:
        tables.append(read_row(end, labels, "end", absent=None)[order][:, None])
    positions = np.array(order)
    if components is not None and names.component is not None:
        domains[names.component] = component_domain(names.component, components.most)
        tables.append(components.counts(weights).table[order])
        positions = components.positions[order]
    of_start, *chain = names.factors(ends=end is not None)
    parts = [(factor, _part(factor, table)) for factor, table in zip(chain, tables, strict=True)]
    emissions = [(Factor(block.columns, names.given, block.family), _in_order(block, positions)) for block in blocks]
    of_tally = [*parts[:1], *emissions, *reversed(parts[1:])]
    tally, parameters = tally_and_parameters(of_start, first[order], of_tally, domains, names.schema)
    return StatedTables(tally, parameters, names, options)


def _part(factor: Factor, table: np.ndarray) -> ParameterBlock:
    """Return the parameters of transitions, ends or components."""
    levels = [tuple(range(table.shape[1]))] if factor.family.cell_type == "codes" else []
    return ParameterBlock((), factor.family, {"probability": table}, levels)


def _in_order(block: ParameterBlock, positions: np.ndarray) -> ParameterBlock:
    """Return the parameters of the states or components at some positions."""
    numbers = {name: values[positions] for name, values in block.numbers.items()}
    return ParameterBlock(block.columns, block.family, numbers, block.levels)


def prior_with_means(hmm: EstimatedHMM, strength: float) -> dict[str, Any]:
    """Return the prior with the fixed parameters as means; each row of each table has the given strength."""
    priors = [_distribution_with_mean(scorer, strength) for scorer in hmm.topology.reduce_parameters(hmm.given_scorers)]
    prior: dict[str, Any] = dict(zip(hmm.parts, priors, strict=False))
    of_columns = zip(hmm.emission_factors, priors[len(hmm.parts) :], strict=True)
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
    components: MixtureEmissions | None,
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
    flat = {name: components.flatten_values(part, f"the emission of {name!r}") for name, part in value.items()}
    names = components.names if components.most > 1 else states
    return read_columns_stated(flat, names, columns, levels)
