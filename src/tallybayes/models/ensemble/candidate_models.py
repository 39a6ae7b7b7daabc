"""Candidates of the automatic classifier: each row is scored with all counts and choices from the other folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln
from sklearn.base import clone

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
from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.families.family import Family
from tallybayes.families.protocols.scoring_forms import transform
from tallybayes.families.text import Text
from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
from tallybayes.models.ensemble.candidate_folds import CountedFolds
from tallybayes.models.ensemble.discriminant_by_fold import discriminant_scores
from tallybayes.models.ensemble.feature_views import NumericBlock, RawColumns, is_missing, numbers_of
from tallybayes.models.ensemble.leakage import Leak, leaks
from tallybayes.models.ensemble.naive_bayes_by_fold import naive_scores
from tallybayes.models.ensemble.one_dependence_by_fold import Coding, pair_scores
from tallybayes.models.ensemble.stacking import LEAST, bounded
from tallybayes.models.ensemble.text_columns import text_families
from tallybayes.models.forest.count_boosting import CountBoosting
from tallybayes.models.forest.count_forest import CountForest
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.discretization import DiscretizedColumns, class_bins_by_fold, read_levels
from tallybayes.models.inputs.family_selection import select_families_by_fold
from tallybayes.models.inputs.uninformative_columns import NO_KNOWN_CELL
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.models.one_dependence.averaged_one_dependence import AveragedOneDependence
from tallybayes.models.one_dependence.tree_augmented import TreeAugmentedNaiveBayes
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.forest.tree_classifier import TreeClassifier

_MOST_PAIRS = 1 << 21  # pairs of categorical levels times classes
_MOST_PAIRS_AT_ALL = 1 << 26  # including pairs of bins
_BINS = 8  # per numeric column
_MOST_WIDE = 300  # columns of a block with a full covariance
_ROUGHLY = 0.03  # tolerance of log T: a further Newton step would change no loss by 1e-6
_MANY_ROWS = 1000  # minimum for supervised bins, which overfit few rows
_COVARIANCES: tuple[dict[str, Any], ...] = (
    {"covariance": "tied"},
    {"covariance": "tied", "shrinkage": "auto"},
    {"covariance": "full"},
    {"covariance": "full", "shrinkage": "auto"},
    {"covariance": "full", "shrinkage": 0.5},
)


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """One candidate: its view of the rows, its unfitted model, and its held-out scores."""

    kind: str
    name: str
    view: RawColumns | NumericBlock
    model: ClassConditionalModel | TreeClassifier  # unfitted, with families and bins of all rows; trees are fitted
    tempering: TemperatureScaling
    scores: np.ndarray  # (n, classes): log p(class | row) without the row
    losses: np.ndarray  # (n,): −log p of the true classes, calibrated
    seconds: float


class CandidateModels:
    """The candidates of a search, scored on the same rows and folds.

    Parameters
    ----------
    table : Table
        With the classes in the column `target`, none missing.
    target : name
    weight : ndarray of shape (n,), optional
    folds : Folds
    all_rows : pair of Table and weights, optional
        The rows that `table` is a sample of: trees are grown from all of them.
    random_state : int
        Seed of the trees.
    independent : bool
        Whether the rows are independent. If not, trees are grown without each fold.
    trees : bool
        Whether forests and boosting are candidates.
    deadline : float, optional
        The time by `time.perf_counter` after which no further group of candidates is tried.
    """

    def __init__(
        self,
        table: Table,
        target: Name,
        weight: np.ndarray | None,
        folds: Folds,
        all_rows: tuple[Table, np.ndarray | None] | None = None,
        random_state: int = 0,
        *,
        independent: bool = True,
        trees: bool = True,
        deadline: float | None = None,
    ) -> None:
        self.table = table
        self.all_rows = (table, weight) if all_rows is None else all_rows
        self.random_state = random_state
        self.rule = folds
        self.independent = independent
        self.trees = trees
        self.deadline = deadline
        self.target = target
        self.weight = weight
        codes, domain = table.encoded(target, True)
        class_codes, self.codes = np.unique(codes, return_inverse=True)
        self.folds = CountedFolds(self.codes, folds.fold - min(0, int(folds.fold.min())), weight)
        every = np.ones(table.n_rows) if weight is None else weight
        self.scored_weight = weight if folds.known.all() else every * folds.known
        self.classes = tuple(domain.levels[int(code)] for code in class_codes)
        self.skipped: dict[str, str] = {}
        self.families: dict[Name, Family] = {}  # suggested for naive Bayes
        self.dropped_columns: dict[Name, str] = {
            name: reason for name in table.columns if (reason := table.unread(name))
        }
        self._chosen: list[dict[Name, Family]] = []  # families selected without each fold
        self._middles: dict[Name, float | None] = {}  # medians of numeric columns
        features = [name for name in table.columns if name != target and name not in self.dropped_columns]
        self.texts = {name: table.columns[name].family for name in features if table.kind(name) == "text"}
        features = [name for name in features if name not in self.texts]
        missing = {name: is_missing(table, name) for name in features}
        self.names = tuple(name for name in features if not missing[name].all()) or tuple(
            features
        )  # a model needs at least one column
        self.dropped_columns |= {name: NO_KNOWN_CELL for name in features if name not in self.names}
        self.indicator_columns = tuple(
            name for name in self.names if missing[name].any() and self._missingness_is_informative(missing[name])
        )
        self.numbers = tuple(name for name in self.names if table.kind(name) == "number")

    def _missingness_is_informative(self, missing: np.ndarray) -> bool:
        """Return whether missingness depends on the class, by the Bayes factor of a 2 × classes table."""
        weight = np.ones(len(missing)) if self.weight is None else self.weight
        table = np.bincount(2 * self.codes + missing, weight, minlength=2 * len(self.classes)).reshape(-1, 2)
        return bool(_log_evidence(table).sum() > _log_evidence(table.sum(axis=0)[None]).sum())

    def run(self) -> Iterator[CandidateModel]:
        """Yield every candidate with its scores; ``skipped`` has the candidates that failed."""
        tried = 0
        for names, trial in progress(list(self._plans()), "trying candidates"):
            if tried and self.deadline is not None and time.perf_counter() > self.deadline:
                self.skipped[names] = "the time budget was used up."
                continue
            try:
                for candidate in trial():
                    tried += 1
                    yield candidate
            except (TallybayesError, np.linalg.LinAlgError) as error:
                self.skipped[names] = str(error).split("\n")[0]

    def _plans(self) -> Iterator[tuple[str, Callable[[], Iterator[CandidateModel]]]]:
        """Yield the name of each group of candidates and a function that scores it."""
        for name, declared in self.texts.items():
            for kind, family in text_families(declared).items():
                yield f"{kind} of {name}", partial(self._text, f"{kind} of {name}", name, family)
        if not self.names:
            return
        yield (
            "naive Bayes",
            lambda: self._naive(RawColumns(self.names)),
        )  # family selection decides about missingness itself
        yield "pairs", lambda: self._pairs(self._in_pairs())
        if len(self.numbers) > 1:
            yield "discriminants", lambda: self._discriminants(self._as_numbers(), "discriminant", "", _COVARIANCES)
        if self.indicator_columns or len(self.numbers) < len(self.names):
            yield "indicators", self._indicators
        if not self.trees:
            return
        yield "boosting", lambda: self._trees("boosting", CountBoosting(random_state=self.random_state))
        yield "forest", lambda: self._trees("forest", CountForest(random_state=self.random_state))

    # ---- Kinds of candidates ----------------------------------------------------------------------------------------

    def _naive(self, view: RawColumns) -> Iterator[CandidateModel]:
        """Score naive Bayes with families selected by class."""
        start = time.perf_counter()
        table = view.apply(self.table, self.target)
        selection = select_families_by_fold(table, view.names, self.target, self.weight, self.folds.fold)
        columns = {column.column: column.family for column in selection.of_all if not column.dropped_columns}
        read_columns(columns, table, [self.target])  # raises if a column cannot be read
        self._chosen = selection.by_fold
        scores = naive_scores(table, selection.by_fold, self.folds)
        if self.rule.ordered:
            scores = self._refitted(view, NaiveBayes("suggest"))
        yield self._candidate("naive Bayes", "naive Bayes, suggested", view, NaiveBayes(columns), scores, start)
        self.families = columns
        dropped = {column.column: column.remark for column in selection.of_all if column.dropped_columns}
        self.dropped_columns |= dropped
        remaining = (
            tuple(name for name in self.names if name not in self.dropped_columns) or self.names
        )  # dropped for the other candidates, too
        self.names = remaining
        self.indicator_columns = tuple(name for name in self.indicator_columns if name in remaining)
        self.numbers = tuple(name for name in self.numbers if name in remaining)

    def _text(self, kind: str, name: Name, family: Text) -> Iterator[CandidateModel]:
        """Score naive Bayes on one text column."""
        start = time.perf_counter()
        view, model = RawColumns((name,)), NaiveBayes({name: family})
        yield self._candidate(kind, kind, view, model, self._refitted(view, model), start)

    def _pairs(self, view: RawColumns) -> Iterator[CandidateModel]:
        """Score tree-augmented naive Bayes and AODE on the same pairs, with equal-weight and with supervised bins."""
        start = time.perf_counter()
        table = view.apply(self.table, self.target)
        columns = read_levels("auto", _BINS, table, self.target, self.weight, "AveragedOneDependence")
        yield from self._of_pairs(view, table, [columns] * (self.folds.n_folds + 1), start, _BINS)
        if any(family.bins for family in columns.families.values()) and table.n_rows >= _MANY_ROWS:
            start = time.perf_counter()
            by_fold = class_bins_by_fold(columns, table, self.codes, self.folds.fold, self.weight)
            yield from self._of_pairs(view, table, by_fold, start, "mdl")

    def _of_pairs(
        self, view: RawColumns, table: Table, columns: list[DiscretizedColumns], start: float, bins: int | str
    ) -> Iterator[CandidateModel]:
        """Score one-dependence candidates with columns discretized without each fold; the last entry is for all."""
        codings: dict[int, Coding] = {}
        for discretized in columns[:-1]:
            codings[id(discretized)] = (
                codings[id(discretized)] if id(discretized) in codings else _coding(discretized, table)
            )
        models = (AveragedOneDependence, TreeAugmentedNaiveBayes)
        unfitted = [model(columns[-1].families, bins=bins) for model in models]
        scores = pair_scores(
            [codings[id(discretized)] for discretized in columns[:-1]], self.folds, unfitted[0].strength
        )
        start += (time.perf_counter() - start) / 2  # half of the time for each model
        suffix = ", bins by class" if bins == "mdl" else ""
        for kind, model, joint in zip(("one-dependence", "tree"), unfitted, scores, strict=True):
            scores_of = self._refitted(view, model) if self.rule.ordered else self._normalized(joint)
            yield self._candidate(kind, kind + suffix, view, model, scores_of, start)

    def _discriminants(
        self, view: NumericBlock, kind: str, suffix: str, settings: tuple[dict[str, Any], ...]
    ) -> Iterator[CandidateModel]:
        """Score Gaussian discriminants with several covariances, unless these would dominate the running time."""
        large = len(self.classes) * view.width**2 > 60_000 + 100 * self.table.n_rows
        if large or not 1 < view.width <= _MOST_WIDE:
            return
        start = time.perf_counter()
        (block,) = view.apply(self.table).columns.values()
        if (np.min(block, axis=0) == np.max(block, axis=0)).all():
            return
        for setting, scores in zip(settings, discriminant_scores(np.asarray(block), self.folds, settings), strict=True):
            shrinkage = f", shrinkage {setting['shrinkage']}" if "shrinkage" in setting else ""
            name = f"{setting['covariance']} discriminant{shrinkage}{suffix}"
            model = GaussianDiscriminant(**setting)
            scores_of = self._refitted(view, model) if self.rule.ordered else self._normalized(scores)
            yield self._candidate(kind, name, view, model, scores_of, start)
            start = time.perf_counter()

    def _indicators(self) -> Iterator[CandidateModel]:
        """Score discriminants on numbers and indicators of levels."""
        yield from self._discriminants(
            self._as_numbers(labels=True), "indicators", ", levels as numbers", _COVARIANCES[:2]
        )

    def _trees(self, kind: str, model: TreeClassifier) -> Iterator[CandidateModel]:
        """Score trees grown from all rows, each row by the trees that were grown without it, or without its fold."""
        start = time.perf_counter()
        view = RawColumns(self.names)
        rows, weight = self.all_rows
        model.fit(view.apply(rows, self.target), self.target, weight)
        if not self.independent:
            yield self._candidate(kind, kind, view, model, self._refitted(view, model), start)
            return
        proba = model.held_out_proba(view.apply(self.table, self.target), self.target, self.weight)
        levels = model.classes_.tolist()
        known = proba[:, [levels.index(label) for label in self.classes]]
        base = self.folds.table.sum(axis=0) / self.folds.table.sum()
        scores = np.log(np.where(np.isnan(known), base, np.maximum(known, 1e-300)))  # NaN: grown from in every tree
        yield self._candidate(kind, kind, view, model, self._normalized(scores), start)

    def _refitted(self, view: RawColumns | NumericBlock, model: ClassConditionalModel | TreeClassifier) -> np.ndarray:
        """Return log p(class | row) by models that are fitted without each fold; class frequencies elsewhere."""
        n = self.table.n_rows
        scores = np.tile(self.folds.log_prior[0], (n, 1))
        for number, test in enumerate(self.rule.tests()):
            train = np.setdiff1d(np.arange(n), self.rule.held_out(number))
            weight = None if self.weight is None else self.weight[train]
            fitted = clone(model).fit(view.apply(self.table.rows(train), self.target), self.target, weight)
            found = fitted.predict_log_proba(view.apply(self.table.rows(test)))
            levels = fitted._class_domain.levels
            scores[test] = LEAST
            for k, label in enumerate(self.classes):
                if label in levels:
                    scores[test, k] = found[:, levels.index(label)]
        return bounded(scores)

    def _as_numbers(self, *, labels: bool = False) -> NumericBlock:
        """Return a view of the numeric columns; with `labels` also indicators of missing cells and levels."""
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
        """Return a view of all columns except categorical columns with too many levels."""
        few = self._levels((_MOST_PAIRS / len(self.classes)) ** 0.5, "pairs with")
        names = tuple(name for name in self.names if name in self.numbers or name in few)
        n_levels = _BINS * len(self.numbers) + sum(map(len, few.values()))
        if not names or len(self.classes) * n_levels**2 > _MOST_PAIRS_AT_ALL:
            raise TooLargeError(
                f"{len(self.names)} columns have too many pairs of levels; expected at most {_MOST_PAIRS_AT_ALL:,}."
            )
        return RawColumns(names, tuple(name for name in self.indicator_columns if name in names))

    def _levels(self, most: float, use: str) -> dict[Name, tuple[object, ...]]:
        """Return the levels of categorical columns, those with the fewest first, up to `most` levels in total.

        A binary column contributes one level.
        """
        known = {n: self.table.encoded(n)[1].levels for n in self.names if n not in self.numbers}
        counted = {name: tuple(levels[1:] if len(levels) == 2 else levels) for name, levels in known.items()}
        total = 0
        for name in sorted(counted, key=lambda name: len(counted[name])):
            total += len(counted[name])
            if total > most:
                self.skipped[f"{use} {name}"] = (
                    f"its {len(counted[name])} levels exceed the limit of {most:.0f} in total."
                )
        return {name: levels for name, levels in counted.items() if f"{use} {name}" not in self.skipped}

    def _normalized(self, joint: np.ndarray) -> np.ndarray:
        """Return log p(class | row) from log p(class, row)."""
        return apply_bayes_rule(joint, self.folds.log_prior[0]).log_proba

    def _candidate(
        self,
        kind: str,
        name: str,
        view: RawColumns | NumericBlock,
        model: ClassConditionalModel | TreeClassifier,
        log_proba: np.ndarray,
        start: float,
    ) -> CandidateModel:
        """Return a candidate with temperature scaling fitted to a sample of the held-out scores."""
        scores = bounded(log_proba)
        sampled = sampled_rows(len(log_proba), INITIAL_ROWS)
        weight = None if self.scored_weight is None else self.scored_weight[sampled]
        temperature = fit_temperature_scaling(scores[sampled], self.codes[sampled], weight, tol=_ROUGHLY)
        losses = -log_proba_of_true_class(scores, self.codes, temperature)
        return CandidateModel(kind, name, view, model, temperature, scores, losses, time.perf_counter() - start)

    def leaks(self) -> list[Leak]:
        """Return the columns that predict the target almost by themselves."""
        return leaks(self.table, self.target, self._chosen, self.folds)

    def recalibrated(self, candidate: CandidateModel) -> CandidateModel:
        """Return a candidate with temperature scaling fitted to all rows; the comparison uses a sample."""
        temperature = fit_temperature_scaling(candidate.scores, self.codes, self.scored_weight, candidate.tempering)
        return replace(
            candidate, tempering=temperature, losses=-log_proba_of_true_class(candidate.scores, self.codes, temperature)
        )


def _coding(columns: DiscretizedColumns, table: Table) -> Coding:
    """Return the level codes of columns."""
    codes = []
    sizes = []
    for name, family in columns.families.items():
        if family.bins:
            codes.append(np.asarray(transform(family, numbers_of(table, name))))
            sizes.append(len(family.bins))
        else:
            cells, domain = table.encoded(name)
            codes.append(cells)
            sizes.append(len(domain.levels))
    return Coding.of(codes, sizes, table.n_rows)


def _log_evidence(table: np.ndarray) -> np.ndarray:
    """Return the log marginal likelihood of each row of a table of binary counts, under Beta(1, 1)."""
    return np.asarray(betaln(table[:, 0] + 1.0, table[:, 1] + 1.0))


def _middle(column: np.ndarray) -> float | None:
    """Return the median to three digits of the spread, which is not a row's value; None for a constant column."""
    known = np.sort(column[~np.isnan(column)])
    if not len(known) or known[0] == known[-1]:
        return None
    low, middle, high = (_quantile(known, level) for level in (0.25, 0.5, 0.75))
    spread = high - low or float(known[-1] - known[0])
    return float(round(middle, 2 - int(np.floor(np.log10(spread)))))


def _quantile(ordered: np.ndarray, level: float) -> float:
    """Return a quantile by linear interpolation; faster than NumPy's for few values."""
    position, fraction = divmod((len(ordered) - 1) * level, 1.0)
    low = ordered[int(position)]
    high = ordered[min(int(position) + 1, len(ordered) - 1)]
    return float(low + (high - low) * fraction if fraction < 0.5 else high - (high - low) * (1 - fraction))
