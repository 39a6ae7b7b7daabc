"""The small data sets of the courses, and how close a number must be."""

import numpy as np

import tallybayes as tb

# Ten e-mails: which of four words they have.
WORDS = ["card", "winner", "winter", "you"]
SPAM, HAM = ["1101", "1101", "0101", "1001"], ["0011", "1000", "0010", "0001", "0111", "0000"]
CLASS = ["spam"] * 4 + ["ham"] * 6

# Five texts: how often they have each of six words.
VOCABULARY = ["click", "me", "money", "read", "to", "win"]
SPAM_TEXTS, HAM_TEXTS = ["win money win", "click to win money"], ["click to read", "read to me", "to win read"]

# Six days, and six rows of labels.
DAYS = {
    "sky": ["sun", "sun", "rain", "rain", "sun", "rain"],
    "wind": ["calm", "storm", "calm", "storm", "calm", "storm"],
    "picnic": ["yes", "yes", "yes", "no", "no", "no"],
}
LABELS, AB = {"x1": [1, 1, 2, 3, 2, 3], "x2": [1, 2, 2, 2, 1, 1]}, list("AAAABB")

# One measurement of two classes that share a variance.
SHARED, SHARED_CLASS = [[-1], [1], [1], [3], [1], [3]], [0, 0, 1, 1, 1, 1]

# Three clouds whose moments are exact.
R = np.sqrt(2)
BLUE = [(2 * R, R), (-2 * R, -R), (0, R), (0, -R)]
GREEN = [(6 + R, 1), (6 - R, 1), (6, 1 + 2 * R), (6, 1 - 2 * R)]
RED = [(2 + R, 6), (2 - R, 6), (2, 6 + R), (2, 6 - R)]
X, Y = np.array(BLUE + GREEN + RED), np.repeat(["blue", "green", "red"], 4)


def near(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)


def digits(found, expected):
    """Equal to the six digits that are printed."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=5.1e-7)


def columns(*mails):
    return {word: [int(mail[k]) for mail in mails] for k, word in enumerate(WORDS)}


def mails(**options):
    return tb.NaiveBayes(tb.Bernoulli(), **options).fit(columns(*SPAM, *HAM), CLASS)


def spam(model, mail):
    """p(spam | a mail)."""
    return model.predict_proba(columns(mail))[0, 1]


def counts(*texts):
    return {word: [text.lower().split().count(word) for text in texts] for word in VOCABULARY}


def texts(spam=SPAM_TEXTS, family=None, **options):
    rows = counts(*spam, *HAM_TEXTS)
    return tb.NaiveBayes(family or tb.Multinomial(), **options).fit(rows, ["spam"] * 2 + ["ham"] * 3)


def clouds(covariance="full", **options):
    return tb.GaussianDiscriminant(covariance, **{"estimate": "mle"} | options).fit(X, Y)
