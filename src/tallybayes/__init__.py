"""Tallybayes: generative probabilistic learning by counting.

Count sufficient statistics once; add, subtract and re-estimate them for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybayes.beliefs.beta import Beta as Beta
    from tallybayes.beliefs.dirichlet import Dirichlet as Dirichlet
    from tallybayes.beliefs.gamma import Gamma as Gamma
    from tallybayes.beliefs.hypotheses import Hypotheses as Hypotheses
    from tallybayes.beliefs.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
    from tallybayes.beliefs.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
    from tallybayes.families.bernoulli import Bernoulli as Bernoulli
    from tallybayes.families.bernoulli import Binomial as Binomial
    from tallybayes.families.categorical import Categorical as Categorical
    from tallybayes.families.gaussian import Gaussian as Gaussian
    from tallybayes.families.gaussian import SphericalGaussian as SphericalGaussian
    from tallybayes.families.gaussian import TiedGaussian as TiedGaussian
    from tallybayes.families.gaussian import TiedSphericalGaussian as TiedSphericalGaussian
    from tallybayes.families.multinomial import DirichletMultinomial as DirichletMultinomial
    from tallybayes.families.multinomial import Multinomial as Multinomial
    from tallybayes.families.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
    from tallybayes.families.multivariate_gaussian import TiedMultivariateGaussian as TiedMultivariateGaussian
    from tallybayes.families.poisson import Poisson as Poisson
    from tallybayes.families.priors import BDeu as BDeu
    from tallybayes.files import load as load
    from tallybayes.learned import Learned as Learned
    from tallybayes.learned import learn as learn
    from tallybayes.models.discriminant import GaussianDiscriminant as GaussianDiscriminant
    from tallybayes.models.naive_bayes import NaiveBayes as NaiveBayes
    from tallybayes.models.nearest_mean import NearestClassMean as NearestClassMean
    from tallybayes.sources.collect import count as count
    from tallybayes.statistics.counts import Counts as Counts
    from tallybayes.statistics.moments import Moments as Moments
    from tallybayes.statistics.totals import Totals as Totals
    from tallybayes.tally.factor import Factor as Factor
    from tallybayes.tally.factor import Schema as Schema
    from tallybayes.tally.tally import Tally as Tally

__version__ = "0.1.0"

# Every public name and the module it lives in; imported when first used, so that `import tallybayes` is quick.
_PUBLIC = {
    "BDeu": "families.priors",
    "Bernoulli": "families.bernoulli",
    "Beta": "beliefs.beta",
    "Binomial": "families.bernoulli",
    "Categorical": "families.categorical",
    "Counts": "statistics.counts",
    "Dirichlet": "beliefs.dirichlet",
    "DirichletMultinomial": "families.multinomial",
    "Factor": "tally.factor",
    "Gamma": "beliefs.gamma",
    "Gaussian": "families.gaussian",
    "GaussianDiscriminant": "models.discriminant",
    "Hypotheses": "beliefs.hypotheses",
    "Learned": "learned",
    "Moments": "statistics.moments",
    "Multinomial": "families.multinomial",
    "MultivariateGaussian": "families.multivariate_gaussian",
    "NaiveBayes": "models.naive_bayes",
    "NearestClassMean": "models.nearest_mean",
    "NormalInverseGamma": "beliefs.normal_inverse_gamma",
    "NormalInverseWishart": "beliefs.normal_inverse_wishart",
    "Poisson": "families.poisson",
    "Schema": "tally.factor",
    "SphericalGaussian": "families.gaussian",
    "Tally": "tally.tally",
    "TiedGaussian": "families.gaussian",
    "TiedMultivariateGaussian": "families.multivariate_gaussian",
    "TiedSphericalGaussian": "families.gaussian",
    "Totals": "statistics.totals",
    "count": "sources.collect",
    "learn": "learned",
    "load": "files",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PUBLIC:  # with these arguments Python adds "did you mean"
        raise AttributeError(
            f"module 'tallybayes' has no attribute {name!r}", name=name, obj=import_module("tallybayes")
        )

    value = getattr(import_module(f"tallybayes.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])
