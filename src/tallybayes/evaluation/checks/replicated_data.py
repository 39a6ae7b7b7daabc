"""The factors that a predictive check draws, for every kind of model, and the rows they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.factor_sampling import n_columns, sample_factor
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    make_factor_scorer,
)
from tallybayes.estimation.scoring.row_scorer import check_cells
from tallybayes.evaluation.checks.summary_statistics import (
    BINARY,
    COUNTS,
    LEVELS,
    NUMBERS,
    WORDS,
    SummaryStatistics,
    TokenCounts,
    count_words,
)
from tallybayes.evaluation.evaluate import check_no_target
from tallybayes.evaluation.named_columns import class_domain
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import states_of
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.hmm.mixture_emissions import ComponentWeights
from tallybayes.models.hmm.query_sequences import open_sequences_for_query
from tallybayes.models.inputs.input_format import bound_texts, read_more_rows
from tallybayes.models.inputs.input_format import open_rows as open_features_of
from tallybayes.models.inputs.sequences import Sequences, open_labels
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.estimated_network import EstimatedNetwork, network_of
from tallybayes.models.network.inference.evidence import with_missing_levels
from tallybayes.models.network.network_fit import open_rows
from tallybayes.results.predictive_check import ALL_ROWS
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Name, Rows

_ROWS = 2_000  # compared rows of a class
_FEWEST = 20  # fewer rows show nothing
_CELLS = 200_000_000  # drawn cells, which limit the rows of wide data
_TOKENS = 200_000  # tokens of a block of words, of one class


class ReplicationSource(NamedTuple):
    """A factor and the rows that are compared with its draws.

    Attributes
    ----------
    scored, statistics
        The estimated factor and its statistics, with one axis of groups.
    domains : list of Domain
        Of categorical columns.
    table : Table
        All rows.
    groups : ndarray of int of shape (n,)
        The group of rows that are compared together; −1 for rows that are not compared.
    labels : ndarray
        The names of these groups.
    given : function from a Generator to an ndarray of int of shape (n,)
        Returns the group of the factor from which every row is drawn: observed, or drawn too.
    bins : sequence of tuples
        The names of the bins of discretized columns.
    """

    scored: FactorScorer
    statistics: Any
    domains: list[Domain]
    table: Table
    groups: np.ndarray
    labels: np.ndarray
    given: Callable[[np.random.Generator], np.ndarray]
    bins: Sequence[tuple[str, ...]] = ()


def sources(
    model: ClassConditionalModel | BayesianNetwork | HiddenMarkovModel,
    data: Rows,
    target: Labels | None,
    rng: np.random.Generator,
) -> Iterator[ReplicationSource]:
    """Yield the factors of a fitted model with the rows they are compared with."""
    if isinstance(model, BayesianNetwork):
        return _network_sources(model, data, target)
    if isinstance(model, HiddenMarkovModel):
        return _sequence_sources(model, data, target, rng)
    if isinstance(model, Mixture):
        return _mixture_sources(model, data, target, rng)
    return _class_sources(model, data, target)


def _class_sources(model: ClassConditionalModel, data: Rows, target: Labels | None) -> Iterator[ReplicationSource]:
    """Yield factors drawn given the class; rows without a label are left out."""
    table = bound_texts(model, model._discretize(_check_rows(read_more_rows(model, data, target, None)[0])))
    classes = factor_cells(table, [model._target], Categorical(), [class_domain(model)], "error")[:, 0].astype(np.intp)
    model._check_estimated(np.where(np.isin(np.arange(len(model.classes_)), classes), 0.0, -np.inf))
    estimated = model._estimated
    for scored, (_, statistics) in zip(estimated.checked_scorers, estimated.pairs, strict=True):
        domains = model._level_domains(scored)
        shown = [model._display_family(scored.factor, name).bins for name in scored.factor.columns]
        yield ReplicationSource(
            scored, statistics, domains, table, classes, model.classes_, _as_observed(classes), shown
        )


def _mixture_sources(
    model: Mixture, data: Rows, target: Labels | None, rng: np.random.Generator
) -> Iterator[ReplicationSource]:
    """Yield factors drawn given a component, which is drawn for every row."""
    check_no_target(target)
    table = _check_rows(open_features_of(model, data))
    model._check_estimated(model.class_log_prior_)
    table = table.rows(_choose(np.zeros(table.n_rows, dtype=np.intp), _ROWS, rng))
    weights = np.exp(model.class_log_prior_)
    n_rows = table.n_rows

    def components(rng: np.random.Generator) -> np.ndarray:
        return rng.choice(len(weights), n_rows, p=weights / weights.sum())

    one_group = np.zeros(n_rows, dtype=np.intp), np.array([ALL_ROWS])
    estimated = model._estimated
    for scored, (_, statistics) in zip(estimated.checked_scorers, estimated.pairs, strict=True):
        yield ReplicationSource(scored, statistics, model._level_domains(scored), table, *one_group, components)


def _sequence_sources(
    model: HiddenMarkovModel, data: Rows, target: Labels | None, rng: np.random.Generator
) -> Iterator[ReplicationSource]:
    """Yield emissions drawn given the known states or, without them, given drawn sequences of states."""
    sequences = open_sequences_for_query(model, data, None, None, None, allow_gaps=False)
    counted = model._estimated_hmm
    table = _check_rows(sequences.table)
    parameters = counted.checked_parameters
    reason = "draws would need the steps before them.\n    Draw whole sequences with sample."
    check_no_lags((factor for factor, _ in counted.emissions), "a predictive check", reason)
    if target is not None:
        groups = states_of(model, open_labels(target, sequences, data), sequences)
        labels = model.states_
        given = _as_observed(groups)
    else:
        order = rng.permutation(sequences.n_sequences)
        steps = np.cumsum(sequences.lengths[order])
        _, sequences = sequences.some(np.sort(order[: np.searchsorted(steps, _ROWS) + 1]))
        table = sequences.table
        groups = np.zeros(table.n_rows, dtype=np.intp)
        labels = np.array([ALL_ROWS])
        given = partial(_draw_states, np.exp(parameters.start), np.exp(parameters.transition), sequences)
    if parameters.mixed is not None:
        given = partial(_draw_components, given, parameters.mixed)
    for scored, (_, statistics), domains in zip(counted.scored, counted.emissions, counted.domains, strict=True):
        yield ReplicationSource(scored, statistics, domains, table, groups, labels, given)


def _draw_states(
    start: np.ndarray, transition: np.ndarray, sequences: Sequences, rng: np.random.Generator
) -> np.ndarray:
    """Draw the states of all time steps, one step of all sequences at a time."""
    states = np.zeros(int(sequences.offsets[-1]), dtype=np.intp)
    lengths = sequences.lengths
    cumulative_start = np.cumsum(start)[:-1]
    cumulative = np.cumsum(transition, axis=1)[:, :-1]
    for step in range(int(lengths.max(initial=0))):
        rows = sequences.offsets[:-1][lengths > step] + step
        bounds = cumulative_start[None, :] if step == 0 else cumulative[states[rows - 1]]
        states[rows] = (rng.random(len(rows))[:, None] > bounds).sum(axis=1)
    return states


def _draw_components(
    states: Callable[[np.random.Generator], np.ndarray], mixed: ComponentWeights, rng: np.random.Generator
) -> np.ndarray:
    """Draw the component of every time step given its state."""
    return mixed.draw(states(rng), rng)


def _network_sources(model: BayesianNetwork, data: Rows, target: Labels | None) -> Iterator[ReplicationSource]:
    """Yield nodes drawn given their observed parents: discrete nodes over all rows, continuous ones by parents."""
    if target is not None:
        raise DataError(
            "target is given and the model is a network, whose nodes are drawn given their parents; expected no target."
        )
    table = bound_texts(model, _check_rows(open_rows(model, data)))
    network = network_of(model)
    table = with_missing_levels(network.inference.domains, table)  # raises an error without levels
    fitted = network.fitted
    nodes = zip(network.nodes.items(), fitted.active_priors, fitted.checked_scorers, strict=True)
    for (name, node), prior, scorer in nodes:
        if node.inputs:
            continue  # linear Gaussian: the mean differs in every row
        parents = node.factor.given
        statistics = node.flat()
        configuration, known = _parent_configuration(model, table, parents)
        if not all(map(table.has, (name, *parents))) or not known.any():
            continue  # the node or a parent is hidden
        if node.is_discrete:
            scored = _discrete_node(network, name, prior)
            domains = [model.tally_.domains[str(name)]]
            groups = np.zeros(table.n_rows, dtype=np.intp)
            labels = np.array([ALL_ROWS])
        else:
            scored = scorer
            domains = []
            groups = configuration
            labels = np.full(len(statistics.group_weights().ravel()), ALL_ROWS, dtype=object)
            levels = network.parent_configurations(parents) if parents else []
            for code in np.unique(configuration[known]) if parents else ():
                labels[code] = ", ".join(f"{printable(parent)} = {level!r}" for parent, level in levels[code].items())
        compared = np.where(known, groups, -1)
        yield ReplicationSource(scored, statistics, domains, table, compared, labels, _as_observed(configuration))


def _parent_configuration(
    model: BayesianNetwork, table: Table, parents: tuple[Name, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of every row's combination of parent levels, and whether all of them are observed."""
    configuration = np.zeros(table.n_rows, dtype=np.intp)
    known = np.ones(table.n_rows, dtype=bool)
    for parent in parents if set(parents) <= set(table.columns) else ():
        domain = model.tally_.domains[str(parent)]
        codes = factor_cells(table, [parent], Categorical(), [domain], "missing")[:, 0].astype(np.intp)
        known &= codes >= 0
        configuration = configuration * len(domain.levels) + np.maximum(codes, 0)
    return configuration, known


def _discrete_node(network: EstimatedNetwork, name: Name, used: ResolvedPrior) -> FactorScorer:
    """Return a discrete node with one axis for all its parents: its posterior, or its fixed table."""
    node = network.nodes[name]
    if network.fixed_parameters is not None:
        table = network.tables[name]
        parameters = LevelProbabilities(table.reshape(-1, table.shape[-1]), Segments([table.shape[-1]]))
        return FactorScorer(node.factor, parameters, False, np.zeros(0, dtype=np.intp))
    concentration = getattr(used.prior, "concentration", None)
    if concentration is not None and np.ndim(concentration) > 2:
        used = used._replace(prior=used.prior.replace(concentration=concentration.reshape(-1, concentration.shape[-1])))
    return make_factor_scorer(node.factor, node.flat(), used, network.estimate)


def _as_observed(codes: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a function that returns the observed groups; rows without a group are not compared."""
    groups = np.maximum(codes, 0)
    return lambda _: groups


def _check_rows(table: Table) -> Table:
    """Return a table; raise DataError if it has no rows."""
    if table.n_rows == 0:
        raise DataError("the data have 0 rows; expected at least 1.")
    return table


class ReplicatedFactor:
    """A factor: the compared cells, and draws of such cells from the model.

    Parameters
    ----------
    source : ReplicationSource
    cells : ndarray of shape (n, columns), or TokenCounts
    index : ndarray of int of shape (n,)
        The compared rows.
    """

    def __init__(self, source: ReplicationSource, cells: np.ndarray | TokenCounts, index: np.ndarray) -> None:
        scored = source.scored
        self.scored = scored
        self.statistics = source.statistics
        self.cells = cells
        self.codes = source.groups[index]
        self.labels = source.labels
        self.given = source.given
        self.index = index
        levels = [] if isinstance(cells, TokenCounts) else [domain.levels for domain in source.domains]
        self.levels = [bins or own for bins, own in zip(source.bins or [()] * len(levels), levels, strict=False)]
        self.names: list[Any]
        if isinstance(cells, TokenCounts):
            first, *others = scored.factor.columns
            self.names = [f"{first} … {others[-1]}" if others else first]
        else:
            width = n_columns(scored.family, source.statistics)
            self.names = [scored.factor.column(k, width) for k in range(width)]

    def draw(self, rng: np.random.Generator) -> np.ndarray | TokenCounts:
        """Draw a data set: parameters from the posterior, then cells; the same cells are missing as in the data."""
        scored = self.scored
        if scored.predictive:
            drawn = scored.family.parameters_from(scored.parameters, "sample", random_state=rng)
            scored = scored._replace(parameters=drawn, predictive=False)
        if isinstance(self.cells, TokenCounts):
            return self.cells.redraw(np.asarray(scored.parameters), self.given(rng)[self.index], rng)
        rows = sample_factor(scored, self.given(rng)[self.index], self.statistics, rng)
        return np.where(np.isnan(self.cells), np.nan, rows)

    @property
    def summaries(self) -> SummaryStatistics:
        """The summary statistics of the family."""
        family = self.scored.family
        if isinstance(self.cells, TokenCounts):
            return WORDS
        if family.cell_type == "codes":
            return LEVELS
        if family.is_binary:
            return BINARY
        return COUNTS if family.allowed_values.startswith("a whole number") else NUMBERS

    def values(self, cells: np.ndarray | TokenCounts, column: int) -> np.ndarray:
        """Return one column of cells; of a block of words, the number of different words of every row."""
        return cells.different if isinstance(cells, TokenCounts) else cells[:, column]

    def levels_of(self, column: int) -> tuple[Any, ...]:
        """Return the levels of a categorical column; () for numbers."""
        return self.levels[column] if self.levels else ()


def make_replicated_factor(source: ReplicationSource, n_draws: int, rng: np.random.Generator) -> ReplicatedFactor:
    """Return a factor with the compared rows: a random sample of every group."""
    scored = source.scored
    groups = source.groups
    names = scored.factor.columns
    family = scored.family
    rows = factor_cells(source.table, names, family, source.domains, "missing")
    if family.is_bag_of_words:
        index = _choose(groups, _ROWS, rng)
        counted = count_words(rows, index, names[0])
        kept = counted.first_tokens(groups[index], _TOKENS)
        return ReplicatedFactor(source, counted.take(kept), index[kept])
    width = n_columns(family, source.statistics)
    n_groups = len(np.unique(groups[groups >= 0]))
    most = min(_ROWS, _CELLS // (n_draws * max(n_groups, 1) * max(width, 1)))
    if most < _FEWEST:
        raise DataError(
            f"n_draws is {n_draws}: with {width} columns in {n_groups} classes this allows {most} rows of a class; "
            f"expected at least {_FEWEST}.\n    Pass a smaller n_draws, or a model of fewer columns."
        )
    index = _choose(groups, most, rng)
    cells = _take(rows, index)
    if family.cell_type != "codes":
        check_cells(scored, cells)
    else:
        cells = np.where(cells < 0, np.nan, cells)
    return ReplicatedFactor(source, cells, index)


def _choose(classes: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the compared rows by class: all of a class, or a random sample."""
    chosen = []
    for code in np.unique(classes[classes >= 0]):
        rows = np.flatnonzero(classes == code)
        chosen.append(rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False)))
    return np.concatenate([np.zeros(0, dtype=np.intp), *chosen])


def _take(rows: SparseRows | np.ndarray | list[np.ndarray], index: np.ndarray) -> np.ndarray:
    """Return some rows of a block as an array."""
    if isinstance(rows, SparseRows):
        return rows.dense(index)
    if isinstance(rows, list):
        return np.stack([column[index] for column in rows], axis=-1).astype(np.float64)
    return chunk_of(rows[index], slice(None)).astype(np.float64)
