"""BDe: another network as the prior of a network's tables, worth a stated number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import PriorError
from tallybayes.models.network.inference.clique_tree import CliqueTree
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

_LEAST = 1e-9  # of a row: what the other network holds impossible may still be learned


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
        tables = self.network if isinstance(self.network, NetworkTables) else getattr(self.network, "to_tables", None)
        if tables is None:
            raise PriorError(f"BDe needs a network, found {self.network!r:.60}.")
        object.__setattr__(self, "network", tables if isinstance(tables, NetworkTables) else tables())
        if (
            not isinstance(self.equivalent_sample_size, int | float | np.number)
            or not 0 < self.equivalent_sample_size < np.inf
        ):
            raise PriorError.not_positive("BDe", "equivalent_sample_size", self.equivalent_sample_size)

    def declare(self, tally: Tally) -> Tally:
        """The same counts where the levels this network knows exist, whether seen or not.

        Parameters
        ----------
        tally : Tally
        """
        for name, levels in self.network.levels.items():
            domain, levels = tally.domains.get(str(name)), tuple(level for level in levels if level is not None)
            if domain is None or all(level in domain.declared for level in levels):
                continue
            if domain.levels and not any(level in domain.index for level in levels):
                raise PriorError(
                    f"BDe's network knows {name!r} as {', '.join(map(repr, levels[:4]))}, the data as "
                    f"{', '.join(map(repr, domain.levels[:4]))}; expected some levels in common.\n"
                    "    Spell them alike; a network from a BIF file has strings for levels."
                )
            tally = tally.declare(name, levels)
        return tally

    def concentration(self, node: Name, parents: tuple[Name, ...], levels: Mapping[Name, tuple[Any, ...]]) -> Dirichlet:
        """The Dirichlet of a node's table under these parents and levels: (*parents, levels).

        Parameters
        ----------
        node : name
        parents : tuple of names
        levels : mapping from node to a tuple of labels
        """
        names = (*parents, node)
        known = [name for name in names if name in self.network.parents]
        joint = self._joint(known)
        shape = []
        for axis, name in enumerate(names):
            if name not in known:
                joint = np.expand_dims(joint, axis) / len(levels[name])
                shape.append(len(levels[name]))
                continue
            its = {level: place for place, level in enumerate(self.network.levels[name])}
            new = [level for level in levels[name] if level not in its]
            where = [its.get(level, -1) for level in levels[name]]
            moved = np.take(joint, where, axis=axis)
            if new:  # they share what one more level would have
                moved = moved * (len(its) / (len(its) + len(new)))
                some = [slice(None)] * moved.ndim
                some[axis] = np.flatnonzero(np.array(where) < 0)  # type: ignore[call-overload]
                moved[tuple(some)] = joint.mean(axis=axis, keepdims=True) * (len(its) / (len(its) + len(new)))
            joint = moved
            shape.append(len(levels[name]))
        return Dirichlet(np.maximum(self.equivalent_sample_size * np.broadcast_to(joint, shape), _LEAST))

    def _joint(self, names: list[Name]) -> np.ndarray:
        """P(names) under the other network."""
        if not names:
            return np.ones(())
        network = self.network
        index = {name: place for place, name in enumerate(network.parents)}
        sizes = [len(network.levels[name]) for name in index]
        scopes = [tuple(index[name] for name in (*parents, node)) for node, parents in network.parents.items()]
        wanted = tuple(index[name] for name in names)
        tree = CliqueTree(sizes, [*scopes, wanted], list(index))
        tables = [network.tables[node] for node in index]
        potentials = tree.load([*tables, np.ones([sizes[place] for place in wanted])])
        return tree.propagate(potentials, [], 1).marginal(wanted)[..., 0]
