"""tb.write_predictions: write the predictions of a model to a file or a database."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.progress import progress_of
from tallybayes.data.open_source import open_source
from tallybayes.data.source import BATCH
from tallybayes.data.sql.sql_types import without_opaque
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.export.output_names import free_names
from tallybayes.export.row_writers import Output, database_of, writing_rows
from tallybayes.export.spark_predictions import in_spark
from tallybayes.export.write_rows import column_to_write, plain_column, plain_type, source_to_write
from tallybayes.messages import with_article
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.batching import names_to_read
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.inference.row_predictions import require_discrete
from tallybayes.tally.factor import Name
from tallybayes.typing import Names, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.data.sql.dialects import Dialect
    from tallybayes.models.estimator import Estimator

_FRAMES = ("pandas", "polars", "pyarrow")


def write_predictions(
    model: Estimator,
    data: Rows,
    to: Output,
    node: Name | None = None,
    *,
    proba: bool = False,
    keep: Names = (),
    format: str | None = None,
) -> Any:
    """Write the predictions of a model for every row to a file or a table; after an error nothing is written.

    Rows in files, iterators and databases are read, predicted and written in batches, in bounded memory. Their order is
    preserved.

    Parameters
    ----------
    model : a classifier, a `Mixture` or a `BayesianNetwork`
        A fitted model.
    data : as for the model's ``predict``: in memory, a path, or any other source
    to : path; open file; (connection, name of a table); or "pandas", "polars", "pyarrow" or "spark"
        The ending of a path determines the format: .parquet, .csv, .tsv, .jsonl, .arrow or .feather; text may be
        compressed (.gz, .zst). Existing files are replaced. A binary file that is open, such as ``sys.stdout.buffer``,
        is written to as rows come, and stays open. Connections are those of DuckDB, PostgreSQL (psycopg) and
        ``sqlite3``; a name in a schema is ``(connection, "schema", "name")``. The table is created; an existing table
        raises DataError. With the name of a library, a frame of all rows is returned; with "spark", a lazy Spark frame
        that predicts on the workers.
    node : name, optional
        The node of a network to predict from all other columns.
    proba : bool, default False
        Also write p(class | row), one column for every class.
    keep : name, or sequence of names, optional
        Columns of the data to write first, such as an identifier, with their types and values. From DuckDB to DuckDB
        and from PostgreSQL to PostgreSQL, the table has the types of the database, including lengths, domains,
        enumerations, UUID and JSON. Otherwise, a type that the target does not have becomes the closest one: text for
        bit strings and for PostgreSQL decimals with NaN.
    format : {"csv", "json", "parquet", "ipc"}, optional
        The format to write to an open file.

    Returns
    -------
    int, or a data frame
        The number of rows written.

    Notes
    -----
    The columns are those in `keep`, ``prediction``, and ``p(label)`` of every class. Underscores are appended to the
    last two where a kept column has the same name, ignoring case. Columns that the model does not use are ignored.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import tallybayes as tb
    >>> rows = {"id": [1, 2, 3], "sky": ["sun", "sun", "rain"], "picnic": ["yes", "yes", "no"]}
    >>> model = tb.NaiveBayes({"sky": tb.Categorical()}).fit(rows, "picnic")
    >>> path = Path(mkdtemp()) / "predictions.csv"
    >>> tb.write_predictions(model, rows, path, keep="id")
    3
    >>> print(path.read_text())
    "id","prediction"
    1,"yes"
    2,"yes"
    3,"no"
    <BLANKLINE>
    """
    check_is_fitted(model)
    _check_node(model, node, proba)
    keep = [keep] if isinstance(keep, str | int) else list(keep)
    output = PredictionTable(model, data, node, proba, keep, database_of(to))
    if isinstance(to, str) and to == "spark":
        return in_spark(output)
    if isinstance(to, str) and to in _FRAMES:
        return _as_frame(output.schema, list(output.tables()), to)
    n_rows = 0
    # The output is opened first and closed last: input and output may be transactions of one connection.
    with writing_rows(to, output.schema, format) as write, closing(output.tables()) as tables:
        for table in tables:
            write(table)
            n_rows += len(table)
    return n_rows


def _as_frame(schema: pa.Schema, tables: list[pa.Table], kind: str) -> Any:
    """Return tables as one data frame of a library."""
    import pyarrow as pa

    table = without_opaque(pa.concat_tables([schema.empty_table(), *tables]))
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars as pl

        return pl.from_arrow(table)
    return table


def _check_node(model: Estimator, node: Name | None, proba: bool) -> None:
    """Raise DataError if a model does not predict rows, or a node is missing or unknown."""
    found = with_article(type(model).__name__)
    if isinstance(model, BayesianNetwork):
        if node is None:
            raise DataError(f"node is None; expected the node to predict, one of {list(model.graph_.nodes)}.")
        if proba:
            require_discrete(model, [node])
        model.graph_.require([node])
    elif node is not None:
        raise DataError(f"node is {node!r}, and {found} predicts its classes; expected None.")
    if proba and not isinstance(model, BayesianNetwork | HiddenMarkovModel) and not hasattr(model, "predict_proba"):
        raise DataError(f"proba is True, and {found} has no class probabilities; expected False.")
    if isinstance(model, HiddenMarkovModel) or not hasattr(model, "predict"):
        hint = "Use model.predict for sequences." if isinstance(model, HiddenMarkovModel) else ""
        raise DataError.wrong_type("model", found, "a classifier, a mixture or a network", hint)


class PredictionTable:
    """The output table: kept columns, predictions and probabilities."""

    def __init__(
        self, model: Estimator, data: Rows, node: Name | None, proba: bool, keep: Sequence[Name], to: Dialect | None
    ) -> None:
        import pyarrow as pa

        self.model: Any = model
        self.data: Any = data
        self.proba = proba
        self.source = open_source(data)
        self.node = () if node is None else (node,)
        if self.source is None:
            rows = open_table(data)
            fitted = getattr(getattr(model, "input_format_", None), "feature_names", None)
            if fitted is not None:  # kept columns are not columns of the model
                self.data = Table({name: rows.column(name) for name in fitted})
            self.kept = [column_to_write(data, name, rows) for name in keep]
            fields = [pa.field(str(name), column.type) for name, column in zip(keep, self.kept, strict=True)]
        else:
            self.source.check_columns(keep)
            self.names = names_to_read(model, self.source) or list(self.source.schema.names)
            self.source, self.kept_names, schema = source_to_write(self.source, keep, to)
            fields = list(schema)
            self.wanted = list(dict.fromkeys([*self.names, *self.kept_names]))
        labels: Any = getattr(model, "classes_", None) if node is None else model.levels_.get(node)
        types = [pa.float64() if labels is None else plain_type(pa.array(np.asarray(labels).tolist()).type)]
        wanted = ["prediction", *(f"p({label})" for label in (labels if proba else ()))]
        types += [pa.float64()] * (len(wanted) - 1)
        self.schema = pa.schema([*fields, *zip(free_names(wanted, keep), types, strict=True)])

    def tables(self) -> Generator[pa.Table, None, None]:
        """Yield the output in batches."""
        if self.source is None:
            table = self._predicted(self.data, self.kept)
            yield from (table.slice(start, BATCH) for start in range(0, len(table), BATCH))
            return
        for batch in progress_of(self.source.read_ahead(self.wanted), "predicting", len, self.source.n_rows):
            yield self.of_batch(batch)

    def of_batch(self, batch: pa.Table) -> pa.Table:
        """Return the output for a batch of a source; kept columns are unchanged."""
        rows = open_table(batch)
        features = Table({name: rows.columns[name] for name in self.names})
        return self._predicted(features, [plain_column(batch.column(name)) for name in self.kept_names])

    def _predicted(self, rows: Rows, kept: list[Any]) -> pa.Table:
        """Return the output for rows, beside kept columns."""
        import pyarrow as pa

        predictions = np.asarray(self.model.predict(rows, *self.node))
        columns = [*kept, pa.array(predictions.tolist() if predictions.dtype.kind == "O" else predictions)]
        if self.proba:
            columns += [pa.array(probabilities) for probabilities in self.model.predict_proba(rows, *self.node).T]
        table = pa.Table.from_arrays(columns, names=self.schema.names)
        try:
            return table.cast(self.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(
                f"a column in keep changes its type from batch to batch: {error}.\n"
                "    Set its type: tb.table(..., types={...})."
            ) from None
