"""Scores of structures: sums over families, each a column with its parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import xlogy

from tallybayes._utils.memory import available_memory
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import PriorError
from tallybayes.families.prior_rules import K2, BDeu
from tallybayes.kernels.contingency_tables import MOST_CELLS, count_joint, sum_joint
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.structure.encoded_rows import EncodedRows
from tallybayes.typing import Prior

Family = tuple[int, tuple[int, ...]]  # a column and its parents, by position
TOLERANCE = 1e-9  # relative difference of scores below which they are equal

SCORE_WORDS = StringOptions(
    ("bdeu", "k2", "bic", "aic"), ("a prior, such as tb.BDeu(10), tb.Dirichlet(0.5) or tb.BDe(network, 10)",)
)


class Score(Protocol):
    """Decomposable score: a structure's score is the sum of the scores of its families, in nats.

    A family whose CPT is too large for a network has the score −∞.
    """

    @property
    def name(self) -> str:
        """The name as printed."""

    def score_families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """Return the scores of families."""


class TableSumScore(NamedTuple):
    """Score that sums over the cells and the rows of a family's contingency table, computed by the kernels.

    It is the log marginal likelihood under a Dirichlet prior, or the maximum log-likelihood minus a penalty.

    Attributes
    ----------
    name : str
    pseudo_count : float
        Prior of every cell.
    equivalent_sample_size : float
        Prior spread evenly over each table (BDeu).
    """

    name: str
    pseudo_count: float = 0.0
    equivalent_sample_size: float = 0.0

    def row_prior(self, n_rows: np.ndarray, n_levels: np.ndarray | float) -> np.ndarray:
        """Return the pseudo-count of every row of a CPT: the sum of those of its cells, which are rows of one level."""
        return self.pseudo_count * n_levels + self.equivalent_sample_size / n_rows

    def penalty(self, rows: EncodedRows, n_cells: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
        """Return the penalty of CPTs of these sizes: ½ log n (BIC) or 1 (AIC) per free parameter."""
        per_parameter = {"BIC": 0.5 * math.log(rows.total), "AIC": 1.0}.get(self.name, 0.0)
        return per_parameter * (n_cells - n_rows)

    def score_families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """Return the scores of families; that of incomplete rows is scaled from the complete ones to all rows."""
        scores = np.full(len(families), -np.inf)
        fits = [k for k, (child, parents) in enumerate(families) if rows.n_cells((*parents, child)) <= MOST_CELLS]
        scores[fits] = self._score(rows, [families[k] for k in fits])
        return scores

    def _score(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        members = [(*parents, child) for child, parents in families]
        n_rows = np.array([rows.n_cells(parents) for _, parents in families], dtype=np.float64)
        n_levels = rows.sizes[[child for child, _ in families]].astype(np.float64)
        n_cells = n_rows * n_levels
        priors = self.row_prior(n_cells, 1), self.row_prior(n_rows, n_levels)
        scores = sum_joint(rows.codes, rows.sizes, members, *priors, rows.weight)
        if rows.observed is not None:
            fractions = np.array([rows.observed_fraction(columns) for columns in members])
            scores = np.where(fractions > 0, scores / np.where(fractions > 0, fractions, 1.0), -np.inf)
        return scores - self.penalty(rows, n_cells, n_rows)


class BDeScore:
    """Log marginal likelihood under BDe: another network as prior, with an equivalent sample size."""

    def __init__(self, prior: BDe) -> None:
        self.prior = prior
        self.name = f"BDe(a network, {prior.equivalent_sample_size:g})"

    def score_families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """Return the scores of families; that of incomplete rows is scaled from the complete ones to all rows."""
        levels = dict(zip(rows.names, rows.levels, strict=True))
        scores = np.full(len(families), -np.inf)
        for k, (child, parents) in enumerate(families):
            members = (*parents, child)
            fraction = rows.observed_fraction(members)
            if fraction > 0 and 32 * rows.n_cells(members) <= min(available_memory(), 32 * MOST_CELLS):
                (table,) = count_joint(rows.codes, rows.sizes, [members], rows.weight)
                names = tuple(rows.names[parent] for parent in parents)
                prior = self.prior.concentration(rows.names[child], names, levels).concentration
                log_evidence = log_rising(prior, table).sum() - log_rising(prior.sum(-1), table.sum(-1)).sum()
                scores[k] = log_evidence / fraction
        return scores


def read_score(score: Prior | BDe) -> Score:
    """Return the score of a word or a prior."""
    SCORE_WORDS.check("score", score)
    if isinstance(score, str):
        if score in ("bic", "aic"):
            return TableSumScore(score.upper())
        score = BDeu() if score == "bdeu" else K2()
    if isinstance(score, BDeu):
        size = float(score.equivalent_sample_size)
        return TableSumScore(f"BDeu({size:g})", equivalent_sample_size=size)
    if isinstance(score, K2):
        return TableSumScore("K2", 1.0)
    if isinstance(score, BDe):
        return BDeScore(score)
    pseudo_count: Any = score.concentration if isinstance(score, Dirichlet) else score
    is_number = isinstance(pseudo_count, int | float | np.number | np.ndarray) and not isinstance(pseudo_count, bool)
    if not is_number or np.ndim(pseudo_count):
        raise PriorError(
            f"score is {score!r:.60}; expected 'bdeu', 'k2', 'bic', 'aic', or a prior for tables of any size: "
            "tb.BDeu(10), tb.K2(), tb.Dirichlet(0.5) of one number, or tb.BDe(network, 10)."
        )
    if not 0 < float(pseudo_count) < math.inf:
        raise PriorError.wrong_parameter("the score's prior", "concentration", pseudo_count)
    return TableSumScore(f"Dirichlet({float(pseudo_count):g})", float(pseudo_count))


class ScoreCache:
    """Scores of families, each computed once.

    Attributes
    ----------
    rows : EncodedRows
    score : Score
    """

    def __init__(self, rows: EncodedRows, score: Score) -> None:
        self.rows = rows.distinct()
        self.score = score
        self._scores: dict[tuple[int, int], float] = {}

    @property
    def n_counted(self) -> int:
        """The number of families that were counted."""
        return len(self._scores)

    def scores(self, families: Sequence[tuple[int, int]]) -> list[float]:
        """Return the scores of families: a column, and its parents as a bit mask."""
        new = [family for family in dict.fromkeys(families) if family not in self._scores]
        if new:
            scores = self.score.score_families(self.rows, [(child, members_of(parents)) for child, parents in new])
            self._scores.update(zip(new, scores.tolist(), strict=True))
        return [self._scores[family] for family in families]


def members_of(mask: int) -> tuple[int, ...]:
    """Return the positions of the bits of a mask, in ascending order."""
    members = []
    while mask:
        lowest = mask & -mask
        members.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(members)


def masks_of(edges: np.ndarray) -> list[int]:
    """Return the parents of every column as a bit mask, from edges [parent, child]."""
    return [sum(1 << k for k in np.flatnonzero(column).tolist()) for column in edges.T]


def conditional_information(table: np.ndarray) -> float:
    """Return the conditional mutual information of two columns in nats, from counts (given, first, second)."""
    rows, columns, total = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    terms = xlogy(table, table).sum() - xlogy(rows, rows).sum() - xlogy(columns, columns).sum()
    return float(terms + xlogy(total, total).sum()) / max(float(total.sum()), 1.0)
