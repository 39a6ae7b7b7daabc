"""Results, models, parameters, metrics and explanations as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tallybayes.apps.cli.console import answer_table, number, print_result, printable, rows, width

if TYPE_CHECKING:
    import tallybayes as tb
    from tallybayes.models.inspection.model_summary import Summary
    from tallybayes.results.evaluation import RowEvaluation
    from tallybayes.results.metric_intervals import MetricEstimate
    from tallybayes.results.result import Result

_MAX_CONFUSION = 12  # classes of a confusion matrix; --json has it for any number
MOST = 40  # maximum lines of a table; --json has all


def show_result(result: Result) -> None:
    """Print a result of the library, its tables as wide as the terminal."""
    for position, part in enumerate(result.content()):
        if isinstance(part, str):
            print_result(f"\n{part}" if position else part)
            continue
        if part.title:
            print_result(f"\n{part.title}")
        right = [column for column in range(len(part.head)) if (part.align + part.align[-1] * column)[column] == "r"]
        show_lines(part.head, part.rows, right, n_lines=part.n_rows)


def show_summary(summary: Any) -> None:
    """Print the columns of a model; of an ensemble, those of each member."""
    print_result(printable(summary.title))
    members = getattr(summary, "members", None)
    if members is None:
        _show_columns(summary)
    for member in members or ():
        print_result(f"\n{member.weight:.2f} {printable(member.name)}")
        _show_columns(member.summary)


def _show_columns(summary: Summary) -> None:
    """Print the columns and the dropped columns of a model."""
    lines = [
        (
            column.column,
            column.family,
            "" if column.levels is None else str(column.levels),
            _format_missing(column.missing),
        )
        for column in summary.columns
    ]
    show_lines(("column", "family", "levels", "missing"), lines, (2, 3))
    show_lines(("dropped column", "reason"), list(summary.dropped_columns.items()))


def show_parameters(document: dict[str, Any], mass: float, all_lines: bool) -> None:
    """Print the parameters of a column, one per line."""
    print_result(printable(document["title"]) + (f"\n  by {printable(document['by'])}" if "by" in document else ""))
    heads = [*document["given"], "", "estimate", f"{mass:.0%} interval", "counted"]
    lines = []
    previous = None
    for line in document["lines"]:
        group = tuple(map(str, line["given"].values()))
        lines.append(
            (
                *(group if group != previous else [""] * len(group)),
                line["parameter"],
                number(line["value"]),
                "" if line["low"] != line["low"] else f"{number(line['low'])} to {number(line['high'])}",
                "" if line["counted"] != line["counted"] else rows(line["counted"]),
            )
        )
        previous = group
    n = len(document["given"])
    show_lines(heads, lines, (n + 1, n + 2, n + 3), len(lines) if all_lines else MOST)
    if document["covariances"]:
        covariances = [
            (*line["given"].values(), line["with"], number(line["value"])) for line in document["covariances"]
        ]
        show_lines(
            (*document["given"], "covariance with", ""), covariances, (2,), len(covariances) if all_lines else MOST
        )


def show_evaluation(result: RowEvaluation) -> None:
    """Print the metrics of all rows and of each group."""
    import tallybayes as tb

    if not isinstance(result, tb.Evaluation):
        print_result(repr(result))
        return
    n = result.n_rows
    effective = f" (effective number {result.effective_rows:,.0f})" if result.effective_rows < 0.995 * n else ""
    print_result(f"{n:,} rows{effective}, {len(result.classes)} classes; with {result.mass:.0%} credible intervals\n")
    metrics = {
        "accuracy": result.accuracy,
        "error rate": result.error_rate,
        "log loss (nats)": result.log_loss,
        "Brier score": result.brier_score,
        "ROC AUC": result.roc_auc,
        "calibration error": result.calibration_error,
        "bits per row": result.bits_per_row,
    }
    for name, metric in metrics.items():
        if metric is not None:
            print_result(f"  {name:<17}  {metric!r}")
    print_result("")
    lines = [
        (label, result.precision[label], result.recall[label], result.f1_score[label], rows(result.support[label]))
        for label in result.classes.tolist()
    ]
    lines.append(("macro average", result.macro_precision, result.macro_recall, result.macro_f1_score, ""))
    cells = [
        (label, _format_metric(precision), _format_metric(recall), _format_metric(f1_score).partition(" ")[0], support)
        for label, precision, recall, f1_score, support in lines
    ]
    answer_table(("class", "precision", "recall", "F1", "rows"), cells, (1, 2, 3, 4))
    _show_confusion(result)
    if result.groups:
        print_result("")
        groups = [
            (label, f"{part.n_rows:,}", *map(_format_metric, (part.accuracy, part.log_loss, part.calibration_error)))
            for label, part in result.groups.items()
        ]
        answer_table(("group", "rows", "accuracy", "log loss", "calibration error"), groups, (1, 2, 3, 4))


def _show_confusion(result: tb.Evaluation) -> None:
    """Print the confusion matrix of at most 12 classes."""
    classes = list(map(str, result.classes.tolist()))
    if len(classes) > _MAX_CONFUSION:
        return
    print_result("\nconfusion matrix (rows: true class, columns: predicted class)\n")
    counts = result.confusion_matrix.tolist()
    lines = [(label, *map(rows, line)) for label, line in zip(classes, counts, strict=True)]
    answer_table(("true \\ predicted", *classes), lines, range(1, len(classes) + 1))


def show_explanation(explanation: tb.Explanation, number: int) -> None:
    """Print the weights of evidence of one row, with bars."""
    note = explanation.note
    explanation.note = ""
    head, *lines = repr(explanation).splitlines()
    print_result(head.replace("row 0:", f"row {number}:", 1))
    if note:
        print_result(f"  by {printable(note).removeprefix('by ')}")
    if max(map(len, lines), default=0) <= width():
        print_result("\n".join(lines))
        return
    cells = dict(zip(map(str, explanation.columns), explanation.values[0], strict=True))  # folded, without bars
    weights = [
        (column, "—" if cells[str(column)] is None else cells[str(column)], f"{weight:+.3f}")
        for column, weight in explanation.to_dict().items()
    ]
    show_lines(("column", "value", "weight"), weights, (2,))


def show_lines(
    heads: Sequence[str],
    lines: Sequence[Sequence[Any]],
    right: Sequence[int] = (),
    most: int = MOST,
    n_lines: int | None = None,
) -> None:
    """Print a table with at most `most` lines, and the number of remaining lines."""
    if not lines:
        return
    print_result("")
    answer_table(heads, lines[:most], right)
    n_more = (n_lines or len(lines)) - len(lines[:most])
    if n_more:
        print_result(f"… {n_more:,} more; --json has all")


def _format_missing(missing: float | None) -> str:
    """Format a proportion of missing cells."""
    return (
        "" if missing is None else "0 %" if missing == 0 else "< 0.1 %" if missing < 0.001 else f"{100 * missing:.3g} %"
    )


def _format_metric(metric: MetricEstimate) -> str:
    """Format a metric and its interval with at most three decimals. --json has all digits."""
    value, low, high = (text if len(text.partition(".")[2]) <= 3 else f"{float(text):.3f}" for text in metric.shown())
    return f"{value} ({low}–{high})"
