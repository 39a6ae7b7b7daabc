"""Results of evaluations and models: they print as tables, show as HTML in notebooks and become data frames.

The functions and methods of the package return them; users seldom construct them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybayes.estimation.distribution_fit import FittedDistribution as FittedDistribution
    from tallybayes.estimation.estimates import Estimates as Estimates
    from tallybayes.estimation.estimates import ParameterEstimates as ParameterEstimates
    from tallybayes.estimation.importance import FeatureImportance as FeatureImportance
    from tallybayes.models.classification.methods.explanation import Explanation as Explanation
    from tallybayes.models.ensemble.leakage import Leak as Leak
    from tallybayes.models.inspection.parameter_table import ParameterTable as ParameterTable
    from tallybayes.models.network.analysis.causal_effect import CausalEffect as CausalEffect
    from tallybayes.models.network.analysis.d_separation import ActivePath as ActivePath
    from tallybayes.models.network.analysis.d_separation import MarkovBlanket as MarkovBlanket
    from tallybayes.models.network.analysis.linear_causal_effect import LinearCausalEffect as LinearCausalEffect
    from tallybayes.models.network.analysis.sensitivity import Sensitivity as Sensitivity
    from tallybayes.models.network.analysis.value_of_information import ValueOfInformation as ValueOfInformation
    from tallybayes.models.network.inference.query_result import QueryResult as QueryResult
    from tallybayes.models.network.structure.equivalence_class import EquivalenceClass as EquivalenceClass
    from tallybayes.models.network.structure.learned_structure import Structure as Structure
    from tallybayes.models.receipt import Receipt as Receipt
    from tallybayes.models.receipt import Verification as Verification
    from tallybayes.models.regression.coefficients import CoefficientTable as CoefficientTable
    from tallybayes.models.regression.target_prediction import TargetPredictive as TargetPredictive
    from tallybayes.results.audit import Audit as Audit
    from tallybayes.results.bias_variance import BiasVariance as BiasVariance
    from tallybayes.results.classification_evaluation import Evaluation as Evaluation
    from tallybayes.results.classification_evaluation import SequenceEvaluation as SequenceEvaluation
    from tallybayes.results.comparison import Comparison as Comparison
    from tallybayes.results.density_evaluation import DensityEvaluation as DensityEvaluation
    from tallybayes.results.dependence import Dependence as Dependence
    from tallybayes.results.difference import Difference as Difference
    from tallybayes.results.evaluation import HeldOut as HeldOut
    from tallybayes.results.family_suggestions import FamilySuggestions as FamilySuggestions
    from tallybayes.results.metric_intervals import MetricEstimate as MetricEstimate
    from tallybayes.results.model_curves import LearningCurves as LearningCurves
    from tallybayes.results.model_curves import Prequential as Prequential
    from tallybayes.results.predictive_check import PredictiveCheck as PredictiveCheck
    from tallybayes.results.prior_path import PriorPath as PriorPath
    from tallybayes.results.regression_evaluation import RegressionEvaluation as RegressionEvaluation
    from tallybayes.results.selection import Selection as Selection
    from tallybayes.results.state_selection import StateSelection as StateSelection
    from tallybayes.results.threshold import Threshold as Threshold

# Every result and the module it is defined in; imported at first use.
_PUBLIC = {
    "ActivePath": "models.network.analysis.d_separation",
    "Audit": "results.audit",
    "BiasVariance": "results.bias_variance",
    "CausalEffect": "models.network.analysis.causal_effect",
    "CoefficientTable": "models.regression.coefficients",
    "Comparison": "results.comparison",
    "DensityEvaluation": "results.density_evaluation",
    "Dependence": "results.dependence",
    "Difference": "results.difference",
    "EquivalenceClass": "models.network.structure.equivalence_class",
    "Estimates": "estimation.estimates",
    "Evaluation": "results.classification_evaluation",
    "Explanation": "models.classification.methods.explanation",
    "FamilySuggestions": "results.family_suggestions",
    "FeatureImportance": "estimation.importance",
    "FittedDistribution": "estimation.distribution_fit",
    "HeldOut": "results.evaluation",
    "Leak": "models.ensemble.leakage",
    "LearningCurves": "results.model_curves",
    "LinearCausalEffect": "models.network.analysis.linear_causal_effect",
    "MarkovBlanket": "models.network.analysis.d_separation",
    "MetricEstimate": "results.metric_intervals",
    "ParameterEstimates": "estimation.estimates",
    "ParameterTable": "models.inspection.parameter_table",
    "PredictiveCheck": "results.predictive_check",
    "Prequential": "results.model_curves",
    "PriorPath": "results.prior_path",
    "QueryResult": "models.network.inference.query_result",
    "Receipt": "models.receipt",
    "RegressionEvaluation": "results.regression_evaluation",
    "Selection": "results.selection",
    "Sensitivity": "models.network.analysis.sensitivity",
    "SequenceEvaluation": "results.classification_evaluation",
    "StateSelection": "results.state_selection",
    "Structure": "models.network.structure.learned_structure",
    "TargetPredictive": "models.regression.target_prediction",
    "Threshold": "results.threshold",
    "ValueOfInformation": "models.network.analysis.value_of_information",
    "Verification": "models.receipt",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _PUBLIC:
        raise AttributeError(f"module 'tallybayes.results' has no attribute {name!r}")
    value = getattr(import_module(f"tallybayes.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
