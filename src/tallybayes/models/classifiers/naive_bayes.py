"""NaiveBayes: columns independent given the class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.models.classifiers.generative import GenerativeClassifier
from tallybayes.models.inputs.column_priors import check_priors, prior_for
from tallybayes.models.inputs.columns import read_columns
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.value import to_json


class NaiveBayes(GenerativeClassifier):
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
    prior : Belief, rule, "empirical", list of them, mapping from column to one of them, or a Tally, optional
        A belief serves the families it belongs to; the others, and None, take their defaults. ``"empirical"`` is the
        prior under which the classes' counts are most probable, found for every column. A tally of the same
        columns, such as another model's, counts as seen before; ``tally.scale(strength)`` is worth less or more.
    class_prior : {label: probability}, "uniform", Dirichlet or None
        None is the classes' share of the rows.
    unseen : {"missing", "smooth", "error"}, default "missing"
        What a level is that was not there at fitting: a missing value, one more level with prior mass, or an error.
    unlabelled : {"em", "skip"} or None
        What to do with rows without a label: use them by EM, or leave them out. None refuses them.
    missing_label : label, optional
        What stands for a missing label, such as −1, besides None and NaN.
    unlabelled_weight : float, default 1
        What a row without a label is worth, compared with one that has it.
    n_classes : int, optional
        How many classes there are, where some have no labelled row.
    n_iter, tol : int and float
        EM takes at most so many steps, and stops when one raises the objective by less than `tol` a row.
    n_init : int, default 1
        From how many random starts, the best of which counts; used only where a class has no label.
    random_state : int, Generator or None
        For those starts.

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
        unlabelled: str | None = None,
        missing_label: Any = None,
        unlabelled_weight: float = 1.0,
        n_classes: int | None = None,
        n_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen
        self.unlabelled = unlabelled
        self.missing_label = missing_label
        self.unlabelled_weight = unlabelled_weight
        self.n_classes = n_classes
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _make_factors(self, table: Table, target: Name) -> list[Factor]:
        return [Factor(names, (target,), family) for names, family in read_columns(self.columns, table, [target])]

    def _retally(self, other: Self) -> Tally:
        """The tally read by the other model's families, where they keep the same statistics."""
        if to_json(self.columns) == to_json(other.columns):
            return self.tally_
        factors = [f if not f.given else f.replace(family=other._family_of(f)) for f in self.tally_.factors]
        return self.tally_.with_factors(factors)

    def _family_of(self, factor: Factor) -> Family:
        """The one family that ``columns=`` gives to a factor's columns."""
        if isinstance(self.columns, Family):
            return self.columns
        found = []
        if isinstance(self.columns, Mapping):
            by_name = {n: f for key, f in self.columns.items() for n in (key if isinstance(key, tuple) else (key,))}
            found = [by_name.get(name) for name in factor.columns]
        if not found or found[0] is None or any(family != found[0] for family in found):
            raise DataError(
                f"the columns {factor.columns} were counted together as {factor.family!r}; expected one family for "
                "them in columns=.\n    Fit again to count them otherwise."
            )
        return found[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.columns, Family):
            family = self.columns
            tags.input_tags.sparse = family.takes_sparse
            tags.input_tags.positive_only = family.nonnegative_cells
            tags.input_tags.allow_nan = family.takes_missing
            tags.classifier_tags.poor_score = not family.takes_missing and family.takes_sparse  # words, on measurements
        return tags

    def _check_prior(self, factors: list[Factor]) -> None:
        check_priors(self.prior, factors)

    def _prior_of(self, factor: Factor) -> Any:
        """The prior meant for a factor: by column, or the first that belongs to its family."""
        return prior_for(super()._prior_of(factor), factor)
