"""NaiveBayes: classification with conditionally independent columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.classifier_from_parameters import read_parameters
from tallybayes.models.classification.independent_blocks import IndependentBlocksMixin
from tallybayes.models.classification.independent_columns import column_tags, retally, with_kinds_of
from tallybayes.models.inputs.columns import (
    check_same_families,
    column_factors,
    columns_of,
    dropped_columns_of,
    repr_lines,
)
from tallybayes.typing import ClassPrior, Columns, Priors, RandomState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes

    from tallybayes.data.table import Table
    from tallybayes.families.family import Family
    from tallybayes.plotting.plot import Plot
    from tallybayes.tally.factor import Factor, Name
    from tallybayes.tally.tally import Tally
    from tallybayes.typing import Rows, SampleWeights


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
        families by log evidence from 20,000 random rows, as `suggest_families` does, and drops uninformative columns;
        the selection stays fixed. Columns not in a mapping are ignored; its key ``...`` stands for all of them, and
        ``"ignore"`` in place of a family drops a column: ``{"eggs": tb.Poisson(), "id": "ignore", ...: "auto"}``.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` integrates the parameters out: the posterior predictive of each column.
    prior : ParameterDistribution, number, rule, "empirical", Tally, list or mapping from column to these
        By kind of value; columns to which it does not apply have default priors:

        - None: the default priors. For categorical columns and words under ``"bayes"`` this is ``"empirical"`` if two
          or more classes have counts, else 1.
        - A distribution, or a rule such as `BDeu`: the prior of its conjugate families. The `Beta` prior of a binary
          column is that of the last level, in declared or sorted order.
        - A number: a pseudo-count of each level or word. Under ``"map"`` it is an error: ``tb.Dirichlet(3)`` adds 2,
          ``tb.Dirichlet(2)`` adds 1.
        - ``"empirical"``: the prior of highest marginal likelihood of the classes' counts, for each column (empirical
          Bayes).
        - A tally of the same columns, such as another model's: it is counted before the training rows;
          ``tally.scale(strength)`` changes its weight.
        - A list or mapping: one of these for each column.
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

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[Any, Any],
        class_prior: ClassPrior = None,
        *,
        classes: Iterable[Hashable] | None = None,
        columns: Columns | None = None,
        levels: Mapping[Any, Iterable[Any]] | None = None,
        strength: float | None = None,
        **options: Any,
    ) -> NaiveBayes:
        """Return a model with user-specified parameters.

        Methods that need counts (`partial_fit`, `forget`, ``+``, the evidence) raise `NoCountsError`.

        Parameters
        ----------
        parameters : mapping from a column, or a tuple of columns of one block, to its parameters in every class
            By class: ``{label: probability}`` for a categorical column; ``{"mean": …, "variance": …}`` for a Gaussian
            column, ``{"mean": …, "covariance": …}`` for a block, ``{"rate": …}`` for a Poisson column; one number is
            the probability of 1. As mappings, data frames (a row for every class) or arrays. Labels that a mapping
            lacks have probability 0. ``parameters_`` of a fitted model is such a mapping.
        class_prior : p(class), as a mapping, series or array
            Optional if `parameters` has it, as ``parameters_`` does.
        classes : sequence of labels, optional
            The classes of arrays; by default 0, 1, …
        columns : Family, or mapping from columns to families, optional
            The families that the parameter names do not determine, such as ``tb.LogNormal()`` or ``tb.Multinomial()``.
        levels : mapping from column to its labels, optional
            For arrays of probabilities.
        strength : float, optional
            Use the parameters as a prior with the strength of that many rows, distributed over the classes by the class
            prior. The model has no rows; use `fit` or `partial_fit`. Under ``"bayes"`` categorical columns have the
            given probabilities, and Gaussian columns are wider, as so few rows determine the parameters less.
        **options
            Parameters of the constructor.

        Returns
        -------
        A fitted model

        Examples
        --------
        >>> import tallybayes as tb
        >>> model = tb.NaiveBayes.from_parameters(
        ...     {"sky": {"yes": {"sun": 0.75, "rain": 0.25}, "no": {"sun": 0.25, "rain": 0.75}},
        ...      "warmth": {"yes": {"mean": 24, "variance": 9}, "no": {"mean": 15, "variance": 16}}},
        ...     class_prior={"yes": 0.5, "no": 0.5})
        >>> model.predict_proba({"sky": ["sun"], "warmth": [None]})        # of no, of yes
        array([[0.25, 0.75]])
        """
        stated = read_parameters(parameters, class_prior, classes, columns, levels)
        return cls(columns=stated.families, **options)._with_parameters(stated, strength)

    @property
    def columns_(self) -> dict[Any, Family]:
        """Return the family of every column in use, as given or selected; by tuple for columns of one block."""
        return columns_of(self)

    @property
    def dropped_columns_(self) -> dict[Name, str]:
        """Return the reason of every dropped column."""
        return dropped_columns_of(self)

    def _repr_lines(self) -> list[str]:
        """Return lines with the families that were selected by evidence, and the dropped columns."""
        return repr_lines(self)

    def _check_mergeable(self, other: NaiveBayes) -> None:
        """Raise StatisticsError if the models have columns in different families."""
        return check_same_families(self, other)

    def _make_factors(self, table: Table, target: Name, weight: SampleWeights) -> list[Factor]:
        """Return a factor for every block of like columns given the class, and set the dropped columns of the model."""
        factors, self._dropped_columns = column_factors(self.columns, self._initial, table, target, weight)
        return factors

    def _tally_for(self, other: NaiveBayes) -> Tally:
        """Return the tally in the families of another model, if they have the same sufficient statistics."""
        return retally(self.tally_, self.columns, other.columns)

    def _resolve_column_types(self, X: Rows) -> Any:
        """Return the model with the types of columns whose training values were all missing, from new rows.

        A batch in which all values of a column are missing does not determine its type.
        """
        return with_kinds_of(self, X)

    def plot_convergence(self, ax: Axes | None = None) -> Plot:
        """Plot the objective of EM by iteration, for every initialization."""
        check_is_fitted(self, "tally_")
        return plot_convergence(self._em_result, type(self).__name__, ax)

    def plot_words(self, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
        """Plot the most characteristic words of each class, with credible intervals."""
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.top_words import plot_words

        return plot_words(self, column, most, mass)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn, which depend on the families of the columns."""
        return column_tags(self.columns, super().__sklearn_tags__())
