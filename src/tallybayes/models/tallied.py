"""Tallied: a model whose learnt state is a tally. It adds, is re-estimated, and derives all else when asked."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import StatisticsError
from tallybayes.sources.encode import is_missing
from tallybayes.tally.tally import Tally
from tallybayes.value import to_json


class Tallied(BaseEstimator):
    """The base of all models: ``tally_`` is what was learnt, everything else follows from it.

    A subclass says in `_take_from` what else it remembers of the shape of its input.
    """

    def _take_from(self, other: Any) -> Self:
        """What was learnt about the shape of the input."""
        raise NotImplementedError

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
        other = clone(self).set_params(**parameters)
        return other._take_from(self)._adopt(self._retally(other))

    def _retally(self, other: Self) -> Tally:
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
        super().set_params(**parameters)
        return self._adopt(self.tally_) if hasattr(self, "tally_") else self

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "tally_")
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        if mine.keys() != its.keys() or any(not _same(mine[name], its[name]) for name in mine):
            raise StatisticsError.incompatible("the models' parameters", mine, its)
        return clone(self)._take_from(self)._adopt(self.tally_ + other.tally_)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def _adopt(self, tally: Tally) -> Self:
        """Make a tally this model's own: the last step of every change, so that an error changes nothing."""
        self.tally_ = tally
        self._derived: dict[str, Any] = {}  # what was made of the tally so far
        return self

    def _update(self, tally: Tally) -> Self:
        """Go on with more rows or fewer: as `_adopt`, for what was learned from the rows before and still serves."""
        return self._adopt(tally)

    def _derive(self, name: str, make: Any) -> Any:
        """Something made of the tally, made once."""
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return state | {"_derived": {}} if "_derived" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tally_")


def _same(first: Any, second: Any) -> bool:
    """Whether two parameters mean the same; a list, a tuple and an array of the same values do."""
    if is_missing(first) or is_missing(second):
        return is_missing(first) and is_missing(second)  # NaN, as a missing label, is NaN
    return bool(to_json(first) == to_json(second))
