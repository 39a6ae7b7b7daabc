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

SETTINGS = {"GaussianMixture": {"max_iter": 5, "n_init": 1}}


def checks():
    for name in ours.__all__:
        for estimator, check in estimator_checks_generator(getattr(ours, name)(**SETTINGS.get(name, {})), mark="skip"):
            told = getattr(check, "func", check).__name__
            yield pytest.param(estimator, check, id=f"{name}-{told}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learns_checks(estimator, check):
    check(estimator)
