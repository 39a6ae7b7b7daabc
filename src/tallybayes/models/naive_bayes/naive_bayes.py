"""NaiveBayes: classification with conditionally independent columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.classifier_from_parameters import naive_bayes_from_parameters
from tallybayes.models.classification.independent_blocks import IndependentBlocksMixin
from tallybayes.models.classification.independent_columns import column_factors, column_tags, retally, with_kinds_of
from tallybayes.models.classification.methods.classifier_plots import plot_words
from tallybayes.models.inputs.columns import check_same_families, columns_of, dropped_columns_of, repr_lines
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.typing import ClassPrior, Columns, Priors, RandomState


class NaiveBayes(IndependentBlocksMixin, Classifier):
    """Naive Bayes over mixed columns: p(class) Π p(column | class).

    Missing cells are skipped in fitting and prediction. New classes and levels may appear later. Models fitted on
    separate data can be merged, and training rows can be forgotten exactly.

    Parameters
    ----------
    columns : "auto", "suggest", a Family, or a mapping from names, positions or tuples of them to these
        ``"auto"`` depends on types only: numbers are `Gaussian`, categorical columns (strings, categories, booleans)
        `Categorical`, sparse blocks `Multinomial`. A date column becomes several columns, ``"when.year"``,
        ``"when.month"``, ``"when.day_of_week"`` and, if its type has a time, ``"when.hour"``. ``"suggest"`` selects
        families by log evidence from the first rows, as `suggest_families` does, and drops uninformative columns; the
        selection stays fixed. Columns not in a mapping are ignored; its key ``...`` stands for all of them:
        ``{"eggs": tb.Poisson(), ...: "auto"}``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` integrates the parameters out: the posterior predictive of each column.
    prior : ParameterDistribution, number, rule, "empirical", list of them, mapping from column to one of them, or a
    Tally
        A distribution applies to its conjugate families; a number is a pseudo-count of each level or word. Other
        columns, and None, have default priors. Under ``"map"`` a number is an error: ``tb.Dirichlet(3)`` adds 2,
        ``tb.Dirichlet(2)`` adds 1. The `Beta` prior of a binary column is that of the last level, in declared or sorted
        order. ``"empirical"`` maximizes the marginal likelihood of the classes' counts for each column (empirical
        Bayes). It is the default of categorical columns and words under ``"bayes"`` if two or more classes have counts,
        else 1. A tally of the same columns, such as another model's, is counted before the training rows;
        ``tally.scale(strength)`` changes its weight.
    class_prior : {label: probability}, "uniform", "frequency", Dirichlet or None
        "frequency" uses the class frequencies. None adds one pseudo-count per class under estimates with a prior, so
        that a declared class without rows is possible.
    unseen : {"missing", "smooth", "error"}, default "missing"
        Treatment of unseen levels: as missing, as one more level with prior mass, or as an error. Invalid values, such
        as 0.5 in a column of counts, are treated alike, but as missing under "smooth".
    calibration : {"temperature", "isotonic", "auto"} or None
        Calibration of the probabilities during `fit`, by held-out rows: see `calibrate`.
    unlabeled : {"em", "skip"} or None
        Rows without a label: use them by EM, or skip them. None raises an error.
    missing_label : label, optional
        A value that marks missing labels, such as −1, besides None and NaN.
    unlabeled_weight : float, default 1
        The weight of an unlabeled row relative to a labeled row.
    n_classes : int, optional
        The number of classes, if some have no labeled row.
    max_iter, tol : int and float
        The maximum number of EM iterations, and the tolerance of the objective per row.
    n_init : int, default 1
        The number of random initializations, of which the best is used; only if a class has no label.
    random_state : int, Generator or None
        The seed of the initializations.

    Attributes
    ----------
    tally_ : Tally
        The sufficient statistics.
    classes_ : ndarray
    columns_ : dict
        The family of each column, as given or selected; ``columns=model.columns_`` repeats the selection.
    dropped_columns_ : dict
        From dropped column to the reason.
    prior_ : dict
        The resolved prior of each block of columns.
    constant_columns_ : list
        Columns that are constant in the training rows and do not influence predictions.

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
    dropped_columns_ = typed_property(dropped_columns_of)
    _repr_lines = repr_lines
    _check_mergeable = check_same_families
    _make_factors = column_factors
    _tally_for = retally
    _resolve_column_types = with_kinds_of
    plot_convergence = plot_convergence
    plot_words = plot_words

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn, which depend on the families of the columns."""
        return column_tags(self, super().__sklearn_tags__())
