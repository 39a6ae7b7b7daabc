"""ParameterTable: p(column | given) as it was learnt, labeled as the user labels it. Parameters: all of a model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_table
from tallybayes._utils.text_table import text_table
from tallybayes.errors import printable, short_repr

if TYPE_CHECKING:
    import pandas as pd

_MOST_LINES = 24  # of a printed table
_MOST_COLUMNS = 12
_MOST_TABLES = 12  # of a printed model


class ParameterTable:
    """p(column | given): a line for every combination of the levels that are given.

    Made by ``model.table("column")`` and ``model.parameters_``. ``table[given]`` is a line, ``table[given, level]`` a
    number of it; several that are given stand in their order. Where nothing is given, ``table[level]`` is a number.

    Attributes
    ----------
    title : str
        Such as "p(sky | picnic)".
    given : tuple of names
        What it depends on.
    columns : tuple
        The levels of the column, or the names of its parameters: mean, variance, deviation, rate.
    values : ndarray of shape (*levels of what is given, columns)
        NaN where maximum likelihood has no row to go by.

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
        """The ends of the credible intervals of all numbers, by what is believed of them after the data.

        Equal-tailed, whichever estimate the numbers are.

        Parameters
        ----------
        mass : float, default 0.95

        Returns
        -------
        low, high : ndarray, shaped like ``values``
            NaN where nothing is believed: of parameters that were given, pairs of columns, and blocks of several.
        """
        low, high = (np.nan, np.nan) if self._ends is None else self._ends(mass)
        return np.array(np.broadcast_to(low, self.values.shape)), np.array(np.broadcast_to(high, self.values.shape))

    @cached_property
    def values(self) -> np.ndarray:
        """The numbers, shape (*levels of what is given, columns); made when they are first asked for."""
        found = np.array(self._values() if callable(self._values) else self._values, dtype=float)
        found = found.reshape(*map(len, self.given_levels), len(self.columns))
        found.setflags(write=False)
        return found

    @property
    def _lines(self) -> np.ndarray:
        """The numbers with one axis for all that is given."""
        n_lines = int(np.prod([len(levels) for levels in self.given_levels], dtype=np.int64))
        return self.values.reshape(n_lines, len(self.columns))

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        """Where every level is, along each axis."""
        found = [{_key(level): k for k, level in enumerate(axis)} for axis in (*self.given_levels, self.columns)]
        if self.columns == (0, 1) and not self._labels:  # yes or no, which rows may call True or False, too
            found[-1] |= {_key(False): 0, _key(True): 1}
        return found

    def __getitem__(self, key: Any) -> Any:
        """A line as a dictionary, or with one level more, of the column itself, a number."""
        parts = key if isinstance(key, tuple) else (key,)
        n_given = len(self.given)
        if len(parts) not in (n_given, n_given + 1):
            wanted = ", ".join(map(printable, (*self.given, "and a column")))
            raise KeyError(f"{self.title} has no {short_repr(key)}; expected {wanted}")
        place = []
        for part, axis, places, name in zip(
            parts, (*self.given_levels, self.columns), self._places, (*self.given, "its columns"), strict=False
        ):
            found = places.get(_key(part))
            if found is None:
                raise KeyError(
                    f"{self.title} has no {short_repr(part)} in {printable(name)}; found {short_repr(list(axis), 120)}"
                )
            place.append(found)
        line = self.values[tuple(place)]
        return float(line) if len(parts) > n_given else dict(zip(self.columns, line.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame with a line for every combination of the levels given, which are its index."""
        import pandas as pd

        index = None
        if len(self.given) == 1:
            index = pd.Index(self.given_levels[0], name=self.given[0])
        elif self.given:
            index = pd.MultiIndex.from_tuples(list(product(*self.given_levels)), names=self.given)
        columns = pd.Index(list(self.columns), tupleize_cols=False)
        return pd.DataFrame(self._lines, index=index, columns=columns)

    def _cells(self, most_lines: int, most_columns: int) -> tuple[list[Any], list[list[Any]]]:
        """The head, and the first lines: what is given, and numbers."""
        columns = self.columns[:most_columns]
        values = self._lines[:most_lines, :most_columns]
        lines = zip(islice(product(*self.given_levels), most_lines), values.tolist(), strict=True)
        head = [*map(printable, self.given), *(repr(c) if self._labels else printable(c) for c in columns)]
        return head, [[*map(repr, above), *map(_number, line)] for above, line in lines]

    def _more(self, most_lines: int, most_columns: int) -> list[str]:
        """What is not shown."""
        n_lines, n_columns = self._lines.shape
        lines = [f"… {n_lines - most_lines:,} more"] if n_lines > most_lines else []
        return lines + ([f"… {n_columns - most_columns:,} more columns"] if n_columns > most_columns else [])

    def __repr__(self) -> str:
        head, lines = self._cells(_MOST_LINES, _MOST_COLUMNS)
        more = ["  " + line for line in self._more(_MOST_LINES, _MOST_COLUMNS)]
        return "\n".join([self.title, *text_table([head, *lines]), *more])

    def _repr_html_(self) -> str:
        head, lines = self._cells(_MOST_LINES, _MOST_COLUMNS)
        more = self._more(_MOST_LINES, _MOST_COLUMNS)
        return html_table("\n".join([self.title, *more]), head, lines)


class ColumnMapping(Mapping[Any, Any]):
    """What there is of every column, made when it is first asked for.

    A block of columns stands under its name; those in it are found by their own names, or as (block, place), and
    columns that a model describes together as a tuple of them, too.
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

    def __getitem__(self, column: Any) -> Any:
        if column not in self._made:
            self._made[column] = self._find(column)
        return self._made[column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Posteriors(ColumnMapping):
    """What is believed of the parameters after the data, by column: beliefs. Made by ``model.posterior_``."""

    def _lines(self) -> list[list[str]]:
        return [[printable(name), *_shown_belief(self[name])] for name in self._names[:_MOST_LINES]]

    def __repr__(self) -> str:
        more = [f"  … {len(self) - _MOST_LINES:,} more"] if len(self) > _MOST_LINES else []
        return "\n".join([self.title, *text_table(self._lines()), *more])

    def _repr_html_(self) -> str:
        return html_table(self.title, ["column", "belief", "shape"], self._lines())


class Parameters(ColumnMapping):
    """What a model has learnt, by column: a `ParameterTable` of each. Made by ``model.parameters_``."""

    def to_frame(self) -> Any:
        """All of them in a pandas data frame, in long form: column, what is given, parameter, value."""
        import pandas as pd

        tables = [(name, self[name]) for name in self._names]
        given = dict.fromkeys(name for _, table in tables for name in table.given)
        parts: dict[Any, list[Any]] = {"column": [], **{_free(name): [] for name in given}, "parameter": []}
        for name, table in tables:
            lines = list(product(*table.given_levels))
            n_columns = len(table.columns)
            parts["column"] += [name] * (len(lines) * n_columns)
            for what in given:
                place = table.given.index(what) if what in table.given else None
                parts[_free(what)] += [None if place is None else line[place] for line in lines for _ in table.columns]
            parts["parameter"] += [*table.columns] * len(lines)
        numbers = [table.values.reshape(-1) for _, table in tables]
        whole = {name: pd.Series(cells, dtype=object) for name, cells in parts.items()}
        columns = {name: cells if cells.isna().any() else cells.infer_objects() for name, cells in whole.items()}
        return pd.DataFrame(columns | {"value": np.concatenate(numbers) if numbers else np.zeros(0)})

    def _told(self) -> list[ParameterTable]:
        return [self[name] for name in self._shown[:_MOST_TABLES]]

    def _more(self) -> list[str]:
        n_more = len(self._shown) - _MOST_TABLES
        return [f"… and {n_more:,} more: model.table(column)"] if n_more > 0 else []

    def __repr__(self) -> str:
        return "\n".join([self.title, *map(repr, self._told()), *self._more()])

    def _repr_html_(self) -> str:
        tables = [table._repr_html_() for table in self._told()]
        return "".join([html_table(self.title, [], []), *tables, *(html_table(line, [], []) for line in self._more())])


def _shown_belief(belief: Any) -> tuple[str, str]:
    """The kind of a belief, and how large it is."""
    arrays = [np.asarray(value) for value in belief._fields().values() if isinstance(value, np.ndarray)]
    shape = np.broadcast_shapes(*(array.shape for array in arrays)) if arrays else ()
    return type(belief).__name__, " × ".join(map(str, shape))


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.4g}"


def _key(level: Any) -> Any:
    """A level to look up by: True is not 1, but NumPy's numbers and whole floats are Python's."""
    if isinstance(level, np.generic):
        level = level.item()
    return (isinstance(level, bool), level)


def _free(name: Any) -> Any:
    return f"{name}_" if name in ("column", "parameter", "value") else name
