"""Inputs for the kernels: every layout, dtype, grouping and weighting, as Hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from tallybayes import kernels
from tallybayes.kernels import active
from tallybayes.kernels.reference import sums as reference_sums

try:
    from tallybayes.kernels import _compiled
except ImportError:  # the package was installed without a compiler
    _compiled = None

TIERS = _compiled.available_tiers() if _compiled else []
needs_compiled = pytest.mark.skipif(not TIERS, reason="tallybayes was installed without compiled kernels")
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
LAYOUTS = ("rows", "columns", "list", "sliced", "reversed", "unaligned", "read-only")


def run(implementation: str, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a kernel through the public function, on "reference" or one tier of the compiled module."""
    before = active.module
    if implementation == "reference":
        active.module = reference_sums
    else:
        assert _compiled is not None
        _compiled.use_tier(implementation)
        active.module = _compiled
    try:
        return getattr(kernels, name)(*arguments, **options)
    finally:
        active.module = before
        if _compiled:
            _compiled.use_tier(TIERS[-1])


def outcome(implementation: str, name: str, *arguments: Any, **options: Any) -> Any:
    """Return the result as a list of arrays, or the exception's type, text and position."""
    try:
        result = run(implementation, name, *arguments, **options)
    except (ValueError, IndexError, TypeError) as error:
        return type(error), str(error)
    return list(result) if isinstance(result, tuple) else [result]


def assert_same(found: Any, expected: Any, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    if isinstance(expected, tuple):
        assert found == expected
        return
    assert not isinstance(found, tuple), found
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def assert_same_bits(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def lay_out(X: np.ndarray, layout: str) -> Any:
    """Return the same matrix in another memory layout."""
    if layout == "columns":
        return np.asfortranarray(X)
    if layout == "list":
        return [np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])]
    if layout == "sliced":
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1] + 1), X.dtype)
        view = wide[::2, 1::3]
        view[...] = X
        return view
    if layout == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if layout == "unaligned":
        raw = np.zeros(X.nbytes + 1, np.uint8)
        view = raw[1:].view(X.dtype).reshape(X.shape)
        view[...] = X
        return view
    X = np.ascontiguousarray(X)
    if layout == "read-only":
        X.flags.writeable = False
    return X


@dataclass
class Rows:
    """The rows' groups and weights."""

    group: np.ndarray | None
    n_groups: int
    weight: np.ndarray | None

    @property
    def arguments(self) -> tuple[Any, int, Any]:
        return self.group, self.n_groups, self.weight


@st.composite
def row_groups(draw: st.DrawFn, n: int, most_groups: int = 30) -> Rows:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weighting = draw(st.sampled_from(("none", "some", "soft")))
    grouped = draw(st.booleans())
    n_groups = draw(st.integers(1, most_groups)) if grouped or weighting == "soft" else 1
    group = None
    if grouped and weighting != "soft":
        dtype = np.dtype(draw(st.sampled_from(INTEGERS)))
        codes = rng.integers(-1, n_groups, n)
        group = codes.astype(dtype)
        if draw(st.booleans()):
            wide = np.zeros((n, 2), dtype)
            wide[:, 1] = group
            group = wide[:, 1]
    weight = None
    if weighting != "none":
        weight = rng.random((n, n_groups) if weighting == "soft" else n)
        weight[weight < 0.3] = 0.0
        if draw(st.booleans()):
            weight = np.asfortranarray(weight)
    return Rows(group, n_groups, weight)


shapes = st.tuples(st.integers(0, 120), st.integers(0, 40))
seeds = st.integers(0, 2**32)
layouts = st.sampled_from(LAYOUTS)
