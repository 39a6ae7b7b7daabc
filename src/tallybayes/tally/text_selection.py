"""Selection of the words of text columns: which words a model uses, and as which family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tallybayes.statistics.totals import Totals

Selected = Mapping[Name, np.ndarray | None]


def select_words(tally: Tally) -> dict[Name, np.ndarray | None]:
    """Return the indices of the words that the model uses, by text column; None for all words."""
    return {
        factor.columns[0]: _selected(tally, factor, statistic)
        for factor, statistic in zip(tally.factors, tally.statistics, strict=True)
        if factor.family.cell_type == "text"
    }


def all_words(tally: Tally) -> dict[Name, None]:
    """Return a selection of all words, by text column."""
    return {factor.columns[0]: None for factor in tally.factors if factor.family.cell_type == "text"}


def with_selected_words(tally: Tally, selected: Selected) -> Tally:
    """Return the tally with text columns as blocks of the counts of selected words."""
    if not selected:
        return tally
    factors = []
    statistics = []
    domains = dict(tally.domains)
    for factor, statistic in zip(tally.factors, tally.statistics, strict=True):
        words = selected[factor.columns[0]] if factor.family.cell_type == "text" else None
        if words is not None:
            statistic = statistic.columns(words)
            for name in factor.word_columns:
                domain: Any = domains[tally.schema.domain(name)]
                domains[tally.schema.domain(name)] = Vocabulary(domain.levels.take(words), domain.name)
        factors.append(as_word_factor(factor))
        statistics.append(statistic)
    return Tally(factors, statistics, domains, tally.schema, soft=tally.soft)


def as_word_factor(factor: Factor) -> Factor:
    """Return a text factor as a factor of word counts; other factors unchanged."""
    return factor if factor.family.word_family is None else factor.replace(family=factor.family.word_family)


def _selected(tally: Tally, factor: Factor, statistic: Statistics) -> np.ndarray | None:
    """Return the indices of the most frequent words, or None for all words.

    Ties are broken alphabetically, so that the selection does not depend on the order of the rows.
    """
    family: Any = factor.family
    total = cast("Totals", statistic.pool_groups()).total
    most = family.max_features
    mask = total >= family.min_count if family.min_count > 1 else np.ones(len(total), dtype=bool)
    domain = tally.domains[tally.schema.domain(factor.columns[0])] if family.has_vocabulary else None
    if family.stop_words and domain is not None:
        positions = domain.positions_of(family.stop_words)
        mask[positions[positions >= 0]] = False
    if most is not None and mask.sum() > most:
        candidates = np.flatnonzero(mask)
        threshold = np.partition(total[candidates], len(candidates) - most)[len(candidates) - most]
        mask = mask & (total > threshold)
        ties = candidates[total[candidates] == threshold]
        words: Any = ties.tolist() if domain is None else domain.levels
        names = words if domain is None else list(words.take(ties))
        order = sorted(range(len(ties)), key=names.__getitem__)
        mask[ties[order[: most - int(mask.sum())]]] = True
    return None if mask.all() else np.flatnonzero(mask)
