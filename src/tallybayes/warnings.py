"""Warning classes of the package, and a function that attributes warnings to the caller's line."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


class TallybayesWarning(UserWarning):
    """Base class of the package's warnings.

    Silence all of them with ``warnings.filterwarnings('ignore', category=tb.TallybayesWarning)``.
    """


class CalibrationWarning(TallybayesWarning):
    """Probabilities are not calibrated, or were calibrated before other rows were counted.

    Call ``calibrate(X, y)`` with the training rows.
    """


class InvalidValueWarning(TallybayesWarning):
    """Invalid cells at prediction were treated as missing.

    Correct the cells, or pass ``unseen='error'`` to get an error instead.
    """


class DataSourceWarning(TallybayesWarning):
    """Rows are read into memory instead of counted at their source, or rows or columns are dropped or unsuitable.

    Follow the message: it names the cause and the option that avoids it.
    """


def warn(message: str, category: type[Warning] = TallybayesWarning) -> None:
    """Issue a warning attributed to the line that called the package, so that filters by module apply to it."""
    frame: FrameType | None = sys._getframe(1)
    level = caller = 2
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            caller = level + 1
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=caller)
