"""NetworkExchange: Bayesian networks from tables and files, and into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from tallybayes.errors import DataError, EstimateError
from tallybayes.families.categorical import Categorical
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.learning import NetworkLearner
from tallybayes.models.networks.tables import NetworkTables
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


class NetworkExchange(NetworkLearner):
    """Networks whose tables are given, and networks as others read them."""

    @classmethod
    def from_tables(cls, parents: Any, levels: Mapping[Name, Any], tables: Mapping[Name, Any]) -> Self:
        """A network whose tables are given, not learned.

        Parameters
        ----------
        parents : as for the constructor
        levels : mapping from node to its labels
        tables : mapping from node to an array of shape (*levels of its parents, levels)
            Rows that sum to 1.

        Returns
        -------
        BayesianNetwork
            Its levels are declared, so that `fit` keeps them.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.BayesianNetwork.from_tables({"fire": []}, {"fire": [False, True]}, {"fire": [0.9, 0.1]}).query("fire")
        p(fire)
          False  0.9000  ██████████████████
          True   0.1000  ██
        """
        return cls._from(NetworkTables(Graph.read(parents).parents, levels, tables))

    @classmethod
    def from_bif(cls, path: Any) -> Self:
        """A network from a file in the Interchange Format for Bayesian networks (BIF); packed with gzip, too.

        Parameters
        ----------
        path : path or file object

        Returns
        -------
        BayesianNetwork
        """
        from tallybayes.models.networks.bif.file import read_bif

        return cls._from(read_bif(path))

    @classmethod
    def _from(cls, given: NetworkTables) -> Self:
        families = {node: Categorical(levels) for node, levels in given.levels.items()}
        model = cls(dict(given.parents), columns=families)
        domains = {str(node): Domain(found, str(node), declared=found) for node, found in given.levels.items()}
        factors = [Factor(node, parents, families[node]) for node, parents in given.parents.items()]
        nothing = [Counts(np.zeros(table.shape)) for table in given.tables.values()]
        model._adopt(Tally(factors, nothing, domains))
        model._given = given
        return model

    def to_tables(self) -> NetworkTables:
        """The network as plain tables, without its measured nodes.

        Returns
        -------
        NetworkTables
        """
        found = self._inference
        if found.unknown:
            node, lost = next(iter(found.unknown.items()))
            raise EstimateError(
                f"the table of {node!r} has {int(lost.sum())} rows that no data tell, under maximum likelihood.\n"
                "    Use reestimate(estimate='bayes'), where a prior speaks for them."
            )
        parents = {node: self.graph_.parents[node] for node in found.levels}
        return NetworkTables(parents, found.levels, found.tables)

    def to_bif(self, path: Any) -> None:
        """Write the tables to a file in the Interchange Format for Bayesian networks (BIF).

        Parameters
        ----------
        path : str or path-like
            Packed where it ends in ``.gz``.
        """
        from tallybayes.models.networks.bif.file import write_bif

        measured = list(self._inference.leaves)
        if measured:
            raise DataError(f"node {measured[0]!r} is measured; a BIF file holds labels only.\n    Use save instead.")
        write_bif(self.to_tables(), path)

    def to_networkx(self) -> Any:
        """The graph as a networkx DiGraph; nodes have their ``levels`` and ``table``, if fitted.

        Returns
        -------
        networkx.DiGraph
        """
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.graph_.nodes)
        graph.add_edges_from(self.graph_.edges)
        if hasattr(self, "tally_"):
            for node, table in self._tables.items():
                about = {"levels": self.levels_[node], "table": table.copy(), "parents": self.graph_.parents[node]}
                graph.nodes[node].update(about)
        return graph
