"""Tallies in files with checksums: a JSON manifest and named arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import from_config
from tallybayes.errors import FileError
from tallybayes.families._shared.blocks import Codes
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Strings, Vocabulary

Expected = TypeVar("Expected")

_MAX_EMPTY = 10_000_000  # largest number of elements per group in an array without groups


def save_tally(tally: Tally, path: str | PathLike[str]) -> None:
    """Write a tally to a file."""
    sealed_file.write(path, "Tally", *tally_to_parts(tally))


def tally_to_parts(tally: Tally) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a tally as plain JSON and named arrays, for its own file or as part of a model's file."""
    manifest, arrays = axes_to_parts(tally)
    statistics = []
    for number, statistic in enumerate(tally.statistics):
        prefix = f"statistics/{number}"
        statistics.append(type(statistic).__name__)
        if isinstance(statistic, Counts):
            arrays[f"{prefix}/sizes"] = statistic.segments.sizes
        if isinstance(statistic, Moments):
            arrays[f"{prefix}/anchor"] = statistic.anchor
        for name, part in statistic.arrays().items():
            if isinstance(part, DoubleDouble):
                arrays[f"{prefix}/{name}.high"], arrays[f"{prefix}/{name}.low"] = part.high, part.low
            else:
                arrays[f"{prefix}/{name}"] = part
    return manifest | {"statistics": statistics, "soft": tally.soft}, arrays


def axes_to_parts(tally: Tally) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the factors and levels of a tally, without its statistics, as plain JSON and named arrays."""
    arrays: dict[str, np.ndarray] = {}
    domains = []
    for number, (key, domain) in enumerate(tally.domains.items()):
        prefix = f"domain/{number}"
        kind = domain.kind
        levels = [level for level in domain.levels if level is not None] if domain.has_missing_level else domain.levels
        if isinstance(domain, Vocabulary):
            kind = "words"
            arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = domain.levels.data, domain.levels.offsets
        elif kind == "string":
            arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = sealed_file.pack_strings(list(levels))
        else:
            arrays[f"{prefix}/levels"] = _pack_levels(levels, kind)
        if domain.declared - {None}:
            arrays[f"{prefix}/declared"] = np.array([level in domain.declared for level in levels], dtype=bool)
        missing = {"missing_level": domain.index[None]} if domain.has_missing_level else {}
        domains.append({"key": key, "name": domain.name, "kind": kind, "is_sorted": domain.is_sorted, **missing})
    factors = [factor.to_config() for factor in tally.factors]
    return {"factors": factors, "schema": tally.schema.to_config(), "domains": domains}, arrays


def _pack_levels(levels: Sequence[Any], kind: str | None) -> np.ndarray:
    """Return integer or boolean levels as an array."""
    if kind == "bool":
        return np.array(levels, dtype=bool)
    return np.array(levels, dtype=np.int64 if max(levels, default=0) < 2**63 else np.uint64)


@sealed_file.register("Tally")
def load_tally(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tally:
    """Read the tally from a file that contains nothing else."""
    tally = tally_from_parts(manifest, arrays)
    sealed_file.check_no_unknown_entries("the file", arrays)
    return tally


def tally_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tally:
    """Read a tally written by `tally_to_parts`; validate every part and remove it from manifest and arrays."""
    factors, domains, schema = axes_from_parts(manifest, arrays)
    kinds = _checked(manifest.pop("statistics"), list)
    statistics = [_statistic(kind, f"statistics/{number}", arrays) for number, kind in enumerate(kinds)]
    soft = _checked(manifest.pop("soft"), bool)
    sealed_file.check_no_unknown_entries("the tally", manifest)
    tally = Tally(factors, statistics, domains, schema, soft=soft)
    for factor, statistic in zip(tally.factors, tally.statistics, strict=True):
        _check_statistic(factor, statistic)
        for name in (*factor.given, *factor.level_columns, *factor.word_columns):
            if isinstance(domains[schema.domain(name)], Vocabulary) is not (name in factor.word_columns):
                raise FileError(f"the domain of {name!r} is not of the kind that {factor!r} requires.")
    return tally


def axes_from_parts(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[list[Factor], dict[str, Domain], Schema]:
    """Read factors and levels written by `axes_to_parts`; validate them and remove them from manifest and arrays."""
    domains = {}
    for number, config in enumerate(_checked(manifest.pop("domains"), list)):
        key = _checked(config.pop("key"), str)
        domains[key] = _domain(config, f"domain/{number}", arrays)
    factors = [_checked(from_config(config), Factor) for config in manifest.pop("factors")]
    return factors, domains, _checked(from_config(manifest.pop("schema")), Schema)


def _domain(config: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> Domain:
    """Read one domain."""
    kind = config.pop("kind")
    name = _checked(config.pop("name"), str)
    is_sorted = _checked(config.pop("is_sorted"), bool)
    missing_position = config.pop("missing_level", None)
    sealed_file.check_no_unknown_entries(prefix, config)
    if kind == "words":
        return _vocabulary(name, prefix, arrays)
    plain = kind == "int" and missing_position is None and f"{prefix}/declared" not in arrays
    if plain and arrays[f"{prefix}/levels"].dtype.kind in "iu":
        domain = Domain.of_integers(_listed(f"{prefix}/levels", arrays), name, is_sorted=is_sorted)
        if domain.kind == kind:
            return domain
        raise FileError(f"{prefix} has no levels; expected some of kind 'int'.")
    levels: Sequence[Any]
    if kind == "string":
        levels = sealed_file.unpack_strings(arrays.pop(f"{prefix}/text"), arrays.pop(f"{prefix}/offsets"))
    else:
        levels = _listed(f"{prefix}/levels", arrays)
    marks = _listed(f"{prefix}/declared", arrays) if f"{prefix}/declared" in arrays else [False] * len(levels)
    if len(marks) != len(levels) or not set(map(type, marks)) <= {bool}:
        raise FileError(f"{prefix}/declared has {len(marks)} marks; expected True or False for {len(levels)} levels.")
    declared = list(compress(levels, marks))
    has_missing_level = missing_position is not None
    if has_missing_level:
        position = _check_position(missing_position, len(levels), prefix)
        levels = [*levels[:position], None, *levels[position:]]
    domain = Domain(levels, name, declared=declared, is_sorted=is_sorted, has_missing_level=has_missing_level)
    if domain.kind != kind:
        raise FileError(f"{prefix} has levels of kind {domain.kind}; expected {kind!r}.")
    return domain


def _check_position(position: object, n_levels: int, prefix: str) -> int:
    """Return the position of the missing level after validation."""
    if type(position) is not int or not 0 <= position <= n_levels:
        raise FileError(f"{prefix} has the missing level at position {position!r:.60}; expected 0 to {n_levels}.")
    return position


def _vocabulary(name: str, prefix: str, arrays: dict[str, np.ndarray]) -> Vocabulary:
    """Read the words of a text column: valid UTF-8, without duplicates."""
    words = Strings(arrays.pop(f"{prefix}/text"), arrays.pop(f"{prefix}/offsets"))
    sealed_file.check_strings(words.data, words.offsets)
    vocabulary = Vocabulary(words, name)
    if not np.array_equal(vocabulary.positions_of(words), np.arange(len(words))):
        raise FileError(f"{prefix} has a word twice; expected every word once.")
    return vocabulary


def _listed(name: str, arrays: dict[str, np.ndarray]) -> list[Any]:
    """Return a one-dimensional array as a list. An array of shape (2⁴⁰, 0) would become a list of 2⁴⁰ lists."""
    array = arrays.pop(name)
    if array.ndim != 1:
        raise FileError(f"{name} has {array.ndim} dimensions; expected 1.")
    return _checked(array.tolist(), list)


def _check_statistic(factor: Factor, statistic: Statistics) -> None:
    """Raise FileError unless the family of the factor keeps statistics of this type and shape.

    The expected layout is that of statistics of no rows. Arrays without groups occupy no memory, so a file could claim
    any size of their other axes; it is limited first.
    """
    for part in statistic.arrays().values():
        rest = math.prod(part.shape[len(factor.given) :])
        if math.prod(part.shape) == 0 and rest > _MAX_EMPTY:
            raise FileError(f"{factor!r} has statistics of no groups and {rest} numbers a group.")
    categorical = bool(factor.level_columns)
    family = factor.family.word_family or factor.family
    if not categorical:
        n_columns = statistic.n_columns
        if len(factor.columns) > 1 and len(factor.columns) != n_columns:
            raise FileError(f"{factor!r} has statistics of {n_columns} columns.")
    block: Any = Codes([np.zeros(0, np.int8)], np.ones(1, np.int64)) if categorical else np.zeros((0, 1))
    empty = family.collect(block)  # raises for a type of block that the family does not have
    expected = {name: len(part.shape) for name, part in empty.reshape_groups(()).arrays().items()}
    n_axes = {name: len(part.shape) - len(factor.given) for name, part in statistic.arrays().items()}
    if "failures" not in n_axes:  # totals stored without failures, which are then weight − total
        expected.pop("failures", None)
    if isinstance(empty, Counts) and isinstance(statistic, Counts):
        sizes = statistic.segments.sizes
        if not categorical and (sizes != empty.segments.sizes[0]).any():  # the family defines the number of bins
            raise FileError(f"{factor!r} has statistics of {sizes.tolist()} bins.")
    if type(empty) is not type(statistic) or expected != n_axes:
        raise FileError(f"{factor!r} cannot have {statistic!r}.")


def _statistic(kind: str, prefix: str, arrays: dict[str, np.ndarray]) -> Statistics:
    """Read the statistics of one factor."""

    def double_double(name: str) -> DoubleDouble:
        """Read a double-double array."""
        high, low = (np.asarray(arrays.pop(f"{prefix}/{name}.{part}"), dtype=np.float64) for part in ("high", "low"))
        if high.shape != low.shape or not (np.isfinite(high).all() and np.isfinite(low).all()):
            raise FileError(f"{prefix}/{name} contains numbers that are not finite, or halves of different shapes.")
        return DoubleDouble(high, low)

    if kind == "Counts":
        return Counts(arrays.pop(f"{prefix}/table"), arrays.pop(f"{prefix}/sizes"))
    if kind == "Totals":
        names = ["weight", "total", "log_base_measure", *(["failures"] if f"{prefix}/failures" in arrays else [])]
        return Totals(**{name: arrays.pop(f"{prefix}/{name}") for name in names})
    if kind == "Moments":
        sums = [double_double(name) for name in ("weight_sum", "first_sum", "second_sum")]
        anchor = arrays.pop(f"{prefix}/anchor")
        if (sums[0].value < 0).any() or not np.isfinite(anchor).all():
            raise FileError(f"{prefix} contains negative weights or an anchor that is not finite.")
        return Moments(anchor, *sums)
    raise FileError(f"unknown statistics {kind!r}; expected Counts, Totals or Moments.")


def _checked(value: object, expected: type[Expected]) -> Expected:
    """Return the value if it has the expected type, or raise FileError."""
    if not isinstance(value, expected):
        raise FileError(f"found a {type(value).__name__} where a {expected.__name__} was expected.")
    return value
