"""A plain labeled fit pays nothing for what it does not use: no copies of the rows, labels encoded once."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import tallybayes as tb
from tallybayes.data import table as tables

N_ROWS = 400_000
RNG = np.random.default_rng(0)
CLASS = RNG.integers(0, 3, N_ROWS)


def peak(work) -> int:
    """How many bytes Python and NumPy held at once beyond those before."""
    work()  # imports and caches
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ROWS = {
    "codes": (tb.Categorical(), RNG.integers(0, 4, (N_ROWS, 2)).astype(np.uint8)),
    "binary": (tb.Bernoulli(), RNG.integers(0, 2, (N_ROWS, 2)).astype(np.uint8)),
    "measured": ("auto", RNG.standard_normal((N_ROWS, 2))),
    "float32 in Fortran's order": ("auto", np.asfortranarray(RNG.standard_normal((N_ROWS, 2)).astype(np.float32))),
    "sparse": ("auto", sp.csr_matrix((np.ones(N_ROWS), np.zeros(N_ROWS, int), np.arange(N_ROWS + 1)))),
    "sparse, unsorted": (
        "auto",
        sp.csr_matrix((np.ones(2 * N_ROWS), np.tile([2, 0], N_ROWS), 2 * np.arange(N_ROWS + 1)), (N_ROWS, 3)),
    ),
}
LABELS = {  # and the bytes a row that encoding may take
    "int64": (CLASS, 0),
    "int32": (CLASS.astype(np.int32), 0),
    "uint8": (CLASS.astype(np.uint8), 0),
    "bool": (CLASS > 0, 0),
    "minus one to one": (CLASS - 1, 1),
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("labels", LABELS)
def test_nothing_is_copied(rows, labels):
    (columns, X), (y, allowed) = ROWS[rows], LABELS[labels]
    model = tb.NaiveBayes(columns)
    assert peak(lambda: model.fit(X, y)) < (allowed + 0.5) * N_ROWS


def test_weights_are_not_copied():
    model, weight = tb.NaiveBayes(), RNG.random(N_ROWS) + 0.1
    assert peak(lambda: model.fit(ROWS["measured"][1], CLASS, weight)) < 0.5 * N_ROWS


@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.NearestClassMean()])
@pytest.mark.parametrize("y", [CLASS[:300], CLASS[:300].astype(str), (CLASS[:300] - 1).tolist()])
def test_labels_are_encoded_once(model, y, monkeypatch):
    asked = []

    def encode(values, name, *, ordered=False):
        asked.append(name)
        return before(values, name, ordered=ordered)

    before = tables.encode
    monkeypatch.setattr(tables, "encode", encode)
    model.fit(ROWS["measured"][1][:300], y)
    assert asked == ["class"]
