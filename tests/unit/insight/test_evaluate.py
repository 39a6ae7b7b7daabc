"""Evaluation beside scikit-learn's measures, brute force and closed forms; then tb.evaluate on models."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import optimize, stats
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, PriorError
from tallybayes.insight.measures import precision_recall


def draw(n_classes, n=300, seed=0, *, digits=2):
    """Classes and log-probabilities with ties, none exactly 0."""
    rng = np.random.default_rng(seed)
    p = np.maximum(rng.dirichlet(np.full(n_classes, 0.7), n).round(digits), 1e-3)
    p /= p.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(n_classes, p=0.6 * row + 0.4 / n_classes) for row in p])
    return codes, np.log(p)


WEIGHTS = {
    "none": lambda n: None,
    "counts": lambda n: np.random.default_rng(1).integers(1, 5, n).astype(float),
    "gamma": lambda n: np.random.default_rng(2).gamma(0.5, size=n) * 1e6,
}


@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_definitions_are_scikit_learn_s(n_classes, weighting):
    codes, log_proba = draw(n_classes)
    weight = WEIGHTS[weighting](len(codes))
    found = tb.Evaluation(range(n_classes), codes, log_proba, weight=weight)
    p, predicted, labels = np.exp(log_proba), log_proba.argmax(axis=1), list(range(n_classes))
    assert found.accuracy.value == pytest.approx(accuracy_score(codes, predicted, sample_weight=weight), rel=1e-12)
    assert found.error_rate.value == pytest.approx(1 - found.accuracy.value, abs=1e-15)
    assert found.log_loss.value == pytest.approx(log_loss(codes, p, sample_weight=weight, labels=labels), rel=1e-12)
    ranks = p[:, 1] if n_classes == 2 else p
    area = roc_auc_score(codes, ranks, sample_weight=weight, multi_class="ovr")
    assert found.auc.value == pytest.approx(area, rel=1e-12)
    half = 0.5 if n_classes == 2 else 1.0
    squares = half * ((np.eye(n_classes)[codes] - p) ** 2).sum(axis=1)
    assert found.brier.value == pytest.approx(np.average(squares, weights=weight), rel=1e-12)
    if "labels" in inspect.signature(brier_score_loss).parameters:  # from scikit-learn 1.7 on, for several classes
        peer = brier_score_loss(codes, p, sample_weight=weight, labels=labels)
        assert found.brier.value == pytest.approx(peer, rel=1e-12)
    table = confusion_matrix(codes, predicted, sample_weight=weight)
    np.testing.assert_allclose(found.confusion, table, rtol=1e-12)
    per_class = precision_recall_fscore_support(codes, predicted, sample_weight=weight, zero_division=np.nan)
    for mine, peer in zip((found.precision, found.recall, found.f_score), per_class, strict=False):
        np.testing.assert_allclose([measure.value for measure in mine.values()], peer, rtol=1e-12)
    np.testing.assert_allclose(list(found.support.values()), table.sum(axis=1), rtol=1e-12)
    macro = precision_recall_fscore_support(codes, predicted, sample_weight=weight, average="macro")
    mine = found.macro_precision.value, found.macro_recall.value, found.macro_f_score.value
    np.testing.assert_allclose(mine, macro[:3], rtol=1e-12)
    balanced = balanced_accuracy_score(codes, predicted, sample_weight=weight)
    assert found.macro_recall.value == pytest.approx(balanced, rel=1e-12)
    others = table.sum() - table.sum(axis=1)
    rate = (table.sum(axis=0) - np.diag(table)) / others
    np.testing.assert_allclose([m.value for m in found.false_positive_rate.values()], rate, rtol=1e-9)


def test_classes_never_predicted_or_absent():
    p = np.array([[0.7, 0.2, 0.1, 0.0], [0.1, 0.8, 0.1, 0.0], [0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.7, 0.0]])
    with np.errstate(divide="ignore"):
        found = tb.Evaluation(list("abcd"), np.array([0, 1, 1, 1]), np.log(p))
    predicted = [0, 1, 0, 2]
    options = {"labels": [0, 1, 2, 3], "zero_division": np.nan}
    per_class = precision_recall_fscore_support([0, 1, 1, 1], predicted, **options)
    macro = precision_recall_fscore_support([0, 1, 1, 1], predicted, average="macro", **options)
    for mine, peer in zip((found.precision, found.recall, found.f_score), per_class, strict=False):
        np.testing.assert_allclose([measure.value for measure in mine.values()], peer)
    assert np.isnan(found.precision["d"].value)
    assert found.precision["d"][1:] == pytest.approx((0.025, 0.975))  # the prior's interval
    assert found.macro_precision.value == pytest.approx(macro[0])
    assert found.macro_recall.value == pytest.approx(macro[1])
    # nothing of d is there, so its F does not exist; c was predicted, wrongly: 0
    assert found.macro_f_score.value == pytest.approx(np.mean([per_class[2][k] for k in (0, 1, 2)]))
    # areas of the classes that occur
    areas = [roc_auc_score(np.array([0, 1, 1, 1]) == k, p[:, k]) for k in (0, 1)]
    assert found.auc.value == pytest.approx(np.mean(areas))


def test_ties_go_to_the_first_class():
    for n_classes in (2, 3):
        log_proba = np.full((2, n_classes), -np.log(n_classes))
        found = tb.Evaluation(range(n_classes), np.array([0, 1]), log_proba)
        assert found.confusion[:, 0].tolist() == [1, 1] + [0] * (n_classes - 2)


@pytest.mark.parametrize("weighting", WEIGHTS)
def test_calibration_error_by_brute_force(weighting):
    codes, log_proba = draw(3, 500, digits=6)
    weight = WEIGHTS[weighting](len(codes))
    w = np.ones(len(codes)) if weight is None else weight
    p = np.exp(log_proba)
    expected = 0.0
    for j in range(15):
        inside = [i for i in range(len(codes)) if j / 15 < p[i].max() <= (j + 1) / 15]
        if inside:
            right = sum(w[i] for i in inside if p[i].argmax() == codes[i])
            stated = sum(w[i] * p[i].max() for i in inside)
            expected += abs(right - stated) / w.sum()
    found = tb.Evaluation(list("abc"), codes, log_proba, weight=weight)
    assert found.calibration_error.value == pytest.approx(expected, rel=1e-10)
    assert found.calibration_error.low <= expected <= found.calibration_error.high
    again = tb.Evaluation(list("abc"), codes, log_proba, weight=weight)
    assert again.calibration_error == found.calibration_error  # its seed is fixed


def test_certain_rows_fall_into_the_last_bin():
    found = tb.Evaluation([0, 1], np.array([0, 1]), np.array([[0.0, -np.inf], [-np.inf, 0.0]]))
    assert found.reliability.edges.tolist() == [[14 / 15, 1.0]]
    assert found.calibration_error.value == 0
    assert found.calibration_error.high > 0.3  # two rows do not prove certainty


def test_bits_per_row():
    codes, log_proba = draw(2, 40)
    density = np.random.default_rng(0).normal(3, 2, 40)
    found = tb.Evaluation([0, 1], codes, log_proba, log_density=density).bits_per_row
    low, high = stats.t.interval(0.95, 39, (-density / np.log(2)).mean(), stats.sem(density / np.log(2)))
    np.testing.assert_allclose(found, [(-density / np.log(2)).mean(), low, high], rtol=1e-12)
    assert tb.Evaluation([0, 1], codes, log_proba).bits_per_row is None
    density[3] = -np.inf
    value, low, high = tb.Evaluation([0, 1], codes, log_proba, log_density=density).bits_per_row
    assert value == high == np.inf
    assert np.isfinite(low)


# ---- Intervals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mass", [0.5, 0.95])
def test_shares_have_beta_intervals(mass):
    codes, log_proba = draw(3, 120)
    found = tb.Evaluation(list("abc"), codes, log_proba, mass=mass)
    table = found.confusion

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
        np.testing.assert_allclose(found.f_score[label][1:], (2 * low / (1 + low), 2 * high / (1 + high)), rtol=1e-9)


def test_f_by_draws_of_the_confusion_cells():
    codes, log_proba = draw(2, 200)
    found = tb.Evaluation([0, 1], codes, log_proba)
    (tn, fp), (fn, tp) = found.confusion
    # the prior of TP against FP + FN is uniform: Dirichlet with 1 for TP, and 1 for FP and FN together
    cells = np.random.default_rng(0).dirichlet([tp + 1, fp + 0.5, fn + 0.5, tn + 1], 200_000)
    f = 2 * cells[:, 0] / (2 * cells[:, 0] + cells[:, 1] + cells[:, 2])
    np.testing.assert_allclose(found.f_score[1][1:], np.quantile(f, [0.025, 0.975]), atol=0.001)


def test_losses_have_student_intervals_with_one_guessed_row():
    codes, log_proba = draw(3, 50)
    found = tb.Evaluation(list("abc"), codes, log_proba)
    p = np.exp(log_proba)
    losses = {
        "log_loss": (-log_proba[np.arange(50), codes], np.log(3)),
        "brier": (((np.eye(3)[codes] - p) ** 2).sum(axis=1), 2 / 3),  # what a guess of 1/3 each loses
    }
    for name, (loss, guessed) in losses.items():
        rows = np.append(loss, guessed)
        interval = stats.t.interval(0.95, 50, rows.mean(), stats.sem(rows))
        np.testing.assert_allclose(getattr(found, name)[1:], interval, rtol=1e-12)
    pair = tb.Evaluation(list("ab"), *draw(2, 50))
    rows = np.append((np.exp(pair.log_proba[:, 1]) - pair.codes) ** 2, 0.25)
    interval = stats.t.interval(0.95, 50, rows.mean(), stats.sem(rows))
    np.testing.assert_allclose(pair.brier[1:], interval, rtol=1e-12)


def test_the_area_s_variance_is_delong_s():
    codes, log_proba = draw(2, 400)
    found = tb.Evaluation([0, 1], codes, log_proba).auc
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
    cells = np.random.default_rng(0).dirichlet(found.confusion.ravel() + 1e-9, 20_000).reshape(-1, 4, 4)
    right, true, predicted = np.diagonal(cells, axis1=1, axis2=2), cells.sum(axis=2), cells.sum(axis=1)
    draws = {
        "macro_precision": right / predicted,
        "macro_recall": right / true,
        "macro_f_score": 2 * right / (true + predicted),
    }
    for name, shares in draws.items():
        expected = np.quantile(shares.mean(axis=1), [0.025, 0.975])
        np.testing.assert_allclose(getattr(found, name)[1:], expected, atol=0.002)


def test_many_small_classes_do_not_pull_the_average():
    codes = np.repeat(np.arange(200), 4)  # four rows each, three of them right
    guess = np.where(np.arange(800) % 4 == 0, (codes + 1) % 200, codes)
    log_proba = np.log(np.full((800, 200), 1e-4) + (1 - 0.02) * np.eye(200)[guess])
    found = tb.Evaluation(range(200), codes, log_proba)
    for measure in (found.macro_recall, found.macro_precision, found.macro_f_score):
        assert measure.value == pytest.approx(0.75)
        assert measure.high - measure.low < 0.1
        assert measure.high - 0.75 == pytest.approx(0.75 - measure.low, rel=0.2)


def test_rows_keep_their_order_where_probabilities_round_to_one():
    odds = np.array([40.0, 41.0, 42.0, 50.0])  # p is 1.0 in every row
    log_proba = np.stack([-odds, np.zeros(4)], axis=1)
    assert tb.Evaluation([0, 1], np.array([0, 0, 1, 1]), log_proba).auc.value == 1
    assert tb.Evaluation([0, 1], np.array([1, 1, 0, 0]), log_proba).auc.value == 0


ALL = ["accuracy", "error_rate", "log_loss", "brier", "auc", "calibration_error", "bits_per_row"]
MACRO = ["macro_precision", "macro_recall", "macro_f_score"]


def numbers(evaluation):
    frame = evaluation.to_frame()
    return frame.loc[frame["measure"] != "support", ["value", "low", "high"]].to_numpy(dtype=float)


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
        np.testing.assert_allclose(far.confusion, scale * whole.confusion, rtol=1e-12)
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
    assert np.isnan(found.auc.value)
    assert found.auc[1:] == pytest.approx((0.025, 0.975))
    assert found.log_loss.value == pytest.approx(np.log(n_classes))
    for name in (*ALL[:6], *MACRO):
        assert np.isfinite(getattr(found, name)[1:]).all(), name
    assert found.bits_per_row == (pytest.approx(2 / np.log(2)), -np.inf, np.inf)  # a density has no scale of its own
    assert "rows" in repr(found)


def test_all_rows_right():
    codes = np.arange(60) % 3
    log_proba = np.log(np.full((60, 3), 0.01) + 0.97 * np.eye(3)[codes])
    found = tb.Evaluation(list("abc"), codes, log_proba)
    for measure in (found.accuracy, found.auc, found.macro_f_score, found.macro_recall, found.f_score["b"]):
        assert measure.value == measure.high == 1
        assert 0.8 < measure.low < 0.99
    assert found.log_loss.value == pytest.approx(-np.log(0.98))
    assert found.log_loss.low <= found.log_loss.value < found.log_loss.high < 0.1


def test_all_rows_wrong():
    codes = np.arange(60) % 2
    found = tb.Evaluation(list("ab"), codes, np.log(np.full((60, 2), 0.1) + 0.8 * np.eye(2)[1 - codes]))
    for measure in (found.accuracy, found.auc, found.macro_f_score, found.macro_recall, found.f_score["b"]):
        assert measure.value == measure.low == 0
        assert 0.01 < measure.high < 0.2


def test_a_class_ruled_out_wrongly_costs_infinitely_much():
    codes, log_proba = draw(2, 40)
    log_proba[5] = np.where(np.arange(2) == codes[5], -np.inf, 0.0)
    found = tb.Evaluation(list("ab"), codes, log_proba)
    assert found.log_loss.value == found.log_loss.high == np.inf
    rest = np.arange(40) != 5
    assert found.log_loss.low == tb.Evaluation(list("ab"), codes[rest], log_proba[rest]).log_loss.low
    assert np.isfinite(found.brier).all()
    assert np.isfinite(found.auc).all()
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


@pytest.mark.parametrize("weighted", [False, True])
def test_coverage(weighted):
    # Two Gaussians one and a half apart, 80 rows; the truths are known or integrated with a million rows.
    rng = np.random.default_rng(0)

    def rows(n):
        codes = (rng.random(n) < 0.4).astype(int)
        odds = 1.5 * (rng.normal(size=n) + 1.5 * codes) - 1.125 + np.log(0.4 / 0.6)
        return codes, np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)

    names = ["accuracy", "log_loss", "brier", "auc", "macro_f_score", "macro_recall"]
    truth = tb.Evaluation([0, 1], *rows(1_000_000))
    aim = np.array([*(getattr(truth, name).value for name in names), truth.f_score[1].value])
    assert aim[3] == pytest.approx(stats.norm.cdf(1.5 / np.sqrt(2)), abs=0.002)
    hits = np.zeros(7)
    for _ in range(400):
        weight = rng.gamma(2.0, size=80) if weighted else None
        found = tb.Evaluation([0, 1], *rows(80), weight=weight)
        ends = np.array([*(getattr(found, name) for name in names), found.f_score[1]])
        hits += (ends[:, 1] <= aim) & (aim <= ends[:, 2])
    assert (hits / 400 > 0.92).all()  # three deviations below 0.95
    assert (hits / 400 < 0.99).all()


# ---- Groups, text, frames ---------------------------------------------------------------------------------------


def test_groups_are_evaluations_of_their_rows():
    codes, log_proba = draw(2, 200)
    rng = np.random.default_rng(3)
    labels = np.array(["b", "a", None, "c"], dtype=object)[rng.integers(0, 4, 200)]
    weight, density = rng.gamma(1.0, size=200), rng.normal(size=200)
    found = tb.Evaluation(list("xy"), codes, log_proba, weight=weight, log_density=density, by=labels)
    assert list(found.groups) == ["a", "b", "c", None]
    for label, part in found.groups.items():
        mine = np.array([one == label for one in labels])
        alone = tb.Evaluation(list("xy"), codes[mine], log_proba[mine], weight=weight[mine], log_density=density[mine])
        np.testing.assert_array_equal(numbers(part), numbers(alone))
    assert sum(part.n_rows for part in found.groups.values()) == 200
    assert "(missing)" in repr(found)
    assert tb.Evaluation(list("xy"), codes, log_proba).groups == {}


@pytest.mark.parametrize(
    "by",
    [
        [1, 1, 2, 2],
        [1.0, 1.0, 2.0, 2.0],
        pd.Series([1, 1, 2, 2], index=[5, 6, 7, 8]),
        pd.Categorical([1, 1, 2, 2], categories=[3, 2, 1]),
        pl.Series([1, 1, 2, 2]),
        np.array([1, 1, 2, 2], dtype=np.uint8),
    ],
    ids=["list", "floats", "pandas", "categorical", "polars", "uint8"],
)
def test_groups_of_any_kind(by):
    found = tb.Evaluation(list("ab"), np.array([0, 1, 0, 1]), np.log(np.full((4, 2), 0.5)), by=by)
    assert sorted(found.groups) == [1, 2]
    assert found.groups[1].n_rows == 2


def test_frame():
    codes, log_proba = draw(2, 50)
    found = tb.Evaluation(list("xy"), codes, log_proba, by=np.arange(50) % 2 == 0)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["group", "measure", "class", "value", "low", "high"]
    assert frame["group"].unique().tolist() == ["(all)", False, True]
    line = frame[(frame["group"] == "(all)") & (frame["measure"] == "recall") & (frame["class"] == "y")]
    assert tuple(line[["value", "low", "high"]].iloc[0]) == found.recall["y"]
    assert "bits_per_row" not in set(frame["measure"])
    plain = tb.Evaluation(list("xy"), codes, log_proba).to_frame()
    assert plain.columns.tolist() == ["measure", "class", "value", "low", "high"]


def test_text():
    codes, log_proba = draw(30, 300)
    names = [f"a class with a long name, number {k}" for k in range(30)]
    text = repr(tb.Evaluation(names, codes, log_proba, by=np.arange(300) % 20))
    assert max(map(len, text.splitlines())) < 130
    assert "  a class with a…ame, number 0  " in text
    assert "… 18 more" in text
    assert "… 8 more" in text
    assert "macro average" in text
    weighted = repr(tb.Evaluation(names, codes, log_proba, weight=np.arange(300.0)))
    assert "299 rows (worth 225 of equal weight)" in weighted


@pytest.mark.parametrize(
    ("measure", "text"),
    [
        ((0.9532, 0.9411, 0.9634), "0.953 (0.941 to 0.963)"),
        ((0.9, 0.4, 1.0), "0.90 (0.40 to 1.00)"),
        ((12.345, 11.9, 12.8), "12.35 (11.90 to 12.80)"),
        ((1234.5, 1200.2, 1260.7), "1234 (1200 to 1261)"),
        ((0.00012, 0.0001, 0.00015), "0.000120 (0.000100 to 0.000150)"),
        ((np.nan, 0.025, 0.975), "— (0.03 to 0.97)"),
        ((np.inf, 1.25, np.inf), "inf (1.250 to inf)"),
        ((-1e-9, -1e-9, -1e-9), "0.000 (0.000 to 0.000)"),
    ],
)
def test_measures_as_text(measure, text):
    assert repr(tb.Measure(*measure)) == text


@pytest.mark.parametrize("n_classes", [2, 4])
def test_precision_recall_curves(n_classes):
    codes, log_proba = draw(n_classes, 200)
    weight = np.random.default_rng(0).gamma(1.0, size=200)
    found = tb.Evaluation(range(n_classes), codes, log_proba, weight=weight)
    for k in range(n_classes):
        curve = precision_recall(found._scores, k)
        peer = average_precision_score(codes == k, np.exp(log_proba[:, k]), sample_weight=weight)
        assert curve.average_precision == pytest.approx(peer, rel=1e-12)
        assert curve.recall[-1] == pytest.approx(1)
        assert curve.precision[-1] == pytest.approx(weight[codes == k].sum() / weight.sum())


# ---- Refusals ---------------------------------------------------------------------------------------------------

HALF = np.log(np.full((3, 2), 0.5))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (([0, 1], [], np.empty((0, 2))), {}, DataError, "0 rows and none has weight"),
        (([0, 1], [0, 1, 1], HALF), {"weight": np.zeros(3)}, DataError, "3 rows and none has weight"),
        (([0, 1], [0, 1, 1], HALF), {"weight": [1, -1, 1]}, DataError, "weight is -1.0 in row 1"),
        (([0, 1], [0, 1, 1], HALF), {"weight": [1, 1]}, DataError, "weight has shape"),
        (([0, 1], [0, 1, 2], HALF), {}, DataError, "codes has 2 in row 2; expected a position from 0 to 1"),
        (([0, 1], [0, -1, 1], HALF), {}, DataError, "codes has -1 in row 1"),
        (([0, 1], [0.0, 1.0, 1.0], HALF), {}, DataError, "whole numbers, one per row"),
        (([0, 1, 2], [0, 1, 1], HALF), {}, DataError, "log_proba has shape"),
        (([], [0, 1, 1], HALF), {}, DataError, "classes has shape"),
        (([0, 1], [0, 1, 1], np.exp(HALF)), {}, DataError, "no distribution in row 0: its probabilities sum to 3.29"),
        (([0, 1], [0, 1, 1], np.full((3, 2), np.nan)), {}, DataError, "sum to nan"),
        (([0, 1], [0, 1, 1], HALF), {"log_density": [0.0, np.nan, 1.0]}, DataError, "log_density is nan in row 1"),
        (([0, 1], [0, 1, 1], HALF), {"log_density": [0.0]}, DataError, "log_density has shape"),
        (([0, 1], [0, 1, 1], HALF), {"by": ["a", "b"]}, DataError, "rows: 3, by: 2"),
        (([0, 1], [0, 1, 1], HALF), {"by": [0.1, 0.2, 0.3]}, LabelError, "Cut measured values into bins"),
        (([0, 1], [0, 1, 1], HALF), {"mass": 95}, PriorError, "mass is 95"),
    ],
)
def test_refused(arguments, options, error, match):
    with pytest.raises(error, match=match):
        tb.Evaluation(*arguments, **options)


# ---- tb.evaluate ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


MODELS = {"bayes": tb.NaiveBayes, "discriminant": tb.GaussianDiscriminant, "nearest": tb.NearestClassMean}


@pytest.mark.parametrize("name", MODELS)
def test_models_in_every_form_of_data(iris, name):
    X, y = iris
    weight, sides = np.random.default_rng(0).gamma(1.0, size=75), np.where(np.arange(75) % 3, "in", "out")
    model = MODELS[name]().fit(X[::2], y[::2])
    before = model.predict_log_proba(X)
    found = tb.evaluate(model, X[1::2], y[1::2], by=sides, sample_weight=weight)
    assert found.accuracy.value == pytest.approx(model.score(X[1::2], y[1::2], weight))
    assert found.log_loss.value == pytest.approx(log_loss(y[1::2], model.predict_proba(X[1::2]), sample_weight=weight))
    assert list(found.groups) == ["in", "out"]
    assert found.classes.tolist() == ["setosa", "versicolor", "virginica"]
    if name == "nearest":
        assert found.bits_per_row is None
    else:
        bits = -np.average(model.score_samples(X[1::2]), weights=weight) / np.log(2)
        assert found.bits_per_row.value == pytest.approx(bits)
    np.testing.assert_array_equal(model.predict_log_proba(X), before)

    names = list("abcd")
    rows = pd.DataFrame(X, columns=names)
    test = rows[1::2].assign(kind=y[1::2], side=sides, worth=weight)
    by_name = MODELS[name]().fit(rows[::2].assign(kind=y[::2]), "kind")
    apart = MODELS[name]().fit(rows[::2], y[::2])  # this one takes every column of a frame for a feature
    expected = numbers(found)
    for other in (by_name, apart):
        for table in (test, pl.from_pandas(test), test.to_dict(orient="list")):
            named = tb.evaluate(other, table, "kind", by="side", sample_weight="worth")
            np.testing.assert_allclose(numbers(named), expected, rtol=1e-9)
            assert "\n  side " in repr(named)


def test_a_group_may_be_a_feature():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "x": rng.normal(size=200), "y": rng.integers(0, 2, 200)})
    model = tb.NaiveBayes().fit(table[["sex", "x"]], table["y"])
    found = tb.evaluate(model, table, "y", by="sex")
    assert found.accuracy.value == model.score(table[["sex", "x"]], table["y"])
    assert list(found.groups) == ["f", "m"]


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [3.0, 7.0]], ids=str)
def test_labels_of_every_kind(labels):
    X = np.array([[0.0], [0.2], [1.0], [1.3]])
    y = np.array(labels)[[0, 0, 1, 1]]
    found = tb.evaluate(tb.NaiveBayes().fit(X, y), X, y.tolist())
    assert found.confusion.tolist() == [[2, 0], [0, 2]]
    assert list(found.recall) == labels


def test_classes_absent_from_the_data_are_fine(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X, y)
    found = tb.evaluate(model, X[:80], y[:80])
    assert found.support == {"setosa": 50, "versicolor": 30, "virginica": 0}
    assert np.isnan(found.recall["virginica"].value)


def test_labels_the_model_does_not_know(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X[:100], y[:100])
    with pytest.raises(LabelError, match=r"does not know: 'virginica' \(50 of 150 rows\); expected 'setosa', 'versi"):
        tb.evaluate(model, X, y)
    weight = np.r_[np.ones(100), np.zeros(50)]
    assert tb.evaluate(model, X, y, sample_weight=weight).n_rows == 100  # rows without weight may have any
    with pytest.raises(LabelError, match="does not know: 0, 1"):
        tb.evaluate(model, X[:2], [0, 1])
    numbered = tb.NaiveBayes().fit(X, (y == "setosa").astype(int))
    with pytest.raises(LabelError, match="does not know: False, True"):
        tb.evaluate(numbered, X, y == "setosa")
    labels = pd.Series(y[:100])
    labels[3] = None
    with pytest.raises(LabelError, match=r"label of row 3 is missing \(1 of 100 are\)"):
        tb.evaluate(model, X[:100], labels)
    with pytest.raises(LabelError, match="Unknown label type"):
        tb.evaluate(model, X, np.linspace(0, 1, 150))


def test_evaluate_refuses(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X, y)
    with pytest.raises(DataError, match="model is str; expected a NaiveBayes"):
        tb.evaluate("model", X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        tb.evaluate(tb.NaiveBayes(), X, y)
    with pytest.raises(DataError, match="no column 'kind'"):
        tb.evaluate(model, X, "kind")
    with pytest.raises(DataError, match="X: 150, y: 149"):
        tb.evaluate(model, X, y[1:])
    with pytest.raises(DataError, match="X has 3 features"):
        tb.evaluate(model, X[:, :3], y)
