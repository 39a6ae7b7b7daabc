"""What a Bayesian network says of labels and measured nodes together: to every level, what is measured there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable
from tallybayes.models.network.inference.continuous_query_result import MeasuredAnswer, Parts, mixed_parts
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import Answer, question_of
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12


class MixedAnswer(Mapping[Any, MeasuredAnswer]):
    """p(labels, measured nodes | given): a mapping from possible levels, or tuples of them, to what is measured there.

    The joint density of a level and a value is ``answer.labels[level] * answer[level].density(value)``.

    Attributes
    ----------
    nodes : tuple
        What was asked for.
    given : dict
        What was known.
    labels : Answer
        The labels, whatever is measured.
    measured : MeasuredAnswer
        The measured nodes, whatever the labels are.

    Examples
    --------
    >>> import tallybayes as tb
    >>> clinic = tb.BayesianNetwork.from_parameters({
    ...     "ill": {"levels": ["no", "yes"], "probabilities": [0.9, 0.1]},
    ...     "fever": {"parents": ["ill"], "intercept": [36.8, 38.5], "deviation": [0.4, 0.8]}})
    >>> found = clinic.query(["ill", "fever"])
    >>> found
    p(ill, fever)
      ill    probability  fever: mean  deviation
      'no'   0.9000       36.8         0.4
      'yes'  0.1000       38.5         0.8
    >>> round(found["yes"].cumulative(38.0), 3), round(found.measured.mean, 2)
    (0.266, 36.97)
    """

    def __init__(
        self,
        nodes: tuple[Name, ...],
        labels: Answer,
        measured: MeasuredAnswer,
        each: Mapping[tuple[int, ...], MeasuredAnswer],
    ) -> None:
        self.nodes, self.labels, self.measured, self.given = nodes, labels, measured, labels.given
        self._each = dict(each)  # by the places of levels: True is not 1

    def __getitem__(self, level: Any) -> MeasuredAnswer:
        place = self.labels._place(level)
        if place not in self._each:
            raise KeyError(level)
        return self._each[place]

    def __iter__(self) -> Iterator[Any]:
        for place in self._each:
            levels = self._levels(place)
            yield levels[0] if len(levels) == 1 else levels

    def _levels(self, place: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(levels[k] for levels, k in zip(self.labels.levels, place, strict=True))

    def __len__(self) -> int:
        return len(self._each)

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: a line for every possible combination of levels, its probability, means, deviations."""
        import pandas as pd

        head, rows = self._numbers()
        return pd.DataFrame(rows, columns=head)

    def _numbers(self) -> tuple[list[str], list[list[Any]]]:
        head = [*map(printable, self.labels.nodes), "probability"]
        head += [f"{printable(node)}: {what}" for node in self.measured.nodes for what in ("mean", "deviation")]
        rows: list[list[Any]] = []
        for place, there in self._each.items():
            pairs = zip(np.atleast_1d(there.mean), np.atleast_1d(there.standard_deviation), strict=True)
            share = float(self.labels.probabilities[place])
            rows.append([*self._levels(place), share, *(float(number) for pair in pairs for number in pair)])
        return head, rows

    def _table(self) -> tuple[list[str], list[list[str]]]:
        head, rows = self._numbers()
        head = [name.split(": ")[-1] if name.endswith(": deviation") else name for name in head]
        k = len(self.labels.nodes)
        shown = [[*map(repr, row[:k]), f"{row[k]:.4f}", *(f"{number:.4g}" for number in row[k + 1 :])] for row in rows]
        return head, shown

    def _title(self) -> str:
        return question_of(self.nodes, self.given)

    def __repr__(self) -> str:
        head, rows = self._table()
        order = np.argsort([-self.labels.probabilities[place] for place in self._each], kind="stable")
        shown = rows if len(rows) <= _SHOWN else [rows[k] for k in order[:_SHOWN]]
        more = [f"  … {len(rows) - _SHOWN} less probable"] if len(rows) > _SHOWN else []
        return "\n".join([self._title(), *text_table([head, *shown]), *more])

    def _repr_html_(self) -> str:
        return html_parts((self._title(), *self._table()))


def mixed_answer(
    found: NetworkInference,
    nodes: tuple[Name, ...],
    labels: Sequence[Name],
    shares: np.ndarray,
    known: Evidence,
    told: Mapping[Any, Any],
) -> MixedAnswer:
    """The answer about labels and measured nodes, in any order.

    Parameters
    ----------
    found : NetworkInference
    nodes : tuple of names
        What is asked for.
    labels : sequence of names
        Those asked for and all that the measured nodes depend on, in the order of the shares.
    shares : ndarray of shape (combinations,)
    known : Known
        Of one row.
    told : mapping
    """
    named = tuple(node for node in nodes if node in found.levels)
    measured = tuple(node for node in nodes if node not in found.levels)
    parts, codes = mixed_parts(found, measured, labels, shares, known)
    levels = tuple(found.levels[node] for node in named)
    sizes = [len(one) for one in levels]
    place = np.ravel_multi_index([codes[node] for node in named], sizes)
    table = np.bincount(place, parts.weight, int(np.prod(sizes))).reshape(sizes)
    each = {}
    for at in np.unique(place):
        mine = place == at
        weight = parts.weight[mine] / parts.weight[mine].sum()
        code = tuple(int(k) for k in np.unravel_index(at, sizes))
        there = {**told, **{node: found.levels[node][k] for node, k in zip(named, code, strict=True)}}
        some = Parts(weight, *(part[mine] for part in parts[1:]))
        each[code] = MeasuredAnswer(measured, some, there)
    return MixedAnswer(nodes, Answer(named, levels, table, told), MeasuredAnswer(measured, parts, told), each)
