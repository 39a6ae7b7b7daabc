"""Loading: whatever a sealed file holds."""

from __future__ import annotations

from os import PathLike
from typing import Any

from tallybayes._utils import sealed_file
from tallybayes.models import io  # noqa: F401 - registers its loader
from tallybayes.tally import tally_io  # noqa: F401 - registers its loader


def load(path: str | PathLike[str]) -> Any:
    """What ``save`` wrote: a `Tally`, a model, or a filter of sequences.

    Files come from strangers: nothing is executed, and sizes are checked before memory is taken.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    object
        Of the class that was saved.

    Examples
    --------
    >>> import tempfile, os, tallybayes as tb
    >>> coins = tb.count({"x": [1, 0, 1]}, [tb.Factor("x", (), tb.Bernoulli())])
    >>> path = os.path.join(tempfile.mkdtemp(), "coins.tally")
    >>> coins.save(path)
    >>> tb.load(path) == coins
    True
    """
    return sealed_file.load(path)
