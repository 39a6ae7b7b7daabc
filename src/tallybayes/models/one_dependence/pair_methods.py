"""Answers of classifiers that count pairs: explanations, samples, and missing cells filled in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.array_input import as_array
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.factor_sampling import MissingCellPrediction, impute_column
from tallybayes.estimation.scoring.factor_scorer import NO_COLUMNS, FactorScorer, chunk_rows
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.models.classification.class_parameters import labeled_class_prior
from tallybayes.models.classification.class_prior import class_prior_distribution
from tallybayes.models.classification.methods.class_sampling import draw_classes
from tallybayes.models.classification.methods.explanation import (
    PRIOR,
    Explanation,
    ExplanationPart,
    PriorPart,
    compared,
    log_odds_of,
)
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.input_format import open_rows, shaped
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.inspection.labeled_parameters import LabeledFactor, make_parameters
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable
from tallybayes.models.one_dependence.pair_model import codes_of
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import labels_at
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import RandomState, Rows

INTERACTION = "(together)"


class _LeaveColumnOut(ExplanationPart):
    """What every column adds to the log-odds of the others, and what is left: columns say some things only together."""

    def __init__(self, model: Any, table: Table, log_odds: np.ndarray, top: np.ndarray, other: np.ndarray) -> None:
        super().__init__(top, other)
        self.plan = model._row_scorer
        self.codes = codes_of(model, table)
        self.log_odds = log_odds
        self.prior = model.class_log_prior_
        self.shown = [_cells(table.columns[name]) for name in model._pairs.names]

    def log_ratios(self, rows: slice) -> np.ndarray:
        some = [np.asarray(column)[rows].astype(np.int32) for column in self.codes]
        top = self.top[rows]
        other = self.other[rows]
        whole = self.log_odds[rows]
        n = len(top)
        out = np.zeros((len(top), len(some) + 1))
        step = max(1, chunk_rows(1, len(some)) // max(n, 1))  # columns at a time: few rows take as long as one
        for start in range(0, len(some), step):
            gone = range(start, min(start + step, len(some)))
            tried = [np.tile(column, len(gone)) for column in some]
            for place, j in enumerate(gone):
                tried[j][place * n : (place + 1) * n] = -1
            joint = self.plan.joint_of(tried).reshape(len(gone), n, -1)
            each = np.arange(n)
            out[:, list(gone)] = (whole - (joint[:, each, top] - joint[:, each, other])).T
        with np.errstate(invalid="ignore"):
            out[:, -1] = whole - (self.prior[top] - self.prior[other]) - out[:, :-1].sum(axis=1)
        return out

    def cells(self, row: int) -> list[Any]:
        return [*(column[row] for column in self.shown), None]


def _cells(column: Any) -> list[Any]:
    values = as_array(column).tolist()
    return [None if value is None or value != value else value for value in values]


def told(model: Any) -> list[LabeledFactor]:
    """p(class), and every column given the class and, in a tree, its parent."""
    parents = getattr(model, "parents_", {})
    return [labeled_class_prior(model), *(told_given(model, name, parents.get(name)) for name in model._pairs.names)]


def told_given(model: Any, column: Name, parent: Name | None = None) -> LabeledFactor:
    """A column given the class and another column, or the class alone."""
    found = model._pairs
    families = model._columns.families
    place = found.names.index(column)
    here = slice(found.offsets[place], found.offsets[place + 1])
    given: tuple[Any, ...] = (model._target,)
    groups: tuple[Any, ...] = (model.classes_.tolist(),)
    shares = found.shares[:, here]
    if parent is not None:
        above = found.names.index(parent)
        given = (*given, parent)
        groups = (*groups, families[parent].bins or found.domains[above].display_levels)
        shares = found.given(float(model.strength), above, place)
    family = families[column]
    factor = Factor(column, given, family if family.bins else family.present_family or family)
    scored = FactorScorer(factor, LevelProbabilities(shares, Segments(found.sizes[[place]])), False, NO_COLUMNS)
    return LabeledFactor(scored, given, groups, () if factor.family.bins else [found.domains[place].display_levels])


def n_parameters(model: Any) -> int:
    """The number of free parameters of all tables that rows are scored by, and of the class probabilities."""
    check_is_fitted(model, "tally_")
    sizes = model._pairs.sizes
    n_classes = len(model.classes_)
    free = np.maximum(sizes - 1, 0)
    if hasattr(model, "parents_"):
        places = {name: place for place, name in enumerate(model._pairs.names)}
        above = [1 if parent is None else sizes[places[parent]] for parent in model.parents_.values()]
        tables = int((np.array(above, dtype=np.int64) * free).sum())
    else:  # every column in turn, and all others given it
        tables = int(free.sum() + (sizes * (free.sum() - free)).sum())
    given = class_prior_distribution(model.class_prior, model.estimate) is None
    return n_classes * tables + (0 if given else max(n_classes - 1, 0))


def parameters(model: Any) -> Parameters:
    """What was learnt, by column: p(column | class), in a tree given its parent, too.

    ``parameters_[column, parent]`` is p(column | class, parent) of any two columns. Probabilities are posterior means.
    """

    def make() -> Parameters:
        found = make_parameters(model)

        def find(column: Any) -> ParameterTable:
            names = model._pairs.names
            if isinstance(column, tuple) and len(column) == 2 and set(column) <= set(names) and column not in names:
                return told_given(model, *column).column(0)
            return found[column]

        return Parameters(found.title, list(found), list(found), find)

    made: Parameters = model._cached("parameters", make)
    return made


@answering
def explain(model: Any, X: Rows, against: Hashable = None) -> Explanation:
    """How far every column pulls each row, and all together: weights of evidence that sum exactly to the log-odds.

    A column's weight is the log-odds with it less the log-odds without it, the cell taken as missing. Columns that say
    the same thing add little each, and what they say counts in the line "(together)".

    Parameters
    ----------
    X : as for `fit`, without the target
    against : label, optional
        The class to compare with; by default the runner-up.

    Returns
    -------
    Explanation
        Of the most probable class of every row; it prints as a table, and has ``to_frame`` and ``plot``.
    """
    check_is_fitted(model, "tally_")
    table = open_rows(model, X)
    joint = model._joint(table)
    top, other = compared(joint, model._class_domain.levels, against)
    prior = PriorPart(model.class_log_prior_, top, other)
    log_odds, impossible = log_odds_of(joint, top, other, prior)
    parts = [prior, _LeaveColumnOut(model, table, log_odds, top, other)]
    names = [PRIOR, *model._pairs.names, INTERACTION]
    return Explanation(
        names, parts, log_odds, model.classes_[top], model.classes_[other], impossible, model._frame_library
    )


def sample(model: Any, n: int, given: Hashable = None, *, random_state: RandomState = None) -> tuple[Any, np.ndarray]:
    """Draw rows from the model: a class, a column by itself, and the others given both.

    Numbers that were cut into bins are drawn evenly from their bin.

    Parameters
    ----------
    n : int
    given : label, optional
        The class of all rows; drawn by the class prior if left out.
    random_state : int, Generator or None

    Returns
    -------
    X : a data frame of the kind the model was fitted on, else an array of shape (n, columns)
        Or a dictionary of columns, where they have names or labels.
    y : ndarray of shape (n,)
    """
    check_is_fitted(model, "tally_")
    rng = np.random.default_rng(random_state)
    group = draw_classes(model, n, given, rng)
    codes = model._draw(group, rng)
    columns: dict[Name, Any] = {}
    for name, family in model._columns.families.items():
        place = model._pairs.names.index(name) if name in model._pairs.names else None
        if place is None:
            columns[name] = np.full(n, np.nan)
        elif family.bins:
            code = codes[:, place]
            ends = (family.present_family or family).ends
            ends = ends if family.present_family is None else np.append(ends, np.nan)  # absence ends nowhere
            columns[name] = ends[code] + (ends[code + 1] - ends[code]) * rng.random(n)
        else:
            columns[name] = labels_at(model._pairs.domains[place].levels, codes[:, place])
    columns |= {name: np.full(n, np.nan) for name in model._columns.dropped_columns}
    return shaped(model._shape, columns, model._frame_library), model.classes_[group]


def drawn(shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A level for every row, by its probabilities (n, levels)."""
    return np.asarray((rng.random((len(shares), 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1))


@answering
def impute(model: Any, X: Rows, how: str = "mean") -> Any:
    """Fill in missing cells by what the rest of their row says about them, each by itself.

    Parameters
    ----------
    X : as for `fit`, without the target
    how : {"mean", "mode", "distribution"}, default "mean"
        Numbers by the mean of the middles of their bins, or by the middle of the most probable bin (``"mode"``); labels
        by the most probable one; or, for every column with missing cells, what is believed about them.

    Returns
    -------
    A copy of X: a data frame of the same kind, an array or a dictionary of columns
        For ``"distribution"``, a `MissingCellPrediction` for every such column.
    """
    if how not in ("mean", "mode", "distribution"):
        raise DataError(f"how is {how!r}; expected 'mean', 'mode' or 'distribution'.")
    table = model._open(X)
    weights = np.exp(model._log_proba(table))
    columns: dict[Any, Any] = {
        name: np.atleast_1d(X[name] if isinstance(X, Mapping) and name in X else column)
        for name, column in table.columns.items()
    }
    every = codes_of(model, table)
    cut = model._discretize(table)
    found = dict[Any, MissingCellPrediction]()
    for place, (name, domain) in enumerate(zip(model._pairs.names, model._pairs.domains, strict=True)):
        cells, (there,) = cut.levels([name], lambda _: False)
        codes = np.asarray(cells.columns[0]).astype(np.int64)
        gone = model._columns.absent_level(name, domain)
        family = model._columns.families[name]
        absent = codes < 0  # a level never seen is not missing
        if gone is not None:
            absent |= codes == model._columns.absent_level(name, there)
        rows = np.flatnonzero(absent)
        if not len(rows):
            continue
        some = [column[rows].astype(np.int32) for column in every]
        known = [level for level in range(len(domain.levels)) if level != gone]  # what is not there, not whether it is
        log_p = np.empty((len(rows), len(known)))
        for out, level in enumerate(known):
            here = np.full(len(rows), level, dtype=np.int32)
            joint = model._row_scorer.joint_of([*some[:place], here, *some[place + 1 :]])
            log_p[:, out] = np.logaddexp.reduce(joint, axis=1)
        shares = softmax(log_p, axis=1) if known else log_p
        if family.bins:
            middles = (family.present_family or family).sql_group_value(np.arange(len(known)))
            mean = middles[shares.argmax(axis=1)] if how == "mode" else shares @ middles
            found[name] = MissingCellPrediction(rows, np.ones((len(rows), 1)), means=mean[:, None])
        else:
            found[name] = MissingCellPrediction(
                rows, weights[rows], tuple(domain.levels[level] for level in known), shares
            )
        columns[name] = impute_column(columns[name], found[name], how)
    return found if how == "distribution" else shaped(model._shape, columns, frame_kind(X), as_rows(X, model), found)
