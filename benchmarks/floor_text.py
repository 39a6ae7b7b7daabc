"""Floors of text: raw strings into counts and scores, against scikit-learn's vectorizer and naive Bayes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from floor_cases import case
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from text import mails

import tallybayes as tb


@cache
def some() -> tuple[list[str], Any, np.ndarray]:
    texts, y = mails(3_000)
    return texts, pa.array(texts), y


def peer() -> Any:
    return make_pipeline(CountVectorizer(), MultinomialNB())


@case("text: fit of 3,000 strings")
def _() -> Any:
    texts, arrow, y = some()
    return lambda: tb.NaiveBayes(tb.Text()).fit(arrow, y), lambda: peer().fit(texts, y)


@case("text: fit of 3,000 strings, hashed")
def _() -> Any:
    texts, arrow, y = some()
    return lambda: tb.NaiveBayes(tb.Text(hash_bits=18)).fit(arrow, y), lambda: peer().fit(texts, y)


@case("text: predict of 3,000 strings")
def _() -> Any:
    texts, arrow, y = some()
    ours, theirs = tb.NaiveBayes(tb.Text()).fit(arrow, y), peer().fit(texts, y)
    return lambda: ours.predict(arrow), lambda: theirs.predict(texts)


@case("text: one string, 100 times")
def _() -> Any:
    texts, arrow, y = some()
    ours, theirs, one = tb.NaiveBayes(tb.Text()).fit(arrow, y), peer().fit(texts, y), texts[:1]
    return lambda: [ours.predict(one) for _ in range(100)], lambda: [theirs.predict(one) for _ in range(100)]
