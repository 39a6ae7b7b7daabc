"""tb.compare: models of the same rows compared by log evidence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, short_repr
from tallybayes.estimation.estimated_factors import LogEvidence
from tallybayes.evaluation.comparison.same_rows import check_same_rows, counted_rows
from tallybayes.families.family import Family
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inspection.information_criteria import evidence_of
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.results.comparison import Comparison

Compared = ClassConditionalModel | BayesianNetwork | HiddenMarkovModel


def compare(models: Mapping[Any, Any] | Sequence[Any]) -> Comparison:
    """Compare models of the same rows by their log evidence, which penalizes complexity.

    The models may differ in kind, families, structure and priors (naive Bayes, tied, full, a network, a hidden Markov
    model), but must have counted the same rows: the same classes, columns and weights. Each is scored by log p(X, y)
    under its own ``prior_`` (`NaiveBayes.log_evidence`), so that priors should be set where they matter; a `Mixture` by
    ``evidence_lower_bound_``, which is below its log evidence. Columns without a finite density in one model, because
    they are constant, are left out of all models. A density (`Gaussian`) and a probability (`Poisson`) of integers are
    compared as if every integer were a cell of width 1. This is fair if the standard deviation is well above 1; the
    comparison notes such columns.

    Parameters
    ----------
    models : mapping from name to fitted model, or list of fitted models
        `NaiveBayes`, `GaussianDiscriminant`, `BayesianNetwork`, `HiddenMarkovModel` of labeled sequences, `Mixture`;
        the models of a list are named 0, 1, …

    Returns
    -------
    Comparison
        It prints as a table.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> full = tb.GaussianDiscriminant().fit(*load_iris(return_X_y=True))
    >>> result = tb.compare({name: full.reestimate(covariance=name) for name in ("full", "tied", "diagonal")})
    >>> result.best
    'full'
    >>> result.bayes_factor("full", "diagonal") > 100
    True
    """
    several = models if isinstance(models, Iterable) else [models]
    named = dict(several.items() if isinstance(several, Mapping) else enumerate(several))
    if len(named) < 2:
        raise DataError.wrong_type("models", short_repr(models), "a list or dict of at least two fitted models")
    for name, model in named.items():
        if not isinstance(model, Compared):
            expected = "a fitted generative model of rows, such as tb.NaiveBayes or tb.BayesianNetwork"
            raise DataError.wrong_type(f"model {name!r}", type(model).__name__, expected)
        check_is_fitted(model, "tally_")
    evidence = {name: _evidence(model) for name, model in named.items()}
    rows = {name: counted_rows(model) for name, model in named.items()}
    first, *others = rows
    for other in others:
        check_same_rows(first, rows[first], other, rows[other])
    excluded = list(dict.fromkeys(column for each in evidence.values() for column in each.excluded_columns))
    return Comparison(
        {name: _evidence(model, excluded).log_evidence for name, model in named.items()},
        {name: model.n_parameters_ for name, model in named.items()},
        rows[first].n_rows,
        excluded,
        _differing_columns(named, lambda family: family.is_continuous),
        [name for name, model in named.items() if isinstance(model, Mixture)],
        _differing_columns(named, lambda family: tuple(family.open_bins)),
    )


def _evidence(model: Compared, excluded: Sequence[Any] = ()) -> LogEvidence:
    """Return the log evidence of a model, or the lower bound of a mixture, and the columns left out of it."""
    if not isinstance(model, Mixture):
        return evidence_of(model, excluded)
    factors = model._all_factors
    all_columns = factors.evidence()
    bound = model.evidence_lower_bound_ + factors.evidence(excluded).log_evidence - all_columns.log_evidence
    return LogEvidence(bound, all_columns.excluded_columns)


def _differing_columns(models: Mapping[Any, Compared], kind: Callable[[Family], Hashable]) -> list[Any]:
    """Return the columns whose families are of different kinds in some of the models."""
    kinds: dict[Any, set[Hashable]] = {}
    statistics: Any
    for model in models.values():
        for factor, statistics in zip(model.tally_.factors, model.tally_.statistics, strict=True):
            n_columns = int(statistics.n_columns)
            for position in range(n_columns):
                kinds.setdefault(factor.column(position, n_columns), set()).add(kind(factor.family))
    return [name for name, found in kinds.items() if len(found) > 1]
