"""Parts of speech in English sentences, UD English EWT: ``python docs/experiments/tagging.py``.

Trained on the training sentences, tried on the test sentences: which share of the words gets its universal part of
speech. Then the same with labels for some of the sentences, alone and with the others.
"""

from __future__ import annotations

import gzip
import time
import warnings
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from real_data import DATA
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb

Sentences = tuple[list[list[str]], list[list[str]]]


def english(part: str) -> Sentences:
    """The sentences of a part as lists of words, and the tags of their words."""
    words: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    with gzip.open(DATA / "tagging" / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split("\t")
            if not line.strip():
                words.append([])
                tags.append([])
            elif fields[0].isdigit():  # neither comments, nor contractions, nor words that were left out
                words[-1].append(fields[1])
                tags[-1].append(fields[3])
    return [part for part in words if part], [part for part in tags if part]


def most_frequent(train: Sentences, test: Sentences) -> tuple[np.ndarray, np.ndarray]:
    """Every word's most frequent tag, and that of words seen once for the unseen: which words are right, and unseen."""
    tags_of: dict[str, Counter[str]] = defaultdict(Counter)
    for words, tags in zip(*train, strict=True):
        for word, tag in zip(words, tags, strict=True):
            tags_of[word][tag] += 1
    rare = Counter(tag for counts in tags_of.values() if counts.total() == 1 for tag in counts)
    best = {word: counts.most_common(1)[0][0] for word, counts in tags_of.items()}
    words = [word for part in test[0] for word in part]
    tags = [tag for part in test[1] for tag in part]
    guess = rare.most_common(1)[0][0]
    right = np.array([best.get(word, guess) == tag for word, tag in zip(words, tags, strict=True)])
    return right, np.array([word not in best for word in words])


def right_words(model: tb.HiddenMarkovModel, test: Sentences, by: str = "path") -> np.ndarray:
    """Which words get their tag, from the best path or from the best tag of every word."""
    truth = np.concatenate([np.array(part) for part in test[1]])
    if by == "path":
        return np.concatenate(model.predict(test[0])) == truth
    return model.states_[np.concatenate(model.predict_proba(test[0])).argmax(axis=1)] == truth


def supervised(train: Sentences, test: Sentences) -> None:
    """Print how many words are right under several priors, and how long it takes."""
    right, unseen = most_frequent(train, test)
    print(f"{len(right):,} words, {unseen.mean():.1%} of them unseen; right: all, seen, unseen")

    def line(name: str, right: np.ndarray) -> None:
        shares = (right.mean(), right[~unseen].mean(), right[unseen].mean())
        print(f"{name:<46}" + "".join(f"{share:8.4f}" for share in shares), flush=True)

    line("every word's most frequent tag", right)
    start = time.perf_counter()
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(*train)
    model.score_samples(test[0][:1])
    trained = time.perf_counter()
    model.predict(test[0])
    tagged = time.perf_counter()
    for name, settings in (
        ("add-one", {"prior": 1}),
        ("Dirichlet(0.01)", {"prior": {"emission": tb.Dirichlet(0.01)}}),
        ("the default", {}),
        ("maximum likelihood", {"estimate": "mle"}),
    ):
        for how in ("missing", "new", "smooth"):
            line(f"{name}, unseen={how!r}", right_words(model.reestimate(unseen=how, **settings), test))
    best = model.reestimate(unseen="smooth", prior={"emission": tb.Dirichlet(0.01)})
    line("Dirichlet(0.01), smooth, every word's best tag", right_words(best, test, by="step"))
    print(f"training {trained - start:.2f} s, tagging {tagged - trained:.2f} s")


def partly_labeled(train: Sentences, test: Sentences, n_labeled: int) -> None:
    """Print what labels for some sentences give, alone and with all others after some steps of EM."""
    words, tags = train
    settings: dict[str, Any] = {"prior": {"emission": tb.Dirichlet(1.01)}, "estimate": "map", "unseen": "smooth"}
    alone = tb.HiddenMarkovModel(columns=tb.Categorical(), **settings).fit(words[:n_labeled], tags[:n_labeled])
    found = [right_words(alone, test).mean()]
    some = [*tags[:n_labeled], *([None] * len(part) for part in words[n_labeled:])]
    for max_iter, weight in ((1, 1.0), (5, 1.0), (30, 1.0), (30, 0.01)):
        weights = np.where(np.arange(len(words)) < n_labeled, 1.0, weight)
        model = tb.HiddenMarkovModel(columns=tb.Categorical(), max_iter=max_iter, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(words, some, sample_weight=weights)
        found.append(right_words(model, test).mean())
    print(f"{n_labeled:>6}" + "".join(f"{share:9.4f}" for share in found), flush=True)


def main() -> None:
    """Print both tables."""
    if not (DATA / "tagging").is_dir():
        print(f"no data at {DATA / 'tagging'}: nothing to measure.")
        return
    train, test = english("train"), english("test")
    print(f"{len(train[0]):,} training sentences, {sum(map(len, train[0])):,} words")
    supervised(train, test)
    print(
        "labeled sentences: alone, and with all others after 1, 5, 30 steps of EM, and 30 at a hundredth of the weight"
    )
    for n_labeled in (100, 500, 2000):
        partly_labeled(train, test, n_labeled)


if __name__ == "__main__":
    main()
