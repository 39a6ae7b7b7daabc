"""Learning from rows with labels: what fills, adds to and takes from the tally of a classifier.

A classifier takes these functions into its class body. It says which factors there are (``_make_factors``), what prior
none of them would use (``_check_prior``), the family a factor is scored by (``_reading``), and how the first rows
become a tally (``_count_first``).
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.array_input import as_array
from tallybayes.data.counting import check_size, check_weight, count
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.dates import origins
from tallybayes.data.named_matrix import names_of_blocks
from tallybayes.data.open_source import open_source
from tallybayes.data.source import Source
from tallybayes.data.source_batches import tables_of_batches, with_file_location
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError, LabelError, StatisticsError
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.inputs.batching import check_names, joined_columns, query_batches
from tallybayes.models.inputs.columns import first_rows
from tallybayes.models.inputs.features import continuous_target, is_name, only_column, open_features
from tallybayes.models.inputs.input_format import InputFormat, read_initial_rows, read_more_rows, with_weight
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.receipt import with_receipt
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Factor
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Name, Rows, SampleWeights
from tallybayes.warnings import DataSourceWarning, warn

Model = TypeVar("Model", bound=Any)


def fit(model: Model, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Model:
    """Count the rows, forgetting any counted before.

    Parameters
    ----------
    X : array, sparse matrix, data frame, list of dicts, or mapping of columns and blocks
    y : array-like of shape (n,), or the name of a column of X
    sample_weight : array-like of shape (n,), or the name of a column of X, optional

    Returns
    -------
    self
    """
    return fit_initial(model, X, y, sample_weight, whole=True)


def partial_fit(
    model: Model, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
) -> Model:
    """Count more rows; new classes and levels may appear. Any order, any split gives what `fit` on all gives.

    Parameters
    ----------
    X, y, sample_weight
        As for `fit`.
    classes : array-like, optional
        Classes that shall exist even before a row of them is seen.

    Returns
    -------
    self
    """
    if not hasattr(model, "tally_"):
        return fit_initial(model, X, y, sample_weight, classes)
    model._require_counts("adding rows")
    X = open_source(X) or X  # once: what an iterator gave it does not give again
    now = model._resolve_column_types(X)
    total = now.tally_ + _count_all(now, X, y, sample_weight)
    return model._update_tally(total if classes is None else total.declare(model._target, list(classes)))


@with_receipt
def forget(model: Model, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Model:
    """Take rows out again, exactly: as if they had never been seen.

    Rows that were never learned are refused where a count would turn negative; rows never learned that happen to
    fit cannot be told apart.

    Parameters
    ----------
    X, y, sample_weight
        Rows that were learned, as for `fit`.

    Returns
    -------
    self
    """
    check_is_fitted(model, "tally_")
    model._require_counts("taking rows out")
    return model._update_tally(model.tally_ - _count_all(model, X, y, sample_weight))


def _count_in_source(
    model: Any, source: Source, y: Any, sample_weight: Any, factors: list[Factor], like: Tally | None = None
) -> Tally | None:
    """The tally of rows that lie where they can be counted; None where they have to be read."""
    if not source.counts or y != model._target or getattr(model, "missing_label", None) is not None:
        return None
    n_missing = source.n_missing(y, sample_weight)
    if n_missing and getattr(model, "unlabeled", None) != "skip":
        raise LabelError(
            f"Input y contains NaN: {n_missing} rows of {source.name} have no {y!r}; expected a label for every row.\n"
            "    Pass unlabeled='skip', or leave those rows out in the query."
        )
    columns = getattr(model, "_columns", None)
    bins = {} if columns is None else {name: family for name, family in columns.families.items() if family.bins}
    if columns is not None and any(family.present_family is not None for family in columns.families.values()):
        return None  # a database groups by levels, of which absence is none
    if bins:
        source = source.binned(bins)
    return source.count(factors, sample_weight, Schema(sorted_domains=(str(y),)), like)


def _count_all(model: Any, X: Any, y: Any, sample_weight: Any) -> Tally:
    """The tally of more rows, whether in memory or not."""
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
    """Learn from a tally counted elsewhere: in a file, a shard, a database.

    Parameters
    ----------
    tally : Tally
        Its first factor without ``given`` is the class; the others are the features.

    Returns
    -------
    self
    """
    target = [f for f in tally.factors if not f.given and f.family.cell_type == "codes" and len(f.columns) == 1]
    features = [f for f in tally.factors if f.given]
    if len(target) != 1 or any(f.given != target[0].columns for f in features):
        raise StatisticsError(
            "this tally is not a classifier's: expected one factor p(class) and factors p(columns | class), found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines())
        )
    model._check_settings()
    model._check_prior(features)
    fresh = clone(model)
    fresh._shape = InputFormat.of_tally(target[0].columns[0], [name for f in features for name in f.columns])
    return model._copy_input_format(fresh)._set_tally(tally)


def add_class(model: Model, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Model:
    """Learn a class that was not there, from its rows alone.

    Parameters
    ----------
    label : bool, int or str
    X : as for `fit`, without the target
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    self
    """
    check_is_fitted(model)
    if label in model._class_domain.index:
        raise LabelError(
            f"class {label!r} is there already; expected a new one.\n    Use partial_fit to add rows to it."
        )
    y = np.empty(open_features(X).n_rows, dtype=object)
    y[:] = [label] * len(y)
    return model.partial_fit(X, y, sample_weight)


def drop_class(model: Model, label: Hashable) -> Model:
    """Forget a class and all its rows.

    Parameters
    ----------
    label : bool, int or str

    Returns
    -------
    self
    """
    check_is_fitted(model, "tally_")
    model._require_counts("dropping a class")
    domain = model._class_domain
    if label not in domain.index:
        raise LabelError.no_such_class(label, domain.levels)
    return model._set_tally(model.tally_.drop_level(str(model._target), label))


@answering
def score(model: Any, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
    """The share of rows whose class is predicted.

    Parameters
    ----------
    X, y, sample_weight
        As for `fit`.
    """
    source = open_source(X)
    if source is None or not len(source.first_batch()):
        told = model.predict(X)
        table = open_features(X) if is_name(y) or is_name(sample_weight) else Table({})
    else:
        names = [name for name in (y, sample_weight) if is_name(name)]
        parts = [(model.predict(rows), columns) for rows, columns in query_batches(model, source, names, "scoring")]
        told, table = np.concatenate([part for part, _ in parts]), joined_columns([columns for _, columns in parts])
    y = np.asarray(table._column(y)) if is_name(y) else as_array(only_column(y))
    if is_name(sample_weight):
        sample_weight = np.asarray(table._column(sample_weight))
    return float(accuracy_score(y, told, sample_weight=sample_weight))


def fit_initial(
    model: Model,
    X: Rows,
    y: Labels,
    sample_weight: SampleWeights,
    classes: Any = None,
    *,
    whole: bool = False,
    initial: Any = None,
) -> Model:
    """Count the first rows. A copy of the model does the work, so that an error leaves the model as it was.

    Where these are the `whole` of the rows, probabilities are calibrated by them, if that is wanted. EM may start from
    another model, the `initial` one.
    """
    source = None if isinstance(X, np.ndarray) else open_source(X)
    if source is None:
        return _learn(model, X, y, sample_weight, classes, whole, initial)
    check_names(source, y=y, sample_weight=sample_weight)
    with source.snapshot():
        return _learn(model, source, y, sample_weight, classes, whole, initial)


def _learn(
    model: Model, X: Any, y: Any, sample_weight: Any, classes: Any, whole: bool, initial: Any, columns: Any = None
) -> Model:
    """Learn from rows or from a source, which is opened already: an iterator gives its rows once.

    `columns` replaces the parameter of the model, where a family chosen from a sample does not support all rows.
    """
    fresh = clone(model) if columns is None else clone(model).set_params(columns=columns)
    fresh._initial = initial
    fresh._check_settings()
    source = X if isinstance(X, Source) else None
    if getattr(model, "unlabeled", None) == "em" or (whole and model.calibration is not None):
        source = None  # all rows at a time
    fresh._shape, table, weight = read_initial_rows(
        X if source is None else first_rows(fresh, source), y, sample_weight
    )
    if table.n_rows == 0:
        raise DataError("there are 0 rows to learn from; expected at least 1.")
    factors = [class_factor(fresh), *fresh._make_factors(table, fresh._target, weight)]
    fresh._check_prior(factors[1:])
    if source is not None:
        try:
            tally, climbed = _count_parts(fresh, source, y, sample_weight, factors)
        except DataError as error:
            columns = _with_default_family(fresh, factors, error)
            if columns is None:
                raise
            return _learn(model, X, y, sample_weight, classes, whole, initial, columns)
    else:
        tally, climbed = fresh._count_initial_rows(table, weight, factors)
    if not tally.domains[str(fresh._target)].levels:
        raise DataError("the weight of every row is zero; expected at least one row that counts.")
    if classes is not None:
        tally = tally.declare(fresh._target, list(classes))
    if whole:
        fresh._check_classes(tally.domains[str(fresh._target)].levels)
    calibration = None
    if whole and model.calibration is not None:
        calibration = fresh._set_tally(tally, climbed)._calibrate_on_fit(table, weight)
    model._copy_input_format(fresh)._frame_library, model._block_names = frame_kind(X), names_of_blocks(X)
    model._set_tally(tally, climbed)
    return model._set_calibration(calibration) if whole else model


def _with_default_family(model: Any, factors: list[Factor], error: DataError) -> dict[Any, Any] | None:
    """``columns=`` with the default family for a column whose family, chosen from a sample, met an invalid value."""
    columns, name = getattr(model, "columns", None), None if error.cell is None else error.cell[2]
    family = next((factor.family for factor in factors[1:] if name in factor.columns), None)
    chosen = columns == "suggest" or (isinstance(columns, Mapping) and columns.get(name, columns.get(...)) == "suggest")
    if not chosen or family is None or family == Gaussian():
        return None
    warn(
        f"column {name!r}: {family!r} was chosen from a sample of the rows; {str(error).splitlines()[0]}\n"
        f"The default family is used instead. Set the family: columns={{{name!r}: tb.Gaussian(), ...: 'suggest'}}.",
        DataSourceWarning,
    )
    rest = columns if isinstance(columns, Mapping) else {...: columns}
    return {name: "auto"} | {key: value for key, value in rest.items() if key != name}


def _count_parts(
    model: Any, source: Source, y: Any, sample_weight: Any, factors: list[Factor]
) -> tuple[Tally, EMSummary | None]:
    """The tally of the rows of a source, each batch counted as it comes."""
    there = _count_in_source(model, source, y, sample_weight, factors)
    if there is not None:
        return there, None
    names = {name for factor in factors for name in factor.columns} | {y, sample_weight}
    names = {other for name in names for other in origins(name)}
    if rows_with_missing(open_table(source.first_batch()), factors).any():
        return _count_at_once(model, source, sample_weight, factors)
    tally: Tally | None = None
    for table in tables_of_batches(source, "learning", [name for name in source.schema.names if name in names]):
        rows, weight = with_weight(table, sample_weight)
        if rows_with_missing(rows, factors).any():
            return _count_at_once(model, source, sample_weight, factors)
        with with_file_location(table):
            if tally is not None:
                now = model._set_tally(tally)._resolve_column_types(rows)
                tally = now.tally_ + now._count_more_rows(rows, weight)
            elif _counts(model, rows, weight):
                tally = model._count_initial_rows(rows, weight, factors)[0]
    return model._count_initial_rows(rows, weight, factors) if tally is None else (tally, None)


def _count_at_once(
    model: Any, source: Source, sample_weight: Any, factors: list[Factor]
) -> tuple[Tally, EMSummary | None]:
    """The tally of all rows together: the missing cells of a covariance are expected from all of them."""
    rows, weight = with_weight(open_table(source), sample_weight)
    return model._count_initial_rows(rows, weight, factors)


def _counts(model: Any, rows: Table, weight: Any) -> bool:
    """Whether some row has a weight and, where those without a label are skipped, a label."""
    weights = check_weight(weight, rows.n_rows)
    counts = np.ones(rows.n_rows, dtype=bool) if weights is None else weights > 0
    if getattr(model, "unlabeled", None) == "skip":
        counts &= read_labels(rows, model._target, model.missing_label).codes >= 0
    return bool(counts.any())


def class_factor(model: Any) -> Factor:
    """p(class)."""
    return Factor(model._target, (), Categorical())


def count_rows(model: Any, table: Table, weight: Any, factors: list[Factor], like: Tally | None = None) -> Tally:
    """The tally of rows that all have a label."""
    target = model._target
    try:
        check_sizes(model, table, factors)
        return count(table, factors, weight=weight, schema=Schema(sorted_domains=(str(target),)), like=like)
    except LabelError as error:
        if error.column == str(target):
            raise continuous_target(error) from None
        raise


def check_sizes(model: Any, table: Table, factors: list[Factor]) -> None:
    """Refuse what memory cannot hold when rows are scored; what counting needs is looked at when it is counted."""
    n_classes = len(table.levels([model._target], lambda _: True)[1][0].levels)
    for factor in factors:
        if factor.given and factor.family.cell_type != "codes":
            width = table.width(factor.columns[0]) if len(factor.columns) == 1 else len(factor.columns)
            check_size(
                factor, n_classes, width, model=type(model).__name__, scored=model._factor_for_scoring(factor).family
            )


def with_one_target(model: Any, other: Any) -> tuple[Any, Any]:
    """Return two classifiers with one name of the target: where y had no name, that of the other model."""
    if other._shape.unnamed:
        return model, with_target(other, model._target)
    return (with_target(model, other._target) if model._shape.unnamed else model), other


def with_target(model: Model, name: Name) -> Model:
    """Return a copy of a fitted classifier whose target has another name, unless one of its columns has it."""
    if name == model._target or name in model._required_columns:
        return model
    found = copy.copy(model)
    found._shape = model._shape._replace(target=name)
    found.tally_, found._cache = model.tally_.renamed(model._target, name), {}
    return found


# ---- What a classifier knows of its classes and columns, as properties -------------------------------------------


def target(model: Any) -> Name:
    """The name of the column that holds the classes: as in the data, or what they are called where it had none."""
    return model._shape.target


def class_domain(model: Any) -> Domain:
    """The classes as the tally has them."""
    if not hasattr(model, "tally_"):
        raise AttributeError(f"this {type(model).__name__} is not fitted yet")
    return model.tally_.domains[str(model._shape.target)]


def classes(model: Any) -> np.ndarray:
    """The classes, sorted, in the target's own type."""
    if not hasattr(model, "tally_"):
        raise AttributeError(f"this {type(model).__name__} is not fitted yet")
    return model._cached("classes", lambda: labels_of(model._class_domain.levels, model._shape.y_dtype))


def feature_names_in(model: Any) -> np.ndarray:
    """The names of the columns of a data frame, as scikit-learn keeps them."""
    return np.array(_of_shape(model, "columns"), dtype=object)


def n_features_in(model: Any) -> int:
    """The number of columns of X."""
    return _of_shape(model, "n_features")


def _of_shape(model: Any, name: str) -> Any:
    found = getattr(getattr(model, "_shape", None), name, None)
    if found is None:
        raise AttributeError(f"this {type(model).__name__} was not fitted on such columns, so it has no {name}")
    return found
