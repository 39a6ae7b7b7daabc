"""New digits from a few examples: ``python docs/experiments/one_shot.py`` prints the table of nearest-class-mean.md.

Reads MNIST from ``../shared/data/mnist``. Each of five pairs of digits is new once: the metric is made from 1,000
images of each of the other eight, then the two are added from 1, 5 and 20 images each, in five random draws. The test
set has all ten digits. Takes some minutes.
"""

from __future__ import annotations

import warnings

import numpy as np
from real_data import DATA, mnist
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb

PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
EXAMPLES = (1, 5, 20)
N_DRAWS = 5
METRICS = {
    "euclidean": {"metric": "euclidean"},
    "mahalanobis": {"metric": "mahalanobis"},
    "learned, 10 steps": {"metric": "learned", "n_components": 32, "max_iter": 10},
    "learned, 50 steps": {"metric": "learned", "n_components": 32, "max_iter": 50},
}


def one_pair(
    settings: dict, new: tuple[int, int], train: tuple, test: tuple, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Accuracy on the eight digits alone and, after 1, 5 and 20 examples, (on all ten, on the new two)."""
    X, y = train
    X_test, y_test = test
    places = {digit: rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)}
    old = np.concatenate([places[digit][:1000] for digit in range(10) if digit not in new])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        projection = tb.NearestClassMean(**settings).fit(X[old], y[old]).projection_
    # The metric does not change any more, so all rows are projected once; distances there are Euclidean.
    X_test, is_new = X_test @ projection.T, np.isin(y_test, new)
    eight = tb.NearestClassMean("euclidean").fit(X[old] @ projection.T, y[old])
    found = np.zeros((N_DRAWS, len(EXAMPLES), 2))
    for draw in range(N_DRAWS):
        for size, n in enumerate(EXAMPLES):
            model = eight.reestimate()
            for digit in new:
                some = places[digit][draw * max(EXAMPLES) :][:n]
                model.add_class(digit, X[some] @ projection.T)
            right = model.predict(X_test) == y_test
            found[draw, size] = right.mean(), right[is_new].mean()
    return eight.score(X_test[~is_new], y_test[~is_new]), found.mean(axis=0)


def main() -> None:
    """Measure every metric, and print the table."""
    if not (DATA / "mnist").is_dir():
        print(f"no MNIST at {DATA / 'mnist'}: nothing to measure.")
        return
    train, test = [(images / 255.0, digits) for images, digits in (mnist("train"), mnist("t10k"))]
    print("| metric | eight digits | 1 example | 5 examples | 20 examples |\n|---|---|---|---|---|")
    for name, settings in METRICS.items():
        rng = np.random.default_rng(0)
        found = [one_pair(settings, new, train, test, rng) for new in PAIRS]
        eight, few = np.mean([part[0] for part in found]), np.mean([part[1] for part in found], axis=0)
        cells = " | ".join(f"{ten:.1%} ({two:.1%})" for ten, two in few)
        print(f"| {name} | {eight:.1%} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
