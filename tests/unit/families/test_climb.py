"""Newton's method on many problems at once: tops in closed form, at bounds, and where a step is far too long."""

import numpy as np

from tallybayes.families.climb import climb


def quadratic(tops, bends):
    def evaluate(place):
        gap = place - tops
        value = -0.5 * np.einsum("ni,nij,nj->n", gap, bends, gap)
        return value, -np.einsum("nij,nj->ni", bends, gap), -bends

    return evaluate


def test_quadratics_are_climbed_in_steps_of_two_at_most():
    tops, bends = np.array([[1.0, 2.0], [-7.0, 0.5]]), np.array([[[2.0, 0.5], [0.5, 1.0]], [[3.0, 0.0], [0.0, 1.0]]])
    found, done = climb(quadratic(tops, bends), np.zeros((2, 2)), np.array(-10.0), np.array(10.0))
    np.testing.assert_allclose(found, tops, atol=1e-9)
    assert done.all()
    found, done = climb(quadratic(tops, bends), np.zeros((2, 2)), np.array(-10.0), np.array(10.0), n_steps=2)
    np.testing.assert_allclose(found[1], [-4.0, 0.5])  # two steps of 2
    assert done.tolist() == [True, False]  # the first was there after one


def test_bounds_hold():
    tops, bends = np.array([[3.0, -3.0]]), np.eye(2)[None]
    low, high = np.array([[-1.0, -1.0]]), np.array([[1.0, 5.0]])
    found, done = climb(quadratic(tops, bends), np.zeros((1, 2)), low, high)
    assert found.tolist() == [[1.0, -1.0]]
    assert done.all()
    held, _ = climb(quadratic(tops, bends), np.array([[9.0, 0.0]]), np.array([[0.5, -9.0]]), np.array([[0.5, 9.0]]))
    np.testing.assert_allclose(held, [[0.5, -3.0]], atol=1e-9)


def test_functions_that_bend_the_wrong_way_and_overshoot():
    def bump(place):  # −log(1 + x²): Newton's own step leads away where |x| > 1
        x = place[:, 0]
        value, slope = -np.log1p(x**2), -2 * x / (1 + x**2)
        bend = (2 * x**2 - 2) / (1 + x**2) ** 2
        return value, slope[:, None], bend[:, None, None]

    starts = np.array([[0.3], [-0.9], [6.1], [-40.3]])
    found, done = climb(bump, starts, np.array(-100.0), np.array(100.0), n_steps=100)
    np.testing.assert_allclose(found, 0.0, atol=1e-8)
    assert done.all()

    def steep(place):  # x − eˣ, from far to the left: the step is cut, and no value falls
        x = place[:, 0]
        return x - np.exp(x), (1 - np.exp(x))[:, None], -np.exp(x)[:, None, None]

    found, _ = climb(steep, np.array([[-30.0], [3.0]]), np.array(-50.0), np.array(50.0), n_steps=60)
    np.testing.assert_allclose(found, 0.0, atol=1e-8)


def test_nothing_to_climb():
    place, done = climb(lambda place: 1 / 0, np.zeros((0, 2)), np.array(0.0), np.array(1.0))
    assert place.shape == (0, 2)
    assert done.size == 0
    place, done = climb(lambda place: 1 / 0, np.zeros((2, 0)), np.array(0.0), np.array(1.0))
    assert done.tolist() == [True, True]
