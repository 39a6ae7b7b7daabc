"""tb.audit: what is wrong with some rows, by what a model has counted."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import pdtrc
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.encoding import missing_mask
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.errors import DataError, printable
from tallybayes.evaluation.checks.audit_result import (
    Audit,
    GroupPerformance,
    LabelIssue,
    OutlierRow,
    UnexpectedValue,
    listed,
)
from tallybayes.evaluation.checks.outliers import cells_of, emptied, find_outliers
from tallybayes.evaluation.comparison.drift import ColumnDrift, drift
from tallybayes.evaluation.evaluate import evaluate
from tallybayes.evaluation.validation.cross_validation import cross_validate, leave_one_out
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.inputs.features import check_target, is_name, open_features
from tallybayes.models.inputs.invalid_cells import invalid_cells
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_held_out import read_node
from tallybayes.models.streaming.stream_model import inner_model
from tallybayes.results.classification_evaluation import Evaluation
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Rows
from tallybayes.warnings import InvalidValueWarning

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_RULED_OUT, _SURE = 0.01, 0.9
_BY_CHANCE_LABELS = 0.01  # the probability of so many labels that disagree, or of one so far off
_MOVED = 0.001  # the probability that any column is called moved by chance
_MASS = 0.99
_FEW = 0.01  # of the rows: so many improbable ones are left out where columns are compared


def audit(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    *,
    by: Labels | None = None,
    in_training_data: bool = False,
    first_row: int = 0,
) -> Audit:
    """Look for what is wrong with some rows, by what a model has counted.

    Rows that are all but impossible, with the column that is most to blame; values that were never counted; columns
    that moved; labels that strongly disagree with the rest of their row; groups that fare worse. Chance is taken into
    account: of rows like those that were counted, there are findings in about one audit of ten.

    Parameters
    ----------
    model : a classifier, `AutoClassifier`, `Mixture` or `BayesianNetwork`; or a `Window` or `Decayed` of one
        Fitted; it is not changed.
    data : rows as ``fit`` takes them
        Files and databases are read into memory.
    target : array-like of shape (n,), or the name of a column of data, optional
        The labels; of a network, the name of a node. Without it labels are not looked at, and columns are compared all
        classes together.
    by : array-like of shape (n,), or the name of a column of data, optional
        Say which of these groups fare worse than all rows.
    in_training_data : bool, default False
        Whether the model has counted these rows: labels are then judged by models without their row.
    first_row : int, default 0
        The number of the first row in the result: 0 for an index in Python, 1 for people who count the rows of a file.

    Returns
    -------
    Audit
        It prints as tables, and has ``findings``, ``ok``, ``to_frame`` and ``plot``.

    Notes
    -----
    A row is improbable where log p(row) is below that of all of many rows that the model draws (at least 10,000, fewer
    of more than 2,000 columns), which lack the same cells; below still, by how their lowest hundredth falls off, where
    there are so many rows that this would happen by chance to more than 0.05 of them. Models that cut numbers into bins
    know nothing beyond the last edge. A column moved where its distance from what was counted has a probability by chance below 0.001 over the
    number of columns. A label disagrees where p(label | row) ≤ 0.01 and that of another class is at least 0.9; this
    is a finding where it happens more often, or to a label less probable, than these probabilities let expect. A group
    fares worse where the 99 % interval of its loss, or error rate, lies above that of all rows.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=1000)
    >>> X = rng.normal(size=(1000, 3)) + 4 * y[:, None]
    >>> model = tb.NaiveBayes().fit(X[:500], y[:500])
    >>> X[500:, 2] += 1.0
    >>> y[507] = 1 - y[507]
    >>> for said in tb.audit(model, X[500:], y[500:]).findings:
    ...     print(said)
    column 2 moved: by 0.67 bits a cell (0.41 to 0.92)
    the label of 1 row disagrees with its columns (0.011 expected by chance): row 7 is 0, by them 1
    """
    model = inner_model(model)
    if not isinstance(model, Classifier | AutoClassifier | Mixture | BayesianNetwork):
        hint = "Of a Regression, tb.evaluate(model, data, target, by=...) tells which groups fare worse."
        raise DataError.wrong_type("model", type(model).__name__, "a model that describes whole rows", hint)
    check_is_fitted(model)
    source = open_source(data)
    table = open_features(data if source is None else source.read("audit"))
    if table.n_rows == 0:
        raise DataError("there are 0 rows to look at; expected at least 1.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidValueWarning)  # what it tells of is found here
        return _look(_AuditInput.read(model, table, target, by), in_training_data, first_row)


class _AuditInput(NamedTuple):
    """What is looked at: rows as they are, and without the cells that could not be scored."""

    model: Any
    whole: Table
    features: Table  # without the cells that the model cannot take
    cells: list[UnexpectedValue]
    labels: Any  # of every row, or None
    target: Any  # the name of a node, of a network
    by: Any

    @classmethod
    def read(cls, model: Any, table: Table, target: Any, by: Any) -> _AuditInput:
        """Columns apart from labels and groups."""
        network = isinstance(model, BayesianNetwork)
        if network:
            table, target = read_node(table, target)
        if isinstance(model, Mixture) and target is not None:
            raise DataError("a Mixture has no labels, and target= was given.\n    Leave it out.")
        named = {name: table._column(name) for name in (target, by) if is_name(name)}
        labels = named[target] if is_name(target) else target
        labels = None if labels is None else check_target(labels, table.n_rows)
        groups = named[by] if is_name(by) else by
        read = set(model._required_columns)
        for name in named:
            table = table if name in read else table.without(name)
        table = with_parts_of_dates(table, read)
        kept, cells = _without_invalid_cells(model, table)
        return cls(model, table, kept, cells, labels, target if network else None, groups)


def _look(asked: _AuditInput, in_training_data: bool, first_row: int) -> Audit:
    notes: list[str] = []
    cells = [one._replace(first=one.first + first_row) for one in asked.cells]
    findings = _said_of_cells(cells)
    rows, expected, density = find_outliers(asked.model, asked.features, notes)
    if rows:
        told = [
            f"row {one.row + first_row}" + ("" if one.column is None else f" (most by {_shown(one.column)})")
            for one in rows
        ]
        of = "1 row is" if len(rows) == 1 else f"{len(rows)} rows are"
        findings.append(f"{of} all but impossible ({expected:.2g} expected by chance): {listed(told)}")
    columns, moved = _drifted(asked, rows, notes)
    for one in columns:
        if one.column in moved:
            findings.append(
                f"{_column_of(one.column)} moved: by {one.bits:.2f} bits a cell ({one.low:.2f} to {one.high:.2f})"
            )
    doubtful: list[LabelIssue] = []
    by_chance, surely = 0.0, False
    groups: list[GroupPerformance] = []
    if asked.labels is not None:
        known, told_new = _known_labels(asked, notes)
        findings += told_new
        if len(known):
            found = _scored(asked, known, in_training_data)
            doubtful = _label_issues(found, known)
            by_chance, surely = _labels_by_chance(found, doubtful)
            groups = _groups(found, known, asked.by)
    elif asked.by is not None and density is not None:
        finite = np.flatnonzero(np.isfinite(density))
        some = DensityEvaluation(density[finite], by=_some(asked.by, finite), mass=_MASS)
        groups = [
            GroupPerformance(label, part.n_rows, part.loss, None, bool(part.loss.low > some.loss.high))
            for label, part in some.groups.items()
        ]
    if surely:
        told = [f"row {d.row + first_row} is {_shown(d.label)}, by them {_shown(d.suggested)}" for d in doubtful]
        n = len(doubtful)
        of = "label of 1 row disagrees with its" if n == 1 else f"labels of {n} rows disagree with their"
        findings.append(f"the {of} columns ({by_chance:.2g} expected by chance): {listed(told)}")
    for group in groups:
        if group.worse:
            error = "" if group.error_rate is None else f", error rate {group.error_rate!r}"
            findings.append(f"group {_shown(group.group)} fares worse than all rows: loss {group.loss!r}{error}")
    names = [one.column for one in columns if one.column in moved]
    rows = [one._replace(row=one.row + first_row) for one in rows]
    doubtful = [one._replace(row=one.row + first_row) for one in doubtful]
    n = asked.whole.n_rows
    return Audit(n, findings, notes, rows, expected, cells, columns, names, doubtful, by_chance, groups, first_row)


# ---- Cells ---------------------------------------------------------------------------------------------------------


def _without_invalid_cells(model: Any, table: Table) -> tuple[Table, list[UnexpectedValue]]:
    """The rows without the cells that the model has never counted or could not, and what these are."""
    columns, found = dict(table.columns), []
    parts = model._column_specs() if hasattr(model, "_column_specs") else []
    plain = Table({name: column for name, column in columns.items() if not isinstance(column, Texts)})
    masks = {name: (cells, False) for name, cells in invalid_cells(plain, parts).items()}
    known = {
        name: d
        for names, family, ds in parts
        if family.cell_type == "codes"
        for name, d in zip(names, ds, strict=True)
        if not isinstance(model, AutoClassifier) or len(d.levels) > 1  # of two levels, an indicator has the second
    }
    if isinstance(model, BayesianNetwork):
        known |= {name: model._estimated_network.domains[name] for name in model.levels_}
    for name, domain in known.items():
        if name in columns and name not in masks and domain.levels:
            mask = _new(table, name, domain)
            masks |= {name: (mask, True)} if mask.any() else {}
    for name, (mask, new) in masks.items():
        if getattr(columns[name], "ndim", 1) != 1:
            continue
        cells = cells_of(columns[name])
        counts: dict[Any, list[int]] = {}
        for row in np.flatnonzero(mask).tolist():
            counts.setdefault(cells[row], []).append(row)
        found += [UnexpectedValue(name, value, len(rows), rows[0], new) for value, rows in counts.items()]
        columns[name] = emptied(columns[name], mask)
    return Table(columns) if masks else table, found


def _new(table: Table, name: Any, known: Domain) -> np.ndarray:
    """Which cells hold levels that were never counted."""
    codes, domain = table._encode(name, False)
    new = np.append(known.positions_of(domain.levels) < 0, False)
    return new[np.asarray(codes).astype(np.intp)]  # code −1, a missing cell, finds the last


def _said_of_cells(cells: list[UnexpectedValue]) -> list[str]:
    said = []
    for name in dict.fromkeys(cell.column for cell in cells):
        mine = sorted((cell for cell in cells if cell.column == name), key=lambda cell: -cell.rows)
        told = [f"{_shown(c.value)} ({c.rows} row{'s' * (c.rows != 1)}, first {c.first})" for c in mine]
        what = "levels that were never counted" if mine[0].new_level else "values that cannot be counted there"
        said.append(f"{_column_of(name)} has {what}: {listed(told)}")
    return said


# ---- Columns, labels, groups ---------------------------------------------------------------------------------------


def _drifted(asked: _AuditInput, rows: list[OutlierRow], notes: list[str]) -> tuple[list[ColumnDrift], set[Any]]:
    """How far the columns moved, and which are called moved."""
    new = {cell.column for cell in asked.cells if cell.new_level}
    table = asked.features.replaced(
        {n: asked.whole.columns[n] if n in new else c for n, c in asked.features.columns.items()}
    )
    labels = None if asked.target is not None or asked.labels is None else asked.labels
    kept = np.ones(table.n_rows, dtype=bool)
    if len(rows) <= _FEW * table.n_rows:  # a few absurd rows would hide how far all others moved
        kept[[one.row for one in rows]] = False
    if labels is not None:
        kept &= ~missing_mask(labels)
    if not kept.all():
        table, labels = (
            table.rows(np.flatnonzero(kept)),
            None if labels is None else _some(labels, np.flatnonzero(kept)),
        )
    try:
        if isinstance(asked.model, Mixture):
            raise DataError("a Mixture does not count rows one by one.")
        found = drift(asked.model, table, labels, _MASS)
    except DataError as error:
        notes.append(f"columns are not compared: {' '.join(str(error).split())}")
        return [], set()
    return found, {one.column for one in found if one.chance < _MOVED / len(found)}


def _known_labels(asked: _AuditInput, notes: list[str]) -> tuple[np.ndarray, list[str]]:
    """The rows whose labels the model knows, and what is to be said of others."""
    labels = cells_of(asked.labels)
    network = asked.target is not None
    classes = asked.model._estimated_network.domains[asked.target] if network else asked.model._class_domain
    missing = missing_mask(asked.labels)
    different = list(dict.fromkeys(label for label, gone in zip(labels, missing.tolist(), strict=True) if not gone))
    there = {label for label, place in zip(different, classes.positions_of(different), strict=True) if place >= 0}
    known = np.array([label in there for label in labels], dtype=bool) & ~missing
    if missing.any():
        n = int(missing.sum())
        notes.append(f"{n} row{'s have' if n > 1 else ' has'} no label")
    counts: dict[Any, int] = {}
    for row in np.flatnonzero(~known & ~missing).tolist():
        counts[labels[row]] = counts.get(labels[row], 0) + 1
    told = [f"{_shown(label)} ({n} row{'s' * (n != 1)})" for label, n in counts.items()]
    return np.flatnonzero(known), [f"the target has labels that were never counted: {listed(told)}"] if told else []


def _scored(asked: _AuditInput, known: np.ndarray, in_training_data: bool) -> Evaluation:
    """What is said of the labels: by the model, or by models without the row."""
    target = asked.target if asked.target is not None else _some(asked.labels, known)
    rows = asked.features if len(known) == asked.features.n_rows else asked.features.rows(known)
    if not in_training_data:
        return evaluate(asked.model, rows, target)
    # The choice of a mixture is made anew without every tenth of the rows, not without every row.
    return (cross_validate if isinstance(asked.model, AutoClassifier) else leave_one_out)(asked.model, rows, target)


def _label_issues(found: Evaluation, known: np.ndarray) -> list[LabelIssue]:
    own = np.exp(found.log_proba[np.arange(len(found.codes)), found.codes])
    best = found.log_proba.argmax(axis=1)
    sure = np.exp(found.log_proba.max(axis=1))
    rows = getattr(found, "rows", np.arange(len(found.codes)))
    where = np.flatnonzero((own <= _RULED_OUT) & (sure >= _SURE))
    classes = found.classes.tolist()
    return [
        LabelIssue(int(known[rows[k]]), classes[found.codes[k]], classes[best[k]], float(own[k]), float(sure[k]))
        for k in where[np.argsort(own[where], kind="stable")].tolist()
    ]


def _labels_by_chance(found: Evaluation, doubtful: list[LabelIssue]) -> tuple[float, bool]:
    """How many labels disagree so if the model is right, and whether these are more, or one farther off than that."""
    proba = np.exp(found.log_proba)
    proba = proba[proba.max(axis=1) >= _SURE]
    expected = float(proba[proba <= _RULED_OUT].sum())
    if not doubtful:
        return expected, False
    as_far = float(proba[proba <= doubtful[0].probability].sum())
    return expected, bool(pdtrc(len(doubtful) - 1, expected) < _BY_CHANCE_LABELS or as_far < _BY_CHANCE_LABELS)


def _groups(found: Evaluation, known: np.ndarray, by: Any) -> list[GroupPerformance]:
    if by is None:
        return []
    rows = known[getattr(found, "rows", np.arange(len(found.codes)))]
    whole = Evaluation(found.classes, found.codes, found.log_proba, by=_some(by, rows), mass=_MASS)
    fares = []
    for label, part in whole.groups.items():
        worse = part.log_loss.low > whole.log_loss.high or part.error_rate.low > whole.error_rate.high
        fares.append(GroupPerformance(label, part.n_rows, part.log_loss, part.error_rate, bool(worse)))
    return fares


def _some(column: Any, rows: np.ndarray) -> Any:
    if len(rows) == len(column):
        return column
    cells = column if isinstance(column, np.ndarray) else cells_of(column)
    return cells[rows] if isinstance(cells, np.ndarray) else np.asarray([cells[k] for k in rows.tolist()])


def _shown(value: Any) -> str:
    return printable(repr(value)) if isinstance(value, str) else printable(value)


def _column_of(name: Any) -> str:
    if isinstance(name, tuple):
        return f"columns {listed([_shown(one) for one in name])}"
    return f"column {_shown(name)}"
