"""Trials: every candidate on the same folds, each row scored by a model that has neither counted nor chosen by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln
from sklearn.base import clone

from tallybayes.errors import TallybayesError, TooLargeError
from tallybayes.models.classifiers.answers.calibration import Calibration, fit_calibration
from tallybayes.models.classifiers.answers.held_out import Opened, Rows, count_rows, score_folds
from tallybayes.models.classifiers.choice.mixing import bounded
from tallybayes.models.classifiers.choice.views import AsNumbers, AsTheyAre, is_missing, numbers_of
from tallybayes.models.classifiers.discriminant import GaussianDiscriminant
from tallybayes.models.classifiers.naive_bayes import NaiveBayes
from tallybayes.models.classifiers.one_dependence import AveragedOneDependence
from tallybayes.models.classifiers.pairs import sharing
from tallybayes.models.classifiers.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.models.fitted.bayes_rule import Normalised
from tallybayes.models.inputs.folds import rows_by_code
from tallybayes.models.inputs.shape import Shape
from tallybayes.progress import progress
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally

_MOST_PAIRS = 1 << 21  # of labels, times classes, that are tried
_MOST_PAIRS_AT_ALL = 1 << 26  # with those of bins
_BINS = 8  # of a number, about
_MOST_WIDE = 300  # columns of a block whose covariance is tried
_MANY_ROWS = 1000  # from which on bins that look at the classes are tried, which flatter themselves where rows are few
_COVARIANCES: tuple[dict[str, Any], ...] = (
    {"covariance": "tied"},
    {"covariance": "tied", "shrinkage": "auto"},
    {"covariance": "full"},
    {"covariance": "full", "shrinkage": "auto"},
    {"covariance": "full", "shrinkage": 0.5},
)


class Candidate(NamedTuple):
    """One model that was tried: how it reads the rows, the model of all of them, and how held-out rows came out."""

    kind: str
    name: str
    view: Any
    model: Any
    calibration: Calibration
    log_proba: np.ndarray  # (n, classes), calibrated: log p(class | row) without the row
    seconds: float

    def loss(self, codes: np.ndarray, weight: np.ndarray | None) -> float:
        """The mean log-loss of the held-out rows, in nats."""
        return float(np.average(self.losses(codes), weights=weight))

    def losses(self, codes: np.ndarray) -> np.ndarray:
        """The log-loss of every held-out row."""
        return -self.log_proba[np.arange(len(codes)), codes]


class Trials:
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
        self.table, self.target, self.weight, self.fold = table, target, weight, fold
        found, (domain,) = table.levels([target], lambda _: True)
        self._labels = np.asarray(found.columns[0])
        seen, self.codes = np.unique(self._labels, return_inverse=True)
        self.classes = tuple(domain.levels[int(code)] for code in seen)
        self.skipped: dict[str, str] = {}
        features = [name for name in table.columns if name != target]
        gaps = {name: is_missing(table, name) for name in features}
        self.names = tuple(name for name in features if not gaps[name].all()) or tuple(features)  # a model needs one
        self.absent = tuple(name for name in self.names if gaps[name].any() and self._tells(gaps[name]))
        self.numbers = tuple(name for name in self.names if table.kind(name) == "number")

    def _tells(self, gaps: np.ndarray) -> bool:
        """Whether the absence of a column's cells tells classes apart: by the evidence for tables that differ."""
        weight = np.ones(len(gaps)) if self.weight is None else self.weight
        table = np.bincount(2 * self.codes + gaps, weight, minlength=2 * len(self.classes)).reshape(-1, 2)
        return bool(_log_evidence(table).sum() > _log_evidence(table.sum(axis=0)[None]).sum())

    def run(self) -> Iterator[Candidate]:
        """Every candidate, scored; those that cannot be made of these rows are in ``skipped``."""
        for names, trial in progress(list(self._plans()), "trying candidates"):
            try:
                yield from trial()
            except (TallybayesError, np.linalg.LinAlgError) as error:
                self.skipped[names] = str(error).split("\n")[0]

    def _plans(self) -> Iterator[tuple[str, Callable[[], Iterator[Candidate]]]]:
        yield "naive Bayes", lambda: self._naive(AsTheyAre(self.names))  # it tells by itself where absence counts
        yield "pairs", lambda: self._pairs(self._in_pairs())
        if self.numbers and self.table.n_rows >= _MANY_ROWS:
            yield "pairs, bins by class", lambda: self._pairs_again(self._in_pairs())
        if len(self.numbers) > 1:
            yield "discriminants", lambda: self._discriminants(self._as_numbers(), "discriminant", "", _COVARIANCES)
        if self.absent or len(self.numbers) < len(self.names):
            yield "indicators", self._indicators

    # ---- Kinds of candidates ----------------------------------------------------------------------------------------

    def _naive(self, view: Any) -> Iterator[Candidate]:
        """Naive Bayes, whose families look at the classes."""
        (found,) = self._refitted(view, [NaiveBayes("suggest")])
        yield self._candidate("naive Bayes", "naive Bayes, suggested", view, *found)
        self._leave_out(found[0].left_out_)

    def _leave_out(self, columns: Collection[Name]) -> None:
        """Names, copies and constants say nothing to other candidates, either."""
        kept = tuple(name for name in self.names if name not in columns) or self.names
        self.names, self.absent = kept, tuple(name for name in self.absent if name in kept)
        self.numbers = tuple(name for name in self.numbers if name in kept)

    def _pairs_again(self, view: Any) -> Iterator[Candidate]:
        """As `_pairs`, with bins that look at the classes."""
        models = [AveragedOneDependence(bins="mdl"), TreeAugmentedNaiveBayes(bins="mdl")]
        for name, found in zip(("one-dependence", "tree"), self._refitted(view, models), strict=True):
            yield self._candidate(name, f"{name}, bins by class", view, *found)

    def _pairs(self, view: Any) -> Iterator[Candidate]:
        """A tree and all parents, of the same pairs. Bins do not look at the classes: folds are taken out of counts."""
        start = time.perf_counter()
        rows = self._counted(AveragedOneDependence(), view)
        whole, n_rows = rows.model, rows.table.n_rows
        models = [AveragedOneDependence(), TreeAugmentedNaiveBayes()]
        scores = [Normalised(np.empty((n_rows, len(self.classes))), np.empty(n_rows)) for _ in models]
        for k, test in enumerate(rows_by_code(self.fold, int(self.fold.max()) + 1)):
            counts = Tally(whole.tally_.factors, rows.without(k), whole.tally_.domains, whole.tally_.schema)
            first = whole._held(counts)
            for model, out in zip(models, scores, strict=True):
                sharing(clone(model), first)._plan.posterior_of(test, rows.table, out, {})
        seconds = (time.perf_counter() - start) / len(models)
        for model, name, out in zip(models, ("one-dependence", "tree"), scores, strict=True):
            yield self._candidate(name, name, view, sharing(model, whole), out.log_proba, seconds)

    def _discriminants(
        self, view: AsNumbers, kind: str, said: str, settings: tuple[dict[str, Any], ...]
    ) -> Iterator[Candidate]:
        # Covariances that would take longer than all else are left out.
        large = len(self.classes) * view.width**2 > 60_000 + 100 * self.table.n_rows
        if large or not 1 < view.width <= _MOST_WIDE:
            return
        start = time.perf_counter()
        rows = self._counted(GaussianDiscriminant(), view)
        models, names = [], []
        for each in settings:
            models.append(rows.model.reestimate(**each))
            shrunk = f", shrinkage {each['shrinkage']}" if "shrinkage" in each else ""
            names.append(f"{each['covariance']} discriminant{shrunk}{said}")
        scores = score_folds(rows, models, rows.without, self.fold)
        seconds = (time.perf_counter() - start) / len(models)
        for model, name, found in zip(models, names, scores, strict=True):
            yield self._candidate(kind, name, view, model, found.log_proba, seconds)

    def _indicators(self) -> Iterator[Candidate]:
        yield from self._discriminants(
            self._as_numbers(labels=True), "indicators", ", levels as numbers", _COVARIANCES[:2]
        )

    def _as_numbers(self, *, labels: bool = False) -> AsNumbers:
        """All numbers, and with `labels` what is missing and every level, as numbers."""
        kept = [name for name in self.numbers if _varies(numbers_of(self.table, name))]
        middles = tuple((name, _middle(numbers_of(self.table, name))) for name in kept)
        if not labels:
            return AsNumbers(middles)
        levels = self._levels(max(0, _MOST_WIDE - len(middles) - len(self.absent)), "indicators of")
        return AsNumbers(middles, self.absent, tuple(levels.items()))

    def _in_pairs(self) -> AsTheyAre:
        """All columns but labels of which there are too many pairs."""
        few = self._levels((_MOST_PAIRS / len(self.classes)) ** 0.5, "pairs with")
        names = tuple(name for name in self.names if name in self.numbers or name in few)
        n_levels = _BINS * len(self.numbers) + sum(map(len, few.values()))
        if not names or len(self.classes) * n_levels**2 > _MOST_PAIRS_AT_ALL:
            raise TooLargeError(f"{len(self.names)} columns have more pairs of levels than are worth the time.")
        return AsTheyAre(names, tuple(name for name in self.absent if name in names))

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

    # ---- Scores of rows that were held out --------------------------------------------------------------------------

    def _counted(self, model: Any, view: Any) -> Rows:
        """The rows counted once, each fold apart."""
        table = view.apply(self.table, self.target)
        model._shape = Shape(self.target)
        return count_rows(Opened(model, table, self._labels, self.weight), self.fold)

    def _refitted(self, view: Any, models: list[Any]) -> list[tuple[Any, np.ndarray, float]]:
        """Models that look at the classes before they count: fitted again without every fold, and on all rows.

        The first counts for all of them. Of each: the model of all rows, held-out log probabilities, and seconds.
        """
        start, table = time.perf_counter(), view.apply(self.table, self.target)
        scores = [np.empty((table.n_rows, len(self.classes))) for _ in models]

        def fit(rows: Table, weight: np.ndarray | None) -> list[Any]:
            first = clone(models[0]).partial_fit(rows, self.target, weight, classes=self.classes)
            return [first, *(sharing(clone(model), first) for model in models[1:])]

        for test in rows_by_code(self.fold, int(self.fold.max()) + 1):
            train = np.setdiff1d(np.arange(table.n_rows), test, assume_unique=True)
            rows = table.rows(test).without(self.target)
            fitted = fit(table.rows(train), None if self.weight is None else self.weight[train])
            for model, out in zip(fitted, scores, strict=True):
                out[test] = model.predict_log_proba(rows)
        whole = fit(table, self.weight)
        seconds = (time.perf_counter() - start) / len(models)
        return [(model, out, seconds) for model, out in zip(whole, scores, strict=True)]

    def _candidate(
        self, kind: str, name: str, view: Any, model: Any, log_proba: np.ndarray, seconds: float
    ) -> Candidate:
        scores = bounded(log_proba)
        calibration = fit_calibration("temperature", scores, self.codes, self.weight, model._weight())
        return Candidate(kind, name, view, model, calibration, bounded(calibration.apply(scores)), seconds)


def _log_evidence(table: np.ndarray) -> np.ndarray:
    """log p of yes and no in every row of a table of counts, under Beta(1, 1)."""
    return np.asarray(betaln(table[:, 0] + 1.0, table[:, 1] + 1.0))


def _varies(column: np.ndarray) -> bool:
    known = column[~np.isnan(column)]
    return len(known) > 0 and known.min() < known.max()


def _middle(column: np.ndarray) -> float:
    """The median of what is known, to three digits of the spread: no row's own value."""
    known = column[~np.isnan(column)]
    spread = float(np.subtract(*np.quantile(known, [0.75, 0.25]))) or float(known.max() - known.min())
    digits = 2 - int(np.floor(np.log10(spread)))
    return float(round(float(np.median(known)), digits))
