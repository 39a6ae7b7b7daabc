"""A Bayesian network in plain numbers, whoever states them: labels by their tables, measured nodes by their lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.errors import DataError, TooLargeError, short_repr
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name

_OF_LABELS = ("parents", "levels", "probabilities")
_OF_LINES = ("parents", "intercept", "coefficients", "std")
_MOST_PARENTS = 60  # NumPy's arrays have 64 axes at most


class NetworkSpec(NamedTuple):
    """What was stated of a network, checked.

    Attributes
    ----------
    parents : dict from node to its parents
    domains : dict from label to Domain
    factors : list of Factor
    widths : list of int
        How many columns each has.
    parameters : tuple
        Those of every factor.
    """

    parents: dict[Name, tuple[Name, ...]]
    domains: dict[Name, Domain]
    factors: list[Factor]
    widths: list[int]
    parameters: tuple[Any, ...]


def read_network_spec(nodes: Any) -> NetworkSpec:
    """What a mapping from nodes to their numbers says; a `DataError` names the node that is wrong, and how.

    Nothing is made before its size is known.
    """
    if not isinstance(nodes, Mapping):
        raise DataError.wrong_type("nodes", f"a {type(nodes).__name__}", "a mapping from every node to its numbers")
    for node, spec in nodes.items():
        if not isinstance(spec, Mapping):
            raise DataError.wrong_type(
                f"what is said of {node!r}", short_repr(spec), "a mapping, as in {'parents': [...]}"
            )
        known = _OF_LABELS if "levels" in spec else _OF_LINES
        strange = [key for key in spec if key not in known]
        lacking = [key for key in known[1:] if key not in spec and key != "coefficients"]
        if strange or lacking:
            found = f"with {short_repr(strange[0])}" if strange else f"without {lacking[0]!r}"
            expected = f"{', '.join(map(repr, known))} {'of labels' if 'levels' in spec else 'of a measured node'}"
            raise DataError.wrong_type(f"what is said of {node!r}", found, expected)
    graph = Graph.read({node: _listed(spec.get("parents"), f"the parents of {node!r}") for node, spec in nodes.items()})
    unknown = [parent for parent in graph.nodes if parent not in nodes]
    if unknown:
        raise DataError(f"{unknown[0]!r} is a parent, but nothing is said of it; found {short_repr(list(nodes), 120)}.")
    domains = {node: _domain(node, nodes[node]["levels"]) for node in graph.nodes if "levels" in nodes[node]}
    labels = {node: domain.levels for node, domain in domains.items()}
    tables = {}
    for node in labels:
        measured = [parent for parent in graph.parents[node] if parent not in labels]
        if measured:
            raise DataError(
                f"node {node!r} has labels, and its parent {measured[0]!r} is measured; expected labels: no label may "
                "depend on what is measured.\n    Cut the parent into bins, or turn the edge round."
            )
        shape = _shape((*graph.parents[node], node), labels, node)
        tables[node] = _numbers(nodes[node]["probabilities"], shape, f"the probabilities of {node!r}")
    if labels:  # checks that rows sum to 1
        tables = NetworkTables({node: graph.parents[node] for node in labels}, labels, tables).tables
    factors, widths, parameters = list[Factor](), list[int](), list[Any]()
    for node, above in graph.parents.items():
        given = tuple(parent for parent in above if parent in labels)
        if node in labels:
            factors.append(Factor(node, given, Categorical(tuple(x for x in labels[node] if x is not None))))
            parameters.append(LevelProbabilities(tables[node], Segments([len(labels[node])])))
            widths.append(1)
            continue
        inputs = tuple(parent for parent in above if parent not in labels)
        line = _line(node, nodes[node], inputs, _shape(given, labels, node))
        mean, variance = (np.asarray(part)[..., None] for part in (line.intercept, line.variance))
        factors.append(Factor((*inputs, node), given, ConditionalLinearGaussian() if inputs else Gaussian()))
        parameters.append(line if inputs else Normal(mean, variance))
        widths.append(len(inputs) + 1)
    return NetworkSpec(graph.parents, domains, factors, widths, tuple(parameters))


def _line(node: Name, spec: Mapping[str, Any], inputs: tuple[Name, ...], shape: tuple[int, ...]) -> LinearParameters:
    """The line of a measured node in its measured parents, by the levels of the others."""
    coefficients = spec.get("coefficients")
    coefficients = {} if coefficients is None else coefficients
    if not isinstance(coefficients, Mapping):
        raise DataError.wrong_type(
            f"the coefficients of {node!r}", short_repr(coefficients), "a mapping from measured parents to numbers"
        )
    named = {str(name): value for name, value in coefficients.items()}
    if set(named) != set(map(str, inputs)) or len(named) != len(coefficients):
        found, wanted = short_repr(list(coefficients), 80), short_repr(list(inputs), 80)
        raise DataError.wrong_type(
            f"the coefficients of {node!r}", f"of {found}", f"one for every measured parent: {wanted}"
        )
    slopes = [
        _numbers(named[str(name)], shape, f"the coefficient of {name!r} in {node!r}", spread=True) for name in inputs
    ]
    intercept = _numbers(spec["intercept"], shape, f"the intercept of {node!r}", spread=True)
    std = _numbers(spec["std"], shape, f"the standard deviation of {node!r}", spread=True)
    with np.errstate(over="ignore", under="ignore"):
        variance = std**2
    if not ((std > 0) & (variance > 0) & np.isfinite(variance)).all():
        wrong = std[~((std > 0) & (variance > 0) & np.isfinite(variance))].flat[0]
        raise DataError.wrong_type(
            f"the standard deviation of {node!r}", f"{wrong:.6g}", "numbers above 0, whose squares are numbers, too"
        )
    return LinearParameters(np.stack(slopes, axis=-1) if slopes else np.zeros((*shape, 0)), intercept, variance)


def _listed(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise DataError.wrong_type(what, short_repr(value), "a list of names")
    return list(value)


def _domain(node: Name, levels: Any) -> Domain:
    """The levels of a node of labels; None where absence is one."""
    found = _listed(levels, f"the levels of {node!r}")
    plain = [level.item() if isinstance(level, np.generic) else level for level in found]
    wrong = [level for level in plain if level is not None and not isinstance(level, str | bool | int)]
    if wrong or not plain:
        what = short_repr(wrong[0]) if wrong else "none"
        raise DataError.wrong_type(f"the levels of {node!r}", what, "strings, whole numbers, or True and False")
    return Domain(plain, str(node), declared=plain, has_missing_level=None in plain)


def _shape(names: Sequence[Name], labels: Mapping[Name, Sequence[Any]], node: Name) -> tuple[int, ...]:
    """The levels of some labels, if a table of them can be."""
    shape = tuple(len(labels[name]) for name in names)
    if len(shape) > _MOST_PARENTS or 8 * 8 * math.prod(shape) > available_memory():
        raise TooLargeError.table(node, names, math.prod(shape))
    return shape


def _numbers(value: Any, shape: tuple[int, ...], what: str, *, spread: bool = False) -> np.ndarray:
    """Finite numbers of a shape; one for all, if that is allowed."""
    if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in "fiu":
        found = np.array(value, dtype=float)
    elif _is_number(value):
        found = np.array(_as_float(value))
    else:
        flat: list[float] = []
        sizes = _walk(value, len(shape), flat, what)
        found = np.array(flat).reshape(sizes)
    if spread and found.ndim == 0:
        found = np.full(shape, float(found))
    if found.shape != shape:
        raise DataError.wrong_shape(what, found.shape, f"{shape}, the levels that it depends on")
    if not np.isfinite(found).all():
        raise DataError.wrong_type(what, "partly not finite", "finite numbers")
    return found


def _walk(value: Any, depth: int, flat: list[float], what: str) -> tuple[int, ...]:
    """The sizes of nested lists of numbers, which are put one after the other."""
    if depth == 0 or not isinstance(value, list | tuple | np.ndarray):
        if depth or not _is_number(value):
            raise DataError.wrong_type(
                what, short_repr(value), "numbers, in lists as deep as there are parents of labels"
            )
        flat.append(_as_float(value))
        return ()
    sizes = {_walk(part, depth - 1, flat, what) for part in value}
    if len(sizes) != 1:
        raise DataError.wrong_type(what, "ragged, or empty", "lists of equal lengths")
    return (len(value), *sizes.pop())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def describe_nodes(
    parents: Mapping[Name, Sequence[Name]],
    levels: Mapping[Name, Sequence[Any]],
    tables: Mapping[Name, np.ndarray],
    lines: Mapping[Name, tuple[Sequence[Name], LinearParameters]],
) -> Iterator[tuple[Name, dict[str, Any]]]:
    """Every node and its numbers, as `read_network_spec` takes them.

    Parameters
    ----------
    parents : mapping from node to its parents
    levels, tables : mappings from label to its levels, and to its table
    lines : mapping from measured node to the parents its line is in, and the line by the levels of the others
    """
    for node, above in parents.items():
        spec: dict[str, Any] = {"parents": list(above)} if above else {}
        if node in levels:
            spec |= {"levels": list(levels[node]), "probabilities": tables[node].tolist()}
        else:
            inputs, (slope, intercept, variance) = lines[node]
            spec["intercept"] = np.asarray(intercept).tolist()
            if inputs:
                spec["coefficients"] = {str(name): slope[..., k].tolist() for k, name in enumerate(inputs)}
            spec["std"] = np.sqrt(variance).tolist()
        yield node, spec
