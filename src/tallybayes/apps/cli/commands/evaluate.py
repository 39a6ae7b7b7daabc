"""`tally evaluate`: metrics of a model on rows with known targets."""

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
    target
        The column with the true target; by default the target of the fit. For a network, the node to predict.
    by
        Compute the metrics of each group of this column, too.
    weight
        The column with the sample weights.
    mass
        Probability mass of the credible intervals.
    sequence
        The column with the sequence identifier, for hidden-markov.
    order
        The column with the time order within a sequence, for hidden-markov.
    json
        Write all metrics as JSON: value, low and high.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb

    fitted: Any = load(model)
    with OpenResources() as resources:
        source = resources.source(data, reading, needed=(target, by, weight, sequence, order))
        rows: Any = source
        if isinstance(fitted, tb.HiddenMarkovModel):
            from tallybayes.apps.cli.sequence_rows import read_steps

            if sequence is None:
                raise UsageError("missing option --sequence COL: the column with the sequence identifier.")
            if by or weight:
                raise UsageError("--by and --weight apply to rows; a hidden Markov model is evaluated on sequences.")
            rows = read_steps(source, sequence, order).sequences
            states = None if target is None else [part[target].to_pylist() for part in rows]
            result: Any = tb.evaluate(fitted, rows, states, mass=mass)
        else:
            target_column = target or target_of(fitted)
            result = tb.evaluate(fitted, rows, target_column, by, sample_weight=weight, mass=mass)
    if json:
        answer_json(metrics_to_json(result))
    else:
        show_evaluation(result)


def metrics_to_json(result: Any) -> dict[str, Any]:
    """Return the metrics as a JSON document."""
    document: dict[str, Any] = {"rows": result.n_rows, "mass": result.mass}
    if not hasattr(result, "confusion_matrix"):
        names = ("bits_per_row", "mean_absolute_error", "mean_squared_error", "rmse", "r2", "log_loss")
        document |= {name: getattr(result, name) for name in names if getattr(result, name, None) is not None}
        return document | {"groups": {label: metrics_to_json(part) for label, part in (result.groups or {}).items()}}
    for name in ("accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row"):
        document[name] = getattr(result, name)
    labels = result.classes.tolist()
    parts = {"precision": result.precision, "recall": result.recall, "f1_score": result.f1_score}
    document["classes"] = [
        {"class": label, "support": result.support[label], **{name: part[label] for name, part in parts.items()}}
        for label in labels
    ]
    document["confusion_matrix"] = result.confusion_matrix
    document["groups"] = [{"group": label, **metrics_to_json(part)} for label, part in (result.groups or {}).items()]
    return document
