"""What a hidden Markov model calls its own columns: as no column of the steps is called."""

from __future__ import annotations

from tallybayes.data.table import Table
from tallybayes.errors import StatisticsError
from tallybayes.models.inputs.features import free_name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally

PARTS = ("start", "from", "to", "end", "state")


def free_names(steps: Table, *, components: bool = False) -> dict[str, str]:
    """A name for every part, other than those of the steps; for components, where states are mixtures."""
    parts = (*PARTS, "component") if components else PARTS
    return {part: free_name(part, list(steps.columns)) for part in parts}


def emission_given(names: dict[str, str]) -> tuple[str, ...]:
    """What a step depends on: its state, and its component where there is one."""
    return (names["state"],) if "component" not in names else (names["state"], names["component"])


def state_schema(names: dict[str, str]) -> Schema:
    """All columns of states share one domain, and no other column does."""
    state, given = names["state"], emission_given(names)
    return Schema({names[part]: state for part in PARTS if part != "end"}, sorted_domains=given)


def names_in(tally: Tally, end_state: bool) -> dict[str, str]:
    """The names that a tally has for the parts: they are known by their givens and by the domain that they share.

    Where the end is modeled it is the last factor; nothing else tells it from a column of yes and no of that name.
    """
    labels = [factor for factor in tally.factors if factor.family.cell_type == "codes"]
    domain = tally.schema.domain
    moves = [factor for factor in labels if factor.given and domain(factor.given[0]) == domain(factor.columns[0])]
    steps = [factor for factor in tally.factors if factor.given and factor not in moves]
    found = {
        "start": {name for factor in labels if not factor.given for name in factor.columns},
        "from": {name for factor in moves for name in factor.given},
        "to": {name for factor in moves for name in factor.columns},
        "state": {factor.given[0] for factor in steps},
    }
    shared = {domain(name) for names in found.values() for name in names}
    components = {name for factor in steps for name in factor.given[1:]}
    columns = [name for factor in steps for name in factor.columns if name not in components]
    found |= {"component": components} if components else {}
    if end_state:
        yes_no = bool(steps) and steps[-1].family.is_binary
        found["end"] = {name for name in columns[-1:] if yes_no and str(name).rstrip("_") == "end"}
    else:
        found["end"] = {free_name("end", columns)}
    if len(shared) != 1 or any(len(names) != 1 for names in found.values()):
        end = ", the last one p(end | state)" if end_state else ""
        raise StatisticsError(
            "this tally is not a hidden Markov model's: expected factors p(start), p(to | from) and p(… | state)"
            f"{end}, found\n" + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    return {part: str(name) for part, (name,) in found.items()}
