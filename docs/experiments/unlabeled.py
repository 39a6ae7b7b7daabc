"""Posts with and without a label, 20 Newsgroups: ``python docs/experiments/unlabeled.py``.

Some posts of every group keep their label; the rest of the training posts are used without. Accuracy on the test
posts, a mean over several choices of the posts with labels.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from calibrating import newsgroups
from real_data import DATA
from sklearn.feature_extraction.text import CountVectorizer

import tallybayes as tb

LABELS = (5, 10, 20, 50, 100, 200, 400)


@functools.cache
def posts() -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training posts as counts of words and their groups, and the same of the test posts."""
    texts, groups = newsgroups("train")
    test, answers = newsgroups("test")
    counter = CountVectorizer(min_df=2).fit(texts)
    return counter.transform(texts), groups, counter.transform(test), answers


def accuracies(n_labels: int, seed: int, weights: tuple[float, ...] = (1.0,), **settings: Any) -> list[float]:
    """Accuracy with `n_labels` posts of every group alone, and with the rest at each of the weights."""
    X, groups, test, answers = posts()
    rng = np.random.default_rng(seed)
    labeled = np.concatenate(
        [rng.permutation(np.flatnonzero(groups == group))[:n_labels] for group in np.unique(groups)]
    )
    y = np.full(len(groups), None, dtype=object)
    y[labeled] = groups[labeled]
    model = tb.NaiveBayes(tb.Multinomial(), **settings)
    found = [model.fit(X[labeled], groups[labeled]).score(test, answers)]
    for weight in weights:
        # A gain of a thousandth of a nat a post moves no answer that matters, and takes half the steps.
        both = tb.NaiveBayes(tb.Multinomial(), unlabeled="em", unlabeled_weight=weight, tol=1e-3, **settings)
        found.append(both.fit(X, y).score(test, answers))
    return found


def print_by_labels(seeds: int = 3) -> None:
    """Accuracy by labels a group, without and with the other posts."""
    print(f"\n{'labels a group':>14}{'labels alone':>14}{'all posts':>12}")
    for n in LABELS:
        alone, all_posts = np.mean([accuracies(n, seed, prior="empirical") for seed in range(seeds)], axis=0)
        print(f"{n:>14}{alone:>14.3f}{all_posts:>12.3f}", flush=True)


def main() -> None:
    """Print what twenty labels a group give, alone and with the other posts, under three priors; then other numbers."""
    if not (DATA / "20newsgroups").is_dir():
        print(f"no data at {DATA / '20newsgroups'}: nothing to measure.")
        return
    X = posts()[0]
    print(f"{X.shape[0]:,} posts, {X.shape[1]:,} words, 20 labels a group, 5 choices of them")
    print(f"{'prior':<18}{'labels alone':>14}{'all posts':>12}{'at weight 0.1':>15}")
    for name, prior in (
        ("Dirichlet(0.01)", tb.Dirichlet(0.01)),
        ("empirical", "empirical"),
        ("add-one", 1),
    ):
        alone, all_posts, lighter = np.mean(
            [accuracies(20, seed, (1.0, 0.1), prior=prior) for seed in range(5)], axis=0
        )
        print(f"{name:<18}{alone:>14.3f}{all_posts:>12.3f}{lighter:>15.3f}", flush=True)
    print_by_labels()


if __name__ == "__main__":
    main()
