"""TreeAugmentedNaiveBayes: naive Bayes in which each column also depends on one other column, along a tree."""

from __future__ import annotations

from typing import ClassVar

from tallybayes.models.one_dependence.estimated_pairs import EstimatedPairs, EstimatedTree
from tallybayes.models.one_dependence.one_dependence_classifier import OneDependenceClassifier
from tallybayes.typing import Name


class TreeAugmentedNaiveBayes(OneDependenceClassifier):
    """Tree-augmented naive Bayes (TAN): p(class) Πⱼ p(xⱼ | class, parent of xⱼ), with a tree of columns.

    The tree is the maximum spanning tree by the conditional mutual information of pairs of columns given the class
    (Chow and Liu 1968; Friedman, Geiger and Goldszmidt 1997). It is a function of the pair counts: after rows are added
    or forgotten, it is the tree of the remaining rows. Missing cells are summed over exactly.

    Parameters
    ----------
    columns, bins, strength, prior, class_prior, unseen, calibration, unlabeled, missing_label
        As for `AveragedOneDependence`.

    Attributes
    ----------
    tally_ : Tally
        The counts of every column and every pair of columns, given the class.
    classes_ : ndarray
    parents_ : dict
        From column to its parent column; None for the root.
    columns_ : dict
        The family of each column, with its bins.
    dropped_columns_ : dict
        From dropped column to the reason.

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

    _pairs_type: ClassVar[type[EstimatedPairs]] = EstimatedTree
    _formula = "p(class) · Π p(x_j | class, its parent)"

    @property
    def parents_(self) -> dict[Name, Name | None]:
        """From column to its parent column, besides the class; None for the root."""
        pairs = self._pairs
        assert isinstance(pairs, EstimatedTree)
        return pairs.parents
