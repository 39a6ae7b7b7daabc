"""Naive Bayes on real data beside scikit-learn's: MNIST, adult, 20 Newsgroups."""

import gzip
import tarfile
from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("mnist", "tables", "20newsgroups")


def mnist(part, n_rows):
    images = gzip.decompress((DATA / "mnist" / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((DATA / "mnist" / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(n_rows, 784)
    return (pixels > 127).astype(np.uint8), np.frombuffer(labels, np.uint8, offset=8)


@pytest.mark.slow
def test_mnist_binarized():
    X, y = mnist("train", 60_000)
    test, answers = mnist("t10k", 10_000)
    model = tb.NaiveBayes(tb.Bernoulli(), prior=1).fit(X, y)
    assert model.classes_.tolist() == list(range(10))
    # a textbook's 84.3 %, and scikit-learn's with α = 1
    assert model.score(test, answers) == pytest.approx(0.8427, abs=0.0005)
    peer = BernoulliNB(alpha=1.0, binarize=None).fit(X[:5000], y[:5000])
    small = tb.NaiveBayes(tb.Bernoulli(), prior=1, class_prior="frequency").fit(X[:5000], y[:5000])
    np.testing.assert_allclose(
        small.predict_joint_log_proba(test[:500]), peer.predict_joint_log_proba(test[:500]), rtol=1e-11
    )


ADULT = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
]


def adult(name):
    frame = pd.read_csv(
        DATA / "tables" / name, names=ADULT, skipinitialspace=True, na_values="?", keep_default_na=False, comment="|"
    )
    return frame.assign(income=frame["income"].str.rstrip("."))


@pytest.mark.slow
def test_adult_mixed_and_missing():
    train, test = adult("adult.data.gz"), adult("adult.test.gz")
    assert (len(train), len(test)) == (32_561, 16_281)
    assert train.isna().to_numpy().any()
    model = tb.NaiveBayes().fit(train, "income")
    accuracy, loss = model.score(test, "income"), log_loss(test["income"], model.predict_proba(test))

    numbers = train.columns[train.dtypes == "int64"].tolist()
    labels = [name for name in ADULT[:-1] if name not in numbers]
    # the strongest combination of scikit-learn's: a Gaussian and a categorical model, their log-probabilities added
    encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()).fit(
        pd.concat([train, test])[labels]
    )
    gaussian = GaussianNB().fit(train[numbers], train["income"])
    categorical = CategoricalNB().fit(encoder.transform(train[labels]), train["income"])
    joint = gaussian.predict_joint_log_proba(test[numbers]) - np.log(gaussian.class_prior_)
    joint += categorical.predict_joint_log_proba(encoder.transform(test[labels]))
    proba = np.exp(joint - joint.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    assert accuracy >= np.mean(gaussian.classes_[joint.argmax(axis=1)] == test["income"]) > 0.8
    assert loss <= log_loss(test["income"], proba)
    # and a single pipeline, with the labels as numbers
    columns = make_column_transformer((encoder, labels), ("passthrough", numbers))
    pipeline = make_pipeline(columns, GaussianNB()).fit(train[ADULT[:-1]], train["income"])
    assert accuracy > pipeline.score(test[ADULT[:-1]], test["income"]) + 0.02
    assert loss < log_loss(test["income"], pipeline.predict_proba(test[ADULT[:-1]])) - 0.2
    assert accuracy == pytest.approx(0.830, abs=0.003)


@pytest.fixture(scope="module")
def posts():
    """The first posts of each of five groups."""
    texts, groups, seen = [], [], {}
    with tarfile.open(DATA / "20newsgroups" / "20news-bydate.tar.xz") as archive:
        for member in archive:
            parts = member.name.split("/")
            if not member.isfile() or "train" not in member.name:
                continue
            group = parts[-2]
            if seen.get(group, 0) >= 60 or (len(seen) >= 5 and group not in seen):
                continue
            seen[group] = seen.get(group, 0) + 1
            texts.append(archive.extractfile(member).read().decode("latin-1"))
            groups.append(group)
    return CountVectorizer().fit_transform(texts), np.array(groups)


def exact_proba(X, y, row):
    """p(class | row) of the multinomial model with α = 1, in forty digits."""
    joint = []
    with localcontext() as context:
        context.prec = 40
        for label in np.unique(y):
            total = np.asarray(X[y == label].sum(axis=0)).ravel()
            n_tokens = int(total.sum()) + len(total)
            words = [int(count) * (Decimal(int(total[j]) + 1) / n_tokens).ln() for j, count in row]
            joint.append((Decimal(int((y == label).sum())) / len(y)).ln() + sum(words))
        best = max(joint)
        shares = [(score - best).exp() for score in joint]
        return [float(share / sum(shares)) for share in shares]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
def test_newsgroups_are_scikit_learn_s_probabilities(posts, form):
    X, y = posts
    assert len(set(y)) == 5
    assert X.shape[1] > 5000
    peer = MultinomialNB(alpha=1.0).fit(X[::2], y[::2])
    fitted = {"csr": X, "csc": X.tocsc(), "dense": X.toarray()}[form]
    settings = {"columns": tb.Multinomial(), "prior": 1, "class_prior": "frequency"}
    model = tb.NaiveBayes(**settings).fit(fitted[::2], y[::2])
    np.testing.assert_allclose(model.to_linear().coef, peer.feature_log_prob_, rtol=1e-13)
    found = model.predict_proba(fitted)
    # scikit-learn subtracts log p(row), whose rounding alone is 1e-12 for long posts; the exact numbers decide
    np.testing.assert_allclose(found, np.exp(peer.predict_log_proba(X)), rtol=0, atol=1e-11)
    doubtful = np.argsort(found.max(axis=1))[:5]
    assert found[doubtful].max() < 0.9
    for i in doubtful:
        row = X[[i]].tocoo()
        expected = exact_proba(X[::2], y[::2], list(zip(row.col, row.data, strict=True)))
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=1e-12)
    assert (model.predict(fitted) == peer.predict(X)).all()
    first, second = (tb.NaiveBayes(**settings).fit(fitted[start::4], y[start::4]) for start in (0, 2))
    np.testing.assert_allclose((first + second).predict_proba(fitted), found, rtol=0, atol=1e-12)
