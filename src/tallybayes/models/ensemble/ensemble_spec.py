"""Specification of an ensemble: the selected members as frozen values without counts, stored in files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue, same
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.calibration.temperature_scaling import TemperatureScaling
from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
from tallybayes.models.ensemble.candidate_models import CandidateModel
from tallybayes.models.ensemble.feature_views import NumericBlock, RawColumns
from tallybayes.models.forest.count_boosting import CountBoosting
from tallybayes.models.forest.count_forest import CountForest
from tallybayes.models.forest.grown_trees import GrownTrees
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.tally.factor import Name

TREES = ("forest", "boosting")  # kinds of members that are not generative
_TREE_MODELS = (CountForest, CountBoosting)
_MODELS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (NaiveBayes, AveragedOneDependence, TreeAugmentedNaiveBayes, GaussianDiscriminant, *_TREE_MODELS)
}
_OF_PAIRS = {kind.__name__ for kind in (AveragedOneDependence, TreeAugmentedNaiveBayes)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureSpec(FrozenValue):
    """Temperature scaling with contamination: p = (1 − ε) · p^(1/T) / Z + ε · base rate.

    Parameters
    ----------
    temperature, contamination : float
    classes : tuple of labels
    base_rates : tuple of float, one per class
    """

    temperature: float
    contamination: float
    classes: tuple[Any, ...]
    base_rates: tuple[float, ...]

    def __post_init__(self) -> None:
        numbers = (self.temperature, self.contamination, *self.base_rates)
        if (
            not all(_is_number(number) for number in numbers)
            or self.temperature <= 0
            or not 0 <= self.contamination <= 1
        ):
            raise DataError(
                f"temperature is {self.temperature!r:.60} and contamination is {self.contamination!r:.60}; "
                "expected a positive number, and a number from 0 to 1."
            )
        one_each = len(self.base_rates) == len(self.classes) == len(set(self.classes)) > 0
        if not one_each or min(self.base_rates) < 0 or not math.isclose(sum(self.base_rates), 1.0, rel_tol=1e-6):
            raise DataError(
                f"base_rates is {self.base_rates!r:.60} for {len(self.classes)} classes; expected one probability per "
                "class, with sum 1."
            )

    @classmethod
    def of(cls, scaling: TemperatureScaling, classes: tuple[Any, ...]) -> Self:
        """Return the spec of a temperature scaling fitted to held-out rows."""
        return cls(
            1 / scaling.inverse_temperature, scaling.contamination, tuple(classes), tuple(scaling.base_rates.tolist())
        )

    def apply(self, log_proba: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
        """Return calibrated log p(class | row)."""
        return self.calibration(classes).apply(log_proba)

    def calibration(self, classes: tuple[Any, ...]) -> Calibration:
        """Return the calibration of classes. A later class gets the lowest base rate."""
        base_rate_of = dict(zip(self.classes, self.base_rates, strict=True))
        base = np.array([base_rate_of.get(label, min(self.base_rates)) for label in classes])
        return Calibration("temperature", 0.0, 0.0, 0.0, self.temperature, self.contamination, base / base.sum())


@dataclass(frozen=True, eq=False, repr=False)
class MemberSpec(FrozenValue):
    """One model of the ensemble: its view of rows, its class and parameters, its calibration and its weight.

    Parameters
    ----------
    kind, name : str
    view : RawColumns or NumericBlock
    model : str
        The name of the model class.
    parameters : mapping
        The constructor parameters, including families and bins.
    calibration : TemperatureSpec
    weight : float
        The exponent of the member's probabilities in the pool.
    trees : GrownTrees, optional
        The trees of a forest or of boosting. Files contain them with the counts.
    """

    kind: str
    name: str
    view: Any
    model: str
    parameters: Any
    calibration: TemperatureSpec
    weight: float
    trees: GrownTrees | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.view, RawColumns | NumericBlock) or not isinstance(self.calibration, TemperatureSpec):
            raise DataError.wrong_type(
                "a member's view", f"{self.view!r:.60}", "RawColumns or NumericBlock, with a TemperatureSpec"
            )
        if not isinstance(self.parameters, Mapping) or not _is_number(self.weight) or self.weight <= 0:
            raise DataError(f"a member's weight is {self.weight!r:.60}; expected a positive number.")
        if not isinstance(self.name, str) or not isinstance(self.kind, str) or self.model not in _MODELS:
            raise DataError(f"a member is a {self.model!r:.60}; expected one of {sorted(_MODELS)}.")

    @classmethod
    def of(cls, candidate: CandidateModel, weight: float, classes: tuple[Any, ...]) -> Self:
        """Return the spec of a candidate."""
        model = candidate.model
        defaults = type(model)().get_params(deep=False)
        parameters = {name: value for name, value in model.get_params(deep=False).items() if value != defaults[name]}
        calibration = TemperatureSpec.of(candidate.tempering, classes)
        trees = model.structure_ if isinstance(model, _TREE_MODELS) else None
        kind = type(model).__name__
        return cls(candidate.kind, candidate.name, candidate.view, kind, parameters, calibration, weight, trees)

    def with_trees_of(self, model: Any) -> Self:
        """Return the spec with the trees of a model from a file."""
        return self.replace(trees=model.structure_) if isinstance(model, _TREE_MODELS) else self

    def to_config(self) -> dict[str, Any]:
        """Return plain JSON, without the trees."""
        return super().to_config() | {"trees": None}

    def make(self) -> Any:
        """Return the unfitted model."""
        return _MODELS[self.model](**dict(self.parameters))

    def counts_as(self, other: MemberSpec) -> bool:
        """Return whether two members count the same pairs of columns."""
        pairs = {self.model, other.model} <= _OF_PAIRS
        return pairs and self.view == other.view and same(dict(self.parameters), dict(other.parameters))


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleSpec(FrozenValue):
    """The selection of `AutoClassifier`: its members and their weights.

    Parameters
    ----------
    members : tuple of MemberSpec
    """

    members: tuple[MemberSpec, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members or not all(isinstance(member, MemberSpec) for member in self.members):
            raise DataError.wrong_type("the members", f"{self.members!r:.60}", "one or more MemberSpec")
        if len({member.calibration.classes for member in self.members}) != 1:
            raise DataError("the calibrations of the members have different classes; expected the same.")

    def __repr__(self) -> str:
        shown = ", ".join(f"{member.weight:.2f} {member.name}" for member in self.members)
        return f"EnsembleSpec({shown})"


def fit_members(
    ensemble: EnsembleSpec, table: Table, target: Name, weight: np.ndarray | None, fitted: Mapping[str, Any]
) -> list[Any]:
    """Return the fitted models of the members; models with the same pairs of columns share the counts.

    Parameters
    ----------
    fitted : mapping
        Members that are fitted already, by name.
    """
    models: list[Any] = []
    for number, spec in enumerate(ensemble.members):
        alike = (n for n, earlier in enumerate(ensemble.members[:number]) if spec.counts_as(earlier))
        first = next(alike, None)
        if spec.name in fitted:
            models.append(fitted[spec.name])
        elif first is not None:
            models.append(spec.make()._copy_input_format(models[first])._set_tally(models[first].tally_))
        elif spec.trees is not None:
            models.append(spec.make().fit_to_trees(spec.trees, spec.view.apply(table, target), target, weight))
        else:
            models.append(spec.make().fit(spec.view.apply(table, target), target, weight))
    return models
