"""CalculationSheet: a step-by-step calculation with one column per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import printable


class CalculationSheet:
    """Rows of numbers, one per class, under a formula.

    Parameters
    ----------
    formula : str
    classes : sequence of labels
    """

    def __init__(self, formula: str, classes: Sequence[Any]) -> None:
        self.formula = formula
        self.classes = [printable(label) for label in classes]
        self._lines: list[tuple[str, str, list[str] | None]] = []

    def add(self, title: str, numbers: npt.ArrayLike, value: str = "") -> None:
        """Add a row: its title, the value of the cell, and one number per class."""
        self._lines.append((title, value, [_number(number) for number in np.asarray(numbers, dtype=float)]))

    def note(self, text: str) -> None:
        """Add a line of text."""
        self._lines.append((text, "", None))

    def rule(self) -> None:
        """Add a line below which the sum follows."""
        self._lines.append(("", "", []))

    def to_text(self, prediction: object) -> str:
        """Return the sheet as text, with numbers aligned below their classes."""
        counted = [line for line in self._lines if line[2]]
        wide = max((len(title) for title, _, _ in counted), default=0) + 2
        cell = max([12, *(len(value) for _, value, _ in counted)])
        width = max([10, *(len(text) + 2 for _, _, numbers in counted for text in [*self.classes, *(numbers or [])])])
        out = [self.formula, "", " " * (wide + cell + 2) + "".join(f"{label:>{width}}" for label in self.classes)]
        for title, value, numbers in self._lines:
            if numbers is None:
                out.append(title)
            elif not numbers:
                out.append(" " * (wide + cell + 2) + "─" * (width * len(self.classes)))
            else:
                cells = "".join(f"{number:>{width}}" for number in numbers)
                out.append(f"{title:<{wide}}{value:>{cell}}  {cells}")
        return "\n".join([*out, "", f"prediction: {printable(prediction)}"])


def _number(value: float) -> str:
    """Return a number as text."""
    return f"{value:.4f}" if abs(value) < 1e6 or not np.isfinite(value) else f"{value:.6g}"
