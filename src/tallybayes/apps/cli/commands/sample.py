"""`tally sample`: draw rows from a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, by_text, print_status
from tallybayes.apps.cli.data_argument import OpenResources
from tallybayes.apps.cli.model_files import load
from tallybayes.messages import with_article

if TYPE_CHECKING:
    from tallybayes.models.base import Model


def sample(
    model: File,
    /,
    *,
    n: Annotated[int, Parameter(name=["--rows", "-n"], show_default=True)] = 10,
    seed: int | None = None,
    given: Annotated[str | None, Parameter(name=["--class", "-c"])] = None,
    length: Annotated[int, Parameter(show_default=True)] = 10,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    to_table: str | None = None,
    json: bool = False,
) -> None:
    """Draw rows from a model.

    The rows have the columns of the fit, and the class.

      tally sample model.tally -n 1000 --seed 1 > drawn.csv
      tally sample model.tally -n 1000 --class Adelie -o drawn.parquet

    Parameters
    ----------
    model
        A file that `tally fit` wrote, or a network in a .bif file.
    n
        The number of rows, or of sequences for hidden-markov.
    seed
        The random seed.
    given
        For a classifier: the class of all rows.
    length
        For hidden-markov: the length of a sequence; the maximum, if the end of sequences is modeled.
    out
        The file to write, in the format of its suffix (.csv, .jsonl, .parquet …), or a database; by default CSV on
        standard output.
    to_table
        For a database: the table to create.
    json
        Write JSON lines to standard output instead of CSV.
    """
    import tallybayes as tb

    if n < 0 or length < 0:
        raise UsageError(f"--rows is {n} and --length {length}; expected numbers of at least 0.")
    fitted: Any = load(model)
    drawn = _draw(fitted, model, n, length, given, seed)
    with OpenResources(writes=out) as resources:
        output, file_format = resources.target(out, to_table, json)
        count = tb.write_rows(drawn, output, format=file_format)
    if file_format is None:
        print_status(f"wrote {count:,} rows to {out}")


def _draw(model: Model, file: str, n: int, length: int, given: str | None, seed: int | None) -> dict[str, Any]:
    """Return the columns of the rows drawn from a model."""
    import numpy as np

    import tallybayes as tb

    if isinstance(model, tb.HiddenMarkovModel):
        sequences, states = model.sample([length] * n, random_state=seed)
        tables = [_columns(label) for label in sequences]
        columns = {"sequence": np.repeat(np.arange(1, n + 1), [len(file) for file in states])}
        names = tables[0] if tables else {}
        columns |= {name: np.concatenate([table[name] for table in tables]) for name in names}
        return {**columns, "state": np.concatenate(states) if states else np.zeros(0)}
    if not hasattr(model, "sample") or isinstance(model, tb.LinearRegression):
        raise CommandError(
            f"{file} is {with_article(type(model).__name__)}, which has no distribution of rows.\n"
            "    Fit a model with --model naive-bayes instead."
        )
    if hasattr(model, "graph_"):
        if given is not None:
            raise UsageError("--class applies to classifiers.\n    Omit --class.")
        return _columns(model.sample(n, random_state=seed))
    if isinstance(model, tb.Mixture):
        X, y = model.sample(n, random_state=seed)
        return {**_columns(X), "component": y}
    label = None if given is None else by_text(model.classes_.tolist(), given)
    X, y = model.sample(n, label, random_state=seed)
    return {**_columns(X), str(model.target_): y}


def _columns(X: Any) -> dict[str, Any]:
    """Return the columns of a table, a data frame, a dictionary or an array."""
    import numpy as np

    if hasattr(X, "column_names"):
        return {str(name): X[name] for name in X.column_names}
    if isinstance(X, dict) or hasattr(X, "columns"):
        return {str(name): X[name] for name in (X if isinstance(X, dict) else X.columns)}
    array = np.asarray(X)
    array = array[:, None] if array.ndim == 1 else array
    return {f"x{position}": array[:, position] for position in range(array.shape[1])}
