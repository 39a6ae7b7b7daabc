"""Tallies in sealed files: what goes into the manifest, and what into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes import store
from tallybayes.errors import FileError
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Schema
from tallybayes.tally.tally import Tally
from tallybayes.value import from_config


def save_tally(tally: Tally, path: Any) -> None:
    """Write a tally to a sealed file."""
    store.write(path, "Tally", *tally_to_parts(tally))


def tally_to_parts(tally: Tally) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A tally as plain JSON and named arrays, for its own file or within a model's."""
    arrays: dict[str, np.ndarray] = {}
    domains = []
    for number, (key, domain) in enumerate(tally.domains.items()):
        prefix = f"domain/{number}"
        if domain.kind == "string":
            arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = store.pack_strings(list(domain.levels))
        else:
            arrays[f"{prefix}/levels"] = np.array(domain.levels, dtype=bool if domain.kind == "bool" else np.int64)
        arrays[f"{prefix}/declared"] = np.array([level in domain.declared for level in domain.levels], dtype=bool)
        domains.append({"key": key, "name": domain.name, "kind": domain.kind, "ordered": domain.ordered})
    statistics = []
    for number, statistic in enumerate(tally.statistics):
        prefix = f"statistics/{number}"
        statistics.append(type(statistic).__name__)
        if isinstance(statistic, Counts):
            arrays[f"{prefix}/sizes"] = statistic.segments.sizes
        if isinstance(statistic, Moments):
            arrays[f"{prefix}/anchor"] = statistic.anchor
        for name, part in statistic._parts().items():
            if isinstance(part, DoubleDouble):
                arrays[f"{prefix}/{name}.high"], arrays[f"{prefix}/{name}.low"] = part.high, part.low
            else:
                arrays[f"{prefix}/{name}"] = part
    manifest = {
        "factors": [factor.to_config() for factor in tally.factors],
        "schema": tally.schema.to_config(),
        "domains": domains,
        "statistics": statistics,
    }
    return manifest, arrays


@store.register("Tally")
def tally_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Tally:
    """The tally that `tally_to_parts` described, every part checked."""
    domains = {}
    for number, config in enumerate(manifest["domains"]):
        prefix = f"domain/{number}"
        if config["kind"] == "string":
            levels = store.unpack_strings(arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"])
        else:
            levels = arrays[f"{prefix}/levels"].tolist()
        declared = [level for level, mark in zip(levels, arrays[f"{prefix}/declared"], strict=True) if mark]
        domains[config["key"]] = Domain(levels, config["name"], declared=declared, ordered=bool(config["ordered"]))
    factors = [_checked(from_config(config), Factor) for config in manifest["factors"]]
    statistics = [_statistic(kind, f"statistics/{n}", arrays) for n, kind in enumerate(manifest["statistics"])]
    return Tally(factors, statistics, domains, _checked(from_config(manifest["schema"]), Schema))


def _statistic(kind: str, prefix: str, arrays: dict[str, np.ndarray]) -> Statistics:
    def pair(name: str) -> DoubleDouble:
        high, low = (np.asarray(arrays[f"{prefix}/{name}.{part}"], dtype=np.float64) for part in ("high", "low"))
        if high.shape != low.shape or not (np.isfinite(high).all() and np.isfinite(low).all()):
            raise FileError(f"{prefix}/{name} holds numbers that are no sums.")
        return DoubleDouble(high, low)

    if kind == "Counts":
        return Counts(arrays[f"{prefix}/table"], arrays[f"{prefix}/sizes"])
    if kind == "Totals":
        return Totals(*(arrays[f"{prefix}/{name}"] for name in ("weight", "total", "log_base")))
    if kind == "Moments":
        return Moments(arrays[f"{prefix}/anchor"], *(pair(name) for name in ("weight_sum", "first_sum", "second_sum")))
    raise FileError(f"unknown statistics {kind!r}; expected Counts, Totals or Moments.")


def _checked(value: Any, expected: type) -> Any:
    if not isinstance(value, expected):
        raise FileError(f"found a {type(value).__name__} where a {expected.__name__} was expected.")
    return value
