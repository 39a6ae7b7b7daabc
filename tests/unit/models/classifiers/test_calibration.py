"""Calibration on rows left out: its formulas, its file, and when it is kept, dropped or said to be old."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris
from sklearn.isotonic import IsotonicRegression

import tallybayes as tb
from tallybayes.models.classifiers.answers.calibration import (
    Calibration,
    class_log_odds,
    fit_calibration,
    fit_sharpness,
    tempered,
)


def overconfident(n_rows=600, n_copies=5, n_classes=2, seed=0):
    """One column several times over: naive Bayes counts its evidence as often."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    return np.repeat(rng.normal(y, 2.0)[:, None], n_copies, axis=1), y


def log_loss(model, X, y):
    return -np.mean(model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_has_the_lowest_log_loss_on_rows_left_out(n_classes):
    X, y = overconfident(n_classes=n_classes)
    left_out = tb.leave_one_out(tb.NaiveBayes(), X, y)
    found = fit_sharpness(left_out.log_proba, left_out.codes, np.ones(len(y)))

    def objective(t):
        at_truth = tempered(left_out.log_proba, np.exp(t))[np.arange(len(y)), left_out.codes]
        return -at_truth.sum() + t**2 / 2

    best = minimize_scalar(objective, bounds=(-8, 8), method="bounded", options={"xatol": 1e-10})
    assert np.log(found) == pytest.approx(best.x, abs=1e-5)
    model = tb.NaiveBayes().fit(X, y).calibrate(X, y)
    assert model.calibration_.temperature == pytest.approx(1 / found)
    assert model.calibration_.before == pytest.approx(left_out.log_loss.value)
    assert model.calibration_.after < model.calibration_.before


def test_evidence_counted_five_times_needs_a_temperature_of_about_five():
    X, y = overconfident(5000)
    assert tb.NaiveBayes().fit(X, y).calibrate(X, y).calibration_.temperature == pytest.approx(5, rel=0.15)
    X, y = overconfident(5000, n_copies=1)
    assert tb.NaiveBayes().fit(X, y).calibrate(X, y).calibration_.temperature == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_other_rows_are_predicted_better(method, n_classes):
    X, y = overconfident(3000, n_classes=n_classes)
    plain = tb.NaiveBayes().fit(X[:1500], y[:1500])
    mended = plain.reestimate().calibrate(X[:1500], y[:1500], method)
    before, after = (tb.evaluate(model, X[1500:], y[1500:]) for model in (plain, mended))
    assert after.log_loss.value < before.log_loss.value - 0.1
    assert after.calibration_error.value < before.calibration_error.value / 2
    np.testing.assert_allclose(mended.predict_proba(X).sum(axis=1), 1.0)
    assert (mended.predict(X) == mended.classes_[mended.predict_proba(X).argmax(axis=1)]).all()
    if method == "temperature":
        assert (mended.predict(X) == plain.predict(X)).all()


def test_isotonic_steps_are_those_of_pooled_violators():
    X, y = overconfident()
    left_out = tb.leave_one_out(tb.NaiveBayes(), X, y)
    found = tb.NaiveBayes().fit(X, y).calibrate(X, y, "isotonic").calibration_
    odds = class_log_odds(left_out.log_proba, 1)
    x = np.concatenate([[odds.min()], odds, [odds.max()]])
    hit = np.concatenate([[1.0], y == 1, [0.0]])
    expected = IsotonicRegression(out_of_bounds="clip").fit(x, hit)
    np.testing.assert_allclose(np.interp(odds, found.log_odds[1], found.values[1]), expected.predict(odds), atol=1e-12)
    assert all((values > 0).all() and (values < 1).all() for values in found.values)


def test_weights_count_as_rows():
    X, y = overconfident(200)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    # A row of weight 2 is left out with both its halves, so the twice-counted table is no reference; weight 0 is.
    kept = weight > 0
    some = tb.NaiveBayes().fit(X, y, kept.astype(float)).calibrate(X, y, sample_weight=kept.astype(float))
    same = tb.NaiveBayes().fit(X[kept], y[kept]).calibrate(X[kept], y[kept])
    assert some.calibration_.temperature == pytest.approx(same.calibration_.temperature)
    left_out = tb.leave_one_out(tb.NaiveBayes(), X, y, sample_weight=weight)
    heavy = tb.NaiveBayes().fit(X, y, weight).calibrate(X, y, sample_weight=weight)
    expected = fit_sharpness(left_out.log_proba, left_out.codes, weight.astype(float))
    assert heavy.calibration_.temperature == pytest.approx(1 / expected)


def test_rows_that_are_all_right_leave_the_temperature_alone():
    X, y = load_iris(return_X_y=True)
    model = tb.GaussianDiscriminant("tied").fit(X[y < 2], y[y < 2]).calibrate(X[y < 2], y[y < 2])
    assert model.calibration_.temperature == pytest.approx(1.0, abs=0.01)


def test_a_class_of_one_row_does_not_matter():
    X, y = overconfident(300)
    y = np.where(np.arange(300) == 7, 9, y)
    for method in ("temperature", "isotonic"):
        model = tb.NaiveBayes().fit(X, y).calibrate(X, y, method)
        assert np.isfinite(model.calibration_.before)
        assert np.isfinite(model.predict_proba(X)).all()


def test_another_class_prior_shifts_the_calibrated_odds():
    X, y = overconfident()
    model = tb.NaiveBayes().fit(X, y).calibrate(X, y)
    plain, shifted = model.predict_log_proba(X), model.predict_log_proba(X, class_prior={0: 0.9, 1: 0.1})
    shift = np.log(0.9 / 0.1) - (model.class_log_prior_[0] - model.class_log_prior_[1])
    np.testing.assert_allclose(shifted[:, 0] - shifted[:, 1], plain[:, 0] - plain[:, 1] + shift, atol=1e-10)


# ---- Kept, dropped, old ---------------------------------------------------------------------------------------------


@pytest.fixture
def calibrated():
    X, y = overconfident(200)
    return tb.NaiveBayes().fit(X, y).calibrate(X, y, "isotonic"), X, y


@pytest.mark.parametrize("method", ["temperature", "isotonic"])
def test_a_file_keeps_it(tmp_path, method):
    X, y = overconfident(200)
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant("diagonal")):
        model.fit(X, y).calibrate(X, y, method)
        model.save(tmp_path / "model.tally")
        back = tb.load(tmp_path / "model.tally")
        np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
        assert repr(back.calibration_) == repr(model.calibration_)


def test_a_broken_calibration_in_a_file_is_refused(calibrated):
    model, _, _ = calibrated
    state, arrays = model.calibration_.to_parts()
    assert Calibration.from_parts(dict(state), dict(arrays), 2).method == "isotonic"
    broken = [
        (state | {"temperature": -1.0}, arrays),
        (state | {"method": "guess"}, arrays),
        (state, {}),
        (state, arrays | {"calibration/values/1": arrays["calibration/values/1"] * 0}),
        (state, arrays | {"calibration/values/0": arrays["calibration/values/0"][::-1].copy()}),
        (state, arrays | {"calibration/log_odds/0": np.full_like(arrays["calibration/log_odds/0"], np.nan)}),
        (state | {"method": "temperature"}, arrays),
    ]
    for bad_state, bad_arrays in broken:
        with pytest.raises(tb.errors.FileError, match="calibration"):
            Calibration.from_parts(dict(bad_state), dict(bad_arrays), 2)


def test_what_drops_it(calibrated):
    model, X, y = calibrated
    assert model.reestimate(estimate="map").calibration_ is None
    assert (model + model).calibration_ is None
    with pytest.warns(UserWarning, match="classes have changed"):
        model.add_class(7, X[:3])
    assert model.calibration_ is None
    model.drop_class(7).calibrate(X, y)
    assert model.drop_class(1).calibration_ is None
    again = tb.NaiveBayes().fit(X, y).calibrate(X, y)
    assert again.set_params(estimate="map").calibration_ is None
    assert again.calibrate(X, y).fit(X, y).calibration_ is None


def test_updates_keep_it_and_say_when_it_is_old(calibrated):
    model, X, y = calibrated
    kept = model.calibration_
    model.partial_fit(X[:15], y[:15])
    model.forget(X[:15], y[:15])
    assert model.calibration_ is kept
    with pytest.warns(UserWarning, match="counted 200 rows and has 230 now"):
        model.partial_fit(X[:30], y[:30])
    assert model.calibration_ is kept


def test_what_cannot_be_calibrated_is_refused():
    X, y = overconfident(50)
    model = tb.NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="'temperature', 'isotonic'"):
        model.calibrate(X, y, "platt")
    with pytest.raises(tb.errors.StatisticsError, match="cannot forget"):
        model.calibrate(np.concatenate([X, X]), np.concatenate([y, y]))
    holes = X + np.arange(5) * X[:, :1] ** 2 + np.random.default_rng(0).normal(size=X.shape)
    holes[3, 2] = np.nan
    soft = tb.GaussianDiscriminant(tol=1e-3).fit(holes, y)
    with pytest.raises(ValueError, match="these rows have weight 49, but the model has counted 50"):
        soft.calibrate(holes[1:], y[1:])
    assert model.calibration_ is None
    with pytest.raises(ValueError, match="possible without it"):
        tb.NaiveBayes().fit([[1.0], [2.0]], ["a", "b"]).calibrate([[1.0], [2.0]], ["a", "b"])


@pytest.mark.parametrize("unlabelled", [None, "em"])
def test_rows_that_cannot_be_left_out_are_fitted_without_their_fold(unlabelled):
    X, y = overconfident(200)
    X = X + 0.5 * np.random.default_rng(0).normal(size=X.shape)
    if unlabelled is None:
        X[::20, 1] = np.nan
        prior = tb.NormalInverseWishart(np.zeros(5), 1.0, 8.0, np.eye(5))
        model = tb.GaussianDiscriminant(prior=prior, tol=1e-4)
        labels = y.tolist()
    else:
        model = tb.NaiveBayes(prior=tb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0), unlabelled=unlabelled, tol=1e-4)
        labels = [None if k % 5 == 0 else label for k, label in enumerate(y.tolist())]
    model.fit(X, labels).calibrate(X, labels)
    scores = tb.cross_validate(model, X, labels)  # its folds are dealt by the same seed
    assert scores.refitted
    expected = fit_calibration(scores.log_proba, scores.codes, None, "temperature", 1.0)
    assert model.calibration_.temperature == pytest.approx(expected.temperature)
    assert model.calibration_.before == pytest.approx(scores.log_loss.value)
    assert model.calibration_.after < model.calibration_.before


def test_rows_that_are_skipped_are_not_calibrated_on():
    X, y = overconfident(100)
    labels = [None if k % 5 == 0 else label for k, label in enumerate(y.tolist())]
    kept = np.arange(100) % 5 > 0
    model = tb.NaiveBayes(unlabelled="skip").fit(X, labels).calibrate(X, labels, sample_weight=np.ones(100))
    plain = tb.NaiveBayes().fit(X[kept], y[kept]).calibrate(X[kept], y[kept])
    assert model.calibration_.temperature == pytest.approx(plain.calibration_.temperature)
    assert model.calibration_.before == pytest.approx(plain.calibration_.before)
