"""BayesianNetwork: CPTs by counting, exact inference by a clique tree."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import printable, short_int
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.base import Model
from tallybayes.models.inputs.columns import check_same_families, columns_of
from tallybayes.models.inspection import information_criteria, labeled_parameters
from tallybayes.models.inspection.model_summary import summary
from tallybayes.models.network import estimated_network, network_fit
from tallybayes.models.network.analysis import d_separation
from tallybayes.models.network.analysis.causal_effect import causal_effect
from tallybayes.models.network.analysis.sensitivity import sensitivity
from tallybayes.models.network.analysis.value_of_information import value_of_information
from tallybayes.models.network.estimated_network import EstimatedNetwork, nodes_of
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference import queries, row_predictions
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.io import network_conversion
from tallybayes.models.network.network_factors import check_structure, check_sum
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import with_selected_words
from tallybayes.typing import Columns, Names, Parents, Priors, RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.analysis.causal_effect import CausalEffect
    from tallybayes.models.network.analysis.d_separation import ActivePath, MarkovBlanket
    from tallybayes.plotting.plot import Plot


class BayesianNetwork(Model):
    """A Bayesian network: p(all nodes) = Π p(node | its parents).

    The conditional probability tables (CPTs) are counted in one pass. Inference is exact: a clique tree for many rows
    with any pattern of missing cells. A network too large for memory raises TooLargeError before allocation.

    Parameters
    ----------
    parents : mapping from node to its parents, list of edges (parent, child), networkx DiGraph, or Structure
        Nodes are columns of the data. Nodes named only as parents have no parents. `learn_structure` learns one.
    columns : "auto", a Family, or a mapping from nodes to families, default "auto"
        ``"auto"`` reads types, never values: nodes are labels, whole numbers included (more than 50 different ones are
        warned of); floats are Gaussian, unless labels depend on them. No label may depend on a measured node. A
        Gaussian node with Gaussian parents is a line in them (`ConditionalLinearGaussian`), one for every combination of its
        other parents' levels; nodes that are linked to no other measured node may be of any family, given their
        parents. ``tb.Categorical(levels=...)`` declares levels. ``tb.WithMissing(family)`` makes absence a value: of
        labels one more level, of others a yes or no given the same parents, called ``"age (there)"`` for ``"age"``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` takes the posterior mean of every table, and of the lines between measured nodes; the parameters of
        other measured nodes are integrated out.
    prior : Belief, number, rule, "empirical", Tally, BDe, mapping from nodes to these, or None
        A number is added to every level's count (an error under ``"map"``); a `Beta` is for nodes of two levels, and
        about the last one, as declared or sorted; ``tb.Dirichlet(α)``, ``tb.K2()``,
        ``tb.BDeu(equivalent_sample_size)``; ``tb.BDe(network, equivalent_sample_size)`` takes another network; a tally
        counts as seen before. None takes the families' defaults, add-one. Of a line, ``{node: λ}`` is weight decay.
    unseen : {"missing", "error"}, default "missing"
        Treat unseen levels in rows to predict as missing, or raise an error.
    missing : {"available", "em"}, default "available"
        ``"available"`` counts every CPT from the rows that have all its cells. ``"em"`` estimates missing cells of
        discrete and connected continuous nodes by EM.
    max_iter, tol : int and float
        Maximum number of EM iterations, and the improvement of the objective per row below which EM stops.
    n_init : int, default 1
        Number of initializations of EM, of nodes that are never observed or else of missing cells; the best is kept.
    warm_start : bool, default False
        Whether `fit` starts EM from the previous estimates.
    random_state : int, Generator or None
        For the initialization of EM.

    Attributes
    ----------
    tally_ : Tally
        The sufficient statistics.
    levels_ : dict
        The levels of every discrete node.
    graph_ : Graph
        The DAG: ``nodes``, ``edges``, ``parents``.
    prior_ : dict
        The prior of every node as resolved.
    unseen_configurations_ : dict
        The combinations of parents' levels without rows.
    n_parameters_, n_parameters_joint_ : int
        Number of free parameters, and that of one joint table of all discrete nodes.
    bic_ : float
        The Bayesian information criterion.
    history_, objective_, objectives_, converged_
        The objective by iteration, its final value, those of all initializations, and convergence.

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
        parents: Parents,
        *,
        columns: Columns = "auto",
        estimate: str = "bayes",
        prior: Priors = None,
        unseen: str = "missing",
        missing: str = "available",
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.parents = parents if isinstance(parents, dict) else Graph.read(parents).parents
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.unseen = unseen
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state

    # Fitting
    fit = network_fit.fit
    partial_fit = network_fit.partial_fit
    forget = network_fit.forget
    fit_tally = network_fit.fit_tally
    _count_more_rows = network_fit.count_more

    # Queries
    query = queries.query
    most_probable = queries.most_probable
    probability = queries.probability
    sample = queries.sample
    value_of_information = value_of_information
    causal_effect = causal_effect
    sensitivity = sensitivity

    # The graph
    d_separated = d_separation.d_separated
    active_path = d_separation.active_path
    markov_blanket = d_separation.markov_blanket

    # Many rows
    score_samples = row_predictions.score_samples
    log_likelihood = row_predictions.log_likelihood
    predict_proba = row_predictions.predict_proba
    predict = row_predictions.predict
    impute = row_predictions.impute

    # Parameters and goodness of fit
    parameters_ = property(labeled_parameters.parameters)
    cpt = estimated_network.cpt
    posterior_ = property(labeled_parameters.posterior)
    _labeled_factors = estimated_network.told
    unseen_configurations_ = property(estimated_network.unseen_configurations)
    n_parameters_ = property(information_criteria.n_parameters)
    log_evidence = information_criteria.log_evidence
    description_length = information_criteria.description_length
    plot_convergence = plot_convergence
    bic_ = property(information_criteria.bic)
    aic_ = property(information_criteria.aic)
    prior_ = property(information_criteria.resolved_priors)
    summary = summary
    _summary_shows_parents = True

    # Tables and files
    from_tables = classmethod(network_conversion.from_tables)
    from_bif = classmethod(network_conversion.from_bif)
    from_parameters = classmethod(network_conversion.from_parameters)
    from_json = classmethod(network_conversion.from_json)
    to_tables = network_conversion.to_tables
    to_bif = network_conversion.to_bif
    to_parameters = network_conversion.to_parameters
    to_json = network_conversion.to_json
    to_networkx = network_conversion.to_networkx

    @property
    def graph_(self) -> Graph:
        """The DAG; a missing-value indicator has the parents of its node."""
        if not hasattr(self, "tally_"):
            return Graph.read(self.parents)
        beside, graph = set(self._estimated_network.presence.values()), self._estimated_network.graph
        return Graph({n: above for n, above in graph.parents.items() if n not in beside}) if beside else graph

    @property
    def levels_(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every discrete node, in the order of the CPTs; a missing value is shown as (missing)."""
        return dict(self._estimated_network.levels)

    @property
    def n_parameters_joint_(self) -> int:
        """The number of free parameters of a joint table of all discrete nodes."""
        return max(math.prod(len(levels) for levels in self.levels_.values()) - 1, 0)

    _soft_counts_hint = "Fit it on rows without missing cells, or with missing='available'."

    @property
    def _all_factors(self) -> EstimatedFactors:
        return self._estimated_network.fitted

    _fixed_parameters_hint = (
        "Use fit to estimate from rows, with prior=tb.BDe(network, equivalent_sample_size) as prior."
    )

    def _resolved_priors(self) -> dict[Any, Any]:
        return information_criteria.priors_by_column(self._estimated_network.fitted)

    def _total_weight(self) -> float:
        """Return the weight of the rows of the node with the most rows."""
        return max(
            (float(np.sum(node.flat().group_weights())) for node in self._estimated_network.nodes.values()), default=0.0
        )

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        """Return the factors in topological order."""
        found = nodes_of(tally.factors, tally.statistics)
        graph = Graph.read({name: node.factor.given for name, node in found.items()})
        return [found[name].factor for name in graph.nodes]

    def _summary_title(self, n_rows: float) -> str:
        rows = f"{n_rows:.12g} rows" if self._fixed_parameters is None else "given tables"
        n_nodes, n_edges = len(self.graph_.nodes), len(self.graph_.edges)
        return f"BayesianNetwork of {rows}, {n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)}"

    def plot(
        self,
        ax: Axes | None = None,
        *,
        given: Mapping[Any, Any] | None = None,
        do: Mapping[Any, Any] | None = None,
        tables: bool = True,
        highlight: ActivePath | MarkovBlanket | CausalEffect | Names | Mapping[str, Names] | None = None,
    ) -> Plot:
        """Plot the network, parents above children; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        given, do
            As for `query`. With either, the boxes show every node before and after; without, their tables.
        tables : bool, default True
            Whether small tables are written into the boxes; never of more than 16 nodes.
        highlight : ActivePath, MarkovBlanket, CausalEffect, names, or a mapping from words to names, optional
            What is shown in color, each word in its own.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.network.network_graph import plot_network

        return plot_network(self, ax, given=given, do=do, tables=tables, highlight=highlight)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """Plot the nodes and edges without tables, as `plot(tables=False)`; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        return self.plot(ax, tables=False)

    def plot_posteriors(
        self,
        given: Mapping[Any, Any] | None,
        nodes: Names | None = None,
        ax: Axes | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
    ) -> Plot:
        """Plot prior and posterior probabilities of nodes given evidence, with bits of information; needs matplotlib.

        Parameters
        ----------
        given, do
            As for `query`; without `do`, something has to be given.
        nodes : name, or sequence of names, optional
            None draws the 12 that moved most, by information.
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.network.network_graph import plot_posteriors

        return plot_posteriors(self, given, nodes, ax, do=do)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "tally_"):
            return super().__repr__(N_CHAR_MAX)
        n_nodes, n_edges = len(self.graph_.nodes), len(self.graph_.edges)
        n_joint = short_int(self.n_parameters_joint_, 6)
        lines = [
            f"BayesianNetwork: {n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)}, "
            f"{self.n_parameters_} parameters (a table of all labels: {n_joint})"
        ]
        for name, given in list(self.graph_.parents.items())[:12]:
            parents = ", ".join(map(printable, given))
            n_levels = len(self.levels_.get(name, ()))
            shown = f"{n_levels} level{'s' * (n_levels != 1)}" if name in self.levels_ else repr(self.columns_[name])
            lines.append(f"  p({printable(name)}{' | ' + parents if parents else ''})  {shown}")
        if n_nodes > 12:
            lines.append(f"  … {n_nodes - 12} more")
        return "\n".join(lines)

    # ---- Hooks of the base class Model ------------------------------------------------------------------------------

    @property
    def _estimated_network(self) -> EstimatedNetwork:
        """The estimates from the tally, or the given tables."""

        def make() -> EstimatedNetwork:
            prior = self.prior
            if isinstance(prior, Tally):
                prior = with_selected_words(prior.reindex_like(self.tally_), self._selected_words)
            return EstimatedNetwork(
                self._selected_tally, self.estimate, prior, self._fixed_parameters, self._text_readers
            )

        return self._cached("network", make)

    def _with_tally(self, tally: Tally) -> Self:
        """Return the model with other counts of the same levels, with the same resolved priors."""
        other = self._with_counts(tally)._with_words_of(self)
        other._cache["network"] = self._estimated_network.over(other._selected_tally)
        return other

    def _with_scaled_priors(self, factor: float) -> Self:
        """Return the model with priors of `factor` times their strength."""
        other = self._with_counts(self.tally_)
        other._cache["network"] = self._estimated_network.scaled(factor)
        return other

    def _with_counts(self, tally: Tally) -> Self:
        """Return the model with other counts of the same structure."""
        other = copy.copy(self)
        other.tally_, other._em_result, other._cache = tally, None, {}
        return other

    @property
    def _inference(self) -> NetworkInference:
        """The compiled inference."""
        return self._estimated_network.inference

    def __add__(self, other: Self) -> Self:
        if isinstance(other, BayesianNetwork):
            for model in (self, other):
                model._require_counts("adding models")
            if hasattr(self, "tally_") and hasattr(other, "tally_"):
                check_sum(self.tally_, other.tally_)
        return super().__add__(other)

    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(("missing", "error")),
        "missing": StringOptions(("available", "em")),
    }

    def _check_prior(self, factors: list[Factor]) -> None:
        estimated_network.check_prior(self.prior, factors, self.estimate)

    def _set_tally(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        check_structure(Graph.read(self.parents), tally)
        return super()._set_tally(network_fit.with_prior_levels(self, tally), climbed)

    @property
    def _required_columns(self) -> list[Name]:
        """The columns that rows may have."""
        return list(self.graph_.nodes)

    @property
    def columns_(self) -> dict[Any, Family]:
        """The family of every node."""
        return {name: self._family(name, family) for name, family in columns_of(self).items()}

    def _display_family(self, factor: Factor, name: Any) -> Family:
        return self._family(name, factor.family)

    def _family(self, name: Any, family: Family) -> Family:
        """Return the family of a node, wrapped in WithMissing if a missing value is one of its levels."""
        domain = self._estimated_network.domains.get(name)
        return WithMissing(family) if domain is not None and domain.has_missing_level else family

    _check_mergeable = check_same_families

    def _copy_input_format(self, other: Any) -> Self:
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return no state: the tally has the shape of the input."""
        return {}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Nothing to read; see `_shape_to_json`."""

    def _check_loaded(self) -> None:
        """Raise an error if the tally is not of a network."""
        _ = self._estimated_network.levels
