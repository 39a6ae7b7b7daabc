"""Sparse rows: the same numbers as dense ones, in every model and question, and never as many cells as dense ones."""

import itertools
import time
import tracemalloc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.families._shared import log_prob_forms as forms
from tallybayes.families._shared.block_sums import sum_block
from tallybayes.families.family import broadcast_over_groups, zero_where_missing
from tallybayes.models.inputs.features import open_features

FAMILIES = {
    "Multinomial": tb.Multinomial(),
    "DirichletMultinomial": tb.DirichletMultinomial(),
    "Poisson": tb.Poisson(),
    "Bernoulli": tb.Bernoulli(),
}
ESTIMATES = ["bayes", "map", "mle"]
EACH = pytest.mark.parametrize(("family", "estimate"), list(itertools.product(FAMILIES, ESTIMATES)))
WEIGHTED_AND_MISSING = pytest.mark.parametrize(
    ("weighted", "missing"),
    [(False, False), (True, True), *(pytest.param(one, not one, marks=pytest.mark.slow) for one in (False, True))],
)


def rows_of(family, n=60, width=7, seed=0, missing=False):
    """Counts of three classes, dense and sparse; the last column is 0 in every row of the first class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.poisson(0.2 + 0.5 * y[:, None] * rng.random(width), (n, width)).astype(float)
    X[y == 0, -1] = 0.0
    if family == "Bernoulli":
        X = (X > 0).astype(float)
        X[y == 1, 0] = 1.0  # a 0 is impossible there, under maximum likelihood
    if missing and "ultinomial" not in family:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, sparse.csr_array(X), y


def weights(n):
    return np.random.default_rng(9).integers(1, 4, n) / 2.0


@WEIGHTED_AND_MISSING
@EACH
def test_scores_are_those_of_dense_rows(family, estimate, weighted, missing):
    X, S, y = rows_of(family, missing=missing)
    new, thin, _ = rows_of(family, n=40, seed=1, missing=missing)
    weight = weights(len(y)) if weighted else None
    dense, found = (
        tb.NaiveBayes(FAMILIES[family], estimate=estimate).fit(rows, y, sample_weight=weight) for rows in (X, S)
    )
    expected = dense.predict_joint_log_proba(new)
    assert np.isneginf(expected).any() == (estimate == "mle")
    np.testing.assert_allclose(found.predict_joint_log_proba(thin), expected, rtol=1e-12, atol=1e-12)
    possible = ~np.isneginf(expected).all(axis=1)
    np.testing.assert_allclose(
        found.predict_proba(thin[possible]), dense.predict_proba(new[possible]), rtol=1e-10, atol=1e-14
    )
    assert (found.predict(thin[possible]) == dense.predict(new[possible])).all()
    np.testing.assert_allclose(found.score_samples(thin), dense.score_samples(new), rtol=1e-12, atol=1e-12)


@WEIGHTED_AND_MISSING
@EACH
def test_rows_left_out_are_those_of_dense_rows(family, estimate, weighted, missing):
    X, S, y = rows_of(family, missing=missing)
    weight = weights(len(y)) if weighted else None
    model = tb.NaiveBayes(FAMILIES[family], estimate=estimate)
    for score in (tb.leave_one_out, tb.cross_validate):
        found, expected = (score(model, rows, y, sample_weight=weight) for rows in (S, X))
        np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.log_density, expected.log_density, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_stored_zeros_and_unsorted_and_repeated_entries(family):
    X, S, y = rows_of(family)
    model = tb.NaiveBayes(FAMILIES[family]).fit(S, y)
    expected = model.predict_joint_log_proba(S)
    messy = sparse.csr_array(np.where(X == 0, 1.0, X))
    messy.data[X.ravel() == 0] = 0.0
    for row in range(len(y)):
        span = slice(messy.indptr[row], messy.indptr[row + 1])
        messy.indices[span], messy.data[span] = messy.indices[span][::-1].copy(), messy.data[span][::-1].copy()
    messy.has_sorted_indices = messy.has_canonical_format = False
    np.testing.assert_allclose(model.predict_joint_log_proba(messy), expected, rtol=1e-13)
    twice = sparse.coo_array((np.tile(S.data / 2, 2), (np.tile(S.tocoo().row, 2), np.tile(S.tocoo().col, 2))), S.shape)
    np.testing.assert_allclose(model.predict_joint_log_proba(twice), expected, rtol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_in_many_stretches_are_the_same(family, monkeypatch):
    _, S, y = rows_of(family, missing=True)
    model = tb.NaiveBayes(FAMILIES[family]).fit(S, y)
    expected = model._factor_scorers[0].cells.score(open_features(S).numbers(["x"]))
    monkeypatch.setattr(forms, "_CELLS", 7)
    assert (model._factor_scorers[0].cells.score(open_features(S).numbers(["x"])) == expected).all()


@pytest.mark.parametrize("value", [-1.0, 0.5, np.inf])
@pytest.mark.parametrize("family", ["DirichletMultinomial", "Poisson"])
def test_cells_that_cannot_be_are_named(family, value):
    _, S, y = rows_of(family)
    model = tb.NaiveBayes(FAMILIES[family], unseen="error").fit(S, y)
    bad = sparse.csr_array(S[:3].toarray())
    bad[2, 4] = value
    if (family, value) == ("DirichletMultinomial", 0.5):
        assert np.isfinite(model.predict_joint_log_proba(bad)).all()
        return
    with pytest.raises(DataError, match=r"row 2, column \('x', 4\)"):
        model.predict(bad)


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(tb.Bernoulli):
    """A family of a user's own, made from another: it scores in its own way, and says no form."""

    is_binary: ClassVar[bool] = False

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        rows, failures, _ = sum_block(block, "poisson", group, n_groups, weight)
        return tb.Totals(rows + failures, rows + np.zeros_like(failures))

    def log_predictive(self, posterior, x):
        a, b = posterior.alpha, posterior.beta
        x = broadcast_over_groups(x, a.ndim - 1)
        return zero_where_missing(np.log(a / (a + b)) + x * np.log(b / (a + b)), x)


def test_a_family_made_from_another_scores_in_its_own_way():
    X, S, y = rows_of("Poisson")
    dense, found = (tb.NaiveBayes(Geometric()).fit(rows, y) for rows in (X, S))
    np.testing.assert_allclose(found.predict_joint_log_proba(S), dense.predict_joint_log_proba(X), rtol=1e-12)
    left, expected = (tb.leave_one_out(tb.NaiveBayes(Geometric()), rows, y) for rows in (S, X))
    np.testing.assert_allclose(left.log_proba, expected.log_proba, rtol=1e-10)


@dataclass(frozen=True, eq=False, repr=False)
class Twice(tb.Poisson):
    """Counts of pairs of events: its parameters are a Poisson's, its scores are not."""

    def log_prob(self, parameters, x):
        return super().log_prob(2 * parameters, x)


@dataclass(frozen=True, eq=False, repr=False)
class Squared(tb.Multinomial):
    """Words by the squares of their probabilities, without a normalizer."""

    def log_prob(self, parameters, x):
        return 2 * super().log_prob(parameters, x)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("family", "name"), [(Twice(), "Poisson"), (Squared(), "Multinomial")])
def test_kernels_leave_families_made_from_theirs_alone(family, name, form):
    X, _, y = rows_of(name)
    model = tb.NaiveBayes(family, estimate="map", class_prior="uniform").fit(form(X), y)
    terms = family.log_prob(model._factor_scorers[0].parameters, X)
    expected = (terms.sum(axis=-1) if family.columnwise else terms) - np.log(3)
    np.testing.assert_allclose(model.predict_joint_log_proba(form(X)), expected, rtol=1e-12)


# ---- Memory and time -----------------------------------------------------------------------------------------------


def corpus(n=1000, width=20_000, share=0.003, ones=False):
    rng = np.random.default_rng(0)
    n_cells = int(n * width * share)
    values = np.ones(n_cells) if ones else rng.integers(1, 4, n_cells).astype(float)
    rows, columns = rng.integers(0, n, n_cells), rng.integers(0, width, n_cells)
    X = sparse.csr_array((values, (rows, columns)), (n, width))
    X.sum_duplicates()
    if ones:
        X.data[:] = 1.0
    return X, rng.integers(0, 2, n)


def peak(work):
    """The most memory that some work had at a time, in MB."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_corpus_is_scored_in_little_memory_and_time(family):
    X, y = corpus(ones=family == "Bernoulli")  # 160 MB of cells, twice that of terms
    model = tb.NaiveBayes(FAMILIES[family]).fit(X, y)
    assert peak(lambda: model.predict_proba(X)) < 40
    start = time.process_time()
    model.predict_proba(X)
    assert time.process_time() - start < 0.2


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("question", [tb.leave_one_out, tb.cross_validate], ids=lambda f: f.__name__)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_corpus_is_held_out_in_little_memory(family, question):
    X, y = corpus(ones=family == "Bernoulli")
    assert peak(lambda: question(tb.NaiveBayes(FAMILIES[family]), X, y)) < 60


@pytest.mark.slow
def test_a_family_without_a_form_scores_few_rows_at_a_time():
    X, y = corpus(300)
    model = tb.NaiveBayes(Geometric()).fit(X, y)
    assert peak(lambda: model.predict(X)) < 100
    assert peak(lambda: tb.leave_one_out(tb.NaiveBayes(Geometric()), X, y)) < 400


# ---- Other questions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
@EACH
def test_explanations_are_those_of_dense_rows(family, estimate, missing):
    X, S, y = rows_of(family, missing=missing)
    model, dense = (tb.NaiveBayes(FAMILIES[family], estimate=estimate).fit(rows, y) for rows in (S, X))
    found, expected = model.explain(S, against=1), dense.explain(X, against=1)
    np.testing.assert_allclose(found.contributions, expected.contributions, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.log_odds, expected.log_odds, rtol=1e-10, atol=1e-10)
    possible = np.isfinite(found.log_odds)
    sums = found.contributions[possible].sum(axis=1)
    finite = np.isfinite(sums)
    np.testing.assert_allclose(sums[finite], found.log_odds[possible][finite], atol=1e-10)
    assert finite.mean() > 0.5
    assert repr(found).replace("('x', ", "").count("\n") == repr(expected).count("\n")
    np.testing.assert_array_equal(np.array(found.values[3][1:], float), np.array(expected.values[3][1:], float))


def test_an_explanation_holds_what_the_rows_were():
    X, _, y = rows_of("Poisson")
    expected = tb.NaiveBayes(tb.Poisson()).fit(X, y).explain(X).contributions
    found = tb.NaiveBayes(tb.Poisson()).fit(X, y).explain(X)
    X[:] = 0.0
    np.testing.assert_array_equal(found.contributions, expected)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_corpus_is_explained_in_little_memory(family):
    X, y = corpus(ones=family == "Bernoulli")
    model = tb.NaiveBayes(FAMILIES[family]).fit(X, y)
    assert peak(lambda: repr(model.explain(X))) < 40
    assert peak(lambda: model.explain(X).to_dict(999)) < 40
    assert peak(lambda: model.show_work(X[:1])) < 40


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_mixture_of_a_corpus_takes_little_memory(family):
    X, _ = corpus(ones=family == "Bernoulli")
    model = tb.Mixture(2, columns=FAMILIES[family], tol=1e3, random_state=0)
    assert peak(lambda: model.fit(X)) < 80


@pytest.mark.slow
@pytest.mark.parametrize("width", [7, 90])
@pytest.mark.parametrize("family", FAMILIES)
def test_mixtures_start_and_end_where_dense_rows_do(family, width):
    X, S, _ = rows_of(family, n=90, width=width, missing=True)
    dense, found = (tb.Mixture(3, columns=FAMILIES[family], random_state=0, max_iter=500).fit(rows) for rows in (X, S))
    np.testing.assert_allclose(found.predict_proba(S), dense.predict_proba(X), atol=1e-6)


@EACH
def test_networks_have_sparse_leaves(family, estimate):
    X, S, y = rows_of(family, missing=True)
    partly = np.where(np.arange(len(y)) % 4, y.astype(float), np.nan)
    for given, missing in ((y, "available"), (partly, "em")):
        columns = {"x": FAMILIES[family], "y": tb.Categorical(levels=[0, 1, 2])}
        dense, found = (
            tb.BayesianNetwork({"x": ["y"]}, columns=columns, estimate=estimate, missing=missing).fit(
                {"y": given, "x": rows}
            )
            for rows in (X, S)
        )
        for questions in ({"y": y}, {}):
            asked, wanted = found.score_samples({**questions, "x": S}), dense.score_samples({**questions, "x": X})
            np.testing.assert_allclose(asked, wanted, rtol=1e-9, atol=1e-15)  # of a row of nothing: log 1, rounded
        np.testing.assert_allclose(found.predict_proba({"x": S}, "y"), dense.predict_proba({"x": X}, "y"), atol=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_of_a_corpus_takes_little_memory(family):
    X, y = corpus(ones=family == "Bernoulli")
    partly = np.where(np.arange(len(y)) % 4, y.astype(float), np.nan)
    columns = {"x": FAMILIES[family], "y": tb.Categorical(levels=[0, 1])}
    model = tb.BayesianNetwork({"x": ["y"]}, columns=columns).fit({"y": y, "x": X})
    assert peak(lambda: model.predict_proba({"x": X}, "y")) < 40
    assert peak(lambda: model.score_samples({"x": X, "y": y})) < 40
    hidden = tb.BayesianNetwork({"x": ["y"]}, columns=columns, missing="em")
    assert peak(lambda: hidden.fit({"y": partly, "x": X})) < 60


@EACH
def test_hidden_markov_models_emit_sparse_rows(family, estimate):
    X, S, y = rows_of(family, missing=True)
    dense, found = (
        tb.HiddenMarkovModel(columns=FAMILIES[family], estimate=estimate).fit(rows, y, lengths=[20, 20, 20])
        for rows in (X, S)
    )
    np.testing.assert_allclose(found.predict_proba(S, lengths=[60]), dense.predict_proba(X, lengths=[60]), atol=1e-10)
