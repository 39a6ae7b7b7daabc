"""EstimatedDiscriminant: the estimated means and covariances of a Gaussian discriminant, and its linear functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import NoCountsError
from tallybayes.estimation.estimated_factors import Pair
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.family import Family
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
from tallybayes.models.discriminant.shrinkage import shrunk
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor


class ClassMoments(NamedTuple):
    """The weight and mean of every class, and the pooled covariance within classes."""

    weight: np.ndarray
    mean: np.ndarray
    within: np.ndarray

    @property
    def center(self) -> np.ndarray:
        """The overall mean."""
        return np.asarray(self.weight @ self.mean / self.weight.sum())


@dataclass(frozen=True, eq=False)
class EstimatedDiscriminant(EstimatedClassifier):
    """Estimated class prior, means and covariances.

    Attributes
    ----------
    family : Family
        The family of the parameter ``covariance``.
    shrinkage : float, "auto" or None
    """

    family: Family
    shrinkage: float | str | None

    @property
    def rows_are_independent(self) -> bool:
        """Whether every row contributes separately to the statistics that score rows: not under shrinkage."""
        return self.shrinkage is None

    @property
    def is_tied(self) -> bool:
        """Whether all classes share the covariance."""
        return "groups" in self.family.tied_over

    @property
    def moments(self) -> Moments:
        """The moments of every class, as counted."""
        moments = self.counted.statistics[1]
        assert isinstance(moments, Moments)
        return moments

    @cached_property
    def feature_factors(self) -> list[Pair]:
        """The factor in the family of `covariance`, with its scatter shrunk."""
        counted = self.counted.factors[1]
        moments = self.moments
        if self.shrinkage is not None:
            moments = shrunk(moments, self.shrinkage, tied=self.is_tied)
        return [(Factor(counted.columns, counted.given, self.family), moments)]

    @property
    def fixed_feature_parameters(self) -> list[Any]:
        """The fixed means and covariances, restricted to the family of `covariance` as by maximum likelihood."""
        mean, matrices = super().fixed_feature_parameters[0]
        weight = self.class_weights[:, None, None]
        if self.is_tied:
            matrices = np.broadcast_to((weight * matrices).sum(axis=0), matrices.shape)
        if isinstance(self.shrinkage, str):
            raise NoCountsError(
                f"shrinkage='auto' needs counts, and the parameters of this {self.model} are user-specified.\n"
                "    Use fit with training rows; or pass strength= to use the parameters as a prior of that many rows."
            )
        if self.shrinkage is not None:
            matrices = matrices * (1 - self.shrinkage * (1 - np.eye(matrices.shape[-1])))
        variance = np.diagonal(matrices, axis1=-2, axis2=-1)
        if "columns" in self.family.tied_over:
            variance = np.broadcast_to(variance.mean(axis=-1, keepdims=True), variance.shape)
        numbers = {"mean": mean, "covariance": matrices, "variance": variance}
        return [check_parameters(self.family, numbers, [], "the model")]

    @cached_property
    def class_moments(self) -> ClassMoments:
        """The weights and means of the classes, and the pooled covariance within classes."""
        weight = self.class_weights
        if self.fixed_parameters is not None:
            mean, matrices = super().fixed_feature_parameters[0]
            return ClassMoments(weight, mean, (weight[:, None, None] * matrices).sum(axis=0))
        moments = self.moments
        weight = moments.weight[..., 0]
        degrees_of_freedom = max(weight.sum() - (weight > 0).sum(), 1.0)
        return ClassMoments(weight, moments.mean, moments.scatter.sum(axis=0) / degrees_of_freedom)

    @cached_property
    def scalings(self) -> np.ndarray:
        """The discriminant directions (Fisher 1936), shape (columns, n), which whiten the pooled covariance."""
        weight, mean, within = self.class_moments
        n_classes = int((weight > 0).sum())
        if not n_classes:
            return np.empty((len(within), 0))
        std = np.sqrt(np.diagonal(within))
        std = np.where(std > 0, std, 1.0)
        values, vectors = np.linalg.eigh(within / np.outer(std, std))
        nonzero = values > 1e-12 * values.max(initial=0.0)
        white = vectors[:, nonzero] / np.sqrt(values[nonzero]) / std[:, None]
        between = np.sqrt(weight)[:, None] * (mean - self.class_moments.center) @ white
        _, sizes, rotation = np.linalg.svd(between, full_matrices=False)
        n_directions = min(n_classes - 1, int((sizes > 1e-10 * sizes.max(initial=0.0)).sum())) if sizes.size else 0
        return white @ rotation[:n_directions].T

    @cached_property
    def centered_terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Coefficients (columns, classes), biases and a center of scores that are linear in the rows.

        The center is None if the means are small relative to the standard deviations, so that centering is
        unnecessary.
        """
        scored = self.scorers[0]
        mean = np.array(scored.parameters.mean, dtype=float)
        center = np.nanmean(mean, axis=0)
        difference = mean - center
        difference[:, scored.constant] = 0.0
        coef = np.linalg.solve(np.asarray(scored.parameters.covariance)[0], difference.T)
        coef[scored.constant] = 0.0
        bias = self.class_log_prior - 0.5 * (coef * difference.T).sum(axis=0)
        std = np.sqrt(np.diagonal(np.asarray(scored.parameters.covariance)[0]))
        if (np.abs(center) < 1000 * std).all():
            return coef, bias - center @ coef, None
        return coef, bias, center
