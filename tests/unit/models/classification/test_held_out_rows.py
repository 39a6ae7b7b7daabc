"""The quick ways to held-out scores give what the plain ones give, and are taken."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.estimation.scoring import row_scorer
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.classification import leave_one_out_scores


def mixed_rows(n=120, seed=0):
    """Labels, yes/no and measured columns of three classes, some cells missing."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    color = np.array(["red", "green", "blue", "gray"])[np.minimum(rng.poisson(1 + y), 3)].astype(object)
    color[rng.random(n) < 0.1] = None
    length, width = (rng.normal(y, 1.0 + y / 2), rng.normal(-y, 2.0))
    length[rng.random(n) < 0.1] = np.nan
    ripe = np.where(rng.random(n) < 0.1, np.nan, rng.random(n) < 0.2 + 0.3 * y)
    return pd.DataFrame({"color": color, "ripe": ripe, "length": length, "width": width}), y


COLUMNS = {"color": tb.Categorical(), "ripe": tb.Bernoulli(), ("length", "width"): tb.Gaussian()}


def counted_out(model, X, y):
    """Every row left out by itself: a fold of one row for each."""
    return tb.cross_validate(model, X, y, folds=np.arange(len(y)))


def refuse(*arguments):
    raise AssertionError("the plain way was taken")


@pytest.mark.slow
@pytest.mark.parametrize("unseen", ["missing", "smooth"])
def test_mixed_columns_are_left_out_by_tables(monkeypatch, unseen):
    X, y = mixed_rows()
    model = tb.NaiveBayes(COLUMNS, unseen=unseen)
    expected = counted_out(model, X, y)
    monkeypatch.setattr(leave_one_out_scores, "leave_one_out_log_prob", refuse)
    found = tb.leave_one_out(model, X, y)
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.log_density, expected.log_density, rtol=1e-10)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize(
    ("family", "form"),
    [(tb.Categorical(), form) for form in ("u1", "f8", "labels")]
    + [(tb.Bernoulli(), form) for form in ("u1", "f8", "sparse")],
)
def test_levels_are_left_out_by_tables_under_every_estimate(monkeypatch, estimate, family, form):
    y = np.arange(90) % 3
    X = (np.random.default_rng(1).random((90, 4)) < 0.3 + 0.2 * y[:, None]).astype(np.uint8)
    rows = {"u1": X, "f8": X.astype(float), "labels": np.array(["no", "yes"])[X], "sparse": sp.csr_array(X)}[form]
    model = tb.NaiveBayes(family, estimate=estimate)
    expected = counted_out(model, rows, y)
    monkeypatch.setattr(leave_one_out_scores, "leave_one_out_log_prob", refuse)
    found = tb.leave_one_out(model, rows, y)
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.log_density, expected.log_density, rtol=1e-11)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize("family", [tb.Categorical(), tb.Bernoulli()])
def test_levels_with_weights(estimate, family):
    rng = np.random.default_rng(2)
    y, weight = np.arange(60) % 2, rng.integers(0, 4, 60) / 2.0
    X = rng.integers(0, 2, (60, 3))
    model = tb.NaiveBayes(family, estimate=estimate)
    found = tb.leave_one_out(model, X, y, sample_weight=weight)
    expected = tb.cross_validate(model, X, y, folds=np.arange(60), sample_weight=weight)
    here = weight > 0
    np.testing.assert_allclose(found.log_proba[here], expected.log_proba[here], rtol=1e-11, atol=1e-13)


def test_a_row_that_is_nearly_all_of_the_spread_is_counted_out():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    X[6, 1] = 1e7
    expected = counted_out(tb.NaiveBayes(), X, y)
    found = tb.leave_one_out(tb.NaiveBayes(), X, y)
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-8)
    np.testing.assert_allclose(found.log_density, expected.log_density, rtol=1e-8)


def test_offsets_and_constant_columns():
    rng = np.random.default_rng(4)
    X, y = np.round(rng.normal(size=(50, 3)) * 64) / 64, np.arange(50) % 2
    X[:, 1] = 3.0
    near = tb.leave_one_out(tb.NaiveBayes(), X, y)
    far = tb.leave_one_out(tb.NaiveBayes(), X + 1e9, y)
    np.testing.assert_allclose(far.log_proba, near.log_proba, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(near.log_proba, counted_out(tb.NaiveBayes(), X, y).log_proba, rtol=1e-10)


def test_a_class_of_one_row_beside_others():
    X, y = np.random.default_rng(5).normal(size=(21, 2)), np.r_[np.arange(20) % 2, 2]
    for class_prior, share in [(None, 1 / 23), ("frequency", 0.0)]:
        model = tb.NaiveBayes(class_prior=class_prior)
        found, expected = tb.leave_one_out(model, X, y), counted_out(model, X, y)
        np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-10)
        assert (0 < np.exp(found.log_proba[20, 2]) < 5 * share) or (share == 0 and found.log_proba[20, 2] == -np.inf)


def test_a_class_absent_from_a_fold_is_improbable_not_impossible():
    X, y = np.random.default_rng(5).normal(size=(21, 2)), np.r_[np.arange(20) % 2, 2]
    for found in (tb.leave_one_out(tb.NaiveBayes(), X, y), tb.cross_validate(tb.NaiveBayes(), X, y)):
        assert np.isfinite(found.log_loss.value)
    assert tb.leave_one_out(tb.NaiveBayes(class_prior="frequency"), X, y).log_loss.value == np.inf


@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_the_class_counts_of_a_row_left_out_are_without_it(estimate):
    y = np.repeat([0, 1, 2], [5, 3, 2])
    found = tb.leave_one_out(tb.NaiveBayes(estimate=estimate), np.full((10, 1), np.nan), y)
    own = (np.bincount(y)[y] - 1 + 1) / (9 + 3)
    np.testing.assert_allclose(np.exp(found.log_proba)[np.arange(10), y], own, rtol=1e-12)


def test_a_mode_on_the_edge_is_counted_out():
    X, y = np.random.default_rng(6).integers(0, 3, (40, 2)), np.arange(40) % 2
    model = tb.NaiveBayes(tb.Categorical(), estimate="map", prior=tb.Dirichlet(0.5))
    found, expected = tb.leave_one_out(model, X, y), counted_out(model, X, y)
    np.testing.assert_allclose(found.log_proba, expected.log_proba, rtol=1e-11, atol=1e-13)


def test_many_classes_take_the_plain_way_with_the_same_result(monkeypatch):
    X, y = mixed_rows(60)
    quick = tb.leave_one_out(tb.NaiveBayes(COLUMNS), X, y)
    monkeypatch.setattr(leave_one_out_scores, "_score_by_class", lambda rows, model, out: np.ones(len(y), dtype=bool))
    plain = tb.leave_one_out(tb.NaiveBayes(COLUMNS), X, y)
    np.testing.assert_allclose(quick.log_proba, plain.log_proba, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(quick.log_density, plain.log_density, rtol=1e-10)


MODELS = {
    "mixed": lambda: (tb.NaiveBayes(COLUMNS), *mixed_rows()),
    "tokens": lambda: (
        tb.NaiveBayes(tb.Multinomial()),
        sp.csr_array(np.random.default_rng(7).poisson(0.3, (120, 30)).astype(np.uint8)),
        np.arange(120) % 3,
    ),
    "counts": lambda: (
        tb.NaiveBayes(tb.Poisson(), estimate="map"),
        np.random.default_rng(8).poisson(3.0, (120, 3)).astype(np.float32),
        np.arange(120) % 3,
    ),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [False, True])
def test_all_folds_at_once_or_one_by_one(monkeypatch, name, order):
    model, X, y = MODELS[name]()
    options = {"order": np.random.default_rng(9).random(len(y))} if order else {}
    together = tb.cross_validate(model, X, y, **options)
    monkeypatch.setattr(row_scorer, "_TOGETHER", 0)
    apart = tb.cross_validate(model, X, y, **options)
    np.testing.assert_array_equal(together.log_proba, apart.log_proba)
    np.testing.assert_array_equal(together.log_density, apart.log_density)
    monkeypatch.setattr(
        row_scorer.RowScorer, "_kernel_rows", lambda self, table, counted=False, whole=True: _by_numpy(self)
    )
    plain = tb.cross_validate(model, X, y, **options)
    np.testing.assert_allclose(together.log_proba, plain.log_proba, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(together.log_density, plain.log_density, rtol=1e-10)


def _by_numpy(self):
    from tallybayes import kernels

    return row_scorer.KernelRows([], kernels.Scorer(self.log_prior, []), [])


def test_densities_are_those_of_the_rows():
    """log p(row) of held-out rows includes what the classes have in common."""
    X, y = np.random.default_rng(10).poisson(0.5, (60, 8)), np.arange(60) % 2
    for rows in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float32))):
        found = tb.cross_validate(tb.NaiveBayes(tb.Multinomial(), prior=1), rows, y, folds=np.arange(60) % 5)
        for fold in range(5):
            test = np.arange(60) % 5 == fold
            model = tb.NaiveBayes(tb.Multinomial(), prior=1).fit(rows[~test], y[~test])
            np.testing.assert_allclose(found.log_density[test], model.score_samples(rows[test]), rtol=1e-12)


def test_rows_by_code():
    for n_codes in (1, 3, 255, 256, 300, 70_000):
        codes = np.random.default_rng(11).integers(-1, n_codes, 500)
        found = rows_by_code(codes, n_codes)
        assert len(found) == n_codes
        for code in (0, n_codes // 2, n_codes - 1):
            np.testing.assert_array_equal(found[code], np.flatnonzero(codes == code))
    assert [len(rows) for rows in rows_by_code(np.full(4, -1, np.int32), 2)] == [0, 0]
    np.testing.assert_array_equal(rows_by_code(np.array([1, 0, 1], np.uint64), 2)[1], [0, 2])


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4", "f8"])
def test_sums_over_compressed_rows(dtype):
    rows = SparseRows(np.array([0, 0, 300, 300, 301, 301]), np.arange(301), np.full(301, 100, dtype), 301)
    np.testing.assert_array_equal(rows.sum_rows(rows.data), [0.0, 30_000.0, 0.0, 100.0, 0.0])
    nothing = SparseRows(np.zeros(3, int), np.zeros(0, int), np.zeros(0, dtype), 4)
    np.testing.assert_array_equal(nothing.sum_rows(nothing.data), [0.0, 0.0])


def test_bayes_rule_with_a_prior_for_every_row():
    joint = np.array([[-1.0, -2.0], [-np.inf, -np.inf], [-np.inf, -3.0]])
    prior = np.log([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]])
    found = apply_bayes_rule(joint.copy(), prior)
    np.testing.assert_array_equal(found.impossible, [False, True, False])
    np.testing.assert_allclose(np.exp(found.log_proba[1]), [0.25, 0.75])
    np.testing.assert_allclose(found.log_density, [np.logaddexp(-1.0, -2.0), -np.inf, -3.0])
