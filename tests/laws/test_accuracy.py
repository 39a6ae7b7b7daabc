"""How exact moments stay when rows are added and taken out again, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import tallybayes as tb

N_ROWS, N_KEPT = 50_000, 5  # all but 0.01 % are removed


def exact_moments(rows, weight=None):
    """Mean, and scatter matrix, in rational arithmetic, rounded once at the end."""
    columns = [[Fraction(float(x)) for x in column] for column in np.transpose(rows)]
    weights = [Fraction(1)] * len(rows) if weight is None else [Fraction(float(w)) for w in weight]
    means = [sum(w * x for w, x in zip(weights, column, strict=True)) / sum(weights) for column in columns]
    centered = [[x - mean for x in column] for column, mean in zip(columns, means, strict=True)]
    scatter = [
        [float(sum(w * a * b for w, a, b in zip(weights, p, q, strict=True))) for q in centered] for p in centered
    ]
    return np.array([float(mean) for mean in means]), np.array(scatter)


def assert_exact(moments, rows, tolerance, weight=None):
    mean, scatter = exact_moments(rows, weight)
    # Every float64 mean is off by half a unit in its last place; beyond that, the error is measured in spreads.
    deviation = np.sqrt(np.diag(scatter) / len(rows))
    assert np.all(np.abs(moments.mean - mean) <= 2.0**-53 * np.abs(mean) + tolerance * deviation)
    if moments.full:
        slack = tolerance * np.sqrt(np.outer(np.diag(scatter), np.diag(scatter)))
        assert np.all(np.abs(moments.scatter - scatter) <= slack)
    else:
        assert np.all(np.abs(moments.scatter - np.diag(scatter)) <= tolerance * np.diag(scatter))


def draw(offset, deviation, n=N_ROWS, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    mixing = np.eye(n_columns) + 0.5 * np.tri(n_columns, k=-1)
    return offset + deviation * (rng.normal(size=(n, n_columns)) @ mixing.T)


def tally(rows, family, like=None):
    factor = tb.Factor(tuple(range(rows.shape[1])), (), family)
    return tb.count(rows, [factor], like=like)


def forget_in_pieces(rows, kept, family, like):
    """All rows, less those not kept, in batches of different sizes and in another order than they came."""
    whole = tally(rows, family)
    gone = np.random.default_rng(5).permutation(np.setdiff1d(np.arange(len(rows)), kept))
    for batch in np.split(gone, [7, 1000, 1001, 20_000]):
        whole = whole - tally(rows[batch], family, like=whole if like else None)
    return whole.statistics[0]


OFFSETS = [
    pytest.param(0.0, 1.0, id="at 0"),
    pytest.param(1e9, 1e3, id="1e9, deviation 1e3"),
    pytest.param(1e9, 1.0, id="1e9, deviation 1"),
    pytest.param(-1e9, 1e-3, id="-1e9, deviation 1e-3"),
    pytest.param(1e-9, 1e-15, id="1e-9, deviation 1e-15"),
]
KEPT = np.sort(np.random.default_rng(3).choice(N_ROWS, N_KEPT, replace=False))


@pytest.mark.parametrize(("offset", "deviation"), OFFSETS)
@pytest.mark.parametrize("like", [False, True], ids=["own anchors", "the tally's anchors"])
def test_diagonal_moments_after_removing_nearly_everything(offset, deviation, like):
    rows = draw(offset, deviation)
    assert_exact(forget_in_pieces(rows, KEPT, tb.Gaussian(), like), rows[KEPT], 1e-12)


@pytest.mark.parametrize(("offset", "deviation"), OFFSETS)
def test_full_scatter_after_removing_nearly_everything(offset, deviation):
    rows = draw(offset, deviation)
    assert_exact(forget_in_pieces(rows, KEPT, tb.MultivariateGaussian(), True), rows[KEPT], 1e-9)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(("offset", "deviation"), OFFSETS)
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.MultivariateGaussian()], ids=repr)
def test_merging_is_exact(offset, deviation, family):
    rows = draw(offset, deviation, n=600)
    parts = [tally(part, family) for part in np.split(np.random.default_rng(1).permutation(rows), [1, 2, 50, 599])]
    assert_exact(sum(parts).statistics[0], rows, 1e-12)
    assert_exact(sum(reversed(parts)).statistics[0], rows, 1e-12)


@pytest.mark.parametrize(("offset", "deviation"), OFFSETS)
@pytest.mark.parametrize("where", ["alone", "within a batch"])
def test_an_outlier_is_forgotten(offset, deviation, where):
    rows = draw(offset, deviation, n=400)
    outlier = rows[:1] + 1e9 * deviation
    if where == "alone":
        spoilt = tally(rows, tb.Gaussian()) + tally(outlier, tb.Gaussian())
    else:
        spoilt = tally(np.concatenate([rows[:200], outlier, rows[200:]]), tb.Gaussian())
    assert_exact((spoilt - tally(outlier, tb.Gaussian())).statistics[0], rows, 1e-12)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("offset", "deviation"), OFFSETS)
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.MultivariateGaussian()], ids=repr)
def test_rows_that_come_and_go_one_by_one(offset, deviation, family):
    rows = draw(offset, deviation, n=150)
    single = [tally(rows[i : i + 1], family) for i in range(len(rows))]
    outlier = tally(rows[:1] + 1e9 * deviation, family)
    held = outlier + sum(single)
    assert_exact((held - outlier).statistics[0], rows, 1e-12)
    for one in [outlier, *single[:-4]]:
        held = held - one
    assert_exact(held.statistics[0], rows[-4:], 1e-12 if family == tb.Gaussian() else 1e-9)


@pytest.mark.parametrize("family", [tb.Gaussian(), tb.MultivariateGaussian()], ids=repr)
def test_fractional_weights(family):
    rows, rng = draw(1e9, 1.0, n=300), np.random.default_rng(2)
    weight = rng.uniform(0.1, 3.0, len(rows))
    factor = tb.Factor((0, 1, 2), (), family)
    whole = tb.count(rows, [factor], weight=weight)
    rest = whole - tb.count(rows[20:], [factor], weight=weight[20:])
    tolerance = 1e-12 if family == tb.Gaussian() else 1e-9
    assert_exact(rest.statistics[0], rows[:20], tolerance, weight[:20])


def test_missing_cells_leave_the_rest_exact():
    rows = draw(1e9, 1.0, n=2000)
    holes = np.random.default_rng(4).random(rows.shape) < 0.3
    rows[holes] = np.nan
    rest = (tally(rows, tb.Gaussian()) - tally(rows[10:], tb.Gaussian())).statistics[0]
    for column in range(3):
        known = rows[:10, column][~np.isnan(rows[:10, column])]
        mean, scatter = exact_moments(known[:, None])
        assert rest.weight[column] == len(known)
        assert rest.mean[column] == pytest.approx(mean[0], rel=1e-15)
        assert rest.scatter[column] == pytest.approx(scatter[0, 0], rel=1e-12)


def test_plain_sums_would_not_do():
    """The bar is real: float64 sums of squares miss it by many orders of magnitude."""
    rows = draw(1e9, 1.0)[:, :1]
    kept, gone = rows[KEPT, 0], np.delete(rows[:, 0], KEPT)
    total, squares = rows.sum() - gone.sum(), (rows**2).sum() - (gone**2).sum()
    plain = squares - total**2 / N_KEPT
    assert abs(plain - exact_moments(kept[:, None])[1][0, 0]) > 1e-3
