"""Families that a user writes, inside every model and every check: they answer as closed forms and the built-in do."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import betaln, logsumexp

import tallybayes as tb
from tallybayes import testing
from tests.laws.own_families import Events, Exponential, FormedEvents, FormedExponential, Geometric

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
COUNTS = RNG.poisson(1.0 + 4.0 * Y[:, None], (90, 4)).astype(float)
TIMES = RNG.exponential(1.0 + 3.0 * Y[:, None], (90, 4))
ESTIMATES = ("bayes", "map", "mle")
close = {"rtol": 1e-9, "atol": 1e-10}


def log_proba(terms, log_prior):
    joint = terms + log_prior
    return joint - logsumexp(joint, axis=1)[:, None]


def geometric(successes, failures, x):
    """log p(x) of a geometric column whose θ has a Beta belief."""
    return betaln(successes + 1, failures + x) - betaln(successes, failures)


def exponential(shape, rate, x):
    """log p(x) of a waiting time whose rate has a Gamma belief."""
    return np.log(shape) + shape * np.log(rate) - (shape + 1) * np.log(rate + x)


CASES = {  # the family, its rows, its predictive, and its default prior: what it adds to rows and to Σx
    "geometric": (Geometric(), COUNTS, geometric, 1.0),
    "exponential": (Exponential(), TIMES, exponential, 1.0),
    "exponential with a form": (FormedExponential(), TIMES, exponential, 1.0),
}
every_case = pytest.mark.parametrize("name", CASES)
every_twin = pytest.mark.parametrize("family", [Events(), FormedEvents()], ids=repr)
every_estimate = pytest.mark.parametrize("estimate", ESTIMATES)


def by_hand(name, counts, sums, x):
    """log p(row | class) from the number of rows of every class and the sums of their columns."""
    _, _, predictive, prior = CASES[name]
    return predictive(prior + counts[..., None], prior + sums, x[:, None, :]).sum(axis=-1)


@pytest.mark.parametrize(
    "family", [Geometric(), FormedEvents(), FormedExponential()], ids=lambda one: type(one).__name__
)
def test_they_keep_the_laws(family):
    draw = {
        Geometric: lambda rng, n: rng.geometric(0.3, (n, 2)) - 1,
        FormedEvents: lambda rng, n: rng.poisson(2.0, (n, 2)),
        FormedExponential: lambda rng, n: rng.exponential(2.0, (n, 2)),
    }[type(family)]
    testing.check_family(family, draw, parameters=np.array([0.3, 0.6]), n_examples=3)


ADDED = {"geometric": 1}  # whose belief is a coin's


@every_case
def test_naive_bayes_by_closed_forms(name):
    family, X, _, _ = CASES[name]
    counts, sums = np.bincount(Y).astype(float), np.stack([X[k == Y].sum(axis=0) for k in range(3)])
    model = tb.NaiveBayes(family, prior=ADDED.get(name), class_prior="frequency").fit(X, Y)
    terms = by_hand(name, counts, sums, X)
    np.testing.assert_allclose(model.predict_log_proba(X), log_proba(terms, np.log(counts / 90)), **close)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(terms + np.log(counts / 90), axis=1), **close)
    weights = model.explain(X[:5])
    for row in range(5):
        top, other = (list(model.classes_).index(one[row]) for one in (weights.classes, weights.against))
        gap = terms[row, top] - terms[row, other]
        assert sum(weights.to_dict(row)[column] for column in range(4)) == pytest.approx(gap, abs=1e-9)


@every_case
def test_rows_left_out_by_closed_forms(name):
    family, X, _, _ = CASES[name]
    expected = np.empty((90, 3))
    for row in range(90):
        rest = np.arange(90) != row
        counts = np.bincount(Y[rest], minlength=3).astype(float)
        sums = np.stack([X[rest & (k == Y)].sum(axis=0) for k in range(3)])
        terms = by_hand(name, counts, sums, X[row : row + 1])
        expected[row] = log_proba(terms, np.log(counts / 89))[0]
    model = tb.NaiveBayes(family, prior=ADDED.get(name), class_prior="frequency")
    for rows in (X, sp.csr_array(X)):
        np.testing.assert_allclose(tb.leave_one_out(model, rows, Y).log_proba, expected, **close)
        folds = tb.cross_validate(model, rows, Y, folds=np.arange(90))
        np.testing.assert_allclose(folds.log_proba, expected, **close)


@every_case
def test_draws_and_missing_cells(name):
    family, X, _, _ = CASES[name]
    model = tb.NaiveBayes(family, estimate="mle").fit(X, Y)
    drawn, classes = model.sample(6000, random_state=0)
    means = np.stack([X[k == Y].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose([drawn[classes == k].mean(axis=0) for k in range(3)], means, rtol=0.15)
    if family.accepts_missing:
        holed = X[:6].copy()
        holed[:, 1] = np.nan
        filled = np.asarray(model.impute(holed), dtype=float)
        np.testing.assert_allclose(filled[:, 1], model.predict_proba(holed) @ means[:, 1], rtol=1e-6)


# ---- A Poisson from scratch is a Poisson ------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@every_twin
@every_estimate
def test_naive_bayes_as_the_built_in(family, estimate):
    sparse = sp.csr_array(COUNTS)
    own, twin = (tb.NaiveBayes(one, estimate=estimate).fit(COUNTS, Y) for one in (family, tb.Poisson()))
    for rows in (COUNTS, sparse):
        np.testing.assert_allclose(own.predict_log_proba(rows), twin.predict_log_proba(rows), **close)
        np.testing.assert_allclose(own.score_samples(rows), twin.score_samples(rows), **close)
    holed = np.where(RNG.random(COUNTS.shape) < 0.2, np.nan, COUNTS)
    np.testing.assert_allclose(own.predict_log_proba(holed), twin.predict_log_proba(holed), **close)
    np.testing.assert_allclose(own.impute(holed), twin.impute(holed), **close)
    np.testing.assert_array_equal(own.sample(50, random_state=1)[0], twin.sample(50, random_state=1)[0])
    for row in range(3):
        expected = twin.explain(COUNTS[:3]).to_dict(row)
        assert own.explain(COUNTS[:3]).to_dict(row) == pytest.approx(expected, abs=1e-9)
    assert own.log_evidence() == pytest.approx(twin.log_evidence(), rel=1e-12)
    assert own.n_parameters_ == twin.n_parameters_
    for other in ESTIMATES:
        again, twins = own.reestimate(estimate=other), twin.reestimate(estimate=other)
        np.testing.assert_allclose(again.predict_log_proba(COUNTS), twins.predict_log_proba(COUNTS), **close)
    found, expected = (model.predict_proba_interval(COUNTS[:4], random_state=0) for model in (own, twin))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@every_twin
def test_models_are_merged_and_forget(family):
    parts = [tb.NaiveBayes(family).fit(COUNTS[part], Y[part]) for part in (slice(0, 40), slice(40, 90))]
    whole = tb.NaiveBayes(family).fit(COUNTS, Y)
    np.testing.assert_allclose(
        (parts[0] + parts[1]).predict_log_proba(COUNTS), whole.predict_log_proba(COUNTS), **close
    )
    rest = whole.forget(COUNTS[:40], Y[:40])
    np.testing.assert_allclose(rest.predict_log_proba(COUNTS), parts[1].predict_log_proba(COUNTS), **close)
    chains = [tb.HiddenMarkovModel(columns=family).fit([COUNTS[p]], [Y[p]]) for p in (slice(0, 40), slice(40, 90))]
    both = tb.HiddenMarkovModel(columns=family).fit([COUNTS[:40], COUNTS[40:]], [Y[:40], Y[40:]])
    assert (chains[0] + chains[1]).score([COUNTS]) == pytest.approx(both.score([COUNTS]), rel=1e-12)


@every_twin
@every_estimate
@pytest.mark.parametrize("form", ["dense", "sparse", "weighted"])
def test_checks_as_of_the_built_in(family, estimate, form):
    rows = sp.csr_array(COUNTS) if form == "sparse" else COUNTS
    weight = {"sample_weight": RNG.integers(1, 4, 90).astype(float)} if form == "weighted" else {}
    own, twin = (tb.NaiveBayes(one, estimate=estimate) for one in (family, tb.Poisson()))
    for check, more in ((tb.leave_one_out, {}), (tb.cross_validate, {"folds": np.arange(90) % 5})):
        found, expected = (check(model, rows, Y, **more, **weight) for model in (own, twin))
        np.testing.assert_allclose(found.log_proba, expected.log_proba, **close)
        np.testing.assert_allclose(found.log_density, expected.log_density, **close)
    found, expected = (tb.evaluate(model.fit(rows, Y), rows, Y) for model in (own, twin))
    assert found.log_loss.value == pytest.approx(expected.log_loss.value, rel=1e-9)
    assert tb.compare([own.fit(rows, Y), twin.fit(rows, Y)]).bayes_factor(0, 1) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow_after(2)
@every_twin
@every_estimate
def test_mixtures_chains_and_networks_as_of_the_built_in(family, estimate):
    settings = {"estimate": estimate, "random_state": 0}
    own, twin = (tb.Mixture(3, one, **settings, n_init=3, tol=1e-12).fit(COUNTS) for one in (family, tb.Poisson()))
    np.testing.assert_allclose(own.score_samples(COUNTS), twin.score_samples(COUNTS), rtol=1e-4)  # from other starts
    chains = [COUNTS[:50], COUNTS[50:]]
    own, twin = (
        tb.HiddenMarkovModel(columns=one, **settings).fit(chains, [Y[:50], Y[50:]]) for one in (family, tb.Poisson())
    )
    assert own.score(chains) == pytest.approx(twin.score(chains), rel=1e-12)
    for found, expected in zip(own.predict_proba(chains), twin.predict_proba(chains), strict=True):
        np.testing.assert_allclose(found, expected, **close)
    rows = {"class": Y, "calls": COUNTS[:, 0], "visits": COUNTS[:, 1]}
    own, twin = (
        tb.BayesianNetwork(
            {"calls": ["class"], "visits": ["class"]}, columns={"calls": one, "visits": one}, estimate=estimate
        ).fit(rows)
        for one in (family, tb.Poisson())
    )
    np.testing.assert_allclose(own.predict_proba(rows, "class"), twin.predict_proba(rows, "class"), **close)
    np.testing.assert_allclose(own.score_samples(rows), twin.score_samples(rows), **close)
    assert own.bic_ == pytest.approx(twin.bic_, rel=1e-12)
    found, expected = (model.sample(20, random_state=0) for model in (own, twin))
    np.testing.assert_array_equal(found["calls"], expected["calls"])


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("family", [FormedEvents(), FormedExponential()], ids=repr)
def test_sparse_rows_stay_sparse_where_a_form_is_said(family, estimate):
    rng, n, width = np.random.default_rng(0), 2000, 20_000
    y = np.arange(n) % 2
    some = sp.random_array((n - 2, width), density=0.001, rng=rng, data_sampler=lambda size: rng.integers(1, 4, size))
    rows = sp.csr_array(sp.vstack([sp.csr_array(np.ones((2, width))), some]))  # every class shows every column
    peaks, scores = [], []
    for one in (family, type(family).__mro__[1]()):  # with a form, and without
        model = tb.NaiveBayes(one, estimate=estimate).fit(rows, y)
        tracemalloc.start()
        scores.append(model.predict_log_proba(rows))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < 0.75 * peaks[1] < 0.1 * n * width * 8  # without, a few rows are made dense at a time
    np.testing.assert_allclose(*scores, rtol=1e-8, atol=1e-8)
