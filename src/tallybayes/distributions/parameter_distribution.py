"""Belief: a distribution over parameters. A prior before data, a posterior after; one class, two roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue, frozen_array
from tallybayes.errors import PriorError
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.families.family import Family
    from tallybayes.plotting.plot import Plot


class Interval(NamedTuple):
    """An equal-tailed credible interval; both ends have the shape of the parameter."""

    low: Any
    high: Any


class ParameterDistribution(FrozenValue):
    """Base of the conjugate beliefs. All arrays broadcast over (*given, columns or levels)."""

    accepts_any_family: ClassVar[bool] = False  # whether every family takes it for a prior

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """A belief is its own prior; rules (`PriorRule`) make one from the statistics."""
        return self

    def update(self, statistics: Any) -> Self:
        """The belief after seeing `statistics`: the posterior, of the same class."""
        raise NotImplementedError

    def mode(self) -> Any:
        """The most probable parameter; on the boundary where no interior mode exists, an error where there is none."""
        raise NotImplementedError

    def mode_or_boundary(self) -> Any:
        """What ``estimate="map"`` takes: the `mode` or, where there is none, an end of the range, by convention."""
        return self.mode()

    def mean(self) -> Any:
        """The expected parameter."""
        raise NotImplementedError

    def interval(self, mass: float = 0.95) -> Interval:
        """The equal-tailed credible interval holding `mass`."""
        raise NotImplementedError

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Parameters drawn from this belief.

        Parameters
        ----------
        n : int or tuple of int, optional
            How many, in the leading axes; one, without such an axis, if left out.
        random_state : int, Generator or None
        """
        raise NotImplementedError

    def log_prob(self, parameter: Any) -> Any:
        """The log density of a parameter, joint over what belongs together."""
        raise NotImplementedError

    def log_evidence(self, statistics: Any) -> Any:
        """The log marginal likelihood of the data behind `statistics`, the parameters integrated out."""
        raise NotImplementedError

    def mode_matched(self) -> Self:
        """The belief whose mode smooths as this one's mean does, for methods that need a point; itself by default."""
        return self

    def scaled(self, factor: float) -> Self:
        """The same expectations, worth `factor` times as many observations."""
        raise PriorError(f"{type(self).__name__} has no strength to scale; expected one of the conjugate beliefs.")

    def plot(self, ax: Axes | None = None) -> Plot:
        """A picture of the belief: densities, or the probabilities of levels and hypotheses; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Two where there are means and variances.

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.parameter_distributions import plot_belief

        return plot_belief(self, ax)

    def column(self, index: int) -> ParameterDistribution:
        """The belief about one column of a block."""
        raise NotImplementedError

    def _set(self, **arrays: Any) -> None:
        """Freeze fields as read-only arrays; for ``__post_init__``."""
        for name, value in arrays.items():
            object.__setattr__(self, name, frozen_array(value))

    def _allow_limits(self, *names: str) -> None:
        """Parameters of at least 0; where one is 0 this is no distribution, but a limit that data may make one of."""
        found = [getattr(self, name) for name in names]
        for name, value in zip(names, found, strict=True):
            if not (np.isfinite(value).all() and (value >= 0).all()):
                raise PriorError(f"{type(self).__name__} needs {name} of at least 0, found {value}.")
        object.__setattr__(self, "_improper", any((value == 0).any() for value in found))

    def _require_proper(self, what: str) -> None:
        """Raise PriorError if the distribution is improper."""
        if self.improper:
            raise PriorError(
                f"{self!r} is improper, a limit and no distribution: it has no {what}.\n"
                "    Update it with data in which everything was seen, or use parameters above 0."
            )

    def _without_mode(self) -> PriorError:
        return PriorError(
            f"{self!r} has no mode: its density has no upper bound in several places.\n    Use its mean()."
        )

    @property
    def improper(self) -> bool:
        """Whether this is a limit of distributions and none itself: as a prior it needs data, and has no evidence."""
        return bool(getattr(self, "_improper", False))

    def _require_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not (np.isfinite(value).all() and (value > 0).all()):
                raise PriorError.not_positive(type(self).__name__, name, value)


def broadcast_prior(belief: str, prior: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`prior` broadcast to the statistics' shape, or an error that names both."""
    try:
        return np.broadcast_to(prior, shape)
    except ValueError:
        raise PriorError.wrong_shape(belief, prior.shape, shape) from None


def tail_probabilities(mass: float) -> tuple[float, float]:
    """The two probabilities that leave `mass` between them."""
    if not 0 < mass < 1:
        raise PriorError(f"mass is {mass!r}; expected a probability between 0 and 1, such as 0.95.")
    return (1 - mass) / 2, (1 + mass) / 2


def as_float(value: Any) -> Any:
    """A Python float for a single number, the array otherwise."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array


def as_size(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """A size as a tuple."""
    return (size,) if isinstance(size, int) else tuple(size)
