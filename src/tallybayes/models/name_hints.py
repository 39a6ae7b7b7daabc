"""Names of scikit-learn, hmmlearn and pgmpy with their names here: hints of errors about missing names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from tallybayes.messages import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])

# A parameter, a method, an attribute or a public name of this package, and its names elsewhere.
_NAMES = {
    # Classes and functions
    "NaiveBayes": "GaussianNB MultinomialNB BernoulliNB CategoricalNB ComplementNB",
    "GaussianDiscriminant": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "NearestClassMean": "NearestCentroid",
    "Mixture": "GaussianMixture BayesianGaussianMixture",
    "HiddenMarkovModel": "GaussianHMM CategoricalHMM MultinomialHMM PoissonHMM GMMHMM VariationalGaussianHMM",
    "BayesianNetwork": "BayesianModel DiscreteBayesianNetwork LinearGaussianBayesianNetwork",
    "learning_curves": "learning_curve validation_curve LearningCurveDisplay",
    "learn_structure": "HillClimbSearch PC GES ExhaustiveSearch MmhcEstimator",
    "learn_tree": "TreeSearch",
    "structural_hamming_distance": "SHD",
    "equivalence_class": "PDAG",
    # Parameters
    "prior": "alpha smoothing var_smoothing reg_covar min_covar covars_prior means_prior startprob_prior "
    "transmat_prior weight_concentration_prior prior_type equivalent_sample_size pseudo_counts",
    "class_prior": "fit_prior priors weights_init class_weight",
    "shrinkage": "reg_param shrink_threshold",
    "covariance": "covariance_type",
    "columns": "binarize min_categories",
    "n_components": "n_clusters",
    "n_states": "n_components",
    "max_iter": "n_iter",
    "random_state": "seed",
    "parents": "ebunch",
    # Parameters of functions
    "folds": "cv n_splits n_folds",
    "target": "y y_true y_train",
    "data": "X df X_train",
    "sizes": "train_sizes",
    "candidates": "param_grid",
    # Attributes and methods
    "to_linear": "coef_ intercept_",
    "discriminant_functions_": "coef_ intercept_",
    "means_": "theta_ centroids_ cluster_centers_ xbar_",
    "covariances_": "var_ sigma_ covariance_ covars_",
    "transition_": "transmat_",
    "start_": "startprob_",
    "emission_": "emissionprob_",
    "stationary_": "get_stationary_distribution",
    "table": "cpt feature_log_prob_",
    "cpt": "cpds get_cpds",
    "to_tables": "get_cpds",
    "from_tables": "add_cpds add_edge add_edges_from add_node",
    "parameters_": "theta_ means_ var_ sigma_ covariance_ covariances_ covars_ feature_log_prob_ transmat_ startprob_ "
    "emissionprob_ cluster_centers_ centroids_",
    "tally_": "class_count_ feature_count_ category_count_",
    "class_prior_": "priors_ weights_",
    "graph_": "nodes edges",
    "bic_": "bic",
    "aic_": "aic",
    "evidence_lower_bound_": "lower_bound_",
    "history_": "lower_bound_ monitor_",
    "converged_": "monitor_",
    "n_features_in_": "n_features_",
    "predict": "decode viterbi labels_",
    "predict_proba": "predict_probability",
    "predict_log_proba": "decision_function",
    "decide": "class_weight",
    "explain": "feature_importances_",
    "partial_fit": "fit_update",
    "sample": "simulate",
    "query": "infer show_work",
    "forward": "show_work",
    "most_probable": "map_query",
    "d_separated": "is_dconnected",
    "markov_blanket": "get_markov_blanket",
    "causal_effect": "estimate_ate",
}
HINTS: dict[str, list[str]] = {}  # from a name of another library to the names here
for _here, _elsewhere in _NAMES.items():
    for _name in _elsewhere.split():
        HINTS.setdefault(_name, []).append(_here)


def hint_for_attribute(kind: type, name: str) -> str:
    """Return the hint for a missing attribute: the methods and attributes that replace it; "" if there are none."""
    return "" if name not in HINTS or hasattr(kind, name) else _use(_members(kind, name))


def with_parameter_hints(function: Function) -> Function:
    """Return a function that raises TypeError with a hint for a parameter of another library."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        check_parameter_names(function, named)
        return function(*given, **named)

    return call  # type: ignore[return-value]


def hint_for_parameter(kind: Callable[..., Any], name: str) -> str:
    """Return the hint for a missing parameter: what replaces it, or the closest parameter; "" if there is none."""
    known = signature(kind).parameters
    found = [f"{one}=" for one in HINTS.get(name, ()) if one in known]
    return _use(found + _members(kind, name)) or did_you_mean([name], known)


def check_parameter_names(kind: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise TypeError if a callable lacks a parameter and there is a hint; without a hint, Python raises it."""
    known = signature(kind).parameters
    takes_any = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    for name in names:
        if not takes_any and name not in known and (hint := hint_for_parameter(kind, name)):
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {name!r}. {hint}")


@lru_cache(256)
def parameter_names(init: Any) -> frozenset[str]:
    """Return the parameters and local variables of a function; none if it is not written in Python."""
    return frozenset(init.__code__.co_varnames if hasattr(init, "__code__") else ())


def _members(kind: Callable[..., Any], name: str) -> list[str]:
    return [
        f"model.{one}()" if callable(getattr(kind, one, None)) else f"model.{one}"
        for one in HINTS.get(name, ())
        if hasattr(kind, one) or one == "tally_"  # an attribute of instances
    ]


def _use(found: list[str]) -> str:
    return f"Use {' or '.join(found)}." if found else ""
