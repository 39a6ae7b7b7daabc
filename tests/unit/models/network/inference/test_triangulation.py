"""Triangulation: eliminations whose cliques contain every scope, and their sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference import triangulation
from tallybayes.models.network.inference.triangulation import eliminate, find_order, n_cells
from tests.examples import examples

scopes = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True), min_size=1, max_size=10)


def _maximal(elimination):
    cliques = []
    for _, clique in elimination:
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
    return cliques


@pytest.mark.slow
@examples(200)
@given(scopes, st.lists(st.integers(1, 4), min_size=8, max_size=8), st.sets(st.integers(0, 7)))
def test_cliques_contain_every_scope_and_have_running_intersection(wanted, sizes, last):
    elimination = eliminate(sizes, wanted, last=last)
    cliques = dict(elimination)
    assert sorted(cliques) == list(range(8))
    assert {variable for variable, _ in elimination[8 - len(last) :]} == last
    for scope in wanted:
        assert any(set(scope) <= clique for clique in cliques.values())
    when = {variable: place for place, (variable, _) in enumerate(elimination)}
    for variable, clique in elimination:
        others = clique - {variable}
        if others:  # the next of them is eliminated in a clique that contains all others
            upper = min(others, key=when.get)
            assert when[upper] > when[variable]
            assert others <= cliques[upper]


@pytest.mark.slow
def test_large_structures_are_triangulated():
    n = 1500
    rng = np.random.default_rng(0)
    chain = [(k, *(int(j) for j in rng.integers(max(0, k - 6), k, 2))) if k else (0,) for k in range(n)]
    elimination = eliminate([2] * n, [tuple(set(scope)) for scope in chain])
    assert max(len(clique) for _, clique in elimination) <= 8
    assert len(_maximal(eliminate([2] * n, [(0, k) for k in range(1, n)]))) == n - 1


def _grid(n_rows, n_columns):
    above = [(k - n_columns,) if k >= n_columns else () for k in range(n_rows * n_columns)]
    return [(k, *up, *((k - 1,) if k % n_columns else ())) for k, up in enumerate(above)]


@pytest.mark.slow
def test_sweep_of_a_grid():
    """The least fill and the smallest clique need 1.2 · 10⁹ cells, which do not fit into memory."""
    elimination = eliminate([2] * 340, _grid(17, 20))
    assert sum(n_cells(clique, [2] * 340) for clique in _maximal(elimination)) < 8e7
    assert elimination == eliminate([2] * 340, _grid(17, 20))


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
        assert {v: frozenset({v, *found}) for v, found in later.items()} == dict(eliminate(sizes, wanted))


def test_orders_of_too_large_networks_have_all_variables(monkeypatch):
    monkeypatch.setattr(triangulation, "available_memory", lambda: 8 * 9)
    wanted = [tuple(range(k, k + 20)) for k in range(10)]
    assert sorted(find_order([3] * 30, wanted)) == list(range(30))
    with pytest.raises(TooLargeError):
        find_order([3] * 30, wanted, range(30))


@pytest.mark.slow
def test_triangulation_stops_at_a_too_large_clique():
    everyone = [tuple(range(2000))]
    assert eliminate([2] * 2000, everyone, max_cells=1e9) == [(0, frozenset(range(2000)))]
    with pytest.raises(
        TooLargeError, match=r"about 10\^5\d\d PiB, .* these 2000 nodes .* of about 10\^60\d cells: 0, 1"
    ):
        find_order([2] * 2000, everyone, range(2000))
    rng = np.random.default_rng(0)
    tangled = [(k, *rng.choice(k, 3, replace=False).tolist()) if k > 3 else (k,) for k in range(4000)]
    _, largest = eliminate([3] * 4000, tangled, max_cells=1e9)[-1]
    assert 19 <= len(largest) < 30  # the first with more than 10⁹ cells


def test_too_large_networks_raise_with_names(monkeypatch):
    needed = 16 * (10 * 5 * 20 + 5 * 20 + 20)
    monkeypatch.setattr(triangulation, "available_memory", lambda: needed - 1)
    with pytest.raises(TooLargeError, match=r"KiB are free: these 3 nodes .* 1e\+03 cells: 'c', 'a', 'b'"):
        find_order([10, 5, 20], [(0, 1, 2)], ["a", "b", "c"])
    monkeypatch.setattr(triangulation, "available_memory", lambda: 16 * 10_000)
    find_order([10, 5, 20], [(0, 1, 2)], ["a", "b", "c"])
