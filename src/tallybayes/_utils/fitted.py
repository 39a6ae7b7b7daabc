"""The check that a model is fitted."""

from __future__ import annotations

from typing import Any


def check_is_fitted(model: Any, attribute: str | None = None) -> None:
    """Raise NotFittedError unless the model is fitted, that is, has an attribute.

    scikit-learn's function of that name reads the tags of the model first, which takes longer than scoring a row.
    """
    if attribute not in vars(model) if attribute is not None else not model.__sklearn_is_fitted__():
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(model).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
            "using this estimator."
        )
