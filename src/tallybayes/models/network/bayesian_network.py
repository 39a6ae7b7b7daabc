"""BayesianNetwork: CPTs by counting, exact inference by variable elimination."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.data.data_frames import as_frame, frame_kind
from tallybayes.errors import DataError, printable, short_int
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.em_objective import initial_model, plot_convergence
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.base import Model
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.columns import check_same_families, columns_of
from tallybayes.models.inputs.features import is_name, node_list
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.inspection.labeled_parameters import posteriors_by_column
from tallybayes.models.network import network_fit
from tallybayes.models.network.analysis.causal_effect import causal_effect
from tallybayes.models.network.analysis.sensitivity import sensitivity
from tallybayes.models.network.analysis.value_of_information import value_of_information
from tallybayes.models.network.estimated_network import EstimatedNetwork, check_prior, nodes_of
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference import queries, row_predictions
from tallybayes.models.network.inference.query_result import NodePosteriors
from tallybayes.models.network.io import network_conversion
from tallybayes.models.network.io.network_spec import NetworkSpec, read_network_spec
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.models.network.network_factors import check_structure, check_sum, in_graph_order
from tallybayes.models.receipt import with_receipt
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import with_selected_words
from tallybayes.typing import Columns, Names, Parents, Priors, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    import networkx as nx
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from tallybayes.estimation.distribution_fit import DescriptionLength
    from tallybayes.models.inspection.labeled_parameters import LabeledFactor
    from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
    from tallybayes.models.network.analysis.causal_effect import CausalEffect
    from tallybayes.models.network.analysis.d_separation import ActivePath, MarkovBlanket
    from tallybayes.models.network.analysis.linear_causal_effect import LinearCausalEffect
    from tallybayes.models.network.analysis.sensitivity import Sensitivity
    from tallybayes.models.network.analysis.value_of_information import ValueOfInformation
    from tallybayes.models.network.inference.query_result import MostProbableAssignment, QueryResult
    from tallybayes.plotting.plot import Plot


class BayesianNetwork(Model):
    """A Bayesian network: p(all nodes) = Π p(node | its parents).

    The conditional probability tables (CPTs) are counted in one pass. Inference is exact, by variable elimination, for
    rows with any pattern of missing cells. A network too large for memory raises TooLargeError before allocation.

    Parameters
    ----------
    parents : mapping from node to its parents, list of edges (parent, child), networkx DiGraph, or Structure
        Nodes are columns of the data. Nodes named only as parents have no parents. `learn_structure` learns one.
    columns : "auto", a Family, or a mapping from nodes to families, default "auto"
        ``"auto"`` decides by type, not by values: floats are Gaussian unless they have discrete children, all other
        columns are categorical, whole numbers included (with a warning for more than 50 levels). A discrete node cannot
        have continuous parents. A Gaussian node with Gaussian parents is linear in them
        (`ConditionalLinearGaussian`), with parameters for every combination of its discrete parents' levels. Other
        families are for nodes without continuous neighbors. ``tb.Categorical(levels=...)`` declares levels.
        ``tb.WithMissing(family)`` models informative missing values: by one more level of a discrete node, or by a
        binary indicator with the same parents, called ``"age (present)"`` for ``"age"``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` takes the posterior means of CPTs and of linear models between continuous nodes; the parameters of
        other continuous nodes are integrated out.
    prior : ParameterDistribution, number, prior rule, "empirical", Tally, BDe, mapping from nodes to these, or None
        A number is a pseudo-count for every level (an error under ``"map"``). A `Beta` is for the last level of binary
        nodes, as declared or sorted. ``tb.Dirichlet(α)``, ``tb.K2()`` and ``tb.BDeu(equivalent_sample_size)`` are
        priors of CPTs; ``tb.BDe(network, equivalent_sample_size)`` takes another network as prior. A tally is used as
        earlier counts. None takes the defaults of the families: pseudo-counts of 1. For a linear model,
        ``{node: λ}`` is weight decay.
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

    # ---- Fitting ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Rows,
        *,
        sample_weight: SampleWeights = None,
        names: Iterable[Name] | None = None,
        initial: BayesianNetwork | None = None,
    ) -> Self:
        """Fit the network: count the CPTs, or estimate missing cells by EM.

        Parameters
        ----------
        X : data frame, mapping of columns, list of dicts, or array
            Columns that are not nodes are ignored. None and NaN are missing. Booleans may stand for levels that are
            words, as for `query`.
        sample_weight : array-like of shape (n,), or the name of a column, optional
        names : sequence, optional
            The names of an array's columns; the default is 0, 1, 2, …
        initial : BayesianNetwork, optional
            A network of the same structure, whose parameters are the only initial values of EM. It has no effect with
            ``missing="available"``.

        Returns
        -------
        self
        """
        initial = initial_model(self, initial)
        self._check_settings()
        tally, em_result = network_fit.count_training_rows(self, X, sample_weight, names, initial)
        self._set_tally(tally, em_result)
        self._frame_library = frame_kind(X)
        return self

    def partial_fit(self, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None) -> Self:
        """Count more rows; new levels may appear. The result does not depend on the order or the batches of rows.

        Parameters
        ----------
        X, sample_weight, names
            As for `fit`. With ``missing="em"`` no cell may be missing.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self.fit(X, sample_weight=sample_weight, names=names)
        self._require_counts("adding rows")
        more = network_fit.count_more_rows(self, X, sample_weight, names)
        check_sum(self.tally_, more)
        return self._set_tally(self.tally_ + more)

    @with_receipt
    def forget(self, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None) -> Self:
        """Remove rows from the counts, exactly: as if they had not been fitted.

        Parameters
        ----------
        X, sample_weight, names
            Rows that were fitted, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        self._require_counts("taking rows out")
        return self._set_tally(self.tally_ - network_fit.count_more_rows(self, X, sample_weight, names))

    def fit_tally(self, tally: Tally) -> Self:
        """Fit from a tally that was counted elsewhere: by another model, in another process, in a database.

        Parameters
        ----------
        tally : Tally
            A factor p(columns | parents) for every node; nodes with the same parents may share a factor.

        Returns
        -------
        self
        """
        if not isinstance(tally, Tally):
            raise DataError.wrong_type("tally", repr(tally)[:60], "a Tally, as of tb.count or a fitted model")
        graph = Graph.read(self.parents)
        check_structure(graph, tally)
        self._check_settings()
        self._check_prior(list(tally.factors))
        return self._set_tally(in_graph_order(graph, tally))

    # ---- Queries ----------------------------------------------------------------------------------------------------

    def query(
        self,
        nodes: Names,
        given: Mapping[Any, Any] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        inference: str = "exact",
        n_draws: int = 200_000,
        random_state: RandomState = None,
    ) -> QueryResult:
        """Compute the posterior distribution p(nodes | given), exactly or by sampling.

        Parameters
        ----------
        nodes : name, or sequence of names
            Discrete or Gaussian nodes; of several, their joint distribution.
        given : mapping from node to evidence, optional
            A level, or the value of a continuous node. Soft (virtual) evidence is a mapping from every level to its
            likelihood, up to a factor. For levels that are strings, True and False stand for the only level that reads
            true and false, or yes and no, in upper or lower case.
        do : mapping from node to level, optional
            Interventions: the edges into these nodes are removed.
        inference : {"exact", "sampling"}, default "exact"
            ``"sampling"`` is likelihood weighting, for networks that are too large for exact inference. Less probable
            evidence needs more draws.
        n_draws : int, default 200,000
        random_state : int, Generator or None
            For sampling.

        Returns
        -------
        QueryResult
            A mapping from levels, or tuples of levels, to probabilities; for Gaussian nodes with ``mean``, ``std``,
            ``pdf``, ``cdf`` and ``quantile``. With ``inference="sampling"`` it has ``standard_errors`` and
            ``effective_size``; a small effective size raises a warning.

        Examples
        --------
        >>> import tallybayes as tb
        >>> barometer = tb.BayesianNetwork.from_tables(
        ...     {"glass": ["storm"]}, {"storm": ["no", "yes"], "glass": ["high", "low"]},
        ...     {"storm": [0.9, 0.1], "glass": [[0.9, 0.1], [0.2, 0.8]]})
        >>> round(barometer.query("storm", {"glass": "low"})["yes"], 3)       # observing a low glass
        0.471
        >>> round(barometer.query("storm", do={"glass": "low"})["yes"], 3)    # setting it has no effect
        0.1
        """
        return queries.query(self._estimated_network, nodes, given, do, inference, n_draws, random_state)

    def most_probable(
        self,
        given: Mapping[Any, Any] | None = None,
        nodes: Names | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
    ) -> MostProbableAssignment:
        """Compute the most probable joint assignment of nodes given the evidence (MPE, or marginal MAP).

        It may differ from the most probable level of each node; that of some nodes may differ from that of all nodes.

        Parameters
        ----------
        given, do
            As for `query`.
        nodes : name, or sequence of names, optional
            None takes all nodes (MPE). Marginal MAP sums over the other nodes; sums come before maxima, so that it may
            need more memory than MPE, and raises TooLargeError if it needs too much.

        Returns
        -------
        MostProbableAssignment
            A mapping from node to level.

        Examples
        --------
        >>> import tallybayes as tb
        >>> weather = tb.BayesianNetwork.from_tables(
        ...     {"wind": ["sky"]}, {"sky": ["sun", "rain"], "wind": ["none", "some", "gale"]},
        ...     {"sky": [0.4, 0.6], "wind": [[1.0, 0.0, 0.0], [0.3, 0.4, 0.3]]})
        >>> weather.most_probable()
        most probable assignment, p = 0.4
          sky   'sun'
          wind  'none'
        >>> weather.most_probable(nodes="sky")
        most probable assignment, summed over the others, p = 0.6
          sky  'rain'
        """
        return queries.most_probable(self._estimated_network, given, nodes, do)

    def probability(self, given: Mapping[Name, Any], *, do: Mapping[Any, Any] | None = None) -> float:
        """Compute p(given): a density if it has continuous nodes; 0 if it is impossible.

        Parameters
        ----------
        given, do
            As for `query`.

        Returns
        -------
        float
        """
        return queries.probability(self._estimated_network, given, do)

    def sample(
        self,
        n: int = 1,
        given: Mapping[Any, Any] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Draw rows from the network, or from its posterior given evidence.

        Parameters
        ----------
        n : int, default 1
        given, do
            As for `query`.
        random_state : int, Generator or None

        Returns
        -------
        A data frame of the kind the network was fitted on, else a dict from node to an array of shape (n,)
            Columns, as `fit` takes them.

        Examples
        --------
        >>> import tallybayes as tb
        >>> coin = tb.BayesianNetwork.from_tables({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.5, 0.5]})
        >>> coin.sample(3, random_state=0)
        {'coin': array(['tails', 'heads', 'heads'], dtype='<U5')}
        """
        return as_frame(queries.sample(self._estimated_network, n, given, do, random_state), self._frame_library)

    def value_of_information(
        self,
        target: Name,
        given: Mapping[Any, Any] | None = None,
        *,
        candidates: Names | None = None,
        cost: Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None = None,
        observation_costs: float | Mapping[Any, float] | None = None,
        do: Mapping[Any, Any] | None = None,
    ) -> ValueOfInformation:
        """Compute the value of observing each node for one target, before its value is known.

        In bits, it is the expected reduction of the target's entropy: its mutual information with the observed node.
        With costs, it is the expected reduction of the cost of the best decision, minus the observation cost. Nodes are
        evaluated one at a time (myopic value of information).

        Parameters
        ----------
        target : name
            A discrete node.
        given, do
            As for `query`.
        candidates : name, or sequence of names, optional
            Discrete nodes that may be observed. None takes all unobserved ones.
        cost : {true: {decided: cost}}, or array of shape (levels, levels), optional
            As for `decide` of classifiers: the cost of each decision by the true level of the target. The default with
            `observation_costs` is 1 for every error.
        observation_costs : number, or mapping from node to number, optional
            Costs of observing nodes, in the unit of `cost`; 0 for other nodes.

        Returns
        -------
        ValueOfInformation
            A mapping from node to its value of information, best first.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tables = {"fire": [0.99, 0.01], "smoke": [[0.99, 0.01], [0.1, 0.9]], "alarm": [[0.98, 0.02], [0.01, 0.99]]}
        >>> building = tb.BayesianNetwork.from_tables(
        ...     {"smoke": ["fire"], "alarm": ["fire"]}, dict.fromkeys(tables, (False, True)), tables)
        >>> building.value_of_information("fire")
        value of information about fire: entropy 0.0808 bits
                 bits
          alarm  0.0521  █████████████
          smoke  0.0505  █████████████
        >>> cost = {True: {"stay": 100, "leave": 10}, False: {"stay": 0, "leave": 10}}
        >>> building.value_of_information("fire", {"alarm": True}, cost=cost, observation_costs={"smoke": 2})
        value of information about fire, given alarm = True: entropy 0.918 bits; best decision 'leave', expected cost 10
                 bits    saved  cost  value
          smoke  0.6791  3.6    2     1.6
        """
        return value_of_information(self._estimated_network, target, given, candidates, cost, observation_costs, do)

    def causal_effect(
        self,
        treatment: Name,
        outcome: Name,
        given: Mapping[Any, Any] | None = None,
        *,
        adjust: Names | None = None,
        unobserved: Names = (),
    ) -> CausalEffect | LinearCausalEffect:
        """Compute the causal effect of a treatment on an outcome: p(outcome | do(treatment)) for every level.

        The observational p(outcome | treatment) is returned beside it. The effect of a continuous treatment is a slope:
        the change of the mean of a continuous outcome per unit of the treatment.

        Edges are read as pointing from causes to effects. By the back-door criterion, adjusting for nodes z that block
        all non-causal paths gives Σ_z p(outcome | treatment, z) p(z); the smallest such set is found. If it needs
        unobserved nodes, the front-door criterion is tried. If neither identifies the effect, EstimateError names an
        open path.

        Parameters
        ----------
        treatment : name
            The node of the intervention.
        outcome : name
            A discrete node, or a continuous node of one column, whose means are compared.
        given : mapping from node to level, optional
            The subpopulation: levels of nodes that do not depend on the treatment.
        adjust : name, or sequence of names, optional
            The adjustment set instead of the smallest one; DataError if it does not satisfy the back-door criterion.
        unobserved : name, or sequence of names, optional
            Nodes that cannot be adjusted for.

        Returns
        -------
        CausalEffect
            A mapping from the levels of the treatment to the `QueryResult` of the outcome, or to its mean. For a
            continuous treatment, a `LinearCausalEffect`.

        Examples
        --------
        >>> import tallybayes as tb
        >>> yes_no = ("no", "yes")
        >>> clinic = tb.BayesianNetwork.from_tables(
        ...     {"drug": ["severe"], "well": ["severe", "drug"]}, dict.fromkeys(("severe", "drug", "well"), yes_no),
        ...     {"severe": [0.5, 0.5], "drug": [[0.9, 0.1], [0.2, 0.8]],
        ...      "well": [[[0.2, 0.8], [0.1, 0.9]], [[0.7, 0.3], [0.6, 0.4]]]})
        >>> clinic.causal_effect("drug", "well")                           # severe cases got it more often
        effect of drug on well, adjusted for severe
          drug   well   interventional  observational  difference
          'no'   'no'   0.4500          0.2909         +0.1591
          'no'   'yes'  0.5500          0.7091         -0.1591
          'yes'  'no'   0.3500          0.5444         -0.1944
          'yes'  'yes'  0.6500          0.4556         +0.1944
        >>> round(clinic.causal_effect("drug", "well").contrast("yes", "no")["yes"], 3)
        0.1
        >>> clinic.causal_effect("drug", "well", unobserved="severe")
        Traceback (most recent call last):
        ...
        tallybayes.errors.EstimateError: the effect of 'drug' on 'well' is not identifiable: drug ← ...
        """
        return causal_effect(self._estimated_network, self.graph_, treatment, outcome, given, adjust, unobserved)

    def sensitivity(
        self,
        event: Mapping[Name, Any],
        given: Mapping[Any, Any] | None = None,
        *,
        odds: float = 2.0,
        do: Mapping[Any, Any] | None = None,
    ) -> Sensitivity:
        """Compute p(event | given) as a function of each entry of the CPTs, one at a time.

        If an entry θ changes, the other entries of its row keep their proportions, and the probability is
        (aθ + b) / (cθ + d) (Castillo, Gutiérrez and Hadi, 1997).

        Parameters
        ----------
        event : mapping from node to level
            The event; several nodes are a conjunction.
        given, do
            As for `query`.
        odds : float, default 2
            The odds of an entry are multiplied and divided by this factor; ``inf`` varies entries from 0 to 1.

        Returns
        -------
        Sensitivity
            A sequence of entries, the most influential first.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tables = {"fire": [0.99, 0.01], "alarm": [[0.98, 0.02], [0.05, 0.95]]}
        >>> building = tb.BayesianNetwork.from_tables({"alarm": ["fire"]}, dict.fromkeys(tables, (False, True)), tables)
        >>> sensitivity = building.sensitivity({"fire": True}, {"alarm": True})
        >>> sensitivity
        p(fire = True | alarm = True) = 0.3242, if the odds of an entry are halved or doubled:
                                          value  low     high    slope
          p(fire = True)                  0.01   0.1935  0.4897  +22.13
          p(alarm = True | fire = False)  0.02   0.1966  0.4872  -10.96
          p(alarm = True | fire = True)   0.95   0.3136  0.3298  +0.2306
        >>> round(sensitivity[1].value_for(0.9), 5)         # the false alarm rate for a posterior of 0.9
        0.00107
        """
        return sensitivity(self._estimated_network, event, given, odds, do)

    # ---- The graph --------------------------------------------------------------------------------------------------

    @property
    def graph_(self) -> Graph:
        """The DAG; a missing-value indicator has the parents of its node."""
        if not hasattr(self, "tally_"):
            return Graph.read(self.parents)
        graph = self._estimated_network.graph
        indicators = set(self._estimated_network.presence.values())
        if not indicators:
            return graph
        return Graph({node: parents for node, parents in graph.parents.items() if node not in indicators})

    def d_separated(self, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> bool:
        """Return whether two sets of nodes are d-separated given the evidence.

        D-separated nodes are conditionally independent for all parameters. Nodes that are not d-separated may still be
        independent for some parameters. `active_path` returns a path that connects them.

        Parameters
        ----------
        first, second : name, or sequence of names
        given : name, sequence of names, or a mapping as for `query`, optional
            The evidence; its levels do not matter. Nodes with soft evidence block no path.

        Returns
        -------
        bool

        Examples
        --------
        >>> import tallybayes as tb
        >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "smoke": ["fire"]})
        >>> building.d_separated("tampering", "smoke")
        True
        >>> building.d_separated("tampering", "smoke", given="alarm")               # explaining away
        False
        >>> building.d_separated("tampering", "smoke", given=["alarm", "fire"])
        True
        """
        return self.graph_.d_separated(first, second, given)

    def active_path(self, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> ActivePath | None:
        """Return a shortest active path between two sets of nodes given the evidence; None if they are d-separated.

        Parameters
        ----------
        first, second, given
            As for `d_separated`.

        Returns
        -------
        ActivePath or None

        Examples
        --------
        >>> import tallybayes as tb
        >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "report": ["alarm"], "smoke": ["fire"]})
        >>> building.active_path("tampering", "smoke", given="report")
        tampering → alarm ← fire → smoke
          alarm  collider; open because report is observed
          fire   not observed
        >>> building.active_path("tampering", "smoke") is None
        True
        """
        return self.graph_.active_path(first, second, given)

    def markov_blanket(self, node: Name) -> MarkovBlanket:
        """Return the Markov blanket of a node: its parents, children, and the other parents of its children.

        Given its Markov blanket, the node is independent of all other nodes.

        Parameters
        ----------
        node : name

        Returns
        -------
        MarkovBlanket
            A set of nodes.

        Examples
        --------
        >>> import tallybayes as tb
        >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "report": ["alarm"], "smoke": ["fire"]})
        >>> building.markov_blanket("fire")
        Markov blanket of fire: 3 nodes
          parents   none
          children  alarm, smoke
          spouses   tampering
        """
        return self.graph_.markov_blanket(node)

    # ---- Predictions for many rows ----------------------------------------------------------------------------------

    @predict_in_batches
    def score_samples(self, X: Rows, *, names: Iterable[Name] | None = None) -> np.ndarray:
        """Compute the log-likelihood of every row, summed over missing cells; −inf for an impossible row.

        Parameters
        ----------
        X, names
            As for `fit`; columns may be missing.

        Returns
        -------
        ndarray of shape (n,)
        """
        evidence = row_predictions.read_prediction_rows(self, X, names)
        return row_predictions.log_likelihoods(self._estimated_network, evidence)

    def log_likelihood(
        self, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None
    ) -> float:
        """Compute the log-likelihood of all rows, in nats.

        Parameters
        ----------
        X, sample_weight, names
            As for `fit`; columns may be missing.
        """
        weight = network_fit.column_weights(network_fit.open_rows(self, X, names), sample_weight)
        return weighted_sum(self.score_samples(X, names=names), weight)

    @overload
    def predict_proba(  # type: ignore[overload-overlap]
        self,
        X: Rows,
        columns: Name,
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> np.ndarray: ...
    @overload
    def predict_proba(
        self,
        X: Rows,
        columns: Iterable[Name] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> NodePosteriors: ...
    @predict_in_batches
    def predict_proba(
        self,
        X: Rows,
        columns: Names | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> Any:
        """Compute p(node | row) for many rows with any pattern of missing cells.

        Parameters
        ----------
        X : as for `fit`; columns may be missing
        columns : name, or sequence of names, optional
            The nodes to predict from all other columns: their own cells are ignored. None predicts the missing cells of
            all nodes from all observed cells.
        do : mapping from node to level, optional
            Interventions in every row.
        names : sequence, optional
            The names of an array's columns.

        Returns
        -------
        ndarray of shape (n, levels) for a single name, else NodePosteriors
            A mapping from node to such arrays, with a flag for impossible rows, ``impossible``. These get the
            probabilities without evidence, and a warning.

        Examples
        --------
        >>> import tallybayes as tb
        >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
        >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
        >>> model.predict_proba({"wet": [1, 0, None]}, "rain").round(2)
        array([[0.43, 0.57],
               [0.82, 0.18],
               [0.62, 0.38]])
        """
        inference = self._estimated_network.inference
        nodes = list(inference.levels) if columns is None else node_list(columns)
        inference.require_discrete(nodes)
        evidence = row_predictions.read_prediction_rows(self, X, names, () if columns is None else nodes, do)
        posteriors, _, log_likelihood = row_predictions.predict_rows(inference, evidence, nodes, do)
        if is_name(columns):
            return posteriors[columns]
        return NodePosteriors(posteriors, {node: inference.levels[node] for node in nodes}, log_likelihood)

    @overload
    def predict(
        self,
        X: Rows,
        columns: Name,
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> np.ndarray: ...
    @overload
    def predict(
        self,
        X: Rows,
        columns: Iterable[Name],
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> Any: ...
    @predict_in_batches
    def predict(
        self,
        X: Rows,
        columns: Names,
        *,
        do: Mapping[Any, Any] | None = None,
        names: Iterable[Name] | None = None,
    ) -> Any:
        """Predict the most probable level of each node separately, or the mean of a continuous node.

        Parameters
        ----------
        X, columns, do, names
            As for `predict_proba`; columns may be continuous nodes, too.

        Returns
        -------
        ndarray of shape (n,) for a single name, else a data frame of the kind of X, or a dict from node to such arrays

        Examples
        --------
        >>> import tallybayes as tb
        >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
        >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
        >>> model.predict({"wet": [1, 0]}, "rain")
        array([1, 0])
        """
        inference = self._estimated_network.inference
        nodes = node_list(columns)
        inference.structure.require(nodes)
        evidence = row_predictions.read_prediction_rows(self, X, names, nodes, do)
        best = row_predictions.predict_rows(inference, evidence, nodes, do).best(inference.domains, nodes)
        return best[columns] if is_name(columns) else as_frame(best, frame_kind(X))

    @predict_in_batches
    def impute(self, X: Rows, *, do: Mapping[Any, Any] | None = None, names: Iterable[Name] | None = None) -> Any:
        """Impute missing cells with the prediction given the observed cells of the row.

        Parameters
        ----------
        X, do, names
            As for `predict_proba`.

        Returns
        -------
        A data frame of the kind of X, else a dict from node to arrays of shape (n,)

        Examples
        --------
        >>> import tallybayes as tb
        >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
        >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
        >>> model.impute({"rain": [None, 0], "wet": [1, None]})
        {'rain': array([1, 0]), 'wet': array([1, 0])}
        """
        return as_frame(row_predictions.impute_rows(self, X, do, names), frame_kind(X))

    # ---- Parameters and goodness of fit -----------------------------------------------------------------------------

    @property
    def parameters_(self) -> Parameters:
        """The estimated parameters, by node: a `ParameterTable` of each.

        Probabilities of levels, or named parameters of continuous nodes. Under ``"bayes"`` these are posterior means.
        """
        return self._cached("parameters", self._make_parameters)

    def cpt(self, node: Name) -> ParameterTable:
        """Return the CPT of a node, p(node | parents), or the parameters of a continuous node.

        The same as ``parameters_[node]``.

        Parameters
        ----------
        node : name

        Returns
        -------
        ParameterTable
        """
        self._estimated_network.graph.require([node])
        return self.parameters_[node]

    @property
    def posterior_(self) -> Posteriors:
        """The posterior distributions of the parameters, by node, with `mean`, `interval` and `sample`.

        They are `prior_` updated by the counts, for any `estimate`; after EM, by the expected counts.
        """
        self._require_counts("a posterior")
        return posteriors_by_column(type(self).__name__, self._labeled_factors())

    @property
    def levels_(self) -> dict[Name, tuple[Any, ...]]:
        """The levels of every discrete node, in the order of the CPTs; a missing value is shown as (missing)."""
        return dict(self._estimated_network.levels)

    @property
    def columns_(self) -> dict[Any, Family]:
        """The family of every node."""
        return {name: self._family(name, family) for name, family in columns_of(self).items()}

    @property
    def unseen_configurations_(self) -> dict[Name, list[dict[Name, Any]]]:
        """The combinations of parents' levels without rows, by node.

        With ``"bayes"`` and ``"map"`` their row of the CPT is that of the prior. With ``"mle"`` it is undefined, and
        queries that depend on it raise EstimateError.
        """
        return self._estimated_network.unseen_configurations()

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        return self._all_factors.n_parameters

    @property
    def n_parameters_joint_(self) -> int:
        """The number of free parameters of a joint table of all discrete nodes."""
        return max(math.prod(len(levels) for levels in self.levels_.values()) - 1, 0)

    @property
    def prior_(self) -> dict[Any, Any]:
        """The resolved prior of every node; ``prior=`` accepts it."""
        self._require_counts("a prior")
        return self._resolved_priors()

    def log_evidence(self) -> float:
        """Compute the log marginal likelihood (log evidence) of the rows, in nats, under `prior_`.

        All parameters are integrated out, for any `estimate`. Constant continuous columns are excluded; a row with a
        missing cell is excluded from the factors that need the cell. `tb.compare` computes Bayes factors.

        Returns
        -------
        float
        """
        return self._likelihood_measures("evidence").evidence().log_evidence

    def description_length(self) -> DescriptionLength:
        """Compute code lengths of the rows, in bits: given the MAP parameters, of their density, and by the evidence.

        Returns
        -------
        DescriptionLength
        """
        return self._likelihood_measures("code length").description_length()

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better."""
        return self._likelihood_measures("BIC").bic

    @property
    def aic_(self) -> float:
        """Akaike's information criterion, −2 log p(rows) + 2 · parameters: lower is better."""
        return self._likelihood_measures("AIC").aic

    # ---- Conversion and files ---------------------------------------------------------------------------------------

    @classmethod
    def from_tables(cls, parents: Parents, levels: Mapping[Name, Any], tables: Mapping[Name, Any]) -> Self:
        """Return a discrete network with fixed CPTs.

        Parameters
        ----------
        parents : as for the constructor
        levels : mapping from node to its levels
            None is the level of a missing value, as of `WithMissing`.
        tables : mapping from node to an array of shape (*levels of its parents, levels)
            The rows sum to 1.

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
        network_tables = NetworkTables(Graph.read(parents).parents, levels, tables)
        return cls._from_spec(NetworkSpec.from_tables(network_tables))

    @classmethod
    def from_bif(cls, path: str | PathLike[str] | IO[Any]) -> Self:
        """Read a network from a BIF file (Interchange Format for Bayesian networks), compressed by gzip or not.

        Parameters
        ----------
        path : path or file object

        Returns
        -------
        BayesianNetwork
        """
        from tallybayes.models.network.io.bif import read_bif

        return cls._from_spec(NetworkSpec.from_tables(read_bif(path)))

    @classmethod
    def from_parameters(cls, nodes: Mapping[Name, Mapping[str, Any]]) -> Self:
        """Return a network with fixed parameters: CPTs of discrete nodes, linear models of continuous nodes.

        Parameters
        ----------
        nodes : mapping from every node to a mapping
            ``"parents"`` is a list. A discrete node has ``"levels"`` and ``"probabilities"``, an array of shape
            (*levels of its parents, levels). A continuous node has ``"intercept"``, ``"std"`` and, for its continuous
            parents, ``"coefficients"``, a mapping from each to a number: y = intercept + Σ coefficient · parent +
            noise. Each is one number, or an array of shape (*levels of its discrete parents).

        Returns
        -------
        BayesianNetwork

        Examples
        --------
        >>> import tallybayes as tb
        >>> model = tb.BayesianNetwork.from_parameters({
        ...     "sun": {"levels": ["no", "yes"], "probabilities": [0.6, 0.4]},
        ...     "warm": {"parents": ["sun"], "intercept": [12.0, 20.0], "std": 3.0},
        ...     "ice": {"parents": ["warm"], "intercept": -50, "coefficients": {"warm": 10}, "std": 20}})
        >>> model.query("sun", {"ice": 150.0})
        p(sun | ice = 150.0)
          'no'   0.1134  ██
          'yes'  0.8866  ██████████████████
        >>> round(model.query("ice", do={"warm": 25.0}).mean, 6)
        200.0
        """
        return cls._from_spec(read_network_spec(nodes))

    @classmethod
    def from_json(cls, path: str | PathLike[str] | IO[Any]) -> Self:
        """Read a network from a JSON file of `to_json`, compressed by gzip or not.

        The file is ``{"format": "tallybayes network", "version": 2, "nodes": [...]}``. Each node is an object with its
        ``"name"`` and its parameters, as for `from_parameters`.

        Parameters
        ----------
        path : path or file object

        Returns
        -------
        BayesianNetwork
        """
        from tallybayes.models.network.io.network_json import read_json

        return cls._from_spec(read_json(path))

    @classmethod
    def _from_spec(cls, spec: NetworkSpec) -> Self:
        """Return a network with fixed parameters, and no counts."""
        model = cls(dict(spec.parents), columns=spec.columns)
        tally, parameters = spec.model_state()
        return model._set_tally(tally)._set_fixed_parameters(parameters)

    def to_tables(self) -> NetworkTables:
        """Return the CPTs of the discrete nodes; `to_parameters` has continuous nodes, too.

        Returns
        -------
        NetworkTables
        """
        return network_conversion.network_tables(self._estimated_network)

    def to_parameters(self) -> dict[Name, dict[str, Any]]:
        """Return the parameters as plain numbers, as for `from_parameters`; with ``"bayes"``, the posterior means.

        Returns
        -------
        dict from node to dict
        """
        return network_conversion.network_spec(self._estimated_network).describe()

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the network to a JSON file for `from_json`: CPTs of discrete nodes, linear models of continuous nodes.

        Parameters
        ----------
        path : str or path-like
            Compressed if it ends in ``.gz``.
        """
        from tallybayes.models.network.io.network_json import write_json

        write_json(self.to_parameters(), path)

    def to_bif(self, path: str | PathLike[str]) -> None:
        """Write the CPTs to a BIF file (Interchange Format for Bayesian networks).

        Parameters
        ----------
        path : str or path-like
            Compressed if it ends in ``.gz``.
        """
        network_conversion.write_bif(self._estimated_network, path)

    def to_networkx(self) -> nx.DiGraph:
        """Return the graph as a networkx DiGraph; its nodes have ``levels`` and ``table`` if the network is fitted.

        Returns
        -------
        networkx.DiGraph
        """
        network = self._estimated_network if hasattr(self, "tally_") else None
        return network_conversion.networkx_graph(self.graph_, network)

    # ---- Plots ------------------------------------------------------------------------------------------------------

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
            As for `query`. With either, the boxes show every node before and after; without, the CPTs.
        tables : bool, default True
            Whether boxes show small CPTs; never for more than 16 nodes.
        highlight : ActivePath, MarkovBlanket, CausalEffect, names, or a mapping from words to names, optional
            Nodes in color, one color for each word.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.network.network_graph import plot_network

        is_fitted = hasattr(self, "tally_") or given is not None or do is not None
        network = self._estimated_network if is_fitted else None
        parameters = self.parameters_ if is_fitted else {}
        shown: dict[str, Any] = {"given": given, "do": do, "tables": tables, "highlight": highlight}
        return plot_network(self.graph_, network, parameters, ax, **shown)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """Plot the nodes and edges without CPTs, as `plot(tables=False)`; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
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
            As for `query`; without `do`, evidence is required.
        nodes : name, or sequence of names, optional
            None shows the 12 nodes with the most information.
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.network.posteriors import plot_posteriors

        return plot_posteriors(self._estimated_network, given, nodes, ax, do=do)

    def plot_convergence(self, ax: Axes | None = None) -> Plot:
        """Plot the objective of EM by iteration, for every initialization; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        return plot_convergence(self._em_result, type(self).__name__, ax)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "tally_"):
            return super().__repr__(N_CHAR_MAX)
        n_joint = short_int(self.n_parameters_joint_, 6)
        lines = [f"BayesianNetwork: {self._size()}, {self.n_parameters_} parameters (joint table: {n_joint})"]
        for name, given in list(self.graph_.parents.items())[:12]:
            parents = ", ".join(map(printable, given))
            n_levels = len(self.levels_.get(name, ()))
            shown = f"{n_levels} level{'s' * (n_levels != 1)}" if name in self.levels_ else repr(self.columns_[name])
            lines.append(f"  p({printable(name)}{' | ' + parents if parents else ''})  {shown}")
        n_more = len(self.graph_.nodes) - 12
        return "\n".join([*lines, *([f"  … {n_more} more"] if n_more > 0 else [])])

    def _size(self) -> str:
        """Return the numbers of nodes and edges, as printed."""
        n_nodes, n_edges = len(self.graph_.nodes), len(self.graph_.edges)
        return f"{n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)}"

    # ---- Hooks of the base class Model ------------------------------------------------------------------------------

    _summary_shows_parents = True
    _soft_counts_hint = "Fit it on rows without missing cells, or with missing='available'."
    _fixed_parameters_hint = (
        "Use fit to estimate from rows, with prior=tb.BDe(network, equivalent_sample_size) as prior."
    )
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(("missing", "error")),
        "missing": StringOptions(("available", "em")),
    }

    @property
    def _estimated_network(self) -> EstimatedNetwork:
        """The estimates from the tally, or the fixed parameters."""

        def estimate() -> EstimatedNetwork:
            prior = self.prior
            if isinstance(prior, Tally):
                prior = with_selected_words(prior.reindex_like(self.tally_), self._selected_words)
            return EstimatedNetwork(
                self._selected_tally, self.estimate, prior, self._fixed_parameters, self._text_readers
            )

        return self._cached("network", estimate)

    @property
    def _all_factors(self) -> EstimatedFactors:
        return self._estimated_network.fitted

    def _labeled_factors(self) -> list[LabeledFactor]:
        return self._estimated_network.labeled_factors(self._column_names)

    def _resolved_priors(self) -> dict[Any, Any]:
        return self._estimated_network.fitted.priors_by_column

    def _total_weight(self) -> float:
        """Return the weight of the rows of the node with the most rows."""
        nodes = self._estimated_network.nodes.values()
        return max((float(np.sum(node.flat().group_weights())) for node in nodes), default=0.0)

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        """Return the factors in topological order."""
        nodes = nodes_of(tally.factors, tally.statistics)
        graph = Graph.read({name: node.factor.given for name, node in nodes.items()})
        return [nodes[name].factor for name in graph.nodes]

    def _summary_title(self, n_rows: float) -> str:
        rows = f"{n_rows:.12g} rows" if self._fixed_parameters is None else "given tables"
        return f"BayesianNetwork of {rows}, {self._size()}"

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

    def __add__(self, other: Self) -> Self:
        if isinstance(other, BayesianNetwork):
            for model in (self, other):
                model._require_counts("adding models")
            if hasattr(self, "tally_") and hasattr(other, "tally_"):
                check_sum(self.tally_, other.tally_)
        return super().__add__(other)

    def _check_prior(self, factors: list[Factor]) -> None:
        check_prior(self.prior, factors, self.estimate)

    def _check_mergeable(self, other: Self) -> None:
        check_same_families(self, other)

    def _set_tally(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        check_structure(Graph.read(self.parents), tally)
        return super()._set_tally(network_fit.with_prior_levels(self.prior, tally), climbed)

    @property
    def _required_columns(self) -> list[Name]:
        """The columns that rows may have."""
        return list(self.graph_.nodes)

    def _display_family(self, factor: Factor, name: Name) -> Family:
        return self._family(name, factor.family)

    def _family(self, name: Name, family: Family) -> Family:
        """Return the family of a node, wrapped in WithMissing if a missing value is one of its levels."""
        domain = self._estimated_network.domains.get(name)
        return WithMissing(family) if domain is not None and domain.has_missing_level else family

    def _copy_input_format(self, other: Model) -> Self:
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return no state: the tally has the shape of the input."""
        return {}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Do nothing; see `_shape_to_json`."""

    def _check_loaded(self) -> None:
        """Raise an error if the tally is not of a network."""
        _ = self._estimated_network.levels
