"""Word probabilities in each class, with credible intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import tallybayes as tb
from tallybayes.apps.spam.spam_score import PSEUDO_COUNT
from tallybayes.apps.spam.store.spam_store import Store


class Theta(NamedTuple):
    """Posterior mean of a word probability and its credible interval."""

    value: float
    low: float
    high: float


class Word(NamedTuple):
    """Word in both classes: the weight log θ(spam) - log θ(ham), its numbers of messages, and θ."""

    word: str
    weight: float
    ham: int
    spam: int
    theta_ham: Theta
    theta_spam: Theta


def word_probabilities(store: Store, names: Sequence[str], most: int, mass: float) -> list[Word]:
    """Return the given words, or the words with the largest absolute weights.

    Parameters
    ----------
    store : Store
    names : sequence of str
        Words; empty for those with the largest absolute weights.
    most : int
        Maximum number of words if `names` is empty.
    mass : float
        Probability mass of the credible intervals.
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
    order = np.argsort(-np.abs(weights), kind="stable")[: None if names else most]
    posterior: Any = tb.Beta(counts[:, order], totals - counts[:, order])
    low, high = posterior.interval(mass)
    thetas = np.stack([posterior.mean(), low, high], axis=-1).tolist()
    return [
        Word(word, float(weights[index]), ham, spam, Theta(*thetas[0][k]), Theta(*thetas[1][k]))
        for k, index in enumerate(order.tolist())
        for word, ham, spam in [rows[index]]
    ]
