"""Estimator: what every model gives to those who look at it: completion, `hasattr`, a notebook."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import wraps
from typing import Any, ClassVar, Self

from tallybayes._utils.html import html_text
from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import TallybayesError, as_attribute_error
from tallybayes.estimation.em.em_loop import check_em_parameters
from tallybayes.models.name_hints import (
    check_parameter_names,
    hint_for_attribute,
    hint_for_parameter,
    parameter_names,
)
from tallybayes.models.sklearn_bases import BaseEstimator


class Estimator(BaseEstimator):
    """The base of what is fitted. What cannot be derived is an attribute that is not there."""

    def __init_subclass__(cls, **options: Any) -> None:
        """`hasattr` and `dir` must not raise: properties that cannot be derived are errors of attributes."""
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if isinstance(member, property):
                setattr(cls, name, property(_derived(member.fget, name), member.fset, member.fdel, member.__doc__))

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        """Raise TypeError with a hint for a parameter of another library, before `__init__` raises it without one."""
        init: Any = cls.__init__
        if parameters and not parameter_names(init).issuperset(parameters):
            check_parameter_names(cls, parameters)
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; raise ValueError, with a hint for a parameter of another library, if there is no such one."""
        try:
            return super().set_params(**parameters)
        except ValueError as error:
            known = self._get_param_names()
            hints = [
                hint_for_parameter(type(self), name) for name in parameters if name.partition("__")[0] not in known
            ]
            if not any(hints):
                raise
            raise ValueError(f"{error} {' '.join(filter(None, hints))}") from None

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Read once a class: scikit-learn would look at the signature again for every clone."""
        if "_settings" not in vars(cls):
            cls._settings = super()._get_param_names()  # type: ignore[misc]
        return list(cls._settings)

    _settings: ClassVar[list[str]]

    def __getattr__(self, name: str) -> Any:
        """Only where an attribute is not there: raise AttributeError with a hint for names of other libraries."""
        why = _unavailable.take(self, name)
        if why is not None:
            raise why
        hint = "" if name.startswith("_") else hint_for_attribute(type(self), name)
        if not hint:
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {hint}")

    # The words of every setting that has some; subclasses say theirs. They are checked when rows are learned from, and
    # when settings of a fitted model change: never in `__init__`, for scikit-learn's sake.
    _string_options: ClassVar[Mapping[str, StringOptions]] = {}

    def _check_settings(self) -> None:
        """Refuse settings that no rows could make sense of."""
        for name, words in self._string_options.items():
            words.check(name, getattr(self, name))
        check_em_parameters(self)

    def __dir__(self) -> list[str]:
        # What cannot be derived is not there; newer versions of scikit-learn leave it out by themselves.
        return [name for name in object.__dir__(self) if hasattr(self, name)]

    def _html_repr(self) -> str:
        """For a notebook: scikit-learn's diagram and, of a fitted model, what it consists of."""
        diagram = super()._html_repr()
        return f"{diagram}{self._summary_html()}" if self.__sklearn_is_fitted__() else diagram

    def _summary_html(self) -> str:
        """What a fitted model consists of, in HTML; its text where it cannot tell."""
        try:
            return self.summary()._repr_html_()
        except (TallybayesError, AttributeError):
            return html_text(repr(self))


class _UnavailableAttribute(threading.local):
    """The attribute that could not be derived last, of which model, and why.

    Python asks `__getattr__` where a property fails, and forgets the error. To ask the property again would double the
    work at every level of properties that ask each other.
    """

    found: tuple[Any, str, AttributeError] | None = None

    def take(self, model: Any, name: str) -> AttributeError | None:
        """Return the error of the attribute of a model that failed last, once; None if it is another one."""
        found, self.found = self.found, None
        return found[2] if found is not None and found[0] is model and found[1] == name else None


_unavailable = _UnavailableAttribute()


def _derived(make: Any, name: str) -> Any:
    """What a property gives, its errors of this package being errors of attributes, too."""

    @wraps(make)
    def derived(model: Any) -> Any:
        try:
            return make(model)
        except TallybayesError as error:
            why: Any = as_attribute_error(error).with_traceback(error.__traceback__)
            _unavailable.found = model, name, why
            raise why from error.__cause__
        except AttributeError as error:
            _unavailable.found = model, name, error
            raise

    return derived
