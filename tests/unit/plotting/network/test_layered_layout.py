"""Layered layout of boxes and edges."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from tallybayes.plotting.network.layered_layout import lay_out
from tests.unit.plotting.network_pictures import random_graph

GRAPHS = {
    "one": {"a": []},
    "two apart": {"a": [], "b": []},
    "chain": {k: [k - 1] if k else [] for k in range(6)},
    "every pair": {k: list(range(k)) for k in range(7)},
    "wide star": {k: [0] if k else [] for k in range(40)},
    "many roots": {**{k: [] for k in range(9)}, 9: list(range(9))},
    "a few": random_graph(12, 1),
    "as many as ALARM": random_graph(37, 2, 2),
    "crowded": random_graph(60, 3, 4),
}


def drawn(name):
    parents = GRAPHS[name]
    rng = np.random.default_rng(len(name))
    sizes = {node: (float(rng.uniform(20, 150)), float(rng.uniform(12, 90))) for node in parents}
    return parents, sizes, lay_out(parents, sizes)


def edges_of(sizes, layout, node):
    (x, y), (width, height) = layout.centers[node], sizes[node]
    return x - width / 2, x + width / 2, y - height / 2, y + height / 2


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_do_not_overlap_and_are_below_their_parents(name):
    parents, sizes, layout = drawn(name)
    boxes = {node: edges_of(sizes, layout, node) for node in parents}
    for first, second in combinations(boxes.values(), 2):
        apart = first[1] + 5 <= second[0] or second[1] + 5 <= first[0] or first[3] <= second[2] or second[3] <= first[2]
        assert apart
    for node, above in parents.items():
        assert all(boxes[parent][3] < boxes[node][2] for parent in above)
    left, right, top, bottom = np.transpose(list(boxes.values()))
    assert left.min() >= -1e-9
    assert top.min() >= -1e-9
    assert right.max() <= layout.width + 1e-9
    assert bottom.max() <= layout.height + 1e-9


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_cross_no_box(name):
    parents, sizes, layout = drawn(name)
    assert set(layout.routes) == {(parent, node) for node, above in parents.items() for parent in above}
    boxes = {node: edges_of(sizes, layout, node) for node in parents}
    for (parent, child), route in layout.routes.items():
        start, end = boxes[parent], boxes[child]
        assert route[0] == pytest.approx((layout.centers[parent][0], start[3]))
        assert start[0] <= route[0][0] <= start[1]
        assert route[-1][1] == pytest.approx(end[2])
        assert end[0] <= route[-1][0] <= end[1]
        assert all(y <= next_y + 1e-9 for (_, y), (_, next_y) in pairwise(route))
        for place, ((x, y), (next_x, next_y)) in enumerate(pairwise(route)):
            for left, right, top, bottom in boxes.values():
                beside = next_y <= top + 1e-9 or y >= bottom - 1e-9  # the curve stays between its ends in height
                if place % 2 == 0:
                    assert x == next_x
                    beside |= x <= left or x >= right
                assert beside


def test_long_edges_avoid_boxes():
    layout = lay_out({"a": [], "b": ["a"], "c": ["a", "b"]}, dict.fromkeys("abc", (80.0, 20.0)))
    passing = [x for x, y in layout.routes["a", "c"] if abs(y - layout.centers["b"][1]) <= 10]
    assert len(passing) == 2
    assert min(abs(x - layout.centers["b"][0]) for x in passing) >= 40 + 8


def test_edges_do_not_cross_unnecessarily():
    pairs = {**{f"parent {k}": [] for k in range(6)}, **{f"child {k}": [f"parent {5 - k}"] for k in range(6)}}
    tree = {k: [(k - 1) // 2] if k else [] for k in range(31)}
    rng = np.random.default_rng(0)
    shuffled = {0: []} | {
        int(k): tree[int(k)] for k in sorted(range(1, 31), key=lambda k: (k.bit_length(), rng.random()))
    }
    for parents in (pairs, shuffled):
        layout = lay_out(parents, dict.fromkeys(parents, (30.0, 12.0)))
        ways = list(layout.routes.values())
        for first, second in combinations(ways, 2):
            for (a, b), (c, d) in zip(pairwise(first), pairwise(second), strict=False):
                if a[1] == c[1]:
                    assert (a[0] - c[0]) * (b[0] - d[0]) >= -1e-6


def test_single_child_is_centered_and_star_is_wrapped():
    layout = lay_out(GRAPHS["chain"], dict.fromkeys(range(6), (30.0, 12.0)))
    assert np.ptp([x for x, _ in layout.centers.values()]) < 1e-6
    layout = lay_out(GRAPHS["wide star"], dict.fromkeys(range(40), (30.0, 12.0)))
    assert layout.width < 14 * 46
    root = layout.centers[0][0]
    assert abs(root - layout.width / 2) < 0.25 * layout.width


def test_layout_is_reproducible():
    assert drawn("crowded")[2] == drawn("crowded")[2]
