"""EstimatedNetwork: the nodes, CPTs and parameters of a Bayesian network, from its tally."""

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
from tallybayes.families.protocols.degenerate_estimates import constant_columns
from tallybayes.models.inputs.column_priors import check_priors, prior_for
from tallybayes.models.inspection.column_names import ColumnNames
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.continuous_components import ContinuousComponent, components_of, joint_gaussian_of
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor
from tallybayes.typing import Priors

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork


class EstimatedNode(NamedTuple):
    """The factor p(node | given) and its statistics.

    A node with continuous parents, its inputs, has the joint moments of these and of itself.
    """

    factor: Factor
    statistics: Any
    inputs: tuple[Name, ...] = ()

    @property
    def family(self) -> Family:
        """The family of the node."""
        return self.factor.family

    @property
    def is_discrete(self) -> bool:
        """Whether the node has levels; a continuous node has no discrete children."""
        return self.family.cell_type == "codes"

    @property
    def counted(self) -> Any:
        """The statistics for estimation: one axis per discrete parent of a discrete node, one of a continuous one."""
        return self.statistics if self.is_discrete else self.flat()

    def flat(self) -> Any:
        """Return the statistics with one axis of groups."""
        n_groups = math.prod(self.statistics.given_shape)
        return self.statistics.reshape_groups((n_groups,))

    def marginal(self) -> Any:
        """Return the statistics as `flat`, of the node without its inputs."""
        return self.flat().columns(np.array([len(self.inputs)])) if self.inputs else self.flat()


def is_linear(factor: Factor) -> bool:
    """Return whether a factor is a linear model of its last column in its other columns."""
    return factor.family.is_conditional and len(factor.columns) > 1


def parents_in(factor: Factor) -> dict[Name, tuple[Name, ...]]:
    """Return the parents of every node of a factor, discrete ones first."""
    if is_linear(factor):
        return {factor.columns[-1]: (*factor.given, *factor.columns[:-1])}
    return dict.fromkeys(factor.columns, factor.given)


def nodes_of(factors: Sequence[Factor], statistics: Sequence[Any]) -> dict[Name, EstimatedNode]:
    """Return every node with its own factor; a factor may have several nodes with the same parents."""
    nodes: dict[Name, EstimatedNode] = {}
    for factor, of_factor in zip(factors, statistics, strict=True):
        if is_linear(factor):
            *inputs, name = factor.columns
            nodes[name] = EstimatedNode(Factor(name, factor.given, factor.family), of_factor, tuple(inputs))
            continue
        for k, name in enumerate(factor.columns):
            of_node = of_factor if len(factor.columns) == 1 else of_factor.columns(np.array([k]))
            nodes[name] = EstimatedNode(Factor(name, factor.given, factor.family), of_node)
    return nodes


@dataclass(frozen=True, eq=False)
class EstimatedNetwork:
    """A network as estimated from its tally; immutable, with parts computed at first use.

    Parameters
    ----------
    tally : Tally
    estimate : str
    prior : Priors
    fixed_parameters : tuple, optional
        Fixed parameters of every factor, which are not estimated.
    readers : mapping from node to WordReader
        The readers of nodes that are text.
    factors : EstimatedFactors, optional
        Factors estimated before, instead of those that follow from the prior.
    """

    tally: Tally
    estimate: str
    prior: Priors
    fixed_parameters: tuple[Any, ...] | None = None
    readers: Mapping[Name, WordReader] = field(default_factory=dict)
    factors: EstimatedFactors | None = None

    @cached_property
    def graph(self) -> Graph:
        """The DAG."""
        parents = [parents_in(factor) for factor in self.tally.factors]
        return Graph.read({name: above for of_factor in parents for name, above in of_factor.items()})

    @cached_property
    def nodes(self) -> dict[Name, EstimatedNode]:
        """Every node with its factor and statistics, parents before children."""
        nodes = nodes_of(self.tally.factors, self.tally.statistics)
        return {node: nodes[node] for node in self.graph.nodes}

    @cached_property
    def domains(self) -> dict[Name, Domain]:
        """The domain of every discrete node."""
        return {name: self.tally.domains[str(name)] for name, node in self.nodes.items() if node.is_discrete}

    @cached_property
    def levels(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every discrete node as displayed, in the order of the CPTs."""
        return {name: domain.display_levels for name, domain in self.domains.items()}

    @cached_property
    def presence(self) -> dict[Name, Name]:
        """The missing-value indicator of every continuous node with informative missing values."""
        indicators: dict[Name, Name] = {}
        for name, node in self.nodes.items():
            indicator = self.nodes.get(indicator_name(name))
            if indicator is None or node.is_discrete or not indicator.family.is_binary:
                continue
            if indicator.factor.given == node.factor.given:
                indicators[name] = indicator_name(name)
        return indicators

    @cached_property
    def fitted(self) -> EstimatedFactors:
        """The estimated factors of all nodes, in the order of `nodes`."""
        if self.factors is not None:
            return self.factors
        nodes = self.nodes.values()
        check_prior(self.prior, [node.factor for node in nodes], self.estimate)
        pairs = [(node.factor, node.counted) for node in nodes]
        if self.fixed_parameters is None:
            return EstimatedFactors(pairs, [self.prior_of(node) for node in nodes], self.estimate)
        fixed = zip(self.tally.factors, self.fixed_parameters, strict=True)
        by_node = {factor.columns[-1:]: parameters for factor, parameters in fixed}
        return EstimatedFactors.from_fixed_parameters(
            pairs, [_with_one_group_axis(node, by_node[node.factor.columns]) for node in nodes]
        )

    def prior_of(self, node: EstimatedNode) -> Any:
        """Return the prior of a node; a tally as prior updates the default prior."""
        name = node.factor.columns[0]
        if isinstance(self.prior, BDe):
            levels = {name: domain.levels for name, domain in self.domains.items()}
            return self.prior.concentration(name, node.factor.given, levels) if node.is_discrete else None
        if isinstance(self.prior, Tally):
            before = self.prior.reindex_like(self.tally)
            of_node = nodes_of(before.factors, before.statistics)[name]
            return node.family.resolve_prior(None, node.counted, self.estimate).update(of_node.counted)
        if isinstance(self.prior, PriorRule) and not node.is_discrete:
            return None
        return prior_for(self.prior, node.factor, lambda name: self.domains[name].levels)

    @cached_property
    def tables(self) -> dict[Name, np.ndarray]:
        """The CPT of every discrete node, (*parents, levels); NaN in undefined rows under maximum likelihood."""
        nodes = zip(self.nodes.items(), self.fitted.checked_scorers, strict=True)
        return {name: scorer.point.table for (name, node), scorer in nodes if node.is_discrete}

    @cached_property
    def components(self) -> dict[Name, ContinuousComponent]:
        """The connected components of continuous nodes, by the first node of each."""
        inputs = {name: node.inputs for name, node in self.nodes.items() if not node.is_discrete}
        return components_of(self.graph.nodes, inputs, {name: node.factor.given for name, node in self.nodes.items()})

    @cached_property
    def leaves(self) -> dict[Name, FactorScorer]:
        """The scorer of every continuous node for each combination of its parents' levels; one for each component."""
        return self.leaves_of(dict(zip(self.nodes, self.fitted.checked_scorers, strict=True)), self._constant_nodes)

    @cached_property
    def _constant_nodes(self) -> set[Name]:
        """The constant nodes with continuous parents: under a prior they carry no information."""
        if self.fixed_parameters is not None or not read_estimate(self.estimate).has_prior:
            return set()
        marginals = {name: node.marginal() for name, node in self.nodes.items() if node.inputs}
        return {
            name
            for name, moments in marginals.items()
            if np.any(moments.group_weights()) and len(constant_columns(Gaussian(), moments))
        }

    def leaves_of(self, scorers: Mapping[Name, FactorScorer], constant: Collection[Name]) -> dict[Name, FactorScorer]:
        """Return `leaves` for other parameters; constant nodes with continuous parents carry no information."""
        leaves = {name: scorers[name] for name, node in self.nodes.items() if not node.is_discrete}
        inputs = {name: node.inputs for name, node in self.nodes.items()}
        for leaf, component in self.components.items():
            joint = joint_gaussian_of(component, leaves, inputs, self.levels, constant)
            leaves = {name: scorer for name, scorer in leaves.items() if name not in component.nodes} | {leaf: joint}
        return leaves

    @cached_property
    def inference(self) -> NetworkInference:
        """The parameters, compiled for inference."""
        empty = [name for name, levels in self.levels.items() if not levels]
        if empty:
            raise DataError(
                f"node {empty[0]!r} has no levels: the network has no rows.\n"
                "    Fit rows, or declare levels: tb.Categorical(levels=[...])."
            )
        return self.make_inference(self.tables, self.leaves)

    def make_inference(
        self, tables: Mapping[Name, np.ndarray], leaves: Mapping[Name, FactorScorer]
    ) -> NetworkInference:
        """Return other parameters of the same network, compiled for inference."""
        continuous = {name: node for name, node in self.nodes.items() if not node.is_discrete}
        widths = {name: 1 if node.inputs else node.statistics.n_columns for name, node in continuous.items()}
        return NetworkInference(
            self.graph, self.domains, tables, leaves, widths, self.readers, self.presence, components=self.components
        )

    def over(self, tally: Tally) -> EstimatedNetwork:
        """Return the network with other counts of the same levels, and the same resolved priors."""
        pairs = [(node.factor, node.counted) for node in replace(self, tally=tally).nodes.values()]
        return replace(self, tally=tally, factors=self.fitted.with_statistics(pairs))

    def scaled(self, strength: float) -> EstimatedNetwork:
        """Return the network with priors of `strength` times their strength."""
        return replace(self, factors=self.fitted.scaled(strength))

    def parent_configurations(self, parents: tuple[Name, ...]) -> list[dict[Name, Any]]:
        """Return the combinations of the parents' levels, in the order of the CPTs."""
        shape = tuple(len(self.levels[name]) for name in parents)
        return [
            {name: self.levels[name][k] for name, k in zip(parents, codes, strict=True)} for codes in np.ndindex(*shape)
        ]

    def unseen_configurations(self) -> dict[Name, list[dict[Name, Any]]]:
        """Return the combinations of parents' levels without rows, by node."""
        unseen: dict[Name, list[dict[Name, Any]]] = {}
        for name, node in self.nodes.items() if self.fixed_parameters is None else ():
            groups = np.flatnonzero(np.asarray(node.flat().group_weights()) == 0)
            if node.factor.given and len(groups):
                configurations = self.parent_configurations(node.factor.given)
                unseen[name] = [configurations[k] for k in groups]
        return unseen

    def labeled_factors(self, column_names: ColumnNames) -> list[LabeledFactor]:
        """Return p(node | parents) of every node with its names."""
        factors = []
        for k, (name, node) in enumerate(self.nodes.items()):
            scorer = self.fitted.scorers_or_mle[k]
            width = 1 if node.is_discrete or node.inputs else int(node.statistics.n_columns)
            factors.append(
                LabeledFactor(
                    scorer,
                    node.factor.given,
                    tuple(self.levels[parent] for parent in node.factor.given),
                    [self.levels[name]] if node.is_discrete else (),
                    within=column_names.of_block(node.factor.columns, width),
                    posterior=None if self.fixed_parameters is not None else partial(self.fitted.posterior, k),
                    inputs=node.inputs,
                )
            )
        return factors


def network_of(model: BayesianNetwork) -> EstimatedNetwork:
    """Return the estimates of a fitted network, for functions outside its class."""
    return model._estimated_network


def _with_one_group_axis(node: EstimatedNode, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return fixed parameters with the group axes of the node's statistics: one axis for a continuous node."""
    if node.is_discrete:
        return parameters
    n_axes = len(node.factor.given)
    return type(parameters)(*(np.reshape(part, (-1, *np.shape(part)[n_axes:])) for part in parameters))


def check_prior(prior: Priors, factors: Sequence[Factor], estimate: str) -> None:
    """Raise PriorError for a prior that no node has a use for."""
    if not isinstance(prior, Tally):
        read = [as_word_factor(factor) for factor in factors]
        check_priors(prior, [Factor(name, f.given, f.family) for f in read for name in parents_in(f)], estimate)
