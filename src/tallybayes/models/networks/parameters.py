"""NetworkParameters: what follows from the counts of a Bayesian network: tables, parameters, evidence."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, EstimateError, StatisticsError
from tallybayes.families.family import Family
from tallybayes.families.priors import PriorRule
from tallybayes.learned import Bits
from tallybayes.models.fitted.fitted import Fitted
from tallybayes.models.fitted.scoring import Scored
from tallybayes.models.inputs.column_priors import check_priors, prior_for
from tallybayes.models.model import Tallied
from tallybayes.models.networks.conditional import Conditional
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.inference import NetworkInference
from tallybayes.models.networks.prior import BDe
from tallybayes.models.networks.tables import NetworkTables
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


class Node(NamedTuple):
    """A node as it was counted: its factor, p(node | given), and the statistics of that."""

    factor: Factor
    statistics: Any

    @property
    def family(self) -> Family:
        """What the node's values mean."""
        return self.factor.family

    @property
    def is_label(self) -> bool:
        """Whether the node has levels; otherwise it is measured, and a leaf."""
        return self.family.reads == "codes"

    @property
    def counted(self) -> Any:
        """The statistics as they are estimated from: of labels by the axes of the parents, of others with one axis."""
        return self.statistics if self.is_label else self.flat()

    def flat(self) -> Any:
        """The statistics with one axis of groups."""
        n_groups = math.prod(self.statistics.given_shape)
        return self.statistics.reshape_groups((n_groups,))


class NetworkParameters(Tallied):
    """A network as far as its tally tells."""

    parents: Any
    estimate: str
    prior: Any
    unseen: str
    _given: NetworkTables | None = None  # tables that were not learned, but read from a file

    @property
    def graph_(self) -> Graph:
        """Who depends on whom."""
        return self._derive("graph", self._make_graph) if hasattr(self, "tally_") else Graph.read(self.parents)

    def _make_graph(self) -> Graph:
        return Graph.read({name: factor.given for factor in self.tally_.factors for name in factor.columns})

    @property
    def _nodes(self) -> dict[Name, Node]:
        """Every node as it was counted, parents before children."""
        check_is_fitted(self, "tally_")
        return self._derive("nodes", self._make_nodes)

    def _make_nodes(self) -> dict[Name, Node]:
        found: dict[Name, Node] = {}
        for factor, statistics in zip(self.tally_.factors, self.tally_.statistics, strict=True):
            single = len(factor.columns) == 1
            for place, name in enumerate(factor.columns):
                part = statistics if single else statistics.columns(np.array([place]))
                found[name] = Node(Factor(name, factor.given, factor.family), part)
        return {node: found[node] for node in self.graph_.nodes}

    @property
    def levels_(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every node that has labels, in the order of the tables."""
        check_is_fitted(self, "tally_")
        return dict(self._derive("levels", self._make_levels))

    def _make_levels(self) -> dict[Name, tuple[Any, ...]]:
        return {name: self.tally_.domains[str(name)].levels for name, node in self._nodes.items() if node.is_label}

    @property
    def prior_(self) -> dict[Name, Any]:
        """The prior of every node as it was resolved from the tally; none where the tables were given."""
        check_is_fitted(self, "tally_")
        if self._given is not None:
            return {}
        return dict(zip(self._nodes, self._fitted.beliefs, strict=True))

    @property
    def _fitted(self) -> Fitted:
        """Every node after estimating, in the order of `_nodes`."""
        return self._derive("fitted", self._fit)

    def _fit(self) -> Fitted:
        nodes = list(self._nodes.values())
        self._check_prior([node.factor for node in nodes])
        pairs = [(node.factor, node.counted) for node in nodes]
        return Fitted(pairs, [self._prior_of(node) for node in nodes], self.estimate)

    def _check_prior(self, factors: list[Factor]) -> None:
        if not isinstance(self.prior, Tally):
            check_priors(self.prior, factors)

    def _prior_of(self, node: Node) -> Any:
        """The prior meant for a node; a tally was seen before, so it updates the default."""
        name = node.factor.columns[0]
        if isinstance(self.prior, NetworkParameters):
            raise EstimateError(
                "prior= is a network, and how much it is worth is not said.\n"
                "    Pass prior=tb.BDe(network, sample_size), worth so many rows, or its counts: prior=network.tally_."
            )
        if isinstance(self.prior, BDe):
            return self.prior.concentration(name, node.factor.given, self.levels_) if node.is_label else None
        if isinstance(self.prior, Tally):
            before = self.prior.over(self.tally_)
            seen = next(
                (statistics if len(factor.columns) == 1 else statistics.columns(np.array([factor.columns.index(name)])))
                for factor, statistics in zip(before.factors, before.statistics, strict=True)
                if name in factor.columns
            )
            seen = seen if node.is_label else seen.reshape_groups(node.flat().given_shape)
            return node.family.prior(None, node.counted, self.estimate).update(seen)
        if isinstance(self.prior, PriorRule) and not node.is_label:
            return None
        return prior_for(self.prior, node.factor)

    @property
    def _tables(self) -> dict[Name, np.ndarray]:
        """p(node | parents) of every node with labels, (*parents, levels); NaN where maximum likelihood has no row."""
        if self._given is not None:
            return dict(self._given.tables)
        return self._derive("tables", self._make_tables)

    def _make_tables(self) -> dict[Name, np.ndarray]:
        nodes = zip(self._nodes.items(), self._fitted.scored, strict=True)
        return {name: scored.point.table for (name, node), scored in nodes if node.is_label}

    @property
    def _leaves(self) -> dict[Name, Scored]:
        """Every measured node, ready to score rows in each combination of its parents' levels."""
        return self._derive("leaves", self._make_leaves)

    def _make_leaves(self) -> dict[Name, Scored]:
        nodes = zip(self._nodes.items(), self._fitted.scored, strict=True)
        return {name: scored for (name, node), scored in nodes if not node.is_label}

    def _configurations(self, parents: tuple[Name, ...]) -> list[Any]:
        """The combinations of the parents' levels, in the order of the tables."""
        shape = tuple(len(self.levels_[name]) for name in parents)
        return [
            {name: self.levels_[name][k] for name, k in zip(parents, place, strict=True)}
            for place in np.ndindex(*shape)
        ]

    @property
    def unseen_configurations_(self) -> dict[Name, list[dict[Name, Any]]]:
        """The combinations of parents' levels that no row showed, by node.

        Under bayes and map their row of the table is the prior's. Under mle it is not known: a question whose answer
        depends on it is refused.
        """
        found: dict[Name, list[dict[Name, Any]]] = {}
        for name, node in self._nodes.items() if self._given is None else ():
            weight = np.asarray(node.flat().presence())
            if node.factor.given and (weight == 0).any():
                shape = node.statistics.given_shape
                places = [np.unravel_index(k, shape) for k in np.flatnonzero(weight == 0)]
                parents = node.factor.given
                found[name] = [
                    {p: self.levels_[p][int(k)] for p, k in zip(parents, place, strict=True)} for place in places
                ]
        return found

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        return self._fitted.n_parameters

    @property
    def n_parameters_joint_(self) -> int:
        """The number of free parameters of a table of all labels at once: what the structure saves."""
        return max(math.prod(len(levels) for levels in self.levels_.values()) - 1, 0)

    @property
    def _inference(self) -> NetworkInference:
        check_is_fitted(self, "tally_")
        return self._derive("inference", self._make_inference)

    def _make_inference(self) -> NetworkInference:
        if self.unseen not in ("missing", "error"):
            raise DataError(f"unseen is {self.unseen!r}; expected 'missing' or 'error'.")
        empty = [name for name, levels in self.levels_.items() if not levels]
        if empty:
            raise DataError(
                f"no row is left in this network, so {empty[0]!r} has no levels and nothing can be asked.\n"
                "    Learn from rows, or declare levels: tb.Categorical(levels=[...])."
            )
        widths = {name: self._nodes[name].statistics.n_columns for name in self._leaves}
        return NetworkInference(self.graph_, self.levels_, self._tables, self._leaves, widths)

    def table(self, node: Name) -> Conditional:
        """p(node | its parents): it prints as a table.

        Parameters
        ----------
        node : name

        Returns
        -------
        Conditional
        """
        check_is_fitted(self, "tally_")
        self.graph_.require([node])
        parents = self.graph_.parents[node]
        above = tuple(self.levels_[name] for name in parents)
        if node in self.levels_:
            return Conditional(node, parents, above, self.levels_[node], self._tables[node])
        return Conditional(node, parents, above, None, self._leaves[node])

    # ---- Comparing structures ---------------------------------------------------------------------------------------

    def _refuse_given(self, what: str) -> None:
        if self._given is not None:
            raise StatisticsError(
                f"{what} a network whose tables were given, not counted.\n    Use fit to learn them from rows, or pass "
                "prior=tb.BDe(network, sample_size) to let the given ones count as so many rows."
            )

    def _refuse_soft(self, what: str) -> None:
        self._refuse_given(f"there is no {what} of")
        if self.tally_.soft:
            raise EstimateError(
                f"this network has no {what}: EM filled in what was missing; its counts are expectations, not rows.\n"
                "    Fit it on rows without missing cells, or with missing='available'."
            )

    def log_evidence(self) -> float:
        """Log p(rows | structure), every parameter integrated out under its prior, in nats.

        Structures of the same nodes compare by it: the difference is the log Bayes factor. With `tb.BDeu`, networks
        that say the same independences score alike. A missing cell leaves its row out of the factors that need it, so
        structures only compare where few are missing. A measured column without any spread is left out.

        Returns
        -------
        float
        """
        check_is_fitted(self, "tally_")
        self._refuse_soft("evidence")
        return self._fitted.evidence().log_evidence

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better."""
        check_is_fitted(self, "tally_")
        self._refuse_soft("BIC")
        return self._fitted.bic

    def bits(self) -> Bits:
        """Code lengths of the rows: given the MAP parameters, of the density of these, and by the evidence.

        Returns
        -------
        Bits
            In bits; the density term may be negative, for a density is no probability.
        """
        check_is_fitted(self, "tally_")
        self._refuse_soft("code length")
        return self._fitted.bits()
