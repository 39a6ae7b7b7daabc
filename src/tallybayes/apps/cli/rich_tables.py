"""Results as tables that fit a terminal: of a choice, of a model, of an evaluation, of an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallybayes.apps.cli.console import answer_table, number, print_result, printable, rows, width

MOST = 40  # lines of a table; the rest is told by --json


def show_report(report: Any) -> None:
    """What was tried, and how it did on rows that were held out."""
    mixed = sum(one.weight > 0 for one in report.tried) > 1
    print_result(
        f"Chosen from {len(report.tried)} candidates by {report.n_folds} folds of {report.n_rows:,} rows\n"
        f"  held out, {'the mixture' if mixed else 'it'} has log-loss {report.loss:.3f} "
        f"({report.low:.3f} to {report.high:.3f}), accuracy {report.accuracy:.3f}\n"
    )
    lines = [
        (one.name, f"{one.loss:.3f}", f"{one.low:.3f} to {one.high:.3f}", f"{one.weight:.2f}" if one.weight else "·")
        for one in report.tried
    ]
    answer_table(("candidate", "log-loss", "95 % interval", "weight"), lines, (1, 2, 3))
    for head, part in (
        (("column", "suggested family"), report.columns),
        (("left out", "because"), report.dropped_columns),
    ):
        told = [(name, _family(value)) for name, value in part.items()]
        show_lines(head, told)
    show_lines(("not tried", "because"), list(report.skipped.items()))


def show_summary(summary: Any) -> None:
    """What a model consists of; of a mixture, every member."""
    print_result(printable(summary.title))
    if hasattr(summary, "members"):
        for one in summary.members:
            print_result(f"\n{one.weight:.2f} {printable(one.name)}")
            _show_columns(one.summary)
        return
    _show_columns(summary)


def _show_columns(summary: Any) -> None:
    lines = [
        (one.column, one.family, "" if one.levels is None else str(one.levels), _share(one.missing))
        for one in summary.columns
    ]
    show_lines(("column", "family", "levels", "missing"), lines, (2, 3))
    show_lines(("left out", "because"), list(summary.dropped_columns.items()))


def show_parameters(told: dict[str, Any], mass: float, all_lines: bool) -> None:
    """What was learned of a column, a line for every number."""
    print_result(printable(told["title"]) + (f"\n  by {printable(told['by'])}" if "by" in told else ""))
    heads = [*told["given"], "", "estimate", f"{mass:.0%} interval", "counted"]
    lines, before = [], None
    for one in told["lines"]:
        above = tuple(map(str, one["given"].values()))
        lines.append(
            (
                *(above if above != before else [""] * len(above)),
                one["parameter"],
                number(one["value"]),
                "" if one["low"] != one["low"] else f"{number(one['low'])} to {number(one['high'])}",
                "" if one["counted"] != one["counted"] else rows(one["counted"]),
            )
        )
        before = above
    n = len(told["given"])
    show_lines(heads, lines, (n + 1, n + 2, n + 3), len(lines) if all_lines else MOST)
    if told["covariances"]:
        parts = [(*one["given"].values(), one["with"], number(one["value"])) for one in told["covariances"]]
        show_lines((*told["given"], "covariance with", ""), parts, (2,), len(parts) if all_lines else MOST)


def show_difference(found: Any) -> None:
    """What changed from one model to another."""
    print_result(f"{found.kind}: {rows(found.rows[0])} rows before, {rows(found.rows[1])} after")
    if found.note:
        print_result(f"  {printable(found.note)}")
    if found.classes:
        totals = [max(sum(counts[k] for counts in found.classes.values()), 1e-300) for k in (0, 1)]
        lines = [
            (label, *map(rows, counts), *(f"{100 * n / total:.1f} %" for n, total in zip(counts, totals, strict=True)))
            for label, counts in found.classes.items()
        ]
        show_lines(("class", "before", "after", "share", "share"), lines, (1, 2, 3, 4))
        print_result(f"  p(class) moved by {_bits(found.class_bits)} bits")
    lines = []
    for one in found.columns:
        where = "" if one.group is None else f"{one.group} ({_bits(one.group_bits)})"
        levels = [f"+{level}" for level in one.new_levels] + [f"-{level}" for level in one.gone_levels]
        more = f" … {len(levels) - 6} more" if len(levels) > 6 else ""
        name = ", ".join(map(str, one.column)) if isinstance(one.column, tuple) else one.column
        lines.append((name, _bits(one.bits), where, " ".join(levels[:6]) + more))
    show_lines(("column", "bits", "most in", "levels"), lines, (1,))
    for what, names in (("only before", found.only_before), ("only after", found.only_after)):
        if names:
            print_result(f"\n{what}: {', '.join(map(printable, names))}")


def show_evaluation(result: Any) -> None:
    """What was measured on rows with classes, of all of them and by group."""
    if not hasattr(result, "confusion_matrix"):
        print_result(repr(result))
        return
    worth = (
        f" (worth {result.effective_rows:,.0f} of equal weight)"
        if result.effective_rows < 0.995 * result.n_rows
        else ""
    )
    print_result(
        f"{result.n_rows:,} rows{worth}, {len(result.classes)} classes; with {result.mass:.0%} credible intervals\n"
    )
    names = ("accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row")
    heads = ("accuracy", "error rate", "log-loss (nats)", "Brier score", "AUC", "calibration error", "bits per row")
    for name, head in zip(names, heads, strict=True):
        found = getattr(result, name)
        if found is not None:
            print_result(f"  {head:<17}  {found!r}")
    print_result("")
    labels = result.classes.tolist()
    lines: list[Sequence[Any]] = [
        (
            label,
            _measure(result.precision[label]),
            _measure(result.recall[label]),
            _measure(result.f1_score[label]).partition(" ")[0],
            rows(result.support[label]),
        )
        for label in labels
    ]
    macro = (result.macro_precision, result.macro_recall, result.macro_f1_score)
    mean = _measure(macro[2]).partition(" ")[0]
    lines.append(("macro average", _measure(macro[0]), _measure(macro[1]), mean, ""))
    answer_table(("class", "precision", "recall", "F", "rows"), lines, (1, 2, 3, 4))
    if result.groups:
        print_result("")
        groups = [
            (
                label,
                f"{part.n_rows:,}",
                _measure(part.accuracy),
                _measure(part.log_loss),
                _measure(part.calibration_error),
            )
            for label, part in result.groups.items()
        ]
        answer_table(("group", "rows", "accuracy", "log-loss", "calibration error"), groups, (1, 2, 3, 4))


def show_explanation(why: Any, place: int) -> None:
    """One row's weights of evidence, with bars."""
    note, why.note = why.note, ""
    head, *lines = repr(why).splitlines()
    print_result(head.replace("row 0:", f"row {place}:", 1))
    if note:
        print_result(f"  by {printable(note).removeprefix('by ')}")
    if max(map(len, lines), default=0) <= width():
        print_result("\n".join(lines))
        return
    cells = dict(zip(map(str, why.columns), why.values[0], strict=True))  # long ones are folded, and have no bars
    weights = [
        (column, "—" if cells[str(column)] is None else cells[str(column)], f"{weight:+.3f}")
        for column, weight in why.to_dict().items()
    ]
    show_lines(("column", "value", "weight"), weights, (2,))


def show_lines(
    heads: Sequence[str], lines: Sequence[Sequence[Any]], right: Sequence[int] = (), most: int = MOST
) -> None:
    """A table of its first lines, and how many more there are."""
    if not lines:
        return
    print_result("")
    answer_table(heads, lines[:most], right)
    if len(lines) > most:
        print_result(f"… {len(lines) - most:,} more; --json has all")


def _family(value: Any) -> str:
    bins = getattr(value, "bins", ())
    return f"{len(bins)} bins: {', '.join(bins)}" if bins else str(value)


def _share(missing: float | None) -> str:
    return (
        "" if missing is None else "0 %" if missing == 0 else "< 0.1 %" if missing < 0.001 else f"{100 * missing:.3g} %"
    )


def _bits(bits: float) -> str:
    return "—" if bits != bits else "0" if abs(bits) < 5e-7 else f"{bits:.3g}"


def _measure(found: Any) -> str:
    """A measure in at most three decimals, so that several stand side by side; --json has all."""
    value, low, high = (text if len(text.partition(".")[2]) <= 3 else f"{float(text):.3f}" for text in found.shown())
    return f"{value} ({low}–{high})"
