"""Models by the names that people type, and their settings: families, priors, structures."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.data_argument import pair
from tallybayes.messages import did_you_mean

MODELS = {
    "auto": "AutoClassifier",
    "naive-bayes": "NaiveBayes",
    "one-dependence": "AveragedOneDependence",
    "tree-augmented": "TreeAugmentedNaiveBayes",
    "discriminant": "GaussianDiscriminant",
    "nearest-mean": "NearestClassMean",
    "regression": "LinearRegression",
    "mixture": "Mixture",
    "network": "BayesianNetwork",
    "hidden-markov": "HiddenMarkovModel",
}

# What people call a column; the first of every line is what it is called in help.
_FAMILIES = {
    "Categorical": ("categorical", "label", "labels", "category", "string", "discrete"),
    "Text": ("text", "words"),
    "Bernoulli": ("binary", "bernoulli", "boolean", "bool", "yes-no"),
    "Poisson": ("count", "counts", "poisson"),
    "Gaussian": ("gaussian", "normal", "number", "numeric", "float", "measure"),
    "LogNormal": ("log-normal", "lognormal"),
    "TiedGaussian": ("tied-gaussian",),
}
FAMILY_WORDS = {word: name for name, words in _FAMILIES.items() for word in words}
_RULES = ("auto", "suggest")
IGNORE = "ignore"


def read_families(columns: Sequence[str]) -> tuple[dict[Any, Any], tuple[str, ...]]:
    """Families by column, and the columns to be left out.

    Parameters
    ----------
    columns : sequence of str
        NAME=FAMILY; the name ``...`` stands for all that are not named.
    """
    import tallybayes as tb

    found: dict[Any, Any] = {}
    ignored = []
    for text in columns:
        name, word = pair(text, "columns", "FAMILY")
        key: Any = ... if name == "..." else name
        if word == IGNORE and key is not ...:
            ignored.append(name)
            continue
        plain, _, missing = word.lower().replace("_", "-").partition("+")
        if plain == IGNORE:
            found[key] = None
        elif plain in _RULES and not missing:
            found[key] = plain
        elif plain in FAMILY_WORDS and missing in ("", "missing"):
            family = getattr(tb, FAMILY_WORDS[plain])()
            found[key] = tb.WithMissing(family) if missing else family
        else:
            known = [*_RULES, IGNORE, *(words[0] for words in _FAMILIES.values())]
            hint = did_you_mean([plain], [*_RULES, IGNORE, *FAMILY_WORDS])
            tail = f"\n    {hint}" if hint else ""
            raise UsageError(
                f"--columns has the family {word!r} for {name!r}; expected one of {', '.join(known)}, "
                f"or one of these with +missing, where absence tells something.{tail}"
            )
    if found and ... not in found:
        found[...] = "auto"
    if found.get(..., 0) is None:
        del found[...]  # columns that a mapping does not name are not read
    return found, tuple(ignored)


_OF_THE_MODE = ("map",)  # estimates under which a number is ambiguous


def read_prior(text: str | None, estimate: str = "bayes") -> Any:
    """A prior: a number added to every level's count, a rule or a distribution by its name."""
    import tallybayes as tb

    if text is None or text == "empirical":
        return text
    word, _, size = text.lower().partition(":")
    try:
        if word == "k2" and not size:
            return tb.K2()
        if word in ("dirichlet", "beta"):
            numbers = [float(number) for number in size.split(",")]
            return tb.Dirichlet(*numbers) if word == "dirichlet" else tb.Beta(*numbers)
        found = tb.BDeu(float(size)) if word == "bdeu" else float(text)
    except (ValueError, TypeError):
        raise UsageError(
            f"--prior is {text!r}; expected a number (1 is add-one), empirical, k2, bdeu:N, worth N rows, dirichlet:N "
            "or beta:A,B."
        ) from None
    if estimate in _OF_THE_MODE and isinstance(found, float) and found > 0:
        raise UsageError(
            f"--prior is {text!r}, which is ambiguous with --estimate map; expected dirichlet:{found + 1:g}, which "
            f"adds {found:g} to every level's count, or dirichlet:{found:g}, which adds {found - 1:g}."
        )
    return found


def read_structure(parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Who depends on whom: 'a->b', chains 'a->b->c', several with commas 'a, b -> c'; parts end with ';'."""
    import tallybayes as tb

    if len(parts) == 1 and parts[0].lower().endswith((".bif", ".bif.gz")):
        return {
            str(name): tuple(map(str, above))
            for name, above in tb.BayesianNetwork.from_bif(parts[0]).graph_.parents.items()
        }
    parents: dict[str, tuple[str, ...]] = {}
    for part in (one for text in parts for one in text.split(";") if one.strip()):
        steps = [[name.strip() for name in step.split(",")] for step in part.split("->")]
        if not all(name for step in steps for name in step):
            raise UsageError(
                f"--structure has {part.strip()!r}; expected arrows such as 'rain->wet' or 'rain, sprinkler -> wet'."
            )
        for name in steps[0]:
            parents.setdefault(name, ())
        for above, below in itertools.pairwise(steps):
            for name in below:
                parents[name] = tuple(dict.fromkeys((*parents.get(name, ()), *above)))
    return parents


_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def read_span(text: str, option: str) -> Any:
    """A span of time, such as 30d; a number alone is in the unit of the times."""
    import numpy as np

    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zµ]*)\s*", text.lower())
    number = float(found[1]) if found else 0.0
    if found is None or number <= 0 or (found[2] and found[2] not in _SECONDS):
        hint = (
            "\n    A month is of no one length; say 30d, or 5min for minutes." if found and found[2][:1] == "m" else ""
        )
        raise UsageError(
            f"--{option} is {text!r}; expected a number above 0 with {', '.join(_SECONDS)} behind it, such as 30d, or "
            f"a number alone.{hint}"
        )
    return np.timedelta64(round(number * _SECONDS[found[2]] * 1e9), "ns") if found[2] else number


def make(model: str, settings: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Any:
    """A model that is not fitted yet; settings that it does not have are refused.

    Parameters
    ----------
    model : str
    settings : mapping
        None where nothing was said.
    given : mapping, optional
        What the command says by itself.
    """
    import tallybayes as tb

    kind = getattr(tb, MODELS[model])
    known = inspect.signature(kind).parameters
    said = {name: value for name, value in settings.items() if value is not None and value != {}}
    for name in said:
        if name not in known:
            others = [
                word for word, other in MODELS.items() if name in inspect.signature(getattr(tb, other)).parameters
            ]
            raise UsageError(
                f"--{name.replace('_', '-')} is no option of --model {model}; expected --model {', '.join(others)}."
            )
    return kind(**{**(given or {}), **said})
