"""A picture of an audit: how far columns moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, NOTE, OTHERS, WIDEST, hide_top_right_spines, new_axes, words

if TYPE_CHECKING:
    from tallybayes.evaluation.checks.audit_result import Audit

_MOST_COLUMNS = 30


def plot_audit(found: Audit, ax: Any = None) -> Plot:
    """A bar for every column, those that moved in color; intervals beside them."""
    shown = found.columns[:_MOST_COLUMNS]
    names = [", ".join(map(str, one.column)) if isinstance(one.column, tuple) else one.column for one in found.columns]
    moved = [one.column in found.drifted for one in found.columns]
    ax = new_axes(ax, figsize=(7.2, 1.5 + 0.28 * max(2, len(shown))), layout="constrained")
    bits = np.array([one.bits for one in shown])
    ends = np.array([[one.bits - one.low, one.high - one.bits] for one in shown]).T
    colors = [COLORS[5] if is_moved else OTHERS for is_moved in moved[: len(shown)]]
    ax.barh(range(len(shown)), bits, xerr=ends, color=colors, ecolor=NOTE, error_kw={"elinewidth": 1.2, "capsize": 2})
    ax.set_yticks(range(len(shown)), [words(name, WIDEST) for name in names[: len(shown)]], fontsize=8)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    left = len(found.columns) - len(shown)
    ax.set_xlabel("bits a cell, with 99 % intervals" + (f"; {left} more columns moved less" if left else ""))
    said = "in color: more than by chance" if any(moved) else "none more than by chance"
    ax.set_title(f"how far columns moved ({said})", fontsize=11)
    hide_top_right_spines(ax)
    columns: dict[str, Any] = {"column": names, "drifted": moved}
    columns |= {what: [getattr(one, what) for one in found.columns] for what in ("bits", "low", "high", "chance")}
    return Plot(ax, columns)
