"""Mixture: mixture models fitted by EM, for clustering tables of mixed columns with missing cells."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import ClassifierTags

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import is_integer_at_least
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError, StatisticsError, short_repr
from tallybayes.estimation.em.em_objective import check_n_groups, initial_model, plot_convergence
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.classifier_fit import count_first
from tallybayes.models.classification.classifier_from_parameters import read_components
from tallybayes.models.classification.independent_blocks import IndependentBlocksMixin
from tallybayes.models.classification.independent_columns import column_tags, retally
from tallybayes.models.inputs.columns import column_factors, columns_of, dropped_columns_of, repr_lines
from tallybayes.models.inputs.features import open_features
from tallybayes.tally.tally import Tally
from tallybayes.typing import ClassPrior, Columns, Priors, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes

    from tallybayes.data.table import Table
    from tallybayes.estimation.em.em_loop import EMSummary
    from tallybayes.families.family import Family
    from tallybayes.plotting.plot import Plot
    from tallybayes.tally.factor import Factor, Name


class Mixture(IndependentBlocksMixin, ClassConditionalModel):
    """Mixture model: p(row) = Σ p(component) Π p(column | component), with mixed columns and missing cells.

    It is naive Bayes with latent classes. The components are numbered 0, 1, …, in arbitrary order. Columns that are
    dependent within a component form one block of `MultivariateGaussian`.

    Parameters
    ----------
    n_components : int or "auto", default 2
        With "auto", `fit` tries 1, 2, 3, … components until the Bayesian information criterion (``bic_``) did not fall
        twice, and keeps the lowest.
    columns : "auto", "suggest", a Family, or a mapping from names, positions or tuples of them to these
        As for `NaiveBayes`; ``"suggest"`` considers each column on its own, because no class is known.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        The estimate from the expected counts of EM. EM maximizes the log posterior; under ``"mle"`` the log-likelihood.
    prior : as for `NaiveBayes`
    class_prior : {component: probability}, "uniform", "frequency", Dirichlet or None
        The mixing weights. None estimates them with one pseudo-count each under estimates with a prior, so that no
        component becomes empty; "frequency" estimates them without pseudo-counts.
    unseen : {"missing", "smooth", "error"}, default "missing"
        As for `NaiveBayes`.
    max_iter, tol : int and float
        The maximum number of EM iterations, and the tolerance of the objective per row.
    n_init : int, default 3
        The number of initializations (k-means++ on the observed cells); the best result is used.
    warm_start : bool, default False
        Whether `fit` starts from the current parameters of a fitted model.
    random_state : int, Generator or None
        The seed of the initializations.

    Attributes
    ----------
    columns_, dropped_columns_ : dict
        The family of each column, and the reasons of dropped columns.
    tally_ : Tally
        The expected sufficient statistics of each component.
    history_ : list of float
        The objective after each iteration; it never decreases.
    objectives_ : list of float
        The final objective of each initialization.
    converged_ : bool

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rows = {"length": [1.0, 1.2, np.nan, 5.0, 5.3, 5.1], "color": ["red", "red", "red", "blue", None, "blue"]}
    >>> model = tb.Mixture(2, random_state=0).fit(rows)
    >>> found = model.predict(rows)
    >>> bool((found[:3] == found[0]).all() and (found[3:] == found[3]).all() and found[0] != found[3])
    True
    """

    def __init__(
        self,
        n_components: int | str = 2,
        columns: Columns = "auto",
        *,
        estimate: str = "bayes",
        prior: Priors = None,
        class_prior: ClassPrior = None,
        unseen: str = "missing",
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 3,
        warm_start: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.columns = columns
        self.estimate = estimate
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state

    _soft_counts_hint = "Its evidence_lower_bound_ is below its evidence."
    _group_word = "component"
    unlabeled = "em"
    unlabeled_weight = 1.0
    missing_label = None

    @property
    def n_classes(self) -> int:
        """The number of components; under ``n_components="auto"`` of the fitted model."""
        return len(self.classes_) if self.n_components == "auto" else int(self.n_components)

    @property
    def weights_(self) -> np.ndarray:
        """The mixing weights p(component)."""
        return np.exp(self.class_log_prior_)

    @property
    def evidence_lower_bound_(self) -> float:
        """A lower bound (ELBO) of the log evidence of the observed data, in nats: higher is better.

        Let q be the posterior of the unobserved components or states. Then log p(rows) ≥ log ∫ exp E_q[log p(all | θ)]
        p(θ) dθ + the entropy of q. The integral is the closed form of complete rows, at the expected sufficient
        statistics, under ``prior_``. Without unobserved values it equals the evidence.
        """
        return self._likelihood_measures("evidence").evidence_bound()

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[Any, Any],
        class_prior: ClassPrior = None,
        *,
        columns: Columns | None = None,
        levels: Mapping[Any, Iterable[Any]] | None = None,
        strength: float | None = None,
        **options: Any,
    ) -> Mixture:
        """Return a mixture with user-specified parameters.

        Parameters
        ----------
        parameters, columns, levels, strength, **options
            As for `NaiveBayes.from_parameters`; the components are 0, 1, … With `strength`, EM also starts at the
            parameters (``warm_start``).
        class_prior : p(component), as an array, series or mapping

        Returns
        -------
        Mixture
            Pass it to ``fit(X, initial=mixture)`` of another mixture to start EM there.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> two = tb.Mixture.from_parameters({0: [{"mean": 0, "variance": 1}, {"mean": 3, "variance": 1}]}, [0.5, 0.5])
        >>> two.predict_proba([[1.5]])
        array([[0.5, 0.5]])
        """
        stated = read_components(parameters, class_prior, columns, levels)
        if strength is not None:
            options.setdefault("warm_start", True)  # such a prior identifies the components, so EM starts at its mean
        return cls(len(stated.groups), stated.families, **options)._with_parameters(stated, strength)

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

    def _make_factors(self, table: Table, target: Name, weight: SampleWeights) -> list[Factor]:
        """Return a factor for every block of like columns given the class, and set the dropped columns of the model."""
        factors, self._dropped_columns = column_factors(self.columns, self._initial, table, target, weight)
        return factors

    def _tally_for(self, other: Self) -> Tally:
        """Return the tally in the families of another model, if they have the same sufficient statistics."""
        return retally(self.tally_, self.columns, other.columns)

    def _count_initial_rows(
        self, table: Table, weight: SampleWeights, factors: list[Factor]
    ) -> tuple[Tally, EMSummary | None]:
        """Return the tally of the first rows and, if some values are missing that EM has to expect, how EM ended."""
        return count_first(self, factors, table, weight)

    def plot_convergence(self, ax: Axes | None = None) -> Plot:
        """Plot the objective of EM by iteration, for every initialization; needs matplotlib.

        Increase ``n_init`` if few initializations reach the highest objective. Maximum likelihood of discrete columns
        runs twice per initialization: after one iteration under default priors, and after their convergence. A model
        loaded from a file has the history of the best run only.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        return plot_convergence(self._em_result, type(self).__name__, ax)

    def plot_words(self, column: Name | None = None, most: int = 10, mass: float = 0.95) -> Plot:
        """Plot the most characteristic words of each class, with credible intervals; needs matplotlib.

        Words are ranked by their probability in the class times the log ratio to the largest probability in another
        class.

        Parameters
        ----------
        column : name, optional
            The text column or block of word counts; optional if there is only one.
        most : int, default 10
            The number of words per class.
        mass : float, default 0.95
            The posterior probability of the intervals.

        Returns
        -------
        Plot
        """
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.top_words import plot_words

        return plot_words(self, column, most, mass)

    def fit(
        self, X: Rows, y: None = None, sample_weight: SampleWeights = None, *, initial: Mixture | None = None
    ) -> Self:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : as for `NaiveBayes`
        y : None
            Ignored; pipelines of scikit-learn pass it.
        sample_weight : array-like of shape (n,), or column name of X, optional
        initial : Mixture, optional
            A model whose parameters initialize EM, instead of other initializations. The components keep its numbers.

        Returns
        -------
        self
        """
        initial = initial_model(self, initial)
        if self.n_components == "auto":
            if initial is not None:
                raise DataError(
                    "initial is a model with a fixed number of components, and n_components is 'auto'.\n"
                    "    Pass n_components=len(initial.classes_), or leave initial out."
                )
            return self._fit_lowest_bic(X, sample_weight)
        if initial is not None:
            check_n_groups(len(initial.classes_), "components", "n_components", self.n_classes)
        if not is_integer_at_least(self.n_components, 1):
            expected = "a whole number of at least 1, or 'auto'"
            raise DataError.wrong_type("n_components", short_repr(self.n_components), expected)
        X = X if open_source(X) is None else open_features(X)  # EM needs all rows in memory
        no_labels = np.broadcast_to(np.nan, (open_features(X).n_rows,))
        classifier_fit.fit_initial(self, X, no_labels, sample_weight, initial=initial)
        self.input_format_ = self.input_format_._replace(y_dtype=np.dtype(np.int64))
        return self

    def _fit_lowest_bic(self, X: Rows, sample_weight: SampleWeights) -> Self:
        """Fit mixtures of 1, 2, 3, … components, and keep the one with the lowest Bayesian information criterion."""
        X = X if open_source(X) is None else open_features(X)  # an iterator yields its batches once
        models: list[Self] = []
        for n_components in range(1, max(1, open_features(X).n_rows) + 1):
            models.append(clone(self).set_params(n_components=n_components).fit(X, sample_weight=sample_weight))
            best = min(models, key=lambda model: model.bic_)
            if n_components - best.n_classes == 2:
                break
        vars(self).update(vars(best) | self.get_params(deep=False))
        return self

    def score(self, X: Rows, y: None = None, sample_weight: SampleWeights = None) -> float:
        """Return the mean log p(row), in nats.

        Parameters
        ----------
        X : as for `fit`
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), or column name of X, optional
        """
        weight: Any = sample_weight
        if isinstance(sample_weight, str):
            table = open_features(X)
            X = table.without(sample_weight)
            weight = table.column(sample_weight)
        return float(np.average(self.score_samples(X), weights=weight))

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
        """Remove a component and its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        return classifier_fit.drop_class(self, label)

    def fit_predict(self, X: Rows, y: None = None, sample_weight: SampleWeights = None) -> np.ndarray:
        """Fit the mixture, and return the most probable component of each row.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        ndarray of int of shape (n,)
        """
        return self.fit(X, y, sample_weight).predict(X)

    def __add__(self, other: object) -> Any:
        raise StatisticsError(
            "mixtures fitted separately cannot be merged, because their components do not correspond.\n"
            "    Fit one mixture to all rows."
        )

    def __sklearn_tags__(self) -> Any:
        tags = column_tags(self.columns, super().__sklearn_tags__())
        tags.estimator_type = "density_estimator"
        tags.target_tags.required = False
        tags.classifier_tags = ClassifierTags()  # scikit-learn expects classifier tags of estimators with predict_proba
        return tags
