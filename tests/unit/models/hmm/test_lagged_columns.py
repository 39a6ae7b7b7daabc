"""Steps that depend on those before them, in every state by another line."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError


def drawn(seed, lengths=(120, 1, 80, 0)):
    """Sequences that go on in one state, and swing in the other."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in lengths:
        state = np.cumsum(rng.random(length) < 0.08) % 2
        steps = rng.normal(0, 1, length)
        for t in range(1, length):
            steps[t] = (0.9 * steps[t - 1] if state[t] == 0 else 1 - 0.7 * steps[t - 1]) + 0.5 * rng.normal()
        X.append(steps)
        y.append(np.array(["calm", "wild"])[state])
    return X, y


def labeled(seed=0, **options):
    X, y = drawn(seed)
    return X, y, tb.HiddenMarkovModel(columns=tb.Autoregressive(), **{"estimate": "mle", **options}).fit(X, y)


def test_lines_are_those_of_least_squares_in_every_state():
    X, y, model = labeled()
    before = np.concatenate([steps[:-1] for steps in X if len(steps)])
    now = np.concatenate([steps[1:] for steps in X])
    state = np.concatenate([states[1:] for states in y])
    line = model.emission_[0]
    for k, name in enumerate(model.states_):
        mine = state == name
        slope, intercept = np.polyfit(before[mine], now[mine], 1)
        assert line.slope[k, 0] == pytest.approx(slope, rel=1e-9)
        assert line.intercept[k] == pytest.approx(intercept, rel=1e-9)
        assert line.variance[k] == pytest.approx(np.mean((now - slope * before - intercept)[mine] ** 2), rel=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
def test_of_one_state_it_is_a_regression_on_the_steps_before(estimate):
    (steps,) = drawn(1, (60,))[0]
    rows = np.stack([steps[1:-1], steps[:-2], steps[2:]], axis=1)  # one before, two before, and the step
    model = tb.HiddenMarkovModel(1, tb.Autoregressive(order=2), estimate=estimate, max_iter=3).fit([steps])
    other = tb.LinearRegression(estimate=estimate).fit(rows[:, :2], rows[:, 2])
    line = model.emission_[0]
    by_hand = steps[-1] * line.slope[0, 0] + steps[-2] * line.slope[0, 1] + line.intercept[0]
    assert by_hand == pytest.approx(float(other.predict([[steps[-1], steps[-2]]])[0]), rel=1e-6)
    assert model.forecast([steps])[0].mean[0][0] == pytest.approx(by_hand)


@pytest.mark.parametrize("holes", [(), (3,)], ids=["whole", "with a missing step"])
def test_answers_are_those_of_all_paths(holes):
    _, _, model = labeled()
    steps = np.array([0.3, 0.5, -0.4, 1.2, 0.9, 1.0])
    steps[list(holes)] = np.nan
    line, total = model.emission_[0], {}
    for path in itertools.product(range(2), repeat=len(steps)):
        value = np.log(model.start_[path[0]])
        for t in range(1, len(steps)):
            k = path[t]
            value += np.log(model.transition_[path[t - 1], k])
            if not np.isnan(steps[t - 1 : t + 1]).any():
                mean = line.slope[k, 0] * steps[t - 1] + line.intercept[k]
                value += norm.logpdf(steps[t], mean, np.sqrt(line.variance[k]))
        total[path] = value
    whole = logsumexp(list(total.values()))
    assert model.score_samples([steps]) == pytest.approx([whole], abs=1e-10)
    best = max(total, key=total.get)
    assert model.predict([steps])[0].tolist() == model.states_[list(best)].tolist()
    assert model.log_joint([steps], [model.states_[list(best)]]) == pytest.approx([total[best]], abs=1e-10)
    smoothed = np.zeros((len(steps), 2))
    for path, value in total.items():
        smoothed[np.arange(len(steps)), path] += np.exp(value - whole)
    np.testing.assert_allclose(model.predict_proba([steps])[0], smoothed, atol=1e-10)
    assert model.surprisal([steps])[0].sum() == pytest.approx(-whole, abs=1e-9)


def test_counts_add_and_are_forgotten_exactly():
    X, y, model = labeled()
    first = tb.HiddenMarkovModel(columns=tb.Autoregressive(), estimate="mle").fit(X[:2], y[:2])
    rest = tb.HiddenMarkovModel(columns=tb.Autoregressive(), estimate="mle").fit(X[2:], y[2:])
    assert (first + rest).tally_.isclose(model.tally_)
    assert model.forget(X[2:], y[2:]).tally_.isclose(first.tally_)
    assert model.partial_fit(X[2:], y[2:]).tally_.isclose((first + rest).tally_)
    assert not model.tally_.soft
    assert np.isfinite(model.log_evidence())


def test_one_step_of_em_counts_what_all_paths_expect():
    _, _, model = labeled()
    steps = np.array([0.3, 0.5, -0.4, 1.2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        once = tb.HiddenMarkovModel(2, tb.Autoregressive(), estimate="mle", max_iter=1).fit([steps], initial=model)
    shares = model.predict_proba([steps])[0][1:]  # which test_answers_are_those_of_all_paths holds to all paths
    found, pairs = once.tally_[0], np.stack([steps[:-1], steps[1:]], axis=1)
    np.testing.assert_allclose(found.weight[:, 0], shares.sum(axis=0), atol=1e-10)
    products = np.einsum("ts,ti,tj->sij", shares, pairs, pairs)
    mean, weight = found.mean, found.weight[:, :1]
    np.testing.assert_allclose(
        found.scatter + weight[..., None] * mean[:, :, None] * mean[:, None, :], products, atol=1e-10
    )


@pytest.mark.slow
@given(st.integers(0, 30), st.sampled_from(["bayes", "map", "mle"]), st.integers(1, 2), st.sampled_from([None, 2]))
def test_the_objective_never_falls(seed, estimate, order, components):
    X, _ = drawn(seed, (60, 40))
    X[0][7] = np.nan
    model = tb.HiddenMarkovModel(
        2, tb.Autoregressive(order), estimate=estimate, max_iter=15, components=components, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert (np.diff(model.history_) >= -1e-8 * abs(model.history_[-1])).all()


@pytest.mark.slow
def test_states_are_found_that_differ_in_how_they_go_on():
    X, y = drawn(3, (500, 300))
    model = tb.HiddenMarkovModel(2, tb.Autoregressive(), random_state=0, n_init=3).fit(X)
    slope = np.sort(model.emission_[0].slope[:, 0])
    np.testing.assert_allclose(slope, [-0.7, 0.9], atol=0.1)
    plain = tb.HiddenMarkovModel(2, tb.Gaussian(), random_state=0, n_init=3).fit(X)

    def right(found):
        same = np.concatenate(found.predict(X)) == (np.concatenate(y) == "wild")
        return max(same.mean(), 1 - same.mean())

    assert right(model) > 0.85
    assert right(plain) < 0.75


def test_the_next_step_follows_the_last_ones():
    X, _, model = labeled()
    steps, line = X[0], model.emission_[0]
    (ahead,) = model.forecast([steps], mass=0.8)
    means = line.slope[:, 0] * steps[-1] + line.intercept
    assert ahead.mean[0][0] == pytest.approx(ahead.proba[0] @ means)
    assert ahead.proba[0] @ norm.cdf(ahead.high[0][0], means, np.sqrt(line.variance)) == pytest.approx(0.9, abs=1e-9)
    assert np.isnan(model.forecast([[0.1, np.nan]])[0].mean[0]).all()
    assert np.isnan(model.forecast([[]])[0].mean[0]).all()
    tail = model.tail_proba([steps])[0]
    assert tail.shape == (len(steps), 1)
    assert np.isnan(tail[0]).all()
    below = model.predict_next([steps[:1]])[0, 0] @ norm.cdf(
        steps[1], line.slope[:, 0] * steps[0] + line.intercept, np.sqrt(line.variance)
    )
    assert tail[1, 0] == pytest.approx(2 * min(below, 1 - below))


@pytest.mark.slow
def test_steps_are_drawn_one_after_the_other():
    _, _, model = labeled()
    (steps,), (states,) = model.sample(20_000, random_state=0)
    again = tb.HiddenMarkovModel(columns=tb.Autoregressive(), estimate="mle").fit([steps], [states])
    np.testing.assert_allclose(again.emission_[0].slope, model.emission_[0].slope, atol=0.03)
    np.testing.assert_allclose(again.emission_[0].variance, model.emission_[0].variance, rtol=0.05)


def test_beside_other_columns_with_names_and_in_files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = drawn(4)
    frames = [{"y": x, "z": rng.normal(size=len(x)), "color": rng.choice(["a", "b"], len(x)).astype(object)} for x in X]
    columns = {"y": tb.Autoregressive(2), "z": tb.Autoregressive(), "color": tb.Categorical()}
    model = tb.HiddenMarkovModel(columns=columns).fit(frames, y)
    assert model.columns_ == columns
    assert model.emission_["y"].slope.shape == (2, 2)
    assert tuple(model.parameter_table("y").columns)[:3] == ("intercept", "weight of 1 before", "weight of 2 before")
    low, high = model.parameter_table("y").interval()
    assert (low < model.parameter_table("y").values).all()
    assert (model.parameter_table("y").values < high).all()
    assert isinstance(model.posterior_["y"], tb.LinearNormalInverseGamma)
    model.save(tmp_path / "lags.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "lags.tally").score_samples(frames), model.score_samples(frames))
    assert set(model.sample(5, random_state=0)[0][0]) == {"y", "z", "color"}
    assert model.score(frames, y) == pytest.approx(tb.evaluate(model, frames, y).accuracy.value)
    assert np.isfinite(tb.cross_validate(model, frames * 2, y * 2, folds=2).accuracy.value)


def test_what_needs_values_that_are_not_known_is_refused_by_name():
    X, _, model = labeled()
    with pytest.raises(DataError, match="a forecast of 2 steps does not support the autoregressive column 0"):
        model.forecast(X, 2)
    with pytest.raises(DataError, match="online filtering does not support the autoregressive column 0"):
        model.online_filter()
    with pytest.raises(DataError, match="impute does not support the autoregressive column 0"):
        model.impute(X)
    with pytest.raises(DataError, match="a predictive check does not support the autoregressive column 0"):
        tb.predictive_check(model, X)
    with pytest.raises(DataError, match="is autoregressive and needs the values of unobserved time steps"):
        tb.HiddenMarkovModel(2, {"y": tb.Autoregressive()}, gaps="g").fit([{"y": [1.0, 2.0, 4.0], "g": [0, 1, 0]}])
    with pytest.raises(DataError, match=r"Use it in tb\.HiddenMarkovModel"):
        tb.NaiveBayes(tb.Autoregressive()).fit([[1.0], [2.0]], [0, 1])
    for order in (0, 1.5, True):
        with pytest.raises(DataError, match="order is"):
            tb.Autoregressive(order)
