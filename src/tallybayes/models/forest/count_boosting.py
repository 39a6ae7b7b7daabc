"""CountBoosting: chains of boosted trees whose leaves are counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tallybayes._utils.parameter_checks import check_count, check_positive
from tallybayes.errors import StatisticsError, TallybayesError
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import CountedRows
from tallybayes.models.forest.grown_chains import ChainOptions, GrownChains, grow
from tallybayes.models.forest.grown_trees import Grown, GrownTrees
from tallybayes.models.forest.tree_classifier import TreeClassifier


class CountBoosting(TreeClassifier):
    """Boosted trees whose leaves compare observed with expected class counts, so that rows are added and forgotten.

    Four chains of trees are grown, each from three quarters of the rows, until the log loss of the rows outside them
    stops falling. A tree is grown on the residuals of its chain: its splits are searched in at most about 250,000 of
    the rows, and its leaves have all. A leaf multiplies the score of each class by ((n + s) / (e + s))^rate, where n is
    the number of rows of the class in the leaf and e the number that the chain before that tree expects. Under a
    Gamma(s, s) prior, (n + s) / (e + s) is the posterior mean of the rate of Poisson counts n with mean e · rate. The
    log scores are averaged over the chains, and calibrated by temperature scaling.

    The trees, the scores that e is computed from, and the temperature are fixed when the model is fitted.
    `partial_fit`, `forget` and ``+`` change n and e; both are sums of integers, so the order does not matter and
    nothing is left of a forgotten row in them. What was chosen from forgotten rows stays until `regrow`: splits, bin
    edges (which are rounded), frozen scores, the temperature, and 64-bit hashes of the rows that trees were grown from,
    which distinguish them from later rows. Later rows weigh less than those that trees were grown from, because the
    frozen scores do not contain them: use `regrow` once the rows have about doubled.

    Columns are read as by `CountForest`. A node needs 12 bytes, a leaf 40 bytes for each class, and a row that trees
    were grown from 16 bytes.

    Parameters
    ----------
    max_trees : int, default 300
        The largest number of trees of a chain.
    max_depth : int, default 7
    rate : float, default 0.2
        The power of the multipliers, between 0 and 1.
    strength : float, default 8
        The prior strength of the multipliers, in expected rows over all classes: s = strength / classes.
    min_leaf : int, default 3
        The smallest weight of a leaf when trees are grown.
    columns_tried : float, default 0.3
        The proportion of the columns that are tried at a node: at least 4 columns, and at most 40.
    random_state : int, default 0
        Trees do not depend on the order of the rows, nor on the number of threads.

    Attributes
    ----------
    classes_ : ndarray
    counts_ : ForestCounts
        The observed and expected class counts of the leaves, for the rows of each chain and for the other rows.
    structure_ : GrownChains
        The trees, and what was chosen with them.
    dropped_columns_ : dict
        From dropped column to the reason.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.CountBoosting(max_trees=50).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> before = model.predict_proba(X[:1])
    >>> bool((model.partial_fit(X[1:9], y[1:9]).forget(X[1:9], y[1:9]).predict_proba(X[:1]) == before).all())
    True
    """

    _absent_attributes: ClassVar[Mapping[str, TallybayesError]] = {
        "drop_class": StatisticsError(
            "boosted trees expect rows of all classes in every leaf, so they cannot drop a class without its rows.\n"
            "    Use forget(X, y) with its rows, or tb.CountForest."
        )
    }
    _structure_type: ClassVar[type[GrownTrees]] = GrownChains

    def __init__(
        self,
        max_trees: int = 300,
        *,
        max_depth: int = 7,
        rate: float = 0.2,
        strength: float = 8.0,
        min_leaf: int = 3,
        columns_tried: float = 0.3,
        random_state: int = 0,
    ) -> None:
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.rate = rate
        self.strength = strength
        self.min_leaf = min_leaf
        self.columns_tried = columns_tried
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        for name, least in (("max_trees", 1), ("max_depth", 1), ("min_leaf", 1), ("random_state", 0)):
            check_count(name, getattr(self, name), least)
        for name, most in (("rate", 1.0), ("columns_tried", 1.0), ("strength", 1e9)):
            check_positive(name, getattr(self, name), f"a number above 0, at most {most:g}", most)

    def _grow(self, columns: CodedColumns, classes: tuple[Any, ...], rows: CountedRows) -> Grown:
        options = ChainOptions(
            rate=float(self.rate),
            strength=float(self.strength),
            max_depth=int(self.max_depth),
            min_leaf=int(self.min_leaf),
            most_trees=int(self.max_trees),
            columns_tried=float(self.columns_tried),
        )
        return grow(columns, classes, rows, options, int(self.random_state))
