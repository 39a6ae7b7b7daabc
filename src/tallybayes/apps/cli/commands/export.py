"""`tally export`: export a model as SQL, ONNX or BIF."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tallybayes.apps.atomic_file import atomic_write_bytes
from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, print_result, print_status
from tallybayes.apps.cli.model_files import check_free, load
from tallybayes.messages import with_article


def export(
    model: File,
    /,
    *,
    sql: Literal["duckdb", "postgresql", "sqlite", "spark"] | None = None,
    table: str | None = None,
    keep: tuple[str, ...] = (),
    onnx: File | None = None,
    bif: File | None = None,
    output: Annotated[File | None, Parameter(name=["--output", "-o"])] = None,
    force: bool = False,
) -> None:
    """Export a model as SQL or ONNX, or a network as BIF.

    SQL is one SELECT statement, written to standard output unless -o is passed.
    Its result has the columns of `tally predict --proba`.

      tally export model.tally --sql duckdb --table new_rows
      tally export model.tally --sql postgresql --table visits --keep id -o q.sql
      tally export model.tally --onnx model.onnx
      tally export network.tally --bif network.bif

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    sql
        The SQL dialect.
    table
        For --sql: the table to predict, or a query.
    keep
        For --sql: columns of the table to copy to the result, such as a key.
    onnx
        The ONNX file to write; requires the library onnx.
    bif
        The BIF file to write.
    output
        For --sql: the file to write.
    force
        Replace existing files.
    """
    if sum(hint is not None for hint in (sql, onnx, bif)) != 1:
        raise UsageError("missing option: pass one of --sql, --onnx and --bif.")
    if sql is not None and table is None:
        raise UsageError("missing option --table NAME: the table to predict.")
    fitted: Any = load(model)
    method, path = ("to_sql", output) if sql else ("to_onnx", onnx) if onnx else ("to_bif", bif)
    if not hasattr(fitted, method):
        kind = type(fitted).__name__
        hint = "Run 'tally show' for its kind."
        raise CommandError(f"{model} is {with_article(kind)}, which has no export as {method[3:].upper()}.\n    {hint}")
    if path is not None:
        check_free(path, force)
    if sql is not None:
        text = fitted.to_sql(sql, table, keep=keep)
        if path is None:
            print_result(text)
            return
        atomic_write_bytes(path, (text + "\n").encode())
    elif onnx is not None:
        try:
            atomic_write_bytes(onnx, fitted.to_onnx().SerializeToString())
        except ImportError:
            raise CommandError("the library onnx is not installed.\n    pip install onnx") from None
    else:
        fitted.to_bif(bif)
    print_status(f"wrote {path}")
