"""Names of the state and end columns in the tally of a hidden Markov model; they differ from all observed columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tallybayes.errors import StatisticsError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.models.inputs.features import free_name
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

PARTS = ("start", "from", "to", "end", "state")


class ChainNames(NamedTuple):
    """The names of the columns of states, ends and mixture components in a tally.

    Attributes
    ----------
    start, source, target : str
        The state of the first time step, of the step before a transition, and of the step after it.
    end : str
        Whether a time step is the last one.
    state : str
        The state of a time step; also the name of the domain of all states.
    component : str or None
        The mixture component of a time step; None without mixture emissions.
    """

    start: str
    source: str
    target: str
    end: str
    state: str
    component: str | None = None

    @classmethod
    def unused(cls, columns: Iterable[Name], *, components: bool = False) -> ChainNames:
        """Return names that are not columns of the time steps."""
        columns = list(columns)
        start, source, target, end, state = (free_name(part, columns) for part in PARTS)
        component = free_name("component", columns) if components else None
        return cls(start, source, target, end, state, component)

    @classmethod
    def from_dict(cls, names: dict[str, str]) -> ChainNames:
        """Remove and return the names in a dictionary that `to_dict` returned."""
        start, source, target, end, state = (str(names.pop(part)) for part in PARTS)
        return cls(start, source, target, end, state, names.pop("component", None))

    def to_dict(self) -> dict[str, str]:
        """Return the names by part, as JSON and databases take them."""
        return {part: name for part, name in zip((*PARTS, "component"), self, strict=True) if name is not None}

    @property
    def given(self) -> tuple[str, ...]:
        """The parents of the emissions: the state, and the mixture component if there is one."""
        return (self.state,) if self.component is None else (self.state, self.component)

    @property
    def schema(self) -> Schema:
        """The schema of the tally: all columns of states share one domain."""
        return Schema(dict.fromkeys((self.start, self.source, self.target, self.state), self.state), self.given)

    def factors(self, *, ends: bool) -> list[Factor]:
        """Return the factors of initial states, transitions, ends (if modeled) and components (if there are any)."""
        factors = [Factor(self.start, (), Categorical()), Factor(self.target, (self.source,), Categorical())]
        factors += [Factor(self.end, (self.state,), Bernoulli())] if ends else []
        return factors + [Factor(name, (self.state,), Categorical()) for name in self.given[1:]]

    def emissions_in(self, tally: Tally) -> list[Factor]:
        """Return the emission factors of a tally."""
        parts = [(self.end,), (self.component,)]
        return [f for f in tally.factors if f.given[:1] == (self.state,) and f.columns not in parts]


def in_tally_order(tally: Tally, n_parts: int) -> Tally:
    """Return a tally of chain factors and emissions in the order of a model's tally: components and ends are last."""
    order = [0, 1, *range(n_parts, len(tally.factors)), *reversed(range(2, n_parts))]
    factors = [tally.factors[k] for k in order]
    return Tally(factors, [tally.statistics[k] for k in order], tally.domains, tally.schema, soft=tally.soft)


def names_in(tally: Tally, end_state: bool) -> ChainNames:
    """Return the names of the parts in a tally. Raise StatisticsError if its factors are not those of an HMM.

    The parts are identified by their parents and by their common domain. With `end_state`, the last factor is
    p(end | state): it cannot be distinguished from a binary column of that name otherwise.
    """
    domain = tally.schema.domain
    coded = [factor for factor in tally.factors if factor.family.cell_type == "codes"]
    transitions = [factor for factor in coded if factor.given and domain(factor.given[0]) == domain(factor.columns[0])]
    emissions = [factor for factor in tally.factors if factor.given and factor not in transitions]
    components = {name for factor in emissions for name in factor.given[1:]}
    states = [  # the candidates for start, source and target, and state
        _columns(factor for factor in coded if not factor.given),
        {name for factor in transitions for name in factor.given},
        _columns(transitions),
        {factor.given[0] for factor in emissions},
    ]
    candidates = [*states[:3], _end_names(emissions, components, end_state), states[3]]
    candidates += [components] if components else []
    n_domains = len(set(map(domain, set().union(*states))))
    if n_domains != 1 or any(len(names) != 1 for names in candidates):
        end = ", last p(end | state)" if end_state else ""
        raise StatisticsError(
            f"tally has other factors than p(start), p(to | from) and p(… | state){end}:\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    return ChainNames(*(str(name) for (name,) in candidates))


def _columns(factors: Iterable[Factor]) -> set[Name]:
    """Return the columns of some factors."""
    return {name for factor in factors for name in factor.columns}


def _end_names(emissions: Sequence[Factor], components: set[Name], end_state: bool) -> set[Name]:
    """Return the candidates for the name of the end column; a free name if the end is not modeled."""
    columns = [name for factor in emissions for name in factor.columns if name not in components]
    if not end_state:
        return {free_name("end", columns)}
    is_binary = bool(emissions) and emissions[-1].family.is_binary
    return {name for name in columns[-1:] if is_binary and str(name).rstrip("_") == "end"}
