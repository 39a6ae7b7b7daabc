"""What all pictures share: colours, axes, few lines."""

from __future__ import annotations

from typing import Any

from tallybayes.errors import printable

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def words(value: object) -> str:
    """A label or a name for a picture: one line, as it is. A dollar is no mathematics, and none is hidden or empty.

    matplotlib sets what stands between two dollars as a formula, and leaves labels that begin with "_" out of legends.
    """
    text = printable(value).replace("$", r"\$") or "''"
    return f" {text}" if text.startswith("_") else text


def new_axes(ax: Any, **options: Any) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib.\n    Install it with pip install 'tallybayes[plot]'.") from None
    return plt.subplots(**options)[1]


def quiet(ax: Any) -> None:
    """Without the lines at the top and on the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
