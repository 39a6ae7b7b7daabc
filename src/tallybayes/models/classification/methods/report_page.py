"""The page about a classifier, for a colleague."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

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
    """One page about the model and what it says of some rows; its pictures need matplotlib.

    What was counted, how good the answers are and why, what to be careful about, what is odd about the rows
    (`tb.audit`), three rows explained, and a part to try out: other cells, other shares of the classes, other costs. It
    is one file that needs no network.

    Parameters
    ----------
    X : as for `fit`
        Rows with labels, best those that the model has not seen.
    y : array-like of shape (n,), or the name of a column of X, optional
        The column that was learned, if left out.
    by : name of a column of X, optional
        How its groups fare, with intervals.
    title : str, optional
    held_out : bool, default False
        Whether the model was fitted without these rows. Only then the page gives advice on columns and calibration.

    Returns
    -------
    Report
        A notebook shows it; ``.save("report.html")`` writes it.
    """
    check_is_fitted(model)
    from tallybayes.apps.report import report

    return report(model, X, model.target_ if y is None else y, by=by, title=title, held_out=held_out)
