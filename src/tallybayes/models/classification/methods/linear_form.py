"""Linear forms: log-odds as coefficients and an intercept, where a model has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.html import html_table
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, LabelError, NotLinearError, printable, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.log_prob_forms import LinearLogForm, MultivariateNormalForm, NormalForm
from tallybayes.typing import Rows

_MOST_LINES = 40  # of a printed table


class LinearForm(NamedTuple):
    """A linear classifier: scores x · coef.T + intercept.

    For two classes there is one row, and P(classes[1] | x) = σ(coef · x + intercept) = 1 / (1 + exp(−(coef · x +
    intercept))): classes[1] where coef · x + intercept > 0. For more, the scores of the classes, whose softmax is
    P(class | x). Texts that write 1 / (1 + exp(w · x + b)), and choose the class where w · x + b < 0, have all signs
    turned: theirs are the weights of the other class, ``odds(classes[0])``.
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    columns: tuple[Any, ...]

    def predict_proba(self, X: Rows) -> np.ndarray:
        """p(class | row), shape (n, classes)."""
        scores = np.asarray(X, dtype=float) @ self.coef.T + self.intercept
        if len(self.classes) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    def log_odds_coefficients(self, label: Any, against: Any = None) -> LinearForm:
        """The log-odds of a class against another: one row of weights, positive where they speak for it.

        Parameters
        ----------
        label : label
        against : label, optional
            The other of two classes if left out.
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
        one = classes.index(label)
        two = classes.index(other)
        gap = coef[one] - coef[two], intercept[one] - intercept[two]
        return LinearForm(gap[0][None], gap[1][None], self.classes[[two, one]], self.columns)

    def compare(self, other: Any, name: str = "logistic regression") -> CoefficientComparison:
        """These weights beside those of another linear classifier, such as a fitted LogisticRegression.

        Classes and columns are matched by name. Of more than two classes, weights are told from their mean over the
        classes, since adding the same to all changes no probability.

        Parameters
        ----------
        other : LinearForm, or fitted classifier with ``coef_``, ``intercept_`` and ``classes_``
        name : str
            What to call it.

        Returns
        -------
        Weights
        """
        its = other if isinstance(other, LinearForm) else _form_of_peer(other, self)
        if sorted(its.classes.tolist(), key=str) != sorted(self.classes.tolist(), key=str):
            raise LabelError(
                f"the classes of {name} are {short_repr(its.classes.tolist())}; expected "
                f"{short_repr(self.classes.tolist())}."
            )
        if sorted(its.columns, key=str) != sorted(self.columns, key=str):
            raise DataError(
                f"{name} has the columns {short_repr(its.columns)}; expected {short_repr(self.columns)}.\n"
                "    Fit both on the same columns."
            )
        classes = self.classes.tolist()
        order = [its.classes.tolist().index(label) for label in classes]
        places = [its.columns.index(column) for column in self.columns]
        coef, intercept = its._by_class()
        coef = coef[order][:, places]
        intercept = intercept[order]
        mine = self._by_class()
        if len(classes) == 2:
            rows = [(part[1:] - part[:1]) for part in (*mine, coef, intercept)]
            shown = [classes[1]]
        else:
            rows = [part - part.mean(axis=0) for part in (*mine, coef, intercept)]
            shown = classes
        both = [np.column_stack([rows[k + 1], rows[k]]) for k in (0, 2)]
        return CoefficientComparison(shown, ("(intercept)", *self.columns), {"this model": both[0], name: both[1]})

    def _by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts of every class; of two, the first has none."""
        if len(self.classes) != 2:
            return self.coef, self.intercept
        return np.concatenate([0 * self.coef, self.coef]), np.concatenate([0 * self.intercept, self.intercept])

    def _weights(self) -> CoefficientComparison:
        shown = self.classes.tolist()[1 if len(self.classes) == 2 else 0 :]
        values = np.column_stack([self.intercept, self.coef])
        return CoefficientComparison(shown, ("(intercept)", *self.columns), {"weight": values})

    def to_frame(self) -> Any:
        """The weights as a pandas data frame, a line for every column and the intercept first."""
        return self._weights().to_frame()

    def __repr__(self) -> str:
        return f"{self._said()}\n{self._weights()!r}"

    def _repr_html_(self) -> str:
        return self._weights()._repr_html_(self._said())

    def _said(self) -> str:
        if len(self.classes) != 2:
            return "P(class | x) = softmax of the classes' intercept + w · x"
        one, two = (printable(label) for label in self.classes.tolist()[::-1])
        return f"P({one} | x) = 1 / (1 + exp(−(intercept + w · x))): {one} where intercept + w · x > 0, else {two}"


class CoefficientComparison:
    """Weights of linear classifiers by column, side by side. Made by ``LinearForm.compare``.

    Attributes
    ----------
    classes : list
        The classes whose log-odds they are; of two, the second.
    columns : tuple
        The intercept, and the columns.
    values : dict
        By classifier, an array of shape (classes, columns).
    """

    def __init__(self, classes: list[Any], columns: tuple[Any, ...], values: dict[str, np.ndarray]) -> None:
        self.classes = classes
        self.columns = columns
        self.values = values

    @property
    def cosine(self) -> float:
        """How far the first two agree on the direction, intercepts apart: 1 where one is a multiple of the other."""
        first, second = (found[:, 1:].ravel() for found in list(self.values.values())[:2])
        norm = np.linalg.norm(first) * np.linalg.norm(second)
        return float(first @ second / norm) if norm > 0 else float("nan")

    def _heads(self) -> list[str]:
        several = len(self.classes) > 1
        return [f"{name}: {printable(c)}" if several else name for c in self.classes for name in self.values]

    @property
    def _table(self) -> np.ndarray:
        """(columns, classes · classifiers), those of a class side by side."""
        return np.stack(list(self.values.values()), axis=1).reshape(-1, len(self.columns)).T

    def to_frame(self) -> Any:
        """A pandas data frame with a line for every column, the intercept first."""
        import pandas as pd

        index = pd.Index(list(self.columns), name="column", tupleize_cols=False)
        return pd.DataFrame(self._table, index=index, columns=self._heads())

    def _cells(self) -> list[list[Any]]:
        table = self._table[:_MOST_LINES]
        names = [printable(name) for name in self.columns[:_MOST_LINES]]
        return [[name, *line] for name, line in zip(names, table.tolist(), strict=True)]

    def _more(self) -> list[str]:
        n_more = len(self.columns) - _MOST_LINES
        more = [f"… {n_more:,} more columns"] if n_more > 0 else []
        return more + ([f"cosine of the weights: {self.cosine:.4f}"] if len(self.values) > 1 else [])

    def __repr__(self) -> str:
        lines = [["column", *self._heads()], *([name, *(f"{x:.4g}" for x in row)] for name, *row in self._cells())]
        return "\n".join([*text_table(lines, right=range(1, len(lines[0]))), *("  " + line for line in self._more())])

    def _repr_html_(self, title: str = "") -> str:
        return html_table("\n".join(filter(None, [title, *self._more()])), ["column", *self._heads()], self._cells())


def _form_of_peer(other: Any, mine: LinearForm) -> LinearForm:
    """The weights of a fitted classifier of scikit-learn's kind."""
    missing = [name for name in ("coef_", "intercept_", "classes_") if not hasattr(other, name)]
    if missing:
        expected = "a fitted linear classifier with coef_, intercept_ and classes_, such as LogisticRegression"
        raise DataError.wrong_type("other", f"{type(other).__name__} without {missing[0]}", expected)
    coef = np.atleast_2d(np.asarray(other.coef_, dtype=float))
    names = getattr(other, "feature_names_in_", None)
    columns = tuple(names) if names is not None else mine.columns if coef.shape[1] == len(mine.columns) else ()
    columns = columns or tuple(range(coef.shape[1]))
    intercept = np.broadcast_to(np.asarray(other.intercept_, dtype=float), len(coef))
    return LinearForm(coef, intercept, np.asarray(other.classes_), columns)


def to_linear(model: Any) -> LinearForm:
    """The linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the weights of every class.

    It exists for `Bernoulli` and `Multinomial` columns under every estimate, for `Poisson` and `TiedGaussian` under
    ``"mle"``, ``"unbiased"`` and ``"map"``; elsewhere `NotLinearError` says which columns bend it.

    Returns
    -------
    LinearForm
        It prints its weights by column, and ``compare`` sets those of logistic regression beside them.

    Examples
    --------
    >>> import tallybayes as tb
    >>> mails = {"card": [1, 1, 0, 0], "winner": [1, 1, 1, 0]}
    >>> tb.NaiveBayes(tb.Bernoulli(), estimate="map").fit(mails, ["spam", "spam", "ham", "ham"]).to_linear()
    P(spam | x) = 1 / (1 + exp(−(intercept + w · x))): spam where intercept + w · x > 0, else ham
      column       weight
      (intercept)  -1.792
      card          2.197
      winner        1.099
    """
    check_is_fitted(model, "tally_")
    scored = model._factor_scorers
    classes = model.classes_
    parts = [linear_terms(part) for part in scored]
    coef = np.concatenate([weights for weights, _ in parts], axis=-1)
    intercept = model.class_log_prior_ + sum(bias for _, bias in parts)
    columns = [
        model._display_name(part.factor.column(place, weights.shape[-1]))
        for part, (weights, _) in zip(scored, parts, strict=True)
        for place in range(weights.shape[-1])
    ]
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise NotLinearError(
            "some values are impossible in some class, so log-odds are not finite.\n    Use a prior that allows them."
        )
    if len(classes) == 2:
        coef = coef[1:] - coef[:1]
        intercept = intercept[1:] - intercept[:1]
    fitted = list(getattr(model, "feature_names_in_", ())) or sorted(c for c in columns if isinstance(c, int))
    if set(columns) <= set(fitted):
        where = {name: place for place, name in enumerate(fitted)}
        order = sorted(range(len(columns)), key=lambda place: where[columns[place]])  # as X has them
        coef = coef[:, order]
        columns = [columns[place] for place in order]
    return LinearForm(coef, intercept, classes, tuple(columns))


def linear_terms(part: FactorScorer) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, columns) and biases (classes,) of one factor, up to a constant common to all classes."""
    match part.form:
        case LinearLogForm(weight, bias):
            return weight, np.broadcast_to(bias, weight.shape).sum(axis=-1)
        case NormalForm(mean, precision, _, True):
            return _about_means(mean, mean * precision)
        case MultivariateNormalForm(mean, covariance, True):
            return _about_means(mean, np.linalg.solve(covariance[0], mean.T).T if len(mean) else mean)
    raise NotLinearError.factor(part.family, "bayes" if part.predictive else "plug-in")


def _about_means(mean: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return weights, -0.5 * (weights * mean).sum(axis=-1)
