"""Predictions in Spark: the model goes to where the rows are."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tallybayes.data.sql.spark import SparkFrame
from tallybayes.data.sql.sql_types import without_opaque
from tallybayes.errors import DataError, short_repr

if TYPE_CHECKING:
    from tallybayes.export.write_predictions import PredictionTable


def in_spark(answers: PredictionTable) -> Any:
    """A frame of Spark's with what is told of every row; Spark asks for it when it is wanted.

    The model travels as Spark's own functions do, pickled: its counts and parameters, nothing that follows from them.
    """
    source = answers.source
    if not isinstance(source, SparkFrame):
        raise DataError.wrong_type("the data", short_repr(answers.data), "a frame of Spark's, to be answered by Spark")
    away = copy.copy(answers)
    away.data = away.source = None  # they stay here
    away.schema = without_opaque(answers.schema.empty_table()).schema
    return source.map(away.about, answers.wanted, away.schema)
