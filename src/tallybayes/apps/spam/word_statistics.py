"""What is known of words: how probable each is in either class, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import tallybayes as tb
from tallybayes.apps.spam.spam_score import PSEUDO_COUNT
from tallybayes.apps.spam.store.spam_store import Store


class Theta(NamedTuple):
    """A probability, as the counts have it, and its credible interval."""

    value: float
    low: float
    high: float


class Word(NamedTuple):
    """A word in both classes: log θ(spam) − log θ(ham), the mails that have it, and θ."""

    word: str
    weight: float
    ham: int
    spam: int
    theta_ham: Theta
    theta_spam: Theta


def telling_words(store: Store, names: Sequence[str], most: int, mass: float) -> list[Word]:
    """Some words, or those that tell most of what is ham and what is spam.

    Parameters
    ----------
    store : Store
    names : sequence of str
        Which; none for those that tell most.
    most : int
        How many of these.
    mass : float
        Of the intervals.
    """
    with store.database.reading():
        state = store.state()
        rows = [(word, ham, spam) for _, word, ham, spam in store.words()] if not names else []
    if names:
        rows = [(word, *pair) for word, pair in zip(names, store.look_up(names)[1], strict=True)]
    if not rows or not state.words:
        return []
    counts = np.array([row[1:] for row in rows], float).T + PSEUDO_COUNT
    totals = np.array([[state.ham_words], [state.spam_words]]) + PSEUDO_COUNT * state.words
    weights = np.log(counts[1] / totals[1]) - np.log(counts[0] / totals[0])
    best = np.argsort(-np.abs(weights), kind="stable")[: None if names else most]
    belief: Any = tb.Beta(counts[:, best], totals - counts[:, best])
    means, (low, high) = belief.mean(), belief.interval(mass)
    thetas = np.stack([means, low, high], axis=-1).tolist()
    return [
        Word(word, float(weights[place]), ham, spam, Theta(*thetas[0][k]), Theta(*thetas[1][k]))
        for k, place in enumerate(best.tolist())
        for word, ham, spam in [rows[place]]
    ]
