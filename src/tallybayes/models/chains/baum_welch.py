"""Baum and Welch: a hidden Markov model from sequences whose states are not, or not all, known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError, PriorError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical, Probabilities
from tallybayes.families.estimates import climbing
from tallybayes.inference.em import Climbed, climb, climb_best, warn_unless_converged
from tallybayes.kernels import chain as kernels
from tallybayes.models.chains.chain import Chain, is_coded, read_prior, stretches, with_singletons
from tallybayes.models.chains.learning import n_unnamed
from tallybayes.models.chains.names import state_schema
from tallybayes.models.fitted.scoring import Scored, not_estimated
from tallybayes.models.fitted.soft_counting import (
    Nearest,
    SoftCounter,
    maximised,
    resolve_for_mode,
    uncorrelated,
    widened,
)
from tallybayes.models.inputs.column_priors import prior_for
from tallybayes.models.inputs.labels import new_names
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.sources.collect import check_size
from tallybayes.sources.table import Table
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally

_STEPS = 1 << 16  # whose nearest centres are found at a time


class Expected(NamedTuple):
    """What an E-step expects: starts, transitions, ends, and the statistics of the emissions."""

    start: np.ndarray
    transition: np.ndarray
    end: np.ndarray  # (states, 2): steps that go on, steps that end
    statistics: list[Any]


class Estimated(NamedTuple):
    """What an M-step finds: a chain, and its log prior."""

    chain: Chain
    density: float


def learn_chain(
    model: Any,
    sequences: Sequences,
    labels: np.ndarray | None,
    domain: Domain,
    weight: np.ndarray | None,
    names: dict[str, str],
    emissions: list[Factor],
) -> tuple[Tally, Climbed]:
    """The tally of expected statistics, and how EM ended; the best of several starts."""
    n_more = n_unnamed(model, domain)
    moves, n_states = Factor(names["to"], (names["from"],), Categorical()), len(domain.levels) + n_more
    hint, name = "Pass a smaller n_states.", type(model).__name__
    check_size(moves, n_states, n_states, model=name, scored=moves.family, copies=3, hint=hint)
    levels = [*domain.levels, *new_names(list(domain.levels), n_more)]
    states = Domain(levels, names["state"], ordered=True)
    codes = np.full(int(sequences.offsets[-1]), -1)
    if labels is not None:
        codes = np.append(states.positions_of(domain.levels), -1)[labels].astype(np.int64)
    if not len(codes):
        raise DataError("there are 0 steps to learn from; expected at least 1.")
    learner = _Learner(model, sequences, codes, states, weight, names, emissions)
    starts = learner.starts(np.random.default_rng(model.random_state))
    best = climb_best(starts, learner.maximise, learner.expect, **learner.climbing)
    name = "log posterior" if learner.how == "map" else "log likelihood"
    log_likelihood = best.history[-1] - best.parameters.density
    climbed = Climbed(best.history, name, best.converged, log_likelihood)
    warn_unless_converged(climbed, stacklevel=3)
    return learner.tally(best.expected), climbed


class _Learner:
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
    ) -> None:
        self.model, self.sequences, self.codes, self.states, self.names = model, sequences, codes, states, names
        self.emissions, self.n_states = emissions, len(states.levels)
        self.weight = np.ones(sequences.n_sequences) if weight is None else weight
        self.per_step = np.repeat(self.weight, sequences.lengths)
        tol = model.tol * max(float(self.per_step.sum()), 1.0)
        self.climbing: dict[str, Any] = {"n_iter": model.n_iter, "tol": tol, "what": "Baum-Welch"}
        self.how = climbing(model.estimate)
        self.counter = SoftCounter(emissions, sequences.table, self.n_states)
        self.beliefs: list[Any] = [None] * len(emissions)
        self.flat = [np.zeros(0, dtype=np.intp)] * len(emissions)
        self.priors = read_prior(model.prior)
        self.held: dict[str, Any] = {}
        self.settled = False
        self.clamped = bool((codes >= 0).any())
        self.labels = self._labels() if is_coded(emissions) else None
        # Codes need no room for emissions, so all sequences are one block, unless some of their states are known.
        coded = self.labels is not None and not self.clamped
        self.blocks = [(0, sequences.n_sequences)] if coded else stretches(sequences.offsets, self.n_states)

    def _labels(self) -> np.ndarray:
        """Where one label is all of a step: those of all steps as codes, in few bytes, once for all steps of EM."""
        codes = self.counter.cells(self.sequences.table, 0)[:, 0]
        return codes.astype(np.min_scalar_type(-self._n_levels() - 1))

    def _n_levels(self) -> int:
        """Where one label is all of a step: how many there are."""
        return len(self.counter.level_domains(0)[0].levels)

    # ---- The steps ------------------------------------------------------------------------------------------------

    def maximise(self, expected: Expected) -> tuple[Estimated, float]:
        """The M-step."""
        start, density = self._shares(expected.start, "start")
        transition, more = self._shares(expected.transition, "transition")
        density += more
        end = None
        if self.model.end_state:
            ends = _trials(expected.end)
            family = Bernoulli()
            if self.how == "mle":
                share = family.maximum_likelihood(ends)
            else:
                belief = self._held("end", family, ends)
                share = np.asarray(belief.update(ends).mode())
                density += float(np.sum(belief.update(ends.scale(0.0)).log_prob(share)))
            with np.errstate(divide="ignore"):
                end = np.log(np.where(np.isnan(share), 0.0, share))[:, 0]
        scored = []
        for factor, belief, flat, statistics in zip(
            self.emissions, self.beliefs, self.flat, expected.statistics, strict=True
        ):
            found, more = maximised(factor, belief, flat, statistics, self.states.levels)
            scored.append(found)
            density += more
            for code, column in not_estimated(found):
                where = f"column {column!r} in state {self.states.levels[code]!r}"
                raise DataError.no_data(where, self.model.estimate)
        if density == np.inf:
            raise PriorError.no_highest_point()
        wide = [widened(part, like) for part, like in zip(scored, self.counter.like, strict=True)]
        domains = [self.counter.level_domains(number) for number in range(len(wide))]
        return Estimated(Chain(start, transition, end, wide, domains, "missing"), density), density

    def _held(self, part: str, family: Any, statistics: Any) -> Any:
        """The prior of starts, transitions or ends: found once, so that all steps climb the same hill."""
        if part not in self.held:
            reading = Factor("x", (), family)
            self.held[part] = resolve_for_mode(reading, self.priors[part], statistics, self.model.estimate)[0]
        return self.held[part]

    def _shares(self, table: np.ndarray, part: str) -> tuple[np.ndarray, float]:
        """The logs of a distribution over states, and its log prior."""
        counts, family = Counts(table, (self.n_states,)), Categorical()
        if self.how == "mle":
            shares = family.maximum_likelihood(counts).table
            shares = np.where(np.isnan(shares), 1 / self.n_states, shares)
            density = 0.0
        else:
            belief = self._held(part, family, counts)
            shares = belief.update(counts).mode()
            density = float(np.sum(belief.update(counts.scale(0.0)).log_prob(shares)))
        with np.errstate(divide="ignore"):
            return np.log(shares), density

    def expect(self, found: Estimated) -> tuple[Expected, float]:
        """The E-step."""
        total, value = self._nothing(), 0.0
        log_table = np.zeros(0) if self.labels is None else found.chain.log_table()
        emit = found.chain.emitter()
        for first, last in self.blocks:
            part, offsets, table = self._block(first, last)
            emission = emit(table) if self.labels is None else (self.labels[part], log_table)
            if self.clamped:
                emission = self._clamp(emission, self.codes[part])
            weight = self.weight[first:last]
            done = kernels.expected(*found.chain.arguments, emission, offsets, weight)
            possible = np.isfinite(done.log_likelihood)
            value += float(weight[possible] @ done.log_likelihood[possible])
            if isinstance(emission, tuple):  # the kernel has counted the labels itself
                statistics: list[Any] = [Counts(done.emission.T, (len(done.emission),))]
            else:
                statistics, _ = self.counter.soft(table, done.emission, found.chain.scored)
            goes_on = done.transition.sum(axis=1)
            total = Expected(
                total.start + done.start,
                total.transition + done.transition,
                total.end + np.stack([goes_on, done.end], axis=-1),
                [a + b for a, b in zip(total.statistics, statistics, strict=True)],
            )
        return total, value

    def _block(self, first: int, last: int) -> tuple[slice, np.ndarray, Table]:
        offsets = self.sequences.offsets[first : last + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        return part, offsets - offsets[0], self.sequences.table.rows(part)

    def _clamp(self, emission: Any, codes: np.ndarray) -> Any:
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

    def _nothing(self) -> Expected:
        n, empty = self.n_states, self.sequences.table.rows(slice(0, 0))
        statistics = self.counter.hard(empty, np.zeros(0, dtype=np.int64), None)
        return Expected(np.zeros(n), np.zeros((n, n)), np.zeros((n, 2)), statistics)

    # ---- The start ------------------------------------------------------------------------------------------------

    def starts(self, rng: np.random.Generator) -> Iterator[Callable[[], Expected]]:
        """What labelled steps make of the others or, if some state has none, every step at the nearest centre.

        Without a prior a zero stays one. So maximum likelihood sets out from where default priors lead: from their
        first step, and from their top, so that it ends no lower than they do.
        """
        ways = (1, self.model.n_iter) if self.how == "mle" else (1,)
        if len(np.unique(self.codes[self.codes >= 0])) == self.n_states:
            yield from (partial(self._from_labels, n_steps) for n_steps in ways)
            return
        # The priors are found from the first start and held for all, so it had better be the best one.
        for nearest in self.counter.seeds(self.sequences.table, self.codes, self.per_step, self.model.n_init, rng):
            path = self._nearest_path(nearest, rng)
            yield from (partial(self._from_path, path, n_steps) for n_steps in ways)

    def _started(self, path: np.ndarray) -> Expected:
        """The statistics of steps in those states, but for −1, and the priors."""
        known = path >= 0
        shares = np.zeros((len(path), self.n_states))
        shares[np.flatnonzero(known), path[known]] = self.per_step[known]
        seen, _ = self.counter.soft(self.sequences.table, shares, None)
        if self.how == "map" and not self.settled:
            self._resolve(seen)
        filled = [
            Scored(f, uncorrelated(s) if f.family.needs_whole_rows else None, False, flat)
            for f, s, flat in zip(self.emissions, seen, self.flat, strict=True)
        ]
        statistics, _ = self.counter.soft(self.sequences.table, shares, filled)

        def counted(steps: np.ndarray, of: np.ndarray, size: int) -> np.ndarray:
            return np.bincount(of, self.per_step[steps], size)

        some = self.sequences.lengths > 0
        first, last = self.sequences.offsets[:-1][some], self.sequences.offsets[1:][some] - 1
        follows = known.copy()
        follows[first] = False
        after = np.flatnonzero(follows)
        after = after[known[after - 1]]
        first, last, steps = first[known[first]], last[known[last]], np.flatnonzero(known)
        n = self.n_states
        ends = counted(last, path[last], n)
        return Expected(
            counted(first, path[first], n),
            counted(after, path[after - 1] * n + path[after], n * n).reshape(n, n),
            np.stack([counted(steps, path[steps], n) - ends, ends], axis=-1),
            statistics,
        )

    def _resolve(self, seen: list[Any]) -> None:
        """The priors of the emissions, and which columns have no spread to speak of."""
        self.settled = True
        for number, factor in enumerate(self.emissions):
            prior = prior_for(self.priors["emission"], factor)
            found = resolve_for_mode(factor, prior, seen[number], self.model.estimate)
            self.beliefs[number], self.flat[number] = found

    def _from_labels(self, n_steps: int) -> Expected:
        """What the labelled steps expect of all; by default priors where some sequence would be impossible."""
        start = self._started(self.codes)
        expected = None if self.how == "mle" else self.expect(self._for_new_labels(start))[0]
        whole = self.weight[self.sequences.lengths > 0].sum()
        if expected is None or expected.start.sum() < (1 - 1e-9) * whole:
            expected = self._by_defaults(start, n_steps)
        self.held = {}
        if self.how == "map":
            self._resolve(self._known(expected.statistics))  # the prior is that of all steps
        return expected

    def _known(self, statistics: list[Any]) -> list[Any]:
        """The statistics of the columns by themselves."""
        return [f.family.known_statistics(s) for f, s in zip(self.emissions, statistics, strict=True)]

    def _by_defaults(self, start: Expected, n_steps: int) -> Expected:
        """What is expected of all steps after so many steps of EM under default priors."""
        kept = self.how, self.priors, list(self.beliefs), list(self.flat)
        self.how, self.priors, self.held = "map", read_prior(None), {}
        self._resolve(self._known(start.statistics))
        expected = self.expect(self._for_new_labels(start))[0]
        if n_steps > 1:
            self.held = {}
            self._resolve(self._known(expected.statistics))
            expected = climb(expected, self.maximise, self.expect, **self.climbing).expected
        self.how, self.priors, self.beliefs, self.flat = kept
        return expected

    def _for_new_labels(self, start: Expected) -> Estimated:
        """The parameters of the labelled steps, as they would answer: what no such step has is new to them.

        Its probability by the prior alone would be largest in the states with the fewest steps.
        """
        found, _ = self.maximise(start)
        scored = []
        for part, counts in zip(found.chain.scored, start.statistics, strict=True):
            if part.family.reads == "codes":
                (table, segments), never = part.parameters, counts.table.sum(axis=0) == 0
                wider = with_singletons(part, counts, counts.pooled()).parameters
                kept = np.stack([column[:, -1] for column in wider.segments.split(wider.table)], axis=-1)
                new = segments.spread(kept) if self.model.unseen == "smooth" else 1.0
                part = part._replace(parameters=Probabilities(np.where(never, new, table), segments))
            scored.append(part)
        return found._replace(chain=found.chain._replace(scored=scored))

    def _from_path(self, path: np.ndarray, n_steps: int) -> Expected:
        """What the steps say in the states of a path."""
        start = self._started(path)
        return self._by_defaults(start, n_steps) if self.how == "mle" else start

    def _nearest_path(self, nearest: Nearest, rng: np.random.Generator) -> np.ndarray:
        """Labelled steps in their states, the others in that of the nearest centre."""
        path, free = self.codes.copy(), np.flatnonzero(self.codes < 0)
        asked, place = self._unlike(free)
        centres = np.empty(len(asked), dtype=np.intp)
        for start in range(0, len(asked), _STEPS):
            part = slice(start, start + _STEPS)
            centres[part] = nearest(self.sequences.table.rows(asked[part]))
        path[free] = centres[place]
        for k in np.flatnonzero(np.bincount(path, minlength=self.n_states) == 0):
            # No step is nearest to it, as where there are fewer kinds of steps than states: some at random instead.
            path[rng.choice(free, max(1, len(free) // (10 * self.n_states)))] = k
        return path

    def _unlike(self, steps: np.ndarray) -> tuple[np.ndarray, Any]:
        """Steps that stand for these, and which of them stands for each: one for every label, otherwise all."""
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
        """The statistics with their levels."""
        names, states = self.names, self.states
        factors = [
            Factor(names["start"], (), Categorical()),
            Factor(names["to"], (names["from"],), Categorical()),
            *self.emissions,
        ]
        sizes = (self.n_states,)
        statistics: list[Any] = [
            Counts(expected.start, sizes),
            Counts(expected.transition, sizes),
            *expected.statistics,
        ]
        if self.model.end_state:
            factors.append(Factor(names["end"], (names["state"],), Bernoulli()))
            statistics.append(_trials(expected.end))
        domains = {**self.counter.domains, names["state"]: states}
        return Tally(factors, statistics, domains, state_schema(names), soft=True)


def _trials(end: np.ndarray) -> Totals:
    """How often a state was the last, and how often it went on."""
    return Totals(end.sum(axis=1, keepdims=True), end[:, 1:], failures=end[:, :1])
