"""A tally of no rows, for parameters that were stated and not counted; and both in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes.errors import EstimateError, FileError
from tallybayes.families._shared.blocks import Codes
from tallybayes.families._shared.fixed_parameters import check_parameters, parameter_arrays, parameter_names
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.tally.tally_io import axes_from_parts, axes_to_parts


def empty_tally(
    factors: Sequence[Factor], widths: Sequence[int], domains: Mapping[str, Domain], schema: Schema | None = None
) -> Tally:
    """The tally of no rows: its levels, and a 0 for everything there is to count.

    Parameters
    ----------
    factors : sequence of Factor
    widths : sequence of int
        How many columns of numbers each has; not used for labels.
    domains : mapping from name to Domain
    schema : Schema, optional
    """
    schema = Schema() if schema is None else schema
    statistics = []
    for factor, width in zip(factors, widths, strict=True):
        shape = given_shape(factor, domains, schema)
        block: Any = np.zeros((0, width))
        if factor.level_columns:
            sizes = np.array(level_sizes(factor, domains, schema), dtype=np.int64)
            block = Codes(np.zeros((0, len(sizes)), np.int8), sizes)
        nothing: Any = factor.family.collect(block, np.zeros(0, np.int64), math.prod(shape))
        statistics.append(nothing.reshape_groups(shape))
    return Tally(factors, statistics, domains, schema)


def given_shape(factor: Factor, domains: Mapping[str, Domain], schema: Schema) -> tuple[int, ...]:
    """How many levels each of the columns has that a factor depends on."""
    return tuple(len(domains[schema.domain(name)].levels) for name in factor.given)


def level_sizes(factor: Factor, domains: Mapping[str, Domain], schema: Schema, width: int = 1) -> list[int]:
    """How many levels, or bins, each of a factor's columns has."""
    if factor.level_columns:
        return [len(domains[schema.domain(name)].levels) for name in factor.level_columns]
    return [len(factor.family.bins)] * width


def stated_to_parts(tally: Tally, given: Sequence[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Stated parameters as JSON and named arrays; of the tally its factors and levels, for there is nothing in it."""
    manifest, arrays = axes_to_parts(tally)
    for number, (factor, parameters) in enumerate(zip(tally.factors, given, strict=True)):
        for name, part in parameter_arrays(factor.family, parameters).items():
            arrays[f"stated/{number}/{name}"] = part
    return manifest, arrays


def stated_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Tally, tuple[Any, ...]]:
    """What `stated_to_parts` told of, every part checked before anything is made of it."""
    factors, domains, schema = axes_from_parts(manifest, arrays)
    sealed_file.check_no_unknown_entries("the stated parameters", manifest)
    given, widths = [], []
    for number, factor in enumerate(factors):
        names = parameter_names(factor.family)
        if not names or any(f"stated/{number}/{name}" not in arrays for name in names):
            raise FileError(f"the parameters of {factor!r} are not all in the file.")
        numbers = {name: arrays.pop(f"stated/{number}/{name}") for name in names}
        unknown = [name for name in (*factor.given, *factor.level_columns) if schema.domain(name) not in domains]
        if unknown:
            raise FileError(f"the file has no levels of {unknown[0]!r}.")
        shape, found = given_shape(factor, domains, schema), numbers[names[0]].shape
        cells = found[-1] if found else 0
        width = cells if not factor.family.bins else cells // len(factor.family.bins)
        n_named = len(factor.columns) if len(factor.columns) > 1 else width
        line = factor.family.is_conditional
        width = n_named if line else width
        expected = (*shape, sum(level_sizes(factor, domains, schema, width)) if _falls(factor) else n_named - line)
        for name, array in numbers.items():
            size = (*expected, expected[-1]) if name == "covariance" else expected
            size = shape if line and name != "slope" else size
            if array.shape != size or array.dtype.kind not in "fiu":
                raise FileError(f"the {name} of {factor!r} has shape {array.shape}; expected {size}, of numbers.")
        try:
            sizes = level_sizes(factor, domains, schema, width)
            given.append(check_parameters(factor.family, numbers, sizes, repr(factor), as_they_are=True))
        except EstimateError as error:
            raise FileError(str(error)) from None
        widths.append(width)
    return empty_tally(factors, widths, domains, schema), tuple(given)


def _falls(factor: Factor) -> bool:
    """Whether a factor's columns fall into levels or bins."""
    return bool(factor.level_columns or factor.family.bins)
