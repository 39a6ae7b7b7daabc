"""GenerativeClassifier: what a joint distribution answers besides the class. The base of the generative classifiers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.beliefs.belief import Interval
from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.block import Sparse
from tallybayes.models.classifiers.answers.decisions import decide, estimate_class_prior
from tallybayes.models.classifiers.answers.evidence import evidence_of
from tallybayes.models.classifiers.answers.explain import Explanation, explain
from tallybayes.models.classifiers.answers.held_out import calibration_of
from tallybayes.models.classifiers.answers.linear import LinearForm, to_linear
from tallybayes.models.classifiers.answers.show_work import show_work
from tallybayes.models.classifiers.answers.uncertainty import credible_set, predict_interval
from tallybayes.models.classifiers.incomplete import IncompleteClassifier
from tallybayes.models.fitted.generate import (
    Missing,
    check_class,
    fill_column,
    is_labels,
    missing_cells,
    n_columns,
    sample_factor,
)
from tallybayes.sources.table import unmerged
from tallybayes.tally.domain import labels_at
from tallybayes.tally.factor import Name


class GenerativeClassifier(IncompleteClassifier):
    """A classifier that models its rows too, so it can draw them, fill them in and explain itself."""

    def sample(self, n: int, given: Any = None, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """Draw rows from the model.

        Parameters
        ----------
        n : int
        given : label, optional
            The class of all rows; drawn by the class prior if left out.
        random_state : int, Generator or None

        Returns
        -------
        X : ndarray of shape (n, columns), or a dictionary of columns where the columns have names or labels
        y : ndarray of shape (n,)
        """
        check_is_fitted(self, "tally_")
        rng, levels = np.random.default_rng(random_state), self._class_domain.levels
        if not levels:
            self._check_estimated(self.class_log_prior_)
        if given is None:
            codes = rng.choice(len(levels), size=n, p=np.exp(self.class_log_prior_))
        else:
            codes = np.full(n, check_class(given, levels))
        self._check_estimated(np.where(np.isin(np.arange(len(levels)), codes), 0.0, -np.inf))
        columns: dict[Name, Any] = {}
        for scored, (factor, statistics) in zip(self._known.scored, self._known.pairs, strict=True):
            rows = sample_factor(scored, codes, statistics, rng)
            if factor.family.reads == "codes":
                for place, name in enumerate(factor.columns):
                    columns[name] = labels_at(self.tally_.domains[str(name)].levels, rows[:, place].astype(int))
            elif len(factor.columns) == 1 and rows.shape[1] > 1:
                columns[factor.columns[0]] = rows
            else:
                columns.update({name: rows[:, place] for place, name in enumerate(factor.columns)})
        return self._shaped(columns), self.classes_[codes]

    def _shaped(self, columns: dict[Name, Any]) -> Any:
        """Columns as the model was given them: one array, or a dictionary."""
        if not self._by_name and all(isinstance(name, int) for name in columns):
            return np.stack(unmerged([columns[name] for name in sorted(columns)]), axis=-1)
        if len(columns) == 1 and not self._by_name and next(iter(columns.values())).ndim == 2:
            return next(iter(columns.values()))
        return columns

    def fill(self, X: Any, how: str = "mean") -> Any:
        """Fill in missing cells by what the rest of their row says about the class.

        Parameters
        ----------
        X : as for `fit`, without the target
        how : {"mean", "mode", "distribution"}, default "mean"
            Numbers by their expectation, or that of the most probable class (``"mode"``); labels by the most probable
            one; or, for every column with missing cells, what is believed about them.

        Returns
        -------
        A copy of X as an array or a dictionary of columns; for ``"distribution"``, a `Missing` for every such column
        """
        if how not in ("mean", "mode", "distribution"):
            raise DataError(f"how is {how!r}; expected 'mean', 'mode' or 'distribution'.")
        weights = self.predict_proba(X)
        table = self._open(X)
        columns: dict[Any, Any] = {
            name: (X[name] if isinstance(X, Mapping) else X) if isinstance(column, Sparse) else np.array(column)
            for name, column in table.columns.items()
        }
        found: dict[Any, Missing] = {}
        for scored, (_, statistics) in zip(self._scored, self._feature_factors(), strict=True):
            names = scored.factor.columns
            domains = [self.tally_.domains[str(name)] for name in names] if is_labels(scored) else []
            rows = self._rows(table, scored)
            for place, cells in missing_cells(scored, statistics, table, rows, weights, domains).items():
                name = scored.factor.column(place, table.width(names[0]))
                found[name] = cells
                if name in columns:
                    columns[name] = fill_column(columns[name], cells, how)
                else:  # a column of a block
                    block, where = name
                    columns[block][:, where] = fill_column(columns[block][:, where], cells, how)
        return found if how == "distribution" else self._shaped(columns)

    def predict_interval(self, X: Any, mass: float = 0.95, *, n_draws: int = 400, random_state: Any = 0) -> Interval:
        """Credible intervals of the predicted probabilities: how much they may yet change with more rows.

        If the rows came from the model, p(class | row, θ) of the true parameters θ lies in the interval with
        probability `mass`. But for rows without a known cell it has no closed form, so the parameters of every factor
        are drawn from their posterior, that of ``estimate="bayes"`` whichever estimate predicts. The class prior is
        drawn too where it was learned: from a `Dirichlet` given as ``class_prior``, or from ``Dirichlet(1)`` over the
        classes that have rows where it is None. Probabilities that were given are certain. Shrunk moments, and those
        that EM completed, pass for counted ones: the interval leaves out what is unsure about them.

        Parameters
        ----------
        X : as for `fit`, without the target
        mass : float, default 0.95
        n_draws : int, default 400
            How often the parameters are drawn; at least 2/(1 − mass) − 1 times.
        random_state : int, Generator or None, default 0
            The same seed gives the same intervals, however many rows are asked about at once.

        Returns
        -------
        Interval
            ``low`` and ``high``, each of shape (n, classes), every class by itself.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rows, labels = [[0], [0], [1], [1], [1]], ["no", "no", "no", "yes", "yes"]
        >>> model = tb.NaiveBayes(tb.Bernoulli()).fit(rows, labels)
        >>> model.predict_proba([[1]])[0].round(2)
        array([0.44, 0.56])
        >>> low, high = model.predict_interval([[1]])
        >>> bool(low[0, 1] < 0.2), bool(high[0, 1] > 0.8)           # five rows say little
        (True, True)
        """
        check_is_fitted(self, "tally_")
        return predict_interval(self, X, mass, n_draws, random_state)

    def predict_set(self, X: Any, mass: float = 0.95) -> np.ndarray:
        """The smallest set of classes whose probabilities reach `mass` together: a credible set for every row.

        Parameters
        ----------
        X : as for `fit`, without the target
        mass : float, default 0.95

        Returns
        -------
        ndarray of bool of shape (n, classes)
            Which of ``classes_`` are in the set. The most probable one always is; equals go to the first.

        Examples
        --------
        >>> import tallybayes as tb
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = tb.NaiveBayes().fit(X, load_iris().target_names[y])
        >>> sets = model.predict_set(X.iloc[[0, 70]], 0.9)
        >>> [model.classes_[chosen].tolist() for chosen in sets]
        [['setosa'], ['versicolor', 'virginica']]
        """
        return credible_set(self.predict_log_proba(X), mass)

    def decide(self, X: Any, cost: Any = None, *, abstain: float | None = None, class_prior: Any = None) -> np.ndarray:
        """The decision of least expected cost for every row.

        Uneven costs and uneven classes belong here: rows need no resampling for them.

        Parameters
        ----------
        X : as for `fit`, without the target
        cost : {true: {decided: cost}}, or array of shape (classes, classes), optional
            What deciding costs, by the class that is true. The rows of an array are true classes, its columns decided
            ones, in the order of ``classes_``. The decisions of a mapping need not be classes. Costs are any finite
            numbers, gains negative. Left out, every error costs 1.
        abstain : float, optional
            The cost of not deciding.
        class_prior : as for the constructor, optional
            The share of the classes where the decisions are taken, if it differs.

        Returns
        -------
        ndarray of shape (n,)
            The decisions, in the type of ``classes_`` where they are classes; where `abstain` is given, objects, and
            None where every decision would cost more than that. Ties go to the first.

        Examples
        --------
        >>> import tallybayes as tb
        >>> words = {"offer": [1, 1, 1, 0, 1, 0], "mail": ["spam", "spam", "spam", "ham", "ham", "ham"]}
        >>> model = tb.NaiveBayes({"offer": tb.Bernoulli()}).fit(words, "mail")
        >>> model.predict({"offer": [1, 0]}).tolist()
        ['spam', 'ham']
        >>> cost = {"spam": {"delete": 0, "keep": 1}, "ham": {"delete": 10, "keep": 0}}
        >>> model.decide({"offer": [1, 0]}, cost).tolist()
        ['keep', 'keep']
        >>> model.decide({"offer": [1, 0]}, abstain=0.3).tolist()
        [None, 'ham']
        """
        return decide(self, X, cost, abstain, class_prior)

    def estimate_class_prior(
        self, X: Any, *, sample_weight: Any = None, n_iter: int = 100, tol: float = 1e-9
    ) -> dict[Any, float]:
        """The share of the classes among unlabelled rows: the one under which they are most probable.

        What the classes look like is taken as learned, only how frequent they are is new: the maximum that EM on the
        prior alone climbs to (Saerens, Latinne and Decaestecker, 2002), here by Newton steps. Where the rows cannot
        tell classes apart, those keep the proportions they were learned with. A class without rows gets 0.

        Parameters
        ----------
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), or the name of a column of X, optional
        n_iter : int, default 100
            The most steps to take; a warning says if they were too few.
        tol : float, default 1e-9
            How far the mean log-likelihood of a row may stay below its maximum.

        Returns
        -------
        dict
            The probability of every class, as ``class_prior`` takes it.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(["ill", "well"], 1000)                    # as many ill as well, unlike elsewhere
        >>> model = tb.NaiveBayes().fit(rng.normal(3.0 * (y == "ill"))[:, None], y)
        >>> elsewhere = rng.normal(np.where(rng.random(5000) < 0.1, 3.0, 0.0))[:, None]
        >>> prior = model.estimate_class_prior(elsewhere)
        >>> round(prior["ill"], 1)
        0.1
        >>> model.predict_proba([[2.0]])[0, 0].round(1), model.predict_proba([[2.0]], class_prior=prior)[0, 0].round(1)
        (np.float64(0.8), np.float64(0.3))
        """
        return estimate_class_prior(self, X, sample_weight, n_iter, tol)

    def calibrate(self, data: Any, target: Any, method: str = "temperature", *, sample_weight: Any = None) -> Self:
        """Mend the predicted probabilities by how the model does on its own rows, each left out in turn.

        No rows need to be kept back for it. From then on `predict_proba` and all that stands on it give mended
        probabilities; ``calibration_`` tells how. The calibration is stored in the model's file. It is dropped by
        `reestimate`, ``+``, `set_params` and when classes come or go; `partial_fit` and `forget` keep it, and warn when
        the weight counted has changed by more than a tenth. `explain`, `score_samples` and `predict_interval` speak
        of the model as it is without.

        Parameters
        ----------
        data, target, sample_weight
            The rows the model was fitted on, as for `fit`, or some of them.
        method : {"temperature", "isotonic"}, default "temperature"
            One number T for all, p ∝ p^(1/T); or, for every class, a rising function of its log-odds, which needs some
            hundred rows of each class.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 1000)
        >>> X = np.repeat(rng.normal(y, 2.0)[:, None], 5, axis=1)   # one column five times: too sure of itself
        >>> model = tb.NaiveBayes().fit(X, y)
        >>> model.calibrate(X, y).calibration_
        Calibration('temperature', temperature 4.926: log-loss 1.012 to 0.6439 on rows left out)
        """
        check_is_fitted(self, "tally_")
        self._calibration = calibration_of(self, data, target, method, sample_weight)
        return self

    def explain(self, X: Any, against: Any = None) -> Explanation:
        """How far every column pulls each row: the weights of evidence, which sum exactly to the log-odds.

        Parameters
        ----------
        X : as for `fit`, without the target
        against : label, optional
            The class to compare with; by default the runner-up.

        Returns
        -------
        Explanation
            Of the most probable class of every row; it prints as a table, and has ``to_frame`` and ``plot``.
        """
        check_is_fitted(self, "tally_")
        return explain(self, X, against)

    def plot_columns(self, columns: Any = None) -> Any:
        """A picture of every column's distribution in each class; needs matplotlib.

        Parameters
        ----------
        columns : list of names, optional
            Which to draw; the first twelve if left out.

        Returns
        -------
        matplotlib Figure
        """
        check_is_fitted(self, "tally_")
        from tallybayes.plots.models import plot_columns

        return plot_columns(self, columns)

    def plot_explanation(self, row: Any, against: Any = None, ax: Any = None) -> Any:
        """A picture of one row's weights of evidence; needs matplotlib.

        Parameters
        ----------
        row : the features of one row
        against : label, optional
            The class to compare with; by default the runner-up.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        return self.explain(row, against).plot(0, ax)

    def show_work(self, row: Any) -> str:
        """Bayes' rule for one row, line by line with its numbers, as a textbook would write it.

        Parameters
        ----------
        row : the features of one row

        Returns
        -------
        str
        """
        check_is_fitted(self, "tally_")
        return show_work(self, row)

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters, those of the class prior included."""
        check_is_fitted(self, "tally_")
        return max(len(self._class_domain.levels) - 1, 0) + self._known.n_parameters

    @property
    def n_parameters_joint_(self) -> int | None:
        """What the full joint table of the same columns would take; None where a column is not of labels or yes/no."""
        check_is_fitted(self, "tally_")
        sizes = [len(self._class_domain.levels)]
        for factor, statistics in self._known.pairs:
            if factor.family.reads == "codes":
                sizes += [len(self.tally_.domains[str(name)].levels) for name in factor.columns]
            elif type(factor.family) is Bernoulli:
                sizes += [2] * n_columns(factor.family, statistics)
            else:
                return None
        return math.prod(sizes) - 1

    def log_evidence(self) -> float:
        """log p(X, y) of all rows counted, in nats, with every parameter integrated out: the log marginal likelihood.

        It is the sum, row after row, of the log probability of each under the model learned from those before it. The
        parameters are integrated under ``prior_``, whichever ``estimate`` predicts (``"map"`` has default priors of its
        own), the class probabilities under ``class_prior`` where it is a `Dirichlet`, else under ``Dirichlet(1)``;
        probabilities that are given are taken as they are. The levels of a column are taken as known, and so is what
        default priors read from the data. Columns that are the same in every row (``constant_columns_``) have no finite
        density and are left out. `compare` turns evidence into Bayes factors.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> model = tb.NaiveBayes(tb.Bernoulli()).fit([[1], [1], [0]], ["a", "a", "b"])
        >>> labels, cells = 2 / 4 / 3 / 2, [1 / 3, 1 / 2]             # under Dirichlet(1) and Beta(1, 1)
        >>> bool(np.isclose(model.log_evidence(), np.log(labels * cells[0] * cells[1])))
        True
        """
        check_is_fitted(self, "tally_")
        return evidence_of(self).log_evidence

    def to_linear(self) -> LinearForm:
        """The linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the weights of every class.

        It exists for `Bernoulli` and `Multinomial` columns under every estimate, for `Poisson` and `TiedGaussian` under
        ``"mle"``, ``"unbiased"`` and ``"map"``; elsewhere `NotLinearError` says which columns bend it.

        Returns
        -------
        LinearForm
        """
        check_is_fitted(self, "tally_")
        form = to_linear(self._scored, self.class_log_prior_, self.classes_)
        columns: list[Any] = list(form.columns)
        fitted = list(getattr(self, "feature_names_in_", ())) or sorted(c for c in columns if isinstance(c, int))
        if form.coef.shape[1] != len(columns) or not set(columns) <= set(fitted):
            return form
        order = sorted(range(len(columns)), key=lambda place: fitted.index(columns[place]))  # as X has them
        return form._replace(coef=form.coef[:, order], columns=tuple(columns[place] for place in order))
