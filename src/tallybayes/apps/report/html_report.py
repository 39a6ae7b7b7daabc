"""HTML report: the model, its metrics, feature importance, data checks, and predictions under changed cells."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

import tallybayes as tb
from tallybayes.apps.atomic_file import atomic_write_bytes
from tallybayes.apps.cli.console import printable
from tallybayes.apps.report import report_analysis
from tallybayes.apps.report.report_guide import HOW_TO_READ
from tallybayes.apps.report.report_rows import ReportPredictions, ReportRows
from tallybayes.apps.report.report_warnings import class_weights, report_warnings

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.typing import Labels, Rows

_MAX_CLASSES = 30  # in the confusion matrix
_MAX_LINES = 200  # of a table
_NUMBER = ' class="number"'  # attribute of numeric cells
_MAX_DECISION_ROWS = 2000  # of the section What-if


class Report:
    """HTML page with a report. Notebooks display it; `save` writes it to a file.

    Attributes
    ----------
    html : str
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file atomically."""
        atomic_write_bytes(path, self.html.encode())

    def _repr_html_(self) -> str:
        """Return the page for notebooks."""
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<Report of {len(self.html) / 1e6:.1f} MB: .save('report.html')>"


def report(
    model: Any,
    data: Rows,
    target: Labels,
    *,
    by: str | None = None,
    title: str | None = None,
    held_out: bool = False,
) -> Report:
    """Return a report on a classifier and its predictions for some rows as one HTML page.

    Parameters
    ----------
    model : fitted classifier
    data : as for `tallybayes.evaluate`
        Rows with class labels, preferably held-out rows.
    target : column name or array-like of labels
    by : column name, optional
        Report the performance of the subgroups of this column, with intervals.
    title : str, optional
        Title of the page.
    held_out : bool, default False
        Whether the model was fitted without these rows. If true, the page gives advice on columns and calibration.

    Returns
    -------
    Report

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.apps.report import report
    >>> days = {"sky": ["sun", "sun", "rain", "rain", "sun"], "picnic": ["yes", "yes", "no", "no", "no"]}
    >>> page = report(tb.NaiveBayes().fit(days, "picnic"), days, "picnic")
    >>> "picnic" in page.html
    True
    """
    if not hasattr(model, "predict_log_proba") or not hasattr(model, "classes_"):
        raise tb.DataError.wrong_type("the model", f"a {type(model).__name__}", "a fitted classifier")
    if isinstance(data, str | os.PathLike | Iterator):
        data = tb.table(data)
        data.keep()  # an iterator is read several times
    evaluation = tb.evaluate(model, data, target)  # which checks the rows and the target
    rows = ReportRows(data, target)
    predictions = ReportPredictions(model, rows)
    importance = report_analysis.feature_importance(predictions)
    target_name = target if isinstance(target, str) else str(getattr(model, "target_", "class"))
    groups = report_analysis.underperforming_groups(model, target_name, rows, evaluation)
    messages = report_analysis.leakage(rows, target_name)
    messages += report_warnings(model, evaluation, rows, importance, groups, held_out=held_out)
    sections = {
        ("summary", "Summary"): _summary(model, evaluation, held_out) + _list(messages),
        ("training", "Training data"): _training_data(model),
        ("importance", "Feature importance"): _importance(importance) + _column_plots(model, rows),
        ("evaluation", "Evaluation"): _evaluation(evaluation),
        ("checks", "Data checks"): _data_checks(model, rows, by),
        ("dependence", "Columns dependent within classes"): _dependence(model, rows),
        ("examples", "Example explanations"): _explanations(predictions),
        ("what-if", "What-if"): _guide("what-if") + _read("what_if.html"),
    }
    what_if = report_analysis.what_if_predictions(predictions, [] if importance is None else importance.columns)
    title = title or f"{target_name} by {type(model).__name__}"
    return Report(_page(title, sections, what_if | _decision_data(predictions)))


# ---- The page ----------------------------------------------------------------------------------------------------


def _page(title: str, sections: dict[tuple[str, str], str], what_if: dict[str, Any]) -> str:
    """Fill the template of the page. Sections without a body are omitted."""
    data = json.dumps(what_if, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    shown = [(key, escape(heading), body) for (key, heading), body in sections.items() if body]
    values = {
        "style": _read("style.css"),
        "script": _read("what_if.js"),
        "version": escape(tb.__version__),
        "links": "".join(f'<a href="#{key}">{heading}</a>' for key, heading, _ in shown),
        "title": escape(printable(title)),
        "data": data,
        "parts": "\n".join(f'<section id="{key}"><h2>{heading}</h2>{body}</section>' for key, heading, body in shown),
    }
    page = _read("page.html")
    for name, value in values.items():
        page = page.replace(f"{{{{{name}}}}}", value)
    return page


def _read(name: str) -> str:
    """Return the text of a file of this folder."""
    return resources.files("tallybayes.apps.report").joinpath(name).read_text(encoding="utf-8")


def _guide(name: str) -> str:
    """Return the sentence on how to read a figure or table."""
    return f'<p class="guide">{escape(HOW_TO_READ[name])}</p>' if name else ""


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    caption: str = "",
    limit: int = _MAX_LINES,
    *,
    guide: str = "",
    shaded: bool = False,
) -> str:
    """Return an HTML table of the first rows, with a sentence on how to read it; an empty string without rows.

    Cells that are tuples are (text, fraction), drawn with a bar of this length, or shaded. The first cell of a row is
    its header.
    """
    if not rows:
        return ""
    caption += f"; the first {limit} of {len(rows):,}" if len(rows) > limit else ""
    cells = [list(map(_cell, row)) for row in rows[:limit]]
    names = "".join(
        f'<th scope="col"{_NUMBER if all(_NUMBER[:-1] in cell for cell in column) else ""}>{_text(name)}</th>'
        for name, *column in zip(head, *cells, strict=True)
    )
    lines = "".join(f"<tr>{_row_header(first)}{''.join(rest)}</tr>" for first, *rest in cells)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    kind = ' class="shaded"' if shaded else ""
    table = f"<table{kind}>{title}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div class="wide" tabindex="0">{table}</div>{_guide(guide)}'


def _row_header(cell: str) -> str:
    """Return a table cell as the header of its row."""
    return f'<th scope="row"{cell.removeprefix("<td").removesuffix("</td>")}</th>'


def _cell(cell: object) -> str:
    """Return a table cell."""
    if isinstance(cell, tuple):
        text, fraction = cell
        against = " against" if fraction < 0 else ""
        return f'<td class="number bar{against}" style="--share:{min(1.0, abs(fraction)):.4f}">{_text(text)}</td>'
    number = isinstance(cell, float | int) or (isinstance(cell, str) and cell[:1] in "0123456789+-−")
    return f"<td{_NUMBER if number else ''}>{_text(cell)}</td>"


def _text(value: object) -> str:
    """Format a value as escaped text of at most 80 characters."""
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    text = printable(text)
    return escape(text if len(text) <= 80 else text[:79] + "…")


def _list(items: list[str]) -> str:
    """Return a list of warnings."""
    return f'<ul class="warnings">{"".join(f"<li>{escape(item)}</li>" for item in items)}</ul>' if items else ""


def _figure(plot: tb.Plot, alt: str, guide: str) -> str:
    """Return a plot as an SVG image embedded in the page, where no script can run, and a sentence on how to read it."""
    from matplotlib import pyplot as plt

    buffer = BytesIO()
    plot.figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(plot.figure)
    code = base64.b64encode(buffer.getvalue()).decode("ascii")
    image = f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{code}">'
    return f"<figure>{image}<figcaption>{escape(HOW_TO_READ[guide])}</figcaption></figure>"


def _optional_figure(draw: Callable[[], tb.Plot], alt: str, guide: str) -> str:
    """Return a figure, or an empty string if the model has no such plot or Matplotlib is not installed."""
    try:
        return _figure(draw(), alt, guide)
    except (ImportError, AttributeError, tb.TallybayesError):
        return ""


# ---- Sections ----------------------------------------------------------------------------------------------------


def _metric(metric: tb.results.MetricEstimate, form: str = ".3g") -> str:
    """Format a metric with its interval."""
    return f"{metric.value:{form}} ({metric.low:{form}} to {metric.high:{form}})"


def _summary(model: Classifier, evaluation: tb.Evaluation, held_out: bool) -> str:
    """Return the summary: the main metrics and a note on held-out rows."""
    support = evaluation.support
    most_frequent = max(support, key=lambda label: support[label])
    base = support[most_frequent] / max(1.0, sum(support.values()))
    cards = {
        "rows on this page": (f"{evaluation.n_rows:,}", ""),
        "accuracy": (_metric(evaluation.accuracy, ".1%"), HOW_TO_READ["accuracy"]),
        f"accuracy of always predicting {most_frequent}": (f"{base:.1%}", HOW_TO_READ["baseline"]),
        "log loss, in nats": (
            _metric(evaluation.log_loss),
            HOW_TO_READ["log loss"].format(uniform=np.log(len(support))),
        ),
        **({"ROC AUC": (_metric(evaluation.roc_auc), HOW_TO_READ["ROC AUC"])} if len(support) == 2 else {}),
        "calibration error": (_metric(evaluation.calibration_error), HOW_TO_READ["calibration error"]),
    }
    cards_html = "".join(
        f"<div><b>{_text(text)}</b><span>{_text(name)}</span>{f'<small>{escape(how)}</small>' if how else ''}</div>"
        for name, (text, how) in cards.items()
    )
    note = (
        "The model was fitted without the rows of this page."
        if held_out
        else "The metrics are too optimistic if the model was fitted on the rows of this page. For advice on columns "
        "and calibration, pass held-out rows with held_out=True in Python, --held-out in the shell."
    )
    return f'<p>{_text(_first_line(model))}</p><div class="cards">{cards_html}</div><p>{escape(note)}</p>'


def _first_line(model: Classifier) -> str:
    """Return the title of the model summary."""
    return str(model.summary().title).splitlines()[0]


def _training_data(model: Classifier) -> str:
    """Return tables of the classes, the ensemble members, the columns and the dropped columns."""
    weights = class_weights(model)
    total = sum(weights.values()) or 1.0
    balance = [[label, (f"{n:,.6g}", n / total), f"{n / total:.1%}"] for label, n in weights.items()]
    tables = _table(["class", "rows", "frequency"], balance, "Classes", _MAX_CLASSES, guide="classes")
    summary = model.summary()
    members = getattr(summary, "members", ())
    stacking = [[member.name, (f"{member.weight:.2f}", member.weight)] for member in members]
    tables += _table(["model", "weight"], stacking, "Ensemble members", guide="members")
    lines = [column._asdict() for column in getattr(summary, "columns", ())]
    lines += [
        {**column._asdict(), "member": m.name, "weight": m.weight} for m in members for column in m.summary.columns
    ]
    cells = [[_plain(cell, name) for name, cell in line.items()] for line in lines]
    opened = " open" if len(lines) <= 16 else ""
    head = ["missing values" if name == "missing" else name for name in lines[0]] if lines else []
    columns = _table(head, cells, guide="columns")
    tables += f"<details{opened}><summary>Columns</summary>{columns}</details>"
    dropped = getattr(summary, "dropped_columns", None) or {}
    return tables + _table(["dropped column", "reason"], list(dropped.items()), guide="dropped")


def _plain(cell: Any, name: str = "") -> object:
    """Return a cell as a plain value; missing proportions as percentages."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if name == "missing":
        return f"{cell:.0%}"
    return cell.item() if hasattr(cell, "item") else cell


def _importance(importance: tb.results.FeatureImportance | None) -> str:
    """Return the table of the feature importance."""
    if importance is None or not importance.columns:
        return ""
    largest = max(importance.increase.max(), 1e-9)
    columns = zip(importance.columns, importance.increase, importance.low, importance.high, strict=True)
    lines = [[name, (f"{n:.4f}", n / largest), f"{low:.4f} to {high:.4f}"] for name, n, low, high in columns]
    title = f"Increase of the log loss without the column, {importance.n_rows:,} rows"
    return _table(["column", "increase, in nats", "95 % interval"], lines, title, 24, guide="importance")


def _column_plots(model: Classifier, rows: ReportRows) -> str:
    """Return the plots of the columns and of the model."""
    figures = _optional_figure(
        lambda: model.plot_columns(), "The distribution of every column in each class", "column plots"
    )
    side = round(len(rows.columns) ** 0.5)
    if side >= 6 and side * side == len(rows.columns):
        figures += _optional_figure(
            lambda: model.plot_class_means(shape=(side, side)), "The mean image of every class", "class means"
        )
    return figures + _optional_figure(lambda: model.plot_graph(), "The model as a graph", "graph")


def _evaluation(evaluation: tb.Evaluation) -> str:
    """Return the metrics by class, the confusion matrix and the reliability diagram."""
    classes = list(map(str, evaluation.support))
    metrics = (evaluation.precision, evaluation.recall, evaluation.f1_score)
    lines = [
        [str(label), *(_metric(metric[label]) for metric in metrics), int(n)] for label, n in evaluation.support.items()
    ]
    head = ["class", "precision", "recall", "F1", "rows"]
    tables = _table(head, lines, "By class, with 95 % intervals", _MAX_CLASSES, guide="by class")
    table = np.asarray(evaluation.confusion_matrix)
    shown = np.sort(np.argsort(-table.sum(axis=1), kind="stable")[:_MAX_CLASSES])
    fraction = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    cells = [[classes[i], *((f"{table[i, j]:g}", fraction[i, j]) for j in shown)] for i in shown]
    title = "Confusion matrix (rows: true class, columns: predicted class)"
    title += f": the {len(shown)} most frequent of {len(classes)} classes" if len(shown) < len(classes) else ""
    names = ["true \\ predicted", *(classes[j] for j in shown)]
    tables += _table(names, cells, title, guide="confusion matrix", shaded=True)
    return tables + _optional_figure(evaluation.plot_reliability, "Reliability diagram", "reliability")


def _data_checks(model: Classifier, rows: ReportRows, by: str | None) -> str:
    """Return the findings of `tb.audit`, or an empty string if the model does not support it."""
    if by is not None and by not in rows.columns:
        raise tb.DataError.unknown_column([by], rows.columns)
    groups = None if by is None else list(map(report_analysis.format_cell, rows.columns[by]))
    try:
        result = tb.audit(model, rows.columns, rows.labels, by=groups)
    except tb.TallybayesError:
        return ""

    def number(row: int) -> str:
        return f"{rows.indices[row] + 1:,}"

    n = len(result.findings)
    tables = f"<p>{n or 'No'} finding{'s' * (n != 1)} beyond chance in {result.n_rows:,} rows.</p>"
    outliers = [[number(row.row), _name(row.column), f"{row.log_density:.4g}"] for row in result.rows]
    cells = [[_name(c.column), report_analysis.format_cell(c.value), c.rows, number(c.first)] for c in result.cells]
    labels = [[number(d.row), str(d.label), f"{d.probability:.2g}", str(d.suggested), f"{d.suggested_probability:.3f}"]
              for d in result.labels]  # fmt: skip
    largest = max((column.high for column in result.columns), default=0.0) or 1.0
    drifts = [
        [_name(c.column), (f"{c.bits:.3f}", max(c.bits, 0.0) / largest), f"{c.low:.3f} to {c.high:.3f}",
         "drifted" if c.column in result.drifted else "no"]
        for c in result.columns
    ]  # fmt: skip
    subgroups = [
        [str(g.group), g.rows, repr(g.loss), repr(g.error_rate), "worse" if g.worse else "no"] for g in result.groups
    ]
    parts: dict[str, tuple[str, str, list[list[Any]]]] = {
        "outliers": (
            f"Outliers ({result.expected_rows:.2g} expected by chance)",
            "row (from 1)|main column|log p(row)",
            outliers,
        ),
        "values": ("Unseen levels and values", "column|value|rows|first in row (from 1)", cells),
        "labels": (
            f"Suspected label errors ({result.expected_labels:.2g} expected by chance)",
            "row (from 1)|label|p(label)|predicted|p(predicted)",
            labels,
        ),
        "drift": ("Drift from the training data", "column|bits per cell|99 % interval|drift", drifts),
        "groups": ("Subgroup performance, with 99 % intervals", f"{by}|rows|log loss|error rate|worse", subgroups),
    }
    tables += "".join(
        _table(head.split("|"), lines, title, 12, guide=guide) for guide, (title, head, lines) in parts.items()
    )
    return tables + "".join(f"<p>{_text(note)}</p>" for note in result.notes)


def _name(column: object) -> str:
    """Return the name of a column or of a block."""
    return "—" if column is None else ", ".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _dependence(model: Classifier, rows: ReportRows) -> str:
    """Return the pairs of columns that violate the independence assumption of naive Bayes most."""
    if not isinstance(model, tb.NaiveBayes) or len(rows.columns) > 60:
        return ""
    try:
        pairs = tb.dependence({**rows.columns, "(label)": rows.labels}, "(label)").table[:8]
    except tb.TallybayesError:
        return ""
    head = ("first column", "second column", "information, in bits", "low", "high", "log evidence")
    lines = [list(map(_plain, pair)) for pair in pairs]
    return _table(head, lines, "The most dependent pairs of columns, given the class", guide="dependence")


def _explanations(predictions: ReportPredictions) -> str:
    """Return explanations of the most confident correct prediction and error, and of the least confident row."""
    model = predictions.model
    rows = predictions.rows
    if not hasattr(model, "explain"):
        return ""
    predicted = predictions.predicted
    confidence = predictions.confidence
    is_correct = predicted == predictions.truth
    examples = {
        "Most confident correct prediction": np.where(is_correct, confidence, -np.inf),
        "Most confident error": np.where(~is_correct & (predictions.truth >= 0), confidence, -np.inf),
        "Least confident prediction": -confidence,
    }
    html = ""
    for heading, scores in examples.items():
        row = int(scores.argmax())
        if heading == "Most confident error" and np.isneginf(scores[row]):
            continue
        explained = model.explain(rows.take([row]))
        weights = explained.to_dict(0)
        values = dict(zip(explained.columns, explained.values[0], strict=True))
        largest = max((abs(weight) for weight in weights.values() if np.isfinite(weight)), default=1.0) or 1.0
        lines = [
            [name, _cell_text(values.get(name), is_column=name in rows.columns), _signed(weight, largest)]
            for name, weight in list(weights.items())[:12]
        ]
        html += (
            f"<h3>{escape(heading)}: row {rows.indices[row] + 1}</h3><p>True class: {_text(rows.labels[row])}. "
            f"Predicted class: {_text(model.classes_[predicted[row]])} ({np.exp(confidence[row]):.1%}). "
            f"{escape(explained.note)}</p>"
        )
        head = ["column", "cell", f"nats for {explained.classes[0]} against {explained.against[0]}"]
        html += _table(head, lines, "Contributions to the log-odds", guide="explanation")
    return html


def _cell_text(cell: object, *, is_column: bool) -> str:
    """Return a cell as text; an empty string for what is no column, such as the class prior."""
    return report_analysis.format_cell(cell) if is_column or cell is not None else ""


def _signed(weight: float, largest: float) -> tuple[str, float]:
    """Return a weight with its sign, and the length of its bar."""
    return f"{weight:+.2f}".replace("-", "−"), weight / largest


def _decision_data(predictions: ReportPredictions) -> dict[str, Any]:
    """Return the data for decisions about all rows under other class frequencies and costs."""
    log = predictions.log_proba[:_MAX_DECISION_ROWS]
    prior = np.exp(log).mean(axis=0)
    if hasattr(predictions.model, "class_prior_"):
        prior = np.asarray(predictions.model.class_prior_.values, dtype=float)
    truth = predictions.truth[:_MAX_DECISION_ROWS].tolist()
    return {"prior": np.round(prior, 8).tolist(), "all": np.round(log, 3).tolist(), "truth": truth}
