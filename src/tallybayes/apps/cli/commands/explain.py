"""`tally explain`: weights of evidence of the columns for a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import File, answer_json, by_text, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, read_by
from tallybayes.apps.cli.rich_tables import show_explanation
from tallybayes.messages import with_article

if TYPE_CHECKING:
    import pyarrow as pa

    import tallybayes as tb
    from tallybayes.models.classification.classifier import Classifier


def explain(
    model: File,
    data: File,
    /,
    *,
    row: tuple[int, ...] = (1,),
    against: str | None = None,
    show_work: bool = False,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Explain predictions by the weights of evidence of the columns.

    The weight of a column is its contribution, in nats, to the log-odds of
    the predicted class against the runner-up. The weights and that of the
    class prior add up to the log-odds. Row 1 is the first below the header.

      tally explain penguins-auto.tally new.csv --row 3
      tally explain model.tally new.csv --row 3 17 --against Adelie
      tally explain model.tally new.csv --row 3 --show-work

    Parameters
    ----------
    model
        A classifier that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    row
        Row numbers, from 1.
    against
        The reference class; by default the runner-up.
    show_work
        Write the step-by-step calculation instead, with every factor of every class.
    json
        Write the weights as JSON.
    reading
        Options for reading DATA.
    """
    classifier: Any = load(model)
    if not hasattr(classifier, "explain"):
        raise CommandError(f"{model} is {with_article(type(classifier).__name__)}; expected a classifier.")
    if show_work and json:
        raise UsageError("--show-work and --json exclude each other; pass one of them.")
    if min(row) < 1:
        raise UsageError(f"--row is {min(row)}; expected 1 or more: the first row is 1.")
    other = None if against is None else by_text(classifier.classes_.tolist(), against)
    with OpenResources() as resources:
        tables = _rows(read_by(classifier, resources.source(data, reading)), row)
    documents = []
    for number, table in zip(row, tables, strict=True):
        if show_work:
            print_result(f"row {number}\n{classifier.show_work(table)}\n")
            continue
        explanation = classifier.explain(table, other)
        if json:
            documents.append(_as_json(classifier, table, explanation, number))
        else:
            show_explanation(explanation, number)
    if json:
        answer_json(documents)


def _rows(source: tb.Source, numbers: tuple[int, ...]) -> list[pa.Table]:
    """Return the rows with these numbers, each as a table of one row."""
    tables: dict[int, Any] = {}
    first = 1
    for batch in source.batches():
        tables |= {row: batch.slice(row - first, 1) for row in numbers if first <= row < first + len(batch)}
        first += len(batch)
        if len(tables) == len(set(numbers)):
            break
    missing = [row for row in numbers if row not in tables]
    if missing:
        raise CommandError(f"--row is {missing[0]:,}; expected at most {first - 1:,}, the rows of {source.name}.")
    return [tables[row] for row in numbers]


def _as_json(model: Classifier, table: pa.Table, explanation: tb.Explanation, number: int) -> dict[str, Any]:
    """Return an explanation as a JSON document."""
    cells = dict(zip(map(str, explanation.columns), explanation.values[0], strict=True))
    weights = [
        {"column": str(column), "value": cells[str(column)], "weight": weight}
        for column, weight in explanation.to_dict().items()
    ]
    proba = dict(zip(map(str, model.classes_.tolist()), model.predict_proba(table)[0], strict=True))
    head = {
        "row": number,
        "class": explanation.classes[0],
        "against": explanation.against[0],
        "log_odds": explanation.log_odds[0],
    }
    return {**head, "note": explanation.note or None, "probabilities": proba, "weights": weights}
