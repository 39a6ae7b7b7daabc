"""Sums over the groups and columns that share a variance."""

import numpy as np
import pytest

from tallybayes.distributions.tied_variance import check_tied, first_along, pool_tied, tied_axes
from tallybayes.errors import PriorError

CELLS = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("tied", "axes"), [((), ()), (("groups",), (0, 1)), (("columns",), (2,)), (("groups", "columns"), (0, 1, 2))]
)
def test_axes_of_groups_and_columns(tied, axes):
    assert tied_axes(tied, 3) == axes
    np.testing.assert_array_equal(pool_tied(CELLS, tied), CELLS.sum(axis=axes, keepdims=True))


def test_numbers_without_axes_and_matrices():
    assert tied_axes(("groups", "columns"), 0) == ()
    assert pool_tied(np.array(3.0), ("groups", "columns")) == 3.0
    assert tied_axes(("groups",), 3, 2) == (0,)
    assert pool_tied(CELLS, ("groups",), 2).shape == (1, 3, 4)
    assert pool_tied(CELLS, ("groups",), 0).shape == (1, 1, 1)


def test_values_that_are_shared():
    shared = np.broadcast_to(CELLS[:1], CELLS.shape)
    np.testing.assert_array_equal(check_tied(shared, (0,), "values differ"), CELLS[:1])
    np.testing.assert_array_equal(first_along(CELLS, (0, 2)), CELLS[:1, :, :1])
    with pytest.raises(PriorError, match="the values differ; expected one"):
        check_tied(CELLS, (0,), "values differ")
