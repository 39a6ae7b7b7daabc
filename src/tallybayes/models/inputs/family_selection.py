"""Selection of families by evidence: the candidates for every column, and their description lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.inputs.family_evidence import FamilySelectionRows, family_code_lengths
from tallybayes.models.inputs.features import default_family
from tallybayes.models.inputs.uninformative_columns import ColumnValues, duplicate_columns, why_uninformative
from tallybayes.tally.factor import Name

_SAID = 1.0  # bits: the code length of the statement that missing values of a column are informative
_PIECE = 2**13  # rows that are read together, to fit into the cache


class FamilyCandidate(NamedTuple):
    """A candidate family for a column, and the description length of the column in it."""

    family: Family
    bits: float


class ColumnSuggestion(NamedTuple):
    """Result for one column: the candidates, shortest description first, and the default family by type."""

    column: Any
    candidates: tuple[FamilyCandidate, ...]
    default: Family
    remark: str = ""
    dropped_columns: bool = False
    absence: float = 0.0  # bits by which missing values of the column discriminate the classes

    @property
    def family(self) -> Family:
        """The selected family."""
        best = self.candidates[0].family if self.candidates else self.default
        return WithMissing(best) if self.absence > 0 else best

    @property
    def gain(self) -> float:
        """The number of bits saved by the selected family relative to the default family."""
        bits = {candidate.family: candidate.bits for candidate in self.candidates}
        return bits[self.default] - self.candidates[0].bits if self.default in bits else 0.0


class FamilyChoices(NamedTuple):
    """Result for all rows, and the families selected without each fold."""

    of_all: list[ColumnSuggestion]
    by_fold: list[dict[Name, Family]]


def select_families(
    table: Table, names: Sequence[Name], target: Name | None, weight: np.ndarray | None = None
) -> list[ColumnSuggestion]:
    """Return the families of columns by evidence given the target, and the uninformative columns.

    Parameters
    ----------
    table : Table
    names : sequence of names
    target : name of the class column, or None
        Unlabeled rows are ignored; if all are unlabeled, the target is ignored.
    weight : array of shape (n,), optional

    Returns
    -------
    list of ColumnSuggestion
    """
    return select_families_by_fold(table, names, target, weight, None).of_all


def select_families_by_fold(
    table: Table, names: Sequence[Name], target: Name | None, weight: np.ndarray | None, fold: np.ndarray | None
) -> FamilyChoices:
    """Return `select_families` for all rows and without each fold.

    Statistics given the class are counted once, by fold.

    The candidate bins and the uninformative columns do not depend on the classes, so they are found from all rows.

    Parameters
    ----------
    table, names, target, weight
        As for `select_families`.
    fold : ndarray of int of shape (n,), optional
    """
    labels = [name for name in names if not table.is_block(name) and table.kind(name) == "label"]
    if labels:
        table.levels(labels)  # encode all rows once
    rows = FamilySelectionRows.of(table, target, weight, fold)
    found, seen, holes = _examine_columns(table, names, frozenset(labels), rows)
    lengths = family_code_lengths(rows, seen)
    tried: dict[Name, list[FamilyCandidate]] = {}
    without: list[dict[Name, Family]] = [{} for _ in range(rows.n_folds if fold is not None else 0)]
    for one in seen:
        families = [family for family, _ in lengths[one.name]]
        bits = np.array([nats for _, nats in lengths[one.name]]) / math.log(2)
        for chosen, best in zip(without, np.round(bits, 6).argmin(axis=0), strict=False):
            chosen[one.name] = families[best]
        every = [FamilyCandidate(family, float(length)) for family, length in zip(families, bits[:, -1], strict=True)]
        tried[one.name] = sorted(every, key=lambda candidate: round(candidate.bits, 6))  # ties: the first candidate
    if rows.subsampling_factor > 1:
        numbers = {one.name: tried[one.name] for one in seen if one.is_number}
        _drop_what_fails(numbers, rows)
        tried |= numbers
    for name, candidates in tried.items():
        found[name] = ColumnSuggestion(name, tuple(candidates), default_family(table, name))
    absences = _informative_missingness(rows, holes)
    for chosen, informative in zip(without, absences, strict=False):
        for name in informative:
            if name in chosen or found[name].remark == "constant":
                chosen[name] = WithMissing(chosen.get(name, found[name].default))
    for name, missingness_bits in absences[-1].items():
        remark = "constant where it is there" if found[name].remark == "constant" else found[name].remark
        left_out = found[name].dropped_columns and found[name].remark != "constant"
        found[name] = found[name]._replace(absence=missingness_bits, remark=remark, dropped_columns=left_out)
    return FamilyChoices([found[name] for name in names], without)


def _examine_columns(
    table: Table, names: Sequence[Name], labels: frozenset[Name], rows: FamilySelectionRows
) -> tuple[dict[Name, ColumnSuggestion], list[ColumnValues], list[ColumnValues]]:
    """Split columns into those without a choice, those whose families compete, and those with missing cells.

    Without a choice are blocks, columns that are uninformative and columns that repeat others. Missing cells of a
    column may be informative although it is constant.
    """
    found: dict[Name, ColumnSuggestion] = {}
    seen: list[ColumnValues] = []
    holes: list[ColumnValues] = []
    for name in names:
        default = default_family(table, name)
        if table.is_block(name):
            found[name] = ColumnSuggestion(name, (), default, "a block: not examined")
            continue
        one = rows.labels(name) if name in labels else rows.numbers(name)
        reason = why_uninformative(one, rows.subsampling_factor)
        holes += [one] if one.n_known < rows.table.n_rows and reason in (None, "constant") else []
        if reason is not None:
            found[name] = ColumnSuggestion(name, (), default, reason, dropped_columns=True)
        else:
            seen.append(one)
    for one, other in duplicate_columns(seen):
        found[one.name] = ColumnSuggestion(
            one.name, (), default_family(table, one.name), f"repeats {other.name!r}", dropped_columns=True
        )
    return found, [one for one in seen if one.name not in found], holes


def _drop_what_fails(tried: dict[Name, list[FamilyCandidate]], rows: FamilySelectionRows) -> None:
    """Drop the best candidates that do not support all rows, if families were selected from a sample."""
    columns: dict[Name, np.ndarray] = {}
    for name, candidates in tried.items():
        if _outside(candidates[0].family, np.zeros(1)) is not None:
            block: Any = rows.source.numbers([name])
            column = np.asarray(block[:, 0] if isinstance(block, np.ndarray) else block[0])
            columns[name] = column if rows.there is None else column[rows.there]
    failing = set()
    for start in range(0, rows.source.n_rows, _PIECE):  # rows of an array are read once for all columns
        for name, column in columns.items():
            if name not in failing and not _holds(tried[name][0].family, column[start : start + _PIECE]):
                failing.add(name)
    for name in failing:
        first = next(place for place, (family, _) in enumerate(tried[name]) if _holds(family, columns[name]))
        tried[name] = tried[name][first:]


def _holds(family: Family, cells: np.ndarray) -> bool:
    """Return whether a family supports all numeric cells."""
    wrong = _outside(family, cells)
    return wrong is None or not wrong.any() or not (wrong & ~np.isnan(cells)).any()


def _outside(family: Family, cells: np.ndarray) -> np.ndarray | None:
    """Return the numbers that a family does not support; categories are integers."""
    return cells != np.floor(cells) if family.cell_type == "codes" else out_of_support(family, cells)


def identifiers(table: Table, labels: Sequence[Name], weight: np.ndarray | None = None) -> dict[Name, str]:
    """Return the categorical columns in which nearly all values are distinct, with the reason."""
    table.levels(labels)  # encode all rows once
    rows = FamilySelectionRows.of(table, None, weight)
    seen = [rows.labels(name) for name in labels]
    found = {one.name: why_uninformative(one, rows.subsampling_factor) for one in seen if len(one.values) > 1}
    return {name: reason for name, reason in found.items() if reason is not None}


def _informative_missingness(rows: FamilySelectionRows, holes: Sequence[ColumnValues]) -> list[dict[Name, float]]:
    """Return the columns whose missing values discriminate the classes, and by how many bits.

    Without folds, and for all rows.

    Columns are often missing together. So the most informative column comes first, and another counts only if it is
    informative given the presence of the columns before it.
    """
    found: list[dict[Name, float]] = [{} for _ in range(rows.n_folds + (rows.n_folds > 1))]
    if rows.group is None or not holes:
        return found
    flags = {one.name: (~np.isnan(one.column) if one.is_number else one.column >= 0).astype(np.intp) for one in holes}
    alone = {name: rows.absence(flag) for name, flag in flags.items()}
    beside: dict[tuple[Name, Name], np.ndarray] = {}
    for place, chosen in enumerate(found):
        for name in sorted(alone, key=lambda name: -alone[name][place]):
            if alone[name][place] <= _SAID:
                break
            for other in chosen:
                if (name, other) not in beside:
                    beside[name, other] = rows.absence(flags[name], flags[other])
                if beside[name, other][place] <= 0:
                    break
            else:
                chosen[name] = float(alone[name][place])
    return found
