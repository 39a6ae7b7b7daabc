"""Choices: what was chosen, as values that hold no counts. They are fixed when made, stored and shown."""

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
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.tally.factor import Name

_MODELS: dict[str, Any] = {
    kind.__name__: kind for kind in (NaiveBayes, AveragedOneDependence, TreeAugmentedNaiveBayes, GaussianDiscriminant)
}
_OF_PAIRS = {kind.__name__ for kind in (AveragedOneDependence, TreeAugmentedNaiveBayes)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureSpec(FrozenValue):
    """A temperature and a share of doubt: p = (1 − doubt) · p^(1/T) / Z + doubt · base.

    Parameters
    ----------
    temperature, doubt : float
    classes : tuple of labels
    base : tuple of float, one for every class
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
                f"a temperature of {self.temperature!r:.60} with a doubt of {self.contamination!r:.60} mends no probabilities; "
                "expected a positive number, and one from 0 to 1."
            )
        one_each = len(self.base_rates) == len(self.classes) == len(set(self.classes)) > 0
        if not one_each or min(self.base_rates) < 0 or not math.isclose(sum(self.base_rates), 1.0, rel_tol=1e-6):
            raise DataError(
                f"{len(self.base_rates)} shares, {self.base_rates!r:.60}, for {len(self.classes)} classes; expected one for each, "
                "which sum to 1."
            )

    @classmethod
    def of(cls, found: TemperatureScaling, classes: tuple[Any, ...]) -> Self:
        """What was found from rows that were held out."""
        return cls(1 / found.inverse_temperature, found.contamination, tuple(classes), tuple(found.base_rates.tolist()))

    def apply(self, log_proba: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
        """log p(class | row), mended; a class that came later is as improbable as the rarest, in doubt."""
        share = dict(zip(self.classes, self.base_rates, strict=True))
        base = np.array([share.get(label, min(self.base_rates)) for label in classes])
        how = Calibration("temperature", 0.0, 0.0, 0.0, self.temperature, self.contamination, base / base.sum())
        return how.apply(log_proba)


@dataclass(frozen=True, eq=False, repr=False)
class MemberSpec(FrozenValue):
    """One model of a mixture: how it reads rows, what it is, how its probabilities are mended, and its weight.

    Parameters
    ----------
    kind, name : str
    view : AsTheyAre or AsNumbers
    model : str
        The name of its class.
    parameters : mapping
        What it is made with, families and bins of its columns included.
    mending : Mending
    weight : float
    """

    kind: str
    name: str
    view: Any
    model: str
    parameters: Any
    mending: TemperatureSpec
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.view, RawColumns | NumericBlock) or not isinstance(self.mending, TemperatureSpec):
            raise DataError.wrong_type(
                "a member's view", f"{self.view!r:.60}", "AsTheyAre or AsNumbers, with a Mending"
            )
        if not isinstance(self.parameters, Mapping) or not _is_number(self.weight) or not 0 < self.weight <= 1:
            raise DataError(f"a member's weight is {self.weight!r:.60}; expected more than 0 and at most 1.")
        if not isinstance(self.name, str) or not isinstance(self.kind, str) or self.model not in _MODELS:
            raise DataError(f"a member is a {self.model!r:.60}; expected one of {sorted(_MODELS)}.")

    @classmethod
    def of(cls, candidate: CandidateModel, weight: float, classes: tuple[Any, ...]) -> Self:
        """What a candidate has chosen."""
        model = candidate.model
        defaults = type(model)().get_params(deep=False)
        parameters = {name: value for name, value in model.get_params(deep=False).items() if value != defaults[name]}
        mending = TemperatureSpec.of(candidate.tempering, classes)
        return cls(candidate.kind, candidate.name, candidate.view, type(model).__name__, parameters, mending, weight)

    def make(self) -> Any:
        """The model, not fitted yet."""
        return _MODELS[self.model](**dict(self.parameters))

    def counts_as(self, other: MemberSpec) -> bool:
        """Whether both count the same pairs of columns."""
        pairs = {self.model, other.model} <= _OF_PAIRS
        return pairs and self.view == other.view and same(dict(self.parameters), dict(other.parameters))


@dataclass(frozen=True, eq=False, repr=False)
class EnsembleSpec(FrozenValue):
    """What `AutoClassifier` has chosen: its members, and how the probabilities of their mixture are mended.

    Parameters
    ----------
    members : tuple of MemberChoice
    mending : Mending
    """

    members: tuple[MemberSpec, ...]
    mending: TemperatureSpec

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members or not all(isinstance(one, MemberSpec) for one in self.members):
            raise DataError.wrong_type("the members", f"{self.members!r:.60}", "one MemberChoice or more")
        total = math.fsum(one.weight for one in self.members)
        if not math.isclose(total, 1.0, rel_tol=1e-6):
            raise DataError(f"the weights of the members sum to {total:.6g}; expected 1.")
        if not isinstance(self.mending, TemperatureSpec) or {one.mending.classes for one in self.members} != {
            self.mending.classes
        }:
            raise DataError("the members are mended for other classes than their mixture; expected the same.")

    def __repr__(self) -> str:
        shown = ", ".join(f"{member.weight:.2f} {member.name}" for member in self.members)
        return f"Choice({shown})"


def fit_members(choice: EnsembleSpec, table: Table, target: Name, weight: np.ndarray | None) -> list[Any]:
    """The models of the members, fitted; those that count the same pairs of columns count them once."""
    found: list[Any] = []
    for number, one in enumerate(choice.members):
        alike = (n for n, its in enumerate(choice.members[:number]) if one.counts_as(its))
        first = next(alike, None)
        if first is None:
            found.append(one.make().fit(one.view.apply(table, target), target, weight))
        else:
            found.append(one.make()._copy_input_format(found[first])._set_tally(found[first].tally_))
    return found
