"""What the tests of hidden Markov models share: a diary, and every path multiplied out."""

import itertools

import numpy as np

import tallybayes as tb

DIARY = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
WEATHER = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]


def ice_cream(estimate="mle", **options):
    return tb.HiddenMarkovModel(columns=tb.Categorical(), estimate=estimate, **options).fit(DIARY, WEATHER)


def emissions(model):
    return np.stack(list(model.emission_[0].values()), axis=-1)


def enumerated(model, steps, ended=True):
    """log p of every path, and that it ends there, by multiplying out; steps as codes of levels, −1 for missing."""
    with np.errstate(divide="ignore"):
        start, moves = np.log(model.start_), np.log(model.transition_)
    end = None if model.end_ is None else np.log(model.end_)
    if end is not None:
        moves = moves + np.log1p(-model.end_)[:, None]
    emits = np.log(emissions(model))
    out = {}
    for path in itertools.product(range(len(start)), repeat=len(steps)):
        value = start[path[0]]
        for t, (state, code) in enumerate(zip(path, steps, strict=True)):
            value += moves[path[t - 1], state] if t else 0.0
            value += emits[state, code] if code >= 0 else 0.0
        out[path] = value + (end[path[-1]] if ended and end is not None else 0.0)
    return out
