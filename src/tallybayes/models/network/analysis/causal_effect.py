"""Causal effects: interventional distributions identified from the observational one (Pearl 2009)."""

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
from tallybayes.models.network.analysis.linear_causal_effect import LinearCausalEffect, linear_causal_effect
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


def causal_effect(
    model: BayesianNetwork,
    treatment: Name,
    outcome: Name,
    given: Mapping[Any, Any] | None = None,
    *,
    adjust: Names | None = None,
    unobserved: Names = (),
) -> CausalEffect | LinearCausalEffect:
    """Compute the causal effect of a treatment on an outcome: p(outcome | do(treatment)) for every level.

    The observational p(outcome | treatment) is returned beside it. The effect of a continuous treatment is a slope: the
    change of the mean of a continuous outcome per unit of the treatment.

    Edges are read as pointing from causes to effects. By the back-door criterion, adjusting for nodes z that block all
    non-causal paths gives Σ_z p(outcome | treatment, z) p(z); the smallest such set is found. If it needs unobserved
    nodes, the front-door criterion is tried. If neither identifies the effect, EstimateError names an open path.

    Parameters
    ----------
    treatment : name
        The node of the intervention.
    outcome : name
        A discrete node, or a continuous node of one column, whose means are compared.
    given : mapping from node to level, optional
        The subpopulation: levels of nodes that do not depend on the treatment.
    adjust : name, or sequence of names, optional
        The adjustment set instead of the smallest one; DataError if it does not satisfy the back-door criterion.
    unobserved : name, or sequence of names, optional
        Nodes that cannot be adjusted for.

    Returns
    -------
    CausalEffect
        A mapping from the levels of the treatment to the `QueryResult` of the outcome, or to its mean. For a
        continuous treatment, a `LinearCausalEffect`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> yes_no = ("no", "yes")
    >>> clinic = tb.BayesianNetwork.from_tables(
    ...     {"drug": ["severe"], "well": ["severe", "drug"]}, dict.fromkeys(("severe", "drug", "well"), yes_no),
    ...     {"severe": [0.5, 0.5], "drug": [[0.9, 0.1], [0.2, 0.8]],
    ...      "well": [[[0.2, 0.8], [0.1, 0.9]], [[0.7, 0.3], [0.6, 0.4]]]})
    >>> clinic.causal_effect("drug", "well")                           # severe cases got it more often
    effect of drug on well, adjusted for severe
      drug   well   interventional  observational  difference
      'no'   'no'   0.4500          0.2909         +0.1591
      'no'   'yes'  0.5500          0.7091         -0.1591
      'yes'  'no'   0.3500          0.5444         -0.1944
      'yes'  'yes'  0.6500          0.4556         +0.1944
    >>> round(clinic.causal_effect("drug", "well").contrast("yes", "no")["yes"], 3)
    0.1
    >>> clinic.causal_effect("drug", "well", unobserved="severe")
    Traceback (most recent call last):
    ...
    tallybayes.errors.EstimateError: the effect of 'drug' on 'well' is not identifiable: drug ← ...
    """
    found, graph, given = model._inference, model.graph_, one_row(given)
    graph.require([treatment, outcome])
    unseen, conditions, adjustment_set = (
        listed(unobserved),
        dict(given or {}),
        None if adjust is None else listed(adjust),
    )
    graph.require([*unseen, *conditions, *(adjustment_set or ())])
    _check_roles(model, treatment, outcome, unseen, conditions)
    if found.is_measured(treatment):
        return linear_causal_effect(model, treatment, outcome, conditions, adjustment_set, unseen)
    require_labels(model, adjustment_set or ())
    sizes = {node: len(levels) for node, levels in found.levels.items()}  # sums are over labels
    how = identify(graph, (treatment, outcome), conditions, adjustment_set, unseen, sizes)
    through = how.adjusted
    sums, weight = _counted(found, treatment, outcome, through, given)
    interventional, where = _set(sums, weight, how.criterion)
    lost = {
        found.levels[treatment][x]: dict(zip(through, _levels(found, through, z), strict=True))
        for x, z in where.items()
    }
    if len(lost) == len(found.levels[treatment]):
        raise _never(treatment, outcome, *next(iter(lost.items())))
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = sums.sum(axis=1) / weight.sum(axis=1)[:, None]
    return CausalEffect(
        how, (found.levels[treatment], found.levels.get(outcome)), (interventional, seen), conditions, lost
    )


class CausalEffect(Mapping[Any, Any]):
    """Causal effect: a mapping from levels of the treatment to p(outcome | do(treatment = level)), or to means.

    Attributes
    ----------
    treatment, outcome : names
    adjusted : tuple of names
        The adjustment set; with the front-door criterion, the mediators.
    criterion : {"back-door", "front-door", "none"}
        The criterion that identifies the effect; "none" if there is no directed path from treatment to outcome.
    interventional, observational, difference : ndarray of shape (n_levels of treatment, n_levels of outcome)
        p(outcome | do(treatment)), p(outcome | treatment), and the first minus the second; for a continuous outcome
        means of shape (n_levels of treatment,). NaN for levels that never occur.
    given : dict
        The levels conditioned on.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sun": [1, 1, 0, 0, 1], "ice": [1, 1, 0, 0, 0], "burn": [1, 1, 0, 0, 1]}
    >>> network = tb.BayesianNetwork({"ice": ["sun"], "burn": ["sun"]}).fit(rows)
    >>> found = network.causal_effect("ice", "burn")
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
        self.treatment, self.outcome, self.criterion, self.adjusted, _ = self._how = how
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
            raise _never(self.treatment, self.outcome, level, self._lost[level])
        found = self.interventional[place.index(True)]
        if self._outcomes is None:
            return float(found)
        return QueryResult(
            (self.outcome,), {self.outcome: self._outcomes}, found, {**self.given, f"do({self.treatment})": level}
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def contrast(self, level: Hashable, other: Hashable) -> Any:
        """Subtract the effect of one level of the treatment from that of another.

        Parameters
        ----------
        level, other : levels of the treatment

        Returns
        -------
        dict from levels of the outcome to differences of probabilities, or a difference of means
        """
        one, two = self[level], self[other]
        return one - two if self._outcomes is None else {name: one[name] - two[name] for name in one}

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        return self._how.marks

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame: a row for every level of the treatment and of the outcome."""
        import pandas as pd

        lines = self._lines()
        names: list[Any] = [self.treatment] if self._outcomes is None else [self.treatment, self.outcome]
        names += ["interventional", "observational", "difference"]
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
        head = [printable(self.treatment), *([] if measured else [printable(self.outcome)])]
        head += [f"{'mean, ' if measured else ''}{name}" for name in ("interventional", "observational")] + [
            "difference"
        ]
        form = ".5g" if measured else ".4f"

        def shown(value: float, sign: str = "") -> str:
            return "undefined" if math.isnan(value) else f"{value + 0.0:{sign}{form}}"

        lines = self._lines()
        rows = [[*map(repr, key), shown(a), shown(b), shown(round(c, 12), "+")] for key, (a, b, c) in lines]
        return head, rows

    def __repr__(self) -> str:
        head, rows = self._table()
        text = text_table([head, *rows[:_SHOWN]])
        if len(rows) > _SHOWN:
            text.append(f"  … {len(rows) - _SHOWN} more")
        text += [f"  {_where(self.treatment, level, place)}" for level, place in self._lost.items()]
        return "\n".join([self._how.title(self.given), *text])

    def _repr_html_(self) -> str:
        lost = (_where(self.treatment, *item) for item in self._lost.items())
        return html_parts((self._how.title(self.given), *self._table()), *lost)


def _check_roles(
    model: BayesianNetwork, treatment: Name, outcome: Name, unobserved: list[Name], given: Mapping[Name, Any]
) -> None:
    """Raise DataError if a node has two roles."""
    if treatment == outcome:
        raise DataError(f"the effect of {treatment!r} on itself is not defined; expected two nodes.")
    for node in (treatment, outcome):
        if node in unobserved or node in given:
            what = "unobserved" if node in unobserved else "given"
            raise DataError(f"node {node!r} is the treatment or outcome and {what}; expected different nodes.")
    for node, value in given.items():
        if isinstance(value, Mapping) or model._inference.is_measured(node):
            raise DataError(f"given= has {value!r} for {node!r}; expected a level of a discrete node.")
        if node in unobserved:
            raise DataError(f"node {node!r} is unobserved and given; expected one of them.")
        if node in model.graph_.descendants(treatment):
            raise DataError(
                f"given= holds {node!r}, which depends on {treatment!r}: the intervention changes it.\n"
                f"    Pass nodes that do not depend on {treatment!r}, or use query({outcome!r}, given=..., do=...)."
            )


def _counted(
    found: NetworkInference, treatment: Name, outcome: Name, through: tuple[Name, ...], given: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint p(treatment, through, outcome), (levels, combinations, outcomes), and p(treatment, through).

    For a continuous outcome, the last axis has one entry: the mean times the probability.
    """
    measured = found.is_measured(outcome)
    ends = (
        [p for p in found.graph.parents[found.leaf_of(outcome)] if p not in {treatment, *through, *(given or {})}]
        if measured
        else [outcome]
    )
    axes = (treatment, *through, *ends)
    known, answer = run_query(found, [treatment, *through, outcome], given, None, together=axes)
    joint = answer.marginal(found.scope(axes))[..., 0]
    n_through = math.prod(len(found.levels[node]) for node in through)
    folded = joint.reshape(len(found.levels[treatment]), n_through, -1)
    if not measured:
        return folded, folded.sum(axis=2)
    means = _means(found, outcome, axes, {node: int(codes[0]) for node, codes in known.codes.items()})
    return (joint * means).reshape(folded.shape).sum(axis=2, keepdims=True), folded.sum(axis=2)


def _means(found: NetworkInference, outcome: Name, axes: tuple[Name, ...], known: Mapping[Name, int]) -> np.ndarray:
    """Return the mean of a continuous node for all levels of its parents, broadcast to the axes of some nodes."""
    if found.widths[outcome] > 1:
        raise DataError(f"node {outcome!r} has {found.widths[outcome]} columns; expected one.")
    scored, parents = found.leaves[found.leaf_of(outcome)], found.graph.parents[found.leaf_of(outcome)]
    _, column = found.component_index.get(outcome, (outcome, 0))
    means = np.nan_to_num(scored.family.mean(scored.parameters))[..., column].reshape(
        [len(found.levels[parent]) for parent in parents]
    )
    means = means[tuple(known.get(parent, slice(None)) for parent in parents)]
    left = [parent for parent in parents if parent not in known]
    order = sorted(range(len(left)), key=lambda place: axes.index(left[place]))
    shape = [len(found.levels[node]) if node in left else 1 for node in axes]
    return np.transpose(means, order).reshape(shape)


def _set(sums: np.ndarray, weight: np.ndarray, how: str) -> tuple[np.ndarray, dict[int, int]]:
    """Apply the adjustment formula; also return, for levels with an undefined effect, the combination without rows."""
    alone, shares = weight.sum(axis=0), weight.sum(axis=1)
    if how == "none":
        return np.broadcast_to(sums.sum(axis=(0, 1)), (len(sums), sums.shape[2])).copy(), {}
    each = sums / np.where(weight > 0, weight, 1.0)[..., None]  # the mean outcome by level and combination
    if how == "back-door":
        interventional = np.einsum("z,xzk->xk", alone, each)
        lost = (weight == 0) & (alone > 0)
    else:
        reached = weight / np.where(shares > 0, shares, 1.0)[:, None]
        interventional = reached @ np.einsum("x,xzk->zk", shares, each)
        never = ((weight == 0) & (shares > 0)[:, None]).any(axis=0)
        lost = ((reached > 0) & never) | (shares == 0)[:, None]
    interventional[lost.any(axis=1)] = np.nan
    return interventional, {int(x): int(lost[x].argmax()) for x in np.flatnonzero(lost.any(axis=1))}


def _levels(found: NetworkInference, nodes: tuple[Name, ...], place: int) -> list[Any]:
    codes = np.unravel_index(place, [len(found.levels[node]) for node in nodes]) if nodes else ()
    return [found.levels[node][int(code)] for node, code in zip(nodes, codes, strict=True)]


def _where(treatment: Name, level: Any, place: Mapping[Any, Any]) -> str:
    at = title_of(place)
    return (
        f"{printable(treatment)} = {level!r} never occurs{' where ' + at if at else ''}: its effect there is undefined"
    )


def _never(treatment: Name, outcome: Name, level: Any, place: Mapping[Any, Any]) -> EstimateError:
    return EstimateError(
        f"{_where(treatment, level, place)}, so its effect on {outcome!r} is not identifiable.\n"
        f"    Adjust for other nodes, or use query({outcome!r}, do={{{treatment!r}: {level!r}}}), which trusts tables."
    )
