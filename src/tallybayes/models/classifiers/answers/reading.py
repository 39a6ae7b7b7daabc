"""What classifiers and mixtures have learnt, as it is told of."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tallybayes.beliefs.normal_inverse_gamma import Normal
from tallybayes.beliefs.normal_inverse_wishart import MultivariateNormal
from tallybayes.errors import EstimateError
from tallybayes.families.categorical import Probabilities
from tallybayes.memory import require_memory
from tallybayes.models.classifiers import learning
from tallybayes.models.classifiers.class_prior import class_belief
from tallybayes.models.fitted.parameter_table import ParameterTable
from tallybayes.models.fitted.reading import UNSEEN, Told, within_of
from tallybayes.models.fitted.scoring import NOTHING, Scored
from tallybayes.statistics.segments import Segments


def told_class(model: Any) -> Told:
    """p(class), as rows are scored by it."""
    shares, classes = np.exp(model.class_log_prior_), model.classes_.tolist()
    scored = Scored(learning.class_factor(model), Probabilities(shares, Segments([len(shares)])), False, NOTHING)
    belief = class_belief(model.class_prior, model.estimate) if hasattr(model, "class_prior") else None
    posterior = None if belief is None else lambda: belief.update(model.tally_[model._target])
    return Told(scored, (), (), [classes], (group_name(model),), posterior=posterior)


def group_name(model: Any) -> Any:
    """What the groups are called: as the target is, unless nobody named them."""
    return "component" if getattr(model, "_groups", None) == "components" else model._target


def told(model: Any) -> list[Told]:
    """p(class), and every factor given the class."""
    given, classes = (group_name(model),), (model.classes_.tolist(),)
    found = [told_class(model)]
    fitted = model._fitted
    for number, (scored, (_, counted)) in enumerate(zip(fitted.readable, fitted.pairs, strict=True)):
        more = (UNSEEN,) if fitted.smooth else ()
        levels = [(*domain.levels, *more) for domain in model._level_domains(scored)]
        within = within_of(model, scored, int(counted.n_columns))
        posterior = partial(fitted.posterior, number)
        found.append(Told(scored, given, classes, levels, within=within, posterior=posterior))
    return found


def class_prior(model: Any) -> ParameterTable:
    """p(class): as given, or as the estimate makes it of the classes' rows."""
    return told_class(model).column(0)


class _Measured(NamedTuple):
    """A factor of Gaussian columns: where they stand among all of them, their means and their spread."""

    places: np.ndarray
    mean: np.ndarray
    spread: np.ndarray  # variances (classes, columns), or covariances (classes, columns, columns)


def _measured(model: Any, what: str) -> list[_Measured]:
    """The factors of Gaussian columns, which are numbered as X has them."""
    parts = [one for one in model._told()[1:] if not one.family.transforms]
    parts = [one for one in parts if isinstance(one.point, Normal | MultivariateNormal)]
    names = [(name, place) for one in parts for name in one.columns for place in range(max(len(one.within), 1))]
    if not names:
        raise EstimateError(
            f"this {type(model).__name__} has no {what}: none of its columns is Gaussian.\n"
            "    parameters_ tells of every column in the words of its family."
        )
    order = {name: place for place, name in enumerate(getattr(model, "feature_names_in_", ()))}
    in_x = sorted(range(len(names)), key=lambda k: (order.get(names[k][0], _number(names[k][0])), names[k][1]))
    rank, found, start = np.argsort(in_x), [], 0
    for one in parts:
        mean, spread = (np.asarray(part, dtype=float) for part in one.point)
        width = mean.shape[-1]
        spread = np.broadcast_to(spread, (*mean.shape, width) if spread.ndim > mean.ndim else mean.shape)
        found.append(_Measured(rank[start : start + width], mean, spread))
        start += width
    return found


def _number(name: Any) -> int:
    return name if isinstance(name, int) else 0


def means(model: Any) -> np.ndarray:
    """The means of all Gaussian columns in every class, shape (classes, columns), columns in the order of X."""
    found = _measured(model, "means_")
    out = np.empty((len(found[0].mean), sum(len(one.places) for one in found)))
    for one in found:
        out[:, one.places] = one.mean
    return out


def covariances(model: Any) -> np.ndarray:
    """The covariances of all Gaussian columns in every class, shape (classes, columns, columns), as for ``means_``.

    Under the estimate, ``covariance=`` and ``shrinkage=`` in use; under ``"bayes"`` posterior means. What the model
    takes to be independent has covariance 0; a shared covariance is there once for every class.
    """
    found = _measured(model, "covariances_")
    n_classes, d = len(found[0].mean), sum(len(one.places) for one in found)
    what = f"covariances_ of {d} columns in {n_classes} classes"
    require_memory(8 * n_classes * d * d, what, "parameters_ has the variances alone.")
    out = np.zeros((n_classes, d, d))
    for one in found:
        if one.spread.ndim == 2:
            out[:, one.places, one.places] = one.spread
        else:
            out[:, one.places[:, None], one.places] = one.spread
    return out
