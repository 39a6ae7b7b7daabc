"""show_work: the textbook computation of one row, with its numbers put in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, printable
from tallybayes.families.form import Cells, RowBell, RowStudent, form_of
from tallybayes.models.classifiers.answers.explain import shown, shown_cells
from tallybayes.models.classifiers.answers.sheet import Sheet
from tallybayes.models.fitted.scoring import Scored, chunk_of
from tallybayes.models.inputs.outside import answering
from tallybayes.models.inputs.shape import open_rows
from tallybayes.sources.table import Table

MOST_COLUMNS = 12  # of a block whose cells and means are shown


def one_row(model: Any, row: Any) -> Table:
    """The features of one row."""
    check_is_fitted(model, "tally_")
    table = open_rows(model, row)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    return table


@answering
def show_work(model: Any, row: Any) -> str:
    """Bayes' rule for one row, line by line with its numbers, as a textbook would write it.

    The lines that are not indented add up to log p(class, x). Columns that vary together are one of them, by the
    quadratic form of their density, which is told; missing cells are marginalised.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    table = one_row(model, row)
    word = "component" if model._groups == "components" else "class"
    joint = model._joint(row)[0]  # refuses what is not estimated
    together = any(_is_joint(scored) for scored in model._scored)
    product = f"Π p(block | {word}), the columns of a block together" if together else f"Π p(x_j | {word})"
    if together and len(model._scored) == 1:
        product = f"p(x | {word}), all columns together"
    sheet = Sheet(f"p({word} | x) ∝ p({word}) · {product}", list(model.classes_))
    sheet.add(f"log p({word})", model.class_log_prior_)
    for scored in model._scored:
        cells = chunk_of(model._rows(table, scored), slice(None))
        levels = [domain.levels for domain in model._level_domains(scored)]
        if _is_joint(scored):
            _write_joint(sheet, model, scored, cells, word)
        else:
            _write_columns(sheet, scored, cells, levels, word)
    return finished(sheet, model, row, joint, word)


def finished(sheet: Sheet, model: Any, row: Any, joint: np.ndarray, word: str = "class") -> str:
    """The sum, Bayes' rule, and what is predicted."""
    sheet.rule()
    sheet.add(f"log p({word}, x)", joint)
    found = model._posterior(row)
    sheet.add(f"p({word} | x)", np.exp(found.log_proba[0]))
    if found.impossible.any():
        sheet.note(f"x is impossible in every {word}: it has p({word})")
    if model._calibration is not None:
        sheet.add(f"p({word} | x), calibrated", np.exp(model._calibration.apply(found.log_proba)[0]))
    return sheet.written(model.predict(row)[0])


def _is_joint(scored: Scored) -> bool:
    """Whether the density is of whole rows: no product over columns."""
    return isinstance(form_of(scored.family, scored.parameters, scored.predictive), RowBell | RowStudent)


def _title(name: Any, word: str) -> str:
    return f"log p({printable(name)} | {word})"


def _write_columns(sheet: Sheet, scored: Scored, cells: np.ndarray, levels: Sequence[Any], word: str) -> None:
    """Columns that are independent given the class, and words of one vocabulary."""
    form = form_of(scored.family, scored.parameters, scored.predictive)
    urn = isinstance(form, Cells) and form.row_term is not None
    if urn:
        assert isinstance(form, Cells)
        terms = form.at_zero + form.term(cells[0], np.arange(cells.shape[1]))
        common = form.row_term(cells.sum(axis=1))[..., 0]  # type: ignore[misc]
        said = "log of the urn's sum term"
    else:
        terms = scored.contributions(cells)[0]
        whole = terms.sum(axis=-1) if scored.family.columnwise else scored.log_prob(cells)[0]
        possible = np.isfinite(whole)  # what is left is the same in every class
        common = np.full(len(whole), (whole[possible] - terms[possible].sum(axis=-1))[0] if possible.any() else 0.0)
        said = "log coefficient"  # of a multinomial row
    columns = scored.factor.columns
    if len(columns) != terms.shape[-1]:
        sheet.add(_title(columns[0], word), terms.sum(axis=-1) + common)
        return
    described = {} if urn else scored.family.describe(scored.parameters)
    for place, (name, value) in enumerate(zip(columns, shown_cells(levels, cells[0]), strict=True)):
        title = f"log urn term of {printable(name)}" if urn else _title(name, word)
        sheet.add(title, terms[:, place], shown(value))
        if value is None:
            sheet.note("  missing: marginalised, adds 0")
            continue
        for what, numbers in described.items():
            sheet.add(f"  {what}", numbers[:, place])
    if (np.abs(common) > 1e-9).any():
        sheet.add(said, common)


def _write_joint(sheet: Sheet, model: Any, scored: Scored, cells: np.ndarray, word: str) -> None:
    """Columns that vary together, by their quadratic form."""
    form = form_of(scored.family, scored.parameters, scored.predictive)
    assert isinstance(form, RowBell | RowStudent)
    row = scored._varied(cells)
    mean = np.asarray(form.mean if isinstance(form, RowBell) else form.location)
    known = np.flatnonzero(~np.isnan(row[0]))
    names = [model._called(scored.factor.column(place, row.shape[1])) for place in range(row.shape[1])]
    whole, k = scored.log_prob(cells)[0], len(known)
    some = ", ".join(printable(names[place]) for place in known[:3]) + (", …" if k > 3 else "")
    sheet.add(_title(some or "nothing", word), whole)
    if k:
        rows, at = form.turned(row[:, known], known)[0], form.turned(mean[:, known], known)[0]
        each = np.arange(len(mean))
        at = np.broadcast_to(at, (len(mean), len(mean), k))[each, each]
        lengths = ((rows[0] - at) ** 2).sum(axis=-1)
        if isinstance(form, RowBell):
            sheet.note(f"  N(x | μ, Σ) by its quadratic form, {k} columns together")
            sheet.add("  −½ log det(2πΣ)", whole + 0.5 * lengths)
            sheet.add("  −½ (x − μ)ᵀ Σ⁻¹ (x − μ)", -0.5 * lengths)
        else:
            bent = -(form.shape + k / 2) * np.log1p(lengths)
            sheet.note(f"  Student's t by its quadratic form, {k} columns together, parameters integrated out")
            sheet.add("  log norm", whole - bent)
            sheet.add("  q = (x − m)ᵀ S⁻¹ (x − m)", lengths)
            sheet.add("  degrees of freedom ν", 2 * form.shape)
            sheet.add(f"  −½ (ν + {k}) log(1 + q)", bent)
    for place in range(min(row.shape[1], MOST_COLUMNS)):
        value = None if np.isnan(cells[0, place]) else float(cells[0, place])
        sheet.add(f"  mean of {printable(names[place])}", mean[:, place], shown(value))
        if value is None:
            sheet.note("    missing: marginalised")
        elif np.isnan(row[0, place]):
            sheet.note("    the same in every row that was learnt: adds nothing")
    if row.shape[1] > MOST_COLUMNS:
        sheet.note(f"  … and {row.shape[1] - MOST_COLUMNS:,} more columns")
