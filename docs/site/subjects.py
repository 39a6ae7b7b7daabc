"""The public names by subject, as the reference shows them: every subject has pages, and every page a few names.

A result stands on the page of what gives it. A page is called after its first name, unless it has a title of its own.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import tallybayes as tb

SUBJECTS: dict[str, list[str]] = {
    "Classifiers": [
        "NaiveBayes",
        "GaussianDiscriminant",
        "NearestClassMean",
        "AveragedOneDependence",
        "TreeAugmentedNaiveBayes",
        "AutoClassifier",
        "Mixture",
        "Explanation",
        "FeatureImportance",
        "Threshold",
        "ParameterTable",
    ],
    "Sequences": ["HiddenMarkovModel", "select_n_states StateSelection"],
    "Networks": [
        "BayesianNetwork",
        "learn_tree",
        "learn_structure Structure",
        "equivalence_class EquivalenceClass structural_hamming_distance",
        "QueryResult",
        "ActivePath MarkovBlanket",
        "CausalEffect LinearCausalEffect",
        "Sensitivity",
        "ValueOfInformation",
    ],
    "Regression": ["LinearRegression", "TargetPredictive CoefficientTable"],
    "One family": ["fit_distribution FittedDistribution Estimates ParameterEstimates"],
    "Families": [
        "Family",
        "Bernoulli",
        "Binomial",
        "Categorical",
        "Multinomial",
        "DirichletMultinomial",
        "Text",
        "tokenize",
        "Poisson",
        "Gaussian",
        "TiedGaussian",
        "SphericalGaussian",
        "TiedSphericalGaussian",
        "MultivariateGaussian",
        "TiedMultivariateGaussian",
        "LinearGaussian LinearGaussianThroughOrigin",
        "ConditionalLinearGaussian",
        "Autoregressive",
        "LogNormal",
        "Binned",
        "WithMissing",
    ],
    "Distributions": [
        "Beta",
        "Dirichlet",
        "Gamma",
        "NormalInverseGamma",
        "NormalInverseWishart",
        "LinearNormalInverseGamma",
        "Hypotheses",
        "BDeu",
        "K2",
        "BDe",
    ],
    "Statistics": ["count", "Tally", "Factor", "Schema", "Counts", "Totals", "Moments"],
    "Insight": [
        "evaluate Evaluation DensityEvaluation RegressionEvaluation MetricEstimate",
        "cross_validate CrossValidation DensityValidation SequenceValidation RegressionValidation Selection",
        "leave_one_out",
        "compare Comparison",
        "prior_path PriorPath",
        "suggest_families FamilySuggestions",
        "dependence Dependence",
        "predictive_check PredictiveCheck",
        "learning_curves LearningCurves",
        "bias_variance BiasVariance",
        "difference Difference",
        "audit Audit",
        "find_leakage Leak",
        "Plot",
    ],
    "Streams": ["Window", "Decayed", "prequential Prequential", "verify_receipt Receipt Verification"],
    "Data in, answers out": [
        "table Source",
        "NamedMatrix",
        "load",
        "write_predictions",
        "write_rows",
        "set_threads",
        "show_versions",
    ],
    "Errors and warnings": [
        "TallybayesError DataError LabelError EstimateError ImpossibleError NotLinearError PriorError StatisticsError "
        "NoCountsError NotForgettableError FileError ExportError TooLargeError TallybayesWarning CalibrationWarning "
        "InvalidValueWarning"
    ],
}

# Modules that are public besides: a page each, of all that they name.
MODULES = {
    "tallybayes.sklearn": "Drop-ins for scikit-learn",
    "tallybayes.hmmlearn": "Drop-ins for hmmlearn",
    "tallybayes.testing": "Laws to test by",
}
TITLES = {"TallybayesError": "Errors and warnings"}


class Page:
    """A page of the reference: its file, its title, and what it tells of, by name."""

    def __init__(self, file: str, title: str, prefix: str, names: list[str], source: Any) -> None:
        self.file, self.title, self.prefix, self.source = file, title, prefix, source
        self.names = {name: getattr(source, name) for name in names}


@cache
def pages() -> dict[str, list[Page]]:
    """The pages of every subject."""
    found = {
        subject: [
            Page(f"reference/{names[0]}.md", TITLES.get(names[0], names[0]), "tb.", names, tb)
            for names in map(str.split, every)
        ]
        for subject, every in SUBJECTS.items()
    }
    found["Modules"] = []
    for name, title in MODULES.items():
        module = import_module(name)
        file = f"reference/{name.partition('.')[2]}.md"
        found["Modules"].append(Page(file, title, f"{name}.", list(module.__all__), module))
    return found


def anchors() -> dict[str, str]:
    """Where every public name is told of, by its name in full, such as ``tb.NaiveBayes``: the file and the anchor."""
    return {
        page.prefix + name: f"{page.file}#{page.prefix}{name}"
        for every in pages().values()
        for page in every
        for name in page.names
    }
