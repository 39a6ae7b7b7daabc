"""scikit-learn's checks of estimators hold for the drop-ins as for its own; and none of its own work is used."""

import numpy as np
import pytest
import sklearn.discriminant_analysis
import sklearn.mixture._gaussian_mixture
import sklearn.naive_bayes
import sklearn.neighbors
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import estimator_checks_generator

import tallybayes.sklearn as ours

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
# Before 1.9 these checks fit covariances that are singular, which was a warning there.
SINGULAR = {
    ("QuadraticDiscriminantAnalysis", "check_n_features_in_after_fitting"),
    ("QuadraticDiscriminantAnalysis", "check_dtype_object"),
}
SETTINGS = {"GaussianMixture": {"max_iter": 5, "n_init": 1}}


def checks():
    for name in ours.__all__:
        for estimator, check in estimator_checks_generator(getattr(ours, name)(**SETTINGS.get(name, {})), mark="skip"):
            told = getattr(check, "func", check).__name__
            if (name, told) in SINGULAR and SKLEARN < (1, 9):
                continue
            yield pytest.param(estimator, check, id=f"{name}-{told}")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)


HOMES = [sklearn.naive_bayes, sklearn.discriminant_analysis, sklearn.neighbors, sklearn.mixture]
WORK = ["_partial_fit", "_update_mean_variance", "_count", "_update_feature_log_prob", "_update_class_log_prior"]
WORK += ["_solve_svd", "_solve_lstsq", "_solve_eigen", "fit", "partial_fit"]
HELPERS = {
    sklearn.discriminant_analysis: ["_cov", "_class_means", "_class_cov", "ledoit_wolf"],
    sklearn.mixture._gaussian_mixture: [
        "_estimate_gaussian_parameters",
        "_compute_precision_cholesky",
        "_compute_precision_cholesky_from_precisions",
        "_estimate_log_gaussian_prob",
    ],
}


def refuse(*args, **options):
    raise AssertionError("scikit-learn did the work")


@pytest.mark.parametrize("name", ours.__all__)
def test_counting_and_estimating_are_our_own(name, monkeypatch):
    theirs = next(getattr(home, name) for home in HOMES if hasattr(home, name))
    kept = {"fit"} if name == "GaussianMixture" else set()  # the climb is theirs, its steps are ours
    for kind in theirs.__mro__[:-1]:
        for method in set(WORK) - kept:
            if method in vars(kind):
                monkeypatch.setattr(kind, method, refuse)
    for home, helpers in HELPERS.items():
        for helper in helpers:
            monkeypatch.setattr(home, helper, refuse)
    with pytest.raises(AssertionError, match="did the work"):
        theirs().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]], [0, 1, 1])
    X, y = load_iris(return_X_y=True)
    estimator = getattr(ours, name)().fit(X, y)
    assert np.isfinite(estimator.predict_proba(X)).all()
    if hasattr(estimator, "partial_fit"):
        estimator.partial_fit(X, y)
