"""Classifier: Bayes' rule with labelled classes, learnt by counting. The base of the generative classifiers."""

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

    unlabelled: str | None
    missing_label: Any
    unlabelled_weight: float
    n_classes: int | None
    calibration: str | None = None
    _words: ClassVar[Mapping[str, StringOptions]] = {
        **ClassConditionalModel._words,
        "calibration": StringOptions((*METHODS, None)),
        "unlabelled": StringOptions(("em", "skip", None)),
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
    _calibrate_first = calibrate_on_fit
    _warn_uncalibrated = warn_uncalibrated
    _count_first = count_first
    _count_more = count_more

    @property
    def calibration_(self) -> Calibration | None:
        """How `calibrate` mends the predicted probabilities; None if it was not asked to."""
        check_is_fitted(self, "tally_")
        return self._calibration

    def _adopt(self, tally: Tally, climbed: EMSummary | None = None) -> Self:
        """Replace the tally and drop the calibration, which was fitted to other counts."""
        self._owed |= self._calibration is not None or self.calibration is not None
        self._calibration = None
        return super()._adopt(tally, climbed)

    def _settle(self, calibration: Calibration | None) -> Self:
        """Take what was learned of the probabilities, if it was asked for."""
        self._calibration = calibration
        self._owed = calibration is None and self.calibration is not None
        return self

    def _take_from(self, other: Any) -> Self:
        """Copy what another classifier has besides its tally."""
        self._owed |= other._calibration is not None
        return super()._take_from(other)

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
        return other._settle(None) if "calibration" in parameters else other

    def _update(self, tally: Tally) -> Self:
        """Keep the calibration while the classes are the same, and say when it is getting old."""
        before, kept = self._class_domain.levels, self._calibration
        super()._update(tally)
        if kept is None:
            return self
        if self._class_domain.levels != before:
            self._owed = False  # it is said here
            said = "the classes have changed, so the calibration is dropped: calibrate again, calibrate(X, y)."
            warn(said, CalibrationWarning)
            return self
        self._settle(kept)
        weight = self._weight()
        if abs(weight - kept.weight) > 0.1 * kept.weight:
            warn(
                f"the model was calibrated when it had counted {kept.weight:.12g} rows and has {weight:.12g} now: "
                "calibrate again, calibrate(X, y).",
                CalibrationWarning,
            )
        return self

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_parts()
        if self._calibration is None:
            return state, arrays
        mended, curves = self._calibration.to_parts()
        return state | {"calibration": mended}, arrays | curves

    def _from_parts(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_parts(state, arrays)
        if "calibration" in state:
            self._settle(Calibration.from_parts(state.pop("calibration"), arrays, len(self.classes_)))
