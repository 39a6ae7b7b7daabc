"""Names of the state and end columns in the tally of a hidden Markov model; they differ from all observed columns."""

from __future__ import annotations

from collections.abc import Sequence

from tallybayes.data.table import Table
from tallybayes.errors import StatisticsError
from tallybayes.models.inputs.features import free_name
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally

PARTS = ("start", "from", "to", "end", "state")


def free_names(steps: Table, *, components: bool = False) -> dict[str, str]:
    """Return a name for every part that is not a column of the time steps."""
    parts = (*PARTS, "component") if components else PARTS
    return {part: free_name(part, list(steps.columns)) for part in parts}


def emission_given(names: dict[str, str]) -> tuple[str, ...]:
    """Return the parents of the emissions: the state, and the mixture component if there is one."""
    return (names["state"],) if "component" not in names else (names["state"], names["component"])


def state_schema(names: dict[str, str]) -> Schema:
    """Return the schema: all columns of states share one domain."""
    domains = {names[part]: names["state"] for part in PARTS if part != "end"}
    return Schema(domains, sorted_domains=emission_given(names))


def emissions_in(tally: Tally, names: dict[str, str]) -> list[Factor]:
    """Return the emission factors of a tally."""
    parts = [(names["end"],), (names.get("component"),)]
    return [f for f in tally.factors if f.given[:1] == (names["state"],) and f.columns not in parts]


def names_in(tally: Tally, end_state: bool) -> dict[str, str]:
    """Return the names of the parts in a tally. Raise StatisticsError if its factors are not those of an HMM.

    The parts are identified by their parents and by their common domain. With `end_state`, the last factor is
    p(end | state): it cannot be distinguished from a binary column of that name otherwise.
    """
    candidates = _candidate_names(tally, end_state)
    states = {*candidates["start"], *candidates["from"], *candidates["to"], *candidates["state"]}
    if len(set(map(tally.schema.domain, states))) != 1 or any(len(names) != 1 for names in candidates.values()):
        end = ", last p(end | state)" if end_state else ""
        raise StatisticsError(
            f"tally has other factors than p(start), p(to | from) and p(… | state){end}:\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    return {part: str(name) for part, (name,) in candidates.items()}


def _candidate_names(tally: Tally, end_state: bool) -> dict[str, set[Name]]:
    """Return the columns of a tally that may be each part; one for each if the tally is that of an HMM."""
    domain = tally.schema.domain
    coded = [factor for factor in tally.factors if factor.family.cell_type == "codes"]
    transitions = [factor for factor in coded if factor.given and domain(factor.given[0]) == domain(factor.columns[0])]
    emissions = [factor for factor in tally.factors if factor.given and factor not in transitions]
    components = {name for factor in emissions for name in factor.given[1:]}
    candidates = {
        "start": _columns([factor for factor in coded if not factor.given]),
        "from": {name for factor in transitions for name in factor.given},
        "to": _columns(transitions),
        "state": {factor.given[0] for factor in emissions},
        "end": _end_names(emissions, components, end_state),
    }
    return candidates | ({"component": components} if components else {})


def _columns(factors: Sequence[Factor]) -> set[Name]:
    """Return the columns of some factors."""
    return {name for factor in factors for name in factor.columns}


def _end_names(emissions: Sequence[Factor], components: set[Name], end_state: bool) -> set[Name]:
    """Return the candidates for the name of the end column; a free name if the end is not modeled."""
    columns = [name for factor in emissions for name in factor.columns if name not in components]
    if not end_state:
        return {free_name("end", columns)}
    is_binary = bool(emissions) and emissions[-1].family.is_binary
    return {name for name in columns[-1:] if is_binary and str(name).rstrip("_") == "end"}
