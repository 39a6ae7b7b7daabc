"""What a Bayesian network says of measured nodes: a mixture over the labels they depend on, told exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtr

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.errors import DataError, printable
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import question_of
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)
_HALVINGS = 200  # more than a float has digits


class Parts(NamedTuple):
    """The distributions that are mixed: Student's t, or normal where the degrees of freedom are infinite."""

    weight: np.ndarray  # (parts,)
    location: np.ndarray  # (parts, nodes)
    scatter: np.ndarray  # (parts, nodes, nodes): covariances of normal ones, of others what they would be without tails
    freedom: np.ndarray  # (parts, nodes)


class MeasuredAnswer:
    """p(nodes | given) of measured nodes: a mixture of normal distributions, one for every combination of labels.

    Of a node that no arrow links to measured ones, under ``"bayes"``, the parts are Student's t: its parameters are
    integrated out.

    Attributes
    ----------
    nodes : tuple
        What was asked for.
    given : dict
        What was known.
    mean, standard_deviation : float, or ndarray of shape (nodes,)
    covariance : ndarray of shape (nodes, nodes)
    weights : ndarray of shape (parts,)
        The probability of every combination of labels that has any.

    Examples
    --------
    >>> import tallybayes as tb
    >>> model = tb.BayesianNetwork.from_parameters({
    ...     "height": {"intercept": 1.7, "deviation": 0.1},
    ...     "weight": {"parents": ["height"], "intercept": -80, "weights": {"height": 88}, "deviation": 6}})
    >>> model.query("weight", {"height": 1.8})
    p(weight | height = 1.8): mean 78.4, standard deviation 6
      5 %  68.53
     25 %  74.35
     50 %  78.4
     75 %  82.45
     95 %  88.27
    >>> model.query("height", {"weight": 78.4}).interval(0.9).round(3)
    array([1.676, 1.861])
    """

    def __init__(self, nodes: tuple[Name, ...], parts: Parts, given: Mapping[Any, Any]) -> None:
        self.nodes, self.given, self._parts = nodes, dict(given), parts
        self.weights = parts.weight
        mean = parts.weight @ parts.location
        gaps = parts.location - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            wider = np.where(np.isinf(parts.freedom), 1.0, parts.freedom / (parts.freedom - 2))
            wider = np.where(parts.freedom > 2, wider, np.inf)
            grown = np.sqrt(wider)
            within = parts.scatter * np.where(
                parts.scatter == 0, 1.0, grown[:, :, None] * grown[:, None, :]
            )  # nodes of which one is a t are independent
        self.covariance = np.einsum("k,kij->ij", parts.weight, within + gaps[:, :, None] * gaps[:, None, :])
        deviation = np.sqrt(np.diagonal(self.covariance))
        self.mean: Any = float(mean[0]) if len(nodes) == 1 else mean
        self.standard_deviation: Any = float(deviation[0]) if len(nodes) == 1 else deviation

    def marginal(self, *nodes: Name) -> MeasuredAnswer:
        """The answer about some of the nodes, whatever the others are.

        Parameters
        ----------
        *nodes : names
            In the order wanted.
        """
        if not nodes or len(set(nodes)) < len(nodes) or not set(nodes) <= set(self.nodes):
            raise DataError(f"the answer is about {self.nodes}, found {nodes}; expected some of these, each once.")
        kept = np.array([self.nodes.index(node) for node in nodes])
        weight, location, scatter, freedom = self._parts
        some = Parts(weight, location[:, kept], scatter[:, kept[:, None], kept], freedom[:, kept])
        return MeasuredAnswer(tuple(nodes), some, self.given)

    def density(self, x: npt.ArrayLike) -> Any:
        """p(x) of a value, or of each of several.

        Parameters
        ----------
        x : number or array-like
            Values of the one node that was asked for.
        """
        values, weight, location, scale, freedom = self._alone(x, "density")
        z = (values[..., None] - location) / scale
        log_t = _log_student(z, freedom)
        found = np.exp(log_t - np.log(scale)) @ weight
        return float(found) if np.ndim(x) == 0 else found

    def cumulative(self, x: npt.ArrayLike) -> Any:
        """The probability of a value of at most x, or of each of several.

        Parameters
        ----------
        x : number or array-like
        """
        values, weight, location, scale, freedom = self._alone(x, "distribution function")
        z = (values[..., None] - location) / scale
        found = np.where(np.isinf(freedom), ndtr(z), stdtr(np.where(np.isinf(freedom), 1.0, freedom), z)) @ weight
        return float(found) if np.ndim(x) == 0 else found

    def quantile(self, level: npt.ArrayLike) -> Any:
        """The value that the node is below with some probability, or with each of several.

        Parameters
        ----------
        level : number or array-like
            Between 0 and 1.
        """
        asked = np.atleast_1d(np.asarray(level, dtype=float))
        if not ((asked > 0) & (asked < 1)).all():
            raise DataError.wrong_type("level", repr(level), "numbers between 0 and 1")
        _, _, location, scale, _ = self._alone(0.0, "quantiles")
        low, high = np.full(asked.shape, location.min()), np.full(asked.shape, location.max())
        step = np.full(asked.shape, scale.max())
        while (above := self.cumulative(low) > asked).any():
            low, step = np.where(above, low - step, low), np.where(above, 2 * step, step)
        step[:] = scale.max()
        while (below := self.cumulative(high) < asked).any():
            high, step = np.where(below, high + step, high), np.where(below, 2 * step, step)
        for _ in range(_HALVINGS):
            half = low + (high - low) / 2
            if ((half <= low) | (half >= high)).all():
                break
            reached = self.cumulative(half) >= asked
            low, high = np.where(reached, low, half), np.where(reached, half, high)
        return float(high[0]) if np.ndim(level) == 0 else high.reshape(np.shape(level))

    def interval(self, mass: float = 0.95) -> np.ndarray:
        """The two values between which the node is with some probability, as probable to be below as above.

        Parameters
        ----------
        mass : float, default 0.95

        Returns
        -------
        ndarray of shape (2,)
        """
        if not isinstance(mass, int | float | np.number) or not 0 < mass < 1:
            raise DataError.wrong_type("mass", repr(mass), "a number between 0 and 1")
        return np.asarray(self.quantile([(1 - mass) / 2, (1 + mass) / 2]))

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame: the mean and the deviation of every node."""
        import pandas as pd

        numbers = {"node": list(self.nodes), "mean": np.atleast_1d(self.mean)}
        return pd.DataFrame(numbers | {"standard deviation": np.atleast_1d(self.standard_deviation)})

    def _alone(self, x: Any, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        if len(self.nodes) > 1:
            raise DataError(
                f"the answer is about {len(self.nodes)} nodes; expected one, whose {what} can be told.\n"
                f"    Use marginal({self.nodes[0]!r}) first."
            )
        weight, location, scatter, freedom = self._parts
        return np.asarray(x, dtype=float), weight, location[:, 0], np.sqrt(scatter[:, 0, 0]), freedom[:, 0]

    def _title(self) -> str:
        return question_of(self.nodes, self.given)

    def _lines(self) -> Iterator[list[str]]:
        if len(self.nodes) == 1:
            for level, value in zip(_SHOWN, self.quantile(_SHOWN), strict=True):
                yield [f"{level:.0%}".replace("%", " %"), f"{value:.4g}"]
            return
        yield ["", "mean", "deviation", *(f"with {printable(node)}" for node in self.nodes)]
        scale = np.where(self.standard_deviation > 0, self.standard_deviation, 1.0)
        shared = self.covariance / (scale[:, None] * scale)
        for node, mean, deviation, line in zip(self.nodes, self.mean, self.standard_deviation, shared, strict=True):
            yield [printable(node), f"{mean:.4g}", f"{deviation:.4g}", *(f"{value:.3f}" for value in line)]

    def __repr__(self) -> str:
        if len(self.nodes) == 1:
            title = f"{self._title()}: mean {self.mean:.4g}, standard deviation {self.standard_deviation:.4g}"
            return "\n".join([title, *(f"{level:>5}  {value}" for level, value in self._lines())])
        return "\n".join([f"{self._title()}: means, deviations and correlations", *text_table(list(self._lines()))])

    def _repr_html_(self) -> str:
        head, *rows = [["", self._title()], *self._lines()] if len(self.nodes) == 1 else list(self._lines())
        return html_parts((self._title(), head, rows))


def measured_answer(
    found: NetworkInference,
    asked: tuple[Name, ...],
    labels: Sequence[Name],
    shares: np.ndarray,
    known: Evidence,
    told: Mapping[Any, Any],
) -> MeasuredAnswer:
    """The mixture over combinations of labels that have these shares; parameters as for `mixed_parts`."""
    return MeasuredAnswer(asked, mixed_parts(found, asked, labels, shares, known)[0], told)


def mixed_parts(
    found: NetworkInference, asked: tuple[Name, ...], labels: Sequence[Name], shares: np.ndarray, known: Evidence
) -> tuple[Parts, dict[Name, np.ndarray]]:
    """A part for every combination of labels that has a share, and the codes of its levels.

    Parameters
    ----------
    found : NetworkInference
    asked : tuple of measured nodes
    labels : sequence of names
        All that these depend on, and perhaps others, in the order of the shares.
    shares : ndarray of shape (combinations,)
    known : Known
        Of one row.
    """
    sizes = [len(found.levels[name]) for name in labels]
    some = np.flatnonzero(shares > 0)
    codes = dict(zip(labels, np.unravel_index(some, sizes) if sizes else (), strict=True))
    q = len(asked)
    location, freedom = np.zeros((len(some), q)), np.full((len(some), q), np.inf)
    scatter = np.zeros((len(some), q, q))
    for leaf in dict.fromkeys(map(found.leaf_of, asked)):
        group = found.group(leaf, codes, len(some))
        mine = np.array([k for k, node in enumerate(asked) if found.leaf_of(node) == leaf])
        if leaf in found.components:
            links, family = found.leaves[leaf].parameters, JointGaussian()
            cells = known.cells.get(leaf, np.full((1, links.mean.shape[-1]), np.nan))
            told_of = family.told_by(links, np.flatnonzero(~np.isnan(cells[0])))
            columns = [found.places[asked[k]][1] for k in mine]
            place = np.array([np.flatnonzero(told_of.others == column)[0] for column in columns])
            location[:, mine] = family.conditional_means(links, cells)[0][group][:, columns]
            scatter[:, mine[:, None], mine] = told_of.covariance[group][:, place[:, None], place]
        else:
            at, wide, free = _of_leaf(found.leaves[leaf])
            location[:, mine[0]], scatter[:, mine[0], mine[0]] = at[group], wide[group]
            freedom[:, mine[0]] = free[group]
    return Parts(shares[some] / shares[some].sum(), location, scatter, freedom), codes


def is_normal(found: NetworkInference, node: Name) -> bool:
    """Whether a measured node is one Gaussian column, of which more than a mean can be told."""
    if node in found.places:
        return True
    if node in found.presence:  # whether it is there has a say, too
        return False
    scored = found.leaves[node]
    family = scored.family
    return bool(
        family.measured
        and family.columnwise
        and not family.transforms
        and found.widths[node] == 1
        and (isinstance(scored.parameters, NormalInverseGamma) or hasattr(scored.parameters, "variance"))
    )


def _of_leaf(scored: FactorScorer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Location, squared scale and degrees of freedom of one Gaussian column, in every group."""
    parameters = scored.parameters
    if scored.predictive:
        freedom = 2 * parameters.shape
        wide = parameters.scale / parameters.shape * (1 + 1 / parameters.strength)
        parts = np.broadcast_arrays(parameters.location, wide, freedom)
    else:
        parts = np.broadcast_arrays(parameters.mean, parameters.variance, np.inf)
    location, wide, freedom = (np.array(part, dtype=float)[..., 0] for part in parts)
    return location, np.zeros_like(wide) if len(scored.constant) else wide, freedom


def _log_student(z: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The log density of standard t distributions, normal ones where the freedom is infinite."""
    from scipy.special import gammaln

    normal = np.isinf(freedom)
    nu = np.where(normal, 1.0, freedom)
    tails = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu) - (nu + 1) / 2 * np.log1p(z**2 / nu)
    return np.where(normal, -0.5 * z**2 - 0.5 * np.log(2 * np.pi), tails)
