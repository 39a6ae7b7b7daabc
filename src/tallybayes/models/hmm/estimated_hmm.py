"""What follows from the counts of a hidden Markov model: its parts, their parameters, and the chain that answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import xlogy

from tallybayes.errors import DataError, NoCountsError
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, undefined_parameters
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.models.hmm.fitting.stationary_mle import stationary_distribution, stationary_mle
from tallybayes.models.hmm.hmm_parameters import (
    HMMParameters,
    log_shares,
    meaning_of,
    read_prior,
    unseen_mass,
    with_unseen_label,
    with_unseen_label_normalized,
)
from tallybayes.models.hmm.mixture_emissions import ComponentWeights, MixtureEmissions
from tallybayes.models.hmm.topology import Topology
from tallybayes.models.inputs.column_priors import prior_in_groups
from tallybayes.models.inspection.labeled_parameters import UNSEEN, LabeledFactor, within_of
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class EstimatedHMM:
    """A hidden Markov model as its counts make it. It never changes: other counts, or another prior, make another one.

    Each part is made when it is first asked for.
    """

    tally: Tally
    names: dict[str, str]
    estimate: str
    prior: Any
    unseen: str
    end_state: bool
    given: tuple[Any, ...] | None = None  # parameters that were not learned, but given: of every factor of the tally
    allowed_transitions: Any = None
    start: Any = None
    tied: Any = None
    components: Any = None

    @cached_property
    def structure(self) -> Topology:
        """What is fixed: how counts are read. Tables that were given are as they are."""
        if self.given is not None:
            components = MixtureEmissions.of(self.components, self.states.levels, None, whole=False)
            return Topology(self.states.levels, ends=self.end_state, components=components)
        return Topology.of(self, self.states.levels)

    @property
    def parts(self) -> list[str]:
        """What is estimated besides the emissions."""
        return self.structure.parts

    @property
    def states(self) -> Domain:
        """The states, sorted."""
        return self.tally.domains[self.tally.schema.domain(self.names["state"])]

    @cached_property
    def pairs(self) -> list[tuple[Factor, Any]]:
        """Start, transition, end and components, then the emissions, with what was counted of each."""
        pairs = list(zip(self.tally.factors, self.tally.statistics, strict=True))
        by_name = {factor.columns: (factor, counted) for factor, counted in pairs}
        more = [*(["end"] if self.end_state else []), *(["component"] if "component" in self.names else [])]
        parts = [by_name[self.names[part],] for part in ("start", "to", *more)]
        own = [(self.names["end"],), (self.names.get("component"),)]
        emissions = [p for p in pairs if p[0].given[:1] == (self.names["state"],) and p[0].columns not in own]
        components = self.structure.components
        if components is not None:
            emissions = [(factor, components.flatten_components(counted)) for factor, counted in emissions]
        return parts + emissions

    @property
    def emissions(self) -> list[tuple[Factor, Any]]:
        """The factors of the emissions, with what was counted of each."""
        return self.pairs[self._n_parts :]

    @property
    def _n_parts(self) -> int:
        return 2 + self.end_state + ("component" in self.names)

    @cached_property
    def read(self) -> list[tuple[Factor, Any]]:
        """The same as they are estimated from: of what is allowed, and of tied states together."""
        factors, statistics = zip(*self.pairs, strict=True)
        return list(zip(self.structure.factors(factors), self.structure.read(statistics), strict=True))

    @cached_property
    def fitted(self) -> EstimatedFactors:
        """Start, transition, end and emissions after estimating; the predictive of a sequence has no closed form."""
        if self.given is not None:
            known = dict(zip((factor.columns for factor in self.tally.factors), self.given, strict=True))
            found, components = [known[factor.columns] for factor, _ in self.pairs], self.structure.components
            if components is not None:  # stated as a tally has them
                where, n_parts = (components.owner, components.number), self._n_parts
                emitted = zip(self.emissions, found[n_parts:], strict=True)
                found[n_parts:] = [factor.family.take(parameters, where) for (factor, _), parameters in emitted]
                shares = FactorScorer(self.pairs[n_parts - 1][0], found[n_parts - 1], False, NO_COLUMNS)
                found[n_parts - 1] = components.points(shares).parameters
            return EstimatedFactors.from_fixed_parameters(self.read, found, self.structure.emitting)
        given = read_prior(self.prior, components=self.structure.components is not None)
        emissions = [factor for factor, _ in self.emissions]
        priors = [self.structure.prior(part, given[part]) for part in self.parts] + [
            prior_in_groups(given["emission"], factor, self.estimate, lambda name: self.tally.domains[str(name)].levels)
            for factor in emissions
        ]
        return EstimatedFactors(self.read, priors, self.estimate, groups=self.structure.groups, plug_in=True)

    @property
    def scored(self) -> list[FactorScorer]:
        """The emissions of every state, over the levels that were seen."""
        return self._expand_to_states(self.fitted.checked_scorers)[len(self.parts) :]

    def _expand_to_states(self, found: list[FactorScorer]) -> list[FactorScorer]:
        """What was estimated over all states again."""
        found = self.structure.spread(found)
        if self.structure.stationary:
            found[0] = found[0]._replace(parameters=self._stationary_transitions)
        return found

    @cached_property
    def _stationary_transitions(self) -> LevelProbabilities:
        """The transitions where sequences begin as they go on."""
        self.structure.refuse_transient()
        counts, n = self.read[0][1].table, len(self.states.levels)
        if self.fitted.has_prior:
            posterior = self.fitted.posterior(0)
            counts = np.maximum(posterior.concentration - read_estimate(self.estimate).takes_mode, 0.0)
        return self._settled_at(counts) if n else LevelProbabilities(np.zeros((0, 0)), Segments([0]))

    def _settled_at(self, counts: np.ndarray) -> LevelProbabilities:
        """The most likely transitions for some counts of them, as they are read, and the starts."""
        wide = self.structure.as_full_matrix(counts)
        found = stationary_mle(self.pairs[0][1].table, wide, self.structure.allowed)
        return LevelProbabilities(found, Segments([len(found)]))

    @property
    def fixed(self) -> float:
        """What a stationary start adds to the log likelihood of the transitions alone, both at their top."""
        if not self.structure.stationary or not self.states.levels:
            return 0.0
        (_, starts), (_, moves) = self.pairs[:2]
        table, _ = self._settled_at(self.read[0][1].table)
        total = np.maximum(moves.table.sum(axis=1, keepdims=True), 1e-300)
        at_best = xlogy(starts.table, stationary_distribution(table)).sum() + xlogy(moves.table, table).sum()
        return float(at_best - xlogy(moves.table, moves.table / total).sum())

    @property
    def domains(self) -> list[list[Domain]]:
        """These levels, of every column of labels."""
        return [[self.tally.domains[str(name)] for name in part.factor.level_columns] for part in self.scored]

    @property
    def meaning_of_unseen(self) -> str:
        """What a label is that no step had; those that were seen once tell of new ones, and without counts none was."""
        found = meaning_of(self.unseen, self.estimate)
        if self.given is not None and found == "smooth":
            raise NoCountsError(
                "unseen='smooth' needs counts, and these tables were given.\n    Use unseen='missing' or 'error'."
            )
        return "missing" if self.given is not None and found == "new" else found

    @cached_property
    def chain(self) -> HMMParameters:
        """The parameters as the kernels take them."""
        scored, unseen = self.scored, self.meaning_of_unseen
        found = dict(zip(self.parts, self._expand_to_states(self.fitted.checked_scorers), strict=False))
        transition = log_shares(found["transition"].point)
        start = log_shares(found["start"].point if "start" in found else stationary_distribution(np.exp(transition)))
        end = [log_shares(found["end"].point)] if self.end_state else []
        if unseen in ("new", "smooth"):
            widen, pairs = (
                with_unseen_label if unseen == "new" else with_unseen_label_normalized,
                zip(scored, self._together, strict=True),
            )
            scored = [widen(p, unseen_mass(counts)) if p.family.cell_type == "codes" else p for p, counts in pairs]
            unseen = "smooth"  # to those who read rows: one past the end
        mixed = None
        if self.structure.components is not None:
            mixed = ComponentWeights.made(self.structure.components, log_shares(found["component"].point))
        return HMMParameters(start, transition, end[0][:, 0] if end else None, scored, self.domains, unseen, mixed)

    @property
    def _together(self) -> list[Any]:
        """What was counted of every emission in every state, tied ones together."""
        read, tied = [counts for _, counts in self.read[len(self.parts) :]], self.structure.tied
        return read if tied is None else [counts.take(0, tied) for counts in read]

    @cached_property
    def checked_parameters(self) -> HMMParameters:
        """The chain, where it can answer: a state was counted, and all that a state emits."""
        states = self.states.levels
        if not states:
            raise DataError("no state is left: every sequence was forgotten.\n    Learn from at least one step.")
        for code, column in chain.from_iterable(map(undefined_parameters, self.chain.scored)):
            raise DataError.no_data(f"column {column!r} in {self.structure.called(code)}", self.estimate)
        return self.chain

    def over(self, tally: Tally) -> EstimatedHMM:
        """The same over other counts of the same levels, its priors held."""
        other = replace(self, tally=tally)
        return other._estimated(self.fitted.with_statistics(other.read))

    def scaled(self, strength: float) -> EstimatedHMM:
        """The same under priors worth so many times as much."""
        return replace(self)._estimated(self.fitted.scaled(strength))

    def _estimated(self, fitted: EstimatedFactors) -> EstimatedHMM:
        self.__dict__["fitted"] = fitted
        return self


def told(counted: EstimatedHMM, model: Any) -> list[LabeledFactor]:
    """Start, transition and end, and what every state emits, under the names that ``prior=`` has for them."""
    states, fitted = counted.states.levels, counted.fitted
    found = []
    every = counted._expand_to_states(fitted.scorers_or_mle)
    for number, (part, scored) in enumerate(zip(counted.parts, every, strict=False)):
        given, groups = ((), ()) if part == "start" else (("state",), (states,))
        own = range(counted.structure.components.most) if part == "component" else states  # type: ignore[union-attr]
        levels = [own] if scored.factor.level_columns else ()
        posterior: Any = partial(_belief, counted, number)
        if part == "transition" and counted.structure.stationary:
            posterior = None  # where sequences begin says something of it, too
        found.append(LabeledFactor(scored, given, groups, levels, names=(part,), posterior=posterior))
    components = counted.structure.components
    axes: tuple[Any, Any] = (("state",), (states,)) if components is None else components.axes
    emitted = zip(every[len(found) :], counted.emissions, counted._together, strict=True)
    for number, (scored, (factor, _), counts) in enumerate(emitted, len(found)):
        posterior = partial(_belief, counted, number)
        more: tuple[str, ...] = ()
        if counted.meaning_of_unseen == "smooth" and factor.level_columns:
            scored, more = with_unseen_label_normalized(scored, unseen_mass(counts)), (UNSEEN,)
        levels = [(*counted.tally.domains[str(name)].levels, *more) for name in factor.level_columns]
        names = [(name,) if name in counted.parts else name for name in factor.columns]
        past = factor.family.order > 0  # one column, whose line is given the steps before
        within = () if past else within_of(model, scored, counts.n_columns)
        found.append(LabeledFactor(scored, *axes, levels, names, within, posterior=posterior, whole=past))
    return found


def _belief(counted: EstimatedHMM, number: int) -> Any:
    """The belief about a part, or an emission, of all states."""
    fitted, parts, structure = counted.fitted, counted.parts, counted.structure
    if number < len(parts):
        return structure.belief(parts[number], fitted.posterior(number))
    if structure.tied is None:
        return fitted.posterior(number)
    belief, constant = fitted.resolved_priors[number]
    together = counted._together[number - len(parts)]
    return belief.update(counted.read[number][0].family.add_unit_variance(together, constant))
