"""What classifiers and mixtures have learnt, as it is told of."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tallybayes.families.categorical import Probabilities
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
