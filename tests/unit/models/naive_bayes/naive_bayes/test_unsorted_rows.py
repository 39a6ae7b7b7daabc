"""Sparse rows in any order: the same models and answers as sorted ones, without sorting."""

import numpy as np
import pytest
import scipy.sparse as sp

import tallybayes as tb


def shuffled(matrix, rng):
    """The same matrix, the entries of every row in another order."""
    out = matrix.copy()
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        order = start + rng.permutation(stop - start)
        out.indices[start:stop], out.data[start:stop] = matrix.indices[order], matrix.data[order]
    out.has_sorted_indices = False
    return out


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", [tb.Multinomial(), tb.Bernoulli(), tb.Poisson(), tb.DirichletMultinomial()])
def test_order_changes_nothing(family):
    rng = np.random.default_rng(3)
    X = sp.csr_matrix(np.where(rng.random((500, 40)) < 0.3, rng.integers(1, 5, (500, 40)), 0))
    X.data = np.ones_like(X.data) if isinstance(family, tb.Bernoulli) else X.data
    y, mixed = rng.integers(0, 3, 500), shuffled(X, rng)
    before = mixed.indices.copy()
    assert not mixed.has_sorted_indices
    one, other = tb.NaiveBayes(family).fit(X, y), tb.NaiveBayes(family).fit(mixed, y)
    assert one.tally_.isclose(other.tally_, 1e-12)
    assert (one.predict(X) == other.predict(mixed)).all()
    assert np.allclose(one.predict_log_proba(X), one.predict_log_proba(mixed), rtol=1e-12, atol=1e-12)
    assert np.allclose(one.score_samples(X), one.score_samples(mixed), rtol=1e-12)
    assert (mixed.indices == before).all()
    for held_out in (tb.cross_validate, tb.leave_one_out):
        scores = [held_out(one, rows, y).log_proba for rows in (X, mixed)]
        assert np.allclose(*scores, rtol=1e-12, atol=1e-12)


def test_cells_stored_twice_are_added_whatever_scipy_believes():
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    X.has_sorted_indices = X.has_canonical_format = True
    counts = tb.fit_distribution(X, tb.Multinomial()).statistics
    assert counts.total.tolist() == [2.0, 0.0, 5.0]
    assert len(X.data) == 3  # the user's own is as it was
