"""Step-by-step calculation of the posterior class probabilities of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of
from tallybayes.families._shared.density_terms import density_terms, is_joint, word_terms
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.scoring_forms import form_of
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import shown, shown_cells
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.estimation.calibration.calibration import Calibration
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
    from tallybayes.models.inspection.column_names import ColumnNames

MOST_COLUMNS = 12  # printed columns of a block


def one_row(table: Table) -> Table:
    """Return the features of one row; raise DataError for several rows."""
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    return table


def show_work(estimates: EstimatedClassifier, table: Table, calibration: Calibration | None) -> str:
    """Return a step-by-step calculation of Bayes' rule for one row, as text."""
    joint = estimates.joint(one_row(table))[0]  # raises if parameters are undefined
    sheet = estimates.calculation(table, joint)
    word = estimates.group_word
    sheet.rule()
    sheet.add(f"log p({word}, x)", joint)
    posterior = estimates.posterior(table)
    log_proba = posterior.log_proba
    sheet.add(f"p({word} | x)", np.exp(log_proba[0]))
    if posterior.impossible.any():
        sheet.note(f"x is impossible in every {word}: it has p({word})")
    if calibration is not None:
        log_proba = calibration.apply(log_proba)
        sheet.add(f"p({word} | x), calibrated", np.exp(log_proba[0]))
    return sheet.to_text(estimates.labels[log_proba[0].argmax()])


def calculation(estimates: EstimatedClassifier, table: Table) -> CalculationSheet:
    """Return the calculation of log p(class, x) of one row, factor by factor."""
    word = estimates.group_word
    names = estimates.names
    together = any(is_joint(_form(scorer)) for scorer in estimates.scorers)
    product = f"Π p(block | {word}), the columns of a block together" if together else f"Π p(x_j | {word})"
    if together and len(estimates.scorers) == 1:
        product = f"p(x | {word}), all columns together"
    sheet = CalculationSheet(f"p({word} | x) ∝ p({word}) · {product}", list(estimates.labels))
    sheet.add(f"log p({word})", estimates.class_log_prior)
    for scorer in estimates.scorers:
        cells = chunk_of(estimates.cells(table, scorer), slice(None))
        if is_joint(_form(scorer)):
            _write_joint(sheet, scorer, cells, word, names)
        else:
            levels = [domain.levels for domain in estimates.level_domains(scorer)]
            _write_columns(sheet, scorer, cells, levels, word, names)
    return sheet


def _form(scored: FactorScorer) -> Any:
    """Return the scoring form of a factor."""
    return form_of(scored.family, scored.parameters, scored.predictive)


def _title(name: Name, word: str) -> str:
    """Return the title of a term."""
    return f"log p({printable(name)} | {word})"


def _write_columns(
    sheet: CalculationSheet,
    scored: FactorScorer,
    cells: np.ndarray,
    levels: list[Any],
    word: str,
    names: ColumnNames,
) -> None:
    """Add the terms of conditionally independent columns, or of the words of one vocabulary."""
    urn = word_terms(_form(scored), cells[0])
    if urn is not None:
        (terms, common) = urn
        common_title = "log of the urn's sum term"
    else:
        terms = scored.contributions(cells)[0]
        total = terms.sum(axis=-1) if scored.family.columnwise else scored.log_prob(cells)[0]
        possible = np.isfinite(total)  # the remaining term is the same in every class
        common = np.full(len(total), (total[possible] - terms[possible].sum(axis=-1))[0] if possible.any() else 0.0)
        common_title = "log coefficient"  # the multinomial coefficient
    described = {} if urn is not None else named_parameters(scored.family, scored.parameters)
    width = terms.shape[-1]
    is_block = len(scored.factor.columns) != terms.shape[-1]
    positions = np.arange(width)
    if is_block and width > MOST_COLUMNS:  # of many words, those of the row
        positions = np.flatnonzero(cells[0])[:MOST_COLUMNS]
    values = shown_cells([levels[position] for position in positions] if levels else [], cells[0, positions])
    for position, value in zip(positions.tolist(), values, strict=True):
        name = names.display(scored.factor.column(position, width))
        title = f"log urn term of {printable(name)}" if urn is not None else _title(name, word)
        sheet.add(title, terms[:, position], shown(value))
        if value is None:
            sheet.note("  missing: marginalized, adds 0")
            continue
        for what, numbers in described.items():
            sheet.add(f"  {what}", numbers[:, position])
    if len(positions) < width:
        title = f"{width - len(positions):,} other columns of {printable(scored.factor.columns[0])}"
        sheet.add(title, np.delete(terms, positions, axis=-1).sum(axis=-1))
    if (np.abs(common) > 1e-9).any():
        sheet.add(common_title, common)


def _write_joint(
    sheet: CalculationSheet, scored: FactorScorer, cells: np.ndarray, word: str, column_names: ColumnNames
) -> None:
    """Add the term of columns with a joint distribution."""
    row = scored.varying(cells)[0]
    density = density_terms(_form(scored), row)
    observed = np.flatnonzero(~np.isnan(row))
    names = [printable(column_names.display(scored.factor.column(position, len(row)))) for position in range(len(row))]
    listed = ", ".join(names[position] for position in observed[:3]) + (", …" if len(observed) > 3 else "")
    sheet.add(_title(listed or "nothing", word), scored.log_prob(cells)[0])
    sheet.note(f"  {density.note}")
    for title, numbers in density.parts.items():
        sheet.add(f"  {title}", numbers)
    for position in range(min(len(row), MOST_COLUMNS)):
        value = None if np.isnan(cells[0, position]) else float(cells[0, position])
        sheet.add(f"  mean of {names[position]}", density.means[:, position], shown(value))
        if value is None:
            sheet.note("    missing: marginalized")
        elif np.isnan(row[position]):
            sheet.note("    constant in the training rows: adds 0")
    if len(row) > MOST_COLUMNS:
        sheet.note(f"  … and {len(row) - MOST_COLUMNS:,} more columns")
