"""tb.evaluate: a fitted classifier's answers on some rows, measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, LabelError
from tallybayes.insight.evaluation import Evaluation
from tallybayes.models.classifiers.classifier import Classifier
from tallybayes.models.classifiers.nearest_mean import NearestClassMean
from tallybayes.models.inputs.features import check_target, continuous_target, open_features
from tallybayes.sources.collect import check_weight
from tallybayes.sources.encode import encode
from tallybayes.sources.table import Table


def evaluate(
    model: Any, data: Any, target: Any, by: Any = None, *, sample_weight: Any = None, mass: float = 0.95
) -> Evaluation:
    """How good a fitted classifier's answers are on some rows, with credible intervals.

    Rows that the model has learned from flatter it: pass others.

    Parameters
    ----------
    model : NaiveBayes, GaussianDiscriminant or NearestClassMean
        Fitted; it is not changed.
    data : as for the model's ``score``
    target : array-like of shape (n,), or the name of a column of data
        The true classes. Every one must be known to the model; classes of the model that do not occur are fine.
    by : array-like of shape (n,), or the name of a column of data, optional
        Measure each of these groups by itself too.
    sample_weight : array-like of shape (n,), or the name of a column of data, optional
    mass : float, default 0.95
        The mass of the intervals.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.GaussianDiscriminant().fit(X[::2], y[::2])
    >>> result = tb.evaluate(model, X[1::2], y[1::2])
    >>> result.accuracy
    0.96 (0.89 to 0.99)
    >>> result.log_loss
    0.07 (0.02 to 0.15)
    """
    if not isinstance(model, Classifier | NearestClassMean):
        expected = "a NaiveBayes, GaussianDiscriminant or NearestClassMean"
        hint = "Score other models yourself, and pass their log-probabilities to tb.Evaluation."
        raise DataError.wrong_type("model", type(model).__name__, expected, hint)
    check_is_fitted(model, "tally_")
    table = open_features(data)
    name_of_by = by if isinstance(by, str) else None
    names = [name for name in (target, by, sample_weight) if isinstance(name, str)]
    weight = table._column(sample_weight) if isinstance(sample_weight, str) else sample_weight
    weight = check_weight(weight, table.n_rows, any_size=True)
    labels = table._column(target) if isinstance(target, str) else check_target(target, table.n_rows)
    codes = _codes_of(labels, model.tally_.domains[str(model._target)].levels, weight)
    groups = table._column(by) if isinstance(by, str) else by
    rows = _features(model, data, table, names)
    log_density = model.score_samples(rows) if hasattr(model, "score_samples") else None
    log_proba = model.predict_log_proba(rows)
    found = Evaluation(model.classes_, codes, log_proba, weight=weight, log_density=log_density, by=groups, mass=mass)
    found._by_name = name_of_by or "group"
    return found


def _features(model: Any, data: Any, table: Table, names: list[str]) -> Any:
    """The data without what was named and is no feature, where the model would take every column for one."""
    known = {name for factor in model.tally_.factors if factor.given for name in factor.columns}
    extra = [name for name in names if name not in known]
    if model._shape.by_name or not extra:
        return data
    for name in dict.fromkeys(extra):
        table = table.without(name)
    return table


def _codes_of(labels: Any, levels: tuple[Any, ...], weight: np.ndarray | None) -> np.ndarray:
    """The position of every label among the model's classes; rows without weight may have any."""
    try:
        codes, domain = encode(labels, "target", ordered=True)
    except LabelError as error:
        raise continuous_target(error) from None
    codes = np.asarray(codes).astype(np.intp)
    where = {level: place for place, level in enumerate(levels)}
    known = type(levels[0]) if levels else None  # True is not 1 here
    places = np.array([where.get(x, -1) if type(x) is known else -1 for x in domain.levels] + [-1], dtype=np.intp)
    found = places[codes]  # code −1, a missing label, finds the last
    wrong = found < 0 if weight is None else (found < 0) & (weight > 0)
    if wrong.any():
        raise _unknown_labels(codes, wrong, domain.levels, levels)
    return np.maximum(found, 0)


def _unknown_labels(
    codes: np.ndarray, wrong: np.ndarray, labels: tuple[Any, ...], known: tuple[Any, ...]
) -> LabelError:
    missing = np.flatnonzero(wrong & (codes < 0))
    if len(missing):
        return LabelError(
            f"the label of row {int(missing[0])} is missing ({len(missing)} of {len(codes)} are); expected a label for "
            "every row.\n    Leave the unlabelled rows out."
        )
    new = [labels[k] for k in np.flatnonzero(np.bincount(codes[wrong])).tolist()]
    shown = ", ".join(map(repr, new[:8])) + (f", … {len(new) - 8} more" if len(new) > 8 else "")
    return LabelError(
        f"the target holds labels that the model does not know: {shown} ({int(wrong.sum())} of {len(codes)} rows); "
        f"expected {', '.join(map(repr, known[:8]))}{', …' if len(known) > 8 else ''}.\n"
        "    Leave those rows out, or learn the classes with partial_fit or add_class."
    )
