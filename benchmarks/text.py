"""Text from raw strings: fit, predict and one short text beside scikit-learn; and how good it is on 20 Newsgroups.

Run it with ``python benchmarks/text.py [scale]``; a scale below 1 takes that share of the texts. The posts are read
from ``../shared/data``; without them the last table is left out, and it is said.
"""

from __future__ import annotations

import sys
import tarfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from harness import peak_memory, race, table
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import tallybayes as tb
from tallybayes import kernels

POSTS = Path(__file__).parents[2] / "shared" / "data" / "20newsgroups" / "20news-bydate.tar.xz"
PEER = "CountVectorizer + MultinomialNB"
N_WORDS = 100_000


def word(number: int) -> str:
    """A word that can be spoken, another for every number."""
    found, number = "", number + 37
    while number:
        found += "bcdfghjklmnpqrstvwxz"[number % 20] + "aeiou"[number // 20 % 5]
        number //= 100
    return found


def mails(n: int) -> tuple[list[str], np.ndarray]:
    """Texts of some 150 words, as frequent as words are (Zipf), of two classes that differ in the rarer ones."""
    rng = np.random.default_rng(0)
    words = np.array([word(k) if k % 11 else word(k).capitalize() for k in range(N_WORDS)], dtype=object)
    y = rng.integers(0, 2, n)
    shares = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    lengths = np.maximum(20, rng.normal(150, 40, n).astype(int))
    places = np.minimum(np.searchsorted(shares / shares[-1], rng.random(lengths.sum())), N_WORDS - 1)
    moved = (places > 500) & (np.repeat(y, lengths) == 1)
    places = np.where(moved, np.minimum(places + 300, N_WORDS - 1), places)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    texts = [" ".join(words[places[a:b]].tolist()) + "." for a, b in pairwise(ends)]
    return texts, y


def speed(scale: float) -> None:
    texts, y = mails(int(100_000 * scale))
    arrow = pa.array(texts)
    n_bytes = arrow.nbytes
    peer, hashed_peer = (
        make_pipeline(first, MultinomialNB())
        for first in (CountVectorizer(), HashingVectorizer(alternate_sign=False, norm=None))
    )
    exact, hashed = tb.NaiveBayes(tb.Text()), tb.NaiveBayes(tb.Text(hash_bits=18))
    data = np.frombuffer(arrow.buffers()[2], np.uint8)
    read = {"read the bytes": lambda: kernels.read_bytes(data)}
    fits = {
        PEER: lambda: peer.fit(texts, y),
        "HashingVectorizer + MultinomialNB": lambda: hashed_peer.fit(texts, y),
        "Text(), a list": lambda: exact.fit(texts, y),
        "Text(), Arrow": lambda: exact.fit(arrow, y),
        "Text(hash_bits=18), a list": lambda: hashed.fit(texts, y),
        "Text(hash_bits=18), Arrow": lambda: hashed.fit(arrow, y),
        "Text(binary=True), Arrow": lambda: tb.NaiveBayes(tb.Text(binary=True)).fit(arrow, y),
        "Text(ngram_range=(1, 2)), Arrow": lambda: tb.NaiveBayes(tb.Text(ngram_range=(1, 2))).fit(arrow, y),
    }
    print(table(f"fit of {len(texts):,} texts, {n_bytes / 1e6:.0f} MB", race(fits | read, 5), PEER, "read the bytes"))
    print(f"peak memory above the texts: {peak_memory(lambda: exact.fit(arrow, y)) / 1e6:.0f} MB exact, ", end="")
    print(f"{peak_memory(lambda: hashed.fit(arrow, y)) / 1e6:.0f} MB hashed\n")
    exact.predict(texts[:1])
    hashed.predict(texts[:1])
    predicts = {
        PEER: lambda: peer.predict(texts),
        "Text(), a list": lambda: exact.predict(texts),
        "Text(), Arrow": lambda: exact.predict(arrow),
        "Text(hash_bits=18), Arrow": lambda: hashed.predict(arrow),
    }
    print(table("predict of the same", race(predicts | read, 5), PEER, "read the bytes"))
    one = texts[:1]

    def often(model: Any) -> None:
        for _ in range(200):
            model.predict(one)

    print(table("200 × one text", race({PEER: partial(often, peer), "Text()": partial(often, exact)}, 9), PEER))


def posts(part: str) -> tuple[list[str], np.ndarray]:
    texts, groups = [], []
    with tarfile.open(POSTS) as archive:
        for member in archive:
            if member.isfile() and f"bydate-{part}" in member.name:
                found = archive.extractfile(member)
                assert found is not None
                texts.append(found.read().decode("latin-1"))
                groups.append(member.name.split("/")[-2])
    return texts, np.array(groups)


def quality() -> None:
    if not POSTS.is_file():
        print(f"no posts at {POSTS}: 20 Newsgroups is left out.")
        return
    (texts, groups), (others, truth) = posts("train"), posts("test")
    ours = {
        "Text()": tb.Text(token_rule="sklearn"),
        "Text(binary=True)": tb.Text(token_rule="sklearn", binary=True),
        "Text(binary=True, min_count=3)": tb.Text(token_rule="sklearn", binary=True, min_count=3),
        "Text(Bernoulli())": tb.Text(tb.Bernoulli(), token_rule="sklearn"),
        "Text(DirichletMultinomial())": tb.Text(tb.DirichletMultinomial(), token_rule="sklearn"),
    }
    print("### 20 Newsgroups by date, the same tokens\n")
    print("| model | accuracy on the test posts | log loss | ten folds of the training posts |\n|---|---:|---:|---:|")
    vectorizer = CountVectorizer()
    counts, asked = vectorizer.fit_transform(texts), vectorizer.transform(others)
    for peer in (MultinomialNB(), BernoulliNB(), ComplementNB()):
        found = peer.fit(counts, groups).predict_log_proba(asked)
        print(f"| {type(peer).__name__} | {_told(found, peer.classes_, truth)} | |", flush=True)
    linear = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, groups)
    print(
        f"| LogisticRegression on TF-IDF | {_told(linear.predict_log_proba(others), linear.classes_, truth)} | |",
        flush=True,
    )
    for name, family in ours.items():
        model = tb.NaiveBayes(family)
        folds = tb.cross_validate(model, texts, groups).accuracy.value
        found = model.fit(texts, groups).predict_log_proba(others)
        print(f"| `{name}` | {_told(found, model.classes_, truth)} | {folds:.4f} |", flush=True)
    tempered = tb.NaiveBayes(ours["Text(binary=True, min_count=3)"], calibration="temperature").fit(texts, groups)
    found = tempered.predict_log_proba(others)
    print(f"| the third, calibration='temperature' | {_told(found, tempered.classes_, truth)} | |")
    pool = tb.AutoClassifier().fit(texts, groups)
    print(f"| `AutoClassifier()` | {_told(pool.predict_log_proba(others), pool.classes_, truth)} | |\n")


def _told(found: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> str:
    right = np.searchsorted(classes, truth)
    loss = -found[np.arange(len(truth)), right].mean()
    return f"{(found.argmax(axis=1) == right).mean():.4f} | {loss:.3f}"


if __name__ == "__main__":
    start = time.perf_counter()
    speed(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
    quality()
    print(f"{time.perf_counter() - start:.0f} s; kernels: {kernels.implementation()}")
