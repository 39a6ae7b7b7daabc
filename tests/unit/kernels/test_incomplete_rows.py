"""Rows of which some cells are missing: compiled against NumPy, and both against sums over everything."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.kernels import incomplete_rows
from tallybayes.kernels.incomplete_rows import IncompleteRows
from tallybayes.kernels.reference import incomplete_rows as reference_incomplete_rows
from tests.examples import examples
from tests.unit.kernels.kernel_cases import _compiled


def case(seed, n_rows=6, d=5, by_row=1, zeros=True):
    """Codes with holes, sizes, scopes, the tables of these, and weights."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, d).tolist()
    scopes = [(*rng.permutation(j)[: rng.integers(0, 3)].tolist(), j) for j in range(d)]
    scopes += [tuple(rng.permutation(d)[:2].tolist()) for _ in range(by_row)]
    tables = []
    for number, scope in enumerate(scopes):
        shape = [sizes[j] for j in scope]
        if number < d:
            table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
            table = np.where(rng.random(table.shape) < 0.15 * zeros, 0.0, table)
        else:
            table = rng.normal(-3.0, 4.0, (n_rows, *shape))
        tables.append(table)
    codes = np.stack([rng.integers(-1, size, n_rows) for size in sizes], axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < 0.3] = -1
    codes[-1] = codes[0]
    return codes, sizes, scopes, tables, rng.choice([0.5, 1.0, 2.0], n_rows)


def written_out(codes, sizes, scopes, tables, weight, by_row):
    """Expected cells of factors with a missing member, log likelihoods of them, and posteriors, by every completion."""
    counts = [np.zeros(np.shape(table)) for table in tables]
    logs = np.zeros(len(codes))
    posteriors = [np.zeros((len(codes), size)) for size in sizes]
    for row, cells in enumerate(codes.tolist()):
        choices = [range(size) if cell < 0 else [cell] for cell, size in zip(cells, sizes, strict=True)]
        open_ones = [f for f, scope in enumerate(scopes) if any(cells[j] < 0 for j in scope)]
        where = {f: (row,) if f >= len(scopes) - by_row else () for f in open_ones}
        found = []
        for full in product(*choices):
            places = {f: (*where[f], *(full[j] for j in scopes[f])) for f in open_ones}
            shares = [np.exp(tables[f][p]) if where[f] else tables[f][p] for f, p in places.items()]
            found.append((float(np.prod(shares)), full, places))
        total = sum(share for share, *_ in found)
        with np.errstate(divide="ignore"):
            logs[row] = np.log(total) if open_ones else 0.0
        for share, full, places in found if total else ():
            for f, place in places.items():
                counts[f][place] += weight[row] * share / total
            for j, level in enumerate(full):
                posteriors[j][row, level] += share / total * (cells[j] < 0)
    return counts, logs, posteriors


@pytest.fixture(params=["compiled", "reference"])
def implementation(request, monkeypatch):
    module = _compiled if request.param == "compiled" else reference_incomplete_rows
    if module is None:
        pytest.skip("tallybayes was installed without compiled kernels")
    monkeypatch.setattr(incomplete_rows, "implementation_for", lambda reference: module)


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("seed", range(60))
def test_it_equals_summing_over_all_completions(seed, implementation):
    by_row = seed % 3
    codes, sizes, scopes, tables, weight = case(seed, by_row=by_row)
    order = np.random.default_rng(seed).permutation(len(sizes)).tolist()
    counts, logs, posteriors = written_out(codes, sizes, scopes, tables, weight, by_row)
    rows = IncompleteRows(codes, sizes, scopes, order, by_row=by_row, weight=weight)
    found, value = rows.expected_counts(tables)
    if not np.isneginf(logs).any():
        assert value == pytest.approx(weight @ logs, abs=1e-12)
    else:
        assert value == -np.inf
    for mine, theirs in zip(found, counts, strict=True):
        if not np.isneginf(logs).any():
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    shares, each = rows.posterior(tables, range(len(sizes)))
    np.testing.assert_allclose(each, logs, atol=1e-12)
    for mine, theirs in zip(shares, posteriors, strict=True):
        possible = ~np.isneginf(logs)
        np.testing.assert_allclose(mine[possible], theirs[possible], atol=1e-12)


@pytest.mark.slow_after(8)
@pytest.mark.parametrize("seed", range(30))
def test_what_nothing_is_known_below_is_left_out(seed, implementation):
    codes, sizes, scopes, tables, weight = case(seed, by_row=0, zeros=False)
    d, asked = len(sizes), [seed % 5]
    _, logs, posteriors = written_out(codes, sizes, scopes, tables, weight, 0)
    rows = IncompleteRows(codes, sizes, scopes, range(d), sums_to_one=range(d), requested=asked)
    (found,), each = rows.posterior(tables, asked)
    np.testing.assert_allclose(each, logs, atol=1e-12)
    np.testing.assert_allclose(found, posteriors[asked[0]], atol=1e-12)
    assert rows._rows.instances <= IncompleteRows(codes, sizes, scopes, range(d))._rows.instances


@pytest.mark.slow
@examples(40)
@given(st.integers(0, 2**32 - 1))
def test_compiled_and_numpy_agree(seed):
    if _compiled is None:
        pytest.skip("tallybayes was installed without compiled kernels")
    codes, sizes, scopes, tables, weight = case(seed, n_rows=40, d=14)
    made = []
    for module in (_compiled, reference_incomplete_rows):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(incomplete_rows, "implementation_for", lambda reference, module=module: module)
            made.append(IncompleteRows(codes, sizes, scopes, range(14), by_row=1, weight=weight))
    fast, slow = made
    assert fast._rows.instances == slow._rows.instances
    (mine, value), (theirs, other) = fast.expected_counts(tables), slow.expected_counts(tables)
    assert value == pytest.approx(other, rel=1e-12)
    for one, two in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-11)


def test_products_that_vanish_are_found_in_logarithms(implementation):
    """A class with 400 columns: the product of their probabilities is smaller than any number."""
    d = 401
    rng = np.random.default_rng(0)
    likely = rng.dirichlet(np.ones(50), (d - 1, 2))
    codes = np.concatenate([[[-1]], rng.integers(0, 50, (1, d - 1))], axis=1).astype(np.int32)
    scopes = [(0,), *((0, j) for j in range(1, d))]
    rows = IncompleteRows(codes, [2] + [50] * (d - 1), scopes, range(d))
    joint = np.log(0.5) + np.log(likely[np.arange(d - 1), :, codes[0, 1:]]).sum(axis=0)
    (share,), each = rows.posterior([np.array([0.5, 0.5]), *likely], [0])
    assert each[0] == pytest.approx(np.logaddexp(*joint), rel=1e-12)
    np.testing.assert_allclose(share[0], np.exp(joint - np.logaddexp(*joint)), atol=1e-12)
    chain = [(0,), *((j - 1, j) for j in range(1, 60))]
    ends = np.full((1, 60), -1, dtype=np.int32)
    ends[0, ::2] = 0
    tables = [np.array([1e-30, 1.0]), *(np.array([[1e-30, 1.0], [1e-30, 1.0]]) for _ in range(59))]
    (_, value) = IncompleteRows(ends, [2] * 60, chain, range(60)).expected_counts(tables)
    known = IncompleteRows(np.zeros((1, 60), dtype=np.int32), [2] * 60, chain, range(60)).expected_counts(tables)[1]
    assert known == 0.0  # all is known: nothing is left to say
    assert value == pytest.approx(29 * np.log(1e-30), rel=1e-9)


def test_the_number_of_threads_changes_nothing():
    if _compiled is None:
        pytest.skip("tallybayes was installed without compiled kernels")
    codes, sizes, scopes, tables, weight = case(3, n_rows=20_000, d=12, zeros=False)
    rows = IncompleteRows(codes, sizes, scopes, range(12), by_row=1, weight=weight)
    (one, value), (several, again) = rows.expected_counts(tables, 1), rows.expected_counts(tables, 5)
    assert value == again
    for mine, theirs in zip(one, several, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(*(rows.posterior(tables, range(12), n)[0] for n in (1, 5)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


GOOD = {"codes": np.zeros((2, 2), dtype=np.int32), "sizes": [2, 2], "scopes": [(0,), (0, 1)], "order": [0, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.full((2, 2), 2, dtype=np.int32)}, "an invalid code"),
        ({"codes": np.full((2, 2), -2, dtype=np.int32)}, "an invalid code"),
        ({"sizes": [2]}, "sizes are"),
        ({"sizes": [0, 2]}, "sizes are"),
        ({"scopes": [(0,)]}, "do not cover exactly the variables"),
        ({"scopes": [(0,), (1, 1)]}, "repeats a variable"),
        ({"scopes": [(0,), ()]}, "empty"),
        ({"order": [0, 0]}, "order is"),
        ({"by_row": 3}, "by_row is 3"),
        ({"sums_to_one": [1, 1]}, "sums_to_one"),
        ({"weight": np.ones(3)}, "weight"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        IncompleteRows(**(GOOD | change))


def test_tables_of_another_shape_are_refused():
    rows = IncompleteRows(**GOOD)
    with pytest.raises(ValueError, match=r"table 1 has shape \(2, 3\), expected \(2, 2\)"):
        rows.expected_counts([np.ones(2), np.ones((2, 3))])
    with pytest.raises(TypeError, match="int32"):
        IncompleteRows(**(GOOD | {"codes": np.zeros((2, 2))}))


def test_the_compiled_one_looks_for_itself():
    if _compiled is None:
        pytest.skip("tallybayes was installed without compiled kernels")
    numbers = {"sizes": [2, 2], "members": [0, 0, 1], "ends": [1, 3], "sums_to_one": [-1, -1], "order": [0, 1]}
    good = {name: np.array(found, dtype=np.int64) for name, found in numbers.items()}
    good |= {"codes": np.zeros(4, dtype=np.int32), "by_row": np.zeros(2, np.uint8), "kept": np.ones(2, np.uint8)}
    rows = _compiled.PartlyKnown(**good, weight=None)
    for size in (5, 7):
        with pytest.raises(ValueError, match="do not fit"):
            rows.expect(np.ones(size), np.ones(6), 1)
    with pytest.raises(ValueError, match="do not fit"):
        rows.answer(np.ones(6), np.ones(6), np.ones(3, np.uint8), 1)
    bad = {"sizes": [0, 2], "members": [0, 0, 2], "ends": [1, 4], "order": [1, 1], "sums_to_one": [2, 0]}
    for name, found in bad.items():
        with pytest.raises(ValueError, match="do not fit"):
            _compiled.PartlyKnown(**(good | {name: np.array(found, dtype=np.int64)}), weight=None)
    for change in (
        {"codes": np.full(4, 2, dtype=np.int32)},
        {"codes": np.zeros(3, dtype=np.int32)},
        {"kept": np.ones(1, np.uint8)},
    ):
        with pytest.raises(ValueError, match="do not fit"):
            _compiled.PartlyKnown(**(good | change), weight=None)
