"""Results of queries to a Bayesian network: posterior distributions of nodes, for one query or for many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tallybayes._utils.parameter_checks import check_mass
from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.features import free_name
from tallybayes.models.network.inference.student_t_mixture import StudentTMixture
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.tally.factor import Name

_SHOWN = 12
_BAR = 20
_QS = (0.05, 0.25, 0.5, 0.75, 0.95)


class QueryResult(Result, Mapping[Any, Any]):
    """Posterior distribution p(nodes | given) of discrete nodes, continuous nodes, or both.

    The result is a mapping from levels of the discrete nodes (tuples of levels for several) to their probability. With
    continuous nodes, it maps every possible level to the `QueryResult` of the continuous nodes given that level: the
    joint density of a level of `k` and a value of `x` is ``result.marginal("k")[level] * result[level].pdf(value)``.

    The distribution of continuous nodes is a mixture with one component for every combination of levels of the
    discrete nodes that they depend on. A component is normal; under ``estimate="bayes"``, that of a node without
    continuous neighbors is Student's t, because its parameters are integrated out. Methods and attributes of
    continuous nodes, such as `mean` and `pdf`, marginalize over the discrete nodes of the result; they raise
    `DataError` if there is no continuous node.

    `to_frame` has a row for every combination of levels: the levels, the probability, and the mean and standard
    deviation of every continuous node. Without discrete nodes, it has a row for every node: its name, mean and standard
    deviation.

    Attributes
    ----------
    nodes, discrete_nodes, continuous_nodes : tuple of names
    levels : dict
        The levels of every discrete node.
    probabilities : ndarray of shape (n_levels of each discrete node)
    given : dict
        The evidence; interventions have the key ``"do(node)"``.
    standard_errors : ndarray of the shape of `probabilities`, or None
        Only with ``inference="sampling"``; 1 / `effective_size` for a level that no draw has, or all draws have.
    n_draws : int or None
        Number of draws; None for exact inference.
    effective_size : float or None
        Effective sample size: the number of draws from p(nodes | given) itself with the same variance.

    Examples
    --------
    >>> import tallybayes as tb
    >>> clinic = tb.BayesianNetwork.from_parameters({
    ...     "ill": {"levels": ["no", "yes"], "probabilities": [0.9, 0.1]},
    ...     "fever": {"parents": ["ill"], "intercept": [36.8, 38.5], "std": [0.4, 0.8]}})
    >>> clinic.query("ill", {"fever": 38.0})
    p(ill | fever = 38.0)
      'no'   0.1956  ████
      'yes'  0.8044  ████████████████
    >>> clinic.query("fever", {"ill": "yes"})
    p(fever | ill = 'yes'): mean 38.5, standard deviation 0.8
       5 %  37.18
      25 %  37.96
      50 %  38.5
      75 %  39.04
      95 %  39.82
    >>> result = clinic.query(["ill", "fever"])
    >>> result
    p(ill, fever)
      ill    probability  fever: mean  fever: std
      'no'   0.9000       36.8         0.4
      'yes'  0.1000       38.5         0.8
    >>> round(result["yes"].cdf(38.0), 3), round(result.mean, 2)
    (0.266, 36.97)
    """

    def __init__(
        self,
        nodes: tuple[Name, ...],
        levels: Mapping[Any, tuple[Any, ...]],
        probabilities: np.ndarray,
        given: Mapping[Any, Any],
        mixture: StudentTMixture | None = None,
        *,
        standard_errors: np.ndarray | None = None,
        n_draws: int | None = None,
        effective_size: float | None = None,
    ) -> None:
        self.nodes = nodes
        self.given = dict(given)
        self.discrete_nodes = tuple(node for node in nodes if node in levels)
        self.continuous_nodes = tuple(node for node in nodes if node not in levels)
        self.levels = {node: tuple(levels[node]) for node in self.discrete_nodes}
        self.probabilities = np.array(probabilities)
        self.probabilities.setflags(write=False)
        self.standard_errors = standard_errors
        self.n_draws = n_draws
        self.effective_size = effective_size
        self._mixture = mixture

    @cached_property
    def _level_codes(self) -> list[dict[tuple[bool, Any], int]]:
        # True == 1, so that the key has the type too
        return [{(_is_bool(level), level): k for k, level in enumerate(levels)} for levels in self.levels.values()]

    @cached_property
    def _combinations(self) -> dict[int, tuple[Any, ...]]:
        """The levels of every combination listed, by its index in the flattened `probabilities`."""
        combinations = enumerate(product(*self.levels.values()))
        possible = None if self._mixture is None else set(self._mixture.combinations.tolist())
        return {k: levels for k, levels in combinations if possible is None or k in possible}

    def __getitem__(self, level: object) -> Any:
        self._require_discrete("levels")
        levels = (level,) if len(self.discrete_nodes) == 1 else level
        if not isinstance(levels, tuple) or len(levels) != len(self.discrete_nodes):
            raise KeyError(level)
        try:
            codes = tuple(index[_is_bool(value), value] for index, value in zip(self._level_codes, levels, strict=True))
        except (KeyError, TypeError):
            raise KeyError(level) from None
        if self._mixture is None:
            return float(self.probabilities[codes])
        selected = self._mixture.combinations == np.ravel_multi_index(codes, self.probabilities.shape)
        if not selected.any():
            raise KeyError(level)
        given = {**self.given, **dict(zip(self.discrete_nodes, levels, strict=True))}
        return QueryResult(self.continuous_nodes, {}, np.ones(()), given, self._mixture.conditional(selected))

    def __iter__(self) -> Iterator[Any]:
        self._require_discrete("levels")
        return (_unpacked(levels) for levels in self._combinations.values())

    def __len__(self) -> int:
        return self.probabilities.size if self._mixture is None else len(self._combinations)

    def __eq__(self, other: object) -> bool:
        return self is other or (self._mixture is None and super().__eq__(other))

    @property
    def best(self) -> Any:
        """The most probable level, or tuple of levels of several discrete nodes."""
        self._require_discrete("best")
        codes = np.unravel_index(int(self.probabilities.argmax()), self.probabilities.shape)
        return _unpacked([levels[int(k)] for levels, k in zip(self.levels.values(), codes, strict=True)])

    @property
    def mean(self) -> Any:
        """The mean of the continuous node, or the means of several: float, or ndarray of shape (n_nodes,)."""
        return _unpacked(self._moments[0])

    @property
    def covariance(self) -> np.ndarray:
        """The covariance matrix of the continuous nodes, of shape (n_nodes, n_nodes)."""
        return self._moments[1]

    @property
    def std(self) -> Any:
        """The standard deviation of the continuous node, or those of several: float, or ndarray of shape (n_nodes,)."""
        return _unpacked(np.sqrt(np.diagonal(self.covariance)))

    @property
    def weights(self) -> np.ndarray:
        """The weights of the mixture components of the continuous nodes, of shape (n_components,)."""
        return self._components("weights").weights

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self._components("mean, std and covariance").moments()

    def pdf(self, x: npt.ArrayLike) -> Any:
        """Compute the probability density of the continuous node.

        Parameters
        ----------
        x : number or array-like

        Returns
        -------
        float, or ndarray of the shape of `x`
        """
        return _plain(self._univariate("pdf").pdf(np.asarray(x, dtype=float)))

    def cdf(self, x: npt.ArrayLike) -> Any:
        """Compute the cumulative distribution function of the continuous node: the probability of at most `x`.

        Parameters
        ----------
        x : number or array-like

        Returns
        -------
        float, or ndarray of the shape of `x`
        """
        return _plain(self._univariate("cdf").cdf(np.asarray(x, dtype=float)))

    def quantile(self, q: npt.ArrayLike) -> Any:
        """Compute quantiles of the continuous node: the inverse of `cdf`.

        Parameters
        ----------
        q : number or array-like
            Probabilities between 0 and 1.

        Returns
        -------
        float, or ndarray of the shape of `q`
        """
        probabilities = np.asarray(q, dtype=float)
        if not ((probabilities > 0) & (probabilities < 1)).all():
            raise DataError.wrong_type("q", repr(q), "numbers between 0 and 1")
        return _plain(self._univariate("quantile").quantile(probabilities))

    def interval(self, mass: float = 0.95) -> np.ndarray:
        """Compute the equal-tailed interval of the continuous node.

        Parameters
        ----------
        mass : float, default 0.95

        Returns
        -------
        ndarray of shape (2,)
        """
        check_mass(mass)
        return np.asarray(self.quantile([(1 - mass) / 2, (1 + mass) / 2]))

    def marginal(self, *nodes: Name) -> QueryResult:
        """Marginalize over all other nodes of the result.

        Parameters
        ----------
        *nodes : names
            In the order of the result.

        Returns
        -------
        QueryResult
            Without standard errors.
        """
        if not nodes or len(set(nodes)) < len(nodes) or not set(nodes) <= set(self.nodes):
            raise DataError(f"the result has the nodes {self.nodes}, found {nodes}; expected some of these, each once.")
        axes = [self.discrete_nodes.index(node) for node in nodes if node in self.levels]
        summed = self.probabilities.sum(axis=tuple(k for k in range(len(self.levels)) if k not in axes))
        probabilities = summed.transpose(np.argsort(np.argsort(axes)))
        levels = {node: self.levels[node] for node in nodes if node in self.levels}
        columns = np.array([self.continuous_nodes.index(node) for node in nodes if node not in levels], dtype=np.intp)
        if self._mixture is None or not len(columns):
            return QueryResult(nodes, levels, probabilities, self.given)
        combinations = np.zeros_like(self._mixture.combinations)
        if axes:
            codes = np.unravel_index(self._mixture.combinations, self.probabilities.shape)
            combinations = np.ravel_multi_index([codes[axis] for axis in axes], probabilities.shape)
        return QueryResult(nodes, levels, probabilities, self.given, self._mixture.marginal(columns, combinations))

    def _frame_data(self) -> FrameData:
        if not self.levels:
            return {"node": self.nodes, "mean": np.atleast_1d(self.mean), "std": np.atleast_1d(self.std)}
        names: list[Any] = [*self.discrete_nodes, free_name("probability", self.nodes), *self._moment_names()]
        probabilities = self.probabilities.ravel()
        rows = ((*levels, probabilities[k], *self._conditional_moments(k)) for k, levels in self._combinations.items())
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))

    def _moment_names(self) -> list[str]:
        return [f"{printable(node)}: {moment}" for node in self.continuous_nodes for moment in ("mean", "std")]

    def _conditional_moments(self, combination: int) -> list[float]:
        """Return the mean and standard deviation of every continuous node, given one combination of levels."""
        if self._mixture is None:
            return []
        result = self[_unpacked(self._combinations[combination])]
        return np.column_stack([np.atleast_1d(result.mean), np.atleast_1d(result.std)]).ravel().tolist()

    def _require_discrete(self, attribute: str) -> None:
        if not self.levels:
            raise DataError(
                f"{attribute} needs a discrete node, and {self._title()} has none.\n    Use mean, std, pdf or cdf."
            )

    def _components(self, attribute: str) -> StudentTMixture:
        if self._mixture is None:
            raise DataError(
                f"{attribute} needs a continuous node, and {self._title()} has none.\n"
                "    Use probabilities, or result[level]."
            )
        return self._mixture

    def _univariate(self, method: str) -> StudentTMixture:
        mixture = self._components(method)
        if len(self.continuous_nodes) > 1:
            raise DataError(
                f"{method} needs one continuous node, and the result has {len(self.continuous_nodes)}.\n"
                f"    Use marginal({self.continuous_nodes[0]!r}) first."
            )
        return mixture

    def _title(self) -> str:
        draws = "" if self.n_draws is None else f", {self.n_draws:,} draws (effective size {self.effective_size:,.0f})"
        return format_query(self.nodes, self.given) + draws

    def _content(self) -> list[str | ResultTable]:
        if not self.levels:
            return [self._continuous_table()]
        probabilities = self.probabilities.ravel()
        combinations = list(self._combinations)
        if len(self) > _SHOWN:  # the most probable first
            combinations = sorted(combinations, key=lambda k: -probabilities[k])
        shown = combinations[:_SHOWN]
        head: list[str] = []
        levels = [list(map(repr, self._combinations[k])) for k in shown]
        if self._mixture is None:
            levels = [[", ".join(names)] for names in levels]
        else:
            head = [*map(printable, self.levels), "probability", *self._moment_names()]
        rows = [[*names, *self._cells(k)] for names, k in zip(levels, shown, strict=True)]
        rest = 1 - probabilities[shown].sum()
        more = [f"  … {len(self) - _SHOWN} less probable, {rest:.4f} together"] if len(self) > _SHOWN else []
        return [ResultTable(rows, head, self._title()), *more]

    def _cells(self, combination: int) -> list[str]:
        """Return the printed probability, and moments of continuous nodes or a bar, of one combination of levels."""
        probability = float(self.probabilities.ravel()[combination])
        if self._mixture is not None:
            shown = [f"{number:.4g}" for number in self._conditional_moments(combination)]
        elif self.standard_errors is not None:
            shown = [f"± {self.standard_errors.ravel()[combination]:.4f}"]
        else:
            shown = ["█" * round(_BAR * probability)]
        return [f"{probability:.4f}", *shown]

    def _continuous_table(self) -> ResultTable:
        """Return quantiles of one continuous node; mean, standard deviation and correlations of several."""
        if len(self.nodes) == 1:
            title = f"{self._title()}: mean {self.mean:.4g}, standard deviation {self.std:.4g}"
            quantiles = zip(_QS, self.quantile(_QS), strict=True)
            return ResultTable([[f"{q:.0%}".replace("%", " %"), f"{x:.4g}"] for q, x in quantiles], (), title, "rl")
        scale = np.where(self.std > 0, self.std, 1.0)
        correlation = self.covariance / (scale[:, None] * scale)
        numbers = zip(self.nodes, self.mean, self.std, correlation, strict=True)
        rows = [[printable(node), f"{m:.4g}", f"{s:.4g}", *(f"{r:.3f}" for r in row)] for node, m, s, row in numbers]
        head = ["", "mean", "std", *(f"corr. with {printable(node)}" for node in self.nodes)]
        return ResultTable(rows, head, f"{self._title()}: means, standard deviations and correlations")


Value = TypeVar("Value")


class NodeMapping(Mapping[Any, Value]):
    """Read-only mapping from node to a value."""

    def __init__(self, values: Mapping[Any, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, node: Name) -> Value:
        return self._values[node]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class MostProbableAssignment(Result, NodeMapping[Any]):
    """Most probable joint assignment: a mapping from node to level.

    Attributes
    ----------
    log_probability : float
        Log p(assignment | given).
    given : dict
        The evidence.
    """

    def __init__(
        self, levels: Mapping[Any, Any], log_probability: float, given: Mapping[Any, Any], is_marginal: bool = False
    ) -> None:
        super().__init__(levels)
        self.log_probability = log_probability
        self.given = dict(given)
        self._is_marginal = is_marginal

    def _frame_data(self) -> FrameData:
        return {"node": list(self), "level": list(self.values())}

    def _content(self) -> list[ResultTable]:
        roles = {node: "(evidence)" if node in self.given else "" for node in self}
        roles |= {node: "(intervention)" for node in self if f"do({node})" in self.given}
        others = ", summed over the others" if self._is_marginal else ""
        title = f"most probable assignment{others}, p = {np.exp(self.log_probability):.4g}"
        return [ResultTable([[printable(node), repr(self[node]), roles[node]] for node in self], (), title)]


class NodePosteriors(Result, NodeMapping[np.ndarray]):
    """p(node | evidence) of many rows: a mapping from node to an array of shape (n, n_levels).

    Attributes
    ----------
    impossible : ndarray of bool of shape (n,)
        Rows whose evidence has probability 0; they get the probabilities without evidence.
    log_likelihood : ndarray of shape (n,)
        Log p(evidence) of every row.
    levels : dict
        The levels of the columns of every array.
    """

    def __init__(
        self, posteriors: Mapping[Any, np.ndarray], levels: Mapping[Any, tuple[Any, ...]], log_likelihood: np.ndarray
    ) -> None:
        super().__init__(posteriors)
        self.levels = dict(levels)
        self.log_likelihood = log_likelihood

    @classmethod
    def joined(cls, parts: list[NodePosteriors]) -> NodePosteriors:
        """Concatenate the results of batches of rows."""
        posteriors = {node: np.concatenate([part[node] for part in parts]) for node in parts[0]}
        return cls(posteriors, parts[0].levels, np.concatenate([part.log_likelihood for part in parts]))

    @property
    def impossible(self) -> np.ndarray:
        """Rows whose evidence has probability 0."""
        return np.isneginf(self.log_likelihood)

    def _frame_data(self) -> FrameData:
        columns = [(node, k, level) for node, levels in self.levels.items() for k, level in enumerate(levels)]
        return {f"{printable(node)}: {level!r}": self[node][:, k] for node, k, level in columns}

    def _content(self) -> list[str]:
        n_impossible = int(self.impossible.sum())
        more = f", {n_impossible} impossible" if n_impossible else ""
        return [f"NodePosteriors: {len(self)} nodes, {len(self.log_likelihood)} rows{more}"]


def format_query(nodes: Iterable[Name], given: Mapping[Any, Any]) -> str:
    """Format the query: p(nodes | given)."""
    known = format_evidence(given)
    return f"p({', '.join(map(printable, nodes))}{' | ' + known if known else ''})"


def format_evidence(given: Mapping[Any, Any]) -> str:
    """Format the evidence: a = 1, b = 2."""
    plain = {node: value.item() if isinstance(value, np.generic) else value for node, value in given.items()}
    return ", ".join(f"{printable(node)} = {value!r}" for node, value in plain.items())


def _unpacked(values: Sequence[Any] | np.ndarray) -> Any:
    """Return the only value of a sequence or an array, or all values: a tuple or the array."""
    if len(values) > 1:
        return values if isinstance(values, np.ndarray) else tuple(values)
    return float(values[0]) if isinstance(values, np.ndarray) else values[0]


def _plain(values: np.ndarray) -> Any:
    """Return an array, or its number if it has no axes."""
    return values if values.ndim else values.item()


def _is_bool(level: object) -> bool:
    return isinstance(level, bool | np.bool_)
