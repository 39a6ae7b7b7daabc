"""The laws of learning: beliefs that grow with the data, samples that look like what they claim, values that travel."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue, from_config
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Codes
from tallybayes.families.family import Family

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


def check_posterior(belief: ParameterDistribution, a: Statistics, b: Statistics, *, tolerance: float = 1e-9) -> None:
    """update(a).update(b) = update(a + b), and the evidence of both is that of a, then of b given a.

    Parameters
    ----------
    belief : Belief
    a, b : Statistics
    tolerance : float, default 1e-9
        Relative to the largest number in play.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_posterior
    >>> check_posterior(tb.Dirichlet(0.5), tb.Counts([3, 0, 1]), tb.Counts([0, 0, 7]))
    """
    after = belief.update(a)
    _same_belief(after.update(b), belief.update(a + b), tolerance, "update(a).update(b) = update(a + b)")
    nothing = a.scale(0.0)
    _same_belief(after.update(nothing), after, tolerance, "update(0) changes nothing")
    first, second = np.asarray(belief.log_evidence(a)), np.asarray(after.log_evidence(b))
    both = np.asarray(belief.log_evidence(a + b))
    slack = tolerance * (1 + np.abs(first) + np.abs(second))
    _close(both, first + second, slack, "log_evidence(a + b) = log_evidence(a) + posterior(a).log_evidence(b)")
    _close(np.asarray(belief.log_evidence(nothing)), np.zeros_like(first), tolerance, "log_evidence(0) = 0")


def check_samples(
    family: Family, parameters: Any, *, n: int = 20_000, rng: np.random.Generator | int | None = 0
) -> None:
    """Rows drawn from a family are as likely as rows of its parameters are.

    By Wilks' theorem twice the log likelihood ratio between the best parameters for the sample and the claimed ones
    follows χ² with as many degrees of freedom as there are parameters; far out in its tail the claim is false. The mean
    of numbers is what `Family.expected` says, by which missing cells are filled in.

    Parameters
    ----------
    family : Family
    parameters : the family's parameters, of shape (columns,) or (columns, columns), without groups
    n : int, default 20_000
        Rows to draw. A wrong moment shows if it is off by some 10 / √n.
    rng : Generator, seed or None

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> from tallybayes.testing import check_samples
    >>> check_samples(tb.Poisson(), np.array([0.3, 5.0]))
    """
    from scipy.stats import chi2

    drawn = family.sample(parameters, n, np.random.default_rng(rng))
    block = Codes(drawn, parameters.segments.sizes) if family.cell_type == "codes" else drawn
    statistics = family.collect(block).reshape_groups(())
    best = family.maximum_likelihood(statistics)
    ratio = 2 * np.sum(family.log_likelihood(best, statistics) - family.log_likelihood(parameters, statistics))
    parts = parameters if isinstance(parameters, tuple) else (parameters,)
    freedom = sum(np.size(part) for part in parts if isinstance(part, np.ndarray | float))
    limit = float(chi2.isf(1e-9, freedom))
    if not -1e-6 * n <= ratio <= limit:
        raise AssertionError(
            f"samples of {family!r} do not look like their parameters {parameters!r}: "
            f"twice the log likelihood ratio is {ratio:.6g}, expected less than {limit:.6g}"
        )
    if family.cell_type != "codes":
        mean, claimed = drawn.mean(axis=0), family.mean(parameters)
        if (np.abs(mean - claimed) > 8 * drawn.std(axis=0) / np.sqrt(n) + 1e-9 * np.abs(claimed)).any():
            raise AssertionError(f"samples of {family!r} have the mean {mean!r}, but `expected` is {claimed!r}")


def check_posterior_samples(
    belief: ParameterDistribution, *, mass: float = 0.8, n: int = 20_000, rng: np.random.Generator | int | None = 0
) -> None:
    """Parameters drawn from a belief have its mean, and its credible interval holds as many as it says.

    Parameters
    ----------
    belief : Belief
        With finite variances, so that a sample mean settles.
    mass : float, default 0.8
    n : int, default 20_000
    rng : Generator, seed or None

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_posterior_samples
    >>> check_posterior_samples(tb.Gamma(3.0, 0.5))
    """
    drawn = _parts(belief.sample(n, random_state=rng))
    for sample, mean in zip(drawn, _parts(belief.mean()), strict=True):
        error = sample.std(axis=0) / np.sqrt(n)
        _close(sample.mean(axis=0), mean, 6.5 * error + 1e-12 * np.abs(mean), f"samples of {belief!r} have its mean")
    low, high = belief.interval(mass)
    for sample, bottom, top in zip(drawn, _parts(low), _parts(high), strict=True):
        if sample.ndim > bottom.ndim + 1:  # a covariance matrix: its interval is about the variances
            sample = np.diagonal(sample, axis1=-2, axis2=-1)
        inside = ((sample >= bottom) & (sample <= top)).mean(axis=0)
        slack = 6.5 * np.sqrt(mass * (1 - mass) / n)
        _close(inside, np.full(inside.shape, mass), slack, f"the {mass} interval of {belief!r} holds that much")


def check_value(value: FrozenValue) -> None:
    """A family, belief, rule or factor compares, hashes, prints, copies and turns into JSON and back.

    Parameters
    ----------
    value : Value
        Of a class of this package: only those are known to files.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_value
    >>> check_value(tb.Categorical(levels=("a", "b")))
    """
    copies = {
        "to_config and from_config": from_config(json.loads(json.dumps(value.to_config()))),
        "pickle": pickle.loads(pickle.dumps(value)),
        "deepcopy, which scikit-learn's clone does": copy.deepcopy(value),
        "replace": value.replace(),
    }
    for how, other in copies.items():
        if not (other == value and hash(other) == hash(value) and repr(other) == repr(value)):
            raise AssertionError(f"{value!r} became {other!r} by {how}")
        if other.to_config() != value.to_config():
            raise AssertionError(f"{value!r} became {other.to_config()!r} by {how}")
        for name, part in other._fields().items():
            if isinstance(part, np.ndarray) and part.flags.writeable:
                raise AssertionError(f"{name} of {value!r} can be changed from outside after {how}")


def _same_belief(found: ParameterDistribution, expected: ParameterDistribution, tolerance: float, law: str) -> None:
    if type(found) is not type(expected):
        raise AssertionError(f"the law {law!r} does not hold: {found!r}, expected {expected!r}")
    for name, wanted in expected._fields().items():
        value = getattr(found, name)
        if isinstance(wanted, np.ndarray):
            with np.errstate(invalid="ignore"):
                finite = np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
            _close(value, wanted, tolerance * (finite + finite.max(initial=0.0)), f"{law} ({name})")
        elif isinstance(wanted, tuple | str | int | float) and value != wanted:
            raise AssertionError(f"the law {law!r} does not hold: {name} is {value!r}, expected {wanted!r}")


def _close(found: np.ndarray, expected: np.ndarray, slack: Any, law: str) -> None:
    if found.shape != expected.shape:
        raise AssertionError(f"the law {law!r} does not hold: shape {found.shape}, expected {expected.shape}")
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(found - expected) <= slack) | (found == expected))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"the law {law!r} does not hold at {index}: {found[index]!r}, expected {expected[index]!r}"
        )


def _parts(parameters: Any) -> list[np.ndarray]:
    parts = parameters if isinstance(parameters, tuple) else (parameters,)
    return [np.asarray(part, dtype=np.float64) for part in parts]
