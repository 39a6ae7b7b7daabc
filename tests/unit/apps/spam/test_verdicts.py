"""The calibration of a store, as verdicts read it."""

import pytest

from tallybayes.apps.spam.spam_score import TOKEN_KINDS, UNCALIBRATED, SpamCalibration
from tallybayes.apps.spam.store.backends import StoreError
from tallybayes.apps.spam.store.spam_store import State
from tallybayes.apps.spam.verdicts import calibration_of, calibration_to_text


def state_with(calibration):
    return State(1, 1, 3, 3, 4, 0, 0, 1, calibration, 2)


def test_a_calibration_is_read_as_it_was_written():
    calibration = SpamCalibration(0.1, tuple(0.5 + k for k in range(len(TOKEN_KINDS))))
    assert calibration_of(state_with(calibration_to_text(calibration))) == calibration
    assert calibration_of(state_with("")) == UNCALIBRATED


def test_a_calibration_of_other_numbers_is_refused():
    with pytest.raises(StoreError, match=f"has 2 coefficients; expected {1 + len(TOKEN_KINDS)}"):
        calibration_of(state_with("0.5 1.0"))
