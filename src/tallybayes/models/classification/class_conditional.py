"""ClassConditionalModel: p(class) Π p(block | class), the base class of classifiers and mixtures."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.table import Table
from tallybayes.errors import LabelError
from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    factor_cells,
)
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.base import Model
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_em import EMModel
from tallybayes.models.classification.class_prior import (
    CLASS_PRIOR_WORDS,
    check_class_prior,
)
from tallybayes.models.classification.classifier_from_parameters import StatedParameters
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier, estimates_of
from tallybayes.models.classification.methods import export
from tallybayes.models.classification.methods.class_sampling import check_how, imputed_columns, sample
from tallybayes.models.classification.methods.decisions import decide, estimate_class_prior
from tallybayes.models.classification.methods.explanation import explain
from tallybayes.models.classification.methods.show_work import show_work
from tallybayes.models.classification.methods.uncertainty import smallest_set
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.column_priors import check_priors
from tallybayes.models.inputs.features import as_rows, open_features
from tallybayes.models.inputs.input_format import InputFormat, open_rows, read_more_rows, shaped, with_weight
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.inspection.labeled_parameters import looked_up
from tallybayes.models.inspection.model_summary import title_by_class
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import Selected, all_words, as_word_factor, select_words
from tallybayes.typing import ClassPrior, Labels, Name, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from tallybayes.export.portable_scorer import PortableScorer
    from tallybayes.models.classification.methods.explanation import Explanation
    from tallybayes.models.inspection.labeled_parameters import LabeledFactor
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
    unlabeled_weight: float
    max_iter: int
    tol: float
    n_init: int
    random_state: RandomState
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
        return self._cached("estimated", lambda: self._estimates_of(self.tally_, select_words(self.tally_)))

    def _em_model(self, factors: list[Factor]) -> EMModel:
        """Return the model that EM fits: its settings, its factors and the initial estimates."""
        scored = [self._factor_for_scoring(factor) for factor in factors[1:]]
        initial = None if self._initial is None else estimates_of(self._initial)
        return EMModel(self, factors, scored, lambda tally: self._estimates_of(tally, all_words(tally)), initial)

    def _with_parameters(self, stated: StatedParameters, strength: float | None) -> Self:
        """Set user-specified parameters, or a prior with these parameters that is as strong as some rows."""
        self._check_settings()
        fixed = stated.counted()
        self.input_format_ = fixed.input_format
        self._set_tally(fixed.tally)._set_fixed_parameters(fixed.parameters)
        if strength is None:
            return self
        prior, class_prior = fixed.priors(self._estimated_classifier, strength)
        self.prior = prior
        self.class_prior = class_prior
        return self._set_tally(fixed.tally)

    def _estimates_of(self, tally: Tally, words: Selected) -> EstimatedClassifier:
        """Return the estimates from a tally under the parameters of this model."""
        return EstimatedClassifier(**self._estimation_settings(tally, words))

    def _estimation_settings(self, tally: Tally, words: Selected) -> dict[str, Any]:
        """Return the attributes of `EstimatedClassifier`."""
        return {
            "model": type(self).__name__,
            "counted": tally,
            "words": words,
            "target": self._target,
            "group_word": self._group_word,
            "label_dtype": self.input_format_.y_dtype,
            "block_names": self._block_names,
            "estimate": self.estimate,
            "prior": self.prior,
            "class_prior": self.class_prior,
            "unseen": self.unseen,
            "fixed_parameters": self._fixed_parameters,
        }

    @property
    def _selected_words(self) -> Selected:
        """The selected words of every text column."""
        return self._estimated_classifier.words

    @property
    def _selected_tally(self) -> Tally:
        """The tally with text columns as blocks of their selected words."""
        return self._estimated_classifier.tally

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
        return self._estimated_classifier.factors.priors_by_column

    def _with_estimates(self, estimates: EstimatedClassifier) -> Self:
        """Return a copy of the model with estimates that were computed elsewhere."""
        other = copy.copy(self)._set_tally(estimates.counted)
        other._cache["estimated"] = estimates
        return other

    def _with_block_names(self, names: Mapping[Any, tuple[str, ...]]) -> Self:
        """Return a copy of the model with other names of the columns of blocks."""
        other = copy.copy(self)
        other._block_names = names
        other._cache = {"estimated": self._estimated_classifier.with_block_names(names)}
        return other

    def _with_tally(self, tally: Tally) -> Self:
        """Return this model with other counts of the same levels; the priors are held fixed."""
        return self._with_estimates(self._estimated_classifier.with_tally(tally))

    def _with_scaled_priors(self, factor: float) -> Self:
        """Return this model with the strength of every prior multiplied by ``factor``."""
        return self._with_estimates(self._estimated_classifier.scaled(factor))

    # ---- Prediction ---------------------------------------------------------------------------------------------

    def _column_specs(self) -> list[ColumnSpec]:
        """Return the columns, the family and the levels of every factor."""
        return self._estimated_classifier.column_specs

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
        scorer = self._estimated_classifier.row_scorer
        if self._calibration is not None:  # it can change the order of the classes
            return self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        codes = None
        rows = self.input_format_
        if not rows.by_name and type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == rows.n_features:
            codes = scorer.argmax_array(X)  # without a table, if the kernels read the array directly
        return self.classes_[scorer.argmax(open_rows(self, X)) if codes is None else codes]

    @predict_in_batches
    def predict_joint_log_proba(self, X: Rows) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); −inf where a row is impossible in a class.

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        return self._estimated_classifier.joint(open_rows(self, X))

    @predict_in_batches
    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return log p(class | row), shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The class prior of the rows to predict, if it differs from that of the training rows.
        """
        return self._log_proba(open_rows(self, X), class_prior)

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
        return np.exp(self._log_proba(open_rows(self, X), class_prior))

    def _log_proba(self, table: Table, class_prior: ClassPrior = None) -> np.ndarray:
        """Return log p(class | row), calibrated if there is a calibration."""
        estimates = self._estimated_classifier
        prior = None if class_prior is None else estimates.log_prior(class_prior)
        calibration = self._calibration
        posterior = estimates.posterior(table, prior if calibration is None else None)
        if np.isneginf(posterior.log_density).any():
            self._warn_impossible(table, posterior.impossible)
        if calibration is None:
            if self._calibration_pending:
                self._warn_uncalibrated()
            return posterior.log_proba
        log_proba = calibration.apply(posterior.log_proba)  # fitted under the class prior of the model
        if prior is None:
            return log_proba
        own = estimates.class_log_prior
        return apply_bayes_rule(log_proba + prior - np.where(np.isneginf(own), 0.0, own), own).log_proba

    @predict_in_batches
    def score_samples(self, X: Rows) -> np.ndarray:
        """Return log p(row), summed over the classes, shape (n,); −inf for an impossible row.

        Parameters
        ----------
        X : as for `fit`, without the target
        """
        table = open_rows(self, X)
        return self._estimated_classifier.row_scorer.posterior(table, whole=True).log_density

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
            return weighted_sum(self.score_samples(X), weight)
        table, weight = read_more_rows(self, X, y, sample_weight)
        codes = factor_cells(table, [self._target], Categorical(), [self._class_domain], "error")[:, 0]
        if (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise LabelError(f"y is missing in row {row}; expected a class for every row.\n    Or pass y=None.")
        joint = self.predict_joint_log_proba(table if self.input_format_.by_name else table.without(self._target))
        return weighted_sum(joint[np.arange(len(codes)), codes], weight)

    def _warn_impossible(self, table: Table, impossible: np.ndarray) -> None:
        """Warn about rows that are impossible in every class; name the first one, and its first impossible column."""
        row = int(np.flatnonzero(impossible)[0])
        n_rows = int(impossible.sum())
        column = self._estimated_classifier.first_impossible_column(table, row)
        where = f" (column {column!r})" if column is not None else ""
        more = f", and {n_rows - 1} more rows," if n_rows > 1 else ""
        warn(
            f"row {row}{where}{more} is impossible in every class, so its class prior is returned.\n"
            f"    {IMPOSSIBLE_HINT}"
        )

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
        columns, codes = sample(self._estimated_classifier, n, given, random_state)
        return shaped(self.input_format_, columns, self._frame_library), self.classes_[codes]

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
        check_how(how)
        table = open_rows(self, X)
        predictions = self._estimated_classifier.predict_missing(table, np.exp(self._log_proba(table)), how)
        if how == "distribution":
            return predictions
        columns = imputed_columns(X, table, predictions, how)
        return shaped(self.input_format_, columns, frame_kind(X), as_rows(X, self), predictions)

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
        table = open_rows(self, X)
        return explain(self._estimated_classifier, table, against, self._frame_library)

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
        table = open_rows(self, row)
        return show_work(self._estimated_classifier, table, self._calibration)

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
        return self.explain(row, against).plot(0, ax)

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
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.column_distributions import plot_columns

        return plot_columns(self, columns, X, y)

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
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.decision_boundary import plot_decision_boundary
        from tallybayes.plotting.classifier.plane_models import ClassConditionalPlane

        return plot_decision_boundary(ClassConditionalPlane(self), X, y, columns, ax)

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
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.joint_density import plot_joint

        return plot_joint(self, X, y, columns, ax)

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
        check_is_fitted(self, "tally_")
        from tallybayes.plotting.classifier.plate_diagram import plot_groups

        return plot_groups(self, ax)

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
        return smallest_set(self.predict_log_proba(X), mass)

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
        table = open_rows(self, X)
        if isinstance(sample_weight, str):
            sample_weight = open_features(X).column(sample_weight)
        return estimate_class_prior(self._estimated_classifier, table, sample_weight, max_iter, tol)

    to_sql = export.to_sql
    to_onnx = export.to_onnx

    def _portable_scores(self) -> PortableScorer:
        """Return the scores for export; warn if a requested calibration is missing."""
        from tallybayes.export.portable_scorer import scores_of

        if self._calibration_pending:
            self._warn_uncalibrated()
        return scores_of(self._estimated_classifier, self._calibration, self.input_format_.dates)

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters, including class or state probabilities unless they are fixed."""
        return self._all_factors.n_parameters

    @property
    def prior_(self) -> dict[Any, Any]:
        """The resolved prior of every column or block of columns; ``prior=`` accepts it."""
        self._require_counts("a prior")
        return self._resolved_priors()

    @property
    def parameters_(self) -> Parameters:
        """The parameters by column, a `ParameterTable` each, under the model's estimate.

        Probabilities of levels are labeled by level (of bins by interval); other parameters by name, such as mean,
        variance and rate. Under ``"bayes"`` these are posterior means; predictions integrate the parameters out.
        """
        return self._estimated_classifier.parameters

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
        return self._estimated_classifier.labeled_class_prior().column(0)

    def _labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class) and every factor given the class, labeled."""
        return self._estimated_classifier.labeled_factors()

    _group_word = "class"

    def _summary_title(self, n_rows: float) -> str:
        """The model, its rows, and how many there are of every class."""
        estimates = self._estimated_classifier
        rows = None if self._fixed_parameters is not None else n_rows
        groups = "classes" if self._group_word == "class" else "components"
        return title_by_class(estimates.model, rows, groups, estimates.classes.levels, estimates.class_weights)

    def _total_weight(self) -> float:
        """The weight of all rows that were counted, of a model with classes."""
        return float(self._estimated_classifier.class_counts.table.sum())

    # ---- Hooks -------------------------------------------------------------------------------------------------

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
        """Copy the input format and the dropped columns of another model, whose calibration is not valid here."""
        self._calibration_pending |= other._calibration is not None
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
