"""Estimator: parameter checks, error hints, completion and notebook display of all models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any, ClassVar, Self

from tallybayes._utils.html import html_text
from tallybayes._utils.parameter_checks import StringOptions, check_em_parameters
from tallybayes.errors import TallybayesError, as_attribute_error
from tallybayes.models.name_hints import (
    check_parameter_names,
    hint_for_attribute,
    hint_for_parameter,
    parameter_names,
)
from tallybayes.models.sklearn_bases import BaseEstimator

_MOST_COLUMNS = 1000  # of a model whose covariances are among its listed attributes


class Estimator(BaseEstimator):
    """Base class of all estimators. A property that is undefined for a fitted model raises AttributeError."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make errors of properties AttributeErrors, so that `hasattr` and `dir` do not raise."""
        super().__init_subclass__(**options)
        for name, member in list(vars(cls).items()):
            if isinstance(member, property):
                getter = _with_attribute_error(member.fget, name)
                setattr(cls, name, property(getter, member.fset, member.fdel, member.__doc__))

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
        """Return the parameter names; scikit-learn would inspect the signature again for every clone."""
        if "_settings" not in vars(cls):
            cls._settings = super()._get_param_names()  # type: ignore[misc]
        return list(cls._settings)

    _settings: ClassVar[list[str]]

    # Attributes and methods of other models that this kind does not have, and the error that explains it.
    _absent_attributes: ClassVar[Mapping[str, TallybayesError]] = {}

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, with a hint for names of other libraries; called if the normal look-up has failed."""
        failed, error = vars(self).pop("_property_error", (None, None))
        if failed == name and error is not None:
            raise error
        if name in self._absent_attributes:
            raise as_attribute_error(self._absent_attributes[name])
        hint = "" if name.startswith("_") else hint_for_attribute(type(self), name)
        if not hint:
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {hint}")

    # Parameters with string options. As scikit-learn demands, they are checked by `fit` and not by `__init__`.
    _string_options: ClassVar[Mapping[str, StringOptions]] = {}

    def _check_settings(self) -> None:
        """Raise an error if a parameter is invalid for any data."""
        for name, options in self._string_options.items():
            options.check(name, getattr(self, name))
        check_em_parameters(self)

    def __dir__(self) -> list[str]:
        # Undefined attributes are not listed; newer versions of scikit-learn do the same. Values are computed for that,
        # twice for a notebook, and the size of `covariances_` is the square of the number of columns.
        hidden = {"covariances_"} if getattr(self, "n_features_in_", 0) > _MOST_COLUMNS else set()
        return [name for name in object.__dir__(self) if name not in hidden and hasattr(self, name)]

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram and, if fitted, the summary of the model."""
        diagram = super()._html_repr()
        return f"{diagram}{self._summary_html()}" if self.__sklearn_is_fitted__() else diagram

    def _summary_html(self) -> str:
        """Return the summary of a fitted model as HTML; its repr if it has no summary."""
        try:
            return self.summary()._repr_html_()
        except (TallybayesError, AttributeError):
            return html_text(repr(self))


def _with_attribute_error(getter: Any, name: str) -> Any:
    """Return the getter of a property, whose errors of this package are AttributeErrors, too.

    Python calls `__getattr__` after an AttributeError, without the error: the model keeps it for that call.
    """

    @wraps(getter)
    def get(model: Any) -> Any:
        try:
            return getter(model)
        except (TallybayesError, AttributeError) as error:
            kept: Any = as_attribute_error(error) if isinstance(error, TallybayesError) else error
            vars(model)["_property_error"] = name, kept
            raise kept.with_traceback(error.__traceback__) from error.__cause__

    return get
