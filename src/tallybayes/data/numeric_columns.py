"""Conversion of columns to numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.encoding import is_missing, plain_array
from tallybayes.errors import DataError, short_repr
from tallybayes.messages import conversion_hint
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.typing import Column


def numeric(column: Column, name: Name) -> np.ndarray:
    """Convert a column or block to an array of numbers; None and NA become NaN, True becomes 1."""
    if not isinstance(column, np.ndarray):
        column = column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else np.asarray(column)
    column = plain_array(column, name)
    if column.dtype.kind in "biuf":
        return column.view(np.uint8) if column.dtype.kind == "b" else column
    cells = column.ravel().tolist() if column.dtype.kind in "OU" else list(column.ravel())
    for value in cells:
        if not is_missing(value) and not is_number(value):
            found_text = f"partly {short_repr(value)} ({type(value).__name__})"
            example = next((other for other in cells if not is_missing(other) and is_number(other)), None)
            hint = (
                conversion_hint(value)
                or "Use Categorical() for categories, or Bernoulli(success=...) in tb.fit_distribution."
            )
            if isinstance(value, str) and (example is not None or _is_spelled(value)):
                found_text += "" if example is None else f" and partly {short_repr(example)}"
                hint = "For numbers, use pd.to_numeric(column, errors='coerce'); for categories, column.astype(str)."
            raise DataError.wrong_type(f"column {name!r}", found_text, "numbers", hint)
    return np.array([np.nan if is_missing(v) else v for v in cells], dtype=np.float64).reshape(column.shape)


def is_number(value: object) -> bool:
    """Return whether a cell is a real number."""
    is_numeric = isinstance(value, int | float | Decimal | np.bool_ | np.number)
    return is_numeric and not isinstance(value, np.complexfloating | np.timedelta64)


def _is_spelled(text: str) -> bool:
    """Return whether a string is the representation of a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
