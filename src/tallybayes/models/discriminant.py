"""GaussianDiscriminant: every discriminant analysis from one set of moments."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, EstimateError, NotLinearError
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian, SphericalGaussian, TiedGaussian, TiedSphericalGaussian
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, TiedMultivariateGaussian
from tallybayes.inference.missing_cells import Completed, complete_moments
from tallybayes.models.factored import FactoredModel
from tallybayes.models.generative import GenerativeClassifier
from tallybayes.models.linear import gaussian_terms
from tallybayes.models.plan import check_cells
from tallybayes.models.scoring import Scored, check_spread_within, chunk_of
from tallybayes.sources.collect import check_weight
from tallybayes.sources.table import Table
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.statistics import Statistics
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally


class DiscriminantFunctions(NamedTuple):
    """Linear discriminants: log p(class | x) = intercept + x · coef + a term common to all classes."""

    intercept: np.ndarray
    coef: np.ndarray


class GaussianDiscriminant(TransformerMixin, GenerativeClassifier):
    """Gaussian discriminant analysis: quadratic, linear, diagonal, spherical, regularised, Bayesian.

    The tally holds the moments of every class, products included, so every covariance and every estimate can be had
    from one pass over the data: `reestimate`.

    Parameters
    ----------
    covariance : {"full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"}, default "full"
        ``"full"`` is quadratic discriminant analysis, ``"tied"`` linear, ``"diagonal"`` Gaussian naive Bayes,
        ``"tied_diagonal"`` diagonal linear.
    shrinkage : float in [0, 1], "auto" or None
        λ of λ·diag(Σ) + (1 − λ)·Σ, regularised discriminant analysis, per class or for the tied covariance. ``"auto"``
        is the oracle-approximating λ (OAS) of the correlations, from the moments alone.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` is the full Bayesian predictive: normal-inverse-Wishart to multivariate t. ``"unbiased"`` is R's.
    prior : NormalInverseWishart, or NormalInverseGamma for diagonal and spherical covariances, or a Tally, optional
        None is a weak prior that no scale or offset of a column changes. A tally of the same columns
        counts as seen before.
    class_prior : {label: probability}, "uniform", Dirichlet or None
        None is the classes' share of the rows. It never touches the covariance.

    Attributes
    ----------
    tally_ : Tally
        All that was learnt.
    classes_ : ndarray

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> quadratic = tb.GaussianDiscriminant().fit(X, y)
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

    def __init__(
        self,
        covariance: str = "full",
        *,
        shrinkage: Any = None,
        estimate: str = "bayes",
        prior: Any = None,
        class_prior: Any = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior

    def _make_factors(self, table: Table, target: Name) -> list[Factor]:
        self._family()
        names = tuple(name for name in table.columns if name != target)
        labels = [name for name in names if table.kind(name) == "label"]
        if labels:
            raise DataError.wrong_type(
                f"column {labels[0]!r}", "a column of labels", "numbers", "tb.NaiveBayes takes columns of both kinds."
            )
        return [Factor(names, (target,), MultivariateGaussian())]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _family(self) -> Family:
        """The family that reads the moments."""
        if self.covariance not in self.families:
            raise EstimateError(f"covariance is {self.covariance!r}; expected one of {list(self.families)}.")
        shrinkage = self.shrinkage
        if shrinkage is not None:
            if self.covariance not in ("full", "tied"):
                raise EstimateError(
                    f"shrinkage={shrinkage!r} does nothing to a {self.covariance!r} covariance, without correlations.\n"
                    "    Use covariance='full' or 'tied', or leave shrinkage out."
                )
            number = isinstance(shrinkage, int | float | np.integer | np.floating) and not isinstance(shrinkage, bool)
            auto = isinstance(shrinkage, str) and shrinkage == "auto"
            if not auto and not (number and 0 <= shrinkage <= 1):
                raise EstimateError(f"shrinkage is {shrinkage!r}; expected a number from 0 to 1, 'auto' or None.")
        return self.families[self.covariance]()

    def _feature_factors(self) -> list[tuple[Factor, Statistics]]:
        """The one factor, read by the family of `covariance`, with its scatter shrunk."""
        (factor, moments), family = super()._feature_factors()[0], self._family()
        assert isinstance(moments, Moments)
        if self.shrinkage is not None:
            moments = shrunk(moments, self.shrinkage, tied=self.covariance == "tied")
        return [(Factor(factor.columns, factor.given, family), moments)]

    def _forgets_by_row(self) -> bool:
        """Shrinking changes more of a covariance than the row brought to it."""
        return self.shrinkage is None

    def _count(self, table: Table, weight: Any, factors: list[Factor] | None = None) -> Tally:
        try:
            return super()._count(table, weight, factors)
        except DataError:
            rows = chunk_of(table.numbers(self._columns(table)), slice(None))
            if not np.isnan(rows).any():
                raise
            if np.isinf(rows).any():
                row, column = (int(i) for i in np.argwhere(np.isinf(rows))[0])
                name = self._columns(table)[column]
                raise DataError.bad_cell(float(rows[row, column]), row, name, Gaussian.expects) from None
            if factors is None:
                raise DataError(
                    "some of these rows have missing cells, which under a full covariance are filled in by EM over all "
                    "rows at once.\n    Use fit on all rows, or leave the incomplete ones out."
                ) from None
            return self._complete(table, weight, rows, factors)

    def _columns(self, table: Table) -> list[Name]:
        return [name for name in table.columns if name != self._target]

    def _complete(self, table: Table, weight: Any, rows: np.ndarray, factors: list[Factor]) -> Tally:
        """The tally with expected moments, where cells are missing."""
        classes = super()._count(table, weight, factors[:1])
        domain = classes.domains[str(self._target)]
        codes, found = table.levels([self._target], lambda _: True)
        group = np.append(domain.positions_of(found[0].levels), -1)[np.asarray(codes.columns[0]).astype(np.intp)]
        weights = check_weight(weight, table.n_rows)
        factor = Factor(factors[1].columns, factors[1].given, self._family())
        if self.estimate in ("mle", "unbiased"):
            counted = Gaussian().collect(rows, group, len(domain.levels), weights).weight
            for code, column in np.argwhere(counted == 0):
                where = f"column {factor.column(int(column))!r} in class {domain.levels[code]!r}"
                raise DataError.no_data(where, self.estimate)

        def check(parameters: Any, moments: Moments) -> None:
            check_spread_within(Scored(factor, parameters, False, np.zeros(0, np.intp)), moments, domain.levels)

        done = complete_moments(
            rows, group, len(domain.levels), weights, factor.family, self.prior, self.estimate, check=check
        )
        if not done.converged:
            warnings.warn(
                f"the missing cells were still being filled in after {len(done.history)} steps of EM.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self._completed: Completed | None = done
        return Tally(factors, [*classes.statistics, done.moments], classes.domains, classes.schema, soft=True)

    def _clear(self) -> None:
        super()._clear()
        self._completed = None

    def _take_from(self, other: FactoredModel) -> Self:
        self._completed = getattr(other, "_completed", None)
        return super()._take_from(other)

    @property
    def history_(self) -> list[float]:
        """The objective of EM after every step, where `fit` met missing cells: the log posterior or likelihood."""
        done = getattr(self, "_completed", None)
        return [] if done is None else done.history

    @property
    def shrinkage_(self) -> Any:
        """The λ in use: one number, or one per class where ``shrinkage="auto"`` finds one for each."""
        check_is_fitted(self, "tally_")
        if self.shrinkage != "auto":
            return 0.0 if self.shrinkage is None else float(self.shrinkage)
        moments = super()._feature_factors()[0][1]
        assert isinstance(moments, Moments)
        amount = oas(moments, tied=self.covariance == "tied")
        return float(amount[0]) if self.covariance == "tied" else amount

    def shrinkage_path(self, lambdas: Any) -> list[Self]:
        """The same moments under each λ: fitted models, without touching the data.

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
        """γ and β of every class, log p(class | x) = γ + x · β + const, where one covariance serves all classes."""
        check_is_fitted(self, "tally_")
        scored = self._scored[0]
        if scored.predictive or "groups" not in getattr(scored.family, "shared", ()):
            raise NotLinearError(
                "the discriminants are linear only where the classes share their covariance and it is plugged in.\n"
                "    Use reestimate(covariance='tied', estimate='map') or another tied covariance and point estimate."
            )
        coef, bias = gaussian_terms(scored)
        return DiscriminantFunctions(self.class_log_prior_ + bias, coef)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row; ties go to the first.

        Parameters
        ----------
        X : array or data frame of numbers; missing cells are marginalised

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "tally_")
        scored = self._scored[0]
        if scored.predictive or not isinstance(scored.family, TiedMultivariateGaussian):
            return super().predict(X)
        # One covariance for all, plugged in: the quadratic term is common to the classes, and a linear one decides.
        self._check_estimated(self.class_log_prior_)
        table = self._open(X)
        rows, codes = self._rows(table, scored), np.empty(table.n_rows, dtype=np.intp)
        coef, bias, centre = self._derive("linear", lambda: _centred_terms(scored, self.class_log_prior_))
        for start in range(0, table.n_rows, 1024):  # few enough rows to stay in cache
            part = slice(start, start + 1024)
            piece = chunk_of(rows, part)
            score = (piece if centre is None else piece - centre) @ coef + bias
            if not np.isfinite(score).all():  # a missing cell, a forbidden one, or a class without weight
                return super().predict(X)
            codes[part] = score.argmax(axis=1)
        return self.classes_[codes]

    @property
    def scalings_(self) -> np.ndarray:
        """The discriminant directions, shape (columns, n): within them the pooled covariance is the identity.

        Fisher's: ordered by how far they part the classes, at most one fewer than there are classes.
        """
        check_is_fitted(self, "tally_")
        return self._derive("scalings", self._make_scalings)

    def _make_scalings(self) -> np.ndarray:
        moments = super()._feature_factors()[0][1]
        assert isinstance(moments, Moments)
        weight, mean = moments.weight[..., 0], moments.mean
        n_classes = int((weight > 0).sum())
        within = moments.scatter.sum(axis=0) / max(weight.sum() - n_classes, 1.0)
        deviation = np.sqrt(np.diagonal(within))
        deviation = np.where(deviation > 0, deviation, 1.0)
        values, vectors = np.linalg.eigh(within / np.outer(deviation, deviation))
        kept = values > 1e-12 * values.max(initial=0.0)
        white = vectors[:, kept] / np.sqrt(values[kept]) / deviation[:, None]
        centre = weight @ mean / weight.sum()
        between = np.sqrt(weight)[:, None] * (mean - centre) @ white
        _, sizes, rotation = np.linalg.svd(between, full_matrices=False)
        n_directions = min(n_classes - 1, int((sizes > 1e-10 * sizes.max(initial=0.0)).sum())) if sizes.size else 0
        return white @ rotation[:n_directions].T

    def transform(self, X: Any) -> np.ndarray:
        """Rows projected onto the discriminant directions, from the mean of all rows.

        Parameters
        ----------
        X : array-like of shape (n, columns)

        Returns
        -------
        ndarray of shape (n, directions)
        """
        check_is_fitted(self, "tally_")
        table = self._open(X)
        scored = self._scored[0]
        rows = chunk_of(self._rows(table, scored), slice(None))
        check_cells(scored, rows)
        moments = super()._feature_factors()[0][1]
        assert isinstance(moments, Moments)
        return (rows - moments.pooled().mean) @ self.scalings_

    def plot_decision(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """The regions of the classes in two columns, with an ellipse of each class; needs matplotlib.

        Parameters
        ----------
        X : array-like of shape (n, 2), optional
            Rows to draw on top.
        y : array-like of shape (n,), optional
            Their classes.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        check_is_fitted(self, "tally_")
        from tallybayes.plots.models import plot_decision

        return plot_decision(self, X, y, ax)

    def plot_projection(self, X: Any, y: Any, ax: Any = None) -> Any:
        """Rows on the first two discriminant directions, coloured by class; needs matplotlib.

        Parameters
        ----------
        X : array-like of shape (n, columns)
        y : array-like of shape (n,)
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from tallybayes.plots.models import plot_projection

        return plot_projection(self, X, y, ax)


def oas(moments: Moments, *, tied: bool) -> np.ndarray:
    """The oracle-approximating shrinkage of the correlations of every class, or of all together.

    It needs the number of rows, the trace and the sum of squares only (Chen, Wiesel, Eldar and Hero, 2010).
    """
    scatter, weight = moments.scatter, moments.weight[..., 0]
    if tied:
        scatter, weight = scatter.sum(axis=0, keepdims=True), weight.sum(keepdims=True)
    variance = np.diagonal(scatter, axis1=-2, axis2=-1)
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = scatter / (deviation[..., :, None] * deviation[..., None, :])
    d = moments.n_columns
    level = (variance > 0).mean(axis=-1)  # the mean variance after scaling, 1 unless a column is constant
    spread = (correlation**2).mean(axis=(-2, -1))
    gap = (weight + 1) * (spread - level**2 / d)
    amount = np.where(gap > 0, (spread + level**2) / np.where(gap > 0, gap, 1.0), 1.0)
    return np.minimum(amount, 1.0)


def shrunk(moments: Moments, shrinkage: Any, *, tied: bool) -> Moments:
    """Moments whose scatter is λ·diag(S) + (1 − λ)·S."""
    amount = oas(moments, tied=tied) if shrinkage == "auto" else np.array([float(shrinkage)])
    off = moments.scatter * (1 - np.eye(moments.n_columns))
    return moments.with_scatter(-amount[:, None, None] * off)


def _centred_terms(scored: Scored, log_prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Weights (columns, classes), biases and a centre: scores linear in the rows about it.

    The centre is None where the rows are so near 0 that they keep their digits without.
    """
    mean = np.array(scored.parameters.mean, dtype=float)
    centre = np.nanmean(mean, axis=0)
    gap = mean - centre
    gap[:, scored.constant] = 0.0
    coef = np.linalg.solve(np.asarray(scored.parameters.covariance)[0], gap.T)
    coef[scored.constant] = 0.0
    bias = log_prior - 0.5 * (coef * gap.T).sum(axis=0)
    deviation = np.sqrt(np.diagonal(np.asarray(scored.parameters.covariance)[0]))
    if (np.abs(centre) < 1000 * deviation).all():
        return coef, bias - centre @ coef, None
    return coef, bias, centre
