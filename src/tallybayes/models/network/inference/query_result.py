"""Answers of a Bayesian network: probabilities by level, for one question or for many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.features import free_name
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12
_BAR = 20


class Answer(Mapping[Any, float]):
    """p(nodes | given): a mapping from level to probability, or from tuples of levels for several nodes.

    Attributes
    ----------
    nodes : tuple
        What was asked for.
    levels : tuple of tuples
        The levels of every node.
    probabilities : ndarray of shape (*levels)
    given : dict
        What was known.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.models.network.inference.query_result import Answer
    >>> Answer(("fire",), ((False, True),), np.array([0.75, 0.25]), {"smoke": True})
    p(fire | smoke = True)
      False  0.7500  ███████████████
      True   0.2500  █████
    """

    def __init__(
        self,
        nodes: tuple[Name, ...],
        levels: tuple[tuple[Any, ...], ...],
        probabilities: np.ndarray,
        given: Mapping[Any, Any],
    ) -> None:
        self.nodes, self.levels, self.given = nodes, levels, dict(given)
        self.probabilities = np.array(probabilities)
        self.probabilities.setflags(write=False)
        self._index = [{(_is_bool(level), level): k for k, level in enumerate(found)} for found in levels]

    def _place(self, level: Any) -> tuple[int, ...]:
        given = (level,) if len(self.nodes) == 1 else level
        if not isinstance(given, tuple) or len(given) != len(self.nodes):
            raise KeyError(level)
        try:
            return tuple(index[_is_bool(one), one] for one, index in zip(given, self._index, strict=True))
        except (KeyError, TypeError):
            raise KeyError(level) from None

    def __getitem__(self, level: Any) -> float:
        return float(self.probabilities[self._place(level)])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.levels[0] if len(self.nodes) == 1 else product(*self.levels))

    def __len__(self) -> int:
        return int(self.probabilities.size)

    @property
    def best(self) -> Any:
        """The most probable level, or combination of levels."""
        place = np.unravel_index(int(self.probabilities.argmax()), self.probabilities.shape)
        found = tuple(levels[int(k)] for levels, k in zip(self.levels, place, strict=True))
        return found[0] if len(found) == 1 else found

    def marginal(self, *nodes: Name) -> Answer:
        """The answer about some of the nodes, the others summed out.

        Parameters
        ----------
        *nodes : names
            In the order wanted.
        """
        unknown = [node for node in nodes if node not in self.nodes]
        if unknown or not nodes or len(set(nodes)) < len(nodes):
            raise DataError(f"the answer is about {self.nodes}, found {nodes}; expected some of these, each once.")
        kept = [self.nodes.index(node) for node in nodes]
        summed = self.probabilities.sum(axis=tuple(k for k in range(len(self.nodes)) if k not in kept))
        turned = summed.transpose(np.argsort(np.argsort(kept)))
        return Answer(tuple(nodes), tuple(self.levels[k] for k in kept), turned, self.given)

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: a column for every node, and the probability."""
        import pandas as pd

        rows = list(product(*self.levels))
        name = free_name("probability", self.nodes)
        return pd.DataFrame(rows, columns=list(self.nodes)).assign(**{name: self.probabilities.ravel()})

    def _title(self) -> str:
        return question_of(self.nodes, self.given)

    def _repr_html_(self) -> str:
        cells, numbers = list(product(*self.levels)), self.probabilities.ravel()
        order = range(len(cells)) if len(cells) <= _SHOWN else np.argsort(-numbers, kind="stable").tolist()
        rows = ([*cells[k], f"{numbers[k]:.4f}", self._shown(k)] for k in order)
        return html_parts((self._title(), [*self.nodes, "probability", ""], rows))

    def _shown(self, place: int) -> str:
        """What is shown beside a probability."""
        return "█" * round(_BAR * float(self.probabilities.ravel()[place]))

    def __repr__(self) -> str:
        names = [repr(level) if len(self.nodes) == 1 else ", ".join(map(repr, level)) for level in self]
        numbers = self.probabilities.ravel()
        order = range(len(names)) if len(names) <= _SHOWN else np.argsort(-numbers, kind="stable")[:_SHOWN].tolist()
        width = max((len(names[k]) for k in order), default=0)
        lines = [f"  {names[k]:<{width}}  {numbers[k]:.4f}  {self._shown(k)}".rstrip() for k in order]
        if len(names) > _SHOWN:
            lines.append(f"  … {len(names) - _SHOWN} less probable, {1 - numbers[list(order)].sum():.4f} together")
        return "\n".join([self._title(), *lines])


class MostProbableAssignment(Mapping[Any, Any]):
    """The most probable levels of nodes together: a mapping from node to level.

    Attributes
    ----------
    log_probability : float
        Log p(all of these levels | given).
    given : dict
        What was known.
    """

    def __init__(
        self, levels: Mapping[Any, Any], log_probability: float, given: Mapping[Any, Any], some: bool = False
    ) -> None:
        self._levels, self.log_probability, self.given, self._some = dict(levels), log_probability, dict(given), some

    def __getitem__(self, node: Name) -> Any:
        return self._levels[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def _why(self, node: Name) -> str:
        return "  (known)" if node in self.given else "  (set)" if f"do({node})" in self.given else ""

    def __repr__(self) -> str:
        width = max(map(len, map(printable, self._levels)), default=0)
        lines = [f"  {printable(node):<{width}}  {level!r}{self._why(node)}" for node, level in self._levels.items()]
        return "\n".join([self._title(), *lines])

    def _title(self) -> str:
        others = ", whatever the others are" if self._some else ""
        return f"most probable together{others}, p = {np.exp(self.log_probability):.4g}"

    def _repr_html_(self) -> str:
        rows = ([node, level, self._why(node).strip()] for node, level in self._levels.items())
        return html_parts((self._title(), ["node", "level", ""], rows))


class NodePosteriors(Mapping[Any, np.ndarray]):
    """p(node | what is known) of many rows: a mapping from node to an array of shape (n, levels).

    Attributes
    ----------
    impossible : ndarray of bool of shape (n,)
        Rows in which what is known has probability 0; they have the probabilities that hold where nothing is known.
    log_likelihood : ndarray of shape (n,)
        Log p(what is known) of every row.
    levels : dict
        What the columns of every array stand for.
    """

    def __init__(
        self, found: Mapping[Any, np.ndarray], levels: Mapping[Any, tuple[Any, ...]], log_likelihood: np.ndarray
    ) -> None:
        self._found, self.levels, self.log_likelihood = dict(found), dict(levels), log_likelihood

    @classmethod
    def joined(cls, parts: list[NodePosteriors]) -> NodePosteriors:
        """The answers about rows below each other."""
        found = {node: np.concatenate([part[node] for part in parts]) for node in parts[0]}
        return cls(found, parts[0].levels, np.concatenate([part.log_likelihood for part in parts]))

    @property
    def impossible(self) -> np.ndarray:
        """Rows in which what is known has probability 0."""
        return np.isneginf(self.log_likelihood)

    def __getitem__(self, node: Name) -> np.ndarray:
        return self._found[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        n_impossible = int(self.impossible.sum())
        more = f", {n_impossible} impossible" if n_impossible else ""
        return f"Posteriors: {len(self)} nodes, {len(self.log_likelihood)} rows{more}"

    def _repr_html_(self) -> str:
        rows = ([node, ", ".join(map(repr, self.levels[node]))] for node in self)
        return html_parts((repr(self), ["node", "levels"], rows))


def question_of(nodes: Iterable[Name], given: Mapping[Any, Any]) -> str:
    """What was asked: p(nodes | given)."""
    known = title_of(given)
    return f"p({', '.join(map(printable, nodes))}{' | ' + known if known else ''})"


def title_of(given: Mapping[Any, Any]) -> str:
    """What is known, in words."""
    plain = {node: value.item() if isinstance(value, np.generic) else value for node, value in given.items()}
    return ", ".join(f"{printable(node)} = {value!r}" for node, value in plain.items())


def _is_bool(level: Any) -> bool:
    return isinstance(level, bool | np.bool_)
