"""Rows that come in parts: what is counted or asked batch by batch, so that memory holds one at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from tallybayes.errors import DataError
from tallybayes.sources.opening import open_source
from tallybayes.sources.parts import parts_of
from tallybayes.sources.source import Source
from tallybayes.sources.table import open_table

Parameters = ParamSpec("Parameters")


def check_names(source: Source, **names: Any) -> None:
    """Refuse labels or weights that are no columns of the source."""
    for what, name in names.items():
        if name is not None and not isinstance(name, str):
            raise DataError.wrong_type(
                what, "values beside rows that are read in batches", f"the name of a column of {source.name}"
            )
        if name is not None:
            source.check_columns([name])


def by_batch(method: Callable[Parameters, np.ndarray]) -> Callable[Parameters, np.ndarray]:
    """A method that answers about every row, made to take a source, one batch at a time."""

    @functools.wraps(method)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> np.ndarray:
        if len(given) < 2 or isinstance(given[1], np.ndarray):
            return method(*given, **named)
        model: Any = given[0]
        X, *rest = given[1:]
        source = open_source(X)
        if source is None:
            return method(*given, **named)
        names = [name for name in source.schema.names if name in set(model._read_names)]
        found = [method(model, table, *rest, **named) for table in parts_of(source, "predicting", names or None)]  # type: ignore[arg-type]
        return np.concatenate(found) if found else method(model, open_table(source.first()), *rest, **named)  # type: ignore[arg-type]

    return answer
