"""Results of evaluations and models: they print as tables, show as HTML in notebooks and become data frames.

The functions and methods of the package return them; users seldom construct them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybayes.results.audit import Audit as Audit
    from tallybayes.results.bias_variance import BiasVariance as BiasVariance
    from tallybayes.results.classification_evaluation import Evaluation as Evaluation
    from tallybayes.results.comparison import Comparison as Comparison
    from tallybayes.results.density_evaluation import DensityEvaluation as DensityEvaluation
    from tallybayes.results.dependence import Dependence as Dependence
    from tallybayes.results.difference import Difference as Difference
    from tallybayes.results.family_suggestions import FamilySuggestions as FamilySuggestions
    from tallybayes.results.learning_curves import LearningCurves as LearningCurves
    from tallybayes.results.metric_intervals import MetricEstimate as MetricEstimate
    from tallybayes.results.predictive_check import PredictiveCheck as PredictiveCheck
    from tallybayes.results.prequential import Prequential as Prequential
    from tallybayes.results.prior_path import PriorPath as PriorPath
    from tallybayes.results.regression_evaluation import RegressionEvaluation as RegressionEvaluation
    from tallybayes.results.state_selection import StateSelection as StateSelection
    from tallybayes.results.threshold import Threshold as Threshold
    from tallybayes.results.validation import CrossValidation as CrossValidation
    from tallybayes.results.validation import DensityValidation as DensityValidation
    from tallybayes.results.validation import RegressionValidation as RegressionValidation
    from tallybayes.results.validation import Selection as Selection
    from tallybayes.results.validation import SequenceValidation as SequenceValidation

# Every result and the module it is defined in; imported at first use.
_PUBLIC = {
    "Audit": "results.audit",
    "BiasVariance": "results.bias_variance",
    "Comparison": "results.comparison",
    "CrossValidation": "results.validation",
    "DensityEvaluation": "results.density_evaluation",
    "DensityValidation": "results.validation",
    "Dependence": "results.dependence",
    "Difference": "results.difference",
    "Evaluation": "results.classification_evaluation",
    "FamilySuggestions": "results.family_suggestions",
    "LearningCurves": "results.learning_curves",
    "MetricEstimate": "results.metric_intervals",
    "PredictiveCheck": "results.predictive_check",
    "Prequential": "results.prequential",
    "PriorPath": "results.prior_path",
    "RegressionEvaluation": "results.regression_evaluation",
    "RegressionValidation": "results.validation",
    "Selection": "results.validation",
    "SequenceValidation": "results.validation",
    "StateSelection": "results.state_selection",
    "Threshold": "results.threshold",
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
