"""`tally show`: the columns, counts and parameters of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, by_text, print_result, rows
from tallybayes.apps.cli.json_output import model_to_json, parameters_to_json
from tallybayes.apps.cli.model_files import load
from tallybayes.apps.cli.rich_tables import MOST, show_lines, show_parameters, show_summary
from tallybayes.apps.cli.stream_models import format_stream, is_stream, stream_state

if TYPE_CHECKING:
    from tallybayes.models.base import Model
    from tallybayes.models.streaming.stream_model import StreamModel


def show(
    model: File,
    /,
    *,
    column: Annotated[tuple[str, ...], Parameter(name=["--column", "-c"])] = (),
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    all_lines: Annotated[bool, Parameter(name="--all")] = False,
    small_counts: float | None = None,
    json: bool = False,
) -> None:
    """Show the columns, counts and parameters of a model.

    Without --column: the columns with their families, numbers of levels and
    proportions of missing values, and the classes. With --column: the
    probabilities, means, variances and covariances of a column, with credible
    intervals.

      tally show penguins-auto.tally
      tally show penguins-auto.tally --column bill_mm species
      tally show hospital.tally --small-counts 5

    Parameters
    ----------
    model
        A file that `tally fit` wrote, or a network in a .bif file.
    column
        Show the parameters of these columns.
    mass
        Probability mass of the credible intervals.
    all_lines
        Show all lines of long tables.
    small_counts
        Show the counts below this number instead, the smallest first, to check a file before it is shared.
    json
        Write the description as JSON.
    """
    import tallybayes as tb

    loaded: Any = load(model, keep_stream=True)
    fitted: Any = loaded.model_ if is_stream(loaded) else loaded
    if small_counts is not None:
        _show_small(loaded, fitted, small_counts, all_lines, json)
        return
    if column and isinstance(fitted, tb.LinearRegression):
        raise UsageError(
            "--column applies to models with column distributions; omit it to show the coefficients of a regression."
        )
    names = [by_text(fitted.parameters_, name) for name in column]
    if json:
        state = {"stream": stream_state(loaded)} if is_stream(loaded) else {}
        columns = {"columns": [parameters_to_json(fitted, name, mass) for name in names]}
        answer_json(columns if names else model_to_json(fitted) | state)
        return
    if not names:
        print_result(f"{format_stream(loaded)}") if is_stream(loaded) else None
        show_summary(fitted.summary())
        if hasattr(fitted, "class_prior_"):
            print_result("")
            show_parameters(parameters_to_json(fitted, getattr(fitted, "target_", "component"), mass), mass, all_lines)
        if isinstance(fitted, tb.LinearRegression):
            print_result(f"\n{fitted.coefficient_table(mass)!r}")
    for position, name in enumerate(names):
        print_result("") if position else None
        show_parameters(parameters_to_json(fitted, name, mass), mass, all_lines)


def _show_small(loaded: Model | StreamModel, model: Model, below: float, all_lines: bool, json: bool) -> None:
    """Print the counts below a threshold: a count of one identifies a person."""
    members = getattr(model, "members_", ())
    tallies = {m.spec.name: m.model.tally_ for m in members if hasattr(m.model, "tally_")} or {"": model.tally_}
    lines = [(name, *line) for name, tally in tallies.items() for line in tally.small_counts(below)]
    kept = getattr(loaded, "n_kept_", None)
    if json:
        counts = [{"what": description, "count": n} | ({"of": name} if name else {}) for name, description, n in lines]
        answer_json({"below": below, "counts": counts} | ({} if kept is None else {"rows_in_file": kept}))
        return
    if kept is not None:
        print_result(f"This file contains the {kept:,} rows of the window, besides their counts.")
    if not lines:
        print_result(f"No count is below {below:g} rows.")
        return
    cells = [(*([name] if name else []), description, rows(n)) for name, description, n in lines]
    heads = (*(["member"] if lines[0][0] else []), "count of", "rows")
    show_lines(heads, cells, (len(heads) - 1,), len(lines) if all_lines else MOST)
