"""NearestClassMean: classification by the nearest class mean, in a given or learned metric."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions, check_count
from tallybayes.data.counting import check_weight
from tallybayes.data.table import Table
from tallybayes.errors import EstimateError, FileError, StatisticsError, TallybayesError
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.base import Model
from tallybayes.models.classification import classifier_fit
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.input_format import InputFormat, open_rows, read_more_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.inspection.labeled_parameters import looked_up
from tallybayes.models.inspection.model_summary import title_by_class
from tallybayes.models.nearest_mean.estimated_means import EstimatedMeans, complete_cells
from tallybayes.models.nearest_mean.metric_learning import MetricFit, learn_metric
from tallybayes.models.receipt import with_receipt
from tallybayes.models.sklearn_bases import ClassifierMixin
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.apps.report import Report
    from tallybayes.estimation.scoring.factor_scorer import FactorScorer
    from tallybayes.models.inspection.labeled_parameters import LabeledFactor
    from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable
    from tallybayes.plotting.plot import Plot
    from tallybayes.tally.domain import Domain


class NearestClassMean(ClassifierMixin, Model):
    """Nearest class mean classifier: p(class | x) ∝ exp(−½ d²(x, μ_c)) (Mensink et al. 2013).

    A class is represented by its mean, so a new class can be added from a single example without changing the metric.

    Parameters
    ----------
    metric : {"mahalanobis", "euclidean", "learned"}, matrix or callable, default "mahalanobis"
        ``"mahalanobis"`` is the tied Gaussian discriminant (``estimate="unbiased"``) with a uniform class prior; if
        that covariance is singular, its MAP estimate. ``"learned"`` minimizes the log loss of the training rows over W
        in d² = ‖W(x − μ)‖². A matrix A gives d² = (x − μ)ᵀA(x − μ). A callable ``d2(X, mean)`` returns the squared
        distances of all rows to one mean.
    n_components : int, optional
        The rank of a learned W; by default the number of columns. Other metrics do not use it.
    max_iter : int, default 200
        The maximum number of iterations of metric learning.
    tol : float, default 1e-6
        Metric learning has converged when an iteration improves the log loss by less than this, relatively or, below 1
        nat, absolutely.
    verbose : bool, default False
        Show the progress of metric learning.

    Attributes
    ----------
    means_ : ndarray of shape (classes, columns)
    projection_ : ndarray of shape (components, columns)
        W, with d² = ‖W(x − μ)‖².
    history_ : list of float
        The log loss of a learned metric after each iteration.
    converged_ : bool
        Whether metric learning ended by `tol`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.NearestClassMean().fit(X[:100], y[:100])
    >>> _ = model.add_class(2, X[100:101])                     # one example is enough
    >>> round(model.score(X, y), 2)
    0.86
    """

    def __init__(
        self,
        metric: str | npt.ArrayLike | Callable[[np.ndarray, np.ndarray], npt.ArrayLike] = "mahalanobis",
        *,
        n_components: int | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "metric": StringOptions(("mahalanobis", "euclidean", "learned"), ("a matrix", "a callable"))
    }
    _absent_attributes: ClassVar[Mapping[str, TallybayesError]] = dict.fromkeys(
        ("posterior_", "log_likelihood", "log_evidence", "description_length", "bic_", "aic_"),
        EstimateError(
            "NearestClassMean has no density of rows, and so no likelihood, posterior or information criteria: it\n"
            "    compares distances. tb.GaussianDiscriminant('tied', class_prior='uniform') is equivalent and has them."
        ),
    )

    @property
    def classes_(self) -> np.ndarray:
        """The sorted classes, in the data type of the target."""
        return classifier_fit.classes(self)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The column names of the data frame that was fitted."""
        return classifier_fit.feature_names_in(self)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return classifier_fit.n_features_in(self)

    @property
    def target_(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    def report(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        by: str | None = None,
        title: str | None = None,
        held_out: bool = False,
    ) -> Report:
        """Return an HTML page about the model and its predictions on some rows; its plots need matplotlib.

        The page contains the counts, the metrics, warnings, unusual rows (`tb.audit`), three explained rows, and a form
        to vary cells, class probabilities and costs. It is one file that works offline.

        Parameters
        ----------
        X : as for `fit`
            Labeled rows, preferably held-out rows.
        y : array-like of shape (n,), or column name of X, optional
            By default the target column of `fit`.
        by : column name of X, optional
            Show the metrics for each level of this column, with intervals.
        title : str, optional
        held_out : bool, default False
            Whether the rows are held out. Only then the page contains advice on columns and calibration.

        Returns
        -------
        Report
            A notebook shows it; ``.save("report.html")`` writes it.
        """
        check_is_fitted(self, "tally_")
        from tallybayes.apps.report import report

        return report(self, X, self.target_ if y is None else y, by=by, title=title, held_out=held_out)

    @property
    def _target(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    def _with_one_target(self, other: Self) -> tuple[Any, Any]:
        """Return both models with the same name of the target."""
        return classifier_fit.with_one_target(self, other)

    @property
    def _class_domain(self) -> Domain:
        """The classes of the tally."""
        return classifier_fit.class_domain(self)

    tally_: Tally
    input_format_: InputFormat

    @with_receipt
    def forget(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Remove rows exactly: the model is as if they had never been counted.

        StatisticsError is raised if a count would become negative.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were counted, as for `fit`.

        Returns
        -------
        self
        """
        return classifier_fit.forget(self, X, y, sample_weight)

    def fit_tally(self, tally: Tally) -> Self:
        """Fit the model to sufficient statistics that were counted elsewhere: in a file, a shard or a database.

        Parameters
        ----------
        tally : Tally
            Its first factor without ``given`` is the class; the other factors are the features.

        Returns
        -------
        self
        """
        return classifier_fit.fit_tally(self, tally)

    def drop_class(self, label: Hashable) -> Self:
        """Remove a class and all its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        return classifier_fit.drop_class(self, label)

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return classifier_fit.score(self, X, y, sample_weight)

    def _make_factors(self, table: Table, target: Name, weight: SampleWeights) -> list[Factor]:
        names = tuple(name for name in table.columns if name != target)
        table.require_numbers(names)
        family: Family = MultivariateGaussian() if _is(self.metric, "mahalanobis") else Gaussian()
        factor = Factor(names, (target,), family)
        complete_cells(table, factor)  # raises for incomplete rows
        return [factor]

    def _factor_for_scoring(self, factor: Factor) -> Factor:
        """Return the factor with the family of the class means; the metric is a matrix for all classes."""
        return Factor(factor.columns, factor.given, Gaussian())

    def _count_initial_rows(self, table: Table, weight: SampleWeights, factors: list[Factor]) -> tuple[Tally, None]:
        return self._count_more_rows(table, weight, factors), None

    def _count_more_rows(self, table: Table, weight: SampleWeights, factors: list[Factor] | None = None) -> Tally:
        read_labels(table, self._target).check_complete("Drop the unlabeled rows.")
        like = None if factors is not None else self.tally_
        return classifier_fit.count_rows(self, table, weight, factors or list(self.tally_.factors), like)

    def fit(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Count the class means, and learn the metric if it is "learned".

        Parameters
        ----------
        X : array or data frame of numbers
        y : array-like of shape (n,), or column name of X
        sample_weight : array-like of shape (n,), or column name of X, optional

        Returns
        -------
        self
        """
        self._check_settings()
        fresh = clone(self)
        classifier_fit.fit_initial(fresh, X, y, sample_weight)
        if _is(self.metric, "learned"):
            fresh._train(X, y, sample_weight)
        _ = fresh._estimated_means.projection  # raises for an invalid metric before the model changes
        self._copy_input_format(fresh)._set_tally(fresh.tally_)
        if self._metric_fit is not None and not self._metric_fit.converged:
            steps = len(self._metric_fit.history) - 1
            warn(
                f"the metric did not converge after {steps} iterations ({self._metric_fit.message}), so it may still "
                "change.\n"
                "    Increase max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def partial_fit(
        self, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
    ) -> Self:
        """Count more rows into the class means; a learned metric stays fixed.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            Accepted for compatibility with scikit-learn. A class without rows has no mean and is ignored.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self.fit(X, y, sample_weight)
        complete_cells(read_more_rows(self, X, y, sample_weight)[0], self.tally_.factors[1])  # raises
        return classifier_fit.partial_fit(self, X, y, sample_weight)

    def add_class(self, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Self:
        """Add a class from its rows, at least one; the metric is unchanged.

        Parameters
        ----------
        label : bool, int or str
        X : rows of the new class
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        projection = self._estimated_means.projection
        return classifier_fit.add_class(self, label, X, sample_weight)._with_projection(projection)

    def __add__(self, other: Self) -> Self:
        fit = self._metric_fit
        other_fit = getattr(other, "_metric_fit", None)
        if fit is not None and other_fit is not None and not np.array_equal(fit.projection, other_fit.projection):
            raise StatisticsError(
                "the models have different learned metrics, so their distances have no common scale.\n"
                "    Learn the metric once, then count the other rows with partial_fit."
            )
        return super().__add__(other)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters. A fitted model is updated, except for a metric fixed by `add_class`.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor.

        Returns
        -------
        self
        """
        projection = self._fixed_projection
        super().set_params(**parameters)
        return self._with_projection(None if "metric" in parameters else projection)

    def reestimate(self, **parameters: Any) -> Self:
        """Return a classifier with the same means under other parameters, such as another metric, without data.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor.

        Returns
        -------
        A fitted classifier of the same class
        """
        other = super().reestimate(**parameters)
        return other._with_projection(None if "metric" in parameters else self._fixed_projection)

    _metric_fit: MetricFit | None = None
    _fixed_projection: np.ndarray | None = None  # W before `add_class`, which the tally no longer determines

    def _copy_input_format(self, other: NearestClassMean) -> Self:
        self.input_format_ = other.input_format_
        self._metric_fit = other._metric_fit
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the input format as JSON, for a file."""
        return self.input_format_.to_json()

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        self.input_format_ = InputFormat.from_json(state, tally)

    def _check_loaded(self) -> None:
        """Raise an error if the labels do not have the type that the file names."""
        _ = self.classes_

    def _set_tally(self, tally: Tally, em_result: EMSummary | None = None) -> Self:
        self._fixed_projection = None  # the metric follows the tally
        return super()._set_tally(tally, em_result)

    def _with_projection(self, projection: np.ndarray | None) -> Self:
        """Fix the metric; None lets the tally determine it."""
        self._fixed_projection = projection
        self._cache = {}
        return self

    @property
    def _estimated_means(self) -> EstimatedMeans:
        """The class means and the metric."""

        def estimate() -> EstimatedMeans:
            learned = None if self._metric_fit is None else self._metric_fit.projection
            metric = self.metric, learned, self._fixed_projection
            return EstimatedMeans(self.tally_, self._target, self.classes_, *metric, self._column_names)

        return self._cached("estimated_means", estimate)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.n_components is not None:
            check_count("n_components", self.n_components)

    def _train(self, X: Rows, y: Labels, sample_weight: SampleWeights) -> None:
        table, weight = read_more_rows(self, X, y, sample_weight)
        rows = complete_cells(table, self.tally_.factors[1])
        encoded, observed_classes = table.encoded(self._target, True)
        codes = self._class_domain.positions_of(observed_classes.levels)[encoded]
        weights = check_weight(weight, table.n_rows)
        used = slice(None) if weights is None else weights > 0
        weights = np.ones(table.n_rows) if weights is None else weights
        settings = {"max_iter": self.max_iter, "tol": self.tol, "verbose": self.verbose}
        moments = self._estimated_means.moments
        self._metric_fit = learn_metric(rows[used], codes[used], weights[used], moments, self.n_components, **settings)
        self._cache = {}  # the metric has changed

    @property
    def means_(self) -> np.ndarray:
        """The class means, in the order of ``classes_``."""
        return self._estimated_means.means

    @property
    def parameters_(self) -> Parameters:
        """The parameters by column, a `ParameterTable` each, under the model's estimate.

        Probabilities of levels are labeled by level (of bins by interval); other parameters by name, such as mean,
        variance and rate. Under ``"bayes"`` these are posterior means; predictions integrate the parameters out.
        """
        return self._cached("parameters", self._make_parameters)

    def parameter_table(self, column: Name | tuple[Name, ...]) -> ParameterTable:
        """Return the parameters of one column, ``parameters_[column]``.

        Parameters
        ----------
        column : name
            A column, a block of columns, or a tuple of columns that the model describes jointly.

        Returns
        -------
        ParameterTable
        """
        return looked_up(self.parameters_, column)

    @property
    def class_prior_(self) -> ParameterTable:
        """Return p(class): the fixed probabilities, or their estimate."""
        return self._estimated_means.labeled_class_prior().column(0)

    @property
    def class_log_prior_(self) -> np.ndarray:
        """log p(class), in the order of ``classes_``; −inf for a class with probability zero."""
        return self._estimated_means.class_log_prior

    def _labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class) and every factor given the class, labeled."""
        return self._estimated_means.labeled_factors()

    def show_work(self, row: Rows) -> str:
        """Return a step-by-step calculation of the distances of one row to each mean, and of its class probabilities.

        Parameters
        ----------
        row : the features of one row

        Returns
        -------
        str
        """
        return self._estimated_means.show_work(open_rows(self, row))

    def plot_decision_boundary(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        columns: Iterable[Name] | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot the regions of the nearest means in the plane of two columns; needs matplotlib.

        Distances need complete rows, so all other columns are set to their means.

        Parameters
        ----------
        X, y, columns, ax
            As for `NaiveBayes.plot_decision_boundary`.

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
        from tallybayes.plotting.classifier.plane_models import DistancePlane

        return plot_decision_boundary(DistancePlane(self), X, y, columns, ax)

    def plot_class_means(self, shape: tuple[int, int]) -> Plot:
        """Plot the mean of each class as an image of its columns, row by row; needs matplotlib.

        Parameters
        ----------
        shape : (rows, columns)
            The shape of the image, such as (28, 28).

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.class_means import plot_class_means

        return plot_class_means(self, shape)

    @property
    def _factor_scorers(self) -> list[FactorScorer]:
        """The scorer of every factor."""
        return self._estimated_means.scorers

    def _total_weight(self) -> float:
        """The weight of all rows that were counted."""
        return float(self._class_weights.sum())

    @property
    def _class_weights(self) -> np.ndarray:
        """The weight of the rows of every class."""
        counts: Any = self.tally_[self._target]
        return np.asarray(counts.table)

    def _summary_title(self, n_rows: float) -> str:
        metric_name = self.metric if isinstance(self.metric, str) else "given"
        levels = self._class_domain.levels
        title = title_by_class(type(self).__name__, n_rows, "classes", levels, self._class_weights)
        return f"{title}, metric {metric_name}"

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        return [factor for factor in tally.factors if factor.given]

    def _resolved_priors(self) -> dict[Any, Any]:
        return {}  # the means have no prior

    @property
    def projection_(self) -> np.ndarray:
        """The matrix W of d² = ‖W(x − μ)‖²."""
        projection = self._estimated_means.projection
        if projection is None:
            raise EstimateError(
                "the metric is a callable, so it has no matrix W.\n    Use metric='learned', or pass a matrix."
            )
        return projection

    @property
    def history_(self) -> list[float]:
        """The log loss of a learned metric on the training rows, initially and after each iteration, in nats."""
        check_is_fitted(self, "tally_")
        return [] if self._metric_fit is None else list(self._metric_fit.history)

    @property
    def converged_(self) -> bool:
        """Whether the optimization of a learned metric has converged."""
        check_is_fitted(self, "tally_")
        return self._metric_fit is None or self._metric_fit.converged

    @predict_in_batches
    def squared_distances(self, X: Rows) -> np.ndarray:
        """Return the squared distance of each row to each class mean, shape (n, classes).

        Parameters
        ----------
        X : array or data frame of numbers
        """
        check_is_fitted(self, "tally_")
        return self._estimated_means.squared_distances(open_rows(self, X))

    @predict_in_batches
    def predict(self, X: Rows) -> np.ndarray:
        """Return the class of the nearest mean; ties go to the first class.

        Parameters
        ----------
        X : array or data frame of numbers

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "tally_")
        return self.classes_[self._estimated_means.scores(open_rows(self, X)).argmax(axis=1)]

    @predict_in_batches
    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return p(class | row), shape (n, classes).

        A row that is impossible in every class gets the class prior, and a warning names it.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The class prior of the rows to predict, if it differs from that of the training rows.
        """
        return np.exp(self.predict_log_proba(X))

    @predict_in_batches
    def predict_log_proba(self, X: Rows) -> np.ndarray:
        """Return log p(class | row), shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The class prior of the rows to predict, if it differs from that of the training rows.
        """
        check_is_fitted(self, "tally_")
        return self._estimated_means.log_proba(open_rows(self, X))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a sealed file that `tb.load` reads; a callable metric cannot be saved.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "tally_")
        if callable(self.metric):
            raise FileError(
                "a callable metric cannot be saved: files contain no code.\n"
                "    Save reestimate(metric='euclidean') and set the callable again after loading, with set_params."
            )
        super().save(path)

    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the metric, learned or fixed by `add_class`, for a file."""
        state: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        if self._fixed_projection is not None:
            arrays["metric/kept"] = self._fixed_projection
        if self._metric_fit is not None:
            arrays["metric/learned"] = self._metric_fit.projection
            arrays["metric/history"] = np.array(self._metric_fit.history)
            state = {"converged": self._metric_fit.converged, "message": self._metric_fit.message}
        return state, arrays

    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        d = self._estimated_means.moments.n_columns
        for name in ("metric/kept", "metric/learned"):
            projection = arrays.get(name)
            if projection is not None and (
                projection.ndim != 2 or projection.shape[1] != d or not np.isfinite(projection).all()
            ):
                raise FileError(f"{name} is not a projection of {d} columns.")
        if "metric/learned" in arrays:
            history = [float(value) for value in arrays.pop("metric/history")]
            learned = arrays.pop("metric/learned")
            converged = state.pop("converged")
            message = state.pop("message")
            self._metric_fit = MetricFit(learned, history, bool(converged), str(message))
        self._with_projection(arrays.pop("metric/kept", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def _is(metric: object, name: str) -> bool:
    return isinstance(metric, str) and metric == name
