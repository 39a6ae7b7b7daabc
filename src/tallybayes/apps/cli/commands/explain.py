"""`tally explain`: why a model predicts what it does."""

from __future__ import annotations

from typing import Any

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, read_by
from tallybayes.apps.cli.rich_tables import show_explanation


def explain(
    model: File,
    data: File,
    /,
    *,
    row: tuple[int, ...] = (1,),
    against: str | None = None,
    work: bool = False,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Say why a model predicts what it does, of some rows.

    How far every column pulls the row towards its class, against the
    runner-up, in nats: with the class prior's they add up to the log-odds.
    Row 1 is the first one below the names.

      tally explain penguins-choose.tally new.csv --row 3
      tally explain model.tally new.csv --row 3 17 --against Adelie
      tally explain model.tally new.csv --row 3 --work

    Parameters
    ----------
    model
        A classifier that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    row
        Which rows; the first one is 1.
    against
        The class to compare with; by default the runner-up.
    work
        Write the sum on a sheet instead, every factor of every class.
    json
        Write the weights as JSON.
    reading
        How DATA is read.
    """
    found: Any = load(model)
    if not hasattr(found, "explain"):
        raise CommandError(
            f"{model} is a {type(found).__name__}; expected a classifier, which has weights of evidence."
        )
    if work and json:
        raise UsageError("--work is for people, --json for programs; expected one of them.")
    if min(row) < 1:
        raise UsageError(f"--row is {min(row)}; the first row is 1.")
    other = None if against is None else _label(against, found.classes_.tolist())
    with OpenResources() as places:
        cells = _rows(read_by(found, places.source(data, reading)), row)
    told = []
    for place, table in zip(row, cells, strict=True):
        if work:
            print_result(f"row {place}\n{found.show_work(table)}\n")
            continue
        why = found.explain(table, other)
        if json:
            told.append(_as_json(found, table, why, place))
        else:
            show_explanation(why, place)
    if json:
        answer_json(told)


def _rows(source: Any, wanted: tuple[int, ...]) -> list[Any]:
    """Some rows of a source, each a table of one row."""
    found: dict[int, Any] = {}
    first = 1
    for batch in source.batches():
        found |= {place: batch.slice(place - first, 1) for place in wanted if first <= place < first + len(batch)}
        first += len(batch)
        if len(found) == len(set(wanted)):
            break
    missing = [place for place in wanted if place not in found]
    if missing:
        raise CommandError(f"there is no row {missing[0]:,}: {source.name} has {first - 1:,} rows.")
    return [found[place] for place in wanted]


def _label(text: str, labels: list[Any]) -> Any:
    """A class by what is typed."""
    return next((label for label in labels if str(label) == text), text)


def _as_json(model: Any, table: Any, why: Any, place: int) -> dict[str, Any]:
    cells = dict(zip(map(str, why.columns), why.values[0], strict=True))
    weights = [
        {"column": str(column), "value": cells[str(column)], "weight": weight}
        for column, weight in why.to_dict().items()
    ]
    proba = dict(zip(map(str, model.classes_.tolist()), model.predict_proba(table)[0], strict=True))
    head = {"row": place, "class": why.classes[0], "against": why.against[0], "log_odds": why.log_odds[0]}
    return {**head, "note": why.note or None, "probabilities": proba, "weights": weights}
