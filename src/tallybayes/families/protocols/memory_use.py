"""Protocol of memory estimates, checked before counting and scoring."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from tallybayes.families.categorical import Categorical
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian

_HINT = "Use fewer columns: drop rare ones, or hash them with sklearn's FeatureHasher."


class MemoryUse(NamedTuple):
    """Numbers (of 8 bytes) per group, as measured, and advice if they exceed the memory."""

    statistics: int
    scoring: int  # further numbers while rows are scored
    hint: str = _HINT


@singledispatch
def memory_use(family: Family, n_columns: int) -> MemoryUse:
    """Return the memory that the statistics and the scoring of a block of columns take.

    For categorical columns, `n_columns` is the number of levels.
    """
    return MemoryUse(4 * n_columns, 4 * n_columns)


@memory_use.register(Categorical)
def _(family: Categorical, n_columns: int) -> MemoryUse:
    """Return the counts, twice for rearranging, and the probabilities."""
    return MemoryUse(2 * n_columns, 2 * n_columns, "Merge rare levels, or drop columns with very many levels.")


@memory_use.register(Multinomial)
def _(family: Multinomial, n_columns: int) -> MemoryUse:
    """Return one total per column, twice for rearranging; there are no weights per column."""
    return MemoryUse(2 * n_columns, 4 * n_columns)


@memory_use.register(Gaussian)
def _(family: Gaussian, n_columns: int) -> MemoryUse:
    """Return sums and squares in double-double, and the intermediate arrays."""
    return MemoryUse(8 * n_columns, 12 * n_columns)


@memory_use.register(MultivariateGaussian)
def _(family: MultivariateGaussian, n_columns: int) -> MemoryUse:
    """Return the sums of all products in double-double, and the intermediate arrays."""
    hint = "Use tb.NaiveBayes(tb.Gaussian()), which needs no covariances, or fewer columns."
    return MemoryUse(2 * n_columns**2, 6 * n_columns**2, hint)


@memory_use.register(LinearGaussian)
def _(family: LinearGaussian, n_columns: int) -> MemoryUse:
    """Return the high-precision sums of all products in double-double, and the intermediate arrays."""
    return MemoryUse(8 * n_columns**2, 24 * n_columns**2, "Use fewer columns, or a lower degree.")


@memory_use.register(ConditionalLinearGaussian)
def _(family: ConditionalLinearGaussian, n_columns: int) -> MemoryUse:
    """Return the memory of regression, with advice for network nodes."""
    hint = "Give the node fewer parents, or merge levels of its discrete parents."
    return memory_use.dispatch(LinearGaussian)(family, n_columns)._replace(hint=hint)
