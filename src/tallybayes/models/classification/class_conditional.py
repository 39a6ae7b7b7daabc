"""ClassConditionalModel: p(class) Π p(block | class), the base class of classifiers and mixtures."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.errors import LabelError
from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.factor_sampling import MissingCellPrediction
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    factor_cells,
)
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.models.base import Model
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_parameters import class_prior, labeled_factors
from tallybayes.models.classification.class_prior import (
    CLASS_PRIOR_WORDS,
    check_class_prior,
)
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
from tallybayes.models.classification.methods import classifier_plots
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.class_sampling import impute, predict_missing, sample, sample_columns
from tallybayes.models.classification.methods.decisions import decide, estimate_class_prior
from tallybayes.models.classification.methods.explanation import (
    ExplanationPart,
    PriorPart,
    explain,
    factor_parts,
    plot_explanation,
)
from tallybayes.models.classification.methods.model_export import to_onnx, to_sql
from tallybayes.models.classification.methods.show_work import calculation, show_work
from tallybayes.models.classification.methods.uncertainty import predict_set
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.column_priors import check_priors, prior_in_groups
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import InputFormat, open_rows, read_more_rows, with_weight
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection import information_criteria, labeled_parameters
from tallybayes.models.inspection.model_summary import rows_by_class, summary, title_by_class
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor, with_selected_words
from tallybayes.typing import ClassPrior, Labels, Name, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import numpy.typing as npt
    import onnx
    from matplotlib.axes import Axes

    from tallybayes.models.classification.methods.explanation import Explanation
    from tallybayes.models.inspection.labeled_parameters import LabeledFactor
    from tallybayes.models.inspection.model_summary import Summary
    from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable
    from tallybayes.plotting.plot import Plot
    from tallybayes.results.threshold import Threshold
    from tallybayes.typing import Names, RandomState


class ClassConditionalModel(Model):
    """Base class of classifiers and mixtures: p(class | row) ∝ p(class) Π p(block | class), by Bayes' rule.

    The classes of a mixture are its components. A subclass has the parameters ``estimate``, ``prior`` and
    ``class_prior``, and defines how its tally is counted.
    """

    estimate: str
    prior: Any
    class_prior: Any
    unseen: str = "missing"
    tally_: Tally
    input_format_: InputFormat
    _soft_counts_hint = (
        "Fit it on labeled rows without missing values under a full covariance; or use evidence_lower_bound_ of\n"
        "    tb.Mixture."
    )
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(("missing", "smooth", "error")),
        "class_prior": CLASS_PRIOR_WORDS,
    }
    _calibration: Calibration | None = None  # of classifiers only
    _initial: Any = None  # during `fit`: the model with the initial values of EM
    _calibration_pending = False  # whether a calibration was requested and is missing

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
    def _target(self) -> Name:
        """The name of the target column."""
        return self.input_format_.target

    @property
    def _class_domain(self) -> Domain:
        """The classes of the tally."""
        return classifier_fit.class_domain(self)

    def _with_one_target(self, other: Self) -> tuple[Self, Self]:
        """Return both models with the same name of the target."""
        return classifier_fit.with_one_target(self, other)

    @property
    def class_log_prior_(self) -> np.ndarray:
        """log p(class), in the order of ``classes_``; −inf for a class with probability zero."""
        return self._estimated_classifier.class_log_prior

    @property
    def constant_columns_(self) -> list[Any]:
        """The columns with the same value in every row; they do not change any prediction."""
        return [
            scorer.factor.column(int(index))
            for scorer in self._estimated_classifier.scorers
            for index in scorer.constant
        ]

    # ---- Estimation ---------------------------------------------------------------------------------------------

    @property
    def _estimated_classifier(self) -> EstimatedClassifier:
        """The estimated factors and the class prior."""
        return self._cached("estimated", self._estimate)

    def _estimate(self) -> EstimatedClassifier:
        """Estimate the factors from the tally, or take the user-specified parameters."""
        pairs = self._feature_factors()
        fixed = self._fixed_parameters
        groups = self._class_domain.levels
        if fixed is None:
            self._check_prior([factor for factor, _ in pairs])
            priors = [self._prior_of(factor) for factor, _ in pairs]
            factors = EstimatedFactors(pairs, priors, self.estimate, groups=groups)
        else:
            factors = EstimatedFactors.from_fixed_parameters(pairs, self._fixed_feature_parameters(), groups)
        class_proba = None if fixed is None else fixed[0]
        class_factor = classifier_fit.class_factor(self)
        return EstimatedClassifier(
            self._selected_tally, class_factor, factors, self.class_prior, self.unseen, class_proba
        )

    def _feature_factors(self) -> list[tuple[Factor, Statistics]]:
        """Return the factors p(block | class) with their statistics."""
        pairs = zip(self._selected_tally.factors, self._selected_tally.statistics, strict=True)
        return [(factor, statistics) for factor, statistics in pairs if len(factor.given) == 1]

    def _fixed_feature_parameters(self) -> list[Any]:
        """Return the user-specified parameters of the factors p(block | class)."""
        assert self._fixed_parameters is not None
        pairs = zip(self.tally_.factors, self._fixed_parameters, strict=True)
        return [parameters for factor, parameters in pairs if factor.given]

    def _prior_of(self, factor: Factor) -> Any:
        """Return the prior of a factor; if ``prior`` is a tally, the default prior updated with its statistics."""
        if not isinstance(self.prior, Tally):
            domains = self._selected_tally.domains
            return prior_in_groups(self.prior, factor, self.estimate, lambda name: domains[str(name)].levels)
        earlier = with_selected_words(self.prior.reindex_like(self.tally_), self._selected_words)[factor.columns]
        return factor.family.resolve_prior(None, self._selected_tally[factor.columns], self.estimate).update(earlier)

    @property
    def _estimated(self) -> EstimatedFactors:
        """The estimated factors, over the observed levels."""
        return self._estimated_classifier.factors

    @property
    def _scoring_factors(self) -> EstimatedFactors:
        """The estimated factors that score rows."""
        return self._estimated_classifier.scoring_factors

    @property
    def _factor_scorers(self) -> list[FactorScorer]:
        """The scorer of every factor."""
        return self._estimated_classifier.scorers

    @property
    def _all_factors(self) -> EstimatedFactors:
        """All estimated factors, that of the class included unless its probabilities are fixed."""
        return self._estimated_classifier.all_factors

    @property
    def _fixed_log_prob(self) -> float:  # type: ignore[override]
        """log p(classes of all rows), if the class probabilities are fixed."""
        return self._estimated_classifier.fixed_log_prob

    def _resolved_priors(self) -> dict[Any, Any]:
        """Return the resolved priors by column."""
        return information_criteria.priors_by_column(self._estimated)

    def _with_tally(self, tally: Tally) -> Self:
        """Return this model with other counts of the same levels; the priors are held fixed."""
        other = copy.copy(self)._set_tally(tally)._with_words_of(self)
        pairs = other._feature_factors()
        return other._with_estimates(self._estimated_classifier.with_statistics(other._selected_tally, pairs))

    def _with_scaled_priors(self, factor: float) -> Self:
        """Return this model with the strength of every prior multiplied by ``factor``."""
        return copy.copy(self)._set_tally(self.tally_)._with_estimates(self._estimated_classifier.scaled(factor))

    def _with_estimates(self, estimates: EstimatedClassifier) -> Self:
        """Use estimates that were computed elsewhere."""
        self._cache["estimated"] = estimates
        return self

    def _statistics_are_per_row(self) -> bool:
        """Return whether the statistics that are scored are sums over rows."""
        return True

    # ---- Prediction ---------------------------------------------------------------------------------------------

    @property
    def _row_scorer(self) -> RowScorer:
        """The scorer of rows under the class prior of the model."""
        return self._cached("row_scorer", lambda: self._make_row_scorer(self.class_log_prior_))

    def _make_row_scorer(self, log_prior: np.ndarray) -> RowScorer:
        """Return the scorer of rows under a class prior."""
        return self._estimated_classifier.row_scorer(log_prior)

    def _check_estimated(self, log_prior: np.ndarray) -> None:
        """Raise DataError if there is no class, or if a possible class has an undefined estimate."""
        self._estimated_classifier.check_defined(log_prior)

    def _column_specs(self) -> list[ColumnSpec]:
        """Return the columns, the family and the levels of every factor."""
        return self._estimated_classifier.column_specs

    def _level_domains(self, scorer: FactorScorer) -> list[Domain]:
        """Return the levels of every column of a categorical factor."""
        return self._estimated_classifier.level_domains(scorer)

    def _factor_cells(self, table: Table, scorer: FactorScorer) -> Any:
        """Return the cells of one factor, ready for its scorer."""
        return self._estimated_classifier.cells(table, scorer)

    def _log_prior(self, class_prior: ClassPrior, counts: Any = None) -> np.ndarray:
        """Return log p(class) under a class prior, by default with the counts of the model."""
        return self._estimated_classifier.log_prior(class_prior, counts)

    def _open(self, X: Rows) -> Table:
        """Return rows as a table with the columns of the model; raise NotFittedError before the model is fitted."""
        check_is_fitted(self, "tally_")
        return open_rows(self, X)

    def _joint(self, table: Table, log_prior: np.ndarray | None = None, *, whole: bool = True) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); unless `whole`, without the terms that all classes share."""
        self._check_estimated(self.class_log_prior_ if log_prior is None else log_prior)
        scorer = self._row_scorer if log_prior is None else self._make_row_scorer(log_prior)
        return scorer.joint(table, whole=whole)

    def _posterior(self, table: Table, log_prior: np.ndarray | None = None) -> ClassPosterior:
        """Return log p(class | row), and log p(row) without the terms that all classes share."""
        self._check_estimated(self.class_log_prior_ if log_prior is None else log_prior)
        scorer = self._row_scorer if log_prior is None else self._make_row_scorer(log_prior)
        return scorer.posterior(table)

    @predict_in_batches
    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of every row; ties go to the first class.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        self._check_estimated(self.class_log_prior_)
        if self._calibration is not None:  # it can change the order of the classes
            return self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        codes = None
        if (
            not self.input_format_.by_name
            and type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[1] == self.input_format_.n_features
        ):
            codes = self._row_scorer.argmax_array(X)  # without a table, if the kernels read the array directly
        return self.classes_[self._row_scorer.argmax(self._open(X)) if codes is None else codes]

    @predict_in_batches
    def predict_joint_log_proba(self, X: Rows) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); −inf where a row is impossible in a class.

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        return self._joint(self._open(X))

    @predict_in_batches
    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return log p(class | row), shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The class prior of the rows to predict, if it differs from that of the training rows.
        """
        return self._log_proba(self._open(X), class_prior)

    @predict_in_batches
    def predict_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return p(class | row), shape (n, classes).

        A row that is impossible in every class gets the class prior, and a warning names it.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The class prior of the rows to predict, if it differs from that of the training rows.
        """
        return np.exp(self._log_proba(self._open(X), class_prior))

    def _log_proba(self, table: Table, class_prior: ClassPrior = None) -> np.ndarray:
        """Return log p(class | row), calibrated if there is a calibration."""
        prior = None if class_prior is None else self._log_prior(class_prior)
        calibration = self._calibration
        posterior = self._posterior(table, prior if calibration is None else None)
        if posterior.impossible.any():
            self._warn_impossible(table, posterior.impossible)
        if calibration is None:
            if self._calibration_pending:
                self._warn_uncalibrated()
            return posterior.log_proba
        log_proba = calibration.apply(posterior.log_proba)  # fitted under the class prior of the model
        if prior is None:
            return log_proba
        own = self.class_log_prior_
        return apply_bayes_rule(log_proba + prior - np.where(np.isneginf(own), 0.0, own), own).log_proba

    @predict_in_batches
    def score_samples(self, X: Rows) -> np.ndarray:
        """Return log p(row), summed over the classes, shape (n,); −inf for an impossible row.

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        return self._row_scorer.posterior(self._open(X), whole=True).log_density

    def log_likelihood(self, X: Rows, y: Labels | None = None, *, sample_weight: SampleWeights = None) -> float:
        """Return the log-likelihood of the rows or, with ``y``, of the rows and their classes, in nats.

        Parameters
        ----------
        X : as for `fit`
        y : array-like of shape (n,), or the name of a column of X, optional
        sample_weight : array-like of shape (n,), or the name of a column of X, optional
        """
        check_is_fitted(self, "tally_")
        if y is None:
            X, weight = with_weight(open_features(X), sample_weight)
            return information_criteria.weighted_sum(self.score_samples(X), weight)
        table, weight = read_more_rows(self, X, y, sample_weight)
        codes = factor_cells(table, [self._target], Categorical(), [self._class_domain], "error")[:, 0]
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise LabelError(f"y is missing in row {row}; expected a class for every row.\n    Or pass y=None.")
        joint = self.predict_joint_log_proba(table if self.input_format_.by_name else table.without(self._target))
        return information_criteria.weighted_sum(joint[np.arange(len(codes)), codes], weight)

    def _warn_impossible(self, table: Table, impossible: np.ndarray) -> None:
        """Warn about rows that are impossible in every class; name the first one, and its first impossible column."""
        row = int(np.flatnonzero(impossible)[0])
        n_rows = int(impossible.sum())
        column = self._estimated_classifier.first_impossible_column(table, row)
        where = f" (column {column!r})" if column is not None else ""
        more = f", and {n_rows - 1} more rows," if n_rows > 1 else ""
        hint = (
            "" if self._fixed_parameters is not None else "\n    Use estimate='bayes': unobserved values stay possible."
        )
        warn(f"row {row}{where}{more} is impossible in every class, so its class prior is returned.{hint}", UserWarning)

    # ---- Sampling, explanation, decisions, export, plots ---------------------------------------------------------

    def sample(self, n: int, given: Hashable = None, *, random_state: RandomState = None) -> tuple[Any, np.ndarray]:
        """Draw random rows from the model.

        Parameters
        ----------
        n : int
        given : label, optional
            The class of all rows; by default classes are drawn from the class prior.
        random_state : int, Generator or None

        Returns
        -------
        X : data frame of the library of the training rows, else an array of shape (n, columns)
            Or a dictionary of columns, if they have names or levels.
        y : ndarray of shape (n,)
        """
        return sample(self, n, given, random_state=random_state)

    def impute(self, X: Rows, how: str = "mean") -> Any:
        """Impute missing cells from the other cells of their row.

        Parameters
        ----------
        X : as for `fit`, without the target
        how : {"mean", "mode", "distribution"}, default "mean"
            Numbers are imputed by their conditional mean, or by that of the most probable class (``"mode"``);
            categorical cells by the most probable level. ``"distribution"`` returns the predictive distributions
            instead.

        Returns
        -------
        A copy of X: a data frame of the same library, an array or a dictionary of columns
            For ``"distribution"``, a `MissingCellPrediction` for each column with missing cells.
        """
        return impute(self, X, how)

    def explain(self, X: Rows, against: Hashable = None) -> Explanation:
        """Return the contribution of each column to the log-odds of each row, as weights of evidence.

        The contributions of a row sum exactly to its log-odds.

        Parameters
        ----------
        X : as for `fit`, without the target
        against : label, optional
            The class to compare with; by default the runner-up.

        Returns
        -------
        Explanation
            Of the most probable class of each row. It prints as a table and has ``to_frame`` and ``plot``.
        """
        return explain(self, X, against)

    def show_work(self, row: Rows) -> str:
        """Return a step-by-step calculation of Bayes' rule for one row, as text.

        The rows without indentation sum to log p(class, x). Columns with a joint distribution contribute one row, with
        the quadratic form of their density. Missing cells are marginalized.

        Parameters
        ----------
        row : the features of one row

        Returns
        -------
        str
        """
        return show_work(self, row)

    def plot_explanation(self, row: Rows, against: Hashable = None, ax: Axes | None = None) -> Plot:
        """Plot the contributions of the columns to one row; needs matplotlib.

        Parameters
        ----------
        row : the features of one row
        against : label, optional
            The class to compare with; by default the runner-up.
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return plot_explanation(self, row, against, ax)

    def plot_columns(self, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None) -> Plot:
        """Plot the distribution of each column in each class; needs matplotlib.

        Parameters
        ----------
        columns : name, or list of names, optional
            The columns to plot. By default all; of more than twelve, the most informative about the class under the
            model.
        X, y : as for `fit`, optional
            Rows whose histograms are drawn behind the densities.

        Returns
        -------
        Plot
        """
        return classifier_plots.plot_columns(self, columns, X, y)

    def plot_decision_boundary(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        columns: Iterable[Name] | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot the decision regions in the plane of two columns, or p(class | x) along one; needs matplotlib.

        All other columns are marginalized, as missing cells are. For Gaussian columns, each class has an ellipse of two
        standard deviations.

        Parameters
        ----------
        X : as for `fit`, optional
            Rows to draw on top.
        y : array-like of shape (n,), optional
            Their classes.
        columns : one or two names, optional
            By default, the two columns that are most informative about the class under the model.
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return classifier_plots.plot_decision_boundary(self, X, y, columns, ax)

    def plot_joint(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        columns: Iterable[Name] | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot p(a, b | class) beside p(a | class) p(b | class), the naive Bayes assumption; needs matplotlib.

        The title shows the conditional mutual information I(a; b | class) in bits per row, the loss of the product; for
        two Gaussian columns it is −½ log₂(1 − ρ²). The contours are at e^(−½) and e^(−2) of the peak density, one and
        two standard deviations of a Gaussian; discs show the probabilities of two categorical columns.

        A model that assumes independence, such as `NaiveBayes`, has no joint distribution; it is estimated from the
        rows: the joint table of two categorical columns, a distribution per level of one, the full covariance of two
        Gaussian columns, or a Gaussian copula of other numbers.

        Parameters
        ----------
        X, y : as for `fit`, optional
            Rows to draw, and their classes. Required if the model has no joint distribution; a mixture needs X only.
        columns : two names, optional
            By default, the two columns that are most informative about the class under the model.
        ax : two matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return classifier_plots.plot_joint(self, X, y, columns, ax)

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
        return classifier_plots.plot_class_means(self, shape)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """Plot the model as a graph with plates for repeated nodes; needs matplotlib.

        Observed nodes are shaded; small circles are parameters.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return classifier_plots.plot_graph(self, ax)

    def predict_set(self, X: Rows, mass: float = 0.95) -> np.ndarray:
        """Return the smallest set of classes with a total probability of at least `mass`: a credible set for each row.

        Parameters
        ----------
        X : as for `fit`, without the target
        mass : float, default 0.95

        Returns
        -------
        ndarray of bool of shape (n, classes)
            Which of ``classes_`` are in the set. The most probable class always is; ties go to the first.

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
        return predict_set(self, X, mass)

    def decide(
        self,
        X: Rows,
        cost: Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None = None,
        *,
        abstain: float | None = None,
        class_prior: ClassPrior = None,
        precision: float | None = None,
        recall: float | None = None,
        held_out: tuple[Rows, Labels] | None = None,
        positive: Hashable | None = None,
        threshold: Threshold | None = None,
    ) -> np.ndarray:
        """Return the decision of least expected cost for each row, or the class by a threshold on its probability.

        Uneven costs and class frequencies do not require resampling of the rows. A required precision or recall of one
        class is reached by a threshold found on held-out rows. A row is assigned to the positive class if its
        probability is at or above the threshold, otherwise to the most probable other class.

        Parameters
        ----------
        X : as for `fit`, without the target
        cost : {true: {decided: cost}}, or array of shape (classes, classes), optional
            The cost of each decision by true class. The rows of an array are true classes, its columns decisions, in
            the order of ``classes_``. The decisions of a mapping need not be classes. Costs are finite numbers, gains
            are negative. By default each error costs 1.
        abstain : float, optional
            The cost of making no decision.
        class_prior : as for the constructor, optional
            The class probabilities at decision time, if they differ from those of the training rows.
        precision : float, optional
            The required precision of the positive class on the held-out rows. Of such thresholds, the one of highest
            recall is used.
        recall : float, optional
            The required recall of the positive class on the held-out rows. Of such thresholds, the one of highest
            precision is used.
        held_out : pair (X, y), optional
            Rows with classes that the model was not fitted on, to find the threshold for `precision` or `recall`.
        positive : label, optional
            The class of the threshold; by default the second of two classes.
        threshold : Threshold, optional
            A threshold from ``tb.evaluate(model, X, y).threshold(precision=...)``.

        Returns
        -------
        ndarray of shape (n,)
            The decisions, of the type of ``classes_`` if they are classes. With `abstain` an object array, with None if
            every decision would cost more. Ties go to the first decision.

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
        >>> checked = {"offer": [1, 1, 0, 0]}, ["spam", "ham", "ham", "ham"]
        >>> model.decide({"offer": [1, 0]}, recall=1, held_out=checked, positive="spam").tolist()
        ['spam', 'ham']
        """
        return decide(
            self,
            X,
            cost,
            abstain=abstain,
            class_prior=class_prior,
            precision=precision,
            recall=recall,
            held_out=held_out,
            positive=positive,
            threshold=threshold,
        )

    def estimate_class_prior(
        self, X: Rows, *, sample_weight: SampleWeights = None, max_iter: int = 100, tol: float = 1e-09
    ) -> dict[Any, float]:
        """Estimate the class frequencies of unlabeled rows by maximum likelihood.

        The distribution of rows within each class stays fixed; only the class frequencies change (label shift). The
        maximum is that of EM on the prior alone (Saerens, Latinne and Decaestecker 2002), computed by Newton's method.
        Classes that the rows cannot distinguish keep their fitted proportions. A class without training rows gets
        probability 0.

        Parameters
        ----------
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), or column name of X, optional
        max_iter : int, default 100
            The maximum number of Newton iterations; a warning follows if they are too few.
        tol : float, default 1e-9
            The tolerance of the mean log-likelihood per row.

        Returns
        -------
        dict
            The probability of each class, which ``class_prior`` accepts.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(["ill", "well"], 1000)                    # balanced training classes
        >>> model = tb.NaiveBayes().fit(rng.normal(3.0 * (y == "ill"))[:, None], y)
        >>> elsewhere = rng.normal(np.where(rng.random(5000) < 0.1, 3.0, 0.0))[:, None]
        >>> prior = model.estimate_class_prior(elsewhere)
        >>> round(prior["ill"], 1)
        0.1
        >>> model.predict_proba([[2.0]])[0, 0].round(1), model.predict_proba([[2.0]], class_prior=prior)[0, 0].round(1)
        (np.float64(0.8), np.float64(0.3))
        """
        return estimate_class_prior(self, X, sample_weight=sample_weight, max_iter=max_iter, tol=tol)

    def to_sql(self, dialect: str, table: str | tuple[str, ...], *, keep: Names = (), proba: bool = True) -> str:
        """Return the model as one SELECT statement that computes `predict` and `predict_proba` in a database.

        The query contains all parameters of the model: level weights are joined, numeric terms are computed.

        Parameters
        ----------
        dialect : {"duckdb", "postgresql", "sqlite", "spark"}
            SQLite needs its mathematical functions, which Python's build includes.
        table : str, or tuple of str
            A table name, ``"schema.name"`` or ``("schema", "na.me")``, or a query. Columns are found by name; the
            columns of a model fitted on an array are called "0", "1" and so on.
        keep : name, or sequence of names, optional
            Columns of the table to copy into the result, such as a row identifier.
        proba : bool, default True
            Whether the result contains p(class | row), one column per class.

        Returns
        -------
        str
            The result columns are `keep`, ``prediction``, and ``p(label)`` for each class. A name that is not unique,
            ignoring case, gets an underscore.

        Notes ----- The database returns rows in any order: use `keep` to identify them. NULL and NaN are missing cells.
        Unseen levels are treated as ``unseen`` specifies. Rows for which `predict_proba` raises an error (infinite
        numbers, missing word counts, ``unseen="error"``) have the prediction NULL. Numbers with a log probability below
        −1e15 in every class lose the precision needed to compare the classes.

        Examples
        --------
        >>> import sqlite3
        >>> import tallybayes as tb
        >>> rows = {"sky": ["sun", "sun", "rain", None], "warmth": [25.0, 22.0, 14.0, 16.0], "picnic": [1, 1, 0, 0]}
        >>> model = tb.NaiveBayes().fit(rows, "picnic")
        >>> database = sqlite3.connect(":memory:")
        >>> _ = database.execute("CREATE TABLE days (day TEXT, sky TEXT, warmth REAL)")
        >>> _ = database.execute("INSERT INTO days VALUES ('Monday', 'rain', 15), ('Tuesday', 'sun', NULL)")
        >>> query = model.to_sql("sqlite", "days", keep="day")
        >>> [(day, picnic, round(p, 3)) for day, picnic, _, p in database.execute(query)]
        [('Monday', 0, 0.022), ('Tuesday', 1, 0.748)]
        >>> database.close()
        """
        return to_sql(self, dialect, table, keep=keep, proba=proba)

    def to_onnx(self) -> onnx.ModelProto:
        """Return the model as an ONNX graph, which onnxruntime runs without Python; needs onnx.

        Save it by ``onnx.save(model.to_onnx(), "model.onnx")``, or take its bytes, ``.SerializeToString()``.

        Returns
        -------
        onnx.ModelProto
            Its inputs are the columns, by name, each of shape (rows,): numbers as float64, with NaN for missing; levels
            as strings, with the empty string for missing unless it is a level; integer levels and booleans as int64,
            with −2⁶³ for missing. A model fitted on a numeric array has one input, "X" of shape (rows, columns). The
            outputs are the "label", as in ``classes_``, and the "probabilities", (rows, classes). An output with the
            name of a column gets an underscore.

        Notes ----- Unseen levels are treated as ``unseen`` specifies; "error" is not supported. Rows for which
        `predict_proba` raises an error (infinite numbers, missing word counts) have NaN probabilities.

        Examples
        --------
        >>> import numpy as np, onnxruntime
        >>> import tallybayes as tb
        >>> rows = {"sky": ["sun", "sun", "rain", None], "warmth": [25.0, 22.0, 14.0, 16.0], "picnic": [1, 1, 0, 0]}
        >>> model = tb.NaiveBayes().fit(rows, "picnic")
        >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        >>> label, p = session.run(None, {"sky": np.array(["rain", "sun"]), "warmth": np.array([15.0, np.nan])})
        >>> label.tolist(), p.round(3).tolist()
        ([0, 1], [[0.978, 0.022], [0.252, 0.748]])
        """
        return to_onnx(self)

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters, including class or state probabilities unless they are fixed."""
        return information_criteria.n_parameters(self)

    @property
    def prior_(self) -> dict[Any, Any]:
        """The resolved prior of every column or block of columns; ``prior=`` accepts it."""
        return information_criteria.resolved_priors(self)

    @property
    def parameters_(self) -> Parameters:
        """The parameters by column, a `ParameterTable` each, under the model's estimate.

        Probabilities of levels are labeled by level (of bins by interval); other parameters by name, such as mean,
        variance and rate. Under ``"bayes"`` these are posterior means; predictions integrate the parameters out.
        """
        return labeled_parameters.parameters(self)

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
        return labeled_parameters.table(self, column)

    @property
    def class_prior_(self) -> ParameterTable:
        """Return p(class): the fixed probabilities, or their estimate."""
        return class_prior(self)

    def _labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class) and every factor given the class, labeled."""
        return labeled_factors(self)

    def summary(self) -> Summary:
        """Return a summary of the columns: family, levels, fraction of missing cells and prior.

        Returns
        -------
        Summary
            It prints as a table.
        """
        return summary(self)

    _group_word = "classes"

    def _summary_title(self, n_rows: float) -> str:
        """The model, its rows, and how many there are of every class."""
        return title_by_class(self, n_rows)

    def _total_weight(self) -> float:
        """The weight of all rows that were counted, of a model with classes."""
        return rows_by_class(self)

    # ---- Hooks -------------------------------------------------------------------------------------------------

    def _explanation_parts(self, table: Table, prior: PriorPart, log_odds: np.ndarray) -> list[ExplanationPart]:
        """Return the contributions of the columns to the log-odds of rows."""
        return factor_parts(self._estimated_classifier, table, prior, self._display_name, self._selected_words)

    def _sample_columns(self, group: np.ndarray, rng: np.random.Generator) -> dict[Name, Any]:
        """Draw the columns of rows of these classes."""
        return sample_columns(self._estimated_classifier, group, self._selected_words, rng)

    def _predict_missing(self, table: Table, proba: np.ndarray, how: str) -> dict[Any, MissingCellPrediction]:
        """Return the predictive distributions of the missing cells of each column, given p(class | row)."""
        return predict_missing(self._estimated_classifier, table, proba)

    def _calculation(self, table: Table, joint: np.ndarray) -> CalculationSheet:
        """Return the calculation of log p(class, row) of one row."""
        word = "component" if self._group_word == "components" else "class"
        return calculation(self._estimated_classifier, table, self.classes_, word, self._display_name)

    def _check_settings(self) -> None:
        """Check the parameters of the constructor, the class prior included."""
        super()._check_settings()
        if self.class_prior is not None:
            check_class_prior(self.class_prior)

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise PriorError if the prior does not fit the families of the factors."""
        if self.prior is not None and not isinstance(self.prior, Tally):
            scored = [self._factor_for_scoring(factor) for factor in factors if len(factor.given) == 1]
            check_priors(self.prior, scored, self.estimate)

    def _discretize(self, table: Table) -> Table:
        """Return the rows as they are counted, with discretized columns."""
        return table

    def _factor_for_scoring(self, factor: Factor) -> Factor:
        """Return the factor in the family that scores rows."""
        return as_word_factor(factor)

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        return [factor for factor in tally.factors if len(factor.given) == 1]

    def _warn_uncalibrated(self) -> None:
        """Warn that a calibration is missing."""

    def _copy_input_format(self, other: Any) -> Self:
        """Copy the input format and the dropped columns of another model."""
        self.input_format_, self._dropped_columns = other.input_format_, other._dropped_columns
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the input format as JSON."""
        return self.input_format_.to_json()

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Set the input format that `_shape_to_json` returned."""
        self.input_format_ = InputFormat.from_json(state, tally)

    def _check_loaded(self) -> None:
        """Raise an error if the classes of a loaded model do not have the data type of the file."""
        _ = self.classes_

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: missing cells and sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
