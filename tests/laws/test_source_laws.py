"""Every source counts like the array source."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes import testing

KINDS = {
    "string": st.sampled_from(["a", "b", "Zürich", ""]),
    "bool": st.booleans(),
    "int": st.sampled_from([0, 1, 2, 40, -7]),
    "large int": st.sampled_from([0, 10**6, 2**40]),
}
NUMBERS = {
    "float": st.sampled_from([0.0, -1.5, 1e9, 1 / 3, 1e-5, 2.0]),
    "int": st.integers(-100, 100),
}


@st.composite
def tables(draw, kinds, missing=True):
    n = draw(st.integers(1, 8))
    table = {}
    for name, kind in kinds.items():
        cell = st.one_of(kind, kind, st.none()) if missing and draw(st.booleans()) else kind
        table[name] = draw(st.lists(cell, min_size=n, max_size=n))
    return table


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
@given(data=st.data())
def test_labels_and_numbers(kind, number, data):
    table = data.draw(tables({"y": KINDS[kind], "x": KINDS[kind], "u": NUMBERS[number]}))
    n = len(table["y"])
    weight = data.draw(st.one_of(st.none(), st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=n, max_size=n)))

    def factors(name):
        return [
            tb.Factor(name["y"], (), tb.Categorical()),
            tb.Factor((name["y"], name["x"]), (), tb.Categorical()),
            tb.Factor(name["x"], name["y"], tb.Categorical()),
            tb.Factor(name["u"], name["y"], tb.Gaussian()),
            tb.Factor(name["u"], (name["x"], name["y"]), tb.TiedGaussian()),
        ]

    testing.check_sources(table, factors, weight=weight)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [tb.Bernoulli(), tb.Poisson(), tb.Binomial(1), tb.Gaussian(), tb.Binned((0, 0.5, 1))], ids=repr
)
@given(data=st.data())
def test_counts(family, data):
    kind = data.draw(st.sampled_from([st.sampled_from([0, 1]), st.sampled_from([0.0, 1.0]), st.booleans()]))
    table = data.draw(tables({"a": kind, "b": kind, "c": kind}))
    testing.check_sources(table, lambda name: [tb.Factor((name["a"], name["b"]), name["c"], family)])


@pytest.mark.slow
@pytest.mark.parametrize("family", [tb.LogNormal(), tb.Binned((0.5, 2, 7, 1e6))], ids=repr)
@given(data=st.data())
def test_positive_numbers(family, data):
    kind = data.draw(st.sampled_from([st.integers(1, 300), st.sampled_from([0.5, 2.0, 1e9, 1 / 3])]))
    table = data.draw(tables({"a": kind, "b": kind, "c": KINDS["string"]}))
    testing.check_sources(table, lambda name: [tb.Factor((name["a"], name["b"]), name["c"], family)])


@pytest.mark.slow
@pytest.mark.parametrize("family", [tb.Multinomial(), tb.DirichletMultinomial(), tb.MultivariateGaussian()], ids=repr)
@given(data=st.data())
def test_whole_rows(family, data):
    kind = data.draw(st.sampled_from([st.integers(0, 9), st.sampled_from([0.0, 1.0, 2.5])]))
    table = data.draw(tables({"a": kind, "b": kind}, missing=False))
    testing.check_sources(table, lambda name: [tb.Factor((name["a"], name["b"]), (), family)])


@pytest.mark.parametrize(
    "family", [tb.Bernoulli(), tb.Poisson(), tb.Multinomial(), tb.DirichletMultinomial()], ids=repr
)
@given(data=st.data())
def test_sparse_is_dense(family, data):
    n, d = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 5))
    cell = st.sampled_from([0, 0, 0, 1]) if isinstance(family, tb.Bernoulli) else st.sampled_from([0, 0, 0, 1, 2, 9])
    cells = np.reshape(data.draw(st.lists(cell, min_size=n * d, max_size=n * d)), (n, d)).astype(float)
    group = data.draw(st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n))
    weight = data.draw(st.one_of(st.none(), st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=n, max_size=n)))
    factors = [tb.Factor("x", "y", family)]
    expected = tb.count({"x": cells, "y": group}, factors, weight=weight)
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.uint8):
        for make in (scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):
            found = tb.count({"x": make(cells.astype(dtype)), "y": group}, factors, weight=weight)
            testing.assert_statistics_close(
                found, expected, exact=weight is None, law=f"{make.__name__} of {dtype.__name__}"
            )
    doubled = scipy.sparse.coo_array((np.ones(4), ([0, 0, 0, 0], [0, 0, 1, 0])), shape=(1, 2)).tocsr()
    if not isinstance(family, tb.Bernoulli):
        found = tb.count({"x": doubled}, [tb.Factor("x", (), family)])
        testing.assert_statistics_close(
            found, tb.count({"x": doubled.toarray()}, [tb.Factor("x", (), family)]), exact=True
        )


def test_blocks_are_columns():
    rng = np.random.default_rng(0)
    for family, cells in (
        (tb.Gaussian(), rng.normal(size=(50, 2000))),
        (tb.Multinomial(), rng.poisson(0.1, (50, 2000)).astype(float)),
        (tb.MultivariateGaussian(), rng.normal(size=(50, 60))),
    ):
        names = tuple(range(cells.shape[1]))
        whole = tb.count(cells, [tb.Factor(names, (), family)]).statistics[0]
        block = tb.count({"x": cells}, [tb.Factor("x", (), family)]).statistics[0]
        testing.assert_statistics_close(block, whole, exact=True)


def test_a_source_that_differs_is_noticed():
    class Wrong(tb.Categorical):
        def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
            found = super().collect(block, group, n_groups, weight, like=like)
            return found + found if isinstance(block.columns, np.ndarray) else found

    with pytest.raises(AssertionError, match="= arrays"):
        testing.check_sources({"a": [0, 1], "b": [1, 1]}, lambda name: [tb.Factor((name["a"], name["b"]), (), Wrong())])
