"""Names that people bring from other libraries and books, and what to say instead: hints in errors, never aliases.

One table for attributes, one for settings, one for the package. Of the names to use instead, an error tells those that
the class at hand has; where it has none, it says what Python says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any

# From a name to what is used here: an attribute, a method with its parentheses, a setting with "=", a function of tb;
# what follows is for the reader. "Class:" before it says that only there it is the answer.
ATTRIBUTES: dict[str, tuple[str, ...]] = {}
SETTINGS: dict[str, tuple[str, ...]] = {}


def _say(table: dict[str, tuple[str, ...]], names: str, *instead: str) -> None:
    table.update(dict.fromkeys(names.split(), instead))


# ---- scikit-learn
_say(ATTRIBUTES, "coef_ intercept_", "to_linear()", "discriminant_functions_", "explain(X)")
_say(ATTRIBUTES, "feature_log_prob_ feature_prob_ log_prob_ theta", "parameters_", "table(column)")
_say(ATTRIBUTES, "theta_ centroids_ cluster_centers_ xbar_ mu_ mean_", "means_", "parameters_")
_say(ATTRIBUTES, "var_ sigma_ sigma2_ covariance_ covars_ cov_ precision_", "covariances_", "parameters_")
_say(ATTRIBUTES, "means_ covariances_", "parameters_")
_say(ATTRIBUTES, "class_count_ feature_count_ category_count_ counts_ count_", "tally_")
_say(ATTRIBUTES, "class_prior priors_ weights_ pi_ class_probabilities_", "class_prior_", "class_log_prior_")
_say(ATTRIBUTES, "decision_function", "predict_log_proba(X)", "predict_joint_log_proba(X)")
_say(ATTRIBUTES, "feature_importances_ shap_values", "explain(X)", "tb.dependence(X, y)")
_say(ATTRIBUTES, "labels_", "Mixture:predict(X)")
_say(ATTRIBUTES, "loglikelihood_ lower_bound_", "evidence_bound_", "history_")
_say(ATTRIBUTES, "n_features_ n_features", "n_features_in_")
_say(ATTRIBUTES, "set_threshold threshold class_weight class_weight_", "decide(X, precision=...)", "class_prior=")
# ---- hmmlearn
_say(ATTRIBUTES, "viterbi decode map_path best_path", "HiddenMarkovModel:predict(X)", "most_probable(given)")
_say(ATTRIBUTES, "transmat_ transmat transitions_", "transition_", "parameters_")
_say(ATTRIBUTES, "startprob_ startprob initial_", "start_", "parameters_")
_say(ATTRIBUTES, "emissionprob_ emissionprob emissions_", "emission_", "parameters_")
_say(ATTRIBUTES, "forward_backward posteriors smooth", "HiddenMarkovModel:predict_proba(X)")
_say(ATTRIBUTES, "k_best n_best list_viterbi", "best_paths(X, k)")
_say(ATTRIBUTES, "sample_posterior posterior_sample sample_states", "sample_paths(X, n)")
_say(ATTRIBUTES, "stationary stationary_distribution get_stationary_distribution", "stationary_")
_say(ATTRIBUTES, "anomaly_score anomaly_scores pseudo_residuals", "surprise(X)", "tail_proba(X)")
_say(ATTRIBUTES, "baum_welch em fit_em", "fit(X)")
_say(ATTRIBUTES, "monitor_", "history_", "converged_")
# ---- pgmpy and other packages for networks
_say(ATTRIBUTES, "cpt cpts cpd cpds get_cpds get_cpd cpt_ cpds_ factors", "table(node)", "parameters_", "to_tables()")
_say(ATTRIBUTES, "add_cpds set_cpds add_edge add_edges_from add_node", "from_tables(parents, levels, tables)")
_say(ATTRIBUTES, "map_query mpe", "most_probable(given)")
_say(ATTRIBUTES, "is_dconnected is_d_separator d_separated dseparation isIndep", "separated(a, b, given)")
_say(ATTRIBUTES, "get_markov_blanket MarkovBlanket blanket", "markov_blanket(node)")
_say(ATTRIBUTES, "causal_effect average_treatment_effect ate do_calculus", "effect(of, on)")
_say(ATTRIBUTES, "nodes edges nodes_ edges_ structure_", "graph_")
_say(ATTRIBUTES, "ask infer marginal marginals variable_elimination", "query(nodes, given)")
_say(ATTRIBUTES, "predict_probability", "predict_proba(X)")
_say(ATTRIBUTES, "simulate generate rvs forward_sample", "sample(n)")
_say(ATTRIBUTES, "draw show", "plot()", "plot_columns()", "plot_transitions()")
# ---- textbooks
_say(ATTRIBUTES, "show_work work", "show_work(row)", "forward(X)", "query(nodes, given)")
_say(ATTRIBUTES, "parameters params params_ thetas", "parameters_")
_say(ATTRIBUTES, "likelihood loglik log_lik logL", "log_likelihood(X)")
_say(ATTRIBUTES, "pdf logpdf density log_prob log_density", "score_samples(X)")
_say(ATTRIBUTES, "evidence marginal_likelihood log_marginal_likelihood evidence_ log_evidence_", "log_evidence()")
_say(ATTRIBUTES, "bic", "bic_")
_say(ATTRIBUTES, "aic", "aic_")
_say(ATTRIBUTES, "posterior posterior_proba", "predict_proba(X)", "query(nodes, given)", "posterior_")
_say(ATTRIBUTES, "train learn", "fit(X, y)", "fit(X)")
_say(ATTRIBUTES, "update learn_one fit_more", "partial_fit(X, y)", "partial_fit(X)")
_say(ATTRIBUTES, "unlearn remove downdate", "forget(X, y)", "forget(X)")
_say(ATTRIBUTES, "classify predict_one", "predict(X)")
_say(ATTRIBUTES, "impute impute_missing", "fill(X)")
_say(ATTRIBUTES, "evaluate confusion_matrix", "tb.evaluate(model, X, y)")
_say(ATTRIBUTES, "cross_validate", "tb.cross_validate(model, X, y)")
_say(ATTRIBUTES, "load", "tb.load(path)")
_say(ATTRIBUTES, "tally counts", "tally_")

# ---- Settings of constructors
_say(
    SETTINGS,
    "alpha smoothing laplace pseudocount pseudo_count pseudocounts additive add",
    "prior=, as a number of counts",
)
_say(SETTINGS, "equivalent_sample_size prior_type beta m_estimate", "prior=")
_say(SETTINGS, "var_smoothing reg_covar covars_prior min_covar", "prior=")
_say(SETTINGS, "startprob_prior transmat_prior means_prior weight_concentration_prior", "prior=")
_say(SETTINGS, "reg_param shrink shrink_threshold regularization", "shrinkage=", "prior=")
_say(SETTINGS, "fit_prior", "class_prior='uniform' or 'frequency'")
_say(SETTINGS, "priors prior_probs class_priors weights_init", "class_prior=")
_say(SETTINGS, "class_weight class_weights cost costs", "class_prior=", "decide(X, cost=...)")
_say(SETTINGS, "n_components", "n_states=", "n_classes=")
_say(SETTINGS, "n_states n_clusters k", "n_components=", "n_classes=", "n_states=")
_say(SETTINGS, "n_hidden hidden_states", "n_states=")
_say(SETTINGS, "covariance_type cov", "covariance=", "columns=")
_say(SETTINGS, "n_iter max_iterations iterations n_iterations", "max_iter=")
_say(SETTINGS, "tolerance eps", "tol=")
_say(SETTINGS, "seed rng", "random_state=")
_say(
    SETTINGS,
    "family families distribution distributions model column_types",
    "columns=, with a family such as tb.Poisson()",
)
_say(
    SETTINGS,
    "binarize min_categories n_categories levels",
    "columns=, with a family such as tb.Categorical(levels=[...])",
)
_say(SETTINGS, "structure edges ebunch dag graph", "parents=")
_say(SETTINGS, "distance dist", "metric=")
_say(SETTINGS, "method estimator how", "estimate=")
_say(SETTINGS, "end stop", "end_state=")
_say(SETTINGS, "handle_unknown unknown", "unseen=")
_say(SETTINGS, "semi_supervised", "unlabelled=")

MODULE = {
    **dict.fromkeys(
        ["GaussianNB", "MultinomialNB", "BernoulliNB", "CategoricalNB", "ComplementNB", "MixedNB"], "NaiveBayes"
    ),
    **dict.fromkeys(
        ["LDA", "QDA", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"], "GaussianDiscriminant"
    ),
    **dict.fromkeys(["GaussianMixture", "BayesianMixture", "MixtureModel", "EM"], "Mixture"),
    **dict.fromkeys(["HMM", "GaussianHMM", "CategoricalHMM", "MultinomialHMM"], "HiddenMarkovModel"),
    **dict.fromkeys(["BayesNet", "BayesianModel", "DiscreteBayesianNetwork", "BayesNetwork"], "BayesianNetwork"),
    **dict.fromkeys(["NearestCentroid", "NCM"], "NearestClassMean"),
    **dict.fromkeys(["AODE", "A1DE"], "AveragedOneDependence"),
    **dict.fromkeys(["TAN", "TreeAugmented"], "TreeAugmentedNaiveBayes"),
    **dict.fromkeys(["Normal", "normal", "gaussian"], "Gaussian"),
    **dict.fromkeys(["AutoML", "auto", "fit"], "choose"),
    **dict.fromkeys(["chow_liu", "ChowLiu"], "learn_tree"),
    **dict.fromkeys(["HillClimbSearch", "hill_climb", "PC", "GES", "BNLearner", "structure_search"], "learn_structure"),
    **dict.fromkeys(["shd", "SHD", "structural_hamming_distance"], "structural_distance"),
    **dict.fromkeys(["cpdag", "CPDAG"], "equivalence_class"),
    **dict.fromkeys(["learning_curve", "validation_curve", "LearningCurveDisplay"], "learning_curves"),
}


def hint_for_attribute(kind: type, name: str) -> str | None:
    """What an attribute is called here, if the class has it; None where nothing is known or it is there."""
    if name not in ATTRIBUTES or hasattr(kind, name):
        return None
    found = instead_of(kind, ATTRIBUTES[name])
    return f"{kind.__name__!r} object has no attribute {name!r}; here it is {' or '.join(found)}." if found else None


def hint_for_setting(kind: type, name: str) -> str | None:
    """What a setting is called here, if the class has it, or what it was meant to be."""
    known = list(signature(kind).parameters)
    if name in known:
        return None
    first, found = (
        f"{kind.__name__}() got an unexpected keyword argument {name!r}",
        instead_of(kind, SETTINGS.get(name, ())),
    )
    if found:
        return f"{first}; here it is {' or '.join(found)}."
    near = get_close_matches(name.lower(), known, 1, 0.7)
    return f"{first}. Did you mean {near[0]}=?" if near else None


def instead_of(kind: type, names: Iterable[str]) -> list[str]:
    """Those names that a class has, as one writes them."""
    found = []
    for one in names:
        only, package, name, sign = read(one)
        if only and only not in {each.__name__ for each in kind.__mro__}:
            continue
        shown = one.removeprefix(f"{only}:")
        if package:
            found.append(shown)
        elif sign == "=":
            found += [shown] if name in signature(kind).parameters else []
        elif hasattr(kind, name) or name == "tally_":  # which only an instance has
            found.append(f"model.{shown}")
    return found


def read(one: str) -> tuple[str, str, str, str]:
    """The class that a name is of, if any, whether it is of the package, the name, and whether it is set or called."""
    match = re.match(r"(?:(\w+):)?(tb\.)?(\w+)([=(]?)", one)
    assert match is not None
    only, package, name, sign = match.groups("")
    return only, package, name, sign


def with_hints(init: Any) -> Any:
    """A constructor that answers near misses; its signature stays, for scikit-learn reads the parameters from it."""

    @wraps(init)
    def constructed(self: Any, *arguments: Any, **settings: Any) -> None:
        try:
            init(self, *arguments, **settings)
        except TypeError:
            hints = [hint for name in settings if (hint := hint_for_setting(type(self), name))]
            if not hints:
                raise
            raise TypeError(hints[0]) from None

    return constructed
