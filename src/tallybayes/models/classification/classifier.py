"""Classifier: Bayes' rule with labeled classes, learnt by counting. The base of the generative classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.string_options import StringOptions
from tallybayes.estimation.calibration.calibration import METHODS, Calibration
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.calibrate import calibrate, calibrate_on_fit, warn_uncalibrated
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.classification.methods.importance import feature_importance, log_proba_without
from tallybayes.models.classification.methods.report_page import report
from tallybayes.models.classification.semi_supervised import count_first, count_more
from tallybayes.models.sklearn_bases import ClassifierMixin, typed_property
from tallybayes.tally.tally import Tally
from tallybayes.warnings import CalibrationWarning, warn


class Classifier(ClassifierMixin, ClassConditionalModel):
    """A generative classifier, p(class | row) ∝ p(class) Π p(block | class).

    A subclass says which factors there are (`_make_factors`), and has the parameters of rows without labels.
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

    target_ = typed_property(classifier_fit.target)
    report = report
    fit = classifier_fit.fit
    partial_fit = classifier_fit.partial_fit
    forget = classifier_fit.forget
    fit_tally = classifier_fit.fit_tally
    add_class = classifier_fit.add_class
    drop_class = classifier_fit.drop_class
    score = classifier_fit.score
    feature_importance = feature_importance
    _log_proba_without = log_proba_without
    calibrate = calibrate
    _calibrate_on_fit = calibrate_on_fit
    _warn_uncalibrated = warn_uncalibrated
    _count_initial_rows = count_first
    _count_more_rows = count_more

    @property
    def calibration_(self) -> Calibration | None:
        """How `calibrate` mends the predicted probabilities; None if it was not asked to."""
        check_is_fitted(self, "tally_")
        return self._calibration

    def _set_tally(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        """Replace the tally and drop the calibration, which was fitted to other counts."""
        self._calibration_pending |= self._calibration is not None or self.calibration is not None
        self._calibration = None
        return super()._set_tally(tally, climbed)

    def _set_calibration(self, calibration: Calibration | None) -> Self:
        """Take what was learned of the probabilities, if it was asked for."""
        self._calibration = calibration
        self._calibration_pending = calibration is None and self.calibration is not None
        return self

    def _copy_input_format(self, other: Any) -> Self:
        """Copy what another classifier has besides its tally."""
        self._calibration_pending |= other._calibration is not None
        return super()._copy_input_format(other)

    def reestimate(self, **parameters: Any) -> Self:
        """A new model from the same tally under other parameters; no data are needed.

        A calibration is not among what it keeps; ``calibration=None`` says that none is wanted.

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
        """Keep the calibration while the classes are the same, and say when it is getting old."""
        before, kept = self._class_domain.levels, self._calibration
        super()._update_tally(tally)
        if kept is None:
            return self
        if self._class_domain.levels != before:
            self._calibration_pending = False  # it is said here
            said = "the classes have changed, so the calibration is dropped: calibrate again, calibrate(X, y)."
            warn(said, CalibrationWarning)
            return self
        self._set_calibration(kept)
        weight = self._total_weight()
        if abs(weight - kept.weight) > 0.1 * kept.weight:
            warn(
                f"the model was calibrated when it had counted {kept.weight:.12g} rows and has {weight:.12g} now: "
                "calibrate again, calibrate(X, y).",
                CalibrationWarning,
            )
        return self

    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_manifest()
        if self._calibration is None:
            return state, arrays
        mended, curves = self._calibration.to_parts()
        return state | {"calibration": mended}, arrays | curves

    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_manifest(state, arrays)
        if "calibration" in state:
            self._set_calibration(Calibration.from_parts(state.pop("calibration"), arrays, len(self.classes_)))
