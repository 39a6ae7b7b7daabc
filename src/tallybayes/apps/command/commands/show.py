"""`tally show`: what a model has counted and learned."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.command.models import load
from tallybayes.apps.command.tables import show_summary
from tallybayes.apps.command.telling import described
from tallybayes.apps.command.terminal import answer_json


def show(
    model: str,
    /,
    *,
    column: Annotated[tuple[str, ...], Parameter(name=["--column", "-c"])] = (),
    json: bool = False,
) -> None:
    """Show what a model has counted and learned, and what it left out.

    Of every column: its family, how many levels it has, and the share of
    missing cells.

      tally show penguins-choose.tally
      tally show penguins-choose.tally --column bill_mm

    Parameters
    ----------
    model
        A file that `tally fit` wrote, or a network in a .bif file.
    column
        What was learned of this column.
    json
        Write it as JSON.
    """
    found: Any = load(model)
    if json:
        answer_json(described(found))
    else:
        show_summary(found.summary())
