"""The learned metric: its gradient, its stopping, and where it is worth learning."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, StatisticsError
from tallybayes.models.nearest_mean.metric_learning import objective
from tests.unit.models.classification.discriminant_textbook import made


def log_loss(projection, rows, labels, means, weight=None):
    """Mean −log p(class | row) under p ∝ exp(−½‖W(x − μ)‖²), by the definition."""
    scores = np.array([[-0.5 * ((projection @ (row - mean)) ** 2).sum() for mean in means] for row in rows])
    losses = -log_softmax(scores, axis=1)[np.arange(len(rows)), labels]
    return np.average(losses, weights=weight)


@pytest.mark.parametrize(("components", "weighted"), [(1, False), (2, True), (3, True), (4, False)])
def test_value_and_gradient(components, weighted):
    rng = np.random.default_rng(components)
    rows, labels, _ = made(components, sizes=(6, 9, 7), d=4)
    weight = rng.uniform(0.1, 2, len(rows)) if weighted else np.ones(len(rows))
    weight /= weight.sum()
    means = np.array([rows[labels == c].mean(axis=0) for c in range(3)])
    projection = 0.5 * rng.normal(size=(components, 4))
    value, gradient = objective(projection, rows, labels, weight, means)
    assert value == pytest.approx(log_loss(projection, rows, labels, means, weight), rel=1e-11)
    numeric = approx_fprime(
        projection.ravel(), lambda flat: log_loss(flat.reshape(components, 4), rows, labels, means, weight), 1e-7
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-6)


def test_the_history_is_the_log_loss_and_falls():
    rows, labels, _ = made(2, sizes=(50, 60, 40), d=4, apart=0.8)
    model = tb.NearestClassMean("learned").fit(rows, labels)
    history = model.history_
    assert len(history) > 3
    assert (np.diff(history) <= 0).all()
    loss = -np.log(model.predict_proba(rows)[np.arange(len(rows)), labels]).mean()
    assert history[-1] == pytest.approx(loss, rel=1e-9)
    assert loss < -np.log(tb.NearestClassMean().fit(rows, labels).predict_proba(rows)[range(150), labels]).mean()
    assert model.converged_


@pytest.mark.slow
def test_converged_tells_the_truth():
    rows, labels, _ = made(3, sizes=(50, 60, 40), d=5, apart=0.6)
    with pytest.warns(ConvergenceWarning, match=r"did not converge after 3 iterations(.|\n)*Increase max_iter or tol"):
        short = tb.NearestClassMean("learned", max_iter=3).fit(rows, labels)
    assert not short.converged_
    assert len(short.history_) == 4  # the start and three steps
    long = tb.NearestClassMean("learned", max_iter=5000, tol=1e-13).fit(rows, labels)
    assert long.converged_
    assert long.history_[-1] < short.history_[-1]
    means = long.means_  # the gradient is that of a minimum
    numeric = approx_fprime(
        long.projection_.ravel(), lambda flat: log_loss(flat.reshape(5, 5), rows, labels, means), 1e-6
    )
    assert np.abs(numeric).max() < 1e-3
    # the rule that is promised: the last step gained less than tol, those before more
    model = tb.NearestClassMean("learned", tol=1e-4).fit(rows, labels)
    gains = -np.diff(model.history_) / np.maximum(np.abs(model.history_[:-1]), 1)
    assert model.converged_
    assert gains[-1] <= 1e-4
    assert (gains[:-1] > 1e-4).all()


@pytest.mark.slow
@pytest.mark.parametrize("components", [1, 2, 3])
def test_low_rank(components):
    rows, labels, new = made(4, sizes=(40, 40, 40), d=5)
    model = tb.NearestClassMean("learned", n_components=components).fit(rows, labels)
    assert model.projection_.shape == (components, 5)
    means = np.array([rows[labels == c].mean(axis=0) for c in range(3)])
    expected = (((new[:, None] - means) @ model.projection_.T) ** 2).sum(axis=2)
    np.testing.assert_allclose(model.squared_distances(new), expected, rtol=1e-10)
    assert tb.NearestClassMean("learned", n_components=99).fit(rows, labels).projection_.shape == (5, 5)
    with pytest.raises(DataError, match="n_components is 0; expected a whole number of at least 1"):
        tb.NearestClassMean("learned", n_components=0).fit(rows, labels)


@pytest.mark.slow
def test_units_offsets_and_weights():
    rows, labels, new = made(5, sizes=(40, 50, 45), d=3, apart=0.8)
    model = tb.NearestClassMean("learned", tol=1e-9).fit(rows, labels)
    scale, shift = np.array([1e-4, 300.0, 1.0]), np.array([10.0, 1e7, 0.0])
    moved = tb.NearestClassMean("learned", tol=1e-9).fit(rows * scale + shift, labels)
    np.testing.assert_allclose(moved.predict_proba(new * scale + shift), model.predict_proba(new), atol=1e-3)
    times = np.random.default_rng(0).integers(0, 4, len(rows))
    weighted = tb.NearestClassMean("learned", tol=1e-9).fit(rows, labels, times)
    repeated = tb.NearestClassMean("learned", tol=1e-9).fit(np.repeat(rows, times, axis=0), np.repeat(labels, times))
    np.testing.assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new), atol=1e-3)


@pytest.mark.slow
def test_a_constant_column_has_no_part_in_it():
    rows, labels, new = made(6, sizes=(30, 30), d=2)
    model = tb.NearestClassMean("learned").fit(np.insert(rows, 1, 5.0, axis=1), labels)
    assert (model.projection_[:, 1] == 0).all()
    np.testing.assert_array_equal(
        model.predict_proba(np.insert(new, 1, 5.0, axis=1)), model.predict_proba(np.insert(new, 1, -70.0, axis=1))
    )


@pytest.mark.slow
def test_more_rows_move_the_means_and_not_the_metric():
    rows, labels, new = made(7, sizes=(40, 40, 40), d=3)
    model = tb.NearestClassMean("learned").fit(rows[:90], labels[:90])
    metric, history = model.projection_.copy(), model.history_
    model.partial_fit(rows[90:], labels[90:])
    np.testing.assert_allclose(model.means_, [rows[labels == c].mean(axis=0) for c in range(3)], rtol=1e-12)
    np.testing.assert_array_equal(model.projection_, metric)
    model.forget(rows[90:], labels[90:]).drop_class(2)
    np.testing.assert_array_equal(model.projection_, metric)
    assert model.history_ == history
    assert model.predict_proba(new).shape == (11, 2)
    again = model.reestimate(metric="euclidean").reestimate(metric="learned")
    np.testing.assert_array_equal(again.projection_, metric)


@pytest.mark.slow
def test_metrics_learned_apart_do_not_add():
    rows, labels, _ = made(8, sizes=(40, 40), d=3)
    first, second = (
        tb.NearestClassMean("learned").fit(rows[part], labels[part]) for part in (slice(40), slice(40, 80))
    )
    with pytest.raises(StatisticsError, match=r"different learned metrics(.|\n)*partial_fit"):
        first + second
    assert (first + first.reestimate()).tally_ == first.tally_.scale(2)


def test_progress_is_shown_on_request(capsys):
    rows, labels, _ = made(9, sizes=(20, 20), d=2)
    tb.NearestClassMean("learned").fit(rows, labels)
    assert capsys.readouterr() == ("", "")
    model = tb.NearestClassMean("learned", verbose=True).fit(rows, labels)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"iteration {len(model.history_) - 1} of at most 200, log loss {model.history_[-1]:.6f}" in captured.err


def hidden(seed, n):
    """Two classes told apart by the first column alone, a third by the second, among 30 wide columns of noise.

    The third class varies much in the first column, where it does no harm: but the pooled variance that Mahalanobis
    whitens by turns that column down, and plain distance hears mostly noise. What helps to classify is another question
    than what varies.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    center, deviation = np.array([[-2, 0], [2, 0], [0, 12]]), np.array([[1, 1], [1, 1], [20, 1]])
    useful = center[labels] + deviation[labels] * rng.normal(size=(n, 2))
    return np.column_stack([useful, 6 * rng.normal(size=(n, 30))]), labels


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_where_useful_directions_hide_among_noise_it_wins_clearly(seed):
    (rows, labels), (new, truth) = hidden(seed, 600), hidden(1000 + seed, 3000)
    score = {
        metric: tb.NearestClassMean(metric, n_components=2).fit(rows, labels).score(new, truth)
        for metric in ("euclidean", "mahalanobis", "learned")
    }
    assert score["learned"] > 0.9
    assert score["learned"] > max(score["euclidean"], score["mahalanobis"]) + 0.15


def test_where_the_classes_are_gaussian_with_one_covariance_mahalanobis_is_hard_to_beat():
    """There it is the right model; what is learned comes close, and need not be better."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(6, 6))
    means = rng.normal(size=(3, 6)) @ mix
    labels = rng.integers(0, 3, 4400)
    rows = rng.normal(size=(4400, 6)) @ mix + means[labels]
    fit, test = slice(0, 400), slice(400, None)
    given = tb.NearestClassMean().fit(rows[fit], labels[fit]).score(rows[test], labels[test])
    learned = tb.NearestClassMean("learned").fit(rows[fit], labels[fit]).score(rows[test], labels[test])
    assert abs(learned - given) < 0.02
