"""Model: what is learnt is a tally. It adds, is re-estimated, and gives all else when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.frozen_value import from_json, same, to_json
from tallybayes.data.data_frames import KINDS
from tallybayes.data.encoding import is_missing
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.text_columns import WordReader
from tallybayes.errors import FileError, NoCountsError, StatisticsError, short_repr
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.families.family import Family
from tallybayes.models.estimator import Estimator
from tallybayes.models.inputs.column_priors import check_binary_columns
from tallybayes.models.io import save_model
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import select_words, with_selected_words


class Model(Estimator):
    """The base of all models: ``tally_`` is what was learnt, everything else follows from it.

    A subclass says in `_take_from` what else it remembers of the shape of its input.
    """

    _dropped_columns: Any = ()  # pairs: columns that are not read, and why
    _frame_library: str | None = None  # the kind of data frame that the first rows were in, if any
    _block_names: Mapping[Any, tuple[str, ...]] = MappingProxyType({})  # of the columns of blocks, where they have some
    _em_result: EMSummary | None = None  # how EM ended, while the counts are those it expected
    _fixed_parameters: tuple[Any, ...] | None = (
        None  # parameters that were stated, of every factor of a tally of no rows
    )

    @property
    def n_rows_(self) -> float:
        """How many rows were counted: the sum of their weights; of a hidden Markov model, how many steps."""
        check_is_fitted(self, "tally_")
        return float(self._total_weight())

    @property
    def history_(self) -> list[float]:
        """The objective after every step of EM, in nats; empty where `fit` only counted, or counts have changed."""
        return [] if self._em_result is None else list(self._em_result.history)

    @property
    def objectives_(self) -> list[float]:
        """The objective that EM ended at from every start, in nats; NaN where one failed. The best is ``history_[-1]``.

        Maximum likelihood sets out twice from each start: at once, and from where default priors lead.
        """
        return [] if self._em_result is None else list(self._em_result.objectives)

    @property
    def n_iter_(self) -> int:
        """How often the rows were gone through: once to count them, or once for every step of EM."""
        check_is_fitted(self, "tally_")
        return max(1, len(self.history_))

    @property
    def objective_(self) -> str | None:
        """What ``history_`` is: the "log posterior" of all that was observed, or its "log likelihood" under mle."""
        return None if self._em_result is None else self._em_result.objective

    @property
    def converged_(self) -> bool:
        """Whether EM stopped because the objective hardly rose any more; True where there was nothing to expect."""
        return self._em_result is None or self._em_result.converged

    def _total_weight(self) -> float:
        """The weight of all rows that were counted."""
        raise NotImplementedError

    def _display_name(self, column: Any) -> Any:
        """What a column is called where it is told of: one of a block by its own name, if it has any."""
        names = self._block_column_names(column[0]) if isinstance(column, tuple) else ()
        if not isinstance(column, tuple) or column[1] >= len(names):
            return column
        return f"{column[0]}: {names[column[1]]}" if len(self._selected_words) > 1 else names[column[1]]

    def _block_column_names(self, block: Any) -> Sequence[str]:
        """What the columns of a block are called, if anything: as was said, or the words of text."""
        if block not in self._selected_words:
            return self._block_names.get(block, ())
        domain = self._selected_tally.domains.get(self.tally_.schema.domain(block))
        return () if domain is None else domain.levels

    @property
    def _selected_words(self) -> dict[Any, Any]:
        """The words that are read, by column of text."""
        return self._cached("kept", lambda: select_words(self.tally_))

    @property
    def _selected_tally(self) -> Tally:
        """The tally as parameters are estimated from it: columns of text as blocks of the words that are read."""
        return self._cached("tally", lambda: with_selected_words(self.tally_, self._selected_words))

    @property
    def _text_readers(self) -> dict[Any, WordReader]:
        """How columns of text are read, by column."""

        def make() -> dict[Any, WordReader]:
            found, schema = {}, self.tally_.schema
            for factor in self.tally_.factors if self._selected_words else ():
                if factor.family.word_family is not None:
                    name = factor.columns[0]
                    words: Any = self._selected_tally.domains.get(schema.domain(name))
                    places = None if factor.word_columns else self._selected_words[name]
                    family: Any = factor.family
                    found[name] = WordReader(family, words, places)
            return found

        return self._cached("word readers", make)

    @property
    def _is_text_only(self) -> bool:
        """Whether rows are one text each, and come without a name."""
        return self._cached(
            "text alone",
            lambda: len(self._text_readers) == len(self._required_columns) == 1 and not self._shape.by_name,
        )

    def _with_words_of(self, other: Self) -> Self:
        """The model, of some of the rows of another, as it reads the same words."""
        if other._selected_words:
            self._cache["kept"] = other._selected_words
        return self

    _fixed_parameters_hint = (
        "Use fit to learn from rows; or give them with strength=, worth so many rows, and go on from there."
    )

    def _check_prior(self, factors: list[Factor]) -> None:
        """Refuse a prior that none of the factors that have one would use: before anything changes."""

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        """The factors that ``prior=`` is about."""
        return list(tally.factors)

    _fixed_log_prob = 0.0  # of the log probability of all rows: what is given, not estimated
    _soft_counts_hint = "Fit it on rows in which nothing is missing."

    def _check_has_likelihood_measures(self, what: str) -> None:
        """Refuse evidence and its like where the model has none."""

    @property
    def _required_columns(self) -> list[Any]:
        """The columns that rows must have."""
        return [name for factor in self.tally_.factors if factor.given for name in factor.columns]

    def _copy_input_format(self, other: Any) -> Self:
        """What was learnt about the shape of the input."""
        raise NotImplementedError

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X that are read."""
        check_is_fitted(self, "tally_")
        return len(self._columns_in)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns of X that are read, where they have some."""
        check_is_fitted(self, "tally_")
        if not all(isinstance(name, str) for name in self._columns_in):
            raise AttributeError(f"this {type(self).__name__} was fitted on columns without names")
        return np.array(self._columns_in, dtype=object)

    @property
    def _columns_in(self) -> list[Any]:
        """The columns that are read, without those that say whether others are there."""
        names = self._required_columns
        return [name for name in names if not any(source in names for source in sources_of(name))]

    def reestimate(self, **parameters: Any) -> Self:
        """A new model from the same tally under other parameters; no data are needed.

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
        """Refuse a model of the same parameters that has chosen otherwise."""

    def _resolve_column_types(self, X: Any) -> Self:
        """The model as it goes on with more rows: one whose columns may be of any kind learns it from them."""
        return self

    def _tally_for(self, other: Self) -> Tally:
        """The tally as the other model reads it."""
        return self.tally_

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what a fitted model derives from its tally follows them.

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
        before, given = self.get_params(deep=False), self._fixed_parameters
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
        """A model of the same settings and choices that has counted nothing: for others to count their rows.

        What was chosen from the first rows (families, bins) is what both have, so they add up.

        Returns
        -------
        A model of the same class, to be filled by ``partial_fit``

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
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        other_ones = [name for name in mine if not _same(mine[name], its[name])]
        if other_ones:
            found = [", ".join(f"{name}={short_repr(one[name])}" for name in other_ones) for one in (mine, its)]
            raise StatisticsError.incompatible("the models' parameters", *found)
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

    def _set_tally(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        """Make a tally this model's own: the last step of every change, so that an error changes nothing.

        How EM ended is of those very counts: where they have changed, it is forgotten.
        """
        prior = getattr(self, "prior", None)
        check_binary_columns(
            prior, lambda: self._factors_with_prior(tally), lambda name: tally.domains[str(name)].levels
        )
        self.tally_, self._em_result, self._fixed_parameters = tally, climbed, None
        self._cache: dict[str, Any] = {}  # what was made of the tally so far
        return self

    def _set_fixed_parameters(self, given: tuple[Any, ...] | None) -> Self:
        """Take parameters that were stated for those of a tally of no rows, which was adopted."""
        self._fixed_parameters, self._cache = given, {}
        return self

    def _check_changeable(self, parameters: Mapping[str, Any]) -> None:
        """Refuse settings that say how counts are read, where there are none."""
        changed = sorted(set(parameters) & _COUNT_PARAMETERS)
        if changed:
            self._require_counts(f"another {changed[0]}=")

    def _require_counts(self, what: str) -> None:
        """Refuse what only counts tell."""
        if self._fixed_parameters is not None:
            raise NoCountsError(
                f"{what} needs counts, and the parameters of this {type(self).__name__} were given, not counted.\n"
                f"    {self._fixed_parameters_hint}"
            )

    def _update_tally(self, tally: Tally) -> Self:
        """Go on with more rows or fewer: as `_adopt`, for what was learned from the rows before and still serves."""
        return self._set_tally(tally)

    def _cached(self, name: str, make: Any) -> Any:
        """Something made of the tally, made once."""
        found = vars(self).get("_cache", {})
        if name not in found:
            check_is_fitted(self, "tally_")
            found[name] = make()
        return found[name]

    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the tally does not tell, for a file."""
        state, arrays = ({}, {}) if self._em_result is None else self._em_result.to_parts()
        kept = {
            "dropped_columns": to_json(dict(self._dropped_columns)),
            "block_names": to_json(dict(self._block_names)),
        }
        return state | kept | {"frame": self._frame_library}, arrays

    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._em_result = EMSummary.from_parts(state, arrays)
        left_out = from_json(state.pop("dropped_columns"))
        self._dropped_columns = {name: str(reason) for name, reason in left_out.items()}
        names = from_json(state.pop("block_names"))
        if not isinstance(names, dict) or not all(isinstance(found, tuple | list) for found in names.values()):
            raise FileError("the file's names of columns are none; expected a list of them for every block.")
        self._block_names = {block: tuple(map(str, found)) for block, found in names.items()}
        self._frame_library = state.pop("frame")
        if self._frame_library not in (None, *KINDS):
            raise FileError(
                f"the model was fitted on a frame of {self._frame_library!r:.60}; expected one of {list(KINDS)}."
            )

    _summary_shows_parents = False  # whether a summary says what every column is given

    def _display_family(self, factor: Factor, name: Any) -> Family:
        """The family of a column as it is told of: what it is counted in, unless cells are counted by their bins."""
        return factor.family

    def _repr_lines(self) -> list[str]:
        """What was chosen, for a fitted model's repr."""
        return []

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return "\n".join([super().__repr__(N_CHAR_MAX), *(self._repr_lines() if hasattr(self, "tally_") else [])])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return state | {"_cache": {}} if "_cache" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tally_")


# Settings that say how counts are read: stated parameters are as they were stated.
_COUNT_PARAMETERS = frozenset(
    {"allowed_transitions", "columns", "components", "end_state", "estimate", "n_components", "n_states"}
    | {"parents", "prior", "start", "tied"}
)


def _same(first: Any, second: Any) -> bool:
    """Whether two parameters mean the same."""
    if is_missing(first) or is_missing(second):
        return is_missing(first) and is_missing(second)  # NaN, as a missing label, is NaN
    return same(first, second)
