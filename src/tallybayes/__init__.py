"""Tallybayes: generative probabilistic learning by counting.

Count sufficient statistics once; add, subtract and re-estimate them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybayes import results as results
    from tallybayes.data.counting import count as count
    from tallybayes.data.named_matrix import NamedMatrix as NamedMatrix
    from tallybayes.data.open_source import table as table
    from tallybayes.data.source import Source as Source
    from tallybayes.distributions.beta import Beta as Beta
    from tallybayes.distributions.dirichlet import Dirichlet as Dirichlet
    from tallybayes.distributions.gamma import Gamma as Gamma
    from tallybayes.distributions.hypotheses import Hypotheses as Hypotheses
    from tallybayes.distributions.linear_normal_inverse_gamma import (
        LinearNormalInverseGamma as LinearNormalInverseGamma,
    )
    from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
    from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
    from tallybayes.errors import DataError as DataError
    from tallybayes.errors import EstimateError as EstimateError
    from tallybayes.errors import ExportError as ExportError
    from tallybayes.errors import FileError as FileError
    from tallybayes.errors import ImpossibleError as ImpossibleError
    from tallybayes.errors import LabelError as LabelError
    from tallybayes.errors import NoCountsError as NoCountsError
    from tallybayes.errors import NotForgettableError as NotForgettableError
    from tallybayes.errors import NotLinearError as NotLinearError
    from tallybayes.errors import PriorError as PriorError
    from tallybayes.errors import StatisticsError as StatisticsError
    from tallybayes.errors import TallybayesError as TallybayesError
    from tallybayes.errors import TooLargeError as TooLargeError
    from tallybayes.estimation.distribution_fit import FittedDistribution as FittedDistribution
    from tallybayes.estimation.distribution_fit import fit_distribution as fit_distribution
    from tallybayes.evaluation.checks.audit import audit as audit
    from tallybayes.evaluation.checks.dependence import dependence as dependence
    from tallybayes.evaluation.checks.predictive_check import predictive_check as predictive_check
    from tallybayes.evaluation.checks.suggest_families import suggest_families as suggest_families
    from tallybayes.evaluation.comparison.model_comparison import compare as compare
    from tallybayes.evaluation.comparison.model_difference import difference as difference
    from tallybayes.evaluation.evaluate import evaluate as evaluate
    from tallybayes.evaluation.validation.bias_variance import bias_variance as bias_variance
    from tallybayes.evaluation.validation.cross_validation import cross_validate as cross_validate
    from tallybayes.evaluation.validation.cross_validation import leave_one_out as leave_one_out
    from tallybayes.evaluation.validation.learning_curves import learning_curves as learning_curves
    from tallybayes.evaluation.validation.prequential import prequential as prequential
    from tallybayes.evaluation.validation.prior_path import prior_path as prior_path
    from tallybayes.evaluation.validation.state_selection import select_n_states as select_n_states
    from tallybayes.export.write_predictions import write_predictions as write_predictions
    from tallybayes.export.write_rows import write_rows as write_rows
    from tallybayes.families.autoregressive import Autoregressive as Autoregressive
    from tallybayes.families.bernoulli import Bernoulli as Bernoulli
    from tallybayes.families.binned import Binned as Binned
    from tallybayes.families.binomial import Binomial as Binomial
    from tallybayes.families.categorical import Categorical as Categorical
    from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian as ConditionalLinearGaussian
    from tallybayes.families.family import Family as Family
    from tallybayes.families.gaussian import Gaussian as Gaussian
    from tallybayes.families.gaussian import SphericalGaussian as SphericalGaussian
    from tallybayes.families.gaussian import TiedGaussian as TiedGaussian
    from tallybayes.families.gaussian import TiedSphericalGaussian as TiedSphericalGaussian
    from tallybayes.families.linear_gaussian import LinearGaussian as LinearGaussian
    from tallybayes.families.linear_gaussian import LinearGaussianThroughOrigin as LinearGaussianThroughOrigin
    from tallybayes.families.log_normal import LogNormal as LogNormal
    from tallybayes.families.multinomial import DirichletMultinomial as DirichletMultinomial
    from tallybayes.families.multinomial import Multinomial as Multinomial
    from tallybayes.families.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
    from tallybayes.families.multivariate_gaussian import TiedMultivariateGaussian as TiedMultivariateGaussian
    from tallybayes.families.poisson import Poisson as Poisson
    from tallybayes.families.prior_rules import K2 as K2
    from tallybayes.families.prior_rules import BDeu as BDeu
    from tallybayes.families.text import Text as Text
    from tallybayes.families.with_missing import WithMissing as WithMissing
    from tallybayes.kernels.arguments import set_threads as set_threads
    from tallybayes.kernels.text.tokenizer import tokenize as tokenize
    from tallybayes.models.classification.methods.explanation import Explanation as Explanation
    from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant as GaussianDiscriminant
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier as AutoClassifier
    from tallybayes.models.ensemble.leakage import find_leakage as find_leakage
    from tallybayes.models.forest.count_boosting import CountBoosting as CountBoosting
    from tallybayes.models.forest.count_forest import CountForest as CountForest
    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel as HiddenMarkovModel
    from tallybayes.models.io import load as load
    from tallybayes.models.mixture.mixture_model import Mixture as Mixture
    from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes as NaiveBayes
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean as NearestClassMean
    from tallybayes.models.network.bayesian_network import BayesianNetwork as BayesianNetwork
    from tallybayes.models.network.bde_prior import BDe as BDe
    from tallybayes.models.network.structure.chow_liu import learn_tree as learn_tree
    from tallybayes.models.network.structure.equivalence_class import equivalence_class as equivalence_class
    from tallybayes.models.network.structure.equivalence_class import (
        structural_hamming_distance as structural_hamming_distance,
    )
    from tallybayes.models.network.structure.learn_structure import learn_structure as learn_structure
    from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence as AveragedOneDependence
    from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
    from tallybayes.models.receipt import Receipt as Receipt
    from tallybayes.models.receipt import verify_receipt as verify_receipt
    from tallybayes.models.regression.linear_regression import LinearRegression as LinearRegression
    from tallybayes.models.streaming.decayed import Decayed as Decayed
    from tallybayes.models.streaming.window import Window as Window
    from tallybayes.plotting.plot import Plot as Plot
    from tallybayes.results.classification_evaluation import Evaluation as Evaluation
    from tallybayes.results.density_evaluation import DensityEvaluation as DensityEvaluation
    from tallybayes.results.model_curves import LearningCurves as LearningCurves
    from tallybayes.results.regression_evaluation import RegressionEvaluation as RegressionEvaluation
    from tallybayes.results.threshold import Threshold as Threshold
    from tallybayes.statistics.counts import Counts as Counts
    from tallybayes.statistics.moments import Moments as Moments
    from tallybayes.statistics.totals import Totals as Totals
    from tallybayes.tally.domain import Schema as Schema
    from tallybayes.tally.factor import Factor as Factor
    from tallybayes.tally.tally import Tally as Tally
    from tallybayes.versions import show_versions as show_versions
    from tallybayes.warnings import CalibrationWarning as CalibrationWarning
    from tallybayes.warnings import DataSourceWarning as DataSourceWarning
    from tallybayes.warnings import InvalidValueWarning as InvalidValueWarning
    from tallybayes.warnings import TallybayesWarning as TallybayesWarning

__version__ = "0.1.0"

# Every public name and the module it lives in; imported when first used, so that `import tallybayes` is quick.
_PUBLIC = {
    "AutoClassifier": "models.ensemble.auto_classifier",
    "Autoregressive": "families.autoregressive",
    "AveragedOneDependence": "models.one_dependence.averaged_one_dependence",
    "BDe": "models.network.bde_prior",
    "BDeu": "families.prior_rules",
    "BayesianNetwork": "models.network.bayesian_network",
    "Bernoulli": "families.bernoulli",
    "Beta": "distributions.beta",
    "Binned": "families.binned",
    "Binomial": "families.binomial",
    "CalibrationWarning": "warnings",
    "Categorical": "families.categorical",
    "ConditionalLinearGaussian": "families.conditional_linear_gaussian",
    "CountBoosting": "models.forest.count_boosting",
    "CountForest": "models.forest.count_forest",
    "Counts": "statistics.counts",
    "DataError": "errors",
    "DataSourceWarning": "warnings",
    "Decayed": "models.streaming.decayed",
    "DensityEvaluation": "results.density_evaluation",
    "Dirichlet": "distributions.dirichlet",
    "DirichletMultinomial": "families.multinomial",
    "EstimateError": "errors",
    "Evaluation": "results.classification_evaluation",
    "Explanation": "models.classification.methods.explanation",
    "ExportError": "errors",
    "Factor": "tally.factor",
    "Family": "families.family",
    "FileError": "errors",
    "FittedDistribution": "estimation.distribution_fit",
    "Gamma": "distributions.gamma",
    "Gaussian": "families.gaussian",
    "GaussianDiscriminant": "models.discriminant.gaussian_discriminant",
    "HiddenMarkovModel": "models.hmm.hidden_markov_model",
    "Hypotheses": "distributions.hypotheses",
    "ImpossibleError": "errors",
    "InvalidValueWarning": "warnings",
    "K2": "families.prior_rules",
    "LabelError": "errors",
    "LearningCurves": "results.model_curves",
    "LinearGaussian": "families.linear_gaussian",
    "LinearGaussianThroughOrigin": "families.linear_gaussian",
    "LinearNormalInverseGamma": "distributions.linear_normal_inverse_gamma",
    "LinearRegression": "models.regression.linear_regression",
    "LogNormal": "families.log_normal",
    "Mixture": "models.mixture.mixture_model",
    "Moments": "statistics.moments",
    "Multinomial": "families.multinomial",
    "MultivariateGaussian": "families.multivariate_gaussian",
    "NaiveBayes": "models.naive_bayes.naive_bayes",
    "NamedMatrix": "data.named_matrix",
    "NearestClassMean": "models.nearest_mean.nearest_class_mean",
    "NoCountsError": "errors",
    "NormalInverseGamma": "distributions.normal_inverse_gamma",
    "NormalInverseWishart": "distributions.normal_inverse_wishart",
    "NotForgettableError": "errors",
    "NotLinearError": "errors",
    "Plot": "plotting.plot",
    "Poisson": "families.poisson",
    "PriorError": "errors",
    "Receipt": "models.receipt",
    "RegressionEvaluation": "results.regression_evaluation",
    "Schema": "tally.domain",
    "Source": "data.source",
    "SphericalGaussian": "families.gaussian",
    "StatisticsError": "errors",
    "Tally": "tally.tally",
    "TallybayesError": "errors",
    "TallybayesWarning": "warnings",
    "Text": "families.text",
    "Threshold": "results.threshold",
    "TiedGaussian": "families.gaussian",
    "TiedMultivariateGaussian": "families.multivariate_gaussian",
    "TiedSphericalGaussian": "families.gaussian",
    "TooLargeError": "errors",
    "Totals": "statistics.totals",
    "TreeAugmentedNaiveBayes": "models.one_dependence.tree_augmented",
    "Window": "models.streaming.window",
    "WithMissing": "families.with_missing",
    "audit": "evaluation.checks.audit",
    "bias_variance": "evaluation.validation.bias_variance",
    "compare": "evaluation.comparison.model_comparison",
    "count": "data.counting",
    "cross_validate": "evaluation.validation.cross_validation",
    "dependence": "evaluation.checks.dependence",
    "difference": "evaluation.comparison.model_difference",
    "equivalence_class": "models.network.structure.equivalence_class",
    "evaluate": "evaluation.evaluate",
    "find_leakage": "models.ensemble.leakage",
    "fit_distribution": "estimation.distribution_fit",
    "learn_structure": "models.network.structure.learn_structure",
    "learn_tree": "models.network.structure.chow_liu",
    "learning_curves": "evaluation.validation.learning_curves",
    "leave_one_out": "evaluation.validation.cross_validation",
    "load": "models.io",
    "predictive_check": "evaluation.checks.predictive_check",
    "prequential": "evaluation.validation.prequential",
    "prior_path": "evaluation.validation.prior_path",
    "select_n_states": "evaluation.validation.state_selection",
    "set_threads": "kernels.arguments",
    "show_versions": "versions",
    "structural_hamming_distance": "models.network.structure.equivalence_class",
    "suggest_families": "evaluation.checks.suggest_families",
    "table": "data.open_source",
    "tokenize": "kernels.text.tokenizer",
    "verify_receipt": "models.receipt",
    "write_predictions": "export.write_predictions",
    "write_rows": "export.write_rows",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "results":
        return import_module("tallybayes.results")
    if name not in _PUBLIC:
        if name in import_module("tallybayes.results").__all__:
            raise AttributeError(f"module 'tallybayes' has no attribute {name!r}. Use tb.results.{name}.")
        hints = {} if name.startswith("_") else import_module("tallybayes.models.name_hints").HINTS
        if here := [f"tb.{one}" for one in hints.get(name, ()) if one in _PUBLIC]:
            raise AttributeError(f"module 'tallybayes' has no attribute {name!r}. Use {' or '.join(here)}.")
        # With these arguments Python adds "did you mean".
        raise AttributeError(
            f"module 'tallybayes' has no attribute {name!r}", name=name, obj=import_module("tallybayes")
        )

    value = getattr(import_module(f"tallybayes.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__", "results"])
