"""Linear form of a classifier: log-odds as coefficients and an intercept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError, LabelError, NotLinearError, printable, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.log_prob_forms import LinearLogForm, MultivariateNormalForm, NormalForm
from tallybayes.results.result import Result, ResultTable
from tallybayes.tally.factor import Name
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier

_MOST_LINES = 40  # of a printed table


class LinearForm(NamedTuple):
    """A linear classifier with the scores x · coef.T + intercept.

    For two classes there is one row, and P(classes[1] | x) = σ(coef · x + intercept) = 1 / (1 + exp(−(coef · x +
    intercept))): the prediction is classes[1] if coef · x + intercept > 0. For more classes the scores are those of all
    classes, and their softmax is P(class | x). Some textbooks write 1 / (1 + exp(w · x + b)), and predict the class if
    w · x + b < 0. Their signs are opposite: use the other class, ``log_odds_coefficients(classes[0])``.
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    columns: tuple[Any, ...]

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Return the class probabilities, shape (n, classes)."""
        scores = np.asarray(X, dtype=float) @ self.coef.T + self.intercept
        if len(self.classes) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    def log_odds_coefficients(self, label: Hashable, against: Hashable = None) -> LinearForm:
        """Return the linear form of the log-odds of one class against another, with one row of coefficients.

        Parameters
        ----------
        label : label
            The class with positive log-odds.
        against : label, optional
            The other class; optional if there are two classes.
        """
        classes = self.classes.tolist()
        others = [other for other in classes if other != label]
        if label not in classes or (against is None and len(others) != 1) or against not in (None, *others):
            raise LabelError(
                f"no odds of {label!r} against {against!r} among the classes {short_repr(classes)}; expected two of "
                "them."
            )
        other = others[0] if against is None else against
        coef, intercept = self._by_class()
        first = classes.index(label)
        second = classes.index(other)
        difference = coef[first] - coef[second], intercept[first] - intercept[second]
        return LinearForm(difference[0][None], difference[1][None], self.classes[[second, first]], self.columns)

    def compare(self, other: object, name: str = "logistic regression") -> CoefficientComparison:
        """Return these coefficients beside those of another linear classifier, such as a fitted LogisticRegression.

        Classes and columns are matched by name. For more than two classes, the mean over the classes is subtracted from
        all coefficients, because a common shift changes no probability.

        Parameters
        ----------
        other : LinearForm, or fitted classifier with ``coef_``, ``intercept_`` and ``classes_``
        name : str
            The title of the other classifier.

        Returns
        -------
        CoefficientComparison
        """
        theirs = other if isinstance(other, LinearForm) else _form_of_peer(other, self)
        if sorted(theirs.classes.tolist(), key=str) != sorted(self.classes.tolist(), key=str):
            raise LabelError(
                f"the classes of {name} are {short_repr(theirs.classes.tolist())}; expected "
                f"{short_repr(self.classes.tolist())}."
            )
        if sorted(theirs.columns, key=str) != sorted(self.columns, key=str):
            raise DataError(
                f"{name} has the columns {short_repr(theirs.columns)}; expected {short_repr(self.columns)}.\n"
                "    Fit both on the same columns."
            )
        classes = self.classes.tolist()
        order = [theirs.classes.tolist().index(label) for label in classes]
        positions = [theirs.columns.index(column) for column in self.columns]
        coef, intercept = theirs._by_class()
        coef = coef[order][:, positions]
        intercept = intercept[order]
        ours = self._by_class()
        if len(classes) == 2:
            rows = [(part[1:] - part[:1]) for part in (*ours, coef, intercept)]
            shown = [classes[1]]
        else:
            rows = [part - part.mean(axis=0) for part in (*ours, coef, intercept)]
            shown = classes
        pairs = [np.column_stack([rows[k + 1], rows[k]]) for k in (0, 2)]
        return CoefficientComparison(shown, ("(intercept)", *self.columns), {"this model": pairs[0], name: pairs[1]})

    def _by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and intercepts of all classes; of two classes, the first has zeros."""
        if len(self.classes) != 2:
            return self.coef, self.intercept
        return np.concatenate([0 * self.coef, self.coef]), np.concatenate([0 * self.intercept, self.intercept])

    def _weights(self) -> CoefficientComparison:
        """Return the coefficients as a table."""
        shown = self.classes.tolist()[1 if len(self.classes) == 2 else 0 :]
        values = np.column_stack([self.intercept, self.coef])
        return CoefficientComparison(shown, ("(intercept)", *self.columns), {"weight": values}, self._formula())

    def to_frame(self) -> Any:
        """Return the coefficients as a pandas data frame with one row per column, the intercept first."""
        return self._weights().to_frame()

    def __repr__(self) -> str:
        return repr(self._weights())

    def _repr_html_(self) -> str:
        return self._weights()._repr_html_()

    def _formula(self) -> str:
        """Return the formula of the class probabilities."""
        if len(self.classes) != 2:
            return "P(class | x) = softmax of the classes' intercept + w · x"
        positive, negative = (printable(label) for label in self.classes.tolist()[::-1])
        formula = f"P({positive} | x) = 1 / (1 + exp(−(intercept + w · x)))"
        return f"{formula}: {positive} where intercept + w · x > 0, else {negative}"


class CoefficientComparison(Result):
    """Coefficients of linear classifiers, side by side. ``LinearForm.compare`` returns it.

    Attributes
    ----------
    classes : list
        The classes of the log-odds; of two classes, the second.
    columns : tuple
        The intercept, and the columns.
    values : dict
        From classifier to an array of shape (classes, columns).
    """

    def __init__(
        self, classes: list[Any], columns: tuple[Any, ...], values: dict[str, np.ndarray], title: str = ""
    ) -> None:
        self.classes = classes
        self.columns = columns
        self.values = values
        self._title = title

    @property
    def cosine(self) -> float:
        """Cosine similarity of the coefficients of the first two classifiers, without intercepts."""
        first, second = (coefficients[:, 1:].ravel() for coefficients in list(self.values.values())[:2])
        norm = np.linalg.norm(first) * np.linalg.norm(second)
        return float(first @ second / norm) if norm > 0 else float("nan")

    def _heads(self) -> list[str]:
        """Return the column heads of the table."""
        several = len(self.classes) > 1
        return [f"{name}: {printable(c)}" if several else name for c in self.classes for name in self.values]

    @property
    def _table(self) -> np.ndarray:
        """The coefficients, (columns, classes · classifiers), classifiers of a class side by side."""
        return np.stack(list(self.values.values()), axis=1).reshape(-1, len(self.columns)).T

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per column, the intercept first."""
        import pandas as pd

        index = pd.Index(list(self.columns), name="column", tupleize_cols=False)
        return pd.DataFrame(self._table, index=index, columns=self._heads())

    def _content(self) -> list[str | ResultTable]:
        pairs = zip(self.columns[:_MOST_LINES], self._table[:_MOST_LINES].tolist(), strict=True)
        rows = [[printable(name), *(f"{x:.4g}" for x in row)] for name, row in pairs]
        n_more = len(self.columns) - _MOST_LINES
        more = [f"  … {n_more:,} more columns"] if n_more > 0 else []
        more += [f"  cosine of the weights: {self.cosine:.4f}"] if len(self.values) > 1 else []
        return [ResultTable(rows, ["column", *self._heads()], self._title, "lr"), *more]


def _form_of_peer(other: Any, reference: LinearForm) -> LinearForm:
    """Return the linear form of a fitted classifier with scikit-learn's attributes."""
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(other, name)]
    if missing:
        expected = "a fitted linear classifier with coef_, intercept_ and classes_, such as LogisticRegression"
        raise DataError.wrong_type("other", f"{type(other).__name__} without {missing[0]}", expected)
    coef = np.atleast_2d(np.asarray(other.coef_, dtype=float))
    names = getattr(other, "feature_names_in_", None)
    columns = (
        tuple(names) if names is not None else reference.columns if coef.shape[1] == len(reference.columns) else ()
    )
    columns = columns or tuple(range(coef.shape[1]))
    intercept = np.broadcast_to(np.asarray(other.intercept_, dtype=float), len(coef))
    return LinearForm(coef, intercept, np.asarray(other.classes_), columns)


def to_linear(estimates: EstimatedClassifier, feature_names: Sequence[Name]) -> LinearForm:
    """Return the linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the coefficients of all classes.

    ``feature_names`` are the names of the columns of X, if they have names.
    """
    scored = estimates.scorers
    classes = estimates.labels
    parts = [linear_terms(part) for part in scored]
    coef = np.concatenate([weights for weights, _ in parts], axis=-1)
    intercept = estimates.class_log_prior + sum(bias for _, bias in parts)
    names = estimates.names
    columns = [
        names.display(part.factor.column(index, weights.shape[-1]))
        for part, (weights, _) in zip(scored, parts, strict=True)
        for index in range(weights.shape[-1])
    ]
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise NotLinearError(
            "some values are impossible in some class, so log-odds are not finite.\n    Use a prior that allows them."
        )
    if len(classes) == 2:
        coef = coef[1:] - coef[:1]
        intercept = intercept[1:] - intercept[:1]
    fitted = list(feature_names) or sorted(c for c in columns if isinstance(c, int))
    if set(columns) <= set(fitted):
        position = {name: index for index, name in enumerate(fitted)}
        order = sorted(range(len(columns)), key=lambda index: position[columns[index]])  # the order of the columns of X
        coef = coef[:, order]
        columns = [columns[index] for index in order]
    return LinearForm(coef, intercept, classes, tuple(columns))


def linear_terms(part: FactorScorer) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients (classes, columns) and biases (classes,) of one factor, up to a constant over classes."""
    match part.form:
        case LinearLogForm(weight, bias):
            return weight, np.broadcast_to(bias, weight.shape).sum(axis=-1)
        case NormalForm(mean, precision, _, True):
            return _about_means(mean, mean * precision)
        case MultivariateNormalForm(mean, covariance, True):
            return _about_means(mean, np.linalg.solve(covariance[0], mean.T).T if len(mean) else mean)
    raise NotLinearError.factor(part.family, "bayes" if part.predictive else "plug-in")


def _about_means(mean: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and biases of a Gaussian with a tied covariance."""
    return weights, -0.5 * (weights * mean).sum(axis=-1)
