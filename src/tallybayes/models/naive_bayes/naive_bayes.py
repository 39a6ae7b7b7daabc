"""NaiveBayes: columns independent given the class."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.classifier_from_parameters import naive_bayes_from_parameters
from tallybayes.models.classification.independent_columns import column_factors, column_tags, retally, with_kinds_of
from tallybayes.models.classification.methods.classifier_plots import plot_words
from tallybayes.models.inputs.columns import columns_of, left_out_of, refuse_other_choice, shown_choice
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.typing import ClassPrior, Columns, Priors, RandomState


class NaiveBayes(Classifier):
    """Naive Bayes over mixed columns: p(class) Π p(column | class).

    Missing cells are skipped at fitting and at prediction; classes and levels may appear later; models fitted apart add
    up, and rows can be forgotten exactly.

    Parameters
    ----------
    columns : "auto", "suggest", a Family, or a mapping from names, positions or tuples of them to these
        ``"auto"`` reads types, never values: numbers are `Gaussian`, labels (strings, categories, booleans)
        `Categorical`, sparse blocks `Multinomial`; a column of dates is read as columns of its own, ``"when.year"``,
        ``"when.month"``, ``"when.day_of_week"`` and, if its type has a time, ``"when.hour"``. ``"suggest"`` chooses by
        evidence, as `suggest_families` does, from the rows that are first fitted, and leaves out what says nothing; the
        choice stays. Columns a mapping does not name are ignored; its key ``...`` stands for them all:
        ``{"eggs": tb.Poisson(), ...: "auto"}``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` integrates the parameters out: each column's posterior predictive.
    prior : Belief, number, rule, "empirical", list of them, mapping from column to one of them, or a Tally, optional
        A belief serves the families it belongs to; a number is added to every level's count, of labels and words; the
        others, and None, take their defaults. Under ``"map"`` a number is an error: ``tb.Dirichlet(3)`` adds 2,
        ``tb.Dirichlet(2)`` adds 1. A `Beta` of a column of two labels is about the last one, as declared or sorted.
        ``"empirical"`` is the prior under which the classes' counts are most probable, found for every column: the
        default of labels and words under ``"bayes"`` where two classes or more have any counted, else 1. A tally of the
        same columns, such as another model's, counts as seen before;
        ``tally.scale(strength)`` is worth less or more.
    class_prior : {label: probability}, "uniform", "frequency", Dirichlet or None
        "frequency" is the classes' share of the rows. None has one pseudo-row more for every class, under the estimates
        that have priors, so that a class that was declared but not seen is improbable, not impossible.
    unseen : {"missing", "smooth", "error"}, default "missing"
        What a level is that was not there at fitting: a missing value, one more level with prior mass, or an error.
        So is a cell that could not have been counted, such as 0.5 among whole numbers; there "smooth" is "missing".
    calibration : {"temperature", "isotonic", "auto"} or None
        Whether `fit` mends the probabilities by its rows left out, and how: see `calibrate`.
    unlabeled : {"em", "skip"} or None
        What to do with rows without a label: use them by EM, or leave them out. None refuses them.
    missing_label : label, optional
        What stands for a missing label, such as −1, besides None and NaN.
    unlabeled_weight : float, default 1
        What a row without a label is worth, compared with one that has it.
    n_classes : int, optional
        How many classes there are, where some have no labeled row.
    max_iter, tol : int and float
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
    columns_ : dict
        The family of every column, as given or as chosen; ``columns=model.columns_`` has others choose the same.
    left_out_ : dict
        Why columns are not read.
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
        columns: Columns = "auto",
        *,
        estimate: str = "bayes",
        prior: Priors = None,
        class_prior: ClassPrior = None,
        unseen: str = "missing",
        calibration: str | None = None,
        unlabeled: str | None = None,
        missing_label: Hashable = None,
        unlabeled_weight: float = 1.0,
        n_classes: int | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen
        self.calibration = calibration
        self.unlabeled = unlabeled
        self.missing_label = missing_label
        self.unlabeled_weight = unlabeled_weight
        self.n_classes = n_classes
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    from_parameters = classmethod(naive_bayes_from_parameters)
    columns_ = typed_property(columns_of)
    dropped_columns_ = typed_property(left_out_of)
    _repr_lines = shown_choice
    _check_mergeable = refuse_other_choice
    _make_factors = column_factors
    _tally_for = retally
    _resolve_column_types = with_kinds_of
    plot_convergence = plot_convergence
    plot_words = plot_words

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn, which depend on the families of the columns."""
        return column_tags(self, super().__sklearn_tags__())
