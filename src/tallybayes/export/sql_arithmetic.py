"""Arithmetic in SQL: the forms of log probabilities, in what every database has, + − · / and LN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from tallybayes.data.sql.dialects import Dialect
from tallybayes.export.portable_scorer import IMPOSSIBLE
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, PolyaUrnForm, StudentTForm

_POWER = 1e4  # from this on, what LN(1 + u) lacks of log1p(u) would show
_SHIFT = 8  # Stirling's series is asked this far up
_LARGE = 50.0  # starts from which the series serves as it is
_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))


def balanced(parts: Sequence[str], sign: str = "+") -> str:
    """A sum as a tree of little depth: databases limit how deep expressions are."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return "0e0"
    half = len(parts) // 2
    return f"({balanced(parts[:half], sign)} {sign} {balanced(parts[half:], sign)})"


class Arithmetic:
    """The forms in one dialect, for a column that is written already; NULL stays NULL."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def real(self, value: float) -> str:
        """A number; one below 0 in parentheses, as -- begins a comment."""
        written = self.dialect.value(float(value))
        return f"({written})" if written.startswith("-") else written

    def term(self, x: str, form: LinearLogForm | NormalForm | StudentTForm | PolyaUrnForm) -> list[str]:
        """What a column adds, by class."""
        match form:
            case LinearLogForm(weight, bias):
                return [self._line(x, w, b) for w, b in zip(weight.tolist(), bias.tolist(), strict=True)]
            case NormalForm(mean, precision, log_norm):
                bells = zip(mean.tolist(), precision.tolist(), log_norm.tolist(), strict=True)
                return [f"{self.real(c)} - {self._square(x, m, 0.5 * p)}" for m, p, c in bells]
            case StudentTForm(location, spread, power, log_norm):
                bent = zip(location.tolist(), spread.tolist(), power.tolist(), log_norm.tolist(), strict=True)
                return [
                    f"{self.real(c)} - {self.real(p)} * {self.log1p(self._square(x, m, s), p)}" for m, s, p, c in bent
                ]
        urns = zip(form.at_zero.tolist(), form.slope.tolist(), self.rising(x, form.start), strict=True)
        return [f"{self.real(zero)} + {self.real(slope)} * {x} + {up}" for zero, slope, up in urns]

    def _line(self, x: str, weight: float, bias: float) -> str:
        if np.isfinite(weight) and np.isfinite(bias):
            return f"{self.real(bias)} + {self.real(weight)} * {x}"
        zero = IMPOSSIBLE if np.isneginf(bias) else bias
        start = 0.0 if np.isneginf(bias) else bias
        other = self.real(IMPOSSIBLE) if np.isneginf(weight) else f"{self.real(start)} + {self.real(weight)} * {x}"
        return f"CASE WHEN {x} = 0 THEN {self.real(zero)} WHEN {x} IS NOT NULL THEN {other} END"

    def _square(self, x: str, at: float, factor: float) -> str:
        gap = f"({x} - {self.real(at)})"
        return f"{self.real(factor)} * {gap} * {gap}"

    def log1p(self, u: str, power: float) -> str:
        """log(1 + u); where it is to be multiplied by a large power, with what 1 + u lost of u put back (Kahan)."""
        if power < _POWER:
            return f"LN(1e0 + {u})"
        more = f"(1e0 + {u})"
        return f"(CASE WHEN {more} = 1e0 THEN {u} ELSE LN({more}) * ({u} / ({more} - 1e0)) END)"

    def rising(self, x: str, start: np.ndarray) -> list[str]:
        """log Γ(start + x) − log Γ(start) by class, but for a number of x alone.

        A large start by the difference of Stirling's series. A small one beside log Γ(x + 1), which all have in common,
        from 8 further up, so that neither is ever as large as its two parts.
        """
        large = start > _LARGE
        common = f"({x} + {self.real(_SHIFT + 1)})"
        if large.all():
            return [self._from_large(x, a) for a in start.tolist()]
        mixed = f"(({common} - 0.5e0) * LN({common}) - {common} + {self.real(_HALF_LOG_TWO_PI)})"
        return [
            f"({self._from_large(x, a)} - {mixed})" if a > _LARGE else self._from_small(x, a, common)
            for a in start.tolist()
        ]

    def _from_large(self, x: str, a: float) -> str:
        end, start = f"({x} + {self.real(a)})", self.real(a)
        grown = f"{self.real(a - 0.5)} * {self.log1p(f'({x} / {start})', np.inf)}"
        return f"({grown} + {x} * (LN({end}) - 1e0) + {self._tail(end)} - {self.real(_tail(a))})"

    def _from_small(self, x: str, a: float, common: str) -> str:
        end, gap = f"({x} + {self.real(a + _SHIFT)})", a - 1
        steps = " * ".join(f"({x} + {self.real(a + i)})" for i in range(_SHIFT))
        grown = f"({end} - 0.5e0) * {self.log1p(f'({self.real(gap)} / {common})', np.inf)}"
        constant = self.real(-gap - float(gammaln(a)))
        return f"({grown} + {self.real(gap)} * LN({common}) + {constant} + {self._tail(end)} - LN({steps}))"

    def _tail(self, z: str) -> str:
        """What Stirling's series adds: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
        square = f"{z} * {z}"
        inner = f"(1e0 / 1260 - 1e0 / 1680 / ({square}))"
        return f"(1e0 / 12 - (1e0 / 360 - {inner} / ({square})) / ({square})) / {z}"


def _tail(z: float) -> float:
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / z**2) / z**2) / z**2) / z
