"""Grouped: p(group) Π p(block | group), the classes of a classifier or the components of a mixture, by Bayes' rule."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.estimation.calibration.calibration import Calibration
from tallybayes.estimation.estimated_factors import EstimatedFactors
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import (
    NO_COLUMNS,
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    undefined_parameters,
)
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families.estimates import ESTIMATE_WORDS
from tallybayes.models.base import Model
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.class_parameters import class_prior, labeled_factors
from tallybayes.models.classification.class_prior import (
    CLASS_PRIOR_WORDS,
    check_class_prior,
    check_classes,
    class_belief,
    log_class_prior,
)
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
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.models.inspection import information_criteria, labeled_parameters
from tallybayes.models.inspection.gaussian_parameters import covariances, means
from tallybayes.models.inspection.model_summary import rows_by_class, summary, title_by_class
from tallybayes.models.sklearn_bases import typed_property
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import in_family_of_words, with_selected_words
from tallybayes.typing import ClassPrior, Labels, Rows, SampleWeights
from tallybayes.warnings import warn


class ClassConditionalModel(Model):
    """Rows by groups, p(group | row) ∝ p(group) Π p(block | group), and all that follows from it.

    A subclass has the parameters ``estimate``, ``prior`` and ``class_prior``, and says how its tally comes about.
    """

    estimate: str
    prior: Any
    class_prior: Any
    unseen: str = "missing"
    tally_: Tally
    _shape: InputFormat
    _soft_counts_hint = (
        "Fit it on rows with labels, and where columns have a full covariance without missing cells; or use\n"
        "    tb.Mixture, whose evidence_lower_bound_ is below its evidence."
    )
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        "estimate": ESTIMATE_WORDS,
        "unseen": StringOptions(("missing", "smooth", "error")),
        "class_prior": CLASS_PRIOR_WORDS,
    }
    _calibration: Calibration | None = None  # only a classifier has any
    _initial: Any = None  # the model that EM starts from, while it is fitted
    _calibration_pending = False  # whether it was to have one, and has none

    classes_ = typed_property(classifier_fit.classes)
    feature_names_in_ = typed_property(classifier_fit.feature_names_in)
    n_features_in_ = typed_property(classifier_fit.n_features_in)
    _target = typed_property(classifier_fit.target)
    _with_one_target = classifier_fit.with_one_target
    _class_domain = typed_property(classifier_fit.class_domain)

    @property
    def class_log_prior_(self) -> np.ndarray:
        """log p(class), in the order of ``classes_``; −inf for one that cannot be."""
        return self._cached("log_prior", lambda: self._log_prior(self.class_prior))

    @property
    def constant_columns_(self) -> list[Any]:
        """Columns that were the same in every row: they add nothing to any score."""
        return [scored.factor.column(int(place)) for scored in self._factor_scorers for place in scored.constant]

    def _feature_factors(self) -> list[tuple[Factor, Statistics]]:
        pairs = zip(self._selected_tally.factors, self._selected_tally.statistics, strict=True)
        return [(factor, statistics) for factor, statistics in pairs if factor.given]

    def _prior_of(self, factor: Factor) -> Any:
        """The prior meant for a factor; a tally was seen before, so it updates the default."""
        if not isinstance(self.prior, Tally):
            domains = self._selected_tally.domains
            return prior_in_groups(self.prior, factor, self.estimate, lambda name: domains[str(name)].levels)
        before = with_selected_words(self.prior.reindex_like(self.tally_), self._selected_words)[factor.columns]
        return factor.family.resolve_prior(None, self._selected_tally[factor.columns], self.estimate).update(before)

    @property
    def _estimated(self) -> EstimatedFactors:
        """The factors after estimating, over the levels that were seen."""
        return self._cached("known", lambda: self._fit(smooth=False))

    @property
    def _scoring_factors(self) -> EstimatedFactors:
        """What rows are scored by: as `_known`, with a level more in every column where unseen ones are smoothed."""
        return self._estimated if self.unseen != "smooth" else self._cached("smooth", lambda: self._fit(smooth=True))

    @property
    def _factor_scorers(self) -> list[FactorScorer]:
        return self._scoring_factors.checked_scorers

    def _fit(self, *, smooth: bool) -> EstimatedFactors:
        pairs = self._feature_factors()
        if self._fixed_parameters is not None:
            if smooth:
                self._require_counts("unseen='smooth'")
            return EstimatedFactors.from_fixed_parameters(
                pairs, self._fixed_feature_parameters(), self._class_domain.levels
            )
        self._check_prior([factor for factor, _ in pairs])
        priors = [self._prior_of(factor) for factor, _ in pairs]
        return EstimatedFactors(
            pairs, priors, self.estimate, groups=self._class_domain.levels, with_unseen_level=smooth
        )

    def _fixed_feature_parameters(self) -> list[Any]:
        """The parameters of the features, where they were given."""
        assert self._fixed_parameters is not None
        return [
            found for factor, found in zip(self.tally_.factors, self._fixed_parameters, strict=True) if factor.given
        ]

    def _with_tally(self, tally: Tally) -> Self:
        """The same model over other counts of the same levels, its priors held fixed."""
        other = copy.copy(self)._set_tally(tally)._with_words_of(self)
        pairs = other._feature_factors()
        return other._with_cached(
            {"known": self._estimated.with_statistics(pairs), "smooth": self._scoring_factors.with_statistics(pairs)}
        )

    def _with_scaled_priors(self, factor: float) -> Self:
        """The same model under priors worth `factor` times as much."""
        other = copy.copy(self)._set_tally(self.tally_)
        return other._with_cached(
            {"known": self._estimated.scaled(factor), "smooth": self._scoring_factors.scaled(factor)}
        )

    def _with_cached(self, fitted: dict[str, EstimatedFactors]) -> Self:
        self._cache |= fitted
        return self

    def _statistics_are_per_row(self) -> bool:
        """Whether one row's part in the statistics is what it was counted as."""
        return True

    def _log_prior(self, class_prior: Any, counts: Any = None) -> np.ndarray:
        """Return log p(class) under a class prior, by default with the counts of the model."""
        counts = self.tally_[self._target] if counts is None else counts
        if self._fixed_parameters is not None:
            if class_prior is None:
                class_prior = self._fixed_parameters[0].table
            elif class_belief(class_prior, self.estimate) is not None:
                self._require_counts(f"class_prior={class_prior!r}")
        return log_class_prior(class_prior, self._class_domain.levels, counts, self.estimate)

    @predict_in_batches
    @answering
    def predict(self, X: Rows) -> np.ndarray:
        """The most probable class of every row; ties go to the first.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        self._check_estimated(self.class_log_prior_)
        if self._calibration is not None:  # it may change the order
            return self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        codes = None
        if not self._shape.by_name and type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == self._shape.n_features:
            codes = self._row_scorer.argmax_array(X)  # the short way for the plain case
        return self.classes_[self._row_scorer.argmax(open_rows(self, X)) if codes is None else codes]

    @predict_in_batches
    @answering
    def predict_joint_log_proba(self, X: Rows) -> np.ndarray:
        """log p(class, row), shape (n, classes); −inf where a row is impossible in a class."""
        return self._joint(X)

    @predict_in_batches
    @answering
    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """log p(class | row), shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The share of the classes where the model is used, if it differs.
        """
        check_is_fitted(self, "tally_")
        given = None if class_prior is None else self._log_prior(class_prior)
        prior = self.class_log_prior_ if given is None else given
        if self._calibration is not None and given is not None:  # it mends what the model says under its own prior
            given, prior = None, self.class_log_prior_
            shift = self._log_prior(class_prior) - np.where(np.isneginf(prior), 0.0, prior)
        else:
            shift = None
        found = self._posterior(X, given)
        if found.impossible.any():
            self._warn_impossible(X, int(np.flatnonzero(found.impossible)[0]), int(found.impossible.sum()))
        if self._calibration is None:
            if self._calibration_pending:
                self._warn_uncalibrated()
            return found.log_proba
        mended = self._calibration.apply(found.log_proba)
        return mended if shift is None else apply_bayes_rule(mended + shift, prior).log_proba

    @predict_in_batches
    @answering
    def predict_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """p(class | row), shape (n, classes). A row impossible in every class gets the class prior, with a warning.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for the constructor, optional
            The share of the classes where the model is used, if it differs.
        """
        return np.exp(self.predict_log_proba(X, class_prior))

    @predict_in_batches
    @answering
    def score_samples(self, X: Rows) -> np.ndarray:
        """log p(row), whatever its class, shape (n,); −inf for an impossible row."""
        check_is_fitted(self, "tally_")
        return self._row_scorer.posterior(open_rows(self, X), whole=True).log_density

    @answering
    def log_likelihood(self, X: Rows, y: Labels | None = None, *, sample_weight: SampleWeights = None) -> float:
        """log p(all rows) or, with their classes, log p(all rows and classes), in nats.

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
        domain = self._class_domain
        codes = factor_cells(table, [self._target], classifier_fit.class_factor(self).family, [domain], "error")[:, 0]
        if (codes < 0).any():
            raise LabelError(
                f"the class of row {int(np.flatnonzero(codes < 0)[0])} is missing; expected all, or y=None."
            )
        joint = self.predict_joint_log_proba(table if self._shape.by_name else table.without(self._target))
        return information_criteria.weighted_sum(joint[np.arange(len(codes)), codes], weight)

    def _joint(self, X: Any, log_prior: np.ndarray | None = None, *, whole: bool = True) -> np.ndarray:
        check_is_fitted(self, "tally_")
        self._check_estimated(self.class_log_prior_ if log_prior is None else log_prior)
        plan = self._row_scorer if log_prior is None else self._make_row_scorer(log_prior)
        return plan.joint(open_rows(self, X), whole=whole)

    def _posterior(self, X: Any, log_prior: np.ndarray | None = None) -> ClassPosterior:
        """log p(class | row) of every row, without what its classes have in common."""
        self._check_estimated(self.class_log_prior_ if log_prior is None else log_prior)
        plan = self._row_scorer if log_prior is None else self._make_row_scorer(log_prior)
        return plan.posterior(open_rows(self, X))

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

    # ---- What the answers stand on -----------------------------------------------------------------------------

    @property
    def _all_factors(self) -> EstimatedFactors:
        """All factors after estimating, that of the classes included unless their probabilities are given."""
        return self._cached("whole", self._make_whole)

    def _make_whole(self) -> EstimatedFactors:
        known, belief = self._estimated, class_belief(self.class_prior, self.estimate)
        if belief is None:
            return known
        pairs = [(classifier_fit.class_factor(self), self.tally_[self._target]), *known.pairs]
        if self._fixed_parameters is not None:
            return EstimatedFactors.from_fixed_parameters(
                pairs, [self._fixed_parameters[0], *self._fixed_feature_parameters()]
            )
        return EstimatedFactors(
            pairs,
            [belief, *known.priors],
            self.estimate,
            resolved_priors=(ResolvedPrior(belief, NO_COLUMNS), *known.resolved_priors),
        )

    @property
    def _fixed_log_prob(self) -> float:  # type: ignore[override]
        if class_belief(self.class_prior, self.estimate) is not None:
            return 0.0
        counts: Any = self.tally_[self._target]
        seen = counts.table > 0
        return float((counts.table[seen] * self.class_log_prior_[seen]).sum())

    def _resolved_priors(self) -> dict[Any, Any]:
        return information_criteria.priors_by_column(self._estimated)

    @property
    def _row_scorer(self) -> RowScorer:
        return self._cached("plan", lambda: self._make_row_scorer(self.class_log_prior_))

    def _make_row_scorer(self, log_prior: np.ndarray) -> RowScorer:
        domains = [self._level_domains(scored) for scored in self._factor_scorers]
        return RowScorer(self._factor_scorers, log_prior, domains, self.unseen)

    def _level_domains(self, scored: FactorScorer) -> list[Domain]:
        """The levels of every column of a factor of labels."""
        names = scored.factor.columns if scored.family.cell_type == "codes" else ()
        return [self.tally_.domains[self.tally_.schema.domain(name)] for name in names]

    def _column_specs(self) -> list[tuple[Any, Any, Any]]:
        """The columns, the family and the domains of every factor."""
        return [(scored.factor.columns, scored.family, self._level_domains(scored)) for scored in self._factor_scorers]

    def _check_estimated(self, log_prior: np.ndarray) -> None:
        """Refuse to score with parameters that nothing was counted for, in classes that a row may have."""
        if not len(log_prior):
            raise DataError("no class is left to predict: every row was forgotten.\n    Learn from at least one row.")

        def find() -> list[tuple[int, Any]]:
            return [place for scored in self._factor_scorers for place in undefined_parameters(scored)]

        for code, column in self._cached("not_estimated", find):
            if log_prior[code] > -np.inf:
                where = f"column {column!r} in class {self._class_domain.levels[code]!r}"
                raise DataError.no_data(where, self.estimate)

    def _factor_cells(self, table: Table, scored: FactorScorer) -> Any:
        return factor_cells(table, scored.factor.columns, scored.family, self._level_domains(scored), self.unseen)

    def _warn_impossible(self, X: Any, row: int, n_rows: int) -> None:
        """Name the first row that no class allows, and a column to blame."""
        table, blame = open_rows(self, X), None
        for scored in self._factor_scorers:
            terms = scored.contributions(chunk_of(self._factor_cells(table, scored), slice(row, row + 1)))[0]
            bad = np.flatnonzero(np.isneginf(terms).any(axis=0))
            if len(bad) and blame is None:
                blame = scored.factor.column(int(bad[0]), terms.shape[-1])
        where = f" (column {blame!r})" if blame is not None else ""
        more = f", and {n_rows - 1} more rows," if n_rows > 1 else ""
        hint = (
            " With estimate='bayes' nothing is impossible only because it was not seen."
            if self._fixed_parameters is None
            else ""
        )
        warn(f"row {row}{where}{more} is impossible in every class, so its class prior is returned.{hint}", UserWarning)

    def _check_settings(self) -> None:
        """Check the parameters of the constructor, the class prior included."""
        super()._check_settings()
        check_class_prior(self.class_prior)

    def _check_classes(self, levels: tuple[Any, ...]) -> None:
        """Refuse settings that do not fit the classes of all rows."""
        check_classes(self.class_prior, levels)

    def _check_prior(self, factors: list[Factor]) -> None:
        """Raise PriorError if the prior does not fit the families of the factors."""
        if self.prior is not None and not isinstance(self.prior, Tally):
            check_priors(self.prior, [self._factor_for_scoring(factor) for factor in factors], self.estimate)

    def _discretize(self, table: Table) -> Table:
        """The rows as they are counted."""
        return table

    def _factor_for_scoring(self, factor: Factor) -> Factor:
        """The factor in the family that rows are scored by."""
        return in_family_of_words(factor)

    def _factors_with_prior(self, tally: Tally) -> list[Factor]:
        return [factor for factor in tally.factors if factor.given]

    def _warn_uncalibrated(self) -> None:
        """Say that a calibration is missing."""

    def _copy_input_format(self, other: Any) -> Self:
        """Copy the input format and the dropped columns of another model."""
        self._shape, self._dropped_columns = other._shape, other._dropped_columns
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """What was learnt about the shape of the input, for a file."""
        return self._shape.to_json()

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        self._shape = InputFormat.from_json(state, tally)

    def _check_loaded(self) -> None:
        """Refuse labels that are not of the type a file names."""
        _ = self.classes_

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: missing cells and sparse rows are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
