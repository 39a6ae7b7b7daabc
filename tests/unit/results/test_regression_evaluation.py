"""L1, L2, R², log loss and coverage of predicted numbers; rows of a regression held out exactly."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import tallybayes as tb

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + RNG.normal(size=N)
WEIGHT = RNG.uniform(0.5, 2.0, N)


def test_measures_are_scikit_learns():
    model = tb.LinearRegression().fit(X, Y)
    found = tb.evaluate(model, X, Y, sample_weight=WEIGHT)
    told = model.predict(X)
    assert found.mean_absolute_error.value == pytest.approx(mean_absolute_error(Y, told, sample_weight=WEIGHT))
    assert found.mean_squared_error.value == pytest.approx(mean_squared_error(Y, told, sample_weight=WEIGHT))
    assert found.r2.value == pytest.approx(r2_score(Y, told, sample_weight=WEIGHT))
    assert found.rmse.value == pytest.approx(np.sqrt(found.mean_squared_error.value))
    assert found.log_loss.value == pytest.approx(-model.log_likelihood(X, Y, WEIGHT) / WEIGHT.sum())
    low, high = model.predict_interval(X, 0.8)
    assert found.coverage[0.8].value == pytest.approx(np.average((low <= Y) & (high >= Y), weights=WEIGHT))
    for measure in (found.mean_absolute_error, found.mean_squared_error, found.rmse, found.r2, found.log_loss):
        assert measure.low <= measure.value <= measure.high
    assert "mean squared error (L2)" in repr(found)
    assert found.to_frame()["measure"].tolist()[1:3] == ["mean_absolute_error", "mean_squared_error"]
    assert "<table" in found._repr_html_()


def test_m03_losses_of_numbers_alone():
    found = tb.RegressionEvaluation([1, 2, 4], [1, 3, 2])
    assert found.mean_absolute_error.value == 1
    assert found.mean_squared_error.value == pytest.approx(5 / 3)
    assert found.log_loss is None
    assert found.coverage == {}


def test_groups_and_missing_targets():
    holes = Y.copy()
    holes[:5] = np.nan
    model = tb.LinearRegression().fit(X, Y)
    found = tb.evaluate(model, X, holes, by=np.arange(N) % 2)
    assert found.n_rows == N - 5
    assert found.mean_squared_error.value == pytest.approx(((Y - model.predict(X))[5:] ** 2).mean())
    assert list(found.groups) == [0, 1]
    assert sum(part.n_rows for part in found.groups.values()) == N - 5
    both = tb.LinearRegression().fit(X, np.c_[Y, Y**2])
    assert tb.evaluate(both, X, np.c_[holes, Y**2]).n_rows == 2 * N - 5
    with pytest.raises(tb.DataError, match="have weight 0 or no target"):
        tb.RegressionEvaluation([np.nan], [1.0])
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, side=np.where(X[:, 0] > 0, "r", "l"))
    named = tb.evaluate(tb.LinearRegression(by="side").fit(frame, "y"), frame, "y", by="side")
    assert list(named.groups) == ["l", "r"]


BELIEF = tb.LinearNormalInverseGamma(np.zeros(2), np.eye(2), 1, 1, intercept_location=0.5, strength=0.3)
MODELS = {
    "mle": tb.LinearRegression(estimate="mle"),
    "unbiased": tb.LinearRegression(estimate="unbiased"),
    "origin": tb.LinearRegression(estimate="mle", intercept=False),
    "map": tb.LinearRegression(estimate="map", prior=2.0),
    "bayes": tb.LinearRegression(prior=BELIEF),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", MODELS)
def test_rows_left_out_in_closed_form_are_told_as_by_a_model_of_the_others(name):
    found = tb.leave_one_out(MODELS[name], X, Y)
    for row in range(N):
        kept = np.arange(N) != row
        told = tb.LinearRegression(**MODELS[name].get_params()).fit(X[kept], Y[kept]).predictive(X[row : row + 1])
        assert found.predictive.location[row] == pytest.approx(told.location[0], rel=1e-10)
        assert found.predictive.scale[row] == pytest.approx(told.scale[0], rel=1e-6 if name == "map" else 1e-10)
        assert found.predictive.degrees_of_freedom[row] == told.degrees_of_freedom[0]


def test_rows_left_out_of_groups_targets_and_weights():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(side=np.arange(N) % 3, y=Y, z=Y**2, w=WEIGHT)
    frame.loc[4, "z"] = np.nan
    model = tb.LinearRegression(estimate="mle", by="side")
    found = tb.leave_one_out(model, frame, ["y", "z"], sample_weight="w")
    rest = frame.drop(index=7)
    told = model.fit(rest, ["y", "z"], sample_weight="w").predictive(frame.iloc[7:8].drop(columns="w"))
    np.testing.assert_allclose(found.predicted[7], told.location[0], rtol=1e-9)
    np.testing.assert_allclose(found.predictive.scale[7], told.scale[0], rtol=1e-9)
    assert found.n_rows == 2 * N - 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("order", [None, np.arange(N)])
def test_folds_are_subtracted(order):
    model = tb.LinearRegression(2)
    folds = np.arange(N) % 5 if order is None else 4
    found = tb.cross_validate(model, X, Y, folds=folds, order=order)
    stretch = found.fold
    for code in range(int(stretch.max()) + 1):
        held = stretch == code
        rest = ~held if order is None else (stretch < code)
        told = tb.LinearRegression(2).fit(X[rest], Y[rest]).predict(X[held])
        np.testing.assert_allclose(found.predicted[np.isin(found.rows, np.flatnonzero(held))], told, rtol=1e-8)


def test_candidates_are_read_from_one_tally():
    """Degree and λ by exact leave-one-out: the largest degree is counted once."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(40, 1))
    y = x[:, 0] ** 3 - x[:, 0] + rng.normal(size=40) * 0.3
    found = tb.leave_one_out(
        tb.LinearRegression(), x, y, candidates={"degree": [1, 2, 3, 4, 9], "prior": [None, 0.1, 1e3]}
    )
    assert found.best.parameters["degree"] in (3, 4)
    assert len({id(each.model.tally_) for each in found}) == 1
    alone = tb.leave_one_out(tb.LinearRegression(2, prior=0.1), x, y)
    same = next(each for each in found if each.parameters == {"degree": 2, "prior": 0.1})
    assert same.mean_squared_error.value == pytest.approx(alone.mean_squared_error.value, rel=1e-9)
    assert "mean squared error" in repr(found)
    assert {"degree", "prior", "mean_squared_error"} <= set(found.to_frame())
    assert found.best.model.predict(x).shape == (40,)
