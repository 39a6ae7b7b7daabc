"""What a structure is worth: a sum over its families, each a node with its parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes._utils.string_options import StringOptions
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import PriorError
from tallybayes.families.prior_rules import K2, BDeu
from tallybayes.kernels.contingency_tables import MOST_CELLS, count_joint, sum_joint
from tallybayes.models.network.bde_prior import BDe
from tallybayes.models.network.structure.encoded_rows import EncodedRows

Family = tuple[int, tuple[int, ...]]  # a column and its parents, by place
EVEN = 1e-9  # of the score: what gains less gains nothing, and what differs by less is equally good

SCORE_WORDS = StringOptions(
    ("bdeu", "k2", "bic", "aic"), ("a prior, such as tb.BDeu(10), tb.Dirichlet(0.5) or tb.BDe(network, 10)",)
)


class Score(Protocol):
    """A number for every family, in nats: what a structure is worth is their sum.

    A family whose table is too large for a network to have is worth −∞.
    """

    @property
    def name(self) -> str:
        """What it is called, for people."""

    def families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """The scores of families."""


class TableSumScore:
    """A score made of sums over the cells of a family's table and over its lines, as the kernels give them."""

    name = ""

    def cell_starts(self, n_cells: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """What the prior adds to every cell; 0 for the likelihood."""
        raise NotImplementedError

    def line_starts(self, n_lines: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """What the prior adds to every line."""
        raise NotImplementedError

    def penalty(self, rows: EncodedRows, n_cells: np.ndarray, n_lines: np.ndarray) -> np.ndarray:
        """What a table of this size costs."""
        return np.zeros(len(n_cells))

    def families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """The scores of families; each is judged by the rows that know all of it, as if all were like these."""
        out = np.full(len(families), -np.inf)
        able = [k for k, (child, parents) in enumerate(families) if n_cells_of(rows, (*parents, child)) <= MOST_CELLS]
        out[able] = self._families(rows, [families[k] for k in able])
        return out

    def _families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        sets = [(*parents, child) for child, parents in families]
        n_lines = np.array([n_cells_of(rows, parents) for _, parents in families], dtype=np.float64)
        n_levels = rows.sizes[[child for child, _ in families]].astype(np.float64)
        n_cells = n_lines * n_levels
        starts = self.cell_starts(n_cells, n_levels), self.line_starts(n_lines, n_levels)
        found = sum_joint(rows.codes, rows.sizes, sets, *starts, rows.weight)
        if rows.known is not None:
            shares = np.array([rows.share_known(members) for members in sets])
            found = np.where(shares > 0, found / np.where(shares > 0, shares, 1.0), -np.inf)
        return found - self.penalty(rows, n_cells, n_lines)


class BDeuScore(TableSumScore):
    """The evidence under BDeu: so many pseudo-rows, spread over each table."""

    def __init__(self, prior: BDeu) -> None:
        self.equivalent_sample_size, self.name = (
            float(prior.equivalent_sample_size),
            f"BDeu({prior.equivalent_sample_size:g})",
        )

    def cell_starts(self, n_cells: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """Each cell its part."""
        return self.equivalent_sample_size / n_cells

    def line_starts(self, n_lines: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """Each line its part."""
        return self.equivalent_sample_size / n_lines


class DirichletScore(TableSumScore):
    """The evidence under a Dirichlet prior that is the same in every cell."""

    def __init__(self, added: float, name: str) -> None:
        self.added, self.name = added, name

    def cell_starts(self, n_cells: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """The same."""
        return np.full(len(n_cells), self.added)

    def line_starts(self, n_lines: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """What its cells have."""
        return self.added * n_levels


class InformationCriterionScore(TableSumScore):
    """The log-likelihood, less a price for every parameter: BIC or AIC, times −½."""

    def __init__(self, name: str) -> None:
        self.name = name.upper()

    def cell_starts(self, n_cells: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """Nothing."""
        return np.zeros(len(n_cells))

    def line_starts(self, n_lines: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """Nothing."""
        return np.zeros(len(n_lines))

    def penalty(self, rows: EncodedRows, n_cells: np.ndarray, n_lines: np.ndarray) -> np.ndarray:
        """For every free parameter ½ log n, or 1."""
        price = 0.5 * math.log(rows.total) if self.name == "BIC" else 1.0
        return price * (n_cells - n_lines)


class BDeScore:
    """The evidence under BDe: another network's rows, so many."""

    def __init__(self, prior: BDe) -> None:
        self.prior, self.name = prior, f"BDe(a network, {prior.equivalent_sample_size:g})"

    def families(self, rows: EncodedRows, families: Sequence[Family]) -> np.ndarray:
        """The scores of families, each from its whole table."""
        found = np.zeros(len(families))
        levels = dict(zip(rows.names, rows.levels, strict=True))
        for place, (child, parents) in enumerate(families):
            if 32 * n_cells_of(rows, (*parents, child)) > min(available_memory(), 32 * MOST_CELLS):
                found[place] = -np.inf
                continue
            (table,) = count_joint(rows.codes, rows.sizes, [(*parents, child)], rows.weight)
            named = tuple(rows.names[parent] for parent in parents)
            start = self.prior.concentration(rows.names[child], named, levels).concentration
            sums = log_rising(start, table).sum() - log_rising(start.sum(axis=-1), table.sum(axis=-1)).sum()
            share = rows.share_known((*parents, child))
            found[place] = sums / share if share > 0 else -np.inf
        return found


def read_score(score: Any) -> Score:
    """The score that a word or a prior stands for."""
    SCORE_WORDS.check("score", score)
    if isinstance(score, str):
        if score == "bdeu":
            return BDeuScore(BDeu())
        return DirichletScore(1.0, "K2") if score == "k2" else InformationCriterionScore(score)
    if isinstance(score, BDeu):
        return BDeuScore(score)
    if isinstance(score, K2):
        return DirichletScore(1.0, "K2")
    if isinstance(score, BDe):
        return BDeScore(score)
    added = score.concentration if isinstance(score, Dirichlet) else score
    number = isinstance(added, int | float | np.number | np.ndarray) and not isinstance(added, bool)
    if not number or np.ndim(added):
        raise PriorError(
            f"score is {score!r:.60}; expected 'bdeu', 'k2', 'bic', 'aic', or a prior that fits every table: "
            "tb.BDeu(10), tb.K2(), tb.Dirichlet(0.5) of one number, or tb.BDe(network, 10)."
        )
    if not 0 < float(added) < math.inf:
        raise PriorError.not_positive("the score's prior", "pseudo-counts", added)
    return DirichletScore(float(added), f"Dirichlet({float(added):g})")


class ScoreCache:
    """Scores of families, each counted once.

    Attributes
    ----------
    rows : Rows
    score : Score
    n_counted : int
        How many families were counted.
    """

    def __init__(self, rows: EncodedRows, score: Score) -> None:
        self.rows, self.score = rows.distinct(), score
        self._found: dict[tuple[int, int], float] = {}

    @property
    def n_counted(self) -> int:
        """How many families were counted."""
        return len(self._found)

    def of(self, families: Sequence[tuple[int, int]]) -> list[float]:
        """The scores of families: a column, and its parents as the bits of a number."""
        new = [family for family in dict.fromkeys(families) if family not in self._found]
        if new:
            scores = self.score.families(self.rows, [(child, places_of(parents)) for child, parents in new])
            self._found.update(zip(new, scores.tolist(), strict=True))
        return [self._found[family] for family in families]


def places_of(mask: int) -> tuple[int, ...]:
    """The places of the bits of a number, in rising order."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


def n_cells_of(rows: EncodedRows, members: Sequence[int]) -> int:
    """The number of cells of a table."""
    return math.prod(len(rows.levels[place]) for place in members)
