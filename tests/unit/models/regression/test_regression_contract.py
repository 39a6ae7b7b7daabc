"""scikit-learn's own checks of an estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb


@parametrize_with_checks([tb.Regression(), tb.Regression(estimate="mle"), tb.Regression(2, estimate="map", prior=1.0)])
def test_keeps_the_contract(estimator, check):
    check(estimator)
