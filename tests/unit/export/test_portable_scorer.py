"""Numbers that SQL and ONNX cannot represent raise an error that names the column and the number."""

import importlib.util

import numpy as np
import pytest

import tallybayes as tb

Y = np.arange(40) % 2
NORMAL = np.random.default_rng(0).normal(size=40) + Y
MODELS = {
    "naive Bayes": lambda: tb.NaiveBayes(),
    "naive Bayes, mle": lambda: tb.NaiveBayes(estimate="mle"),
    "discriminant": lambda: tb.GaussianDiscriminant(),
    "discriminant, mle": lambda: tb.GaussianDiscriminant(estimate="mle"),
    "tied discriminant": lambda: tb.GaussianDiscriminant("tied"),
    "spherical discriminant, mle": lambda: tb.GaussianDiscriminant("spherical", estimate="mle"),
    "bins": lambda: tb.NaiveBayes({"a": tb.Binned((0.0, 1.01e100, 1e120))}),
    "pairs of bins": lambda: tb.AveragedOneDependence(bins=3),
}
EXPORTS = {"SQL": lambda model: model.to_sql("sqlite", "t")}
if importlib.util.find_spec("onnx"):
    EXPORTS["ONNX"] = lambda model: model.to_onnx()


def fitted(make, column):
    return make().fit({"a": column, "b": NORMAL[::-1], "y": Y}, "y")


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("factor", [1e110, 1e120])
def test_numbers_beyond_the_range_raise(name, export, factor):
    model = fitted(MODELS[name], factor * (1 + NORMAL / 8))
    with pytest.raises(tb.ExportError, match=r"column 'a' has a (mean|scale|cut point) of [^0]\.?\d*e\+1[012]\d; "):
        EXPORTS[export](model)


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("name", ["naive Bayes", "discriminant", "discriminant, mle", "tied discriminant"])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_scales_that_are_too_small_raise(name, export):
    with pytest.raises(tb.ExportError, match="column 'a' has a scale of"):
        EXPORTS[export](fitted(MODELS[name], 1e-155 * NORMAL))


NUMBERS = {"large": 1e90 * NORMAL, "small": 1e-140 * NORMAL, "usual": 1e-170 * Y + NORMAL}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("name", sorted(set(MODELS) - {"bins"}))
@pytest.mark.parametrize("column", NUMBERS.values(), ids=NUMBERS)
def test_numbers_within_the_range_are_exported(name, column, export):
    assert EXPORTS[export](fitted(MODELS[name], column))
