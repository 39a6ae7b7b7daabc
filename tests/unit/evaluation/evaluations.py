"""What the tests of evaluations share: classes with probabilities, and an evaluation as numbers."""

import numpy as np


def draw(n_classes, n=300, seed=0, *, digits=2):
    """Classes and log-probabilities with ties, none exactly 0."""
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.full(n_classes, 0.7), n).round(digits), 1e-3)
    p /= p.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(n_classes, p=0.6 * row + 0.4 / n_classes) for row in p])
    return codes, np.log(p)


def numbers(evaluation):
    frame = evaluation.to_frame()
    return frame.loc[frame["measure"] != "support", ["value", "low", "high"]].to_numpy(dtype=float)
