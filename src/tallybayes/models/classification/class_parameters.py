"""Labeled factors and the class prior of classifiers and mixtures, for display."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_prior import class_prior_distribution
from tallybayes.models.inspection.labeled_parameters import UNSEEN, LabeledFactor, within_of
from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.statistics.segments import Segments

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean


def labeled_class_prior(model: ClassConditionalModel | NearestClassMean) -> LabeledFactor:
    """Return p(class), as used for scoring, as a labeled factor."""
    probabilities = np.exp(model.class_log_prior_)
    classes = model.classes_.tolist()
    scored = FactorScorer(
        classifier_fit.class_factor(model),
        LevelProbabilities(probabilities, Segments([len(probabilities)])),
        False,
        NO_COLUMNS,
    )
    prior = class_prior_distribution(model.class_prior, model.estimate) if hasattr(model, "class_prior") else None
    counts: Any = model.tally_[model._target]
    posterior = None if prior is None else lambda: prior.update(counts)
    return LabeledFactor(scored, (), (), [classes], (group_name(model),), posterior=posterior)


def group_name(model: ClassConditionalModel | NearestClassMean) -> Any:
    """Return the name of the groups: the name of the target, or "component"."""
    return "component" if getattr(model, "_group_word", None) == "components" else model._target


def labeled_factors(model: ClassConditionalModel) -> list[LabeledFactor]:
    """Return p(class) and every factor given the class, labeled."""
    given = (group_name(model),)
    classes = (model.classes_.tolist(),)
    found = [labeled_class_prior(model)]
    fitted = model._scoring_factors
    for number, (scored, (_, counted)) in enumerate(zip(fitted.scorers_or_mle, fitted.pairs, strict=True)):
        more = (UNSEEN,) if fitted.with_unseen_level else ()
        levels = [(*domain.levels, *more) for domain in model._level_domains(scored)]
        within = within_of(model, scored, int(counted.n_columns))
        posterior = partial(fitted.posterior, number)
        found.append(LabeledFactor(scored, given, classes, levels, within=within, posterior=posterior))
    return found


def class_prior(model: ClassConditionalModel | NearestClassMean) -> ParameterTable:
    """Return p(class): the fixed probabilities, or their estimate."""
    return labeled_class_prior(model).column(0)
