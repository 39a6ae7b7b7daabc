"""`tally sample`: draw rows from a model."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, print_status
from tallybayes.apps.cli.data_argument import OpenResources
from tallybayes.apps.cli.model_files import load


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

    They have the columns that it was fitted on, and the class.

      tally sample model.tally -n 1000 --seed 1 > drawn.csv
      tally sample model.tally -n 1000 --class Adelie -o drawn.parquet

    Parameters
    ----------
    model
        A file that `tally fit` wrote, or a network in a .bif file.
    n
        How many rows; of hidden-markov, how many sequences.
    seed
        The same seed draws the same rows.
    given
        Of a classifier: the class of all rows.
    length
        Of hidden-markov: how many steps a sequence has (at most, where its end is modeled).
    out
        The file to write, by its ending: .csv, .jsonl, .parquet …; or a database. Otherwise CSV on standard output.
    to_table
        Of a database: the table to make.
    json
        JSON lines on standard output instead of CSV.
    """
    import tallybayes as tb

    if json and out is not None:
        raise UsageError("--json is of standard output.\n    A file says by its ending what it holds: -o drawn.jsonl.")
    if n < 0 or length < 0:
        raise UsageError(f"--rows is {n} and --length {length}; expected numbers of at least 0.")
    found: Any = load(model)
    drawn = _drawn(found, model, n, length, given, seed)
    with OpenResources(writes=out) as places:
        to, kind = places.target(out, to_table)
        count = tb.write_rows(drawn, to, format=None if kind is None else "json" if json else kind)
    if kind is None:
        print_status(f"wrote {count:,} rows to {out}")


def _drawn(model: Any, path: str, n: int, length: int, given: str | None, seed: int | None) -> dict[str, Any]:
    """Columns of rows that were drawn."""
    import numpy as np

    import tallybayes as tb

    if isinstance(model, tb.HiddenMarkovModel):
        sequences, states = model.sample([length] * n, random_state=seed)
        parts = [_columns(one) for one in sequences]
        found = {"sequence": np.repeat(np.arange(1, n + 1), [len(path) for path in states])}
        names = parts[0] if parts else {}
        found |= {name: np.concatenate([part[name] for part in parts]) for name in names}
        return {**found, "state": np.concatenate(states) if states else np.zeros(0)}
    if not hasattr(model, "sample") or isinstance(model, tb.LinearRegression):
        raise CommandError(
            f"{path} is a {type(model).__name__}, which describes a target and not rows; "
            "expected a model that draws rows.\n"
            "    'tally fit --model naive-bayes' learns one."
        )
    if hasattr(model, "graph_"):
        if given is not None:
            raise UsageError("--class is of classifiers.")
        return _columns(model.sample(n, random_state=seed))
    if isinstance(model, tb.Mixture):
        X, y = model.sample(n, random_state=seed)
        return {**_columns(X), "component": y}
    label = next((one for one in model.classes_.tolist() if str(one) == given), given)
    X, y = model.sample(n, label, random_state=seed)
    return {**_columns(X), str(model.target_): y}


def _columns(X: Any) -> dict[str, Any]:
    """The columns of what was drawn: of a frame, a dictionary or an array."""
    import numpy as np

    if hasattr(X, "column_names"):
        return {str(name): X[name] for name in X.column_names}
    if isinstance(X, dict) or hasattr(X, "columns"):
        return {str(name): X[name] for name in (X if isinstance(X, dict) else X.columns)}
    array = np.asarray(X)
    array = array[:, None] if array.ndim == 1 else array
    return {f"x{place}": array[:, place] for place in range(array.shape[1])}
