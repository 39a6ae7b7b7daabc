"""show_work: the textbook computation of one row, with its numbers put in."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of
from tallybayes.families._shared.density_terms import density_terms, is_joint, word_terms
from tallybayes.families._shared.log_prob_forms import form_of
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import shown, shown_cells
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.typing import Rows

MOST_COLUMNS = 12  # of a block whose cells and means are shown


def one_row(model: Any, row: Any) -> Table:
    """The features of one row."""
    check_is_fitted(model, "tally_")
    table = open_rows(model, row)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    return table


@answering
def show_work(model: Any, row: Rows) -> str:
    """Bayes' rule for one row, line by line with its numbers, as a textbook would write it.

    The lines that are not indented add up to log p(class, x). Columns that vary together are one of them, by the
    quadratic form of their density, which is told; missing cells are marginalized.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    table = one_row(model, row)
    word = "component" if model._group_word == "components" else "class"
    joint = model._joint(table)[0]  # refuses what is not estimated
    together = any(is_joint(_form(scored)) for scored in model._factor_scorers)
    product = f"Π p(block | {word}), the columns of a block together" if together else f"Π p(x_j | {word})"
    if together and len(model._factor_scorers) == 1:
        product = f"p(x | {word}), all columns together"
    sheet = CalculationSheet(f"p({word} | x) ∝ p({word}) · {product}", list(model.classes_))
    sheet.add(f"log p({word})", model.class_log_prior_)
    for scored in model._factor_scorers:
        cells = chunk_of(model._factor_cells(table, scored), slice(None))
        levels = [domain.levels for domain in model._level_domains(scored)]
        if is_joint(_form(scored)):
            _write_joint(sheet, model, scored, cells, word)
        else:
            _write_columns(sheet, model, scored, cells, levels, word)
    return finished(sheet, model, table, joint, word)


def finished(sheet: CalculationSheet, model: Any, table: Table, joint: np.ndarray, word: str = "class") -> str:
    """Add the sum, Bayes' rule and the prediction to the sheet, and return its text."""
    sheet.rule()
    sheet.add(f"log p({word}, x)", joint)
    posterior = model._posterior(table)
    log_proba = posterior.log_proba
    sheet.add(f"p({word} | x)", np.exp(log_proba[0]))
    if posterior.impossible.any():
        sheet.note(f"x is impossible in every {word}: it has p({word})")
    if model._calibration is not None:
        log_proba = model._calibration.apply(log_proba)
        sheet.add(f"p({word} | x), calibrated", np.exp(log_proba[0]))
    return sheet.to_text(model.classes_[log_proba[0].argmax()])


def _form(scored: FactorScorer) -> Any:
    """What its log probability looks like."""
    return form_of(scored.family, scored.parameters, scored.predictive)


def _title(name: Any, word: str) -> str:
    return f"log p({printable(name)} | {word})"


def _write_columns(
    sheet: CalculationSheet, model: Any, scored: FactorScorer, cells: np.ndarray, levels: list[Any], word: str
) -> None:
    """Columns that are independent given the class, and words of one vocabulary."""
    urn = word_terms(_form(scored), cells[0])
    if urn is not None:
        (terms, common) = urn
        said = "log of the urn's sum term"
    else:
        terms = scored.contributions(cells)[0]
        whole = terms.sum(axis=-1) if scored.family.columnwise else scored.log_prob(cells)[0]
        possible = np.isfinite(whole)  # what is left is the same in every class
        common = np.full(len(whole), (whole[possible] - terms[possible].sum(axis=-1))[0] if possible.any() else 0.0)
        said = "log coefficient"  # of a multinomial row
    described = {} if urn is not None else scored.family.named_parameters(scored.parameters)
    width = terms.shape[-1]
    is_block = len(scored.factor.columns) != terms.shape[-1]
    places = np.arange(width)
    if is_block and width > MOST_COLUMNS:  # of many words, those that are there
        places = np.flatnonzero(cells[0])[:MOST_COLUMNS]
    values = shown_cells([levels[place] for place in places] if levels else [], cells[0, places])
    for place, value in zip(places.tolist(), values, strict=True):
        name = model._display_name(scored.factor.column(place, width))
        title = f"log urn term of {printable(name)}" if urn is not None else _title(name, word)
        sheet.add(title, terms[:, place], shown(value))
        if value is None:
            sheet.note("  missing: marginalized, adds 0")
            continue
        for what, numbers in described.items():
            sheet.add(f"  {what}", numbers[:, place])
    if len(places) < width:
        title = f"{width - len(places):,} other columns of {printable(scored.factor.columns[0])}"
        sheet.add(title, np.delete(terms, places, axis=-1).sum(axis=-1))
    if (np.abs(common) > 1e-9).any():
        sheet.add(said, common)


def _write_joint(sheet: CalculationSheet, model: Any, scored: FactorScorer, cells: np.ndarray, word: str) -> None:
    """Columns that vary together, by their quadratic form."""
    row = scored._varied(cells)[0]
    worked = density_terms(_form(scored), row)
    known = np.flatnonzero(~np.isnan(row))
    names = [printable(model._display_name(scored.factor.column(place, len(row)))) for place in range(len(row))]
    some = ", ".join(names[place] for place in known[:3]) + (", …" if len(known) > 3 else "")
    sheet.add(_title(some or "nothing", word), scored.log_prob(cells)[0])
    sheet.note(f"  {worked.note}")
    for title, numbers in worked.parts.items():
        sheet.add(f"  {title}", numbers)
    for place in range(min(len(row), MOST_COLUMNS)):
        value = None if np.isnan(cells[0, place]) else float(cells[0, place])
        sheet.add(f"  mean of {names[place]}", worked.means[:, place], shown(value))
        if value is None:
            sheet.note("    missing: marginalized")
        elif np.isnan(row[place]):
            sheet.note("    the same in every row that was learnt: adds nothing")
    if len(row) > MOST_COLUMNS:
        sheet.note(f"  … and {len(row) - MOST_COLUMNS:,} more columns")
