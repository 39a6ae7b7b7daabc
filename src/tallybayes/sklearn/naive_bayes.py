"""The five naive Bayes classifiers of `sklearn.naive_bayes`, fitted on counts of `tallybayes.NaiveBayes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn.naive_bayes as theirs
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_non_negative, validate_data

import tallybayes as tb
from tallybayes.sklearn.drop_in import (
    Batch,
    SklearnDropIn,
    by_class,
    counts_of,
    merged_model,
    statistics_of,
    weights_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from tallybayes.sklearn.drop_in import ClassModel, Matrix, Rows


class NaiveBayesCounting(SklearnDropIn):
    """Base class of the five classifiers: `fit` and `partial_fit`."""

    def fit(self, X: Rows, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the classifier; previously counted rows are discarded.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, columns)
        y : array-like of shape (n,)
            The class labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(
        self,
        X: Rows,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count more rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, columns)
        y : array-like of shape (n,)
            The class labels.
        classes : array-like, optional
            All classes. Required at the first call.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        self._validate_params()  # type: ignore[attr-defined]
        first = not hasattr(self, "classes_")
        rows, labels = self._validate(X, y, reset=first)
        known_classes = vars(self).get("classes_")
        before = getattr(self, "model_", None)
        _check_partial_fit_first_call(self, classes)
        declared = self.classes_
        if known_classes is not None and classes is not None and np.size(classes) != len(known_classes):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {known_classes}"
            )
        try:
            weight = weights_of(sample_weight, rows)
            model = self._count(rows, labels, weight, declared)
            unknown = np.setdiff1d(model.classes_, declared)
            if len(unknown):
                raise ValueError(f"The target label(s) {unknown} in y do not exist in the initial classes {declared}")
            model = model if before is None else merged_model(before, model)
            return self._set_tally(model, Batch(rows, labels, weight, before is None))
        except BaseException:
            if known_classes is None:
                del self.classes_  # the call failed, so the next call is again the first one
            raise


class GaussianNB(NaiveBayesCounting, theirs.GaussianNB):
    """Drop-in replacement for `sklearn.naive_bayes.GaussianNB`: the same constructor, attributes and predictions.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        The prior class probabilities; the class frequencies by default.
    var_smoothing : float, default 1e-9
        This fraction of the largest variance of any column is added to all variances.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model; its variances are those of the rows, without `var_smoothing`.

    Examples
    --------
    >>> from tallybayes.sklearn import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GaussianNB().fit(X, y)
    >>> clf.predict(X[:3]), clf.theta_[0]
    (array([0, 0, 0]), array([5.006, 3.428, 1.462, 0.246]))
    """

    def _make_model(self) -> tb.NaiveBayes:
        """Return the unfitted model that counts the rows."""
        return tb.NaiveBayes(tb.Gaussian(), estimate="mle", class_prior="frequency")

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        count = counts_of(model)
        moments = statistics_of(model)
        tally = model.tally_
        weight = np.where(count > 0, count, 1.0)[:, None]
        if batch is None or (batch.is_first and batch.weight is None):
            pooled = moments.pool_groups()
            largest = float((pooled.scatter / np.maximum(pooled.weight, 1e-300)).max(initial=0.0))
        else:  # as in scikit-learn: the unweighted variance of the last batch only
            largest = float(np.var(np.asarray(batch.X), axis=0).max())
        epsilon = self.var_smoothing * largest
        extra = moments.with_scatter(np.broadcast_to(epsilon * count[:, None], moments.mean.shape))
        smoothed = tb.Tally(tally.factors, [tally.statistics[0], extra], tally.domains, tally.schema)
        attributes = {
            "class_count_": count,
            "class_prior_": self._prior(count),
            "theta_": np.array(moments.mean),
            "var_": moments.scatter / weight + epsilon,
        }
        dtype = getattr(self, "theta_", count).dtype if batch is None else batch.dtype
        attributes = {name: array.astype(dtype, copy=False) for name, array in attributes.items()}
        return attributes | {"epsilon_": epsilon, "_smoothed": self._make_model().fit_tally(smoothed)}

    def _prior(self, count: np.ndarray) -> np.ndarray:
        """Return the prior class probabilities, validated with scikit-learn's messages."""
        if self.priors is None:
            return count / count.sum()
        priors = np.asarray(self.priors, dtype=float)
        if len(priors) != len(count):
            raise ValueError("Number of priors must match number of classes.")
        if not np.isclose(priors.sum(), 1.0):
            raise ValueError("The sum of the priors should be 1.")
        if (priors < 0).any():
            raise ValueError("Priors must be non-negative.")
        return priors

    def _check_X(self, X: Rows) -> Matrix:  # noqa: N802
        """Return the validated rows of a query."""
        return validate_data(self, X, reset=False)

    def _joint_log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return log p(class, row)."""
        joint = self._smoothed.predict_joint_log_proba(self._named(X))
        if self.priors is not None:  # a class without training rows is impossible, whatever its prior
            with np.errstate(divide="ignore"):
                seen = self.class_count_ > 0
                joint += np.where(seen, np.log(self.class_prior_), 0.0) - np.where(
                    seen, self._smoothed.class_log_prior_, 0.0
                )
        return joint.astype(self.theta_.dtype, copy=False)


class DiscreteCounting(NaiveBayesCounting):
    """Base class of the four classifiers of counts: additive smoothing and class priors."""

    _reads = {"accept_sparse": "csr"}  # noqa: RUF012
    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    n_features_in_: int

    def _smoothing(self) -> Any:
        """Return the smoothing parameter α after scikit-learn's validation, which warns if it is too small."""
        return self._check_alpha()  # type: ignore[attr-defined]

    def _model_of(self, family: tb.Family, make_prior: Callable[[np.ndarray], Any]) -> tb.NaiveBayes:
        """Return a model under the prior that corresponds to α; without a prior if α is 0 for some column."""
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.ndim and len(alpha) != self.n_features_in_:
            self._smoothing()  # raises the error
        alpha = alpha if self.force_alpha else np.maximum(alpha, 1e-10)
        class_prior = "frequency" if self.fit_prior else "uniform"
        if not (alpha > 0).all():
            return tb.NaiveBayes(family, estimate="mle", class_prior=class_prior)
        return tb.NaiveBayes(family, prior=make_prior(alpha), class_prior=class_prior)

    def _joint_of_model(self, rows: Matrix) -> np.ndarray:
        """Return log p(class, row).

        `class_prior` is used as given, even if it does not sum to 1, as in scikit-learn.
        """
        joint = self.model_.predict_joint_log_proba(self._named(rows))
        return joint if self.class_prior is None else joint + np.log(np.sum(self.class_prior))

    def _class_attributes(self, model: ClassModel) -> dict[str, Any]:
        """Return `class_count_` and `class_log_prior_`."""
        count = counts_of(model)
        n_classes = len(model.classes_)
        if self.class_prior is not None:
            if len(self.class_prior) != n_classes:
                raise ValueError("Number of priors must match number of classes.")
            log_prior = np.log(self.class_prior)
        elif self.fit_prior:
            with np.errstate(divide="ignore"):
                log_prior = np.log(count) - np.log(count.sum())
        else:
            log_prior = np.full(n_classes, -np.log(n_classes))
        return {"class_count_": count, "class_log_prior_": log_prior}

    def _set_tally(self, model: ClassModel, batch: Batch | None = None) -> Self:
        """Set the fitted attributes; `class_prior` becomes that of the model."""
        if self.class_prior is not None and len(self.class_prior) == len(model.classes_):
            probabilities = np.asarray(self.class_prior, dtype=float) / np.sum(self.class_prior)
            model = model.reestimate(class_prior=by_class(model.classes_, probabilities))
        return super()._set_tally(model, batch)


class BernoulliNB(DiscreteCounting, theirs.BernoulliNB):
    """Drop-in replacement for `sklearn.naive_bayes.BernoulliNB`: the same constructor, attributes and predictions.

    Parameters
    ----------
    alpha : float or array-like of shape (columns,), default 1
        The pseudo-count added to the rows with 1 and to the rows with 0 of each column.
    force_alpha : bool, default True
        Whether an alpha below 1e-10 is used as given rather than replaced by 1e-10.
    binarize : float or None, default 0
        Values above this threshold are 1. With None, the values must already be 0 or 1.
    fit_prior : bool, default True
        Whether class frequencies are the prior class probabilities; otherwise these are uniform.
    class_prior : array-like of shape (n_classes,), optional
        The prior class probabilities.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model, with prior Beta(α, α).

    Examples
    --------
    >>> from tallybayes.sklearn import BernoulliNB
    >>> clf = BernoulliNB().fit([[0, 1], [1, 1], [1, 0]], ["a", "a", "b"])
    >>> clf.predict([[0, 1]]), clf.feature_count_
    (array(['a'], dtype='<U1'), array([[1., 2.],
           [1., 0.]]))
    """

    def _make_model(self) -> tb.NaiveBayes:
        """Return the unfitted model that counts the rows."""
        return self._model_of(tb.Bernoulli(), lambda alpha: tb.Beta(alpha, alpha))

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        attributes = self._class_attributes(model)
        alpha = self._smoothing()
        counts = np.array(statistics_of(model).total)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_prob = np.log(counts + alpha) - np.log(attributes["class_count_"][:, None] + 2 * np.asarray(alpha))
        return attributes | {"feature_count_": counts, "feature_log_prob_": log_prob}

    def _check_X(self, X: Rows) -> Matrix:  # noqa: N802
        """Return the validated and binarized rows of a query."""
        return self._counted(validate_data(self, X, accept_sparse="csr", reset=False))

    def _joint_log_likelihood(self, X: Matrix) -> np.ndarray:
        """Return log p(class, row)."""
        return self._joint_of_model(X)

    def _counted(self, rows: Matrix) -> Matrix:
        """Return the binarized rows: 1 above the threshold `binarize`, 0 elsewhere."""
        if self.binarize is None:
            return rows
        if isinstance(rows, np.ndarray):
            return np.asarray(self.binarize < rows)
        above: Any = rows.tocsr().copy()
        above.data = (above.data > self.binarize).astype(float)
        above.eliminate_zeros()
        return above


class TokenCounting(DiscreteCounting):
    """Base class for rows of counts over one vocabulary; counts may be fractions."""

    def _make_model(self) -> tb.NaiveBayes:
        """Return the unfitted model that counts the rows."""
        n_columns = self.n_features_in_
        return self._model_of(tb.Multinomial(), lambda alpha: tb.Dirichlet(np.broadcast_to(alpha, n_columns)))

    def _validate(self, X: Rows, y: npt.ArrayLike, *, reset: bool) -> tuple[Matrix, np.ndarray]:
        """Return validated rows and labels; raise ValueError for negative counts."""
        rows, labels = super()._validate(X, y, reset=reset)
        check_non_negative(rows, f"{type(self).__name__} (input X)")
        return rows, labels


class MultinomialNB(TokenCounting, theirs.MultinomialNB):
    """Drop-in replacement for `sklearn.naive_bayes.MultinomialNB`: the same constructor, attributes and predictions.

    Parameters
    ----------
    alpha : float or array-like of shape (columns,), default 1
        The pseudo-count added to the count of each column.
    force_alpha : bool, default True
        Whether an alpha below 1e-10 is used as given rather than replaced by 1e-10.
    fit_prior : bool, default True
        Whether class frequencies are the prior class probabilities; otherwise these are uniform.
    class_prior : array-like of shape (n_classes,), optional
        The prior class probabilities.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model, with prior Dirichlet(α).

    Examples
    --------
    >>> from tallybayes.sklearn import MultinomialNB
    >>> clf = MultinomialNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"])
    >>> clf.predict([[3, 1]]), clf.feature_count_
    (array(['a'], dtype='<U1'), array([[3., 1.],
           [0., 3.]]))
    """

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        counts = np.array(statistics_of(model).total)
        smoothed = counts + self._smoothing()
        with np.errstate(divide="ignore", invalid="ignore"):
            log_prob = np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))
        return self._class_attributes(model) | {"feature_count_": counts, "feature_log_prob_": log_prob}


class ComplementNB(TokenCounting, theirs.ComplementNB):
    """Drop-in replacement for `sklearn.naive_bayes.ComplementNB`: the same constructor, attributes and predictions.

    Parameters
    ----------
    alpha : float or array-like of shape (columns,), default 1
        The pseudo-count added to the count of each column.
    force_alpha : bool, default True
        Whether an alpha below 1e-10 is used as given rather than replaced by 1e-10.
    fit_prior : bool, default True
    class_prior : array-like of shape (n_classes,), optional
        As in scikit-learn, class probabilities affect predictions only if there is a single class.
    norm : bool, default False
        Whether the coefficients are normalized to sum to 1.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model. Its predictions are those of `MultinomialNB`: the complement rule is not a probability model.

    Examples
    --------
    >>> from tallybayes.sklearn import ComplementNB
    >>> clf = ComplementNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"])
    >>> clf.predict([[3, 1]]), clf.feature_all_
    (array(['a'], dtype='<U1'), array([3., 4.]))
    """

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        counts = np.array(statistics_of(model).total)
        all_counts = counts.sum(axis=0)
        rest = all_counts + self._smoothing() - counts
        with np.errstate(divide="ignore", invalid="ignore"):
            logged = np.log(rest / rest.sum(axis=1, keepdims=True))
        weight = logged / logged.sum(axis=1, keepdims=True) if self.norm else -logged
        attributes = {"feature_count_": counts, "feature_all_": all_counts, "feature_log_prob_": weight}
        return self._class_attributes(model) | attributes


class CategoricalNB(DiscreteCounting, theirs.CategoricalNB):
    """Drop-in replacement for `sklearn.naive_bayes.CategoricalNB`: the same constructor, attributes and predictions.

    Parameters
    ----------
    alpha : float, default 1
        The pseudo-count added to the count of each category.
    force_alpha : bool, default True
        Whether an alpha below 1e-10 is used as given rather than replaced by 1e-10.
    fit_prior : bool, default True
        Whether class frequencies are the prior class probabilities; otherwise these are uniform.
    class_prior : array-like of shape (n_classes,), optional
        The prior class probabilities.
    min_categories : int or array-like of shape (columns,), optional
        The minimum number of categories of each column.

    Attributes
    ----------
    model_ : NaiveBayes
        The fitted model. It treats an unseen category as missing instead of raising an error.

    Examples
    --------
    >>> from tallybayes.sklearn import CategoricalNB
    >>> clf = CategoricalNB().fit([[0, 1], [1, 2], [1, 0]], ["a", "a", "b"])
    >>> clf.predict([[1, 2]]), clf.n_categories_
    (array(['a'], dtype='<U1'), array([2, 3]))
    """

    _reads = {"dtype": "int"}  # noqa: RUF012

    def _make_model(self) -> tb.NaiveBayes:
        """Return the unfitted model that counts the rows."""
        return self._model_of(tb.Categorical(), float)

    def _validate(self, X: Rows, y: npt.ArrayLike, *, reset: bool) -> tuple[Matrix, np.ndarray]:
        """Return validated rows and labels; raise ValueError for negative codes."""
        rows, labels = super()._validate(X, y, reset=reset)
        check_non_negative(rows, "CategoricalNB (input X)")
        return rows, labels

    def _count(
        self,
        rows: Matrix,
        labels: np.ndarray,
        weight: np.ndarray | None = None,
        classes: np.ndarray | None = None,
    ) -> ClassModel:
        """Return a model fitted on these rows, with all categories declared."""
        model = super()._count(rows, labels, weight, classes)
        return self._with_categories(model, self._validate_n_categories(rows, self.min_categories))

    def _with_categories(self, model: ClassModel, n_categories: np.ndarray) -> ClassModel:
        """Return the model with all categories from 0 on declared, so that they remain when rows are forgotten."""
        tally = model.tally_
        sizes = statistics_of(model).segments.sizes
        incomplete = [index for index, n in enumerate(n_categories) if sizes[index] < n]
        for index in incomplete:
            tally = tally.declare(tally.factors[1].columns[index], range(int(n_categories[index])))
        return model + self._make_model().fit_tally(tally.scale(0.0)) if incomplete else model

    def _attributes(self, model: ClassModel, batch: Batch | None) -> dict[str, Any]:
        """Return the public attributes of the estimator for a fitted model."""
        tally = model.tally_
        counted = statistics_of(model)
        alpha = self._smoothing()
        tables = []
        for name, table in zip(tally.factors[1].columns, counted.segments.split(counted.table), strict=True):
            levels = np.array(tally.domains[tally.schema.domain(name)].levels, dtype=np.intp)
            counts = np.zeros((len(table), levels.max(initial=-1) + 1))
            counts[:, levels] = table
            tables.append(counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_probs = [np.log(t + alpha) - np.log((t + alpha).sum(axis=1, keepdims=True)) for t in tables]
        sizes = np.array([table.shape[1] for table in tables])
        attributes = {"category_count_": tables, "feature_log_prob_": log_probs, "n_categories_": sizes}
        return self._class_attributes(model) | attributes

    def _check_X(self, X: Rows) -> Matrix:  # noqa: N802
        """Return the validated codes of a query."""
        rows: np.ndarray = validate_data(self, X, dtype="int", reset=False)
        check_non_negative(rows, "CategoricalNB (input X)")
        return rows

    def _joint_log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """Return log p(class, row). Raise IndexError for an unseen category, as scikit-learn does."""
        beyond = np.flatnonzero(X.max(axis=0, initial=-1) >= self.n_categories_)
        if len(beyond):
            column = int(beyond[0])
            raise IndexError(
                f"index {X[:, column].max()} is out of bounds for column {column}, whose categories are 0 to "
                f"{self.n_categories_[column] - 1}.\n    Set min_categories, or use model_, which treats it as missing."
            )
        return self._joint_of_model(X)
