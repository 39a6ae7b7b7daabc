"""GenerativeClassifier: what a joint distribution answers besides the class. The base of the generative classifiers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.block import Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.models.classifier import FactoredClassifier
from tallybayes.models.explain import Explanation, explain
from tallybayes.models.features import labels_of
from tallybayes.models.generate import (
    Missing,
    check_class,
    fill_column,
    is_labels,
    missing_cells,
    n_columns,
    sample_factor,
)
from tallybayes.models.linear import Linear, to_linear
from tallybayes.models.model_file import save_model
from tallybayes.models.show_work import show_work
from tallybayes.tally.factor import Name


class GenerativeClassifier(FactoredClassifier):
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
        if given is None:
            codes = rng.choice(len(levels), size=n, p=np.exp(self.class_log_prior_))
        else:
            codes = np.full(n, check_class(given, levels))
        self._check_estimated(np.where(np.isin(np.arange(len(levels)), codes), 0.0, -np.inf))
        columns: dict[Name, Any] = {}
        for scored, (factor, statistics) in zip(self._scored_known, self._feature_factors(), strict=True):
            rows = sample_factor(scored, codes, statistics, rng)
            if isinstance(factor.family, Categorical):
                for place, name in enumerate(factor.columns):
                    columns[name] = labels_of(self.tally_.domains[str(name)].levels, None)[rows[:, place].astype(int)]
            elif len(factor.columns) == 1 and rows.shape[1] > 1:
                columns[factor.columns[0]] = rows
            else:
                columns.update({name: rows[:, place] for place, name in enumerate(factor.columns)})
        return self._shaped(columns), self.classes_[codes]

    def _shaped(self, columns: dict[Name, Any]) -> Any:
        """Columns as the model was given them: one array, or a dictionary."""
        if not self._by_name and all(isinstance(name, int) for name in columns):
            return np.stack([columns[name] for name in sorted(columns)], axis=-1)
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
        for scored in self._scored:
            names = scored.factor.columns
            domains = [self.tally_.domains[str(name)] for name in names] if is_labels(scored) else []
            for place, cells in missing_cells(scored, table, self._rows(table, scored), weights, domains).items():
                name = scored.factor.column(place, table.width(names[0]))
                found[name] = cells
                if name in columns:
                    columns[name] = fill_column(columns[name], cells, how)
                else:  # a column of a block
                    block, where = name
                    columns[block][:, where] = fill_column(columns[block][:, where], cells, how)
        return found if how == "distribution" else self._shaped(columns)

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
        features = sum(factor.family.n_parameters(statistics) for factor, statistics in self._feature_factors())
        return max(len(self._class_domain.levels) - 1, 0) + features

    @property
    def n_parameters_joint_(self) -> int | None:
        """What the full joint table of the same columns would take; None where a column is not of labels or yes/no."""
        check_is_fitted(self, "tally_")
        sizes = [len(self._class_domain.levels)]
        for factor, statistics in self._feature_factors():
            if isinstance(factor.family, Categorical):
                sizes += [len(self.tally_.domains[str(name)].levels) for name in factor.columns]
            elif type(factor.family) is Bernoulli:
                sizes += [2] * n_columns(factor.family, statistics)
            else:
                return None
        return math.prod(sizes) - 1

    def to_linear(self) -> Linear:
        """The linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the weights of every class.

        It exists for `Bernoulli` and `Multinomial` columns under every estimate, for `Poisson` and `TiedGaussian` under
        ``"mle"``, ``"unbiased"`` and ``"map"``; elsewhere `NotLinearError` says which columns bend it.

        Returns
        -------
        Linear
        """
        check_is_fitted(self, "tally_")
        form = to_linear(self._scored, self.class_log_prior_, self.classes_)
        columns: list[Any] = list(form.columns)
        fitted = list(getattr(self, "feature_names_in_", ())) or sorted(c for c in columns if isinstance(c, int))
        if form.coef.shape[1] != len(columns) or not set(columns) <= set(fitted):
            return form
        order = sorted(range(len(columns)), key=lambda place: fitted.index(columns[place]))  # as X has them
        return form._replace(coef=form.coef[:, order], columns=tuple(columns[place] for place in order))

    def save(self, path: Any) -> None:
        """Write the model to a sealed file that `tb.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "tally_")
        save_model(self, path)
