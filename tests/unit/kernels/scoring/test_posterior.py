"""log p(class | row) and log p(row): accurate, the same for chosen rows, and the same whoever scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from tallybayes.errors import CellError
from tests.examples import examples
from tests.unit.kernels.kernel_cases import layouts, run, seeds
from tests.unit.kernels.scoring_cases import CLASSES, KINDS, make, scorer, starts

drawn_examples = examples(30)


def bayes(tier: str, joint: np.ndarray, log_prior: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Bayes' rule on a table of log p(class, row)."""
    n, k = joint.shape
    prior = np.zeros(k) if log_prior is None else log_prior
    found: tuple[np.ndarray, np.ndarray] = scorer(tier, np.zeros(k), [("terms",)]).posterior([joint], n, prior)
    return found


@pytest.mark.slow_after(1)
@drawn_examples
@given(
    seed=seeds,
    n=st.integers(0, 200),
    d=st.integers(0, 70),
    n_classes=st.sampled_from(CLASSES),
    layout=layouts,
    kinds=st.lists(st.sampled_from(KINDS), max_size=3),
)
def test_same_as_reference(tier: str, seed: int, n: int, d: int, n_classes: int, layout: str, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    cases = [make(kind, rng, n, d, n_classes, layout) for kind in kinds]
    start, factors, blocks = starts(rng, n_classes), [case.factor for case in cases], [case.block for case in cases]
    prior = np.log(rng.dirichlet(np.ones(n_classes)))
    compiled, reference = (scorer(name, start, factors) for name in (tier, "reference"))
    tolerance = {"rtol": 1e-12, "atol": 1e-14 * (1.0 + 30.0 * max(1, len(kinds)) * max(1, d))}
    whole = compiled.posterior(blocks, n, prior)
    for found, expected in zip(whole, reference.posterior(blocks, n, prior), strict=True):
        np.testing.assert_allclose(found, expected, **tolerance)
    rows = np.flatnonzero(rng.random(n) < 0.4)
    for found, expected in zip(compiled.posterior(blocks, n, prior, rows), whole, strict=True):
        np.testing.assert_array_equal(found[rows], expected[rows])
        assert np.isnan(np.delete(found, rows, axis=0)).all()
    part = rng.integers(-1, 2, n)
    proba, density = np.full((n, n_classes), 7.0), np.full(n, 7.0)
    run(tier, "posterior_by_part", [compiled, compiled], blocks, n, part, [prior, prior], proba, density)
    for found, expected in zip((proba, density), whole, strict=True):
        np.testing.assert_array_equal(found[part >= 0], expected[part >= 0])
        assert (found[part < 0] == 7.0).all()


@pytest.mark.slow_after(9)
@pytest.mark.parametrize("n_classes", [1, 2, 3, 5, 8, 9, 20])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 1.0, 10.0, 100.0, 1000.0])
def test_as_accurate_as_the_differences_of_scores(tier: str, n_classes: int, scale: float) -> None:
    """Against twice the digits. Scores are whole multiples of 2⁻²⁰, so that their differences are exact."""
    rng = np.random.default_rng(1)
    joint = np.round(rng.normal(size=(3000, n_classes)) * max(scale, 2.0**-18) * 2**20) / 2**20 - 50_000.0
    log_proba, log_density = bayes(tier, joint)
    distance = joint.astype(np.longdouble) - joint.max(axis=1, keepdims=True)
    share = np.exp(distance)
    share[np.arange(len(joint)), joint.argmax(axis=1)] = 0.0
    log_total = np.log1p(share.sum(axis=1))
    expected = distance - log_total[:, None]
    sure = np.abs(expected) > 1e-300  # smaller shares of other classes are as good as none
    error = np.abs(log_proba - expected)[sure] / np.abs(expected[sure])
    assert error.max(initial=0.0) < 1e-15
    np.testing.assert_allclose(log_density, (joint.max(axis=1) + log_total).astype(float), rtol=3e-16)


def test_as_scipy_has_it(tier: str) -> None:
    joint = np.random.default_rng(2).normal(size=(1000, 7)) * 20.0
    log_proba, log_density = bayes(tier, joint)
    np.testing.assert_allclose(log_density, logsumexp(joint, axis=1), rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1.0, rtol=2e-15)


def test_all_but_certain_rows_keep_their_digits(tier: str) -> None:
    log_proba, _ = bayes(tier, np.array([[0.0, -50.0], [-600.0, 0.0], [0.0, -709.0], [0.0, -np.inf]]))
    np.testing.assert_allclose(log_proba[:, 0], [-np.exp(-50.0), -600.0, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(log_proba[:, 1], [-50.0, -np.exp(-600.0), -709.0, -np.inf], rtol=1e-15)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_impossible_rows_have_the_prior(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    joint = np.full((20, 3), -np.inf)
    joint[::2, 1] = -5.0
    log_proba, log_density = bayes(name, joint, np.log([2.0, 1.0, 1.0]))
    np.testing.assert_allclose(np.exp(log_proba[1::2]), np.tile([0.5, 0.25, 0.25], (10, 1)), rtol=1e-15)
    np.testing.assert_array_equal(log_density[1::2], -np.inf)
    np.testing.assert_array_equal(np.exp(log_proba[::2]), np.tile([0.0, 1.0, 0.0], (10, 1)))
    np.testing.assert_array_equal(log_density[::2], -5.0)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
@pytest.mark.parametrize("n_classes", [1, 4])
def test_a_nan_makes_its_row_nan_and_no_other(implementation: str, tier: str, n_classes: int) -> None:
    joint = np.zeros((30, n_classes))
    joint[7, -1] = joint[20, 0] = np.nan
    found = bayes(tier if implementation == "compiled" else "reference", joint)
    lost = np.isin(np.arange(30), [7, 20])
    assert (np.isnan(found[0]) == lost[:, None]).all()
    assert (np.isnan(found[1]) == lost).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [2, 5, 20])
def test_same_bits_for_any_threads(tier: str, kind: str, n_classes: int) -> None:
    rng = np.random.default_rng(3)
    n = 9000  # more than one stretch of rows
    case = make(kind, rng, n, 50, n_classes, "rows")
    made = [scorer(tier, starts(rng, n_classes), [case.factor]) for _ in range(3)]
    prior, rows, part = np.zeros(n_classes), rng.permutation(n)[: n // 2], rng.integers(0, 3, n)
    alone = made[0].posterior([case.block], n, prior, rows, threads=1)
    by_part = np.empty((n, n_classes)), np.empty(n)
    run(tier, "posterior_by_part", made, [case.block], n, part, np.zeros((3, n_classes)), *by_part, threads=1)
    for threads in (0, 2, 5):
        for found, expected in zip(
            made[0].posterior([case.block], n, prior, rows, threads=threads), alone, strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        again = np.empty((n, n_classes)), np.empty(n)
        run(tier, "posterior_by_part", made, [case.block], n, part, np.zeros((3, n_classes)), *again, threads=threads)
        for found, expected in zip(again, by_part, strict=True):
            np.testing.assert_array_equal(found, expected)
    for number, one in enumerate(made):
        here = np.flatnonzero(part == number)
        for found, expected in zip(by_part, one.posterior([case.block], n, prior, here), strict=True):
            np.testing.assert_array_equal(found[here], expected[here])


def test_in_place(tier: str) -> None:
    joint = np.random.default_rng(4).normal(size=(5000, 5))
    expected = bayes(tier, joint)[0]
    made = scorer(tier, np.zeros(5), [("terms",)])
    found, _ = made.posterior([joint], 5000, np.zeros(5), log_proba=joint)
    assert found is joint
    np.testing.assert_array_equal(joint, expected)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
@pytest.mark.parametrize("layout", ["rows", "columns", "list"])
def test_a_refused_cell_has_the_number_of_its_row(implementation: str, tier: str, layout: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    made = scorer(name, np.zeros(2), [("linear", np.ones((2, 2)), np.ones((2, 2)), "binary")])
    X = np.zeros((300, 2))
    X[[40, 150, 250], [0, 1, 0]] = 2.0
    block: Any = {"rows": X, "columns": np.asfortranarray(X), "list": list(X.T.copy())}[layout]
    rows = np.concatenate([np.arange(100, 300, 2), np.arange(41, 50)])
    with pytest.raises(CellError) as caught:
        made.posterior([block], 300, np.zeros(2), rows)
    assert (caught.value.row, caught.value.column) == (150, 1)
    made.posterior([block], 300, np.zeros(2), np.arange(41, 150))  # bad rows that are not asked for are no matter
    part = np.full(300, -1)
    part[200:] = 0
    with pytest.raises(CellError) as caught:
        run(name, "posterior_by_part", [made], [block], 300, part, np.zeros((1, 2)), np.empty((300, 2)), np.empty(300))
    assert (caught.value.row, caught.value.column) == (250, 0)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_entries_of_other_rows_are_no_matter(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    made = scorer(name, np.zeros(2), [("sparse", -np.ones((3, 2)), "count")])
    block = (np.array([0, 1, 2, 3]), np.array([0, 7, 2]), np.array([1.0, 1.0, 0.5]))
    made.posterior([block], 3, np.zeros(2), np.array([0]))
    with pytest.raises(IndexError, match="row 1 has column index 7"):
        made.posterior([block], 3, np.zeros(2), np.array([0, 1]))
    with pytest.raises(CellError) as caught:
        made.posterior([block], 3, np.zeros(2), np.array([0, 2]))
    assert caught.value.row == 2


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_arguments_that_do_not_fit(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    made = scorer(name, np.zeros(2), [("terms",)])
    X, prior = np.zeros((4, 2)), np.zeros(2)
    frozen = np.zeros((4, 2))
    frozen.flags.writeable = False
    for options in (
        {"log_prior": np.zeros(3)},
        {"log_proba": np.zeros((3, 2))},
        {"log_proba": np.zeros((4, 2), np.float32)},
        {"log_proba": np.zeros((2, 4)).T},
        {"log_proba": frozen},
        {"log_density": np.zeros(5)},
        {"n_rows": 5},
        {"n_rows": -1},
        {"threads": -1},
    ):
        with pytest.raises(ValueError, match=r"log_|rows|threads"):
            made.posterior([X], **({"n_rows": 4, "log_prior": prior} | options))
    for rows in (np.array([0, 4]), np.array([-1])):
        with pytest.raises(IndexError):
            made.posterior([X], 4, prior, rows)
    with pytest.raises(TypeError):
        made.posterior([X], 4, prior, np.array([0.0]))
    with pytest.raises(TypeError):
        made.posterior([X.astype(np.float32)], 4, prior)
    with pytest.raises(ValueError, match="columns"):
        made.posterior([np.zeros((4, 3))], 4, prior)

    out = np.zeros((4, 2)), np.zeros(4)
    with pytest.raises(IndexError):
        run(name, "posterior_by_part", [made], [X], 4, np.array([0, 1, 0, 0]), np.zeros((1, 2)), *out)
    other = scorer(name, np.zeros(2), [])
    for scorers, part, priors in (
        ([], np.zeros(4, int), np.zeros((0, 2))),
        ([made, other], np.zeros(4, int), np.zeros((2, 2))),
        ([made], np.zeros(3, int), np.zeros((1, 2))),
        ([made], np.zeros(4), np.zeros((1, 2))),
        ([made], np.zeros(4, int), np.zeros((2, 2))),
    ):
        with pytest.raises(ValueError, match=r"scorers|part|log_prior"):
            run(name, "posterior_by_part", scorers, [X], 4, part, priors, *out)


def test_left_out_over_its_whole_range(tier: str) -> None:
    rng = np.random.default_rng(5)
    t = np.concatenate(
        [rng.uniform(0, 1, 20_000), 10 ** rng.uniform(-30, -1, 20_000), 1 - 10 ** rng.uniform(-4, 0, 20_000)]
    )
    x = np.sqrt(t)[:, None]
    found = scorer(tier, [0.0], [("left_out", 0, [0.0], [1.0], [1.0], [0.0])]).joint([x], len(x))[:, 0]
    expected = np.log1p(-(x[:, 0] ** 2).astype(np.longdouble))
    np.testing.assert_allclose(found, expected.astype(float), rtol=1e-15)


@pytest.mark.parametrize("implementation", ["reference", "compiled"])
def test_left_out_says_where_too_little_is_left(implementation: str, tier: str) -> None:
    name = tier if implementation == "compiled" else "reference"
    made = scorer(name, np.zeros(3), [("left_out", 1, [0.0, 1e9], [1.0, 0.0], [2.0, 5.0], [3.0, 4.0])])
    X = np.array([[0.5, 1.0], [np.nan, 1.0], [np.nan, np.nan], [1.0, 1.0], [7.0, 1.0], [np.sqrt(1 - 9e-6), 1.0]])
    found = made.joint([X], 6)
    np.testing.assert_array_equal(found[:, [0, 2]], 0.0)
    expected = [7.0 + 2 * np.log(0.75), 4.0, 0.0, np.nan, np.nan, np.nan]
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-15)


def test_left_out_far_from_zero(tier: str) -> None:
    rng = np.random.default_rng(6)
    X, mean = rng.integers(-8, 8, (500, 10)) / 4.0, rng.integers(-8, 8, 10) / 4.0
    tail = (rng.gamma(2.0, size=10) / 500.0, np.full(10, 3.0), rng.normal(size=10))
    near = scorer(tier, np.zeros(2), [("left_out", 1, mean, *tail)]).joint([X], 500)
    far = scorer(tier, np.zeros(2), [("left_out", 1, mean + 1e9, *tail)]).joint([X + 1e9], 500)
    np.testing.assert_array_equal(far, near)


@pytest.mark.parametrize(
    "factor",
    [
        ("left_out", 2, [0.0], [1.0], [1.0], [0.0]),
        ("left_out", 0, [0.0], [-1.0], [1.0], [0.0]),
        ("left_out", 0, [0.0, 1.0], [1.0], [1.0], [0.0]),
        ("left_out", 0, [np.nan], [1.0], [1.0], [0.0]),
        ("left_out", 0, [0.0], [1.0], [1.0]),
        ("terms", 1),
    ],
)
def test_factors_that_do_not_fit(factor: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="factors"):
        run("reference", "Scorer", np.zeros(2), [factor])
