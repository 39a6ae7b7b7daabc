"""Trees whose leaves are counts: compiled against NumPy, and what trees may not be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.kernels import forest
from tallybayes.kernels.forest import GrowthRows, LabeledRows, Trees, grow_chains, grow_forest
from tallybayes.kernels.reference import forest as reference
from tallybayes.kernels.reference import forest_growth, forest_math
from tests.examples import examples
from tests.unit.kernels.kernel_cases import _compiled

needs_forests = pytest.mark.skipif(
    not hasattr(_compiled, "Trees"), reason="tallybayes was installed without compiled forests"
)


def rows_of(seed, n=60, d=4, n_classes=3):
    """Rows with missing cells, categorical columns and weights, and their keys."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(seed % 2, rng.integers(2, 9), (n, d)).astype("u1")
    y = np.where(codes[:, 0] > 3, 0, rng.integers(0, n_classes, n)).astype("i4")
    categorical = (rng.random(d) < 0.4).astype("u1")
    keys = rng.integers(0, 2**63, n).astype(np.uint64)
    return GrowthRows(codes, categorical, y, rng.integers(1, 4, n), n_classes, (1, 2, 16)[seed % 3]), keys


def labeled(rows):
    return LabeledRows(rows.codes, rows.y, np.asarray(rows.weight) * 30_000, rows.n_classes)


FOREST = {"n_trees": 4, "columns_tried": 2, "min_leaf": 2, "max_depth": 20, "bag": 0.63}
CHAINS = {"n_chains": 3, "columns_tried": 3, "max_depth": 2, "min_leaf": 3, "rate": 0.15, "strength": 2.0, "ridge": 1.0}
CHAINS |= {"most_trees": 12, "step": 5, "patience": 4}


def results(rows, keys, random_cuts, seed, threads=1, bag=1.0):
    """Everything that can be computed of some rows."""
    trees = grow_forest(rows, keys, seed=seed, first_tree=3, random_cuts=random_cuts, threads=threads, **FOREST)
    counted, groups, strength = labeled(rows), np.array([0, 1, 4]), np.full(4, 0.5)
    counts = trees.count_leaves(counted, threads)
    proba = trees.leaf_proba(counts, strength, threads)
    out = [trees.roots, trees.nodes, trees.masks, counts, proba]
    out.append(trees.mean_of_leaves(counted.codes, groups, proba, threads))
    choices = np.stack([strength, np.arange(4.0) + 0.1])
    out += trees.held_out_proba(counted, groups, counts, choices, keys, 0.63, threads)
    outside = (keys % np.uint64(3)).astype("i4")
    base = np.log(np.full(rows.n_classes, 1 / rows.n_classes)).astype("f4")
    inside = np.stack([np.where(outside == m, 0, counted.weight // 2) for m in range(3)])
    options = {"bag": bag, "seed": seed, "threads": threads, "weights": (counted.weight, inside)}
    trees, scores, loss, grown_sums = grow_chains(rows, outside, base, keys, **options, **CHAINS)
    sums = trees.count_chains(counted, scores, inside, threads)
    np.testing.assert_array_equal(sums, grown_sums)
    factors = np.array([[1, 0.3, 0.2], [0, 0.5, 0.1]])
    out += [trees.roots, trees.nodes, trees.masks, scores.leaves, loss, *sums]
    out.append(trees.held_out_scores(counted, scores, sums, outside, factors, 0.15, 2.0, threads))
    return out


@needs_forests
@examples(40)
@given(st.integers(0, 2**16), st.booleans(), st.integers(2, 5), st.sampled_from([0.5, 1.0]))
def test_compiled_and_numpy_have_the_same_bits(seed, random_cuts, n_classes, bag):
    rows, keys = rows_of(seed, n_classes=n_classes)
    fast = results(rows, keys, random_cuts, seed, bag=bag)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "implementation_for", lambda module: module)
        slow = results(rows, keys, random_cuts, seed, bag=bag)
    for mine, theirs in zip(fast, slow, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@needs_forests
@pytest.mark.parametrize("weight", [1, 2**20])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_chains_have_the_same_bits_with_many_levels_and_large_weights(weight, n_classes):
    rng = np.random.default_rng(weight + n_classes)
    codes = np.stack([rng.integers(0, levels, 700) for levels in (2, 3, 40, 256, 256)], axis=1).astype("u1")
    codes[rng.random(codes.shape) < [0.0, 0.9, 0.9, 0.9, 0.0]] = 7
    y = ((codes[:, 4] > 100).astype("i4") + (codes[:, 2] > 7)) % n_classes
    keys = rng.integers(0, 2**63, len(y)).astype(np.uint64)
    rows = GrowthRows(codes, np.array([0, 1, 0, 1, 0], "u1"), y, rng.integers(1, 4, len(y)) * weight, n_classes, weight)
    base, outside = np.zeros(n_classes, "f4"), (keys % np.uint64(3)).astype("i4")
    options = CHAINS | {"min_leaf": 3 * weight, "max_depth": 6}
    fast = grow_chains(rows, outside, base, keys, bag=0.9, seed=1, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "implementation_for", lambda module: module)
        slow = grow_chains(rows, outside, base, keys, bag=0.9, seed=1, **options)
    assert len(fast[0].nodes) > 100
    np.testing.assert_array_equal(fast[0].nodes, slow[0].nodes)
    np.testing.assert_array_equal(fast[1].leaves, slow[1].leaves)
    np.testing.assert_array_equal(fast[2], slow[2])


@needs_forests
@pytest.mark.parametrize("random_cuts", [True, False])
def test_threads_and_the_order_of_rows_change_no_bit(random_cuts):
    rows, keys = rows_of(4, n=3000, d=12)
    one = results(rows, keys, random_cuts, 7)
    for mine, theirs in zip(one, results(rows, keys, random_cuts, 7, threads=5), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    order = np.random.default_rng(0).permutation(3000)
    shuffled = rows._replace(codes=rows.codes[order], y=rows.y[order], weight=rows.weight[order])
    again = results(shuffled, keys[order], random_cuts, 7)
    for k in (0, 1, 2, 3, 4, 8, 9, 10, 11, 12):
        np.testing.assert_array_equal(one[k], again[k])


def test_a_split_separates_the_classes_and_missing_cells():
    codes = np.repeat([[0], [5], [9]], 4, axis=0).astype("u1")
    for y, n_leaves in ([0, 1, 1], 2), ([1, 0, 1], 3), ([0, 1, 0], 2):
        labels = np.repeat(y, 4).astype("i4")
        rows = GrowthRows(codes, np.zeros(1), labels, np.ones(12), 2, 1)
        options = FOREST | {"n_trees": 1, "min_leaf": 1, "bag": 1.0, "columns_tried": 1}
        trees = grow_forest(rows, np.arange(12, dtype=np.uint64), random_cuts=False, seed=0, **options)
        counts = trees.count_leaves(LabeledRows(codes, labels, np.full(12, 65536), 2))
        assert (counts > 0).sum() == len(counts) <= 3
        assert len(counts) == n_leaves or y == [1, 0, 1]


def test_math_is_accurate():
    x = np.concatenate([np.linspace(-86, 0, 1001), [-1e-30]]).astype("f4")
    np.testing.assert_allclose(forest_math.exp_of_negative(x), np.exp(x.astype(float)), rtol=2e-7)
    x = np.geomspace(1e-30, 1e30, 1001).astype("f4")
    np.testing.assert_allclose(forest_math.log_of_positive(x), np.log(x.astype(float)), rtol=2e-7, atol=1e-7)
    np.testing.assert_allclose(forest_math.natural_log(np.arange(1, 1000)), np.log(np.arange(1, 1000)), rtol=1e-15)


STUMP = {"roots": [0, 3], "nodes": [[0, 2, 1], [-1, 0, 0], [-1, 1, 0]], "masks": [], "n_columns": 1}


@pytest.mark.parametrize("kind", ["compiled", "reference"])
@pytest.mark.parametrize(
    "change",
    [
        {"roots": [0, 2]},
        {"roots": [0, 4]},
        {"roots": [1, 3]},
        {"roots": [0, 0, 3]},
        {"roots": []},
        {"nodes": [[1, 2, 1], [-1, 0, 0], [-1, 1, 0]]},
        {"nodes": [[0, 1, 1], [-1, 0, 0], [-1, 1, 0]]},
        {"nodes": [[0, 3, 1], [-1, 0, 0], [-1, 1, 0]]},
        {"nodes": [[0, 2, 512], [-1, 0, 0], [-1, 1, 0]]},
        {"nodes": [[0, 2, -1], [-1, 0, 0], [-1, 1, 0]]},
        {"nodes": [[0, 2, 1], [-1, 0, 0], [-1, 2, 0]]},
        {"nodes": [[0, 2, 1], [0, 2, 1], [-1, 0, 0]]},
        {"nodes": [[0, -(2**31), 1], [-1, 0, 0], [-1, 1, 0]]},
    ],
)
def test_trees_that_rows_could_leave_are_rejected(kind, change):
    module = reference if kind == "reference" else _compiled
    if not hasattr(module, "Trees"):
        pytest.skip("tallybayes was installed without compiled forests")

    def make(parts):
        nodes = np.array(parts["nodes"], dtype="i4").reshape(-1)
        masks = np.array(parts["masks"], dtype="u1").reshape(-1)
        return module.Trees(np.array(parts["roots"], dtype="i8"), nodes, masks, parts["n_columns"])

    assert make(STUMP).n_leaves == 2
    with pytest.raises(ValueError, match="do not fit"):
        make(STUMP | change)


def test_arrays_that_do_not_fit_are_rejected():
    trees = Trees(np.array([0, 3]), np.array(STUMP["nodes"]), np.zeros((0, 32)), 1)
    good = LabeledRows(np.zeros((2, 1), "u1"), np.zeros(2, "i4"), np.ones(2, "i8"), 2)
    assert trees.count_leaves(good).tolist() == [[2, 0], [0, 0]]
    with pytest.raises(TypeError, match="codes has dtype"):
        trees.count_leaves(good._replace(codes=np.zeros((2, 1))))
    with pytest.raises(ValueError, match="rows"):
        trees.count_leaves(good._replace(y=np.zeros(3, "i4")))
    with pytest.raises(ValueError, match="nodes and masks"):
        Trees(np.array([0, 3]), np.zeros(9), np.zeros((0, 32)), 1)
    rows = GrowthRows(good.codes, np.zeros(1), good.y, np.ones(2), 2, 1)
    for change in {"weight": np.zeros(2)}, {"weight": np.full(2, 2.0**30)}, {"categorical": np.zeros(2)}:
        with pytest.raises(ValueError, match="weight"):
            grow_forest(rows._replace(**change), np.zeros(2, np.uint64), random_cuts=False, seed=0, **FOREST)


@needs_forests
def test_the_compiled_one_looks_for_itself():
    trees = _compiled.Trees(np.array([0, 3]), np.array(STUMP["nodes"], dtype="i4").reshape(-1), np.zeros(0, "u1"), 1)
    codes, y, weight = np.zeros(2, "u1"), np.zeros(2, "i4"), np.ones(2, "i8")
    bad = [(codes[:1], y, weight, 2), (codes, y + 2, weight, 2), (codes, y - 1, weight, 2), (codes, y, weight[:1], 2)]
    for rows in bad:
        with pytest.raises(ValueError, match="do not fit"):
            trees.count_leaves(rows, 1)
    with pytest.raises(ValueError, match="do not fit"):
        trees.leaf_proba(np.zeros(3, "i8"), 2, np.ones(1), 1.0, 1)
    with pytest.raises(ValueError, match="do not fit"):
        trees.mean_of_leaves(codes, np.array([0, 2]), np.zeros(4, "f4"), 2, 2, 1)
    with pytest.raises(ValueError, match="do not fit"):
        trees.count_chains((codes, y, weight, 2), 2, np.zeros(4, "f4"), np.zeros(2, "f4"), np.zeros(4, "i8"), 1)
    sums = (np.zeros(4, "i8"),) * 4
    with pytest.raises(ValueError, match="do not fit"):
        trees.held_out_scores(
            (codes, y, weight, 2), 1, np.zeros(4, "f4"), np.zeros(2, "f4"), sums, y + 1, np.ones(1), 0.1, 1.0, 1.0, 1
        )
    rows = codes, np.zeros(1, "u1"), y, np.ones(2, "i4"), 2, 1
    for change in {0: codes[:1]}, {2: y + 2}, {3: np.zeros(2, "i4")}, {5: 0}:
        parts = tuple(change.get(k, part) for k, part in enumerate(rows))
        with pytest.raises(ValueError, match="do not fit"):
            _compiled.grow_forest(parts, 1, False, 1, 9, np.zeros(2, "u8"), 2**32, 0, 0, 1, 1)


def test_reference_rows_of_a_bag():
    keys = np.arange(10_000, dtype=np.uint64)
    share = forest_math.in_bag(keys[:2000], 3, int(0.63 * 2**32)).mean()
    assert 0.6 < share < 0.66
    assert forest_growth.in_bag is forest_math.in_bag
