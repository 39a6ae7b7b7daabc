"""AveragedOneDependence: every column in turn is the parent of all others, and the answers are averaged."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.one_dependence import pair_methods, pair_model
from tallybayes.models.one_dependence.pair_scorer import AllParentsScorer
from tallybayes.models.one_dependence.pair_show_work import show_work_of_parents
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.typing import ClassPrior, Columns, Priors


class AveragedOneDependence(Classifier):
    """Averaged one-dependence estimators (AODE): 1/d Σᵢ p(class, xᵢ) Πⱼ p(xⱼ | class, xᵢ) over all columns i.

    Naive Bayes takes the columns as independent given the class. Here each depends on one more column, every column
    being that one in turn (Webb, Boughton and Wang 2005). All of it is pairs of columns counted given the class, in one
    pass: it adds up, forgets rows exactly and leaves them out by subtraction. There is nothing to choose: no structure,
    and no threshold below which a column is no parent. A missing cell is skipped; a missing parent is summed over its
    levels, so that what is known is scored by its exact probability under the model.

    Memory grows with the square of the number of levels: it is stated, and refused where there is not enough.

    Parameters
    ----------
    columns : "auto", "suggest", or a mapping from names, positions or tuples of them to these and families with levels
        ``"auto"`` takes labels as they are and cuts numbers into bins when the first rows are seen; the bins are kept
        as ``columns_`` and hold from then on, also for rows that are added or forgotten.
        Labels of which nearly every row has its own say nothing, and are left out. ``"suggest"`` also leaves out what
        else says nothing, takes few whole numbers for labels, and makes absence a level where it tells classes apart:
        `WithMissing`, of labels, of bins, or of another family for numbers that are to be cut.
    bins : int or "mdl", default 8
        Numbers are cut into so many bins of about equal weight, or where the classes change and it pays (``"mdl"``).
    strength : float, default 4
        What the prior of p(xⱼ | class, xᵢ) is worth, in rows: it is p(xⱼ | class), so that pairs seen rarely say what
        naive Bayes says.
    prior : as for `NaiveBayes`
        Of p(xⱼ | class).
    class_prior : as for `NaiveBayes`
    unseen : {"missing", "error"}, default "missing"
        What a level is that was not there at fitting.
    calibration : {"temperature", "isotonic", "auto"} or None
        Whether `fit` mends the probabilities by its rows left out, and how: see `calibrate`.
    unlabeled : "skip" or None
        What to do with rows without a label: leave them out, or refuse them.
    missing_label : label, optional
        What stands for a missing label, such as −1, besides None and NaN.

    Attributes
    ----------
    tally_ : Tally
        All that was learnt: every column and every pair of columns, given the class.
    classes_ : ndarray
    columns_ : dict
        The family of every column, with the bins that were chosen.
    left_out_ : dict
        Columns that take no part, and why.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (400, 2))
    >>> y = X[:, 0] ^ X[:, 1]                                     # neither column tells anything by itself
    >>> tb.NaiveBayes(tb.Categorical()).fit(X, y).score(X, y) < 0.7
    True
    >>> tb.AveragedOneDependence().fit(X, y).score(X, y)
    1.0
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
    show_work = show_work_of_parents
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

    def __sklearn_tags__(self) -> Any:
        return pair_model.dense_only(self, super().__sklearn_tags__())

    def _make_row_scorer(self, log_prior: np.ndarray) -> Any:
        return AllParentsScorer(self._pairs, self.strength, log_prior, lambda table: pair_model.codes_of(self, table))

    def _draw(self, group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The levels of rows of these classes: of one column first, then of the others given it."""
        found = self._pairs
        codes = np.zeros((len(group), len(found.sizes)), dtype=np.int64)
        if not found.names:
            return codes
        shares = found.shares
        given = found.given(float(self.strength))
        n = len(group)
        parent = rng.integers(len(found.sizes), size=n)
        for i in range(len(found.sizes)):
            mine = np.flatnonzero(parent == i)
            start = found.offsets[i]
            stop = found.offsets[i + 1]
            codes[mine, i] = pair_methods.drawn(shares[group[mine], start:stop], rng)
            for j in range(len(found.sizes)):
                if j != i:
                    here = given[group[mine], start + codes[mine, i], found.offsets[j] : found.offsets[j + 1]]
                    codes[mine, j] = pair_methods.drawn(here, rng)
        return codes
