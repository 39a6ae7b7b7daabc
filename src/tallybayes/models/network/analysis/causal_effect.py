"""Effects: what follows where a node is set, from what is observed where it is not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.models.inputs.features import one_row
from tallybayes.models.network.analysis.adjustment_sets import Identification, identify
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.models.network.analysis.linear_causal_effect import MeasuredEffect, measured_effect
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.queries import run_query
from tallybayes.models.network.inference.query_result import QueryResult, title_of
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.network.bayesian_network import BayesianNetwork

_SHOWN = 12


def effect(
    model: BayesianNetwork,
    of: Name,
    on: Name,
    given: Mapping[Any, Any] | None = None,
    *,
    adjust: Names | None = None,
    hidden: Names = (),
) -> Effect | MeasuredEffect:
    """The effect of one node on another: p(on | do(of)) for every level, beside p(on | of) as it is seen.

    Of a measured node it is a slope: by how much the mean of another measured node moves for one more of it.

    Where arrows point from causes to effects, it follows from what is observed by adjusting for some nodes z, those
    that block every path between the two but the effect itself (the back-door criterion): Σ p(on | of, z) p(z). The
    fewest such nodes are found. Where all of them are hidden, an effect may follow from the nodes that carry it (the
    front-door criterion). Where neither does, it is refused with the path that stays open.

    Parameters
    ----------
    of : name
        The node that is set.
    on : name
        The node that is looked at: labels, or one measured column, of which means are told.
    given : mapping from node to level, optional
        Among whom: nodes that do not depend on `of`.
    adjust : name, or sequence of names, optional
        What to adjust for, in place of the smallest set; refused where that is not enough, or too much.
    hidden : name, or sequence of names, optional
        Nodes that nobody observes, and nothing can be adjusted for.

    Returns
    -------
    Effect
        A mapping from the levels of `of` to answers, or means; of a measured `of`, a `MeasuredEffect`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> yes_no = ("no", "yes")
    >>> clinic = tb.BayesianNetwork.from_tables(
    ...     {"drug": ["severe"], "well": ["severe", "drug"]}, dict.fromkeys(("severe", "drug", "well"), yes_no),
    ...     {"severe": [0.5, 0.5], "drug": [[0.9, 0.1], [0.2, 0.8]],
    ...      "well": [[[0.2, 0.8], [0.1, 0.9]], [[0.7, 0.3], [0.6, 0.4]]]})
    >>> clinic.effect("drug", "well")                           # those who got it were worse off before
    effect of drug on well, adjusted for severe
      drug   well   if set  if seen  difference
      'no'   'no'   0.4500  0.2909   +0.1591
      'no'   'yes'  0.5500  0.7091   -0.1591
      'yes'  'no'   0.3500  0.5444   -0.1944
      'yes'  'yes'  0.6500  0.4556   +0.1944
    >>> round(clinic.effect("drug", "well").contrast("yes", "no")["yes"], 3)
    0.1
    >>> clinic.effect("drug", "well", hidden="severe")
    Traceback (most recent call last):
    ...
    tallybayes.errors.EstimateError: the effect of 'drug' on 'well' does not follow from what is observed: drug ← ...
    """
    found, graph, given = model._inference, model.graph_, one_row(given)
    graph.require([of, on])
    unseen, held, others = listed(hidden), dict(given or {}), None if adjust is None else listed(adjust)
    graph.require([*unseen, *held, *(others or ())])
    _check_roles(model, of, on, unseen, held)
    if found.is_measured(of):
        return measured_effect(model, of, on, held, others, unseen)
    require_labels(model, others or ())
    sizes = {node: len(levels) for node, levels in found.levels.items()}  # sums are over labels
    how = identify(graph, (of, on), held, others, unseen, sizes)
    through = how.adjusted
    sums, weight = _counted(found, of, on, through, given)
    told, where = _set(sums, weight, how.criterion)
    lost = {found.levels[of][x]: dict(zip(through, _levels(found, through, z), strict=True)) for x, z in where.items()}
    if len(lost) == len(found.levels[of]):
        raise _never(of, on, *next(iter(lost.items())))
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = sums.sum(axis=1) / weight.sum(axis=1)[:, None]
    return Effect(how, (found.levels[of], found.levels.get(on)), (told, seen), held, lost)


class Effect(Mapping[Any, Any]):
    """What setting a node does to another: a mapping from its levels to p(on | do(of = level)), or to means.

    Attributes
    ----------
    of, on : names
    adjusted : tuple of names
        What was adjusted for; of a front door, the nodes that carry the effect.
    criterion : {"back-door", "front-door", "none"}
        How it follows from what is observed; "none" where no arrows lead from one node to the other.
    interventional, observational, difference : ndarray of shape (levels of `of`, levels of `on`)
        p(on | do(of)), p(on | of), and by how much the first is above the second; of a measured node, means of shape
        (levels of `of`,). NaN where a level never occurs.
    given : dict

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sun": [1, 1, 0, 0, 1], "ice": [1, 1, 0, 0, 0], "burn": [1, 1, 0, 0, 1]}
    >>> network = tb.BayesianNetwork({"ice": ["sun"], "burn": ["sun"]}).fit(rows)
    >>> found = network.effect("ice", "burn")
    >>> found.criterion, found[1] == found[0], float(found.difference[1, 1].round(3))
    ('none', True, -0.105)
    """

    def __init__(
        self,
        how: Identification,
        levels: tuple[tuple[Any, ...], tuple[Any, ...] | None],
        tables: tuple[np.ndarray, np.ndarray],
        given: Mapping[Any, Any],
        lost: Mapping[Any, Mapping[Any, Any]],
    ) -> None:
        self.of, self.on, self.criterion, self.adjusted, _ = self._how = how
        self._levels, self._outcomes = levels
        self.given, self._lost = dict(given), dict(lost)
        self.interventional, self.observational = (t if self._outcomes else t[:, 0] for t in tables)
        self.difference = self.interventional - self.observational
        for table in (self.interventional, self.observational, self.difference):
            table.setflags(write=False)

    def __getitem__(self, level: Any) -> Any:
        place = [type(level) is type(one) and one == level for one in self._levels]
        if not any(place):
            raise KeyError(level)
        if level in self._lost:
            raise _never(self.of, self.on, level, self._lost[level])
        found = self.interventional[place.index(True)]
        if self._outcomes is None:
            return float(found)
        return QueryResult((self.on,), {self.on: self._outcomes}, found, {**self.given, f"do({self.of})": level})

    def __iter__(self) -> Iterator[Any]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def contrast(self, level: Hashable, other: Hashable) -> Any:
        """What setting one level rather than another changes: a mapping from levels of `on`, or a mean.

        Parameters
        ----------
        level, other : levels of `of`
        """
        one, two = self[level], self[other]
        return one - two if self._outcomes is None else {name: one[name] - two[name] for name in one}

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """What a picture of the network shows of it."""
        return self._how.marks

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: a line for every level of `of` and of `on`."""
        import pandas as pd

        lines = self._lines()
        names: list[Any] = [self.of] if self._outcomes is None else [self.of, self.on]
        names += ["if set", "if seen", "difference"]
        return pd.DataFrame([[*key, *numbers] for key, numbers in lines], columns=names)

    def _lines(self) -> list[tuple[tuple[Any, ...], tuple[float, float, float]]]:
        if self._outcomes is None:
            keys: list[tuple[Any, ...]] = [(level,) for level in self._levels]
        else:
            keys = [(level, outcome) for level in self._levels for outcome in self._outcomes]
        tables = (self.interventional, self.observational, self.difference)
        numbers = zip(*(table.ravel().tolist() for table in tables), strict=True)
        return list(zip(keys, numbers, strict=True))

    def _table(self) -> tuple[list[str], list[list[str]]]:
        measured = self._outcomes is None
        head = [printable(self.of), *([] if measured else [printable(self.on)])]
        head += ["mean if set", "mean if seen", "difference"] if measured else ["if set", "if seen", "difference"]
        form = ".5g" if measured else ".4f"

        def shown(value: float, sign: str = "") -> str:
            return "unknown" if math.isnan(value) else f"{value + 0.0:{sign}{form}}"

        lines = self._lines()
        rows = [[*map(repr, key), shown(a), shown(b), shown(round(c, 12), "+")] for key, (a, b, c) in lines]
        return head, rows

    def __repr__(self) -> str:
        head, rows = self._table()
        text = text_table([head, *rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            text.append(f"  … {len(rows) - _SHOWN} more")
        text += [f"  {_where(self.of, level, place)}" for level, place in self._lost.items()]
        return "\n".join([self._how.title(self.given), *text])

    def _repr_html_(self) -> str:
        lost = (_where(self.of, *item) for item in self._lost.items())
        return html_parts((self._how.title(self.given), *self._table()), *lost)


def _check_roles(model: BayesianNetwork, of: Name, on: Name, hidden: list[Name], given: Mapping[Name, Any]) -> None:
    """Refuse nodes that play two parts."""
    if of == on:
        raise DataError(f"the effect of {of!r} on itself was asked for; expected two nodes.")
    for node in (of, on):
        if node in hidden or node in given:
            what = "hidden" if node in hidden else "given"
            raise DataError(f"node {node!r} is asked about and {what}; expected different nodes.")
    for node, value in given.items():
        if isinstance(value, Mapping) or model._inference.is_measured(node):
            raise DataError(f"given= says of {node!r} {value!r}; expected a level of a node with labels.")
        if node in hidden:
            raise DataError(f"node {node!r} is hidden and given; expected one of them.")
        if node in model.graph_.descendants(of):
            raise DataError(
                f"given= holds {node!r}, which depends on {of!r}: setting {of!r} changes who has it.\n"
                f"    Give what does not depend on {of!r}, or ask query({on!r}, given=..., do=...)."
            )


def _counted(
    found: NetworkInference, of: Name, on: Name, through: tuple[Name, ...], given: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Σ p(of, through, on) · outcome, (levels, combinations, outcomes), and p(of, through), as they are observed.

    Outcomes are the levels of a node with labels, each 0 or 1, or the mean of a measured one.
    """
    measured = found.is_measured(on)
    ends = (
        [p for p in found.graph.parents[found.leaf_of(on)] if p not in {of, *through, *(given or {})}]
        if measured
        else [on]
    )
    axes = (of, *through, *ends)
    known, answer = run_query(found, [of, *through, on], given, None, together=axes)
    joint = answer.marginal(found.scope(axes))[..., 0]
    n_through = math.prod(len(found.levels[node]) for node in through)
    folded = joint.reshape(len(found.levels[of]), n_through, -1)
    if not measured:
        return folded, folded.sum(axis=2)
    means = _means(found, on, axes, {node: int(codes[0]) for node, codes in known.codes.items()})
    return (joint * means).reshape(folded.shape).sum(axis=2, keepdims=True), folded.sum(axis=2)


def _means(found: NetworkInference, on: Name, axes: tuple[Name, ...], known: Mapping[Name, int]) -> np.ndarray:
    """The mean of a measured node in every combination of its parents' levels, along the axes of some nodes."""
    if found.widths[on] > 1:
        raise DataError(f"node {on!r} has {found.widths[on]} columns; expected one, whose mean can be told.")
    scored, parents = found.leaves[found.leaf_of(on)], found.graph.parents[found.leaf_of(on)]
    _, column = found.places.get(on, (on, 0))
    means = np.nan_to_num(scored.family.expected(scored.parameters))[..., column].reshape(
        [len(found.levels[parent]) for parent in parents]
    )
    means = means[tuple(known.get(parent, slice(None)) for parent in parents)]
    left = [parent for parent in parents if parent not in known]
    order = sorted(range(len(left)), key=lambda place: axes.index(left[place]))
    shape = [len(found.levels[node]) if node in left else 1 for node in axes]
    return np.transpose(means, order).reshape(shape)


def _set(sums: np.ndarray, weight: np.ndarray, how: str) -> tuple[np.ndarray, dict[int, int]]:
    """What follows where the cause is set, and for levels of which nothing does, where they never occur."""
    alone, shares = weight.sum(axis=0), weight.sum(axis=1)
    if how == "none":
        return np.broadcast_to(sums.sum(axis=(0, 1)), (len(sums), sums.shape[2])).copy(), {}
    each = sums / np.where(weight > 0, weight, 1.0)[..., None]  # the mean outcome by level and combination
    if how == "back-door":
        told = np.einsum("z,xzk->xk", alone, each)
        lost = (weight == 0) & (alone > 0)
    else:
        reached = weight / np.where(shares > 0, shares, 1.0)[:, None]
        told = reached @ np.einsum("x,xzk->zk", shares, each)
        never = ((weight == 0) & (shares > 0)[:, None]).any(axis=0)
        lost = ((reached > 0) & never) | (shares == 0)[:, None]
    told[lost.any(axis=1)] = np.nan
    return told, {int(x): int(lost[x].argmax()) for x in np.flatnonzero(lost.any(axis=1))}


def _levels(found: NetworkInference, nodes: tuple[Name, ...], place: int) -> list[Any]:
    codes = np.unravel_index(place, [len(found.levels[node]) for node in nodes]) if nodes else ()
    return [found.levels[node][int(code)] for node, code in zip(nodes, codes, strict=True)]


def _where(of: Name, level: Any, place: Mapping[Any, Any]) -> str:
    at = title_of(place)
    return f"{printable(of)} = {level!r} never occurs{' where ' + at if at else ''}: what it would do there is not seen"


def _never(of: Name, on: Name, level: Any, place: Mapping[Any, Any]) -> EstimateError:
    return EstimateError(
        f"{_where(of, level, place)}, so its effect on {on!r} does not follow.\n"
        f"    Adjust for other nodes, or ask query({on!r}, do={{{of!r}: {level!r}}}), which takes the tables for true."
    )
