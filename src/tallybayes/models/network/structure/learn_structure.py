"""Structure learning: tb.learn_structure."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

from tallybayes._utils.parameter_checks import StringOptions, check_count, check_mass, random_generator
from tallybayes._utils.progress import progress, progress_of
from tallybayes.errors import DataError, EstimateError, TooLargeError
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.structure.constraints import Constraints, read_constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows, read_rows
from tallybayes.models.network.structure.equivalence_class import consistent_extension, cpdag
from tallybayes.models.network.structure.exact_search import exact_search
from tallybayes.models.network.structure.hill_climbing import hill_climb
from tallybayes.models.network.structure.learned_structure import SearchSummary, Structure
from tallybayes.models.network.structure.pc import pc_marks
from tallybayes.models.network.structure.structure_scores import (
    ScoreCache,
    masks_of,
    members_of,
    read_score,
)
from tallybayes.tally.factor import Name
from tallybayes.typing import Columns, Parents, Prior, RandomState, Rows, SampleWeights

_METHODS = {"hill": "hill climbing", "exact": "exact search", "pc": "PC"}
_METHOD_OF_PARAMETER = {"start": "hill", "tabu_length": "hill", "n_restarts": "hill", "alpha": "pc"}

SearchResult = tuple[list[int], int]  # the parents of every column as bit masks, and the number of families or tests


@with_parameter_hints
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
    Structure of 3 columns: 1 edge, BDeu(1) -56.83
      by hill climbing from 36 rows in ... s, ... families
      forbidden: fire → smoke
                    gain
      smoke → fire  24.1
    """
    began = time.perf_counter()
    StringOptions(tuple(_METHODS)).check("method", method)
    StringOptions(("error", "available")).check("missing", missing)
    given = {"start": start, "tabu_length": tabu_length, "n_restarts": n_restarts, "alpha": alpha}
    misplaced = [name for name, value in given.items() if value is not None and _METHOD_OF_PARAMETER[name] != method]
    if misplaced:
        of_method = _METHOD_OF_PARAMETER[misplaced[0]]
        raise EstimateError(
            f"{misplaced[0]} is a parameter of method={of_method!r}, found method={method!r}.\n"
            f"    Omit {misplaced[0]}=, or pass method={of_method!r}."
        )
    tabu_length = check_count("tabu_length", 20 if tabu_length is None else tabu_length, 0)
    n_restarts = check_count("n_restarts", 5 if n_restarts is None else n_restarts, 0)
    n_bootstrap = check_count("n_bootstrap", n_bootstrap, 0)
    alpha = 0.01 if alpha is None else check_mass(alpha, "alpha")
    scoring = read_score(score)
    rows = read_rows(data, columns, sample_weight, names, missing)
    constraints = read_constraints(rows.names, required, forbidden, tiers, max_parents)
    initial = _initial_parents(rows, constraints, start)
    rng = random_generator(random_state)

    def search(cache: ScoreCache, what: str) -> SearchResult:
        if method == "pc":
            marks, n_tests = pc_marks(cache.rows, constraints, alpha)
            return masks_of(consistent_extension(marks)), n_tests
        if method == "exact":
            return exact_search(cache, constraints)
        steps = hill_climb(cache, constraints, initial, tabu_length, n_restarts, rng)
        *_, (best, _) = progress_of(steps, what, lambda _: 1, unit="steps") if what else steps
        return best, cache.n_counted

    cache = ScoreCache(rows, scoring)
    _check_table_sizes(cache, initial)
    parents, n_counted = search(cache, "the search")
    frequencies = np.zeros((len(parents), len(parents)))
    for _ in progress(range(n_bootstrap), "bootstrap searches"):
        sample = ScoreCache(rows.bootstrap_sample(rng), scoring)
        sample_marks = cpdag(_edges(search(sample, "")[0]), constraints.oriented)
        frequencies += np.where(sample_marks & sample_marks.T, 0.5, sample_marks)
    strengths = _strengths_by_name(frequencies / n_bootstrap, rows.names) if n_bootstrap else None
    scores = cache.scores(list(enumerate(parents)))
    graph = Graph.read(
        {rows.names[child]: [rows.names[k] for k in members_of(mask)] for child, mask in enumerate(parents)}
    )
    summary = SearchSummary(
        _METHODS[method],
        scoring.name,
        rows.total,
        time.perf_counter() - began,
        n_counted,
        "tests" if method == "pc" else "families",
        n_bootstrap,
        constraints.description,
    )
    edges = _gains_of_edges(cache, parents, scores, constraints)
    return Structure(graph, float(np.sum(scores)), edges, strengths, summary)


def _initial_parents(rows: EncodedRows, constraints: Constraints, start: Parents | None) -> list[int]:
    """Return the parents of every column in the initial structure, as bit masks."""
    if start is None:
        return masks_of(constraints.required)
    graph = Graph.read(start)
    index = {name: k for k, name in enumerate(rows.names)}
    unknown = [node for node in graph.nodes if node not in index]
    if unknown:
        raise DataError.unknown_column(unknown, rows.names)
    edges = np.zeros_like(constraints.required)
    for parent, child in graph.edges:
        edges[index[parent], index[child]] = True
    violations = np.argwhere(edges & ~constraints.allowed | constraints.required & ~edges).tolist()
    if violations or (edges.sum(axis=0) > constraints.max_parents).any():
        where = [f": see {rows.names[a]!r} → {rows.names[b]!r}" for a, b in violations[:1]]
        raise DataError(
            f"start= violates required=, forbidden=, tiers= or max_parents={''.join(where)}.\n"
            "    Change the start, or relax the constraint."
        )
    return masks_of(edges)


def _check_table_sizes(cache: ScoreCache, parents: list[int]) -> None:
    """Raise TooLargeError if the initial structure has a CPT that is too large for a network."""
    rows = cache.rows
    for child, score in enumerate(cache.scores(list(enumerate(parents)))):
        if score == -np.inf:
            members = members_of(parents[child])
            names = [rows.names[k] for k in members]
            raise TooLargeError.table(rows.names[child], names, rows.n_cells((*members, child)))


def _edges(parents: list[int]) -> np.ndarray:
    """Return the edges [parent, child] from the parents of every column as bit masks."""
    edges = np.zeros((len(parents), len(parents)), dtype=bool)
    for child, mask in enumerate(parents):
        edges[list(members_of(mask)), child] = True
    return edges


def _gains_of_edges(
    cache: ScoreCache, parents: list[int], scores: list[float], constraints: Constraints
) -> dict[tuple[Name, Name], tuple[float, bool]]:
    """Return the loss of score without every edge, and whether it is reversible."""
    names = cache.rows.names
    edges = _edges(parents)
    marks = cpdag(edges, constraints.oriented)
    pairs = [(parent, child) for child, parent in np.argwhere(edges.T).tolist()]
    without = cache.scores([(child, parents[child] ^ 1 << parent) for parent, child in pairs])
    return {
        (names[a], names[b]): (scores[b] - score_without, bool(marks[b, a]))
        for (a, b), score_without in zip(pairs, without, strict=True)
    }


def _strengths_by_name(frequencies: np.ndarray, names: list[Name]) -> dict[tuple[Name, Name], tuple[float, float]]:
    """Return the strength and the direction of every pair with an edge in any search, the strongest first."""
    strength = frequencies + frequencies.T
    pairs = sorted(np.argwhere(np.triu(strength) > 0).tolist(), key=lambda pair: -strength[tuple(pair)])
    return {(names[a], names[b]): (float(strength[a, b]), float(frequencies[a, b] / strength[a, b])) for a, b in pairs}
