"""Warnings about categorical columns in which nearly all values are different: text and identifiers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import printable
from tallybayes.families.categorical import Categorical
from tallybayes.models.inputs.uninformative_columns import DISTINCT_LABELS, has_distinct_values
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.warnings import DataSourceWarning, warn

_TEXT_WORDS = 3.0  # mean number of words of text; identifiers have fewer
_MOST_READ = 200  # levels whose words are counted
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_NAMES = 5  # column names in a message


def distinct_columns(tally: Tally) -> dict[Name, Domain]:
    """Return the categorical columns in which nearly all values are different, with their levels.

    The levels do not occur in other rows, so that they do not discriminate the classes there.
    """
    found: dict[Name, Domain] = {}
    for factor, statistic in zip(tally.factors, tally.statistics, strict=True):
        if not factor.given or not factor.level_columns or not isinstance(statistic, Counts):
            continue
        weights = statistic.weight.reshape(-1, statistic.n_columns).sum(axis=0)
        for name, size, weight in zip(factor.columns, statistic.segments.sizes, weights, strict=True):
            if has_distinct_values(int(size), float(weight)) and factor.family == Categorical():
                found[name] = tally.domain(name)
    return found


def warn_distinct_values(found: Mapping[Name, Domain]) -> None:
    """Warn of `distinct_columns` that are categorical by ``"auto"``."""
    if found:
        families = {name: "tb.Text()" if _is_text(domain) else "'ignore'" for name, domain in found.items()}
        have_dates = any(_DATE.match(str(domain.levels[0])) for domain in found.values())
        warn(
            f"{_listed(found)}: categorical by 'auto', but nearly all values are different. New rows have new values, "
            "which are unseen levels.\n"
            f"    Pass columns={_mapping(families)}: Text counts words, 'ignore' drops a column."
            + "\n    Dates are read as such after pd.to_datetime."
            * have_dates,
            DataSourceWarning,
        )


def text_columns(table: Table, target: Name) -> list[Name]:
    """Return the columns of strings of several words of which nearly all are different."""
    found = []
    for name in table.columns:
        if name != target and table.kind(name) == "label" and not table.is_block(name) and not table.unread(name):
            codes, domain = table.encoded(name)
            if has_distinct_values(len(domain.levels), float((codes >= 0).sum())) and _is_text(domain):
                found.append(name)
    return found


def warn_without_values(names: Collection[Name]) -> None:
    """Warn of columns whose cells are missing in all training rows."""
    warn(
        f"{_listed(names)}: missing in all training rows, so the parameters come from the prior alone.\n"
        "    Drop such columns, or check how the data were read.",
        DataSourceWarning,
    )


def warn_dropped_text(table: Table, dropped: Mapping[Name, str]) -> None:
    """Warn of columns of text that are dropped as identifiers, since nearly all values are different."""
    distinct = [name for name, reason in dropped.items() if reason == DISTINCT_LABELS]
    texts = [name for name in distinct if _is_text(table.encoded(name)[1])]
    if texts:
        warn(
            f"{_listed(texts)}: dropped, because nearly all values are different, as in an identifier.\n"
            f"    Pass columns={_mapping(dict.fromkeys(texts, 'tb.Text()'))} to NaiveBayes if it is text.",
            DataSourceWarning,
        )


def _is_text(domain: Domain) -> bool:
    """Return whether the levels of a column are strings of several words."""
    levels = domain.levels[:_MOST_READ]
    are_strings = all(isinstance(level, str) for level in levels)
    return are_strings and float(np.mean([len(level.split()) for level in levels])) >= _TEXT_WORDS


def _listed(names: Collection[Name]) -> str:
    """Return the names of columns as text."""
    shown = ", ".join(map(printable, list(names)[:_MOST_NAMES]))
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"column{'s' if len(names) > 1 else ''} {shown}{more}"


def _mapping(families: Mapping[Name, str]) -> str:
    """Return the parameter ``columns`` with some families; all other columns are "auto"."""
    named = [f"{name!r}: {family}" for name, family in families.items()]
    return "{" + ", ".join([*named[:_MOST_NAMES], "...: 'auto'"]) + "}"
