"""Warnings are said to the caller of the package, through whatever else lies between."""

import functools
import linecache
import warnings

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.warnings import CalibrationWarning, TallybayesWarning, warn


def said_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return {(each.filename, each.category) for each in caught}


def test_outside_the_package_it_is_the_line_itself():
    assert said_by(lambda: warn("so it is")) == {(__file__, TallybayesWarning)}
    assert said_by(lambda: warn("so it is", CalibrationWarning)) == {(__file__, CalibrationWarning)}


class Doubtful(tb.Gaussian):
    """A family of a caller, which says something from within a fit, through other libraries' frames."""

    @functools.cached_property
    def doubt(self):
        warn("who would have thought")

    def collect(self, *given, **named):
        self.__dict__.pop("doubt", None)
        _ = self.doubt
        return super().collect(*given, **named)


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_it_is_the_line_that_called_the_package(fit):
    model = tb.NaiveBayes(Doubtful())
    with pytest.warns(UserWarning, match="who would") as caught:
        getattr(model, fit)(np.arange(4.0)[:, None], [0, 0, 1, 1])
    assert "getattr(model, fit)" in linecache.getline(__file__, caught[0].lineno)
