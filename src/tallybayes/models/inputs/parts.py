"""Rows that come in parts: what is counted or asked batch by batch, so that memory holds one at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError
from tallybayes.sources.opening import open_source
from tallybayes.sources.parts import parts_of
from tallybayes.sources.source import Source
from tallybayes.sources.table import open_table, sources_of

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def check_names(source: Source, **names: Any) -> None:
    """Refuse labels or weights that are no columns of the source."""
    for what, name in names.items():
        if name is not None and not isinstance(name, str):
            raise DataError.wrong_type(
                what, "values beside rows that are read in batches", f"the name of a column of {source.name}"
            )
        if name is not None:
            source.check_columns([name])


def names_to_read(model: Any, source: Source) -> list[str]:
    """The columns of a source that a model asks for, in its own order; all that it was fitted on, if it knows them."""
    fitted = getattr(getattr(model, "_shape", None), "feature_names", None)
    if fitted is not None:
        source.check_columns(fitted)
        return list(fitted)
    known = set(source.schema.names)
    wanted = (other for name in model._read_names for other in (name, *sources_of(name)))
    return [name for name in dict.fromkeys(wanted) if name in known]


def by_batch(method: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """A method that answers about every row, made to take a source, one batch at a time."""

    @functools.wraps(method)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Answer:
        if len(given) < 2 or isinstance(given[1], np.ndarray):
            return method(*given, **named)
        model: Any = given[0]
        X, *rest = given[1:]
        source = open_source(X)
        if source is None:
            return method(*given, **named)
        check_is_fitted(model)
        names = names_to_read(model, source) or None
        found = [method(model, table, *rest, **named) for table in parts_of(source, "predicting", names)]  # type: ignore[arg-type]
        return _joined(found) if found else method(model, open_table(source.first()), *rest, **named)  # type: ignore[arg-type]

    return answer


def _joined(parts: list[Any]) -> Any:
    """What was answered about each batch, as if about all rows: arrays, or what is made of arrays."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    return first.joined(parts)
