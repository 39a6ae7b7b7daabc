"""BayesianNetwork: who depends on whom, tables by counting, exact answers to any question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallybayes.errors import DataError, ImpossibleEvidenceError, printable, shortened
from tallybayes.models.fitted.generate import sample_factor
from tallybayes.models.networks.answer import Answer, MostProbable
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.rows import NetworkRows, listed
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name


class BayesianNetwork(NetworkRows):
    """A Bayesian network: p(all nodes) = Π p(node | its parents).

    Its tables are counted in one pass; they add, forget and are re-estimated like every model here. Questions are
    answered exactly, by a clique tree that serves many rows of evidence at once, whatever is known in each of them. A
    network too large for memory is refused before anything is allocated.

    Parameters
    ----------
    parents : mapping from node to its parents, list of edges (parent, child), or networkx DiGraph
        Nodes are columns of the data. Those named only as parents have none of their own.
    columns : "auto", a Family, or a mapping from nodes to families, default "auto"
        ``"auto"`` reads types, never values: nodes are labels, whole numbers included; floats without children are
        Gaussian. Nodes with children are always labels; others may be of any family, given their parents.
        ``tb.Categorical(levels=...)`` declares levels.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` takes the posterior mean of every table and integrates the parameters of measured nodes out.
    prior : Belief, rule, "empirical", Tally, BDe, mapping from nodes to these, or None
        ``tb.Dirichlet(α)``, ``tb.K2()``, ``tb.BDeu(sample_size)``; ``tb.BDe(network, sample_size)`` takes another
        network; a tally counts as seen before. None takes the families' defaults, add-one.
    unseen : {"missing", "error"}, default "missing"
        What a label is in rows to be answered that no row had at fitting: not known, or an error.
    missing : {"available", "em"}, default "available"
        A row with a missing cell is left out of the tables that need the cell, and of no other; or its missing labels
        are expected from the others, by EM.
    n_iter, tol : int and float
        EM takes at most so many steps, and stops when one raises the objective by less than `tol` a row.
    random_state : int, Generator or None
        For the start of EM where a node is never seen.

    Attributes
    ----------
    tally_ : Tally
        All that was learnt.
    levels_ : dict
        The levels of every node that has labels.
    graph_ : Graph
        Who depends on whom: ``nodes``, ``edges``, ``parents``.
    prior_ : dict
        The prior of every node as resolved.
    unseen_configurations_ : dict
        The combinations of parents' levels that no row showed.
    n_parameters_, n_parameters_joint_ : int
        The free parameters, and those of one table of all labels.
    bic_ : float
        The Bayesian information criterion.
    history_, objective_, converged_
        How EM ended.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "sprinkler": [1, 0, 1, 0, 0, 0], "wet": [1, 0, 1, 1, 1, 0]}
    >>> model = tb.BayesianNetwork({"wet": ["rain", "sprinkler"]}, estimate="map").fit(rows)
    >>> model.query("rain", {"wet": 1})
    p(rain | wet = 1)
      0  0.5263  ███████████
      1  0.4737  █████████
    """

    def __init__(
        self,
        parents: Any,
        *,
        columns: Any = "auto",
        estimate: str = "bayes",
        prior: Any = None,
        unseen: str = "missing",
        missing: str = "available",
        n_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.parents = parents if isinstance(parents, dict) else Graph.read(parents).parents
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.unseen = unseen
        self.missing = missing
        self.n_iter = n_iter
        self.tol = tol
        self.random_state = random_state

    def query(
        self, nodes: Any, evidence: Mapping[Name, Any] | None = None, *, do: Mapping[Name, Any] | None = None
    ) -> Answer:
        """p(nodes | evidence), exactly.

        Parameters
        ----------
        nodes : name, or sequence of names
            What is asked for: labels; of several, their joint distribution.
        evidence : mapping from node to what is known of it, optional
            A level, or a measured value; soft evidence is a mapping from every level to its likelihood,
            p(what was noticed | level), up to a factor.
        do : mapping from node to level, optional
            Nodes that are set from outside, so that their parents have no say.

        Returns
        -------
        Answer
            A mapping from levels, or tuples of levels, to probabilities.

        Examples
        --------
        >>> import tallybayes as tb
        >>> barometer = tb.BayesianNetwork.from_tables(
        ...     {"glass": ["storm"]}, {"storm": ["no", "yes"], "glass": ["high", "low"]},
        ...     {"storm": [0.9, 0.1], "glass": [[0.9, 0.1], [0.2, 0.8]]})
        >>> round(barometer.query("storm", {"glass": "low"})["yes"], 3)       # a falling glass tells of storms
        0.471
        >>> round(barometer.query("storm", do={"glass": "low"})["yes"], 3)    # turning its hand makes none
        0.1
        """
        asked = tuple(listed(nodes))
        self._require_labels(asked)
        if not asked or len(set(asked)) < len(asked):
            raise DataError(f"the nodes asked for are {asked}; expected at least one, and each once.")
        found, known = self._inference, self._inference.read_evidence(evidence, do)
        compiled = found.compile(do or (), asked)
        likelihoods, offset = found.likelihoods(known, slice(0, 1), do or ())
        answer = compiled.tree.propagate(compiled.potentials, likelihoods, 1)
        self._refuse_impossible(answer.log_evidence[0] + offset[0], evidence, do)
        found.refuse_unknown(answer, known, slice(0, 1), asked, do or ())
        table = answer.marginal(found.scope(asked))[..., 0]
        return Answer(asked, tuple(found.levels[node] for node in asked), table, {**(evidence or {}), **_done(do)})

    def most_probable(
        self, evidence: Mapping[Name, Any] | None = None, *, do: Mapping[Name, Any] | None = None
    ) -> MostProbable:
        """The most probable levels of all nodes together, given the evidence (MPE).

        It need not be made of the most probable level of each.

        Parameters
        ----------
        evidence, do
            As for `query`.

        Returns
        -------
        MostProbable
            A mapping from node to level.
        """
        found, known = self._inference, self._inference.read_evidence(evidence, do)
        compiled = found.compile(do or ())
        likelihoods, offset = found.likelihoods(known, slice(0, 1), do or ())
        whole = compiled.tree.propagate(compiled.potentials, likelihoods, 1)
        self._refuse_impossible(whole.log_evidence[0] + offset[0], evidence, do)
        found.refuse_unknown(whole, known, slice(0, 1), found.levels, do or ())
        codes, log_probability = compiled.tree.most_probable(compiled.potentials, likelihoods, 1)
        levels = {node: found.levels[node][int(code)] for node, code in zip(found.levels, codes[:, 0], strict=True)}
        return MostProbable(
            levels, float(log_probability[0] - whole.log_evidence[0]), {**(evidence or {}), **_done(do)}
        )

    def probability_of_evidence(self, evidence: Mapping[Name, Any], *, do: Mapping[Name, Any] | None = None) -> float:
        """p(evidence): a density where measured nodes are among it; 0 where it is impossible.

        Parameters
        ----------
        evidence, do
            As for `query`.

        Returns
        -------
        float
        """
        found, known = self._inference, self._inference.read_evidence(evidence, do)
        ((rows, answer),) = found.batches(known, do or ())
        found.refuse_unknown(answer, known, rows, None, do or ())
        return float(np.exp(answer.log_evidence[0]))

    def sample(
        self,
        n: int = 1,
        evidence: Mapping[Name, Any] | None = None,
        *,
        do: Mapping[Name, Any] | None = None,
        random_state: Any = None,
    ) -> dict[Name, np.ndarray]:
        """Rows drawn from the network, or from what it says given the evidence.

        Parameters
        ----------
        n : int, default 1
        evidence, do
            As for `query`.
        random_state : int, Generator or None

        Returns
        -------
        dict from node to an array of shape (n,)
            Columns, as `fit` takes them.

        Examples
        --------
        >>> import tallybayes as tb
        >>> coin = tb.BayesianNetwork.from_tables({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.5, 0.5]})
        >>> coin.sample(3, random_state=0)
        {'coin': array(['tails', 'heads', 'heads'], dtype='<U5')}
        """
        if not isinstance(n, int | np.integer) or n < 0:
            raise DataError.wrong_type("n", repr(n), "a whole number of at least 0")
        rng = np.random.default_rng(random_state)
        found, known = self._inference, self._inference.read_evidence(evidence, do)
        ((rows, answer),) = found.batches(known, do or ())
        self._refuse_impossible(answer.log_evidence[0], evidence, do)
        found.refuse_unknown(answer, known, rows, found.graph.nodes, do or ())
        codes = answer.sample(int(n), rng)
        out: dict[Name, np.ndarray] = {}
        for node in self.graph_.nodes:
            if node in found.leaves:
                value = {**(evidence or {}), **(do or {})}.get(node)
                if value is not None:
                    out[node] = np.repeat(np.asarray([value]), n, axis=0)
                    continue
                group = found.group(node, dict(zip(found.levels, codes, strict=True)), int(n))
                drawn = sample_factor(found.leaves[node], group, self._nodes[node].flat(), rng)
                out[node] = drawn if drawn.shape[1] > 1 else drawn[:, 0]
            else:
                out[node] = labels_of(found.levels[node], None)[codes[found.index[node]]]
        return out

    # ---- Pictures ---------------------------------------------------------------------------------------------------

    def plot(self, ax: Any = None, *, evidence: Any = None, do: Any = None, tables: bool = True) -> Any:
        """A picture of the network, parents above children; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        evidence, do
            As for `query`. With either, the boxes show every node before and after; without, their tables.
        tables : bool, default True
            Whether small tables are written into the boxes; never of more than 16 nodes.

        Returns
        -------
        matplotlib Axes
        """
        from tallybayes.plots.network import plot_network

        return plot_network(self, ax, evidence=evidence, do=do, tables=tables)

    def plot_posteriors(
        self,
        evidence: Mapping[Name, Any] | None,
        nodes: Any = None,
        ax: Any = None,
        *,
        do: Mapping[Name, Any] | None = None,
    ) -> Any:
        """A picture of what the evidence tells: nodes before and after, with the bits learned; needs matplotlib.

        Parameters
        ----------
        evidence, do
            As for `query`; without `do`, there has to be evidence.
        nodes : name, or sequence of names, optional
            None draws the 12 that moved most, by information.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from tallybayes.plots.network import plot_posteriors

        return plot_posteriors(self, evidence, nodes, ax, do=do)

    def _refuse_impossible(self, log_evidence: float, evidence: Any, do: Any) -> None:
        """Name what cannot happen: as little of the evidence as contradicts the network."""
        if not np.isneginf(log_evidence):
            return
        blamed = dict(evidence or {})
        for node in list(blamed):
            rest = {other: value for other, value in blamed.items() if other != node}
            if self._inference_of(rest, do) == -np.inf:
                blamed = rest
        raise ImpossibleEvidenceError.of(blamed | _done(do))

    def _inference_of(self, evidence: Mapping[Name, Any], do: Any) -> float:
        ((_, answer),) = self._inference.batches(self._inference.read_evidence(evidence, do), do or (), down=False)
        return float(answer.log_evidence[0])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "tally_"):
            return super().__repr__(N_CHAR_MAX)
        n_nodes, n_edges = len(self.graph_.nodes), len(self.graph_.edges)
        n_joint = shortened(self.n_parameters_joint_, 6)
        lines = [
            f"BayesianNetwork: {n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)}, "
            f"{self.n_parameters_} parameters (a table of all labels: {n_joint})"
        ]
        for name, node in list(self._nodes.items())[:12]:
            parents = ", ".join(map(printable, node.factor.given))
            n_levels = len(self.levels_.get(name, ()))
            shown = f"{n_levels} level{'s' * (n_levels != 1)}" if node.is_label else repr(node.family)
            lines.append(f"  p({printable(name)}{' | ' + parents if parents else ''})  {shown}")
        if n_nodes > 12:
            lines.append(f"  … {n_nodes - 12} more")
        return "\n".join(lines)


def _done(do: Mapping[Name, Any] | None) -> dict[Any, Any]:
    return {f"do({node})": value for node, value in (do or {}).items()}
