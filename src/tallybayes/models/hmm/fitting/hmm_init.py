"""Initialization of Baum-Welch: from an initial model, from labeled time steps, or from k-means++ clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_objective import parameters_from_model
from tallybayes.estimation.em.kmeans_init import kmeans_plus_plus, squared_distances_to_centers
from tallybayes.estimation.em.soft_counts import AssignNearest, check_same_vocabulary, diagonal_moments_estimate
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution
from tallybayes.models.hmm.fitting.training_sequences import count_path
from tallybayes.models.hmm.hmm_parameters import HMMParameters, effective_unseen, log_probabilities, unseen_mass
from tallybayes.models.hmm.mixture_emissions import check_initial_components
from tallybayes.statistics.counts import Segments

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedHMM
    from tallybayes.models.hmm.fitting.baum_welch import BaumWelch, Expected, Start

_CHUNK = 1 << 16  # time steps whose nearest centers are computed together
_CONTEXT = 5  # time steps before and after a step that determine its initial state, with mixture emissions
_SAMPLE = 10_000  # time steps from which centers are chosen

# ---- From an initial model ------------------------------------------------------------------------------------------


def initial_parameters(em: BaumWelch, initial: EstimatedHMM) -> HMMParameters:
    """Return the parameters of an initial model over the levels of the training data; resolve the priors."""
    check_same_vocabulary(initial.tally, em.words)
    given = initial.checked_parameters
    topology = em.topology
    if topology.ends and given.end is None:
        raise DataError("initial= does not model the end of sequences, but end_state is True; expected equal values.")
    emissions = parameters_from_model(initial.scored, initial.domains, em.emissions, em.counter)
    topology.check_zeros(np.exp(given.start), np.exp(given.transition), "initial=", "probability")
    topology.check_tied(emissions, "initial=")
    start = given.start
    if topology.stationary:
        em.transition = np.exp(given.transition)
        start = log_probabilities(stationary_distribution(em.transition))
    check_initial_components(em.components, initial.topology.components)
    end = given.end if topology.ends else None
    parameters = HMMParameters(start, given.transition, end, emissions, em.domains, "missing", given.mixed)
    expected, _ = em.expect(parameters)
    if not expected[0].table.sum():
        raise DataError("initial= gives every sequence probability 0.\n    Use an initial model without zeros.")
    if not em.objective.has_prior:
        return parameters
    em.fix_priors(expected)
    if em.objective.has_constant_columns:  # EM does not use them in any iteration
        emissions = em.objective.without_constant_columns(emissions)
        parameters = parameters.with_scored(em.with_all_columns(emissions))
        expected, _ = em.expect(parameters)
        em.fix_priors(expected)
    scorers = topology.reduce_parameters([*_part_scorers(em, parameters), *emissions])
    em.start_log_prior = em.objective.log_prior(scorers, topology.reduce_statistics(expected))
    return parameters


def _part_scorers(em: BaumWelch, parameters: HMMParameters) -> list[FactorScorer]:
    """Return the parameters of initial states, transitions, ends and components as scorers."""
    points: dict[str, object] = {
        part: table[:, None] if part == "end" else LevelProbabilities(table, Segments(table.shape[-1:]))
        for part, table in parameters.tables.items()
    }
    return [FactorScorer(factor, point) for factor, point in zip(em.parts, points.values(), strict=True)]


# ---- From the data --------------------------------------------------------------------------------------------------


def initial_statistics(em: BaumWelch, rng: np.random.Generator) -> Iterator[Callable[[], Start]]:
    """Yield functions that return initial expected statistics.

    If every state has labeled time steps, they are the expectations under the parameters of these. Otherwise each time
    step is assigned to the nearest of the k-means++ centers.
    """
    if len(np.unique(em.codes[em.codes >= 0])) == em.n_states:
        for _ in range(1 if em.components is None else em.model.n_init):
            yield partial(_start_from_labels, em, _emission_groups(em, em.codes, rng))
        return
    # Best clustering first: the priors are resolved from the first initialization.
    unlabeled = _UnlabeledSteps.of(em)
    for nearest in em.counter.kmeans_assigners(*unlabeled.rows(em), em.model.n_init, rng, em.n_states):
        yield partial(_start_from_path, em, unlabeled.nearest_path(em, nearest, rng), rng)
        if em.components is not None and not em.is_clamped and em.n_states > 1:
            yield partial(_start_from_path, em, _path_from_context(em, rng), rng)


def _emission_groups(em: BaumWelch, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the emission group of every time step of a path, −1 without a state.

    It is the state or, with mixture emissions, the component with the nearest k-means++ center in its state.
    """
    components = em.components
    if components is None:
        return path
    table = em.sequences.table
    weight = em.step_weight
    groups = np.full(len(path), -1)
    for state, n_components in enumerate(components.numbers.tolist()):
        steps = np.flatnonzero(path == state)
        groups[steps] = components.first[state]
        if n_components > 1 and len(steps):
            unknown = np.full(len(steps), -1)
            rows = table.rows(steps)
            (nearest,) = em.counter.kmeans_assigners(rows, unknown, weight[steps], 1, rng, n_components)
            groups[steps] += _nearest_in_chunks(nearest, table, steps)
    return groups


def _start_from_labels(em: BaumWelch, groups: np.ndarray) -> Start:
    """Return the statistics expected under the parameters of the labeled time steps.

    If these give some sequence probability 0, default priors are used.
    """
    counted = _count_path(em, em.codes, groups)
    if not em.objective.has_prior:
        return _parameters_under_default_priors(em, counted)
    expected = em.expect(_parameters_of_labeled(em, counted))[0]
    if expected[0].table.sum() < (1 - 1e-9) * em.weight[em.sequences.lengths > 0].sum():
        expected = em.expect(_parameters_under_default_priors(em, counted))[0]
    em.fix_priors(expected)  # from all time steps
    return expected


def _start_from_path(em: BaumWelch, path: np.ndarray, rng: np.random.Generator) -> Start:
    """Return the statistics of a path; for maximum likelihood, parameters that EM can leave.

    k-means gives all steps of a level to one state. Maximum likelihood would hardly change that, so the probabilities
    of levels start halfway between those of the state and those of all states.
    """
    path = _order_states(em, path)
    counted = _count_path(em, path, _emission_groups(em, path, rng))
    if em.objective.has_prior:
        return counted
    for number, factor in enumerate(em.emissions, len(em.parts)):
        if factor.family.cell_type == "codes" or factor.family.is_binary:
            counted[number] = counted[number].shrink_groups(0.5)
    return _parameters_under_default_priors(em, counted)


def _count_path(em: BaumWelch, path: np.ndarray, groups: np.ndarray) -> Expected:
    """Return the statistics of time steps in the states of a path, −1 ignored; resolve the priors if not yet done."""
    n_groups = em.counter.n_groups
    parts = count_path(path, em.sequences, em.step_weight, em.n_states, ends=em.topology.ends)
    if em.components is not None:
        parts.append(em.components.counts(np.bincount(groups + 1, em.step_weight, n_groups + 1)[1:]))
    observed = em.counter.count_hard(em.sequences.table, groups, em.step_weight, columnwise=True)
    if em.scale != 1.0:
        parts, observed = ([part.scale(em.scale) for part in several] for several in (parts, observed))
    if em.objective.has_prior and not em.priors_fixed:
        em.fix_priors([*parts, *observed])
    if not any(factor.family.requires_complete_rows for factor in em.emissions):
        return [*parts, *observed]
    constant_columns = em.objective.constant_columns[len(em.topology.tables) :]
    scorers = [  # the parameters that impute missing cells under a full covariance
        FactorScorer(f, diagonal_moments_estimate(s) if f.family.requires_complete_rows else None, False, constant)
        for f, s, constant in zip(em.emissions, observed, constant_columns, strict=True)
    ]
    known = np.flatnonzero(groups >= 0)
    responsibilities = np.zeros((len(path), n_groups))
    responsibilities[known, groups[known]] = em.scale * em.step_weight[known]
    statistics, _ = em.counter.count_soft(em.sequences.table, responsibilities, scorers)
    return [*parts, *statistics]


def _parameters_under_default_priors(em: BaumWelch, counted: Expected) -> HMMParameters:
    """Return the parameters for these statistics under default priors: EM cannot leave a probability of 0."""
    with em.objective.with_default_priors(em.reduced_columnwise(counted)):
        return _parameters_of_labeled(em, counted)


def _parameters_of_labeled(em: BaumWelch, counted: Expected) -> HMMParameters:
    """Return the parameters of the labeled time steps; levels that they do not have are treated as unseen.

    The prior alone would make these levels most probable in the states with the fewest labeled time steps.
    """
    parameters, _ = em.maximize(counted)
    unseen = effective_unseen(em.model.unseen, em.model.estimate)
    scored = []
    for scorer, counts in zip(parameters.scored, counted[len(em.parts) :], strict=True):
        if scorer.family.cell_type == "codes":
            table, segments = scorer.parameters
            never = counts.table.sum(axis=0) == 0
            mass = segments.broadcast_to_cells(unseen_mass(counts)) if unseen in ("new", "smooth") else 1.0
            scorer = scorer.with_parameters(LevelProbabilities(np.where(never, mass, table), segments))
        scored.append(scorer)
    return parameters.with_scored(scored)


# ---- Paths ----------------------------------------------------------------------------------------------------------


class _UnlabeledSteps(NamedTuple):
    """The unlabeled time steps, and the distinct ones among them.

    Attributes
    ----------
    all : ndarray of int
    distinct : ndarray of int
        One time step for each level of a single categorical column, and for missing cells; otherwise all. The time step
        of a level without any is arbitrary.
    inverse : ndarray of int, or slice
        The position of each time step in `distinct`.
    """

    all: np.ndarray
    distinct: np.ndarray
    inverse: np.ndarray | slice

    @classmethod
    def of(cls, em: BaumWelch) -> _UnlabeledSteps:
        """Return the unlabeled time steps of the training data."""
        steps = np.flatnonzero(em.codes < 0)
        if not em.is_coded:
            return cls(steps, steps, slice(None))
        codes, domain = em.sequences.table.encoded(em.emissions[0].columns[0])
        inverse = (codes[steps] if em.is_clamped else codes).astype(np.intp)
        inverse[inverse < 0] = n_levels = len(domain.levels)
        distinct = np.zeros(n_levels + 1, dtype=np.intp)
        distinct[inverse] = steps
        return cls(steps, distinct, inverse)

    def rows(self, em: BaumWelch) -> tuple[Table, np.ndarray, np.ndarray]:
        """Return the rows to cluster, the states of those with a known one, and their weights.

        They are all time steps, or the distinct ones if none is labeled.
        """
        if em.is_clamped or isinstance(self.inverse, slice):
            return em.sequences.table, em.codes, em.step_weight
        weight = np.bincount(self.inverse, em.step_weight, len(self.distinct))
        present = np.flatnonzero(weight)
        return em.sequences.table.rows(self.distinct[present]), np.full(len(present), -1), weight[present]

    def nearest_path(self, em: BaumWelch, nearest: AssignNearest, rng: np.random.Generator) -> np.ndarray:
        """Return the known states and, for the other time steps, the state of the nearest center."""
        path = em.codes.copy()
        path[self.all] = _nearest_in_chunks(nearest, em.sequences.table, self.distinct)[self.inverse]
        empty = np.flatnonzero(np.bincount(path, minlength=em.n_states) == 0)
        # A state may be empty, as with fewer distinct steps than states: it gets random time steps.
        n_chosen = max(1, len(self.all) // (10 * em.n_states))
        path[rng.choice(self.all, (len(empty), n_chosen))] = empty[:, None]
        return path


def _nearest_in_chunks(nearest: AssignNearest, table: Table, steps: np.ndarray) -> np.ndarray:
    """Return the nearest center of each time step."""
    centers = np.empty(len(steps), dtype=np.intp)
    for start in range(0, len(steps), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        centers[chunk] = nearest(table.rows(steps[chunk]))
    return centers


def _path_from_context(em: BaumWelch, rng: np.random.Generator) -> np.ndarray:
    """Return a path from the composition of the time steps around each step, for mixture emissions.

    Components of one state can lie between those of another, so that k-means of the steps does not find the states.
    Instead, the steps are clustered into as many clusters as components. The states are clusters of the proportions of
    these clusters in a window around each step.
    """
    sequences = em.sequences
    n_steps = int(sequences.offsets[-1])
    n_clusters = em.counter.n_groups
    unknown = np.full(n_steps, -1)
    (nearest,) = em.counter.kmeans_assigners(sequences.table, unknown, em.step_weight, 1, rng)
    steps = np.arange(n_steps)
    cluster = _nearest_in_chunks(nearest, sequences.table, steps)
    cumulative = np.zeros((n_steps + 1, n_clusters))
    cumulative[steps + 1, cluster] = 1.0
    np.cumsum(cumulative, axis=0, out=cumulative)
    begin = steps - sequences.positions
    low = np.maximum(steps - _CONTEXT, begin)
    high = np.minimum(steps + _CONTEXT + 1, begin + np.repeat(sequences.lengths, sequences.lengths))
    proportions = (cumulative[high] - cumulative[low]) / (high - low)[:, None]
    sample = steps if n_steps <= _SAMPLE else np.sort(rng.choice(n_steps, _SAMPLE, replace=False))
    no_centers = np.zeros((0, n_clusters))
    centers = kmeans_plus_plus(proportions[sample], em.n_states, no_centers, rng, em.step_weight[sample])
    path: np.ndarray = squared_distances_to_centers(proportions, centers).argmin(axis=1)
    return path


def _order_states(em: BaumWelch, path: np.ndarray) -> np.ndarray:
    """Return the path with unnamed states renumbered so that most of its transitions are allowed.

    States are first sorted by their mean relative position in the sequences.
    """
    if em.is_clamped or not em.topology.restricts_paths:
        return path
    n = em.n_states
    sequences = em.sequences
    relative = sequences.positions / np.repeat(sequences.lengths, sequences.lengths)
    mean_position = np.bincount(path, relative, n) / np.maximum(np.bincount(path, minlength=n), 1)
    rank = np.empty(n, dtype=np.intp)
    rank[np.argsort(mean_position, kind="stable")] = np.arange(n)
    path = rank[path]
    first, _, after = sequences.places()
    pairs = np.bincount(path[after - 1] * n + path[after], em.step_weight[after], n * n).reshape(n, n)
    starts = np.bincount(path[first], em.step_weight[first], n)
    order: np.ndarray = em.topology.best_state_order(starts, pairs)
    return order[path]
