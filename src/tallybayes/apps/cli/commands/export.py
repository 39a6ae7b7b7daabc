"""`tally export`: a model for where the rows are: SQL, ONNX, or a network in BIF."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tallybayes.apps.atomic_file import atomic_write_bytes
from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, print_result, print_status
from tallybayes.apps.cli.model_files import check_free, load


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
    """Write a model for where the rows are: as SQL, as ONNX, or a network as BIF.

    SQL is one SELECT, on standard output unless -o is given. Its answers are
    those of `tally predict --proba`.

      tally export model.tally --sql duckdb --table new_rows
      tally export model.tally --sql postgresql --table visits --keep id -o q.sql
      tally export model.tally --onnx model.onnx
      tally export network.tally --bif network.bif

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    sql
        The dialect.
    table
        Of --sql: the table that is asked about, or a query.
    keep
        Of --sql: its columns that come first, such as a key.
    onnx
        The file to write; needs the library onnx.
    bif
        The file to write.
    output
        Of --sql: the file to write.
    force
        Replace files that are there.
    """
    import tallybayes as tb

    if sum(way is not None for way in (sql, onnx, bif)) != 1:
        raise UsageError("one of --sql, --onnx and --bif is expected.")
    if sql is not None and table is None:
        raise UsageError("which table is asked about is not said; expected --table NAME.")
    found: Any = load(model)
    method, path = ("to_sql", output) if sql else ("to_onnx", onnx) if onnx else ("to_bif", bif)
    if not hasattr(found, method):
        kind = type(found).__name__
        chosen = isinstance(found, tb.AutoClassifier)
        way = "tally fit --model naive-bayes makes one that can." if chosen else "tally show says what it is."
        raise CommandError(f"{model} is a {kind}, which has no {method[3:].upper()}.\n    {way}")
    if path is not None:
        check_free(path, force)
    if sql is not None:
        text = found.to_sql(sql, table, keep=keep)
        if path is None:
            print_result(text)
            return
        atomic_write_bytes(path, (text + "\n").encode())
    elif onnx is not None:
        try:
            atomic_write_bytes(onnx, found.to_onnx().SerializeToString())
        except ImportError:
            raise CommandError("the library onnx is not installed.\n    pip install 'tallybayes[onnx]'") from None
    else:
        found.to_bif(bif)
    print_status(f"wrote {path}")
