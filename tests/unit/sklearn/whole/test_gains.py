"""What a drop-in has that scikit-learn's estimator has not: it forgets, it adds, it refuses, and there is `model_`."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.naive_bayes
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tallybayes as tb
import tallybayes.sklearn as ours

CLASSIFIERS = [name for name in ours.__all__ if name != "GaussianMixture"]


def rows():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


def public(estimator):
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and name != "model_"}


def same(mine, its):
    assert public(mine).keys() == public(its).keys()
    for name, value in public(its).items():
        several = (getattr(mine, name), value) if isinstance(value, list) else ([getattr(mine, name)], [value])
        for a, b in zip(*several, strict=True):
            assert np.shape(a) == np.shape(b), name
            if name in ("scalings_", "rotations_"):
                a, b = np.abs(a), np.abs(b)  # directions point either way
            if np.asarray(b).dtype.kind in "fiu":
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_is_forgotten_was_never_seen(name):
    X, y = rows()
    kind = getattr(ours, name)
    same(kind().fit(X, y).forget(X[100:], y[100:]), kind().fit(X[:100], y[:100]))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_parts_add_up(name):
    X, y = rows()
    kind = getattr(ours, name)
    total = sum([kind().fit(X[:60], y[:60]), kind().fit(X[60:], y[60:])])
    same(total, kind().fit(X, y))
    assert (total.predict(X) == kind().fit(X, y).predict(X)).all()


@pytest.mark.parametrize("name", ["GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB", "CategoricalNB"])
def test_weighted_rows_are_forgotten(name):
    X, y = rows()
    weight = np.random.default_rng(2).random(len(y))
    kind = getattr(ours, name)
    gone = kind().fit(X, y, weight).forget(X[100:], y[100:], weight[100:])
    left = kind().fit(X[:100], y[:100], weight[:100])
    if name == "GaussianNB":  # the largest variance is of rows that count alike there, of what is left here
        np.testing.assert_allclose(gone.theta_, left.theta_)
        np.testing.assert_allclose(gone.var_ - gone.epsilon_, left.var_ - left.epsilon_)
    else:
        same(gone, left)


def test_rows_that_were_never_learned_are_refused_and_nothing_changes():
    X, y = rows()
    clf = ours.BernoulliNB(binarize=3.0).fit(X[:20], y[:20])
    before = pickle.dumps(public(clf))
    with pytest.raises(tb.StatisticsError, match="cannot forget"):
        clf.forget(X, y)
    assert pickle.dumps(public(clf)) == before


def test_a_fit_that_fails_changes_nothing():
    X, y = rows()
    clf = ours.MultinomialNB(class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    before = clf.feature_log_prob_.copy()
    with pytest.raises(ValueError, match="Number of priors"):
        clf.fit(X[y < 2], y[y < 2])
    assert len(clf.classes_) == 3
    assert (clf.feature_log_prob_ == before).all()


@pytest.mark.parametrize("name", ["GaussianNB", "BernoulliNB", "CategoricalNB"])
def test_a_first_batch_that_fails_is_not_the_first(name):
    X, y = rows()
    clf = getattr(ours, name)()
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        clf.partial_fit(X, y, classes=[0, 1])
    assert clf.partial_fit(X, y, classes=[0, 1, 2]).class_count_.tolist() == [50, 50, 50]
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        clf.partial_fit(X, y + 1)
    assert clf.class_count_.tolist() == [50, 50, 50]


@pytest.mark.parametrize(
    ("clf", "what"),
    [
        (ours.LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), "shrinkage='auto'"),
        (ours.NearestCentroid(metric="manhattan"), "metric='manhattan'"),
    ],
    ids=["shrinkage", "medians"],
)
def test_what_counts_do_not_tell_is_refused(clf, what):
    X, y = rows()
    clf.fit(X, y)
    with pytest.raises(tb.StatisticsError, match=what):
        clf.forget(X[:1], y[:1])
    with pytest.raises(tb.StatisticsError, match=what):
        clf + clf


def test_other_kinds_do_not_add():
    X, y = rows()
    with pytest.raises(TypeError):
        ours.GaussianNB().fit(X, y) + ours.BernoulliNB().fit(X, y)


def test_a_category_that_was_not_there():
    X, y = rows()
    clf = ours.CategoricalNB().fit(X.astype(int), y)
    strange = np.array([[99, 3, 1, 0]])
    with pytest.raises(IndexError, match="out of bounds for column 0"):
        clf.predict(strange)
    assert clf.model_.predict(strange) == [0]


def test_how_many_categories_there_are_is_known_of_all_batches():
    clf = ours.CategoricalNB().partial_fit([[0], [3]], [0, 1], classes=[0, 1]).partial_fit([[1]], [0])
    assert clf.n_categories_.tolist() == [4]
    assert clf.category_count_[0].tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]


def test_an_amount_for_every_column_of_yes_and_no():
    # scikit-learn adds it to the classes, which fails unless there are as many.
    X, y = rows()
    alpha = np.array([0.5, 1.0, 2.0, 3.0])
    clf = ours.BernoulliNB(alpha=alpha, binarize=3.0).fit(X, y)
    for column in range(4):
        one = sklearn.naive_bayes.BernoulliNB(alpha=alpha[column], binarize=3.0).fit(X[:, [column]], y)
        np.testing.assert_allclose(clf.feature_log_prob_[:, [column]], one.feature_log_prob_)


def test_variances_after_batches_hold_one_smoothing():
    # scikit-learn takes the new epsilon_ away where it had added the old one.
    X, y = load_digits(return_X_y=True)
    clf = ours.GaussianNB().partial_fit(X[:900], y[:900], classes=np.arange(10)).partial_fit(X[900:], y[900:])
    whole = ours.GaussianNB().fit(X, y)
    np.testing.assert_allclose(clf.var_ - clf.epsilon_, whole.var_ - whole.epsilon_, rtol=1e-9, atol=1e-20)


def test_a_class_that_no_row_has_shown_is_impossible_whatever_its_prior():
    X, y = rows()
    clf = ours.GaussianNB(priors=[0.2, 0.3, 0.5]).partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert np.isneginf(clf.predict_joint_log_proba(X)[:, 2]).all()
    theirs = sklearn.naive_bayes.GaussianNB(priors=[0.2, 0.3, 0.5])
    theirs.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert (clf.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("name", ours.__all__)
def test_the_model_answers_as_the_drop_in_does(name):
    X, y = rows()
    X = X + 0.25
    settings = {"GaussianNB": {"var_smoothing": 0}, "GaussianMixture": {"reg_covar": 0, "tol": 1e-9, "n_components": 3}}
    clf = getattr(ours, name)(**settings.get(name, {}))
    if name == "GaussianMixture":
        clf.set_params(random_state=0, max_iter=500)
    if name == "CategoricalNB":
        X = X.astype(int)
    clf.fit(X, y)
    told = clf.model_.predict((X > 0) * 1 if name == "BernoulliNB" else X)
    agree = (told == clf.predict(X)).mean()
    assert agree == 1 or (name in ("ComplementNB",) and agree > 0.6)
    assert clf.model_.n_rows_ == pytest.approx(len(X))


def test_columns_are_explained_by_their_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = ours.GaussianNB().fit(X, y)
    assert clf.model_.explain(X[:1]).columns[1:] == list(X.columns)
    assert np.isfinite(clf.model_.log_evidence())
    missing = X[:2].copy()
    missing.iloc[0, 0] = np.nan
    assert clf.model_.predict(missing).tolist() == [0, 0]


def test_sparse_words_and_strings_as_classes():
    counts = scipy.sparse.csr_array(np.array([[2, 0, 1], [0, 3, 0], [1, 0, 0], [0, 1, 1]]))
    y = pd.Series(["spam", "ham", "spam", "ham"], dtype="string")
    for kind in (ours.MultinomialNB, ours.ComplementNB, ours.BernoulliNB):
        clf = kind().fit(counts, y)
        assert clf.predict(counts).tolist() == y.tolist()
        assert clf.forget(counts[[3]], y[3:]).class_count_.tolist() == [1, 2]


def test_in_pipelines_and_searches():
    X, y = rows()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ours.GaussianNB()), {"gaussiannb__var_smoothing": [1e-9, 0.1]}
    )
    assert search.fit(X, y).best_score_ > 0.9
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict(X) == search.predict(X)).all()


def test_repeated_classes_are_rejected_and_change_nothing():
    model = ours.MultinomialNB(class_prior=[0.5, 0.5]).fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match="not the same as on last call to partial_fit"):
        model.partial_fit([[0], [1]], [0, 1], classes=[0, 1, 1])
    with pytest.raises(ValueError, match="Number of priors must match number of classes"):
        model.fit([[0], [1], [2]], [0, 1, 2])
    assert model.class_count_.tolist() == [1, 1]


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_a_component_of_one_row_needs_no_reg_covar(covariance_type):
    X = np.array([[1.0, 2.0], [1.5, 2.5], [0.5, 1.5], [90.0, 90.0]])
    start = {"means_init": X[[0, 3]], "precisions_init": np.ones((2, 2) if covariance_type == "diag" else 2)}
    model = ours.GaussianMixture(2, covariance_type=covariance_type, reg_covar=0, weights_init=[0.75, 0.25], **start)
    assert model.fit(X).predict(X).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "name", ["naive_bayes.GaussianNB", "discriminant_analysis.LinearDiscriminantAnalysis", "mixture.GaussianMixture"]
)
def test_scikit_learns_names_may_be_replaced(monkeypatch, name):
    monkeypatch.setattr(f"sklearn.{name}", getattr(ours, name.split(".")[1]))
    X, y = load_iris(return_X_y=True)
    model = getattr(ours, name.split(".")[1])().fit(X, y)
    assert len(pickle.loads(pickle.dumps(model)).predict(X)) == 150
