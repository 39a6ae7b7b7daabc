"""What follows from the counts of a hidden Markov model: its parts, their parameters, and the chain that answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

from tallybayes.errors import DataError, NoCountsError
from tallybayes.models.chains.chain import Chain, log_shares, meaning_of, read_prior, share_of_new, with_kept, with_new
from tallybayes.models.fitted.fitted import Fitted
from tallybayes.models.fitted.reading import UNSEEN, Told, within_of
from tallybayes.models.fitted.scoring import Scored, not_estimated
from tallybayes.models.inputs.column_priors import prior_in_groups
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally


@dataclass(frozen=True, eq=False)
class Counted:
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

    @property
    def parts(self) -> list[str]:
        """What there is besides the emissions."""
        return ["start", "transition", "end"] if self.end_state else ["start", "transition"]

    @property
    def states(self) -> Domain:
        """The states, sorted."""
        return self.tally.domains[self.tally.schema.domain(self.names["state"])]

    @cached_property
    def pairs(self) -> list[tuple[Factor, Any]]:
        """Start, transition and end, then the emissions, with what was counted of each."""
        pairs = list(zip(self.tally.factors, self.tally.statistics, strict=True))
        by_name = {factor.columns: (factor, counted) for factor, counted in pairs}
        columns = [self.names[part] for part in ("start", "to", "end")[: len(self.parts)]]
        emissions = [pair for pair in pairs if pair[0].given == (self.names["state"],)]
        return [by_name[name,] for name in columns] + [p for p in emissions if p[0].columns != (self.names["end"],)]

    @property
    def emissions(self) -> list[tuple[Factor, Any]]:
        """The factors of the emissions, with what was counted of each."""
        return self.pairs[len(self.parts) :]

    @cached_property
    def fitted(self) -> Fitted:
        """Start, transition, end and emissions after estimating; the predictive of a sequence has no closed form."""
        if self.given is not None:
            known = dict(zip((factor.columns for factor in self.tally.factors), self.given, strict=True))
            return Fitted.given(self.pairs, [known[factor.columns] for factor, _ in self.pairs], self.states.levels)
        given, emissions = read_prior(self.prior), [factor for factor, _ in self.emissions]
        priors = [given[part] for part in self.parts] + [
            prior_in_groups(given["emission"], factor, self.estimate) for factor in emissions
        ]
        return Fitted(self.pairs, priors, self.estimate, groups=self.states.levels, plug_in=True)

    @property
    def scored(self) -> list[Scored]:
        """The emissions of every state, over the levels that were seen."""
        return self.fitted.scored[len(self.parts) :]

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
    def chain(self) -> Chain:
        """The parameters as the kernels take them."""
        scored, unseen = self.scored, self.meaning_of_unseen
        start, transition, *end = [log_shares(part.point) for part in self.fitted.scored[: len(self.parts)]]
        if unseen in ("new", "smooth"):
            widen, pairs = with_new if unseen == "new" else with_kept, zip(scored, self.emissions, strict=True)
            scored = [widen(p, share_of_new(counts)) if p.family.reads == "codes" else p for p, (_, counts) in pairs]
            unseen = "smooth"  # to those who read rows: one past the end
        return Chain(start, transition, end[0][:, 0] if end else None, scored, self.domains, unseen)

    @cached_property
    def answering(self) -> Chain:
        """The chain, where it can answer: a state was counted, and all that a state emits."""
        states = self.states.levels
        if not states:
            raise DataError("no state is left: every sequence was forgotten.\n    Learn from at least one step.")
        for code, column in chain.from_iterable(map(not_estimated, self.chain.scored)):
            raise DataError.no_data(f"column {column!r} in state {states[code]!r}", self.estimate)
        return self.chain

    def over(self, tally: Tally) -> Counted:
        """The same over other counts of the same levels, its priors held."""
        other = replace(self, tally=tally)
        return other._estimated(self.fitted.over(other.pairs))

    def scaled(self, strength: float) -> Counted:
        """The same under priors worth so many times as much."""
        return replace(self)._estimated(self.fitted.scaled(strength))

    def _estimated(self, fitted: Fitted) -> Counted:
        self.__dict__["fitted"] = fitted
        return self


def told(counted: Counted, model: Any) -> list[Told]:
    """Start, transition and end, and what every state emits, under the names that ``prior=`` has for them."""
    states, fitted = counted.states.levels, counted.fitted
    found = []
    beliefs = [partial(fitted.posterior, number) for number in range(len(counted.pairs))]
    for part, (factor, _), scored, posterior in zip(
        counted.parts, counted.pairs, fitted.readable, beliefs, strict=False
    ):
        given, groups = (("state",), (states,)) if factor.given else ((), ())
        levels = [states] if factor.level_columns else ()
        found.append(Told(scored, given, groups, levels, names=(part,), posterior=posterior))
    emitted = zip(fitted.readable[len(found) :], counted.emissions, beliefs[len(found) :], strict=True)
    for scored, (factor, counts), posterior in emitted:
        more: tuple[str, ...] = ()
        if counted.meaning_of_unseen == "smooth" and factor.level_columns:
            scored, more = with_kept(scored, share_of_new(counts)), (UNSEEN,)
        levels = [(*counted.tally.domains[str(name)].levels, *more) for name in factor.level_columns]
        names = [(name,) if name in counted.parts else name for name in factor.columns]
        within = within_of(model, scored, counts.n_columns)
        found.append(Told(scored, ("state",), (states,), levels, names, within, posterior=posterior))
    return found
