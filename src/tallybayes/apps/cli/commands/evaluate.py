"""`tally evaluate`: metrics of a model on rows with known targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, target_of
from tallybayes.apps.cli.rich_tables import show_evaluation
from tallybayes.apps.cli.row_columns import ROW_COLUMNS, RowColumns

if TYPE_CHECKING:
    from tallybayes.results.evaluation import RowEvaluation


def evaluate(
    model: File,
    data: File,
    /,
    *,
    columns: RowColumns = ROW_COLUMNS,
    by: str | None = None,
    mass: Annotated[float, Parameter(show_default=True)] = 0.95,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Compute the metrics of a model on rows with known targets.

    Every metric has a credible interval. The metrics of training rows are too
    optimistic: pass held-out rows.

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
    columns
        Columns of DATA by role.
    by
        Compute the metrics of each group of this column, too.
    mass
        Probability mass of the credible intervals.
    json
        Write all metrics as JSON: value, low and high.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb

    fitted = load(model)
    with OpenResources() as resources:
        source = resources.source(data, reading, needed=(*columns.names, by))
        if isinstance(fitted, tb.HiddenMarkovModel):
            from tallybayes.apps.cli.sequence_rows import read_steps

            sequence = columns.require_sequence()
            if by or columns.weight:
                raise UsageError(
                    "--by and --weight apply to rows; a hidden Markov model is evaluated on sequences.\n    Omit them."
                )
            rows = read_steps(source, sequence, columns.order).sequences
            states = None if columns.target is None else [part[columns.target].to_pylist() for part in rows]
            result: Any = tb.evaluate(fitted, rows, states, mass=mass)
        else:
            columns.check_no_sequence(fitted)
            target = columns.target or target_of(fitted)
            result = tb.evaluate(fitted, source, target, by, sample_weight=columns.weight, mass=mass)
    if json:
        answer_json(metrics_to_json(result))
    else:
        show_evaluation(result)


def metrics_to_json(result: RowEvaluation) -> dict[str, Any]:
    """Return the metrics as a JSON document."""
    import tallybayes as tb

    document: dict[str, Any] = {"rows": result.n_rows, "mass": result.mass}
    groups = {label: metrics_to_json(part) for label, part in (result.groups or {}).items()}
    if not isinstance(result, tb.Evaluation):
        metrics = ("bits_per_row", "mean_absolute_error", "mean_squared_error", "rmse", "r2", "log_loss")
        values = {name: getattr(result, name, None) for name in metrics}
        document |= {name: value for name, value in values.items() if value is not None}
        return document | {"groups": groups}
    names = ("accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row")
    document |= {name: getattr(result, name) for name in names}
    document["classes"] = [
        {
            "class": label,
            "support": result.support[label],
            "precision": result.precision[label],
            "recall": result.recall[label],
            "f1_score": result.f1_score[label],
        }
        for label in result.classes.tolist()
    ]
    document["confusion_matrix"] = result.confusion_matrix
    document["groups"] = [{"group": label, **part} for label, part in groups.items()]
    return document
