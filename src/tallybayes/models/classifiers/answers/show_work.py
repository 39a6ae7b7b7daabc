"""show_work: the textbook computation of one row, with its numbers put in."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, printable
from tallybayes.models.classifiers.answers.explain import shown, shown_cells
from tallybayes.models.fitted.scoring import Scored, chunk_of
from tallybayes.models.inputs.outside import answering
from tallybayes.models.inputs.shape import open_rows


@answering
def show_work(model: Any, row: Any) -> str:
    """Bayes' rule for one row, line by line with its numbers, as a textbook would write it.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    check_is_fitted(model, "tally_")
    table = open_rows(model, row)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    classes, prior = list(model.classes_), model.class_log_prior_
    titles = [printable(label) for label in classes]
    width = max(10, *(len(label) + 2 for label in titles))
    lines = ["p(class | x) ∝ p(class) · Π p(x_j | class)", ""]
    title = max([len("log p(class, x)"), *(len(_title(n)) for s in model._scored for n in s.factor.columns)]) + 2
    lines.append(" " * (title + 14) + "".join(f"{label:>{width}}" for label in titles))
    lines.append(_line("log p(class)", "", prior, title, width))
    for scored in model._scored:
        cells = chunk_of(model._rows(table, scored), slice(None))
        terms = scored.contributions(cells)[0]
        columns, levels = scored.factor.columns, [domain.levels for domain in model._level_domains(scored)]
        whole = terms.sum(axis=-1) if scored.family.columnwise else scored.log_prob(cells)[0]
        if len(columns) != terms.shape[-1]:
            lines.append(_line(_title(columns[0]), "", whole, title, width))
            continue
        for place, (name, value) in enumerate(zip(columns, shown_cells(levels, cells[0]), strict=True)):
            lines.append(_line(_title(name), shown(value), terms[:, place], title, width))
            lines += _formula(scored, place, value, title, width)
        if scored.family.columnwise:
            continue
        common = np.subtract(whole, terms.sum(axis=-1), out=np.zeros_like(whole), where=np.isfinite(whole))
        if (np.abs(common) > 1e-9).any():  # the coefficient of a multinomial row
            lines.append(_line("log coefficient", "", common, title, width))
    total = model._joint(row)[0]
    lines.append(" " * (title + 14) + "─" * (width * len(classes)))
    lines.append(_line("log p(class, x)", "", total, title, width))
    proba = model.predict_proba(row)[0]
    lines.append(_line("p(class | x)", "", proba, title, width))
    lines.append("")
    lines.append(f"prediction: {titles[int(total.argmax())]}")
    return "\n".join(lines)


def _title(name: Any) -> str:
    return f"log p({printable(name)} | class)"


def _line(title: str, value: str, numbers: np.ndarray, wide: int, width: int) -> str:
    return f"{title:<{wide}}{value:>12}  " + "".join(f"{number:>{width}.4f}" for number in numbers)


def _formula(scored: Scored, place: int, value: Any, wide: int, width: int) -> list[str]:
    """The parameters behind one column's numbers."""
    if value is None:
        return [f"  {'missing: marginalised, adds 0':<{wide}}"]
    shown = scored.describe(place)
    return [
        f"  {name:<{wide + 12}}" + "".join(f"{number:>{width}.4f}" for number in numbers)
        for name, numbers in shown.items()
    ]
