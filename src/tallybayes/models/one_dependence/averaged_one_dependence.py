"""AveragedOneDependence: averaged one-dependence estimators (AODE)."""

from __future__ import annotations

from typing import ClassVar

from tallybayes.models.one_dependence.estimated_pairs import EstimatedAverage, EstimatedPairs
from tallybayes.models.one_dependence.one_dependence_classifier import OneDependenceClassifier


class AveragedOneDependence(OneDependenceClassifier):
    """Averaged one-dependence estimators (AODE): 1/d Σᵢ p(class, xᵢ) Πⱼ p(xⱼ | class, xᵢ) over all columns i.

    Naive Bayes assumes that the columns are independent given the class. Here each column depends on one more column,
    and the joint probabilities of all choices of that column are averaged (Webb, Boughton and Wang 2005). The model
    counts all pairs of columns given the class, in one pass. Models can be merged, rows can be forgotten exactly, and
    folds are held out by subtraction. There is no structure to select, and no threshold for parents. A missing cell is
    skipped; a missing parent is summed over its levels, which is exact under the model.

    Memory grows with the square of the number of levels; an error states the required memory if it is not available.

    Parameters
    ----------
    columns : "auto", "suggest", or a mapping from names, positions or tuples of them to these and families with levels
        ``"auto"`` keeps categorical columns and discretizes numbers when the first rows are counted; the bins are kept
        as ``columns_`` and also hold for rows that are added or forgotten. Categorical columns with nearly as many
        levels as rows are dropped. ``"suggest"`` also drops other uninformative columns, treats few distinct integers
        as levels, and adds a level for informative missing values: `WithMissing`, of categorical columns, of bins, or
        of another family for numbers that are to be discretized. ``"ignore"`` in a mapping drops columns, as for
        `NaiveBayes`.
    bins : int or "mdl", default 8
        The number of bins of about equal weight; ``"mdl"`` places supervised bin edges where the classes change, by
        the minimum description length criterion.
    strength : float, default 4
        The prior strength of p(xⱼ | class, xᵢ), in rows. The prior is p(xⱼ | class), so that rare pairs are scored as
        by naive Bayes.
    prior : as for `NaiveBayes`
        The prior of p(xⱼ | class).
    class_prior : as for `NaiveBayes`
    unseen : {"missing", "error"}, default "missing"
        Treatment of unseen levels.
    calibration : {"temperature", "isotonic", "auto"} or None
        Calibration of the probabilities during `fit`, by held-out rows: see `calibrate`.
    unlabeled : "skip" or None
        Rows without a label: skip them, or raise an error.
    missing_label : label, optional
        A value that marks missing labels, such as −1, besides None and NaN.

    Attributes
    ----------
    tally_ : Tally
        The counts of every column and every pair of columns, given the class.
    classes_ : ndarray
    columns_ : dict
        The family of each column, with its bins.
    dropped_columns_ : dict
        From dropped column to the reason.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (400, 2))
    >>> y = X[:, 0] ^ X[:, 1]                                     # each column alone is uninformative
    >>> tb.NaiveBayes(tb.Categorical()).fit(X, y).score(X, y) < 0.7
    True
    >>> tb.AveragedOneDependence().fit(X, y).score(X, y)
    1.0
    """

    _pairs_type: ClassVar[type[EstimatedPairs]] = EstimatedAverage
    _formula = "p(class) · 1/d Σ_i p(x_i | class) Π_j p(x_j | class, x_i)"
