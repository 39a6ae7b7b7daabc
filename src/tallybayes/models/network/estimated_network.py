"""What follows from the counts of a Bayesian network: its nodes, tables and parameters, and how well they fit."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.missing_indicators import indicator_name
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import DataError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.prior_rules import PriorRule
from tallybayes.models.inputs.column_priors import check_priors, prior_for
from tallybayes.models.inspection.labeled_parameters import LabeledFactor, within_of
from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.continuous_components import ContinuousComponent, components_of, joint_gaussian_of
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork


class EstimatedNode(NamedTuple):
    """A node as it was counted: its factor, p(node | given), and the statistics of that.

    A node that is linear in measured parents, its inputs, has the moments of these and of itself together.
    """

    factor: Factor
    statistics: Any
    inputs: tuple[Name, ...] = ()

    @property
    def family(self) -> Family:
        """What the node's values mean."""
        return self.factor.family

    @property
    def is_label(self) -> bool:
        """Whether the node has levels; otherwise it is measured, and no label depends on it."""
        return self.family.cell_type == "codes"

    @property
    def counted(self) -> Any:
        """The statistics as they are estimated from: of labels by the axes of the parents, of others with one axis."""
        return self.statistics if self.is_label else self.flat()

    def flat(self) -> Any:
        """The statistics with one axis of groups."""
        n_groups = math.prod(self.statistics.given_shape)
        return self.statistics.reshape_groups((n_groups,))

    def own(self) -> Any:
        """As `flat`, of the node alone, without its inputs."""
        return self.flat().columns(np.array([len(self.inputs)])) if self.inputs else self.flat()


def is_line(factor: Factor) -> bool:
    """Whether a factor is of its last column, given the others as well as the labels."""
    return factor.family.is_conditional and len(factor.columns) > 1


def parents_in(factor: Factor) -> dict[Name, tuple[Name, ...]]:
    """The parents of every node of a factor, labels first."""
    if is_line(factor):
        return {factor.columns[-1]: (*factor.given, *factor.columns[:-1])}
    return dict.fromkeys(factor.columns, factor.given)


def nodes_of(factors: Sequence[Factor], statistics: Sequence[Any]) -> dict[Name, EstimatedNode]:
    """Every node by itself, from factors that may hold several nodes with the same parents."""
    found: dict[Name, EstimatedNode] = {}
    for factor, counted in zip(factors, statistics, strict=True):
        if is_line(factor):
            *inputs, name = factor.columns
            found[name] = EstimatedNode(Factor(name, factor.given, factor.family), counted, tuple(inputs))
            continue
        for place, name in enumerate(factor.columns):
            one = counted if len(factor.columns) == 1 else counted.columns(np.array([place]))
            found[name] = EstimatedNode(Factor(name, factor.given, factor.family), one)
    return found


@dataclass(frozen=True, eq=False)
class EstimatedNetwork:
    """A network as its counts make it. It never changes: other counts, or another prior, make another one.

    Each part is made when it is first asked for.
    """

    tally: Tally
    estimate: str
    prior: Any
    given: tuple[Any, ...] | None = None  # parameters that were not learned, but given: of every factor
    readers: Mapping[Name, WordReader] = field(default_factory=dict)  # how nodes are read that are text

    @cached_property
    def graph(self) -> Graph:
        """Who depends on whom."""
        return Graph.read({name: above for factor in self.tally.factors for name, above in parents_in(factor).items()})

    @cached_property
    def nodes(self) -> dict[Name, EstimatedNode]:
        """Every node as it was counted, parents before children."""
        found = nodes_of(self.tally.factors, self.tally.statistics)
        return {node: found[node] for node in self.graph.nodes}

    @cached_property
    def domains(self) -> dict[Name, Domain]:
        """The domain of every node that has labels."""
        return {name: self.tally.domains[str(name)] for name, node in self.nodes.items() if node.is_label}

    @cached_property
    def levels(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every node that has labels, as they are shown, in the order of the tables."""
        return {name: domain.display_levels for name, domain in self.domains.items()}

    @cached_property
    def presence(self) -> dict[Name, Name]:
        """By measured node whose absence is a value: the node that says whether it is there."""
        return {
            name: indicator_name(name)
            for name, node in self.nodes.items()
            if (beside := self.nodes.get(indicator_name(name))) is not None
            and not node.is_label
            and beside.family.is_binary
            and beside.factor.given == node.factor.given
        }

    @cached_property
    def fitted(self) -> EstimatedFactors:
        """Every node after estimating, in the order of `nodes`."""
        nodes = self.nodes.values()
        check_prior(self.prior, [node.factor for node in nodes], self.estimate)
        pairs = [(node.factor, node.counted) for node in nodes]
        if self.given is not None:
            known = {f.columns[-1:]: parameters for f, parameters in zip(self.tally.factors, self.given, strict=True)}
            return EstimatedFactors.from_fixed_parameters(
                pairs, [_one_axis(node, known[node.factor.columns]) for node in nodes]
            )
        return EstimatedFactors(pairs, [self.prior_of(node) for node in nodes], self.estimate)

    def prior_of(self, node: EstimatedNode) -> Any:
        """The prior meant for a node; a tally was seen before, so it updates the default."""
        name = node.factor.columns[0]
        if isinstance(self.prior, BDe):
            levels = {name: domain.levels for name, domain in self.domains.items()}
            return self.prior.concentration(name, node.factor.given, levels) if node.is_label else None
        if isinstance(self.prior, Tally):
            before = self.prior.reindex_like(self.tally)
            seen = nodes_of(before.factors, before.statistics)[name]
            return node.family.resolve_prior(None, node.counted, self.estimate).update(seen.counted)
        if isinstance(self.prior, PriorRule) and not node.is_label:
            return None
        return prior_for(self.prior, node.factor, lambda name: self.domains[name].levels)

    @cached_property
    def tables(self) -> dict[Name, np.ndarray]:
        """p(node | parents) of every node with labels, (*parents, levels); NaN where maximum likelihood has no row."""
        nodes = zip(self.nodes.items(), self.fitted.checked_scorers, strict=True)
        return {name: scored.point.table for (name, node), scored in nodes if node.is_label}

    @cached_property
    def components(self) -> dict[Name, ContinuousComponent]:
        """The measured nodes that arrows link, by the first of each set."""
        inputs = {name: node.inputs for name, node in self.nodes.items() if not node.is_label}
        return components_of(self.graph.nodes, inputs, {name: node.factor.given for name, node in self.nodes.items()})

    @cached_property
    def leaves(self) -> dict[Name, FactorScorer]:
        """Every measured node, ready to score rows in each combination of its parents' levels; linked ones as one."""
        return self.leaves_of(dict(zip(self.nodes, self.fitted.checked_scorers, strict=True)), self._same)

    @cached_property
    def _same(self) -> set[Name]:
        """The nodes with measured parents that are the same in every row: under a prior they carry no information."""
        if self.given is not None or not read_estimate(self.estimate).has_prior:
            return set()
        lines = {name: node.own() for name, node in self.nodes.items() if node.inputs}
        return {
            name for name, own in lines.items() if np.any(own.group_weights()) and len(Gaussian().constant_columns(own))
        }

    def leaves_of(self, scored: Mapping[Name, FactorScorer], same: Collection[Name]) -> dict[Name, FactorScorer]:
        """Return `leaves` for other parameters; constant nodes with continuous parents carry no information."""
        found = {name: scored[name] for name, node in self.nodes.items() if not node.is_label}
        if self.components:
            inputs = {name: node.inputs for name, node in self.nodes.items()}
            for leaf, component in self.components.items():
                one = joint_gaussian_of(component, found, inputs, self.levels, same)
                found = {name: part for name, part in found.items() if name not in component.nodes} | {leaf: one}
        return found

    @cached_property
    def inference(self) -> NetworkInference:
        """The tables, ready for questions."""
        empty = [name for name, levels in self.levels.items() if not levels]
        if empty:
            raise DataError(
                f"no row is left in this network, so {empty[0]!r} has no levels and nothing can be asked.\n"
                "    Learn from rows, or declare levels: tb.Categorical(levels=[...])."
            )
        return self.make_inference(self.tables, self.leaves)

    def make_inference(
        self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, FactorScorer]
    ) -> NetworkInference:
        """These tables and leaves, ready for questions."""
        measured = {name: node for name, node in self.nodes.items() if not node.is_label}
        widths = {name: 1 if node.inputs else node.statistics.n_columns for name, node in measured.items()}
        kept = (widths, self.readers, self.presence)
        return NetworkInference(self.graph, self.domains, tables, leaves, *kept, components=self.components)

    def over(self, tally: Tally) -> EstimatedNetwork:
        """The same over other counts of the same levels, its priors held."""
        other = replace(self, tally=tally)
        pairs = [(node.factor, node.counted) for node in other.nodes.values()]
        return other._estimated(self.fitted.with_statistics(pairs))

    def scaled(self, strength: float) -> EstimatedNetwork:
        """The same under priors worth so many times as much."""
        return replace(self)._estimated(self.fitted.scaled(strength))

    def _estimated(self, fitted: EstimatedFactors) -> EstimatedNetwork:
        self.__dict__["fitted"] = fitted
        return self

    def parent_configurations(self, parents: tuple[Name, ...]) -> list[dict[Name, Any]]:
        """The combinations of the parents' levels, in the order of the tables."""
        shape = tuple(len(self.levels[name]) for name in parents)
        return [
            {name: self.levels[name][k] for name, k in zip(parents, place, strict=True)} for place in np.ndindex(*shape)
        ]


def _one_axis(node: EstimatedNode, parameters: Any) -> Any:
    """Parameters that were given, with one axis of groups where the node's statistics are counted so."""
    if node.is_label:
        return parameters
    n_axes = len(node.factor.given)
    return type(parameters)(*(np.reshape(part, (-1, *np.shape(part)[n_axes:])) for part in parameters))


def check_prior(prior: Any, factors: Sequence[Factor], estimate: str) -> None:
    """Refuse a prior that no node would use."""
    if not isinstance(prior, Tally):
        read = [as_word_factor(factor) for factor in factors]
        check_priors(prior, [Factor(name, f.given, f.family) for f in read for name in parents_in(f)], estimate)


def cpt(model: BayesianNetwork, node: Name) -> ParameterTable:
    """Return the conditional probability table of a node, p(node | parents), or the parameters of a continuous node.

    The same as ``parameters_[node]``.

    Parameters
    ----------
    node : name

    Returns
    -------
    ParameterTable
    """
    model._estimated_network.graph.require([node])
    return model.parameters_[node]


def told(model: BayesianNetwork) -> list[LabeledFactor]:
    """p(node | its parents) of every node."""
    network, found = model._estimated_network, []
    for number, (name, node) in enumerate(network.nodes.items()):
        posterior = None if network.given is not None else partial(network.fitted.posterior, number)
        parents = node.factor.given
        above = tuple(network.levels[parent] for parent in parents)
        scored, levels = network.fitted.scorers_or_mle[number], [network.levels[name]] if node.is_label else ()
        plain = node.is_label or node.inputs
        within = () if plain else within_of(model, scored, int(node.statistics.n_columns))
        found.append(
            LabeledFactor(scored, parents, above, levels, within=within, posterior=posterior, inputs=node.inputs)
        )
    return found


def unseen_configurations(model: BayesianNetwork) -> dict[Name, list[dict[Name, Any]]]:
    """The combinations of parents' levels that no row showed, by node.

    Under bayes and map their row of the table is the prior's. Under mle it is not known: a question whose answer
    depends on it is refused.
    """
    found: dict[Name, list[dict[Name, Any]]] = {}
    for name, node in model._estimated_network.nodes.items() if model._fixed_parameters is None else ():
        never = np.flatnonzero(np.asarray(node.flat().group_weights()) == 0)
        if node.factor.given and len(never):
            every = model._estimated_network.parent_configurations(node.factor.given)
            found[name] = [every[k] for k in never]
    return found
