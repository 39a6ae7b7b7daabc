"""Candidates: sets of parameters that are tried beside each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from tallybayes.errors import DataError


def listed(candidates: Any) -> list[dict[str, Any]]:
    """The parameters of every candidate: of a mapping from parameters to values all combinations; of None, no other."""
    if candidates is None:
        return [{}]
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
                raise DataError.wrong_type(f"candidates[{name!r}]", repr(values), "a list of values")
        combinations = itertools.product(*candidates.values())
        candidates = [dict(zip(candidates, values, strict=True)) for values in combinations]
    found = [dict(parameters) for parameters in candidates]
    if not found:
        raise DataError.wrong_type("candidates", "none", "at least one set of parameters")
    return found


def models_of(model: Any, candidates: Any, *, again: bool = True) -> tuple[list[Any], list[dict[str, Any]]]:
    """The candidates, still to be fitted or of the same counts, and the parameters of each."""
    if candidates is None:
        return [model], [{}]
    found = listed(candidates)
    return [clone(model).set_params(**p) if again else model.reestimate(**p) for p in found], found
