"""ClassConditionalModel: p(class) Π p(block | class), the base class of classifiers and mixtures."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.errors import LabelError
from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.estimated_factors import EstimatedFactors
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
    check_classes,
)
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
from tallybayes.models.classification.joint import n_parameters_joint
from tallybayes.models.classification.methods import classifier_plots
from tallybayes.models.classification.methods.class_sampling import impute, sample
from tallybayes.models.classification.methods.decisions import decide, estimate_class_prior
from tallybayes.models.classification.methods.explanation import explain, plot_explanation
from tallybayes.models.classification.methods.linear_form import to_linear
from tallybayes.models.classification.methods.model_export import to_onnx, to_sql
from tallybayes.models.classification.methods.show_work import show_work
from tallybayes.models.classification.methods.uncertainty import predict_proba_interval, predict_set
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.column_priors import check_priors, prior_in_groups
from tallybayes.models.inputs.features import open_features
from tallybayes.models.inputs.input_format import InputFormat, open_rows, read_more_rows, with_weight
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection import information_criteria, labeled_parameters
from tallybayes.models.inspection.gaussian_parameters import covariances, means
from tallybayes.models.inspection.model_summary import rows_by_class, summary, title_by_class
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import as_word_factor, with_selected_words
from tallybayes.typing import ClassPrior, Labels, Name, Rows, SampleWeights
from tallybayes.warnings import warn


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
    _shape: InputFormat
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
        return classifier_fit.target(self)

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
        return [(factor, statistics) for factor, statistics in pairs if factor.given]

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
        if not self._shape.by_name and type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == self._shape.n_features:
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
        joint = self.predict_joint_log_proba(table if self._shape.by_name else table.without(self._target))
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

    # ---- Answers ------------------------------------------------------------------------------------------------

    sample = sample
    impute = impute
    explain = explain
    show_work = show_work
    plot_explanation = plot_explanation
    plot_columns = classifier_plots.plot_columns
    plot_decision_boundary = classifier_plots.plot_decision_boundary
    plot_joint = classifier_plots.plot_joint
    plot_class_means = classifier_plots.plot_class_means
    plot_graph = classifier_plots.plot_graph
    predict_proba_interval = predict_proba_interval
    predict_set = predict_set
    decide = decide
    estimate_class_prior = estimate_class_prior
    to_linear = to_linear
    to_sql = to_sql
    to_onnx = to_onnx
    n_parameters_joint_ = typed_property(n_parameters_joint)
    n_parameters_ = typed_property(information_criteria.n_parameters)
    log_evidence = information_criteria.log_evidence
    description_length = information_criteria.description_length
    bic_ = typed_property(information_criteria.bic)
    aic_ = typed_property(information_criteria.aic)
    prior_ = typed_property(information_criteria.resolved_priors)
    parameters_ = typed_property(labeled_parameters.parameters)
    parameter_table = labeled_parameters.table
    posterior_ = typed_property(labeled_parameters.posterior)
    class_prior_ = typed_property(class_prior)
    means_ = typed_property(means)
    covariances_ = typed_property(covariances)
    _labeled_factors = labeled_factors
    summary = summary
    _group_word = "classes"

    _summary_title = title_by_class
    _total_weight = rows_by_class

    def _check_settings(self) -> None:
        """Check the parameters of the constructor, the class prior included."""
        super()._check_settings()
        check_class_prior(self.class_prior)

    def _check_classes(self, levels: tuple[Any, ...]) -> None:
        """Raise PriorError if the class prior does not fit the classes."""
        check_classes(self.class_prior, levels)

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise PriorError if the prior does not fit the families of the factors."""
        if self.prior is not None and not isinstance(self.prior, Tally):
            check_priors(self.prior, [self._factor_for_scoring(factor) for factor in factors], self.estimate)

    def _discretize(self, table: Table) -> Table:
        """Return the rows as they are counted, with discretized columns."""
        return table

    def _factor_for_scoring(self, factor: Factor) -> Factor:
        """Return the factor in the family that scores rows."""
        return as_word_factor(factor)

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        return [factor for factor in tally.factors if factor.given]

    def _warn_uncalibrated(self) -> None:
        """Warn that a calibration is missing."""

    def _copy_input_format(self, other: Any) -> Self:
        """Copy the input format and the dropped columns of another model."""
        self._shape, self._dropped_columns = other._shape, other._dropped_columns
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the input format as JSON."""
        return self._shape.to_json()

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Set the input format that `_shape_to_json` returned."""
        self._shape = InputFormat.from_json(state, tally)

    def _check_loaded(self) -> None:
        """Raise an error if the classes of a loaded model do not have the data type of the file."""
        _ = self.classes_

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: missing cells and sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
