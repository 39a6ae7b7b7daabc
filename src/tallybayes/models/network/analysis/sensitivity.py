"""Sensitivity analysis: a posterior probability as a function of each entry of the CPTs (Laskey 1995)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.features import one_row
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.queries import GivenNodes, check_not_observed, display_evidence, run_query
from tallybayes.models.network.inference.query_result import format_evidence
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_SHOWN = 12

EntryIndex = tuple[Name, tuple[int, ...]]  # a node, and the codes of its parents and its level


def sensitivity(
    network: EstimatedNetwork, event: Mapping[Name, Any], given: GivenNodes, odds: float, do: GivenNodes
) -> Sensitivity:
    """Return p(event | given) as a function of each entry of the CPTs, one at a time.

    If an entry θ changes, the other entries of its row keep their proportions, and the probability is
    (aθ + b) / (cθ + d) (Castillo, Gutiérrez and Hadi, 1997). All coefficients follow exactly from two propagations: of
    the evidence, and of the evidence with the event; a CPT with a zero takes two more.
    """
    given = one_row(given)
    inference = network.inference.intervened(do)
    if not isinstance(event, Mapping) or not event:
        raise DataError.wrong_type("event", repr(event)[:60], "a mapping from nodes to levels, as in {'fire': True}")
    if isinstance(odds, bool) or not isinstance(odds, int | float | np.number) or not odds > 1:
        raise DataError.wrong_type("odds", repr(odds), "a number above 1, or inf")
    inference.require_discrete(event)
    check_not_observed(event, "event", given, do)
    event_evidence = read_evidence(inference, event)
    if event_evidence.likelihoods:
        raise DataError.wrong_type("event", repr(event)[:60], "one level for every node")
    evidence, posterior = run_query(inference, list(event), given, do)
    event_codes = {node: np.array([-1, code[0]]) for node, code in event_evidence.codes.items()}
    rows = evidence.take(np.zeros(2, dtype=np.intp)).with_codes(event_codes)  # the evidence without and with the event
    log_given = float(posterior.log_likelihood[0])
    probability, indices, values, functions = _functions(inference, rows, evidence, set(event), log_given)
    entries = _entries(inference, indices, values, functions, probability, float(odds))
    # the first level of a binary node follows from the second
    shown = [
        entry
        for (node, codes), entry in zip(indices, entries, strict=True)
        if len(inference.levels[node]) != 2 or codes[-1] == 1
    ]
    shown.sort(key=lambda entry: (-round(entry.high - entry.low, 12), -round(abs(entry.slope), 12)))
    return Sensitivity(dict(event), display_evidence(given, do), float(odds), probability, entries, shown)


def _entries(
    inference: NetworkInference,
    indices: list[EntryIndex],
    values: np.ndarray,
    functions: np.ndarray,
    probability: float,
    odds: float,
) -> list[Entry]:
    """Return the entries of CPTs with the effect of each on the probability."""
    slopes = functions[:, 0] - probability * functions[:, 2]
    ends = np.sort([_event_probability(functions, end) for end in _with_other_odds(values, odds)], axis=0)
    numbers = zip(values.tolist(), slopes.tolist(), *ends.tolist(), functions.tolist(), strict=True)
    entries = []
    for (node, (*parent_codes, code)), (value, slope, low, high, function) in zip(indices, numbers, strict=True):
        parents = zip(inference.graph.parents[node], parent_codes, strict=True)
        given = {parent: inference.levels[parent][k] for parent, k in parents}
        a, b, c, d = function
        entries.append(Entry(node, inference.levels[node][code], given, value, slope, low, high, (a, b, c, d)))
    return entries


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
        return float(_event_probability(np.array([self.function]), np.array([value]))[0])

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
        parents = format_evidence(self.given)
        return f"p({printable(self.node)} = {self.level!r}{' | ' + parents if parents else ''})"


class Sensitivity(Result, Sequence[Entry]):
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
        event: dict[Any, Any],
        given: dict[Any, Any],
        odds: float,
        probability: float,
        entries: list[Entry],
        shown: list[Entry],
    ) -> None:
        self.event = event
        self.given = given
        self.odds = odds
        self.probability = probability
        self._entries = entries
        self._shown = shown

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        return self._shown[index]

    def __len__(self) -> int:
        return len(self._shown)

    def entry(self, node: Name, level: Hashable, given: Mapping[Any, Any] | None = None) -> Entry:
        """Return one entry, p(node = level | given).

        Parameters
        ----------
        node : name
        level : one of its levels
        given : mapping from every parent to a level
        """
        levels = dict(given or {})
        for entry in self._entries:
            same = entry.node == node and _is_same(entry.level, level) and entry.given.keys() == levels.keys()
            if same and all(_is_same(entry.given[parent], value) for parent, value in levels.items()):
                return entry
        raise DataError(
            f"no entry p({node!r} = {level!r} | {format_evidence(levels) or 'nothing'}) has an influence.\n"
            "    Check the names, and that every parent of the node has a level."
        )

    def _frame_data(self) -> FrameData:
        names = ["node", "level", "given", "value", "low", "high", "slope"]
        return {name: [getattr(entry, name) for entry in self] for name in names}

    def plot(self, ax: Axes | None = None, *, most: int = 15) -> Plot:
        """Plot the range of the probability for each entry, the widest first (tornado plot); needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        most : int, default 15
            Number of entries shown.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.network.tornado import plot_sensitivity

        return plot_sensitivity(self, ax, most=most)

    @property
    def title(self) -> str:
        """The query, p(event | given)."""
        evidence = format_evidence(self.given)
        return f"p({format_evidence(self.event)}{' | ' + evidence if evidence else ''})"

    @property
    def perturbation(self) -> str:
        """The variation of entries, as printed."""
        if math.isinf(self.odds):
            return "an entry varies from 0 to 1"
        change = "halved or doubled" if self.odds == 2 else f"{self.odds:g} times as small or large"
        return f"the odds of an entry are {change}"

    def _content(self) -> list[str | ResultTable]:
        probability = f"{self.title} = {self.probability:.4g}"
        if not self:
            return [f"{probability}, for all entries of the CPTs"]
        rows = []
        for entry in self:
            numbers = [f"{value:.4g}" for value in (entry.value, entry.low, entry.high)]
            rows.append([entry.name, *numbers, f"{entry.slope + 0.0:+.4g}"])
        head = ["", "value", "low", "high", "slope"]
        return [ResultTable(rows, head, f"{probability}, if {self.perturbation}:", max_rows=_SHOWN)]


def _functions(
    inference: NetworkInference, rows: Evidence, evidence: Evidence, event: set[Name], log_given: float
) -> tuple[float, list[EntryIndex], np.ndarray, np.ndarray]:
    """Return p(event | given), and for every entry its index, its value, and the coefficients of its function.

    p(event, given) and p(given) are linear in the entries of a row of a CPT: each is R + Σ gᵢθᵢ, where gᵢ is the
    probability of all other factors. Both are divided by p(given), so that the denominator is 1 at current values.
    """
    graph = inference.graph
    relevant = graph.relevant_nodes(event, [*evidence.codes, *evidence.cells], evidence.likelihoods)
    tables = {
        node: table
        for node, table in inference.tables.items()
        if node in relevant and node not in inference.interventions and table.shape[-1] > 1
    }
    families = {node: (*graph.parents[node], node) for node in tables}
    ((_, posterior),) = inference.posteriors(rows, families.values())
    scale = np.exp(posterior.log_likelihood - log_given)
    entries: list[EntryIndex] = []
    values = [np.zeros(0)]
    functions = [np.zeros((0, 4))]
    for node, table in tables.items():
        if (table > 0).all():
            others = posterior.joint(families[node]) * np.where(np.isfinite(scale), scale, 0.0)[:, None] / table.ravel()
        else:
            without = inference.with_parameters({**inference.tables, node: np.ones_like(table)}, inference.leaves)
            ((_, of_others),) = without.posteriors(rows, [families[node]])
            others = of_others.joint(families[node]) * np.exp(of_others.log_likelihood - log_given)[:, None]
        others = others.T.reshape(*table.shape, 2)
        parts = [_linear_function(table, others[..., row], total) for row, total in ((1, scale[1]), (0, 1.0))]
        undefined = inference.undefined.get(node, np.array(False))[..., None]
        is_defined = ~np.broadcast_to(undefined, table.shape).ravel()
        codes = list(np.ndindex(*table.shape))
        entries += [(node, codes[k]) for k in np.flatnonzero(is_defined)]
        values.append(table.ravel()[is_defined])
        functions.append(np.stack([part.ravel()[is_defined] for pair in parts for part in pair], axis=1))
    return float(scale[1]), entries, np.concatenate(values), np.concatenate(functions)


def _linear_function(table: np.ndarray, others: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and intercept of R + Σ gᵢθᵢ in each θ; the other entries of its row keep their proportions.

    If an entry is 1, the others have no proportions, and get equal parts.
    """
    n_levels = table.shape[-1]
    is_other = 1.0 - np.eye(n_levels)
    terms = others * table
    rest = table @ is_other  # 1 − θ, without its rounding
    equal = others @ is_other / (n_levels - 1)
    proportional = np.where(rest > 0, terms @ is_other / np.where(rest > 0, rest, 1.0), equal)
    other_rows = np.maximum(total - terms.sum(axis=-1, keepdims=True), 0.0)
    return others - proportional, other_rows + proportional


def _with_other_odds(values: np.ndarray, odds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of entries with their odds divided and multiplied by a factor."""
    if math.isinf(odds):
        return np.zeros_like(values), np.ones_like(values)
    return values / (values + odds * (1 - values)), odds * values / (odds * values + 1 - values)


def _event_probability(functions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Compute (aθ + b) / (cθ + d); the limit if the evidence becomes impossible."""
    a, b, c, d = functions.T
    denominator = c * values + d
    vanishes = denominator < 1e-13
    ratio = np.where(vanishes, a / np.where(vanishes, c, 1.0), (a * values + b) / np.where(vanishes, 1.0, denominator))
    return np.clip(ratio, 0.0, 1.0)


def _is_same(level: object, other: object) -> bool:
    plain = other.item() if isinstance(other, np.generic) else other
    return type(level) is type(plain) and level == plain
