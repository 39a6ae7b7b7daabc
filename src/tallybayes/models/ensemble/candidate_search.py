"""Search of the automatic classifier: candidates on the same rows and folds, and the best or their pool."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.calibration.temperature_scaling import calibrated_proba
from tallybayes.estimation.resampling.folds import Folds, group_folds, ordered_folds, random_folds
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.cell_checks import out_of_support_cells
from tallybayes.models.ensemble.candidate_models import CandidateModel, CandidateModels
from tallybayes.models.ensemble.ensemble_spec import TREES, EnsembleSpec, MemberSpec
from tallybayes.models.ensemble.feature_views import RawColumns, numbers_of
from tallybayes.models.ensemble.leaderboard import Leaderboard, LeaderboardEntry, interval
from tallybayes.models.ensemble.leakage import LEAST_ACCURACY
from tallybayes.models.ensemble.stacking import LEAST_WEIGHT, eliminate_members, pool_log_proba
from tallybayes.models.inputs.features import is_name
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier

_MOST_ROWS = 20_000  # of the folds, sampled at random; the selected models count all rows


class Dependence(NamedTuple):
    """Which rows depend on each other: rows of one group, or rows in time. At most one is given."""

    groups: Labels | None = None
    order: Labels | None = None

    @classmethod
    def of(cls, table: Table, groups: Labels | None, order: Labels | None) -> tuple[Table, Dependence]:
        """Return the table without columns that are named as groups or order, and the dependence."""
        if groups is not None and order is not None:
            hint = "    Pass the time of each group as order."
            raise DataError(f"groups and order are both given; expected one of them.\n{hint}")
        given = [table.column(name) if is_name(name) else name for name in (groups, order)]
        named = [name for name in (groups, order) if is_name(name)]
        kept = {name: cells for name, cells in table.columns.items() if name not in named}
        return (Table(kept) if named else table), cls(*given)

    @property
    def independent(self) -> bool:
        """Whether the rows are independent."""
        return self.groups is None and self.order is None

    def rows(self, chosen: np.ndarray) -> Dependence:
        """Return the dependence of some rows."""
        return Dependence(*(None if part is None else as_array(part)[chosen] for part in self))

    def folds(self, codes: np.ndarray, n_folds: int, random_state: int) -> Folds:
        """Return the fold of each row."""
        known = np.ones(len(codes), dtype=bool)
        if self.order is not None:
            fold = ordered_folds(self.order, len(codes), n_folds) - 1  # the first part is only used for fitting
            return Folds(fold, fold >= 0, ordered=True)
        if self.groups is not None:
            return Folds(group_folds(self.groups, len(codes), n_folds, random_state), known)
        return Folds(random_folds(codes, n_folds, random_state), known)


class Selection(NamedTuple):
    """The result of a search: the spec, the leaderboard, and the trees that were fitted to all rows, by name."""

    spec: EnsembleSpec
    leaderboard: Leaderboard
    fitted: dict[str, Any]


def search_candidates(
    model: AutoClassifier,
    table: Table,
    target: Name,
    weight: np.ndarray | None,
    start: float,
    dependence: Dependence,
) -> Selection:
    """Score all candidates on the rows; return the selected spec and the leaderboard."""
    if weight is not None and not weight.all():
        positive = np.flatnonzero(weight)
        table = table.rows(positive)
        weight = weight[positive]
        dependence = dependence.rows(positive)
    n_total = table.n_rows
    _check_row_count(n_total)
    all_rows = table, weight
    if n_total > _MOST_ROWS:
        sampled = _with_invalid_cells(table, target, sampled_rows(n_total, _MOST_ROWS, model.random_state))
        table = table.rows(sampled)
        weight = None if weight is None else weight[sampled]
        dependence = dependence.rows(sampled)
    codes = np.asarray(read_labels(table, target).codes).astype(np.intp)
    folds = dependence.folds(codes, max(2, min(int(model.folds), table.n_rows)), model.random_state)
    candidates = CandidateModels(
        table,
        target,
        weight,
        folds,
        all_rows,
        model.random_state,
        independent=dependence.independent,
        trees=not model.single,
        deadline=None if model.time_budget is None else start + model.time_budget,
    )
    weight = candidates.scored_weight
    scored = list(candidates.run())
    if not scored:
        raise DataError("no candidate can be fitted to these rows:\n" + "\n".join(candidates.skipped.values()))
    for number in (best := _best(scored, weight, single=model.single)):
        scored[number] = candidates.recalibrated(scored[number])
    ensemble = _Ensemble.of([scored[number] for number in best], candidates)
    accuracy = float(np.average(ensemble.proba.argmax(axis=1) == candidates.codes, weights=weight))
    leaderboard = Leaderboard(
        _entries(scored, ensemble.spec, weight),
        interval(-np.log(ensemble.proba[np.arange(table.n_rows), candidates.codes]), weight),
        accuracy,
        candidates.families,
        candidates.dropped_columns,
        candidates.skipped,
        time.perf_counter() - start,
        table.n_rows,
        folds.n_folds,
        n_total,
        candidates.leaks() if not folds.ordered and accuracy >= LEAST_ACCURACY else [],
    )
    return Selection(ensemble.spec, leaderboard, {one.name: one.model for one in scored if one.kind in TREES})


class _Ensemble(NamedTuple):
    """Pooled members: their spec, and the held-out probabilities of the pool, (n, classes)."""

    spec: EnsembleSpec
    proba: np.ndarray

    @classmethod
    def of(cls, members: list[CandidateModel], candidates: CandidateModels) -> _Ensemble:
        """Pool the members, in order of decreasing weight, without those that the pool does as well without.

        The generative member of the lowest loss is always kept, of those that read the columns as they are if there are
        any: it has parameters of columns and classes.
        """
        proba = np.stack([calibrated_proba(member.scores, member.tempering) for member in members], axis=1)
        generative = [k for k, member in enumerate(members) if member.kind not in TREES]
        generative = [k for k in generative if isinstance(members[k].view, RawColumns)] or generative
        losses = [float(np.average(one.losses, weights=candidates.scored_weight)) for one in members]
        best = min(generative, key=losses.__getitem__, default=None)
        kept, weights = eliminate_members(proba, candidates.codes, candidates.scored_weight, best)
        weights = np.maximum(weights, LEAST_WEIGHT)
        by_weight = np.argsort(-weights, kind="stable").tolist()
        order, weights = [kept[k] for k in by_weight], weights[by_weight]
        pairs = zip(order, weights.tolist(), strict=True)
        specs = tuple(MemberSpec.of(members[k], one, candidates.classes) for k, one in pairs)
        pooled = pool_log_proba(np.log(proba[:, order].swapaxes(0, 1)), weights.tolist())
        return cls(EnsembleSpec(specs), np.exp(pooled))


def _check_row_count(n_rows: int) -> None:
    """Raise DataError if there are too few rows of positive weight for two folds."""
    if n_rows == 0:
        raise DataError("the weight of every row is zero; expected at least one positive weight.")
    if n_rows == 1:
        raise DataError(
            "there is 1 row, one sample, to choose by; expected at least 2.\n    tb.NaiveBayes can be fitted to one."
        )


def _best(scored: list[CandidateModel], weight: np.ndarray | None, *, single: bool) -> list[int]:
    """Return the number of the best candidate, or of the best of every kind, in increasing order."""
    losses = [float(np.average(candidate.losses, weights=weight)) for candidate in scored]
    best: dict[str, int] = {}
    for number in np.argsort(losses, kind="stable").tolist():
        best.setdefault("one" if single else scored[number].kind, number)
    return sorted(best.values())


def _entries(scored: list[CandidateModel], spec: EnsembleSpec, weight: np.ndarray | None) -> list[LeaderboardEntry]:
    """Return the rows of the leaderboard."""
    weight_of = {member.name: member.weight for member in spec.members}
    return [
        LeaderboardEntry(
            candidate.name, *interval(candidate.losses, weight), weight_of.get(candidate.name, 0.0), candidate.seconds
        )
        for candidate in scored
    ]


def _with_invalid_cells(table: Table, target: Name, rows: np.ndarray) -> np.ndarray:
    """Return the sampled rows, plus one row outside the support of every family that supports all sampled rows.

    A family may be selected only if it supports all rows, and the sample must show it.
    """
    more = []
    for name in table.columns:
        if name != target and not table.is_block(name) and table.kind(name) == "number":
            column = numbers_of(table, name)
            for family in (Poisson(), LogNormal(), Bernoulli()):
                wrong = out_of_support_cells(family, column)
                if wrong.any() and not wrong[rows].any():
                    more.append(int(wrong.argmax()))
    return np.union1d(rows, np.array(more, dtype=rows.dtype))
