"""The factors that a predictive check draws, for every kind of model, and the rows they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.factor_sampling import sample_factor
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    make_factor_scorer,
)
from tallybayes.estimation.scoring.factor_tables import check_cells
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
from tallybayes.evaluation.named_columns import check_rows
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier, estimates_of
from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.hmm.hmm_held_out import states_of
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.hmm.query_sequences import SequenceReader
from tallybayes.models.inputs.input_format import bound_texts, read_more_rows
from tallybayes.models.inputs.input_format import open_rows as open_features_of
from tallybayes.models.inputs.sequences import Sequences, open_labels
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.estimated_network import EstimatedNetwork, network_of
from tallybayes.models.network.inference.evidence import with_missing_levels
from tallybayes.models.network.network_fit import open_rows
from tallybayes.results.predictive_check import ALL_ROWS
from tallybayes.statistics.counts import Segments
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Name, Rows

_ROWS = 2_000  # compared rows of a class
_FEWEST = 20  # fewer rows show nothing
_CELLS = 200_000_000  # drawn cells, which limit the rows of wide data
_TOKENS = 200_000  # tokens of a block of words, of one class


class ComparedRows(NamedTuple):
    """The rows that are compared with draws.

    Attributes
    ----------
    table : Table
        All rows.
    groups : ndarray of int of shape (n,)
        The group of rows that are compared together; −1 for rows that are not compared.
    labels : ndarray
        The names of these groups.
    given : function from a Generator to an ndarray of int of shape (n,)
        Returns the group of the factor from which every row is drawn: observed, or drawn too.
    """

    table: Table
    groups: np.ndarray
    labels: np.ndarray
    given: Callable[[np.random.Generator], np.ndarray]

    @classmethod
    def all_together(cls, table: Table, given: Callable[[np.random.Generator], np.ndarray]) -> ComparedRows:
        """Return rows that are compared as one group."""
        return cls(table, np.zeros(table.n_rows, dtype=np.intp), np.array([ALL_ROWS]), given)


class ReplicationSource(NamedTuple):
    """A factor and the rows that are compared with its draws.

    Attributes
    ----------
    scored, statistics
        The estimated factor and its statistics, with one axis of groups.
    domains : sequence of Domain
        Of categorical columns.
    rows : ComparedRows
    bins : sequence of tuples
        The names of the bins of discretized columns; the levels of other columns are those of their domains.
    """

    scored: FactorScorer
    statistics: Any
    domains: Sequence[Domain]
    rows: ComparedRows
    bins: Sequence[tuple[str, ...]] = ()


def sources(
    model: ClassConditionalModel | BayesianNetwork | HiddenMarkovModel,
    data: Rows,
    target: Labels | None,
    rng: np.random.Generator,
) -> Iterator[ReplicationSource]:
    """Yield the factors of a fitted model with the rows they are compared with."""
    if isinstance(model, BayesianNetwork):
        yield from _network_sources(model, data, target)
    elif isinstance(model, HiddenMarkovModel):
        hmm = model._estimated_hmm
        rows = _compared_steps(model, hmm, data, target, rng)
        for scored, (_, statistics), domains in zip(hmm.scored, hmm.emissions, hmm.domains, strict=True):
            yield ReplicationSource(scored, statistics, domains, rows)
    else:
        estimated = estimates_of(model)
        if isinstance(model, Mixture):
            rows = _mixture_rows(model, estimated, data, target, rng)
        else:
            rows = _labeled_rows(model, estimated, data, target)
        factors = estimated.factors
        for scored, (_, statistics) in zip(factors.checked_scorers, factors.pairs, strict=True):
            bins = [model._display_family(scored.factor, name).bins for name in scored.factor.columns]
            yield ReplicationSource(scored, statistics, estimated.level_domains(scored), rows, bins)


def _labeled_rows(
    model: ClassConditionalModel, estimated: EstimatedClassifier, data: Rows, target: Labels | None
) -> ComparedRows:
    """Return rows drawn given their class; rows without a label are left out."""
    table = bound_texts(model, model._discretize(check_rows(read_more_rows(model, data, target, None)[0])))
    columns = estimated.class_factor.columns
    classes = factor_cells(table, columns, Categorical(), [estimated.classes], "error")[:, 0].astype(np.intp)
    estimated.check_defined(np.where(np.isin(np.arange(len(model.classes_)), classes), 0.0, -np.inf))
    return ComparedRows(table, classes, model.classes_, _as_observed(classes))


def _mixture_rows(
    model: Mixture, estimated: EstimatedClassifier, data: Rows, target: Labels | None, rng: np.random.Generator
) -> ComparedRows:
    """Return rows drawn given a component, which is drawn for every row."""
    check_no_target(target)
    table = check_rows(open_features_of(model, data))
    estimated.check_defined(model.class_log_prior_)
    n_rows = min(table.n_rows, _ROWS)
    weights = np.exp(model.class_log_prior_)
    some_rows = table.rows(_choose(np.zeros(table.n_rows, dtype=np.intp), _ROWS, rng))
    return ComparedRows.all_together(some_rows, lambda rng: rng.choice(len(weights), n_rows, p=weights / weights.sum()))


def _compared_steps(
    model: HiddenMarkovModel, hmm: EstimatedHMM, data: Rows, target: Labels | None, rng: np.random.Generator
) -> ComparedRows:
    """Return time steps drawn given their known states or, without them, given drawn sequences of states."""
    sequences = SequenceReader.of(model).open(data, allow_gaps=False)
    check_rows(sequences.table)
    parameters = hmm.checked_parameters
    reason = "draws would need the steps before them"
    check_no_lags(hmm.emission_factors, "a predictive check", reason, "Draw whole sequences with sample.")
    if target is not None:
        groups = states_of(model, open_labels(target, sequences, data), sequences)
        rows = ComparedRows(sequences.table, groups, model.states_, _as_observed(groups))
    else:
        order = rng.permutation(sequences.n_sequences)
        steps = np.cumsum(sequences.lengths[order])
        _, sequences = sequences.some(np.sort(order[: np.searchsorted(steps, _ROWS) + 1]))
        given = partial(_draw_states, np.exp(parameters.start), np.exp(parameters.transition), sequences)
        rows = ComparedRows.all_together(sequences.table, given)
    mixed = parameters.mixed
    if mixed is None:
        return rows
    states = rows.given
    return ComparedRows(rows.table, rows.groups, rows.labels, lambda rng: mixed.draw(states(rng), rng))


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


def _network_sources(model: BayesianNetwork, data: Rows, target: Labels | None) -> Iterator[ReplicationSource]:
    """Yield nodes drawn given their observed parents: discrete nodes over all rows, continuous ones by parents."""
    if target is not None:
        raise DataError(
            "target is given and the model is a network, whose nodes are drawn given their parents; expected no target."
        )
    table = bound_texts(model, check_rows(open_rows(model, data)))
    network = network_of(model)
    table = with_missing_levels(network.inference.domains, table)  # raises an error without levels
    fitted = network.fitted
    nodes = zip(network.nodes.items(), fitted.active_priors, fitted.checked_scorers, strict=True)
    for (name, node), prior, scorer in nodes:
        parents = node.factor.given
        configuration, known = _parent_configuration(model, table, parents)
        # A linear Gaussian node has another mean in every row; nodes and parents may be hidden.
        if node.inputs or not all(map(table.has, (name, *parents))) or not known.any():
            continue
        given = _as_observed(configuration)
        if node.is_discrete:
            rows = ComparedRows(table, np.where(known, 0, -1), np.array([ALL_ROWS]), given)
            domains = [model.tally_.domains[str(name)]]
            yield ReplicationSource(_discrete_node(network, name, prior), node.flat(), domains, rows)
            continue
        labels = np.full(int(configuration.max()) + 1, ALL_ROWS, dtype=object)
        if parents:
            levels = network.parent_configurations(parents)
            for code in np.unique(configuration[known]):
                labels[code] = ", ".join(f"{printable(parent)} = {level!r}" for parent, level in levels[code].items())
        rows = ComparedRows(table, np.where(known, configuration, -1), labels, given)
        yield ReplicationSource(scorer, node.flat(), [], rows)


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


class ReplicatedFactor(NamedTuple):
    """A factor: the compared cells, and draws of such cells from the model.

    Parameters
    ----------
    source : ReplicationSource
    cells : ndarray of shape (n, columns), or TokenCounts
    chosen : ndarray of int of shape (n,)
        The numbers of the compared rows.
    """

    source: ReplicationSource
    cells: np.ndarray | TokenCounts
    chosen: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """The group of every compared row."""
        return self.source.rows.groups[self.chosen]

    @property
    def labels(self) -> np.ndarray:
        """The names of the groups."""
        return self.source.rows.labels

    @property
    def names(self) -> list[Any]:
        """The names of the columns; a block of words has one."""
        factor = self.source.scored.factor
        if isinstance(self.cells, TokenCounts):
            first, *others = factor.columns
            return [f"{first} … {others[-1]}" if others else first]
        width = self.cells.shape[1]
        return [factor.column(k, width) for k in range(width)]

    def draw(self, rng: np.random.Generator) -> np.ndarray | TokenCounts:
        """Draw a data set: parameters from the posterior, then cells; the same cells are missing as in the data."""
        scored = self.source.scored
        if scored.predictive:
            drawn = scored.family.parameters_from(scored.parameters, "sample", random_state=rng)
            scored = scored._replace(parameters=drawn, predictive=False)
        groups = self.source.rows.given(rng)[self.chosen]
        if isinstance(self.cells, TokenCounts):
            return self.cells.redraw(np.asarray(scored.parameters), groups, rng)
        return np.where(np.isnan(self.cells), np.nan, sample_factor(scored, groups, self.source.statistics, rng))

    @property
    def summaries(self) -> SummaryStatistics:
        """The summary statistics of the family."""
        family = self.source.scored.family
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
        if not self.source.domains:
            return ()
        return (self.source.bins and self.source.bins[column]) or self.source.domains[column].levels


def make_replicated_factor(source: ReplicationSource, n_draws: int, rng: np.random.Generator) -> ReplicatedFactor:
    """Return a factor with the compared rows: a random sample of every group."""
    scored = source.scored
    groups = source.rows.groups
    names = scored.factor.columns
    family = scored.family
    cells = factor_cells(source.rows.table, names, family, source.domains, "missing")
    if family.is_bag_of_words:
        index = _choose(groups, _ROWS, rng)
        counted = count_words(cells, index, names[0])
        kept = counted.first_tokens(groups[index], _TOKENS)
        return ReplicatedFactor(source, counted.take(kept), index[kept])
    width = source.statistics.n_columns
    n_groups = len(np.unique(groups[groups >= 0]))
    most = min(_ROWS, _CELLS // (n_draws * max(n_groups, 1) * max(width, 1)))
    if most < _FEWEST:
        raise DataError(
            f"n_draws is {n_draws}: with {width} columns in {n_groups} classes this allows {most} rows of a class; "
            f"expected at least {_FEWEST}.\n    Pass a smaller n_draws, or a model of fewer columns."
        )
    index = _choose(groups, most, rng)
    if family.cell_type == "codes":
        return ReplicatedFactor(source, np.where(cells[index] < 0, np.nan, cells[index]), index)
    numbers = chunk_of(cells, index).astype(np.float64)
    check_cells(scored, numbers)
    return ReplicatedFactor(source, numbers, index)


def _choose(classes: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the compared rows by class: all of a class, or a random sample."""
    chosen = []
    for code in np.unique(classes[classes >= 0]):
        rows = np.flatnonzero(classes == code)
        chosen.append(rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False)))
    return np.concatenate([np.zeros(0, dtype=np.intp), *chosen])
