"""Newton's method on many problems at once: tops in closed form, at bounds, and where a step is far too long."""

import numpy as np
import pytest

from tallybayes.families._shared.newton import newton_maximize


def quadratic(tops, bends):
    def evaluate(place):
        gap = place - tops
        value = -0.5 * np.einsum("ni,nij,nj->n", gap, bends, gap)
        return value, -np.einsum("nij,nj->ni", bends, gap), -bends

    return evaluate


def test_quadratics_are_climbed_in_steps_of_two_at_most():
    tops, bends = np.array([[1.0, 2.0], [-7.0, 0.5]]), np.array([[[2.0, 0.5], [0.5, 1.0]], [[3.0, 0.0], [0.0, 1.0]]])
    found, done = newton_maximize(quadratic(tops, bends), np.zeros((2, 2)), np.array(-10.0), np.array(10.0))
    np.testing.assert_allclose(found, tops, atol=1e-9)
    assert done.all()
    found, done = newton_maximize(quadratic(tops, bends), np.zeros((2, 2)), np.array(-10.0), np.array(10.0), n_steps=2)
    np.testing.assert_allclose(found[1], [-4.0, 0.5])  # two steps of 2
    assert done.tolist() == [True, False]  # the first was there after one


def test_bounds_hold():
    tops, bends = np.array([[3.0, -3.0]]), np.eye(2)[None]
    low, high = np.array([[-1.0, -1.0]]), np.array([[1.0, 5.0]])
    found, done = newton_maximize(quadratic(tops, bends), np.zeros((1, 2)), low, high)
    assert found.tolist() == [[1.0, -1.0]]
    assert done.all()
    held, _ = newton_maximize(
        quadratic(tops, bends), np.array([[9.0, 0.0]]), np.array([[0.5, -9.0]]), np.array([[0.5, 9.0]])
    )
    np.testing.assert_allclose(held, [[0.5, -3.0]], atol=1e-9)


def test_functions_that_bend_the_wrong_way_and_overshoot():
    def bump(place):  # −log(1 + x²): Newton's own step leads away where |x| > 1
        x = place[:, 0]
        value, slope = -np.log1p(x**2), -2 * x / (1 + x**2)
        bend = (2 * x**2 - 2) / (1 + x**2) ** 2
        return value, slope[:, None], bend[:, None, None]

    starts = np.array([[0.3], [-0.9], [6.1], [-40.3]])
    found, done = newton_maximize(bump, starts, np.array(-100.0), np.array(100.0), n_steps=100)
    np.testing.assert_allclose(found, 0.0, atol=1e-8)
    assert done.all()

    def steep(place):  # x − eˣ, from far to the left: the step is cut, and no value falls
        x = place[:, 0]
        return x - np.exp(x), (1 - np.exp(x))[:, None], -np.exp(x)[:, None, None]

    found, _ = newton_maximize(steep, np.array([[-30.0], [3.0]]), np.array(-50.0), np.array(50.0), n_steps=60)
    np.testing.assert_allclose(found, 0.0, atol=1e-8)


def test_nothing_to_climb():
    place, done = newton_maximize(lambda place: 1 / 0, np.zeros((0, 2)), np.array(0.0), np.array(1.0))
    assert place.shape == (0, 2)
    assert done.size == 0
    place, done = newton_maximize(lambda place: 1 / 0, np.zeros((2, 0)), np.array(0.0), np.array(1.0))
    assert done.tolist() == [True, True]


def test_what_is_held_by_a_bound_takes_no_part_in_the_step_of_others():
    """The top of a tilted quadratic on a bound: where the free number's own slope is 0, not where the top's is."""
    bends = np.array([[[1.0, 0.8], [0.8, 1.0]]])
    for top, wanted in ((3.0, [1.0, 1.6]), (-3.0, [-1.0, -1.6])):
        low, high = np.array([[-1.0, -9.0]]), np.array([[1.0, 9.0]])
        for start in ([[0.0, 0.0]], [[wanted[0], 0.0]]):
            found, done = newton_maximize(quadratic(np.array([[top, 0.0]]), bends), np.array(start), low, high)
            np.testing.assert_allclose(found, [wanted], atol=1e-8)
            assert done.all()


def test_a_number_on_a_bound_that_leads_inside_is_free():
    found, done = newton_maximize(
        quadratic(np.array([[0.5, -0.5]]), np.eye(2)[None]), np.array([[-1.0, 1.0]]), np.array(-1.0), np.array(1.0)
    )
    np.testing.assert_allclose(found, [[0.5, -0.5]], atol=1e-9)
    assert done.all()


def test_one_step_is_enough_of_a_quadratic_and_none_is_taken_that_leads_down():
    asked = []

    def evaluate(place):
        asked.append(place.copy())
        return quadratic(np.array([[1.0]]), np.array([[[2.0]]]))(place)

    newton_maximize(evaluate, np.array([[0.0]]), np.array(-5.0), np.array(5.0))
    assert len(asked) == 2  # where it starts, and the top

    def cliff(place):  # |x|^1.2, whose Newton step overshoots and comes back lower
        x = place[:, 0]
        value = -(np.abs(x) ** 1.2)
        slope = -1.2 * np.sign(x) * np.abs(x) ** 0.2
        bend = -0.24 * np.abs(x) ** -0.8
        values.append(float(value[0]))
        return value, slope[:, None], bend[:, None, None]

    values: list[float] = []
    found, _ = newton_maximize(cliff, np.array([[1.3]]), np.array(-5.0), np.array(5.0), n_steps=100)
    assert abs(found[0, 0]) < 1e-3
    assert -(abs(found[0, 0]) ** 1.2) >= max(values) - 1e-12  # the best that was seen


def test_problems_do_not_share_their_steps():
    """One that is done, or damped, changes nothing in another."""
    tops, bends = np.array([[1.0, 2.0], [-7.0, 0.5], [0.0, 0.0]]), np.stack([np.eye(2), np.diag([3.0, 1.0]), np.eye(2)])
    together, _ = newton_maximize(quadratic(tops, bends), np.zeros((3, 2)), np.array(-10.0), np.array(10.0), n_steps=3)
    for k in range(3):
        alone, _ = newton_maximize(
            quadratic(tops[k : k + 1], bends[k : k + 1]), np.zeros((1, 2)), np.array(-10.0), np.array(10.0), n_steps=3
        )
        np.testing.assert_allclose(together[k], alone[0], atol=1e-12)


@pytest.mark.parametrize("times", [1e-6, 1e6])
def test_a_function_times_a_number_is_climbed_in_the_same_steps(times):
    def rough(factor):  # steep on one side, so that steps overshoot and are damped, and flat along the other number
        def evaluate(place):
            x, y = place.T
            value = -(np.abs(x) ** 1.2) - 1e-3 * (y - 1) ** 2
            slope = np.stack([-1.2 * np.sign(x) * np.abs(x) ** 0.2, -2e-3 * (y - 1)], axis=1)
            bend = np.zeros((len(x), 2, 2))
            bend[:, 0, 0], bend[:, 1, 1] = -0.24 * np.abs(x) ** -0.8, -2e-3
            return factor * value, factor * slope, factor * bend

        return evaluate

    start, low, high = np.array([[1.3, 0.0], [-0.4, 4.0]]), np.array(-9.0), np.array(9.0)
    for n_steps in (1, 3, 6, 10, 15):
        plain, _ = newton_maximize(rough(1.0), start, low, high, n_steps=n_steps)
        found, _ = newton_maximize(rough(times), start, low, high, n_steps=n_steps)
        np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9)


def test_directions_without_any_bend_are_climbed_all_the_same():
    """A slope alone leads to the bound, however little it is beside the bend of another number."""

    def evaluate(place):
        x, y = place.T
        bend = np.zeros((len(x), 2, 2))
        bend[:, 0, 0] = -2.0
        return y - (x - 1) ** 2, np.stack([-2 * (x - 1), np.ones(len(x))], axis=1), bend

    found, done = newton_maximize(evaluate, np.zeros((1, 2)), np.array(-5.0), np.array(5.0))
    np.testing.assert_allclose(found, [[1.0, 5.0]], atol=1e-9)
    assert done.all()
