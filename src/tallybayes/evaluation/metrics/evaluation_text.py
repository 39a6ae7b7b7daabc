"""An evaluation as text, for a terminal, and as tables, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable

if TYPE_CHECKING:
    from tallybayes.evaluation.metrics.classification_evaluation import Evaluation
    from tallybayes.evaluation.metrics.density_evaluation import DensityEvaluation
    from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate

_MOST = 12  # classes, and groups, that are shown
_WIDEST = 28  # a label is cut here

_HEADLINES = {
    "accuracy": "accuracy",
    "error_rate": "error rate",
    "log_loss": "log-loss (nats)",
    "brier_score": "Brier score",
    "roc_auc": "AUC",
    "calibration_error": "calibration error",
    "bits_per_row": "bits per row",
}


Part = str | tuple[list[list[str]], tuple[int, ...]]  # a line of text, or a table and which of its columns lean left


def as_text(parts: Sequence[Part]) -> str:
    """An evaluation for a terminal."""
    return "\n\n".join(part if isinstance(part, str) else _table(*part) for part in parts)


def as_html(parts: Sequence[Part]) -> str:
    """An evaluation for a notebook; measures without a name above them stand in a table without a head."""
    return html_parts(*(part if isinstance(part, str) else _headed(part[0]) for part in parts))


def _headed(lines: list[list[str]]) -> tuple[str, list[str], list[list[str]]]:
    has_head = not lines[0][-1].startswith("(")
    return "", lines[0] if has_head else [], lines[1:] if has_head else lines


def describe(evaluation: Evaluation) -> list[Part]:
    """The headlines, a table of the classes and one of the groups."""
    n, effective = evaluation.n_rows, evaluation.effective_rows
    weighted = f" (worth {effective:.0f} of equal weight)" if effective < 0.995 * n else ""
    head = f"{n} rows{weighted}, {len(evaluation.classes)} classes; with {evaluation.mass:.0%} credible intervals"
    lines = []
    for name, text in _HEADLINES.items():
        found = getattr(evaluation, name)
        lines += [[text, *measure_cells(found)]] if found is not None else []
    return [head, (lines, (0, 2)), _classes(evaluation), *([_groups(evaluation)] if evaluation.groups else [])]


def describe_density(evaluation: DensityEvaluation) -> list[Part]:
    """What rows or sequences cost, all of them and by group."""
    what = "rows" if evaluation.steps is None else "sequences"
    n, effective = evaluation.n_rows, evaluation.effective_rows
    head = f"{n} {what}; with {evaluation.mass:.0%} credible intervals"
    if evaluation.steps is None and effective < 0.995 * n:
        head = f"{n} {what} (worth {effective:.0f} of equal weight); with {evaluation.mass:.0%} credible intervals"
    parts: list[Part] = [head, (_density_lines(evaluation), (0, 2))]
    if evaluation.groups:
        lines = [[printable(evaluation._by_name), what, evaluation.loss_name, ""]]
        found = list(evaluation.groups.items())
        lines += [[short_label(label), str(part.n_rows), *measure_cells(part.loss)] for label, part in found[:_MOST]]
        if len(found) > _MOST:
            lines.append([f"… {len(found) - _MOST} more", "", "", ""])
        parts.append((lines, (0, 3)))
    return parts


def _density_lines(evaluation: DensityEvaluation) -> list[list[str]]:
    if evaluation.steps is None:
        return [["bits per row", *measure_cells(evaluation.bits_per_row)]]
    return [
        ["bits per sequence", *measure_cells(evaluation.bits_per_row)],
        ["bits per step", *measure_cells(evaluation.loss)],
    ]


def _classes(evaluation: Evaluation) -> Part:
    lines = [["class", "precision", "", "recall", "", "F", "", "support"]]
    columns = evaluation.precision, evaluation.recall, evaluation.f1_score
    labels = list(evaluation.support)
    for label in labels[:_MOST]:
        cells = [text for column in columns for text in measure_cells(column[label])]
        lines.append([short_label(label), *cells, _amount(evaluation.support[label])])
    if len(labels) > _MOST:
        lines.append([f"… {len(labels) - _MOST} more", *[""] * 7])
    macro = evaluation.macro_precision, evaluation.macro_recall, evaluation.macro_f1_score
    lines.append(["macro average", *(text for found in macro for text in measure_cells(found)), ""])
    return lines, (0, 2, 4, 6)


def _groups(evaluation: Evaluation) -> Part:
    """Two lines for every group: the values, and their intervals below."""
    heads = ["rows", "accuracy", "error rate"]
    positive = evaluation.classes.tolist()[1] if len(evaluation.classes) == 2 else None
    if len(evaluation.classes) == 2:
        heads += [f"recall {short_label(positive, 10)}", "false positive rate"]
    lines = [[printable(evaluation._by_name), *heads, "log-loss", "calibration error"]]
    found = list(evaluation.groups.items())
    for label, part in found[:_MOST]:
        shown: list[MetricEstimate] = [part.accuracy, part.error_rate]
        if len(evaluation.classes) == 2:
            shown += [part.recall[positive], part.false_positive_rate[positive]]
        shown += [part.log_loss, part.calibration_error]
        texts = [measure.shown() for measure in shown]
        lines.append([short_label(label), str(part.n_rows), *(value for value, _, _ in texts)])
        lines.append(["", "", *(f"{low}–{high}" for _, low, high in texts)])
    if len(found) > _MOST:
        lines.append([f"… {len(found) - _MOST} more", *[""] * (len(lines[0]) - 1)])
    return lines, (0,)


def measure_cells(measure: MetricEstimate) -> tuple[str, str]:
    """A measure as two cells: its value and its interval."""
    value, low, high = measure.shown()
    return value, f"({low} to {high})"


def _amount(weight: float) -> str:
    return f"{weight:.0f}" if weight >= 1e5 else f"{weight:.6g}"


def short_label(label: Any, widest: int = _WIDEST) -> str:
    """A label as text; a long one without its middle, since the ends tell labels apart."""
    text = "(missing)" if label is None else printable(label)
    if len(text) <= widest:
        return text
    tail = (widest - 1) // 2
    return f"{text[: widest - 1 - tail]}…{text[-tail:]}"


def _table(lines: Sequence[Sequence[str]], left: tuple[int, ...]) -> str:
    """Cells in columns; those of `left` lean to the left."""
    return "\n".join(text_table(lines, right=[place for place in range(len(lines[0])) if place not in left]))
