"""Types of the arguments of models, for annotations in user code: ``def train(rows: Rows) -> tb.NaiveBayes: ...``.

`Rows` is any table: arrays, sparse matrices, data frames, mappings of columns, lists, file paths, and the result of
`tallybayes.table`. `Labels` has one label per row, or is the name of a column; so is `SampleWeights`. `RandomState` is
a seed or a generator (None for a random seed).

`Name` is the name of a column, or its position if columns have no names; `Names` is one or several. `Columns` maps
columns to families. `Prior` is one prior: a distribution, a rule, a number of pseudo-counts, or "empirical"; `Priors`
are those of a model, by column, or a tally of earlier rows. `ClassPrior` is a class distribution. `Parents` is the
structure of a network: the parents of every node, edges, a networkx graph, or an object with a structure. `Candidates`
are parameter grids: a list of values for every parameter, or a list of such settings.

An `EstimatorLike` is a model of this package, or another estimator that follows scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame, IntoLazyFrame
    from networkx import DiGraph

    from tallybayes.data.source import Source
    from tallybayes.data.table import Table
    from tallybayes.distributions.dirichlet import Dirichlet
    from tallybayes.distributions.parameter_distribution import ParameterDistribution
    from tallybayes.families.family import Family
    from tallybayes.families.prior_rules import PriorRule
    from tallybayes.models.network.bayesian_network import BayesianNetwork
    from tallybayes.models.network.bde_prior import BDe
    from tallybayes.models.network.structure.learned_structure import Structure
    from tallybayes.tally.tally import Tally

__all__ = [
    "Candidates",
    "ClassPrior",
    "Columns",
    "EstimatorLike",
    "Labels",
    "Name",
    "Names",
    "Parents",
    "Prior",
    "Priors",
    "RandomState",
    "Rows",
    "SampleWeights",
    "SparseMatrix",
]


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, which has no type annotations."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the numbers of rows and columns."""

    def tocsr(self) -> Any:
        """Return the matrix in compressed sparse row format."""


class EstimatorLike(Protocol):
    """An estimator with `fit` and `get_params`: a model of this package, or one that follows scikit-learn."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Return the method that fits the estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""


# A str is a file path, or a column name.
Rows: TypeAlias = (
    "npt.NDArray[Any] | SparseMatrix | IntoDataFrame | IntoLazyFrame | Iterable[Any] | PathLike[str] | Source | Table"
)
# One column of a table, read by duck typing: an array, a list, a series of a data frame, or an Arrow array.
Column: TypeAlias = Any
Labels: TypeAlias = str | int | npt.NDArray[Any] | Iterable[Any]
SampleWeights: TypeAlias = str | int | npt.NDArray[Any] | Iterable[float] | None
RandomState: TypeAlias = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None

Name: TypeAlias = str | int
Names: TypeAlias = Name | Iterable[Name]
# The keys of a mapping are names, tuples of names, and ... for all other columns.
Columns: TypeAlias = "str | Family | Mapping[Any, str | Family]"
Prior: TypeAlias = "ParameterDistribution | PriorRule | float | np.number[Any] | str | None"
Priors: TypeAlias = "Prior | BDe | Tally | Sequence[Prior] | Mapping[Any, Prior]"
Parents: TypeAlias = "Mapping[Any, Names | None] | Iterable[Iterable[Name]] | DiGraph | Structure | BayesianNetwork"
ClassPrior: TypeAlias = "str | Mapping[Any, float] | npt.NDArray[Any] | Iterable[float] | Dirichlet | None"
Candidates: TypeAlias = Mapping[str, Sequence[Any] | npt.NDArray[Any]] | Iterable[Mapping[str, Any]]
