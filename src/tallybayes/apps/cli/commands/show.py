"""`tally show`: what a model has counted and learned."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result, rows
from tallybayes.apps.cli.json_output import model_to_json, parameters_to_json
from tallybayes.apps.cli.model_files import load
from tallybayes.apps.cli.rich_tables import MOST, show_lines, show_parameters, show_summary
from tallybayes.apps.cli.stream_models import is_stream, shown, told


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
    """Show what a model has counted and learned, and what it left out.

    Without --column: the columns with their families, numbers of levels and
    shares of missing cells, and the classes. With it: the probabilities, means,
    variances and covariances of a column, with credible intervals.

      tally show penguins-auto.tally
      tally show penguins-auto.tally --column bill_mm species
      tally show hospital.tally --small-counts 5

    Parameters
    ----------
    model
        A file that `tally fit` wrote, or a network in a .bif file.
    column
        What was learned of these columns.
    mass
        The mass of the intervals.
    all_lines
        Show all lines, however many.
    small_counts
        Show what was counted of fewer rows than this instead, the fewest first: before the file is handed on.
    json
        Write it as JSON.
    """
    import tallybayes as tb

    whole: Any = load(model, whole=True)
    found: Any = whole.model_ if is_stream(whole) else whole
    if small_counts is not None:
        _show_small(whole, found, small_counts, all_lines, json)
        return
    if column and isinstance(found, tb.LinearRegression):
        raise UsageError("--column is of models of columns; a regression shows all its weights without it.")
    names = [_named(found, one) for one in column]
    if json:
        state = {"stream": told(whole)} if is_stream(whole) else {}
        columns = {"columns": [parameters_to_json(found, name, mass) for name in names]}
        answer_json(columns if names else model_to_json(found) | state)
        return
    if not names:
        print_result(f"Of {shown(whole)}") if is_stream(whole) else None
        show_summary(found.summary())
        if hasattr(found, "class_prior_"):
            print_result("")
            show_parameters(parameters_to_json(found, getattr(found, "target_", "component"), mass), mass, all_lines)
        if isinstance(found, tb.LinearRegression):
            print_result(f"\n{found.coefficient_table(mass)!r}")
    for place, name in enumerate(names):
        print_result("") if place else None
        show_parameters(parameters_to_json(found, name, mass), mass, all_lines)


def _show_small(whole: Any, model: Any, below: float, all_lines: bool, json: bool) -> None:
    """What was counted of few rows: a count of one is somebody."""
    tallies = {one.spec.name: one.model.tally_ for one in getattr(model, "members_", ())} or {"": model.tally_}
    lines = [(name, *line) for name, tally in tallies.items() for line in tally.small_counts(below)]
    kept = getattr(whole, "n_kept_", None)
    if json:
        counts = [{"what": where, "count": n} | ({"of": name} if name else {}) for name, where, n in lines]
        answer_json({"below": below, "counts": counts} | ({} if kept is None else {"rows_in_file": kept}))
        return
    if kept is not None:
        print_result(f"This file holds the {kept:,} rows of the window themselves, besides what was counted of them.")
    if not lines:
        print_result(f"Nothing was counted of fewer than {below:g} rows.")
        return
    told_of = [(*([name] if name else []), where, rows(n)) for name, where, n in lines]
    heads = (*(["member"] if lines[0][0] else []), "what", "rows")
    show_lines(heads, told_of, (len(heads) - 1,), len(lines) if all_lines else MOST)


def _named(model: Any, column: str) -> Any:
    """A column as the model calls it: those of data without names are numbers."""
    return next((name for name in model.parameters_ if str(name) == column), column)
