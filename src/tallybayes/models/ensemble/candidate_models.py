"""Trials: every candidate on the same folds, each row scored by a model that has neither counted nor chosen by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from tallybayes._utils.progress import progress
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import TallybayesError, TooLargeError
from tallybayes.estimation.calibration.temperature_scaling import (
    INITIAL_ROWS,
    TemperatureScaling,
    fit_temperature_scaling,
    log_proba_of_true_class,
)
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.families.family import Family
from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
from tallybayes.models.ensemble.candidate_folds import Folds
from tallybayes.models.ensemble.discriminant_by_fold import discriminant_scores
from tallybayes.models.ensemble.feature_views import NumericBlock, RawColumns, is_missing, numbers_of
from tallybayes.models.ensemble.leakage import Leak, leaks
from tallybayes.models.ensemble.naive_bayes_by_fold import naive_scores
from tallybayes.models.ensemble.one_dependence_by_fold import Coding, pair_scores
from tallybayes.models.ensemble.stacking import bounded
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.discretization import DiscretizedColumns, class_bins_by_fold, read_levels
from tallybayes.models.inputs.family_selection import select_families_by_fold
from tallybayes.models.inputs.uninformative_columns import NO_KNOWN_CELL
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.tally.factor import Name

_MOST_PAIRS = 1 << 21  # of labels, times classes, that are tried
_MOST_PAIRS_AT_ALL = 1 << 26  # with those of bins
_BINS = 8  # of a number, about
_MOST_WIDE = 300  # columns of a block whose covariance is tried
_ROUGHLY = 0.03  # steps of a temperature's logarithm that are the last: the next would change no loss by 1e-6
_MANY_ROWS = 1000  # from which on bins that look at the classes are tried, which flatter themselves where rows are few
_COVARIANCES: tuple[dict[str, Any], ...] = (
    {"covariance": "tied"},
    {"covariance": "tied", "shrinkage": "auto"},
    {"covariance": "full"},
    {"covariance": "full", "shrinkage": "auto"},
    {"covariance": "full", "shrinkage": 0.5},
)


class CandidateModel(NamedTuple):
    """One model that was tried: how it reads the rows, what it is made with, and how held-out rows came out."""

    kind: str
    name: str
    view: Any
    model: Any  # not fitted; families and bins are those that all rows speak for
    tempering: TemperatureScaling
    scores: np.ndarray  # (n, classes): log p(class | row) without the row
    losses: np.ndarray  # (n,): −log p of the rows' own classes, mended
    seconds: float


class CandidateModels:
    """The rows that candidates are tried on, in folds.

    Parameters
    ----------
    table : Table
        With the classes in the column `target`, none missing.
    target : name
    weight : ndarray of shape (n,), optional
    fold : ndarray of int of shape (n,)
    """

    def __init__(self, table: Table, target: Name, weight: np.ndarray | None, fold: np.ndarray) -> None:
        self.table = table
        self.target = target
        self.weight = weight
        found, (domain,) = table.levels([target], lambda _: True)
        seen, self.codes = np.unique(np.asarray(found.columns[0]), return_inverse=True)
        self.folds = Folds(self.codes, fold, weight)
        self.classes = tuple(domain.levels[int(code)] for code in seen)
        self.skipped: dict[str, str] = {}
        self.families: dict[Name, Family] = {}  # of naive Bayes
        self.dropped_columns: dict[Name, str] = {
            name: reason for name in table.columns if (reason := table.unread(name))
        }
        self._chosen: list[dict[Name, Family]] = []  # families without every fold
        self._middles: dict[Name, float | None] = {}  # of numbers
        features = [name for name in table.columns if name != target and name not in self.dropped_columns]
        gaps = {name: is_missing(table, name) for name in features}
        self.names = tuple(name for name in features if not gaps[name].all()) or tuple(features)  # a model needs one
        self.dropped_columns |= {name: NO_KNOWN_CELL for name in features if name not in self.names}
        self.indicator_columns = tuple(
            name for name in self.names if gaps[name].any() and self._missingness_is_informative(gaps[name])
        )
        self.numbers = tuple(name for name in self.names if table.kind(name) == "number")

    def _missingness_is_informative(self, gaps: np.ndarray) -> bool:
        """Whether the absence of a column's cells tells classes apart: by the evidence for tables that differ."""
        weight = np.ones(len(gaps)) if self.weight is None else self.weight
        table = np.bincount(2 * self.codes + gaps, weight, minlength=2 * len(self.classes)).reshape(-1, 2)
        return bool(_log_evidence(table).sum() > _log_evidence(table.sum(axis=0)[None]).sum())

    def run(self) -> Iterator[CandidateModel]:
        """Every candidate, scored; those that cannot be made of these rows are in ``skipped``."""
        for names, trial in progress(list(self._plans()), "trying candidates"):
            try:
                yield from trial()
            except (TallybayesError, np.linalg.LinAlgError) as error:
                self.skipped[names] = str(error).split("\n")[0]

    def _plans(self) -> Iterator[tuple[str, Callable[[], Iterator[CandidateModel]]]]:
        yield "naive Bayes", lambda: self._naive(RawColumns(self.names))  # it tells by itself where absence counts
        yield "pairs", lambda: self._pairs(self._in_pairs())
        if len(self.numbers) > 1:
            yield "discriminants", lambda: self._discriminants(self._as_numbers(), "discriminant", "", _COVARIANCES)
        if self.indicator_columns or len(self.numbers) < len(self.names):
            yield "indicators", self._indicators

    # ---- Kinds of candidates ----------------------------------------------------------------------------------------

    def _naive(self, view: Any) -> Iterator[CandidateModel]:
        """Naive Bayes, whose families look at the classes."""
        start = time.perf_counter()
        table = view.apply(self.table, self.target)
        found = select_families_by_fold(table, view.names, self.target, self.weight, self.folds.fold)
        columns = {one.column: one.family for one in found.of_all if not one.dropped_columns}
        read_columns(columns, table, [self.target])  # refuses what cannot be read
        self._chosen = found.by_fold
        scores = naive_scores(table, found.by_fold, self.folds)
        yield self._candidate("naive Bayes", "naive Bayes, suggested", view, NaiveBayes(columns), scores, start)
        self.families = columns
        more = {one.column: one.remark for one in found.of_all if one.dropped_columns}
        self.dropped_columns |= more
        kept = (
            tuple(name for name in self.names if name not in self.dropped_columns) or self.names
        )  # to others, neither
        self.names = kept
        self.indicator_columns = tuple(name for name in self.indicator_columns if name in kept)
        self.numbers = tuple(name for name in self.numbers if name in kept)

    def _pairs(self, view: Any) -> Iterator[CandidateModel]:
        """A tree and all parents, of the same pairs: in bins of equal weight, and in bins that look at the classes."""
        start = time.perf_counter()
        table = view.apply(self.table, self.target)
        columns = read_levels("auto", _BINS, table, self.target, self.weight, "AveragedOneDependence")
        yield from self._of_pairs(view, table, [columns] * (self.folds.n_folds + 1), start, _BINS)
        if any(family.bins for family in columns.families.values()) and table.n_rows >= _MANY_ROWS:
            start = time.perf_counter()
            by_fold = class_bins_by_fold(columns, table, self.codes, self.folds.fold, self.weight)
            yield from self._of_pairs(view, table, by_fold, start, "mdl")

    def _of_pairs(
        self, view: Any, table: Table, columns: list[DiscretizedColumns], start: float, bins: Any
    ) -> Iterator[CandidateModel]:
        """Candidates of columns that are cut without each fold as these say, and by all rows as the last."""
        coded: dict[int, Coding] = {}
        for one in columns[:-1]:
            coded[id(one)] = coded[id(one)] if id(one) in coded else _coding(one, table)
        models = (AveragedOneDependence, TreeAugmentedNaiveBayes)
        made = [model(columns[-1].families, bins=bins) for model in models]
        scores = pair_scores([coded[id(one)] for one in columns[:-1]], self.folds, made[0].strength)
        start += (time.perf_counter() - start) / 2  # half of it each
        said = ", bins by class" if bins == "mdl" else ""
        for kind, model, found in zip(("one-dependence", "tree"), made, scores, strict=True):
            yield self._candidate(kind, kind + said, view, model, self._normalized(found), start)

    def _discriminants(
        self, view: NumericBlock, kind: str, said: str, settings: tuple[dict[str, Any], ...]
    ) -> Iterator[CandidateModel]:
        # Covariances that would take longer than all else are left out.
        large = len(self.classes) * view.width**2 > 60_000 + 100 * self.table.n_rows
        if large or not 1 < view.width <= _MOST_WIDE:
            return
        start = time.perf_counter()
        (block,) = view.apply(self.table).columns.values()
        for each, scores in zip(settings, discriminant_scores(np.asarray(block), self.folds, settings), strict=True):
            shrunk = f", shrinkage {each['shrinkage']}" if "shrinkage" in each else ""
            name = f"{each['covariance']} discriminant{shrunk}{said}"
            yield self._candidate(kind, name, view, GaussianDiscriminant(**each), self._normalized(scores), start)
            start = time.perf_counter()

    def _indicators(self) -> Iterator[CandidateModel]:
        yield from self._discriminants(
            self._as_numbers(labels=True), "indicators", ", levels as numbers", _COVARIANCES[:2]
        )

    def _as_numbers(self, *, labels: bool = False) -> NumericBlock:
        """All numbers, and with `labels` what is missing and every level, as numbers."""
        for name in self.numbers:
            if name not in self._middles:
                self._middles[name] = _middle(numbers_of(self.table, name))
        known = ((name, self._middles[name]) for name in self.numbers)
        middles = tuple((name, middle) for name, middle in known if middle is not None)
        if not labels:
            return NumericBlock(middles)
        levels = self._levels(max(0, _MOST_WIDE - len(middles) - len(self.indicator_columns)), "indicators of")
        return NumericBlock(middles, self.indicator_columns, tuple(levels.items()))

    def _in_pairs(self) -> RawColumns:
        """All columns but labels of which there are too many pairs."""
        few = self._levels((_MOST_PAIRS / len(self.classes)) ** 0.5, "pairs with")
        names = tuple(name for name in self.names if name in self.numbers or name in few)
        n_levels = _BINS * len(self.numbers) + sum(map(len, few.values()))
        if not names or len(self.classes) * n_levels**2 > _MOST_PAIRS_AT_ALL:
            raise TooLargeError(f"{len(self.names)} columns have more pairs of levels than are worth the time.")
        return RawColumns(names, tuple(name for name in self.indicator_columns if name in names))

    def _levels(self, most: float, use: str) -> dict[Name, tuple[object, ...]]:
        """The levels of columns of labels, of two one: of those with the fewest, up to `most` levels in all."""
        known = {n: self.table.levels([n], lambda _: False)[1][0].levels for n in self.names if n not in self.numbers}
        told = {name: tuple(levels[1:] if len(levels) == 2 else levels) for name, levels in known.items()}
        total = 0
        for name in sorted(told, key=lambda name: len(told[name])):
            total += len(told[name])
            if total > most:
                self.skipped[f"{use} {name}"] = f"with its {len(told[name])} levels there are more than {most:.0f}."
        return {name: levels for name, levels in told.items() if f"{use} {name}" not in self.skipped}

    def _normalized(self, joint: np.ndarray) -> np.ndarray:
        return apply_bayes_rule(joint, self.folds.log_prior[0]).log_proba

    def _candidate(
        self, kind: str, name: str, view: Any, model: Any, log_proba: np.ndarray, start: float
    ) -> CandidateModel:
        scores = bounded(log_proba)
        some = sampled_rows(len(log_proba), INITIAL_ROWS)
        weight = None if self.weight is None else self.weight[some]
        found = fit_temperature_scaling(scores[some], self.codes[some], weight, tol=_ROUGHLY)
        losses = -log_proba_of_true_class(scores, self.codes, found)
        return CandidateModel(kind, name, view, model, found, scores, losses, time.perf_counter() - start)

    def leaks(self) -> list[Leak]:
        """The columns that predict the target almost by themselves."""
        return leaks(self.table, self.target, self._chosen, self.folds)

    def mended(self, candidate: CandidateModel) -> CandidateModel:
        """A candidate that was chosen, mended by all rows; to compare them, some of many are enough."""
        found = fit_temperature_scaling(candidate.scores, self.codes, self.weight, candidate.tempering)
        return candidate._replace(tempering=found, losses=-log_proba_of_true_class(candidate.scores, self.codes, found))


def _coding(columns: DiscretizedColumns, table: Table) -> Coding:
    """The levels of columns as codes."""
    codes = []
    sizes = []
    for name, family in columns.families.items():
        if family.bins:
            codes.append(np.asarray(family.transform(numbers_of(table, name))))
            sizes.append(len(family.bins))
        else:
            found, (domain,) = table.levels([name], lambda _: False)
            cells = found.columns
            codes.append(np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0]))
            sizes.append(len(domain.levels))
    return Coding.of(codes, sizes, table.n_rows)


def _log_evidence(table: np.ndarray) -> np.ndarray:
    """log p of yes and no in every row of a table of counts, under Beta(1, 1)."""
    return np.asarray(betaln(table[:, 0] + 1.0, table[:, 1] + 1.0))


def _middle(column: np.ndarray) -> float | None:
    """The median of what is known, to three digits of the spread: no row's own value. None where nothing varies."""
    known = np.sort(column[~np.isnan(column)])
    if not len(known) or known[0] == known[-1]:
        return None
    low, middle, high = (_quantile(known, share) for share in (0.25, 0.5, 0.75))
    spread = high - low or float(known[-1] - known[0])
    return float(round(middle, 2 - int(np.floor(np.log10(spread)))))


def _quantile(ordered: np.ndarray, share: float) -> float:
    """As NumPy's, which takes longer to begin than to find it."""
    place, part = divmod((len(ordered) - 1) * share, 1.0)
    low = ordered[int(place)]
    high = ordered[min(int(place) + 1, len(ordered) - 1)]
    return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
