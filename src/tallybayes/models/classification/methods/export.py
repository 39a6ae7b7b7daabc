"""Methods that several kinds of classifiers have: export as a SQL query and as an ONNX graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tallybayes.models.inputs.input_format import FeatureReader, is_array

if TYPE_CHECKING:
    import onnx

    from tallybayes.export.portable_scorer import PortableScorer
    from tallybayes.typing import Names


class Exportable(FeatureReader, Protocol):
    """What export needs of a fitted model."""

    def _portable_scores(self) -> PortableScorer: ...


def to_sql(
    self: Exportable, dialect: str, table: str | tuple[str, ...], *, keep: Names = (), proba: bool = True
) -> str:
    """Return the model as one SELECT statement that computes `predict` and `predict_proba` in a database.

    The query contains all parameters of the model: level weights are joined, numeric terms are computed, and every
    tree is a CASE expression for each class. Databases take seconds to plan large forests.

    Parameters
    ----------
    dialect : {"duckdb", "postgresql", "sqlite", "spark"}
        SQLite needs its mathematical functions, which Python's build includes.
    table : str, or tuple of str
        A table name, ``"schema.name"`` or ``("schema", "na.me")``, or a query. Columns are found by name; the
        columns of a model fitted on an array are called "0", "1" and so on.
    keep : name, or sequence of names, optional
        Columns of the table to copy into the result, such as a row identifier.
    proba : bool, default True
        Whether the result contains p(class | row), one column per class.

    Returns
    -------
    str
        The result columns are `keep`, ``prediction``, and ``p(label)`` for each class. A name that is not unique,
        ignoring case, gets an underscore.

    Raises
    ------
    ExportError
        If the model, or a member of an ensemble, cannot be exported, such as trees with more than 200,000 numbers,
        leaves × classes: grow fewer trees, or larger leaves.

    Notes
    -----
    The database returns rows in any order: use `keep` to identify them. NULL and NaN are missing cells. Unseen
    levels are treated as ``unseen`` specifies. Rows for which `predict_proba` raises an error (infinite numbers,
    missing word counts, ``unseen="error"``) have the prediction NULL. Numbers with a log probability below −1e15 in
    every class lose the precision needed to compare the classes. Numbers that one member of an ensemble cannot
    have, such as −3 in a column of counts, are missing for this member only.

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
    from tallybayes.export.sql_export import write_sql

    return write_sql(self._portable_scores(), dialect, table, keep, proba)


def to_onnx(self: Exportable) -> onnx.ModelProto:
    """Return the model as an ONNX graph, which onnxruntime runs without Python; needs onnx.

    Save it by ``onnx.save(model.to_onnx(), "model.onnx")``, or take its bytes, ``.SerializeToString()``.

    Returns
    -------
    onnx.ModelProto
        Its inputs are the columns, by name, each of shape (rows,): numbers as float64, with NaN for missing; levels
        as strings, with the empty string for missing unless it is a level; integer levels and booleans as int64,
        with −2⁶³ for missing. A model fitted on a numeric array has one input, "X" of shape (rows, columns). The
        outputs are the "label", as in ``classes_``, and the "probabilities", (rows, classes). An output with the
        name of a column gets an underscore.

    Notes
    -----
    Unseen levels are treated as ``unseen`` specifies; "error" is not supported. Rows for which `predict_proba`
    raises an error (infinite numbers, missing word counts) have NaN probabilities. All rows of a call
    descend all trees at the same time: pass a thousand rows at a time.

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

    return write_onnx(self._portable_scores(), is_array(self))
