"""GaussianDiscriminant: Gaussian discriminant analysis with all common covariance structures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.data.table import Table
from tallybayes.errors import EstimateError, NotLinearError, StatisticsError
from tallybayes.estimation.em.em_objective import plot_convergence
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.estimation.scoring.factor_tables import check_cells
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian, SphericalGaussian, TiedGaussian, TiedSphericalGaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, TiedMultivariateGaussian
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.classifier_from_parameters import read_gaussians
from tallybayes.models.classification.independent_blocks import IndependentBlocksMixin
from tallybayes.models.classification.methods.linear_form import linear_terms
from tallybayes.models.discriminant.covariance_choice import choose_covariance
from tallybayes.models.discriminant.estimated_discriminant import EstimatedDiscriminant
from tallybayes.models.discriminant.shrinkage import oas
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.models.sklearn_bases import TransformerMixin
from tallybayes.tally.factor import Factor, Name
from tallybayes.typing import ClassPrior, Labels, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
    from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
    from tallybayes.plotting.plot import Plot
    from tallybayes.tally.tally import Tally
    from tallybayes.tally.text_selection import Selected


class DiscriminantFunctions(NamedTuple):
    """Linear discriminant functions: log p(class | x) = intercept + x · coef + a constant common to all classes."""

    intercept: np.ndarray
    coef: np.ndarray


class GaussianDiscriminant(TransformerMixin, IndependentBlocksMixin, Classifier):
    """Gaussian discriminant analysis: quadratic, linear, diagonal, spherical, regularized, Bayesian.

    The tally contains the moments of each class, including products. One pass over the data gives every covariance and
    every estimate by `reestimate`.

    Parameters
    ----------
    covariance : {"auto", "full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"}, default "auto"
        ``"full"`` is quadratic discriminant analysis (QDA), ``"tied"`` linear discriminant analysis (LDA),
        ``"diagonal"`` Gaussian naive Bayes, ``"tied_diagonal"`` diagonal LDA. ``"auto"`` is full or tied, by the
        leave-one-out log loss of the first rows, at most 20,000; the choice stays fixed, also after forgetting and in
        the folds of `cross_validate`.
    shrinkage : float in [0, 1], "auto" or None
        λ of λ·diag(Σ) + (1 − λ)·Σ, regularized discriminant analysis, per class or for the tied covariance. ``"auto"``
        is the oracle-approximating shrinkage (OAS) of the correlations, from the moments only.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` is the posterior predictive: a multivariate t from a normal-inverse-Wishart. ``"unbiased"`` is R's.
    prior : NormalInverseWishart, NormalInverseGamma (diagonal and spherical covariance), "empirical" or Tally, optional
        None is a weak prior, equivariant to scales and offsets of the columns. ``"empirical"`` maximizes the marginal
        likelihood of the classes' moments (empirical Bayes), and is equivariant, too. A tally of the same columns is
        counted before the training rows.
    class_prior : {label: probability}, "uniform", "frequency", Dirichlet or None
        "frequency" uses the class frequencies. None adds one pseudo-count per class under estimates with a prior, so
        that a declared class without rows is possible. The class prior does not influence the covariance.
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
    covariance_ : str
        The covariance in use, as given or chosen.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.GaussianDiscriminant().fit(X, y).covariance_
    'full'
    >>> quadratic = tb.GaussianDiscriminant("full").fit(X, y)
    >>> linear = quadratic.reestimate(covariance="tied")       # no data needed
    >>> round(quadratic.score(X, y), 3), round(linear.score(X, y), 3)
    (0.98, 0.98)
    """

    families: ClassVar[dict[str, type[Family]]] = {
        "full": MultivariateGaussian,
        "tied": TiedMultivariateGaussian,
        "diagonal": Gaussian,
        "tied_diagonal": TiedGaussian,
        "spherical": SphericalGaussian,
        "tied_spherical": TiedSphericalGaussian,
    }

    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        **Classifier._string_options,
        "covariance": StringOptions(("auto", *families)),
    }

    def __init__(
        self,
        covariance: str = "auto",
        *,
        shrinkage: float | str | None = None,
        estimate: str = "bayes",
        prior: NormalInverseWishart | NormalInverseGamma | Tally | str | None = None,
        class_prior: ClassPrior = None,
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
        self.covariance = covariance
        self.shrinkage: Any = shrinkage
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior
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
        means: Mapping[Any, Any] | npt.ArrayLike,
        covariances: Mapping[Any, Any] | npt.ArrayLike,
        class_prior: ClassPrior = None,
        *,
        classes: Iterable[Hashable] | None = None,
        covariance: str = "full",
        columns: Sequence[Name] | None = None,
        strength: float | None = None,
        **options: Any,
    ) -> GaussianDiscriminant:
        """Return a discriminant with user-specified means and covariances.

        Parameters
        ----------
        means : by class, a number for every column
            A mapping of lists, arrays or mappings by column, a data frame with a row for every class, or an array.
        covariances : array-like, its shape depends on `covariance`
            A matrix for every class (``"full"``), one for all (``"tied"``), the variances of every class
            (``"diagonal"``) or of all (``"tied_diagonal"``), one variance for every class (``"spherical"``) or one for
            all (``"tied_spherical"``). A matrix for every class is always accepted and reduced to the type of
            `covariance`; a tied matrix is their mean, weighted by `class_prior`.
        class_prior : p(class), as a mapping, series or array; uniform by default
        classes : sequence of labels, optional
            The classes of arrays; by default 0, 1, …
        covariance : as for the constructor
        columns : sequence of names, optional
            The column names; by default those of mappings and frames, or 0, 1, …
        strength : float, optional
            Use the parameters as a prior; see `NaiveBayes.from_parameters`.
        **options
            Parameters of the constructor; ``shrinkage=`` shrinks the covariances.

        Returns
        -------
        GaussianDiscriminant

        Examples
        --------
        >>> import tallybayes as tb
        >>> means, covariances = {"a": [0, 0], "b": [4, 0]}, {"a": [[1, 0], [0, 1]], "b": [[1, 0], [0, 1]]}
        >>> tb.GaussianDiscriminant.from_parameters(means, covariances).predict_proba([[2, 7]])
        array([[0.5, 0.5]])
        """
        stated = read_gaussians(means, covariances, class_prior, classes, covariance, columns)
        return cls(covariance, **options)._with_parameters(stated, strength)

    def plot_convergence(self, ax: Axes | None = None) -> Plot:
        """Plot the objective of EM by iteration, for every initialization."""
        check_is_fitted(self, "tally_")
        return plot_convergence(self._em_result, type(self).__name__, ax)

    def _make_factors(self, table: Table, target: Name, weight: SampleWeights) -> list[Factor]:
        names = tuple(name for name in table.columns if name != target)
        table.require_numbers(names)
        chosen = choose_covariance(self, table, names, target, weight) if self.covariance == "auto" else "full"
        return [Factor(names, (target,), self.families[chosen]())]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_settings(self) -> None:
        """Check the parameters; raise EstimateError for invalid shrinkage."""
        super()._check_settings()
        shrinkage = self.shrinkage
        if shrinkage is not None:
            if self.covariance not in ("auto", "full", "tied"):
                raise EstimateError(
                    f"shrinkage={shrinkage!r} has no effect on a {self.covariance!r} covariance (no correlations).\n"
                    "    Use covariance='full' or 'tied', or omit shrinkage."
                )
            number = isinstance(shrinkage, int | float | np.integer | np.floating) and not isinstance(shrinkage, bool)
            auto = isinstance(shrinkage, str) and shrinkage == "auto"
            if not auto and not (number and 0 <= shrinkage <= 1):
                raise EstimateError(f"shrinkage is {shrinkage!r}; expected a number from 0 to 1, 'auto' or None.")

    def _check_mergeable(self, other: GaussianDiscriminant) -> None:
        """Raise StatisticsError if the models have chosen different covariances."""
        if self.covariance_ != other.covariance_:
            raise StatisticsError(
                f"the models chose other covariances: {self.covariance_!r} here and {other.covariance_!r} there.\n"
                "    Set the same one on both, without data: reestimate(covariance='tied') or 'full'."
            )

    def _estimates_of(self, tally: Tally, words: Selected) -> EstimatedDiscriminant:
        """Return the estimates from a tally under the parameters of this model."""
        family = self._factor_for_scoring(tally.factors[1]).family
        return EstimatedDiscriminant(**self._estimation_settings(tally, words), family=family, shrinkage=self.shrinkage)

    def _repr_lines(self) -> list[str]:
        """Return a line with the chosen covariance."""
        return [f"    covariance: {self.covariance_}"] if self.covariance == "auto" else []

    @property
    def covariance_(self) -> str:
        """The covariance in use, as given or chosen."""
        check_is_fitted(self, "tally_")
        names = {family: name for name, family in self.families.items()}
        return names[type(self._factor_for_scoring(self.tally_.factors[1]).family)]

    @property
    def _estimates(self) -> EstimatedDiscriminant:
        """The estimated factors and the class prior."""
        estimates = self._estimated_classifier
        assert isinstance(estimates, EstimatedDiscriminant)
        return estimates

    def _factor_for_scoring(self, factor: Factor) -> Factor:
        """Return the factor in the family of `covariance`; a chosen one is that of the tally."""
        if self.covariance == "auto" and type(factor.family) in self.families.values():
            return factor
        family = self.families["full" if self.covariance == "auto" else self.covariance]()
        return Factor(factor.columns, factor.given, family)

    def _check_has_likelihood_measures(self, what: str) -> None:
        if self.shrinkage not in (None, 0):
            raise EstimateError(
                f"a model with shrinkage={self.shrinkage!r} has no {what}: a shrunk covariance is not a posterior.\n"
                "    Use reestimate(shrinkage=None), or express the shrinkage as a prior, a tb.NormalInverseWishart."
            )

    @property
    def shrinkage_(self) -> Any:
        """The λ in use: one number, or one per class for ``shrinkage="auto"``."""
        check_is_fitted(self, "tally_")
        if self.shrinkage != "auto":
            return 0.0 if self.shrinkage is None else float(self.shrinkage)
        amount = oas(self._estimates.moments, tied=self.covariance_ == "tied")
        return float(amount[0]) if self.covariance_ == "tied" else amount

    def shrinkage_path(self, lambdas: Iterable[float]) -> list[Self]:
        """Return fitted models of the same moments under each λ, without data.

        Parameters
        ----------
        lambdas : iterable of float

        Returns
        -------
        list of GaussianDiscriminant
        """
        return [self.reestimate(shrinkage=float(amount)) for amount in lambdas]

    @property
    def discriminant_functions_(self) -> DiscriminantFunctions:
        """γ and β of each class, log p(class | x) = γ + x · β + const, if the covariance is tied and plugged in."""
        check_is_fitted(self, "tally_")
        try:
            coef, bias = linear_terms(self._estimated_classifier.scorers[0])
        except NotLinearError:
            raise NotLinearError(
                "the discriminants are linear only with a tied covariance and a plugged-in point estimate.\n"
                "    Use reestimate(covariance='tied', estimate='map') or another tied covariance and point estimate."
            ) from None
        return DiscriminantFunctions(self.class_log_prior_ + bias, coef)

    @predict_in_batches
    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first class.

        Parameters
        ----------
        X : array or data frame of numbers; missing cells are marginalized

        Returns
        -------
        ndarray of shape (n,)
        """
        estimates = self._estimates
        scored = estimates.scorers[0]
        if (
            self._calibration is not None
            or scored.predictive
            or not scored.family.full_moments
            or "groups" not in scored.family.tied_over
        ):
            return super().predict(X)
        # With a tied covariance the quadratic term is common to all classes, so a linear function decides.
        estimates.check_defined(estimates.class_log_prior)
        table = open_rows(self, X)
        rows = estimates.cells(table, scored)
        codes = np.empty(table.n_rows, dtype=np.intp)
        coef, bias, center = estimates.centered_terms
        for start in range(0, table.n_rows, 1024):  # few enough rows to stay in cache
            part = slice(start, start + 1024)
            piece = chunk_of(rows, part)
            score = (piece if center is None else piece - center) @ coef + bias
            if not np.isfinite(score).all():  # a missing or invalid cell, or a class without weight
                return super().predict(X)
            codes[part] = score.argmax(axis=1)
        return self.classes_[codes]

    @property
    def scalings_(self) -> np.ndarray:
        """The discriminant directions (Fisher 1936), shape (columns, n), which whiten the pooled covariance.

        They are ordered by the separation of the class means; their number is at most the number of classes minus 1.
        """
        return self._estimates.scalings

    def transform(self, X: Rows) -> np.ndarray:
        """Project rows onto the discriminant directions, centered at the overall mean.

        Parameters
        ----------
        X : array-like of shape (n, columns)

        Returns
        -------
        ndarray of shape (n, directions)
            NaN where a cell is missing.
        """
        table = open_rows(self, X)
        estimates = self._estimates
        scored = estimates.scorers[0]
        rows = chunk_of(estimates.cells(table, scored), slice(None))
        check_cells(scored, rows)
        return (rows - estimates.class_moments.center) @ estimates.scalings

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the discriminant directions, as scikit-learn numbers them: "gaussiandiscriminant0".

        Parameters
        ----------
        input_features : ignored
        """
        return np.array([f"gaussiandiscriminant{k}" for k in range(self.scalings_.shape[1])], dtype=object)

    def plot_projection(self, X: Rows, y: Labels, ax: Axes | None = None) -> Plot:
        """Plot rows on the first two discriminant directions, colored by class; needs matplotlib.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : array-like of shape (n,)
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.classifier.decision_boundary import plot_projection

        return plot_projection(self, X, y, ax)
