"""Labeled factors and the class prior of classifiers and mixtures, for display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.models.inspection.labeled_parameters import UNSEEN, LabeledFactor
from tallybayes.statistics.counts import Segments
from tallybayes.tally.factor import Factor, Name

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier


def labeled_class_prior(
    name: Name, labels: Sequence[Any], log_prior: np.ndarray, posterior: Callable[[], Any] | None = None
) -> LabeledFactor:
    """Return p(class), as used for scoring, as a labeled factor.

    Parameters
    ----------
    name : name
        The name of the class variable.
    labels : sequence of labels
    log_prior : ndarray of shape (classes,)
    posterior : callable, optional
        Returns the posterior distribution of the class probabilities.
    """
    probabilities = LevelProbabilities(np.exp(log_prior), Segments([len(log_prior)]))
    scorer = FactorScorer(Factor(name, (), Categorical()), probabilities, False, NO_COLUMNS)
    return LabeledFactor(scorer, (), (), [labels], posterior=posterior)


def labeled_factors(estimates: EstimatedClassifier) -> list[LabeledFactor]:
    """Return every factor given the class, labeled."""
    factors = estimates.scoring_factors
    more = (UNSEEN,) if factors.with_unseen_level else ()
    names = estimates.names
    return [
        LabeledFactor(
            scorer,
            (estimates.group_name,),
            (estimates.labels.tolist(),),
            [(*domain.levels, *more) for domain in estimates.level_domains(scorer)],
            within=names.of_block(scorer.factor.columns, int(statistics.n_columns)),
            posterior=partial(factors.posterior, number),
        )
        for number, (scorer, (_, statistics)) in enumerate(zip(factors.scorers_or_mle, factors.pairs, strict=True))
    ]
