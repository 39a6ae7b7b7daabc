"""What is drawn in a predictive check: the factors of every kind of model, given what their rows are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.factor_sampling import n_columns, sample_factor
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of, factor_cells, make_factor_scorer
from tallybayes.estimation.scoring.row_scorer import check_cells
from tallybayes.evaluation.checks.summary_statistics import (
    COUNTS,
    LABELS,
    NUMBERS,
    WORDS,
    YES_NO,
    SummaryStatistics,
    TokenCounts,
    count_words,
)
from tallybayes.evaluation.evaluate import check_no_target
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.categorical import Categorical, LevelProbabilities
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
from tallybayes.models.network.inference.evidence import with_absent_levels
from tallybayes.models.network.network_fit import open_rows
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.typing import Rows

_ROWS = 2_000  # rows of a class that are looked at, and drawn in every replicate
_FEWEST = 20  # with fewer rows than these nothing could be seen
_CELLS = 200_000_000  # cells drawn in all, which decides how many rows of wide data are looked at
_TOKENS = 200_000  # tokens of a multinomial block, of one class
ALL_ROWS = "all rows"


class ReplicationSource(NamedTuple):
    """A factor and the rows that are compared with what it gives.

    Attributes
    ----------
    scored, statistics
        The factor after estimating, and what was counted of it, by one axis of groups.
    domains : list of Domain
        Of columns of labels.
    table : Table
        All rows.
    groups : ndarray of int of shape (n,)
        What rows are compared together, −1 for those that are not.
    labels : ndarray
        What these groups are called.
    given : function from a Generator to an ndarray of int of shape (n,)
        The group of the factor that every row is drawn from: as observed, or drawn too.
    bins : sequence of tuples
        Of columns of labels that are bins: what these are called.
    """

    scored: FactorScorer
    statistics: Any
    domains: list[Domain]
    table: Table
    groups: np.ndarray
    labels: np.ndarray
    given: Callable[[np.random.Generator], np.ndarray]
    bins: Sequence[tuple[str, ...]] = ()


def sources(model: Any, data: Rows, target: Any, rng: np.random.Generator) -> Iterator[ReplicationSource]:
    """The factors of a fitted model with the rows they are compared with."""
    if isinstance(model, BayesianNetwork):
        return _of_network(model, data, target)
    if isinstance(model, HiddenMarkovModel):
        return _of_chain(model, data, target, rng)
    if isinstance(model, Mixture):
        return _of_mixture(model, data, target, rng)
    return _of_classes(model, data, target)


def _of_classes(model: Any, data: Any, target: Any) -> Iterator[ReplicationSource]:
    """Rows of every class drawn given their class; those without a label are left out."""
    table = bound_texts(model, model._discretize(_some(read_more_rows(model, data, target, None)[0])))
    classes = factor_cells(table, [model._target], Categorical(), [model._class_domain], "error")[:, 0].astype(np.intp)
    model._check_estimated(np.where(np.isin(np.arange(len(model.classes_)), classes), 0.0, -np.inf))
    for scored, (_, statistics) in zip(model._estimated.checked_scorers, model._estimated.pairs, strict=True):
        domains = model._level_domains(scored)
        shown = [model._display_family(scored.factor, name).bins for name in scored.factor.columns]
        yield ReplicationSource(
            scored, statistics, domains, table, classes, model.classes_, _as_observed(classes), shown
        )


def _of_mixture(model: Mixture, data: Any, target: Any, rng: np.random.Generator) -> Iterator[ReplicationSource]:
    """Whole rows: a component is drawn for each, then its cells."""
    check_no_target(target)
    table = _some(open_features_of(model, data))
    model._check_estimated(model.class_log_prior_)
    table = table.rows(_choose(np.zeros(table.n_rows, dtype=np.intp), _ROWS, rng))
    shares, n_rows = np.exp(model.class_log_prior_), table.n_rows

    def components(rng: np.random.Generator) -> np.ndarray:
        return rng.choice(len(shares), n_rows, p=shares / shares.sum())

    together = np.zeros(n_rows, dtype=np.intp), np.array([ALL_ROWS])
    for scored, (_, statistics) in zip(model._estimated.checked_scorers, model._estimated.pairs, strict=True):
        yield ReplicationSource(scored, statistics, model._level_domains(scored), table, *together, components)


def _of_chain(
    model: HiddenMarkovModel, data: Any, target: Any, rng: np.random.Generator
) -> Iterator[ReplicationSource]:
    """Steps drawn given their state or, where none is given, paths of states and then their steps."""
    sequences, counted = open_sequences_for_query(model, data, None, None, None, silent=False), model._estimated_hmm
    table, chain = _some(sequences.table), counted.checked_parameters
    why = "replicas would need the steps before them.\n    Draw whole sequences with sample."
    check_no_lags((factor for factor, _ in counted.emissions), "a predictive check", why)
    if target is not None:
        groups, labels = states_of(model, open_labels(target, sequences, data), sequences), model.states_
        given = _as_observed(groups)
    else:
        order = rng.permutation(sequences.n_sequences)
        steps = np.cumsum(sequences.lengths[order])
        _, sequences = sequences.some(np.sort(order[: np.searchsorted(steps, _ROWS) + 1]))
        table = sequences.table
        groups, labels = np.zeros(table.n_rows, dtype=np.intp), np.array([ALL_ROWS])

        given = partial(_paths, np.exp(chain.start), np.exp(chain.transition), sequences)
    if chain.mixed is not None:
        given = partial(_within_states, given, chain.mixed)
    for scored, (_, statistics), domains in zip(counted.scored, counted.emissions, counted.domains, strict=True):
        yield ReplicationSource(scored, statistics, domains, table, groups, labels, given)


def _paths(start: np.ndarray, transition: np.ndarray, sequences: Sequences, rng: np.random.Generator) -> np.ndarray:
    """The states of all steps, drawn; all sequences take a step at a time."""
    out, lengths, offsets = np.zeros(int(sequences.offsets[-1]), dtype=np.intp), sequences.lengths, sequences.offsets
    begin, follow = np.cumsum(start)[:-1], np.cumsum(transition, axis=1)[:, :-1]
    for step in range(int(lengths.max(initial=0))):
        here = offsets[:-1][lengths > step] + step
        bounds = begin[None, :] if step == 0 else follow[out[here - 1]]
        out[here] = (rng.random(len(here))[:, None] > bounds).sum(axis=1)
    return out


def _within_states(states: Callable[..., np.ndarray], mixed: ComponentWeights, rng: np.random.Generator) -> np.ndarray:
    """The component of every step, drawn given its state."""
    return mixed.drawn(states(rng), rng)


def _of_network(model: BayesianNetwork, data: Any, target: Any) -> Iterator[ReplicationSource]:
    """Every node given its parents as observed: labels over all rows, measured nodes where the parents are the same."""
    if target is not None:
        raise DataError(
            "a network needs no target: every node is drawn given its parents as observed.\n    Leave target out."
        )
    table, network = bound_texts(model, _some(open_rows(model, data))), model._estimated_network
    table = with_absent_levels(model._inference.domains, table)  # refuses a network without levels
    each = zip(network.nodes.items(), network.fitted.active_priors, network.fitted.checked_scorers, strict=True)
    for (name, node), used, own in each:
        if node.inputs:
            continue  # its mean is another in every row
        parents, flat = node.factor.given, node.flat()
        where, known = np.zeros(table.n_rows, dtype=np.intp), np.ones(table.n_rows, dtype=bool)
        for parent in parents if set(parents) <= set(table.columns) else ():
            domain = model.tally_.domains[str(parent)]
            codes = factor_cells(table, [parent], Categorical(), [domain], "missing")[:, 0].astype(np.intp)
            known &= codes >= 0
            where = where * len(domain.levels) + np.maximum(codes, 0)
        if not all(map(table.has, (name, *parents))) or not known.any():
            continue  # hidden, or given what is
        if node.is_label:
            scored, domains = _label_node(network, name, used), [model.tally_.domains[str(name)]]
            groups, labels = np.zeros(table.n_rows, dtype=np.intp), np.array([ALL_ROWS])
        else:
            scored, domains, groups = own, [], where
            labels = np.full(len(flat.group_weights().ravel()), ALL_ROWS, dtype=object)
            every = network.parent_configurations(parents) if parents else []
            for code in np.unique(where[known]) if parents else ():
                shown = ", ".join(f"{printable(parent)} = {level!r}" for parent, level in every[code].items())
                labels[code] = shown
        yield ReplicationSource(scored, flat, domains, table, np.where(known, groups, -1), labels, _as_observed(where))


def _label_node(network: Any, name: Any, used: Any) -> FactorScorer:
    """A node of labels with one axis for all its parents: its posterior, or its table where that was given."""
    node = network.nodes[name]
    if network.given is not None:
        table = network.tables[name]
        parameters = LevelProbabilities(table.reshape(-1, table.shape[-1]), Segments([table.shape[-1]]))
        return FactorScorer(node.factor, parameters, False, np.zeros(0, dtype=np.intp))
    concentration = getattr(used.prior, "concentration", None)
    if concentration is not None and np.ndim(concentration) > 2:
        used = used._replace(prior=used.prior.replace(concentration=concentration.reshape(-1, concentration.shape[-1])))
    return make_factor_scorer(node.factor, node.flat(), used, network.estimate)


def _as_observed(codes: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Groups that are not drawn; rows that have none are not looked at."""
    known = np.maximum(codes, 0)
    return lambda _: known


def _some(table: Table) -> Table:
    if table.n_rows == 0:
        raise DataError("there are 0 rows to look at; expected at least 1.")
    return table


class ReplicatedFactor:
    """One factor: the cells looked at, and how to draw such cells from the model."""

    def __init__(self, source: ReplicationSource, cells: Any, index: np.ndarray) -> None:
        scored, statistics = source.scored, source.statistics
        self.scored, self.statistics, self.cells = scored, statistics, cells
        self.codes, self.labels = source.groups[index], source.labels
        self.given, self.index = source.given, index
        levels = [] if isinstance(cells, TokenCounts) else [domain.levels for domain in source.domains]
        self.domains = [bins or each for bins, each in zip(source.bins or [()] * len(levels), levels, strict=False)]
        self.names: list[Any]
        if isinstance(cells, TokenCounts):
            first, *others = scored.factor.columns
            self.names = [f"{first} … {others[-1]}" if others else first]
        else:
            width = n_columns(scored.family, statistics)
            self.names = [scored.factor.column(place, width) for place in range(width)]

    def draw(self, rng: np.random.Generator) -> Any:
        """Cells of one data set: parameters from the posterior, then the rows; missing where the data are."""
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
        """The statistics to compare."""
        family = self.scored.family
        if isinstance(self.cells, TokenCounts):
            return WORDS
        if family.cell_type == "codes":
            return LABELS
        if family.is_binary:
            return YES_NO
        return COUNTS if family.allowed_values.startswith("a whole number") else NUMBERS

    def values(self, cells: Any, place: int) -> np.ndarray:
        """One column of cells; different words in a row of a block."""
        return cells.different if isinstance(cells, TokenCounts) else cells[:, place]

    def levels_of(self, place: int) -> tuple[Any, ...]:
        """The levels of a column of labels."""
        return self.domains[place] if self.domains else ()


def make_replicated_factor(source: ReplicationSource, n_draws: int, rng: np.random.Generator) -> ReplicatedFactor:
    """The rows of one factor that are looked at."""
    scored, groups = source.scored, source.groups
    names, family = scored.factor.columns, scored.family
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
            f"{n_draws} draws of {width} columns in {n_groups} classes are too many numbers to look at; expected "
            f"room for at least {_FEWEST} rows of a class.\n    Pass a smaller n_draws, or a model of fewer columns."
        )
    index = _choose(groups, most, rng)
    cells = _take(rows, index)
    if family.cell_type != "codes":
        check_cells(scored, cells)
    else:
        cells = np.where(cells < 0, np.nan, cells)
    return ReplicatedFactor(source, cells, index)


def _choose(classes: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """The rows to look at, class by class: all of a class, or some at random."""
    chosen = []
    for code in np.unique(classes[classes >= 0]):
        mine = np.flatnonzero(classes == code)
        chosen.append(mine if len(mine) <= most else np.sort(rng.choice(mine, most, replace=False)))
    return np.concatenate([np.zeros(0, dtype=np.intp), *chosen])


def _take(rows: Any, index: np.ndarray) -> np.ndarray:
    if isinstance(rows, SparseRows):
        return rows.dense(index)
    if isinstance(rows, list):
        return np.stack([column[index] for column in rows], axis=-1).astype(np.float64)
    return chunk_of(rows[index], slice(None)).astype(np.float64)
