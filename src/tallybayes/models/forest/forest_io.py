"""Files of trees and their counts: JSON and arrays of the smallest types that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.errors import FileError, TallybayesError
from tallybayes.estimation.calibration.log_linear_pool import LogLinearPool
from tallybayes.kernels.forest import Trees
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT
from tallybayes.models.forest.forest_counts import ForestCounts, known_classes
from tallybayes.models.forest.grown_trees import GrownTrees
from tallybayes.tally.domain import Domain

_DTYPES = (np.uint8, np.uint16, np.uint32, np.int64)
_NODE_PARTS = ("column", "next", "cut")


def forest_to_parts(structure: GrownTrees, counts: ForestCounts) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return trees and their counts as JSON and arrays."""
    arrays = structure.arrays()
    nodes = arrays.pop("nodes")
    arrays |= {f"node_{name}": _narrow(nodes[:, k], -1) for k, name in enumerate(_NODE_PARTS)}
    arrays["node_cut"] = nodes[:, 2].astype(np.int32 if len(arrays["masks"]) >= 2**15 else np.int16)
    whole = not any((part % WEIGHT_UNIT).any() for part in (counts.class_weight, *counts.sums[::2]))
    units = {"class_weight": WEIGHT_UNIT if whole else 1}
    for number, part in enumerate(counts.sums):
        units[f"sums{number}"] = WEIGHT_UNIT if whole and number % 2 == 0 else 1
        arrays[f"sums{number}"] = _narrow(part // units[f"sums{number}"], 0)
    arrays["class_weight"] = counts.class_weight // units["class_weight"]
    pool = structure.pool
    arrays |= {"pool_weights": pool.weights, "pool_bias": pool.bias}
    state = {
        "columns": [to_json(list(part)) for part in structure.columns[:3]],
        "dropped_columns": to_json(dict(structure.columns.dropped_columns)),
        "grown_classes": list(structure.classes),
        "classes": {"name": counts.classes.name, "levels": list(counts.classes.levels)},
        "declared": sorted(counts.classes.declared),
        "numbers": structure.numbers(),
        "pool": [pool.inverse_temperature, pool.contamination],
        "units": units,
    }
    return state, arrays


def forest_from_parts(
    kind: type[GrownTrees], state: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[GrownTrees, ForestCounts]:
    """Return trees and their counts; everything is checked, because files are untrusted."""
    try:
        found = _from_parts(kind, state, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, TallybayesError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"the trees of the file are invalid: {error}") from error
    check_no_unknown_entries("the model's state", state)
    return found


def _from_parts(
    kind: type[GrownTrees], state: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[GrownTrees, ForestCounts]:
    names, edges, levels = (from_json(part) for part in state.pop("columns"))
    columns = CodedColumns(
        tuple(names),
        tuple(map(tuple, edges)),
        tuple(None if one is None else tuple(one) for one in levels),
        dict(from_json(state.pop("dropped_columns"))),
    ).check()
    grown_classes = tuple(state.pop("grown_classes"))
    described = state.pop("classes")
    given = Domain(described.pop("levels"), described.pop("name"), declared=state.pop("declared"))
    check_no_unknown_entries("the classes", described)
    classes = known_classes(grown_classes, given)
    if classes.levels != given.levels or classes.levels[: len(grown_classes)] != grown_classes:
        raise FileError("the classes of the trees in the file are not in order.")
    nodes = np.stack([_integers(arrays, f"node_{name}", 1) for name in _NODE_PARTS], axis=1)
    masks = arrays.pop("masks")
    if masks.dtype != np.uint8 or np.abs(nodes).max(initial=0) >= 2**31:
        raise FileError("the nodes or masks of the trees in the file are invalid.")
    trees = Trees(_integers(arrays, "roots", 1), nodes, masks, len(columns.names))
    sharpness, contamination = map(float, state.pop("pool"))
    pool = LogLinearPool(_floats(arrays, "pool_weights", 1), _floats(arrays, "pool_bias", 1), sharpness, contamination)
    if not (0 < sharpness < np.inf and 0 <= contamination < 1) or len(pool.bias) != len(grown_classes):
        raise FileError("the calibration of the trees in the file is invalid.")
    structure = kind.from_arrays(columns, grown_classes, trees, pool, state.pop("numbers"), arrays)
    units = state.pop("units")
    if not set(units.values()) <= {1, WEIGHT_UNIT}:
        raise FileError(f"the units of the counts in the file are {units!r:.200}; expected 1 or {WEIGHT_UNIT}.")
    sums = []
    for number in range(structure.n_sums):
        part = _integers(arrays, f"sums{number}", 2) * int(units.pop(f"sums{number}"))
        if part.shape != (trees.n_leaves, len(classes.levels)) or part.min(initial=0) < 0:
            raise FileError(f"the counts of the trees in the file have shape {part.shape}, or are negative.")
        sums.append(part)
    weight = _integers(arrays, "class_weight", 1) * int(units.pop("class_weight"))
    check_no_unknown_entries("the units of the counts", units)
    if weight.shape != (len(classes.levels),) or weight.min(initial=0) < 0:
        raise FileError("the class counts of the trees in the file are invalid.")
    return structure, ForestCounts(structure.digest, grown_classes, classes, weight, tuple(sums))


def _narrow(array: np.ndarray, least: int) -> np.ndarray:
    """Return whole numbers from `least`, −1 or 0, in the smallest type that holds them."""
    high = int(array.max(initial=0))
    if least < 0:
        types: tuple[Any, ...] = (np.int8, np.int16, np.int32, np.int64)
        return array.astype(next(kind for kind in types if high <= np.iinfo(kind).max))
    return array.astype(next(kind for kind in _DTYPES if high <= np.iinfo(kind).max))


def _integers(arrays: dict[str, np.ndarray], name: str, axes: int) -> np.ndarray:
    """Return an array of integers of a file, as int64."""
    array = arrays.pop(name)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64 or array.ndim != axes:
        raise FileError(f"array {name!r} of the file has type {array.dtype} and {array.ndim} axes; expected integers.")
    return array.astype(np.int64)


def _floats(arrays: dict[str, np.ndarray], name: str, axes: int) -> np.ndarray:
    """Return an array of finite numbers of a file."""
    array = arrays.pop(name)
    if array.dtype.kind != "f" or array.ndim != axes or not np.isfinite(array).all():
        raise FileError(f"array {name!r} of the file has type {array.dtype}; expected finite numbers of {axes} axes.")
    return array
