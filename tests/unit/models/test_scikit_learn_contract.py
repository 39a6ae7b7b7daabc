"""scikit-learn's own checks of an estimator, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb

# Bernoulli, Binomial and Poisson are left out: scikit-learn's checks feed every estimator measured values, which these
# families refuse by design.
ESTIMATORS = [
    tb.NaiveBayes(),
    tb.NaiveBayes(estimate="map"),
    tb.NaiveBayes(tb.Gaussian()),
    tb.NaiveBayes(tb.TiedGaussian(), estimate="map"),
    tb.NaiveBayes(tb.SphericalGaussian()),
    tb.NaiveBayes(tb.MultivariateGaussian()),
    tb.NaiveBayes(tb.Multinomial()),
    tb.NaiveBayes(tb.DirichletMultinomial()),
]


@parametrize_with_checks(ESTIMATORS)
def test_keeps_the_contract(estimator, check):
    check(estimator)
