"""Folds that part threads and folds that keep them whole, on 20 Newsgroups: ``python docs/experiments/threads.py``.

Posts answer each other and quote each other. Held out at random, a post meets its own thread among the rows that were
learned from. The last line is what counts: posts of later days, by a model of all earlier ones.
"""

from __future__ import annotations

import re
import time

import numpy as np
from calibrating import newsgroups
from real_data import DATA
from sklearn.feature_extraction.text import CountVectorizer

import tallybayes as tb


def header(text: str, name: str) -> str:
    """One line of a post's header, in lower case; empty if there is none."""
    found = re.search(rf"^{name}:(.*)$", text, flags=re.MULTILINE | re.IGNORECASE)
    return found.group(1).strip().lower() if found else ""


def subject(text: str) -> str:
    """What a thread is about: the subject without its leading ``Re:``."""
    return re.sub(r"^(re|fwd?)\s*(\[\d+\]|\^\d+)?\s*:\s*", "", header(text, "Subject")).strip()


def main() -> None:
    """Print the accuracy and log loss that each way to hold out promises, and those of the later posts."""
    if not (DATA / "20newsgroups").is_dir():
        print(f"no data at {DATA / '20newsgroups'}: nothing to measure.")
        return
    texts, labels = newsgroups("train")
    counter = CountVectorizer().fit(texts)
    words, model = counter.transform(texts), tb.NaiveBayes(tb.Multinomial())
    threads, authors = (np.array([read(text) for text in texts]) for read in (subject, lambda t: header(t, "From")))
    print(f"{len(texts)} posts, {len(np.unique(threads))} subjects, {len(np.unique(authors))} authors")
    print(f"{'held out':<28}{'accuracy':>28}{'log loss':>24}{'seconds':>9}")
    ways = {
        "10 folds at random": lambda: tb.cross_validate(model, words, labels),
        "leave one out": lambda: tb.leave_one_out(model, words, labels),
        "10 folds, groups=subject": lambda: tb.cross_validate(model, words, labels, groups=threads),
        "10 folds, groups=author": lambda: tb.cross_validate(model, words, labels, groups=authors),
        "posts of later days": later(model, words, labels, counter),
    }
    for name, way in ways.items():
        start = time.perf_counter()
        found = way()
        seconds = time.perf_counter() - start
        print(f"{name:<28}{found.accuracy!r:>28}{found.log_loss!r:>24}{seconds:>9.2f}")


def later(model, words, labels, counter):
    """The evaluation on the test posts, which were written after all of the others."""
    texts, answers = newsgroups("test")
    rows = counter.transform(texts)
    return lambda: tb.evaluate(model.fit(words, labels), rows, answers)


if __name__ == "__main__":
    main()
