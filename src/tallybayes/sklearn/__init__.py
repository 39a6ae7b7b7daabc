"""Drop-in replacements for estimators of scikit-learn: the same names, constructors, attributes and predictions.

Replace ``from sklearn.naive_bayes import GaussianNB`` by ``from tallybayes.sklearn import GaussianNB``. The statistics
are counted by the models of this package. Each estimator adds ``model_`` (the fitted model), `forget` and ``+``.
"""

from tallybayes.sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from tallybayes.sklearn.mixture import GaussianMixture
from tallybayes.sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from tallybayes.sklearn.neighbors import NearestCentroid

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianMixture",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "NearestCentroid",
    "QuadraticDiscriminantAnalysis",
]
