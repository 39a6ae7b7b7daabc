"""EM for missing cells under full covariances: it climbs, and ends where the observed cells are likeliest."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, NotForgettableError

COVARIANCES = ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"]


def holed(seed=0, sizes=(25, 30), d=3, share=0.25, scale=1.0, offset=0.0):
    """Correlated classes with cells missing at random; every class has every column, some row may have none."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) for n in sizes])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    gone = rng.random(rows.shape) < share
    for label in range(len(sizes)):
        gone[np.flatnonzero(labels == label)[: d + 2]] = False
    order = rng.permutation(len(rows))
    return np.where(gone, np.nan, rows * scale + offset)[order], labels[order]


def fitted(rows, labels, covariance="full", estimate="mle", tol=1e-8, **options):
    return tb.GaussianDiscriminant(covariance, estimate=estimate, tol=tol, **options).fit(rows, labels)


def moments_at_the_top(rows, labels, **options):
    """The expected moments where no step raises the objective any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fitted(rows, labels, max_iter=5000, tol=1e-16, **options)


def observed_log_likelihood(rows, mean, covariance, weight=None):
    """Σ log N of the known cells of every row, by SciPy."""
    total = 0.0
    for i, row in enumerate(rows):
        known = ~np.isnan(row)
        if known.any():
            value = stats.multivariate_normal.logpdf(row[known], mean[known], covariance[np.ix_(known, known)])
            total += value if weight is None else weight[i] * value
    return total


def parameters(model):
    """Maximum-likelihood means and covariances from the expected moments."""
    moments = model.tally_.statistics[1]
    return moments.mean, moments.scatter / moments.weight[..., None]


def pack(mean, covariance):
    root = np.linalg.cholesky(covariance)
    lower = root[np.tril_indices(len(mean))].copy()
    return np.concatenate([mean, lower])


def unpack(flat, d):
    root = np.zeros((d, d))
    root[np.tril_indices(d)] = flat[d:]
    return flat[:d], root @ root.T


@pytest.mark.slow
@given(
    st.integers(0, 10_000),
    st.sampled_from(COVARIANCES),
    st.sampled_from(["bayes", "map", "mle", "unbiased"]),
    st.floats(0.05, 0.6),
    st.booleans(),
)
def test_the_objective_never_falls(seed, covariance, estimate, share, weighted):
    rows, labels = holed(seed, share=share, scale=10.0 ** (seed % 7 - 3), offset=seed % 100)
    weight = np.random.default_rng(seed).uniform(0.1, 3, len(rows)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # slow where most cells are missing, but never down
        history = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(rows, labels, weight).history_
    assert len(history) >= 2
    assert (np.diff(history) >= -1e-9 * np.abs(history[-1])).all()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_history_is_the_log_likelihood_of_the_observed_cells(seed):
    rows, labels = holed(seed)
    model = fitted(rows, labels)
    mean, covariance = parameters(model)
    total = sum(observed_log_likelihood(rows[labels == c], mean[c], covariance[c]) for c in (0, 1))
    assert total >= model.history_[-1] - 1e-9  # the moments are one step ahead at most
    assert total == pytest.approx(model.history_[-1], abs=1e-6 * len(rows))


@pytest.mark.slow
def test_the_gradient_is_zero_at_the_solution():
    rows, labels = holed(4)
    moments = moments_at_the_top(rows, labels).tally_.statistics[1]
    for label in (0, 1):
        mine = rows[labels == label]
        mean = moments.mean[label]
        covariance = moments.scatter[label] / len(mine)

        def log_likelihood(flat, mine=mine):
            return observed_log_likelihood(mine, *unpack(flat, 3))

        at, elsewhere = pack(mean, covariance), pack(mean + 0.1, covariance * 1.1)
        gradient = optimize.approx_fprime(at, log_likelihood, 1e-6)
        typical = np.abs(optimize.approx_fprime(elsewhere, log_likelihood, 1e-6)).max()
        assert np.abs(gradient).max() < 1e-4 * typical


@pytest.mark.slow
def test_the_gradient_of_the_log_posterior_is_zero_under_a_prior():
    rows, labels = holed(5)
    root = np.random.default_rng(1).normal(size=(3, 3))
    scale, location = root @ root.T + np.eye(3), np.array([0.5, 0.0, -0.5])
    prior = tb.NormalInverseWishart(location, 2.0, 6.0, scale)
    done = moments_at_the_top(rows, labels, estimate="bayes", prior=prior)
    assert done.objective_ == "log posterior"
    moments = done.tally_.statistics[1]
    total = 0.0
    for label in (0, 1):
        mine = rows[labels == label]

        def log_posterior(flat, mine=mine):
            mean, covariance = unpack(flat, 3)
            return (
                observed_log_likelihood(mine, mean, covariance)
                + stats.multivariate_normal.logpdf(mean, location, covariance / 2.0)
                + stats.invwishart.logpdf(covariance, 6.0, scale)
            )

        # the joint mode: m = (κm₀ + Σx)/(κ + n), Σ = Ψ/(ν + n + d + 2)
        n, mean, scatter = len(mine), moments.mean[label], moments.scatter[label]
        gap = mean - location
        mode = (2.0 * location + n * mean) / (2.0 + n)
        covariance = (scale + scatter + 2.0 * n / (2.0 + n) * np.outer(gap, gap)) / (6.0 + n + 3 + 2)
        at = pack(mode, covariance)
        gradient = optimize.approx_fprime(at, log_posterior, 1e-6)
        typical = np.abs(optimize.approx_fprime(pack(mode + 0.1, covariance * 1.1), log_posterior, 1e-6)).max()
        assert np.abs(gradient).max() < 1e-4 * typical
        total += log_posterior(at)
    assert done.history_[-1] == pytest.approx(total, rel=1e-9)
    model = fitted(rows, labels, estimate="map", prior=prior)
    assert model.history_[-1] == pytest.approx(total, abs=1e-5)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(4))
def test_tiny_cases_against_brute_force(seed):
    """Eight rows of two columns, one class, maximized over all five parameters."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(8, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    rows[0, 0] = rows[1, 1] = rows[2, 1] = np.nan
    model = fitted(rows, np.zeros(8, int))
    start = pack(np.nanmean(rows, axis=0), np.diag(np.nanvar(rows, axis=0)))
    best = optimize.minimize(lambda flat: -observed_log_likelihood(rows, *unpack(flat, 2)), start, method="BFGS")
    mean, covariance = unpack(best.x, 2)
    assert model.history_[-1] == pytest.approx(-best.fun, abs=1e-6)
    found = parameters(model)
    np.testing.assert_allclose(found[0][0], mean, atol=2e-3)
    np.testing.assert_allclose(found[1][0], covariance, atol=2e-3)


@pytest.mark.slow
def test_a_tied_covariance_against_brute_force():
    rng = np.random.default_rng(11)
    labels = np.repeat([0, 1], 6)
    rows = rng.normal(size=(12, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 2 * labels[:, None]
    rows[0, 0] = rows[1, 1] = rows[7, 1] = np.nan
    model = fitted(rows, labels, "tied")

    def loss(flat):
        _, covariance = unpack(np.r_[0, 0, flat[4:]], 2)
        return -sum(observed_log_likelihood(rows[labels == c], flat[2 * c : 2 * c + 2], covariance) for c in (0, 1))

    means = [np.nanmean(rows[labels == c], axis=0) for c in (0, 1)]
    best = optimize.minimize(loss, np.r_[means[0], means[1], 1, 0, 1], method="BFGS")
    assert model.history_[-1] == pytest.approx(-best.fun, abs=1e-6)
    moments = model.tally_.statistics[1]
    np.testing.assert_allclose(moments.mean, best.x[:4].reshape(2, 2), atol=2e-3)
    np.testing.assert_allclose(moments.scatter.sum(axis=0) / 12, unpack(np.r_[0, 0, best.x[4:]], 2)[1], atol=2e-3)


def test_one_column_missing_is_a_regression():
    """A monotone pattern has a closed form: the known columns as they are, the other by its regression on them."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + [5.0, -2.0, 100.0]
    gone = np.arange(60) >= 42
    rows[gone, 2] = np.nan
    first, whole = rows[:, :2], rows[~gone]
    mean, covariance = first.mean(axis=0), np.cov(first.T, bias=True)
    design = np.column_stack([np.ones(len(whole)), whole[:, :2]])
    coefficients, _, _, _ = np.linalg.lstsq(design, whole[:, 2], rcond=None)
    slope, rest = coefficients[1:], np.mean((whole[:, 2] - design @ coefficients) ** 2)
    expected_mean = np.r_[mean, coefficients[0] + slope @ mean]
    cross = covariance @ slope
    expected = np.block([[covariance, cross[:, None]], [cross[None], np.array([[rest + slope @ cross]])]])
    moments = moments_at_the_top(rows, np.zeros(60, int)).tally_.statistics[1]
    np.testing.assert_allclose(moments.mean[0], expected_mean, rtol=1e-7)
    np.testing.assert_allclose(moments.scatter[0] / 60, expected, rtol=1e-6)
    found_mean, found = parameters(fitted(rows, np.zeros(60, int)))  # what fit itself stops at
    np.testing.assert_allclose(found_mean[0], expected_mean, rtol=1e-4)
    np.testing.assert_allclose(found[0], expected, rtol=1e-2)


def test_independent_columns_under_maximum_likelihood_are_naive_bayes():
    """Nothing is learned about a missing cell from the rest of its row, so it might as well be skipped."""
    rows, labels = holed(6)
    model, naive = fitted(rows, labels, "diagonal"), tb.NaiveBayes(estimate="mle").fit(rows, labels)
    np.testing.assert_allclose(model.predict_proba(rows), naive.predict_proba(rows), atol=1e-3)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "bayes"])
@pytest.mark.parametrize("covariance", ["full", "tied_spherical"])
def test_a_row_of_weight_two_is_two_rows(covariance, estimate):
    rows, labels = holed(7)
    times = np.random.default_rng(0).integers(0, 3, len(rows))
    weighted = tb.GaussianDiscriminant(covariance, estimate=estimate, tol=1e-8).fit(rows, labels, times)
    repeated = fitted(np.repeat(rows, times, axis=0), np.repeat(labels, times), covariance, estimate)
    np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-9)
    assert weighted.tally_.isclose(repeated.tally_, 1e-9)
    np.testing.assert_allclose(weighted.predict_proba(rows), repeated.predict_proba(rows), rtol=1e-8)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_order_and_units_do_not_matter(covariance, estimate):
    rows, labels = holed(8)
    model = fitted(rows, labels, covariance, estimate)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = fitted(rows[order], labels[order], covariance, estimate)
    np.testing.assert_allclose(shuffled.predict_proba(rows), model.predict_proba(rows), rtol=1e-8)
    scale = 1e-3 if "spherical" in covariance else np.array([1e-3, 50.0, 2.0])
    moved = fitted(rows * scale + [1e3, 0, -7], labels, covariance, estimate)
    np.testing.assert_allclose(
        moved.predict_proba(rows * scale + [1e3, 0, -7]), model.predict_proba(rows), rtol=1e-5, atol=1e-9
    )


def test_complete_rows_need_no_em():
    rows, labels = holed(9, share=0.0)
    model = fitted(rows, labels)
    assert model.history_ == []
    assert not model.tally_.soft
    skipped = np.r_[rows, np.full((1, 3), np.nan)]
    weightless = tb.GaussianDiscriminant(estimate="mle").fit(skipped, np.r_[labels, 0], np.r_[np.ones(len(rows)), 0])
    assert weightless.history_ == []  # a row of weight 0 is absent, whatever it lacks
    assert weightless.tally_.isclose(model.tally_)


def test_rows_that_know_nothing_change_only_the_class_shares():
    rows, labels = holed(10, share=0.0)
    more = fitted(np.r_[rows, np.full((10, 3), np.nan)], np.r_[labels, np.zeros(10, int)])
    np.testing.assert_allclose(np.exp(more.class_log_prior_), [35 / 65, 30 / 65], rtol=1e-12)
    whole = fitted(rows, labels)
    for first, second in zip(parameters(more), parameters(whole), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3)


def test_what_em_knows_of_missing_cells_helps():
    """Filled in by regression, the covariance is nearer to that of the whole rows than by leaving rows out."""
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(400, 3)) @ np.array([[1, 0.9, 0.9], [0, 0.3, 0.1], [0, 0, 0.3]])
    gone = rng.random(rows.shape) < 0.4
    gone[:10] = False
    labels, truth = np.zeros(400, int), np.cov(rows.T, bias=True)
    em = parameters(fitted(np.where(gone, np.nan, rows), labels))[1][0]
    whole_rows = np.cov(rows[~gone.any(axis=1)].T, bias=True)
    assert np.abs(em - truth).max() < 0.7 * np.abs(whole_rows - truth).max()


class TestConstantColumns:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("estimate", ["bayes", "map"])
    @pytest.mark.parametrize("covariance", COVARIANCES[:4])
    @pytest.mark.parametrize("value", [0.0, 5.3, np.nan])
    def test_say_nothing_with_missing_cells_too(self, covariance, estimate, value):
        rows, labels = holed(13)
        column = np.full(len(rows), value)
        column[3:20:2] = np.nan
        wide = np.insert(rows, 1, column, axis=1)
        model = fitted(wide, labels, covariance, estimate)
        assert model.constant_columns_ == [1]
        expected = model.predict_proba(wide)
        wide[:, 1] = 1e6
        np.testing.assert_array_equal(model.predict_proba(wide), expected)
        if estimate == "bayes":  # but for the strength of EM's own prior, as if the column were not there
            np.testing.assert_allclose(
                expected, fitted(rows, labels, covariance, estimate).predict_proba(rows), atol=0.02
            )

    def test_and_nothing_else(self):
        rows = np.full((6, 2), 4.0)
        rows[0, 0] = rows[3, 1] = np.nan
        model = fitted(rows, [0, 0, 0, 0, 1, 1], estimate="bayes")
        assert model.constant_columns_ == [0, 1]
        np.testing.assert_allclose(model.predict_proba([[4.0, 1.0]]), [[5 / 8, 3 / 8]], rtol=1e-12)


class TestWhatCannotBe:
    def test_forgetting(self):
        rows, labels = holed(14)
        model = fitted(rows, labels, estimate="bayes")
        assert model.tally_.soft
        whole = ~np.isnan(rows).any(axis=1)
        before = model.tally_
        with pytest.raises(NotForgettableError, match="EM imputed"):
            model.forget(rows[whole][:2], labels[whole][:2])
        assert model.tally_ is before
        model.partial_fit(rows[whole][:2], labels[whole][:2])  # adding is fine
        assert model.tally_.soft
        assert (model + fitted(rows[whole], labels[whole], estimate="bayes")).tally_.soft

    def test_more_rows_with_missing_cells(self):
        rows, labels = holed(15)
        whole = ~np.isnan(rows).any(axis=1)
        model = fitted(rows[whole], labels[whole], estimate="bayes")
        before = model.tally_
        for call in (model.partial_fit, model.forget):
            with pytest.raises(DataError, match=r"missing cells(.|\n)*Use fit on all rows"):
                call(rows[~whole], labels[~whole])
        with pytest.raises(DataError, match="missing cells"):
            model.add_class(7, rows[~whole])
        assert model.tally_ is before

    def test_a_singular_covariance_names_its_class(self):
        rows, labels = holed(16, sizes=(12, 12), d=3)
        rows[labels == 1, 2] = 2 * rows[labels == 1, 0]
        rows[:2] = np.nan
        rows[:2, 1] = 1.0
        with pytest.raises(EstimateError, match=r"covariance of class 1 is singular \(12 rows, 3 columns\)"):
            fitted(rows, labels)
        assert np.isfinite(fitted(rows, labels, estimate="bayes").predict_joint_log_proba(rows)).all()
        rows[labels == 1, 2] = 4.0
        with pytest.raises(EstimateError, match="variance of column 2 in class 1 is 0"):
            fitted(rows, labels, "diagonal")

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("covariance", COVARIANCES)
    def test_a_column_nobody_of_a_class_has(self, covariance):
        rows, labels = holed(17)
        rows[labels == 1, 2] = np.nan
        for estimate in ("mle", "unbiased"):
            with pytest.raises(
                DataError, match=f"'{estimate}' estimate of column 2 in class 1 is undefined: nothing was counted"
            ):
                fitted(rows, labels, covariance, estimate)
        found = fitted(rows, labels, covariance, "bayes").predict_joint_log_proba(rows)
        assert np.isfinite(found).all()


def test_a_soft_model_is_saved_as_one(tmp_path):
    rows, labels = holed(18)
    model = fitted(rows, labels, estimate="bayes")
    model.save(tmp_path / "model")
    other = tb.load(tmp_path / "model")
    assert other.tally_.soft
    np.testing.assert_array_equal(other.predict_proba(rows), model.predict_proba(rows))
    whole = ~np.isnan(rows).any(axis=1)
    with pytest.raises(NotForgettableError):
        other.forget(rows[whole][:1], labels[whole][:1])


def test_stopping_early_is_said():
    rows, labels = holed(19, share=0.5)
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations"):
        model = fitted(rows, labels, max_iter=2)
    assert len(model.history_) == 2
    assert not model.converged_
    assert model.fit(*holed(19, share=0.0)).history_ == []  # of the last fit only


def test_a_history_is_of_the_fit_it_belongs_to():
    rows, labels = holed(20)
    model = fitted(rows, labels, estimate="bayes")
    assert model.reestimate(covariance="tied").history_ == model.history_
    assert fitted(rows, labels, estimate="bayes").history_ == model.history_  # the same data, the same bits
