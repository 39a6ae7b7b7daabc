"""Every warning of the package that has a class of its own, so that it can be told apart and silenced alone."""

from __future__ import annotations


class TallybayesWarning(UserWarning):
    """The base of the warnings of this package that have a class of their own."""


class CalibrationWarning(TallybayesWarning):
    """Probabilities that were to be calibrated are not, or were when the model had counted other rows."""


class OutsideWarning(TallybayesWarning):
    """Cells of rows that something is asked of cannot be what their columns were counted as: taken for missing."""
