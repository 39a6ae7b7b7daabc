"""Least squares against certified values: NIST's Statistical Reference Datasets, and what R's lm prints.

Norris, Longley and Wampler 1 to 5: https://www.itl.nist.gov/div898/strd/lls/lls.shtml.
The cars: R's help of lm and cars.
"""

import numpy as np
import pytest

import tallybayes as tb

X = np.arange(21.0)
POWERS = np.stack([X**k for k in range(1, 6)], axis=1)
_NOISE = [-2048, 2048, -2048]
DELTA = np.array(
    [759, *_NOISE, 2523, *_NOISE, 1838, *_NOISE, 1838, *_NOISE, 2523, *_NOISE, 759],
    dtype=float,
)
WAMPLER_ERRORS = [
    2152.32624678170,
    2363.55173469681,
    779.343524331583,
    101.475507550350,
    5.64566512170752,
    0.112324854679312,
]
ONES = 1 + POWERS.sum(axis=1)

LONGLEY = np.array(
    [
        [83.0, 234289, 2356, 1590, 107608, 1947, 60323],
        [88.5, 259426, 2325, 1456, 108632, 1948, 61122],
        [88.2, 258054, 3682, 1616, 109773, 1949, 60171],
        [89.5, 284599, 3351, 1650, 110929, 1950, 61187],
        [96.2, 328975, 2099, 3099, 112075, 1951, 63221],
        [98.1, 346999, 1932, 3594, 113270, 1952, 63639],
        [99.0, 365385, 1870, 3547, 115094, 1953, 64989],
        [100.0, 363112, 3578, 3350, 116219, 1954, 63761],
        [101.2, 397469, 2904, 3048, 117388, 1955, 66019],
        [104.6, 419180, 2822, 2857, 118734, 1956, 67857],
        [108.4, 442769, 2936, 2798, 120445, 1957, 68169],
        [110.8, 444546, 4681, 2637, 121950, 1958, 66513],
        [112.6, 482704, 3813, 2552, 123366, 1959, 68655],
        [114.2, 502601, 3931, 2514, 125368, 1960, 69564],
        [115.7, 518173, 4806, 2572, 127852, 1961, 69331],
        [116.9, 554894, 4007, 2827, 130081, 1962, 70551],
    ]
)
NORRIS = np.fromstring(
    """0.2 0.1 337.4 338.8 118.2 118.1 884.6 888.0 10.1 9.2 226.5 228.1 666.3 668.5 996.3 998.5 448.6 449.1 777.0 778.9
    558.2 559.2 0.4 0.3 0.6 0.1 775.5 778.1 666.9 668.8 338.0 339.3 447.5 448.9 11.6 10.8 556.0 557.7 228.1 228.3 995.8
    998.0 887.6 888.8 120.2 119.6 0.3 0.3 0.3 0.6 556.8 557.6 339.1 339.3 887.2 888.0 999.0 998.5 779.0 778.9 11.1 10.2
    118.3 117.6 229.2 228.9 669.1 668.4 448.9 449.2 0.5 0.2""",
    sep=" ",
).reshape(36, 2)

# rows of inputs and target; intercept and slopes; their standard errors; the residual standard deviation
CERTIFIED = {
    "Norris": (
        NORRIS,
        [-0.262323073774029, 1.00211681802045],
        [0.232818234301152, 0.429796848199937e-03],
        0.884796396144373,
    ),
    "Longley": (
        LONGLEY,
        [
            -3482258.63459582,
            15.0618722713733,
            -0.358191792925910e-01,
            -2.02022980381683,
            -1.03322686717359,
            -0.511041056535807e-01,
            1829.15146461355,
        ],
        [
            890420.383607373,
            84.9149257747669,
            0.334910077722432e-01,
            0.488399681651699,
            0.214274163161675,
            0.226073200069370,
            455.478499142212,
        ],
        304.854073561965,
    ),
    "Wampler1": (np.c_[POWERS, ONES], [1.0] * 6, [0.0] * 6, 0.0),
    "Wampler2": (np.c_[POWERS, 1 + POWERS @ 0.1 ** np.arange(1, 6)], 0.1 ** np.arange(6), [0.0] * 6, 0.0),
    "Wampler3": (np.c_[POWERS, ONES + DELTA], [1.0] * 6, WAMPLER_ERRORS, 2360.14502379268),
    "Wampler4": (
        np.c_[POWERS, ONES + 100 * DELTA],
        [1.0] * 6,
        np.multiply(100.0, WAMPLER_ERRORS),
        236014.502379268,
    ),
    "Wampler5": (
        np.c_[POWERS, ONES + 10000 * DELTA],
        [1.0] * 6,
        np.multiply(10000.0, WAMPLER_ERRORS),
        23601450.2379268,
    ),
}


def worst(found, certified):
    certified = np.asarray(certified)
    return float(np.max(np.abs(np.asarray(found) - certified) / np.abs(certified)))


def least_squares(rows):
    line = tb.fit_distribution(rows, tb.LinearGaussian()).estimate("unbiased")
    return np.append(line.intercept, line.slope), line.std


@pytest.mark.parametrize("name", CERTIFIED)
def test_certified_weights_and_noise(name):
    rows, weights, _, deviation = CERTIFIED[name]
    found, noise = least_squares(rows)
    assert worst(found, weights) < 1e-11
    scale = rows[:, -1].std()
    assert abs(noise - deviation) < 1e-11 * deviation + 1e-10 * (scale if deviation == 0 else 0.0)


@pytest.mark.parametrize("name", [name for name in CERTIFIED if name != "Norris"])
def test_no_worse_than_least_squares_on_the_rows(name):
    rows, weights, _, _ = CERTIFIED[name]
    design = np.c_[np.ones(len(rows)), rows[:, :-1]]
    on_rows = np.linalg.lstsq(design, rows[:, -1], rcond=None)[0]
    assert worst(least_squares(rows)[0], weights) <= worst(on_rows, weights)


@pytest.mark.parametrize("name", ["Norris", "Longley", "Wampler3", "Wampler5"])
def test_far_from_zero(name):
    rows = CERTIFIED[name][0]
    far = rows.copy()
    far[:, 0] += 2.0**30  # about 1e9; cells keep their last bits where they can
    near = rows.copy()
    near[:, 0] = far[:, 0] - 2.0**30
    found, noise = least_squares(far)
    back, back_noise = least_squares(near)
    assert worst(found[1:], back[1:]) < 1e-9
    assert noise == pytest.approx(back_noise, rel=1e-10)
    assert found[0] == pytest.approx(back[0] - 2.0**30 * back[1], rel=1e-9)


@pytest.mark.parametrize("name", ["Norris", "Longley", "Wampler3", "Wampler4", "Wampler5"])
def test_certified_standard_errors(name):
    """Those of least squares are the limit of a belief that knows nothing, at the noise that was certified."""
    rows, _, errors, deviation = CERTIFIED[name]
    p = rows.shape[1] - 1
    known = tb.LinearNormalInverseGamma(np.zeros(p), np.zeros((p, p)), 1e14, 1e14 * deviation**2)
    posterior = known.update(tb.LinearGaussian().collect(rows).reshape_groups(()))
    slopes, intercept = posterior.coefficient_variances()
    found = deviation * np.sqrt(np.append(intercept, slopes))
    assert worst(found, errors) < 1e-9


CARS = np.fromstring(
    """4 2 4 10 7 4 7 22 8 16 9 10 10 18 10 26 10 34 11 17 11 28 12 14 12 20 12 24 12 28 13 26 13 34 13 34 13 46 14 26
    14 36 14 60 14 80 15 20 15 26 15 54 16 32 16 40 17 32 17 40 17 50 18 42 18 56 18 76 18 84 19 36 19 46 19 68 20 32
    20 48 20 52 20 56 20 64 22 66 23 54 24 70 24 92 24 93 24 120 25 85""",
    sep=" ",
).reshape(50, 2)


def test_cars_as_lm_prints_them():
    found, noise = least_squares(CARS)
    assert found.round(4).tolist() == [-17.5791, 3.9324]
    assert round(noise, 2) == 15.38
