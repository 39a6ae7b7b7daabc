"""Model: the base class of all models. A fitted model holds a tally; parameters are computed from it on first use."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.frozen_value import from_json, same, to_json
from tallybayes.data.data_frames import KINDS
from tallybayes.data.encoding import is_missing
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import DataError, FileError, NoCountsError, StatisticsError, short_repr
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.models.estimator import Estimator
from tallybayes.models.inputs.column_priors import check_binary_columns
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection.column_names import ColumnNames
from tallybayes.models.inspection.information_criteria import LikelihoodMeasures
from tallybayes.models.inspection.labeled_parameters import LabeledFactor, parameters_by_column, parameters_title
from tallybayes.models.inspection.model_summary import ColumnSummary, Summary, column_summaries
from tallybayes.models.inspection.parameter_table import Parameters
from tallybayes.models.io import save_model
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import Selected, select_words, with_selected_words


class Model(Estimator):
    """Base class of all models. The fitted state is ``tally_``; parameters and predictions are computed from it.

    Subclasses copy the rest of their fitted state in `_copy_input_format`.
    """

    _dropped_columns: Any = ()  # mapping from a column that is not used to the reason
    _frame_library: str | None = None  # library of the data frame that was fitted: "pandas", "polars", "pyarrow"
    _block_names: Mapping[Any, tuple[str, ...]] = MappingProxyType({})  # names of the columns of blocks
    _em_result: EMSummary | None = None  # summary of EM, if the tally has expected counts
    _fixed_parameters: tuple[Any, ...] | None = None  # user-specified parameters of every factor; the tally is empty

    @property
    def n_rows_(self) -> float:
        """The total weight of the training rows; of a hidden Markov model, of the time steps."""
        check_is_fitted(self, "tally_")
        return float(self._total_weight())

    @property
    def history_(self) -> list[float]:
        """The objective after every iteration of EM, in nats; empty if EM was not needed or the counts have changed."""
        return [] if self._em_result is None else list(self._em_result.history)

    @property
    def objectives_(self) -> list[float]:
        """The final objective of EM for every initialization, in nats; NaN if one failed. The best is ``history_[-1]``.

        Maximum likelihood of discrete columns runs EM twice per initialization: from the initial values, and from
        estimates under default priors.
        """
        return [] if self._em_result is None else list(self._em_result.objectives)

    @property
    def n_iter_(self) -> int:
        """The number of passes over the rows: one for counting, or one for every iteration of EM."""
        check_is_fitted(self, "tally_")
        return max(1, len(self.history_))

    @property
    def objective_(self) -> str | None:
        """The objective in ``history_``: "log posterior", or "log likelihood" under maximum likelihood."""
        return None if self._em_result is None else self._em_result.objective

    @property
    def converged_(self) -> bool:
        """Whether EM converged within ``max_iter`` iterations; True if EM was not needed."""
        return self._em_result is None or self._em_result.converged

    def _total_weight(self) -> float:
        """Return the total weight of the training rows."""
        raise NotImplementedError

    @property
    def _column_names(self) -> ColumnNames:
        """The names of the columns of blocks."""
        return ColumnNames(self._block_names, self._selected_words, self._selected_tally)

    @property
    def _selected_words(self) -> Selected:
        """The selected words of every text column."""
        return self._cached("kept", lambda: select_words(self.tally_))

    @property
    def _selected_tally(self) -> Tally:
        """The tally with text columns as blocks of their selected words; parameters are estimated from it."""
        return self._cached("tally", lambda: with_selected_words(self.tally_, self._selected_words))

    @property
    def _text_readers(self) -> dict[Any, WordReader]:
        """The reader of every text column."""

        def make() -> dict[Any, WordReader]:
            readers = {}
            schema = self.tally_.schema
            for factor in self.tally_.factors if self._selected_words else ():
                if factor.family.word_family is not None:
                    name = factor.columns[0]
                    words: Any = self._selected_tally.domains.get(schema.domain(name))
                    positions = None if factor.word_columns else self._selected_words[name]
                    family: Any = factor.family
                    readers[name] = WordReader(family, words, positions)
            return readers

        return self._cached("word readers", make)

    @property
    def _n_float_columns(self) -> int | None:
        """The number of columns if rows are plain arrays of floats in which every value is valid; None otherwise."""

        def count() -> int | None:
            input_format = getattr(self, "input_format_", None)
            if input_format is None or input_format.by_name or input_format.feature_names is not None:
                return None
            specs = self._column_specs()
            plain = all(family.is_continuous and out_of_support(family, np.zeros(0)) is None for _, family, _ in specs)
            names = [name for columns, _, _ in specs for name in columns]
            return len(names) if plain and sorted(names, key=str) == sorted(range(len(names)), key=str) else None

        return self._cached("float columns", count)

    def _column_specs(self) -> list[ColumnSpec]:
        """Return the columns, the family and the levels of every factor."""
        return []

    @property
    def _is_text_only(self) -> bool:
        """Whether every row is a single text without a column name."""
        return self._cached(
            "text alone",
            lambda: len(self._text_readers) == len(self._required_columns) == 1 and not self.input_format_.by_name,
        )

    def _with_words_of(self, other: Self) -> Self:
        """Use the selected words of another model, and return this one."""
        if other._selected_words:
            self._cache["kept"] = other._selected_words
        return self

    _fixed_parameters_hint = (
        "Use fit with training rows; or pass strength= to use the parameters as a prior of that many rows."
    )

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise PriorError if ``prior`` does not fit the families of the factors."""

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        """Return the factors that ``prior`` applies to."""
        return list(tally.factors)

    _fixed_log_prob = 0.0  # part of the log-likelihood that has no estimated parameters
    _soft_counts_hint = "Fit it on rows without missing values."

    def _check_has_likelihood_measures(self, what: str) -> None:
        """Raise EstimateError if the model has no evidence, description length or information criterion."""

    @property
    def _all_factors(self) -> EstimatedFactors:
        """The estimated factors."""
        raise AttributeError(f"{type(self).__name__} has no likelihood.")

    def _likelihood_measures(self, what: str) -> LikelihoodMeasures:
        """Return the likelihood measures; raise an error if the model does not have the one named `what`."""
        check_is_fitted(self, "tally_")
        self._require_counts(f"the {what}")
        self._check_has_likelihood_measures(what)
        none = (
            f"this {type(self).__name__} has no {what}: EM filled in unobserved values, so its counts are "
            f"expectations, not rows.\n    {self._soft_counts_hint}"
        )
        return LikelihoodMeasures(self._all_factors, self._fixed_log_prob, self.tally_.soft, self._em_result, none)

    def _labeled_factors(self) -> list[LabeledFactor]:
        """Return the factors with the names of their groups, columns and levels."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """Return a summary of the columns: family, levels, fraction of missing cells and prior.

        Returns
        -------
        Summary
            It prints as a table.
        """
        check_is_fitted(self, "tally_")
        n_rows = self._total_weight()
        columns: list[ColumnSummary] = []
        try:
            priors = self._resolved_priors()
        except (DataError, NoCountsError):  # a default prior needs at least one row
            priors = {}
        for factor in self._factors_with_prior(self.tally_):
            families = [self._display_family(factor, name) for name in factor.columns]
            prior = priors.get(factor.columns if len(factor.columns) > 1 else factor.columns[0])
            shows_parents = self._summary_shows_parents
            columns += column_summaries(self.tally_, factor, families, prior, n_rows, shows_parents=shows_parents)
        order = {name: place for place, name in enumerate(getattr(self, "feature_names_in_", ()))}
        columns.sort(key=lambda column: order.get(column.column, len(order)))
        return Summary(self._summary_title(n_rows), columns, getattr(self, "dropped_columns_", {}))

    def _summary_title(self, n_rows: float) -> str:
        """Return the title of the summary of a model of rows with this total weight."""
        raise NotImplementedError

    def _resolved_priors(self) -> dict[Any, Any]:
        """Return the resolved priors by column."""
        raise NotImplementedError

    def _make_parameters(self) -> Parameters:
        """Return the parameters by column."""
        title = parameters_title(
            type(self).__name__, getattr(self, "estimate", None), fixed=self._fixed_parameters is not None
        )
        return parameters_by_column(title, self._labeled_factors())

    @property
    def _required_columns(self) -> list[Any]:
        """The columns that rows must have."""
        return [name for factor in self.tally_.factors if factor.given for name in factor.columns]

    def _copy_input_format(self, other: Any) -> Self:
        """Copy the input format of another model."""
        raise NotImplementedError

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X that the model uses."""
        check_is_fitted(self, "tally_")
        return len(self._columns_in)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns of X that the model uses, if all are strings."""
        check_is_fitted(self, "tally_")
        if not all(isinstance(name, str) for name in self._columns_in):
            raise AttributeError(f"this {type(self).__name__} was fitted on columns without names")
        return np.array(self._columns_in, dtype=object)

    @property
    def _columns_in(self) -> list[Any]:
        """The columns that the model uses, without missing-value indicators."""
        names = self._required_columns
        return [name for name in names if not any(source in names for source in sources_of(name))]

    def reestimate(self, **parameters: Any) -> Self:
        """Return a new model with the same tally and other parameters; no data are needed.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor, such as ``estimate="map"`` or ``prior=...``.

        Returns
        -------
        A fitted model of the same class
        """
        check_is_fitted(self, "tally_")
        self._check_changeable(parameters)
        other = clone(self).set_params(**parameters)
        other._check_settings()
        tally = self._tally_for(other)
        other._copy_input_format(self)._check_prior(other._factors_with_prior(tally))
        other._frame_library, other._block_names = self._frame_library, dict(self._block_names)
        return other._set_tally(tally, self._em_result)._set_fixed_parameters(self._fixed_parameters)

    def _with_one_target(self, other: Self) -> tuple[Self, Self]:
        """Return both models with one name of the target: a name given by the user replaces a default one."""
        return self, other

    def _check_mergeable(self, other: Self) -> None:
        """Raise StatisticsError if another model with equal parameters has chosen other families or bins."""

    def _resolve_column_types(self, X: Any) -> Self:
        """Return the model with the types of columns that had only missing values so far, from new rows."""
        return self

    def _tally_for(self, other: Self) -> Tally:
        """Return the tally in the families of another model."""
        return self.tally_

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; a fitted model is re-estimated from its tally.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return super().set_params(**parameters)
        before = self.get_params(deep=False)
        given = self._fixed_parameters
        self._check_changeable(parameters)
        try:
            super().set_params(**parameters)._check_settings()
            self._check_prior(self._factors_with_prior(self.tally_))
            return self._set_tally(self.tally_, self._em_result)._set_fixed_parameters(given)
        except Exception:
            for name, value in before.items():
                setattr(self, name, value)
            raise

    def without_rows(self) -> Self:
        """Return an empty model with the same parameters and choices, to count other rows with ``partial_fit``.

        It has the same families and bins, so the two models can be added.

        Returns
        -------
        A model of the same class

        Examples
        --------
        >>> import tallybayes as tb
        >>> here = tb.AveragedOneDependence(bins=2).fit({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 0, 1, 1]}, "y")
        >>> there = here.without_rows().partial_fit({"x": [1.5, 9.0], "y": [0, 1]}, "y")
        >>> (here + there).n_rows_
        6.0
        """
        check_is_fitted(self, "tally_")
        self._require_counts("a model without rows")
        other = clone(self)._copy_input_format(self)._set_tally(self.tally_.scale(0.0))
        other._frame_library, other._block_names = self._frame_library, dict(self._block_names)
        return other

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "tally_")
            model._require_counts("adding models")
        left = self.get_params(deep=False)
        right = other.get_params(deep=False)
        different = [name for name in left if not _same(left[name], right[name])]
        if different:
            values = [", ".join(f"{name}={short_repr(side[name])}" for name in different) for side in (left, right)]
            raise StatisticsError.incompatible("the models' parameters", *values)
        self._check_mergeable(other)
        first, second = self._with_one_target(other)
        both = clone(self)._copy_input_format(first)._set_tally(first.tally_ + second.tally_)
        both._frame_library, both._block_names = self._frame_library, {**other._block_names, **self._block_names}
        return both

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a sealed file that `tb.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "tally_")
        save_model(self, path)

    def _set_tally(self, tally: Tally, em_result: EMSummary | None = None) -> Self:
        """Replace the tally, and return the model.

        Mutating methods call this last, so that an exception leaves the model unchanged. ``em_result`` belongs to the
        counts of this tally.
        """
        prior = getattr(self, "prior", None)
        if prior is not None:
            check_binary_columns(
                prior, lambda: self._factors_with_prior(tally), lambda name: tally.domains[str(name)].levels
            )
        self.tally_ = tally
        self._em_result = em_result
        self._fixed_parameters = None
        self._cache: dict[str, Any] = {}  # values computed from the tally
        return self

    def _set_fixed_parameters(self, parameters: tuple[Any, ...] | None) -> Self:
        """Use user-specified parameters with an empty tally, and return the model."""
        self._fixed_parameters = parameters
        self._cache = {}
        return self

    def _check_changeable(self, parameters: Mapping[str, Any]) -> None:
        """Raise NoCountsError if parameters of estimation change but the model has fixed parameters, not counts."""
        changed = sorted(set(parameters) & _COUNT_PARAMETERS)
        if changed:
            self._require_counts(f"another {changed[0]}=")

    def _require_counts(self, what: str) -> None:
        """Raise NoCountsError if the model has fixed parameters instead of counts."""
        if self._fixed_parameters is not None:
            raise NoCountsError(
                f"{what} needs counts, and the parameters of this {type(self).__name__} are user-specified.\n"
                f"    {self._fixed_parameters_hint}"
            )

    def _update_tally(self, tally: Tally) -> Self:
        """Replace the tally after rows were added or removed; keep what stays valid, such as a calibration."""
        return self._set_tally(tally)

    def _cached(self, name: str, make: Any) -> Any:
        """Return a value computed from the tally on first use; `_set_tally` drops it."""
        cache = vars(self).get("_cache", {})
        if name not in cache:
            check_is_fitted(self, "tally_")
            cache[name] = make()
        return cache[name]

    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the fitted state besides the tally as JSON and arrays, for a file."""
        state, arrays = ({}, {}) if self._em_result is None else self._em_result.to_parts()
        kept = {
            "dropped_columns": to_json(dict(self._dropped_columns)),
            "block_names": to_json(dict(self._block_names)),
        }
        return state | kept | {"frame": self._frame_library}, arrays

    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Set what `_to_manifest` returned; raise FileError if it is invalid."""
        self._em_result = EMSummary.from_parts(state, arrays)
        dropped_columns = from_json(state.pop("dropped_columns"))
        self._dropped_columns = {name: str(reason) for name, reason in dropped_columns.items()}
        names = from_json(state.pop("block_names"))
        if not isinstance(names, dict) or not all(isinstance(columns, tuple | list) for columns in names.values()):
            raise FileError("block_names of the file is invalid; expected a list of column names for every block.")
        self._block_names = {block: tuple(map(str, columns)) for block, columns in names.items()}
        self._frame_library = state.pop("frame")
        if self._frame_library not in (None, *KINDS):
            raise FileError(
                f"the model was fitted on a frame of {self._frame_library!r:.60}; expected one of {list(KINDS)}."
            )

    _summary_shows_parents = False  # whether the summary lists the parents of every column

    def _display_family(self, factor: Factor, name: Any) -> Family:
        """Return the family of a column in results; discretized columns are counted in another family."""
        return factor.family

    def _repr_lines(self) -> list[str]:
        """Return the lines about chosen families in the repr of a fitted model."""
        return []

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join([super().__repr__(N_CHAR_MAX), *(self._repr_lines() if hasattr(self, "tally_") else [])])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_property_error", None)
        return state | {"_cache": {}} if "_cache" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tally_")


# Parameters that change estimates, and need counts.
_COUNT_PARAMETERS = frozenset(
    {"allowed_transitions", "columns", "components", "end_state", "estimate", "n_components", "n_states"}
    | {"parents", "prior", "start", "tied"}
)


def _same(first: Any, second: Any) -> bool:
    """Return whether two parameter values are equal."""
    if is_missing(first) or is_missing(second):
        return is_missing(first) and is_missing(second)  # a missing_label of NaN equals NaN
    return same(first, second)
