"""The intervals of an evaluation: closed forms, draws, weights, extremes, and how often they hold the truth."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import tallybayes as tb
from tests.unit.evaluation.evaluations import draw, numbers

ALL = ["accuracy", "error_rate", "log_loss", "brier_score", "roc_auc", "calibration_error", "bits_per_row"]
MACRO = ["macro_precision", "macro_recall", "macro_f1_score"]


@pytest.mark.parametrize("mass", [0.5, 0.95])
def test_shares_have_beta_intervals(mass):
    codes, log_proba = draw(3, 120)
    found = tb.Evaluation(list("abc"), codes, log_proba, mass=mass)
    table = found.confusion_matrix

    def expected(part, total):
        return stats.beta.interval(mass, 1 + part, 1 + total - part)

    np.testing.assert_allclose(found.accuracy[1:], expected(np.trace(table), 120), rtol=1e-9)
    np.testing.assert_allclose(found.error_rate[1:], expected(120 - np.trace(table), 120), rtol=1e-9)
    for k, label in enumerate("abc"):
        right, true, predicted = table[k, k], table[k].sum(), table[:, k].sum()
        np.testing.assert_allclose(found.precision[label][1:], expected(right, predicted), rtol=1e-9)
        np.testing.assert_allclose(found.recall[label][1:], expected(right, true), rtol=1e-9)
        wrong = predicted - right
        np.testing.assert_allclose(found.false_positive_rate[label][1:], expected(wrong, 120 - true), rtol=1e-9)
        low, high = expected(right, true + predicted - right)
        np.testing.assert_allclose(found.f1_score[label][1:], (2 * low / (1 + low), 2 * high / (1 + high)), rtol=1e-9)


def test_f_by_draws_of_the_confusion_cells():
    codes, log_proba = draw(2, 200)
    found = tb.Evaluation([0, 1], codes, log_proba)
    (tn, fp), (fn, tp) = found.confusion_matrix
    # the prior of TP against FP + FN is uniform: Dirichlet with 1 for TP, and 1 for FP and FN together
    cells = np.random.default_rng(0).dirichlet([tp + 1, fp + 0.5, fn + 0.5, tn + 1], 200_000)
    f = 2 * cells[:, 0] / (2 * cells[:, 0] + cells[:, 1] + cells[:, 2])
    np.testing.assert_allclose(found.f1_score[1][1:], np.quantile(f, [0.025, 0.975]), atol=0.001)


def test_losses_have_student_intervals_with_one_guessed_row():
    codes, log_proba = draw(3, 50)
    found = tb.Evaluation(list("abc"), codes, log_proba)
    p = np.exp(log_proba)
    losses = {
        "log_loss": (-log_proba[np.arange(50), codes], np.log(3)),
        "brier_score": (((np.eye(3)[codes] - p) ** 2).sum(axis=1), 2 / 3),  # what a guess of 1/3 each loses
    }
    for name, (loss, guessed) in losses.items():
        rows = np.append(loss, guessed)
        interval = stats.t.interval(0.95, 50, rows.mean(), stats.sem(rows))
        np.testing.assert_allclose(getattr(found, name)[1:], interval, rtol=1e-12)
    pair = tb.Evaluation(list("ab"), *draw(2, 50))
    rows = np.append((np.exp(pair.log_proba[:, 1]) - pair.codes) ** 2, 0.25)
    interval = stats.t.interval(0.95, 50, rows.mean(), stats.sem(rows))
    np.testing.assert_allclose(pair.brier_score[1:], interval, rtol=1e-12)


def test_the_area_s_variance_is_delong_s():
    codes, log_proba = draw(2, 400)
    found = tb.Evaluation([0, 1], codes, log_proba).roc_auc
    p = np.exp(log_proba[:, 1])
    up, down = p[codes == 1], p[codes == 0]
    beats = (up[:, None] > down).astype(float) + 0.5 * (up[:, None] == down)
    area, n = beats.mean(), 4 * len(up) * len(down) / 400
    variance = beats.mean(axis=1).var(ddof=1) / len(up) + beats.mean(axis=0).var(ddof=1) / len(down)
    variance += stats.beta.var(n + 1, 1)
    # the posterior of a share of m rows, with m so large that this is its variance
    m = optimize.brentq(lambda m: stats.beta.var(1 + m * area, 1 + m * (1 - area)) - variance, 1, 1e6)
    expected = stats.beta.interval(0.95, 1 + m * area, 1 + m * (1 - area))
    np.testing.assert_allclose(found, (area, *expected), rtol=1e-6)


def test_macro_averages_by_draws():
    codes, log_proba = draw(4, 2000)
    found = tb.Evaluation(range(4), codes, log_proba)
    cells = np.random.default_rng(0).dirichlet(found.confusion_matrix.ravel() + 1e-9, 20_000).reshape(-1, 4, 4)
    right, true, predicted = np.diagonal(cells, axis1=1, axis2=2), cells.sum(axis=2), cells.sum(axis=1)
    draws = {
        "macro_precision": right / predicted,
        "macro_recall": right / true,
        "macro_f1_score": 2 * right / (true + predicted),
    }
    for name, shares in draws.items():
        expected = np.quantile(shares.mean(axis=1), [0.025, 0.975])
        np.testing.assert_allclose(getattr(found, name)[1:], expected, atol=0.002)


def test_many_small_classes_do_not_pull_the_average():
    codes = np.repeat(np.arange(200), 4)  # four rows each, three of them right
    guess = np.where(np.arange(800) % 4 == 0, (codes + 1) % 200, codes)
    log_proba = np.log(np.full((800, 200), 1e-4) + (1 - 0.02) * np.eye(200)[guess])
    found = tb.Evaluation(range(200), codes, log_proba)
    for measure in (found.macro_recall, found.macro_precision, found.macro_f1_score):
        assert measure.value == pytest.approx(0.75)
        assert measure.high - measure.low < 0.1
        assert measure.high - 0.75 == pytest.approx(0.75 - measure.low, rel=0.2)


def test_only_the_proportions_of_weights_matter():
    codes, log_proba = draw(3, 80)
    weight = np.random.default_rng(0).gamma(1.0, size=80)
    whole = tb.Evaluation(list("abc"), codes, log_proba, log_density=log_proba[:, 0])
    same = tb.Evaluation(list("abc"), codes, log_proba, log_density=log_proba[:, 0], weight=np.full(80, 7.0))
    np.testing.assert_allclose(numbers(same), numbers(whole), rtol=1e-9)
    once, more = (tb.Evaluation(list("abc"), codes, log_proba, weight=c * weight) for c in (1, 1e-9))
    np.testing.assert_allclose(numbers(more), numbers(once), rtol=1e-9)
    assert once.effective_rows == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    for scale in (1e-200, 1e200):  # squares would vanish or overflow
        far = tb.Evaluation(list("abc"), codes, log_proba, weight=np.full(80, scale), log_density=log_proba[:, 0])
        np.testing.assert_allclose(numbers(far), numbers(whole), rtol=1e-9)
        np.testing.assert_allclose(far.confusion_matrix, scale * whole.confusion_matrix, rtol=1e-12)
        assert far.support["a"] == pytest.approx(scale * whole.support["a"])
    shorter, longer = whole.accuracy, once.accuracy
    assert longer.high - longer.low > shorter.high - shorter.low  # unequal weights say less


def test_rows_without_weight_are_absent():
    codes, log_proba = draw(3, 60)
    weight = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    density = np.arange(60.0)
    groups = np.where(np.arange(60) % 2, "odd", "even")
    log_proba[weight == 0] = np.nan  # whatever they hold
    density[weight == 0] = -np.inf
    keep = weight > 0
    found = tb.Evaluation(list("abc"), codes, log_proba, weight=weight, log_density=density, by=groups)
    rest = tb.Evaluation(
        *(list("abc"), codes[keep], log_proba[keep]), weight=weight[keep], log_density=density[keep], by=groups[keep]
    )
    pd.testing.assert_frame_equal(found.to_frame(), rest.to_frame())
    assert found.n_rows == keep.sum()
    assert found.log_proba.shape == (60, 3)  # what was passed stays in place
    assert repr(found) == repr(rest)


def test_weights_of_very_different_size():
    codes, log_proba = draw(3, 60)
    weight = 10.0 ** np.random.default_rng(0).uniform(-300, 0, 60)
    weight[codes == 1] = 1e-300  # a class whose squared weights are all 0
    found = numbers(tb.Evaluation(list("abc"), codes, log_proba, weight=weight))[1:]
    assert not np.isnan(found[:, 1:]).any()


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_one_row(n_classes):
    log_proba = np.log(np.full((1, n_classes), 1 / n_classes))
    found = tb.Evaluation(range(n_classes), np.array([0]), log_proba, log_density=np.array([-2.0]))
    assert found.accuracy == (1.0, pytest.approx(0.158, abs=0.001), 1.0)
    assert np.isnan(found.roc_auc.value)
    assert found.roc_auc[1:] == pytest.approx((0.025, 0.975))
    assert found.log_loss.value == pytest.approx(np.log(n_classes))
    for name in (*ALL[:6], *MACRO):
        assert np.isfinite(getattr(found, name)[1:]).all(), name
    assert found.bits_per_row == (pytest.approx(2 / np.log(2)), -np.inf, np.inf)  # a density has no scale of its own
    assert "rows" in repr(found)


def test_all_rows_right():
    codes = np.arange(60) % 3
    log_proba = np.log(np.full((60, 3), 0.01) + 0.97 * np.eye(3)[codes])
    found = tb.Evaluation(list("abc"), codes, log_proba)
    for measure in (found.accuracy, found.roc_auc, found.macro_f1_score, found.macro_recall, found.f1_score["b"]):
        assert measure.value == measure.high == 1
        assert 0.8 < measure.low < 0.99
    assert found.log_loss.value == pytest.approx(-np.log(0.98))
    assert found.log_loss.low <= found.log_loss.value < found.log_loss.high < 0.1


def test_all_rows_wrong():
    codes = np.arange(60) % 2
    found = tb.Evaluation(list("ab"), codes, np.log(np.full((60, 2), 0.1) + 0.8 * np.eye(2)[1 - codes]))
    for measure in (found.accuracy, found.roc_auc, found.macro_f1_score, found.macro_recall, found.f1_score["b"]):
        assert measure.value == measure.low == 0
        assert 0.01 < measure.high < 0.2


def test_a_class_ruled_out_wrongly_costs_infinitely_much():
    codes, log_proba = draw(2, 40)
    log_proba[5] = np.where(np.arange(2) == codes[5], -np.inf, 0.0)
    found = tb.Evaluation(list("ab"), codes, log_proba)
    assert found.log_loss.value == found.log_loss.high == np.inf
    rest = np.arange(40) != 5
    assert found.log_loss.low == tb.Evaluation(list("ab"), codes[rest], log_proba[rest]).log_loss.low
    assert np.isfinite(found.brier_score).all()
    assert np.isfinite(found.roc_auc).all()
    assert "inf (0." in repr(found.log_loss)
    alone = tb.Evaluation(list("ab"), np.array([0]), np.array([[-np.inf, 0.0]]))
    assert alone.log_loss == (np.inf, 0.0, np.inf)
    assert "inf" in repr(alone)


def test_every_interval_holds_its_value():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes, log_proba = draw(int(rng.integers(1, 5)), int(rng.integers(1, 12)), seed)
        weight = rng.gamma(0.3, size=len(codes)) + 1e-9
        found = numbers(tb.Evaluation(range(log_proba.shape[1]), codes, log_proba, weight=weight))[1:]
        assert not np.isnan(found[:, 1:]).any()
        known = ~np.isnan(found[:, 0])
        assert (found[known, 1] <= found[known, 0]).all()
        assert (found[known, 0] <= found[known, 2]).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_coverage(weighted):
    # Two Gaussians one and a half apart, 80 rows; the truths are known or integrated with a million rows.
    rng = np.random.default_rng(0)

    def rows(n):
        codes = (rng.random(n) < 0.4).astype(int)
        odds = 1.5 * (rng.normal(size=n) + 1.5 * codes) - 1.125 + np.log(0.4 / 0.6)
        return codes, np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)

    names = ["accuracy", "log_loss", "brier_score", "roc_auc", "macro_f1_score", "macro_recall"]
    truth = tb.Evaluation([0, 1], *rows(1_000_000))
    aim = np.array([*(getattr(truth, name).value for name in names), truth.f1_score[1].value])
    assert aim[3] == pytest.approx(stats.norm.cdf(1.5 / np.sqrt(2)), abs=0.002)
    hits = np.zeros(7)
    for _ in range(400):
        weight = rng.gamma(2.0, size=80) if weighted else None
        found = tb.Evaluation([0, 1], *rows(80), weight=weight)
        ends = np.array([*(getattr(found, name) for name in names), found.f1_score[1]])
        hits += (ends[:, 1] <= aim) & (aim <= ends[:, 2])
    assert (hits / 400 > 0.92).all()  # three deviations below 0.95
    assert (hits / 400 < 0.99).all()
