"""scikit-learn's own checks of every estimator, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb

# Families of counts and yes/no columns are left out: the checks feed every estimator measured, negative or missing
# values, and those families refuse them in words of their own.
ESTIMATORS = [
    tb.NaiveBayes(),
    tb.AveragedOneDependence(),
    tb.TreeAugmentedNaiveBayes(bins="mdl"),
    tb.GaussianDiscriminant(),
    tb.NearestClassMean(),
    tb.CountForest(n_trees=6, min_leaf=1, strength=0.5),
    tb.CountBoosting(max_trees=20),
    tb.LinearRegression(),
]
OTHERWISE = [
    tb.NaiveBayes(estimate="map"),
    tb.NaiveBayes(tb.Gaussian()),
    tb.NaiveBayes(tb.TiedGaussian(), estimate="map"),
    tb.NaiveBayes(tb.SphericalGaussian()),
    tb.GaussianDiscriminant("tied", estimate="map"),
    tb.NearestClassMean("euclidean"),
    tb.NearestClassMean("learned"),
    tb.LinearRegression(estimate="mle"),
    tb.LinearRegression(2, estimate="map", prior=1.0),
]


@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERWISE)
def test_keeps_it_with_other_settings(estimator, check):
    check(estimator)
