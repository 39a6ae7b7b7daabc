"""scikit-learn's own checks of every estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb

# Families of counts and yes/no columns are left out: the checks feed every estimator measured, negative or missing
# values, and those families refuse them in words of their own.
ESTIMATORS = [
    tb.NaiveBayes(),
    tb.NaiveBayes(estimate="map"),
    tb.NaiveBayes(tb.Gaussian()),
    tb.NaiveBayes(tb.TiedGaussian(), estimate="map"),
    tb.NaiveBayes(tb.SphericalGaussian()),
    tb.AveragedOneDependence(),
    tb.TreeAugmentedNaiveBayes(bins="mdl"),
    tb.GaussianDiscriminant(),
    tb.GaussianDiscriminant("tied", estimate="map"),
    tb.NearestClassMean(),
    tb.NearestClassMean("euclidean"),
    tb.NearestClassMean("learned"),
    tb.Regression(),
    tb.Regression(estimate="mle"),
    tb.Regression(2, estimate="map", prior=1.0),
]


@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract(estimator, check):
    check(estimator)
