"""Explanation of the automatic classifier: contributions of the columns to the log-odds of the pool of its members."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.encoding import is_missing
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.table import Table
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.classification.methods.explanation import (
    CALIBRATION,
    PRIOR,
    Explanation,
    ExplanationPart,
    compared,
    explanation_parts,
)
from tallybayes.models.ensemble.members import Member, log_proba, read_features
from tallybayes.models.ensemble.stacking import LEAST
from tallybayes.models.forest.tree_explanation import tree_contributions
from tallybayes.models.inputs.input_format import bound_texts
from tallybayes.typing import Name, Rows

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier

_ROUNDING = 1e-9  # of log-odds


class _PooledPart(ExplanationPart):
    """The contributions of the class prior, of all columns, and of the calibration of the members."""

    def __init__(self, names: list[Any], terms: np.ndarray, table: Table, top: np.ndarray, other: np.ndarray) -> None:
        super().__init__(names, top, other)
        self.terms, self.table = terms, table

    def log_ratios(self, rows: slice) -> np.ndarray:
        return self.terms[rows]

    def cells(self, row: int) -> list[Any]:
        columns = self.table.columns
        cells = [columns[name][row] if name in columns else None for name in self.names]
        return [None if is_missing(cell) else cell for cell in cells]


def explain(model: AutoClassifier, X: Rows, against: Hashable = None) -> Explanation:
    """Return the contribution of each column to the log-odds of each row: they sum to the log-odds.

    The log-odds of the pool are the weighted sum of those of its members. The contributions to a member are scaled so
    that they sum to its calibrated log-odds, and those of the columns that a member makes of one, such as indicators of
    levels, are added. The last term is what is left where a calibration changes the sign of log-odds.
    """
    check_is_fitted(model, "members_")
    table = read_features(model, X)
    joint = log_proba(model, table)
    top, other = compared(joint, model._class_domain.levels, against)
    rows = np.arange(table.n_rows)
    log_odds = joint[rows, top] - joint[rows, other]
    total: dict[Any, np.ndarray] = {PRIOR: np.zeros(table.n_rows)}
    for member in model.members_:
        terms = [
            (name, np.clip(np.nan_to_num(term), LEAST, -LEAST))
            for name, term in _contributions(member, table, top, other)
        ]
        raw, calibrated = sum(term for _, term in terms), member.log_proba(table)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.nan_to_num((calibrated[rows, top] - calibrated[rows, other]) / raw)
        scale = member.spec.weight * np.clip(scale, 0.0, 1 / member.spec.calibration.temperature)
        for name, term in terms:
            known = total.setdefault(name, np.zeros(table.n_rows))
            known += scale * term
    total = {name: total[name] for name in (PRIOR, *table.columns, *total) if name in total}  # in the order of X
    rest = log_odds - sum(total.values())
    total |= {CALIBRATION: rest} if np.abs(rest).max(initial=0.0) > _ROUNDING else {}
    part = _PooledPart(list(total), np.stack(list(total.values()), axis=1), table, top, other)
    classes, frame = model.classes_, getattr(model.members_[0].model, "_frame_library", None)
    none_impossible = np.zeros(table.n_rows, dtype=bool)
    return Explanation(part.names, [part], log_odds, classes[top], classes[other], none_impossible, frame)


def _contributions(
    member: Member, table: Table, top: np.ndarray, other: np.ndarray
) -> Iterator[tuple[Name, np.ndarray]]:
    """Yield the contributions of the class prior and of each column to the log-odds of a member, by its owner."""
    rows = member.spec.view.apply(table)
    if hasattr(member.model, "counts_"):
        yield from tree_contributions(
            member.model.structure_, member.model.counts_, member.model._codes(rows), top, other
        )
        return
    owners = member.spec.view.owners(rows)
    parts, log_odds, _ = explanation_parts(estimates_of(member.model), bound_texts(member.model, rows), top, other)
    if member.model._text_readers:  # of one column: its contribution is that of all words
        prior = parts[0].log_ratios(slice(0, table.n_rows))[:, 0]
        yield from ((PRIOR, prior), (member.spec.view.names[0], log_odds - prior))
        return
    for part in parts:
        terms = part.log_ratios(slice(0, table.n_rows))
        for name, column in zip(part.names, terms.T, strict=True):
            owner = next((source for source in sources_of(name) if source in rows.columns), name)
            yield owners.get(name, owner), column
