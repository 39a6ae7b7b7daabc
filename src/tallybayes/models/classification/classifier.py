"""Classifier: the base class of the generative classifiers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.data.indicator_columns import hidden
from tallybayes.data.table import Table
from tallybayes.estimation.calibration.calibration import METHODS, Calibration
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.calibrate import calibrate, calibration_of
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.classifier_fit import count_first, count_more
from tallybayes.models.classification.methods.importance import LabeledTable, feature_importance
from tallybayes.models.inputs.input_format import read_codes
from tallybayes.models.receipt import with_receipt
from tallybayes.models.sklearn_bases import ClassifierMixin
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Name, Rows, SampleWeights
from tallybayes.warnings import CalibrationWarning, warn

if TYPE_CHECKING:
    from tallybayes.apps.report import Report
    from tallybayes.estimation.importance import FeatureImportance


class Classifier(ClassifierMixin, ClassConditionalModel):
    """Base class of generative classifiers: p(class | row) ∝ p(class) Π p(block | class).

    A subclass defines its factors in `_make_factors`, and has the parameters for unlabeled rows.
    """

    unlabeled: str | None
    missing_label: Any
    unlabeled_weight: float
    n_classes: int | None
    calibration: str | None = None
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        **ClassConditionalModel._string_options,
        "calibration": StringOptions((*METHODS, None)),
        "unlabeled": StringOptions(("em", "skip", None)),
    }

    @property
    def target_(self) -> Name:
        """The name of the target column."""
        return self._target

    def fit(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Fit the model to rows; rows of earlier calls are discarded.

        Parameters
        ----------
        X : array, sparse matrix, data frame, list of dicts, mapping of columns and blocks, file, or database table
            The features, and the target if ``y`` is the name of a column.
        y : array-like of shape (n,), or the name of a column of X
            The class of every row.
        sample_weight : array-like of shape (n,), or the name of a column of X, optional
            The weight of every row; a weight of 2 counts a row twice.

        Returns
        -------
        self
        """
        return classifier_fit.fit_initial(self, X, y, sample_weight, is_fit=True)

    def partial_fit(
        self, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
    ) -> Self:
        """Add rows; new classes and levels may appear.

        Rows in any order and in any batches give the same model as one `fit` to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            Classes to declare, with or without rows.

        Returns
        -------
        self
        """
        return classifier_fit.partial_fit(self, X, y, sample_weight, classes)

    @with_receipt
    def forget(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Remove rows exactly: the model is as if they had never been counted.

        StatisticsError is raised if a count would become negative. Rows that were never counted but fit the counts
        cannot be detected.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were counted, as for `fit`.

        Returns
        -------
        self
        """
        return classifier_fit.forget(self, X, y, sample_weight)

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

    def add_class(self, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Self:
        """Add a new class from its rows; the other classes do not change.

        Parameters
        ----------
        label : bool, int or str
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return classifier_fit.add_class(self, label, X, sample_weight)

    def drop_class(self, label: Hashable) -> Self:
        """Remove a class and all its rows.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        return classifier_fit.drop_class(self, label)

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return classifier_fit.score(self, X, y, sample_weight)

    def calibrate(
        self,
        data: Rows,
        target: Labels,
        method: str | None = None,
        *,
        sample_weight: SampleWeights = None,
        groups: Labels | None = None,
    ) -> Self:
        """Calibrate the predicted probabilities with the training rows; each row is scored without its own counts.

        Pass the training rows: they are scored by leave-one-out, so no validation set is needed. `predict_proba` and
        everything that uses it then give calibrated probabilities. The calibration is saved with the model.
        `reestimate`, ``+``, `fit_tally`, `set_params` and a change of the classes drop it, and the next `predict_proba`
        warns. `partial_fit` and `forget` keep it, and warn if the total weight has changed by more than 10 %.
        `explain`, `score_samples` and `predict_proba_interval` do not use it. The parameter ``calibration`` does the
        same in `fit`.

        If EM was used, no row can be subtracted: the model is refitted ten times, without a tenth of the labeled rows
        each.

        Parameters
        ----------
        data, target, sample_weight
            The training rows, as for `fit`, or some of them; all of them if the model is refitted.
        method : {"temperature", "isotonic", "auto"}, optional
            ``"temperature"``: p ∝ p^(1/T), mixed with the class frequencies in a proportion ε. ``"isotonic"``: an
            increasing function of the log-odds of every class; it needs some hundred rows of each class. ``"auto"``:
            the one with the lowest held-out log loss, or none. By default the parameter ``calibration``, or
            ``"temperature"``.
        groups : array-like of shape (n,), or the name of a column of data, optional
            Rows of one group are held out together, in ten folds.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 1000)
        >>> X = np.repeat(rng.normal(y, 2.0)[:, None], 5, axis=1)   # five equal columns: overconfident
        >>> model = tb.NaiveBayes().fit(X, y)
        >>> model.calibrate(X, y).calibration_
        Calibration('temperature', temperature 4.891, contamination 0.005: log loss 1.012 to 0.6438 on held-out rows)
        """
        check_is_fitted(self, "tally_")
        self._require_counts("leaving rows out")
        return self._set_calibration(calibrate(self, data, target, method, sample_weight, groups))

    def report(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        by: str | None = None,
        title: str | None = None,
        held_out: bool = False,
    ) -> Report:
        """Return an HTML page about the model and its predictions on some rows; its plots need matplotlib.

        The page contains the counts, the metrics, warnings, unusual rows (`tb.audit`), three explained rows, and a form
        to vary cells, class probabilities and costs. It is one file that works offline.

        Parameters
        ----------
        X : as for `fit`
            Labeled rows, preferably held-out rows.
        y : array-like of shape (n,), or column name of X, optional
            By default the target column of `fit`.
        by : column name of X, optional
            Show the metrics for each level of this column, with intervals.
        title : str, optional
        held_out : bool, default False
            Whether the rows are held out. Only then the page contains advice on columns and calibration.

        Returns
        -------
        Report
            A notebook shows it; ``.save("report.html")`` writes it.
        """
        check_is_fitted(self, "tally_")
        from tallybayes.apps.report import report

        return report(self, X, self.target_ if y is None else y, by=by, title=title, held_out=held_out)

    def feature_importance(
        self, X: Rows, y: Labels, *, columns: Iterable[Name] | None = None, sample_weight: SampleWeights = None
    ) -> FeatureImportance:
        """Return the increase of the log loss of labeled rows without each column.

        A column is removed by marginalizing it out, as a missing value is: exact under the model, without refitting and
        without randomness. Permutation importance (Breiman 2001; scikit-learn's ``permutation_importance``) replaces
        the cells of a column by those of other rows instead, which makes rows that cannot occur and differs from draw
        to draw. In both, a column whose information other columns repeat has a low importance. Use rows that the model
        was not fitted on: training rows overstate the importance of columns that the model has overfitted.

        Parameters
        ----------
        X : as for `fit`
        y : array-like of shape (n,), or the name of a column of X
        columns : list of names, optional
            The columns to remove, one at a time; all columns that the model reads if left out.
        sample_weight : array-like of shape (n,), or the name of a column of X, optional

        Returns
        -------
        FeatureImportance
            It prints as a table; see ``to_frame()`` and ``plot()``.

        Examples
        --------
        >>> import tallybayes as tb
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> found = tb.GaussianDiscriminant().fit(X[::2], y[::2]).feature_importance(X[1::2], y[1::2])
        >>> found.columns[0]
        'petal length (cm)'
        """
        check_is_fitted(self, "tally_")
        labeled = LabeledTable(*read_codes(self, X, y, sample_weight))
        log_proba = self.predict_log_proba
        return feature_importance(
            labeled, self._required_columns, columns, log_proba, lambda rows, name: log_proba(hidden(rows, [name]))
        )

    def _calibrate_on_fit(self, table: Table, weight: SampleWeights) -> Calibration:
        """Return the calibration that the parameter ``calibration`` requests, from the training rows."""
        assert self.calibration is not None
        return calibration_of(self, table, weight, self.calibration)

    def _warn_uncalibrated(self) -> None:
        """Warn once that there is no calibration, though one was requested."""
        self._calibration_pending = False
        warn(
            "Probabilities are not calibrated: no calibration was fitted to the current counts.\n"
            "    Call calibrate(X, y) with the training rows.",
            CalibrationWarning,
        )

    def _count_initial_rows(
        self, table: Table, weight: SampleWeights, factors: list[Factor]
    ) -> tuple[Tally, EMSummary | None]:
        """Return the tally of the first rows and, if some values are missing that EM has to expect, how EM ended."""
        return count_first(self, factors, table, weight)

    def _count_more_rows(self, table: Table, weight: SampleWeights) -> Tally:
        """Return the tally of more rows."""
        return count_more(self, table, weight)

    @property
    def calibration_(self) -> Calibration | None:
        """The calibration of the predicted probabilities; None if there is none."""
        check_is_fitted(self, "tally_")
        return self._calibration

    def _set_tally(self, tally: Tally, em_result: EMSummary | None = None) -> Self:
        """Replace the tally and drop the calibration, which was fitted to other counts."""
        self._calibration_pending |= self._calibration is not None or self.calibration is not None
        self._calibration = None
        return super()._set_tally(tally, em_result)

    def _set_calibration(self, calibration: Calibration | None) -> Self:
        """Set or remove the calibration."""
        self._calibration = calibration
        self._calibration_pending = calibration is None and self.calibration is not None
        return self

    def reestimate(self, **parameters: Any) -> Self:
        """Return a new model with the same tally and other parameters; no data are needed.

        The calibration is dropped; pass ``calibration=None`` if none is wanted.

        Parameters
        ----------
        **parameters
            Any parameters of the constructor, such as ``estimate="map"`` or ``prior=...``.

        Returns
        -------
        A fitted model of the same class
        """
        other = super().reestimate(**parameters)
        return other._set_calibration(None) if "calibration" in parameters else other

    def _update_tally(self, tally: Tally) -> Self:
        """Replace the tally; keep the calibration if the classes are the same, and warn if it may be outdated."""
        before = self._class_domain.levels
        kept = self._calibration
        super()._update_tally(tally)
        if kept is None:
            return self
        if self._class_domain.levels != before:
            self._calibration_pending = False  # this warning replaces the one of `predict_proba`
            warn(
                "The classes have changed: the calibration is dropped.\n    Call calibrate(X, y) again.",
                CalibrationWarning,
            )
            return self
        self._set_calibration(kept)
        weight = self.n_rows_
        if abs(weight - kept.weight) > 0.1 * kept.weight:
            warn(
                f"The calibration was fitted to {kept.weight:.12g} rows, and the model has {weight:.12g} now: its "
                "probabilities may be off.\n    Call calibrate(X, y) again.",
                CalibrationWarning,
            )
        return self

    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_manifest()
        if self._calibration is None:
            return state, arrays
        calibration, curves = self._calibration.to_parts()
        return state | {"calibration": calibration}, arrays | curves

    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_manifest(state, arrays)
        if "calibration" in state:
            self._set_calibration(Calibration.from_parts(state.pop("calibration"), arrays, len(self.classes_)))
