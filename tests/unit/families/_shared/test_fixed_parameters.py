"""Parameters that are stated: read by name, checked, and worth so many rows; every mean of such a belief is theirs."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError, PriorError
from tallybayes.families._shared.fixed_parameters import (
    check_parameters,
    parameter_arrays,
    parameter_names,
    prior_of_strength,
)

GOOD = {
    "Bernoulli": (tb.Bernoulli(), {"probability": [[0.2, 0.5], [0.9, 0.1]]}, ()),
    "Binomial": (tb.Binomial(4), {"probability": [[0.2, 0.5], [0.9, 0.1]]}, ()),
    "Categorical": (tb.Categorical(), {"probability": [[0.2, 0.8, 0.1, 0.4, 0.5], [0.5, 0.5, 0.2, 0.2, 0.6]]}, (2, 3)),
    "one column": (tb.Categorical(), {"probability": [[0.2, 0.8]]}, (2,)),
    "Multinomial": (tb.Multinomial(), {"probability": [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]}, ()),
    "Poisson": (tb.Poisson(), {"rate": [[2.0, 7.5], [0.3, 1.0]]}, ()),
    "Gaussian": (tb.Gaussian(), {"mean": [[0.0, 5.0], [1.0, -3.0]], "variance": [[1.0, 2.0], [3.0, 4.0]]}, ()),
    "tied": (tb.TiedGaussian(), {"mean": [[0.0, 5.0], [1.0, -3.0]], "variance": [[1.0, 2.0]]}, ()),
    "full": (tb.MultivariateGaussian(), {"mean": [[0.0, 5.0]], "covariance": [[[2.0, 0.5], [0.5, 1.0]]]}, ()),
    "tied full": (
        tb.TiedMultivariateGaussian(),
        {"mean": [[0.0, 5.0], [1.0, 1.0]], "covariance": [[[2.0, 0.5], [0.5, 1.0]]]},
        (),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_numbers_are_read_and_told_again(name):
    family, numbers, sizes = GOOD[name]
    assert parameter_names(family) == tuple(numbers)
    point = check_parameters(family, numbers, sizes, "it")
    for part, found in parameter_arrays(family, point).items():
        np.testing.assert_allclose(found, numbers[part], rtol=1e-15)


@pytest.mark.parametrize("rows", [8.0, 100.0])
@pytest.mark.parametrize("name", GOOD)
def test_a_belief_worth_some_rows_expects_them(name, rows):
    family, numbers, sizes = GOOD[name]
    point = check_parameters(family, numbers, sizes, "it")
    n_groups = len(next(iter(numbers.values())))
    belief = prior_of_strength(family, point, np.full(n_groups, rows), "it")
    mean = belief.mean()
    for part, expected in numbers.items():
        found = getattr(mean, part, mean)
        np.testing.assert_allclose(found, np.broadcast_to(expected, np.shape(found)), rtol=1e-12)
    if name in ("Bernoulli", "Binomial"):
        np.testing.assert_allclose(belief.alpha + belief.beta, rows * getattr(family, "n", 1))
    if name in ("Multinomial", "one column"):
        np.testing.assert_allclose(belief.concentration.sum(axis=-1), rows)
    if name == "Poisson":
        np.testing.assert_allclose(belief.rate, rows)
    if name == "Gaussian":
        np.testing.assert_allclose(belief.strength, rows)
        np.testing.assert_allclose(belief.shape, rows / 2)
    if name == "tied":
        np.testing.assert_allclose(belief.shape, rows)  # of two groups


def test_probabilities_are_rounded_to_sum_to_1_unless_they_come_from_a_file():
    numbers = {"probability": [0.3333333, 0.3333333, 0.3333333]}
    assert check_parameters(tb.Multinomial(), numbers, (), "it").sum() == pytest.approx(1, abs=1e-16)
    assert check_parameters(tb.Multinomial(), numbers, (), "it", as_they_are=True).sum() == pytest.approx(
        0.9999999, abs=1e-12
    )
    assert check_parameters(tb.Bernoulli(), {"probability": [1 + 5e-7]}, (), "it").tolist() == [1.0]


@pytest.mark.parametrize(
    ("family", "numbers", "text"),
    [
        (tb.Poisson(), {"rate": [np.nan]}, "has a non-finite rate"),
        (tb.Poisson(), {"rate": [2.0, -0.5]}, "has the rate -0.5"),
        (tb.Bernoulli(), {"probability": [0.5, 1.2]}, "has the probability 1.2"),
        (tb.Bernoulli(), {"probability": [-0.1]}, "has the probability -0.1"),
        (tb.Multinomial(), {"probability": [0.5, 0.6]}, "sums to 1.1"),
        (tb.Gaussian(), {"mean": [0.0], "variance": [0.0]}, "has the variance 0"),
        (tb.Gaussian(), {"mean": [np.inf], "variance": [1.0]}, "has a non-finite mean"),
        (tb.MultivariateGaussian(), {"mean": [0.0, 0.0], "covariance": [[1.0, 0.5], [0.4, 1.0]]}, "not symmetric"),
        (tb.MultivariateGaussian(), {"mean": [0.0, 0.0], "covariance": [[1.0, 1.0], [1.0, 1.0]]}, "positive definite"),
    ],
)
def test_what_cannot_be_is_refused(family, numbers, text):
    with pytest.raises(EstimateError, match=f"it .*{text}" if text.startswith(("has", "sums")) else text):
        check_parameters(family, numbers, (), "it")


@pytest.mark.parametrize(
    ("name", "rows", "text"),
    [("Gaussian", 2.0, "more than 2"), ("full", 3.0, "more than 3"), ("tied", 1.0, "more than 2")],
)
def test_a_spread_needs_some_rows(name, rows, text):
    family, numbers, sizes = GOOD[name]
    n_groups = len(numbers["mean"])
    with pytest.raises(PriorError, match=text):
        prior_of_strength(family, check_parameters(family, numbers, sizes, "it"), np.full(n_groups, rows), "it")


@pytest.mark.parametrize(
    ("family", "numbers"),
    [
        (tb.Bernoulli(), {"probability": [[1.0]]}),
        (tb.Bernoulli(), {"probability": [[0.0]]}),
        (tb.Multinomial(), {"probability": [[0.0, 1.0]]}),
        (tb.Poisson(), {"rate": [[0.0]]}),
    ],
)
def test_a_zero_is_worth_no_rows(family, numbers):
    with pytest.raises(PriorError, match="contains 0, which is not the mean of any prior"):
        prior_of_strength(family, check_parameters(family, numbers, (), "it"), np.array([5.0]), "it")
    with pytest.raises(PriorError, match="contains 0, which is not the mean of any prior"):
        prior_of_strength(tb.Poisson(), np.array([[1.0]]), np.array([0.0]), "it")


def test_families_within_others_are_not_stated():
    assert parameter_names(tb.WithMissing(tb.Gaussian())) == ()


def test_lines_are_stated_of_nodes_alone():
    from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian

    assert parameter_names(ConditionalLinearGaussian()) == ("slope", "intercept", "variance")
    assert parameter_names(tb.LinearGaussian()) == ()


def test_the_number_that_is_wrong_is_named():
    with pytest.raises(EstimateError, match=r"has the probability 1\.2;"):
        check_parameters(tb.Bernoulli(), {"probability": [0.0, 0.9999999, 1.0, 1.2, -3.0]}, (), "it")
    lopsided = [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.4, 1.0]], np.eye(2)]
    with pytest.raises(EstimateError, match="not symmetric"):
        check_parameters(tb.MultivariateGaussian(), {"mean": np.zeros((3, 2)), "covariance": lopsided}, (), "it")


SHARED = {
    "each": (tb.Gaussian(), [[8.0, 8.0], [5.0, 5.0]]),
    "groups": (tb.TiedGaussian(), [[13.0, 13.0]]),
    "columns": (tb.SphericalGaussian(), [[24.0], [15.0]]),
    "both": (tb.TiedSphericalGaussian(), [[39.0]]),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_variance_is_worth_all_the_rows_that_share_it(name):
    family, rows = SHARED[name]
    width = 3 if "columns" in family.tied_over else 2
    mean, variance = np.arange(2.0 * width).reshape(2, width), np.full((2, width), 4.0)
    belief = prior_of_strength(
        family, check_parameters(family, {"mean": mean, "variance": variance}, (), "it"), np.array([8.0, 5.0]), "it"
    )
    np.testing.assert_allclose(2 * belief.shape, rows)
    np.testing.assert_allclose(belief.strength, np.repeat([[8.0], [5.0]], width, axis=1))
    np.testing.assert_allclose(belief.mean().variance, variance, rtol=1e-13)
    np.testing.assert_allclose(belief.mean().mean, mean)
    assert belief.tied_over == family.tied_over


def test_a_covariance_is_worth_all_the_rows_that_share_it():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    numbers = {"mean": [[0.0, 5.0], [1.0, 1.0]], "covariance": [covariance, covariance]}
    for family, freedom in ((tb.MultivariateGaussian(), [8.0, 5.0]), (tb.TiedMultivariateGaussian(), [13.0])):
        belief = prior_of_strength(family, check_parameters(family, numbers, (), "it"), np.array([8.0, 5.0]), "it")
        assert belief.degrees_of_freedom.tolist() == freedom
        assert belief.scale.shape == (len(freedom), 2, 2)
        assert belief.strength.tolist() == [8.0, 5.0]
        np.testing.assert_allclose(belief.mean().covariance, numbers["covariance"], rtol=1e-13)
    one = check_parameters(tb.MultivariateGaussian(), {"mean": [0.0, 5.0, 1.0], "covariance": np.eye(3)}, (), "it")
    alone = prior_of_strength(tb.MultivariateGaussian(), one, np.array(4.5), "it")
    np.testing.assert_allclose(alone.mean().covariance, np.eye(3), rtol=1e-13)


def test_a_few_rows_are_enough():
    point = check_parameters(tb.Gaussian(), {"mean": [[0.0]], "variance": [[4.0]]}, (), "it")
    assert prior_of_strength(tb.Gaussian(), point, np.array([2.5]), "it").mean().variance == pytest.approx(4.0)
    full = check_parameters(tb.MultivariateGaussian(), {"mean": [[0.0, 0.0]], "covariance": [np.eye(2)]}, (), "it")
    found = prior_of_strength(tb.MultivariateGaussian(), full, np.array([3.5]), "it")
    np.testing.assert_allclose(found.mean().covariance[0], np.eye(2))
    assert prior_of_strength(tb.Poisson(), np.array([[0.5]]), np.array([0.25]), "it").mean() == pytest.approx(0.5)
    assert prior_of_strength(tb.Bernoulli(), np.array([[0.5]]), np.array([0.25]), "it").mean() == pytest.approx(0.5)
