"""Arguments of validations: candidates (sets of parameters to compare), models by name, and numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from tallybayes.errors import DataError
from tallybayes.models.base import Model
from tallybayes.typing import Candidates, EstimatorLike


def named_models(models: EstimatorLike | Mapping[str, EstimatorLike]) -> dict[str, Any]:
    """Return models by name; a single one is named after its class."""
    named = models if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise DataError("models is empty; expected at least one model.")
    return {str(name): model for name, model in named.items()}


def listed(candidates: Candidates | None) -> list[dict[str, Any]]:
    """Return the parameters of every candidate.

    A mapping from parameters to values stands for all combinations; None is one candidate without changes.
    """
    if candidates is None:
        return [{}]
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
                raise DataError.wrong_type(f"candidates[{name!r}]", repr(values), "a list of values")
        combinations = itertools.product(*candidates.values())
        candidates = [dict(zip(candidates, values, strict=True)) for values in combinations]
    parameters = [dict(each) for each in candidates]
    if not parameters:
        raise DataError.wrong_type("candidates", "none", "at least one set of parameters")
    return parameters


def candidate_models(model: EstimatorLike, candidates: Candidates | None) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return an unfitted model for every candidate, and its parameters; without candidates, the model itself."""
    parameters = listed(candidates)
    return [clone(model).set_params(**each) if each else model for each in parameters], parameters


def reestimated_models(model: Model, candidates: Candidates | None) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return a model of the same counts for every candidate, and its parameters; without candidates, the model."""
    parameters = listed(candidates)
    return [model.reestimate(**each) if each else model for each in parameters], parameters
