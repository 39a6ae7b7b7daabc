"""Compiled EM: the same results as the loop in Python, for any number of threads, and an objective that never falls."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes import kernels
from tallybayes.errors import EstimateError
from tallybayes.estimation.em.compiled_em import CompiledEM
from tallybayes.kernels import active
from tallybayes.models.classification import class_em

pytestmark = pytest.mark.skipif(not hasattr(active.module, "MixtureEM"), reason="the kernels are not compiled")

D = 4
FULL, TIED = ({tuple(range(D)): family} for family in (tb.MultivariateGaussian(), tb.TiedMultivariateGaussian()))
NUMBERS = {
    "diagonal": tb.Gaussian(),
    "tied diagonal": tb.TiedGaussian(),
    "spherical": tb.SphericalGaussian(),
    "tied spherical": tb.TiedSphericalGaussian(),
    "full": FULL,
    "tied": TIED,
}


def numbers(n=700, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 2, (3, D))[rng.integers(0, 3, n)] + rng.normal(size=(n, D)) @ rng.normal(size=(D, D))


def mixed(n=700):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, n)
    X = numbers(n) + 3 * kind[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    color = np.where(rng.random(n) < 0.1, None, np.array(list("pqrs"))[np.minimum(kind + rng.integers(0, 2, n), 3)])
    return {"a": X[:, 0], "b": X[:, 1], "color": color, "form": np.array(list("xyz"))[rng.integers(0, 3, n)]}


def fitted(X, columns="auto", weight=None, **options):
    model = tb.Mixture(3, columns, **{"n_init": 2, "max_iter": 40, "random_state": 0, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, sample_weight=weight)


def value_of(part):
    return getattr(part, "value", part)


def check_equal(one, other):
    assert one.converged_ == other.converged_
    for name in ("history_", "objectives_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10)
    for a, b in zip(one.tally_.statistics, other.tally_.statistics, strict=True):
        for name, part in a.arrays().items():
            np.testing.assert_allclose(value_of(part), value_of(b.arrays()[name]), rtol=1e-6, atol=1e-6, err_msg=name)
    ours, theirs = one._em_result, other._em_result
    np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(ours.entropy, theirs.entropy, rtol=1e-6, atol=1e-8)


@pytest.fixture
def in_python(monkeypatch):
    def fit(*data, **options):
        with monkeypatch.context() as patch:
            patch.setattr(class_em, "is_supported", lambda *_: False)
            return fitted(*data, **options)

    return fit


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("columns", NUMBERS.values(), ids=NUMBERS)
def test_numbers_as_in_python(in_python, columns, estimate):
    X = numbers()
    check_equal(fitted(X, columns, estimate=estimate), in_python(X, columns, estimate=estimate))


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
def test_mixed_columns_with_missing_cells_and_weights_as_in_python(in_python, estimate):
    rows, weight = mixed(), np.random.default_rng(2).uniform(0.2, 3.0, 700)
    check_equal(fitted(rows, weight=weight, estimate=estimate), in_python(rows, weight=weight, estimate=estimate))


@pytest.mark.parametrize(
    "options",
    [
        {"class_prior": "uniform"},
        {"class_prior": "frequency"},
        {"class_prior": [0.5, 0.3, 0.2]},
        {"class_prior": tb.Dirichlet([2.0, 3.0, 4.0])},
        {"prior": tb.NormalInverseGamma(1.0, 2.0, 3.0, 4.0)},
        {"prior": tb.NormalInverseGamma(1.0, 2.0, 3.0, 4.0), "estimate": "map"},
    ],
    ids=str,
)
def test_priors_as_in_python(in_python, options):
    X = numbers()
    check_equal(fitted(X, tb.Gaussian(), **options), in_python(X, tb.Gaussian(), **options))


@pytest.mark.parametrize("columns", [FULL, TIED], ids=["full", "tied"])
def test_covariances_of_classes_that_are_ten_million_deviations_apart(columns):
    kind = np.random.default_rng(0).integers(0, 3, 700)
    X = numbers(seed=3) * 1e-4 + 1000.0 * kind[:, None]
    model = fitted(X, columns, estimate="mle")
    moments = model.tally_.statistics[1]
    weight, covariance = moments.weight[:, 0], moments.scatter / 700
    covariance = covariance.sum(axis=0) if columns is TIED else covariance * (700 / moments.weight[..., None])
    expected = 0.0
    for k in range(3):
        rows = X[np.abs(X[:, :1] - moments.mean[:, 0]).argmin(axis=1) == k]
        sigma = covariance if columns is TIED else covariance[k]
        about = rows - moments.mean[k]
        np.testing.assert_allclose(weight[k], len(rows))
        np.testing.assert_allclose(moments.scatter[k], (rows - rows.mean(0)).T @ (rows - rows.mean(0)), rtol=1e-8)
        squares = (np.linalg.solve(np.linalg.cholesky(sigma), about.T) ** 2).sum()
        norm = np.linalg.slogdet(2 * np.pi * sigma)[1]
        expected += len(rows) * (np.log(len(rows) / 700) - norm / 2) - squares / 2
    np.testing.assert_allclose(model.history_[-1], expected, rtol=1e-9)


def test_more_columns_than_fit_into_registers_as_in_python(in_python):
    X = np.random.default_rng(0).normal(size=(600, 37)) + np.random.default_rng(1).integers(0, 3, 600)[:, None]
    columns = {tuple(range(37)): tb.MultivariateGaussian()}
    check_equal(fitted(X, columns), in_python(X, columns))


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2], np.float32, np.int32])
@pytest.mark.parametrize("columns", [tb.Gaussian(), FULL], ids=["diagonal", "full"])
def test_any_layout(layout, columns):
    X = np.round(numbers() * 10)
    check_equal(fitted(layout(X), columns), fitted(X, columns))


@pytest.mark.parametrize("columns", [tb.Gaussian(), FULL], ids=["diagonal", "full"])
def test_the_same_bits_for_any_number_of_threads(columns):
    X = numbers(30_000)
    try:
        kernels.arguments.set_threads(1)
        one = fitted(X, columns, max_iter=5)
        kernels.arguments.set_threads(3)
        several = fitted(X, columns, max_iter=5)
    finally:
        kernels.arguments.set_threads(0)
    assert one.history_ == several.history_
    for a, b in zip(one.tally_.statistics, several.tally_.statistics, strict=True):
        for name, part in a.arrays().items():
            np.testing.assert_array_equal(value_of(part), value_of(b.arrays()[name]))


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("seed", range(12))
def test_the_objective_never_falls(seed):
    rng = np.random.default_rng(seed)
    for estimate in ("mle", "bayes"):
        for columns in (tb.Gaussian(), FULL, TIED):
            history = fitted(numbers(200, seed), columns, estimate=estimate, random_state=seed, tol=0.0).history_
            assert (np.diff(history) >= 0).all()
    rows = {"a": rng.integers(0, 4, 100).astype(str), "b": rng.integers(0, 3, 100).astype(str)}
    assert (np.diff(fitted(rows, estimate="mle", tol=0.0).history_) >= 0).all()


@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("which", ["naive Bayes", "full", "tied", "new classes"])
def test_unlabeled_rows_as_in_python(monkeypatch, which, estimate):
    X, rng = numbers() + 5 * (np.arange(700) % 3)[:, None], np.random.default_rng(0)
    y = np.where(rng.random(700) < 0.7, None, np.arange(700) % 3)
    options = {"estimate": estimate, "unlabeled": "em", "unlabeled_weight": 0.5, "max_iter": 30}
    if which == "new classes":
        y = np.where(np.arange(700) % 3 == 0, y, None)
        model = tb.NaiveBayes(n_classes=3, random_state=0, **options)
    else:
        model = tb.NaiveBayes(**options) if which == "naive Bayes" else tb.GaussianDiscriminant(which, **options)
    weight = rng.uniform(0.5, 2.0, 700)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = sklearn.base.clone(model).fit(X, y, sample_weight=weight)
        monkeypatch.setattr(class_em, "is_supported", lambda *_: False)
        check_equal(one, model.fit(X, y, sample_weight=weight))


def test_a_collapsed_class_raises_as_in_python(in_python):
    X = np.r_[np.zeros((5, D)), 50 + numbers(20)]
    for fit in (fitted, in_python):
        with pytest.raises(EstimateError, match="variance"):
            fit(X, tb.Gaussian(), estimate="mle")


def test_maximum_likelihood_of_continuous_columns_runs_once(monkeypatch):
    runs = []
    run = CompiledEM.iterate
    monkeypatch.setattr(CompiledEM, "iterate", lambda em, n, **options: runs.append(n) or run(em, n, **options))
    fitted(numbers(), tb.Gaussian(), estimate="mle", n_init=1)
    assert runs == [40]
    runs.clear()
    rows = {name: np.array(list("pq"))[np.arange(200) // 100] for name in "abcdefgh"}  # a level that is impossible in
    fitted(rows, estimate="mle", n_init=1)  # a class stays so: a second run starts where no level is
    assert runs == [1, 40, 40, 40]


def test_equal_initializations_run_once(monkeypatch):
    runs = []
    run = class_em.ClassEM._run_compiled
    monkeypatch.setattr(class_em.ClassEM, "_run_compiled", lambda *args: runs.append(args) or run(*args))
    rng = np.random.default_rng(0)
    X = 100.0 * rng.integers(0, 3, 300)[:, None] + rng.normal(size=(300, 2))  # all initializations find the clusters
    assert len(set(fitted(X, tb.Gaussian(), n_init=5).objectives_)) == len(runs) == 1


def test_an_error_stops_compiled_code(monkeypatch):
    def interrupted(steps, what):
        yield from range(3)
        raise KeyboardInterrupt

    monkeypatch.setattr("tallybayes.estimation.em.compiled_em.progress", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(numbers(), tb.Gaussian(), tol=0.0)


def test_arguments_that_do_not_fit_raise_errors():
    X, flat = numbers(50), np.zeros(D)
    make = active.module.MixtureEM
    for block in ((X[:9], False, False, False, flat, flat), (X, True, False, True, flat, flat), (X, False)):
        with pytest.raises(ValueError, match=r"do not fit|differ"):
            make(50, 2, [block], [], None, None, 1)
    with pytest.raises(ValueError, match="do not fit"):
        make(50, 2, [], [], None, np.full(50, 2), 1)
    em = make(50, 2, [(X, False, False, False, flat, flat)], [], None, None, 1)
    for wrong in ((em.sums,), (em.values,), (em.iterate, 3, 0.0, lambda: None)):
        with pytest.raises(ValueError, match="do not fit"):
            wrong[0](*wrong[1:])
    ones = np.ones(2 * D)
    for wrong in (([], []), ([(ones, ones[:-1])], []), ([(ones, ones)], [ones])):
        with pytest.raises(ValueError, match="do not fit"):
            em.expect(np.zeros(2), *wrong, False)
    assert not em.expect(np.zeros(2), [(ones, -ones)], [], False)  # a negative variance
    assert em.expect(np.zeros(2), [(ones, ones)], [], False)
    with pytest.raises(ValueError, match="do not fit"):
        em.set_priors([(False, ones, ones, ones[:-1], ones)], [], np.zeros(2), None)
