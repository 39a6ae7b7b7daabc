"""Every public attribute and every answer of the drop-ins is scikit-learn's, over data sets and parameters."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.discriminant_analysis
import sklearn.mixture
import sklearn.naive_bayes
import sklearn.neighbors
from sklearn.base import clone
from sklearn.covariance import ShrunkCovariance
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import tallybayes.sklearn as ours

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
HOMES = (sklearn.naive_bayes, sklearn.discriminant_analysis, sklearn.neighbors, sklearn.mixture)
THEIRS = {name: getattr(home, name) for name in ours.__all__ for home in HOMES if hasattr(home, name)}
UP_TO_SIGN = {"scalings_", "rotations_", "transform"}
ANSWERS = ["predict", "predict_joint_log_proba", "predict_log_proba", "predict_proba", "decision_function", "transform"]
ANSWERS += ["score_samples"]

WORDS = """the cat sat on the mat|a dog sat on a log|cats and dogs and cats|stocks fell as rates rose|rates fell and
stocks rose|the market rose on rates|a mat for the cat|dogs on the log|bonds and stocks and rates|cat dog cat dog"""


def text():
    counts = CountVectorizer(token_pattern=r"\w+").fit_transform(WORDS.split("|"))
    return counts, np.array(["pets", "pets", "pets", "money", "money", "money", "pets", "pets", "money", "pets"])


def iris():
    return load_iris(return_X_y=True)


def wine():
    X, y = load_wine(return_X_y=True)
    return X, np.array(["barolo", "grignolino", "barbera"], dtype=object)[y]


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:700], y[:700]


def whole(data):
    X, y = data()
    return (X if scipy.sparse.issparse(X) else X.astype(int)), y


def tfidf():
    X, y = text()
    return TfidfTransformer().fit_transform(X), y


SEVENTHS = [1 / 7, 2 / 7, 4 / 7]
NAIVE = [{}, {"alpha": 0.3}, {"alpha": 1e-3, "fit_prior": False}]
COVARIANCES = ["full", "tied", "diag", "spherical"]
CASES = [
    *[("GaussianNB", data, p) for data in (iris, wine, digits) for p in ({}, {"var_smoothing": 1e-2})],
    ("GaussianNB", wine, {"priors": SEVENTHS}),
    *[(name, data, p) for name in ("BernoulliNB", "CategoricalNB") for data in (iris, wine, digits) for p in NAIVE],
    *[(name, data, p) for name in ("MultinomialNB", "ComplementNB") for data in (iris, digits) for p in NAIVE],
    *[
        (name, data, p)
        for name in ("BernoulliNB", "MultinomialNB", "ComplementNB")
        for data in (text, tfidf)
        for p in NAIVE
    ],
    *[(name, iris, {"class_prior": SEVENTHS}) for name in ("BernoulliNB", "CategoricalNB", "MultinomialNB")],
    *[(name, iris, {"alpha": np.array([0.5, 1.0, 2.0, 3.0])}) for name in ("MultinomialNB", "ComplementNB")],
    ("BernoulliNB", digits, {"binarize": 7.5}),
    ("CategoricalNB", iris, {"min_categories": [9, 9, 12, 5]}),
    ("ComplementNB", digits, {"norm": True}),
    *[("LinearDiscriminantAnalysis", data, {"solver": s}) for data in (iris, wine) for s in ("svd", "lsqr", "eigen")],
    ("LinearDiscriminantAnalysis", digits, {"store_covariance": True, "n_components": 3}),
    ("LinearDiscriminantAnalysis", iris, {"priors": SEVENTHS, "n_components": 1}),
    *[
        ("LinearDiscriminantAnalysis", wine, {"solver": s, "shrinkage": amount})
        for s in ("lsqr", "eigen")
        for amount in (0.2, "auto")
    ],
    ("LinearDiscriminantAnalysis", iris, {"solver": "eigen", "covariance_estimator": ShrunkCovariance()}),
    *[("QuadraticDiscriminantAnalysis", data, {"store_covariance": True}) for data in (iris,)],
    ("QuadraticDiscriminantAnalysis", wine, {"reg_param": 0.1, "priors": SEVENTHS, "store_covariance": True}),
    *[("QuadraticDiscriminantAnalysis", iris, {"solver": "eigen", "shrinkage": a}) for a in (None, 0.2, "auto")],
    *[("NearestCentroid", data, {"metric": m}) for data in (iris, wine, text) for m in ("euclidean", "manhattan")],
    *[("NearestCentroid", wine, {"priors": p, "shrink_threshold": 0.4}) for p in ("uniform", "empirical", SEVENTHS)],
    # From single rows as starts, only reg_covar is left of a variance, and scikit-learn's has rounding in it.
    *[
        (
            "GaussianMixture",
            iris,
            {"n_components": 3, "covariance_type": kind, "init_params": start, "random_state": 3, "reg_covar": amount},
        )
        for kind in COVARIANCES
        for start, amount in [("kmeans", 1e-6), ("k-means++", 0.1), ("random", 1e-6), ("random_from_data", 0.1)]
    ],
    ("GaussianMixture", wine, {"n_components": 2, "covariance_type": "diag", "n_init": 3, "random_state": 0}),
    ("GaussianMixture", iris, {"n_components": 1, "reg_covar": 0.1, "random_state": 0}),
    ("GaussianMixture", iris, {"n_components": 2, "max_iter": 0, "random_state": 1}),
    (
        "GaussianMixture",
        iris,
        {
            "n_components": 2,
            "means_init": [[5.0, 3.4, 1.5, 0.2], [6.3, 2.9, 4.9, 1.7]],
            "weights_init": [0.3, 0.7],
            "random_state": 0,
        },
    ),
]


def named(case):
    name, data, parameters = case
    told = "-".join(
        f"{key}={np.asarray(value).tolist() if np.ndim(value) else value}" for key, value in parameters.items()
    )
    return f"{name}-{data.__name__}-{told or 'default'}".replace(" ", "")


def public(estimator):
    return {name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")}


def same(mine, its, what, rtol=1e-8):
    """Equal to rounding; directions may point either way."""
    if isinstance(its, list | tuple):
        assert len(mine) == len(its), what
        for a, b in zip(mine, its, strict=True):
            same(a, b, what, rtol)
        return
    mine, its = np.asarray(mine), np.asarray(its)
    assert mine.shape == its.shape, (what, mine.shape, its.shape)
    assert what != "classes_" or mine.dtype == its.dtype, (mine.dtype, its.dtype)
    if its.dtype.kind not in "fiu":
        assert (mine == its).all(), what
        return
    if what in UP_TO_SIGN and its.ndim == 2:
        mine = mine * np.where((mine * its).sum(axis=0) < 0, -1, 1)
    scale = np.abs(its[np.isfinite(its)]).max(initial=1.0)
    np.testing.assert_allclose(mine, its, rtol=rtol, atol=1e-10 * scale, err_msg=what)


def both(name, parameters):
    of_rows = name == "QuadraticDiscriminantAnalysis" or (
        name == "LinearDiscriminantAnalysis" and parameters.get("solver", "svd") == "svd"
    )
    if of_rows and SKLEARN < (1, 9):
        pytest.skip(f"scikit-learn {sklearn.__version__} divides these covariances by fewer rows")
    if not set(parameters) <= set(inspect.signature(THEIRS[name]).parameters):
        pytest.skip(f"scikit-learn {sklearn.__version__} has no such parameters")
    return getattr(ours, name)(**parameters), clone(THEIRS[name](**parameters))


def compare(mine, its, X):
    for name in public(its):
        a, b = getattr(mine, name), getattr(its, name)
        if name == "scalings_" and getattr(its, "solver", "") == "eigen" and isinstance(b, np.ndarray):
            a, b = (part[:, : len(its.classes_) - 1] for part in (a, b))  # what is left has no order of its own
        same(a, b, name)
    for name in ANSWERS:
        assert hasattr(mine, name) == hasattr(its, name), name
        if hasattr(its, name) and not (name == "transform" and its.solver == "lsqr"):
            same(getattr(mine, name)(X), getattr(its, name)(X), name)


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_attributes_and_answers(case):
    name, data, parameters = case
    X, y = whole(data) if name == "CategoricalNB" else data()
    mine, its = both(name, parameters)
    mine.fit(X, y)
    its.fit(X, y)
    compare(mine, its, X)
    if name == "GaussianMixture":
        same(mine.sample(5), its.sample(5), "sample")
        assert mine.bic(X) == pytest.approx(its.bic(X), rel=1e-9)
        assert mine.aic(X) == pytest.approx(its.aic(X), rel=1e-9)
    else:
        assert mine.score(X, y) == its.score(X, y)


NAIVE_BAYES = ["GaussianNB", "BernoulliNB", "CategoricalNB", "MultinomialNB", "ComplementNB"]


@pytest.mark.parametrize("name", NAIVE_BAYES)
@pytest.mark.parametrize("data", [iris, wine])
def test_weights_of_rows(name, data):
    X, y = whole(data)
    weight = np.random.default_rng(0).random(len(y)) * (y != y[0])  # one class weighs nothing, and stays
    mine, its = both(name, {})
    mine.fit(X, y, sample_weight=weight)
    its.fit(X, y, sample_weight=weight)
    attributes = public(its) - ({"theta_", "var_"} if name == "GaussianNB" else set())
    for attribute in attributes:
        same(getattr(mine, attribute), getattr(its, attribute), attribute)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert (mine.predict(X) == its.predict(X)).all()


@pytest.mark.parametrize("name", NAIVE_BAYES)
def test_batch_by_batch(name):
    X, y = iris() if name == "GaussianNB" else whole(iris)
    order = np.random.default_rng(0).permutation(len(y))
    mine, its = both(name, {})
    for start in range(0, len(y), 40):
        part = order[start : start + 40]
        for one in (mine, its):
            one.partial_fit(X[part], y[part], classes=np.arange(3) if not start else None)
    for attribute in public(its) - {"n_categories_"}:  # theirs is of the last batch alone
        # Theirs has a rest of every batch's epsilon_ in its variances.
        same(getattr(mine, attribute), getattr(its, attribute), attribute, rtol=1e-7 if attribute == "var_" else 1e-10)
    for answer in ("predict", "predict_proba"):
        same(getattr(mine, answer)(X), getattr(its, answer)(X), answer, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in ours.__all__ if name not in ("CategoricalNB", "GaussianMixture")])
def test_frames_keep_their_names(name):
    X, y = wine()
    frame = pd.DataFrame(X, columns=load_wine().feature_names)
    mine, its = both(name, {})
    mine.fit(frame, y)
    its.fit(frame, y)
    compare(mine, its, frame)
    assert mine.model_.tally_.factors[1].columns == tuple(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        mine.predict(frame[frame.columns[::-1]])


@pytest.mark.skipif(SKLEARN < (1, 9), reason="earlier versions widen more of it")
@pytest.mark.parametrize("name", ours.__all__)
def test_floats_of_32_bits_stay_so(name):
    X, y = iris()
    X = X.astype(np.float32)
    mine, its = both(name, {"random_state": 0} if name == "GaussianMixture" else {})
    for one in (mine, its):
        one.fit(X, y)
    for attribute in public(its):
        a, b = getattr(mine, attribute), getattr(its, attribute)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None) or attribute in ("epsilon_", "lower_bound_"), (
            attribute
        )
    for answer in ("predict", "predict_proba"):
        a, b = getattr(mine, answer)(X), getattr(its, answer)(X)
        assert a.dtype == b.dtype, answer
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("name", ours.__all__)
def test_the_constructor_is_theirs(name):
    mine, its = getattr(ours, name), THEIRS[name]
    assert inspect.signature(mine) == inspect.signature(its)
    assert issubclass(mine, its)
    assert repr(mine()) == repr(its())


@pytest.mark.parametrize("name", ["BernoulliNB", "MultinomialNB", "CategoricalNB"])
@pytest.mark.parametrize(
    "parameters", [{}, {"fit_prior": False}, {"class_prior": [2.0, 1.0, 1.0]}], ids=["frequency", "uniform", "given"]
)
def test_no_smoothing(name, parameters):
    X, y = whole(iris)
    mine, its = both(name, {"alpha": 0.0, **parameters})
    with np.errstate(all="ignore"):
        mine.fit(X, y)
        its.fit(X, y)
        for attribute in public(its):
            same(getattr(mine, attribute), getattr(its, attribute), attribute)
        a, b = mine.predict_joint_log_proba(X), its.predict_joint_log_proba(X)
    known = ~np.isnan(b)  # theirs multiplies 0 by infinity
    assert known.any() or name == "BernoulliNB"
    same(a[known], b[known], "joint")
    assert name == "MultinomialNB" or not np.isnan(a).any()


@pytest.mark.skipif(SKLEARN < (1, 9), reason="earlier versions divide covariances by fewer rows")
def test_columns_of_yes_and_no_are_numbers_to_a_covariance():
    X, y = iris()
    X = X.mean(axis=0) < X
    mine, its = both("QuadraticDiscriminantAnalysis", {"reg_param": 0.1})
    same(mine.fit(X, y).decision_function(X), its.fit(X, y).decision_function(X), "decision_function")


def test_whole_numbers_in_a_mixture_are_numbers():
    # scikit-learn 1.9 cuts squared distances of rows of whole numbers down to whole numbers.
    X, _ = whole(iris)
    mine = ours.GaussianMixture(2, random_state=0).fit(X)
    assert (mine.score_samples(X) == mine.score_samples(X.astype(float))).all()
    _, its = both("GaussianMixture", {"n_components": 2, "random_state": 0})
    same(mine.predict_proba(X), its.fit(X).predict_proba(X.astype(float)), "predict_proba")
