"""Sensitivity analysis: a posterior probability as a function of each entry of the CPTs (Laskey 1995)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.features import one_row
from tallybayes.models.network.inference.clique_tree import Likelihood
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.network_inference import Compiled, NetworkInference
from tallybayes.models.network.inference.queries import display_evidence, run_query
from tallybayes.models.network.inference.query_result import title_of
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.models.network.bayesian_network import BayesianNetwork
    from tallybayes.plotting.plot import Plot

_SHOWN = 12


def sensitivity(
    model: BayesianNetwork,
    event: Mapping[Name, Any],
    given: Mapping[Any, Any] | None = None,
    *,
    odds: float = 2.0,
    do: Mapping[Any, Any] | None = None,
) -> Sensitivity:
    """Compute p(event | given) as a function of each entry of the CPTs, one at a time.

    If an entry θ changes, the other entries of its row keep their proportions, and the probability is
    (aθ + b) / (cθ + d) (Castillo, Gutiérrez and Hadi, 1997). All coefficients follow exactly from two propagations: of
    the evidence, and of the evidence with the event; a CPT with a zero takes two more.

    Parameters
    ----------
    event : mapping from node to level
        The event; several nodes are a conjunction.
    given, do
        As for `query`.
    odds : float, default 2
        The odds of an entry are multiplied and divided by this factor; ``inf`` varies entries from 0 to 1.

    Returns
    -------
    Sensitivity
        A sequence of entries, the most influential first.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tables = {"fire": [0.99, 0.01], "alarm": [[0.98, 0.02], [0.05, 0.95]]}
    >>> building = tb.BayesianNetwork.from_tables({"alarm": ["fire"]}, dict.fromkeys(tables, (False, True)), tables)
    >>> found = building.sensitivity({"fire": True}, {"alarm": True})
    >>> found
    p(fire = True | alarm = True) = 0.3242, if the odds of an entry are halved or doubled:
                                      value  low     high    slope
      p(fire = True)                  0.01   0.1935  0.4897  +22.13
      p(alarm = True | fire = False)  0.02   0.1966  0.4872  -10.96
      p(alarm = True | fire = True)   0.95   0.3136  0.3298  +0.2306
    >>> round(found[1].value_for(0.9), 5)               # the false alarm rate for a posterior of 0.9
    0.00107
    """
    given = one_row(given)
    found = model._inference.intervened(do)
    if not isinstance(event, Mapping) or not event:
        raise DataError.wrong_type("event", repr(event)[:60], "a mapping from nodes to levels, as in {'fire': True}")
    if isinstance(odds, bool) or not isinstance(odds, int | float | np.number) or not odds > 1:
        raise DataError.wrong_type("odds", repr(odds), "a number above 1, or inf")
    require_labels(model, list(event))
    for node in event:
        if node in (given or {}) or node in (do or {}):
            raise DataError(
                f"node {node!r} is in the event and in the evidence; expected one of them.\n    Remove one of the two."
            )
    event_evidence = read_evidence(found, event)
    if event_evidence.likelihoods:
        raise DataError.wrong_type("event", repr(event)[:60], "one level for every node")
    known, before = run_query(found, list(event), given, do)
    rows = known.take(np.zeros(2, dtype=np.intp))
    rows = rows._replace(
        codes=rows.codes | {node: np.array([-1, code[0]]) for node, code in event_evidence.codes.items()}
    )
    lines = _functions(found, rows, known, set(event), set(do or ()), float(before.log_likelihood[0]))
    return Sensitivity(found, dict(event), display_evidence(given, do), float(odds), *lines)


class Entry(NamedTuple):
    """An entry of a CPT, and the probability of the event as a function of it: (aθ + b) / (cθ + d).

    Attributes
    ----------
    node, level
        The entry is p(node = level | given).
    given : dict
        The levels of the parents.
    value : float
        The current value of the entry.
    slope : float
        The derivative of the probability with respect to the entry at its value.
    low, high : float
        The probability at both ends of the range of the entry, the lower first.
    function : tuple of four floats
        a, b, c and d.
    """

    node: Name
    level: Any
    given: dict[Name, Any]
    value: float
    slope: float
    low: float
    high: float
    function: tuple[float, float, float, float]

    def answer(self, value: float) -> float:
        """Return the probability of the event for another value of the entry.

        Parameters
        ----------
        value : float
            From 0 to 1.
        """
        return float(_answer(np.array([self.function]), np.array([value]))[0])

    def value_for(self, answer: float) -> float:
        """Return the value of the entry for a given probability of the event; NaN if there is none between 0 and 1.

        Parameters
        ----------
        answer : float
        """
        a, b, c, d = self.function
        slope = a - answer * c
        value = (answer * d - b) / slope if slope else math.nan
        inside = -1e-12 <= value <= 1 + 1e-12
        return min(max(value, 0.0), 1.0) if inside else math.nan

    @property
    def name(self) -> str:
        """The entry as printed: p(node = level | parents)."""
        parents = title_of(self.given)
        return f"p({printable(self.node)} = {self.level!r}{' | ' + parents if parents else ''})"


class Sensitivity(Sequence[Entry]):
    """Sensitivity of a probability to every entry of the CPTs: a sequence of entries, the most influential first.

    Binary nodes are represented by their second level. Entries without influence by the graph are excluded.

    Attributes
    ----------
    event, given : dict
    probability : float
        p(event | given) with the current CPTs.
    odds : float
        The factor by which the odds of entries vary.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.BayesianNetwork.from_tables({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.5, 0.5]})
    >>> coin.sensitivity({"coin": "heads"})[0].slope
    -1.0
    """

    def __init__(
        self,
        inference: NetworkInference,
        event: dict[Any, Any],
        given: dict[Any, Any],
        odds: float,
        probability: float,
        places: list[tuple[Name, tuple[int, ...]]],
        values: np.ndarray,
        functions: np.ndarray,
    ) -> None:
        self.event, self.given, self.odds, self.probability = event, given, odds, probability
        self._levels, self._parents = inference.levels, inference.graph.parents
        self._places, self._values, self._functions = places, values, functions
        self._slopes = functions[:, 0] - probability * functions[:, 2]
        self._ends = np.sort([_answer(functions, end) for end in _moved(values, odds)], axis=0)
        shown = [k for k, (node, place) in enumerate(places) if len(self._levels[node]) != 2 or place[-1] == 1]
        spread, steep = (self._ends[1] - self._ends[0]).round(12), np.abs(self._slopes).round(12)
        self._order = sorted(shown, key=lambda k: (-spread[k], -steep[k]))

    def _entry(self, k: int) -> Entry:
        node, place = self._places[k]
        parents = self._parents[node]
        given = {parent: self._levels[parent][code] for parent, code in zip(parents, place[:-1], strict=True)}
        value, slope, low, high = (float(part[k]) for part in (self._values, self._slopes, *self._ends))
        a, b, c, d = self._functions[k].tolist()
        return Entry(node, self._levels[node][place[-1]], given, value, slope, low, high, (a, b, c, d))

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        if isinstance(place, slice):
            return [self._entry(k) for k in self._order[place]]
        return self._entry(self._order[place])

    def __len__(self) -> int:
        return len(self._order)

    def entry(self, node: Name, level: Hashable, given: Mapping[Any, Any] | None = None) -> Entry:
        """Return one entry, p(node = level | given).

        Parameters
        ----------
        node : name
        level : one of its levels
        given : mapping from every parent to a level
        """
        wanted = dict(given or {})
        for k, (name, _) in enumerate(self._places):
            found = self._entry(k)
            same = name == node and _same(found.level, level) and found.given.keys() == wanted.keys()
            if same and all(_same(found.given[parent], one) for parent, one in wanted.items()):
                return found
        raise DataError(
            f"no entry p({node!r} = {level!r} | {title_of(wanted) or 'nothing'}) has an influence.\n"
            "    Check the names, and that every parent of the node has a level."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame: a row for every entry, the most influential first."""
        import pandas as pd

        names = ["node", "level", "given", "value", "low", "high", "slope"]
        return pd.DataFrame([[getattr(entry, name) for name in names] for entry in self], columns=names)

    def plot(self, ax: Axes | None = None, *, most: int = 15) -> Plot:
        """Plot the range of the probability for each entry, the widest first (tornado plot); needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 15
            Number of entries shown.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.network.tornado import plot_sensitivity

        return plot_sensitivity(self, ax, most=most)

    @property
    def title(self) -> str:
        """The query, p(event | given)."""
        known = title_of(self.given)
        return f"p({title_of(self.event)}{' | ' + known if known else ''})"

    @property
    def perturbation(self) -> str:
        """The variation of entries, as printed."""
        if math.isinf(self.odds):
            return "an entry varies from 0 to 1"
        return "the odds of an entry are " + (
            "halved or doubled" if self.odds == 2 else f"{self.odds:g} times as small or large"
        )

    def __repr__(self) -> str:
        lines = [["", "value", "low", "high", "slope"], *(self._line(entry) for entry in self[:_SHOWN])]
        text = text_table(lines)
        if len(self) > _SHOWN:
            text.append(f"  … {len(self) - _SHOWN} with less influence")
        return "\n".join([f"{self._head}:", *text]) if len(self) else self._head

    @property
    def _head(self) -> str:
        moved = f", if {self.perturbation}" if len(self) else ", for all entries of the CPTs"
        return f"{self.title} = {self.probability:.4g}{moved}"

    def _line(self, entry: Entry) -> list[str]:
        numbers = [f"{value:.4g}" for value in (entry.value, entry.low, entry.high)]
        return [entry.name, *numbers, f"{entry.slope + 0.0:+.4g}"]

    def _repr_html_(self) -> str:
        rows = (self._line(entry) for entry in self)
        return html_parts((self._head, ["", "value", "low", "high", "slope"], rows))


def _functions(
    found: NetworkInference, rows: Evidence, known: Evidence, event: set[Name], do: set[Name], log_given: float
) -> tuple[float, list[tuple[Name, tuple[int, ...]]], np.ndarray, np.ndarray]:
    """Return p(event | given), and for every entry its index, its value, and the coefficients of its function.

    p(event, given) and p(given) are linear in the entries of a row of a CPT: each is R + Σ gᵢθᵢ, where gᵢ is the
    probability of all other factors. Both are divided by p(given), so that the denominator is 1 at current values.
    """
    compiled, graph = found.compile(do), found.graph.without_incoming_edges(found.nodes_to_cut(do))
    likelihoods, offset = found.likelihoods(rows, slice(0, 2), do)
    answer = compiled.tree.propagate(compiled.potentials, likelihoods, 2)
    scale = np.exp(answer.log_likelihood + offset - log_given)
    bearing = graph.relevant_nodes(event, [*known.codes, *known.cells], known.likelihoods)
    places: list[tuple[Name, tuple[int, ...]]] = []
    values, functions = [np.zeros(0)], [np.zeros((0, 4))]
    for node, table in found.tables.items():
        if node in do or table.shape[-1] < 2 or node not in bearing:
            continue
        scope = found.scope((*graph.parents[node], node))
        if (table > 0).all():
            rest = answer.marginal(scope) * np.where(np.isfinite(scale), scale, 0.0) / table[..., None]
        else:
            rest = _probability_without_table(compiled, node, found, do, likelihoods, offset - log_given)
        parts = [_line_function(table, rest[..., row], total) for row, total in ((1, scale[1]), (0, 1.0))]
        is_defined = ~np.broadcast_to(found.unknown.get(node, np.array(False))[..., None], table.shape).ravel()
        places += [(node, place) for place, here in zip(np.ndindex(*table.shape), is_defined, strict=True) if here]
        values.append(table.ravel()[is_defined])
        functions.append(np.stack([part.ravel()[is_defined] for pair in parts for part in pair], axis=1))
    return float(scale[1]), places, np.concatenate(values), np.concatenate(functions)


def _probability_without_table(
    compiled: Compiled,
    node: Name,
    found: NetworkInference,
    do: set[Name],
    likelihoods: list[Likelihood],
    offset: np.ndarray,
) -> np.ndarray:
    """Return the probability without a node's own CPT, for every entry of it and both rows; entries may be 0."""
    tree, names = compiled.tree, list(found.levels)
    own = names.index(node)
    home = tree.home(tree.scopes[own])
    potentials = list(compiled.potentials)
    potentials[home] = np.ones_like(potentials[home])
    for place, scope in enumerate(tree.scopes[: len(names)]):
        if place != own and names[place] not in do and tree.home(scope) == home:
            potentials[home] *= tree._spread(home, scope, found.tables[names[place]][..., None])
    answer = tree.propagate(potentials, likelihoods, 2)
    return answer.marginal(tree.scopes[own]) * np.exp(answer.log_likelihood + offset)


def _line_function(table: np.ndarray, rest: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and intercept of R + Σ gᵢθᵢ in each θ; the others of its row keep their proportions.

    If an entry is 1, the others have no proportions, and get equal parts.
    """
    n_levels = table.shape[-1]
    others = 1.0 - np.eye(n_levels)
    whole = rest * table
    left = table @ others  # 1 − θ, without its rounding
    equal = rest @ others / (n_levels - 1)
    shared = np.where(left > 0, whole @ others / np.where(left > 0, left, 1.0), equal)
    elsewhere = np.maximum(total - whole.sum(axis=-1, keepdims=True), 0.0)
    return rest - shared, elsewhere + shared


def _moved(values: np.ndarray, odds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of entries with their odds divided and multiplied by a factor."""
    if math.isinf(odds):
        return np.zeros_like(values), np.ones_like(values)
    return values / (values + odds * (1 - values)), odds * values / (odds * values + 1 - values)


def _answer(functions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute (aθ + b) / (cθ + d); the limit if the evidence becomes impossible."""
    a, b, c, d = functions.T
    below = c * values + d
    gone = below < 1e-13
    found = np.where(gone, a / np.where(gone, c, 1.0), (a * values + b) / np.where(gone, 1.0, below))
    return np.clip(found, 0.0, 1.0)


def _same(level: Any, other: Any) -> bool:
    plain = other.item() if isinstance(other, np.generic) else other
    return type(level) is type(plain) and level == plain
