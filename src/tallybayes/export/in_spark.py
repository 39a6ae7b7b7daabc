"""Predictions in Spark: the model goes to where the rows are."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tallybayes.errors import DataError, brief
from tallybayes.sources.spark import SparkFrame

if TYPE_CHECKING:
    from tallybayes.export.predictions import Answers


def in_spark(answers: Answers) -> Any:
    """A frame of Spark's with what is told of every row; Spark asks for it when it is wanted.

    The model travels as Spark's own functions do, pickled: its counts and parameters, nothing that follows from them.
    """
    source = answers.source
    if not isinstance(source, SparkFrame):
        raise DataError.wrong_type("the data", brief(answers.data), "a frame of Spark's, to be answered by Spark")
    away = copy.copy(answers)
    away.data = away.source = None  # they stay here
    return source.map(away.about, answers.wanted, answers.schema)
