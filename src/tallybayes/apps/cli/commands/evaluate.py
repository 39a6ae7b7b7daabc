"""`tally evaluate`: how good a model's answers are, on rows whose answers are known."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, target_of
from tallybayes.apps.cli.rich_tables import show_evaluation


def evaluate(
    model: File,
    data: File,
    /,
    *,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    by: str | None = None,
    weight: str | None = None,
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    sequence: str | None = None,
    order: str | None = None,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Measure a model's answers on rows whose answers are known.

    Every number has a credible interval. Rows that the model has learned from
    flatter it: take others.

      tally evaluate penguins-auto.tally test.csv
      tally evaluate model.tally test.csv --by country --json
      tally evaluate network.tally days.csv --target rain
      tally evaluate network.tally days.csv                 # bits per row

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    target
        The true classes, if not called as when fitting; of a network, the column told from the others.
    by
        Measure the groups that this column tells by themselves, too.
    weight
        The column that says how often a row counts.
    mass
        The mass of the intervals.
    sequence
        Of hidden-markov: the column that says which sequence a step belongs to.
    order
        Of hidden-markov: the column that says where in it.
    json
        Write all measures as JSON: value, low and high.
    reading
        How DATA is read.
    """
    import tallybayes as tb

    found: Any = load(model)
    with OpenResources() as places:
        source = places.source(data, reading, needed=(target, by, weight, sequence, order))
        rows: Any = source
        if isinstance(found, tb.HiddenMarkovModel):
            from tallybayes.apps.cli.sequence_rows import read_steps

            if sequence is None:
                raise UsageError("which sequence a step belongs to is not said; expected --sequence COL.")
            if by or weight:
                raise UsageError("--by and --weight are of rows; hidden-markov is measured on sequences.")
            rows = read_steps(source, sequence, order).sequences
            states = None if target is None else [part[target].to_pylist() for part in rows]
            result: Any = tb.evaluate(found, rows, states, mass=mass)
        else:
            wanted = target or target_of(found)
            result = tb.evaluate(found, rows, wanted, by, sample_weight=weight, mass=mass)
    if json:
        answer_json(measured(result))
    else:
        show_evaluation(result)


def measured(result: Any) -> dict[str, Any]:
    """All that was measured."""
    found: dict[str, Any] = {"rows": result.n_rows, "mass": result.mass}
    if not hasattr(result, "confusion_matrix"):
        names = ("bits_per_row", "mean_absolute_error", "mean_squared_error", "rmse", "r2", "log_loss")
        found |= {name: getattr(result, name) for name in names if getattr(result, name, None) is not None}
        return found | {"groups": {label: measured(part) for label, part in (result.groups or {}).items()}}
    for name in ("accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row"):
        found[name] = getattr(result, name)
    labels = result.classes.tolist()
    parts = {"precision": result.precision, "recall": result.recall, "f1_score": result.f1_score}
    found["classes"] = [
        {"class": label, "support": result.support[label], **{name: part[label] for name, part in parts.items()}}
        for label in labels
    ]
    found["confusion_matrix"] = result.confusion_matrix
    found["groups"] = [{"group": label, **measured(part)} for label, part in (result.groups or {}).items()]
    return found
