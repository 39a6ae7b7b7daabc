"""TreeAugmentedNaiveBayes: every column depends on the class and on one other column, along a tree."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.one_dependence import pair_methods, pair_model
from tallybayes.models.one_dependence.pair_scorer import TreeScorer
from tallybayes.models.one_dependence.pair_show_work import show_work_of_tree
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.typing import ClassPrior, Columns, Priors

_IN_CACHE = 32_768  # cells of pairs that are looked at together


class Tree(NamedTuple):
    """The parent of every column, −1 for the root; and the columns in an order in which parents come first."""

    parents: list[int]
    order: list[int]


class TreeAugmentedNaiveBayes(Classifier):
    """Tree-augmented naive Bayes: p(class) Πⱼ p(xⱼ | class, its parent), the parents being a tree of columns.

    The tree joins the pairs of columns that have most in common given the class: the maximum spanning tree by their
    conditional mutual information (Chow and Liu; Friedman, Geiger and Goldszmidt 1997). Pairs are what is counted, so
    the tree follows from the counts like everything else: after rows were added or forgotten, it is the tree of the
    rows that are there. Missing cells are summed over exactly.

    Parameters
    ----------
    columns, bins, strength, prior, class_prior, unseen, calibration, unlabeled, missing_label
        As for `AveragedOneDependence`.

    Attributes
    ----------
    tally_ : Tally
        All that was learnt: every column and every pair of columns, given the class.
    classes_ : ndarray
    parents_ : dict
        From column to the column it depends on; None for the root.
    columns_ : dict
        The family of every column, with the bins that were chosen.
    left_out_ : dict
        Columns that take no part, and why.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> sky = rng.choice(["sun", "rain"], 300)
    >>> rows = {"sky": sky, "street": np.where(sky == "rain", "wet", "dry"), "day": rng.choice(["work", "free"], 300)}
    >>> model = tb.TreeAugmentedNaiveBayes().fit(rows, rng.integers(0, 2, 300))
    >>> model.parents_["street"]
    'sky'
    """

    estimate = "bayes"
    unlabeled_weight = 1.0
    n_classes = None
    max_iter = 200  # of EM, which there is none of
    tol = 1e-6
    n_init = 1
    random_state = None

    def __init__(
        self,
        columns: Columns = "auto",
        *,
        bins: int | str = 8,
        strength: float = 4.0,
        prior: Priors = None,
        class_prior: ClassPrior = None,
        unseen: str = "missing",
        calibration: str | None = None,
        unlabeled: str | None = None,
        missing_label: Hashable = None,
    ) -> None:
        self.columns = columns
        self.bins = bins
        self.strength = strength
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen
        self.calibration = calibration
        self.unlabeled = unlabeled
        self.missing_label = missing_label

    _string_options = pair_model.WORDS
    columns_ = typed_property(pair_model.columns_of)
    dropped_columns_ = typed_property(pair_model.left_out_of)
    fit_tally = pair_model.fit_tally
    explain = pair_methods.explain
    sample = pair_methods.sample
    impute = pair_methods.impute
    parameters_ = typed_property(pair_methods.parameters)
    posterior_ = property(pair_model.refuse_posterior)
    n_parameters_ = typed_property(pair_methods.n_parameters)
    _labeled_factors = pair_methods.told
    to_linear = pair_model.refuse_linear
    show_work = show_work_of_tree
    predict_proba_interval = pair_model.refuse_interval
    _make_factors = pair_model.make_factors
    _discretize = pair_model.cut
    _display_family = pair_model.family_of
    _repr_lines = pair_model.shown
    _column_specs = pair_model.parts
    _count_initial_rows = pair_model.count_first_pairs
    _count_more_rows = pair_model.count_more_pairs
    _feature_factors = pair_model.single_factors
    _factors_with_prior = pair_model.with_prior
    _check_prior = pair_model.check_prior
    _pairs = typed_property(pair_model.pairs_of)
    _tally_for = pair_model.retally
    _copy_input_format = pair_model.take_from
    _check_mergeable = pair_model.check_added
    _check_has_likelihood_measures = pair_model.refuse_measure
    _check_estimated = pair_model.check_estimated
    _shape_to_json = pair_model.shape_to_json
    _shape_from_json = pair_model.shape_from_json

    @property
    def parents_(self) -> dict[Any, Any]:
        """From column to the column it depends on, besides the class; None for the root."""
        check_is_fitted(self, "tally_")
        names = self._pairs.names
        return {name: None if p < 0 else names[p] for name, p in zip(names, self._tree.parents, strict=True)}

    @property
    def _tree(self) -> Tree:
        return self._cached("tree", lambda: spanning_tree(conditional_mutual_information(self._pairs)))

    def __sklearn_tags__(self) -> Any:
        return pair_model.dense_only(self, super().__sklearn_tags__())

    def _make_row_scorer(self, log_prior: np.ndarray) -> Any:
        read = lambda table: pair_model.codes_of(self, table)  # noqa: E731
        return TreeScorer(self._pairs, self.strength, log_prior, read, self._tree)

    def _draw(self, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The levels of rows of these classes, parents first."""
        found = self._pairs
        (parents, order) = self._tree
        codes = np.zeros((len(group), len(found.sizes)), dtype=np.int64)
        shares = found.shares
        given = found.given(float(self.strength))
        for j in order:
            here = slice(found.offsets[j], found.offsets[j + 1])
            p = parents[j]
            some = shares[group, here] if p < 0 else given[group, found.offsets[p] + codes[:, p], here]
            codes[:, j] = pair_methods.drawn(some, rng)
        return codes


def conditional_mutual_information(found: pair_model.PairCounts) -> np.ndarray:
    """I(x; x' | class) of every pair of columns, in nats, by the rows in which both are known: (columns, columns)."""
    d = len(found.sizes)
    if not d:
        return np.zeros((0, 0))
    starts = found.offsets[:-1]

    def summed(table: np.ndarray, *axes: int) -> np.ndarray:
        for axis in axes:
            table = np.add.reduceat(table, starts, axis=axis)
        return table

    cells = summed(_sum_n_log_n(found.pair_counts, starts), 0)
    ends = summed(_n_log_n(found.level_column_totals).sum(axis=0), 0)  # of the levels of the first, the second known
    weight = summed(found.level_column_totals, 1)  # (classes, columns, columns)
    total = weight.sum(axis=0)
    nats = cells - ends - ends.T + _n_log_n(weight).sum(axis=0)
    # Pairs that are equal but for rounding, which depends on the order of the levels, are equal.
    return np.round(np.where(total > 0, nats / np.where(total > 0, total, 1.0), 0.0), 12)


def _sum_n_log_n(joint: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Σ n log n of the pairs of every level with those of each column, over all classes: (levels, columns)."""
    n_classes, n_levels, _ = joint.shape
    out = np.empty((n_levels, len(starts)))
    step = max(1, _IN_CACHE // (n_classes * n_levels))
    known = None if joint.dtype != np.float32 else _n_log_n(np.arange(float(joint.max(initial=0.0)) + 1))
    for first in range(0, n_levels, step):
        part = joint[:, first : first + step]  # whole numbers, of few rows, are looked up
        logs = _n_log_n(part) if known is None else known.take(part.astype(np.int32))
        np.add.reduceat(logs.sum(axis=0), starts, axis=1, out=out[first : first + step])
    return out


def _n_log_n(counts: np.ndarray) -> np.ndarray:
    logs = np.maximum(counts, 1e-300, dtype=np.float64)  # 0 log 0 is 0
    np.log(logs, out=logs)
    logs *= counts
    return logs


def spanning_tree(weight: np.ndarray) -> Tree:
    """The maximum spanning tree, from the first column on (Prim); ties go to the first."""
    d = len(weight)
    parents = [-1] * d
    order = [0] if d else []
    inside = np.zeros(d, dtype=bool)
    inside[:1] = True
    best, nearest = (weight[0].copy(), np.zeros(d, dtype=np.intp)) if d else (np.zeros(0), np.zeros(0, np.intp))
    for _ in range(d - 1):
        new = int(np.where(inside, -np.inf, best).argmax())
        parents[new] = int(nearest[new])
        order.append(new)
        inside[new] = True
        closer = weight[new] > best
        best = np.where(closer, weight[new], best)
        nearest = np.where(closer, new, nearest)
    return Tree(parents, order)
