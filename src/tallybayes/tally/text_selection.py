"""How counts of text are read: which of the words, and in which family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary

Kept = Mapping[Name, np.ndarray | None]


def select_words(tally: Tally) -> dict[Name, np.ndarray | None]:
    """The places of the words that are read, by column of text; None where all are."""
    pairs = zip(tally.factors, tally.statistics, strict=True)
    return {
        factor.columns[0]: _kept(tally, factor, counted)
        for factor, counted in pairs
        if factor.family.cell_type == "text"
    }


def with_selected_words(tally: Tally, kept: Kept) -> Tally:
    """The same counts, those of text in the family of their words, as a block of columns of those that are kept."""
    if not kept:
        return tally
    factors, statistics, domains = [], [], dict(tally.domains)
    for factor, counted in zip(tally.factors, tally.statistics, strict=True):
        if factor.family.cell_type == "text":
            places = kept[factor.columns[0]]
            if places is not None:
                counted = counted.columns(places)
            for name in factor.word_columns if places is not None else ():
                domain: Any = domains[tally.schema.domain(name)]
                domains[tally.schema.domain(name)] = Vocabulary(domain.levels.take(places), domain.name)
        factors.append(in_family_of_words(factor))
        statistics.append(counted)
    return Tally(factors, statistics, domains, tally.schema, soft=tally.soft)


def in_family_of_words(factor: Factor) -> Factor:
    """A factor of text as one of the counts of its words; others as they are."""
    return factor if factor.family.word_family is None else factor.replace(family=factor.family.word_family)


def _kept(tally: Tally, factor: Factor, counted: Any) -> np.ndarray | None:
    """The most frequent words, of equally frequent ones the first in the alphabet: whatever came first counts alike."""
    family: Any = factor.family
    total, most = counted.pool_groups().total, family.max_features
    mask = total >= family.min_count if family.min_count > 1 else np.ones(len(total), dtype=bool)
    words: Any = tally.domains[tally.schema.domain(factor.columns[0])].levels if family.has_vocabulary else None
    if family.stop_words and words is not None:
        found = tally.domains[tally.schema.domain(factor.columns[0])].positions_of(family.stop_words)
        mask[found[found >= 0]] = False
    if most is not None and mask.sum() > most:
        places = np.flatnonzero(mask)
        least = np.partition(total[places], len(places) - most)[len(places) - most]
        mask = mask & (total > least)
        ties = places[total[places] == least]
        names = ties.tolist() if words is None else words.take(ties)
        order = sorted(range(len(ties)), key=list(names).__getitem__)
        mask[ties[order[: most - int(mask.sum())]]] = True
    return None if mask.all() else np.flatnonzero(mask)
