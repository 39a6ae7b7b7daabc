"""Fitting of classifiers: read rows, make the factors, count, set the tally.

A model says which factors it has (``_make_factors``) and how rows are counted (``_count_initial_rows``,
``_count_more_rows``). `fit`, `partial_fit` and `forget` differ in what they do with the counted tally.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import is_integer_at_least
from tallybayes.data.array_input import as_array
from tallybayes.data.counting import check_size, check_weight, count, is_small
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.dates import origins
from tallybayes.data.named_matrix import names_of_blocks
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches, with_file_location
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError, StatisticsError
from tallybayes.estimation.em.em_loop import EMSummary, warn_unless_converged
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.classification.class_em import ClassEM
from tallybayes.models.classification.class_prior import check_classes
from tallybayes.models.inputs.batching import check_names, joined_columns, query_batches
from tallybayes.models.inputs.columns import columns_with_option, first_rows
from tallybayes.models.inputs.distinct_values import distinct_columns, warn_distinct_values, warn_without_values
from tallybayes.models.inputs.features import check_target, continuous_target, is_name, open_features
from tallybayes.models.inputs.input_format import (
    InputFormat,
    LabeledRowReader,
    read_initial_rows,
    read_more_rows,
    with_weight,
)
from tallybayes.models.inputs.labels import Labels as RowLabels
from tallybayes.models.inputs.labels import new_names, read_labels
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Domain, Schema, labels_of
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns, Labels, Name, Rows, SampleWeights
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.models.mixture.mixture_model import Mixture
    from tallybayes.statistics.totals import Totals

_CATEGORICAL = Categorical()
Model = TypeVar("Model", bound="LabeledModel")
T = TypeVar("T")


class LabeledModel(LabeledRowReader, Protocol):
    """What the functions of this module need of a model: its fitted state, and how it makes factors and counts rows."""

    tally_: Tally
    input_format_: InputFormat
    _frame_library: str | None
    _block_names: Mapping[Any, tuple[str, ...]]
    _cache: dict[str, Any]

    # Parameters
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters."""

    def _check_settings(self) -> None: ...
    def _check_prior(self, factors: list[Factor]) -> None: ...

    # Rows
    def partial_fit(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Add rows."""

    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of every row."""

    # Factors and counts
    def _make_factors(self, table: Table, target: Name, weight: SampleWeights) -> list[Factor]: ...
    def _factor_for_scoring(self, factor: Factor) -> Factor: ...
    def _count_initial_rows(
        self, table: Table, weight: SampleWeights, factors: list[Factor]
    ) -> tuple[Tally, EMSummary | None]: ...
    def _count_more_rows(self, table: Table, weight: SampleWeights) -> Tally: ...
    def _resolve_column_types(self, X: Rows) -> Self: ...

    # Fitted state
    def _require_counts(self, what: str) -> None: ...
    def _set_tally(self, tally: Tally, em_result: EMSummary | None = None) -> Self: ...
    def _update_tally(self, tally: Tally) -> Self: ...
    def _copy_input_format(self, other: Any) -> Self: ...
    def _cached(self, name: str, make: Callable[[], T]) -> T: ...


def partial_fit(
    model: Model, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
) -> Model:
    """Count more rows, and return the model."""
    if not hasattr(model, "tally_"):
        return fit_initial(model, X, y, sample_weight, classes)
    model._require_counts("adding rows")
    X = open_source(X) or X  # once: an iterator yields its batches once
    model_with_types = model._resolve_column_types(X)
    total = model_with_types.tally_ + _count_all(model_with_types, X, y, sample_weight)
    return model._update_tally(total if classes is None else total.declare(model._target, list(classes)))


def forget(model: Model, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Model:
    """Subtract rows, and return the model."""
    check_is_fitted(model, "tally_")
    model._require_counts("taking rows out")
    return model._update_tally(model.tally_ - _count_all(model, X, y, sample_weight))


def _count_in_source(
    model: LabeledModel,
    source: Source,
    y: Any,
    sample_weight: Any,
    factors: list[Factor],
    like: Tally | None = None,
) -> Tally | None:
    """Return the tally of a source that can count its rows itself; None if the rows have to be read."""
    if not source.counts or y != model._target or getattr(model, "missing_label", None) is not None:
        return None
    n_missing = source.n_missing(y, sample_weight)
    if n_missing and getattr(model, "unlabeled", None) != "skip":
        raise LabelError(
            f"Input y contains NaN: {n_missing} rows of {source.name} have no {y!r}; expected a label for every row.\n"
            "    Pass unlabeled='skip', or filter those rows in the query."
        )
    columns = getattr(model, "_columns", None)
    bins = {} if columns is None else {name: family for name, family in columns.families.items() if family.bins}
    if columns is not None and any(family.present_family is not None for family in columns.families.values()):
        return None  # a missing value is a level, by which a database cannot group
    if bins:
        source = source.binned(bins)
    return source.count(factors, sample_weight, Schema(sorted_domains=(str(y),)), like)


def _count_all(model: LabeledModel, X: Rows, y: Labels, sample_weight: SampleWeights) -> Tally:
    """Return the tally of more rows, in memory or from a source."""
    source = open_source(X)
    if source is None:
        return model._count_more_rows(*read_more_rows(model, X, y, sample_weight))
    check_names(source, y=y, sample_weight=sample_weight)
    with source.snapshot():
        total = _count_in_source(model, source, y, sample_weight, list(model.tally_.factors), model.tally_)
    if total is not None:
        return total
    for table in tables_of_batches(source, "counting"):
        with with_file_location(table):
            part = model._count_more_rows(*read_more_rows(model, table, y, sample_weight))
        total = part if total is None else total + part
    return (
        model._count_more_rows(*read_more_rows(model, source.first_batch(), y, sample_weight))
        if total is None
        else total
    )


def fit_tally(model: Model, tally: Tally) -> Model:
    """Set a tally that was counted elsewhere, and return the model."""
    target = [f for f in tally.factors if not f.given and f.family.cell_type == "codes" and len(f.columns) == 1]
    features = [f for f in tally.factors if f.given]
    if len(target) != 1 or any(f.given != target[0].columns for f in features):
        raise StatisticsError(
            "tally does not fit a classifier: expected one factor p(class) and factors p(columns | class), found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    model._check_settings()
    model._check_prior(features)
    fresh = clone(model)
    fresh.input_format_ = InputFormat.of_tally(target[0].columns[0], [name for f in features for name in f.columns])
    return model._copy_input_format(fresh)._set_tally(tally)


def add_class(model: Model, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Model:
    """Add a class from its rows, and return the model."""
    check_is_fitted(model)
    if label in model._class_domain.index:
        raise LabelError(
            f"class {label!r} exists already; expected a new class.\n    Use partial_fit to add rows to it."
        )
    y = np.empty(open_features(X).n_rows, dtype=object)
    y[:] = [label] * len(y)
    return model.partial_fit(X, y, sample_weight)


def drop_class(model: Model, label: Hashable) -> Model:
    """Remove a class and its rows, and return the model."""
    check_is_fitted(model, "tally_")
    model._require_counts("dropping a class")
    domain = model._class_domain
    if not isinstance(label, Hashable) or label not in domain.index:
        raise LabelError.no_such_class(label, domain.levels)
    return model._set_tally(model.tally_.drop_level(str(model._target), label))


def score(model: LabeledModel, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
    """Return the accuracy of the predictions, weighted by the sample weights."""
    source = open_source(X)
    if source is None or not len(source.first_batch()):
        predictions = model.predict(X)
        table = open_features(X) if is_name(y) or is_name(sample_weight) else Table({})
    else:
        names = [name for name in (y, sample_weight) if is_name(name)]
        batches = [(model.predict(rows), columns) for rows, columns in query_batches(model, source, names, "scoring")]
        predictions = np.concatenate([part for part, _ in batches])
        table = joined_columns([columns for _, columns in batches])
    y_true = np.asarray(table.column(y)) if is_name(y) else as_array(check_target(y, len(predictions)))
    read_labels(Table({"y": y_true}), "y").check_complete("Leave the unlabeled rows out.")
    if is_name(sample_weight):
        sample_weight = np.asarray(table.column(sample_weight))
    return float(accuracy_score(y_true, predictions, sample_weight=sample_weight))


def fit_initial(
    model: Model,
    X: Rows,
    y: Labels,
    sample_weight: SampleWeights,
    classes: Iterable[Hashable] | None = None,
    *,
    is_fit: bool = False,
    initial: Mixture | None = None,
) -> Model:
    """Count the first rows, and return the model; an exception leaves it unchanged.

    Parameters
    ----------
    classes : iterable of labels, optional
        Classes to declare, with or without rows.
    is_fit : bool, default False
        Whether these are all rows, as for `fit`: then the probabilities are calibrated if ``calibration`` is set.
    initial : model, optional
        The model whose parameters are the initial values of EM.
    """
    source = None if isinstance(X, np.ndarray | Mapping) else open_source(X)
    if source is None:
        return _fit_initial(model, X, y, sample_weight, classes, is_fit, initial)
    check_names(source, y=y, sample_weight=sample_weight)
    with source.snapshot():
        return _fit_initial(model, source, y, sample_weight, classes, is_fit, initial)


def _fit_initial(
    model: Model,
    X: Rows,
    y: Labels,
    sample_weight: SampleWeights,
    classes: Iterable[Hashable] | None,
    is_fit: bool,
    initial: Mixture | None,
    columns: Columns | None = None,
) -> Model:
    """Count the first rows of an array, table or open source with a copy of the model.

    ``columns`` replaces the parameter if a family that was chosen from a sample does not support all rows.
    """
    fresh = clone(model) if columns is None else clone(model).set_params(columns=columns)
    fresh._initial = initial
    fresh._check_settings()
    source = X if isinstance(X, Source) else None
    is_calibrated = is_fit and getattr(model, "calibration", None) is not None
    if getattr(model, "unlabeled", None) == "em" or is_calibrated:
        source = None  # these need all rows at once
    rows = X if source is None else first_rows(fresh, source)
    fresh.input_format_, table, weight = read_initial_rows(rows, y, sample_weight)
    if table.n_rows == 0:
        raise DataError("X has 0 rows; expected at least 1.")
    target = fresh.input_format_.target
    factors = [class_factor(target), *fresh._make_factors(table, target, weight)]
    if getattr(fresh, "prior", None) is not None:
        fresh._check_prior(factors[1:])
    if source is None:
        tally, em_result = fresh._count_initial_rows(table, weight, factors)
    else:
        try:
            tally, em_result = _count_batches(fresh, source, y, sample_weight, factors)
        except DataError as error:
            columns = _with_default_family(fresh, factors, error)
            if columns is None:
                raise
            return _fit_initial(model, X, y, sample_weight, classes, is_fit, initial, columns)
    if not tally.domains[str(target)].levels:
        raise DataError("sample_weight is zero for every row; expected at least one positive weight.")
    if classes is not None:
        tally = tally.declare(target, list(classes))
    if is_fit:
        _check_fit(model, tally, target, table)
    calibration = None
    if is_calibrated:
        calibration = cast("Classifier", fresh._set_tally(tally, em_result))._calibrate_on_fit(table, weight)
    model._copy_input_format(fresh)
    model._frame_library = None if isinstance(X, np.ndarray | Mapping) else frame_kind(X)
    model._block_names = {} if isinstance(X, np.ndarray) else names_of_blocks(X)
    model._set_tally(tally, em_result)
    if is_fit:
        cast("Classifier", model)._set_calibration(calibration)
    return model


def _check_fit(model: LabeledModel, tally: Tally, target: Name, table: Table) -> None:
    """Raise an error for a class prior of other classes; warn of columns without values, and without repeated ones."""
    class_prior = getattr(model, "class_prior", None)
    if class_prior is not None:
        check_classes(class_prior, tally.domains[str(target)].levels)
    empty: list[Name] = []
    for factor, statistics in zip(tally.factors[1:], tally.statistics[1:], strict=True):
        weight: np.ndarray
        if isinstance(statistics, Counts):
            weight = statistics.segments.sizes  # a categorical column without values has no levels
        elif isinstance(statistics, Moments):
            weight = statistics.weight_sum.high
        else:
            weight = cast("Totals", statistics).weight
        is_empty = (weight.reshape(-1, weight.shape[-1]) == 0).all(axis=0)
        if is_empty.any():
            each = np.broadcast_to(is_empty, len(factor.columns))
            empty += [name for name, missing in zip(factor.columns, each, strict=True) if missing]
    if empty:
        warn_without_values(dict.fromkeys(empty))
    has_levels = any(factor.given and factor.level_columns for factor in tally.factors)
    if has_levels and hasattr(model, "columns") and (found := distinct_columns(tally)):
        automatic = columns_with_option(model.columns, [name for name in table.columns if name != target], "auto")
        warn_distinct_values({name: domain for name, domain in found.items() if name in automatic})


def _with_default_family(model: LabeledModel, factors: list[Factor], error: DataError) -> dict[Any, Any] | None:
    """Return ``columns`` with the default family for a column whose chosen family does not support a later value."""
    columns = getattr(model, "columns", None)
    name = None if error.cell is None else error.cell[2]
    family = next((factor.family for factor in factors[1:] if name in factor.columns), None)
    chosen = columns == "suggest" or (isinstance(columns, Mapping) and columns.get(name, columns.get(...)) == "suggest")
    if not chosen or family is None or family == Gaussian():
        return None
    warn(
        f"column {name!r}: {family!r} was chosen from a sample of the rows; {str(error).splitlines()[0]} The default "
        f"family is used instead.\n    Set the family: columns={{{name!r}: tb.Gaussian(), ...: 'suggest'}}.",
        DataSourceWarning,
    )
    rest = columns if isinstance(columns, Mapping) else {...: columns}
    return {name: "auto"} | {key: value for key, value in rest.items() if key != name}


def _count_batches(
    model: LabeledModel, source: Source, y: Labels, sample_weight: SampleWeights, factors: list[Factor]
) -> tuple[Tally, EMSummary | None]:
    """Return the tally of a source, counted batch by batch; a table in memory if EM needs all rows at once."""
    in_source = _count_in_source(model, source, y, sample_weight, factors)
    if in_source is not None:
        return in_source, None
    names: set[Any] = {name for factor in factors for name in factor.columns} | {y, sample_weight}
    names = {origin for name in names for origin in origins(name)}
    if rows_with_missing(open_table(source.first_batch()), factors).any():
        return _count_at_once(model, source, sample_weight, factors)
    tally: Tally | None = None
    for table in tables_of_batches(source, "learning", [name for name in source.schema.names if name in names]):
        rows, weight = with_weight(table, sample_weight)
        if rows_with_missing(rows, factors).any():
            return _count_at_once(model, source, sample_weight, factors)
        with with_file_location(table):
            if tally is not None:
                fitted = model._set_tally(tally)._resolve_column_types(rows)
                tally = fitted.tally_ + fitted._count_more_rows(rows, weight)
            elif _has_counted_rows(model, rows, weight):
                tally = model._count_initial_rows(rows, weight, factors)[0]
    return model._count_initial_rows(rows, weight, factors) if tally is None else (tally, None)


def _count_at_once(
    model: LabeledModel, source: Source, sample_weight: SampleWeights, factors: list[Factor]
) -> tuple[Tally, EMSummary | None]:
    """Return the tally of all rows in memory: EM imputes the missing cells of a full covariance from all rows."""
    rows, weight = with_weight(open_table(source), sample_weight)
    return model._count_initial_rows(rows, weight, factors)


def _has_counted_rows(model: LabeledModel, rows: Table, weight: SampleWeights) -> bool:
    """Return whether some row has a positive weight and, if rows without a label are skipped, a label."""
    weights = check_weight(weight, rows.n_rows)
    counted = np.ones(rows.n_rows, dtype=bool) if weights is None else weights > 0
    if getattr(model, "unlabeled", None) == "skip":
        counted &= read_labels(rows, model._target, getattr(model, "missing_label", None)).codes >= 0
    return bool(counted.any())


def class_factor(target: Name) -> Factor:
    """Return the factor p(class)."""
    return Factor(target, (), _CATEGORICAL)


def count_rows(
    model: LabeledModel, table: Table, weight: SampleWeights, factors: list[Factor], like: Tally | None = None
) -> Tally:
    """Return the tally of labeled rows."""
    target = factors[0].columns[0]
    try:
        check_sizes(model, table, factors)
        return count(table, factors, weight=weight, schema=Schema(sorted_domains=(str(target),)), like=like)
    except LabelError as error:
        if error.column == str(target):
            raise continuous_target(error) from None
        raise


def count_first(
    model: Classifier | Mixture, factors: list[Factor], table: Table, weight: SampleWeights
) -> tuple[Tally, EMSummary | None]:
    """Return the tally of the first rows and, if EM was needed, its summary."""
    target = factors[0].columns[0]
    labels = _labels(model, target, table, model.unlabeled == "em")
    weights = check_weight(weight, table.n_rows)
    if labels.n_missing:  # the data type is object only because of None
        model.input_format_ = model.input_format_.without_object_labels()
    if weights is not None and not weights.any():
        raise DataError("the weight of every row is zero; expected at least one row that counts.")
    if labels.n_missing or (weights is not None and not weights.all()):
        table, labels, weights = _that_count(model, table, labels, weights)
    n_more = _n_unnamed(model, labels) if model.n_classes is not None or labels.n_missing else 0
    if not labels.n_missing:
        try:
            return count_rows(model, table, weights, factors), None
        except DataError:
            if not rows_with_missing(table, factors).any():
                raise
    named = np.flatnonzero(labels.rows)
    levels = [labels.domain.levels[k] for k in named]
    names = new_names(levels, n_more, model.missing_label)
    domain = Domain([*levels, *names], str(target), is_sorted=True)
    where = np.full(len(labels.domain.levels) + 1, -1, dtype=np.int32)
    where[named] = domain.positions_of(levels)
    has_rows = np.isin(np.arange(len(domain.levels)), where[named])
    tally, done = ClassEM(model._em_model(factors), table, where[labels.codes], domain, has_rows, weights).run()
    warn_unless_converged(done)
    return tally, done


def count_more(model: Classifier, table: Table, weight: SampleWeights) -> Tally:
    """Return the tally of rows to add or to subtract; EM is not possible."""
    labels = _labels(model, model.target_, table, False)
    weights = check_weight(weight, table.n_rows)
    if labels.n_missing:
        known = np.flatnonzero(labels.codes >= 0)
        table = table.rows(known)
        weights = None if weights is None else weights[known]
    try:
        return count_rows(model, table, weights, list(model.tally_.factors), model.tally_)
    except DataError:
        if not rows_with_missing(table, model.tally_.factors).any():
            raise
        raise DataError(
            "some of these rows have missing cells, which under a full covariance are filled in by EM over all "
            "rows at once.\n    Use fit on all rows, or leave the incomplete ones out."
        ) from None


def _labels(model: Classifier | Mixture, target: Name, table: Table, missing: bool) -> RowLabels:
    """Return the labels of the rows; raise LabelError if some are missing and neither EM nor skipping is set."""
    labels = read_labels(table, target, model.missing_label)
    if labels.n_missing and not missing and model.unlabeled != "skip":
        how = "Use fit with all rows at once" if model.unlabeled == "em" else "Pass unlabeled='em' or 'skip'"
        labels.check_complete(f"{how}, or leave the unlabeled rows out.", model.missing_label)
    return labels


def _that_count(
    model: Classifier | Mixture, table: Table, labels: RowLabels, weights: np.ndarray | None
) -> tuple[Table, RowLabels, np.ndarray | None]:
    """Return the rows with positive weight and, if unlabeled rows are skipped, a label."""
    skip = model.unlabeled == "skip" and labels.n_missing > 0
    if skip and not labels.rows.any():
        raise DataError("no row has a label; expected at least one that does.\n    Pass unlabeled='em'.")
    if not skip and (weights is None or weights.all()):
        return table, labels, weights
    counts = np.ones(len(labels.codes), dtype=bool) if weights is None else weights > 0
    kept = np.flatnonzero(counts & (labels.codes >= 0) if skip else counts)
    labels = RowLabels(labels.codes[kept], labels.domain)
    return table.rows(kept), labels, None if weights is None else weights[kept]


def _n_unnamed(model: Classifier | Mixture, labels: RowLabels) -> int:
    """Return the number of classes without labeled rows."""
    n_named, n_unlabeled = int(np.count_nonzero(labels.rows)), labels.n_missing
    if model.n_classes is None:
        if n_unlabeled and not n_named:
            raise DataError(
                "no row has a label, and n_classes is None; expected the number of classes.\n"
                "    Pass n_classes, or use tb.Mixture."
            )
        return 0
    if model.unlabeled != "em":
        raise DataError(f"n_classes={model.n_classes!r} needs rows without labels.\n    Pass unlabeled='em'.")
    if not is_integer_at_least(model.n_classes, max(n_named, 1)):
        raise DataError(
            f"n_classes is {model.n_classes!r}; expected a whole number of at least {max(n_named, 1)}"
            + (", the classes that have labels." if n_named else ".")
        )
    if model.n_classes > n_named and not n_unlabeled:
        raise DataError(
            f"n_classes is {model.n_classes!r}, but every row has a label and these show {n_named} classes.\n"
            "    Leave n_classes out, or declare the others: partial_fit(..., classes=...)."
        )
    return int(model.n_classes) - n_named


def check_sizes(model: LabeledModel, table: Table, factors: list[Factor]) -> None:
    """Raise TooLargeError if the arrays that score rows do not fit into memory."""
    n_classes = len(table.encoded(factors[0].columns[0], True)[1].levels)
    for factor in factors:
        if factor.given and factor.family.cell_type != "codes":
            width = table.width(factor.columns[0]) if len(factor.columns) == 1 else len(factor.columns)
            if not is_small(n_classes, width):
                scored = model._factor_for_scoring(factor).family
                check_size(factor, n_classes, width, model=type(model).__name__, scored=scored)


def with_one_target(model: LabeledModel, other: Any) -> tuple[Any, Any]:
    """Return two classifiers with one name of the target: where y had no name, that of the other model."""
    if other.input_format_.unnamed:
        return model, with_target(other, model._target)
    return (with_target(model, other._target) if model.input_format_.unnamed else model), other


def with_target(model: Model, name: Name) -> Model:
    """Return a copy of a fitted classifier with another name of the target, unless a column has that name."""
    if name == model._target or name in model._required_columns:
        return model
    renamed = copy.copy(model)
    renamed.input_format_ = model.input_format_._replace(target=name)
    renamed.tally_ = model.tally_.renamed(model._target, name)
    renamed._cache = {}
    return renamed


# ---- Classes and features ---------------------------------------------------------------------------------------


def target(model: LabeledModel) -> Name:
    """Return the name of the target column; "class" if y had no name."""
    return model.input_format_.target


def class_domain(model: LabeledModel) -> Domain:
    """Return the domain of the classes; raise AttributeError before the model is fitted."""
    if not hasattr(model, "tally_"):
        raise AttributeError(f"this {type(model).__name__} is not fitted yet")
    return model.tally_.domains[str(model.input_format_.target)]


def classes(model: LabeledModel) -> np.ndarray:
    """Return the sorted classes, in the data type of the target."""
    if not hasattr(model, "tally_"):
        raise AttributeError(f"this {type(model).__name__} is not fitted yet")
    return model._cached("classes", lambda: labels_of(model._class_domain.levels, model.input_format_.y_dtype))


def feature_names_in(model: LabeledModel) -> np.ndarray:
    """Return the column names of the data frame that was fitted."""
    return np.array(_of_shape(model, "columns"), dtype=object)


def n_features_in(model: LabeledModel) -> int:
    """Return the number of columns of X that was fitted."""
    return _of_shape(model, "n_features")


def _of_shape(model: LabeledModel, name: str) -> Any:
    value = getattr(getattr(model, "input_format_", None), name, None)
    if value is None:
        raise AttributeError(f"this {type(model).__name__} has no {name}: it was not fitted on columns with names")
    return value
