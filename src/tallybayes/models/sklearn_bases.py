"""scikit-learn's base classes with types, and `typed_property`.

``classes_ = typed_property(classes)`` is a property with the return type of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "TransformerMixin", "typed_property"]

if TYPE_CHECKING:
    import numpy as np

    T = TypeVar("T")

    class typed_property(Generic[T]):  # noqa: N801, D101 - it stands where `property` does
        def __init__(self, derive: Callable[[Any], T]) -> None: ...
        def __get__(self, model: object, kind: type | None = None) -> T: ...

    class BaseEstimator:  # noqa: D101
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
        def set_params(self, **parameters: Any) -> Self: ...  # noqa: D102
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __sklearn_tags__(self) -> Any: ...
        def _html_repr(self) -> str: ...
        def __sklearn_is_fitted__(self) -> bool: ...

    class ClassifierMixin: ...  # noqa: D101

    class RegressorMixin: ...  # noqa: D101

    class TransformerMixin:  # noqa: D101
        def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray: ...  # noqa: D102
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin

    typed_property = property
