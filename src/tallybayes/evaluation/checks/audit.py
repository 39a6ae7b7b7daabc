"""tb.audit: outliers, unexpected values, drift, label errors and worse groups in some rows, by a fitted model."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import pdtrc
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.parameter_checks import check_count
from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.encoding import missing_mask
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, printable
from tallybayes.evaluation.checks.outliers import cells_of, find_outliers, with_missing
from tallybayes.evaluation.comparison.drift import drift
from tallybayes.evaluation.evaluate import evaluate
from tallybayes.evaluation.named_columns import (
    check_rows,
    class_domain,
    column_or_values,
    names_in,
    required_columns,
    without_columns,
)
from tallybayes.evaluation.validation.cross_validation import cross_validate, leave_one_out
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.inputs.features import check_target, open_features
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.network_held_out import read_node
from tallybayes.models.streaming.stream_model import inner_model
from tallybayes.results.audit import (
    Audit,
    ColumnDrift,
    GroupPerformance,
    LabelIssue,
    OutlierRow,
    UnexpectedValue,
    join_some,
)
from tallybayes.results.classification_evaluation import Evaluation
from tallybayes.results.density_evaluation import DensityEvaluation
from tallybayes.tally.domain import Domain
from tallybayes.typing import Labels, Name, Rows
from tallybayes.warnings import InvalidValueWarning

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_MOST_LABEL = 0.01  # probability of a suspected label error
_LEAST_SUGGESTED = 0.9  # probability of another class, of a suspected label error
_LABEL_CHANCE = 0.01  # the probability of as many label issues, or of one as improbable
_DRIFT_CHANCE = 0.001  # the probability that any column has drifted by chance
_MASS = 0.99
_FEW = 0.01  # outliers are left out of drift if they are at most this proportion of the rows

Audited = Classifier | AutoClassifier | Mixture | BayesianNetwork


def audit(
    model: Estimator,
    data: Rows,
    target: Labels | None = None,
    *,
    by: Labels | None = None,
    in_training_data: bool = False,
    first_row: int = 0,
) -> Audit:
    """Check some rows for outliers, unexpected values, drift, label errors and groups with worse metrics.

    Every check accounts for chance: of rows like the counted ones, about one audit in ten has a finding.

    Parameters
    ----------
    model : a classifier, `AutoClassifier`, `Mixture` or `BayesianNetwork`; or a `Window` or `Decayed` of one
        Fitted; it is not changed.
    data : rows as for ``fit``
        Files and databases are read into memory.
    target : array-like of shape (n,), or the name of a column of data, optional
        The labels; for a network, the name of a node. Without it labels are not checked, and columns are compared with
        all classes pooled.
    by : array-like of shape (n,), or the name of a column of data, optional
        The group of every row: groups with worse metrics than all rows are findings.
    in_training_data : bool, default False
        Whether the model has counted these rows: labels are then checked by models without their row.
    first_row : int, default 0
        The number of the first row in the result: 0 as an index in Python, 1 for line numbers.

    Returns
    -------
    Audit
        It prints as tables, and has ``findings``, ``ok``, ``to_frame`` and ``plot``.

    Notes
    -----
    A row is an outlier if log p(row) is below that of many rows drawn from the model (at least 10,000; fewer with more
    than 2,000 columns) with the same cells missing. With so many rows that more than 0.05 would be expected by chance,
    the threshold is extrapolated from the lowest hundredth of the draws. Models that discretize numbers have no
    information beyond the last bin edge. A column has drifted if its divergence from the counted rows has a probability
    below 0.001 / (number of columns) without drift. A label is suspected if p(label | row) ≤ 0.01 and another class has
    at least 0.9; this is a finding if there are more such labels, or one less probable, than these probabilities
    explain. A group is worse if the 99 % interval of its loss, or error rate, is above that of all rows.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=1000)
    >>> X = rng.normal(size=(1000, 3)) + 4 * y[:, None]
    >>> model = tb.NaiveBayes().fit(X[:500], y[:500])
    >>> X[500:, 2] += 1.0
    >>> y[507] = 1 - y[507]
    >>> for finding in tb.audit(model, X[500:], y[500:]).findings:
    ...     print(finding)
    column 2 drifted by 0.67 bits per cell (0.41 to 0.92)
    1 suspected label error (0.011 expected by chance): row 7 has label 0, predicted 1
    """
    model = inner_model(model)
    first_row = check_count("first_row", first_row, 0)
    if not isinstance(model, Audited):
        hint = "Of a regression, use tb.evaluate(model, data, target, by=...) for groups."
        raise DataError.wrong_type("model", type(model).__name__, "a model that describes whole rows", hint)
    check_is_fitted(model)
    source = open_source(data)
    table = check_rows(open_features(data if source is None else source.read("audit")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidValueWarning)  # invalid values are findings
        return _audit(_AuditInput.read(model, table, target, by, first_row), in_training_data, first_row)


class _AuditInput(NamedTuple):
    """The rows of an audit, as they are and without the cells that cannot be scored."""

    model: Audited
    table: Table
    features: Table  # with unexpected values missing
    cells: list[UnexpectedValue]
    labels: Any  # of every row, or None
    node: Any  # the name of a node, of a network
    by: Any

    @classmethod
    def read(
        cls, model: Audited, table: Table, target: Labels | None, by: Labels | None, first_row: int
    ) -> _AuditInput:
        """Separate the features from labels and groups."""
        node = None
        if isinstance(model, BayesianNetwork):
            table, node = read_node(table, target)
            target = node
        if isinstance(model, Mixture) and target is not None:
            raise DataError("target is given and a Mixture has no labels; expected no target.\n    Leave it out.")
        labels = column_or_values(table, target)
        labels = None if labels is None else check_target(labels, table.n_rows)
        groups = column_or_values(table, by)
        if groups is not None and (n_groups := open_table({"by": groups}).n_rows) != table.n_rows:
            raise DataError.lengths_differ({"data": table.n_rows, "by": n_groups})
        required = set(required_columns(model))
        table = without_columns(table, [name for name in names_in((target, by)) if name not in required])
        table = with_parts_of_dates(table, required)
        features, cells = _without_unexpected_values(model, table, first_row)
        return cls(model, table, features, cells, labels, node, groups)


def _audit(rows: _AuditInput, in_training_data: bool, first_row: int) -> Audit:
    """Run all checks."""
    notes: list[str] = []
    outliers, expected_rows, density = find_outliers(rows.model, rows.features, notes)
    columns, drifted = _drift(rows, outliers, notes)
    issues: list[LabelIssue] = []
    expected_labels = 0.0
    is_significant = False
    groups: list[GroupPerformance] = []
    new_label_findings: list[str] = []
    if rows.labels is not None:
        known, new_label_findings = _rows_with_known_labels(rows, notes)
        if len(known):
            evaluation = _evaluate_labels(rows, known, in_training_data)
            evaluated = known if evaluation.held_out is None else known[evaluation.rows]
            issues = _label_issues(evaluation, evaluated + first_row)
            expected_labels, is_significant = _label_chance(evaluation, issues)
            if rows.by is not None:
                by = _take(rows.by, evaluated)
                known_rows = (evaluation.classes, evaluation.codes, evaluation.log_proba)
                groups = _groups(Evaluation(*known_rows, by=by, mass=_MASS))
    elif rows.by is not None and density is not None:
        finite = np.flatnonzero(np.isfinite(density))
        groups = _groups(DensityEvaluation(density[finite], by=_take(rows.by, finite), mass=_MASS))
    outliers = [OutlierRow(outlier.row + first_row, *outlier[1:]) for outlier in outliers]
    findings = [
        *_cell_findings(rows.cells),
        *_outlier_findings(outliers, expected_rows),
        *_drift_findings([column for column in columns if column.column in drifted]),
        *new_label_findings,
        *(_label_findings(issues, expected_labels) if is_significant else []),
        *_group_findings(groups),
    ]
    return Audit(
        rows.table.n_rows,
        findings,
        notes,
        outliers,
        expected_rows,
        rows.cells,
        columns,
        [column.column for column in columns if column.column in drifted],
        issues,
        expected_labels,
        groups,
        first_row,
    )


# ---- Unexpected values ---------------------------------------------------------------------------------------------


def _without_unexpected_values(model: Audited, table: Table, first_row: int) -> tuple[Table, list[UnexpectedValue]]:
    """Return the rows with values that the model has never counted, or cannot count, missing, and these values."""
    specs = model._column_specs() if hasattr(model, "_column_specs") else []
    masks = {name: (mask, False) for name, mask in mask_invalid_cells(table, specs).invalid_cells.items()}
    known = {
        name: domain
        for names, family, domains in specs
        if family.cell_type == "codes"
        for name, domain in zip(names, domains, strict=True)
        if not isinstance(model, AutoClassifier) or len(domain.levels) > 1  # an indicator has a second level
    }
    if isinstance(model, BayesianNetwork):
        known |= {name: class_domain(model, name) for name in model.levels_}
    for name, domain in known.items():
        if name in table.columns and name not in masks and domain.levels:
            mask = _has_new_level(table, name, domain)
            masks |= {name: (mask, True)} if mask.any() else {}
    values: list[UnexpectedValue] = []
    columns = dict(table.columns)
    for name, (mask, new_level) in masks.items():
        if getattr(columns[name], "ndim", 1) != 1:
            continue
        cells = cells_of(columns[name])
        rows = np.flatnonzero(mask)
        unexpected = [cells[row] for row in rows.tolist()]
        for value, n in Counter(unexpected).items():
            values.append(UnexpectedValue(name, value, n, int(rows[unexpected.index(value)]) + first_row, new_level))
        columns[name] = with_missing(columns[name], mask)
    return Table(columns) if masks else table, values


def _has_new_level(table: Table, name: Name, known: Domain) -> np.ndarray:
    """Return which cells of a column have levels that were never counted."""
    codes, domain = table.encoded(name)
    is_new = np.append(known.positions_of(domain.levels) < 0, False)
    return is_new[np.asarray(codes).astype(np.intp)]  # code −1, a missing cell, selects the last entry


# ---- Columns, labels, groups ---------------------------------------------------------------------------------------


def _drift(rows: _AuditInput, outliers: list[OutlierRow], notes: list[str]) -> tuple[list[ColumnDrift], set[Any]]:
    """Return the drift of all columns, and the columns for which it is significant."""
    new_levels = {cell.column: rows.table.columns[cell.column] for cell in rows.cells if cell.new_level}
    table = rows.features.replaced(rows.features.columns | new_levels)
    labels = None if rows.node is not None else rows.labels
    kept = np.ones(table.n_rows, dtype=bool)
    if len(outliers) <= _FEW * table.n_rows:  # a few extreme rows would mask the drift of all others
        kept[[outlier.row for outlier in outliers]] = False
    if labels is not None:
        kept &= ~missing_mask(labels)
    if not kept.all():
        index = np.flatnonzero(kept)
        table = table.rows(index)
        labels = None if labels is None else _take(labels, index)
    try:
        if isinstance(rows.model, Mixture):
            raise DataError("a Mixture does not count single rows; expected a model from which rows can be removed.")
        columns = drift(rows.model, table, labels, _MASS)
    except DataError as error:
        notes.append(f"columns are not compared: {' '.join(str(error).split())}")
        return [], set()
    return columns, {column.column for column in columns if column.chance < _DRIFT_CHANCE / len(columns)}


def _rows_with_known_labels(rows: _AuditInput, notes: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return the rows whose label is a class of the model, and a finding for other labels."""
    model: Any = rows.model
    missing = missing_mask(rows.labels)
    labeled = np.flatnonzero(~missing)
    labels = cells_of(_take(rows.labels, labeled))
    different = list(dict.fromkeys(labels))
    known = dict(zip(different, class_domain(model, rows.node).positions_of(different) >= 0, strict=True))
    is_known = np.array([known[label] for label in labels], dtype=bool)
    n_missing = int(missing.sum())
    if n_missing:
        notes.append(f"{n_missing} row{'s have' if n_missing > 1 else ' has'} no label")
    counts = Counter(labels[k] for k in np.flatnonzero(~is_known).tolist())
    new = [f"{_shown(label)} ({_rows(n)})" for label, n in counts.items()]
    findings = [f"the target has labels that were never counted: {join_some(new)}"] if new else []
    return labeled[is_known], findings


def _evaluate_labels(rows: _AuditInput, known: np.ndarray, in_training_data: bool) -> Evaluation:
    """Evaluate the class probabilities of the model, or of models without the row."""
    target = rows.node if rows.node is not None else _take(rows.labels, known)
    features = rows.features if len(known) == rows.features.n_rows else rows.features.rows(known)
    model: Any = rows.model
    if not in_training_data:
        return evaluate(model, features, target)
    if isinstance(model, AutoClassifier):  # members are chosen for every fold, not for every row
        return cross_validate(model, features, target)
    result: Evaluation = leave_one_out(model, features, target)
    return result


def _label_issues(evaluation: Evaluation, rows: np.ndarray) -> list[LabelIssue]:
    """Return the rows whose label is improbable while another class is probable, the least probable first."""
    codes = evaluation.codes
    probability = np.exp(evaluation.log_proba[np.arange(len(codes)), codes])
    suggested = evaluation.log_proba.argmax(axis=1)
    highest = np.exp(evaluation.log_proba.max(axis=1))
    issues = np.flatnonzero((probability <= _MOST_LABEL) & (highest >= _LEAST_SUGGESTED))
    classes = evaluation.classes.tolist()
    return [
        LabelIssue(int(rows[k]), classes[codes[k]], classes[suggested[k]], float(probability[k]), float(highest[k]))
        for k in issues[np.argsort(probability[issues], kind="stable")].tolist()
    ]


def _label_chance(evaluation: Evaluation, issues: list[LabelIssue]) -> tuple[float, bool]:
    """Return the expected number of issues if the probabilities are right, and whether the issues are significant.

    They are if there are too many of them (a Poisson tail), or one is too improbable.
    """
    proba = np.exp(evaluation.log_proba)
    proba = proba[proba.max(axis=1) >= _LEAST_SUGGESTED]
    expected = float(proba[proba <= _MOST_LABEL].sum())
    if not issues:
        return expected, False
    as_improbable = float(proba[proba <= issues[0].probability].sum())
    return expected, bool(pdtrc(len(issues) - 1, expected) < _LABEL_CHANCE or as_improbable < _LABEL_CHANCE)


def _groups(evaluation: Evaluation | DensityEvaluation) -> list[GroupPerformance]:
    """Return the loss of every group, and the error rate of class predictions."""
    groups = []
    for label, part in evaluation.groups.items():
        worse = part.loss.low > evaluation.loss.high
        error_rate = None
        if isinstance(part, Evaluation) and isinstance(evaluation, Evaluation):
            error_rate = part.error_rate
            worse |= error_rate.low > evaluation.error_rate.high
        groups.append(GroupPerformance(label, part.n_rows, part.loss, error_rate, bool(worse)))
    return groups


def _take(column: Labels, rows: np.ndarray) -> Any:
    """Return some cells of a column."""
    return Table({"column": column}).rows(rows).columns["column"]


# ---- Findings as text ----------------------------------------------------------------------------------------------


def _cell_findings(cells: Sequence[UnexpectedValue]) -> list[str]:
    findings = []
    for name in dict.fromkeys(cell.column for cell in cells):
        own = sorted((cell for cell in cells if cell.column == name), key=lambda cell: -cell.rows)
        values = [f"{_shown(c.value)} ({_rows(c.rows)}, first {c.first})" for c in own]
        what = "unseen levels" if own[0].new_level else "invalid values"
        findings.append(f"{_shown_column(name)} has {what}: {join_some(values)}")
    return findings


def _outlier_findings(outliers: Sequence[OutlierRow], expected: float) -> list[str]:
    if not outliers:
        return []
    rows = [f"row {r.row}" + ("" if r.column is None else f" (main column {_shown(r.column)})") for r in outliers]
    count = f"{len(outliers)} outlier{'s' * (len(outliers) != 1)}"
    return [f"{count} ({expected:.2g} expected by chance): {join_some(rows)}"]


def _drift_findings(columns: Sequence[ColumnDrift]) -> list[str]:
    return [
        f"{_shown_column(each.column)} drifted by {each.bits:.2f} bits per cell ({each.low:.2f} to {each.high:.2f})"
        for each in columns
    ]


def _label_findings(issues: Sequence[LabelIssue], expected: float) -> list[str]:
    rows = [f"row {d.row} has label {_shown(d.label)}, predicted {_shown(d.suggested)}" for d in issues]
    count = f"{len(issues)} suspected label error{'s' * (len(issues) != 1)}"
    return [f"{count} ({expected:.2g} expected by chance): {join_some(rows)}"]


def _group_findings(groups: Sequence[GroupPerformance]) -> list[str]:
    findings = []
    for group in groups:
        if group.worse:
            error = "" if group.error_rate is None else f", error rate {group.error_rate!r}"
            findings.append(f"group {_shown(group.group)} is worse than all rows: log loss {group.loss!r}{error}")
    return findings


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"


def _shown(value: object) -> str:
    return printable(repr(value)) if isinstance(value, str) else printable(value)


def _shown_column(name: object) -> str:
    if isinstance(name, tuple):
        return f"columns {join_some([_shown(part) for part in name])}"
    return f"column {_shown(name)}"
