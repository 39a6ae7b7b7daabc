"""The types of what models take, for annotations of your own: ``def train(rows: Rows) -> tb.NaiveBayes: ...``.

`Rows` is anything with rows: arrays, sparse matrices, data frames of any library, mappings of columns, lists, paths of
files, and what `tallybayes.table` opens. `Labels` are one for every row, or the name of the column that has them; so
are `SampleWeights`, where there are any. `RandomState` is a seed, or what draws (None: another one every time).

Settings have theirs, too. `Name` is the name of a column, or its place where columns have none; `Names` are one or
several. `Columns` says which columns are read in which family. `Prior` is one prior: a belief, a rule, a number of
counts, or "empirical"; `Priors` are those of a model, by column, or a tally that counts as seen before. `ClassPrior`
is the share of the classes. `Parents` are the structure of a network: the parents of every node, edges, a graph of
networkx, or what has a structure already. `Candidates` are sets of parameters that are tried beside each other: a
list of values for every parameter, or a list of such sets.

A `EstimatorLike` is a model of this package, or of another that follows scikit-learn: it is fitted, and tells its settings.
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
    """A sparse matrix or array of SciPy, which has no types of its own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """The same, row by row."""


class EstimatorLike(Protocol):
    """What is fitted on rows and tells its settings: a model of this package, or one that follows scikit-learn."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Learn from rows."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""


# A str is the path of a file, or the name of a column.
Rows: TypeAlias = (
    "npt.NDArray[Any] | SparseMatrix | IntoDataFrame | IntoLazyFrame | Iterable[Any] | PathLike[str] | Source | Table"
)
Labels: TypeAlias = str | int | npt.NDArray[Any] | Iterable[Any]
SampleWeights: TypeAlias = str | int | npt.NDArray[Any] | Iterable[float] | None
RandomState: TypeAlias = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None

Name: TypeAlias = str | int
Names: TypeAlias = Name | Iterable[Name]
# The keys of a mapping are names, tuples of them, and ... for all others.
Columns: TypeAlias = "str | Family | Mapping[Any, str | Family]"
Prior: TypeAlias = "ParameterDistribution | PriorRule | float | np.number[Any] | str | None"
Priors: TypeAlias = "Prior | BDe | Tally | Sequence[Prior] | Mapping[Any, Prior]"
Parents: TypeAlias = "Mapping[Any, Names | None] | Iterable[Iterable[Name]] | DiGraph | Structure | BayesianNetwork"
ClassPrior: TypeAlias = "str | Mapping[Any, float] | npt.NDArray[Any] | Iterable[float] | Dirichlet | None"
Candidates: TypeAlias = Mapping[str, Sequence[Any] | npt.NDArray[Any]] | Iterable[Mapping[str, Any]]
