"""What classifiers and mixtures have learnt, as it is told of."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_prior import class_prior_distribution
from tallybayes.models.inspection.labeled_parameters import UNSEEN, LabeledFactor, within_of
from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.statistics.segments import Segments


def labeled_class_prior(model: Any) -> LabeledFactor:
    """p(class), as rows are scored by it."""
    shares, classes = np.exp(model.class_log_prior_), model.classes_.tolist()
    scored = FactorScorer(
        classifier_fit.class_factor(model), LevelProbabilities(shares, Segments([len(shares)])), False, NO_COLUMNS
    )
    belief = class_prior_distribution(model.class_prior, model.estimate) if hasattr(model, "class_prior") else None
    posterior = None if belief is None else lambda: belief.update(model.tally_[model._target])
    return LabeledFactor(scored, (), (), [classes], (group_name(model),), posterior=posterior)


def group_name(model: Any) -> Any:
    """What the groups are called: as the target is, unless nobody named them."""
    return "component" if getattr(model, "_group_word", None) == "components" else model._target


def labeled_factors(model: Any) -> list[LabeledFactor]:
    """p(class), and every factor given the class."""
    given, classes = (group_name(model),), (model.classes_.tolist(),)
    found = [labeled_class_prior(model)]
    fitted = model._scoring_factors
    for number, (scored, (_, counted)) in enumerate(zip(fitted.scorers_or_mle, fitted.pairs, strict=True)):
        more = (UNSEEN,) if fitted.with_unseen_level else ()
        levels = [(*domain.levels, *more) for domain in model._level_domains(scored)]
        within = within_of(model, scored, int(counted.n_columns))
        posterior = partial(fitted.posterior, number)
        found.append(LabeledFactor(scored, given, classes, levels, within=within, posterior=posterior))
    return found


def class_prior(model: Any) -> ParameterTable:
    """p(class): as given, or as the estimate makes it of the classes' rows."""
    return labeled_class_prior(model).column(0)
