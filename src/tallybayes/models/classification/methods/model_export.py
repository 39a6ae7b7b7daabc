"""Models that travel: a classifier as a query in SQL, to be asked where the rows are, or as a graph of ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import ExportError
from tallybayes.typing import Names

if TYPE_CHECKING:
    import onnx


def to_sql(model: Any, dialect: str, table: str | tuple[str, ...], *, keep: Names = (), proba: bool = True) -> str:
    """The model as one SELECT, which says of every row of a table what `predict` and `predict_proba` say.

    Nothing but this text is needed where the rows are. Weights of levels are joined, numbers are computed.

    Parameters
    ----------
    dialect : {"duckdb", "postgresql", "sqlite", "spark"}
        SQLite as it is built with its mathematical functions, as Python's is.
    table : str, or tuple of str
        The name of a table, ``"schema.name"`` or ``("schema", "na.me")``, or a query. Columns are found by name; those
        of a model of an array are called "0", "1" and so on.
    keep : name, or sequence of names, optional
        Columns of the table to come first: what tells which row it is.
    proba : bool, default True
        Whether p(class | row) is given, too, a column for every class.

    Returns
    -------
    str
        Its columns are those kept, ``prediction``, and ``p(label)`` of every class. One of these that would have the
        name of another, whether in capitals or not, gets an underscore.

    Notes
    -----
    Rows come in any order, as a database gives them: keep what tells which is which. NULL and NaN are missing cells.
    Levels that nobody has seen are what ``unseen`` says. Rows that `predict_proba` refuses (an infinite number, a
    missing count of a word, what ``unseen="error"`` is about) have NULL for an answer.
    A number whose log probability is below −1e15 in every class has lost the digits that tell the classes apart.

    Examples
    --------
    >>> import sqlite3
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "sun", "rain", None], "warmth": [25.0, 22.0, 14.0, 16.0], "picnic": [1, 1, 0, 0]}
    >>> model = tb.NaiveBayes().fit(rows, "picnic")
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE days (day TEXT, sky TEXT, warmth REAL)")
    >>> _ = database.execute("INSERT INTO days VALUES ('Monday', 'rain', 15), ('Tuesday', 'sun', NULL)")
    >>> query = model.to_sql("sqlite", "days", keep="day")
    >>> [(day, picnic, round(p, 3)) for day, picnic, _, p in database.execute(query)]
    [('Monday', 0, 0.022), ('Tuesday', 1, 0.748)]
    >>> database.close()
    """
    from tallybayes.export.portable_scorer import scores_of
    from tallybayes.export.sql_export import dialect_named, write_sql

    check_is_fitted(model, "tally_")
    model._check_estimated(model.class_log_prior_)
    kept = [keep] if isinstance(keep, str | int) else list(keep)
    return write_sql(scores_of(model), dialect_named(dialect), table, [str(name) for name in kept], proba)


def to_onnx(model: Any) -> onnx.ModelProto:
    """The model as a graph of ONNX, which onnxruntime and others run without Python; needs onnx.

    Save it by ``onnx.save(model.to_onnx(), "model.onnx")``, or take its bytes, ``.SerializeToString()``.

    Returns
    -------
    onnx.ModelProto
        Its inputs are the columns, by name, each of shape (rows,): numbers as float64, where NaN is missing; labels as
        strings, of which the empty one is missing, unless it is a level; whole labels, and yes and no, as int64, where
        −2⁶³ is missing. A model of an array of numbers has one input, "X" of shape (rows, columns). Its outputs are
        the "label", as in ``classes_``, and the "probabilities", (rows, classes); an underscore follows where a column
        has such a name.

    Notes
    -----
    Levels that nobody has seen are what ``unseen`` says; "error" is refused. Rows that `predict_proba` refuses (an
    infinite number, a missing count of a word) have NaN for probabilities.

    Examples
    --------
    >>> import numpy as np, onnxruntime
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "sun", "rain", None], "warmth": [25.0, 22.0, 14.0, 16.0], "picnic": [1, 1, 0, 0]}
    >>> model = tb.NaiveBayes().fit(rows, "picnic")
    >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    >>> label, p = session.run(None, {"sky": np.array(["rain", "sun"]), "warmth": np.array([15.0, np.nan])})
    >>> label.tolist(), p.round(3).tolist()
    ([0, 1], [[0.978, 0.022], [0.252, 0.748]])
    """
    from tallybayes.export.onnx_export import write_onnx
    from tallybayes.export.portable_scorer import scores_of

    check_is_fitted(model, "tally_")
    model._check_estimated(model.class_log_prior_)
    names = model._required_columns
    shape = model._shape
    return write_onnx(scores_of(model), not shape.by_name and all(isinstance(name, int) for name in names))


def raise_no_export(model: Any) -> NoReturn:
    """Refuse a mixture of models."""
    raise ExportError(
        "a mixture of calibrated models is not written.\n"
        "    Its heaviest member, members_[0].model, may be, without its calibration; or a tb.NaiveBayes('suggest')."
    )
