"""Which prior is meant for which block of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallybayes.beliefs.belief import Belief
from tallybayes.errors import PriorError, brief
from tallybayes.families.added_counts import is_amount, no_levels
from tallybayes.families.empirical import default_in_groups
from tallybayes.families.family import Family
from tallybayes.tally.factor import Factor
from tallybayes.value import Value
from tallybayes.words import Words

PRIOR_WORDS = Words(
    ("empirical",), ("a belief such as tb.Beta(1, 1)", "a number of counts", "a rule such as tb.K2()", "None")
)


def check_priors(prior: Any, factors: Iterable[Factor], parts: Sequence[str] = ()) -> None:
    """Refuse a belief that belongs to no factor's family, and one for a column, or other part, that is not there."""
    factors = list(factors)
    for one in prior.values() if isinstance(prior, Mapping) else prior if isinstance(prior, list | tuple) else [prior]:
        refuse_other(one)
    if isinstance(prior, Mapping):
        known = dict.fromkeys(name for factor in factors for name in factor.columns)
        blocks = {factor.columns for factor in factors}
        unknown = [name for name in prior if name not in known and name not in blocks]
        if unknown:
            raise PriorError.unknown_column(unknown, [*parts, *known])
        for factor in factors:
            belief, family = prior_for(prior, factor), factor.family
            if isinstance(belief, Belief) and not isinstance(belief, family.belief) and not belief.any_family:
                raise PriorError.wrong_belief(family, belief, f"a {family.belief.__name__}")
            if is_amount(belief) and not _has_levels(factor) and not family.decays:
                raise no_levels(belief, [family])
        return
    families = [factor.family for factor in factors]  # none where no column was worth its cuts: then any prior will do
    for one in (prior if isinstance(prior, list | tuple) else [prior]) if families else ():
        if is_amount(one) and not any(map(_has_levels, factors)):
            raise no_levels(one, families)
        if isinstance(one, Belief) and not any(isinstance(one, family.belief) for family in families):
            wanted = sorted({family.belief.__name__ for family in families})
            raise PriorError(
                f"prior= has {one!r}, which belongs to no column's family; expected beliefs of the classes "
                f"{', '.join(wanted)}.\n    Leave it out, or check the families in columns=."
            )


def refuse_other(prior: Any) -> None:
    """Refuse what is no prior of any family."""
    if isinstance(prior, str):
        PRIOR_WORDS.check("prior", prior)
    elif getattr(prior, "improper", False):
        raise PriorError(
            f"prior has {prior!r}, a limit and no distribution: what a class has not seen would be impossible in it.\n"
            "    Use parameters above 0, or estimate='mle'; tb.learn takes such limits."
        )
    elif hasattr(prior, "fit"):
        raise PriorError(
            "prior= is a model, and how much it is worth is not said; expected beliefs or a tally.\n"
            "    Pass its counts: prior=model.tally_, or of a network prior=tb.BDe(network, sample_size)."
        )
    elif prior is not None and not is_amount(prior) and (not isinstance(prior, Value) or isinstance(prior, Family)):
        raise PriorError(f"prior has {brief(prior)}; expected {', '.join(PRIOR_WORDS.others)} or 'empirical'.")


def prior_for(prior: Any, factor: Factor) -> Any:
    """The prior of a factor: by block or column, or the first that belongs to its family."""
    if isinstance(prior, Mapping):
        if factor.columns in prior:
            return prior[factor.columns]
        named = [prior[name] for name in factor.columns if name in prior]
        if not named:
            return None
        if len(named) < len(factor.columns) or any(other is not named[0] and other != named[0] for other in named):
            raise PriorError(
                f"the columns {factor.columns} are one block of {factor.family!r}, but prior= does not give them "
                "one prior.\n    Give each the same, or one belief with an array per column."
            )
        return named[0]
    candidates = prior if isinstance(prior, list | tuple) else [prior]
    return next((each for each in candidates if _serves(each, factor)), None)


def prior_in_groups(prior: Any, factor: Factor, estimate: str) -> Any:
    """As `prior_for`, of columns that are compared between groups: their default is of all groups together."""
    found = prior_for(prior, factor)
    return default_in_groups(factor.family, estimate) if found is None else found


def _serves(prior: Any, factor: Factor) -> bool:
    """Whether one of several priors is meant for a factor, too."""
    if is_amount(prior):
        return _has_levels(factor)
    return isinstance(prior, factor.family.belief) or not hasattr(prior, "update")


def _has_levels(factor: Factor) -> bool:
    """Whether there is something that a number of counts can be added to."""
    return factor.family.added_counts(1.0, "bayes") is not None
