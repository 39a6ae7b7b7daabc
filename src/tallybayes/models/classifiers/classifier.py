"""Classifier: Bayes' rule with labelled classes, learnt by counting. The base of the generative classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.cautions import CalibrationWarning, warn
from tallybayes.inference.em import Climbed
from tallybayes.models.bases import ClassifierMixin, attribute
from tallybayes.models.classifiers import learning
from tallybayes.models.classifiers.answers.calibrating import calibrate, calibrate_first, warn_uncalibrated
from tallybayes.models.classifiers.answers.calibration import METHODS, Calibration
from tallybayes.models.classifiers.answers.importance import feature_importance, log_proba_without
from tallybayes.models.classifiers.answers.report import report
from tallybayes.models.classifiers.grouped import Grouped
from tallybayes.models.classifiers.unlabelled import count_first, count_more
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.words import Words


class Classifier(ClassifierMixin, Grouped):
    """A generative classifier, p(class | row) ∝ p(class) Π p(block | class).

    A subclass says which factors there are (`_make_factors`), and has the parameters of rows without labels.
    """

    unlabelled: str | None
    missing_label: Any
    unlabelled_weight: float
    n_classes: int | None
    calibration: str | None = None
    _words: ClassVar[Mapping[str, Words]] = {
        **Grouped._words,
        "calibration": Words((*METHODS, None)),
        "unlabelled": Words(("em", "skip", None)),
    }

    target_ = attribute(learning.target)
    report = report
    fit = learning.fit
    partial_fit = learning.partial_fit
    forget = learning.forget
    fit_tally = learning.fit_tally
    add_class = learning.add_class
    drop_class = learning.drop_class
    score = learning.score
    feature_importance = feature_importance
    _log_proba_without = log_proba_without
    calibrate = calibrate
    _calibrate_first = calibrate_first
    _warn_uncalibrated = warn_uncalibrated
    _count_first = count_first
    _count_more = count_more

    @property
    def calibration_(self) -> Calibration | None:
        """How `calibrate` mends the predicted probabilities; None if it was not asked to."""
        check_is_fitted(self, "tally_")
        return self._calibration

    def _adopt(self, tally: Tally, climbed: Climbed | None = None) -> Self:
        self._owed |= self._calibration is not None or self.calibration is not None
        self._calibration = None
        return super()._adopt(tally, climbed)

    def _settle(self, calibration: Calibration | None) -> Self:
        """Take what was learned of the probabilities, if it was asked for."""
        self._calibration = calibration
        self._owed = calibration is None and self.calibration is not None
        return self

    def _take_from(self, other: Any) -> Self:
        self._owed |= other._calibration is not None
        return super()._take_from(other)

    def _check_prior(self, factors: list[Factor]) -> None:
        super()._check_prior(factors)

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
