"""Every warning of the package that has a class of its own, so that it can be told apart and silenced alone.

And how to warn: whatever is said is said to the caller of the package, however deep in it that was found out.
"""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


class TallybayesWarning(UserWarning):
    """The base of the warnings of this package that have a class of their own."""


class CalibrationWarning(TallybayesWarning):
    """Probabilities that were to be calibrated are not, or were when the model had counted other rows."""


class InvalidValueWarning(TallybayesWarning):
    """Cells of rows that something is asked of cannot be what their columns were counted as: taken for missing."""


class DataSourceWarning(TallybayesWarning):
    """Rows are read into memory that could not be counted where they lie; or some rows or columns are left out."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the line that called the package: filters go by it, and it is the one to be changed."""
    frame: FrameType | None = sys._getframe(1)
    level = caller = 2
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            caller = level + 1
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=caller)
