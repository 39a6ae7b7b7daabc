"""Bayesian networks specified by parameters: CPTs of discrete nodes, linear Gaussian models of continuous nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.errors import DataError, TooLargeError, short_repr
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.statistics.counts import Segments
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.fixed_parameter_tally import empty_tally
from tallybayes.tally.tally import Tally

_DISCRETE_KEYS = ("parents", "levels", "probabilities")
_CONTINUOUS_KEYS = ("parents", "intercept", "coefficients", "std")
_MAX_PARENTS = 60  # NumPy arrays have at most 64 axes

NodeSpec = Mapping[str, Any]  # the parameters of a node, by the keys above


class NetworkSpec(NamedTuple):
    """A network with fixed parameters.

    Attributes
    ----------
    parents : dict from node to its parents
    domains : dict from discrete node to Domain
    tables : dict from discrete node to an array of shape (*levels of its parents, levels)
    linear_models : dict from continuous node to LinearParameters
    """

    parents: dict[Name, tuple[Name, ...]]
    domains: dict[Name, Domain]
    tables: dict[Name, np.ndarray]
    linear_models: dict[Name, LinearParameters]

    @classmethod
    def from_tables(cls, tables: NetworkTables) -> NetworkSpec:
        """Return the specification of a discrete network."""
        return cls(tables.parents, tables.domains, tables.tables, {})

    @property
    def columns(self) -> dict[Name, Family]:
        """The family of every node, for `BayesianNetwork`."""
        families: dict[Name, Family] = dict.fromkeys(self.parents, Gaussian())
        for node, domain in self.domains.items():
            family = _categorical(domain)
            families[node] = WithMissing(family) if domain.has_missing_level else family
        return families

    def split(self, node: Name) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
        """Return the discrete and the continuous parents of a node."""
        parents = self.parents[node]
        discrete = tuple(parent for parent in parents if parent in self.domains)
        return discrete, tuple(parent for parent in parents if parent not in self.domains)

    def factor(self, node: Name) -> tuple[Factor, Any]:
        """Return the factor of a node and its parameters."""
        given, inputs = self.split(node)
        if node in self.domains:
            table = self.tables[node]
            family = _categorical(self.domains[node])
            return Factor(node, given, family), LevelProbabilities(table, Segments([table.shape[-1]]))
        linear = self.linear_models[node]
        if inputs:
            return Factor((*inputs, node), given, ConditionalLinearGaussian()), linear
        mean, variance = (np.asarray(part)[..., None] for part in (linear.intercept, linear.variance))
        return Factor(node, given, Gaussian()), Normal(mean, variance)

    def model_state(self) -> tuple[Tally, tuple[Any, ...]]:
        """Return the tally of no rows, and the parameters of its factors."""
        factors, parameters = zip(*map(self.factor, self.parents), strict=True)
        domains = {str(node): domain for node, domain in self.domains.items()}
        schema = Schema(missing_level_domains=tuple(n for n, domain in domains.items() if domain.has_missing_level))
        return empty_tally(factors, [len(factor.columns) for factor in factors], domains, schema), parameters

    def describe(self) -> dict[Name, dict[str, Any]]:
        """Return the parameters of every node as plain numbers, as `read_network_spec` reads them."""
        nodes: dict[Name, dict[str, Any]] = {}
        for node, parents in self.parents.items():
            nodes[node] = {"parents": list(parents)} if parents else {}
            if node in self.domains:
                nodes[node] |= {"levels": list(self.domains[node].levels), "probabilities": self.tables[node].tolist()}
                continue
            slope, intercept, variance = self.linear_models[node]
            nodes[node]["intercept"] = np.asarray(intercept).tolist()
            if inputs := self.split(node)[1]:
                nodes[node]["coefficients"] = {str(name): slope[..., k].tolist() for k, name in enumerate(inputs)}
            nodes[node]["std"] = np.sqrt(variance).tolist()
        return nodes


def _categorical(domain: Domain) -> Categorical:
    """Return the family of a discrete node, with its levels declared."""
    return Categorical(tuple(level for level in domain.levels if level is not None))


def read_network_spec(nodes: Mapping[Name, NodeSpec]) -> NetworkSpec:
    """Read the parameters of all nodes; raise DataError that names the invalid node.

    Sizes are checked before memory is allocated.
    """
    _check_keys(nodes)
    graph = Graph.read(
        {node: _as_list(spec.get("parents"), f"the parents of {node!r}") for node, spec in nodes.items()}
    )
    unknown = [parent for parent in graph.nodes if parent not in nodes]
    if unknown:
        raise DataError(
            f"{unknown[0]!r} is a parent without parameters; expected one of {short_repr(list(nodes), 120)}."
        )
    domains = {node: _read_domain(node, nodes[node]["levels"]) for node in graph.nodes if "levels" in nodes[node]}
    levels = {node: domain.levels for node, domain in domains.items()}
    spec = NetworkSpec(graph.parents, domains, _read_tables(graph, nodes, levels), {})
    for node in graph.nodes:
        if node not in levels:
            given, inputs = spec.split(node)
            shape = _table_shape(given, levels, node)
            spec.linear_models[node] = _read_linear(node, nodes[node], inputs, shape)
    return spec


def _check_keys(nodes: object) -> None:
    """Raise DataError if a node has unknown parameters or lacks some."""
    if not isinstance(nodes, Mapping):
        raise DataError.wrong_type("nodes", f"a {type(nodes).__name__}", "a mapping from every node to its parameters")
    for node, spec in nodes.items():
        if not isinstance(spec, Mapping):
            raise DataError.wrong_type(f"node {node!r}", short_repr(spec), "a mapping, as in {'parents': [...]}")
        known = _DISCRETE_KEYS if "levels" in spec else _CONTINUOUS_KEYS
        unknown = [key for key in spec if key not in known]
        lacking = [key for key in known[1:] if key not in spec and key != "coefficients"]
        if unknown or lacking:
            found = f"with {short_repr(unknown[0])}" if unknown else f"without {lacking[0]!r}"
            kind = "of a discrete node" if "levels" in spec else "of a continuous node"
            raise DataError.wrong_type(f"node {node!r}", found, f"{', '.join(map(repr, known))} {kind}")


def _read_tables(
    graph: Graph, nodes: Mapping[Name, NodeSpec], levels: Mapping[Name, tuple[Any, ...]]
) -> dict[Name, np.ndarray]:
    """Return the CPTs of all discrete nodes."""
    tables = {}
    for node in levels:
        continuous = [parent for parent in graph.parents[node] if parent not in levels]
        if continuous:
            raise DataError(
                f"node {node!r} is discrete, and its parent {continuous[0]!r} is continuous; expected discrete "
                "parents.\n    Discretize the parent, or reverse the edge."
            )
        shape = _table_shape((*graph.parents[node], node), levels, node)
        tables[node] = _read_numbers(nodes[node]["probabilities"], shape, f"the probabilities of {node!r}")
    if not levels:
        return {}
    return NetworkTables({node: graph.parents[node] for node in levels}, levels, tables).tables  # rows sum to 1


def _read_linear(node: Name, spec: NodeSpec, inputs: tuple[Name, ...], shape: tuple[int, ...]) -> LinearParameters:
    """Return the linear model of a continuous node, for every combination of levels of its discrete parents."""
    coefficients = spec.get("coefficients")
    coefficients = {} if coefficients is None else coefficients
    what = f"the coefficients of {node!r}"
    if not isinstance(coefficients, Mapping):
        raise DataError.wrong_type(what, short_repr(coefficients), "a mapping from continuous parents to numbers")
    by_text = {str(name): value for name, value in coefficients.items()}
    if set(by_text) != set(map(str, inputs)) or len(by_text) != len(coefficients):
        found, wanted = short_repr(list(coefficients), 80), short_repr(list(inputs), 80)
        raise DataError.wrong_type(what, f"of {found}", f"one for every continuous parent: {wanted}")
    slopes = [
        _read_numbers(by_text[str(name)], shape, f"the coefficient of {name!r} in {node!r}", broadcast=True)
        for name in inputs
    ]
    intercept = _read_numbers(spec["intercept"], shape, f"the intercept of {node!r}", broadcast=True)
    std = _read_numbers(spec["std"], shape, f"the standard deviation of {node!r}", broadcast=True)
    with np.errstate(over="ignore", under="ignore"):
        variance = std**2
    valid = (std > 0) & (variance > 0) & np.isfinite(variance)
    if not valid.all():
        raise DataError.wrong_type(
            f"the standard deviation of {node!r}", f"{std[~valid].flat[0]:.6g}", "numbers above 0 with finite squares"
        )
    return LinearParameters(np.stack(slopes, axis=-1) if slopes else np.zeros((*shape, 0)), intercept, variance)


def _as_list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise DataError.wrong_type(what, short_repr(value), "a list of names")
    return list(value)


def _read_domain(node: Name, levels: object) -> Domain:
    """Return the domain of a discrete node; None is the level of a missing value."""
    values = _as_list(levels, f"the levels of {node!r}")
    plain = [level.item() if isinstance(level, np.generic) else level for level in values]
    invalid = [level for level in plain if level is not None and not isinstance(level, str | bool | int)]
    if invalid or not plain:
        found = short_repr(invalid[0]) if invalid else "none"
        raise DataError.wrong_type(f"the levels of {node!r}", found, "strings, whole numbers, or True and False")
    return Domain(plain, str(node), declared=plain, has_missing_level=None in plain)


def _table_shape(names: Sequence[Name], levels: Mapping[Name, Sequence[Any]], node: Name) -> tuple[int, ...]:
    """Return the shape of a table of some nodes; raise TooLargeError if it does not fit into memory."""
    shape = tuple(len(levels[name]) for name in names)
    if len(shape) > _MAX_PARENTS or 8 * 8 * math.prod(shape) > available_memory():
        raise TooLargeError.table(node, names, math.prod(shape))
    return shape


def _read_numbers(value: object, shape: tuple[int, ...], what: str, *, broadcast: bool = False) -> np.ndarray:
    """Return finite numbers of a shape; with `broadcast`, one number may stand for all."""
    try:
        cells = np.array(value, dtype=object)
    except ValueError:
        raise DataError.wrong_type(what, "ragged", "lists of equal lengths") from None
    invalid = [cell for cell in cells.flat if not _is_number(cell)]
    if invalid:
        expected = "numbers, in lists nested as deep as there are discrete parents"
        raise DataError.wrong_type(what, short_repr(invalid[0]), expected)
    numbers = np.array(list(map(_as_float, cells.flat))).reshape(cells.shape)
    if broadcast and numbers.ndim == 0:
        numbers = np.full(shape, float(numbers))
    if numbers.shape != shape:
        raise DataError.wrong_shape(what, numbers.shape, f"{shape}, the levels that it depends on")
    if not np.isfinite(numbers).all():
        raise DataError.wrong_type(what, "partly not finite", "finite numbers")
    return numbers


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _as_float(value: float | np.number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
