"""Names of models, and options that become parameters of models: families, priors, structures, spans of time."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.data_argument import pair
from tallybayes.apps.cli.family_names import FAMILIES, FAMILY_WORDS
from tallybayes.messages import did_you_mean

if TYPE_CHECKING:
    from tallybayes.models.base import Model

MODELS = {
    "auto": "AutoClassifier",
    "naive-bayes": "NaiveBayes",
    "one-dependence": "AveragedOneDependence",
    "tree-augmented": "TreeAugmentedNaiveBayes",
    "discriminant": "GaussianDiscriminant",
    "forest": "CountForest",
    "boosting": "CountBoosting",
    "nearest-mean": "NearestClassMean",
    "regression": "LinearRegression",
    "mixture": "Mixture",
    "network": "BayesianNetwork",
    "hidden-markov": "HiddenMarkovModel",
}

_RULES = ("auto", "suggest")
IGNORE = "ignore"


def read_families(columns: Sequence[str]) -> tuple[dict[Any, Any], tuple[str, ...]]:
    """Return the families by column, and the columns to ignore.

    Parameters
    ----------
    columns : sequence of str
        Texts NAME=FAMILY. The name ``...`` means all other columns.
    """
    import tallybayes as tb

    families: dict[Any, Any] = {}
    ignored = []
    for text in columns:
        name, family_name = pair(text, "columns", "FAMILY")
        key: Any = ... if name == "..." else name
        if family_name == IGNORE and key is not ...:
            ignored.append(name)
            continue
        base_name, _, suffix = family_name.lower().replace("_", "-").partition("+")
        if base_name == IGNORE:
            families[key] = None
        elif base_name in _RULES and not suffix:
            families[key] = base_name
        elif base_name in FAMILY_WORDS and suffix in ("", "missing"):
            family = getattr(tb, FAMILY_WORDS[base_name])()
            families[key] = tb.WithMissing(family) if suffix else family
        else:
            known = [*_RULES, IGNORE, *(words[0] for words in FAMILIES.values())]
            hint = did_you_mean([base_name], [*_RULES, IGNORE, *FAMILY_WORDS])
            tail = f"\n    {hint}" if hint else ""
            raise UsageError(
                f"--columns has the family {family_name!r} for {name!r}; expected one of {', '.join(known)}, "
                f"or one of these with +missing, for informative missing values.{tail}"
            )
    if families and ... not in families:
        families[...] = "auto"
    if families.get(..., 0) is None:
        del families[...]  # columns that the mapping does not name are not read
    return families, tuple(ignored)


_MODE_ESTIMATES = ("map",)  # estimates for which a number of pseudo-counts is ambiguous


def read_prior(text: str | None, estimate: str = "bayes") -> Any:
    """Return the prior of an option: pseudo-counts per level, or a prior rule or distribution by name."""
    import tallybayes as tb

    if text is None or text == "empirical":
        return text
    name, _, arguments = text.lower().partition(":")
    try:
        if name == "k2" and not arguments:
            return tb.K2()
        if name in ("dirichlet", "beta"):
            numbers = [float(number) for number in arguments.split(",")]
            return tb.Dirichlet(*numbers) if name == "dirichlet" else tb.Beta(*numbers)
        prior = tb.BDeu(float(arguments)) if name == "bdeu" else float(text)
    except (ValueError, TypeError):
        raise UsageError(
            f"--prior is {text!r}; expected a number of pseudo-counts (1 is add-one), empirical, k2, bdeu:N (prior "
            "strength of N rows), dirichlet:N or beta:A,B."
        ) from None
    if estimate in _MODE_ESTIMATES and isinstance(prior, float) and prior > 0:
        raise UsageError(
            f"--prior is {text!r}, which is ambiguous with --estimate map; expected dirichlet:{prior + 1:g}, which "
            f"adds {prior:g} to every level's count, or dirichlet:{prior:g}, which adds {prior - 1:g}."
        )
    return prior


def read_structure(statements: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parents of each node: 'a->b', chains 'a->b->c', lists 'a, b -> c'; statements end with ';'."""
    import tallybayes as tb

    if len(statements) == 1 and statements[0].lower().endswith((".bif", ".bif.gz")):
        parents_of = tb.BayesianNetwork.from_bif(statements[0]).graph_.parents
        return {str(name): tuple(map(str, parents)) for name, parents in parents_of.items()}
    parents: dict[str, tuple[str, ...]] = {}
    for statement in ";".join(statements).split(";"):
        if not statement.strip():
            continue
        steps = _steps(statement)
        for sources, targets in itertools.pairwise([[], *steps]):
            for name in targets:
                parents[name] = tuple(dict.fromkeys((*parents.get(name, ()), *sources)))
    return parents


def _steps(statement: str) -> list[list[str]]:
    """Return the lists of nodes between the arrows of a statement, or raise UsageError."""
    steps = [[name.strip() for name in step.split(",")] for step in statement.split("->")]
    if not all(name for step in steps for name in step):
        raise UsageError(
            f"--structure has {statement.strip()!r}; expected edges such as 'rain->wet' or 'rain, sprinkler->wet'."
        )
    return steps


_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def read_span(text: str, option: str) -> Any:
    """Return a span of time such as 30d; a plain number has the unit of the time column."""
    import numpy as np

    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zµ]*)\s*", text.lower())
    number = float(match[1]) if match else 0.0
    if match is None or number <= 0 or (match[2] and match[2] not in _SECONDS):
        hint = (
            "\n    The length of a month varies; pass 30d, or 5min for minutes."
            if match and match[2][:1] == "m"
            else ""
        )
        raise UsageError(
            f"--{option} is {text!r}; expected a positive number with a unit ({', '.join(_SECONDS)}), such as 30d, or "
            f"without one.{hint}"
        )
    return np.timedelta64(round(number * _SECONDS[match[2]] * 1e9), "ns") if match[2] else number


def make(model: str, options: Mapping[str, Any], **fixed: Any) -> Model:
    """Return an unfitted model. Raise UsageError for an option that the model does not have.

    Parameters
    ----------
    model : str
    options : mapping
        Options of the command line; None if not passed.
    **fixed
        Further parameters, set by the command.
    """
    import tallybayes as tb

    made: Model = getattr(tb, MODELS[model])(**fixed, **passed_options(model, options))
    return made


def passed_options(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were passed. Raise UsageError for an option that the model does not have."""
    import tallybayes as tb

    passed = {name: value for name, value in options.items() if value not in (None, {})}
    parameters = {name: inspect.signature(getattr(tb, kind)).parameters for name, kind in MODELS.items()}
    for name in passed:
        if name not in parameters[model]:
            others = ", ".join(other for other, known in parameters.items() if name in known)
            option = name.replace("_", "-")
            raise UsageError(f"--{option} is not an option of --model {model}; expected --model {others}.")
    return passed
