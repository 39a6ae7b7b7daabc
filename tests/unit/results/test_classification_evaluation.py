"""Evaluation: the measures beside scikit-learn's, brute force and closed forms; what it shows, and what it refuses."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
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
from tallybayes.errors import DataError, LabelError
from tests.unit.evaluation.evaluations import draw, numbers

WEIGHTS = {
    "none": lambda n: None,
    "counts": lambda n: np.random.default_rng(1).integers(1, 5, n).astype(float),
    "gamma": lambda n: np.random.default_rng(2).gamma(0.5, size=n) * 1e6,
}


@pytest.mark.slow_after(1)
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
    assert found.roc_auc.value == pytest.approx(area, rel=1e-12)
    half = 0.5 if n_classes == 2 else 1.0
    squares = half * ((np.eye(n_classes)[codes] - p) ** 2).sum(axis=1)
    assert found.brier_score.value == pytest.approx(np.average(squares, weights=weight), rel=1e-12)
    if "labels" in inspect.signature(brier_score_loss).parameters:  # from scikit-learn 1.7 on, for several classes
        peer = brier_score_loss(codes, p, sample_weight=weight, labels=labels)
        assert found.brier_score.value == pytest.approx(peer, rel=1e-12)
    table = confusion_matrix(codes, predicted, sample_weight=weight)
    np.testing.assert_allclose(found.confusion_matrix, table, rtol=1e-12)
    per_class = precision_recall_fscore_support(codes, predicted, sample_weight=weight, zero_division=np.nan)
    for mine, peer in zip((found.precision, found.recall, found.f1_score), per_class, strict=False):
        np.testing.assert_allclose([measure.value for measure in mine.values()], peer, rtol=1e-12)
    np.testing.assert_allclose(list(found.support.values()), table.sum(axis=1), rtol=1e-12)
    macro = precision_recall_fscore_support(codes, predicted, sample_weight=weight, average="macro")
    mine = found.macro_precision.value, found.macro_recall.value, found.macro_f1_score.value
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
    for mine, peer in zip((found.precision, found.recall, found.f1_score), per_class, strict=False):
        np.testing.assert_allclose([measure.value for measure in mine.values()], peer)
    assert np.isnan(found.precision["d"].value)
    assert found.precision["d"][1:] == pytest.approx((0.025, 0.975))  # the prior's interval
    assert found.macro_precision.value == pytest.approx(macro[0])
    assert found.macro_recall.value == pytest.approx(macro[1])
    # nothing of d is there, so its F does not exist; c was predicted, wrongly: 0
    assert found.macro_f1_score.value == pytest.approx(np.mean([per_class[2][k] for k in (0, 1, 2)]))
    # areas of the classes that occur
    areas = [roc_auc_score(np.array([0, 1, 1, 1]) == k, p[:, k]) for k in (0, 1)]
    assert found.roc_auc.value == pytest.approx(np.mean(areas))


def test_ties_go_to_the_first_class():
    for n_classes in (2, 3):
        log_proba = np.full((2, n_classes), -np.log(n_classes))
        found = tb.Evaluation(range(n_classes), np.array([0, 1]), log_proba)
        assert found.confusion_matrix[:, 0].tolist() == [1, 1] + [0] * (n_classes - 2)


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


def test_rows_keep_their_order_where_probabilities_round_to_one():
    odds = np.array([40.0, 41.0, 42.0, 50.0])  # p is 1.0 in every row
    log_proba = np.stack([-odds, np.zeros(4)], axis=1)
    assert tb.Evaluation([0, 1], np.array([0, 0, 1, 1]), log_proba).roc_auc.value == 1
    assert tb.Evaluation([0, 1], np.array([1, 1, 0, 0]), log_proba).roc_auc.value == 0


@pytest.mark.parametrize("n_classes", [2, 4])
def test_precision_recall_curves(n_classes):
    codes, log_proba = draw(n_classes, 200)
    weight = np.random.default_rng(0).gamma(1.0, size=200)
    found = tb.Evaluation(range(n_classes), codes, log_proba, weight=weight)
    for k in range(n_classes):
        curve = found.precision_recall_curve(k)
        peer = average_precision_score(codes == k, np.exp(log_proba[:, k]), sample_weight=weight)
        assert curve.average_precision == pytest.approx(peer, rel=1e-12)
        assert curve.recall[-1] == pytest.approx(1)
        assert curve.precision[-1] == pytest.approx(weight[codes == k].sum() / weight.sum())


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
    assert "299 rows (effective sample size 225)" in weighted


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
    assert repr(tb.results.MetricEstimate(*measure)) == text


# ---- Refusals ---------------------------------------------------------------------------------------------------

HALF = np.log(np.full((3, 2), 0.5))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (([0, 1], [], np.empty((0, 2))), {}, DataError, "none of 0 rows has weight"),
        (([0, 1], [0, 1, 1], HALF), {"weight": np.zeros(3)}, DataError, "none of 3 rows has weight"),
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
        (([0, 1], [0, 1, 1], HALF), {"by": [0.1, 0.2, 0.3]}, LabelError, "Discretize continuous values"),
        (([0, 1], [0, 1, 1], HALF), {"mass": 95}, DataError, "mass is 95"),
    ],
)
def test_refused(arguments, options, error, match):
    with pytest.raises(error, match=match):
        tb.Evaluation(*arguments, **options)


def test_only_rows_that_were_held_out_have_folds():
    found = tb.Evaluation([0, 1], [0, 1, 1], HALF)
    assert found.held_out is None
    for name in ("model", "fold", "rows", "parameters", "refitted"):
        with pytest.raises(DataError, match="not held out by folds"):
            getattr(found, name)
    with pytest.raises(DataError, match=r"tb\.cross_validate"):
        found.by_fold()
