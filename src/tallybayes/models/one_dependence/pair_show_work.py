"""show_work of classifiers that count pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from tallybayes.errors import printable
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import shown
from tallybayes.models.classification.methods.show_work import finished, one_row
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.one_dependence.pair_model import codes_of
from tallybayes.typing import Rows


@answering
def show_work_of_tree(model: Any, row: Rows) -> str:
    """Bayes' rule for one row along the tree, line by line with its numbers.

    The lines add up to log p(class, x): every column given the class and its parent. Missing cells are summed over; one
    that others depend on leaves no product, and a single line says so.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    table = one_row(model, row)
    found = model._pairs
    joint = model._joint(table)[0]
    codes = [int(column[0]) for column in codes_of(model, table)]
    sheet = CalculationSheet("p(class | x) ∝ p(class) · Π p(x_j | class, its parent)", list(model.classes_))
    sheet.add("log p(class)", model.class_log_prior_)
    parents = model._tree.parents
    if any(parent >= 0 and codes[parent] < 0 for parent in parents):
        sheet.add("log p(x | class)", joint - model.class_log_prior_)
        sheet.note("  cells that are missing are summed over along the tree, so the rest is no product")
        return finished(sheet, model, table, joint)
    for place, (name, parent) in enumerate(zip(found.names, parents, strict=True)):
        given = "" if parent < 0 else f", {printable(found.names[parent])}"
        title = f"log p({printable(name)} | class{given})"
        if codes[place] < 0:
            sheet.add(title, np.zeros(len(model.classes_)), "—")
            sheet.note("  missing: marginalized, adds 0")
            continue
        terms = _log_given(model, place, codes[place], parent, codes[max(parent, 0)])
        sheet.add(title, terms, _level(model, place, codes[place]))
    return finished(sheet, model, table, joint)


@answering
def show_work_of_parents(model: Any, row: Rows) -> str:
    """Bayes' rule for one row with every column as the parent of all others in turn, and their mean.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    table = one_row(model, row)
    found = model._pairs
    joint = model._joint(table)[0]
    codes = [int(column[0]) for column in codes_of(model, table)]
    formula = "p(class | x) ∝ p(class) · 1/d Σ_i p(x_i | class) Π_j p(x_j | class, x_i)"
    sheet = CalculationSheet(formula, list(model.classes_))
    sheet.add("log p(class)", model.class_log_prior_)
    terms = []
    for i, name in enumerate(found.names):
        levels = range(found.sizes[i]) if codes[i] < 0 else [codes[i]]
        each = [
            _log_given(model, i, level, -1, 0)
            + sum(_log_given(model, j, codes[j], i, level) for j in range(len(codes)) if j != i and codes[j] >= 0)
            for level in levels
        ]
        terms.append(logsumexp(np.array(each), axis=0))
        sheet.add(f"  with parent {printable(name)}", terms[-1], _level(model, i, codes[i]))
    if terms:
        mean = logsumexp(np.array(terms), axis=0) - np.log(len(terms))
        sheet.add("log of their mean", mean)
    return finished(sheet, model, table, joint)


def _log_given(model: Any, column: int, level: int, parent: int, above: int) -> np.ndarray:
    """log p(level | class, level above) of one column, or given the class alone: (classes,)."""
    found = model._pairs
    if parent < 0:
        return np.log(found.shares[:, found.offsets[column] + level])
    return np.log(found.given(float(model.strength), parent, column)[:, above, level])


def _level(model: Any, column: int, code: int) -> str:
    """A level as it is shown: its label, or the bin."""
    if code < 0:
        return "—"
    family = model._columns.families[model._pairs.names[column]]
    return shown(family.bins[code] if family.bins else model._pairs.domains[column].display_levels[code])
