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
    from tallybayes.beliefs.linear_normal_inverse_gamma import LinearNormalInverseGamma as LinearNormalInverseGamma
    from tallybayes.beliefs.normal_inverse_gamma import NormalInverseGamma as NormalInverseGamma
    from tallybayes.beliefs.normal_inverse_wishart import NormalInverseWishart as NormalInverseWishart
    from tallybayes.cautions import CalibrationWarning as CalibrationWarning
    from tallybayes.cautions import OutsideWarning as OutsideWarning
    from tallybayes.cautions import TallybayesWarning as TallybayesWarning
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
    from tallybayes.export.predictions import write_predictions as write_predictions
    from tallybayes.export.rows import write_rows as write_rows
    from tallybayes.families.autoregressive import Autoregressive as Autoregressive
    from tallybayes.families.bernoulli import Bernoulli as Bernoulli
    from tallybayes.families.bernoulli import Binomial as Binomial
    from tallybayes.families.binned import Binned as Binned
    from tallybayes.families.categorical import Categorical as Categorical
    from tallybayes.families.family import Family as Family
    from tallybayes.families.gaussian import Gaussian as Gaussian
    from tallybayes.families.gaussian import SphericalGaussian as SphericalGaussian
    from tallybayes.families.gaussian import TiedGaussian as TiedGaussian
    from tallybayes.families.gaussian import TiedSphericalGaussian as TiedSphericalGaussian
    from tallybayes.families.linear_gaussian import LinearGaussian as LinearGaussian
    from tallybayes.families.linear_gaussian import LinearGaussianThroughOrigin as LinearGaussianThroughOrigin
    from tallybayes.families.linear_in_parents import LinearInParents as LinearInParents
    from tallybayes.families.log_normal import LogNormal as LogNormal
    from tallybayes.families.multinomial import DirichletMultinomial as DirichletMultinomial
    from tallybayes.families.multinomial import Multinomial as Multinomial
    from tallybayes.families.multivariate_gaussian import MultivariateGaussian as MultivariateGaussian
    from tallybayes.families.multivariate_gaussian import TiedMultivariateGaussian as TiedMultivariateGaussian
    from tallybayes.families.poisson import Poisson as Poisson
    from tallybayes.families.priors import K2 as K2
    from tallybayes.families.priors import BDeu as BDeu
    from tallybayes.families.text import Text as Text
    from tallybayes.families.with_missing import WithMissing as WithMissing
    from tallybayes.files import load as load
    from tallybayes.insight.audit import audit as audit
    from tallybayes.insight.audited import Audit as Audit
    from tallybayes.insight.bias_variance import BiasVariance as BiasVariance
    from tallybayes.insight.bias_variance import bias_variance as bias_variance
    from tallybayes.insight.choose_states import ChosenStates as ChosenStates
    from tallybayes.insight.choose_states import choose_states as choose_states
    from tallybayes.insight.compare import Comparison as Comparison
    from tallybayes.insight.compare import compare as compare
    from tallybayes.insight.cross_validation import cross_validate as cross_validate
    from tallybayes.insight.cross_validation import leave_one_out as leave_one_out
    from tallybayes.insight.density import DensityEvaluation as DensityEvaluation
    from tallybayes.insight.dependence import Dependence as Dependence
    from tallybayes.insight.dependence import dependence as dependence
    from tallybayes.insight.difference import Difference as Difference
    from tallybayes.insight.difference import difference as difference
    from tallybayes.insight.evaluate import evaluate as evaluate
    from tallybayes.insight.evaluation import Evaluation as Evaluation
    from tallybayes.insight.intervals import Measure as Measure
    from tallybayes.insight.learning_curves import LearningCurves as LearningCurves
    from tallybayes.insight.learning_curves import learning_curves as learning_curves
    from tallybayes.insight.predictive_check import PredictiveCheck as PredictiveCheck
    from tallybayes.insight.predictive_check import predictive_check as predictive_check
    from tallybayes.insight.prequential import prequential as prequential
    from tallybayes.insight.prequential_curves import Prequential as Prequential
    from tallybayes.insight.prior_path import PriorPath as PriorPath
    from tallybayes.insight.prior_path import prior_path as prior_path
    from tallybayes.insight.regression_evaluation import RegressionEvaluation as RegressionEvaluation
    from tallybayes.insight.regression_evaluation import RegressionValidation as RegressionValidation
    from tallybayes.insight.selection import Selection as Selection
    from tallybayes.insight.suggest import Suggestion as Suggestion
    from tallybayes.insight.suggest import suggest_columns as suggest_columns
    from tallybayes.insight.validation import CrossValidation as CrossValidation
    from tallybayes.insight.validation import DensityValidation as DensityValidation
    from tallybayes.insight.validation import SequenceValidation as SequenceValidation
    from tallybayes.kernels.threads import set_threads as set_threads
    from tallybayes.kernels.tokens import tokens as tokens
    from tallybayes.learned.estimates import Estimates as Estimates
    from tallybayes.learned.estimates import ParameterEstimates as ParameterEstimates
    from tallybayes.learned.learned import Learned as Learned
    from tallybayes.learned.learned import learn as learn
    from tallybayes.models.chains.hidden_markov import HiddenMarkovModel as HiddenMarkovModel
    from tallybayes.models.classifiers.answers.explain import Explanation as Explanation
    from tallybayes.models.classifiers.choice.chosen import Chosen as Chosen
    from tallybayes.models.classifiers.choice.chosen import choose as choose
    from tallybayes.models.classifiers.choice.leakage import Leak as Leak
    from tallybayes.models.classifiers.choice.leakage import find_leakage as find_leakage
    from tallybayes.models.classifiers.discriminant import GaussianDiscriminant as GaussianDiscriminant
    from tallybayes.models.classifiers.mixture import Mixture as Mixture
    from tallybayes.models.classifiers.naive_bayes import NaiveBayes as NaiveBayes
    from tallybayes.models.classifiers.nearest_mean import NearestClassMean as NearestClassMean
    from tallybayes.models.classifiers.one_dependence import AveragedOneDependence as AveragedOneDependence
    from tallybayes.models.classifiers.tree_augmented import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
    from tallybayes.models.fitted.importance import FeatureImportance as FeatureImportance
    from tallybayes.models.fitted.parameter_table import ParameterTable as ParameterTable
    from tallybayes.models.inputs.threshold import Threshold as Threshold
    from tallybayes.models.networks.answer import Answer as Answer
    from tallybayes.models.networks.effects import Effect as Effect
    from tallybayes.models.networks.measured_answer import MeasuredAnswer as MeasuredAnswer
    from tallybayes.models.networks.measured_effect import MeasuredEffect as MeasuredEffect
    from tallybayes.models.networks.mixed_answer import MixedAnswer as MixedAnswer
    from tallybayes.models.networks.network import BayesianNetwork as BayesianNetwork
    from tallybayes.models.networks.next_question import NextQuestion as NextQuestion
    from tallybayes.models.networks.prior import BDe as BDe
    from tallybayes.models.networks.search.equivalence import EquivalenceClass as EquivalenceClass
    from tallybayes.models.networks.search.equivalence import equivalence_class as equivalence_class
    from tallybayes.models.networks.search.equivalence import structural_distance as structural_distance
    from tallybayes.models.networks.search.learn import learn_structure as learn_structure
    from tallybayes.models.networks.search.structure import Structure as Structure
    from tallybayes.models.networks.sensitivity import Sensitivity as Sensitivity
    from tallybayes.models.networks.separation import ActivePath as ActivePath
    from tallybayes.models.networks.separation import MarkovBlanket as MarkovBlanket
    from tallybayes.models.networks.tree import learn_tree as learn_tree
    from tallybayes.models.receipt import Receipt as Receipt
    from tallybayes.models.receipt import Verification as Verification
    from tallybayes.models.receipt import verify_receipt as verify_receipt
    from tallybayes.models.regression.answers import TargetPredictive as TargetPredictive
    from tallybayes.models.regression.lines import WeightTable as WeightTable
    from tallybayes.models.regression.regression import Regression as Regression
    from tallybayes.models.streams.decayed import Decayed as Decayed
    from tallybayes.models.streams.window import Window as Window
    from tallybayes.plots.picture import Picture as Picture
    from tallybayes.sources.collect import count as count
    from tallybayes.sources.named import Named as Named
    from tallybayes.sources.opening import table as table
    from tallybayes.sources.source import Source as Source
    from tallybayes.statistics.counts import Counts as Counts
    from tallybayes.statistics.moments import Moments as Moments
    from tallybayes.statistics.totals import Totals as Totals
    from tallybayes.tally.factor import Factor as Factor
    from tallybayes.tally.factor import Schema as Schema
    from tallybayes.tally.tally import Tally as Tally
    from tallybayes.versions import show_versions as show_versions

__version__ = "0.1.0"

# Every public name and the module it lives in; imported when first used, so that `import tallybayes` is quick.
_PUBLIC = {
    "ActivePath": "models.networks.separation",
    "Answer": "models.networks.answer",
    "Audit": "insight.audited",
    "Autoregressive": "families.autoregressive",
    "AveragedOneDependence": "models.classifiers.one_dependence",
    "BDe": "models.networks.prior",
    "BDeu": "families.priors",
    "BayesianNetwork": "models.networks.network",
    "Bernoulli": "families.bernoulli",
    "Beta": "beliefs.beta",
    "BiasVariance": "insight.bias_variance",
    "Binned": "families.binned",
    "Binomial": "families.bernoulli",
    "CalibrationWarning": "cautions",
    "Categorical": "families.categorical",
    "Chosen": "models.classifiers.choice.chosen",
    "ChosenStates": "insight.choose_states",
    "Comparison": "insight.compare",
    "Counts": "statistics.counts",
    "CrossValidation": "insight.validation",
    "DataError": "errors",
    "Decayed": "models.streams.decayed",
    "DensityEvaluation": "insight.density",
    "DensityValidation": "insight.validation",
    "Dependence": "insight.dependence",
    "Difference": "insight.difference",
    "Dirichlet": "beliefs.dirichlet",
    "DirichletMultinomial": "families.multinomial",
    "Effect": "models.networks.effects",
    "EquivalenceClass": "models.networks.search.equivalence",
    "EstimateError": "errors",
    "Estimates": "learned.estimates",
    "Evaluation": "insight.evaluation",
    "Explanation": "models.classifiers.answers.explain",
    "ExportError": "errors",
    "Factor": "tally.factor",
    "Family": "families.family",
    "FeatureImportance": "models.fitted.importance",
    "FileError": "errors",
    "Gamma": "beliefs.gamma",
    "Gaussian": "families.gaussian",
    "GaussianDiscriminant": "models.classifiers.discriminant",
    "HiddenMarkovModel": "models.chains.hidden_markov",
    "Hypotheses": "beliefs.hypotheses",
    "ImpossibleError": "errors",
    "K2": "families.priors",
    "LabelError": "errors",
    "Leak": "models.classifiers.choice.leakage",
    "Learned": "learned.learned",
    "LearningCurves": "insight.learning_curves",
    "LinearGaussian": "families.linear_gaussian",
    "LinearGaussianThroughOrigin": "families.linear_gaussian",
    "LinearInParents": "families.linear_in_parents",
    "LinearNormalInverseGamma": "beliefs.linear_normal_inverse_gamma",
    "LogNormal": "families.log_normal",
    "MarkovBlanket": "models.networks.separation",
    "Measure": "insight.intervals",
    "MeasuredAnswer": "models.networks.measured_answer",
    "MeasuredEffect": "models.networks.measured_effect",
    "MixedAnswer": "models.networks.mixed_answer",
    "Mixture": "models.classifiers.mixture",
    "Moments": "statistics.moments",
    "Multinomial": "families.multinomial",
    "MultivariateGaussian": "families.multivariate_gaussian",
    "NaiveBayes": "models.classifiers.naive_bayes",
    "Named": "sources.named",
    "NearestClassMean": "models.classifiers.nearest_mean",
    "NextQuestion": "models.networks.next_question",
    "NoCountsError": "errors",
    "NormalInverseGamma": "beliefs.normal_inverse_gamma",
    "NormalInverseWishart": "beliefs.normal_inverse_wishart",
    "NotForgettableError": "errors",
    "NotLinearError": "errors",
    "OutsideWarning": "cautions",
    "ParameterEstimates": "learned.estimates",
    "ParameterTable": "models.fitted.parameter_table",
    "Picture": "plots.picture",
    "Poisson": "families.poisson",
    "PredictiveCheck": "insight.predictive_check",
    "Prequential": "insight.prequential_curves",
    "PriorError": "errors",
    "PriorPath": "insight.prior_path",
    "Receipt": "models.receipt",
    "Regression": "models.regression.regression",
    "RegressionEvaluation": "insight.regression_evaluation",
    "RegressionValidation": "insight.regression_evaluation",
    "Schema": "tally.factor",
    "Selection": "insight.selection",
    "Sensitivity": "models.networks.sensitivity",
    "SequenceValidation": "insight.validation",
    "Source": "sources.source",
    "SphericalGaussian": "families.gaussian",
    "StatisticsError": "errors",
    "Structure": "models.networks.search.structure",
    "Suggestion": "insight.suggest",
    "Tally": "tally.tally",
    "TallybayesError": "errors",
    "TallybayesWarning": "cautions",
    "TargetPredictive": "models.regression.answers",
    "Text": "families.text",
    "Threshold": "models.inputs.threshold",
    "TiedGaussian": "families.gaussian",
    "TiedMultivariateGaussian": "families.multivariate_gaussian",
    "TiedSphericalGaussian": "families.gaussian",
    "TooLargeError": "errors",
    "Totals": "statistics.totals",
    "TreeAugmentedNaiveBayes": "models.classifiers.tree_augmented",
    "Verification": "models.receipt",
    "WeightTable": "models.regression.lines",
    "Window": "models.streams.window",
    "WithMissing": "families.with_missing",
    "audit": "insight.audit",
    "bias_variance": "insight.bias_variance",
    "choose": "models.classifiers.choice.chosen",
    "choose_states": "insight.choose_states",
    "compare": "insight.compare",
    "count": "sources.collect",
    "cross_validate": "insight.cross_validation",
    "dependence": "insight.dependence",
    "difference": "insight.difference",
    "equivalence_class": "models.networks.search.equivalence",
    "evaluate": "insight.evaluate",
    "find_leakage": "models.classifiers.choice.leakage",
    "learn": "learned.learned",
    "learn_structure": "models.networks.search.learn",
    "learn_tree": "models.networks.tree",
    "learning_curves": "insight.learning_curves",
    "leave_one_out": "insight.cross_validation",
    "load": "files",
    "predictive_check": "insight.predictive_check",
    "prequential": "insight.prequential",
    "prior_path": "insight.prior_path",
    "set_threads": "kernels.threads",
    "show_versions": "versions",
    "structural_distance": "models.networks.search.equivalence",
    "suggest_columns": "insight.suggest",
    "table": "sources.opening",
    "tokens": "kernels.tokens",
    "verify_receipt": "models.receipt",
    "write_predictions": "export.predictions",
    "write_rows": "export.rows",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PUBLIC:
        meant = {} if name.startswith("_") else import_module("tallybayes.models.near_misses").MODULE
        if name in meant:
            raise AttributeError(f"module 'tallybayes' has no attribute {name!r}; here it is tb.{meant[name]}.")
        # With these arguments Python adds "did you mean".
        raise AttributeError(
            f"module 'tallybayes' has no attribute {name!r}", name=name, obj=import_module("tallybayes")
        )

    value = getattr(import_module(f"tallybayes.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])
