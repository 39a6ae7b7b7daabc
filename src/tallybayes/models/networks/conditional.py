"""Conditional: p(node | parents) as it is shown."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tallybayes.errors import printable
from tallybayes.models.fitted.scoring import Scored
from tallybayes.tally.factor import Name

_SHOWN = 24  # lines


class Conditional:
    """p(node | parents): a line for every combination of the parents' levels.

    Attributes
    ----------
    node : name
    parents : tuple of names
    columns : tuple
        The node's levels, or for a measured node the names of its parameters.
    values : ndarray of shape (*levels of the parents, columns)
        NaN where maximum likelihood has no row to go by.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1], "wet": ["no", "no", "yes", "yes"]}
    >>> tb.BayesianNetwork({"wet": ["rain"]}, estimate="mle").fit(rows).table("wet")
    p(wet | rain)
      rain  'no'    'yes'
      0     0.6667  0.3333
      1     0       1
    """

    def __init__(
        self,
        node: Name,
        parents: tuple[Name, ...],
        parent_levels: tuple[tuple[Any, ...], ...],
        levels: tuple[Any, ...] | None,
        table: np.ndarray | Scored,
    ) -> None:
        self.node, self.parents, self._above, self._measured = node, parents, parent_levels, isinstance(table, Scored)
        if isinstance(table, Scored):
            self.columns, flat = _parameters(table)
            self.values = flat.reshape(*(len(found) for found in parent_levels), len(self.columns))
        else:
            assert levels is not None
            self.columns, self.values = levels, np.array(table)
        self.values.setflags(write=False)

    def __getitem__(self, configuration: Any) -> dict[Any, float]:
        """The line of one combination of the parents' levels: a level, or a tuple of them."""
        given = configuration if isinstance(configuration, tuple) else (configuration,)
        if len(given) != len(self.parents):
            raise KeyError(configuration)
        place = []
        for level, levels in zip(given, self._above, strict=True):
            found = [k for k, other in enumerate(levels) if other == level and type(other) is type(level)]
            if not found:
                raise KeyError(configuration)
            place.append(found[0])
        return dict(zip(self.columns, self.values[tuple(place)].tolist(), strict=True))

    def to_frame(self) -> Any:
        """A pandas data frame with a line for every combination of the parents' levels, which are its index."""
        import pandas as pd

        rows = pd.MultiIndex.from_tuples(list(product(*self._above)), names=self.parents) if self.parents else None
        return pd.DataFrame(self.values.reshape(-1, len(self.columns)), index=rows, columns=list(self.columns))

    def __repr__(self) -> str:
        title = f"p({printable(self.node)}{' | ' + ', '.join(map(printable, self.parents)) if self.parents else ''})"
        head = [*map(printable, self.parents), *map(printable if self._measured else repr, self.columns)]
        values = self.values.reshape(-1, len(self.columns))
        lines = [
            [*map(repr, above), *("unknown" if np.isnan(x) else f"{x:.4g}" for x in row)]
            for above, row in zip(product(*self._above), values[:_SHOWN], strict=False)
        ]
        widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
        shown = [
            "  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in [head, *lines]
        ]
        if len(values) > _SHOWN:
            shown.append(f"  … {len(values) - _SHOWN} more")
        return "\n".join([title, *shown])


def _parameters(scored: Scored) -> tuple[tuple[str, ...], np.ndarray]:
    """The parameters of a measured node by name, (combinations, parameters); of a posterior, their means."""
    found = scored.family.from_belief(scored.parameters, "mean") if scored.predictive else scored.parameters
    if isinstance(found, tuple) and hasattr(found, "mean") and hasattr(found, "variance"):
        parts = {"mean": found.mean, "variance": found.variance}
    else:
        parts = {"mean": scored.family.expected(found)}
    arrays = {name: np.asarray(part, dtype=float) for name, part in parts.items()}
    n = len(arrays["mean"])
    if arrays["mean"].shape[-1] == 1:
        return tuple(arrays), np.concatenate([part.reshape(n, 1) for part in arrays.values()], axis=1)
    width = arrays["mean"].shape[-1]  # a block of columns: their means
    return tuple(f"mean {k}" for k in range(width)), arrays["mean"].reshape(n, width)
