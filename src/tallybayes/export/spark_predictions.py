"""Predictions in Spark: the model is sent to the workers."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tallybayes.data.sql.spark import SparkFrame
from tallybayes.data.sql.sql_types import without_opaque
from tallybayes.errors import DataError, short_repr

if TYPE_CHECKING:
    from tallybayes.export.write_predictions import PredictionTable


def in_spark(predictions: PredictionTable) -> Any:
    """Return a Spark frame with the predictions of every row, computed lazily.

    The model is pickled, with its counts and parameters, but without cached values.
    """
    source = predictions.source
    if not isinstance(source, SparkFrame):
        raise DataError.wrong_type("the data", short_repr(predictions.data), "a Spark frame, to predict in Spark")
    copied = copy.copy(predictions)
    copied.data = copied.source = None  # they are not sent to the workers
    copied.schema = without_opaque(predictions.schema.empty_table()).schema
    return source.map(copied.of_batch, predictions.wanted, copied.schema)
