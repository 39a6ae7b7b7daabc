"""The public names by subject, as the reference shows them: every subject has pages, and every page a few names.

A result is on the page of the function or model that returns it. A page has the name of its first entry, or a title.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

import tallybayes as tb

SUBJECTS: dict[str, list[str]] = {
    "Classifiers": [
        "NaiveBayes",
        "GaussianDiscriminant",
        "CountForest",
        "CountBoosting",
        "NearestClassMean",
        "AveragedOneDependence",
        "TreeAugmentedNaiveBayes",
        "AutoClassifier",
        "Mixture",
        "Explanation",
        "results.FeatureImportance",
        "Threshold",
        "results.ParameterTable",
    ],
    "Sequences": ["HiddenMarkovModel", "select_n_states results.StateSelection"],
    "Networks": [
        "BayesianNetwork",
        "learn_tree",
        "learn_structure results.Structure",
        "equivalence_class results.EquivalenceClass structural_hamming_distance",
        "results.QueryResult",
        "results.ActivePath results.MarkovBlanket",
        "results.CausalEffect results.LinearCausalEffect",
        "results.Sensitivity",
        "results.ValueOfInformation",
    ],
    "Regression": ["LinearRegression", "results.TargetPredictive results.CoefficientTable"],
    "Distribution fitting": ["fit_distribution FittedDistribution results.Estimates results.ParameterEstimates"],
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
    "Priors and posteriors": [
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
    "Evaluation": [
        "evaluate Evaluation DensityEvaluation RegressionEvaluation results.MetricEstimate",
        "cross_validate results.HeldOut results.SequenceEvaluation results.Selection",
        "leave_one_out",
        "compare results.Comparison",
        "prior_path results.PriorPath",
        "suggest_families results.FamilySuggestions",
        "dependence results.Dependence",
        "predictive_check results.PredictiveCheck",
        "learning_curves LearningCurves",
        "bias_variance results.BiasVariance",
        "difference results.Difference",
        "audit results.Audit",
        "find_leakage results.Leak",
        "Plot",
    ],
    "Streams": ["Window", "Decayed", "prequential results.Prequential", "verify_receipt Receipt results.Verification"],
    "Data sources and output": [
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
        "DataSourceWarning InvalidValueWarning"
    ],
}

# Public modules, with one page each.
MODULES = {
    "tallybayes.sklearn": "Drop-in replacements for scikit-learn",
    "tallybayes.hmmlearn": "Drop-in replacements for hmmlearn",
    "tallybayes.testing": "Test laws for families and models",
}
TITLES = {"TallybayesError": "Errors and warnings"}


class Page:
    """Page of the reference: its file, its title, and the objects it documents, by name."""

    def __init__(self, file: str, title: str, prefix: str, names: list[str], source: Any) -> None:
        self.file, self.title, self.prefix, self.source = file, title, prefix, source
        self.names = {name: attrgetter(name)(source) for name in names}


def title_of(name: str) -> str:
    """Return a name without the module of results."""
    return name.removeprefix("results.")


@cache
def pages() -> dict[str, list[Page]]:
    """The pages of every subject."""
    found = {
        subject: [
            Page(f"reference/{title_of(names[0])}.md", TITLES.get(names[0], title_of(names[0])), "tb.", names, tb)
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
    """Return the file and the anchor of every public name, by its full name such as ``tb.NaiveBayes``."""
    return {
        page.prefix + name: f"{page.file}#{page.prefix}{name}"
        for every in pages().values()
        for page in every
        for name in page.names
    }
