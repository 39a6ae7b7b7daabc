"""scikit-learn's own checks of an estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb


@parametrize_with_checks([tb.NearestClassMean(), tb.NearestClassMean("euclidean"), tb.NearestClassMean("learned")])
def test_keeps_the_contract(estimator, check):
    check(estimator)
