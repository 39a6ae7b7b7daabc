"""Calibration on rows left out, tested on others: ``python docs/experiments/calibrating.py``.

Adult as it is, SMS messages and 20 Newsgroups as counts of words. The test rows take no part in the calibration.
"""

from __future__ import annotations

import tarfile
import time

import numpy as np
from adult import adult
from real_data import DATA
from sklearn.feature_extraction.text import CountVectorizer

import tallybayes as tb


def sms() -> tuple[list[str], np.ndarray]:
    """The messages and whether they are spam."""
    lines = (DATA / "sms-spam" / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t", 1) for line in lines if line.strip()]
    return [text for _, text in pairs], np.array([label for label, _ in pairs])


def newsgroups(part: str) -> tuple[list[str], np.ndarray]:
    """The posts of ``"train"`` or ``"test"`` and their groups."""
    texts, groups = [], []
    with tarfile.open(DATA / "20newsgroups" / "20news-bydate.tar.xz") as archive:
        for member in archive:
            if member.isfile() and f"bydate-{part}/" in member.name:
                texts.append(archive.extractfile(member).read().decode("latin-1"))
                groups.append(member.name.split("/")[-2])
    return texts, np.array(groups)


def tables():
    """Name, family, rows to learn from and rows to test on."""
    yield "adult", "auto", *adult("adult.data.gz"), *adult("adult.test.gz")
    texts, labels = sms()
    order = np.random.default_rng(0).permutation(len(texts))
    words = CountVectorizer().fit([texts[i] for i in order[: len(texts) // 2]]).transform(texts)[order]
    half = len(texts) // 2
    yield "SMS", tb.Multinomial(), words[:half], labels[order][:half], words[half:], labels[order][half:]
    texts, groups = newsgroups("train")
    counter = CountVectorizer().fit(texts)
    test, answers = newsgroups("test")
    yield "20 Newsgroups", tb.Multinomial(), counter.transform(texts), groups, counter.transform(test), answers


def main() -> None:
    """Print log loss, calibration error and accuracy on the test rows, before and after."""
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing to measure.")
        return
    head = f"{'table':<14}{'method':<13}{'T':>6}{'log loss':>10}{'cal. error':>12}{'accuracy':>10}{'worst 1 %':>11}"
    print(head + f"{'mean top':>10}{'seconds':>9}")
    for name, columns, X, y, test, answers in tables():
        model = tb.NaiveBayes(columns, prior=1).fit(X, y)
        for method in (None, "temperature", "isotonic"):
            start = time.perf_counter()
            if method is not None:
                model.calibrate(X, y, method)
            seconds = time.perf_counter() - start
            found = tb.evaluate(model, test, answers)
            T = model.calibration_.temperature if method == "temperature" else 1.0
            numbers = found.log_loss.value, found.calibration_error.value, found.accuracy.value
            losses = np.sort(-found.log_proba[np.arange(len(found.codes)), found.codes])
            worst = (
                losses[-(len(losses) // 100) :].sum() / losses.sum()
            )  # the share of the loss in one row of a hundred
            top = np.exp(found.log_proba.max(axis=1)).mean()
            print(
                f"{name:<14}{method or 'none':<13}{T:>6.2f}{numbers[0]:>10.4f}{numbers[1]:>12.4f}{numbers[2]:>10.4f}"
                f"{worst:>11.2f}{top:>10.3f}{seconds:>9.2f}"
            )


if __name__ == "__main__":
    main()
