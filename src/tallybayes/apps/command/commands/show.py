"""`tally show`: what a model has counted and learned."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.command.models import load
from tallybayes.apps.command.tables import show_parameters, show_summary
from tallybayes.apps.command.telling import described, learned
from tallybayes.apps.command.terminal import answer, answer_json


def show(
    model: str,
    /,
    *,
    column: Annotated[tuple[str, ...], Parameter(name=["--column", "-c"])] = (),
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    all_lines: Annotated[bool, Parameter(name="--all")] = False,
    json: bool = False,
) -> None:
    """Show what a model has counted and learned, and what it left out.

    Without --column: the columns with their families, numbers of levels and
    shares of missing cells, and the classes. With it: the probabilities, means,
    variances and covariances of a column, with credible intervals.

      tally show penguins-choose.tally
      tally show penguins-choose.tally --column bill_mm species

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
    json
        Write it as JSON.
    """
    found: Any = load(model)
    names = [_named(found, one) for one in column]
    if json:
        answer_json({"columns": [learned(found, name, mass) for name in names]} if names else described(found))
        return
    if not names:
        show_summary(found.summary())
        if hasattr(found, "class_prior_"):
            answer("")
            show_parameters(learned(found, found.target_, mass), mass, all_lines)
    for place, name in enumerate(names):
        answer("") if place else None
        show_parameters(learned(found, name, mass), mass, all_lines)


def _named(model: Any, column: str) -> Any:
    """A column as the model calls it: those of data without names are numbers."""
    return next((name for name in model.parameters_ if str(name) == column), column)
