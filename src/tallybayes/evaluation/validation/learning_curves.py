"""tb.learning_curves: error, log loss and calibration of several models by the number of training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from tallybayes._utils.parameter_checks import check_count, random_generator, read_numbers
from tallybayes._utils.progress import progress
from tallybayes.data.encoding import missing_mask
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError, LabelError, printable, short_repr
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.evaluation.validation.arguments import named_models
from tallybayes.evaluation.validation.prefix_models import models_of_prefixes
from tallybayes.models.inputs.features import check_target, is_name, only_column
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.results.classification_metrics import ScoredRows
from tallybayes.results.model_curves import LearningCurves
from tallybayes.typing import EstimatorLike, Labels, RandomState, Rows

_LEAST = 1e-15  # smaller probabilities are raised to this: the log loss stays finite
_FOLDS = 5  # a fifth of the rows is held out


@with_parameter_hints
def learning_curves(
    models: EstimatorLike | Mapping[str, EstimatorLike],
    data: Rows,
    target: Labels,
    sizes: Sequence[int] | None = None,
    *,
    n_repeats: int = 10,
    random_state: RandomState = 0,
) -> LearningCurves:
    """Compute error, log loss and calibration of models by the number of training rows.

    Generative models are often better on few rows, and discriminative ones on many (Ng and Jordan 2001). A fifth of the
    rows is held out, with equal class frequencies; of the others, in random order, every model is fitted to the first
    rows, then to more, and so on. This is repeated for several splits, the same for all models.

    Classifiers of this package count only the additional rows of a size, so that all sizes take one pass; the result
    equals fitting the first rows. Models are refitted at every size (see ``refitted``) if they choose something from
    values (``columns="suggest"``, bins, covariances, calibration, learned metrics, `AutoClassifier`), if they use EM,
    and if they are estimators or pipelines of scikit-learn.

    Parameters
    ----------
    models : classifier, or mapping from names to classifiers
        Of this package or of scikit-learn, with ``predict_proba``. They are not changed.
    data : array, data frame, mapping of columns, list of texts, or a file
    target : array-like of shape (n,), or the name of a column of data
    sizes : sequence of int, optional
        The numbers of training rows; by default each twice the one before, up to all.
    n_repeats : int, default 10
        The number of splits. Every five of them hold out each row once.
    random_state : int, Generator or None

    Returns
    -------
    LearningCurves

    Notes
    -----
    A class without training rows has the probability 1/(n + K) after n rows of K classes for every model; the other
    classes are scaled accordingly. Splits overlap, so that standard errors are somewhat too small. The crossings depend
    on the strength of priors and penalties; the result states ``C`` and ``alpha`` of scikit-learn's models. `compare`
    compares models by evidence, without held-out rows.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.learning_curves(tb.GaussianDiscriminant(covariance="tied"), X, y, [15, 120]).error.shape
    (1, 2, 10)
    """
    named = named_models(models)
    for name, model in named.items():
        _check_classifier(name, model)
    check_count("n_repeats", n_repeats)
    X, labels = _open_rows(data, target)
    classes, codes = np.unique(labels, return_inverse=True)
    rng = random_generator(random_state)
    folds = [random_folds(codes, _FOLDS, rng) for _ in range(-(-n_repeats // _FOLDS))]
    n_train = _check_sizes(sizes, len(codes) - int(max(np.bincount(fold).max() for fold in folds)), len(classes))
    values = np.empty((len(LearningCurves.LABELS), len(named), len(n_train), n_repeats))
    held_out = [folds[split // _FOLDS] == split % _FOLDS for split in range(n_repeats)]
    orders = [rng.permutation(np.flatnonzero(~out)) for out in held_out]
    refitted = dict.fromkeys(named, False)
    for split, (m, name) in progress(
        [(split, each) for split in range(n_repeats) for each in enumerate(named)], "learning curves"
    ):
        test = np.flatnonzero(held_out[split])
        test_rows = _safe_indexing(X, test)
        first_row = _safe_indexing(X, test[:1])
        for k, prefix in enumerate(models_of_prefixes(named[name], X, labels, orders[split], n_train, first_row)):
            known = prefix.model.classes_
            proba = _over_all_classes(classes, known, prefix.model.predict_proba(test_rows), int(n_train[k]))
            scores = ScoredRows(codes[test], np.log(np.maximum(proba, _LEAST)), np.ones(len(test)))
            refitted[name] |= prefix.refitted
            error = 1 - scores.is_correct.mean()
            loss = -scores.true_class_log_proba.mean()
            values[:, m, k, split] = error, loss, scores.reliability.calibration_gap, prefix.seconds
    penalties = [penalty_of(model) for model in named.values()]
    error, log_loss, calibration_error, seconds = values
    return LearningCurves(
        list(named), n_train, error, log_loss, calibration_error, seconds, penalties, list(refitted.values())
    )


def penalty_of(model: EstimatorLike) -> str:
    """Return the penalty of a linear model of scikit-learn as text, from its parameters; "" of any other model."""
    searched = getattr(model, "param_grid", None) or getattr(model, "param_distributions", None) or {}
    grids = [searched] if isinstance(searched, Mapping) else searched
    if any(str(name).rsplit("__", 1)[-1] in ("C", "alpha") for grid in grids for name in grid):
        return "penalty by cross-validation"
    for attribute in ("steps", "estimator"):  # the last step of a pipeline, or the wrapped estimator
        part = getattr(model, attribute, None)
        if part is not None:
            return penalty_of(part[-1][1] if attribute == "steps" else part)
    if not type(model).__module__.startswith(("sklearn.linear_model", "sklearn.svm")):
        return ""
    parameters = model.get_params(deep=False)
    if parameters.get("penalty", "l2") is None or parameters.get("C") == np.inf:
        return "no penalty"
    for name in ("C", "alpha"):
        if name in parameters:
            return f"{name} = {parameters[name]:g}"
    return "penalty by cross-validation" if "Cs" in parameters or "alphas" in parameters else ""


def _check_classifier(name: str, model: EstimatorLike) -> None:
    """Raise DataError unless a model is a classifier with probabilities."""
    kind = f"{model.__name__}, a class" if isinstance(model, type) else type(model).__name__
    expected = hint = ""
    if isinstance(model, type) or not hasattr(model, "fit") or not is_classifier(model):
        expected = "a classifier"
        hint = "Pass an instance." if isinstance(model, type) else "Pass several models as a mapping from names."
    elif not hasattr(model, "predict_proba"):
        expected = "a classifier with predict_proba"
        hint = "Wrap it in scikit-learn's CalibratedClassifierCV."
    if expected:
        raise DataError.wrong_type(f"model {printable(name)!r}", kind, expected, hint)


def _over_all_classes(classes: np.ndarray, known: np.ndarray, proba: np.ndarray, n_rows: int) -> np.ndarray:
    """Return probabilities of all classes from those of the known ones: each other class counts as one row."""
    unseen = 1 / (n_rows + len(classes))
    out = np.full((len(proba), len(classes)), unseen)
    out[:, np.searchsorted(classes, known)] = proba * (1 - (len(classes) - len(known)) * unseen)
    return out


def _open_rows(rows: Rows, target: Labels) -> tuple[Any, np.ndarray]:
    """Return rows that can be indexed, and their labels as an array."""
    source = open_source(rows)
    data: Any = rows if source is None else source.read("learning curves").to_pandas()
    if isinstance(data, Mapping) or (isinstance(data, list) and data and isinstance(data[0], Mapping)):
        import pandas as pd

        data = pd.DataFrame(dict(data) if isinstance(data, Mapping) else data)
    if hasattr(data, "tocsr"):
        data = data.tocsr()
    if is_name(target):
        import narwhals as nw

        frame = nw.from_native(data, eager_only=True)
        if target not in frame.columns:
            raise DataError.unknown_column([target], frame.columns)
        data = frame.drop(target).to_native()
        target = frame.get_column(target).to_numpy()
    n_rows = _num_samples(data)
    labels = np.asarray(check_target(only_column(target), n_rows))
    missing = missing_mask(labels)
    if missing.any():
        raise LabelError(
            f"the labels of {int(missing.sum()):,} rows are missing, the first that of row {int(missing.argmax())}; "
            "expected a label for every row, since each is held out once.\n    Leave these rows out."
        )
    if n_rows < _FOLDS:
        raise DataError(f"there are {n_rows} rows; expected at least {_FOLDS}, since a fifth of them is held out.")
    return data, labels.astype(str) if labels.dtype == object else labels


def _check_sizes(sizes: Sequence[int] | None, most: int, n_classes: int) -> np.ndarray:
    """Return the numbers of training rows, by default halved from the largest on; raise DataError if one is invalid."""
    if sizes is None:
        halved = []
        size = most
        while size >= max(10, 2 * n_classes):
            halved.append(size)
            size //= 2
        return np.array(halved[::-1] or [most], dtype=np.intp)
    expected = f"whole numbers from 1 to {most}, four fifths of the rows"
    requested = np.unique(read_numbers("sizes", sizes, expected))
    if not len(requested) or requested[0] < 1 or requested[-1] > most or (requested % 1).any():
        raise DataError.wrong_type("sizes", short_repr(sizes), expected)
    return requested.astype(np.intp)
