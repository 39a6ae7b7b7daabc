"""Drop-ins for estimators of scikit-learn: the same names, constructors, attributes and predictions; our models count.

``from tallybayes.sklearn import GaussianNB`` instead of ``from sklearn.naive_bayes import GaussianNB``: nothing else
changes. What is gained is in ``model_``, in `forget` and in ``+``.
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
