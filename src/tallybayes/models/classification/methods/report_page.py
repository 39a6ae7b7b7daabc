"""HTML report of a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.typing import Labels, Rows

if TYPE_CHECKING:
    from tallybayes.apps.report import Report


def report(
    model: Any,
    X: Rows,
    y: Labels | None = None,
    *,
    by: str | None = None,
    title: str | None = None,
    held_out: bool = False,
) -> Report:
    """Return an HTML page about the model and its predictions on some rows; its plots need matplotlib."""
    check_is_fitted(model)
    from tallybayes.apps.report import report

    return report(model, X, model.target_ if y is None else y, by=by, title=title, held_out=held_out)
