"""Structures learned from rows: tb.learn_structure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tallybayes._utils.progress import progress, progress_of
from tallybayes._utils.string_options import StringOptions
from tallybayes.errors import DataError, EstimateError, TooLargeError
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.structure.constraints import Constraints, read_constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows as Coded
from tallybayes.models.network.structure.encoded_rows import read_rows
from tallybayes.models.network.structure.equivalence_class import completed, extended
from tallybayes.models.network.structure.exact_search import best_of_all
from tallybayes.models.network.structure.hill_climbing import hill_climb
from tallybayes.models.network.structure.learned_structure import Structure
from tallybayes.models.network.structure.pc import pc_marks
from tallybayes.models.network.structure.structure_scores import ScoreCache, n_cells_of, places_of, read_score
from tallybayes.tally.factor import Name
from tallybayes.typing import Columns, Parents, Prior, RandomState, Rows, SampleWeights

_METHODS = {"hill": "hill climbing", "exact": "exact search", "pc": "PC"}
_SETTINGS = {"start": "hill", "tabu_length": "hill", "n_restarts": "hill", "alpha": "pc"}  # of one method alone

_Found = tuple[np.ndarray, int]  # arrows [parent, child], and what was counted


def learn_structure(
    data: Rows,
    *,
    score: Prior | BDe = "bdeu",
    method: str = "hill",
    required: Iterable[Iterable[Name]] = (),
    forbidden: Iterable[Iterable[Name]] = (),
    tiers: Iterable[Iterable[Name]] | None = None,
    max_parents: int | None = None,
    start: Parents | None = None,
    tabu_length: int | None = None,
    n_restarts: int | None = None,
    alpha: float | None = None,
    n_bootstrap: int = 0,
    missing: str = "error",
    columns: Columns = "auto",
    sample_weight: SampleWeights = None,
    names: Iterable[Name] | None = None,
    random_state: RandomState = 0,
) -> Structure:
    """Learn the structure of a Bayesian network from data.

    The score of a structure is the sum of the scores of its families, each a column given its parents: the log marginal
    likelihood under a prior (BDeu, K2, BDe), or the log-likelihood minus a penalty per parameter (BIC, AIC). Families
    are counted once and cached.

    Parameters
    ----------
    data : data frame, mapping of columns, list of dicts, or array
        Categorical columns. Continuous columns (floats) raise DataError: discretize them first.
    score : {"bdeu", "k2", "bic", "aic"} or a prior, default "bdeu"
        ``"bdeu"`` is ``tb.BDeu(1)``; ``tb.BDeu(10)`` has an equivalent sample size of 10. ``tb.Dirichlet(0.5)``, or a
        number, is a pseudo-count in every cell; ``tb.BDe(network, 10)`` takes another network as prior. BDeu, BDe, BIC
        and AIC give Markov equivalent structures equal scores.
    method : {"hill", "exact", "pc"}, default "hill"
        ``"hill"`` adds, removes or reverses one edge at a time, with the largest gain. ``"exact"`` finds the best of
        all structures, for up to about 20 columns. ``"pc"`` removes edges by tests of conditional independence (G²).
    required, forbidden : lists of (parent, child)
        Directed edges that must be in the structure, or must not.
    tiers : list of lists of columns, optional
        The earliest first: no edge leads from a later tier to an earlier one. Columns in no tier are free.
    max_parents : int, optional
        Maximum number of parents of a column.
    start : graph, optional
        Initial structure of hill climbing; None starts with the required edges only.
    tabu_length : int, default 20
        Number of moves without improvement after which hill climbing stops; it never returns to a visited structure.
    n_restarts : int, default 5
        Number of further searches, randomized by reversals of covered edges between moves (repeated covered arc
        reversal, Castelo and Kočka 2003). The best structure is kept.
    alpha : float, default 0.01
        PC keeps an edge whose test of independence has a smaller p-value.
    n_bootstrap : int, default 0
        Number of searches in bootstrap samples of the rows; they give the strength of every edge.
    missing : {"error", "available"}, default "error"
        Raise DataError for missing cells, or score every family by its complete rows, scaled to all rows.
    columns : "auto", a Family, or a mapping from columns to families, default "auto"
        As for `BayesianNetwork`: ``tb.Categorical()`` makes floats categorical, ``levels=`` declares levels.
    sample_weight : array-like of shape (n,), or the name of a column, optional
    names : sequence, optional
        The names of an array's columns.
    random_state : int, Generator or None, default 0
        For restarts and bootstrap samples.

    Returns
    -------
    Structure
        It prints as a table of edges; ``tb.BayesianNetwork(structure).fit(data)`` estimates its CPTs.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"fire": [0, 0, 1, 1] * 9, "smoke": [0, 0, 1, 1] * 9, "day": [0, 1, 0, 1] * 9}
    >>> tb.learn_structure(rows, forbidden=[("fire", "smoke")])
    Structure of 3 columns: 1 arrow, BDeu(1) -56.83
      by hill climbing from 36 rows in ... s, ... families
      forbidden: fire → smoke
                    worth
      smoke → fire   24.1
    """
    began = time.perf_counter()
    StringOptions(tuple(_METHODS)).check("method", method)
    StringOptions(("error", "available")).check("missing", missing)
    given = {"start": start, "tabu_length": tabu_length, "n_restarts": n_restarts, "alpha": alpha}
    for name, value in given.items():
        if value is not None and _SETTINGS[name] != method:
            raise EstimateError(f"{name}= is for method={_SETTINGS[name]!r}, found method={method!r}.")
    tabu_length, n_restarts = (
        _whole("tabu_length", 20 if tabu_length is None else tabu_length),
        _whole("n_restarts", 5 if n_restarts is None else n_restarts),
    )
    n_bootstrap, alpha = _whole("n_bootstrap", n_bootstrap), 0.01 if alpha is None else alpha
    if not isinstance(alpha, float | np.floating) or not 0 < alpha < 1:
        raise DataError.wrong_type("alpha", repr(alpha), "a number between 0 and 1")
    scoring = read_score(score)
    rows = read_rows(data, columns, sample_weight, names, missing)
    constraints = read_constraints(rows.names, required, forbidden, tiers, max_parents)
    first = _start(rows, constraints, start)
    rng = np.random.default_rng(random_state)

    def search(families: ScoreCache, what: str) -> _Found:
        if method == "pc":
            marks, counted = pc_marks(families.rows, constraints, float(alpha))
            return extended(marks), counted
        if method == "exact":
            parents, counted = best_of_all(families, constraints)
            return _arrows(parents), counted
        steps = hill_climb(families, constraints, first, tabu_length, n_restarts, rng)
        *_, (best, _) = progress_of(steps, what, lambda _: 1, unit="steps") if what else steps
        return _arrows(best), families.n_counted

    families = ScoreCache(rows, scoring)
    _refuse_large(families, first)
    arrows, counted = search(families, "the search")
    strengths = _strengths(
        rows, constraints.known, n_bootstrap, rng, lambda some: search(ScoreCache(some, scoring), "")[0]
    )
    masks = [sum(1 << k for k in np.flatnonzero(arrows[:, child]).tolist()) for child in range(len(arrows))]
    total = float(np.sum(families.of(list(enumerate(masks)))))
    worth = _worth(families, masks)
    marks = completed(arrows, constraints.known)
    named: dict[tuple[Name, Name], tuple[float, bool]] = {
        (rows.names[a], rows.names[b]): (value, bool(marks[b, a])) for (a, b), value in worth.items()
    }
    graph = Graph.read(
        {rows.names[child]: [rows.names[k] for k in places_of(mask)] for child, mask in enumerate(masks)}
    )
    search_info = {
        "seconds": time.perf_counter() - began,
        "counted": counted,
        "what": "tests" if method == "pc" else "families",
        "method": _METHODS[method],
        "score": scoring.name,
        "rows": rows.total,
        "n_bootstrap": n_bootstrap,
        "constraints": constraints.told,
    }
    return Structure(graph, total, named, None if strengths is None else _named(strengths, rows.names), search_info)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise DataError.wrong_type(name, repr(value), "a whole number from 0 on")
    return int(value)


def _start(rows: Coded, constraints: Constraints, start: Any) -> list[int]:
    """Where the search begins: the parents of every column, as the bits of a number."""
    edges = constraints.required.copy()
    if start is not None:
        graph = Graph.read(start)
        index = {name: place for place, name in enumerate(rows.names)}
        unknown = [node for node in graph.nodes if node not in index]
        if unknown:
            raise DataError.unknown_column(unknown, rows.names)
        edges[:] = False
        for parent, child in graph.edges:
            edges[index[parent], index[child]] = True
        broken = edges & ~constraints.allowed | constraints.required & ~edges
        if broken.any() or (edges.sum(axis=0) > constraints.most).any():
            where = np.argwhere(broken)
            shown = f": look at {rows.names[where[0, 0]]!r} → {rows.names[where[0, 1]]!r}" if len(where) else ""
            raise DataError(f"start= does not keep to required=, forbidden=, tiers= and max_parents={shown}.")
    return [sum(1 << k for k in np.flatnonzero(edges[:, child]).tolist()) for child in range(len(edges))]


def _refuse_large(families: ScoreCache, start: list[int]) -> None:
    """Refuse a start, or required arrows, whose tables no network can have."""
    rows = families.rows
    for child, score in enumerate(families.of(list(enumerate(start)))):
        if score == -np.inf:
            parents = places_of(start[child])
            names = [rows.names[place] for place in parents]
            raise TooLargeError.table(rows.names[child], names, n_cells_of(rows, (*parents, child)))


def _arrows(parents: list[int]) -> np.ndarray:
    """Arrows [parent, child] from the parents of every column."""
    out = np.zeros((len(parents), len(parents)), dtype=bool)
    for child, mask in enumerate(parents):
        out[list(places_of(mask)), child] = True
    return out


def _worth(families: ScoreCache, masks: list[int]) -> dict[tuple[int, int], float]:
    """What the score loses without every arrow."""
    edges = [(parent, child) for child, mask in enumerate(masks) for parent in places_of(mask)]
    own = families.of([(child, masks[child]) for _, child in edges])
    less = families.of([(child, masks[child] ^ 1 << parent) for parent, child in edges])
    return {edge: a - b for edge, a, b in zip(edges, own, less, strict=True)}


def _strengths(
    rows: Coded, known: np.ndarray, n_bootstrap: int, rng: np.random.Generator, search: Callable[[Coded], np.ndarray]
) -> np.ndarray | None:
    """How often searches of drawn rows have every arrow; half of it each way where it can be turned."""
    if not n_bootstrap:
        return None
    found = np.zeros((len(rows.names), len(rows.names)))
    for _ in progress(range(n_bootstrap), "searches in drawn rows"):
        marks = completed(search(rows.drawn(rng)), known)
        found += np.where(marks & marks.T, 0.5, marks)
    return found / n_bootstrap


def _named(strengths: np.ndarray, names: list[Name]) -> dict[tuple[Name, Name], tuple[float, float]]:
    """(strength, direction) of every pair that was ever joined, the strongest first."""
    both = strengths + strengths.T
    pairs = sorted(np.argwhere(np.triu(both) > 0).tolist(), key=lambda pair: -both[tuple(pair)])
    return {(names[a], names[b]): (float(both[a, b]), float(strengths[a, b] / both[a, b])) for a, b in pairs}
