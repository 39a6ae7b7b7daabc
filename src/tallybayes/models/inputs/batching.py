"""Sources that are read in batches: rows are counted or predicted batch by batch, with one batch in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.progress import progress_of
from tallybayes.data.dates import origins, with_dates_whole
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.models.inputs.features import is_name, warn_unobserved

if TYPE_CHECKING:
    import pyarrow as pa

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def check_names(source: Source, **names: Any) -> None:
    """Raise DataError if the target or the weights are not names of columns of the source."""
    for what, name in names.items():
        if name is not None and not is_name(name):
            raise DataError.wrong_type(
                what, "values beside rows that are read in batches", f"the name of a column of {source.name}"
            )
        if name is not None:
            source.check_columns([name])


def names_to_read(model: Any, source: Source) -> list[str]:
    """Return the columns of a source that a model reads, in the model's order."""
    shape = getattr(model, "input_format_", None) or getattr(model, "_design", None)
    fitted = getattr(shape, "feature_names", None)
    if fitted is not None:
        source.check_columns(fitted)
        return list(fitted)
    known = set(source.schema.names)
    names = model._required_columns
    wanted = [other for name in names for other in origins(name)]
    if shape is not None and known.intersection(wanted):  # rows of a network may lack nodes
        absent = dict.fromkeys((name for name in names if known.isdisjoint(origins(name))), 1)
        source.check_columns(with_dates_whole(absent, shape.dates))
    elif shape is None:
        warn_unobserved(known, names)
    return [str(name) for name in dict.fromkeys(wanted) if name in known]


def query_batches(model: Any, source: Source, names: Sequence[str], what: str) -> Iterator[tuple[Table, pa.Table]]:
    """Yield the rows of every batch as a table for the model, and some columns of the same rows.

    Both are from one pass: a second pass over a database may have another order, and an iterator yields once.
    """
    source.check_columns(names)
    wanted = names_to_read(model, source)
    columns = list(dict.fromkeys([*wanted, *names])) if wanted else None
    for batch in progress_of(source.read_ahead(columns), what, len, source.n_rows):
        yield open_table(batch.select(wanted) if wanted else batch), batch.select(names)


def joined_columns(parts: list[pa.Table]) -> Table:
    """Concatenate the columns of all batches."""
    import pyarrow as pa

    return (
        open_table(pa.concat_tables(parts, promote_options="permissive"))
        if parts and parts[0].num_columns
        else Table({})
    )


def predict_in_batches(method: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Return the method extended to sources: it is called for every batch, and the results are concatenated."""

    @functools.wraps(method)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Answer:
        if len(given) < 2 or isinstance(given[1], np.ndarray | list):  # in memory
            return method(*given, **named)
        model: Any = given[0]
        X, *rest = given[1:]
        source = open_source(X)
        if source is None:
            return method(*given, **named)
        check_is_fitted(model)
        names = names_to_read(model, source) or None
        found = [method(model, table, *rest, **named) for table in tables_of_batches(source, "predicting", names)]  # type: ignore[arg-type]
        return _joined(found) if found else method(model, open_table(source.first_batch()), *rest, **named)  # type: ignore[arg-type]

    return answer


def _joined(parts: list[Any]) -> Any:
    """Concatenate the results of all batches: arrays, or objects made of arrays."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    return first.joined(parts)
