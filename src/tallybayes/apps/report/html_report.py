"""Report: what a model is, how good its answers are and why, as one page that needs nothing else."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from html import escape
from importlib import resources
from io import BytesIO
from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.apps.atomic_file import atomic_write_bytes
from tallybayes.apps.report import report_analysis
from tallybayes.apps.report.report_rows import ReportRows
from tallybayes.apps.report.report_warnings import class_weights, report_warnings

_MOST_CLASSES = 30  # that a table of mistakes shows
_ALL_ROWS = 2000  # whose answers a page decides about again


class Report:
    """A page. A notebook shows it; `save` writes it.

    Attributes
    ----------
    html : str
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file, whole or not at all."""
        atomic_write_bytes(path, self.html.encode())

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<Report of {len(self.html) / 1e6:.1f} MB: .save('report.html')>"


def report(
    model: Any, data: Any, target: Any, *, by: str | None = None, title: str | None = None, held_out: bool = False
) -> Report:
    """One page about a classifier and what it says of some rows.

    Parameters
    ----------
    model : fitted classifier
    data : as for `tallybayes.evaluate`
        Rows with labels, best those that the model has not seen.
    target : name of a column, or labels
    by : name of a column, optional
        How its groups fare, with intervals.
    title : str, optional
    held_out : bool, default False
        Whether the model was fitted without these rows. Only then the page gives advice on columns and calibration.

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
        data = tb.table(data)  # opened once: what an iterator gave it does not give again
    rows = ReportRows(data, target)
    if not len(rows):
        raise tb.DataError("there are 0 rows to report on; expected at least 1.")
    evaluation = tb.evaluate(model, data, target)
    importance = report_analysis.importance(model, rows)
    called = target if isinstance(target, str) else str(getattr(model, "target_", "class"))
    groups = report_analysis.underperforming_groups(model, called, rows, evaluation)
    said = report_analysis.leakage(rows, called) + report_warnings(
        model, evaluation, rows, importance, groups, held_out=held_out
    )
    name = title or f"{called} by {type(model).__name__}"
    parts = [
        _section("short", "In short", _short(model, evaluation, held_out) + _listed(said)),
        _section("counted", "What was counted", _counted(model)),
        _section("columns", "Columns", _importance(importance) + _pictures(model, rows)),
        _section("answers", "How good the answers are", _answers(evaluation)),
        _section("audit", "What is odd about these rows", _audited(model, rows, by)),
        _section("strain", "Where columns say the same twice", _strain(model, rows)),
        _section("rows", "Three rows, explained", _explained(model, rows)),
        _section("try", "Try it", _read("try.html")),
    ]
    tried = report_analysis.what_if_predictions(
        model, rows, [] if importance is None else importance.columns
    ) | _decided(model, rows)
    return Report(_page(name, [part for part in parts if part], tried))


def printable(text: str) -> str:
    """A text in which nothing is unseen."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


# ---- The page ----------------------------------------------------------------------------------------------------


def _page(title: str, parts: list[str], tried: dict[str, Any]) -> str:
    data = json.dumps(tried, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    links = "".join(
        f'<a href="#{part.split(chr(34), 2)[1]}">{part.split("<h2>", 1)[1].split("</h2>", 1)[0]}</a>' for part in parts
    )
    return (
        _read("page.html")
        .replace("{{style}}", _read("style.css"))
        .replace("{{script}}", _read("try.js"))
        .replace("{{version}}", escape(_version()))
        .replace("{{links}}", links)
        .replace("{{title}}", escape(printable(title)))
        .replace("{{data}}", data)
        .replace("{{parts}}", "\n".join(parts))
    )


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tallybayes")
    except PackageNotFoundError:
        return ""


def _read(name: str) -> str:
    return resources.files("tallybayes.apps.report").joinpath(name).read_text(encoding="utf-8")


def _section(key: str, title: str, body: str) -> str:
    return f'<section id="{key}"><h2>{escape(title)}</h2>{body}</section>' if body else ""


def _table(head: list[str], rows: list[list[Any]], caption: str = "") -> str:
    """A table; cells that are tuples are (text, share) with a bar behind."""
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    right = [bool(rows) and all('class="number' in _cell(row[k]) for row in rows) for k in range(len(head))]
    marks = [' class="number"' if number else "" for number in right]
    names = "".join(f'<th scope="col"{mark}>{_text(name)}</th>' for name, mark in zip(head, marks, strict=True))
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table>{said}<thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table></div>'


def _cell(cell: Any) -> str:
    if isinstance(cell, tuple):
        text, share = cell
        against = " against" if share < 0 else ""
        return f'<td class="number bar{against}" style="--share:{min(1.0, abs(share)):.4f}">{_text(text)}</td>'
    number = isinstance(cell, float | int) or (isinstance(cell, str) and cell[:1] in "0123456789+-−")
    return f'<td class="number">{_text(cell)}</td>' if number else f"<td>{_text(cell)}</td>"


def _text(value: Any) -> str:
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    text = printable(text)
    return escape(text if len(text) <= 80 else text[:79] + "…")


def _listed(items: list[str]) -> str:
    return f'<ul class="cautions">{"".join(f"<li>{escape(item)}</li>" for item in items)}</ul>' if items else ""


def _figure(picture: Any, alt: str) -> str:
    """A picture as a vector inside the page, where no script can run."""
    from matplotlib import pyplot as plt

    drawn = BytesIO()
    picture.figure.savefig(drawn, format="svg", metadata={"Date": None})
    plt.close(picture.figure)
    code = base64.b64encode(drawn.getvalue()).decode("ascii")
    return f'<figure><img alt="{escape(alt)}" src="data:image/svg+xml;base64,{code}"></figure>'


def _drawn(draw: Any, alt: str) -> str:
    """A picture, or nothing where there is none of this model, or no matplotlib."""
    try:
        return _figure(draw(), alt)
    except (ImportError, AttributeError, tb.TallybayesError):
        return ""


# ---- Its parts ---------------------------------------------------------------------------------------------------


def _measure(measure: Any, percent: bool = False) -> str:
    if percent:
        return f"{measure.value:.1%} ({measure.low:.1%} to {measure.high:.1%})"
    return f"{measure.value:.3g} ({measure.low:.3g} to {measure.high:.3g})"


def _short(model: Any, evaluation: Any, held_out: bool) -> str:
    support = evaluation.support
    most = max(support, key=lambda label: support[label])
    base = support[most] / max(1.0, sum(support.values()))
    cards = [
        ("rows on this page", f"{evaluation.n_rows:,}"),
        ("right", _measure(evaluation.accuracy, percent=True)),
        (f"if all were {most}", f"{base:.1%}"),
        ("log-loss, nats", _measure(evaluation.log_loss)),
        ("area under the curve", _measure(evaluation.roc_auc)) if len(support) == 2 else None,
        ("calibration error", _measure(evaluation.calibration_error)),
    ]
    shown = "".join(f"<div><b>{_text(text)}</b><span>{_text(name)}</span></div>" for name, text in filter(None, cards))
    which = (
        "The model was fitted without the rows of this page."
        if held_out
        else "The metrics are too optimistic if the model was fitted on the rows of this page. For advice on columns "
        "and calibration, pass other rows and say so: held_out=True in Python, --held-out in the shell."
    )
    return f'<p>{_text(_first_line(model))}</p><div class="cards">{shown}</div><p>{escape(which)}</p>'


def _first_line(model: Any) -> str:
    return str(model.summary().title).splitlines()[0]


def _counted(model: Any) -> str:
    counted = class_weights(model)
    total = sum(counted.values()) or 1.0
    balance = [[label, (f"{n:,.6g}", n / total), f"{n / total:.1%}"] for label, n in counted.items()]
    shown = _table(["class", "rows", "share"], balance[:_MOST_CLASSES], "Classes") if balance else ""
    summary = model.summary()
    members = getattr(summary, "members", ())
    if members:
        weights = [[one.name, (f"{one.weight:.2f}", one.weight)] for one in members]
        shown += _table(["model", "weight"], weights, "A mixture of")
    found: list[Any] = [(column, (one.name, one.weight)) for one in members for column in one.summary.columns]
    found = found or [(column, ()) for column in getattr(summary, "columns", ())]
    names = [*(found[0][0]._fields if found else ()), *(("member", "weight") if members else ())]
    lines = [list(map(_plain, (*column, *of), names)) for column, of in found]
    more = f"<p>The first 200 of {len(lines):,} lines.</p>" if len(lines) > 200 else ""
    opened = " open" if len(lines) <= 16 else ""
    columns = f"<details{opened}><summary>The columns</summary>{_table(names, lines[:200])}{more}</details>"
    left = dict(getattr(summary, "dropped_columns", None) or {})
    return shown + columns + (_table(["left out", "why"], [[name, why] for name, why in left.items()]) if left else "")


def _plain(cell: Any, name: str = "") -> Any:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if name == "missing":
        return f"{cell:.0%}"
    return cell.item() if hasattr(cell, "item") else cell


def _importance(importance: Any) -> str:
    """The table and the plot of the feature importance."""
    if importance is None or not importance.columns:
        return ""
    most = max(importance.increase.max(), 1e-9)
    found = zip(importance.columns, importance.increase, importance.low, importance.high, strict=True)
    lines = [[name, (f"{n:.4f}", n / most), f"{low:.4f} to {high:.4f}"] for name, n, low, high in found][:24]
    more = f"; the first 24 of {len(importance.columns):,} columns" if len(importance.columns) > 24 else ""
    title = f"Feature importance: increase of the log loss without the column, {importance.n_rows:,} rows{more}"
    return _table(["column", "nats", "95 % interval"], lines, title)


def _pictures(model: Any, rows: ReportRows) -> str:
    found = _drawn(lambda: model.plot_columns(), "The distribution of every column in each class")
    side = round(len(rows.columns) ** 0.5)
    if side >= 6 and side * side == len(rows.columns):
        found += _drawn(lambda: model.plot_class_means(shape=(side, side)), "The mean image of every class")
    return found + _drawn(lambda: model.plot_graph(), "The model as a graph")


def _answers(evaluation: Any) -> str:
    classes = [str(label) for label in evaluation.support]
    lines = [
        [label, *(_measure(getattr(evaluation, what)[key]) for what in ("precision", "recall", "f1_score")), int(n)]
        for label, (key, n) in zip(classes, evaluation.support.items(), strict=True)
    ]
    head = ["class", "precision", "recall", "F", "rows"]
    found = _table(head, lines[:_MOST_CLASSES], "By class, with 95 % intervals")
    table = np.asarray(evaluation.confusion_matrix)
    some = np.argsort(-table.sum(axis=1), kind="stable")[:_MOST_CLASSES]
    some = np.sort(some)
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    cells = [[classes[i], *((f"{table[i, j]:g}", share[i, j]) for j in some)] for i in some]
    title = "Labels (lines) and answers (columns)"
    title += f": the {len(some)} most frequent of {len(classes)} classes" if len(some) < len(classes) else ""
    found += _table(["", *(classes[j] for j in some)], cells, title)
    return found + _drawn(lambda: evaluation.plot_reliability(), "How often answers of each confidence were right")


def _audited(model: Any, rows: ReportRows, by: str | None) -> str:
    """What `tb.audit` finds in the rows; nothing of models that do not describe whole rows."""
    if by is not None and by not in rows.columns:
        raise tb.DataError.unknown_column([by], rows.columns)
    groups = None if by is None else [report_analysis.written(cell) for cell in rows.columns[by]]
    try:
        found = tb.audit(model, rows.columns, rows.labels, by=groups)
    except tb.TallybayesError:
        return ""

    def number(row: int) -> str:
        return f"{rows.places[row] + 1:,}"

    n = len(found.findings)
    said = f"{n} thing{'s' * (n != 1)} that chance hardly explains" if n else "nothing that chance does not explain"
    shown = f"<p>By what the model has counted, of the {found.n_rows:,} rows looked at: {said}.</p>"
    odd = [[number(one.row), _name(one.column), f"{one.log_density:.4g}"] for one in found.rows]
    shown += _some(
        ["row (from 1)", "most by", "log p(row)"],
        odd,
        f"All but impossible ({found.expected_rows:.2g} expected by chance)",
    )
    cells = [
        [_name(one.column), report_analysis.written(one.value), one.rows, number(one.first)] for one in found.cells
    ]
    shown += _some(["column", "value", "rows", "first in row (from 1)"], cells, "Never counted")
    labels = [[number(d.row), str(d.label), f"{d.probability:.2g}", str(d.suggested), f"{d.suggested_probability:.3f}"]
              for d in found.labels]  # fmt: skip
    title = f"Labels that disagree with their columns ({found.expected_labels:.2g} expected by chance)"
    shown += _some(["row (from 1)", "label", "p(label)", "by its columns", "p"], labels, title)
    most = max((one.high for one in found.columns), default=0.0) or 1.0
    columns = [
        [_name(one.column), (f"{one.bits:.3f}", max(one.bits, 0.0) / most), f"{one.low:.3f} to {one.high:.3f}",
         "drifted" if one.column in found.drifted else ""]
        for one in found.columns
    ]  # fmt: skip
    shown += _some(["column", "bits a cell", "99 % interval", ""], columns, "How far columns are from what was counted")
    fares = [
        [str(one.group), one.rows, repr(one.loss), repr(one.error_rate), "worse" * one.worse] for one in found.groups
    ]
    shown += _some([str(by), "rows", "log-loss", "error rate", ""], fares, "Groups, with 99 % intervals")
    return shown + "".join(f"<p>{_text(note)}</p>" for note in found.notes)


def _some(head: list[str], lines: list[list[Any]], title: str, most: int = 12) -> str:
    """A table of the first lines, if there are any."""
    more = f"; the first {most} of {len(lines):,}" if len(lines) > most else ""
    return _table(head, lines[:most], title + more) if lines else ""


def _name(column: Any) -> str:
    return "—" if column is None else ", ".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _strain(model: Any, rows: ReportRows) -> str:
    """Pairs of columns that depend on each other within classes, which naive Bayes counts twice."""
    if not isinstance(model, tb.NaiveBayes) or len(rows.columns) > 60:
        return ""
    try:
        pairs = tb.dependence({**rows.columns, "(label)": rows.labels}, "(label)").table[:8]
    except tb.TallybayesError:
        return ""
    if not pairs:
        return ""
    names, lines = list(pairs[0]._fields), [list(map(_plain, pair)) for pair in pairs]
    why = "<p>Pairs of columns that go together within classes; naive Bayes counts what they share twice.</p>"
    return why + _table(names, lines)


def _explained(model: Any, rows: ReportRows) -> str:
    if not hasattr(model, "explain"):
        return ""
    truth, log = report_analysis.codes_of(model, rows.labels), report_analysis.log_proba(model, rows.columns)
    told, sure = log.argmax(axis=1), log.max(axis=1)
    wrong = np.flatnonzero((told != truth) & (truth >= 0))
    chosen = {"surest of the right answers": int(np.argmax(np.where(told == truth, sure, -np.inf)))}
    if len(wrong):
        chosen["surest of the wrong answers"] = int(wrong[np.argmax(sure[wrong])])
    chosen["most doubtful answer"] = int(np.argmin(sure))
    found = []
    for what, row in chosen.items():
        explained = model.explain(rows.take([row]))
        weights = explained.to_dict(0)
        values = dict(zip(explained.columns, explained.values[0], strict=True))
        most = max((abs(weight) for weight in weights.values() if np.isfinite(weight)), default=1.0) or 1.0
        lines = [
            [name, report_analysis.written(values.get(name)), (f"{weight:+.2f}", weight / most)]
            for name, weight in list(weights.items())[:12]
        ]
        note = f" {escape(explained.note)}" if explained.note else ""
        found.append(
            f"<h3>The {escape(what)}: row {rows.places[row] + 1}</h3><p>It is {_text(rows.labels[row])}; the answer is "
            f"{_text(model.classes_[told[row]])}, with {np.exp(sure[row]):.1%}.{note}</p>"
            + _table(["column", "cell", f"nats for {explained.classes[0]}, not {explained.against[0]}"], lines)
        )
    return "".join(found)


def _decided(model: Any, rows: ReportRows) -> dict[str, Any]:
    """What is needed to decide about all rows again under other priors and costs."""
    log = report_analysis.log_proba(model, rows.columns)[:_ALL_ROWS]
    prior = np.exp(log).mean(axis=0)
    if hasattr(model, "class_prior_"):
        prior = np.asarray(model.class_prior_.values, dtype=float)
    truth = report_analysis.codes_of(model, rows.labels)[:_ALL_ROWS]
    return {"prior": np.round(prior, 8).tolist(), "all": np.round(log, 3).tolist(), "truth": truth.tolist()}
