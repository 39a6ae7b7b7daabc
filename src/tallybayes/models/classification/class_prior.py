"""The class prior: p(class) before any feature is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import PriorError, short_repr
from tallybayes.families.estimates import read_estimate
from tallybayes.statistics.counts import Counts
from tallybayes.typing import ClassPrior


def log_class_prior(class_prior: ClassPrior, levels: tuple[Any, ...], counts: Counts, estimate: str) -> np.ndarray:
    """Return log p(class); −inf for a class with probability zero.

    Parameters
    ----------
    class_prior : {label: probability}, probabilities by level, "uniform", "frequency", Dirichlet or None
        "frequency": the relative class frequencies. None: estimated, as for any categorical column.
    levels : tuple of labels
    counts : Counts of shape (*given, classes)
        The rows of every class.
    estimate : str
        A Dirichlet prior gives the posterior mode under "map", and else the posterior mean. None uses a prior only if
        the estimate does.

    Returns
    -------
    ndarray of shape (*given, classes)
    """
    rows = counts.table
    how = read_estimate(estimate)
    if class_prior is None:
        class_prior = class_prior_distribution(None, estimate) if how.has_prior else "frequency"
    if isinstance(class_prior, str) and class_prior == "frequency":
        total = rows.sum(axis=-1, keepdims=True)
        weights = np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1 / max(len(levels), 1))
    elif isinstance(class_prior, str) and class_prior == "uniform":
        weights = np.full(len(levels), 1.0 / len(levels))
    elif isinstance(class_prior, Dirichlet):
        posterior = class_prior.update(counts)
        weights = posterior.mode_or_boundary() if how.takes_mode else posterior.mean()
    else:
        weights = _given(class_prior, levels)
    with np.errstate(divide="ignore"):
        return np.broadcast_to(np.log(weights), rows.shape).copy()


CLASS_PRIOR_WORDS = StringOptions(("uniform", "frequency"), ("probabilities by class", "a tb.Dirichlet", "None"))


def check_class_prior(class_prior: ClassPrior) -> None:
    """Raise PriorError if ``class_prior`` is invalid for any number of classes."""
    if class_prior is None or isinstance(class_prior, str | Dirichlet):
        return
    found = list(class_prior.values()) if isinstance(class_prior, Mapping) else class_prior
    try:
        weights = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        weights = np.array([np.nan])
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise PriorError(
            f"class_prior is {short_repr(class_prior)}; expected probabilities by class, 'uniform', 'frequency',\n"
            "    a tb.Dirichlet, or None to follow the estimate."
        )


def check_classes(class_prior: ClassPrior, levels: tuple[Any, ...]) -> None:
    """Raise PriorError if ``class_prior`` does not fit the classes."""
    if isinstance(class_prior, Dirichlet):
        class_prior.update(Counts(np.zeros(len(levels))))
    elif class_prior is not None and not isinstance(class_prior, str):
        _given(class_prior, levels)


def class_prior_distribution(class_prior: ClassPrior, estimate: str) -> Dirichlet | None:
    """Return the prior distribution of the class probabilities; None if the user has fixed them."""
    if class_prior is None:
        return Dirichlet(2.0 if read_estimate(estimate).takes_mode else 1.0)  # the default for categorical columns
    if isinstance(class_prior, str) and class_prior == "frequency":
        return Dirichlet(1.0)
    return class_prior if isinstance(class_prior, Dirichlet) else None


def _given(class_prior: ClassPrior, levels: tuple[Any, ...]) -> np.ndarray:
    if class_prior is not None and hasattr(class_prior, "items"):
        class_prior = dict(class_prior.items())
        missing = [level for level in levels if level not in class_prior]
        if missing:
            raise PriorError(f"class_prior has no probability for class {missing[0]!r}; expected one for each class.")
        absent = [label for label in class_prior if label not in levels and class_prior[label]]
        if absent:
            raise PriorError(
                f"class_prior has a probability for {absent[0]!r}, a class of which no row was seen; expected the "
                f"{len(levels)} classes there are.\n"
                f"    Leave it out, or declare it: partial_fit(X, y, classes=[..., {absent[0]!r}])."
            )
        weights = np.array([float(class_prior[level]) for level in levels])
    else:
        listed: Any = np.zeros(0) if isinstance(class_prior, str) else class_prior
        weights = np.asarray(listed, dtype=float) if np.ndim(listed) == 1 else np.zeros(0)
    if weights.shape != (len(levels),) or (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
        raise PriorError(
            f"class_prior is {class_prior!r}; expected probabilities for the {len(levels)} classes that sum to 1,\n"
            "    'uniform', 'frequency' for the class frequencies, a tb.Dirichlet, or None to follow the estimate."
        )
    return weights
