"""BDe: another network as prior of the CPTs of a network, with an equivalent sample size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import PriorError
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

_MIN_CONCENTRATION = 1e-9  # so that cells with probability 0 under the other network can still be learned


@dataclass(frozen=True, eq=False, repr=False)
class BDe(FrozenValue):
    """Bayesian Dirichlet prior of another network: pseudo-counts worth `equivalent_sample_size` of its rows.

    Every cell of a CPT gets equivalent_sample_size · p(node, parents) under that network, for any structure of the
    fitted network, so that Markov equivalent structures have equal scores (Heckerman, Geiger and Chickering, 1995).
    Levels of the other network are declared. Levels and nodes that it lacks get equal probabilities; cells with
    probability 0 get a billionth of a row.

    Parameters
    ----------
    network : BayesianNetwork or NetworkTables
        Fitted, or read from a file; its nodes used here are discrete.
    equivalent_sample_size : float
        Prior strength in rows.

    Examples
    --------
    >>> import tallybayes as tb
    >>> expert = tb.BayesianNetwork.from_tables(
    ...     {"smoke": ["fire"]}, {"fire": [False, True], "smoke": [False, True]},
    ...     {"fire": [0.9, 0.1], "smoke": [[0.95, 0.05], [0.1, 0.9]]})
    >>> rows = {"fire": [False, True, False], "smoke": [False, True, True]}
    >>> model = tb.BayesianNetwork({"smoke": ["fire"]}, prior=tb.BDe(expert, 10)).fit(rows)
    >>> model.query("smoke", {"fire": True})[True].__round__(3)
    0.95
    """

    network: BayesianNetwork | NetworkTables
    equivalent_sample_size: float

    def __post_init__(self) -> None:
        if not isinstance(self.network, NetworkTables):
            if not hasattr(self.network, "to_tables"):
                raise PriorError.wrong_parameter(
                    "BDe", "network", self.network, "a fitted BayesianNetwork, or one with CPTs"
                )
            object.__setattr__(self, "network", self.network.to_tables())
        size = self.equivalent_sample_size
        if not isinstance(size, int | float | np.number) or not 0 < size < np.inf:
            raise PriorError.wrong_parameter("BDe", "equivalent_sample_size", size)

    @property
    def tables(self) -> NetworkTables:
        """The CPTs of the other network."""
        assert isinstance(self.network, NetworkTables)
        return self.network

    def declare(self, tally: Tally) -> Tally:
        """Return the same counts with the levels of the other network declared.

        Parameters
        ----------
        tally : Tally
        """
        for name, all_levels in self.tables.levels.items():
            domain = tally.domains.get(str(name))
            levels = tuple(level for level in all_levels if level is not None)
            if domain is None or all(level in domain.declared for level in levels):
                continue
            if domain.levels and not any(level in domain.index for level in levels):
                raise PriorError(
                    f"BDe: node {name!r} has the levels {', '.join(map(repr, levels[:4]))} in the other network, and "
                    f"{', '.join(map(repr, domain.levels[:4]))} in the data; expected some levels in common.\n"
                    "    Use the same spelling; levels of a network from a BIF file are strings."
                )
            tally = tally.declare(name, levels)
        return tally

    def concentration(self, node: Name, parents: tuple[Name, ...], levels: Mapping[Name, tuple[Any, ...]]) -> Dirichlet:
        """Return the Dirichlet prior of a CPT for these parents and levels, (*parents, levels).

        Parameters
        ----------
        node : name
        parents : tuple of names
        levels : mapping from node to a tuple of levels
        """
        names = (*parents, node)
        known = [name for name in names if name in self.tables.parents]
        joint = self._joint(known)
        for axis, name in enumerate(names):
            if name in known:
                joint = _over_levels(joint, axis, self.tables.levels[name], levels[name])
            else:
                joint = np.expand_dims(joint, axis) / len(levels[name])
        shape = [len(levels[name]) for name in names]
        pseudo_counts = self.equivalent_sample_size * np.broadcast_to(joint, shape)
        return Dirichlet(np.maximum(pseudo_counts, _MIN_CONCENTRATION))

    def _joint(self, names: list[Name]) -> np.ndarray:
        """Return p(names) under the other network."""
        tables = self.tables
        inference = NetworkInference(Graph(tables.parents), tables.domains, tables.tables, {})
        ((_, posterior),) = inference.posteriors(Evidence(1, {}, {}, {}), [names])
        return posterior.joint(names)[0].reshape([len(tables.levels[name]) for name in names])


def _over_levels(joint: np.ndarray, axis: int, known: Sequence[Any], levels: Sequence[Any]) -> np.ndarray:
    """Return a table over other levels of one axis: new levels together have the probability of one more level."""
    index = {level: k for k, level in enumerate(known)}
    positions = np.array([index.get(level, -1) for level in levels])
    moved = np.take(joint, positions, axis=axis)
    new = np.flatnonzero(positions < 0)
    if len(new):
        scale = len(known) / (len(known) + len(new))
        moved = moved * scale
        np.moveaxis(moved, axis, 0)[new] = np.moveaxis(joint.mean(axis=axis, keepdims=True) * scale, axis, 0)
    return moved
