"""Calibration on rows left out: its formulas, its file, and when it is kept, dropped or said to be old."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.isotonic import IsotonicRegression

import tallybayes as tb
from tallybayes.estimation.calibration.calibration import Calibration, cross_fitted, fit_calibration
from tallybayes.estimation.calibration.isotonic import class_log_odds, fit_isotonic
from tallybayes.estimation.calibration.temperature_scaling import (
    apply_temperature,
    fit_temperature_scaling,
    mix_base_rates,
)
from tallybayes.warnings import CalibrationWarning


def overconfident(n_rows=600, n_copies=5, n_classes=2, seed=0):
    """One column several times over: naive Bayes counts its evidence as often."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    return np.repeat(rng.normal(y, 2.0)[:, None], n_copies, axis=1), y


def log_loss(model, X, y):
    return -np.mean(model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)])


def best_tempering(log_proba, codes, weights):
    """Sharpness and doubt by a search that knows no derivatives, from several places."""
    base = np.bincount(codes, weights, log_proba.shape[1]) + 1
    base = base / base.sum()
    truth = np.arange(len(codes)), codes

    def objective(at):
        p = mix_base_rates(apply_temperature(log_proba, np.exp(at[0])), expit(at[1]), base)[truth]
        return -(weights @ p) + at[0] ** 2 / 2 - 0.2 * log_expit(at[1]) - 50 * log_expit(-at[1])

    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 2000}
    found = [minimize(objective, [t, u], method="Nelder-Mead", options=options) for t in (0, -2) for u in (-5, -2)]
    best = min(found, key=lambda one: one.fun)
    return np.exp(best.x[0]), expit(best.x[1])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_temperature_has_the_highest_posterior_on_rows_left_out(n_classes):
    X, y = overconfident(n_classes=n_classes)
    left_out = tb.leave_one_out(tb.NaiveBayes(), X, y)
    found = fit_temperature_scaling(left_out.log_proba, left_out.codes, np.ones(len(y)))
    sharpness, doubt = best_tempering(left_out.log_proba, left_out.codes, np.ones(len(y)))
    assert found.inverse_temperature == pytest.approx(sharpness, rel=1e-4)
    assert found.contamination == pytest.approx(doubt, rel=1e-2)
    model = tb.NaiveBayes().fit(X, y).calibrate(X, y)
    assert model.calibration_.temperature == pytest.approx(1 / found.inverse_temperature)
    assert model.calibration_.before == pytest.approx(left_out.log_loss.value)
    assert model.calibration_.after < model.calibration_.before


def test_a_few_absurd_rows_do_not_bend_the_temperature():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 2000)
    odds = rng.normal(2 * (2 * codes - 1), 2)  # these are their own log-odds: nothing to mend
    log_proba = np.stack([log_expit(-odds), log_expit(odds)], axis=1)
    absurd = log_proba.copy()
    absurd[np.arange(10), codes[:10]], absurd[np.arange(10), 1 - codes[:10]] = -500.0, 0.0
    weights = np.ones(2000)
    assert fit_temperature_scaling(log_proba, codes, weights).inverse_temperature == pytest.approx(1, abs=0.1)
    found = fit_temperature_scaling(absurd, codes, weights)
    chasing = minimize_scalar(
        lambda t: -apply_temperature(absurd, np.exp(t))[np.arange(2000), codes].sum(), bounds=(-6, 2)
    )
    assert np.exp(chasing.x) < 0.3  # a temperature alone makes all rows flat for ten
    assert found.inverse_temperature == pytest.approx(1, abs=0.2)
    assert 0.005 < found.contamination < 0.05
    mended = fit_calibration("temperature", absurd, codes).apply(log_proba[10:])
    assert -mended[np.arange(1990), codes[10:]].mean() < -log_proba[10:][np.arange(1990), codes[10:]].mean() + 0.01


def test_evidence_counted_five_times_needs_a_temperature_of_about_five():
    X, y = overconfident(5000)
    assert tb.NaiveBayes().fit(X, y).calibrate(X, y).calibration_.temperature == pytest.approx(5, rel=0.15)
    X, y = overconfident(5000, n_copies=1)
    assert tb.NaiveBayes().fit(X, y).calibrate(X, y).calibration_.temperature == pytest.approx(1, rel=0.15)


@pytest.mark.slow_after(1)
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
        assert (mended.predict(X) == plain.predict(X)).mean() > 0.99  # doubt moves only rows that hardly matter


def test_isotonic_steps_are_those_of_pooled_violators():
    X, y = overconfident()
    left_out = tb.leave_one_out(tb.NaiveBayes(), X, y)
    found = tb.NaiveBayes().fit(X, y).calibrate(X, y, "isotonic").calibration_
    odds = class_log_odds(left_out.log_proba)[:, 1]
    x = np.concatenate([[odds.min()], odds, [odds.max()]])
    hit = np.concatenate([[1.0], y == 1, [0.0]])
    expected = IsotonicRegression(out_of_bounds="clip").fit(x, hit)
    np.testing.assert_allclose(np.interp(odds, found.log_odds[1], found.values[1]), expected.predict(odds), atol=1e-12)
    assert all((values > 0).all() and (values < 1).all() for values in found.values)


def test_log_odds_against_the_other_classes_are_precise_and_bounded():
    log_proba = np.array([[-1e-30, -400.0, -401.0], [-900.0, 0.0, -2000.0], [np.log(0.5), np.log(0.5), -np.inf]])
    odds = class_log_odds(log_proba)
    np.testing.assert_allclose(odds[0], [400 - np.log1p(np.exp(-1)), -400, -401], rtol=1e-14)
    np.testing.assert_array_equal(odds[1], [-700.0, 700.0, -700.0])
    np.testing.assert_allclose(odds[2], [0.0, 0.0, -700.0], atol=1e-15)
    np.testing.assert_array_equal(class_log_odds(np.zeros((2, 1))), [[700.0], [700.0]])


def test_isotonic_rows_of_weight_zero_are_left_out():
    rng = np.random.default_rng(0)
    odds, codes, kept = rng.normal(size=(200, 3)).round(1), rng.integers(0, 3, 200), rng.random(200) < 0.6
    weight = rng.integers(1, 3, 200) * kept
    _, (knots, values) = fit_isotonic(odds, codes, [np.ones(200), weight])
    ((same_knots, same_values),) = fit_isotonic(odds[kept], codes[kept], [weight[kept]])
    for some, others in ((knots, same_knots), (values, same_values)):
        for one, other in zip(some, others, strict=True):
            np.testing.assert_array_equal(one, other)


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
    expected = fit_temperature_scaling(left_out.log_proba, left_out.codes, weight.astype(float))
    assert heavy.calibration_.temperature == pytest.approx(1 / expected.inverse_temperature)


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
        (state | {"doubt": 0.5}, arrays),
        (state, arrays | {"calibration/base": np.array([0.5, 0.6])}),
        (state | {"tried": {"magic": 1.0}}, arrays),
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
    with pytest.warns(UserWarning, match="fitted to 200 rows, and the model has 230 now"):
        model.partial_fit(X[:30], y[:30])
    assert model.calibration_ is kept


def test_what_cannot_be_calibrated_is_refused():
    X, y = overconfident(50)
    model = tb.NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="'temperature', 'isotonic'"):
        model.calibrate(X, y, "platt")
    with pytest.raises(tb.errors.StatisticsError, match=r"cannot forget.*\n    Pass rows that were counted"):
        model.calibrate(np.concatenate([X, X]), np.concatenate([y, y]))
    holes = X + np.arange(5) * X[:, :1] ** 2 + np.random.default_rng(0).normal(size=X.shape)
    holes[3, 2] = np.nan
    soft = tb.GaussianDiscriminant(tol=1e-3).fit(holes, y)
    with pytest.raises(ValueError, match="these rows have weight 49, but the model has counted 50"):
        soft.calibrate(holes[1:], y[1:])
    assert model.calibration_ is None
    with pytest.raises(ValueError, match="no class has more than one row"):
        tb.NaiveBayes(class_prior="frequency", calibration="auto").fit([[1.0], [2.0]], ["a", "b"])


@pytest.mark.slow
@pytest.mark.parametrize("unlabeled", [None, "em"])
def test_rows_that_cannot_be_left_out_are_fitted_without_their_fold(unlabeled):
    X, y = overconfident(200)
    X = X + 0.5 * np.random.default_rng(0).normal(size=X.shape)
    if unlabeled is None:
        X[::20, 1] = np.nan
        prior = tb.NormalInverseWishart(np.zeros(5), 1.0, 8.0, np.eye(5))
        model = tb.GaussianDiscriminant(prior=prior, tol=1e-4)
        labels = y.tolist()
    else:
        model = tb.NaiveBayes(prior=tb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0), unlabeled=unlabeled, tol=1e-4)
        labels = [None if k % 5 == 0 else label for k, label in enumerate(y.tolist())]
    model.fit(X, labels).calibrate(X, labels)
    scores = tb.cross_validate(model, X, labels)  # its folds are dealt by the same seed
    assert scores.refitted
    expected = fit_calibration("temperature", scores.log_proba, scores.codes)
    assert model.calibration_.temperature == pytest.approx(expected.temperature)
    assert model.calibration_.before == pytest.approx(scores.log_loss.value)
    assert model.calibration_.after < model.calibration_.before


def test_rows_that_are_skipped_are_not_calibrated_on():
    X, y = overconfident(100)
    labels = [None if k % 5 == 0 else label for k, label in enumerate(y.tolist())]
    kept = np.arange(100) % 5 > 0
    model = tb.NaiveBayes(unlabeled="skip").fit(X, labels).calibrate(X, labels, sample_weight=np.ones(100))
    plain = tb.NaiveBayes().fit(X[kept], y[kept]).calibrate(X[kept], y[kept])
    assert model.calibration_.temperature == pytest.approx(plain.calibration_.temperature)
    assert model.calibration_.before == pytest.approx(plain.calibration_.before)


# ---- Asked for when the model is made -------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["temperature", "isotonic", "auto"])
@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.GaussianDiscriminant("diagonal", estimate="map")])
def test_fit_calibrates_as_calibrate_does(method, model):
    X, y = overconfident(300, n_classes=3)
    X, weight = X.copy(), np.random.default_rng(0).integers(1, 3, 300).astype(float)
    if isinstance(model, tb.NaiveBayes):
        X[::7, 1] = np.nan
    asked = clone(model).set_params(calibration=method).fit(X, y, weight)
    after = clone(model).fit(X, y, weight).calibrate(X, y, method, sample_weight=weight)
    assert repr(asked.calibration_) == repr(after.calibration_)
    np.testing.assert_array_equal(asked.predict_proba(X), after.predict_proba(X))
    again = clone(asked)
    assert again.calibration == method
    assert not hasattr(again, "tally_")
    np.testing.assert_array_equal(again.fit(X, y, weight).predict_proba(X), asked.predict_proba(X))
    assert repr(asked.calibrate(X, y, sample_weight=weight).calibration_) == repr(after.calibration_)  # the same word


def test_every_way_to_predict_follows_a_calibration():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.2).astype(int)
    X = np.repeat(rng.normal(y, 1.5)[:, None], 4, axis=1) + 0.3 * rng.normal(size=(400, 4))
    for estimate in ("bayes", "map"):
        model = tb.GaussianDiscriminant("tied_diagonal", estimate=estimate, calibration="isotonic").fit(X, y)
        np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_auto_is_chosen_on_scores_that_it_was_not_fitted_to():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 2000)
    odds = rng.normal(3 * (2 * codes - 1), np.sqrt(6))  # these are their own log-odds: nothing to mend
    right = np.stack([log_expit(-odds), log_expit(odds)], axis=1)
    chosen = fit_calibration("auto", right, codes)
    assert chosen.loss_by_method["none"] < chosen.loss_by_method["isotonic"]
    assert chosen.method == "none"
    assert chosen.after == chosen.loss_by_method["none"] == min(chosen.loss_by_method.values())
    np.testing.assert_array_equal(chosen.apply(right), right)
    sure = fit_calibration("auto", apply_temperature(right, 4.0), codes)
    assert sure.method == "temperature"
    assert sure.temperature == pytest.approx(4, rel=0.1)
    shifted = np.stack([log_expit(-odds - 6), log_expit(odds + 6)], axis=1)  # no temperature mends a shift
    assert fit_calibration("auto", shifted, codes).method == "isotonic"
    few = fit_calibration("auto", right[:5], codes[:5])
    assert few.method == "none"
    np.testing.assert_array_equal(few.apply(right), right)


def test_cross_fitting_fits_no_fold_to_itself():
    X, y = overconfident(90)
    scores = tb.leave_one_out(tb.NaiveBayes(), X, y)
    fold = np.arange(90) % 3
    mended = cross_fitted("temperature", scores.log_proba, scores.codes, None, fold)
    for k in range(3):
        rest = fit_calibration("temperature", scores.log_proba[fold != k], scores.codes[fold != k])
        np.testing.assert_array_equal(mended[fold == k], rest.apply(scores.log_proba[fold == k]))
    later = cross_fitted("temperature", scores.log_proba, scores.codes, None, fold, ordered=True)
    np.testing.assert_array_equal(later[fold == 0], scores.log_proba[fold == 0])
    first = fit_calibration("temperature", scores.log_proba[fold == 0], scores.codes[fold == 0])
    np.testing.assert_array_equal(later[fold == 1], first.apply(scores.log_proba[fold == 1]))


def test_cross_validation_mends_every_fold_by_the_others():
    X, y = overconfident(300)
    plain, asked = tb.NaiveBayes(), tb.NaiveBayes(calibration="temperature")
    raw, found = tb.cross_validate(plain, X, y), tb.cross_validate(asked, X, y)
    expected = cross_fitted("temperature", raw.log_proba, raw.codes, None, raw.fold)
    np.testing.assert_allclose(found.log_proba, expected)
    assert found.log_loss.value < raw.log_loss.value
    assert tb.leave_one_out(asked, X, y).log_loss.value < tb.leave_one_out(plain, X, y).log_loss.value
    in_time = tb.cross_validate(asked, X, y, 4, order=np.arange(300))
    assert np.isfinite(in_time.log_loss.value)
    both = tb.cross_validate(plain, X, y, candidates={"calibration": [None, "auto"]})
    assert both.best.parameters == {"calibration": "auto"}


@pytest.mark.slow
def test_a_model_of_em_is_calibrated_when_it_is_fitted():
    X, y = overconfident(120)
    labels = [None if k % 5 == 0 else label for k, label in enumerate(y.tolist())]
    model = tb.NaiveBayes(unlabeled="em", tol=1e-3, calibration="temperature").fit(X, labels)
    plain = tb.NaiveBayes(unlabeled="em", tol=1e-3).fit(X, labels).calibrate(X, labels)
    assert model.calibration_.temperature == pytest.approx(plain.calibration_.temperature)
    assert tb.cross_validate(model, X, labels, 4).refitted


def test_rows_of_a_group_are_left_out_together():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 5)
    y = rng.integers(0, 2, 60)[group]
    X = rng.normal(size=(60, 8))[group] + 0.01 * rng.normal(size=(300, 8)) + 0.3 * y[:, None]  # groups know each other
    model = tb.NaiveBayes().fit(X, y)
    alone = model.calibrate(X, y).calibration_
    together = model.calibrate(X, y, groups=group).calibration_
    assert together.before > alone.before
    assert together.temperature > alone.temperature
    rows = {f"x{k}": X[:, k] for k in range(8)} | {"group": group, "y": y}
    named = tb.NaiveBayes({f"x{k}": tb.Gaussian() for k in range(8)}).fit(rows, "y")
    assert named.calibrate(rows, "y", groups="group").calibration_.before == pytest.approx(together.before)


def test_what_has_no_calibration_any_more_says_so_once():
    X, y = overconfident(200)

    def asked():
        return tb.NaiveBayes(calibration="temperature").fit(X, y)

    lost = {
        "+": lambda: asked() + asked(),
        "reestimate": lambda: asked().reestimate(estimate="map"),
        "fit_tally": lambda: tb.NaiveBayes(calibration="temperature").fit_tally(asked().tally_),
        "drop_class": lambda: tb.NaiveBayes().fit(X, np.arange(200) % 3).calibrate(X, np.arange(200) % 3).drop_class(2),
        "partial_fit": lambda: tb.NaiveBayes(calibration="temperature").partial_fit(X, y),
        "calibrate": lambda: tb.NaiveBayes().fit(X, y).calibrate(X, y).reestimate(),
        "set_params": lambda: asked().set_params(estimate="map"),
    }
    for name, make in lost.items():
        model = make()
        assert model.calibration_ is None, name
        with pytest.warns(CalibrationWarning, match=r"calibrate\(X, y\)"):
            first = model.predict_proba(X)
        np.testing.assert_array_equal(model.predict_proba(X), first)
    with pytest.warns(CalibrationWarning, match="classes have changed"):
        late = asked().add_class(7, X[:3])
    assert late.calibration_ is None
    assert asked().reestimate(calibration=None).predict_proba(X).shape == (200, 2)
    assert tb.NaiveBayes().fit(X, y).calibrate(X, y).fit(X, y).predict_proba(X).shape == (200, 2)


def test_a_word_that_is_none_is_refused_before_anything_changes(tmp_path):
    X, y = overconfident(50)
    model = tb.NaiveBayes(calibration="auto").fit(X, y)
    with pytest.raises(ValueError, match="'temperature', 'isotonic', 'auto' or None"):
        tb.NaiveBayes(calibration="platt").fit(X, y)
    with pytest.raises(ValueError, match="calibration is True"):
        model.set_params(calibration=True)
    assert model.calibration == "auto"
    assert model.calibration_ is not None
    model.save(tmp_path / "model.tally")
    back = tb.load(tmp_path / "model.tally")
    assert back.calibration == "auto"
    assert back.calibration_.loss_by_method == model.calibration_.loss_by_method
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
