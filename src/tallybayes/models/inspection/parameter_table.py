"""Labeled tables of parameters p(column | given), of one column and of a whole model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tallybayes._utils.html import html_table
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import printable, short_repr
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

_POSTERIOR_HEAD = ("column", "distribution", "shape")
_MOST_LINES = 24  # of a printed table
_MOST_COLUMNS = 12
_MOST_TABLES = 12  # of a printed model


class ParameterTable(Result):
    """Parameters of p(column | given), with one row per combination of the conditioning levels.

    ``model.parameter_table(column)`` and ``model.parameters_`` return it. ``table[given]`` is a row as a dictionary,
    and ``table[given, level]`` a number; several conditioning levels come in their order. Without conditioning
    variables, ``table[level]`` is a number.

    Attributes
    ----------
    title : str
        Such as "p(sky | picnic)".
    given : tuple of names
        The conditioning variables.
    columns : tuple
        The levels of the column, or the names of its parameters: mean, variance, std, rate.
    values : ndarray of shape (*levels of the conditioning variables, columns)
        NaN where maximum likelihood has no rows.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1], "wet": ["no", "no", "yes", "yes"]}
    >>> wet = tb.BayesianNetwork({"wet": ["rain"]}, estimate="mle").fit(rows).cpt("wet")
    >>> wet
    p(wet | rain)
      rain  'no'    'yes'
      0     0.6667  0.3333
      1     0       1
    >>> wet[0]["no"].__round__(4), wet[1, "yes"]
    (0.6667, 1.0)
    """

    def __init__(
        self,
        title: str,
        given: tuple[Any, ...],
        given_levels: tuple[Sequence[Any], ...],
        columns: Sequence[Any],
        values: np.ndarray | Callable[[], np.ndarray],
        *,
        labels: bool = False,
        ends: Callable[[float], tuple[Any, Any]] | None = None,
    ) -> None:
        self.title = title
        self.given = given
        self.columns = tuple(columns)
        self.given_levels = tuple(tuple(levels) for levels in given_levels)
        self._values = values
        self._labels = labels
        self._ends = ends

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(ParameterTable, labels=self._labels)
        return made, (self.title, self.given, self.given_levels, self.columns, np.asarray(self.values))

    def interval(self, mass: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of equal-tailed credible intervals of all numbers, from the posterior distribution.

        The intervals do not depend on the estimate.

        Parameters
        ----------
        mass : float, default 0.95
            The posterior probability of each interval.

        Returns
        -------
        low, high : ndarray, shaped like ``values``
            NaN without a posterior: for fixed parameters, pairs of columns, and blocks of several columns.
        """
        low, high = (np.nan, np.nan) if self._ends is None else self._ends(mass)
        return np.array(np.broadcast_to(low, self.values.shape)), np.array(np.broadcast_to(high, self.values.shape))

    @cached_property
    def values(self) -> np.ndarray:
        """The numbers, shape (*levels of the conditioning variables, columns), computed on first use."""
        numbers = np.array(self._values() if callable(self._values) else self._values, dtype=float)
        numbers = numbers.reshape(*map(len, self.given_levels), len(self.columns))
        numbers.setflags(write=False)
        return numbers

    @property
    def _lines(self) -> np.ndarray:
        """The numbers with one axis for all conditioning variables."""
        n_lines = int(np.prod([len(levels) for levels in self.given_levels], dtype=np.int64))
        return self.values.reshape(n_lines, len(self.columns))

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        """The positions of the levels along each axis."""
        positions = [{_key(level): k for k, level in enumerate(axis)} for axis in (*self.given_levels, self.columns)]
        if self.columns == (0, 1) and not self._labels:  # a binary column, whose levels may be written True and False
            positions[-1] |= {_key(False): 0, _key(True): 1}
        return positions

    def __getitem__(self, key: Hashable) -> Any:
        """Return a row as a dictionary, or a number if a level of the column itself is given, too."""
        parts = key if isinstance(key, tuple) else (key,)
        n_given = len(self.given)
        if len(parts) not in (n_given, n_given + 1):
            wanted = ", ".join(map(printable, (*self.given, "and a column")))
            raise KeyError(f"{self.title} has no {short_repr(key)}; expected {wanted}")
        indices = []
        for part, axis, positions, name in zip(
            parts, (*self.given_levels, self.columns), self._places, (*self.given, "its columns"), strict=False
        ):
            index = positions.get(_key(part))
            if index is None:
                raise KeyError(
                    f"{self.title} has no {short_repr(part)} in {printable(name)}; found {short_repr(list(axis), 120)}"
                )
            indices.append(index)
        line = self.values[tuple(indices)]
        return float(line) if len(parts) > n_given else dict(zip(self.columns, line.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per combination of the conditioning levels, which form its index."""
        import pandas as pd

        index = None
        if len(self.given) == 1:
            index = pd.Index(self.given_levels[0], name=self.given[0])
        elif self.given:
            index = pd.MultiIndex.from_tuples(list(product(*self.given_levels)), names=self.given)
        columns = pd.Index(list(self.columns), tupleize_cols=False)
        return pd.DataFrame(self._lines, index=index, columns=columns)

    def _content(self) -> list[str | ResultTable]:
        n_lines, n_columns = self._lines.shape
        columns = self.columns[:_MOST_COLUMNS]
        values = self._lines[:_MOST_LINES, :_MOST_COLUMNS].tolist()
        lines = zip(islice(product(*self.given_levels), _MOST_LINES), values, strict=True)
        rows = [[*map(repr, above), *map(_number, line)] for above, line in lines]
        head = [*map(printable, self.given), *(repr(c) if self._labels else printable(c) for c in columns)]
        more = [f"  … {n_lines - _MOST_LINES:,} more"] if n_lines > _MOST_LINES else []
        more += [f"  … {n_columns - _MOST_COLUMNS:,} more columns"] if n_columns > _MOST_COLUMNS else []
        return [ResultTable(rows, head, self.title), *more]


class ColumnMapping(Mapping[Any, Any]):
    """Read-only mapping from columns to values computed on first use.

    A block of columns has one name. The columns of a block have their own names, or (block, position). A tuple of
    columns is a key if the model describes them jointly.
    """

    def __init__(self, title: str, names: Sequence[Any], shown: Sequence[Any], find: Callable[[Any], Any]) -> None:
        self.title = title
        self._names = tuple(names)
        self._shown = tuple(shown)
        self._find = find
        self._made: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        made = {name: self[name] for name in (*self._names, *self._shown)}
        return type(self), (self.title, self._names, self._shown, made.__getitem__)

    def __getitem__(self, column: Hashable) -> Any:
        if column not in self._made:
            self._made[column] = self._find(column)
        return self._made[column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def with_column_names(self, title: str, block: Name, names: Mapping[Any, Name]) -> Self:
        """Return the mapping with the columns of a block by their own names.

        Parameters
        ----------
        title : str
        block : the name of the block
        names : mapping
            The name of each column of the block by its key, (block, position).
        """
        key_of = {name: key for key, name in names.items()}
        listed = [each for name in self for each in (key_of if name == block else [name])]
        return type(self)(title, listed, self._shown, lambda column: self[key_of.get(column, column)])


class Posteriors(ColumnMapping, Result):
    """Posterior distributions of the parameters by column. ``model.posterior_`` returns it."""

    def _content(self) -> list[str | ResultTable]:
        rows = [[printable(name), *_describe_distribution(self[name])] for name in self._names[:_MOST_LINES]]
        more = [f"  … {len(self) - _MOST_LINES:,} more"] if len(self) > _MOST_LINES else []
        return [ResultTable(rows, _POSTERIOR_HEAD, self.title), *more]

    def _frame_data(self) -> FrameData:
        rows = [(name, *_describe_distribution(self[name])) for name in self._names]
        return [dict(zip(_POSTERIOR_HEAD, row, strict=True)) for row in rows]


class Parameters(ColumnMapping):
    """Parameters of a model by column, a `ParameterTable` each. ``model.parameters_`` returns it."""

    def to_frame(self) -> Any:
        """Return a pandas data frame in long form: column, conditioning levels, parameter, value."""
        import pandas as pd

        tables = [(name, self[name]) for name in self._names]
        given = dict.fromkeys(name for _, table in tables for name in table.given)
        parts: dict[Any, list[Any]] = {"column": [], **{_free(name): [] for name in given}, "parameter": []}
        for name, table in tables:
            lines = list(product(*table.given_levels))
            n_columns = len(table.columns)
            parts["column"] += [name] * (len(lines) * n_columns)
            for what in given:
                position = table.given.index(what) if what in table.given else None
                parts[_free(what)] += [
                    None if position is None else line[position] for line in lines for _ in table.columns
                ]
            parts["parameter"] += [*table.columns] * len(lines)
        numbers = [table.values.reshape(-1) for _, table in tables]
        series = {name: pd.Series(cells, dtype=object) for name, cells in parts.items()}
        columns = {name: cells if cells.isna().any() else cells.infer_objects() for name, cells in series.items()}
        return pd.DataFrame(columns | {"value": np.concatenate(numbers) if numbers else np.zeros(0)})

    def _shown_tables(self) -> list[ParameterTable]:
        """Return the printed tables."""
        return [self[name] for name in self._shown[:_MOST_TABLES]]

    def _more(self) -> list[str]:
        """Return a note on tables that are not printed."""
        n_more = len(self._shown) - _MOST_TABLES
        return [f"… and {n_more:,} more: model.table(column)"] if n_more > 0 else []

    def __repr__(self) -> str:
        return "\n".join([self.title, *map(repr, self._shown_tables()), *self._more()])

    def _repr_html_(self) -> str:
        tables = [table._repr_html_() for table in self._shown_tables()]
        return "".join([html_table(self.title, [], []), *tables, *(html_table(line, [], []) for line in self._more())])


def _describe_distribution(distribution: ParameterDistribution) -> tuple[str, str]:
    """Return the name and the shape of a distribution."""
    shape = np.broadcast_shapes(*(array.shape for array in distribution.arrays().values()))
    return type(distribution).__name__, " × ".join(map(str, shape))


def _number(value: float) -> str:
    """Return a number as text; "unknown" for NaN."""
    return "unknown" if np.isnan(value) else f"{value:.4g}"


def _key(level: object) -> Any:
    """Return a lookup key of a level: True differs from 1, but NumPy numbers equal Python numbers."""
    if isinstance(level, np.generic):
        level = level.item()
    return (isinstance(level, bool), level)


def _free(name: Name) -> Any:
    """Return a name that does not clash with the columns of the data frame."""
    return f"{name}_" if name in ("column", "parameter", "value") else name
