"""Clique trees: cliques that hold every scope, and messages that equal sums over everything."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference import clique_tree
from tallybayes.models.network.inference.clique_tree import CliqueTree, Likelihood
from tallybayes.models.network.inference.triangulation import find_cliques, find_order, n_cells
from tests.examples import examples

scopes = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True), min_size=1, max_size=10)


@pytest.mark.slow
@examples(200)
@given(scopes, st.lists(st.integers(1, 4), min_size=8, max_size=8))
def test_cliques_form_a_tree_that_contains_every_scope(wanted, sizes):
    cliques, above = find_cliques(sizes, wanted)
    for scope in wanted:
        assert any(set(scope) <= clique for clique in cliques)
    for first, second in permutations(cliques, 2):
        assert not first <= second
    for variable in range(8):  # the cliques of a variable hang together: one of them is on top
        tops = [
            k for k, c in enumerate(cliques) if variable in c and (above[k] < 0 or variable not in cliques[above[k]])
        ]
        assert len(tops) == 1
    for place in range(len(cliques)):
        seen = set()
        while place >= 0:
            assert place not in seen
            seen.add(place)
            place = above[place]


@pytest.mark.slow
def test_large_structures_are_triangulated():
    n = 1500
    rng = np.random.default_rng(0)
    chain = [(k, *(int(j) for j in rng.integers(max(0, k - 6), k, 2))) if k else (0,) for k in range(n)]
    cliques, _ = find_cliques([2] * n, [tuple(set(scope)) for scope in chain])
    assert max(map(len, cliques)) <= 8
    assert len(find_cliques([2] * n, [(0, k) for k in range(1, n)])[0]) == n - 1


def _grid(n_rows, n_columns):
    above = [(k - n_columns,) if k >= n_columns else () for k in range(n_rows * n_columns)]
    return [(k, *up, *((k - 1,) if k % n_columns else ())) for k, up in enumerate(above)]


@pytest.mark.slow
def test_sweep_of_a_grid():
    """The least fill and the smallest clique need 1.2 · 10⁹ cells, which do not fit into memory."""
    cliques, above = find_cliques([2] * 340, _grid(17, 20))
    assert sum(n_cells(clique, [2] * 340) for clique in cliques) < 8e7
    assert (cliques, above) == find_cliques([2] * 340, _grid(17, 20))


def test_elimination_order_is_that_of_the_cliques():
    rng = np.random.default_rng(1)
    for n in (1, 7, 40):
        sizes = rng.integers(2, 6, n).tolist()
        wanted = [tuple({k, *rng.integers(0, k + 1, 3).tolist()}) for k in range(n)]
        order = find_order(sizes, wanted)
        assert sorted(order) == list(range(n))
        later = {variable: set() for variable in order}
        when = {variable: place for place, variable in enumerate(order)}
        for scope in wanted:
            for variable in scope:
                later[variable] |= {other for other in scope if when[other] > when[variable]}
        for variable in order:
            if later[variable]:
                first = min(later[variable], key=when.get)
                later[first] |= later[variable] - {first}
        largest = max(n_cells(clique, sizes) for clique in find_cliques(sizes, wanted)[0])
        assert max(n_cells({v, *found}, sizes) for v, found in later.items()) == largest
    assert sorted(find_order([3] * 30, [tuple(range(k, k + 20)) for k in range(10)], max_cells=9)) == list(range(30))


@pytest.mark.slow
def test_triangulation_stops_at_a_too_large_clique():
    everyone = [tuple(range(2000))]
    assert find_cliques([2] * 2000, everyone, max_cells=1e9) == ([frozenset(range(2000))], [-1])
    with pytest.raises(
        TooLargeError, match=r"about 10\^5\d\d PiB, .* these 2000 nodes .* of about 10\^60\d cells: 0, 1"
    ):
        CliqueTree([2] * 2000, everyone)
    rng = np.random.default_rng(0)
    tangled = [(k, *rng.choice(k, 3, replace=False).tolist()) if k > 3 else (k,) for k in range(4000)]
    cliques, above = find_cliques([3] * 4000, tangled, max_cells=1e9)
    assert above == [-1]
    assert 19 <= len(cliques[0]) < 30  # the first with more than 10⁹ cells


def _case(seed, n_rows):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    sizes = rng.integers(1, 4, n).tolist()
    wanted = [tuple(rng.permutation(n)[: rng.integers(1, min(n, 3) + 1)].tolist()) for _ in range(n + 1)]
    tables = [rng.random([sizes[v] for v in scope]) for scope in wanted]
    tables = [np.where(rng.random(table.shape) < 0.15, 0.0, table) for table in tables]
    likelihoods = []
    for variable in range(n):
        if rng.random() < 0.6:
            table = rng.random((sizes[variable], n_rows if rng.random() < 0.7 else 1))
            table = np.where(rng.random(table.shape) < 0.2, 0.0, table)
            logarithmic = bool(rng.random() < 0.3)
            with np.errstate(divide="ignore"):
                likelihoods.append(Likelihood((variable,), np.log(table) if logarithmic else table, logarithmic))
    joint = np.ones((*sizes, n_rows))
    parts = [(scope, table[..., None]) for scope, table in zip(wanted, tables, strict=True)]
    parts += [(item.scope, np.exp(item.table) if item.logarithmic else item.table) for item in likelihoods]
    for scope, table in parts:
        turned = table.transpose(*np.argsort(scope), len(scope))
        joint = joint * turned.reshape([sizes[v] if v in scope else 1 for v in range(n)] + [-1])
    return sizes, wanted, tables, likelihoods, joint


@pytest.mark.slow
@examples(150)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_propagation_equals_enumeration(seed, by_logarithms):
    n_rows = 3
    sizes, wanted, tables, likelihoods, joint = _case(seed, n_rows)
    everything = tuple(range(len(sizes)))
    total = joint.sum(axis=everything)
    tree = CliqueTree(sizes, wanted)
    potentials = tree.load(tables)
    kept = [table.copy() for table in potentials]
    smallest = clique_tree._SMALLEST
    try:
        clique_tree._SMALLEST = np.inf if by_logarithms else smallest  # every row takes the other way
        found = tree.propagate(potentials, likelihoods, n_rows)
        alone = tree.propagate(potentials, likelihoods, n_rows, down=False)
    finally:
        clique_tree._SMALLEST = smallest
    for before, after in zip(kept, potentials, strict=True):
        np.testing.assert_array_equal(before, after)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found.log_likelihood, np.log(total), atol=1e-10)
    np.testing.assert_allclose(alone.log_likelihood, found.log_likelihood, atol=1e-12)
    possible = total > 0
    for scope in [*wanted, *((v,) for v in everything)]:
        summed = joint.sum(axis=tuple(v for v in everything if v not in scope))
        expected = summed.transpose(*np.argsort(np.argsort(scope)), len(scope)) / np.where(possible, total, 1.0)
        np.testing.assert_allclose(found.marginal(scope)[..., possible], expected[..., possible], atol=1e-12)


def test_without_evidence_tables_have_one_row():
    tree = CliqueTree([2, 2], [(0,), (0, 1)])
    found = tree.propagate(tree.load([np.array([0.5, 0.5]), np.eye(2)]), [], 1000)
    assert all(table.shape[-1] == 1 for table in found.cliques)
    assert found.marginal((1,)).shape == (2, 1000)
    np.testing.assert_array_equal(found.log_likelihood, np.zeros(1000))


def test_too_large_trees_raise_with_names(monkeypatch):
    monkeypatch.setattr(clique_tree, "available_memory", lambda: 8 * 5 * 1000 - 1)
    with pytest.raises(
        TooLargeError, match=r"39.1 KiB, but 39.1 KiB are free: these 3 nodes .* 1e\+03 cells: 'c', 'a', 'b'"
    ):
        CliqueTree([10, 5, 20], [(0, 1, 2)], ["a", "b", "c"])
    monkeypatch.setattr(clique_tree, "available_memory", lambda: 8 * 5 * 1000)
    CliqueTree([10, 5, 20], [(0, 1, 2)], ["a", "b", "c"])


def test_variables_without_common_clique_raise():
    tree = CliqueTree([2, 2, 2], [(0, 1), (1, 2)])
    with pytest.raises(KeyError, match=r"no clique contains the variables \(0, 2\)"):
        tree.home((0, 2))
