"""Classifiers and mixtures from user-specified parameters: without rows, or as a prior of some strength."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.categorical import Categorical
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.inputs.features import free_name
from tallybayes.models.inputs.input_format import InputFormat
from tallybayes.models.inputs.parameter_input import (
    ParameterBlock,
    check_strength,
    families_of,
    is_marginal,
    nested_mapping,
    prior_from_parameters,
    read_columns_stated,
    read_groups,
    read_labels,
    read_probabilities,
    read_row,
    tally_and_parameters,
)
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.typing import ClassPrior, Columns

if TYPE_CHECKING:
    from tallybayes.models.discriminant.gaussian_discriminant import GaussianDiscriminant
    from tallybayes.models.mixture.mixture_model import Mixture
    from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes

Model = TypeVar("Model", bound=Any)


def naive_bayes_from_parameters(
    cls: type[NaiveBayes],
    /,
    parameters: Mapping[Any, Any],
    class_prior: ClassPrior = None,
    *,
    classes: Iterable[Hashable] | None = None,
    columns: Columns | None = None,
    levels: Mapping[Any, Iterable[Any]] | None = None,
    strength: float | None = None,
    **options: Any,
) -> NaiveBayes:
    """Return a model with user-specified parameters."""
    parameters, class_prior = _apart(parameters, class_prior)
    groups = _classes(class_prior, classes)
    read = read_columns_stated(parameters, groups, columns, levels)
    model = cls(columns=families_of(read), **options)
    model._check_settings()
    return _make(model, groups, class_prior, read, strength)


def mixture_from_parameters(
    cls: type[Mixture],
    /,
    parameters: Mapping[Any, Any],
    class_prior: ClassPrior = None,
    *,
    columns: Columns | None = None,
    levels: Mapping[Any, Iterable[Any]] | None = None,
    strength: float | None = None,
    **options: Any,
) -> Mixture:
    """Return a mixture with user-specified parameters."""
    parameters, class_prior = _apart(parameters, class_prior)
    groups = _classes(class_prior, None)
    if sorted(groups, key=str) != sorted(range(len(groups)), key=str):
        raise DataError.wrong_type("class_prior", f"of the components {groups}", "one for each of 0, 1, …")
    read = read_columns_stated(parameters, sorted(groups), columns, levels)
    if strength is not None:
        options.setdefault("warm_start", True)  # such a prior identifies the components, so EM starts at its mean
    model = cls(len(groups), columns=families_of(read), **options)
    model._check_settings()
    return _make(model, sorted(groups), class_prior, read, strength)


def discriminant_from_parameters(
    cls: type[GaussianDiscriminant],
    /,
    means: Mapping[Any, Any] | npt.ArrayLike,
    covariances: Mapping[Any, Any] | npt.ArrayLike,
    class_prior: ClassPrior = None,
    *,
    classes: Iterable[Hashable] | None = None,
    covariance: str = "full",
    columns: Sequence[Name] | None = None,
    strength: float | None = None,
    **options: Any,
) -> GaussianDiscriminant:
    """Return a discriminant with user-specified means and covariances."""
    means = nested_mapping(means)
    groups = read_labels(means, classes, "classes")
    groups = sorted(groups) if len({type(label) for label in groups}) == 1 else groups
    given = classes if classes is not None else groups
    rows = [nested_mapping(row) for row in read_groups(means, list(given), "means")]
    rows = [rows[list(given).index(label)] for label in groups]
    names = list(columns) if columns is not None else read_labels(rows[0], None, "the columns of means")
    mean = np.stack(
        [read_row(row, names, f"the mean of {label!r}", absent=None) for row, label in zip(rows, groups, strict=True)]
    )
    order = [list(given).index(label) for label in groups]
    model = cls(covariance, **options)
    model._check_settings()
    matrices = _covariances(covariances, covariance, groups, order, names)
    numbers = {"mean": mean, "covariance": matrices}
    for k, label in enumerate(groups):
        check_parameters(
            MultivariateGaussian(), {name: part[k] for name, part in numbers.items()}, [], f"class {label!r}"
        )
    if class_prior is None:
        class_prior = np.full(len(groups), 1 / len(groups))
    elif not isinstance(nested_mapping(class_prior), Mapping):
        class_prior = dict(zip(given, np.asarray(class_prior, dtype=float), strict=True))
    return _make(
        model, groups, class_prior, [ParameterBlock(tuple(names), MultivariateGaussian(), numbers, [])], strength
    )


def _covariances(value: Any, kind: str, groups: list[Any], order: list[int], names: list[Any]) -> np.ndarray:
    """Return a covariance matrix for every class."""
    d = len(names)
    value = nested_mapping(value)
    if isinstance(value, Mapping) and set(value) != set(groups) and set(value) == set(names):
        value = (
            [read_row(value[row], names, "the covariance", absent=None) for row in names]
            if kind == "tied"
            else [value[n] for n in names]
        )
    if isinstance(value, Mapping):
        parts = [nested_mapping(part) for part in read_groups(value, groups, "covariances")]
        parts = [[_line(part[n], names) for n in names] if isinstance(part, Mapping) else part for part in parts]
    else:
        array = np.asarray(value, dtype=float)
        own = array.ndim == 3 or (array.ndim == 2 and kind == "diagonal") or (array.ndim == 1 and kind == "spherical")
        parts = [array] * len(groups) if not own else [array[k] for k in order if k < len(array)]
        if len(parts) != len(groups) or (own and len(array) != len(groups)):
            raise DataError.wrong_shape("covariances", array.shape, f"one for each of the {len(groups)} classes")
    out = []
    for part, label in zip(parts, groups, strict=True):
        array = np.asarray(part, dtype=float)
        if array.ndim == 0:
            array = array * np.eye(d)
        elif array.shape == (d,):
            array = np.diag(array)
        if array.shape != (d, d):
            raise DataError.wrong_shape(f"the covariance of {label!r}", array.shape, f"({d}, {d}), for {d} columns")
        out.append(array)
    return np.stack(out)


def _line(value: Any, names: list[Any]) -> Any:
    """Return a row of a covariance matrix by name, or a variance."""
    return (
        read_row(value, names, "the covariance", absent=None)
        if np.ndim(nested_mapping(value)) or isinstance(nested_mapping(value), Mapping)
        else value
    )


def _apart(parameters: Any, class_prior: ClassPrior) -> tuple[dict[Any, Any], Any]:
    """Return the parameters of the columns, and p(class), which may be among them."""
    if not isinstance(parameters, Mapping):
        raise DataError.wrong_type("parameters", type(parameters).__name__, "a mapping from columns")
    marginal = [part for part in parameters.values() if is_marginal(part)]
    columns = {name: part for name, part in parameters.items() if not is_marginal(part)}
    return columns, marginal[0] if class_prior is None and marginal else class_prior


def _classes(class_prior: ClassPrior, classes: Any) -> list[Any]:
    if class_prior is None:
        raise DataError.wrong_type("class_prior", "None", "p(class): a mapping, a series, or an array with classes=")
    return read_labels(class_prior, classes, "classes")


def _width(statistics: Any) -> int:
    return int(statistics.n_columns)


def _make(
    model: Model, groups: list[Any], class_prior: ClassPrior, read: Sequence[ParameterBlock], strength: float | None
) -> Model:
    """Return the model with these parameters, or with a prior of some strength."""
    names = [name for one in read for name in one.columns]
    target = free_name("class", names)
    domain = Domain(groups, target, declared=groups, is_sorted=True)
    order = [groups.index(label) for label in domain.levels]
    probabilities = read_probabilities(class_prior, groups, "class_prior")[order]
    sorted_ones = [one._replace(numbers={name: part[order] for name, part in one.numbers.items()}) for one in read]
    factors = [Factor(one.columns, (target,), one.family) for one in read]
    schema = Schema(sorted_domains=(target,))
    tally, given = tally_and_parameters(
        Factor(target, (), Categorical()),
        probabilities,
        list(zip(factors, sorted_ones, strict=True)),
        {target: domain},
        schema,
    )
    model.input_format_ = InputFormat.of_tally(target, names)
    if not model.input_format_.by_name:  # one number may stand for a block
        model.input_format_ = model.input_format_._replace(
            n_features=sum(_width(part) for part in tally.statistics[1:])
        )
    if strength is None:
        return model._set_tally(tally)._set_fixed_parameters(given)
    worth = check_strength(strength)
    if (probabilities <= 0).any():
        raise EstimateError(
            f"class {domain.levels[int(probabilities.argmin())]!r} has probability 0; expected a positive probability, "
            "because strength= is a number of rows."
        )
    model._set_tally(tally)._set_fixed_parameters(given)
    parameters = zip(factors, model._fixed_feature_parameters(), strict=True)
    priors = {
        f.columns: prior_from_parameters(model._factor_for_scoring(f), found, worth * probabilities)
        for f, found in parameters
    }
    model._set_fixed_parameters(None)
    model.prior = {columns[0] if len(columns) == 1 else columns: belief for columns, belief in priors.items()}
    model.class_prior = Dirichlet(worth * probabilities)
    return model._set_tally(tally)
