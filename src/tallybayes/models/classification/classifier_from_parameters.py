"""Classifiers and mixtures from user-specified parameters: without rows, or as a prior of some strength."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.fixed_parameters import check_parameters
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
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
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import ClassPrior, Columns

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier


class StatedParameters(NamedTuple):
    """User-specified p(class) and p(columns | class).

    Attributes
    ----------
    groups : list of labels
        The classes, in the order of the parameters.
    class_prior : ClassPrior
        Their probabilities.
    blocks : list of ParameterBlock
    """

    groups: list[Any]
    class_prior: ClassPrior
    blocks: list[ParameterBlock]

    @property
    def families(self) -> dict[Any, Family]:
        """The value of ``columns``."""
        return families_of(self.blocks)

    @property
    def names(self) -> list[Name]:
        """The names of the columns."""
        return [name for block in self.blocks for name in block.columns]

    def counted(self) -> FixedParameters:
        """Return an empty tally of these factors, and their parameters in the order of its classes."""
        target = free_name("class", self.names)
        domain = Domain(self.groups, target, declared=self.groups, is_sorted=True)
        order = [self.groups.index(label) for label in domain.levels]
        probabilities = read_probabilities(self.class_prior, self.groups, "class_prior")[order]
        features = [
            (
                Factor(block.columns, (target,), block.family),
                block._replace(numbers={name: part[order] for name, part in block.numbers.items()}),
            )
            for block in self.blocks
        ]
        class_factor = Factor(target, (), Categorical())
        schema = Schema(sorted_domains=(target,))
        tally, given = tally_and_parameters(class_factor, probabilities, features, {target: domain}, schema)
        input_format = InputFormat.of_tally(target, self.names)
        if not input_format.by_name:  # one number may stand for a block
            input_format = input_format._replace(n_features=sum(part.n_columns for part in tally.statistics[1:]))
        return FixedParameters(input_format, tally, given, probabilities)


class FixedParameters(NamedTuple):
    """The state of a model with user-specified parameters."""

    input_format: InputFormat
    tally: Tally
    parameters: tuple[Any, ...]
    class_proba: np.ndarray

    def priors(
        self, estimates: EstimatedClassifier, strength: float
    ) -> tuple[dict[Any, ParameterDistribution], Dirichlet]:
        """Return ``prior`` and ``class_prior`` with these parameters as their means, as strong as some rows."""
        rows = check_strength(strength) * self.class_proba
        if (rows <= 0).any():
            label = estimates.classes.levels[int(rows.argmin())]
            raise EstimateError(
                f"class {label!r} has probability 0; expected a positive probability, "
                "because strength= is a number of rows."
            )
        pairs = zip(estimates.feature_factors, estimates.fixed_feature_parameters, strict=True)
        priors = {factor.columns: prior_from_parameters(factor, found, rows) for (factor, _), found in pairs}
        by_column = {columns[0] if len(columns) == 1 else columns: prior for columns, prior in priors.items()}
        return by_column, Dirichlet(rows)


def read_parameters(
    parameters: Mapping[Any, Any],
    class_prior: ClassPrior,
    classes: Iterable[Hashable] | None,
    columns: Columns | None,
    levels: Mapping[Any, Iterable[Any]] | None,
) -> StatedParameters:
    """Return the parameters of independent columns by class; see `NaiveBayes.from_parameters`."""
    if not isinstance(parameters, Mapping):
        raise DataError.wrong_type("parameters", type(parameters).__name__, "a mapping from columns")
    marginal = [part for part in parameters.values() if is_marginal(part)]
    given = {name: part for name, part in parameters.items() if not is_marginal(part)}
    if class_prior is None:
        if not marginal:
            expected = "p(class): a mapping, a series, or an array with classes="
            raise DataError.wrong_type("class_prior", "None", expected)
        class_prior = marginal[0]
    groups = read_labels(class_prior, classes, "classes")
    return StatedParameters(groups, class_prior, read_columns_stated(given, groups, columns, levels))


def read_components(
    parameters: Mapping[Any, Any],
    class_prior: ClassPrior,
    columns: Columns | None,
    levels: Mapping[Any, Iterable[Any]] | None,
) -> StatedParameters:
    """Return the parameters of independent columns by component, of which there are 0, 1 and so on."""
    stated = read_parameters(parameters, class_prior, None, columns, levels)
    if set(stated.groups) != set(range(len(stated.groups))):
        raise DataError.wrong_type("class_prior", f"of the components {stated.groups}", "one for each of 0, 1, …")
    return stated


def read_gaussians(
    means: Mapping[Any, Any] | npt.ArrayLike,
    covariances: Mapping[Any, Any] | npt.ArrayLike,
    class_prior: ClassPrior,
    classes: Iterable[Hashable] | None,
    covariance: str,
    columns: Sequence[Name] | None,
) -> StatedParameters:
    """Return means and covariances by class; see `GaussianDiscriminant.from_parameters`."""
    means = nested_mapping(means)
    groups = read_labels(means, classes, "classes")
    groups = sorted(groups) if len({type(label) for label in groups}) == 1 else groups
    given = groups if classes is None else list(classes)
    order = [given.index(label) for label in groups]
    rows = [nested_mapping(row) for row in read_groups(means, given, "means")]
    names = read_labels(rows[order[0]], None, "the columns of means") if columns is None else list(columns)
    mean = np.stack(
        [
            read_row(rows[k], names, f"the mean of {label!r}", absent=None)
            for k, label in zip(order, groups, strict=True)
        ]
    )
    numbers = {"mean": mean, "covariance": _covariances(covariances, covariance, groups, order, names)}
    for k, label in enumerate(groups):
        of_class = {name: part[k] for name, part in numbers.items()}
        check_parameters(MultivariateGaussian(), of_class, [], f"class {label!r}")
    if class_prior is None:
        class_prior = np.full(len(groups), 1 / len(groups))
    elif not isinstance(nested_mapping(class_prior), Mapping):
        class_prior = dict(zip(given, np.asarray(class_prior, dtype=float), strict=True))
    return StatedParameters(groups, class_prior, [ParameterBlock(tuple(names), MultivariateGaussian(), numbers, [])])


def _covariances(
    value: Mapping[Any, Any] | npt.ArrayLike, kind: str, groups: list[Any], order: list[int], names: Sequence[Name]
) -> np.ndarray:
    """Return a covariance matrix for every class."""
    d = len(names)
    value = nested_mapping(value)
    if isinstance(value, Mapping) and set(value) != set(groups) and set(value) == set(names):  # one for all classes
        value = [_covariance_row(value[name], names) for name in names]
    if isinstance(value, Mapping):
        parts = [nested_mapping(part) for part in read_groups(value, groups, "covariances")]
        parts = [
            [_covariance_row(part[name], names) for name in names] if isinstance(part, Mapping) else part
            for part in parts
        ]
    else:
        array = np.asarray(value, dtype=float)
        own = array.ndim == {"diagonal": 2, "spherical": 1}.get(kind, 3) or array.ndim == 3
        if own and len(array) != len(groups):
            raise DataError.wrong_shape("covariances", array.shape, f"one for each of the {len(groups)} classes")
        parts = [array[k] for k in order] if own else [array] * len(groups)
    out = []
    for part, label in zip(parts, groups, strict=True):
        matrix = np.asarray(part, dtype=float)
        if matrix.ndim < 2:
            matrix = np.eye(d) * matrix if matrix.ndim == 0 or matrix.shape == (d,) else matrix
        if matrix.shape != (d, d):
            raise DataError.wrong_shape(f"the covariance of {label!r}", np.shape(part), f"({d}, {d}), for {d} columns")
        out.append(matrix)
    return np.stack(out)


def _covariance_row(value: Mapping[Any, Any] | npt.ArrayLike, names: Sequence[Name]) -> Any:
    """Return a row of a covariance matrix by name, or a variance."""
    value = nested_mapping(value)
    is_row = isinstance(value, Mapping) or np.ndim(value)
    return read_row(value, names, "the covariance", absent=None) if is_row else value
