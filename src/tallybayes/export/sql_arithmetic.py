"""SQL expressions of log probabilities by +, −, ·, / and LN, which every database has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from tallybayes.data.sql.dialects import Dialect
from tallybayes.export.portable_scorer import IMPOSSIBLE, ColumnForm
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, StudentTForm

_POWER = 1e4  # power from which the rounding error of LN(1 + u) is visible
_SHIFT = 8  # shift of the argument of Stirling's series
_LARGE = 50.0  # arguments from which the series is accurate without a shift
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))


def balanced(parts: Sequence[str], sign: str = "+") -> str:
    """Return a sum as a tree of small depth, since databases limit the depth of expressions."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return "0e0"
    half = len(parts) // 2
    return f"({balanced(parts[:half], sign)} {sign} {balanced(parts[half:], sign)})"


class Arithmetic:
    """The forms of log probabilities as SQL expressions of one dialect; NULL stays NULL."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def real(self, value: float) -> str:
        """Return a number as a literal; negative numbers are in parentheses, since -- begins a comment."""
        written = self.dialect.value(float(value))
        return f"({written})" if written.startswith("-") else written

    def term(self, x: str, form: ColumnForm) -> list[str]:
        """Return the log probability of a column by class."""
        match form:
            case LinearLogForm(weight, bias):
                return [self._line(x, w, b) for w, b in zip(weight.tolist(), bias.tolist(), strict=True)]
            case NormalForm(mean, precision, log_norm):
                normals = zip(mean.tolist(), precision.tolist(), log_norm.tolist(), strict=True)
                return [f"{self.real(c)} - {self._square(x, m, 0.5 * p)}" for m, p, c in normals]
            case StudentTForm(location, spread, power, log_norm):
                students = zip(location.tolist(), spread.tolist(), power.tolist(), log_norm.tolist(), strict=True)
                return [
                    f"{self.real(c)} - {self.real(p)} * {self.log1p(self._square(x, m, s), p)}"
                    for m, s, p, c in students
                ]
        urns = zip(form.at_zero.tolist(), form.slope.tolist(), self.rising(x, form.start), strict=True)
        return [f"{self.real(zero)} + {self.real(slope)} * {x} + {rising}" for zero, slope, rising in urns]

    def _line(self, x: str, weight: float, bias: float) -> str:
        """Return bias + weight · x, where bias or weight may be −∞."""
        if np.isfinite(weight) and np.isfinite(bias):
            return f"{self.real(bias)} + {self.real(weight)} * {x}"
        zero = IMPOSSIBLE if np.isneginf(bias) else bias
        start = 0.0 if np.isneginf(bias) else bias
        other = self.real(IMPOSSIBLE) if np.isneginf(weight) else f"{self.real(start)} + {self.real(weight)} * {x}"
        return f"CASE WHEN {x} = 0 THEN {self.real(zero)} WHEN {x} IS NOT NULL THEN {other} END"

    def _square(self, x: str, at: float, factor: float) -> str:
        """Return factor · (x − at)²."""
        deviation = f"({x} - {self.real(at)})"
        return f"{self.real(factor)} * {deviation} * {deviation}"

    def log1p(self, u: str, power: float) -> str:
        """Return log(1 + u); accurate for small u if it is multiplied by a large power (Kahan)."""
        if power < _POWER:
            return f"LN(1e0 + {u})"
        increased = f"(1e0 + {u})"
        return f"(CASE WHEN {increased} = 1e0 THEN {u} ELSE LN({increased}) * ({u} / ({increased} - 1e0)) END)"

    def rising(self, x: str, start: np.ndarray) -> list[str]:
        """Return log Γ(start + x) − log Γ(start) by class, up to a term that depends only on x.

        For large start, it is the difference of two Stirling series. For small start, log Γ(x + 1), which all classes
        have in common, is subtracted, and both series are shifted by 8. No result is a small difference of large
        numbers.
        """
        large = start > _LARGE
        common = f"({x} + {self.real(_SHIFT + 1)})"
        if large.all():
            return [self._from_large(x, a) for a in start.tolist()]
        common_series = f"(({common} - 0.5e0) * LN({common}) - {common} + {self.real(_HALF_LOG_TWO_PI)})"
        return [
            f"({self._from_large(x, a)} - {common_series})" if a > _LARGE else self._from_small(x, a, common)
            for a in start.tolist()
        ]

    def _from_large(self, x: str, a: float) -> str:
        """Return the difference of Stirling's series at a + x and at a, for large a."""
        end = f"({x} + {self.real(a)})"
        start = self.real(a)
        grown = f"{self.real(a - 0.5)} * {self.log1p(f'({x} / {start})', np.inf)}"
        return f"({grown} + {x} * (LN({end}) - 1e0) + {self._tail(end)} - {self.real(_tail(a))})"

    def _from_small(self, x: str, a: float, common: str) -> str:
        """Return log Γ(a + x) − log Γ(a) − log Γ(x + 1) for small a, by series that are shifted by 8."""
        end = f"({x} + {self.real(a + _SHIFT)})"
        gap = a - 1
        steps = " * ".join(f"({x} + {self.real(a + i)})" for i in range(_SHIFT))
        grown = f"({end} - 0.5e0) * {self.log1p(f'({self.real(gap)} / {common})', np.inf)}"
        constant = self.real(-gap - float(gammaln(a)))
        return f"({grown} + {self.real(gap)} * LN({common}) + {constant} + {self._tail(end)} - LN({steps}))"

    def _tail(self, z: str) -> str:
        """Return the correction of Stirling's series: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
        square = f"{z} * {z}"
        inner = f"(1e0 / 1260 - 1e0 / 1680 / ({square}))"
        return f"(1e0 / 12 - (1e0 / 360 - {inner} / ({square})) / ({square})) / {z}"


def _tail(z: float) -> float:
    """Return the correction of Stirling's series."""
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / z**2) / z**2) / z**2) / z
