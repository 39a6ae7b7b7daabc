"""Baum and Welch: a hidden Markov model from sequences whose states are not, or not all, known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tallybayes.data.counting import check_size
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.em_objective import EMObjective, parameters_from_model, with_constant_columns
from tallybayes.estimation.em.soft_counts import (
    AssignNearest,
    SoftCounter,
    check_same_vocabulary,
    diagonal_moments_estimate,
    expand_text,
)
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, undefined_parameters
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.factor_names import state_schema
from tallybayes.models.hmm.fitting.hmm_fit import n_unnamed
from tallybayes.models.hmm.fitting.hmm_init import in_pieces, initial_components, states_from_context
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution, stationary_mle
from tallybayes.models.hmm.hmm_criteria import entropy_of_states
from tallybayes.models.hmm.hmm_parameters import (
    HMMParameters,
    is_coded,
    log_shares,
    meaning_of,
    read_prior,
    stretches,
    unseen_mass,
)
from tallybayes.models.hmm.mixture_emissions import ComponentWeights, component_domain, refuse_others
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.column_priors import prior_in_groups
from tallybayes.models.inputs.labels import new_names
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

# What an E-step expects: the statistics of starts, transitions, perhaps ends and components, and then of the emissions.
Expected = list[Any]


def fit_baum_welch(
    model: Any,
    sequences: Sequences,
    labels: np.ndarray | None,
    domain: Domain,
    weight: np.ndarray | None,
    names: dict[str, str],
    emissions: list[Factor],
    initial: Any = None,
) -> tuple[Tally, EMSummary]:
    """Learn by EM from several starts, or from another model: the tally of what the best expects, and how it ended."""
    n_more = n_unnamed(model, domain)
    moves, n_states = Factor(names["to"], (names["from"],), Categorical()), len(domain.levels) + n_more
    hint, name = "Pass a smaller n_states.", type(model).__name__
    check_size(moves, n_states, n_states, model=name, scored=moves.family, copies=3, hint=hint)
    levels = [*domain.levels, *new_names(list(domain.levels), n_more)]
    states = Domain(levels, names["state"], is_sorted=True)
    structure = Topology.of(model, states.levels, whole=True)
    codes = np.full(int(sequences.offsets[-1]), -1)
    if labels is not None:
        codes = np.append(states.positions_of(domain.levels), -1)[labels].astype(np.int64)
        structure.refuse_steps(codes, sequences.offsets, sequences.gaps)
    if not emissions:
        raise DataError("there is no column to learn from; expected at least 1.")
    if not len(codes):
        raise DataError("there are 0 steps to learn from; expected at least 1.")
    learner = _BaumWelch(model, sequences, codes, states, weight, names, emissions, structure)
    learner.refuse_impossible()
    starts: Iterable[Callable[[], Any]] = [partial(learner.from_model, initial)]
    if initial is None:
        starts = learner.starts(np.random.default_rng(model.random_state))
    best, climbed = learner.hill.run_restarts(learner, starts)
    warn_unless_converged(climbed)
    entropy = entropy_of_states(best.parameters, best.expected, best.log_likelihood)
    return learner.tally(best.expected), climbed._replace(entropy=entropy)


class _BaumWelch:
    """The steps of EM for one model and its sequences."""

    def __init__(
        self,
        model: Any,
        sequences: Sequences,
        codes: np.ndarray,
        states: Domain,
        weight: np.ndarray | None,
        names: dict[str, str],
        emissions: list[Factor],
        structure: Topology,
    ) -> None:
        table, self.emissions, self.words = expand_text(sequences.table, emissions)
        sequences = sequences._replace(table=table)
        self.model, self.sequences, self.codes, self.states, self.names = model, sequences, codes, states, names
        self.counted, self.n_states = emissions, len(states.levels)
        self.weight = np.ones(sequences.n_sequences) if weight is None else weight
        self.per_step = np.repeat(self.weight, sequences.lengths)
        state = (names["state"],)
        self.parts = [Factor(names["start"], (), Categorical()), Factor(names["to"], (names["from"],), Categorical())]
        self.parts += [Factor(names["end"], state, Bernoulli())] if model.end_state else []
        self.structure, self.components = structure, structure.components
        self.parts += [] if self.components is None else [Factor(names["component"], state, Categorical())]
        self.moves: np.ndarray | None = None  # the transitions that were found last, where the start goes by them
        factors = structure.factors([*self.parts, *self.emissions])
        self.hill = EMObjective(model, factors, float(self.per_step.sum()), "Baum-Welch")
        given = read_prior(model.prior, components=self.components is not None)
        self.priors = [structure.prior(part, given[part]) for part in structure.parts]
        self.priors += [prior_in_groups(given["emission"], factor, model.estimate) for factor in self.emissions]
        self.counter = SoftCounter(self.emissions, sequences.table, len(structure.emitting))
        self.settled = False  # whether the priors are found
        self.start_log_prior = 0.0  # of the model that EM starts from
        self.clamped = bool((codes >= 0).any())
        self.labels = self._labels() if is_coded(self.emissions) and self.components is None else None
        # Codes need no room for emissions, so all sequences are one block, unless some of their states are known.
        coded = self.labels is not None and not self.clamped
        self.blocks = [(0, sequences.n_sequences)] if coded else stretches(sequences.offsets, self.counter.n_groups)

    def _labels(self) -> np.ndarray:
        """The labels of all steps as codes of few bytes, where a step is one label; read once for all steps of EM."""
        codes = self.counter.cells(self.sequences.table, 0)[:, 0]
        return codes.astype(np.min_scalar_type(-self._n_levels() - 1))

    def _n_levels(self) -> int:
        """How many labels there are, where a step is one label."""
        return len(self.counter.level_domains(0)[0].levels)

    # ---- The steps ------------------------------------------------------------------------------------------------

    def maximize(self, expected: Expected | HMMParameters) -> tuple[HMMParameters, float]:
        """The M-step: the most probable chain for some statistics, and its log prior; a chain to start from is one."""
        if isinstance(expected, HMMParameters):
            return expected, self.start_log_prior
        read = self.structure.read(expected)
        otherwise = {0: partial(self._with_stationary_initial, expected[0].table)} if self.structure.stationary else {}
        found, log_prior = self.hill.maximize(read, [self.structure.groups] * len(read), otherwise=otherwise)
        found = self.structure.spread(found)
        parts = dict(zip(self.structure.parts, found, strict=False))
        scored = found[len(parts) :]
        for code, column in chain.from_iterable(map(undefined_parameters, scored)):
            raise DataError.no_data(f"column {column!r} in {self.structure.called(code)}", self.model.estimate)
        # A state that nothing was counted of goes anywhere that it may, and never ends.
        transition = log_shares(parts["transition"].parameters, self.structure.uniform_transitions)
        if self.structure.stationary:
            start = log_shares(stationary_distribution(np.exp(transition)))
        else:
            start = log_shares(parts["start"].parameters, 1 / self.n_states)
        end = [log_shares(parts["end"].parameters)[:, 0]] if "end" in parts else []
        wide = [with_constant_columns(part, like) for part, like in zip(scored, self.counter.like, strict=True)]
        domains = [self.counter.level_domains(number) for number in range(len(wide))]
        mixed = None
        if self.components is not None:  # one that nothing was counted of has an even share
            mixed = ComponentWeights.made(
                self.components, log_shares(parts["component"].parameters, 1 / self.components.most)
            )
        return HMMParameters(start, transition, end[0] if end else None, wide, domains, "missing", mixed), log_prior

    def _with_stationary_initial(self, starts: np.ndarray, found: Any) -> LevelProbabilities:
        """The most probable transitions where sequences begin as they go on; no worse than those before."""
        counts = found.table if isinstance(found, Counts) else np.maximum(found.concentration - 1, 0.0)
        allowed = self.structure.allowed
        moves = self.moves = stationary_mle(starts, self.structure.as_full_matrix(counts), allowed, self.moves)
        kept = moves if allowed is None else moves[allowed]
        return LevelProbabilities(kept, Segments([self.n_states] if allowed is None else allowed.sum(axis=1)))

    def expect(self, found: HMMParameters) -> tuple[Expected, float]:
        """The E-step: the statistics that a chain expects of all sequences, and their log likelihood."""
        total: Expected | None = None
        value, emit = 0.0, found.emission_scorer() if found.mixed is None else found.joint()
        log_table = np.zeros(0) if self.labels is None else found.log_table()
        for first, last in self.blocks:
            part, offsets, table = self._block(first, last)
            emission = emit(table) if self.labels is None else (self.labels[part], log_table)
            joint: Any = emission  # of components, where states are mixtures
            emission = emission if found.mixed is None else found.mixed.summed(joint)
            if self.clamped:
                emission = self._fix_known_states(emission, self.codes[part])
            weight = self.weight[first:last]
            start, moves, end = found.arguments
            moves = self.sequences.moves(moves, part.start, part.stop)
            done = kernels.expected(start, moves, end, emission, offsets, weight)
            possible = np.isfinite(done.log_likelihood)
            value += float(weight[possible] @ done.log_likelihood[possible])
            if isinstance(emission, tuple):  # the kernel has counted the labels itself
                statistics: list[Any] = [Counts(done.emission.T, (len(done.emission),))]
            else:
                shares = done.emission if found.mixed is None else found.mixed.parted_by(joint, done.emission)
                statistics, _ = self.counter.count_soft(table, shares, found.scored)
                statistics = [*self._shares(shares), *statistics]
            more = [*self._moves(done.start, done.transition, done.transition.sum(axis=1), done.end), *statistics]
            total = more if total is None else [a + b for a, b in zip(total, more, strict=True)]
        assert total is not None
        return total, value

    def _moves(self, start: np.ndarray, transition: np.ndarray, goes_on: np.ndarray, ends: np.ndarray) -> Expected:
        """The statistics of starts, transitions and, if they are modeled, ends."""
        trials = Totals((goes_on + ends)[:, None], ends[:, None], failures=goes_on[:, None])
        sizes = (self.n_states,)
        return [Counts(start, sizes), Counts(transition, sizes), trials][: 2 + self.structure.ends]

    def _shares(self, shares: np.ndarray) -> Expected:
        """The statistics of components, where states are mixtures."""
        return [] if self.components is None else [self.components.counts(shares.sum(axis=0))]

    def _block(self, first: int, last: int) -> tuple[slice, np.ndarray, Table]:
        """The steps of some sequences: where they are, where each sequence begins among them, and their table."""
        offsets = self.sequences.offsets[first : last + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        return part, offsets - offsets[0], self.sequences.table.rows(part)

    def _fix_known_states(self, emission: Any, codes: np.ndarray) -> Any:
        """Emissions that are impossible in all states but the one that is known."""
        known = np.flatnonzero(codes >= 0)
        if not len(known):
            return emission
        if isinstance(emission, tuple):
            labels, table = emission
            emission = np.where(labels[:, None] < 0, 0.0, table[np.maximum(labels, 0)])
        emission = emission.copy()
        kept = emission[known, codes[known]]
        emission[known] = -np.inf
        emission[known, codes[known]] = kept
        return emission

    # ---- The start ------------------------------------------------------------------------------------------------

    def from_model(self, initial: Any) -> HMMParameters:
        """The chain of another model, over the levels that there are now; priors are found from what it expects."""
        check_same_vocabulary(initial, self.words)
        counted, found = initial._estimated_hmm, initial._estimated_hmm.checked_parameters
        if self.model.end_state and found.end is None:
            raise DataError("initial= does not model the end of sequences, and end_state is True; expected both to.")
        end = found.end if self.model.end_state else None
        scored = parameters_from_model(counted.scored, counted.domains, self.emissions, self.counter)
        domains = [self.counter.level_domains(number) for number in range(len(scored))]
        self.structure.refuse_parameters(np.exp(found.start), np.exp(found.transition), "initial=")
        self.structure.refuse_untied(scored, "initial=")
        start = found.start
        if self.structure.stationary:
            moves = self.moves = np.exp(found.transition)
            start = log_shares(stationary_distribution(moves))
        refuse_others(self.components, counted.structure.components)
        chain = HMMParameters(start, found.transition, end, scored, domains, "missing", found.mixed)
        expected, _ = self.expect(chain)
        if not expected[0].table.sum():
            raise DataError("every sequence is impossible under initial=.\n    Give no step the probability 0.")
        if self.hill.has_prior:
            self._hold(self._known(expected))
            n = self.n_states
            if self.hill.has_constant_columns:  # from the start, as in all steps after it
                scored = self.hill.without_constant_columns(scored)
                wide = [with_constant_columns(part, like) for part, like in zip(scored, self.counter.like, strict=True)]
                chain = chain._replace(scored=wide)
                expected, _ = self.expect(chain)
                self._hold(self._known(expected))
            shares = [(np.exp(start), [n]), (np.exp(found.transition), [n])]
            points = [
                FactorScorer(f, LevelProbabilities(table, Segments(sizes)), False, NO_COLUMNS)
                for f, (table, sizes) in zip(self.parts, shares, strict=False)
            ]
            if end is not None:
                points.append(FactorScorer(self.parts[2], np.exp(end)[:, None], False, NO_COLUMNS))
            if self.components is not None and found.mixed is not None:
                share = self.components.counts(np.exp(found.mixed.log_share)).table
                sizes = Segments([self.components.most])
                points.append(FactorScorer(self.parts[-1], LevelProbabilities(share, sizes), False, NO_COLUMNS))
            read = self.structure.points([*points, *scored])
            self.start_log_prior = self.hill.log_prior(read, self.structure.read(expected))
        return chain

    def refuse_impossible(self) -> None:
        """Refuse states that are known and cannot be so far apart, whatever lies between them."""
        if not self.clamped or (self.structure.starts is None and self.structure.allowed is None):
            return
        n = self.n_states
        with np.errstate(divide="ignore"):
            start = np.log(np.ones(n) if self.structure.starts is None else self.structure.starts)
            moves = np.log(np.ones((n, n)) if self.structure.allowed is None else self.structure.allowed)
        known, asked = self._fix_known_states(np.zeros((len(self.codes), n)), self.codes), self.sequences.moves(moves)
        lost = np.flatnonzero(np.isneginf(kernels.log_likelihood(start, asked, None, known, self.sequences.offsets)))
        if len(lost):
            raise DataError(
                f"sequence {lost[0]} cannot be: no path that allowed= and start= let pass goes through the states that "
                "are known of it.\n    Check these states, or allow more."
            )

    def starts(self, rng: np.random.Generator) -> Iterator[Callable[[], Expected]]:
        """Where to start: at what labeled steps expect of the others or, if a state has none, at nearest centers."""
        if len(np.unique(self.codes[self.codes >= 0])) == self.n_states:
            for _ in range(1 if self.components is None else self.model.n_init):
                parts = self._emitting(self.codes, rng)
                yield from (partial(self._from_labels, parts, n_steps) for n_steps in self.hill.warm_up_iterations)
            return
        # The priors are found from the first start and held for all, so it had better be the best one.
        data, n_starts = (self.sequences.table, self.codes, self.per_step), self.model.n_init
        for nearest in self.counter.kmeans_assigners(*data, n_starts, rng, self.n_states):
            path = self._order_states(self._nearest_path(nearest, rng))
            parts = self._emitting(path, rng)
            yield from (partial(self._from_path, path, parts, n_steps) for n_steps in self.hill.warm_up_iterations)
            if self.components is not None and not self.clamped and self.n_states > 1:
                path = self._order_states(
                    states_from_context(self.sequences, self.counter, self.n_states, self.per_step, rng)
                )
                parts = self._emitting(path, rng)
                yield from (partial(self._from_path, path, parts, n_steps) for n_steps in self.hill.warm_up_iterations)

    def _emitting(self, path: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What emits at every step of a path: its state or, where states are mixtures, a component of it."""
        if self.components is None:
            return path
        return initial_components(self.components, self.counter, self.sequences.table, path, self.per_step, rng)

    def _started(self, path: np.ndarray, parts: np.ndarray) -> Expected:
        """The statistics of steps in the states of a path, −1 left out; those of the first path settle the priors."""
        known, n = path >= 0, self.n_states
        shares = np.zeros((len(path), self.counter.n_groups))
        shares[np.flatnonzero(known), parts[known]] = self.per_step[known]
        first, last, after = self.sequences.places()
        after = after[known[after] & known[after - 1]]
        if self.sequences.gaps is not None:
            after = after[self.sequences.gaps[after] == 0]
        first, last, steps = first[known[first]], last[known[last]], np.flatnonzero(known)

        def counted(some: np.ndarray, of: np.ndarray, size: int = n) -> np.ndarray:
            return np.bincount(of, self.per_step[some], size)

        pairs = counted(after, path[after - 1] * n + path[after], n * n).reshape(n, n)
        ends = counted(last, path[last])
        moves = self._moves(counted(first, path[first]), pairs, counted(steps, path[steps]) - ends, ends)
        moves += self._shares(shares)
        seen, _ = self.counter.count_soft(self.sequences.table, shares, None)
        if self.hill.has_prior and not self.settled:
            self._hold([*moves, *seen])
        n_parts = len(self.structure.parts)
        filled = [
            FactorScorer(f, diagonal_moments_estimate(s) if f.family.requires_complete_rows else None, False, flat)
            for f, s, flat in zip(self.emissions, seen, self.hill.constant_columns[n_parts:], strict=True)
        ]
        statistics, _ = self.counter.count_soft(self.sequences.table, shares, filled)
        return [*moves, *statistics]

    def _hold(self, known: Expected) -> None:
        """Find the priors, for all starts and steps."""
        self.settled = True
        self.hill.fix_priors(self.structure.read(known), self.priors)

    def _from_labels(self, parts: np.ndarray, n_steps: int) -> Expected:
        """What a model of the labeled steps expects of all; under default priors where it finds some impossible."""
        start = self._started(self.codes, parts)
        expected = self.expect(self._for_new_labels(start))[0] if self.hill.has_prior else None
        whole = self.weight[self.sequences.lengths > 0].sum()
        if expected is None or expected[0].table.sum() < (1 - 1e-9) * whole:
            expected = self._by_defaults(start, n_steps)
        if self.hill.has_prior:
            self._hold(self._known(expected))  # the prior is that of all steps
        return expected

    def _known(self, expected: Expected) -> Expected:
        """The statistics without products of columns, as priors are found from them."""
        factors = [*self.parts, *self.emissions]
        return [f.family.columnwise_statistics(s) for f, s in zip(factors, expected, strict=True)]

    def _by_defaults(self, start: Expected, n_steps: int) -> Expected:
        """What is expected of all steps after so many steps of EM under default priors."""
        with self.hill.with_default_priors(self.structure.read(self._known(start))):
            expected = self.expect(self._for_new_labels(start))[0]
            if n_steps > 1:
                self.hill.fix_priors(self.structure.read(self._known(expected)))
                expected = self.hill.run(self, expected, n_steps)
        return expected

    def _for_new_labels(self, start: Expected) -> HMMParameters:
        """The chain of the labeled steps, where labels that only other steps have are as likely as new ones.

        By the prior alone they would be most probable in the states with the fewest steps.
        """
        found, _ = self.maximize(start)
        scored, unseen = [], meaning_of(self.model.unseen, self.model.estimate)
        for part, counts in zip(found.scored, start[len(self.parts) :], strict=True):
            if part.family.cell_type == "codes":
                (table, segments), never = part.parameters, counts.table.sum(axis=0) == 0
                new = segments.broadcast_to_cells(unseen_mass(counts)) if unseen in ("new", "smooth") else 1.0
                part = part._replace(parameters=LevelProbabilities(np.where(never, new, table), segments))
            scored.append(part)
        return found._replace(scored=scored)

    def _from_path(self, path: np.ndarray, parts: np.ndarray, n_steps: int) -> Expected:
        """The statistics of a path; under maximum likelihood, what default priors expect from there."""
        start = self._started(path, parts)
        return start if self.hill.has_prior else self._by_defaults(start, n_steps)

    def _nearest_path(self, nearest: AssignNearest, rng: np.random.Generator) -> np.ndarray:
        """Labeled steps in their states, the others in that of the nearest center."""
        path, free = self.codes.copy(), np.flatnonzero(self.codes < 0)
        asked, place = self._unlike(free)
        path[free] = in_pieces(nearest, self.sequences.table, asked)[place]
        for k in np.flatnonzero(np.bincount(path, minlength=self.n_states) == 0):
            # No step is nearest to it, as where there are fewer kinds of steps than states: some at random instead.
            path[rng.choice(free, max(1, len(free) // (10 * self.n_states)))] = k
        return path

    def _order_states(self, path: np.ndarray) -> np.ndarray:
        """The path with its states in an order that the structure allows best, where none has a name."""
        if self.clamped or (self.structure.allowed is None and self.structure.starts is None):
            return path
        n, lengths = self.n_states, self.sequences.lengths
        first, _, after = self.sequences.places()
        when = np.arange(len(path)) - np.repeat(self.sequences.offsets[:-1], lengths)
        share = when / np.repeat(np.maximum(lengths, 1), lengths)
        middle = np.bincount(path, share, n) / np.maximum(np.bincount(path, minlength=n), 1)
        rank = np.empty(n, dtype=np.intp)
        rank[np.argsort(middle, kind="stable")] = np.arange(n)
        path = rank[path]
        pairs = np.bincount(path[after - 1] * n + path[after], self.per_step[after], n * n).reshape(n, n)
        begun = np.bincount(path[first], self.per_step[first], n)
        return self.structure.best_state_order(begun, pairs)[path]

    def _unlike(self, steps: np.ndarray) -> tuple[np.ndarray, Any]:
        """One step for every label, where a step is one, otherwise all; and which of them stands for each step."""
        if self.labels is None:
            return steps, slice(None)
        labels = self.labels[steps]
        example = np.full(self._n_levels() + 1, -1)
        example[labels] = steps  # −1, missing, is the last
        asked = np.flatnonzero(example >= 0)
        place = np.empty(len(example), dtype=np.intp)
        place[asked] = np.arange(len(asked))
        return example[asked], place[labels]

    # ---- The end --------------------------------------------------------------------------------------------------

    def tally(self, expected: Expected) -> Tally:
        """The statistics as a tally, which cannot be taken apart again; the ends come last."""
        order = [0, 1, *range(len(self.parts), len(expected)), *reversed(range(2, len(self.parts)))]
        every, expected = [*self.parts, *self.counted], list(expected)
        domains = {**self.counter.domains, **self.words, self.names["state"]: self.states}
        if self.components is not None:
            n_parts, name = len(self.parts), self.names["component"]
            expected[n_parts:] = [self.components.unflatten_components(part) for part in expected[n_parts:]]
            domains[name] = component_domain(name, self.components.most)
        factors, statistics = [every[k] for k in order], [expected[k] for k in order]
        return Tally(factors, statistics, domains, state_schema(self.names), soft=True)
