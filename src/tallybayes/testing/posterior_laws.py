"""Laws of distributions, samples and frozen values."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue, from_config
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Codes
from tallybayes.families.family import Family

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of a sum, relative to its largest term


def check_posterior(prior: ParameterDistribution, a: Statistics, b: Statistics, *, tolerance: float = 1e-9) -> None:
    """Check update(a).update(b) = update(a + b), and the chain rule of the log evidence.

    Parameters
    ----------
    prior : ParameterDistribution
    a, b : Statistics
    tolerance : float, default 1e-9
        Relative to the largest number of every parameter. A parameter that is the sum of terms that cancel, such as
        the mean of inputs of both signs, may also differ by 64 units of rounding of the largest of them: of this
        parameter in `prior`, and in its updates by `a` and by `b`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_posterior
    >>> check_posterior(tb.Dirichlet(0.5), tb.Counts([3, 0, 1]), tb.Counts([0, 0, 7]))
    """
    posterior = prior.update(a)
    law = "update(a).update(b) = update(a + b)"
    terms = (prior, posterior, prior.update(b))
    _check_same_distribution(posterior.update(b), prior.update(a + b), tolerance, law, terms)
    empty = a.scale(0.0)
    _check_same_distribution(posterior.update(empty), posterior, tolerance, "update(0) changes nothing")
    first, second = np.asarray(prior.log_evidence(a)), np.asarray(posterior.log_evidence(b))
    both = np.asarray(prior.log_evidence(a + b))
    slack = tolerance * (1 + np.abs(first) + np.abs(second))
    _check_close(both, first + second, slack, "log_evidence(a + b) = log_evidence(a) + posterior(a).log_evidence(b)")
    _check_close(np.asarray(prior.log_evidence(empty)), np.zeros_like(first), tolerance, "log_evidence(0) = 0")


def check_samples(
    family: Family, parameters: Any, *, n: int = 20_000, rng: np.random.Generator | int | None = 0
) -> None:
    """Check that rows sampled from a family follow its parameters and have its mean.

    By Wilks' theorem, twice the log likelihood ratio of the maximum likelihood estimate from the sample and the true
    parameters follows χ² with as many degrees of freedom as there are parameters. The sample mean is compared with
    `Family.mean`.

    Parameters
    ----------
    family : Family
    parameters : the family's parameters, of shape (columns,) or (columns, columns), without groups
    n : int, default 20_000
        Number of rows. Errors of moments are detected from about 10 / √n standard deviations.
    rng : Generator, seed or None

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> from tallybayes.testing import check_samples
    >>> check_samples(tb.Poisson(), np.array([0.3, 5.0]))
    """
    from scipy.stats import chi2

    rows = family.sample(parameters, n, np.random.default_rng(rng))
    block = Codes(rows, parameters.segments.sizes) if family.cell_type == "codes" else rows
    statistics = family.collect(block).reshape_groups(())
    best = family.maximum_likelihood(statistics)
    ratio = 2 * np.sum(family.log_likelihood(best, statistics) - family.log_likelihood(parameters, statistics))
    parts = parameters if isinstance(parameters, tuple) else (parameters,)
    degrees_of_freedom = sum(np.size(part) for part in parts if isinstance(part, np.ndarray | float))
    limit = float(chi2.isf(1e-9, degrees_of_freedom))
    if not -1e-6 * n <= ratio <= limit:
        raise AssertionError(
            f"samples of {family!r} do not look like their parameters {parameters!r}: "
            f"twice the log likelihood ratio is {ratio:.6g}, expected less than {limit:.6g}"
        )
    if family.cell_type != "codes":
        mean, expected = rows.mean(axis=0), family.mean(parameters)
        if (np.abs(mean - expected) > 8 * rows.std(axis=0) / np.sqrt(n) + 1e-9 * np.abs(expected)).any():
            raise AssertionError(f"samples of {family!r} have the mean {mean!r}; Family.mean returned {expected!r}")


def check_posterior_samples(
    distribution: ParameterDistribution,
    *,
    mass: float = 0.8,
    n: int = 20_000,
    rng: np.random.Generator | int | None = 0,
) -> None:
    """Check that draws of parameters have the distribution's mean, and its intervals the right coverage.

    Parameters
    ----------
    distribution : ParameterDistribution
        With finite variances, so that sample means converge.
    mass : float, default 0.8
    n : int, default 20_000
    rng : Generator, seed or None

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_posterior_samples
    >>> check_posterior_samples(tb.Gamma(3.0, 0.5))
    """
    draws = _parts(distribution.sample(n, random_state=rng))
    for sample, mean in zip(draws, _parts(distribution.mean()), strict=True):
        error = sample.std(axis=0) / np.sqrt(n)
        _check_close(
            sample.mean(axis=0), mean, 6.5 * error + 1e-12 * np.abs(mean), f"samples of {distribution!r} have its mean"
        )
    low, high = distribution.interval(mass)
    for sample, bottom, top in zip(draws, _parts(low), _parts(high), strict=True):
        if sample.ndim > bottom.ndim + 1:  # intervals of a covariance matrix are for its variances
            sample = np.diagonal(sample, axis1=-2, axis2=-1)
        inside = ((sample >= bottom) & (sample <= top)).mean(axis=0)
        slack = 6.5 * np.sqrt(mass * (1 - mass) / n)
        _check_close(inside, np.full(inside.shape, mass), slack, f"coverage of the {mass} interval of {distribution!r}")


def check_value(value: FrozenValue) -> None:
    """Check equality, hash, repr, copies and the JSON form of a family, distribution, rule or factor.

    Parameters
    ----------
    value : Value
        Of a class of this package; files contain no others.

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
        for name, part in other.arrays().items():
            if part.flags.writeable:
                raise AssertionError(f"{name} of {value!r} is writable after {how}")


def _largest(array: np.ndarray) -> float:
    """Return the largest absolute value among the finite numbers of an array."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _check_same_distribution(
    found: ParameterDistribution,
    expected: ParameterDistribution,
    tolerance: float,
    law: str,
    terms: Sequence[ParameterDistribution] = (),
) -> None:
    """Raise AssertionError unless two distributions agree.

    A parameter near 0 may be the sum of large `terms` that cancel, such as the mean of inputs of both signs. Its
    rounding error is relative to the same parameter of the terms.
    """
    if type(found) is not type(expected):
        raise AssertionError(f"the law {law!r} does not hold: {found!r}, expected {expected!r}")
    for name in (field.name for field in fields(expected)):  # type: ignore[arg-type]
        expected_value, value = getattr(expected, name), getattr(found, name)
        if isinstance(expected_value, np.ndarray):
            finite = np.where(np.isfinite(expected_value), np.abs(expected_value), 0.0)
            rounding = _ROUNDING * max((_largest(np.asarray(getattr(term, name))) for term in terms), default=0.0)
            slack = tolerance * (finite + finite.max(initial=0.0)) + rounding
            _check_close(value, expected_value, slack, f"{law} ({name})")
        elif isinstance(expected_value, tuple | str | int | float) and value != expected_value:
            raise AssertionError(f"the law {law!r} does not hold: {name} is {value!r}, expected {expected_value!r}")


def _check_close(found: np.ndarray, expected: np.ndarray, slack: float | np.ndarray, law: str) -> None:
    """Raise AssertionError unless two arrays agree within `slack`."""
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
    """Return the arrays of parameters."""
    parts = parameters if isinstance(parameters, tuple) else (parameters,)
    return [np.asarray(part, dtype=np.float64) for part in parts]
