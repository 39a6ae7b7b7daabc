"""Export of classifiers to SQL queries and ONNX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.typing import Names

if TYPE_CHECKING:
    import onnx


def to_sql(model: Any, dialect: str, table: str | tuple[str, ...], *, keep: Names = (), proba: bool = True) -> str:
    """Return the model as one SELECT statement that computes `predict` and `predict_proba` in a database."""
    from tallybayes.export.portable_scorer import scores_of
    from tallybayes.export.sql_export import dialect_named, write_sql

    check_is_fitted(model, "tally_")
    model._check_estimated(model.class_log_prior_)
    kept = [keep] if isinstance(keep, str | int) else list(keep)
    return write_sql(scores_of(model), dialect_named(dialect), table, [str(name) for name in kept], proba)


def to_onnx(model: Any) -> onnx.ModelProto:
    """Return the model as an ONNX graph, which onnxruntime runs without Python; needs onnx."""
    from tallybayes.export.onnx_export import write_onnx
    from tallybayes.export.portable_scorer import scores_of

    check_is_fitted(model, "tally_")
    model._check_estimated(model.class_log_prior_)
    names = model._required_columns
    shape = model.input_format_
    return write_onnx(scores_of(model), not shape.by_name and all(isinstance(name, int) for name in names))
