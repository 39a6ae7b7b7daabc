"""Bias and variance against their closed forms for least squares."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import tallybayes as tb
from tallybayes.errors import DataError

X = np.linspace(-2, 2, 9)[:, None]


def squared(rows):
    return np.asarray(rows)[:, 0] ** 2


def closed(degree, noise):
    """Of least squares: the truth less its projection, and σ² times the leverage."""
    design = np.vander(X[:, 0], degree + 1)
    hat = design @ np.linalg.pinv(design)
    return float(((hat @ squared(X) - squared(X)) ** 2).mean()), noise**2 * float(np.diag(hat).mean())


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_least_squares_in_closed_form(noise):
    found = tb.bias_variance(
        tb.LinearRegression(estimate="mle"), X, squared, candidates={"degree": [1, 2, 5]}, noise=noise, n_draws=1000
    )
    for place, degree in enumerate((1, 2, 5)):
        bias, variance = closed(degree, noise)
        assert found.variance[place] == pytest.approx(variance, rel=0.1)  # a standard error is some 0.03 of it
        assert found.bias[place] == pytest.approx(bias, abs=0.02 * noise**2 + 0.05 * noise)
    assert found.best == {"degree": 2}
    assert found.to_frame()["sum"].tolist() == (found.bias + found.variance).tolist()


def test_models_of_scikit_learn_and_other_places():
    wide = np.array([[5.0], [-5.0]])
    found = tb.bias_variance(Ridge(), X, lambda x: x[:, 0], candidates={"alpha": [1e-9, 1e3]}, at=wide, noise=0.1)
    assert found.bias[0] < 0.01
    assert found.bias[1] == pytest.approx(25, rel=0.05)  # nothing is left of the slope
    assert found.variance[0] > found.variance[1]


def test_without_noise_there_is_no_variance():
    found = tb.bias_variance(tb.LinearRegression(2, estimate="mle"), X, squared, noise=0, n_draws=2)
    assert found.variance.tolist() == pytest.approx([0.0], abs=1e-20)
    assert found.bias.tolist() == pytest.approx([0.0], abs=1e-20)
    assert found.names == ["as it is"]


def test_same_seed_same_draws():
    first, second = (tb.bias_variance(tb.LinearRegression(), X, squared, n_draws=5) for _ in range(2))
    assert first.bias.tobytes() == second.bias.tobytes()


def test_candidates_side_by_side_are_readable():
    sets = [{"degree": 1}, {"degree": 2, "prior": 1.0}]
    found = tb.bias_variance(tb.LinearRegression(), X, squared, candidates=sets, n_draws=5)
    assert "degree=2, prior=1.0" in repr(found)
    assert "<table" in found._repr_html_()
    assert found.plot().to_frame()["candidate"].tolist() == found.names


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"truth": 3.0}, "a function of the rows"),
        ({"truth": lambda x: x}, "a finite number for each of 9 rows"),
        ({"truth": lambda x: np.full(9, np.nan)}, "finite: False"),
        ({"noise": -1.0}, "noise is -1.0"),
        ({"noise": np.inf}, "noise is inf"),
        ({"n_draws": 1}, "n_draws is 1"),
        ({"candidates": {"degree": 3}}, "a list of values"),
        ({"candidates": []}, "at least one set"),
    ],
)
def test_nonsense_is_refused(changed, message):
    with pytest.raises(DataError, match=message):
        tb.bias_variance(**{"model": tb.LinearRegression(), "X": X, "truth": squared, "n_draws": 5, **changed})
