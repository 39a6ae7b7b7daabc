"""Tallies of no rows, for models with fixed (user-specified) parameters, and their file format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes.errors import EstimateError, FileError
from tallybayes.families._shared.blocks import Codes
from tallybayes.families._shared.fixed_parameters import check_parameters, parameter_arrays, parameter_names
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.tally_io import axes_from_parts, axes_to_parts


def empty_tally(
    factors: Sequence[Factor], widths: Sequence[int], domains: Mapping[str, Domain], schema: Schema | None = None
) -> Tally:
    """Return a tally of no rows: all statistics are 0.

    Parameters
    ----------
    factors : sequence of Factor
    factors : sequence of Factor
        The factors p(columns | given).
    widths : sequence of int
        Number of columns of every factor; ignored for categorical columns.
    domains : mapping from name to Domain
        The levels of every categorical column.
    schema : Schema, optional
        Which columns share a domain.
    """
    schema = Schema() if schema is None else schema
    statistics = []
    for factor, width in zip(factors, widths, strict=True):
        shape = given_shape(factor, domains, schema)
        block: Any = np.zeros((0, width))
        if factor.level_columns:
            sizes = np.array(level_sizes(factor, domains, schema), dtype=np.int64)
            block = Codes(np.zeros((0, len(sizes)), np.int8), sizes)
        empty: Any = factor.family.collect(block, np.zeros(0, np.int64), math.prod(shape))
        statistics.append(empty.reshape_groups(shape))
    return Tally(factors, statistics, domains, schema)


def given_shape(factor: Factor, domains: Mapping[str, Domain], schema: Schema) -> tuple[int, ...]:
    """Return the numbers of levels of the conditioning columns of a factor."""
    return tuple(len(domains[schema.domain(name)].levels) for name in factor.given)


def level_sizes(factor: Factor, domains: Mapping[str, Domain], schema: Schema, width: int = 1) -> list[int]:
    """Return the number of levels, or bins, of every column of a factor."""
    if factor.level_columns:
        return [len(domains[schema.domain(name)].levels) for name in factor.level_columns]
    return [len(factor.family.bins)] * width


def fixed_parameters_to_parts(tally: Tally, given: Sequence[Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return fixed parameters, factors and levels as plain JSON and named arrays; the tally has no rows."""
    manifest, arrays = axes_to_parts(tally)
    for number, (factor, parameters) in enumerate(zip(tally.factors, given, strict=True)):
        for name, part in parameter_arrays(factor.family, parameters).items():
            arrays[f"stated/{number}/{name}"] = part
    return manifest, arrays


def fixed_parameters_from_parts(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[Tally, tuple[Any, ...]]:
    """Read parameters written by `fixed_parameters_to_parts`, with every part validated before use."""
    factors, domains, schema = axes_from_parts(manifest, arrays)
    sealed_file.check_no_unknown_entries("the stated parameters", manifest)
    given = []
    widths = []
    for number, factor in enumerate(factors):
        names = parameter_names(factor.family)
        if not names or any(f"stated/{number}/{name}" not in arrays for name in names):
            raise FileError(f"the parameters of {factor!r} are not all in the file.")
        parameters = {name: arrays.pop(f"stated/{number}/{name}") for name in names}
        unknown = [name for name in (*factor.given, *factor.level_columns) if schema.domain(name) not in domains]
        if unknown:
            raise FileError(f"the file has no levels of {unknown[0]!r}.")
        width = _width(factor, parameters[names[0]].shape)
        has_levels = bool(factor.level_columns or factor.family.bins)
        n_cells = sum(level_sizes(factor, domains, schema, width)) if has_levels else None
        _check_shapes(factor, parameters, given_shape(factor, domains, schema), n_cells, width)
        try:
            sizes = level_sizes(factor, domains, schema, width)
            given.append(check_parameters(factor.family, parameters, sizes, repr(factor), as_they_are=True))
        except EstimateError as error:
            raise FileError(str(error)) from None
        widths.append(width)
    return empty_tally(factors, widths, domains, schema), tuple(given)


def _width(factor: Factor, shape: tuple[int, ...]) -> int:
    """Return the number of columns of a factor whose first parameter has this shape."""
    cells = shape[-1] if shape else 0
    width = cells if not factor.family.bins else cells // len(factor.family.bins)
    return len(factor.columns) if factor.family.is_conditional and len(factor.columns) > 1 else width


def _check_shapes(
    factor: Factor, parameters: Mapping[str, np.ndarray], groups: tuple[int, ...], n_cells: int | None, width: int
) -> None:
    """Raise FileError unless every parameter is numeric and has the shape that levels (or columns) require."""
    conditional = factor.family.is_conditional
    n_columns = len(factor.columns) if len(factor.columns) > 1 else width
    expected = (*groups, n_columns - conditional if n_cells is None else n_cells)
    for name, array in parameters.items():
        shape = (*expected, expected[-1]) if name == "covariance" else expected
        shape = groups if conditional and name != "slope" else shape
        if array.shape != shape or array.dtype.kind not in "fiu":
            raise FileError(f"the {name} of {factor!r} has shape {array.shape}; expected {shape}, of numbers.")
