"""Prior and posterior distributions of parameters: base class, credible intervals and shared helpers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.frozen_value import FrozenValue, frozen_array
from tallybayes._utils.parameter_checks import check_count, check_mass
from tallybayes.errors import PriorError, short_repr
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.families.family import Family
    from tallybayes.plotting.plot import Plot


class Interval(NamedTuple):
    """Equal-tailed credible interval: `low` and `high` have the shape of the parameter."""

    low: Any
    high: Any


class ParameterDistribution(FrozenValue):
    """Base class of conjugate prior and posterior distributions.

    One class serves both roles: a prior, and the posterior returned by `update`. All parameter arrays broadcast over
    ``(*given, columns or levels)``.
    """

    accepts_any_family: ClassVar[bool] = False  # whether it can be the prior of every family
    strength_fields: ClassVar[tuple[str, ...]] = ()  # parameters that are proportional to the prior strength
    count_fields: ClassVar[tuple[str, ...]] = ()  # pseudo-counts, from which the mode subtracts 1

    def resolve(self, family: Family, statistics: Statistics, estimate: str) -> ParameterDistribution:
        """Return the prior for these statistics: the distribution itself. Prior rules (`PriorRule`) compute one."""
        return self

    def update(self, statistics: Any) -> Self:
        """Return the posterior distribution given `statistics`, an instance of the same class."""
        raise NotImplementedError

    def mode(self) -> Any:
        """Return the mode: on the boundary if there is no interior mode. Raise PriorError if no mode exists."""
        raise NotImplementedError

    def mode_or_boundary(self) -> Any:
        """Return the MAP estimate: the `mode` or, if it does not exist, a boundary value chosen by convention."""
        return self.mode()

    def mean(self) -> Any:
        """Return the expected parameter."""
        raise NotImplementedError

    def interval(self, mass: float = 0.95) -> Interval:
        """Return the equal-tailed credible interval with probability `mass`."""
        raise NotImplementedError

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Draw random parameters.

        Parameters
        ----------
        n : int or tuple of int, optional
            Number of draws, as leading axes of the result. By default one draw without a leading axis.
        random_state : int, Generator or None
            Seed or random number generator.
        """
        raise NotImplementedError

    def log_prob(self, parameter: Any) -> Any:
        """Return the log density of a parameter, joint over parameters that are not independent."""
        raise NotImplementedError

    def log_evidence(self, statistics: Any) -> Any:
        """Return the log marginal likelihood (log evidence) of the data summarized by `statistics`."""
        raise NotImplementedError

    def mode_matched(self) -> Self:
        """Return a prior whose posterior mode equals the posterior mean under this prior, with pseudo-counts + 1."""
        counts = {name: getattr(self, name) + 1 for name in self.count_fields}
        return self.replace(**counts) if counts else self

    def scaled(self, factor: float) -> Self:
        """Return the distribution with the same expectations and `factor` times the prior strength."""
        if not self.strength_fields:
            raise PriorError(f"{type(self).__name__} has no strength to scale; expected a conjugate prior.")
        return self.replace(**{name: getattr(self, name) * factor for name in self.strength_fields})

    def plot(self, ax: Axes | None = None) -> Plot:
        """Plot the densities, or the probabilities of levels or hypotheses. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; two if the parameters are means and variances.

        Returns
        -------
        Plot
        """
        from tallybayes.plotting.parameter_distributions import plot_distribution

        return plot_distribution(self, ax)

    def column(self, index: int) -> ParameterDistribution:
        """Return the distribution of the parameters of one column."""
        if not self.strength_fields:
            raise NotImplementedError
        return type(self)(*(part[..., index] for part in np.broadcast_arrays(*self._fields().values())))

    def _freeze(self, *names: str, **arrays: npt.ArrayLike) -> None:
        """Store fields, or new values of fields, as read-only arrays. Called by ``__post_init__``."""
        for name in names:
            arrays[name] = getattr(self, name)
        for name, value in arrays.items():
            try:
                object.__setattr__(self, name, frozen_array(value))
            except (TypeError, ValueError, OverflowError):
                found = f"{name} of {type(self).__name__} is {short_repr(value)}"
                raise PriorError(f"{found}; expected finite numbers, one or an array of them.") from None

    def _broadcast(self, shape: tuple[int, ...], *names: str) -> Iterator[np.ndarray]:
        """Yield parameters broadcast to the shape of the statistics; raise PriorError with both shapes."""
        return (broadcast_prior(type(self).__name__, getattr(self, name), shape) for name in names)

    def _allow_limits(self, *names: str) -> None:
        """Require parameters ≥ 0. A parameter of 0 makes the distribution improper until data are added."""
        values = [getattr(self, name) for name in names]
        for name, value in zip(names, values, strict=True):
            if not (np.isfinite(value).all() and (value >= 0).all()):
                raise PriorError.wrong_parameter(type(self).__name__, name, value, "finite numbers of at least 0")
        object.__setattr__(self, "_improper", any((value == 0).any() for value in values))

    def _require_proper(self, quantity: str) -> None:
        """Raise PriorError, naming the requested quantity, if the distribution is improper."""
        if self.improper:
            raise PriorError(
                f"{self!r} is improper, a limit of distributions: it has no {quantity}.\n"
                "    Update it with statistics that make every parameter positive, or pass parameters above 0."
            )

    def _without_mode(self) -> PriorError:
        """Return the error for a density that is unbounded at several points."""
        return PriorError(
            f"{self!r} has no mode: its density has no upper bound in several places.\n    Use its mean()."
        )

    @property
    def improper(self) -> bool:
        """Whether the distribution cannot be normalized. An improper prior has no evidence, mean or density."""
        return bool(getattr(self, "_improper", False))

    def _require_positive(self, *names: str) -> None:
        """Raise PriorError unless these parameters are positive and finite."""
        check_positive(type(self).__name__, **{name: getattr(self, name) for name in names})

    def _require_finite(self, *names: str) -> None:
        """Raise PriorError unless these parameters are finite."""
        for name in names:
            if not np.isfinite(value := getattr(self, name)).all():
                raise PriorError.wrong_parameter(type(self).__name__, name, value, "finite numbers")

    def _require_symmetric(self, name: str) -> None:
        """Raise PriorError unless a parameter consists of symmetric matrices."""
        matrices = getattr(self, name)
        if not np.allclose(matrices, np.swapaxes(matrices, -1, -2), rtol=1e-9, atol=0):
            hint = "If the differences are rounding errors, pass (A + A.T) / 2."
            raise PriorError.wrong_parameter(type(self).__name__, name, matrices, "a symmetric matrix", hint)


def check_positive(distribution: str, **parameters: npt.ArrayLike) -> None:
    """Raise PriorError unless these parameters of a distribution are positive and finite."""
    for name, value in parameters.items():
        array = np.asarray(value, dtype=float)
        if not (np.isfinite(array).all() and (array > 0).all()):
            raise PriorError.wrong_parameter(distribution, name, value)


def broadcast_prior(distribution: str, prior: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast a prior parameter to the shape of the statistics, or raise PriorError with both shapes."""
    try:
        return np.broadcast_to(prior, shape)
    except ValueError:
        raise PriorError.wrong_shape(distribution, prior.shape, shape) from None


def tail_probabilities(mass: float) -> tuple[float, float]:
    """Return the lower and upper tail probabilities of an equal-tailed interval with probability `mass`."""
    check_mass(mass)
    return (1 - mass) / 2, (1 + mass) / 2


def as_float(value: npt.ArrayLike) -> Any:
    """Return a Python float for a scalar, otherwise the array."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else array


def as_size(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a size as a tuple; raise DataError if it is not a whole number or several."""
    sizes = size if isinstance(size, tuple | list) else (size,)
    return tuple(check_count("n", one, 0) for one in sizes)
