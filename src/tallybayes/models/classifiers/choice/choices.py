"""Choices: what was chosen, as values that hold no counts. They are fixed when made, stored and shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.classifiers.answers.calibration import Calibration
from tallybayes.models.classifiers.choice.trials import Candidate
from tallybayes.models.classifiers.discriminant import GaussianDiscriminant
from tallybayes.models.classifiers.naive_bayes import NaiveBayes
from tallybayes.models.classifiers.one_dependence import AveragedOneDependence
from tallybayes.models.classifiers.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.value import Value

_MODELS: dict[str, Any] = {
    kind.__name__: kind for kind in (NaiveBayes, AveragedOneDependence, TreeAugmentedNaiveBayes, GaussianDiscriminant)
}


@dataclass(frozen=True, eq=False, repr=False)
class Mending(Value):
    """A temperature and a share of doubt: p = (1 − doubt) · p^(1/T) / Z + doubt · base.

    Parameters
    ----------
    temperature, doubt : float
    classes : tuple of labels
    base : tuple of float, one for every class
    """

    temperature: float
    doubt: float
    classes: tuple[Any, ...]
    base: tuple[float, ...]

    @classmethod
    def of(cls, calibration: Calibration, classes: tuple[Any, ...]) -> Self:
        """What a calibration by temperature has found."""
        base = tuple(calibration.base.tolist())
        return cls(float(calibration.temperature), float(calibration.doubt), tuple(classes), base)

    def apply(self, log_proba: np.ndarray, classes: tuple[Any, ...]) -> np.ndarray:
        """log p(class | row), mended; a class that came later is as improbable as the rarest, in doubt."""
        share = dict(zip(self.classes, self.base, strict=True))
        base = np.array([share.get(label, min(self.base)) for label in classes])
        how = Calibration("temperature", 0.0, 0.0, 0.0, self.temperature, self.doubt, base / base.sum())
        return how.apply(log_proba)


@dataclass(frozen=True, eq=False, repr=False)
class MemberChoice(Value):
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
    mending: Mending
    weight: float

    @classmethod
    def of(cls, candidate: Candidate, weight: float, classes: tuple[Any, ...]) -> Self:
        """What a candidate has chosen."""
        model = candidate.model
        defaults = type(model)().get_params(deep=False)
        given = model.get_params(deep=False)
        parameters = {name: value for name, value in given.items() if name != "columns" and value != defaults[name]}
        if hasattr(model, "columns_"):
            parameters["columns"] = dict(model.columns_)
        mending = Mending.of(candidate.calibration, classes)
        return cls(candidate.kind, candidate.name, candidate.view, type(model).__name__, parameters, mending, weight)

    def make(self) -> Any:
        """The model, not fitted yet."""
        if self.model not in _MODELS:
            raise DataError(f"a member is a {self.model!r:.60}; expected one of {sorted(_MODELS)}.")
        return _MODELS[self.model](**dict(self.parameters))


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Value):
    """What `choose` has chosen: its members, and how the probabilities of their mixture are mended.

    Parameters
    ----------
    members : tuple of MemberChoice
    mending : Mending
    """

    members: tuple[MemberChoice, ...]
    mending: Mending

    def __repr__(self) -> str:
        shown = ", ".join(f"{member.weight:.2f} {member.name}" for member in self.members)
        return f"Choice({shown})"
