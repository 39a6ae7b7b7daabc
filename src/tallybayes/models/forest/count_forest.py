"""CountForest: a forest whose leaves are class counts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions, check_count, check_positive, is_integer_at_least
from tallybayes.errors import DataError
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import CountedRows
from tallybayes.models.forest.grown_forest import KINDS, GroupOptions, GrownForest, grow
from tallybayes.models.forest.grown_trees import Grown, GrownTrees
from tallybayes.models.forest.tree_classifier import TreeClassifier


class CountForest(TreeClassifier):
    """Random forest whose leaves are class counts, so that rows are added, merged and forgotten exactly.

    Each tree is grown from a random 63 % of the rows by class entropy, at most about 100,000; then all rows are counted
    in all trees. The probability of a class in a leaf is shrunk along the path from the root, p ← (n + s·p) / (Σ n +
    s): a posterior mean whose prior is the node above. Means over the trees of one kind are pooled log-linearly, with
    weights from the predictions of each row by the trees that were not grown from it (Genest and Zidek 1986), and
    calibrated by temperature scaling.

    The trees, the pool and the temperature are fixed when the model is fitted. `partial_fit`, `forget` and ``+`` change
    the counts; sums are integers, so the order does not matter and nothing is left of a forgotten row in them. What was
    chosen from forgotten rows stays until `regrow`: splits, bin edges (which are rounded), strengths and the pool. Use
    `regrow` once the rows have about doubled, too.

    Numeric columns are discretized to at most 254 bins, categorical columns have at most 253 frequent levels, and all
    other levels share one. A missing cell is a branch of its own, or follows either branch, whichever is better; a
    level or a missing cell that a node has not met follows the larger branch. A node needs 12 bytes, and a leaf 12
    bytes for each class.

    Parameters
    ----------
    n_trees : int, default 200
    splits : {"mixed", "random", "best"}, default "mixed"
        The splits that are tried at a node: one random split of each column (extremely randomized trees, Geurts et al.
        2006), all splits (random forests, Breiman 2001), or trees of both kinds.
    min_leaf : int, optional
        The smallest weight of a leaf when trees are grown. By default 1, 4 or 16, whichever has the lowest held-out log
        loss for a few trees.
    strength : float, optional
        The strength of shrinkage s, in rows. By default 0.1, 0.5 or 2, whichever has the lowest held-out log loss.
    random_state : int, default 0
        Trees do not depend on the order of the rows, nor on the number of threads.

    Attributes
    ----------
    classes_ : ndarray
    counts_ : ForestCounts
        The class counts of the leaves.
    structure_ : GrownForest
        The trees, and what was chosen with them.
    dropped_columns_ : dict
        From dropped column to the reason.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.CountForest(n_trees=30).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> before = model.predict_proba(X[:1])
    >>> bool((model.partial_fit(X[1:9], y[1:9]).forget(X[1:9], y[1:9]).predict_proba(X[:1]) == before).all())
    True
    """

    _structure_type: ClassVar[type[GrownTrees]] = GrownForest
    _string_options: ClassVar[Mapping[str, StringOptions]] = {"splits": StringOptions(("mixed", "random", "best"))}

    def __init__(
        self,
        n_trees: int = 200,
        *,
        splits: str = "mixed",
        min_leaf: int | None = None,
        strength: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.splits = splits
        self.min_leaf = min_leaf
        self.strength = strength
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        kinds = KINDS[self.splits]
        check_count("n_trees", self.n_trees, len(kinds))
        if self.min_leaf is not None and not is_integer_at_least(self.min_leaf, 1):
            raise DataError.wrong_type("min_leaf", repr(self.min_leaf), "a whole number of at least 1, or None")
        if self.strength is not None:
            check_positive("strength", self.strength, "a positive number of rows, or None")
        check_count("random_state", self.random_state, 0)

    def _grow(self, columns: CodedColumns, classes: tuple[Any, ...], rows: CountedRows) -> Grown:
        options = GroupOptions(self.min_leaf, self.strength)
        return grow(columns, classes, rows, self.n_trees, KINDS[self.splits], options, self.random_state)

    def drop_class(self, label: Hashable) -> Self:
        """Remove a class and all its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        check_is_fitted(self, "counts_")
        return self._set(self.structure_, self.counts_.without_class(label))
