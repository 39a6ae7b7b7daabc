"""NaiveBayes: columns independent given the class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallybayes.errors import PriorError
from tallybayes.models.classifier import FactoredClassifier
from tallybayes.models.columns import read_columns
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Factor, Name


class NaiveBayes(FactoredClassifier):
    """Naive Bayes over mixed columns: p(class) Π p(column | class).

    Missing cells are skipped at fitting and at prediction; classes and levels may appear later; models fitted apart add
    up, and rows can be forgotten exactly.

    Parameters
    ----------
    columns : "auto", a Family, or a mapping from names, positions or tuples of them to families
        ``"auto"`` reads types, never values: numbers are `Gaussian`, labels (strings, categories, booleans)
        `Categorical`, sparse blocks `Multinomial`. Columns a mapping does not name are ignored.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` integrates the parameters out: each column's posterior predictive.
    prior : Belief, rule, list of them, or mapping from column to Belief or rule, optional
        A belief serves the families it belongs to; the others, and None, take their defaults.
    class_prior : {label: probability}, "uniform", Dirichlet or None
        None is the classes' share of the rows.
    unseen : {"missing", "smooth", "error"}, default "missing"
        What a level is that was not there at fitting: a missing value, one more level with prior mass, or an error.

    Attributes
    ----------
    tally_ : Tally
        All that was learnt.
    classes_ : ndarray
    prior_ : dict
        The prior of every block of columns, as resolved.
    constant_columns_ : list
        Columns the same in every row, which add nothing.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", None], "warmth": [25.0, 14.0, 22.0, 16.0], "picnic": [1, 0, 1, 0]}
    >>> model = tb.NaiveBayes().fit(rows, "picnic")
    >>> model.predict({"sky": ["rain"], "warmth": [None]})
    array([0])
    """

    def __init__(
        self,
        columns: Any = "auto",
        *,
        estimate: str = "bayes",
        prior: Any = None,
        class_prior: Any = None,
        unseen: str = "missing",
    ) -> None:
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen

    def _make_factors(self, table: Table, target: Name) -> list[Factor]:
        return [Factor(names, (target,), family) for names, family in read_columns(self.columns, table, [target])]

    def _prior_of(self, factor: Factor) -> Any:
        """The prior meant for a factor: by column, or the first that belongs to its family."""
        prior = self.prior
        if isinstance(prior, Mapping):
            named = [prior[name] for name in factor.columns if name in prior]
            if not named:
                return None
            if len(named) < len(factor.columns) or any(other != named[0] for other in named):
                raise PriorError(
                    f"the columns {factor.columns} are one block of {factor.family!r}, but prior= does not give them "
                    "one prior.\n    Give each the same, or one belief with an array per column."
                )
            return named[0]
        candidates = prior if isinstance(prior, list | tuple) else [prior]
        fitting = [p for p in candidates if isinstance(p, factor.family.belief) or not hasattr(p, "update")]
        return fitting[0] if fitting else None
