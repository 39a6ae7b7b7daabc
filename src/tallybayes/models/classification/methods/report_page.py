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
    """Return an HTML page about the model and its predictions on some rows; its plots need matplotlib.

    The page contains the counts, the metrics, warnings, unusual rows (`tb.audit`), three explained rows, and a form to
    vary cells, class probabilities and costs. It is one file that works offline.

    Parameters
    ----------
    X : as for `fit`
        Labeled rows, preferably held-out rows.
    y : array-like of shape (n,), or column name of X, optional
        By default the target column of `fit`.
    by : column name of X, optional
        Show the metrics for each level of this column, with intervals.
    title : str, optional
    held_out : bool, default False
        Whether the rows are held out. Only then the page contains advice on columns and calibration.

    Returns
    -------
    Report
        A notebook shows it; ``.save("report.html")`` writes it.
    """
    check_is_fitted(model)
    from tallybayes.apps.report import report

    return report(model, X, model.target_ if y is None else y, by=by, title=title, held_out=held_out)
